//! The tree itself: its fields, and what can be said of it without a search.

use super::capture::Capture;
use super::columns::find;
use super::inner::Inners;
use super::leaf::{Leaves, NONE};
use super::locator::Locator;
use super::words::{Handle, MAX_WORDS, Words};

/// A counted tree over entries `(words, handle)`, ascending by words, then by [`MemberOrder`](super::MemberOrder).
///
/// `LEAF` and `INNER` are the most entries of a leaf and children of an inner node; the defaults are the measured
/// best. A handle is in the tree at most once. Every operation on one entry costs O(log n), whatever the ties.
pub struct Tree<const LEAF: usize = 64, const INNER: usize = 64> {
    pub(super) columns: usize,
    /// A leaf when `height` is 0, else an inner node.
    pub(super) root: u32,
    /// Levels of inner nodes.
    pub(super) height: u8,
    pub(super) len: u64,
    pub(super) leaves: Leaves<LEAF>,
    pub(super) inners: Inners<INNER>,
    pub(super) locator: Locator,
    pub(super) capture: Capture,
    /// Counts splits, merges and moves between nodes: while it stands still, a leaf found for a key stays the leaf.
    pub(super) structure: u64,
    /// Kept between batches, so that none of them allocates.
    pub(super) order_scratch: Vec<(u64, u32)>,
}

impl<const LEAF: usize, const INNER: usize> Tree<LEAF, INNER> {
    /// An empty tree whose entries have `columns` words.
    ///
    /// # Panics
    /// When `columns` is 0 or above [`MAX_WORDS`].
    #[must_use]
    pub fn new(columns: usize) -> Self {
        let mut tree = Self::without_root(columns);
        tree.root = tree.leaves.allocate();
        tree.leaves.meta_mut(tree.root).parent = NONE;
        tree
    }

    /// For loading, which finds its own root.
    pub(super) fn without_root(columns: usize) -> Self {
        assert!((1..=MAX_WORDS).contains(&columns), "an entry has 1 to {MAX_WORDS} words");
        Self {
            columns,
            root: NONE,
            height: 0,
            len: 0,
            leaves: Leaves::new(columns),
            inners: Inners::new(columns),
            locator: Locator::default(),
            capture: Capture::new(),
            structure: 0,
            order_scratch: Vec::new(),
        }
    }

    /// Words per entry.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[must_use]
    #[inline]
    pub fn contains(&self, handle: Handle) -> bool {
        self.locator.get(handle) != NONE
    }

    /// The words of a handle's entry. Two or three cache misses; none after [`Tree::prefetch_entry`].
    #[must_use]
    #[inline]
    pub fn get(&self, handle: Handle) -> Option<Words> {
        let (leaf, at) = self.locate(handle)?;
        Some(self.leaves.columns(leaf).words(at))
    }

    /// The leaf and the place in it of a handle's entry.
    #[inline]
    pub(super) fn locate(&self, handle: Handle) -> Option<(u32, usize)> {
        let leaf = self.locator.get(handle);
        if leaf == NONE {
            return None;
        }
        let at =
            find(self.leaves.columns(leaf).handles(), handle.0).expect("the locator names the entry's leaf");
        Some((leaf, at))
    }

    /// Memory held, in bytes, allocated but unused parts included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.leaves.bytes()
            + self.inners.bytes()
            + self.locator.bytes()
            + self.capture.bytes()
            + self.order_scratch.capacity() * size_of::<(u64, u32)>()
    }

    /// Leaves in use. `len / (leaves * LEAF)` is the average fill.
    #[must_use]
    pub fn leaf_count(&self) -> usize {
        self.leaves.allocated as usize - self.leaves.free.len()
    }

    /// First of two hints for a coming [`Tree::get`] or edit: asks for what says where the entry is.
    ///
    /// Give it for a group of 8 to 32 handles, then [`Tree::prefetch_entry`] for the group, then look them up.
    #[inline]
    pub fn prefetch_locator(&self, handle: Handle) {
        self.locator.prefetch(handle);
    }

    /// Second of the two hints: asks for the entry itself. Waits if the first hint was not given.
    #[inline]
    pub fn prefetch_entry(&self, handle: Handle) {
        let leaf = self.locator.get(handle);
        if leaf != NONE {
            self.prefetch_leaf(leaf);
        }
    }
}
