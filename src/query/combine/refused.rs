//! Why boards are not combined, in words for a client to read.

use thiserror::Error;

use crate::board::COMBINED_ENTRIES_MAX;
use crate::query::question::COMBINED_LISTED_MAX;
use crate::query::read::NoBoard;
use crate::types::BoardName;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCombination {
    NoBoard(NoBoard),
    Refused(CombineRefused),
}

impl From<CombineRefused> for NoCombination {
    fn from(why: CombineRefused) -> Self {
        Self::Refused(why)
    }
}

/// Why boards that are there are not combined.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CombineRefused {
    #[error("the board {board} has {keys} keys, and only boards of one key are combined; name such boards")]
    SeveralKeys { board: BoardName, keys: usize },
    #[error("the scores of the board {0} are estimates (top_k), which are not combined; name other boards")]
    Estimates(BoardName),
    #[error("some of the boards are descending and some ascending; say the order of the result: desc or asc")]
    Orders,
    #[error(
        "the board {0} has more entries than its capacity, and no shard knows by itself which of them are \
         shown; name boards without a capacity"
    )]
    Capacity(BoardName),
    #[error(
        "the boards have {entries} entries on a shard, and up to {COMBINED_ENTRIES_MAX} are combined there; \
         name fewer or smaller boards, or keep a board of its own for the result"
    )]
    TooMany { entries: u64 },
    #[error(
        "the result for some member is outside the signed 64-bit range; give smaller weights, or one with a \
         fraction, which has all scores combined as doubles"
    )]
    Overflow,
    #[error(
        "the result has more than the {COMBINED_LISTED_MAX} entries, or 8 MiB of ids, of a shard that are \
         listed at once; ask for fewer"
    )]
    TooLong,
    #[error("the cursor is not one of these boards, weights and order; begin again without it")]
    Cursor,
}
