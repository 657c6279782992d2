//! Which trees hold an entry of each member, by handle.
//!
//! Most members are on the same boards as those who came with them, and take a fraction of a byte; others
//! take up to four (`membership_slots`). Members who are on the same boards share one list of them, so that
//! ten million on the same three boards cost as much as on one. A shared list is immutable, and replacing a
//! long one would take long, so a member on many boards has a set of its own.
//!
//! Must not know what a tree holds. The caller changes both, and keeps them consistent.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::state::entry::TreeId;
use crate::state::membership_slots::MembershipSlots;
use crate::state::tree_sets::TreeSets;
use crate::tree::Handle;

/// The longest list that members share. Longer ones are hardly ever equal.
const SHARED_MAX: usize = if cfg!(test) { 6 } else { 64 };
/// At this many trees a member with a set of its own shares again: far below [`SHARED_MAX`], so that a member
/// at the boundary does not change form each time.
const SHARE_BELOW: usize = SHARED_MAX / 2;

/// No tree.
const NO_TREE: u32 = 0;
/// With this bit set, the rest is a set's number; without it, the slot is one more than the only tree's
/// number.
const SHARED: u32 = 1 << 31;
/// The member has a set of its own.
const OWN_SET: u32 = u32::MAX;

#[derive(Clone, Copy)]
enum SlotMeaning {
    NoTree,
    One(TreeId),
    Shared(u32),
    OwnSet,
}

impl SlotMeaning {
    fn of(slot: u32) -> Self {
        match slot {
            NO_TREE => Self::NoTree,
            OWN_SET => Self::OwnSet,
            slot if slot & SHARED != 0 => Self::Shared(slot & !SHARED),
            slot => Self::One(TreeId(slot - 1)),
        }
    }
}

pub(super) struct Memberships {
    /// What [`SlotMeaning::of`] reads. In chunks that never move: a plain vector of ten million would stop
    /// the writer for 35 ms to grow.
    slots: MembershipSlots,
    len: u32,
    sets: TreeSets,
    own_sets: BTreeMap<Handle, BTreeSet<TreeId>>,
    /// Trees in all sets of `own_sets`.
    own_set_trees: usize,
    /// A cache of the last transition: a slot, an added tree, and the resulting slot. Loading a board repeats
    /// the same transition.
    last_step: Option<(u32, TreeId, u32)>,
    /// A buffer that is kept between calls, so that none of them allocates.
    scratch: Vec<TreeId>,
}

impl Memberships {
    /// A table of `len` handles that are on no tree.
    pub(super) fn new(len: u32) -> Self {
        let mut slots = MembershipSlots::default();
        if let Some(last) = len.checked_sub(1) {
            slots.ensure(Handle(last));
        }
        Self {
            slots,
            len,
            sets: TreeSets::default(),
            own_sets: BTreeMap::new(),
            own_set_trees: 0,
            last_step: None,
            scratch: Vec::new(),
        }
    }

    /// Handles ever given out.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Appends a handle that is on no tree.
    pub(super) fn push(&mut self) -> Handle {
        let handle = Handle(self.len);
        self.slots.ensure(handle);
        self.len += 1;
        handle
    }

    fn slot(&self, handle: Handle) -> Option<u32> {
        (handle.0 < self.len).then(|| self.slots.get(handle))
    }

    /// Asks the processor to fetch a member's slot.
    pub(super) fn prefetch(&self, handle: Handle) {
        self.slots.prefetch(handle);
    }

    /// Whether the member is on any tree.
    pub(super) fn is_on_any_tree(&self, handle: Handle) -> bool {
        self.slot(handle).is_some_and(|slot| slot != NO_TREE)
    }

    /// Adds a tree. Returns whether it is the member's first.
    pub(super) fn add(&mut self, handle: Handle, tree: TreeId) -> bool {
        let Some(slot) = self.slot(handle) else { return false };
        let known_by = SlotMeaning::of(slot);
        let mut trees = std::mem::take(&mut self.scratch);
        trees.clear();
        let known: &[TreeId] = match &known_by {
            SlotMeaning::NoTree => &[],
            SlotMeaning::One(known) => std::slice::from_ref(known),
            SlotMeaning::Shared(set) => self.sets.trees(*set),
            SlotMeaning::OwnSet => {
                let added = self.own_sets.get_mut(&handle).is_some_and(|trees| trees.insert(tree));
                self.own_set_trees += usize::from(added);
                self.scratch = trees;
                return false;
            }
        };
        match (known.binary_search(&tree), self.last_step) {
            (Ok(_), _) => {}
            (Err(_), Some((from, by, to))) if (from, by) == (slot, tree) => {
                self.sets.acquire_again(to & !SHARED);
                self.replace(handle, slot, to);
            }
            (Err(at), _) => {
                let (before, behind) = known.split_at(at);
                trees.extend(before);
                trees.push(tree);
                trees.extend(behind);
                let to = self.slot_of(handle, &trees);
                self.replace(handle, slot, to);
                // After what may have freed a set.
                if matches!(SlotMeaning::of(to), SlotMeaning::Shared(_)) && self.still_means(slot, known_by) {
                    self.last_step = Some((slot, tree, to));
                }
            }
        }
        self.scratch = trees;
        slot == NO_TREE
    }

    /// Whether a slot that was just left still has the same meaning: a set without members is freed, and its
    /// number may be reused.
    fn still_means(&self, slot: u32, known_by: SlotMeaning) -> bool {
        match known_by {
            SlotMeaning::Shared(set) => !self.sets.trees(set).is_empty(),
            SlotMeaning::NoTree | SlotMeaning::One(_) | SlotMeaning::OwnSet => slot != OWN_SET,
        }
    }

    /// Removes a tree. Returns whether it was the member's last.
    pub(super) fn remove(&mut self, handle: Handle, tree: TreeId) -> bool {
        let Some(slot) = self.slot(handle) else { return false };
        let mut trees = std::mem::take(&mut self.scratch);
        trees.clear();
        let left = match SlotMeaning::of(slot) {
            SlotMeaning::NoTree => false,
            SlotMeaning::One(known) => known == tree,
            SlotMeaning::Shared(set) => {
                let known = self.sets.trees(set);
                trees.extend(known.iter().filter(|known| **known != tree));
                trees.len() < known.len()
            }
            SlotMeaning::OwnSet => self.remove_from_own_set(handle, tree, &mut trees),
        };
        if left {
            let to = self.slot_of(handle, &trees);
            self.replace(handle, slot, to);
        }
        self.scratch = trees;
        left && !self.is_on_any_tree(handle)
    }

    /// Removes a tree from a member's own set. Returns whether so few are left that they can be shared, and
    /// puts them into `trees`.
    fn remove_from_own_set(&mut self, handle: Handle, tree: TreeId, trees: &mut Vec<TreeId>) -> bool {
        let Some(known) = self.own_sets.get_mut(&handle) else { return false };
        self.own_set_trees -= usize::from(known.remove(&tree));
        if known.len() > SHARE_BELOW {
            return false;
        }
        trees.extend(known.iter());
        self.own_set_trees -= known.len();
        self.own_sets.remove(&handle);
        true
    }

    /// The slot of a member whom these trees know, in order.
    fn slot_of(&mut self, handle: Handle, trees: &[TreeId]) -> u32 {
        match trees {
            [] => return NO_TREE,
            [only] if only.0 < SHARED - 1 => return only.0 + 1,
            _ => {}
        }
        if trees.len() <= SHARED_MAX
            && let Some(set) = self.sets.acquire(trees)
        {
            return SHARED | set;
        }
        self.own_set_trees += trees.len();
        self.own_sets.insert(handle, trees.iter().copied().collect());
        OWN_SET
    }

    fn replace(&mut self, handle: Handle, from: u32, to: u32) {
        self.slots.set(handle, to);
        if let SlotMeaning::Shared(set) = SlotMeaning::of(from)
            && self.sets.release(set)
        {
            self.last_step = None;
        }
    }

    /// The trees of a member, ascending, after one of them.
    pub(super) fn trees_after(
        &self,
        handle: Handle,
        after: Option<TreeId>,
    ) -> impl Iterator<Item = TreeId> + use<'_> {
        let (mut only, mut shared, mut own_set) = (None, &[][..], None);
        match SlotMeaning::of(self.slot(handle).unwrap_or(NO_TREE)) {
            SlotMeaning::NoTree => {}
            SlotMeaning::One(tree) => {
                only = Some(tree).filter(|tree| after.is_none_or(|after| *tree > after));
            }
            SlotMeaning::Shared(set) => {
                let trees = self.sets.trees(set);
                let from = after.map_or(0, |after| trees.partition_point(|tree| *tree <= after));
                shared = trees.get(from..).unwrap_or_default();
            }
            SlotMeaning::OwnSet => {
                let from = after.map_or(Bound::Unbounded, Bound::Excluded);
                own_set = self.own_sets.get(&handle).map(|trees| trees.range((from, Bound::Unbounded)));
            }
        }
        only.into_iter().chain(shared.iter().copied()).chain(own_set.into_iter().flatten().copied())
    }

    /// Heap memory, in bytes, without the struct itself. For own sets it is estimated by the tree, as their
    /// nodes are mostly full.
    pub(super) fn bytes(&self) -> usize {
        self.slots.bytes() + self.sets.bytes() + self.own_set_trees * 2 * size_of::<TreeId>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_sets_too_simple_to_be_wrong(
            steps in prop::collection::vec((any::<bool>(), 0_u32..7, 0_u32..14), 1..400)
        ) {
            // Numbers beyond 31 bits do not fit beside the mark.
            let tree = |nth: u32| TreeId(if nth < 12 { 3 * nth } else { u32::MAX - 14 + nth });
            let mut memberships = Memberships::new(3);
            while memberships.len() < 7 {
                memberships.push();
            }
            let mut model = vec![BTreeSet::<TreeId>::new(); 7];
            for (adds, handle, nth) in steps {
                let (tree, handle) = (tree(nth), Handle(handle));
                let known = &mut model[handle.index()];
                if adds {
                    let first = known.is_empty();
                    known.insert(tree);
                    prop_assert_eq!(memberships.add(handle, tree), first);
                } else {
                    let last = known.remove(&tree) && known.is_empty();
                    prop_assert_eq!(memberships.remove(handle, tree), last);
                }
                for (handle, known) in (0..).map(Handle).zip(&model) {
                    prop_assert_eq!(memberships.is_on_any_tree(handle), !known.is_empty());
                    let all: Vec<TreeId> = memberships.trees_after(handle, None).collect();
                    prop_assert_eq!(&all, &known.iter().copied().collect::<Vec<_>>());
                    let after = known.iter().nth(known.len() / 2).copied();
                    let behind = known.iter().copied().filter(|tree| Some(*tree) > after).collect::<Vec<_>>();
                    prop_assert_eq!(memberships.trees_after(handle, after).collect::<Vec<_>>(), behind);
                }
                let shared: BTreeSet<_> = model.iter().filter(|known| known.len() > 1).collect();
                // Beside them at most those of a tree with a high number, and none of those with a set of
                // their own.
                prop_assert!(memberships.sets.len() <= shared.len() + 2);
                let own_set_trees: usize = memberships.own_sets.values().map(BTreeSet::len).sum();
                prop_assert_eq!(memberships.own_set_trees, own_set_trees);
            }
            for (handle, known) in (0..).map(Handle).zip(model) {
                for tree in known {
                    memberships.remove(handle, tree);
                }
            }
            prop_assert_eq!((memberships.sets.len(), memberships.own_set_trees), (0, 0));
        }
    }

    #[test]
    fn a_member_costs_a_fraction_of_a_byte_on_one_board_and_on_the_same_three_as_others() {
        let mut memberships = Memberships::new(0);
        let members = 100_000;
        let count = |memberships: &mut Memberships, tree: u32| {
            let ((), allocated) = crate::allocated::count(|| {
                for handle in (0..members).map(Handle) {
                    if tree == 0 {
                        memberships.push();
                    }
                    memberships.add(handle, TreeId(tree));
                }
            });
            assert!(allocated.largest <= 64 << 10, "{}", allocated.largest);
            allocated.held
        };
        let one = count(&mut memberships, 0);
        assert!(one <= 30_000, "{one}");
        let two_more = count(&mut memberships, 1) + count(&mut memberships, 2);
        assert!(two_more < 64 << 10, "{two_more}");
        assert_eq!(memberships.sets.len(), 1);
        assert!(memberships.bytes() >= 25_000 && memberships.bytes() < 64_000, "{}", memberships.bytes());
    }

    /// Nobody's list is like another's: what it costs then.
    #[test]
    fn a_member_of_boards_that_nobody_else_is_on_together_costs_some_fifty_bytes_more() {
        let mut memberships = Memberships::new(0);
        let members = 50_000;
        let mut largest = 0;
        let mut held = 0;
        for handle in (0..members).map(Handle) {
            let ((), allocated) = crate::allocated::count(|| {
                memberships.push();
                for board in 0..3 {
                    memberships.add(handle, TreeId(handle.0 * 3 + board));
                }
            });
            largest = largest.max(allocated.largest);
            held += allocated.held;
        }
        let each = held / i64::from(members);
        assert!(each <= 64, "{each}");
        assert!(largest <= 64 << 10, "{largest}");
    }
}
