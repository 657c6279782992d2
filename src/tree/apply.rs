//! A batch of edits at once: the hot path.
//!
//! In a tree of ten million entries nearly every leaf is a cache miss, and misses are most of an edit's cost. So edits
//! go in groups: each level is asked for, for the whole group, before any of the group is worked on, and the misses of
//! a group overlap. Sorting by the new words lets neighbours share nodes.
//!
//! Must not know how an entry is put in or taken out; that is `edit`.

use super::columns::rotate;
use super::leaf::NONE;
use super::prefetch;
use super::state::Tree;
use super::words::{Edit, MemberOrder, Words};

/// Edits whose misses overlap. A core follows one to two dozen misses at once; more only pushes out lines of the first.
const GROUP: usize = 16;

impl<const LEAF: usize, const INNER: usize> Tree<LEAF, INNER> {
    /// Takes the present entry of every edit's handle out, then puts the new ones in. A handle may be in at most one
    /// edit; it need not be in the tree.
    ///
    /// All old entries go before any new one comes, so a handle freed and given to another member in the same batch
    /// is compared only as what it is now: `order` answers for the state after the batch.
    ///
    /// O(log n) an edit; a score update in a tree of ten million entries costs well below a microsecond in batches of
    /// a thousand.
    ///
    /// # Panics
    /// When new words are not `columns` many.
    pub fn apply(&mut self, edits: &[Edit], order: &impl MemberOrder) {
        let mut arriving = std::mem::take(&mut self.order_scratch);
        arriving.clear();
        self.take_out_old(edits, &mut arriving);
        arriving.sort_unstable();
        self.put_in_new(edits, &arriving, order);
        self.order_scratch = arriving;
    }

    /// Collects the edits that still have to be put in, as (first word, index of the edit).
    fn take_out_old(&mut self, edits: &[Edit], arriving: &mut Vec<(u64, u32)>) {
        let groups = edits.chunks(GROUP);
        let mut ahead = edits.chunks(GROUP).skip(1);
        if let Some(first) = edits.chunks(GROUP).next() {
            self.prefetch_old(first);
        }
        let mut index = 0;
        for group in groups {
            if let Some(next) = ahead.next() {
                self.prefetch_old(next);
            }
            for edit in group {
                if !self.take_out_or_move(edit)
                    && let Some(new) = &edit.new
                {
                    arriving.push((new.as_slice()[0], index));
                }
                index += 1;
            }
        }
    }

    fn prefetch_old(&self, group: &[Edit]) {
        for edit in group {
            self.locator.prefetch(edit.handle);
        }
        for edit in group {
            let leaf = self.locator.get(edit.handle);
            if leaf != NONE {
                self.prefetch_leaf(leaf);
            }
        }
    }

    /// Takes the old entry out, or moves it if its new place is in the same leaf; says whether it moved.
    #[inline]
    fn take_out_or_move(&mut self, edit: &Edit) -> bool {
        let Some((leaf, at)) = self.locate(edit.handle) else { return false };
        if let Some(new) = &edit.new {
            if self.move_within(leaf, at, new) {
                return true;
            }
            // The locator goes on naming the old leaf until the new one replaces it.
            self.take_out(leaf, at);
        } else {
            self.take_out(leaf, at);
            self.locator.remove(edit.handle);
        }
        false
    }

    /// Moves an entry whose new words lie between a leaf's first and last ones.
    ///
    /// Not if they equal another entry's: members can be compared only when all old entries are gone.
    #[inline]
    fn move_within(&mut self, leaf: u32, at: usize, new: &Words) -> bool {
        let entries = self.leaves.columns(leaf);
        let last = entries.len() - 1;
        let first_column = entries.column(0);
        let word = new.as_slice()[0];
        if word < first_column[0] || word > first_column[last] || at == 0 {
            return false;
        }
        let (low, high) = entries.equal_range(new.as_slice());
        // Places count the old entry too. Strictly inside, no separator changes, and no other leaf has these words.
        if low == 0 || high > last || (high > low && (high - low > 1 || low != at)) {
            return false;
        }
        assert!(new.as_slice().len() == self.columns, "an entry has one word per column");
        let to = if low > at { low - 1 } else { low };
        self.touch(leaf);
        let block = self.leaves.words.get_mut(leaf);
        rotate(block, LEAF, at, to);
        for (column, &word) in block.chunks_exact_mut(LEAF).zip(new.as_slice()) {
            column[to] = word;
        }
        rotate(self.leaves.handles.get_mut(leaf), LEAF, at, to);
        true
    }

    /// Puts in the new entries of `arriving`, which is in key order as far as first words tell.
    fn put_in_new(&mut self, edits: &[Edit], arriving: &[(u64, u32)], order: &impl MemberOrder) {
        let key = |&(_, index): &(u64, u32)| {
            let edit = &edits[index as usize];
            (edit.new.as_ref().expect("only edits with new words arrive"), edit.handle)
        };
        for group in arriving.chunks(GROUP) {
            let mut leaves = [self.root; GROUP];
            let leaves = &mut leaves[..group.len()];
            for level in (1..=self.height).rev() {
                for (node, item) in leaves.iter_mut().zip(group) {
                    let (words, handle) = key(item);
                    *node = self.child_for(*node, words.as_slice(), handle, order);
                    if level > 1 {
                        self.prefetch_inner(*node);
                    } else {
                        prefetch::line_of(self.leaves.meta(*node));
                    }
                }
            }
            for &leaf in &*leaves {
                self.prefetch_leaf(leaf);
            }
            // As long as no node splits or shares, the leaves found stay right: nothing is taken out meanwhile, and
            // what comes in changes no separator but that of the first leaf, which it lowers.
            let structure = self.structure;
            for (&found, item) in leaves.iter().zip(group) {
                let (words, handle) = key(item);
                let words = words.as_slice();
                let leaf =
                    if self.structure == structure { found } else { self.leaf_for(words, handle, order) };
                self.insert_at(leaf, words, handle, order);
            }
        }
    }
}
