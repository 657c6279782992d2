//! A watcher: it takes the newest state whenever it has room for one, and is told what has changed since the
//! one that it took last. So a slow watcher gets fewer and larger changes, or the whole state if it has
//! missed many, holds nobody else, and costs no memory but that of one state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::counter;
use tokio::sync::watch;

use crate::metrics::LIVE_COALESCED_TOTAL;
use crate::query::live::asked::{LiveStart, NotLive};
use crate::query::live::feed::Feed;
use crate::query::live::feeds::Feeds;
use crate::query::live::view::{Now, Past, Shown, View};
use crate::types::{AsOf, MemberId};

/// How long a watcher that comes back waits for a state that is not older than the one that it had, at a node
/// that may be behind the one that it was at.
const RESUME_WAIT: Duration = Duration::from_secs(2);

/// What a watcher is told.
#[derive(Debug)]
pub enum LiveNews {
    /// The whole state.
    All(Arc<Shown>),
    /// What has changed since the state that it had. Nothing, if it comes back and had the newest one.
    Changed { from: Past, to: Arc<Shown> },
    /// There is nothing to watch any more.
    Gone(NotLive),
    /// The node shuts down.
    Ending,
}

/// A watcher. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watching {
    feeds: Arc<Feeds>,
    feed: Arc<Feed>,
    view: Arc<View>,
    now: watch::Receiver<Now>,
    ending: watch::Receiver<bool>,
    /// What it was told last.
    seen: Option<Past>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.view.note_left();
        self.feeds.leave(&self.feed);
    }
}

impl Watching {
    /// # Arguments
    /// `now`: of the view.
    pub(super) fn new(
        feeds: Arc<Feeds>,
        feed: Arc<Feed>,
        (view, now): (Arc<View>, watch::Receiver<Now>),
        ending: watch::Receiver<bool>,
    ) -> Self {
        Self { feeds, feed, view, now, ending, seen: None }
    }

    /// The members that are watched, each once.
    pub fn members(&self) -> &[MemberId] {
        &self.view.members
    }

    /// What the watcher is told first: the state, or what has changed since the one that it had before.
    ///
    /// # Errors
    /// When there is nothing to watch, or it cannot be read now.
    pub async fn start(&mut self, start: LiveStart) -> Result<LiveNews, NotLive> {
        let begun = Instant::now();
        // A state that was found right a moment ago is as good as one that is read now, unless the watcher
        // has said what it must be of.
        let fresh = begun.checked_sub(self.feed.interval).unwrap_or(begun);
        let none = AsOf::default();
        let resumed = start.resumed.as_ref().map_or(&none, |(_, as_of)| as_of);
        let mut checked = self.feed.checked.subscribe();
        loop {
            let gone = match &*self.now.borrow_and_update() {
                Now::Gone(why) => Some(why.clone()),
                Now::Nothing | Now::Shown(_) => None,
            };
            let (is_fresh, is_new, is_far, is_resumed, is_shown) = {
                let checked = checked.borrow_and_update();
                let covers = |wanted: &AsOf| covers(&checked.exact_at, wanted);
                let is_since = |moment| checked.at.is_some_and(|at| at >= moment);
                let is_shown = !self.view.is_new(checked.computation);
                (is_since(fresh), is_since(begun), covers(&start.after), covers(resumed), is_shown)
            };
            // The client may just have made the board.
            if let Some(why) = gone.filter(|_| is_new) {
                return Err(why);
            }
            let has_waited = begun.elapsed() >= RESUME_WAIT || Instant::now() >= start.until;
            if is_fresh && is_far && (is_resumed || has_waited) && is_shown {
                break;
            }
            let wait = if is_far && !is_resumed && !has_waited {
                start.until.min(begun + RESUME_WAIT)
            } else {
                start.until
            };
            let waited = tokio::select! {
                _ = self.ending.wait_for(|ending| *ending) => return Ok(LiveNews::Ending),
                _ = checked.changed() => true,
                _ = self.now.changed() => true,
                () = tokio::time::sleep_until(wait.into()) => false,
            };
            // There may be a state that is only not as new as the one that the watcher had.
            let is_last = is_fresh && is_far && is_shown;
            if !waited && Instant::now() >= start.until && !is_last {
                return Err(if is_far { NotLive::NotInTime } else { NotLive::NotYetApplied });
            }
        }
        let Some(shown) = self.view.shown() else { return Err(NotLive::NotInTime) };
        let had = start.resumed.and_then(|(id, _)| {
            if shown.state.id == id { Some(shown.as_past()) } else { self.view.recent(id) }
        });
        self.seen = Some(shown.as_past());
        Ok(match had.filter(|had| shown.can_follow(had)) {
            Some(from) => LiveNews::Changed { from, to: shown },
            None => LiveNews::All(shown),
        })
    }

    /// What the watcher is told next, once there is something. May be dropped and called again.
    pub async fn next(&mut self) -> LiveNews {
        loop {
            let is_ending = tokio::select! {
                biased;
                _ = self.ending.wait_for(|ending| *ending) => true,
                changed = self.now.changed() => changed.is_err(),
            };
            if is_ending {
                return LiveNews::Ending;
            }
            let shown = match &*self.now.borrow_and_update() {
                Now::Gone(why) => return LiveNews::Gone(why.clone()),
                Now::Nothing => continue,
                Now::Shown(shown) => Arc::clone(shown),
            };
            let Some(from) = self.seen.replace(shown.as_past()) else { return LiveNews::All(shown) };
            if from.number == shown.number {
                continue;
            }
            counter!(LIVE_COALESCED_TOTAL).increment(shown.number.saturating_sub(from.number + 1));
            return if shown.can_follow(&from) {
                LiveNews::Changed { from, to: shown }
            } else {
                LiveNews::All(shown)
            };
        }
    }
}

/// Whether what is exact at `exact_at` is also of what is `wanted`.
fn covers(exact_at: &AsOf, wanted: &AsOf) -> bool {
    wanted.0.iter().all(|(shard, sequence)| exact_at.0.iter().any(|(id, at)| id == shard && at >= sequence))
}
