//! Inserts and removes one entry: its place within a leaf, and the counts and separators above it.
//!
//! Must not know how nodes split and merge; asks `rebalance` for room, and tells it when a leaf is short.

use super::large::LargeTree;
use super::leaf::NONE;
use super::words::{Handle, MemberOrder};

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    /// A leaf with fewer entries than this takes entries from a sibling, or merges with it, unless it is of a
    /// run; see `rebalance`.
    pub(super) const LEAF_MIN: usize = LEAF / 2;

    /// Adds an entry to its leaf. If that is full, makes room, and adds the entry to the leaf that it then
    /// belongs to. `guess` mostly is the place in the leaf.
    #[inline]
    pub(super) fn insert_near(
        &mut self,
        (mut leaf, mut guess): (u32, usize),
        words: &[u64],
        handle: Handle,
        order: &impl MemberOrder,
    ) {
        assert!(words.len() == self.columns, "an entry has one word per column");
        if self.leaves.len(leaf) == LEAF {
            let entries = self.leaves.columns(leaf);
            guess = entries.entries_before_near(guess, words, |other| order.compare(words, other, handle));
            if let Some(next) = self.part_behind_run((leaf, guess), words, handle) {
                (leaf, guess) = next;
            } else {
                self.make_room(leaf);
                leaf = self.leaf_for(words, handle, order);
            }
        }
        self.touch(leaf);
        let entries = self.leaves.columns(leaf);
        let at = entries.entries_before_near(guess, words, |other| order.compare(words, other, handle));
        self.leaves.insert(leaf, at, words, handle);
        self.note_addresses();
        self.locator.set(handle, leaf);

        self.len += 1;
        self.count_up(leaf, |count| count + 1);
        if at == 0 {
            self.refresh_separator(leaf);
        }
    }

    /// Removes entry `at` from a leaf. The locator still names it.
    #[inline]
    pub(super) fn remove_at(&mut self, leaf: u32, at: usize) {
        self.touch(leaf);
        let len = self.leaves.len(leaf);
        self.leaves.remove(leaf, at);

        self.len -= 1;
        self.count_up(leaf, |count| count - 1);
        if len - 1 < Self::LEAF_MIN {
            self.refill_leaf(leaf);
        } else if at == 0 {
            self.refresh_separator(leaf);
        }
    }

    /// Changes the count of the leaf, and of every node above it, in its parent.
    #[inline]
    fn count_up(&mut self, leaf: u32, change: impl Fn(u32) -> u32) {
        let mut parent = self.leaves.meta(leaf).parent;
        if parent == NONE {
            return;
        }
        let slot = self.leaf_slot(leaf, parent);
        let count = self.inners.count_mut(parent, slot);
        *count = change(*count);
        let mut child = parent;
        parent = self.inners.meta(parent).parent;
        while parent != NONE {
            let slot = self.inner_slot(child, parent);
            let count = self.inners.count_mut(parent, slot);
            *count = change(*count);
            (child, parent) = (parent, self.inners.meta(parent).parent);
        }
    }

    /// The leaf's slot in its parent. Stores it as a hint for the next call.
    #[inline]
    pub(super) fn leaf_slot(&mut self, leaf: u32, parent: u32) -> usize {
        let hint = self.leaves.meta(leaf).slot;
        let slot = self.inners.slot_of(parent, leaf, hint);
        if slot != usize::from(hint) {
            self.leaves.meta_mut(leaf).slot = slot as u8;
        }
        slot
    }

    /// The inner node's slot in its parent. Stores it as a hint for the next call.
    #[inline]
    pub(super) fn inner_slot(&mut self, node: u32, parent: u32) -> usize {
        let hint = self.inners.meta(node).slot;
        let slot = self.inners.slot_of(parent, node, hint);
        if slot != usize::from(hint) {
            self.inners.meta_mut(node).slot = slot as u8;
        }
        slot
    }

    /// Tells the parents of leaves whose blocks have moved where they are now. For whoever may have given a
    /// leaf another block, or taken one from it, as soon as each leaf is among its parent's children.
    #[inline]
    pub(super) fn note_addresses(&mut self) {
        if !self.leaves.moved.is_empty() {
            self.note_all_addresses();
        }
    }

    #[cold]
    #[inline(never)]
    fn note_all_addresses(&mut self) {
        while let Some(leaf) = self.leaves.moved.pop() {
            let (address, parent) = (self.leaves.address(leaf), self.leaves.meta(leaf).parent);
            if parent != NONE {
                let slot = self.leaf_slot(leaf, parent);
                self.inners.set_address(parent, slot, address);
            }
        }
    }

    /// Updates the separators above a leaf, which must not be empty, to its first entry.
    pub(super) fn refresh_separator(&mut self, leaf: u32) {
        let entries = self.leaves.columns(leaf);
        let (handle, words) = (entries.handle(0), entries.words(0));
        let mut parent = self.leaves.meta(leaf).parent;
        if parent == NONE {
            return;
        }
        let mut slot = self.leaf_slot(leaf, parent);
        loop {
            self.inners.set_separator(parent, slot, &words, handle);
            let above = self.inners.meta(parent).parent;
            if slot > 0 || above == NONE {
                return;
            }
            slot = self.inner_slot(parent, above);
            parent = above;
        }
    }
}
