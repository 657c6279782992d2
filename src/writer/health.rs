//! The health of a shard, for status, readiness, metrics, and the stale mark of answers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::state::LogHashes;
use crate::storage::codec::Divergence;
use crate::types::{NodeName, Sequence};
use crate::writer::parked_places::ParkedPlaces;
use crate::writer::queue_room::{QueueLevel, QueueRoom};

/// As far as a job's own time may be ahead.
const SECONDS_AHEAD_MAX: u64 = 5 * 60;

/// What a shard's writer is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardState {
    /// Applies what arrives.
    Live,
    /// Applies the backlog, or reopens after a failure; the reason says which.
    CatchingUp(String),
    /// Applies nothing until an operator acts; the reason says what to do. Reads are still answered, marked
    /// stale.
    Halted(String),
}

impl Default for ShardState {
    fn default() -> Self {
        Self::CatchingUp("starting".to_owned())
    }
}

impl ShardState {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::CatchingUp(_) => "catching_up",
            Self::Halted(_) => "halted",
        }
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Live => None,
            Self::CatchingUp(reason) | Self::Halted(reason) => Some(reason),
        }
    }
}

impl fmt::Display for ShardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Another replica has another hash of the same log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diverged {
    pub found: Divergence,
    /// What happened and what to do, for status and the log.
    pub reason: String,
}

/// Whether there is something to answer from: an answer of before everything would say that nobody is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Filling {
    /// The start found the shard's data, or a copy has come, or the end of the queue was reached.
    #[default]
    Filled,
    /// The start found nothing.
    Empty,
    /// The same, although there were data: only a copy of another node's fills the shard.
    Lost,
}

/// What is known of a shard, as plain data.
#[derive(Debug, Default)]
pub struct HealthFacts {
    pub state: ShardState,
    pub filling: Filling,
    /// Jobs rejected since the shard was created.
    pub jobs_rejected: u64,
    /// Jobs that wait for the definition of a board.
    pub jobs_parked: u64,
    /// Whether some of them have waited long.
    pub jobs_wait_long: bool,
    /// Place in the stream of the last reject that is known to be published.
    pub rejects_published: (Sequence, u32),
    /// How often rejects of removed members were erased on the disk since the start.
    pub rejects_erased: u64,
    /// There is a write service, and no requests for the shard reach it.
    pub is_unserved: bool,
    /// The applied sequence, as readers see it.
    pub applied_sequence: u64,
    /// Where the queue ends, as far as that is known.
    pub last_sequence: u64,
    /// What the last completed checkpoint holds.
    pub checkpoint_sequence: u64,
    /// What was applied when the shard's directory was opened. Opening it has brought all of that into files
    /// and synced them, so no crash takes it back.
    pub opened_sequence: u64,
    /// A checkpoint of this sequence or a later one is wanted: the queue needs room.
    pub checkpoint_wanted: u64,
    /// How full the queue was when it was last checked; `None` before the first check, or for a queue that
    /// has none.
    pub queue_room: Option<Arc<QueueRoom>>,
    /// The damage found in the shard's files, and what to do; kept until a restart. After a start metadata
    /// and rejects are still unread, and compactions read all files: they find damage later.
    pub damage: Option<Arc<str>>,
    /// How far the copy of another node's data is that the shard waits for, if one is being fetched.
    pub copying: Option<Arc<CopyProgress>>,
    /// The hashes of the log, up to what readers see, for other replicas to compare.
    pub hashes: LogHashes,
    /// Whose data the shard's are a copy of, as far as that is known.
    pub copied_from: Option<NodeName>,
    /// That a replica was found to differ, and whether it halts this one. It does not if this one was mended
    /// since.
    pub found: Option<(Arc<Diverged>, bool)>,
    /// How many other replicas have another hash of the same log.
    pub replicas_differing: u64,
    /// The operator has said of what was applied up to this sequence that it is right here.
    pub accepted_through: Sequence,
    /// How far the shard's time is ahead of this node's clock.
    pub seconds_ahead: u64,
}

/// Written by a shard's writer, read by everyone.
#[derive(Default)]
pub struct Health {
    facts: RwLock<HealthFacts>,
    /// Where jobs are parked.
    pub parked_places: ParkedPlaces,
    /// Whether there are parked jobs whose boards are defined, and which are still to be unparked.
    pub has_ready_jobs: watch::Sender<bool>,
}

/// How far a copy of another node's data is.
#[derive(Debug)]
pub struct CopyProgress {
    /// The node that gives it.
    pub from: String,
    pub bytes: AtomicU64,
    pub bytes_total: u64,
}

impl Health {
    pub fn new(facts: HealthFacts) -> Self {
        Self { facts: RwLock::new(facts), ..Self::default() }
    }

    /// Reads under the lock, which is held for nothing else.
    pub fn get<T>(&self, read: impl FnOnce(&HealthFacts) -> T) -> T {
        read(&self.facts.read())
    }

    /// Changes under the lock, which is held for nothing else.
    pub fn set<T>(&self, change: impl FnOnce(&mut HealthFacts) -> T) -> T {
        change(&mut self.facts.write())
    }

    pub fn state(&self) -> ShardState {
        self.get(|facts| facts.state.clone())
    }

    pub fn set_state(&self, state: ShardState) {
        self.set(|facts| facts.state = state);
    }

    /// Whether anything is answered from what is in memory.
    pub fn is_filled(&self) -> bool {
        self.get(|facts| facts.filling == Filling::Filled)
    }

    pub fn set_filling(&self, filling: Filling) {
        self.set(|facts| facts.filling = filling);
    }

    pub fn is_live(&self) -> bool {
        self.get(|facts| facts.state == ShardState::Live)
    }

    /// Whether the shard is live, and the write service takes requests for it, if there is one.
    pub fn takes_writes(&self) -> bool {
        self.get(|facts| facts.state == ShardState::Live && !facts.is_unserved)
    }

    /// The queue says where it ends. A stream whose servers have lost some of it may end earlier than it did.
    pub fn set_last_sequence(&self, sequence: u64) {
        self.set(|facts| facts.last_sequence = sequence);
    }

    /// A message came that has this sequence.
    pub fn raise_last_sequence(&self, sequence: u64) {
        self.set(|facts| facts.last_sequence = facts.last_sequence.max(sequence));
    }

    /// What the directory holds after any crash: the queue is needed from here on.
    pub fn safe_sequence(&self) -> u64 {
        self.get(|facts| facts.checkpoint_sequence.max(facts.opened_sequence))
    }

    /// Requests a checkpoint after this sequence: the queue needs room.
    pub fn want_checkpoint_after(&self, sequence: u64) {
        self.set(|facts| facts.checkpoint_wanted = facts.checkpoint_wanted.max(sequence + 1));
    }

    pub fn is_checkpoint_wanted(&self) -> bool {
        self.get(|facts| facts.checkpoint_wanted > facts.checkpoint_sequence)
    }

    /// Records damage. Returns whether it is the first.
    pub fn note_damage(&self, what: &str) -> bool {
        self.set(|facts| {
            let is_first = facts.damage.is_none();
            facts.damage.get_or_insert_with(|| what.into());
            is_first
        })
    }

    /// How far the shard's time is ahead of this node's clock, if that is further than jobs may be.
    pub fn seconds_far_ahead(&self) -> Option<u64> {
        self.get(|facts| (facts.seconds_ahead > SECONDS_AHEAD_MAX).then_some(facts.seconds_ahead))
    }

    /// Records how far the shard's time is ahead. Returns whether it is too far now, and was not before.
    pub fn note_time_ahead(&self, seconds: u64) -> bool {
        let before = self.set(|facts| std::mem::replace(&mut facts.seconds_ahead, seconds));
        before <= SECONDS_AHEAD_MAX && seconds > SECONDS_AHEAD_MAX
    }

    /// That another replica has another hash of the same log, if that halts the shard.
    pub fn divergence(&self) -> Option<Arc<Diverged>> {
        self.get(|facts| facts.found.as_ref().filter(|(_, halts)| *halts).map(|(found, _)| Arc::clone(found)))
    }

    /// That a replica was found to differ, whether it halts this one or not.
    pub fn found(&self) -> Option<Arc<Diverged>> {
        self.get(|facts| facts.found.as_ref().map(|(found, _)| Arc::clone(found)))
    }

    /// Notes that the queue has refused a message because it is full, even if the last check found room.
    pub fn note_queue_full(&self) {
        self.set(|facts| {
            if let Some(room) = facts.queue_room.as_mut().filter(|room| room.level < QueueLevel::Full) {
                Arc::make_mut(room).level = QueueLevel::Full;
            }
        });
    }
}
