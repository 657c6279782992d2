//! The outcomes of jobs and messages, as far as one shard knows them.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::oneshot;

use crate::board::Definition;
use crate::job::Reject;
use crate::state::{FirstApplied, Incarnation, ShardRanking};
use crate::types::{BoardName, Sequence};

/// The batch that held the message could not be committed. Whether it is on disk is unknown until the store
/// is reopened; if the queue holds a copy, it is applied then. A job
/// with a version, or a trim, may safely be sent again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the batch could not be committed: {reason}")]
pub struct CommitFailed {
    pub reason: String,
}

/// What a client that waits for a message is told of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeDetail {
    /// What each did on its boards, with the member's counts just before it and just after. Each job is
    /// applied on its own for that.
    Rankings,
    /// The same of the only board of each, from which the client is told scores alone: no other shard is
    /// asked for its counts.
    Scores,
    /// Whether each changed anything.
    Changed,
}

/// The outcome of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutcome {
    Rejected(Reject),
    /// It is applied, on the one board that it named; and whether it changed anything there that readers see.
    /// The client wants to be told no more.
    Changed(bool),
    /// One per board that the job named, in its order; for a removal from every board, one per board it was
    /// on.
    Applied(BoardOutcomes),
    /// The same, of a job that was about the member's profile, too, or about nothing else.
    WithProfile {
        boards: BoardOutcomes,
        /// Whether the profile is another one than before.
        changed: bool,
        /// Of a removal from every board: what it has left, if anything.
        left: Option<Arc<LeftBehind>>,
    },
    /// It was applied before, under its id, and changes nothing now: one per board that it named, as they
    /// are, and what came of it then.
    Repeated(BoardOutcomes, FirstApplied),
    /// It is stored and waits for the definition of a board.
    Parked(ParkedOutcome),
}

/// Names of boards that an answer tells.
const LEFT_NAMED_MAX: usize = 16;

/// What a removal with a version has left, because what is stored there has a greater one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// How many boards.
    pub boards: usize,
    /// The first of them.
    named: Vec<BoardName>,
    pub profile: bool,
}

impl LeftBehind {
    pub fn is_empty(&self) -> bool {
        self.boards == 0 && !self.profile
    }

    pub fn add_board(&mut self, board: BoardName) {
        self.boards += 1;
        if self.named.len() < LEFT_NAMED_MAX {
            self.named.push(board);
        }
    }
}

impl fmt::Display for LeftBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut what: Vec<String> = self.named.iter().map(|board| format!("board {board}")).collect();
        if self.boards > self.named.len() {
            what.push(format!("{} more boards", self.boards - self.named.len()));
        }
        if self.profile {
            what.push("the profile".to_owned());
        }
        let what = what.join(", ");
        write!(
            f,
            "left, because their versions are not smaller: {what}; the same without a version removes that, too"
        )
    }
}

/// The outcome of a parked job, and the sequence of the message that unparked it. An error: the outcome of
/// the batch that unparked it is unknown.
pub type UnparkedOutcome = Result<(Sequence, JobOutcome), CommitFailed>;

/// The future outcome of a parked job.
#[derive(Clone)]
pub struct ParkedOutcome(Arc<Mutex<Option<oneshot::Receiver<UnparkedOutcome>>>>);

impl ParkedOutcome {
    pub fn new(receiver: oneshot::Receiver<UnparkedOutcome>) -> Self {
        Self(Arc::new(Mutex::new(Some(receiver))))
    }

    /// Waits until the job is unparked and applied. `None`: the node shuts down before, or this was called
    /// already.
    pub async fn outcome(&self) -> Option<UnparkedOutcome> {
        let receiver = self.0.lock().take()?;
        receiver.await.ok()
    }
}

impl fmt::Debug for ParkedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParkedOutcome")
    }
}

/// Equal if both are of the same job.
impl PartialEq for ParkedOutcome {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ParkedOutcome {}

/// A board as a job found it, or an instance of one. Jobs of a batch that find it alike share it: to count
/// the users of a name and a definition up and down for each job would cost more, as another thread does the
/// same meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBoard {
    pub name: BoardName,
    pub definition: Arc<Definition>,
    /// The incarnation that the job changed: the board may have been cleared or dropped since.
    pub incarnation: Incarnation,
}

/// What a job did on its boards. Most jobs name one, which needs no memory of its own.
pub type BoardOutcomes = SmallVec<[BoardOutcome; 1]>;

/// What a job did on one board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardOutcome {
    pub board: Arc<FoundBoard>,
    /// Whether the change is visible to readers.
    pub changed: bool,
    /// Whether the entry has the job's metadata now. Of a board with several windows, another instance than
    /// the one shown may be what has changed.
    pub takes_metadata: bool,
    /// The member's counts just before the job; `None` if it was not listed, with
    /// [`OutcomeDetail::Changed`], or where a job removes it from every board.
    pub before: Option<ShardRanking>,
    /// Its counts just after; `None` likewise.
    pub after: Option<ShardRanking>,
}

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageOutcome {
    pub sequence: Sequence,
    /// One per job, in order.
    pub jobs: Vec<JobOutcome>,
    /// Of a trim: how many entries it removed. Of a result that was stored: how many it has.
    pub entries: u64,
}

impl MessageOutcome {
    /// The outcome of a message of jobs, or of a command of which only the sequence matters.
    pub fn of_jobs(sequence: Sequence, jobs: Vec<JobOutcome>) -> Self {
        Self { sequence, jobs, entries: 0 }
    }
}
