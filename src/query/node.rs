//! The shards of this node, as reads see them.
//!
//! Knows: state, health and storage of each shard. Must not know: queues. So reads can be built without any;
//! writes go through `queue::publishers`.

use std::sync::Arc;

use tokio::sync::watch;

use crate::query::remote_shards::ShardClient;
use crate::state_lock::{Purpose, ReadGuard, StateLock};
use crate::storage::StoreSlot;
use crate::types::{MemberId, Sequence, ShardId, shard_of};
use crate::writer::Health;

/// One shard as reads see it.
pub struct ShardHandle {
    pub id: ShardId,
    /// The state at one applied sequence. Held for microseconds at a time, and never across an await or a
    /// disk read.
    pub state: Arc<StateLock>,
    /// The applied sequence, after readers can see it.
    pub applied: watch::Receiver<Sequence>,
    /// Whether the writer has begun to work.
    pub started: watch::Receiver<bool>,
    pub health: Arc<Health>,
    /// Holds metadata and rejects.
    pub store: Arc<StoreSlot>,
}

/// Every shard, by number.
pub struct Node {
    pub shards: Vec<ShardHandle>,
    /// Asks the shards that are not in this node's memory; `None` if all are.
    pub remote: Option<Arc<dyn ShardClient>>,
}

/// All shards, each locked at its applied sequence, so that one answer is exact at one `as_of`.
pub struct View<'a> {
    pub shards: Vec<ReadGuard<'a>>,
}

impl Node {
    /// A node that has every shard in memory.
    #[must_use]
    pub fn in_memory(shards: Vec<ShardHandle>) -> Self {
        Self { shards, remote: None }
    }

    #[must_use]
    pub fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).expect("shards are numbered by 16 bits")
    }

    #[must_use]
    pub fn home_of(&self, member: &MemberId) -> ShardId {
        shard_of(member, self.shard_count())
    }

    /// Whether some shard in memory applies nothing at the moment, so that answers may be behind.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        !self.shards.iter().all(|shard| shard.health.is_live())
    }

    /// Locks every shard for reading. Locks are taken in the order of shards, and a writer takes only its
    /// own, so there is no deadlock.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { shards: self.shards.iter().map(|shard| shard.state.read(Purpose::Read)).collect() }
    }
}
