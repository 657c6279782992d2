//! A batch of edits at once: the hot path.
//!
//! In a tree of ten million entries nearly every leaf is a cache miss, and misses are most of an edit's cost.
//! So edits are processed in groups: each level is prefetched for the whole group before any edit of the
//! group uses it, so the misses of a group overlap. Sorting by the new words lets neighbours share nodes.
//!
//! Must not know how an entry is inserted or removed; that is `edit`.

use super::capture::PreImagePieces;
use super::columns::Columns;
use super::large::{LOCATED, LargeTree};
use super::leaf::NONE;
use super::words::{Edit, Handle, MemberOrder, Words};

/// Edits whose misses overlap. A core follows one to two dozen misses at once; more only pushes out lines of
/// the first.
const GROUP: usize = 16;

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    pub(super) fn apply(&mut self, edits: &[Edit], order: &impl MemberOrder) {
        if let [edit] = edits {
            // There is nothing to overlap, and setting up a group would cost more than the edits.
            if !self.remove_or_move(edit, usize::MAX)
                && let Some(new) = &edit.new
            {
                let leaf = self.leaf_for(new.as_slice(), edit.handle, order);
                self.insert_near((leaf, usize::MAX), new.as_slice(), edit.handle, order);
            }
            return;
        }
        let mut arriving = std::mem::take(&mut self.order_scratch);
        arriving.clear();
        self.remove_old_entries(edits, &mut arriving);
        arriving.sort_unstable();
        self.insert_new_entries(edits, &arriving, order);
        self.order_scratch = arriving;
    }

    pub(super) fn warm<'e>(&self, edits: &'e [Edit], order: &impl MemberOrder, pieces: &mut PreImagePieces) {
        let groups = edits.len().div_ceil(GROUP);
        let mut found = [[NONE; GROUP]; 2];
        for step in 0..groups + 2 {
            let group = group_of(edits, step);
            for edit in group {
                self.locator.prefetch(edit.handle);
            }
            // A removal has no new words. Any words will do, as its leaf is found by the locator.
            let key = |edit: &'e Edit| edit.new.as_ref().map(|new| (new.as_slice(), edit.handle));
            let leaves = &mut found[step % 2];
            self.find_leaves(leaves, &group.iter().filter_map(key), order);
            for edit in group_before(edits, step, 1) {
                let leaf = self.locator.get(edit.handle);
                if leaf != NONE {
                    self.prefetch_old_leaf(leaf);
                }
            }
            let arriving = group_before(edits, step, 1).iter().filter_map(key);
            for (&leaf, (words, _)) in found[(step + 1) % 2].iter().zip(arriving) {
                self.prefetch_insertion(leaf, words);
                self.note_pre_image(leaf, pieces);
            }
            for edit in group_before(edits, step, 2) {
                let leaf = self.locator.get(edit.handle);
                if leaf != NONE {
                    self.prefetch_removal(leaf, edit.handle);
                    self.note_pre_image(leaf, pieces);
                }
            }
        }
    }

    /// Collects the edits whose new entries must be inserted, as (first word, index of the edit).
    fn remove_old_entries(&mut self, edits: &[Edit], arriving: &mut Vec<(u64, u32)>) {
        let groups = edits.len().div_ceil(GROUP);
        // Where the entries of two groups are in their leaves. Removals before theirs may move them.
        let mut places = [[0; GROUP]; 2];
        // Each step prefetches what the next one reads, one group ahead.
        for step in 0..groups + 3 {
            for edit in group_of(edits, step) {
                self.locator.prefetch(edit.handle);
            }
            for edit in group_before(edits, step, 1) {
                let leaf = self.locator.get(edit.handle);
                if leaf != NONE {
                    self.prefetch_old_leaf(leaf);
                }
            }
            for (edit, place) in group_before(edits, step, 2).iter().zip(&mut places[step % 2]) {
                let leaf = self.locator.get(edit.handle);
                if leaf != NONE {
                    *place = self.prefetch_removal(leaf, edit.handle);
                }
            }
            let places = &places[(step + 1) % 2];
            for (offset, (edit, place)) in group_before(edits, step, 3).iter().zip(places).enumerate() {
                if !self.remove_or_move(edit, *place)
                    && let Some(new) = &edit.new
                {
                    let index = (step - 3) * GROUP + offset;
                    arriving.push((new.as_slice()[0], index as u32));
                }
            }
        }
    }

    /// Removes the old entry, or moves it if its new place is in the same leaf. Returns whether it moved.
    /// `guess` mostly is the place of the old entry.
    #[inline]
    pub(super) fn remove_or_move(&mut self, edit: &Edit, guess: usize) -> bool {
        let leaf = self.locator.get(edit.handle);
        if leaf == NONE {
            return false;
        }
        let entries = self.leaves.columns(leaf);
        let at = entries.find_near(guess, edit.handle).expect(LOCATED);
        let Some(new) = &edit.new else {
            self.remove_at(leaf, at);
            self.locator.remove(edit.handle);
            return false;
        };
        assert!(new.as_slice().len() == self.columns, "an entry has one word per column");
        if let Some(to) = place_within(&entries, at, new) {
            self.touch(leaf);
            self.leaves.shift(leaf, (at, to), new.as_slice(), edit.handle);
            self.note_addresses();
            return true;
        }
        // The locator goes on naming the old leaf until the new one replaces it.
        self.remove_at(leaf, at);
        false
    }

    /// Inserts the new entries of `arriving`, which is ordered by first words.
    fn insert_new_entries(&mut self, edits: &[Edit], arriving: &[(u64, u32)], order: &impl MemberOrder) {
        let key = |&(_, index): &(u64, u32)| {
            let edit = &edits[index as usize];
            (edit.new.as_ref().expect("only edits with new words arrive").as_slice(), edit.handle)
        };
        // The leaves found for three groups, and when they were found; the places in leaves of two groups.
        let mut found = [([NONE; GROUP], self.structure); 3];
        let mut places = [[0; GROUP]; 2];
        let groups = arriving.len().div_ceil(GROUP);
        for step in 0..groups + 2 {
            let group = group_of(arriving, step);
            let (leaves, structure) = &mut found[step % 3];
            *structure = self.structure;
            self.find_leaves(leaves, &group.iter().map(key), order);

            let group = group_before(arriving, step, 1);
            let leaves = found[(step + 2) % 3].0;
            for ((&leaf, item), place) in leaves.iter().zip(group).zip(&mut places[step % 2]) {
                let (words, handle) = key(item);
                self.locator.prefetch(handle);
                *place = self.prefetch_insertion(leaf, words);
            }

            // While no node splits or shares, the leaves found stay valid: nothing is removed here, and an
            // insertion changes a separator only by lowering the first leaf's. After that, those stay valid
            // that have entries on both sides of the new one, or begin before it and end before the next leaf
            // begins, which is behind it.
            let group = group_before(arriving, step, 2);
            let (leaves, structure) = found[(step + 1) % 3];
            for ((&leaf, item), &place) in leaves.iter().zip(group).zip(&places[(step + 1) % 2]) {
                let (words, handle) = key(item);
                let is_it = self.structure == structure
                    || self.leaves.columns(leaf).encloses(words[0])
                    || self.is_between_separators(leaf, words);
                let leaf = if is_it { leaf } else { self.leaf_for(words, handle, order) };
                self.insert_near((leaf, place), words, handle, order);
            }
        }
    }

    /// Descends for a whole group, a level at a time.
    #[inline]
    fn find_leaves<'k>(
        &self,
        nodes: &mut [u32; GROUP],
        keys: &(impl Iterator<Item = (&'k [u64], Handle)> + Clone),
        order: &impl MemberOrder,
    ) {
        nodes.fill(self.root);
        for level in (1..=self.height).rev() {
            // Where the key before went.
            let (mut last_node, mut last_slot) = (NONE, 0);
            for (node, (words, handle)) in nodes.iter_mut().zip(keys.clone()) {
                let separators = self.inners.separators(*node);
                // New entries come in order, and most go the same way down to the last levels.
                let slot = if last_node == *node && separators.word_is_between(last_slot, words[0]) {
                    last_slot
                } else {
                    Self::slot_among(&separators, words, handle, order)
                };
                (last_node, last_slot) = (*node, slot);
                let child = self.inners.child(*node, slot);
                if level > 1 {
                    self.prefetch_inner(child, separators.first_word(slot) == words[0]);
                } else {
                    self.entries_of_child(*node, slot);
                    self.leaves.prefetch_meta(child);
                }
                *node = child;
            }
        }
    }

    /// Whether an entry of these words belongs in a leaf: the leaf's own separator is before them, and that
    /// of the next leaf behind them. False also if that cannot be told in their parent, as for its last
    /// child.
    ///
    /// It can be asked of a leaf that was found before nodes split and shared. Insertions release no node,
    /// the parent is kept with the leaf, and separators are exact after each insertion.
    #[inline]
    fn is_between_separators(&self, leaf: u32, words: &[u64]) -> bool {
        let meta = self.leaves.meta(leaf);
        let slot = usize::from(meta.slot);
        if meta.parent == NONE || slot + 1 >= self.inners.len(meta.parent) {
            return false;
        }
        let separators = self.inners.separators(meta.parent);
        self.inners.child(meta.parent, slot) == leaf
            && separators.words(slot).as_slice() < words
            && words < separators.words(slot + 1).as_slice()
    }

    /// Prefetches what a search for a handle reads, and what decides whether the new words lie in the same
    /// leaf.
    #[inline]
    fn prefetch_old_leaf(&self, leaf: u32) {
        // Where they are is known from the metadata alone, which is in a cache.
        if let Some(block) = self.leaves.columns(leaf).block() {
            block.prefetch_handles();
            block.prefetch_heads();
        }
    }

    /// Prefetches what removing a handle's entry changes. Returns its place in the leaf.
    #[inline]
    fn prefetch_removal(&self, leaf: u32, handle: Handle) -> usize {
        self.prefetch_tails(leaf, |entries| entries.find(handle).unwrap_or(0))
    }

    /// Prefetches what inserting an entry changes. Returns its place in the leaf, or the first of those that
    /// have the same words.
    #[inline]
    fn prefetch_insertion(&self, leaf: u32, words: &[u64]) -> usize {
        // The newest entry of a run is mostly the last one of its leaf.
        self.prefetch_tails(leaf, |entries| {
            if entries.end_before(words) { entries.len() } else { entries.equal_range(words).0 }
        })
    }

    /// Prefetches what a change at a place in a leaf touches: everything after it, and the count in the
    /// parent. Returns the place.
    #[inline]
    fn prefetch_tails(&self, leaf: u32, find: impl FnOnce(&Columns<'_>) -> usize) -> usize {
        let entries = self.leaves.columns(leaf);
        let at = find(&entries).min(entries.len());
        if let Some(block) = entries.block() {
            block.prefetch_tails(at, entries.len());
        }
        let meta = self.leaves.meta(leaf);
        if meta.parent != NONE {
            self.inners.prefetch_slot(meta.parent, usize::from(meta.slot));
        }
        at
    }
}

/// Where an entry belongs in its leaf with new words, if they lie between the leaf's first and last ones.
///
/// `None` if another entry has the same words: ids can be compared only after all old entries are removed.
#[inline]
fn place_within(entries: &Columns<'_>, at: usize, new: &Words) -> Option<usize> {
    let last = entries.len() - 1;
    let word = new.as_slice()[0];
    if at == 0 || word < entries.first_word(0) || word > entries.first_word(last) {
        return None;
    }
    let (low, high) = entries.equal_range(new.as_slice());
    // `low` and `high` still count the old entry. Strictly inside, no separator changes, and no other leaf
    // has these words.
    if low == 0 || high > last || (high > low && (high - low > 1 || low != at)) {
        return None;
    }
    Some(if low > at { low - 1 } else { low })
}

/// The `step`th group; empty after the last.
#[inline]
fn group_of<T>(items: &[T], step: usize) -> &[T] {
    let end = items.len().min((step + 1) * GROUP);
    items.get(step * GROUP..end).unwrap_or(&[])
}

/// The group `lag` steps ago; empty before the first.
#[inline]
fn group_before<T>(items: &[T], step: usize, lag: usize) -> &[T] {
    step.checked_sub(lag).map_or(&[], |step| group_of(items, step))
}
