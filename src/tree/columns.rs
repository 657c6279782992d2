//! Sorted entries laid out by column, as leaves and inner nodes both hold them: search, shift, move.
//!
//! Knows the format, a block of `n` slots per column, of which the first `len` are used. Must not know which
//! node a block belongs to.
//!
//! ```text
//! words    | column 0: n words | column 1: n words | ...
//! handles  | n handles |
//! ```
//!
//! A search mostly touches the first column alone, and that is one contiguous run.

use std::cmp::Ordering;

use super::words::{Handle, Words};

/// Entries in order, by column. A view: it borrows the tree's memory, or a copy of it.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    words: &'a [u64],
    handles: &'a [u32],
    /// Slots per column in `words`, at least `handles.len()`.
    stride: usize,
}

impl<'a> Columns<'a> {
    /// `words` holds columns of `stride` slots; as many of each are used as there are `handles`.
    #[inline]
    pub(super) fn new(words: &'a [u64], handles: &'a [u32], stride: usize) -> Self {
        Self { words, handles, stride }
    }

    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.handles.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    /// Number of columns.
    #[must_use]
    #[inline]
    pub fn width(&self) -> usize {
        self.words.len() / self.stride
    }

    /// One column's words, in entry order.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    #[inline]
    pub fn column(&self, column: usize) -> &'a [u64] {
        &self.words[column * self.stride..][..self.handles.len()]
    }

    /// The handles, as bare numbers, in entry order.
    #[must_use]
    #[inline]
    pub fn handles(&self) -> &'a [u32] {
        self.handles
    }

    /// # Panics
    /// When there is no such entry.
    #[must_use]
    #[inline]
    pub fn handle(&self, at: usize) -> Handle {
        Handle(self.handles[at])
    }

    /// # Panics
    /// When there is no such entry.
    #[must_use]
    #[inline]
    pub fn words(&self, at: usize) -> Words {
        let mut words = Words::new();
        for column in self.words.chunks_exact(self.stride) {
            words.push(column[at]);
        }
        words
    }

    /// Where the entries that begin with `prefix` start and end.
    #[inline]
    pub(super) fn equal_range(&self, prefix: &[u64]) -> (usize, usize) {
        let (mut low, mut high) = (0, self.len());
        for (column, &word) in prefix.iter().enumerate() {
            let column = self.column(column);
            low += lower_bound(&column[low..high], word);
            // Distinct words are the common case, and then the second search is not needed.
            if low == high || column[low] != word {
                return (low, low);
            }
            if high - low == 1 || column[low + 1] != word {
                high = low + 1;
            } else {
                high = low + upper_bound(&column[low..high], word);
            }
        }
        (low, high)
    }

    /// How many entries are before `words`; among those with the same words, those that `compare` calls less.
    #[inline]
    pub(super) fn entries_before(&self, words: &[u64], compare: impl FnMut(Handle) -> Ordering) -> usize {
        let (low, high) = self.equal_range(words);
        low + self.members_before(low, high, compare)
    }

    /// Of the entries `low..high`, which have equal words, how many `compare` calls less.
    #[inline]
    pub(super) fn members_before(
        &self,
        low: usize,
        high: usize,
        mut compare: impl FnMut(Handle) -> Ordering,
    ) -> usize {
        if low == high {
            return 0;
        }
        self.handles[low..high].partition_point(|&handle| compare(Handle(handle)) == Ordering::Less)
    }

    /// Orders two entries of two nodes by their words.
    pub(super) fn compare_words(&self, at: usize, other: &Self, other_at: usize) -> Ordering {
        (0..self.width())
            .map(|column| self.column(column)[at].cmp(&other.column(column)[other_at]))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

/// How many of the ascending `column` are less than `word`.
#[inline]
fn lower_bound(column: &[u64], word: u64) -> usize {
    column.partition_point(|&held| held < word)
}

/// How many of the ascending `column` are at most `word`.
#[inline]
fn upper_bound(column: &[u64], word: u64) -> usize {
    column.partition_point(|&held| held <= word)
}

/// Where `sought` is among `ids`, which are in no order.
///
/// Sixteen at a time without an early exit inside, so that the compiler compares them at once.
#[inline]
pub(super) fn find(ids: &[u32], sought: u32) -> Option<usize> {
    let mut at = 0;
    while let Some(group) = ids.get(at..at + 16) {
        let hits = group.iter().fold(0, |hits, &id| hits | u32::from(id == sought));
        if hits != 0 {
            break;
        }
        at += 16;
    }
    ids[at..].iter().position(|&id| id == sought).map(|offset| at + offset)
}

/// Frees slot `at` in every column of a block with `len` used slots each.
#[inline]
pub(super) fn open<T: Copy>(block: &mut [T], n: usize, len: usize, at: usize) {
    for column in block.chunks_exact_mut(n) {
        column.copy_within(at..len, at + 1);
    }
}

/// Closes the gap at slot `at` in every column of a block with `len` used slots each.
#[inline]
pub(super) fn close<T: Copy>(block: &mut [T], n: usize, len: usize, at: usize) {
    for column in block.chunks_exact_mut(n) {
        column.copy_within(at + 1..len, at);
    }
}

/// Moves entry `from` to slot `to`, shifting those in between.
pub(super) fn rotate<T: Copy>(block: &mut [T], n: usize, from: usize, to: usize) {
    for column in block.chunks_exact_mut(n) {
        if from < to {
            column[from..=to].rotate_left(1);
        } else {
            column[to..=from].rotate_right(1);
        }
    }
}

/// Moves entries between two neighbours so that the left one holds `target` of them.
pub(super) fn redistribute<T: Copy>(
    (left, right): (&mut [T], &mut [T]),
    n: usize,
    left_len: usize,
    right_len: usize,
    target: usize,
) {
    for (left, right) in left.chunks_exact_mut(n).zip(right.chunks_exact_mut(n)) {
        if target < left_len {
            let moved = left_len - target;
            right.copy_within(..right_len, moved);
            right[..moved].copy_from_slice(&left[target..left_len]);
        } else {
            let moved = target - left_len;
            left[left_len..target].copy_from_slice(&right[..moved]);
            right.copy_within(moved..right_len, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_sees_every_slot_and_nothing_else() {
        let ids: Vec<u32> = (0..67).map(|id| id * 3).collect();
        for (at, &id) in ids.iter().enumerate() {
            assert_eq!(find(&ids, id), Some(at));
        }
        assert_eq!(find(&ids, 1), None);
        assert_eq!(find(&[], 0), None);
    }

    #[test]
    fn equal_ranges_narrow_column_by_column() {
        // (1,0) (1,5) (1,5) (2,0) (MAX,MAX)
        let words = [1, 1, 1, 2, u64::MAX, 0, 5, 5, 0, u64::MAX];
        let columns = Columns::new(&words, &[10, 11, 12, 13, 14], 5);
        for (prefix, range) in [
            (&[0][..], (0, 0)),
            (&[1], (0, 3)),
            (&[1, 0], (0, 1)),
            (&[1, 5], (1, 3)),
            (&[1, 6], (3, 3)),
            (&[2, 0], (3, 4)),
            (&[u64::MAX], (4, 5)),
            (&[3], (4, 4)),
        ] {
            assert_eq!(columns.equal_range(prefix), range, "{prefix:?}");
        }
        assert_eq!(columns.entries_before(&[1, 5], |h| h.cmp(&Handle(12))), 2);
    }
}
