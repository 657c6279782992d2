//! A member and its neighbours.

use crate::query::answer::Listed;
use crate::query::board_view::BoardView;
use crate::query::member::runs_of_others;
use crate::query::merge::{MergedEntry, backward, forward};
use crate::query::page::{self, before, is_short_above, is_short_below, share};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;
use crate::types::MemberId;

/// How many neighbours on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around {
    pub above: u64,
    pub below: u64,
    /// At an end of the board, take from the other side what is missing on this one.
    pub fill: bool,
}

/// Up to `above` entries before the member, itself, and up to `below` after it; `None` if it is not listed,
/// or beyond the capacity.
/// One round trip with its home shard, and then one with the others; another one if some shard has more of
/// the neighbours than was asked of it.
pub async fn around(
    board: &BoardView<'_>,
    id: &MemberId,
    asked: Around,
) -> Result<Option<Vec<Listed>>, ReadError> {
    // Each side may have to fill in for the other, which nobody knows before the counts.
    let most = |side: u64| {
        let most = if asked.fill { asked.above + asked.below } else { side };
        u32::try_from(most).unwrap_or(u32::MAX)
    };
    let (most_above, most_below) = (most(asked.above), most(asked.below));
    let Some(home) = board.run_of_member(id, most_above, most_below).await? else { return Ok(None) };
    let mut runs = vec![home];
    let shards = board.shard_count();
    // Mostly a share is enough of each shard.
    for (above, below) in [(share(most_above, shards), share(most_below, shards)), (most_above, most_below)] {
        runs.truncate(1);
        let others = match forward(&runs).next() {
            Some(found) => runs_of_others(board, &runs, &found, above, below).await?,
            None => return Ok(None),
        };
        runs.extend(others);
        if board.definition.capacity_after(before(&runs)) == 0 {
            return Ok(None);
        }
        if let Some(found) = neighbours(board, &runs, asked) {
            return Ok(Some(found));
        }
    }
    Err(ReadError::KeptChanging(1))
}

/// The member before which all runs start, and its neighbours; `None` if the runs are too short.
fn neighbours(board: &BoardView<'_>, runs: &[ShardRun<'_>], asked: Around) -> Option<Vec<Listed>> {
    let ahead = before(runs);
    let total = board.definition.within_capacity(runs.iter().map(ShardRun::total).sum());
    let behind = total - ahead - 1;
    let (mut above, mut below) = (asked.above.min(ahead), asked.below.min(behind));
    if asked.fill {
        let (missing_above, missing_below) = (asked.above - above, asked.below - below);
        above = (above + missing_below).min(ahead);
        below = (below + missing_above).min(behind);
    }
    let mut run: Vec<MergedEntry<'_>> = backward(runs).take(count(above)).collect();
    let down: Vec<MergedEntry<'_>> = forward(runs).take(count(below + 1)).collect();
    let (home, others) = runs.split_at(1);
    let after = down.get(1..).unwrap_or_default();
    let is_short = is_short_above(runs, &run, count(above))
        || is_short_below(home, &down, count(below + 1))
        // The member is before all that the other shards were asked for.
        || is_short_below(others, after, count(below));
    if is_short {
        return None;
    }
    run.reverse();
    run.extend(down);
    Some(page::with_ranks(board, runs, &run, ahead - above + 1))
}

fn count(of: u64) -> usize {
    usize::try_from(of).unwrap_or(usize::MAX)
}

/// Reads [`around`].
pub struct AroundMember {
    pub member: MemberId,
    pub around: Around,
}

impl BoardRead for AroundMember {
    type Answer = Option<Vec<Listed>>;

    fn shows_total(answer: &Self::Answer) -> bool {
        answer.is_some()
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        around(board, &self.member, self.around).await
    }
}
