//! A board from either end, page by page.

use crate::query::answer::Page;
use crate::query::board_view::BoardView;
use crate::query::cursor::{End, PageCursor};
use crate::query::find_place::find_place;
use crate::query::merge::{MergedEntry, backward, forward};
use crate::query::page::{self, before, is_short_above, is_short_below, share};
use crate::query::question::{Mark, RunQuestion, RunStart};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At an end of the board.
    End(End),
    /// Right after an entry, whether it is still there or not.
    After(PageCursor),
}

/// Pages up from the end of the capacity that are begun anew because the cursor's entry moved. Another one is
/// needed only if the board moved quickly.
const ATTEMPTS: u32 = 16;

/// Up to `limit` entries: from the top best first, from the bottom worst first. One round trip with each
/// shard, and another one if some shard has more of the page than was asked of it. A page that goes up from
/// the end of the capacity takes as many as a position more.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn top(board: &BoardView<'_>, start: &Start, limit: usize) -> Result<Page, ReadError> {
    // One entry more tells whether there is a next page.
    let whole = u32::try_from(limit).unwrap_or(u32::MAX).saturating_add(1);
    let end = match start {
        Start::End(end) => *end,
        Start::After(cursor) => cursor.from,
    };
    let mut reach = share(whole, board.shard_count());
    let mut attempts = 0;
    loop {
        let run_start = match (start, end) {
            (Start::End(_), End::Top) => RunStart::Top,
            (Start::End(_), End::Bottom) => RunStart::Bottom,
            (Start::After(cursor), End::Top) => RunStart::Through(Mark::Entry(cursor.key())),
            (Start::After(cursor), End::Bottom) => RunStart::Before(Mark::Entry(cursor.key())),
        };
        let (above, below) = match end {
            End::Top => (0, reach),
            End::Bottom => (reach, 0),
        };
        let run = RunQuestion { start: run_start, worst: None, above, below, metadata: true };
        let runs = board.runs(&run, None).await?;
        let page = match end {
            End::Top => downward(board, &runs, limit),
            End::Bottom if board.definition.within_capacity(before(&runs)) < before(&runs) => {
                if let Some(page) = up_from_capacity(board, start, limit).await? {
                    return Ok(page);
                }
                attempts += 1;
                if attempts == ATTEMPTS {
                    return Err(ReadError::KeptChanging(ATTEMPTS));
                }
                continue;
            }
            End::Bottom => upward(board, &runs, limit),
        };
        match page {
            Some(page) => return Ok(page),
            None if reach < whole => reach = whole,
            None => return Err(ReadError::KeptChanging(1)),
        }
    }
}

/// The page after the runs' starts, best first; `None` if the runs are too short for it.
fn downward(board: &BoardView<'_>, runs: &[ShardRun<'_>], limit: usize) -> Option<Page> {
    let shown = usize::try_from(board.definition.capacity_after(before(runs))).unwrap_or(usize::MAX);
    let wanted = limit.saturating_add(1).min(shown);
    let mut run: Vec<MergedEntry<'_>> = forward(runs).take(wanted).collect();
    if is_short_below(runs, &run, wanted) {
        return None;
    }
    let more = run.len() > limit;
    run.truncate(limit);
    let next = next_cursor(run.last(), more, End::Top);
    Some(Page { entries: page::with_ranks(board, runs, &run, before(runs) + 1), next })
}

/// The page before the runs' starts, worst first; `None` if the runs are too short for it.
fn upward(board: &BoardView<'_>, runs: &[ShardRun<'_>], limit: usize) -> Option<Page> {
    let mut run: Vec<MergedEntry<'_>> = backward(runs).take(limit.saturating_add(1)).collect();
    if is_short_above(runs, &run, limit.saturating_add(1)) {
        return None;
    }
    let more = run.len() > limit;
    run.truncate(limit);
    let next = next_cursor(run.last(), more, End::Bottom);
    run.reverse();
    let taken = crate::types::count(run.len());
    let mut entries = page::with_ranks(board, runs, &run, before(runs) - taken + 1);
    entries.reverse();
    Some(Page { entries, next })
}

/// The page up from the last entry that is shown, worst first. `None` if an entry of it is not before the
/// start by now.
async fn up_from_capacity(
    board: &BoardView<'_>,
    start: &Start,
    limit: usize,
) -> Result<Option<Page>, ReadError> {
    let shown = |total| board.definition.within_capacity(total);
    let length = crate::types::count(limit);
    let first = |total| Some(shown(total).saturating_sub(length)).filter(|_| shown(total) > 0);
    let Some(place) = find_place(board, first, limit, true).await? else {
        return Ok(Some(Page { entries: Vec::new(), next: None }));
    };
    let taken = usize::try_from(shown(place.total) - place.index).unwrap_or(usize::MAX);
    let mut run = place.entries(limit);
    run.truncate(taken);
    if let (Start::After(cursor), Some(last)) = (start, run.last())
        && last.key >= cursor.key()
    {
        return Ok(None);
    }
    let next = next_cursor(run.first(), place.index > 0, End::Bottom);
    let mut entries = page::with_ranks(board, &place.runs, &run, place.index + 1);
    entries.reverse();
    Ok(Some(Page { entries, next }))
}

pub(super) fn next_cursor(last: Option<&MergedEntry<'_>>, more: bool, from: End) -> Option<PageCursor> {
    let last = last.filter(|_| more)?;
    Some(PageCursor { from, words: last.key.words, member: last.key.member.into() })
}

/// Reads [`top`].
pub struct Top {
    pub start: Start,
    pub limit: usize,
}

impl BoardRead for Top {
    type Answer = Page;

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        top(board, &self.start, self.limit).await
    }
}
