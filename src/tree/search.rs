//! Rank and select: from keys to counts and from counts to entries. Changes nothing.
//!
//! Knows how to go down by key or by count and up by parent. Must not know how nodes come to be.

use std::cmp::Ordering;

use super::columns::Columns;
use super::cursor::Cursor;
use super::large::LargeTree;
use super::leaf::NONE;
use super::prefetch;
use super::words::{Handle, MemberOrder, Words};

/// Levels of inner nodes from which on the lowest ones are prefetched: there are tens of them, of a few KB
/// each, and thousands in a tree of ten million entries.
const COLD_HEIGHT: u8 = 3;

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    pub(super) fn count_below(&self, prefix: &[u64]) -> u64 {
        self.count(|node| node.equal_range(prefix).0)
    }

    pub(super) fn count_through(&self, prefix: &[u64]) -> u64 {
        self.count(|node| node.equal_range(prefix).1)
    }

    pub(super) fn count_range(&self, prefix: &[u64]) -> (u64, u64) {
        let mut node = self.root;
        let mut counted = 0;
        for height in (0..self.height).rev() {
            let (below, through) = self.inners.separators(node).equal_range(prefix);
            if below != through || below == 0 {
                // The first and the last such entry are in different children: two ways down from here.
                let below = self.count_within(node, below, height, |node| node.equal_range(prefix).0);
                let through = self.count_within(node, through, height, |node| node.equal_range(prefix).1);
                return (counted + below, counted + through);
            }
            counted += self.inners.sum_before(node, below - 1);
            if height == 0 {
                let (below, through) = self.entries_of_child(node, below - 1).equal_range(prefix);
                return (counted + below as u64, counted + through as u64);
            }
            node = self.inners.child(node, below - 1);
            self.prefetch_if_cold(node, height);
        }
        // The only leaf.
        let (below, through) = self.leaves.columns(node).equal_range(prefix);
        (below as u64, through as u64)
    }

    pub(super) fn count_before(&self, words: &[u64], compare: &mut dyn FnMut(Handle) -> Ordering) -> u64 {
        self.count(|node| node.entries_before(words, &mut *compare))
    }

    /// Counts the entries before a position. `before` returns how many entries of a node are before it.
    #[inline]
    fn count(&self, before: impl FnMut(Columns<'_>) -> usize) -> u64 {
        self.count_from(self.root, self.height, before)
    }

    /// As `count`, below an inner node of which the first `end` children begin before the position.
    pub(super) fn count_within(
        &self,
        node: u32,
        end: usize,
        height: u8,
        mut before: impl FnMut(Columns<'_>) -> usize,
    ) -> u64 {
        let Some(slot) = end.checked_sub(1) else { return 0 };
        let passed = self.inners.sum_before(node, slot);
        if height == 0 {
            return passed + before(self.entries_of_child(node, slot)) as u64;
        }
        passed + self.count_from(self.inners.child(node, slot), height, before)
    }

    /// As `count`, below a node that is `height` levels above the leaves.
    #[inline]
    fn count_from(&self, mut node: u32, height: u8, mut before: impl FnMut(Columns<'_>) -> usize) -> u64 {
        let mut counted = 0;
        for height in (0..height).rev() {
            // All of the child whose first entry is not before the place comes after it, and so do later
            // ones.
            let Some(slot) = before(self.inners.separators(node)).checked_sub(1) else { return counted };
            counted += self.inners.sum_before(node, slot);
            if height == 0 {
                return counted + before(self.entries_of_child(node, slot)) as u64;
            }
            node = self.inners.child(node, slot);
            self.prefetch_if_cold(node, height);
        }
        // The only leaf.
        before(self.leaves.columns(node)) as u64
    }

    /// The entries of a leaf, of which its parent says where they are and how many. Asks for its first
    /// column: a search in a cold leaf would wait for one line after the other.
    #[inline]
    pub(super) fn entries_of_child(&self, node: u32, slot: usize) -> Columns<'_> {
        let len = self.inners.counts(node)[slot] as usize;
        let known = self.leaves.columns_at(self.inners.address(node, slot), len);
        let entries = known.unwrap_or_else(|| self.leaves.columns(self.inners.child(node, slot)));
        if let Some(block) = entries.block() {
            block.prefetch_first_column();
        }
        entries
    }

    pub(super) fn select(&self, index: u64) -> Option<(Handle, Words)> {
        if index >= self.len {
            return None;
        }
        let (leaf, at) = self.leaf_at(index);
        let entries = self.leaves.columns(leaf);
        Some((entries.handle(at), entries.words(at)))
    }

    pub(super) fn cursor_at(&self, index: u64) -> Cursor<'_, LEAF, INNER> {
        let (leaf, at) = self.leaf_at(index.min(self.len));
        Cursor::new(self, leaf, at)
    }

    /// The leaf that holds `index`, at most `len`, and the place in it; `len` is behind the last entry.
    fn leaf_at(&self, index: u64) -> (u32, usize) {
        let mut node = self.root;
        let mut rest = index;
        for height in (0..self.height).rev() {
            let counts = self.inners.counts(node);
            let mut slot = 0;
            while slot + 1 < counts.len() && rest >= u64::from(counts[slot]) {
                rest -= u64::from(counts[slot]);
                slot += 1;
            }
            node = self.inners.child(node, slot);
            if self.is_cold(height) {
                self.inners.prefetch_counts(node);
            }
        }
        (node, rest as usize)
    }

    /// The leaf that the entry belongs in.
    #[inline]
    pub(super) fn leaf_for(&self, words: &[u64], handle: Handle, order: &impl MemberOrder) -> u32 {
        let mut node = self.root;
        for _ in 0..self.height {
            let slot = Self::slot_among(&self.inners.separators(node), words, handle, order);
            node = self.inners.child(node, slot);
        }
        node
    }

    /// The slot of the child that the entry belongs in: the last one whose first entry is not after it.
    #[inline]
    pub(super) fn slot_among(
        separators: &Columns<'_>,
        words: &[u64],
        handle: Handle,
        order: &impl MemberOrder,
    ) -> usize {
        let before = separators.entries_before(words, |other| order.compare(words, other, handle));
        before.saturating_sub(1)
    }

    /// The leaf after this one, or [`NONE`].
    pub(super) fn next_leaf(&self, leaf: u32) -> u32 {
        self.neighbour(leaf, |slot, len| (slot + 1 < len).then_some(slot + 1), |_| 0)
    }

    /// The leaf before this one, or [`NONE`].
    pub(super) fn previous_leaf(&self, leaf: u32) -> u32 {
        self.neighbour(leaf, |slot, _| slot.checked_sub(1), |len| len - 1)
    }

    /// Walks up until `step` finds a sibling, and then down along the children that `edge` selects.
    fn neighbour(
        &self,
        leaf: u32,
        step: impl Fn(usize, usize) -> Option<usize>,
        edge: impl Fn(usize) -> usize,
    ) -> u32 {
        let meta = self.leaves.meta(leaf);
        let (mut child, mut parent, mut hint) = (leaf, meta.parent, meta.slot);
        let mut levels_up = 0;
        while parent != NONE {
            let slot = self.inners.slot_of(parent, child, hint);
            if let Some(slot) = step(slot, self.inners.len(parent)) {
                let mut node = self.inners.child(parent, slot);
                for _ in 0..levels_up {
                    node = self.inners.child(node, edge(self.inners.len(node)));
                }
                return node;
            }
            let meta = self.inners.meta(parent);
            (child, parent, hint) = (parent, meta.parent, meta.slot);
            levels_up += 1;
        }
        NONE
    }

    /// Asks for all that an edit in this leaf touches.
    #[inline]
    pub(super) fn prefetch_leaf(&self, leaf: u32) {
        if let Some(block) = self.leaves.columns(leaf).block() {
            block.prefetch();
        }
    }

    /// Asks for all that a count touches in an inner node: a search would wait for one line after the other.
    #[inline]
    fn prefetch_if_cold(&self, node: u32, height: u8) {
        if self.is_cold(height) {
            self.inners.prefetch(node, height);
        }
    }

    /// Whether the cache seldom has the nodes of a level: those of the level above the leaves, in a large
    /// tree. Of the levels above there are few nodes, of which all are used often.
    #[inline]
    fn is_cold(&self, height: u8) -> bool {
        height == 1 && self.height >= COLD_HEIGHT
    }

    /// Asks for what a search in this node touches first.
    ///
    /// # Arguments
    /// `is_tied`: whether the node begins with the first word that is sought, so that the second one decides.
    #[inline]
    pub(super) fn prefetch_inner(&self, node: u32, is_tied: bool) {
        let (words, len) = (self.inners.words.get(node), self.inners.len(node));
        prefetch::lines_of(&words[..len]);
        if is_tied && let Some(second) = words.get(INNER..INNER + len) {
            prefetch::lines_of(second);
        }
        prefetch::lines_of(self.inners.children(node));
    }
}
