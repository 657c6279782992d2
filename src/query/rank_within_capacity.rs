//! Ranks of scores on a board that has more entries than its capacity.
//!
//! The sums follow from the counts of all entries. What each shard has of them does not: no shard knows which
//! of its entries are shown. So the last entry that is shown is found like any position, and each shard's
//! counts are cut at it. The last round trip brings that entry and all counts.

use crate::query::answer::Standing;
use crate::query::board_view::{BoardView, ShardStanding};
use crate::query::find_place::{Part, margin, search, shown};
use crate::query::question::{Mark, RunQuestion, RunStart};
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;

/// Searches for the last entry that is shown. Another one is needed only if the board moved quickly.
const ATTEMPTS: u32 = 16;

/// The standings of scores among the entries that are shown, and each shard's share of them. A handful of
/// round trips with each shard, the last of which decides.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub(super) async fn ranks_within_capacity(
    board: &BoardView<'_>,
    scores: &[Mark<'_>],
) -> Result<Vec<(Standing, Vec<ShardStanding>)>, ReadError> {
    let last_shown = |total| board.definition.within_capacity(total).checked_sub(1);
    for _ in 0..ATTEMPTS {
        let place = search(board, &[&last_shown], &mut 0).await?.pop().flatten();
        let margin = margin(board, &place.iter().collect::<Vec<_>>());
        let mut questions: Vec<RunQuestion<'_>> = Vec::with_capacity(scores.len() + 1);
        questions.extend(place.iter().map(|place| place.run(board, 1, margin, Part::All)));
        // No entries of a score: only the counts at it.
        questions.extend(scores.iter().map(|score| RunQuestion {
            start: RunStart::Before(*score),
            worst: None,
            above: 0,
            below: 0,
            metadata: false,
        }));
        let runs = board.several_runs(&questions, None).await?;
        let total = runs.first().map_or(0, |runs| runs.iter().map(ShardRun::total).sum());
        let (around_last, of_scores) = runs.split_at(usize::from(place.is_some()));
        let cut = match (last_shown(total), around_last) {
            // The board is empty by now.
            (None, _) => Some(Vec::new()),
            (Some(last), [runs]) => shown_on_shards(runs, last),
            (Some(_), _) => None,
        };
        if let Some(cut) = cut {
            return Ok(of_scores.iter().map(|runs| standing(runs, &cut)).collect());
        }
    }
    Err(ReadError::KeptChanging(ATTEMPTS))
}

/// How many entries of each shard are shown; `None` if the runs do not tell.
///
/// # Arguments
/// `last`: how many entries are before the last one that is shown.
fn shown_on_shards(runs: &[ShardRun<'_>], last: u64) -> Option<Vec<u64>> {
    let entries = shown(runs, last, 1)?;
    let key = entries.first()?.key;
    Some(runs.iter().map(|run| run.through(&key)).collect())
}

/// # Arguments
/// - `runs`: of each shard, from the score on.
/// - `cut`: how many entries of each shard are shown; none if it is empty.
fn standing(runs: &[ShardRun<'_>], cut: &[u64]) -> (Standing, Vec<ShardStanding>) {
    let mut standing = Standing { better: 0, tied: 0, total: 0 };
    let mut shards = Vec::with_capacity(runs.len());
    for (run, total) in runs.iter().zip(cut.iter().copied().chain(std::iter::repeat(0))) {
        let at_score = run.at_start();
        let better = at_score.before.min(total);
        let tied = at_score.through.min(total) - better;
        shards.push(ShardStanding { shard: run.shard, better, tied, total });
        standing.better += better;
        standing.tied += tied;
        standing.total += total;
    }
    (standing, shards)
}
