//! What a shard tells of one tree: its best entries, entries at nearly equal distances among the others, and
//! the scores that very many share.
//!
//! Knows: which counts follow from these, and within which bounds. Must not know: how a summary is made, or
//! that there are other shards.

use std::cmp::Ordering;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::quality::FixedState;

use crate::query::summary::estimate::Estimate;
use crate::tree::{MAX_WORDS, Words, compare_ids};
use crate::types::MAX_MEMBER_BYTES;

/// The most marks, and shared scores, of a summary: above what is made, so that a later version may make
/// more.
const MARKS_MAX: usize = 8_192;
const SHARED_MAX: usize = 1_024;

/// One tree of a shard at one applied sequence. Its marks are entries with their indexes in the tree, in
/// order: the best ones without a gap, and the last one among them. So whatever is between two marks has its
/// index between theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Listed entries.
    pub total: u64,
    /// How many of an entry's words are its score.
    pub score_words: usize,
    /// Words of an entry.
    pub columns: usize,
    /// How many entries are before each mark.
    pub before: Vec<u64>,
    /// The words of all marks, one mark's after the other's.
    pub words: Vec<u64>,
    /// Where each mark's id ends in `ids`.
    pub id_ends: Vec<u32>,
    pub ids: Vec<u8>,
    /// In order.
    pub shared: Vec<SharedScore>,
}

/// A score that many entries share, and its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedScore {
    pub score: Words,
    /// Entries that are better.
    pub better: u64,
    /// Entries that are better or have the score.
    pub through: u64,
}

impl Summary {
    /// Entries that are better than a score, and those with the ones that have it. The guesses ascend.
    ///
    /// # Arguments
    /// `score`: as many words as scores have.
    pub fn at_score(&self, score: &[u64]) -> (Estimate, Estimate) {
        let at = self.shared.partition_point(|shared| shared.score.as_slice() < score);
        if let Some(shared) = self.shared.get(at).filter(|shared| shared.score.as_slice() == score) {
            return (Estimate::exactly(shared.better), Estimate::exactly(shared.through));
        }
        let (low, high) = self.between_shared(at, at);
        let better = self.count(self.marks_before(|mark, _| self.score_of(mark) < score), score);
        let better = better.within(low, high);
        let through = self.count(self.marks_before(|mark, _| self.score_of(mark) <= score), score);
        (better, through.within(low, high).not_below(better.guess))
    }

    /// Entries before a key, whose own need not be in the tree. The guess is between those at its score.
    ///
    /// # Arguments
    /// `words`, `member`: the key.
    pub fn before(&self, words: &[u64], member: &[u8]) -> Estimate {
        let cut = self.marks_before(|mark, id| {
            mark.cmp(words).then_with(|| compare_ids(words, id, member)) == Ordering::Less
        });
        if self.mark(cut).is_some_and(|mark| mark == (words, member)) {
            return self.before.get(cut).copied().map(Estimate::exactly).unwrap_or_default();
        }
        let score = words.get(..self.score_words).unwrap_or(words);
        let first = self.shared.partition_point(|shared| shared.score.as_slice() < score);
        let (low, high) = match self.shared.get(first) {
            Some(shared) if shared.score.as_slice() == score => (shared.better, shared.through),
            _ => self.between_shared(first, first),
        };
        let (better, through) = self.at_score(score);
        self.count(cut, words).within(low, high).not_below(better.guess).not_above(through.guess)
    }

    /// What the shared scores say of a count between two of them.
    ///
    /// # Arguments
    /// `ends`: shared scores that count whole. `begins`: the first one that does not count at all.
    fn between_shared(&self, ends: usize, begins: usize) -> (u64, u64) {
        let low = ends.checked_sub(1).and_then(|last| self.shared.get(last));
        let high = self.shared.get(begins);
        (low.map_or(0, |shared| shared.through), high.map_or(self.total, |shared| shared.better))
    }

    /// Entries before a place that has `cut` marks before it.
    ///
    /// # Arguments
    /// `words`: first words of the place.
    fn count(&self, cut: usize, words: &[u64]) -> Estimate {
        // The mark before the place counts itself; the one after it does not.
        let last = cut.checked_sub(1);
        let low = last.and_then(|last| self.before.get(last)).map_or(0, |before| before + 1);
        let high = self.before.get(cut).copied().unwrap_or(self.total).max(low);
        let sides = last.and_then(|last| self.mark(last)).zip(self.mark(cut));
        let share = sides.map(|((left, _), (right, _))| share_between(left, right, words));
        let Some((part, whole)) = share.filter(|_| low < high) else {
            return Estimate { low, guess: low, high };
        };
        let inner = u128::from(high - low) * u128::from(part) / u128::from(whole.max(1));
        let guess = low + u64::try_from(inner).unwrap_or(u64::MAX).min(high - low);
        Estimate { low, guess, high }
    }

    /// How many marks are before a place.
    fn marks_before(&self, is_before: impl Fn(&[u64], &[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.before.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.mark(middle) {
                Some((words, id)) if is_before(words, id) => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    fn mark(&self, at: usize) -> Option<(&[u64], &[u8])> {
        let words = self.words.get(at * self.columns..)?.get(..self.columns)?;
        let end = usize::try_from(*self.id_ends.get(at)?).ok()?;
        let begin = match at.checked_sub(1) {
            Some(before) => usize::try_from(*self.id_ends.get(before)?).ok()?,
            None => 0,
        };
        Some((words, self.ids.get(begin..end)?))
    }

    pub(super) fn score_of<'w>(&self, words: &'w [u64]) -> &'w [u64] {
        words.get(..self.score_words).unwrap_or(words)
    }

    /// Marks with their indexes.
    pub(super) fn marks(&self) -> impl Iterator<Item = (u64, &[u64], &[u8])> {
        let mark = |(at, before): (usize, &u64)| self.mark(at).map(|(words, id)| (*before, words, id));
        self.before.iter().enumerate().filter_map(mark)
    }

    /// A hash of all that it says. Nodes of different builds may have different ones of the same summary,
    /// which is sent once more then.
    pub fn hash(&self) -> u64 {
        let Self { total, score_words, columns, before, words, id_ends, ids, shared } = self;
        let mut hasher = FixedState::default().build_hasher();
        (total, score_words, columns, before, words, id_ends, ids).hash(&mut hasher);
        for SharedScore { score, better, through } in shared {
            (score.as_slice(), better, through).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Memory held, itself included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + (self.before.capacity() + self.words.capacity()) * size_of::<u64>()
            + self.id_ends.capacity() * size_of::<u32>()
            + self.ids.capacity()
            + self.shared.capacity() * size_of::<SharedScore>()
    }

    /// Whether the bounds hold that are worked out from it: another node may have sent anything.
    pub fn is_consistent(&self) -> bool {
        let (marks, total) = (self.before.len(), self.total);
        let sizes = marks <= MARKS_MAX
            && self.shared.len() <= SHARED_MAX
            && self.score_words <= self.columns
            && self.columns <= MAX_WORDS
            && self.words.len() == marks * self.columns
            && self.id_ends.len() == marks
            && self.id_ends.last().map_or(0, |end| usize::try_from(*end).unwrap_or(usize::MAX))
                == self.ids.len();
        let is_ascending = || {
            self.marks().count() == marks
                && self.marks().all(|(_, _, id)| id.len() <= MAX_MEMBER_BYTES)
                && self.marks().is_sorted_by(|a, b| a.0 < b.0 && (a.1, a.2) < (b.1, b.2))
        };
        // So that there is a mark on each side of every entry.
        let has_ends = || match (self.before.first(), self.before.last()) {
            (None, None) => total == 0,
            (first, last) => first == Some(&0) && last.is_some_and(|last| last.checked_add(1) == Some(total)),
        };
        let shared = || {
            self.shared.iter().all(|shared| {
                shared.score.as_slice().len() == self.score_words
                    && shared.better <= shared.through
                    && shared.through <= total
            }) && self.shared.is_sorted_by(|a, b| a.score < b.score && a.through <= b.better)
        };
        sizes && is_ascending() && has_ends() && shared()
    }
}

/// Where a place is between two others, by the first word in which these differ: a part and the whole. If
/// they differ in none, only their ids do, and the place is taken to be in the middle.
fn share_between(left: &[u64], right: &[u64], words: &[u64]) -> (u64, u64) {
    let differing = left.iter().zip(right).position(|(left, right)| left != right);
    let at = |of: &[u64]| differing.and_then(|at| of.get(at).copied());
    match (at(left), at(right), at(words)) {
        (Some(left), Some(right), Some(word)) if left < right => {
            (word.clamp(left, right) - left, right - left)
        }
        _ => (1, 2),
    }
}
