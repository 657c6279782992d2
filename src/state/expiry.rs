//! When entries expire: for boards with an `entry_ttl`, every entry that will expire while its instance is
//! open, in the order in which they will.
//!
//! Knows: the order, which replicas share. Must not know: that an entry is removed then, which is a plan's
//! work (`writer::plan`).
//!
//! Costs some 25 bytes an entry, and nothing for other boards. The entries of a tree are noted a slice at a
//! time when its board's definition comes to have another `entry_ttl`; until then the writer applies nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::board::Definition;
use crate::state::entry::{Entry, EntryState, TreeId};
use crate::state::window_tree::EntriesPlace;
use crate::tree::Handle;
use crate::types::{Timestamp, fnv1a_32};
use crate::window::Instance;

/// An entry that will expire. The order is by time, then by the hash of the member's id: replicas may have
/// given the member other handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiring {
    pub at: Timestamp,
    /// FNV-1a of the member's id.
    pub hash: u32,
    pub handle: Handle,
}

impl Expiring {
    /// When an entry of an instance expires. `None`: it does not, as long as the instance is open.
    pub fn of(
        (definition, instance): (&Definition, Instance),
        member: &[u8],
        handle: Handle,
        entry: Option<&Entry>,
    ) -> Option<Self> {
        let entry = entry.filter(|entry| entry.state != EntryState::Removed)?;
        let at = definition.expires_at(instance, entry.updated_at)?;
        Some(Self { at, hash: fnv1a_32(member), handle })
    }
}

/// The expiring entries of a shard.
#[derive(Default)]
pub struct Expiry {
    by_tree: BTreeMap<TreeId, BTreeSet<Expiring>>,
    /// The first of each tree that has any.
    first: BTreeSet<(Timestamp, TreeId)>,
    /// Trees whose entries are not noted yet.
    waiting: BTreeSet<TreeId>,
    /// The one of them that is being noted, and how far it was.
    noting: Option<(TreeId, EntriesPlace)>,
    entries: usize,
}

impl Expiry {
    /// When the first entry expires.
    pub fn next(&self) -> Option<Timestamp> {
        self.first.first().map(|(at, _)| *at)
    }

    /// Trees by when their first entry expires, after a place in that order or from the first on.
    pub fn tree_after(&self, place: Option<(Timestamp, TreeId)>) -> Option<(Timestamp, TreeId)> {
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.first.range((from, Bound::Unbounded)).next().copied()
    }

    /// The next entry of a tree that expires, after this one or the first of all.
    pub fn entry_after(&self, tree: TreeId, entry: Option<Expiring>) -> Option<Expiring> {
        let from = entry.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_tree.get(&tree)?.range((from, Bound::Unbounded)).next().copied()
    }

    /// Entries that will expire.
    pub fn len(&self) -> usize {
        self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Notes that an entry changed.
    pub(super) fn replace(&mut self, tree: TreeId, before: Option<Expiring>, after: Option<Expiring>) {
        if before == after || self.waiting.contains(&tree) {
            return;
        }
        let of_tree = self.by_tree.entry(tree).or_default();
        let first = of_tree.first().map(|first| first.at);
        let removed = before.is_some_and(|before| of_tree.remove(&before));
        let added = after.is_some_and(|after| of_tree.insert(after));
        self.entries = self.entries + usize::from(added) - usize::from(removed);
        let now = of_tree.first().map(|first| first.at);
        if of_tree.is_empty() {
            self.by_tree.remove(&tree);
        }
        self.note_first(tree, first, now);
    }

    fn note_first(&mut self, tree: TreeId, before: Option<Timestamp>, after: Option<Timestamp>) {
        if before != after {
            before.map(|at| self.first.remove(&(at, tree)));
            self.first.extend(after.map(|at| (at, tree)));
        }
    }

    /// Forgets a tree. Returns its entries, to be freed without the lock.
    pub(super) fn forget(&mut self, tree: TreeId) -> BTreeSet<Expiring> {
        self.waiting.remove(&tree);
        self.noting.take_if(|(noting, _)| *noting == tree);
        let entries = self.by_tree.remove(&tree).unwrap_or_default();
        self.entries -= entries.len();
        self.note_first(tree, entries.first().map(|first| first.at), None);
        entries
    }

    /// Has the entries of a tree noted, by [`Expiry::add`], before the next change.
    pub(super) fn wait_for(&mut self, tree: TreeId) {
        self.waiting.insert(tree);
    }

    /// Whether entries of some tree are to be noted.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The tree whose entries are to be noted next, and how far they were.
    pub(super) fn take_waiting(&mut self) -> Option<(TreeId, EntriesPlace)> {
        self.noting.take().or_else(|| Some((*self.waiting.first()?, EntriesPlace::default())))
    }

    /// Notes entries of a tree that [`Expiry::take_waiting`] gave.
    ///
    /// # Arguments
    /// `from`: where to go on; `None` if these are the last.
    pub(super) fn add(&mut self, tree: TreeId, entries: Vec<Expiring>, from: Option<EntriesPlace>) {
        let of_tree = self.by_tree.entry(tree).or_default();
        let (first, noted) = (of_tree.first().map(|first| first.at), of_tree.len());
        of_tree.extend(entries);
        self.entries += of_tree.len() - noted;
        let now = of_tree.first().map(|first| first.at);
        if of_tree.is_empty() {
            self.by_tree.remove(&tree);
        }
        self.note_first(tree, first, now);
        if from.is_none() {
            self.waiting.remove(&tree);
        }
        self.noting = from.map(|from| (tree, from));
    }

    /// Memory held, in bytes, about.
    pub fn bytes(&self) -> usize {
        // Nodes of a B-tree are about three quarters full.
        self.entries * size_of::<Expiring>() * 4 / 3
    }
}
