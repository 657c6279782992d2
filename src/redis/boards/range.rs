//! All entries of a range, page by page, and as a reply.

use crate::operations::Reading;
use crate::query::{FromPosition, Listed};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::BoardKey;
use crate::redis::boards::pace::Pace;
use crate::redis::boards::slice::{PAGE, Slice, SliceOf};
use crate::redis::commands::{RangeOf, Selection};
use crate::redis::frames::{Mark, Protocol, Replies};
use crate::redis::number::digits_of as digits;
use crate::redis::refused::Refused;
use crate::types::count;

/// What an entry of a page takes in memory beside its id, about.
const ENTRY_BYTES: usize = 256;

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

/// Has all entries of a range visited, page by page. Beyond the first, each page is of a moment of its own.
///
/// # Arguments
/// `visit`: is told the entries of a page, and how many there are behind it. Returns whether to go on.
pub async fn each_page(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
    range: &RangeOf<'_>,
    mut visit: impl FnMut(Vec<Listed>, u64) -> Result<bool, Refused> + Send,
) -> Result<(), Refused> {
    let Some(slice) = slice(asking, reading, key, range, PAGE).await? else { return Ok(()) };
    let Slice { mut from, mut to, is_forward, mut entries } = slice;
    let (mut pace, mut length) = (Pace::begin(), entries.len());
    if to - from > count(PAGE) {
        reading.in_progress.count_answer(PAGE * ENTRY_BYTES)?;
    }
    loop {
        if is_forward {
            from += count(length);
        } else {
            to -= count(length);
        }
        let work = entries.len();
        if work == 0 || !visit(entries, to - from)? || from == to {
            return Ok(());
        }
        pace.note(asking, work).await?;
        length = usize::try_from(to - from).unwrap_or(usize::MAX).min(PAGE);
        let position = 1 + if is_forward { from } else { to - count(length) };
        let read = FromPosition { position, limit: length };
        let Some(answer) = asking.read(reading, key, read).await? else { return Ok(()) };
        entries = answer.body.entries;
        if !is_forward {
            entries.reverse();
        }
    }
}

/// How entries are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryForm {
    Members,
    /// With scores: RESP3 has pairs.
    Scores,
    /// Members and texts of scores, as `ZSCAN` has them in both versions.
    Texts,
}

impl EntryForm {
    pub fn of(with_scores: bool) -> Self {
        if with_scores { Self::Scores } else { Self::Members }
    }

    /// # Arguments
    /// `score`: its digits, if they are shown.
    pub fn write(self, member: &str, score: impl FnOnce() -> String, replies: &mut Replies) {
        if self == Self::Scores && replies.protocol == Protocol::Resp3 {
            replies.array(2);
        }
        replies.text(member);
        match self {
            Self::Members => {}
            Self::Scores => replies.double(&score()),
            Self::Texts => replies.text(&score()),
        }
    }

    /// How many values an array of so many entries has.
    pub fn values(self, entries: usize, protocol: Protocol) -> usize {
        let is_flat = match self {
            Self::Members => false,
            Self::Scores => protocol == Protocol::Resp2,
            Self::Texts => true,
        };
        if is_flat { 2 * entries } else { entries }
    }
}

/// An array of entries that is being written.
pub struct EntryArray {
    form: EntryForm,
    begin: Mark,
    /// Bytes of replies before it.
    before: usize,
    written: usize,
}

impl EntryArray {
    pub fn begin(form: EntryForm, replies: &Replies) -> Self {
        Self { form, begin: replies.mark(), before: replies.len(), written: 0 }
    }

    /// # Arguments
    /// - `looked_at`: how many entries were looked at so far, of which those that are wanted are written.
    /// - `left`: how many are still to be looked at.
    ///
    /// # Errors
    /// When it takes too much memory.
    pub fn write(
        &mut self,
        asking: &Asking<'_>,
        entries: &[Listed],
        (looked_at, left): (u64, u64),
        replies: &mut Replies,
    ) -> Result<(), Refused> {
        for entry in entries {
            self.form.write(&entry.member, || digits(&entry.score), replies);
        }
        self.written += entries.len();
        // What cannot fit is refused as soon as that is seen.
        let taken = replies.len().saturating_sub(self.before);
        let each = count(taken) / looked_at.max(1);
        let expected = usize::try_from(each.saturating_mul(left)).unwrap_or(usize::MAX).saturating_add(taken);
        if left > 0
            && let Some(too_long) = asking.too_long(expected)
        {
            return Err(too_long);
        }
        asking.count(replies)
    }

    pub fn end(self, replies: &mut Replies) {
        let values = self.form.values(self.written, replies.protocol);
        replies.insert_array(self.begin, values);
    }
}

/// Writes all entries of a range that are wanted.
///
/// # Errors
/// When it cannot be read, or is too long. What was written is to be forgotten then.
pub async fn write_range(
    asking: &Asking<'_>,
    (reading, key): (&Reading, &BoardKey),
    range: &RangeOf<'_>,
    form: EntryForm,
    is_wanted: impl Fn(&Listed) -> bool + Send + Sync,
    replies: &mut Replies,
) -> Result<u64, Refused> {
    let (mut array, mut seen) = (EntryArray::begin(form, replies), 0);
    let write = |mut entries: Vec<Listed>, left: u64| -> Result<bool, Refused> {
        seen += count(entries.len());
        entries.retain(&is_wanted);
        array.write(asking, &entries, (seen, left), replies)?;
        Ok(true)
    };
    each_page(asking, reading, key, range, write).await?;
    array.end(replies);
    Ok(seen)
}
