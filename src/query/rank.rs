//! The rank of any score, submitted or not: its counts on each shard, and their sums.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::board::ScoreRefused;
use crate::query::answer::Standing;
use crate::query::board_view::{BoardView, ShardStanding};
use crate::query::question::Mark;
use crate::query::rank_within_capacity::ranks_within_capacity;
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::types::Score;

/// A score's standing, and each shard's share of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreRank {
    pub standing: Standing,
    /// By shard. Most services have one or two, for which this takes no memory of its own.
    pub shards: SmallVec<[ShardStanding; 2]>,
}

/// The standings of scores, each with as many keys as the board. One round trip with each shard; on a board
/// that has more entries than its capacity, those that find its last shown entry, too.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn ranks_of_scores<'s>(
    board: &BoardView<'_>,
    scores: impl IntoIterator<Item = &'s Score>,
) -> Result<Vec<ScoreRank>, ReadError> {
    let marks: Vec<Mark<'_>> =
        scores.into_iter().map(|score| Mark::Score(board.definition.score_words(score))).collect();
    let counts = board.counts(&marks).await?;
    let total = counts.iter().map(|(_, counts)| counts.total).sum();
    if board.definition.within_capacity(total) < total {
        let ranks = ranks_within_capacity(board, &marks).await?.into_iter();
        return Ok(ranks.map(|(standing, shards)| ScoreRank { standing, shards: shards.into() }).collect());
    }
    let rank = |nth: usize| {
        let mut standing = Standing { better: 0, tied: 0, total: 0 };
        let mut shards = SmallVec::with_capacity(counts.len());
        for (shard, counts) in &counts {
            let at = counts.marks.get(nth).copied().unwrap_or_default();
            let (better, tied, total) = (at.before, at.through - at.before, counts.total);
            shards.push(ShardStanding { shard: *shard, better, tied, total });
            standing.better += better;
            standing.tied += tied;
            standing.total += total;
        }
        ScoreRank { standing, shards }
    };
    Ok((0..marks.len()).map(rank).collect())
}

/// Reads [`ranks_of_scores`]. Returns the first score that is none of the board, if there is one.
#[derive(Clone)]
pub struct RanksOf<'a> {
    pub scores: &'a [Score],
}

impl BoardRead for RanksOf<'_> {
    type Answer = Result<Vec<ScoreRank>, (ScoreRefused, Score)>;

    fn lookups(&self) -> usize {
        self.scores.len()
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        let mut typed: Vec<Cow<'_, Score>> = Vec::with_capacity(self.scores.len());
        for score in self.scores {
            match board.definition.typed(score) {
                Ok(score) => typed.push(score),
                Err(refused) => return Ok(Err((refused, score.clone()))),
            }
        }
        ranks_of_scores(board, typed.iter().map(AsRef::as_ref)).await.map(Ok)
    }
}
