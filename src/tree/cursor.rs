//! A place between two entries, from which both directions can be walked.

use super::leaf::NONE;
use super::state::Tree;
use super::words::{Handle, Words};

/// A place between two entries. Forward as an iterator, backward with [`Cursor::prev`]; O(1) a step on average.
#[derive(Clone)]
pub struct Cursor<'a, const LEAF: usize, const INNER: usize> {
    tree: &'a Tree<LEAF, INNER>,
    leaf: u32,
    /// Entries of the leaf that are before the place.
    at: usize,
}

impl<'a, const LEAF: usize, const INNER: usize> Cursor<'a, LEAF, INNER> {
    pub(super) fn new(tree: &'a Tree<LEAF, INNER>, leaf: u32, at: usize) -> Self {
        Self { tree, leaf, at }
    }

    #[cfg(test)]
    pub(super) fn leaf(&self) -> u32 {
        self.leaf
    }

    /// The entry before the place, which moves to before that entry.
    pub fn prev(&mut self) -> Option<(Handle, Words)> {
        if self.at == 0 {
            let before = self.tree.previous_leaf(self.leaf);
            if before == NONE {
                return None;
            }
            self.leaf = before;
            self.at = self.tree.leaves.len(before);
        }
        self.at -= 1;
        let entries = self.tree.leaves.columns(self.leaf);
        Some((entries.handle(self.at), entries.words(self.at)))
    }
}

impl<const LEAF: usize, const INNER: usize> Iterator for Cursor<'_, LEAF, INNER> {
    type Item = (Handle, Words);

    /// The entry after the place, which moves to behind that entry.
    fn next(&mut self) -> Option<(Handle, Words)> {
        if self.at == self.tree.leaves.len(self.leaf) {
            let after = self.tree.next_leaf(self.leaf);
            if after == NONE {
                return None;
            }
            self.leaf = after;
            self.at = 0;
        }
        let entries = self.tree.leaves.columns(self.leaf);
        let entry = (entries.handle(self.at), entries.words(self.at));
        self.at += 1;
        Some(entry)
    }
}
