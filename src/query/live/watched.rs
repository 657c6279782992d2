//! All boards that are watched at this node, and the task that keeps what watchers see up to date.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use metrics::counter;
use tokio::sync::{Notify, watch};

use crate::metrics::{LIVE_COALESCED_TOTAL, LIVE_COMPUTATIONS_TOTAL};
use crate::query::live::asked::{LiveAsked, NotLive};
use crate::query::live::check;
use crate::query::live::feed::{Due, Feed, Which};
use crate::query::live::feeds::Feeds;
use crate::query::live::source::LiveSource;
use crate::query::live::state::each_once;
use crate::query::live::watching::Watching;
use crate::query::node::Node;
use crate::query::remote_shards::{ReadError, ShardClient};
use crate::types::Timestamp;
use crate::writer::Registry;

/// The least pause between two rounds, so that boards that are due at about the same time share a question.
const PAUSE: Duration = Duration::from_millis(5);
/// The pause after a round that panicked.
const PANICKED: Duration = Duration::from_secs(1);
/// How often boards are looked through that nobody watches any more.
const IDLE: Duration = Duration::from_secs(5);
/// A board that has not changed is looked at so many times in its interval; over remote shards fewer times.
const LOOKS: u32 = 4;
const LOOKS_REMOTE: u32 = 2;
/// Boards that are computed at the same time. In memory they come one after the other.
const AT_ONCE: usize = 16;

/// The boards that are watched at this node.
pub struct WatchedBoards {
    source: LiveSource,
    /// Asks all shards, those of this node among them.
    shards: Arc<dyn ShardClient>,
    feeds: Arc<Feeds>,
    /// Whether some shard has not answered a moment ago.
    is_silent: AtomicBool,
    /// There is a new watcher.
    added: Arc<Notify>,
    ending: watch::Sender<bool>,
}

impl WatchedBoards {
    /// # Arguments
    /// `shards`: asks all shards, those of this node among them.
    pub fn new(node: Arc<Node>, registry: Arc<Registry>, shards: Arc<dyn ShardClient>) -> Self {
        // The counters exist from the start, so that their rates can be asked for.
        counter!(LIVE_COMPUTATIONS_TOTAL).increment(0);
        counter!(LIVE_COALESCED_TOTAL).increment(0);
        Self {
            source: LiveSource { node, registry },
            shards,
            feeds: Arc::default(),
            is_silent: AtomicBool::new(false),
            added: Arc::default(),
            ending: watch::channel(false).0,
        }
    }

    /// Begins to watch. [`Watching::start`] says what is there.
    ///
    /// # Errors
    /// When there is no such board, or no such window. Nothing is kept then.
    pub fn watch(&self, asked: LiveAsked) -> Result<Watching, NotLive> {
        let LiveAsked { board, choice, top, members, rate } = asked;
        let rate = rate.max(1);
        let key = (board, choice.to_string(), rate);
        if !self.feeds.has(&key) {
            self.source.find(&key.0, choice, self.source.node.now())?;
        }
        let mut members = each_once(members);
        members.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        let new = |key| Feed::new(key, choice, Duration::from_secs(1) / rate);
        let feed = self.feeds.enter(new, key);
        let view = feed.view(top, &members.into());
        let watching =
            Watching::new(Arc::clone(&self.feeds), Arc::clone(&feed), view, self.ending.subscribe());
        feed.note_joined();
        self.added.notify_one();
        Ok(watching)
    }

    /// Ends all watches, and those that begin from now on.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Brings everything up to date that is due. Returns when something is due next.
    async fn round(&self) -> Instant {
        let now = Instant::now();
        let due = self.feeds.due(now);
        if !due.is_empty() {
            let (time, is_silent) = (self.source.node.now(), self.is_silent.load(Ordering::Relaxed));
            let (mut compute, mut ask) = (Vec::new(), Vec::new());
            for feed in due {
                match feed.due(&self.source, now, time, is_silent) {
                    Due::Nothing => {}
                    Due::Compute(which) => compute.push((feed, which)),
                    Due::Check(life) => ask.push((feed, life)),
                }
            }
            if !ask.is_empty() {
                let looks = if self.source.node.remote.is_some() { LOOKS_REMOTE } else { LOOKS };
                let told = check::changed(&*self.shards, ask, |feed| feed.interval / looks).await;
                self.is_silent.store(told.is_silent, Ordering::Relaxed);
                compute.extend(told.changed.into_iter().map(|feed| (feed, Which::All)));
            }
            let computing = stream::iter(compute).for_each_concurrent(AT_ONCE, |(feed, which)| async move {
                self.compute(&feed, which, time).await;
                tokio::task::yield_now().await;
            });
            computing.await;
        }
        let next = self.feeds.next(Instant::now());
        // A round may take longer than that.
        next.unwrap_or(now + IDLE).min(now + IDLE).max(Instant::now() + PAUSE)
    }

    async fn compute(&self, feed: &Feed, which: Which, time: Timestamp) {
        let begun = Instant::now();
        match caught(feed.compute(&self.source, time, which)).await {
            Some(true) => {}
            Some(false) => self.is_silent.store(true, Ordering::Relaxed),
            None => {
                let (board, window, _) = &feed.key;
                tracing::error!(%board, %window, "a watched board could not be computed, which is a bug: it panicked; trying again");
                feed.fail(begun, &ReadError::KeptChanging(1));
            }
        }
    }
}

/// What a future returns; `None` if it panics. What other boards show does not end with it.
async fn caught<T>(future: impl Future<Output = T>) -> Option<T> {
    // What it may have left half done is computed again as a whole.
    AssertUnwindSafe(future).catch_unwind().await.ok()
}

/// Keeps what watchers see up to date.
pub async fn keep_live(boards: Weak<WatchedBoards>) {
    let Some(added) = boards.upgrade().map(|boards| Arc::clone(&boards.added)) else { return };
    loop {
        let Some(boards) = boards.upgrade() else { return };
        let next = caught(boards.round()).await.unwrap_or_else(|| {
            tracing::error!("looking after watched boards panicked, which is a bug; going on");
            Instant::now() + PANICKED
        });
        drop(boards);
        let earliest = Instant::now() + PAUSE;
        tokio::select! {
            () = tokio::time::sleep_until(next.into()) => {}
            // Those that come at about the same time share a round too.
            () = added.notified() => tokio::time::sleep_until(earliest.into()).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_nothing_but_its_computation() {
        assert_eq!(caught(async { 7 }).await, Some(7));
        let panics = async {
            tokio::task::yield_now().await;
            panic!("as a bug would")
        };
        assert_eq!(caught::<()>(panics).await, None);
    }
}
