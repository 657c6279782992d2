//! A cursor between two entries, which can walk in both directions.

use super::columns::Columns;
use super::large::LargeTree;
use super::leaf::NONE;
use super::words::{Handle, Words};

/// A place between two entries. Forward as an iterator, backward with [`Cursor::prev`]; O(1) a step on
/// average.
#[derive(Clone)]
pub struct Cursor<'a, const LEAF: usize, const INNER: usize> {
    /// The tree that the leaf belongs to; `None` if the leaf is the only one.
    tree: Option<&'a LargeTree<LEAF, INNER>>,
    leaf: u32,
    entries: Columns<'a>,
    /// Entries of the leaf that are before the place.
    at: usize,
}

impl<'a, const LEAF: usize, const INNER: usize> Cursor<'a, LEAF, INNER> {
    pub(super) fn new(tree: &'a LargeTree<LEAF, INNER>, leaf: u32, at: usize) -> Self {
        Self { tree: Some(tree), leaf, entries: tree.leaves.columns(leaf), at }
    }

    /// A cursor over a tree of one leaf.
    pub(super) fn over(entries: Columns<'a>, at: usize) -> Self {
        Self { tree: None, leaf: NONE, entries, at }
    }

    #[cfg(test)]
    pub(super) fn leaf(&self) -> u32 {
        self.leaf
    }

    /// Moves back over an entry, and returns it.
    pub fn prev(&mut self) -> Option<(Handle, Words)> {
        if self.at == 0 {
            let tree = self.tree?;
            self.enter(tree, tree.previous_leaf(self.leaf))?;
            self.at = self.entries.len();
        }
        self.at -= 1;
        Some((self.entries.handle(self.at), self.entries.words(self.at)))
    }

    fn enter(&mut self, tree: &'a LargeTree<LEAF, INNER>, leaf: u32) -> Option<()> {
        if leaf == NONE {
            return None;
        }
        self.leaf = leaf;
        self.entries = tree.leaves.columns(leaf);
        Some(())
    }
}

impl<const LEAF: usize, const INNER: usize> Iterator for Cursor<'_, LEAF, INNER> {
    type Item = (Handle, Words);

    /// Moves forward over an entry, and returns it.
    fn next(&mut self) -> Option<(Handle, Words)> {
        if self.at == self.entries.len() {
            let tree = self.tree?;
            self.enter(tree, tree.next_leaf(self.leaf))?;
            self.at = 0;
        }
        let entry = (self.entries.handle(self.at), self.entries.words(self.at));
        self.at += 1;
        Some(entry)
    }
}
