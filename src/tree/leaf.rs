//! Leaves: they hold the entries. Each is a page of the checkpoint.
//!
//! Knows a leaf's format and which leaf ids are free. Must not know the inner nodes, or where a handle is.

use super::arena::Blocks;
use super::columns::Columns;

/// No node: the parent of the root, the leaf of an absent handle.
pub(super) const NONE: u32 = u32::MAX;

/// Metadata of a leaf. Eight bytes, so that those of ten million entries stay in the second-level cache.
#[derive(Clone, Copy, Default)]
pub(super) struct LeafMeta {
    pub(super) parent: u32,
    /// Entries; 0 in free leaves, and in the root of an empty tree.
    pub(super) len: u16,
    /// The last known slot of this leaf in its parent. A hint: checked before use.
    pub(super) slot: u8,
    /// See `capture`.
    pub(super) marks: u8,
}

pub(super) struct Leaves<const N: usize> {
    /// `columns * N` per leaf.
    pub(super) words: Blocks<u64>,
    /// `N` per leaf.
    pub(super) handles: Blocks<u32>,
    meta: Blocks<LeafMeta>,
    /// Ids below `allocated` that are not in use.
    pub(super) free: Vec<u32>,
    /// One past the highest id ever used.
    pub(super) allocated: u32,
}

impl<const N: usize> Leaves<N> {
    pub(super) fn new(columns: usize) -> Self {
        const { assert!(N >= 4 && N <= 1 << 15, "leaves split into two that can still lend an entry") };
        Self {
            words: Blocks::new(columns * N),
            handles: Blocks::new(N),
            meta: Blocks::new(1),
            free: Vec::new(),
            allocated: 0,
        }
    }

    #[inline]
    pub(super) fn meta(&self, leaf: u32) -> &LeafMeta {
        &self.meta.get(leaf)[0]
    }

    #[inline]
    pub(super) fn meta_mut(&mut self, leaf: u32) -> &mut LeafMeta {
        &mut self.meta.get_mut(leaf)[0]
    }

    #[inline]
    pub(super) fn len(&self, leaf: u32) -> usize {
        usize::from(self.meta(leaf).len)
    }

    #[inline]
    pub(super) fn columns(&self, leaf: u32) -> Columns<'_> {
        Columns::new(self.words.get(leaf), &self.handles.get(leaf)[..self.len(leaf)], N)
    }

    /// A leaf without entries. Its marks are those it had when it was last in use.
    pub(super) fn allocate(&mut self) -> u32 {
        let leaf = self.free.pop().unwrap_or_else(|| {
            self.allocated += 1;
            self.allocated - 1
        });
        self.ensure(leaf);
        leaf
    }

    /// Allocates a leaf's memory. Metadata exists for every id below `allocated`, memory only for leaves that
    /// were used: a loaded tree may have holes.
    pub(super) fn ensure(&mut self, leaf: u32) {
        self.words.ensure(leaf);
        self.handles.ensure(leaf);
        self.meta.ensure(leaf);
    }

    /// Takes ids up to `allocated` as given out; those that are not in use are to be put in `free`.
    pub(super) fn set_allocated(&mut self, allocated: u32) {
        self.allocated = allocated;
        for leaf in 0..allocated {
            self.meta.ensure(leaf);
        }
    }

    pub(super) fn release(&mut self, leaf: u32) {
        self.meta_mut(leaf).len = 0;
        self.free.push(leaf);
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
            + self.handles.bytes()
            + self.meta.bytes()
            + self.free.capacity() * size_of::<u32>()
    }
}
