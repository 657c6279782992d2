//! Sorted entries laid out by column, as leaves and inner nodes both hold them: search, shift, move.
//!
//! Knows two formats: whole words, in blocks of `n` slots per column, of which the first `len` are used, and
//! those of `narrow`. Must not know which node a block belongs to.
//!
//! ```text
//! words    | column 0: n words | column 1: n words | ...
//! handles  | n handles |
//! ```
//!
//! A search mostly touches the first column alone, and that is one contiguous run.

use std::cmp::Ordering;

use super::narrow::Narrow;
use super::whole::{Sorted, Whole};
use super::words::{Handle, Words};

/// Entries in order, by column. A view: it borrows the tree's memory, or a copy of it.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    len: usize,
    form: Form<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Whole(Whole<'a>),
    Narrow(Narrow<'a>),
}

impl<'a> Columns<'a> {
    /// `words` holds columns of `stride` slots; as many of each are used as there are `handles`.
    #[inline]
    pub(super) fn new(words: &'a [u64], handles: &'a [u32], stride: usize) -> Self {
        Self { len: handles.len(), form: Form::Whole(Whole { words, handles, stride }) }
    }

    /// The first `len` entries of a block.
    #[inline]
    pub(super) fn narrow(block: Narrow<'a>, len: usize) -> Self {
        Self { len, form: Form::Narrow(block) }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of columns.
    #[inline]
    pub fn width(&self) -> usize {
        match self.form {
            Form::Whole(Whole { words, stride, .. }) => words.len() / stride,
            Form::Narrow(block) => block.columns,
        }
    }

    /// One word of an entry.
    ///
    /// # Panics
    /// When there is no such column, or no such entry.
    #[inline]
    pub fn word(&self, column: usize, at: usize) -> u64 {
        match self.form {
            Form::Whole(Whole { words, stride, .. }) => words[column * stride..][..self.len][at],
            Form::Narrow(block) => block.column(column).at(at),
        }
    }

    /// As `word(0, at)`, which searches ask for most.
    #[inline]
    pub(super) fn first_word(&self, at: usize) -> u64 {
        match self.form {
            Form::Whole(Whole { words, .. }) => words[..self.len][at],
            Form::Narrow(block) => block.first_column().at(at),
        }
    }

    /// One column's words, in entry order.
    ///
    /// # Panics
    /// When there is no such column, and there are entries.
    #[inline]
    pub fn column(&self, column: usize) -> impl Iterator<Item = u64> + use<'a> {
        let (whole, cells) = match self.form {
            Form::Whole(Whole { words, stride, .. }) => {
                (words.get(column * stride..).unwrap_or_default(), None)
            }
            Form::Narrow(block) => (&[][..], (self.len > 0).then(|| block.column(column))),
        };
        (0..self.len).map(move |at| cells.as_ref().map_or_else(|| whole[at], |cells| cells.at(at)))
    }

    /// Reads as many words of a column as there is room for, from that of entry `from` on.
    pub(super) fn read_column(&self, column: usize, from: usize, words: &mut [u64]) {
        match self.form {
            _ if words.is_empty() => {}
            Form::Whole(Whole { words: all, stride, .. }) => {
                words.copy_from_slice(&all[column * stride + from..][..words.len()]);
            }
            Form::Narrow(block) => block.column(column).read(from, words),
        }
    }

    /// As `read_column`.
    pub(super) fn read_handles(&self, from: usize, handles: &mut [u32]) {
        match self.form {
            _ if handles.is_empty() => {}
            Form::Whole(Whole { handles: all, .. }) => {
                handles.copy_from_slice(&all[from..][..handles.len()]);
            }
            Form::Narrow(block) => block.read_handles(from, handles),
        }
    }

    /// The handles, and the words column by column: quicker than one by one.
    pub fn to_whole(&self) -> (Vec<u32>, Vec<Vec<u64>>) {
        let mut handles = vec![0; self.len];
        self.read_handles(0, &mut handles);
        let column = |column| {
            let mut words = vec![0; self.len];
            self.read_column(column, 0, &mut words);
            words
        };
        (handles, (0..self.width()).map(column).collect())
    }

    /// The entries, if they are in this form.
    #[inline]
    pub(super) fn whole(&self) -> Option<Whole<'a>> {
        match self.form {
            Form::Whole(whole) => Some(whole),
            Form::Narrow(_) => None,
        }
    }

    /// The handles, as bare numbers, in entry order.
    #[inline]
    pub fn handles(&self) -> impl Iterator<Item = u32> + use<'a> {
        let form = self.form;
        (0..self.len).map(move |at| match form {
            Form::Whole(Whole { handles, .. }) => handles[at],
            Form::Narrow(block) => block.handle(at),
        })
    }

    /// # Panics
    /// When there is no such entry.
    #[inline]
    pub fn handle(&self, at: usize) -> Handle {
        Handle(match self.form {
            Form::Whole(Whole { handles, .. }) => handles[at],
            Form::Narrow(block) => block.handle(at),
        })
    }

    /// # Panics
    /// When there is no such entry.
    #[inline]
    pub fn words(&self, at: usize) -> Words {
        match self.form {
            Form::Whole(Whole { words: all, stride, .. }) => {
                let mut words = Words::new();
                for column in all.chunks_exact(stride) {
                    words.push(column[at]);
                }
                words
            }
            Form::Narrow(block) => block.words(at),
        }
    }

    /// Where a handle's entry is.
    #[inline]
    pub(super) fn find(&self, handle: Handle) -> Option<usize> {
        match self.form {
            Form::Whole(Whole { handles, .. }) => find(handles, handle.0),
            // A leaf that never had an entry has no block.
            Form::Narrow(_) if self.len == 0 => None,
            Form::Narrow(block) => block.find(self.len, handle.0),
        }
    }

    /// The block that the entries are in, if it is of the narrow format and there are any.
    pub(super) fn block(&self) -> Option<Narrow<'a>> {
        match self.form {
            Form::Narrow(block) if self.len > 0 => Some(block),
            Form::Narrow(_) | Form::Whole(_) => None,
        }
    }

    /// Where the entries that begin with `prefix` start and end.
    #[inline]
    pub(super) fn equal_range(&self, prefix: &[u64]) -> (usize, usize) {
        let (mut low, mut high) = (0, self.len);
        match self.form {
            Form::Whole(Whole { words, stride, .. }) => {
                for (column, &word) in prefix.iter().enumerate() {
                    let words = &words[column * stride..][..self.len];
                    (low, high) = range_in(words, column == 0, word, low, high);
                    if low == high {
                        break;
                    }
                }
            }
            Form::Narrow(_) if high == 0 => {}
            Form::Narrow(block) => {
                assert!(prefix.len() <= block.columns, "an entry has that many words");
                for (column, (cells, &word)) in block.columns().zip(prefix).enumerate() {
                    (low, high) = range_in(&cells, column == 0, word, low, high);
                    if low == high {
                        break;
                    }
                }
            }
        }
        (low, high)
    }

    /// Whether there are entries, and all have the same first word.
    #[inline]
    pub(super) fn is_one_run(&self) -> bool {
        self.len > 0 && self.first_word(0) == self.first_word(self.len - 1)
    }

    /// Whether there are entries before and behind all that have this first word.
    #[inline]
    pub(super) fn encloses(&self, word: u64) -> bool {
        self.len > 0 && self.first_word(0) < word && word < self.first_word(self.len - 1)
    }

    /// Whether entry `at` has a lower first word, and the next one, if there is one, a higher one.
    #[inline]
    pub(super) fn word_is_between(&self, at: usize, word: u64) -> bool {
        self.first_word(at) < word && (at + 1 == self.len || word < self.first_word(at + 1))
    }

    /// Whether all entries are before these words, if there are any.
    #[inline]
    pub(super) fn end_before(&self, words: &[u64]) -> bool {
        self.len > 0 && self.compare_to(self.len - 1, words).is_lt()
    }

    /// How an entry's first words compare to these.
    #[inline]
    fn compare_to(&self, at: usize, words: &[u64]) -> Ordering {
        let Some((first, later)) = words.split_first() else { return Ordering::Equal };
        self.first_word(at).cmp(first).then_with(|| {
            let mut orders = later.iter().zip(1..).map(|(word, column)| self.word(column, at).cmp(word));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }

    /// As [`Columns::find`], which `guess` mostly is the answer to.
    #[inline]
    pub(super) fn find_near(&self, guess: usize, handle: Handle) -> Option<usize> {
        if guess < self.len && self.handle(guess) == handle { Some(guess) } else { self.find(handle) }
    }

    /// As [`Columns::entries_before`], which `guess` mostly is the answer to.
    #[inline]
    pub(super) fn entries_before_near(
        &self,
        guess: usize,
        words: &[u64],
        compare: impl FnMut(Handle) -> Ordering,
    ) -> usize {
        let is_between = guess <= self.len
            && (guess == 0 || self.compare_to(guess - 1, words).is_lt())
            && (guess == self.len || self.compare_to(guess, words).is_gt());
        if is_between {
            guess
        } else if self.end_before(words) {
            // Others of the same run may have come since it was guessed.
            self.len
        } else {
            self.entries_before(words, compare)
        }
    }

    /// How many entries are before those that begin with `score`: `equal_range(score).0`, mostly without a
    /// search.
    ///
    /// # Arguments
    /// `before`: the [`entries_before`](Self::entries_before) of words that begin with `score`. Entries
    /// between the two counts all have that score, so there are none if the one before `before` has a lower
    /// first word.
    #[inline]
    pub(super) fn better_than(&self, score: &[u64], before: usize) -> usize {
        let none_between = match (before.checked_sub(1), score.first()) {
            (Some(last), Some(first)) => self.first_word(last) < *first,
            (Some(_), None) => false,
            (None, _) => true,
        };
        if none_between { before } else { self.equal_range(score).0 }
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
        let (mut from, mut to) = (low, high);
        while from < to {
            let middle = usize::midpoint(from, to);
            if compare(self.handle(middle)) == Ordering::Less {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from - low
    }

    /// Orders two entries of two nodes by their words.
    pub(super) fn compare_words(&self, at: usize, other: &Self, other_at: usize) -> Ordering {
        self.words(at).cmp(&other.words(other_at))
    }
}

/// Which of `low..high` have this word in a column.
#[inline]
fn range_in(
    column: &(impl Sorted + ?Sized),
    is_first: bool,
    word: u64,
    low: usize,
    high: usize,
) -> (usize, usize) {
    if is_first { column.range_of(word, low, high) } else { column.range_of_later(word, low, high) }
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

    #[test]
    fn better_ones_are_counted_from_a_place_as_by_a_search() {
        let words = [1, 1, 1, 2, u64::MAX, 0, 5, 5, 0, u64::MAX];
        let columns = Columns::new(&words, &[10, 11, 12, 13, 14], 5);
        for entry in [[0, 3], [1, 0], [1, 5], [1, 6], [2, 0], [2, 9], [3, 0], [u64::MAX, 0], [u64::MAX; 2]] {
            let before = columns.entries_before(&entry, |handle| handle.cmp(&Handle(12)));
            for score_words in [0, 1, 2] {
                let score = &entry[..score_words];
                let better = columns.equal_range(score).0;
                assert_eq!(columns.better_than(score, before), better, "{entry:?} {score_words}");
            }
        }
    }

    #[test]
    fn a_guess_changes_no_answer() {
        let words = [10, 20, 20, 30];
        let columns = Columns::new(&words, &[7, 5, 9, 6], 4);
        for guess in [0, 1, 2, 3, 4, 5, usize::MAX] {
            for handle in 4..11 {
                assert_eq!(columns.find_near(guess, Handle(handle)), columns.find(Handle(handle)), "{guess}");
            }
            for word in 9..32 {
                let compare = |other: Handle| other.cmp(&Handle(8));
                let near = columns.entries_before_near(guess, &[word], compare);
                assert_eq!(near, columns.entries_before(&[word], compare), "{guess} {word}");
            }
            let words = [1, 1, 1, 2, 3, 5, 5, 4];
            let columns = Columns::new(&words, &[7, 5, 9, 6], 4);
            for entry in (0..4).flat_map(|score| (2..7).map(move |time| [score, time])) {
                let compare = |other: Handle| other.cmp(&Handle(8));
                let near = columns.entries_before_near(guess, &entry, compare);
                assert_eq!(near, columns.entries_before(&entry, compare), "{guess} {entry:?}");
                assert_eq!(columns.end_before(&entry), entry > [2, 4], "{entry:?}");
            }
        }
        assert_eq!(
            [9, 10, 11, 29, 30, 31].map(|word| columns.encloses(word)),
            [false, false, true, true, false, false]
        );
        assert!(!Columns::new(&[], &[], 4).encloses(0));
    }
}
