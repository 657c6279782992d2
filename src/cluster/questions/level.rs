//! When a shard of this node may answer for the others.
//!
//! A replica may have been away without knowing it: its process was stopped, or its connection was cut. When
//! it is back it holds what it had then, and its health says that it is live. Others have answered meanwhile
//! from what came since. So after each such absence the node asks the leader of the shard's stream where the
//! stream ends, and the shard is **level** once it has applied that much. Until then it leaves the queue
//! group, and says "not level" to whoever asks it.
//!
//! Absences are: the start; a lost connection to NATS; a clock that jumped, because a task that runs every
//! 100 ms did not run for a second. A shard that is not live is not level either.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::query::AnsweringShard;
use crate::types::{Sequence, ShardId};
use crate::writer::Filling;

/// How often the clock is looked at, and how late that may be.
const TICK: Duration = Duration::from_millis(100);
const AWAY_AFTER: Duration = Duration::from_secs(1);
/// How often the health of a shard is looked at.
const HEALTH_INTERVAL: Duration = Duration::from_millis(20);
/// The pause after a failed look at a stream.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Where a shard's queue ends, as its leader says now.
pub trait StreamEnds: Send + Sync {
    /// The last sequence, as the shard counts them.
    fn end(&self, shard: ShardId) -> BoxFuture<'_, Result<ShardEnd, String>>;
}

/// The last sequence of a shard's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardEnd(pub Sequence);

/// Notices that the process did not run for a while.
pub struct PauseWatch {
    started: Instant,
    /// When the clock was last looked at, in milliseconds from `started`.
    last: AtomicU64,
    pauses: watch::Sender<u64>,
}

impl PauseWatch {
    /// Watches for as long as this is held.
    pub fn start() -> Arc<Self> {
        let this =
            Arc::new(Self { started: Instant::now(), last: AtomicU64::new(0), pauses: watch::channel(0).0 });
        tokio::spawn(Self::run(Arc::downgrade(&this)));
        this
    }

    async fn run(this: Weak<Self>) {
        loop {
            tokio::time::sleep(TICK).await;
            let Some(this) = this.upgrade() else { return };
            if this.is_away() {
                // Before the clock is noted: shards are not level from here on.
                this.pauses.send_modify(|count| *count += 1);
            }
            this.last.store(this.now(), Ordering::Release);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether the process has not run for a while, and shards may not know yet.
    pub fn is_away(&self) -> bool {
        let late = self.now().saturating_sub(self.last.load(Ordering::Acquire));
        Duration::from_millis(late) > TICK + AWAY_AFTER
    }

    fn count(&self) -> watch::Receiver<u64> {
        self.pauses.subscribe()
    }
}

/// Whether one shard is level.
pub struct Level {
    /// It was, when that was last found out.
    was_found: AtomicBool,
    /// The absences that the shard has made up for.
    made_up_for: [AtomicU64; 2],
    pauses: Arc<PauseWatch>,
    /// Counts how often this node was connected.
    connected: watch::Receiver<u64>,
}

impl Level {
    pub fn new(pauses: Arc<PauseWatch>, connected: watch::Receiver<u64>) -> Self {
        Self { was_found: AtomicBool::new(false), made_up_for: Default::default(), pauses, connected }
    }

    /// Whether the shard may answer for the others.
    pub fn is_level(&self, shard: &AnsweringShard) -> bool {
        self.was_found.load(Ordering::Acquire)
            && shard.health.is_live()
            && !self.pauses.is_away()
            && self.absences() == self.made_up_for.each_ref().map(|count| count.load(Ordering::Acquire))
    }

    /// Counts how often this node was connected, and how often it was stopped.
    fn absences(&self) -> [u64; 2] {
        [*self.connected.borrow(), *self.pauses.pauses.borrow()]
    }

    /// Returns once the shard has applied all that it could not have seen.
    pub async fn become_level(&self, shard: &AnsweringShard, ends: &dyn StreamEnds) {
        loop {
            while !shard.health.is_live() || self.pauses.is_away() {
                tokio::time::sleep(HEALTH_INTERVAL).await;
            }
            // Before the stream is asked: an absence that begins meanwhile is another one.
            let absences = self.absences();
            let Ok(ShardEnd(end)) = ends.end(shard.id).await else {
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            };
            let level = async { shard.applied.reach(end).await.is_ok() };
            let is_same = || self.absences() == absences && shard.health.is_live();
            let has_changed = async {
                while is_same() {
                    tokio::time::sleep(HEALTH_INTERVAL).await;
                }
            };
            tokio::select! {
                is_there = level => if !is_there {
                    // The writer has ended; so does the node.
                    std::future::pending::<()>().await;
                },
                () = has_changed => continue,
            }
            if is_same() {
                for (made_up_for, count) in self.made_up_for.iter().zip(absences) {
                    made_up_for.store(count, Ordering::Release);
                }
                shard.health.set_filling(Filling::Filled);
                self.was_found.store(true, Ordering::Release);
                return;
            }
        }
    }

    /// Returns once the shard is not level any more.
    pub async fn lose(&self, shard: &AnsweringShard) {
        let (mut connected, mut pauses) = (self.connected.clone(), self.pauses.count());
        while self.is_level(shard) {
            tokio::select! {
                _ = connected.changed() => {}
                _ = pauses.changed() => {}
                () = tokio::time::sleep(HEALTH_INTERVAL) => {}
            }
        }
        self.was_found.store(false, Ordering::Release);
    }
}
