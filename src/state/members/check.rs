//! Checks that every handle is accounted for. `verify` and the writer's tests call it.

use crate::state::entry::TreeId;
use crate::state::handle_map::{HandleSet, Segments};
use crate::state::members::Members;
use crate::tree::Handle;

/// The states of a handle that is no member's.
const PLACES: [&str; 5] = ["free", "held back", "quarantined", "leaving", "being freed"];

impl Members {
    /// Checks that each handle ever given out is in one state: a member's, or one of those above; that a
    /// member's recorded trees are those that hold an entry of it; and that each member has one handle, which
    /// is found by its id.
    ///
    /// # Arguments
    /// `known`: every tree, and every member that it holds an entry of.
    ///
    /// # Errors
    /// The first thing found wrong, in words.
    pub fn check(&self, known: impl IntoIterator<Item = (TreeId, Handle)>) -> Result<(), String> {
        let space = usize::try_from(self.handle_space()).map_err(|error| error.to_string())?;
        let never = |handle: Handle, what: &str| {
            format!("handle {} was never given to a member, but {what}", handle.0)
        };
        let mut trees = vec![0_u32; space];
        let name =
            |handle: Handle| format!("{} (handle {})", String::from_utf8_lossy(self.id(handle)), handle.0);
        for (tree, handle) in known {
            let count = trees.get_mut(handle.index());
            *count.ok_or_else(|| never(handle, "a tree has an entry of it"))? += 1;
            let before = tree.0.checked_sub(1).map(TreeId);
            if self.memberships.trees_after(handle, before).next() != Some(tree) {
                return Err(format!(
                    "tree {} has an entry of {}, but the member's list of trees does not name it",
                    tree.0,
                    name(handle)
                ));
            }
        }
        // By handle, one more than the index into `PLACES`; 0 for none.
        let mut places = vec![0_u8; space];
        let quarantined_before = self.quarantined_before_checkpoint.iter().flat_map(HandleSet::handles);
        let freeing = self.freeing.iter().flat_map(Segments::handles);
        let idle: [Box<dyn Iterator<Item = Handle> + '_>; 5] = [
            Box::new(self.free.handles()),
            Box::new(self.unavailable_until_checkpoint_ends.handles()),
            Box::new(self.quarantined.handles()),
            Box::new(quarantined_before),
            Box::new(freeing.chain(self.freeing_now.iter().copied())),
        ];
        for ((number, what), handles) in (1..).zip(PLACES).zip(idle) {
            for handle in handles {
                let place = places.get_mut(handle.index());
                let place = place.ok_or_else(|| never(handle, &format!("is {what}")))?;
                if let Some(other) = usize::from(*place).checked_sub(1).and_then(|other| PLACES.get(other)) {
                    return Err(format!("handle {} is {other} and {what}", handle.0));
                }
                *place = number;
            }
        }
        if self.checkpoint_handle_end == u32::MAX && !self.unavailable_until_checkpoint_ends.is_empty() {
            let held_back = self.unavailable_until_checkpoint_ends.len();
            return Err(format!("{held_back} handles are held back, although no checkpoint is running"));
        }
        let mut members = 0;
        for ((trees, place), handle) in trees.into_iter().zip(places).zip(0..) {
            let id = self.id(Handle(handle));
            let name = || name(Handle(handle));
            let said = self.memberships.trees_after(Handle(handle), None).count();
            if usize::try_from(trees) != Ok(said) {
                return Err(format!(
                    "{trees} boards have an entry of {}, but its list of trees names {said}",
                    name()
                ));
            }
            let place = usize::from(place).checked_sub(1).and_then(|place| PLACES.get(place));
            match (trees > 0, place) {
                (true, Some(place)) => {
                    return Err(format!("{} is on boards, but its handle is {place}", name()));
                }
                (false, None) => {
                    return Err(format!("handle {handle} belongs to no member, but is not free"));
                }
                (false, Some(&"free" | &"held back")) if !id.is_empty() => {
                    return Err(format!("{} is free, but has an id", name()));
                }
                (false, Some(_)) => {}
                (true, None) => {
                    members += 1;
                    match self.get(id) {
                        Some(found) if found.0 == handle => {}
                        Some(found) => return Err(format!("{} has handle {} too", name(), found.0)),
                        None => return Err(format!("{} is not found by its id", name())),
                    }
                }
            }
        }
        if members != self.len() {
            return Err(format!(
                "{} members are found by their ids, but {members} are on boards",
                self.len()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three members, of which `a` is known to one tree and `b` to two; `c` has left.
    fn members() -> (Members, Vec<(TreeId, Handle)>) {
        let mut members = Members::new();
        let [a, b, c] = ["a", "b", "c"].map(|id| members.add(id.as_bytes()));
        let known = vec![(TreeId(0), a), (TreeId(0), b), (TreeId(1), b)];
        known.iter().chain([&(TreeId(0), c)]).for_each(|(tree, handle)| members.add_tree(*handle, *tree));
        members.remove_tree(c, TreeId(0));
        (members, known)
    }

    fn set_of(handle: Handle) -> HandleSet {
        let mut set = HandleSet::default();
        set.insert(handle, ());
        set
    }

    fn wrong(spoil: impl FnOnce(&mut Members, &mut Vec<(TreeId, Handle)>)) -> String {
        let (mut members, mut known) = members();
        assert_eq!(members.check(known.clone()), Ok(()));
        spoil(&mut members, &mut known);
        members.check(known).expect_err("the members are inconsistent")
    }

    #[test]
    fn check_accepts_handles_across_checkpoints() {
        let (mut members, known) = members();
        for _ in 0..3 {
            let pages = members.begin_checkpoint();
            assert_eq!(members.check(known.clone()), Ok(()));
            members.abandon_checkpoint(pages);
            assert_eq!(members.check(known.clone()), Ok(()));
        }
        drop(members.begin_checkpoint());
        members.complete_checkpoint();
        assert_eq!(members.check(known.clone()), Ok(()));
        assert_eq!((members.free.len(), members.begin_checkpoint().is_empty()), (1, true));
        assert_eq!(
            (members.free.len(), members.unavailable_until_checkpoint_ends.len(), members.check(known)),
            (0, 1, Ok(()))
        );
    }

    #[test]
    fn check_finds_every_kind_of_lost_handle() {
        let cases: [(&str, &str); 11] = [
            ("1 boards have an entry of a (handle 0), but its list of trees names 2", "said"),
            ("1 boards have an entry of b (handle 1), but its list of trees names 2", "forgotten"),
            (
                "tree 2 has an entry of b (handle 1), but the member's list of trees does not name it",
                "another",
            ),
            ("handle 2 is quarantined and leaving", "twice"),
            ("handle 2 belongs to no member, but is not free", "lost"),
            ("a (handle 0) is on boards, but its handle is being freed", "in use"),
            ("handle 2 is quarantined and being freed", "freed soon"),
            ("handle 7 was never given to a member, but is free", "never"),
            ("handle 9 was never given to a member, but a tree has an entry of it", "stranger"),
            ("c (handle 2) is free, but has an id", "named"),
            ("1 handles are held back, although no checkpoint is running", "held back"),
        ];
        for (expected, how) in cases {
            let found = wrong(|members, known| match how {
                "said" => members.add_tree(Handle(0), TreeId(1)),
                "forgotten" => drop(known.pop()),
                "another" => known[2].0 = TreeId(2),
                "twice" => members.quarantined_before_checkpoint.push(set_of(Handle(2))),
                "lost" => drop(members.quarantined.remove(Handle(2))),
                "in use" => members.freeing.push(set_of(Handle(0)).into_segments()),
                "freed soon" => members.freeing_now.push(Handle(2)),
                "never" => members.free.push(Handle(7)),
                "stranger" => known.push((TreeId(0), Handle(9))),
                "named" | "held back" => {
                    members.quarantined.remove(Handle(2));
                    let to = if how == "named" {
                        &mut members.free
                    } else {
                        &mut members.unavailable_until_checkpoint_ends
                    };
                    to.push(Handle(2));
                }
                _ => unreachable!("it is one of these"),
            });
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_member_with_two_handles_and_one_that_is_not_found_are_found() {
        let two = wrong(|members, known| {
            let again = members.add(b"a");
            members.add_tree(again, TreeId(0));
            known.push((TreeId(0), again));
        });
        assert!(two == "a (handle 0) has handle 3 too" || two == "a (handle 3) has handle 0 too", "{two}");
        let lost = wrong(|members, _| {
            let (ids, hasher) = (&members.ids, &members.hasher);
            let hash = |handle: Handle| std::hash::BuildHasher::hash_one(hasher, ids.get(handle));
            members.index.remove(hash(Handle(1)), Handle(1), hash, |_| ());
        });
        assert_eq!(lost, "b (handle 1) is not found by its id");
        // One that no board knows, and that did not leave.
        let idle = wrong(|members, _| members.enter(Handle(2)));
        assert_eq!(idle, "3 members are found by their ids, but 2 are on boards");
    }
}
