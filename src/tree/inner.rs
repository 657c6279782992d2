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
            ids: Blocks::new(4 * N),
            meta: Blocks::new(1),
            free: Vec::new(),
            allocated: 0,
        }
    }

    #[inline]
    pub(super) fn meta(&self, node: u32) -> &InnerMeta {
        &self.meta.get(node)[0]
    }

    #[inline]
    pub(super) fn meta_mut(&mut self, node: u32) -> &mut InnerMeta {
        &mut self.meta.get_mut(node)[0]
    }

    #[inline]
    pub(super) fn len(&self, node: u32) -> usize {
        usize::from(self.meta(node).len)
    }

    /// The first entries of the children.
    #[inline]
    pub(super) fn separators(&self, node: u32) -> Columns<'_> {
        Columns::new(self.words.get(node), &self.ids.get(node)[..self.len(node)], N)
    }

    /// The entries below each child.
    #[inline]
    pub(super) fn counts(&self, node: u32) -> &[u32] {
        &self.ids.get(node)[2 * N..][..self.len(node)]
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
    pub(super) fn all_counts(&self, node: u32) -> &[u32] {
        &self.ids.get(node)[2 * N..3 * N]
    }

    #[inline]
    pub(super) fn count_mut(&mut self, node: u32, slot: usize) -> &mut u32 {
        &mut self.ids.get_mut(node)[2 * N + slot]
    }

    /// Where the entries of a child are that is a leaf.
    #[inline]
    pub(super) fn address(&self, node: u32, slot: usize) -> LeafAddress {
        LeafAddress(self.ids.get(node)[3 * N + slot])
    }

    #[inline]
    pub(super) fn set_address(&mut self, node: u32, slot: usize, address: LeafAddress) {
        self.ids.get_mut(node)[3 * N + slot] = address.0;
    }

    #[inline]
    pub(super) fn children(&self, node: u32) -> &[u32] {
        &self.ids.get(node)[N..][..self.len(node)]
    }

    #[inline]
    pub(super) fn child(&self, node: u32, slot: usize) -> u32 {
        self.ids.get(node)[N + slot]
    }

    /// Where `child` is among the children of `node`, trying `hint` first.
    #[inline]
    pub(super) fn slot_of(&self, node: u32, child: u32, hint: u8) -> usize {
        let hint = usize::from(hint);
        if hint < self.len(node) && self.child(node, hint) == child {
            return hint;
        }
        find(self.children(node), child).expect("a node is among its parent's children")
    }

    /// Prefetches a child's id and count.
    #[inline]
    pub(super) fn prefetch_slot(&self, node: u32, slot: usize) {
        let slot = slot.min(N - 1);
        prefetch::line_of(&self.ids.get(node)[N + slot]);
        prefetch::line_of(&self.ids.get(node)[2 * N + slot]);
    }

    /// Prefetches what the entries before a child are counted by.
    #[inline]
    pub(super) fn prefetch_sum(&self, node: u32, slot: usize) {
        let (ids, slot) = (self.ids.get(node), slot.min(N - 1));
        prefetch::line_of(&ids[N + slot]);
        prefetch::lines_between(ids, 2 * N, 2 * N + slot);
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
        let from = if height == 1 { 2 * N } else { N };
        prefetch::lines_of(&self.ids.get(node)[from..from + 2 * N]);
    }

    /// Prefetches all that a search by counts may touch.
    #[inline]
    pub(super) fn prefetch_counts(&self, node: u32) {
        prefetch::line_of(self.meta(node));
        prefetch::lines_of(&self.ids.get(node)[N..3 * N]);
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
