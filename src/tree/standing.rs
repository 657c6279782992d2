//! Where an entry stands: what reads and answers to writes tell of it, found by one way up.
//!
//! Entries with the same score are mostly in one leaf. There the score's first and last entry are counted
//! from the entry itself, so that no search goes down from the root.

use super::counted_tree::{Form, Tree};
use super::large::{LOCATED, LargeTree};
use super::leaf::NONE;
use super::narrow::Narrow;
use super::words::{Edit, Handle, MemberOrder, Words};

/// An entry, and how many others are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub words: Words,
    /// Entries before it.
    pub index: u64,
    /// Entries with a better score, and these with the ones of its own score.
    pub better: u64,
    pub through: u64,
}

/// An entry, and how many others are ahead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    pub words: Words,
    /// Entries before it.
    pub index: u64,
    /// Entries with a better score.
    pub better: u64,
}

impl<const LEAF: usize, const INNER: usize> Tree<LEAF, INNER> {
    /// What is ahead of an entry: as [`Tree::standing`], without those of its own score. Give
    /// [`Tree::prefetch_entry`] and [`Tree::prefetch_ahead`] before.
    ///
    /// # Panics
    /// When an entry has fewer words than a score.
    #[inline]
    pub fn ahead(&self, handle: Handle, score_words: usize) -> Option<Ahead> {
        match &self.form {
            Form::Small(small) => {
                let (at, entries) = (small.find(handle)?, small.entries());
                let words = entries.words(at);
                let better = entries.better_than(&words.as_slice()[..score_words], at) as u64;
                Some(Ahead { words, index: at as u64, better })
            }
            Form::Large(large) => large.ahead(handle, score_words),
        }
    }

    /// Asks for what counts the entries ahead of one. Waits if [`Tree::prefetch_entry`] was not given.
    #[inline]
    pub fn prefetch_ahead(&self, handle: Handle) {
        if let Form::Large(large) = &self.form {
            large.prefetch_ahead(handle);
        }
    }

    /// What [`Tree::get`], [`Tree::index_of`] and [`Tree::count_range`] of its score find of an entry.
    ///
    /// # Panics
    /// When an entry has fewer words than a score.
    #[inline]
    pub fn standing(&self, handle: Handle, score_words: usize) -> Option<Standing> {
        match &self.form {
            Form::Small(small) => {
                let (at, entries) = (small.find(handle)?, small.entries());
                let words = entries.words(at);
                let (better, through) = entries.equal_range(&words.as_slice()[..score_words]);
                Some(Standing { words, index: at as u64, better: better as u64, through: through as u64 })
            }
            Form::Large(large) => large.standing(handle, score_words),
        }
    }

    /// Applies one edit as [`Tree::apply`] does. Returns what [`Tree::standing`] finds of its handle before
    /// and after.
    ///
    /// # Panics
    /// As those two do.
    pub fn apply_standing(
        &mut self,
        edit: &Edit,
        score_words: usize,
        order: &impl MemberOrder,
    ) -> (Option<Standing>, Option<Standing>) {
        if let Form::Large(large) = &mut self.form {
            let stood = large.apply_standing(edit, score_words, order);
            self.shrink_if_sparse();
            return stood;
        }
        let before = self.standing(edit.handle, score_words);
        self.apply(std::slice::from_ref(edit), order);
        (before, self.standing(edit.handle, score_words))
    }
}

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    /// # Arguments
    /// `score_words`: how many of an entry's words are its score.
    pub(super) fn standing(&self, handle: Handle, score_words: usize) -> Option<Standing> {
        let (leaf, at) = self.locate(handle, Narrow::prefetch)?;
        let words = self.leaves.columns(leaf).words(at);
        Some(self.standing_at(leaf, at, words, score_words))
    }

    /// # Arguments
    /// `score_words`: how many of an entry's words are its score.
    #[inline]
    fn ahead(&self, handle: Handle, score_words: usize) -> Option<Ahead> {
        // As `locate`, whose prefetch the caller has given.
        let leaf = self.locator.get(handle);
        if leaf == NONE {
            return None;
        }
        let entries = self.leaves.columns(leaf);
        let at = entries.find(handle).expect(LOCATED);
        let words = entries.words(at);
        let index = self.index_from(leaf, at);
        let begin = index - at as u64;
        let score = &words.as_slice()[..score_words];
        let low = entries.better_than(score, at);
        // Where this leaf has none that are better, those of that score may begin in a leaf before it.
        let better = if low > 0 || begin == 0 { begin + low as u64 } else { self.count_below(score) };
        Some(Ahead { words, index, better })
    }

    #[inline]
    fn prefetch_ahead(&self, handle: Handle) {
        let leaf = self.locator.get(handle);
        if leaf != NONE {
            self.prefetch_sum_of(leaf);
        }
    }

    /// Of the entry at a place in a leaf, which has these words.
    #[inline]
    fn standing_at(&self, leaf: u32, at: usize, words: Words, score_words: usize) -> Standing {
        let index = self.index_from(leaf, at);
        let entries = self.leaves.columns(leaf);
        let score = &words.as_slice()[..score_words];
        let (low, high) = entries.equal_range(score);
        let begin = index - at as u64;
        let is_here = (low > 0 || begin == 0) && (high < entries.len() || begin + high as u64 == self.len);
        let (better, through) =
            if is_here { (begin + low as u64, begin + high as u64) } else { self.count_range(score) };
        Standing { words, index, better, through }
    }

    /// Applies an edit, and finds how its entry stood before and how it stands after. The entry is looked for
    /// once.
    pub(super) fn apply_standing(
        &mut self,
        edit: &Edit,
        score_words: usize,
        order: &impl MemberOrder,
    ) -> (Option<Standing>, Option<Standing>) {
        let place = self.locate(edit.handle, Narrow::prefetch);
        let before = place.map(|(leaf, at)| {
            let words = self.leaves.columns(leaf).words(at);
            self.standing_at(leaf, at, words, score_words)
        });
        let at = place.map_or(usize::MAX, |(_, at)| at);
        let is_moved = self.remove_or_move(edit, at);
        let Some(new) = edit.new else { return (before, None) };
        if !is_moved {
            let leaf = self.leaf_for(new.as_slice(), edit.handle, order);
            self.insert_near((leaf, usize::MAX), new.as_slice(), edit.handle, order);
        }
        let after = self
            .locate(edit.handle, Narrow::prefetch_handles)
            .map(|(leaf, at)| self.standing_at(leaf, at, new, score_words));
        (before, after)
    }

    pub(super) fn index_of(&self, handle: Handle) -> Option<u64> {
        let (leaf, at) = self.locate(handle, Narrow::prefetch_handles)?;
        Some(self.index_from(leaf, at))
    }

    /// The index of the entry at a place in a leaf.
    #[inline]
    fn index_from(&self, leaf: u32, at: usize) -> u64 {
        let meta = self.leaves.meta(leaf);
        let mut index = at as u64;
        let (mut child, mut parent, mut hint) = (leaf, meta.parent, meta.slot);
        while parent != NONE {
            let slot = self.inners.slot_of(parent, child, hint);
            index += self.inners.sum_before(parent, slot);
            let meta = self.inners.meta(parent);
            (child, parent, hint) = (parent, meta.parent, meta.slot);
        }
        index
    }
}
