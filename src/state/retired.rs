//! A dropped board's tree: its members are released a slice at a time, and its memory is then freed without
//! the lock.
//!
//! Knows: how many members were released. Must not know: what releasing a member means.

use crate::state::extras::{Extras, UnlistedPlace};
use crate::tree::{Handle, Tree};
use crate::types::count;

pub struct Retired {
    tree: Tree,
    /// Entries of the tree that were handed out.
    listed: u64,
    /// Freed with the tree: there may be millions.
    extras: Extras,
    /// How far the unlisted entries were handed out.
    unlisted: UnlistedPlace,
    entries: u64,
}

impl Retired {
    pub(super) fn new(tree: Tree, extras: Extras) -> Self {
        let entries = tree.len() + count(extras.len());
        Self { tree, listed: 0, extras, unlisted: UnlistedPlace::default(), entries }
    }

    /// How many entries there are to free.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The next members of the board, at most `limit`, and whether there are more. Each member is returned
    /// once. A slice costs the same at the end as at the beginning.
    pub fn next_slice(&mut self, limit: usize) -> (Vec<Handle>, bool) {
        let mut slice: Vec<Handle> = Vec::new();
        slice.extend(self.tree.cursor_at(self.listed).take(limit).map(|(handle, _)| handle));
        self.listed += count(slice.len());
        self.extras.unlisted_from(&mut self.unlisted, limit, &mut slice);
        let more = slice.len() == limit;
        (slice, more)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::board::Definition;
    use crate::state::entry::{Entry, EntryState, TreeId};
    use crate::state::members::Members;
    use crate::state::window_tree::{Change, WindowTree};
    use crate::types::{BoardName, Score, Timestamp};

    #[test]
    fn hands_out_each_member_once_whether_listed_or_not_and_looks_at_no_more_than_it_may() {
        let definition = Arc::new(Definition::default());
        let name = BoardName::new("b").expect("a good name");
        let (mut members, mut tree) = (Members::new(), WindowTree::new(name, Arc::clone(&definition)));
        let score = Score::new(&[1]).expect("one key");
        for number in 0..300_u32 {
            let id = number.to_string().into_bytes();
            let listed = EntryState::Listed(definition.entry_words(&score, Timestamp::default(), &id));
            let (state, version) = match number % 3 {
                0 => (listed, None),
                1 => (listed, Some(1)),
                _ => (EntryState::Removed, Some(1)),
            };
            let handle = members.add(&id);
            let entry = Entry { state, updated_at: Timestamp::default(), version, has_metadata: false };
            tree.apply(&[Change { tree: TreeId(0), handle, after: Some(entry) }], &mut members);
        }
        let known: BTreeSet<Handle> = tree.handles().collect();
        assert_eq!(known.len(), 300);
        let mut retired = tree.retire();
        let (mut handed_out, mut slices) = (Vec::new(), 0);
        loop {
            let (slice, more) = retired.next_slice(7);
            assert!(slice.len() <= 7);
            handed_out.extend(slice);
            slices += 1;
            if !more {
                break;
            }
        }
        assert_eq!(handed_out.len(), 300);
        assert_eq!(handed_out.into_iter().collect::<BTreeSet<_>>(), known);
        assert!(slices <= 300 / 7 + 2, "{slices}");
    }
}
