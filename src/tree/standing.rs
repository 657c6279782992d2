//! Where an entry stands: what reads and answers to writes tell of it, found by one way up.
//!
//! Entries with the same score are mostly in one leaf. There the score's first and last entry are counted
//! from the entry itself, so that no search goes down from the root.

use super::large::LargeTree;
use super::leaf::NONE;
use super::narrow::Narrow;
use super::words::{Handle, Words};

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

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    /// # Arguments
    /// `score_words`: how many of an entry's words are its score.
    pub(super) fn standing(&self, handle: Handle, score_words: usize) -> Option<Standing> {
        let (leaf, at) = self.locate(handle, Narrow::prefetch)?;
        let index = self.index_from(leaf, at);
        let entries = self.leaves.columns(leaf);
        let words = entries.words(at);
        let score = &words.as_slice()[..score_words];
        let (low, high) = entries.equal_range(score);
        let begin = index - at as u64;
        let is_here = (low > 0 || begin == 0) && (high < entries.len() || begin + high as u64 == self.len);
        let (better, through) =
            if is_here { (begin + low as u64, begin + high as u64) } else { self.count_range(score) };
        Some(Standing { words, index, better, through })
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
