//! The interface between a writer and its queue. The implementations are in `queue/`.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::sync::oneshot;

use crate::board::Definition;
use crate::job::{Job, Reject};
use crate::state::{Applied, Incarnation, RecordNumber, StoreOrder, TrimPoint};
use crate::storage::StorageError;
use crate::traces::Arrived;
use crate::types::{BoardName, MemberId, NodeName, Sequence, Timestamp};
use crate::writer::health::ShardState;
use crate::writer::outcome::{CommitFailed, MessageOutcome, OutcomeDetail};

/// One message of a shard's queue.
pub struct Message {
    /// Contiguous: one more than the previous message's.
    pub sequence: Sequence,
    /// When it entered the queue. It is the time of jobs that have no `at`.
    pub timestamp: Timestamp,
    /// A hash of its bytes, by which a replaced queue is recognised; 0 for queues that cannot be replaced.
    pub hash: u64,
    pub payload: Payload,
    /// Its size as the batch's byte limit counts it.
    pub bytes: usize,
    /// Where to send its outcome, if a client waits for it.
    pub answer: Option<OutcomeSender>,
    /// The traces that it belongs to, if it is sampled.
    pub traced: Option<Box<Arrived>>,
}

/// The answer to a client that waits for a message.
pub type Outcome = Result<MessageOutcome, CommitFailed>;

/// Where to send the outcome of a message. A queue that redelivers messages redelivers this with them until
/// an answer was sent, so it may be dropped without sending.
pub struct OutcomeSender {
    route: ReplyRoute,
    detail: OutcomeDetail,
}

enum ReplyRoute {
    Once(oneshot::Sender<Outcome>),
    Callback(Box<dyn FnOnce(Outcome) -> Result<(), Outcome> + Send>),
}

impl OutcomeSender {
    /// For a queue that keeps track itself of which client waits for which message.
    pub fn by_callback(send: impl FnOnce(Outcome) -> Result<(), Outcome> + Send + 'static) -> Self {
        Self { route: ReplyRoute::Callback(Box::new(send)), detail: OutcomeDetail::Rankings }
    }

    /// The same for a client that wants to be told so much.
    pub fn telling(self, detail: OutcomeDetail) -> Self {
        Self { detail, ..self }
    }

    /// What the client wants to be told.
    pub fn detail(&self) -> OutcomeDetail {
        self.detail
    }

    /// # Errors
    /// The outcome, if the client no longer waits.
    pub fn send(self, outcome: Outcome) -> Result<(), Outcome> {
        match self.route {
            ReplyRoute::Once(to) => to.send(outcome),
            ReplyRoute::Callback(send) => send(outcome),
        }
    }
}

impl From<oneshot::Sender<Outcome>> for OutcomeSender {
    fn from(to: oneshot::Sender<Outcome>) -> Self {
        Self { route: ReplyRoute::Once(to), detail: OutcomeDetail::Rankings }
    }
}

/// The jobs of a message. One that could not be decoded comes with its bytes and the reason. A single one
/// needs no memory of its own.
pub type Jobs = SmallVec<[Result<Job, BadJob>; 1]>;

/// What a message asks for.
pub enum Payload {
    /// 1 to 1,000 decoded jobs.
    Jobs(Jobs),
    /// Creates a board, or changes its changeable settings. `number` is that of the boards' stream's record,
    /// if boards are decided in that stream.
    Define {
        board: BoardName,
        incarnation: Incarnation,
        number: Option<RecordNumber>,
        definition: Arc<Definition>,
    },
    /// Drops a board. `number` as in a definition.
    Drop { board: BoardName, incarnation: Incarnation, number: Option<RecordNumber> },
    /// Removes entries of these members from one incarnation of a board if they are after a trim point when
    /// the message is applied, hidden entries included. Each is removed as by a job without a version.
    Trim { board: BoardName, incarnation: Incarnation, point: TrimPoint, members: Vec<MemberId> },
    /// Replaces all entries of a board by what the shard's part of others makes when the message is applied.
    Store(StoreOrder),
    /// Erases what earlier rejects of the shard have of these members, whose own shard is another one: their
    /// jobs may have been sent here by mistake.
    Erase { members: Vec<MemberId> },
    /// Unparks up to this many jobs that earlier messages left although their boards are defined.
    Unpark { jobs: usize },
    /// Brings only its time: what is due by then happens, as with every message. For shards whose queue is
    /// quiet.
    Tick,
}

/// A result is a batch of its own: it may change as many entries as a hundred batches.
const STORE_COST: usize = 1 << 17;
/// A definition creates a tree and unparks jobs, which costs about as much as this many jobs.
const DEFINITION_COST: usize = 16;

impl Payload {
    /// Whether it defines a board whose entries expire.
    pub fn has_entry_ttl(&self) -> bool {
        matches!(self, Self::Define { definition, .. } if definition.entry_ttl_micros.is_some())
    }

    /// As how many jobs of one board a batch's limit counts it.
    pub fn cost(&self) -> usize {
        match self {
            Self::Jobs(jobs) => jobs.iter().map(|job| job.as_ref().map_or(1, Job::board_count)).sum(),
            Self::Define { .. } => DEFINITION_COST,
            Self::Drop { .. } | Self::Tick => 1,
            Self::Trim { members, .. } | Self::Erase { members } => members.len(),
            Self::Store(_) => STORE_COST,
            Self::Unpark { jobs } => *jobs,
        }
    }
}

/// An undecodable job: its bytes and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadJob {
    /// The job's bytes as they arrived.
    pub bytes: Vec<u8>,
    /// The member, if that much could be read.
    pub member: Option<MemberId>,
    pub reject: Reject,
}

/// The limits of a batch. The first message is always admitted, however large.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    pub jobs: usize,
    pub bytes: usize,
}

/// What a fetch brought.
pub enum Fetched {
    /// At least one message, in sequence.
    Batch(Vec<Message>),
    /// The messages after this come from another queue, or with another sequence offset.
    OriginChanged(OriginChanged),
    /// No message arrived within the time given.
    Nothing,
    /// The source has ended: everything in it was handed out.
    Ended,
}

/// From here on, messages come from another queue, or from the same one with another sequence offset.
pub struct OriginChanged {
    /// The new origin, which [`JobSource::stream`] returns from now on.
    pub stream: String,
    /// The writer sends this once the new origin is on disk, together with all messages before it.
    pub done: oneshot::Sender<()>,
}

/// A checked copy of the shard, which waits to be put in the place of what the writer has.
pub struct CopyToInstall {
    /// The node that gave it.
    pub from: NodeName,
    /// The applied sequence that it holds.
    pub applied: Sequence,
    /// Puts its files in place. It is called while the store is closed, and again after a failure.
    pub put_in_place: Box<dyn FnMut() -> Result<(), StorageError> + Send>,
    /// Told once the shard goes on from the copy. Dropped if the copy was not needed any more.
    pub done: oneshot::Sender<()>,
}

/// A shard's queue, read by its one writer, on the writer's own thread.
pub trait JobSource: Send {
    /// Positions the source right after `applied`. Called once before the first fetch, and after every
    /// reopening.
    ///
    /// # Arguments
    /// `stream`: which queue the shard was filled from, as [`JobSource::stream`] returned it then; empty for
    /// the embedded queue.
    ///
    /// # Errors
    /// When the queue does not continue what this shard has applied. The text says what to do.
    fn resume(&mut self, applied: Applied, stream: &str) -> Result<(), String>;

    /// Waits up to `wait` for the first message, and takes what is ready within `limits`.
    fn fetch(&mut self, limits: BatchLimits, wait: Duration) -> Fetched;

    /// The shard's state as far as the queue decides it. Storage failures override it.
    fn state(&self) -> ShardState {
        ShardState::Live
    }

    /// Whether the source has ended. Does not fetch.
    fn has_ended(&self) -> bool {
        false
    }

    /// A copy of the shard that is to replace what the writer has, if the queue no longer holds what comes
    /// after the applied sequence. It is given once.
    fn copy_to_install(&mut self) -> Option<CopyToInstall> {
        None
    }

    /// The identity of the queue, which is stored with what was applied from it.
    fn stream(&self) -> String {
        String::new()
    }

    /// How much a batch of this source may hold.
    fn limits(&self) -> BatchLimits;

    /// Whether a batch must be on disk before its messages are answered: the queue holds no copy to replay.
    fn needs_sync(&self) -> bool;
}
