//! Rebalancing: splits full nodes, moves entries between siblings, and merges sparse nodes.
//!
//! Knows when nodes share and when they split. Must not know which entry made it necessary, but for runs: the
//! entries with one first word, which newer ones mostly join at the end.
//!
//! A full leaf shares with a sibling that has room before it splits, and three leaves become two where they
//! fit, which keeps leaves about three quarters full under random updates. It costs little: a leaf of 64
//! fills up about once in some hundred updates.
//!
//! A long run is mostly filled in order, as a log is: where earlier times lead, what comes goes to its end,
//! and from everywhere else entries only leave. A leaf that shared at its end would be full again after a few
//! entries. So a full leaf at the end stays full, and the run goes on in a new one, which is short at first
//! and is left to fill up. Runs part where one leaf holds the end of one and the beginning of the next, and
//! where there is a choice they do not meet again.

use super::columns::{close, open, redistribute};
use super::large::LargeTree;
use super::leaf::NONE;
use super::words::{Handle, Words};

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    /// A full leaf shares with a sibling that has at least this much room. Two, so that both have room
    /// afterwards.
    const LEAF_ROOM: usize = if LEAF / 8 > 2 { LEAF / 8 } else { 2 };
    /// Two leaves are merged if the result holds no more than this, so that it need not split at once.
    pub(super) const LEAF_MERGED: usize = LEAF - LEAF / 8;
    /// A leaf of one run with at least this many entries takes none from siblings: it waits until one of them
    /// is as short, and merges with it. Hardly anything comes between its entries that would need their room.
    const RUN_MIN: usize = Self::LEAF_MERGED / 2;
    /// A leaf that may share with one sibling alone does so if it gains this many entries, so that the two do
    /// not share again with the next edit.
    const LEAF_GAIN: usize = LEAF / 8;
    pub(super) const INNER_MIN: usize = INNER / 2;
    pub(super) const INNER_MERGED: usize = INNER - INNER / 8;

    /// Makes room in a full leaf. Neither it nor any leaf that its entries move to is full afterwards.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, leaf: u32) {
        let parent = self.leaves.meta(leaf).parent;
        if parent != NONE {
            let slot = self.leaf_slot(leaf, parent);
            let counts = self.inners.counts(parent);
            let room = |slot: usize| counts.get(slot).map_or(0, |&count| LEAF - count as usize);
            let (before, after) = (slot.checked_sub(1).map_or(0, room), room(slot + 1));
            if before.max(after) >= Self::LEAF_ROOM {
                let left = if after >= before { slot } else { slot - 1 };
                let target = (2 * LEAF - before.max(after)) / 2;
                self.redistribute_leaves(parent, left, target);
                return;
            }
        }
        self.split_leaf(leaf, LEAF / 2);
    }

    /// Makes room for an entry that is the last of a long run, if place `at` of a full leaf is behind such a
    /// run. Returns where it belongs then.
    #[cold]
    #[inline(never)]
    pub(super) fn part_behind_run(
        &mut self,
        (leaf, at): (u32, usize),
        words: &[u64],
        handle: Handle,
    ) -> Option<(u32, usize)> {
        let (entries, score) = (self.leaves.columns(leaf), words[0]);
        let run = at.checked_sub(Self::LEAF_MIN)?;
        if entries.word(0, run) != score || (at < LEAF && entries.word(0, at) == score) {
            return None;
        }
        let parent = self.leaves.meta(leaf).parent;
        let behind = (parent != NONE).then(|| self.leaf_slot(leaf, parent) + 1);
        // The leaf behind, and how many entries it has.
        let len_of = |slot: usize| self.inners.counts(parent).get(slot).map(|len| *len as usize);
        let next = behind.and_then(|slot| len_of(slot).map(|len| (slot, len)));
        if at < LEAF {
            // What is behind the run is moved out of its way: to the next leaf, or to one of its own.
            match next {
                Some((next, len)) if len <= at => {
                    self.redistribute_leaves(parent, next - 1, at);
                }
                _ => {
                    self.split_leaf(leaf, at);
                    self.fill_next(leaf);
                }
            }
            return Some((leaf, at));
        }
        let goes_on = |(next, _)| self.inners.separators(parent).word(0, next) == score;
        if next.is_some_and(goes_on) {
            return None;
        }
        Some((self.add_leaf_behind(leaf, &Words::from_slice(words), handle), 0))
    }

    /// The entries of a leaf from place `at` on go to a new one behind it.
    fn split_leaf(&mut self, leaf: u32, at: usize) {
        let entries = self.leaves.columns(leaf);
        let (words, handle) = (entries.words(at), entries.handle(at));
        self.add_leaf_behind(leaf, &words, handle);
        let parent = self.leaves.meta(leaf).parent;
        let slot = self.leaf_slot(leaf, parent);
        self.redistribute_leaves(parent, slot, at);
    }

    /// The leaf behind this one shares with the one behind that, if it is short and has such a sibling.
    fn fill_next(&mut self, leaf: u32) {
        let parent = self.leaves.meta(leaf).parent;
        let slot = self.leaf_slot(leaf, parent) + 1;
        if let Some(&[short, other]) = self.inners.counts(parent).get(slot..slot + 2)
            && (short as usize) < Self::LEAF_MIN
        {
            self.redistribute_leaves(parent, slot, usize::midpoint(short as usize, other as usize));
        }
    }

    /// A new leaf behind another one, without entries.
    ///
    /// # Arguments
    /// `words`, `handle`: the entry that the caller puts into it first.
    fn add_leaf_behind(&mut self, leaf: u32, words: &Words, handle: Handle) -> u32 {
        if self.leaves.meta(leaf).parent == NONE {
            self.add_root(leaf);
        } else if self.inners.len(self.leaves.meta(leaf).parent) == INNER {
            self.split_inner(self.leaves.meta(leaf).parent);
        }
        // The parent may have split, so only now is it known.
        let parent = self.leaves.meta(leaf).parent;
        let slot = self.leaf_slot(leaf, parent);
        let right = self.leaves.allocate();
        self.locator.prepare_for(right);
        self.leaves.meta_mut(right).parent = parent;
        self.insert_child(parent, slot + 1, right, 0, words, handle);
        right
    }

    /// A new root above the old one.
    fn add_root(&mut self, root: u32) {
        let level = self.height + 1;
        let (words, handle) = if self.height == 0 {
            let entries = self.leaves.columns(root);
            (entries.words(0), entries.handle(0))
        } else {
            let separators = self.inners.separators(root);
            (separators.words(0), separators.handle(0))
        };
        let above = self.inners.allocate(level);
        let count = u32::try_from(self.len).expect("an entry is a handle's only one");
        self.insert_child(above, 0, root, count, &words, handle);
        self.set_parent(level, root, above);
        self.root = above;
        self.height = level;
        self.structure += 1;
    }

    /// Half of an inner node's children go to a new one behind it.
    fn split_inner(&mut self, node: u32) {
        if self.inners.meta(node).parent == NONE {
            self.add_root(node);
        } else if self.inners.len(self.inners.meta(node).parent) == INNER {
            self.split_inner(self.inners.meta(node).parent);
        }
        let parent = self.inners.meta(node).parent;
        let slot = self.inner_slot(node, parent);
        let right = self.inners.allocate(self.inners.meta(node).level);
        self.inners.meta_mut(right).parent = parent;
        let separators = self.inners.separators(node);
        let half = separators.len() / 2;
        let (words, handle) = (separators.words(half), separators.handle(half));
        self.insert_child(parent, slot + 1, right, 0, &words, handle);
        self.redistribute_inners(parent, slot, half);
    }

    /// A leaf is short of entries: it becomes one with a sibling, or takes some from it, or stays short if it
    /// is of a run.
    #[cold]
    #[inline(never)]
    pub(super) fn refill_leaf(&mut self, leaf: u32) {
        let parent = self.leaves.meta(leaf).parent;
        if parent == NONE {
            return;
        }
        let slot = self.leaf_slot(leaf, parent);
        let count = |slot: usize| self.inners.counts(parent).get(slot).map(|&count| count as usize);
        let own = self.leaves.len(leaf);
        if own == 0 {
            // It held the only entry by which a run went on.
            return self.remove_empty_leaf(leaf, slot);
        }
        let (mut before, mut after) = (slot.checked_sub(1).and_then(count), count(slot + 1));
        let entries = self.leaves.columns(leaf);
        let is_run = entries.is_one_run();
        if let (Some(len_before), Some(_)) = (before, after) {
            let first_behind = self.inners.separators(parent).first_word(slot + 1);
            let goes_on = first_behind == entries.first_word(own - 1);
            let last_before = self.entries_of_child(parent, slot - 1).first_word(len_before - 1);
            match (last_before == entries.first_word(0), goes_on) {
                (true, false) if is_run && own + len_before > Self::LEAF_MERGED => {
                    // It is the end of a run.
                    return self.refresh_separator(leaf);
                }
                // With the sibling of the other run it would have to part again.
                (true, false) => after = None,
                (false, true) => before = None,
                (true, true) | (false, false) => {}
            }
        }
        let (left, other) = match (before, after) {
            // To merge, the smaller sibling; to take from, the larger one.
            (Some(before), Some(after)) => {
                let merges = own + before.min(after) <= Self::LEAF_MERGED;
                if (before < after) == merges { (slot - 1, before) } else { (slot, after) }
            }
            (Some(before), None) => (slot - 1, before),
            (None, Some(after)) => (slot, after),
            (None, None) => unreachable!("an inner node has two children or more"),
        };
        let left_leaf = self.inners.child(parent, left);
        let all = own + before.unwrap_or(LEAF) + after.unwrap_or(LEAF);
        let (shared, has_choice) = (usize::midpoint(own, other), before.is_some() && after.is_some());
        if own + other <= Self::LEAF_MERGED {
            self.redistribute_leaves(parent, left, own + other);
            let right_leaf = self.inners.child(parent, left + 1);
            self.leaves.release(right_leaf);
            self.remove_child(parent, left + 1);
            self.note_addresses();
            self.refresh_separator(left_leaf);
            self.refill_inner(parent);
        } else if is_run && own >= Self::RUN_MIN {
            self.refresh_separator(leaf);
        } else if all <= 2 * Self::LEAF_MERGED {
            self.merge_into_both_siblings(parent, slot, all / 2);
        } else if has_choice || shared >= own + Self::LEAF_GAIN {
            self.redistribute_leaves(parent, left, shared);
            // The left leaf may have been empty, or may have just lost its first entry.
            self.refresh_separator(left_leaf);
        } else {
            self.refresh_separator(leaf);
        }
    }

    fn remove_empty_leaf(&mut self, leaf: u32, slot: usize) {
        let parent = self.leaves.meta(leaf).parent;
        self.leaves.release(leaf);
        self.remove_child(parent, slot);
        self.note_addresses();
        if slot == 0 {
            self.refresh_separator(self.inners.child(parent, 0));
        }
        self.refill_inner(parent);
    }

    /// A leaf's entries go to the siblings on both sides, of which the left one then holds `target`. Three
    /// leaves that fit into two: where entries only leave, merging pairs alone would let leaves stay half
    /// empty.
    fn merge_into_both_siblings(&mut self, parent: u32, slot: usize, target: usize) {
        let (left, leaf) = (self.inners.child(parent, slot - 1), self.inners.child(parent, slot));
        self.redistribute_leaves(parent, slot - 1, target);
        self.redistribute_leaves(parent, slot, 0);
        self.leaves.release(leaf);
        self.remove_child(parent, slot);
        self.note_addresses();
        self.refresh_separator(left);
        self.refill_inner(parent);
    }

    /// As [`Self::refill_leaf`], for an inner node that may have too few children. A root with one child is
    /// replaced by it.
    fn refill_inner(&mut self, node: u32) {
        let own = self.inners.len(node);
        let parent = self.inners.meta(node).parent;
        if parent == NONE {
            if own == 1 {
                self.root = self.inners.child(node, 0);
                self.set_parent(self.height, self.root, NONE);
                self.inners.release(node);
                self.height -= 1;
            }
            return;
        }
        if own >= Self::INNER_MIN {
            return;
        }
        let slot = self.inner_slot(node, parent);
        let left = if slot + 1 < self.inners.len(parent) { slot } else { slot - 1 };
        let (left_node, right_node) = (self.inners.child(parent, left), self.inners.child(parent, left + 1));
        let both = self.inners.len(left_node) + self.inners.len(right_node);
        if both <= Self::INNER_MERGED {
            self.redistribute_inners(parent, left, both);
            self.inners.release(right_node);
            self.remove_child(parent, left + 1);
            self.refill_inner(parent);
        } else {
            self.redistribute_inners(parent, left, both / 2);
        }
    }

    /// Moves entries between a leaf and the one behind it, so that the first holds `target`.
    fn redistribute_leaves(&mut self, parent: u32, slot: usize, target: usize) {
        let (left, right) = (self.inners.child(parent, slot), self.inners.child(parent, slot + 1));
        self.touch(left);
        self.touch(right);
        let (left_len, right_len) = (self.leaves.len(left), self.leaves.len(right));
        self.leaves.redistribute(left, right, target);
        *self.inners.count_mut(parent, slot) = target as u32;
        *self.inners.count_mut(parent, slot + 1) = (left_len + right_len - target) as u32;

        let (to, at, moved) = if target < left_len {
            (right, 0, left_len - target)
        } else {
            (left, left_len, target - left_len)
        };
        self.note_addresses();
        let mut handles = [0; LEAF];
        self.leaves.columns(to).read_handles(at, &mut handles[..moved]);
        for &handle in &handles[..moved] {
            self.locator.set(Handle(handle), to);
        }
        if self.leaves.len(right) > 0 {
            self.refresh_separator(right);
        }
        self.structure += 1;
    }

    /// Moves children between an inner node and the one behind it, so that the first holds `target`.
    fn redistribute_inners(&mut self, parent: u32, slot: usize, target: usize) {
        let (left, right) = (self.inners.child(parent, slot), self.inners.child(parent, slot + 1));
        let (left_len, right_len) = (self.inners.len(left), self.inners.len(right));
        redistribute(self.inners.words.pair_mut(left, right), INNER, left_len, right_len, target);
        redistribute(self.inners.ids.pair_mut(left, right), INNER, left_len, right_len, target);
        self.inners.meta_mut(left).len = target as u16;
        self.inners.meta_mut(right).len = (left_len + right_len - target) as u16;

        let level = self.inners.meta(left).level;
        for at in 0..left_len.saturating_sub(target) {
            self.set_parent(level, self.inners.child(right, at), right);
        }
        for at in left_len..target {
            self.set_parent(level, self.inners.child(left, at), left);
        }
        for (slot, node) in [(slot, left), (slot + 1, right)] {
            *self.inners.count_mut(parent, slot) = self.inners.sum(node);
        }
        if self.inners.len(right) > 0 {
            let separators = self.inners.separators(right);
            let (words, handle) = (separators.words(0), separators.handle(0));
            self.inners.set_separator(parent, slot + 1, &words, handle);
        }
        self.structure += 1;
    }

    /// `level` is the parent's: 1 has leaves as children.
    pub(super) fn set_parent(&mut self, level: u8, child: u32, parent: u32) {
        if level == 1 {
            self.leaves.meta_mut(child).parent = parent;
        } else {
            self.inners.meta_mut(child).parent = parent;
        }
    }

    /// Adds a child to a node that has room. The counts above must agree already.
    pub(super) fn insert_child(
        &mut self,
        node: u32,
        slot: usize,
        child: u32,
        count: u32,
        words: &Words,
        handle: Handle,
    ) {
        let len = self.inners.len(node);
        open(self.inners.words.get_mut(node), INNER, len, slot);
        open(self.inners.ids.get_mut(node), INNER, len, slot);
        self.inners.set_child(node, slot, child);
        if self.inners.meta(node).level == 1 {
            self.inners.set_address(node, slot, self.leaves.address(child));
        }
        *self.inners.count_mut(node, slot) = count;
        self.inners.set_separator(node, slot, words, handle);
        self.inners.meta_mut(node).len += 1;
        self.structure += 1;
    }

    /// Removes a child that has no entries left.
    fn remove_child(&mut self, node: u32, slot: usize) {
        let len = self.inners.len(node);
        close(self.inners.words.get_mut(node), INNER, len, slot);
        close(self.inners.ids.get_mut(node), INNER, len, slot);
        self.inners.meta_mut(node).len -= 1;
        self.structure += 1;
    }
}
