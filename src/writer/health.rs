//! The health of a shard, for status, readiness, metrics, and the stale mark of answers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::state::{HashPoint, LogHash, LogHashes};
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

struct Found {
    diverged: Arc<Diverged>,
    halts: bool,
}

/// Written by a shard's writer, read by everyone.
pub struct Health {
    state: RwLock<ShardState>,
    /// The shard's data are lost: what is in memory is empty, until there is a copy.
    is_lost: AtomicBool,
    jobs_rejected: AtomicU64,
    jobs_parked: AtomicU64,
    /// Whether some of them have waited long.
    jobs_wait_long: AtomicBool,
    /// Where jobs are parked.
    pub parked_places: ParkedPlaces,
    /// Place in the stream of the last reject that was published.
    rejects_published: RwLock<(Sequence, u32)>,
    /// Whether the write service takes requests for the shard, or there is none.
    is_served: AtomicBool,
    /// Whether there are parked jobs whose boards are defined, and which are still to be unparked.
    has_ready_jobs: watch::Sender<bool>,
    /// The applied sequence, as readers see it.
    applied_sequence: AtomicU64,
    /// The highest sequence known to be in the queue.
    last_sequence: AtomicU64,
    checkpoint_sequence: AtomicU64,
    opened_sequence: AtomicU64,
    /// A checkpoint of this sequence or a later one is wanted.
    checkpoint_wanted: AtomicU64,
    queue_room: RwLock<Option<Arc<QueueRoom>>>,
    damage: RwLock<Option<Arc<str>>>,
    copying: RwLock<Option<Arc<CopyProgress>>>,
    /// The hashes of the log, up to what readers see.
    hashes: RwLock<LogHashes>,
    /// Whose data the shard's are a copy of.
    copied_from: RwLock<Option<NodeName>>,
    found: RwLock<Option<Found>>,
    replicas_differing: AtomicU64,
    accepted_through: AtomicU64,
    /// How far the shard's time is ahead of this node's clock.
    seconds_ahead: AtomicU64,
}

/// How far a copy of another node's data is.
#[derive(Debug)]
pub struct CopyProgress {
    /// The node that gives it.
    pub from: String,
    pub bytes: AtomicU64,
    pub bytes_total: u64,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            state: RwLock::new(ShardState::CatchingUp("starting".to_owned())),
            is_lost: AtomicBool::new(false),
            jobs_rejected: AtomicU64::new(0),
            jobs_parked: AtomicU64::new(0),
            jobs_wait_long: AtomicBool::new(false),
            parked_places: ParkedPlaces::default(),
            rejects_published: RwLock::default(),
            is_served: AtomicBool::new(true),
            has_ready_jobs: watch::channel(false).0,
            applied_sequence: AtomicU64::new(0),
            last_sequence: AtomicU64::new(0),
            checkpoint_sequence: AtomicU64::new(0),
            opened_sequence: AtomicU64::new(0),
            checkpoint_wanted: AtomicU64::new(0),
            queue_room: RwLock::default(),
            damage: RwLock::default(),
            copying: RwLock::default(),
            hashes: RwLock::default(),
            copied_from: RwLock::default(),
            found: RwLock::default(),
            replicas_differing: AtomicU64::new(0),
            accepted_through: AtomicU64::new(0),
            seconds_ahead: AtomicU64::new(0),
        }
    }
}

impl Health {
    pub fn state(&self) -> ShardState {
        self.state.read().clone()
    }

    pub fn is_live(&self) -> bool {
        *self.state.read() == ShardState::Live
    }

    pub fn set_state(&self, state: ShardState) {
        *self.state.write() = state;
    }

    /// Whether the shard is live, and the write service takes requests for it, if there is one.
    pub fn takes_writes(&self) -> bool {
        self.is_live() && self.is_served.load(Ordering::Acquire)
    }

    /// The write service says whether requests for the shard reach it.
    pub fn set_served(&self, is_served: bool) {
        self.is_served.store(is_served, Ordering::Release);
    }

    /// Whether the shard's data are lost: what is in memory is empty, and nothing is answered from it.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    pub fn set_lost(&self, is_lost: bool) {
        self.is_lost.store(is_lost, Ordering::Release);
    }

    /// Jobs rejected since the shard was created.
    pub fn jobs_rejected(&self) -> u64 {
        self.jobs_rejected.load(Ordering::Relaxed)
    }

    pub fn set_jobs_rejected(&self, count: u64) {
        self.jobs_rejected.store(count, Ordering::Relaxed);
    }

    /// Jobs that wait for the definition of a board.
    pub fn jobs_parked(&self) -> u64 {
        self.jobs_parked.load(Ordering::Relaxed)
    }

    pub fn set_jobs_parked(&self, count: u64) {
        self.jobs_parked.store(count, Ordering::Relaxed);
    }

    /// Whether jobs have waited long for a board that is not defined.
    pub fn jobs_wait_long(&self) -> bool {
        self.jobs_wait_long.load(Ordering::Relaxed)
    }

    pub fn set_jobs_wait_long(&self, wait_long: bool) {
        self.jobs_wait_long.store(wait_long, Ordering::Relaxed);
    }

    /// Place in the stream of the last reject that is known to be published.
    pub fn rejects_published(&self) -> (Sequence, u32) {
        *self.rejects_published.read()
    }

    pub fn set_rejects_published(&self, place: (Sequence, u32)) {
        *self.rejects_published.write() = place;
    }

    /// Whether there are parked jobs whose boards are defined, and which are still to be unparked.
    pub fn has_ready_jobs(&self) -> watch::Receiver<bool> {
        self.has_ready_jobs.subscribe()
    }

    pub fn set_has_ready_jobs(&self, has_ready_jobs: bool) {
        self.has_ready_jobs
            .send_if_modified(|known| std::mem::replace(known, has_ready_jobs) != has_ready_jobs);
    }

    /// The applied sequence, as readers see it.
    pub fn applied_sequence(&self) -> u64 {
        self.applied_sequence.load(Ordering::Relaxed)
    }

    pub fn set_applied_sequence(&self, sequence: Sequence) {
        self.applied_sequence.store(sequence.0, Ordering::Relaxed);
    }

    pub fn last_sequence(&self) -> u64 {
        self.last_sequence.load(Ordering::Relaxed)
    }

    pub fn set_last_sequence(&self, sequence: u64) {
        self.last_sequence.fetch_max(sequence, Ordering::Relaxed);
    }

    /// What the last completed checkpoint holds.
    pub fn checkpoint_sequence(&self) -> u64 {
        self.checkpoint_sequence.load(Ordering::Relaxed)
    }

    pub fn set_checkpoint_sequence(&self, sequence: u64) {
        self.checkpoint_sequence.store(sequence, Ordering::Relaxed);
    }

    /// What was applied when the shard's directory was opened. Opening it has brought all of that into files
    /// and synced them, so no crash takes it back.
    pub fn set_opened_sequence(&self, sequence: u64) {
        self.opened_sequence.store(sequence, Ordering::Relaxed);
    }

    /// What the directory holds after any crash: the queue is needed from here on.
    pub fn safe_sequence(&self) -> u64 {
        self.checkpoint_sequence().max(self.opened_sequence.load(Ordering::Relaxed))
    }

    /// Requests a checkpoint after this sequence: the queue needs room.
    pub fn want_checkpoint_after(&self, sequence: u64) {
        self.checkpoint_wanted.fetch_max(sequence + 1, Ordering::Relaxed);
    }

    /// The damage found in the shard's files, and what to do; kept until a restart. After a start metadata
    /// and rejects are still unread, and compactions read all files: they find damage later.
    pub fn damage(&self) -> Option<Arc<str>> {
        self.damage.read().clone()
    }

    /// Records damage. Returns whether it is the first.
    pub fn note_damage(&self, what: &str) -> bool {
        if self.damage.read().is_some() {
            return false;
        }
        *self.damage.write() = Some(what.into());
        true
    }

    /// How far the shard's time is ahead of this node's clock, if that is further than jobs may be.
    pub fn seconds_far_ahead(&self) -> Option<u64> {
        let seconds = self.seconds_ahead.load(Ordering::Relaxed);
        (seconds > SECONDS_AHEAD_MAX).then_some(seconds)
    }

    /// Records how far the shard's time is ahead. Returns whether it is too far now, and was not before.
    pub fn note_time_ahead(&self, seconds: u64) -> bool {
        let before = self.seconds_ahead.swap(seconds, Ordering::Relaxed);
        before <= SECONDS_AHEAD_MAX && seconds > SECONDS_AHEAD_MAX
    }

    /// How far the copy of another node's data is that the shard waits for, if one is being fetched.
    pub fn copying(&self) -> Option<Arc<CopyProgress>> {
        self.copying.read().clone()
    }

    pub fn set_copying(&self, copying: Option<Arc<CopyProgress>>) {
        *self.copying.write() = copying;
    }

    /// The hashes of the log, for other replicas to compare.
    pub fn hashes(&self) -> LogHashes {
        self.hashes.read().clone()
    }

    pub fn set_hashes(&self, hashes: LogHashes) {
        *self.hashes.write() = hashes;
    }

    pub fn advance_hashes(&self, running: LogHash, kept: &[HashPoint]) {
        self.hashes.write().advance(running, kept);
    }

    /// That another replica has another hash of the same log, if that halts the shard.
    pub fn divergence(&self) -> Option<Arc<Diverged>> {
        self.found.read().as_ref().filter(|found| found.halts).map(|found| Arc::clone(&found.diverged))
    }

    /// That a replica was found to differ, whether it halts this one or not.
    pub fn found(&self) -> Option<Arc<Diverged>> {
        self.found.read().as_ref().map(|found| Arc::clone(&found.diverged))
    }

    /// # Arguments
    /// `halts`: whether it halts this replica. It does not if this one was mended since.
    pub fn set_found(&self, found: Option<Diverged>, halts: bool) {
        *self.found.write() = found.map(|diverged| Found { diverged: Arc::new(diverged), halts });
    }

    /// Whose data the shard's are a copy of, as far as that is known.
    pub fn copied_from(&self) -> Option<NodeName> {
        self.copied_from.read().clone()
    }

    pub fn set_copied_from(&self, node: Option<NodeName>) {
        *self.copied_from.write() = node;
    }

    /// How many other replicas have another hash of the same log.
    pub fn replicas_differing(&self) -> u64 {
        self.replicas_differing.load(Ordering::Relaxed)
    }

    pub fn set_replicas_differing(&self, count: u64) {
        self.replicas_differing.store(count, Ordering::Relaxed);
    }

    /// The operator has said of what was applied up to this sequence that it is right here.
    pub fn accepted_through(&self) -> Sequence {
        Sequence(self.accepted_through.load(Ordering::Relaxed))
    }

    pub fn set_accepted_through(&self, sequence: Sequence) {
        self.accepted_through.store(sequence.0, Ordering::Relaxed);
    }

    /// How full the queue was when it was last checked; `None` before the first check, or for a queue that
    /// has none.
    pub fn queue_room(&self) -> Option<Arc<QueueRoom>> {
        self.queue_room.read().clone()
    }

    pub fn set_queue_room(&self, room: QueueRoom) {
        *self.queue_room.write() = Some(Arc::new(room));
    }

    /// Notes that the queue has refused a message because it is full, even if the last check found room.
    pub fn note_queue_full(&self) {
        let mut known = self.queue_room.write();
        if let Some(room) = known.as_mut().filter(|room| room.level < QueueLevel::Full) {
            Arc::make_mut(room).level = QueueLevel::Full;
        }
    }

    pub fn is_checkpoint_wanted(&self) -> bool {
        self.checkpoint_wanted.load(Ordering::Relaxed) > self.checkpoint_sequence()
    }
}
