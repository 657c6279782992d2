//! Inner nodes: for each child its exact first entry, its id and how many entries are below it.
//!
//! Knows the format. Must not know when nodes split or merge. Not persisted: derived from the leaves on load.
//!
//! ```text
//! words  | column 0 of separators: n | column 1 ... |
//! ids    | handles of separators: n | children: n | counts: n | addresses: n |
//! ```
//!
//! Addresses are those of children that are leaves. With its count, a child's address is all that a search
//! needs to go on in a leaf: it does not wait for the leaf's metadata, which is somewhere else in memory.
//!
//! A count takes 32 bits: an entry is a handle's only one, and there are fewer than 2^32 handles.
//!
//! A separator is the child's first entry, exactly: a handle that left the tree may be given to another
//! member, whose id would then compare differently.

use super::arena::Blocks;
use super::columns::{Columns, find};
use super::leaf::NONE;
use super::leaf_address::LeafAddress;
use super::prefetch;
use super::words::{Handle, Words};

/// The arrays of `ids`.
const ARRAYS: usize = 4;
const HANDLES: usize = 0;
const CHILDREN: usize = 1;
const COUNTS: usize = 2;
const ADDRESSES: usize = 3;

#[derive(Clone, Copy, Default)]
pub(super) struct InnerMeta {
    pub(super) parent: u32,
    /// Children.
    pub(super) len: u16,
    /// The last known slot of this node in its parent. A hint: checked before use.
    pub(super) slot: u8,
    /// 1 when the children are leaves.
    pub(super) level: u8,
}

pub(super) struct InnerNodes<const N: usize> {
    pub(super) words: Blocks<u64>,
    pub(super) ids: Blocks<u32>,
    meta: Blocks<InnerMeta>,
    free: Vec<u32>,
    allocated: u32,
}

impl<const N: usize> InnerNodes<N> {
    pub(super) fn new(columns: usize) -> Self {
        const { assert!(N >= 4 && N <= 256, "a slot fits a byte, and halves of a split node have two children") };
        Self {
            words: Blocks::new(columns * N),
            ids: Blocks::new(ARRAYS * N),
            meta: Blocks::new(1),
            free: Vec::new(),
            allocated: 0,
        }
    }

    #[inline]
    pub(super) fn meta(&self, node: u32) -> &InnerMeta {
        self.meta.one(node)
    }

    #[inline]
    pub(super) fn meta_mut(&mut self, node: u32) -> &mut InnerMeta {
        self.meta.one_mut(node)
    }

    #[inline]
    pub(super) fn len(&self, node: u32) -> usize {
        usize::from(self.meta(node).len)
    }

    #[inline]
    fn array(&self, node: u32, nth: usize) -> &[u32; N] {
        self.ids.array(node, ARRAYS, nth)
    }

    /// The first entries of the children.
    #[inline]
    pub(super) fn separators(&self, node: u32) -> Columns<'_> {
        Columns::new(self.words.get(node), &self.array(node, HANDLES)[..self.len(node)], N)
    }

    /// The entries below each child.
    #[inline]
    pub(super) fn counts(&self, node: u32) -> &[u32] {
        &self.array(node, COUNTS)[..self.len(node)]
    }

    /// The entries below the first `children` children of a node. Summed in 32 bits, which hold those of the
    /// whole tree: half as many instructions as in 64.
    #[inline]
    pub(super) fn sum_before(&self, node: u32, children: usize) -> u64 {
        u64::from(self.counts(node)[..children].iter().sum::<u32>())
    }

    /// The entries below a node.
    pub(super) fn sum(&self, node: u32) -> u32 {
        self.counts(node).iter().sum()
    }

    /// The counts of a node, and those of slots that it does not use. It is known without its length.
    pub(super) fn all_counts(&self, node: u32) -> &[u32; N] {
        self.array(node, COUNTS)
    }

    #[inline]
    pub(super) fn count_mut(&mut self, node: u32, slot: usize) -> &mut u32 {
        &mut self.ids.array_mut::<N>(node, ARRAYS, COUNTS)[slot]
    }

    /// Where the entries of a child are that is a leaf.
    #[inline]
    pub(super) fn address(&self, node: u32, slot: usize) -> LeafAddress {
        LeafAddress(self.array(node, ADDRESSES)[slot])
    }

    #[inline]
    pub(super) fn set_address(&mut self, node: u32, slot: usize, address: LeafAddress) {
        self.ids.array_mut::<N>(node, ARRAYS, ADDRESSES)[slot] = address.0;
    }

    #[inline]
    pub(super) fn children(&self, node: u32) -> &[u32] {
        &self.array(node, CHILDREN)[..self.len(node)]
    }

    #[inline]
    pub(super) fn child(&self, node: u32, slot: usize) -> u32 {
        self.array(node, CHILDREN)[slot]
    }

    #[inline]
    pub(super) fn set_child(&mut self, node: u32, slot: usize, child: u32) {
        self.ids.array_mut::<N>(node, ARRAYS, CHILDREN)[slot] = child;
    }

    /// Sets the first entry of a child.
    pub(super) fn set_separator(&mut self, node: u32, slot: usize, words: &Words, handle: Handle) {
        for (column, &word) in self.words.get_mut(node).chunks_exact_mut(N).zip(words.as_slice()) {
            column[slot] = word;
        }
        self.ids.array_mut::<N>(node, ARRAYS, HANDLES)[slot] = handle.0;
    }

    /// Where `child` is among the children of `node`, trying `hint` first.
    #[inline]
    pub(super) fn slot_of(&self, node: u32, child: u32, hint: u8) -> usize {
        let hint = usize::from(hint);
        if hint < self.len(node) && self.child(node, hint) == child {
            return hint;
        }
        self.slot_beside(node, child, hint)
    }

    /// One further, or one less, where one child has come or gone since the hint was noted.
    #[cold]
    fn slot_beside(&self, node: u32, child: u32, hint: usize) -> usize {
        let children = self.children(node);
        let is_child = |slot: &usize| children.get(*slot) == Some(&child);
        let beside = [hint + 1, hint.wrapping_sub(1)].into_iter().find(is_child);
        beside.or_else(|| find(children, child)).expect("a node is among its parent's children")
    }

    /// Prefetches a child's id and count.
    #[inline]
    pub(super) fn prefetch_slot(&self, node: u32, slot: usize) {
        let slot = slot.min(N - 1);
        prefetch::line_of(&self.array(node, CHILDREN)[slot]);
        prefetch::line_of(&self.array(node, COUNTS)[slot]);
    }

    /// Prefetches what the entries before a child are counted by.
    #[inline]
    pub(super) fn prefetch_sum(&self, node: u32, slot: usize) {
        let slot = slot.min(N - 1);
        prefetch::line_of(&self.array(node, CHILDREN)[slot]);
        prefetch::lines_of(&self.array(node, COUNTS)[..slot]);
        prefetch::line_of(self.meta(node));
    }

    /// Prefetches all that a search by the first word, and the counts before what it finds, may touch. The
    /// node's length is not needed for it.
    ///
    /// # Arguments
    /// `height`: of the node above the leaves.
    #[inline]
    pub(super) fn prefetch(&self, node: u32, height: u8) {
        prefetch::line_of(self.meta(node));
        prefetch::lines_of(&self.words.get(node)[..N]);
        // Counts, with addresses or children beside them.
        let from = if height == 1 { COUNTS } else { CHILDREN };
        prefetch::lines_of(&self.ids.get(node)[from * N..(from + 2) * N]);
    }

    /// Prefetches all that a search by counts may touch.
    #[inline]
    pub(super) fn prefetch_counts(&self, node: u32) {
        prefetch::line_of(self.meta(node));
        prefetch::lines_of(&self.ids.get(node)[CHILDREN * N..(COUNTS + 1) * N]);
    }

    pub(super) fn allocate(&mut self, level: u8) -> u32 {
        let node = self.free.pop().unwrap_or_else(|| {
            self.allocated += 1;
            self.allocated - 1
        });
        self.words.ensure(node);
        self.ids.ensure(node);
        self.meta.ensure(node);
        *self.meta_mut(node) = InnerMeta { parent: NONE, len: 0, slot: 0, level };
        node
    }

    pub(super) fn release(&mut self, node: u32) {
        self.meta_mut(node).len = 0;
        self.free.push(node);
    }

    /// Nodes in use.
    pub(super) fn in_use(&self) -> usize {
        self.allocated as usize - self.free.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.bytes() + self.ids.bytes() + self.meta.bytes() + self.free.capacity() * size_of::<u32>()
    }
}
