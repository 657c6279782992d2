//! Entries that divide a tree into runs of nearly equal length, found without a search for each.
//!
//! Knows how to read indexes off the counts of inner nodes: a node with few entries below it is passed over
//! whole. Must not know what the entries are wanted for.

use super::large::LargeTree;
use super::prefetch;
use super::words::{Handle, Words};

/// How many children ahead the counts of a node are prefetched.
const LOOK_AHEAD: usize = 2;

/// A walk from the first entry to the last one.
struct Outline<'a, const LEAF: usize, const INNER: usize> {
    tree: &'a LargeTree<LEAF, INNER>,
    /// No run is longer.
    depth: u64,
    /// Index of the last entry that was visited; at first that of the first entry, which is not.
    last: u64,
}

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    pub(super) fn outline(&self, depth: u64, visit: &mut dyn FnMut(u64, Handle, Words)) {
        let mut outline = Outline { tree: self, depth: depth.max(1), last: 0 };
        outline.walk(self.root, self.height, 0, visit);
    }
}

impl<const LEAF: usize, const INNER: usize> Outline<'_, LEAF, INNER> {
    /// # Arguments
    /// `height`: of the node above the leaves. `start`: entries before it.
    fn walk(&mut self, node: u32, height: u8, start: u64, visit: &mut dyn FnMut(u64, Handle, Words)) {
        let tree = self.tree;
        if height == 0 {
            return self.walk_leaf(node, start, visit);
        }
        let (counts, separators) = (tree.inners.counts(node), tree.inners.separators(node));
        let mut begin = start;
        for (slot, &count) in counts.iter().enumerate() {
            let count = u64::from(count);
            if count > self.depth {
                if height > 1
                    && counts.get(slot + LOOK_AHEAD).is_some_and(|ahead| u64::from(*ahead) > self.depth)
                {
                    tree.prefetch_counts(tree.inners.child(node, slot + LOOK_AHEAD));
                }
                self.walk(tree.inners.child(node, slot), height - 1, begin, visit);
            } else if begin + count - self.last > self.depth {
                // With this child the run would be too long, so the next one begins before it.
                self.last = begin;
                visit(begin, separators.handle(slot), separators.words(slot));
            }
            begin += count;
        }
    }

    /// A leaf that is longer than a run.
    fn walk_leaf(&mut self, leaf: u32, start: u64, visit: &mut dyn FnMut(u64, Handle, Words)) {
        let entries = self.tree.leaves.columns(leaf);
        let end = start + entries.len() as u64;
        while end - self.last > self.depth {
            self.last += self.depth;
            let at = (self.last - start) as usize;
            visit(self.last, entries.handle(at), entries.words(at));
        }
    }
}

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    fn prefetch_counts(&self, node: u32) {
        prefetch::lines_of(self.inners.all_counts(node));
    }
}
