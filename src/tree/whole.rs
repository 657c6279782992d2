//! Columns of whole words, and what a search asks of a column in any format.
//!
//! Must not know that there are other formats.

/// Entries as whole words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole<'a> {
    /// Columns of as many slots each.
    pub(super) words: &'a [u64],
    pub(super) handles: &'a [u32],
    /// Slots per column in `words`, at least as many as there are handles.
    pub(super) stride: usize,
}

impl<'a> Whole<'a> {
    #[inline]
    pub(super) fn columns(self) -> impl Iterator<Item = &'a [u64]> {
        self.words.chunks_exact(self.stride).map(move |column| &column[..self.handles.len()])
    }
}

/// A column of ascending words.
pub(super) trait Sorted {
    fn word(&self, at: usize) -> u64;

    /// How many of the words up to `high` are below `word`, or at most `word` if `through`; those up to `low`
    /// are.
    fn partition(&self, low: usize, high: usize, word: u64, through: bool) -> usize;

    /// Which of `low..high` have this word.
    ///
    /// Where thousands of entries share a score, most nodes hold that score alone. Their first and last word
    /// say so without a search.
    #[inline]
    fn range_of(&self, word: u64, low: usize, high: usize) -> (usize, usize) {
        let begins_so = low < high && self.word(low) == word;
        let low = if begins_so { low } else { self.partition(low, high, word, false) };
        // Distinct words are the common case, and then the second search is not needed.
        if low == high || self.word(low) != word {
            (low, low)
        } else if high - low == 1 || self.word(low + 1) != word {
            (low, low + 1)
        } else if self.word(high - 1) == word {
            (low, high)
        } else {
            (low, self.partition(low, high, word, true))
        }
    }

    /// As [`Sorted::range_of`], of a column behind the first one among equal words before it. Mostly these
    /// are times, of which new entries have the latest.
    #[inline]
    fn range_of_later(&self, word: u64, low: usize, high: usize) -> (usize, usize) {
        if low < high && self.word(high - 1) < word { (high, high) } else { self.range_of(word, low, high) }
    }
}

impl Sorted for [u64] {
    #[inline]
    fn word(&self, at: usize) -> u64 {
        self[at]
    }

    #[inline]
    fn partition(&self, low: usize, high: usize, word: u64, through: bool) -> usize {
        let part = &self[low..high];
        low + if through {
            part.partition_point(|&held| held <= word)
        } else {
            part.partition_point(|&held| held < word)
        }
    }
}
