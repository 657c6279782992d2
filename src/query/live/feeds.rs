//! All feeds of this node. Those that nobody watches are kept for a while, and are not looked through.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::Mutex;

use crate::query::live::feed::{Feed, FeedKey, KEPT};

/// The most feeds without watchers that are kept.
const IDLE_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Feeds {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    watched: HashMap<FeedKey, Arc<Feed>>,
    /// Those without watchers, each with its number in `left`.
    idle: HashMap<FeedKey, (u64, Arc<Feed>)>,
    /// Since when, and which: longest first.
    left: BTreeMap<u64, (Instant, FeedKey)>,
    leaves: u64,
}

impl State {
    fn forget_oldest(&mut self) {
        if let Some((_, (_, key))) = self.left.pop_first() {
            self.idle.remove(&key);
        }
    }
}

impl Feeds {
    pub(super) fn has(&self, key: &FeedKey) -> bool {
        let state = self.state.lock();
        state.watched.contains_key(key) || state.idle.contains_key(key)
    }

    /// There is a new watcher, which [`Feeds::leave`] is to be told of when it leaves.
    ///
    /// # Arguments
    /// `new`: makes the feed, if there is none.
    pub(super) fn enter(&self, new: impl FnOnce(FeedKey) -> Feed, key: FeedKey) -> Arc<Feed> {
        let mut state = self.state.lock();
        if let Some((number, feed)) = state.idle.remove(&key) {
            state.left.remove(&number);
            state.watched.insert(key.clone(), feed);
        }
        let feed = state.watched.entry(key.clone()).or_insert_with(|| Arc::new(new(key)));
        // Counted before the lock is given back: a feed without watchers may be forgotten.
        feed.watchers.fetch_add(1, Ordering::Relaxed);
        Arc::clone(feed)
    }

    /// A watcher leaves.
    pub(super) fn leave(&self, feed: &Arc<Feed>) {
        let mut state = self.state.lock();
        if feed.watchers.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        state.watched.remove(&feed.key);
        // One that comes back to nothing has nothing to go on from.
        if !feed.has_state() {
            return;
        }
        state.leaves += 1;
        let number = state.leaves;
        state.left.insert(number, (Instant::now(), feed.key.clone()));
        state.idle.insert(feed.key.clone(), (number, Arc::clone(feed)));
        if state.idle.len() > IDLE_MAX {
            state.forget_oldest();
        }
    }

    /// Those that are due. Forgets what nobody has watched for long.
    pub(super) fn due(&self, now: Instant) -> Vec<Arc<Feed>> {
        let mut state = self.state.lock();
        let is_over = |(_, (left, _)): (&u64, &(Instant, FeedKey))| now.duration_since(*left) >= KEPT;
        while state.left.first_key_value().is_some_and(is_over) {
            state.forget_oldest();
        }
        state.watched.values().filter(|feed| feed.next(now) <= now).cloned().collect()
    }

    /// When some feed is due next.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.state.lock().watched.values().map(|feed| feed.next(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::query::instance::WindowChoice;
    use crate::types::BoardName;

    fn key(number: usize) -> FeedKey {
        (BoardName::new(&format!("board-{number}")).expect("a name"), String::new(), 5)
    }

    fn enter(feeds: &Feeds, number: usize) -> Arc<Feed> {
        let interval = Duration::from_millis(200);
        let new = |key: FeedKey| Feed::new(key, WindowChoice::Default, interval);
        feeds.enter(new, key(number))
    }

    fn count(feeds: &Feeds) -> (usize, usize) {
        let state = feeds.state.lock();
        assert_eq!(state.idle.len(), state.left.len());
        (state.watched.len(), state.idle.len())
    }

    #[test]
    fn a_feed_that_never_had_a_state_goes_with_its_last_watcher() {
        let feeds = Feeds::default();
        let (first, second) = (enter(&feeds, 1), enter(&feeds, 1));
        assert_eq!(count(&feeds), (1, 0));
        feeds.leave(&first);
        assert_eq!(count(&feeds), (1, 0));
        feeds.leave(&second);
        assert_eq!(count(&feeds), (0, 0));
    }

    #[test]
    fn feeds_without_watchers_are_kept_for_a_while_and_not_too_many() {
        let feeds = Feeds::default();
        for number in 0..IDLE_MAX + 10 {
            let feed = enter(&feeds, number);
            feed.pretend_state();
            feeds.leave(&feed);
        }
        assert_eq!(count(&feeds), (0, IDLE_MAX));
        assert!(!feeds.has(&key(9)) && feeds.has(&key(10)), "the oldest has gone");
        let back = enter(&feeds, 10);
        assert_eq!(count(&feeds), (1, IDLE_MAX - 1));
        let due = feeds.due(Instant::now() + KEPT);
        assert_eq!((due.len(), count(&feeds)), (1, (1, 0)));
        feeds.leave(&back);
        assert_eq!(count(&feeds), (0, 1));
    }
}
