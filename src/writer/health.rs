//! How a shard is doing, for status, readiness, metrics, and answers that must say they are stale.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::types::Sequence;

/// What a shard's writer is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardState {
    /// Applies what arrives.
    Live,
    /// Works through what arrived before it started, or reopens after a failure; the reason says which.
    CatchingUp(String),
    /// Applies nothing until an operator acts; the reason says what to do. Reads go on, stale.
    Halted(String),
}

impl ShardState {
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::CatchingUp(_) => "catching_up",
            Self::Halted(_) => "halted",
        }
    }

    #[must_use]
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

/// Written by a shard's writer, read by everyone.
pub struct Health {
    state: RwLock<ShardState>,
    jobs_rejected: AtomicU64,
    jobs_parked: AtomicU64,
    /// Place in the stream of the last reject that was published.
    rejects_published: RwLock<(Sequence, u32)>,
    /// The highest sequence known to be in the queue.
    last_sequence: AtomicU64,
    checkpoint_sequence: AtomicU64,
    /// A checkpoint of this sequence or a later one is wanted.
    checkpoint_wanted: AtomicU64,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            state: RwLock::new(ShardState::CatchingUp("starting".to_owned())),
            jobs_rejected: AtomicU64::new(0),
            jobs_parked: AtomicU64::new(0),
            rejects_published: RwLock::default(),
            last_sequence: AtomicU64::new(0),
            checkpoint_sequence: AtomicU64::new(0),
            checkpoint_wanted: AtomicU64::new(0),
        }
    }
}

impl Health {
    #[must_use]
    pub fn state(&self) -> ShardState {
        self.state.read().clone()
    }

    #[must_use]
    pub fn is_live(&self) -> bool {
        *self.state.read() == ShardState::Live
    }

    pub fn set_state(&self, state: ShardState) {
        *self.state.write() = state;
    }

    /// Jobs rejected since the shard was created.
    #[must_use]
    pub fn jobs_rejected(&self) -> u64 {
        self.jobs_rejected.load(Ordering::Relaxed)
    }

    pub fn set_jobs_rejected(&self, count: u64) {
        self.jobs_rejected.store(count, Ordering::Relaxed);
    }

    /// Jobs that wait for the definition of a board.
    #[must_use]
    pub fn jobs_parked(&self) -> u64 {
        self.jobs_parked.load(Ordering::Relaxed)
    }

    pub fn set_jobs_parked(&self, count: u64) {
        self.jobs_parked.store(count, Ordering::Relaxed);
    }

    /// Place in the stream of the last reject that is known to be published.
    #[must_use]
    pub fn rejects_published(&self) -> (Sequence, u32) {
        *self.rejects_published.read()
    }

    pub fn set_rejects_published(&self, place: (Sequence, u32)) {
        *self.rejects_published.write() = place;
    }

    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence.load(Ordering::Relaxed)
    }

    pub fn set_last_sequence(&self, sequence: u64) {
        self.last_sequence.fetch_max(sequence, Ordering::Relaxed);
    }

    /// What the last completed checkpoint holds.
    #[must_use]
    pub fn checkpoint_sequence(&self) -> u64 {
        self.checkpoint_sequence.load(Ordering::Relaxed)
    }

    pub fn set_checkpoint_sequence(&self, sequence: u64) {
        self.checkpoint_sequence.store(sequence, Ordering::Relaxed);
    }
    /// A checkpoint after this one is waited for: the queue needs room.
    pub fn want_checkpoint_after(&self, sequence: u64) {
        self.checkpoint_wanted.fetch_max(sequence + 1, Ordering::Relaxed);
    }

    #[must_use]
    pub fn is_checkpoint_wanted(&self) -> bool {
        self.checkpoint_wanted.load(Ordering::Relaxed) > self.checkpoint_sequence()
    }
}
