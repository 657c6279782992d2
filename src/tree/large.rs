//! A tree of more entries than a leaf holds: its fields, and operations without a search.
//!
//! Knows how it is made from a small tree and converted back. Must not know when; that is `counted_tree`.

use super::capture::Capture;
use super::inner::InnerNodes;
use super::leaf::{Leaves, NONE};
use super::locator::Locator;
use super::narrow::Narrow;
use super::small::SmallTree;
use super::words::{Handle, MAX_WORDS, Words};

/// Says that an entry is missing from the leaf that the locator names for it.
pub(super) const LOCATED: &str = "the locator names the entry's leaf";

/// Leaves, inner nodes above them and a locator. Its methods are described at [`Tree`](super::Tree).
pub(super) struct LargeTree<const LEAF: usize, const INNER: usize> {
    pub(super) columns: usize,
    /// A leaf when `height` is 0, else an inner node.
    pub(super) root: u32,
    /// Levels of inner nodes.
    pub(super) height: u8,
    pub(super) len: u64,
    pub(super) leaves: Leaves<LEAF>,
    pub(super) inners: InnerNodes<INNER>,
    pub(super) locator: Locator,
    pub(super) capture: Capture,
    /// Counts splits, merges and moves between nodes. While it does not change, a leaf that was found for a
    /// key remains valid.
    pub(super) structure: u64,
    /// A buffer that is kept between batches, so that none of them allocates.
    pub(super) order_scratch: Vec<(u64, u32)>,
}

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    /// For loading, which finds its own root.
    pub(super) fn without_root(columns: usize) -> Self {
        assert!((1..=MAX_WORDS).contains(&columns), "an entry has 1 to {MAX_WORDS} words");
        Self {
            columns,
            root: NONE,
            height: 0,
            len: 0,
            leaves: Leaves::new(columns),
            inners: InnerNodes::new(columns),
            locator: Locator::default(),
            capture: Capture::new(),
            structure: 0,
            order_scratch: Vec::new(),
        }
    }

    /// A tree of no entries: one empty leaf.
    pub(super) fn empty(columns: usize) -> Self {
        let mut tree = Self::without_root(columns);
        tree.root = tree.leaves.allocate();
        tree.leaves.meta_mut(tree.root).parent = NONE;
        tree
    }

    /// Converts a small tree, with the state of its capture.
    pub(super) fn of_small(small: SmallTree<LEAF>) -> Self {
        let entries = small.entries();
        let mut tree = Self::without_root(usize::from(small.columns));
        let page = small.page;
        tree.root = page;
        tree.len = entries.len() as u64;
        tree.leaves.set_allocated(page + 1);
        // From the back, so that the lowest ids are used first and page numbers stay small.
        tree.leaves.free = (0..page).rev().collect();
        tree.leaves.ensure(page);
        tree.leaves.fill(page, &entries);
        for handle in entries.handles() {
            tree.locator.set(Handle(handle), page);
        }
        let marks = tree.capture.of_small(page, small.dirty, small.capture_state, small.pre_image);
        let meta = tree.leaves.meta_mut(page);
        (meta.parent, meta.marks) = (NONE, marks);
        tree.leaves.moved.clear();
        tree
    }

    /// Converts to a small tree, if there are at most `most` entries, and no checkpoint must still write or
    /// delete another page. This tree must not be used afterwards.
    pub(super) fn take_small(&mut self, most: usize) -> Option<SmallTree<LEAF>> {
        if self.height > 0 || self.len > most as u64 {
            return None;
        }
        let meta = *self.leaves.meta(self.root);
        let (dirty, capture_state, pre_image) = self.capture.take_small(self.root, meta.marks)?;
        let entries = self.leaves.columns(self.root);
        Some(SmallTree { pre_image, dirty, capture_state, ..SmallTree::of_page(self.root, &entries) })
    }

    #[inline]
    pub(super) fn contains(&self, handle: Handle) -> bool {
        self.locator.get(handle) != NONE
    }

    #[inline]
    pub(super) fn get(&self, handle: Handle) -> Option<Words> {
        let leaf = self.locator.get(handle);
        if leaf == NONE {
            return None;
        }
        let entries = self.leaves.columns(leaf);
        Some(entries.words(entries.find(handle).expect(LOCATED)))
    }

    /// The leaf and the place in it of a handle's entry.
    ///
    /// The leaf's parent, which the entry's index takes, is prefetched before the leaf is searched, so that
    /// both are waited for at once.
    ///
    /// # Arguments
    /// `prefetch`: prefetches what the caller reads of the leaf, with the handles.
    #[inline]
    pub(super) fn locate<'t>(
        &'t self,
        handle: Handle,
        prefetch: impl FnOnce(&Narrow<'t>),
    ) -> Option<(u32, usize)> {
        let leaf = self.locator.get(handle);
        if leaf == NONE {
            return None;
        }
        self.prefetch_sum_of(leaf);
        let entries = self.leaves.columns(leaf);
        if let Some(block) = entries.block() {
            prefetch(&block);
        }
        Some((leaf, entries.find(handle).expect(LOCATED)))
    }

    /// Prefetches what the entries before a leaf are counted by in its parent.
    #[inline]
    pub(super) fn prefetch_sum_of(&self, leaf: u32) {
        let meta = self.leaves.meta(leaf);
        if meta.parent != NONE {
            self.inners.prefetch_sum(meta.parent, usize::from(meta.slot));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes_by_part().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Heap memory of each part, by its name.
    #[inline]
    pub(super) fn bytes_by_part(&self) -> [(&'static str, usize); 4] {
        let scratch = self.order_scratch.capacity() * size_of::<(u64, u32)>();
        [
            ("leaves", self.leaves.bytes()),
            ("inner nodes", self.inners.bytes()),
            ("locator", self.locator.bytes()),
            ("due to the disk", self.capture.bytes() + scratch),
        ]
    }

    pub(super) fn leaf_count(&self) -> usize {
        self.leaves.allocated as usize - self.leaves.free.len()
    }

    #[inline]
    pub(super) fn prefetch_locator(&self, handle: Handle) {
        self.locator.prefetch(handle);
    }

    #[inline]
    pub(super) fn prefetch_entry(&self, handle: Handle) {
        let leaf = self.locator.get(handle);
        if leaf != NONE {
            self.prefetch_leaf(leaf);
        }
    }
}
