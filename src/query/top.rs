//! A board from either end, page by page.

use crate::query::answer::Page;
use crate::query::board_view::BoardView;
use crate::query::cursor::{End, PageCursor};
use crate::query::merge::{MergedEntry, backward, forward};
use crate::query::page;
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

/// Up to `limit` entries: from the top best first, from the bottom worst first. One round trip with each
/// shard.
///
/// # Errors
/// When some shard does not reply.
pub async fn top(board: &BoardView<'_>, start: &Start, limit: usize) -> Result<Page, ReadError> {
    // One entry more tells whether there is a next page.
    let reach = u32::try_from(limit).unwrap_or(u32::MAX).saturating_add(1);
    let down = |start| RunQuestion { start, worst: None, above: 0, below: reach };
    let up = |start| RunQuestion { start, worst: None, above: reach, below: 0 };
    let (run, end) = match start {
        Start::End(End::Top) => (down(RunStart::Top), End::Top),
        Start::End(End::Bottom) => (up(RunStart::Bottom), End::Bottom),
        Start::After(cursor) => {
            let mark = Mark::Entry(cursor.key());
            match cursor.from {
                End::Top => (down(RunStart::Through(mark)), End::Top),
                End::Bottom => (up(RunStart::Before(mark)), End::Bottom),
            }
        }
    };
    let runs = board.runs(&run, None).await?;
    Ok(match end {
        End::Top => downward(board, &runs, limit),
        End::Bottom => upward(board, &runs, limit),
    })
}

/// The page after the runs' starts, best first.
fn downward(board: &BoardView<'_>, runs: &[ShardRun<'_>], limit: usize) -> Page {
    let mut entries = forward(runs);
    let run: Vec<MergedEntry<'_>> = entries.by_ref().take(limit).collect();
    let next = next_cursor(run.last(), entries.next().is_some(), End::Top);
    Page { entries: page::with_ranks(board, runs, &run, before(runs) + 1), next }
}

/// The page before the runs' starts, worst first.
fn upward(board: &BoardView<'_>, runs: &[ShardRun<'_>], limit: usize) -> Page {
    let mut entries = backward(runs);
    let mut run: Vec<MergedEntry<'_>> = entries.by_ref().take(limit).collect();
    let next = next_cursor(run.last(), entries.next().is_some(), End::Bottom);
    run.reverse();
    let taken = crate::types::count(run.len());
    let mut entries = page::with_ranks(board, runs, &run, before(runs) - taken + 1);
    entries.reverse();
    Page { entries, next }
}

/// Entries before the runs' starts.
pub(super) fn before(runs: &[ShardRun<'_>]) -> u64 {
    runs.iter().map(ShardRun::start).sum()
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
