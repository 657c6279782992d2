//! The shards of this node, as reads see them.
//!
//! Knows: state, health and storage of each shard. Must not know: queues. So reads can be built without any;
//! writes go through `queue::publisher`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::message_clock::MessageClock;
use crate::query::answering_shard::ShardHandle;
use crate::query::few::Few;
use crate::query::local_shards::LocalShards;
use crate::query::remote_shards::ShardClient;
use crate::state_lock::{Purpose, ReadGuard};
use crate::types::{BoardName, MemberId, Sequence, ShardId, Timestamp, shard_of};

/// A node's shards, of all that there are.
pub struct Node {
    /// The shards that the node owns, which are in its memory, by number.
    pub shards: Vec<ShardHandle>,
    /// Asks every shard, those in memory among them; `None` if all are in memory.
    pub remote: Option<Arc<dyn ShardClient>>,
    /// Asks the shards in memory one by one.
    pub one_by_one: Arc<LocalShards>,
    /// The number of all shards.
    shard_count: u16,
    /// Whether the shards may lack what came while this process did not run, or was cut off; see
    /// [`Node::asking_whether_behind`].
    may_be_behind: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Whether all shards in memory were found to be filled. None of them is emptied again.
    were_filled: AtomicBool,
    /// What messages are stamped by.
    pub clock: Arc<MessageClock>,
}

/// A shard that has begun with the message behind this sequence on a board that is read; see
/// [`Shard::is_ahead`](crate::state::Shard::is_ahead).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    pub shard: ShardId,
    pub shown: Sequence,
}

/// All shards, each locked at its applied sequence, so that one answer is exact at one `as_of`.
pub struct View<'a> {
    pub shards: Few<ReadGuard<'a>>,
}

impl Node {
    /// A node that has every shard in memory.
    pub fn in_memory(shards: Vec<ShardHandle>) -> Self {
        let shard_count = u16::try_from(shards.len()).expect("shards are numbered by 16 bits");
        let one_by_one = Arc::new(LocalShards::new(&shards, shard_count));
        Self {
            shards,
            remote: None,
            one_by_one,
            shard_count,
            may_be_behind: None,
            were_filled: AtomicBool::new(false),
            clock: Arc::default(),
        }
    }

    /// A node that has some of the shards in memory.
    ///
    /// # Arguments
    /// `all`: asks every shard.
    pub fn of_some(shards: Vec<ShardHandle>, all: Arc<dyn ShardClient>) -> Self {
        let shard_count = all.shard_count();
        let one_by_one = Arc::new(LocalShards::new(&shards, shard_count));
        Self {
            shards,
            remote: Some(all),
            one_by_one,
            shard_count,
            may_be_behind: None,
            were_filled: AtomicBool::new(false),
            clock: Arc::default(),
        }
    }

    /// The number of all shards, on this node and on others.
    pub fn shard_count(&self) -> u16 {
        self.shard_count
    }

    /// Every shard, on this node or on others.
    pub fn all_shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.shard_count).map(ShardId)
    }

    /// A shard that this node owns.
    pub fn owned(&self, shard: ShardId) -> Option<&ShardHandle> {
        let at_its_place = self.shards.get(shard.index()).filter(|handle| handle.id == shard);
        at_its_place.or_else(|| self.shards.iter().find(|handle| handle.id == shard))
    }

    /// The shards that only other nodes own.
    pub fn not_owned(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.all_shards().filter(|shard| self.owned(*shard).is_none())
    }

    pub fn home_of(&self, member: &MemberId) -> ShardId {
        shard_of(member, self.shard_count())
    }

    /// The same node, whose answers are marked stale while `may_be_behind` says so. A process that was
    /// stopped is live by all that its shards know, until they have heard of what came meanwhile.
    pub fn asking_whether_behind(self, may_be_behind: Box<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self { may_be_behind: Some(may_be_behind), ..self }
    }

    /// The same node, whose messages are stamped by a server.
    pub fn stamped_by(self, clock: Arc<MessageClock>) -> Self {
        Self { clock, ..self }
    }

    /// Whether some shard in memory applies nothing at the moment, or may not have heard of what came while
    /// this process did not run, so that answers may be behind. Asked after the answer was read.
    pub fn is_stale(&self) -> bool {
        !self.shards.iter().all(|shard| shard.health.is_live())
            || self.may_be_behind.as_ref().is_some_and(|may_be_behind| may_be_behind())
    }

    /// The shards in memory that are still being filled, so that nothing is answered from them.
    pub fn unfilled(&self) -> Vec<ShardId> {
        if self.were_filled.load(Ordering::Acquire) {
            return Vec::new();
        }
        let unfilled = self.shards.iter().filter(|shard| !shard.health.is_filled());
        let unfilled: Vec<_> = unfilled.map(|shard| shard.id).collect();
        self.were_filled.store(unfilled.is_empty(), Ordering::Release);
        unfilled
    }

    /// The latest time of the shards in memory.
    pub fn time(&self) -> Timestamp {
        let times = self.shards.iter().map(|shard| shard.state.read(Purpose::Read).time);
        times.max().unwrap_or_default()
    }

    /// The time by which windows are judged: that of messages, or that of the shards in memory if that is
    /// ahead. A message whose time no shard believes yet does not count: what follows from it would stay.
    pub fn now(&self) -> Timestamp {
        self.clock.now().max(self.time())
    }

    /// Locks every shard for reading, on a node that has all of them in memory. Locks are taken in the order
    /// of shards, and a writer takes only its own, so there is no deadlock.
    ///
    /// # Arguments
    /// `is_asked`: which boards are read, by their names.
    ///
    /// # Errors
    /// When a shard is between two messages on such a board, so that it is to be read a little later.
    pub fn view(&self, is_asked: impl Fn(&BoardName) -> bool) -> Result<View<'_>, Ahead> {
        let shards: Few<_> = self.shards.iter().map(|shard| shard.state.read(Purpose::Read)).collect();
        match shards.iter().find(|shard| shard.is_ahead(&is_asked)) {
            None => Ok(View { shards }),
            Some(shard) => Err(Ahead { shard: shard.id, shown: shard.applied.sequence }),
        }
    }
}
