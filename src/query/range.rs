//! Entries whose first key lies between two values.

use crate::query::answer::Page;
use crate::query::board_view::BoardView;
use crate::query::count::{Bounds, BoundsRefused, best_and_worst};
use crate::query::cursor::{End, PageCursor};
use crate::query::merge::{MergedEntry, forward};
use crate::query::page::{self, before, is_short_below, share};
use crate::query::question::{Mark, RunQuestion, RunStart};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;
use crate::query::top::next_cursor;
use crate::tree::Words;

/// Up to `limit` entries with a first key of `min..=max`, best first; after an entry, whether it is still
/// there or not. One round trip with each shard, and another one if some shard has more of the page than was
/// asked of it; nothing before the page is walked.
pub async fn range(
    board: &BoardView<'_>,
    min: i64,
    max: i64,
    after: Option<&PageCursor>,
    limit: usize,
) -> Result<Page, ReadError> {
    if min > max {
        return Ok(Page { entries: Vec::new(), next: None });
    }
    let (best, worst) = best_and_worst(board, min, max);
    // An entry that is better than all within the bounds is before them.
    let after = after.filter(|cursor| cursor.words.as_slice().first().is_some_and(|first| *first >= best));
    let start = match after {
        Some(cursor) => RunStart::Through(Mark::Entry(cursor.key())),
        None => RunStart::Before(Mark::Score(Words::from_slice(&[best]))),
    };
    let whole = u32::try_from(limit).unwrap_or(u32::MAX);
    let mut below = share(whole, board.shard_count());
    loop {
        let run = RunQuestion { start, worst: Some(worst), above: 0, below, metadata: true };
        let runs = board.runs(&run, None).await?;
        let remaining: u64 = runs.iter().map(ShardRun::remaining).sum();
        let remaining = remaining.min(board.definition.capacity_after(before(&runs)));
        // What is within the bounds comes before all else from there on.
        let taken = limit.min(usize::try_from(remaining).unwrap_or(usize::MAX));
        let run: Vec<MergedEntry<'_>> = forward(&runs).take(taken).collect();
        if is_short_below(&runs, &run, taken) {
            if below == whole {
                return Err(ReadError::KeptChanging(1));
            }
            below = whole;
            continue;
        }
        let next = next_cursor(run.last(), crate::types::count(taken) < remaining, End::Top);
        return Ok(Page { entries: page::with_ranks(board, &runs, &run, before(&runs) + 1), next });
    }
}

/// Reads [`range`].
pub struct Range {
    pub bounds: Bounds,
    pub after: Option<PageCursor>,
    pub limit: usize,
}

impl BoardRead for Range {
    type Answer = Result<Page, BoundsRefused>;

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        match self.bounds.of(&board.definition) {
            Ok((min, max)) => range(board, min, max, self.after.as_ref(), self.limit).await.map(Ok),
            Err(refused) => Ok(Err(refused)),
        }
    }
}
