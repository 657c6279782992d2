//! What came of a job, as far as one shard can tell.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::board::Definition;
use crate::job::Reject;
use crate::tree::Words;
use crate::types::{BoardName, Sequence, Timestamp};

/// The batch that held the message could not be committed. It is unknown whether it will be there after the
/// shard reopens, unless the queue holds a copy, which is applied then; a versioned job may safely be sent
/// again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the batch could not be committed: {reason}")]
pub struct CommitFailed {
    pub reason: String,
}

/// What came of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutcome {
    Rejected(Reject),
    /// One per board that the job named, in its order; for a removal from every board, one per board it was
    /// on.
    Applied(Vec<BoardOutcome>),
    /// It is stored and waits for the definition of a board.
    Parked(Later),
}

/// What came of a job that waited, and the sequence of the message that freed it, at which this is so. An
/// error: it was freed by a batch of which that cannot be told.
pub type Freed = Result<(Sequence, JobOutcome), CommitFailed>;

/// What will have come of a job that waits.
#[derive(Clone)]
pub struct Later(Arc<Mutex<Option<oneshot::Receiver<Freed>>>>);

impl Later {
    #[must_use]
    pub fn new(freed: oneshot::Receiver<Freed>) -> Self {
        Self(Arc::new(Mutex::new(Some(freed))))
    }

    /// Waits until the job is freed and applied. `None`: the node ends before, or was asked already.
    pub async fn outcome(&self) -> Option<Freed> {
        let freed = self.0.lock().take()?;
        freed.await.ok()
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

/// The outcome of the same job.
impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Later {}

/// What a job did on one board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardOutcome {
    pub board: BoardName,
    pub definition: Arc<Definition>,
    /// Anything that a reader could see is different now.
    pub changed: bool,
    /// The member's place just before the job; `None` if it was not listed.
    pub before: Option<Place>,
    /// Its place just after.
    pub after: Option<Place>,
}

/// An entry and its surroundings within its own shard, at one applied sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub words: Words,
    pub updated_at: Timestamp,
    pub has_metadata: bool,
    /// Entries of this shard with a strictly better score.
    pub better: u64,
    /// Entries of this shard with the same score, this one included.
    pub tied: u64,
    /// Entries of this shard that come before it: better, or equal and ahead by the tie rule.
    pub ahead: u64,
    /// All entries of this shard.
    pub total: u64,
}

/// What came of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageOutcome {
    pub sequence: Sequence,
    /// One per job, in order.
    pub jobs: Vec<JobOutcome>,
    /// Entries that it removed as a trim.
    pub removed: u64,
}

impl MessageOutcome {
    /// What came of a message of jobs, or of one that nobody wants to know more of.
    #[must_use]
    pub fn of_jobs(sequence: Sequence, jobs: Vec<JobOutcome>) -> Self {
        Self { sequence, jobs, removed: 0 }
    }
}
