//! What HTTP calls the failures of operations.

use axum::http::StatusCode;

use crate::board::InvalidDefinition;
use crate::http::render::problem::{OVERLOADED, Problem};
use crate::operations::{BoardRefused, DefineRefused, Failure, NotPublished, SeasonRefused};
use crate::query::{NoBoard, ReadError};
use crate::types::ShardId;

impl From<Failure> for Problem {
    fn from(why: Failure) -> Self {
        match why {
            Failure::NoBoard(NoBoard::Unknown) => Self::unknown_board(),
            Failure::NoBoard(NoBoard::Window(why)) => Self::unknown_window(&why),
            Failure::NoBoard(NoBoard::Movement(why)) => Self::bad_parameter(why.to_string()),
            Failure::BoardsUnread => Self::shard_unavailable(
                "this node has not read yet which boards there are; try again in a moment".to_owned(),
            ),
            Failure::Read(why) => why.into(),
            Failure::NotYetApplied => Self::not_yet_applied(),
            Failure::UnknownShard => Self::unknown_shard(),
            Failure::Overloaded => Self::overloaded(),
            Failure::TooManyAnswers => Self::too_many_answers(),
            Failure::NotLive { shard, reason } => {
                Self::shard_unavailable(format!("shard {shard} takes no writes now: {reason}"))
            }
            Failure::NoOwner(shards) => Self::missing_shards(&shards),
            Failure::NotPublishedThere(shard, NotPublished::Unavailable(why)) => {
                Self::shard_unavailable(why).with_shards(&[shard])
            }
            Failure::NotPublished(why) | Failure::NotPublishedThere(_, why) => why.into(),
            Failure::Unanswered => Self::unanswered(),
            Failure::Board(why) => why.into(),
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
            ReadError::NotYetApplied(_) => Self::not_yet_applied(),
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
            BoardRefused::Unknown => Self::unknown_board(),
            BoardRefused::Unavailable(detail) => Self::shard_unavailable(detail),
            BoardRefused::Late => Self::not_yet_applied(),
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
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, why.to_string()).retry_after(1)
    }
}
