//! Entries whose first key lies between two values.

use crate::query::answer::Page;
use crate::query::board_view::{BoardView, SortKey};
use crate::query::count::best_and_worst;
use crate::query::cursor::{End, PageCursor};
use crate::query::merge::{MergedEntry, forward};
use crate::query::page;
use crate::query::top::next_cursor;

/// Up to `limit` entries with a first key of `min..=max`, best first; behind an entry, whether it is still
/// there or not. Two or three descents per shard; nothing before the page is walked.
#[must_use]
pub fn range(board: &BoardView<'_>, min: i64, max: i64, behind: Option<&PageCursor>, limit: usize) -> Page {
    if min > max {
        return Page { entries: Vec::new(), next: None };
    }
    let (best, worst) = best_and_worst(board, min, max);
    let mut starts = Vec::with_capacity(board.parts().len());
    let mut left = 0;
    for part in board.parts() {
        let (from, end) = part.window.map_or((0, 0), |(_, window)| {
            (window.tree.count_below(&[best]), window.tree.count_through(&[worst]))
        });
        let through =
            behind.map_or(0, |cursor| part.through(&SortKey { words: cursor.words, member: &cursor.member }));
        let start = through.clamp(from, end.max(from));
        starts.push(start);
        left += end.saturating_sub(start);
    }
    // What is within the bounds comes before all else from there on.
    let taken = limit.min(usize::try_from(left).unwrap_or(usize::MAX));
    let run: Vec<MergedEntry<'_>> = forward(board, &starts).take(taken).collect();
    let next = next_cursor(run.last(), u64::try_from(taken).unwrap_or(u64::MAX) < left, End::Top);
    Page { entries: page::with_ranks(board, &run, starts.iter().sum::<u64>() + 1), next }
}
