//! Where a writer's messages come from. Sources implement this in `queue/`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::board::Definition;
use crate::job::{Job, Reject};
use crate::state::{Applied, Cut, Incarnation, RecordNumber};
use crate::types::{BoardName, MemberId, Sequence, Timestamp};
use crate::writer::health::ShardState;
use crate::writer::outcome::{CommitFailed, MessageOutcome};

/// One message of a shard's queue.
pub struct Message {
    /// Contiguous: one more than the message before.
    pub sequence: Sequence,
    /// When it entered the queue; the time of jobs that name none.
    pub timestamp: Timestamp,
    /// A hash of its bytes, by which the queue's identity is recognised; 0 where there is nothing to
    /// recognise.
    pub hash: u64,
    pub payload: Payload,
    /// Its size as the batch's byte limit counts it.
    pub bytes: usize,
    /// Who waits to hear what came of it.
    pub answer: Option<AnswerTo>,
}

/// What is told of a message to who waits for it.
pub type Outcome = Result<MessageOutcome, CommitFailed>;

/// Who waits to hear what came of a message. Where the queue brings messages again, it brings those who wait
/// along, until they were told: so one that is dropped may be another time's.
pub struct AnswerTo(Way);

enum Way {
    Once(oneshot::Sender<Outcome>),
    Named(Box<dyn FnOnce(Outcome) -> Result<(), Outcome> + Send>),
}

impl AnswerTo {
    /// For a queue that knows by itself who waits for which message.
    pub fn named(tell: impl FnOnce(Outcome) -> Result<(), Outcome> + Send + 'static) -> Self {
        Self(Way::Named(Box::new(tell)))
    }

    /// # Errors
    /// The outcome, when nobody waits any more.
    pub fn send(self, outcome: Outcome) -> Result<(), Outcome> {
        match self.0 {
            Way::Once(to) => to.send(outcome),
            Way::Named(tell) => tell(outcome),
        }
    }
}

impl From<oneshot::Sender<Outcome>> for AnswerTo {
    fn from(to: oneshot::Sender<Outcome>) -> Self {
        Self(Way::Once(to))
    }
}

/// What a message asks for.
pub enum Payload {
    /// 1 to 1,000 jobs, decoded; what could not be decoded comes with its bytes and the reason.
    Jobs(Vec<Result<Job, BadJob>>),
    /// Creates a board, or changes what may change of it. Has the number of the record that it comes from, if
    /// a stream decides what boards there are.
    Define {
        board: BoardName,
        incarnation: Incarnation,
        number: Option<RecordNumber>,
        definition: Arc<Definition>,
    },
    /// Drops a board; with a number as a definition has one.
    Drop { board: BoardName, incarnation: Incarnation, number: Option<RecordNumber> },
    /// Removes members' entries from a life of a board, those of them that lie behind a place when it is
    /// applied, hidden ones included; as a removal without a version does.
    Trim { board: BoardName, incarnation: Incarnation, behind: Cut, members: Vec<MemberId> },
    /// Frees up to so many jobs that need to wait no longer: what earlier messages left.
    Free { jobs: usize },
}

/// A definition makes a tree, and frees jobs: about what so many jobs cost.
const DEFINITION_COST: usize = 16;

impl Payload {
    /// How many jobs a batch counts it for.
    #[must_use]
    pub fn cost(&self) -> usize {
        match self {
            Self::Jobs(jobs) => jobs.len(),
            Self::Define { .. } => DEFINITION_COST,
            Self::Drop { .. } => 1,
            Self::Trim { members, .. } => members.len(),
            Self::Free { jobs } => *jobs,
        }
    }
}

/// An undecodable job: its bytes and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadJob {
    /// The job as it came.
    pub bytes: Vec<u8>,
    /// Whose it was, if that much could be read.
    pub member: Option<MemberId>,
    pub reject: Reject,
}

/// How much a batch may hold. The first message is always admitted, however large.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    pub jobs: usize,
    pub bytes: usize,
}

/// What a fetch brought.
pub enum Fetched {
    /// At least one message, in sequence.
    Batch(Vec<Message>),
    /// The messages after this come from another queue, or are counted otherwise.
    OriginChanged(OriginChanged),
    /// Nothing within the time given.
    Nothing,
    /// The source has ended: drain is complete.
    Ended,
}

/// From here on, messages come from another queue, or from the same one with another sequence offset.
pub struct OriginChanged {
    /// The new origin, which [`JobSource::stream`] returns from now on.
    pub stream: String,
    /// Is sent once the new origin is on disk, with all messages that came before it.
    pub done: oneshot::Sender<()>,
}

/// A shard's queue, read by its one writer, on the writer's own thread.
pub trait JobSource: Send {
    /// Positions the source right after `applied`. Called once before the first fetch, and after every
    /// reopening.
    ///
    /// # Arguments
    /// `stream`: which queue the shard was filled from, as [`JobSource::stream`] said then; empty for the
    /// embedded one.
    ///
    /// # Errors
    /// When the queue does not continue what this shard holds; the text says what to do.
    fn resume(&mut self, applied: Applied, stream: &str) -> Result<(), String>;

    /// Waits up to `wait` for messages, and takes what is ready within `limits`.
    fn fetch(&mut self, limits: BatchLimits, wait: Duration) -> Fetched;

    /// How the queue is doing, as long as the storage is well.
    fn state(&self) -> ShardState {
        ShardState::Live
    }

    /// Whether there is nothing more to come, told without fetching.
    fn has_ended(&self) -> bool {
        false
    }

    /// The identity of the queue, to be kept with what was applied from it.
    fn stream(&self) -> String {
        String::new()
    }

    /// How much a batch of this source may hold.
    fn limits(&self) -> BatchLimits;

    /// Whether a batch must be on disk before its messages are answered: the queue holds no copy to replay.
    fn needs_sync(&self) -> bool;
}
