//! A board from either end, page by page.

use crate::query::answer::Page;
use crate::query::board_view::{BoardView, Part, SortKey};
use crate::query::cursor::{End, PageCursor};
use crate::query::merge::{MergedEntry, backward, forward};
use crate::query::page;

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At an end of the board.
    End(End),
    /// Right behind an entry, whether it is still there or not.
    Behind(PageCursor),
}

/// Up to `limit` entries: from the top best first, from the bottom worst first.
#[must_use]
pub fn top(board: &BoardView<'_>, start: &Start, limit: usize) -> Page {
    match start {
        Start::End(End::Top) => downward(board, &vec![0; board.parts().len()], limit),
        Start::End(End::Bottom) => {
            let starts: Vec<u64> = board.parts().iter().map(Part::total).collect();
            upward(board, &starts, limit)
        }
        Start::Behind(cursor) => {
            let key = SortKey { words: cursor.words, member: &cursor.member };
            let parts = board.parts().iter();
            match cursor.from {
                End::Top => downward(board, &parts.map(|part| part.through(&key)).collect::<Vec<_>>(), limit),
                End::Bottom => upward(board, &parts.map(|part| part.before(&key)).collect::<Vec<_>>(), limit),
            }
        }
    }
}

/// The page after the places, best first.
pub(super) fn downward(board: &BoardView<'_>, starts: &[u64], limit: usize) -> Page {
    let mut entries = forward(board, starts);
    let run: Vec<MergedEntry<'_>> = entries.by_ref().take(limit).collect();
    let next = next_cursor(run.last(), entries.next().is_some(), End::Top);
    Page { entries: page::with_ranks(board, &run, starts.iter().sum::<u64>() + 1), next }
}

/// The page before the places, worst first.
fn upward(board: &BoardView<'_>, starts: &[u64], limit: usize) -> Page {
    let mut entries = backward(board, starts);
    let mut run: Vec<MergedEntry<'_>> = entries.by_ref().take(limit).collect();
    let next = next_cursor(run.last(), entries.next().is_some(), End::Bottom);
    run.reverse();
    let taken = u64::try_from(run.len()).unwrap_or(0);
    let mut entries = page::with_ranks(board, &run, starts.iter().sum::<u64>() - taken + 1);
    entries.reverse();
    Page { entries, next }
}

pub(super) fn next_cursor(last: Option<&MergedEntry<'_>>, more: bool, from: End) -> Option<PageCursor> {
    let last = last.filter(|_| more)?;
    Some(PageCursor { from, words: last.key.words, member: last.key.member.into() })
}
