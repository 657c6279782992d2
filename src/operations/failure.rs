//! Why an operation was not done, or what is not known of it. Each front end has its own words and codes for
//! these.

use std::sync::Arc;

use crate::board::ReadOnly;
use crate::query::{NoBoard, ReadError};
use crate::queue::NotPublished;
use crate::queue::nats::BoardRefused;
use crate::types::{BoardName, ShardId};

/// Why an operation was not done, or what is not known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// There is no such board, or it has no such instance.
    NoBoard(NoBoard),
    /// The node lacks shards, so it knows boards by their stream alone, and has not read that yet.
    BoardsUnread,
    Read(ReadError),
    /// The writes that a token names were not applied in time.
    NotYetApplied,
    /// A token or a cursor is of another history of a shard, which was set back since.
    OtherHistory,
    /// A token names a shard that there is not.
    UnknownShard,
    /// Too many requests are in progress.
    Overloaded,
    /// The answers of all requests take too much memory together.
    TooManyAnswers,
    /// A shard of this node takes no writes now, for this reason.
    NotLive(ShardId, String),
    /// No node answers for these shards.
    NoOwner(Vec<ShardId>),
    /// A queue did not take a write, or it is unknown whether it did.
    NotPublished(NotPublished),
    /// The same of a shard that another node owns.
    NotPublishedThere(ShardId, NotPublished),
    /// What was published was not committed in time, and may be committed later.
    Unanswered,
    Board(BoardRefused),
    /// The service is read-only, or a board.
    ReadOnly(Option<BoardName>, Arc<ReadOnly>),
    /// A token with a limit would create so many boards more, beside those that exist.
    TooManyBoards {
        most: usize,
        existing: usize,
        more: usize,
    },
    /// A change of a definition would take something from readers.
    WouldDrop(WouldDrop),
    /// A failure of the service, of which its log says more.
    Internal,
}

/// What a change would take from readers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct WouldDrop {
    /// Instances that have entries.
    pub instances: u64,
    /// Entries of instances that stay.
    pub entries: u64,
    /// Whether there are more entries than were looked at.
    pub is_at_least: bool,
    /// Whether the board itself would go, with all of these.
    pub is_board: bool,
}

impl From<ReadError> for Failure {
    fn from(why: ReadError) -> Self {
        Self::Read(why)
    }
}

impl From<NotPublished> for Failure {
    fn from(why: NotPublished) -> Self {
        Self::NotPublished(why)
    }
}

impl From<BoardRefused> for Failure {
    fn from(why: BoardRefused) -> Self {
        Self::Board(why)
    }
}
