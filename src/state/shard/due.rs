//! What time brings: instances that are dropped, and entries that expire. Neither happens by itself: the next
//! message brings it.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::state::entry::TreeId;
use crate::state::expiry::{Expiring, Expiry};
use crate::state::shard::Shard;
use crate::types::{BoardName, Timestamp};
use crate::window::Instance;

/// Entries whose expiry is noted at once when a shard is loaded.
const NOTED_AT_ONCE: usize = 65_536;

impl Shard {
    /// When instances are to be dropped, the earliest first, after a place in that order or from the start.
    pub fn drops_due_after(
        &self,
        place: Option<&(Timestamp, BoardName)>,
    ) -> impl Iterator<Item = &(Timestamp, BoardName)> {
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.drops_due.range((from, Bound::Unbounded))
    }

    /// When a message must come at the latest, so that what is due happens. `None`: nothing will be.
    pub fn next_due(&self) -> Option<Timestamp> {
        let drop = self.drops_due.first().map(|(at, _)| *at);
        drop.into_iter().chain(self.expiry.next()).min()
    }

    /// Instances that have not begun by the shard's time, with the time at which they begin: jobs of a leap
    /// have entered them. See [`ShardTime`](crate::state::ShardTime).
    pub fn early_instances(&self) -> EarlyInstances {
        let instances = self.boards.iter().filter(|(name, _)| name.is_instance());
        let early = instances.filter_map(|(name, board)| {
            let begin = board.definition.begins_name_at(name)?;
            (begin > self.time).then(|| (begin, name.clone()))
        });
        early.collect()
    }

    pub fn expiry(&self) -> &Expiry {
        &self.expiry
    }

    /// Whether entries of some tree are to be noted before the next change; see [`Shard::note_expiring`].
    pub fn has_expiry_to_note(&self) -> bool {
        self.expiry.is_waiting()
    }

    /// Notes when up to `limit` entries expire of boards whose `entry_ttl` changed. Returns whether there are
    /// more.
    pub fn note_expiring(&mut self, limit: usize) -> bool {
        let Some((id, mut place)) = self.expiry.take_waiting() else { return false };
        let tree = self.trees.get(&id);
        let rule = tree.and_then(|tree| Some((tree, Instance::of_name_on_shards(&tree.board)?)));
        let Some((tree, instance)) = rule else {
            self.expiry.add(id, Vec::new(), None);
            return self.has_expiry_to_note();
        };
        let handles = tree.handles_from(&mut place, limit);
        let expiring = handles.iter().filter_map(|handle| {
            let (entry, member) = (tree.entry(*handle), self.members.id(*handle));
            Expiring::of((&tree.definition, instance), member, *handle, entry.as_ref())
        });
        let expiring = expiring.collect();
        self.expiry.add(id, expiring, (handles.len() == limit).then_some(place));
        self.has_expiry_to_note()
    }

    /// Notes when entries expire, of all boards: after a shard was loaded.
    pub fn note_all_expiring(&mut self) {
        let ids: Vec<TreeId> = self.trees.keys().copied().collect();
        for id in ids {
            self.await_expiry(id);
        }
        while self.note_expiring(NOTED_AT_ONCE) {}
        self.expired.clear();
    }

    pub(super) fn note_expired(&mut self, forgotten: BTreeSet<Expiring>) {
        if !forgotten.is_empty() {
            self.expired.push(forgotten);
        }
    }

    /// A tree's board has another `entry_ttl`: has its entries noted anew.
    pub(super) fn await_expiry(&mut self, id: TreeId) {
        let forgotten = self.expiry.forget(id);
        self.note_expired(forgotten);
        if self.trees.get(&id).is_some_and(|tree| tree.definition.entry_ttl_micros.is_some()) {
            self.expiry.wait_for(id);
        }
    }

    /// When an instance is dropped, or what movement needs since one began, by the definition that it has:
    /// that of its board, once nothing is unfinished.
    pub(super) fn drop_due(&self, name: &BoardName) -> Option<(Timestamp, BoardName)> {
        let definition = &self.boards.get(name.as_str())?.definition;
        Some((definition.drops_name_at(name)?, name.clone()))
    }

    pub fn has_expired_to_free(&self) -> bool {
        !self.expired.is_empty()
    }

    /// The memory of what is known of expired entries of trees that are gone, for the caller to free without
    /// the lock.
    pub fn take_expired(&mut self) -> Vec<BTreeSet<Expiring>> {
        std::mem::take(&mut self.expired)
    }
}

/// Instances by the time at which they begin. Only jobs of a leap enter such; see
/// [`ShardTime`](crate::state::ShardTime).
pub type EarlyInstances = BTreeSet<(Timestamp, BoardName)>;
