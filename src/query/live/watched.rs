//! All boards that are watched at this node, and the task that keeps what watchers see up to date.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use metrics::counter;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::metrics::{LIVE_COALESCED_TOTAL, LIVE_COMPUTATIONS_TOTAL};
use crate::query::live::asked::LiveAsked;
use crate::query::live::check;
use crate::query::live::feed::{Due, Feed};
use crate::query::live::source::LiveSource;
use crate::query::live::state::each_once;
use crate::query::live::watching::Watching;
use crate::query::node::Node;
use crate::query::remote_shards::ShardClient;
use crate::types::BoardName;
use crate::writer::Registry;

/// The least pause between two rounds, so that boards that are due at about the same time share a question.
const PAUSE: Duration = Duration::from_millis(5);
/// How often boards are looked through that nobody watches any more.
const IDLE: Duration = Duration::from_secs(5);
/// A board that has not changed is looked at so many times in its interval; over remote shards fewer times.
const LOOKS: u32 = 4;
const LOOKS_REMOTE: u32 = 2;
/// Boards that are computed at the same time. In memory they come one after the other.
const AT_ONCE: usize = 16;

type FeedKey = (BoardName, String, u32);

/// The boards that are watched at this node.
pub struct WatchedBoards {
    source: LiveSource,
    /// Asks all shards, those of this node among them.
    shards: Arc<dyn ShardClient>,
    feeds: Mutex<HashMap<FeedKey, Arc<Feed>>>,
    /// There is a new watcher.
    added: Arc<Notify>,
    ending: watch::Sender<bool>,
}

impl WatchedBoards {
    /// # Arguments
    /// `shards`: asks all shards, those of this node among them.
    #[must_use]
    pub fn new(node: Arc<Node>, registry: Arc<Registry>, shards: Arc<dyn ShardClient>) -> Self {
        // The counters exist from the start, so that their rates can be asked for.
        counter!(LIVE_COMPUTATIONS_TOTAL).increment(0);
        counter!(LIVE_COALESCED_TOTAL).increment(0);
        let (feeds, added) = (Mutex::default(), Arc::default());
        Self { source: LiveSource { node, registry }, shards, feeds, added, ending: watch::channel(false).0 }
    }

    /// Begins to watch. [`Watching::start`] says what is there.
    #[must_use]
    pub fn watch(&self, asked: LiveAsked) -> Watching {
        let LiveAsked { board, choice, top, members, rate } = asked;
        let rate = rate.max(1);
        let key = (board.clone(), choice.to_string(), rate);
        let mut feeds = self.feeds.lock();
        let new = || Arc::new(Feed::new(board, choice, Duration::from_secs(1) / rate));
        let feed = Arc::clone(feeds.entry(key).or_insert_with(new));
        let mut members = each_once(members);
        members.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        let view = feed.view(top, &members.into());
        // Counted before the lock is given back: a feed without watchers may be forgotten.
        let watching = Watching::new(Arc::clone(&feed), view, self.ending.subscribe());
        feed.is_joined();
        drop(feeds);
        self.added.notify_one();
        watching
    }

    /// Ends all watches, and those that begin from now on.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Brings everything up to date that is due. Returns when something is due next.
    async fn round(&self) -> Instant {
        let now = Instant::now();
        let mut due = Vec::new();
        {
            let mut feeds = self.feeds.lock();
            feeds.retain(|_, feed| !feed.is_over(now));
            due.extend(feeds.values().filter(|feed| feed.next(now).is_some_and(|next| next <= now)).cloned());
        }
        if !due.is_empty() {
            let time = self.source.time();
            let (mut compute, mut ask) = (Vec::new(), Vec::new());
            for feed in due {
                match feed.due(&self.source, now, time) {
                    Due::Nothing => {}
                    Due::Compute => compute.push(feed),
                    Due::Check(life) => ask.push((feed, life)),
                }
            }
            let looks = if self.source.node.remote.is_some() { LOOKS_REMOTE } else { LOOKS };
            compute.extend(check::changed(&*self.shards, ask, |feed| feed.interval / looks).await);
            let computing = stream::iter(compute).for_each_concurrent(AT_ONCE, |feed| async move {
                feed.compute(&self.source, time).await;
                tokio::task::yield_now().await;
            });
            computing.await;
        }
        let next = self.feeds.lock().values().filter_map(|feed| feed.next(Instant::now())).min();
        next.unwrap_or(now + IDLE).clamp(Instant::now() + PAUSE, now + IDLE)
    }
}

/// Keeps what watchers see up to date.
pub async fn keep_live(boards: Weak<WatchedBoards>) {
    let Some(added) = boards.upgrade().map(|boards| Arc::clone(&boards.added)) else { return };
    loop {
        let Some(boards) = boards.upgrade() else { return };
        let next = boards.round().await;
        drop(boards);
        tokio::select! {
            () = tokio::time::sleep_until(next.into()) => {}
            () = added.notified() => {}
        }
    }
}
