//! All entries of a range, page by page.

use crate::operations::Reading;
use crate::query::{FromPosition, Listed};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::BoardKey;
use crate::redis::boards::slice::{PAGE, Slice, SliceOf};
use crate::redis::commands::{RangeOf, Selection};
use crate::redis::refused::Refused;
use crate::types::count;

/// What an entry takes in a reply and in memory beside its id, about.
const ENTRY_BYTES: usize = 160;

/// All of a board.
pub const EVERYTHING: RangeOf<'_> =
    RangeOf { selection: Selection::Index(0, -1), descending: false, limit: None, with_scores: false };

/// A range, with up to so many of its entries. `None`: there is no such board.
pub async fn slice(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
    range: &RangeOf<'_>,
    page: usize,
) -> Result<Option<Slice>, Refused> {
    let read = SliceOf { board: &key.board, range, page };
    asking.read(reading, key, read).await?.map(|answer| answer.body).transpose()
}

/// All entries of a range. Beyond a page, each page is of a moment of its own.
pub async fn entries_of(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
    range: &RangeOf<'_>,
) -> Result<Vec<Listed>, Refused> {
    let Some(slice) = slice(asking, reading, key, range, PAGE).await? else { return Ok(Vec::new()) };
    let Slice { mut from, mut to, is_forward, mut entries } = slice;
    if is_forward {
        from += count(entries.len());
    } else {
        to -= count(entries.len());
    }
    while from < to {
        count_answer(reading, &entries)?;
        // Others wait for this thread.
        tokio::task::yield_now().await;
        let length = usize::try_from(to - from).unwrap_or(usize::MAX).min(PAGE);
        let position = 1 + if is_forward { from } else { to - count(length) };
        let read = FromPosition { position, limit: length };
        let Some(answer) = asking.read(reading, key, read).await? else { break };
        let mut more = answer.body.entries;
        if more.is_empty() {
            break;
        }
        if is_forward {
            from += count(length);
        } else {
            to -= count(length);
            more.reverse();
        }
        entries.extend(more);
    }
    count_answer(reading, &entries)?;
    Ok(entries)
}

/// # Errors
/// When the answers of all requests take too much memory together.
pub fn count_answer(reading: &Reading, entries: &[Listed]) -> Result<(), Refused> {
    Ok(reading.in_progress.count_answer(entries.len() * ENTRY_BYTES)?)
}
