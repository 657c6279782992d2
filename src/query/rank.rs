//! The rank of any score, submitted or not: its counts on each shard, and their sums.

use crate::query::answer::Standing;
use crate::query::board_view::{BoardView, ShardStanding};
use crate::types::Score;

/// A score's standing, and each shard's share of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreRank {
    pub standing: Standing,
    pub shards: Vec<ShardStanding>,
}

/// Two descents per shard. The score has as many keys as the board.
#[must_use]
pub fn rank_of_score(board: &BoardView<'_>, score: &Score) -> ScoreRank {
    let words = board.definition.score_words(score);
    let shards: Vec<ShardStanding> = board.standings(words.as_slice()).collect();
    ScoreRank { standing: sum(&shards), shards }
}

pub(super) fn sum(shards: &[ShardStanding]) -> Standing {
    let mut sum = Standing { better: 0, tied: 0, total: 0 };
    for shard in shards {
        sum.better += shard.better;
        sum.tied += shard.tied;
        sum.total += shard.total;
    }
    sum
}
