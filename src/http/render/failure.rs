//! What HTTP calls the failures of operations.

use std::borrow::Cow;

use axum::http::StatusCode;

use crate::board::InvalidDefinition;
use crate::http::render::problem::{OVERLOADED, Problem};
use crate::operations::{BoardRefused, DefineRefused, Failure, NotPublished, SeasonRefused};
use crate::query::{NoBoard, ReadError};
use crate::types::ShardId;

fn unavailable(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(1)
}

impl From<Failure> for Problem {
    fn from(why: Failure) -> Self {
        match why {
            Failure::NoBoard(NoBoard::Unknown) => Self::unknown_board(),
            Failure::NoBoard(NoBoard::UnknownColumn(board)) => Self::unknown_column(&board),
            Failure::NoBoard(NoBoard::Window(why)) => Self::unknown_window(&why),
            Failure::NoBoard(NoBoard::Movement(why)) => Self::bad_parameter(why.to_string()),
            Failure::BoardsUnread => Self::shard_unavailable(
                "this node has not read yet which boards there are; try again in a moment".to_owned(),
            ),
            Failure::Read(why) => why.into(),
            Failure::NotYetApplied => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                "not_yet_applied",
                "the writes that the token names were not applied in time; try again, or with a greater \
                 timeout_ms",
            ),
            Failure::OtherHistory => Self::new(
                StatusCode::CONFLICT,
                "other_history",
                "the token or the cursor is of what the service had before it was set back to an earlier state, \
                 by a restore or --adopt: those writes are lost; read again without the token, and a list from \
                 its first page",
            ),
            Failure::UnknownShard => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "unknown_shard",
                "the token names a shard that this service does not have; send a token that this service \
                 returned",
            ),
            Failure::Overloaded => Self::overloaded(),
            Failure::TooManyAnswers => unavailable(
                OVERLOADED,
                "the answers of all requests in progress take too much memory; try again in a moment, or ask \
                 for fewer entries",
            ),
            Failure::NotLive(shard, reason) => {
                Self::shard_unavailable(format!("shard {shard} takes no writes now: {reason}"))
            }
            Failure::NoOwner(shards) => {
                let named: Vec<String> = shards.iter().map(ToString::to_string).collect();
                let detail = format!("no node answers for shard {}; try again in a moment", named.join(", "));
                Self::shard_unavailable(detail).with_shards(&shards)
            }
            Failure::NotPublishedThere(shard, NotPublished::Unavailable(why)) => {
                Self::shard_unavailable(why).with_shards(&[shard])
            }
            Failure::NotPublished(why) | Failure::NotPublishedThere(_, why) => why.into(),
            Failure::Unanswered => unavailable(
                "commit_unknown",
                "the write was not committed in time, but may be committed later; a job with a version, or a \
                 trim, may safely be sent again",
            ),
            Failure::Board(why) => why.into(),
            Failure::ReadOnly(None, why) => {
                Self::read_only(format!("the service is read-only: {}", why.reason))
            }
            Failure::ReadOnly(Some(board), why) => {
                Self::read_only(format!("the board {board} is read-only: {}", why.reason))
            }
            Failure::TooManyBoards { most, existing, more } => Self::too_many_boards(format!(
                "the token may create boards until there are {most} of those that it gives access to: there \
                 are {existing}, and this request would create {more} more; drop some boards, or raise the \
                 token's max_boards"
            )),
            Failure::WouldDrop(would) => Self::would_drop(&would),
            Failure::Internal => Self::internal(),
        }
    }
}

impl From<ReadError> for Problem {
    fn from(why: ReadError) -> Self {
        match &why {
            ReadError::Unavailable(shards) => {
                let ids: Vec<ShardId> = shards.iter().map(|shard| shard.shard).collect();
                Self::shard_unavailable(format!("a shard does not answer: {why}")).with_shards(&ids)
            }
            ReadError::NotYetApplied(_) => Failure::NotYetApplied.into(),
            ReadError::OtherHistory(_) => Failure::OtherHistory.into(),
            ReadError::KeptChanging(_) => Self::shard_unavailable(why.to_string()),
        }
    }
}

impl From<InvalidDefinition> for Problem {
    fn from(why: InvalidDefinition) -> Self {
        Self::invalid_definition(why.to_string())
    }
}

impl From<DefineRefused> for Problem {
    fn from(why: DefineRefused) -> Self {
        let code = match why {
            DefineRefused::Conflict(_) => "board_differs",
            DefineRefused::TooMany => return Self::too_many_boards(why.to_string()),
            DefineRefused::Invalid(why) => return why.into(),
            DefineRefused::Unknown => return Self::unknown_board(),
            DefineRefused::ReadOnly(_) => return Self::read_only(why.to_string()),
            DefineRefused::Season(SeasonRefused::NoSeasons) => "no_manual_seasons",
            DefineRefused::Season(SeasonRefused::TooMany(_)) => "too_many_seasons",
            DefineRefused::Season(SeasonRefused::Unknown(_)) => return Self::unknown_season(why.to_string()),
            DefineRefused::Season(SeasonRefused::TooSoon { .. }) => {
                return Self::bad_parameter(why.to_string());
            }
            DefineRefused::Season(_) => "season_conflict",
        };
        Self::new(StatusCode::CONFLICT, code, why.to_string())
    }
}

impl From<BoardRefused> for Problem {
    fn from(why: BoardRefused) -> Self {
        match why {
            BoardRefused::Refused(why) => why.into(),
            BoardRefused::NotPublished(why) => why.into(),
            BoardRefused::OverLimit { .. } => Self::too_many_boards(why.to_string()),
            BoardRefused::Unavailable(detail) => Self::shard_unavailable(detail),
            BoardRefused::Late => Failure::NotYetApplied.into(),
        }
    }
}

impl From<NotPublished> for Problem {
    fn from(why: NotPublished) -> Self {
        let code = match why {
            NotPublished::Overloaded => OVERLOADED,
            NotPublished::Unavailable(_) => "shard_unavailable",
            NotPublished::Full(_) => "queue_full",
            NotPublished::Unknown(_) => "commit_unknown",
            NotPublished::TooLarge(detail) => return Self::over_limit(detail),
            NotPublished::CommitFailed(_) => "commit_failed",
        };
        unavailable(code, why.to_string())
    }
}
