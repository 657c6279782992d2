//! The members of a shard: id ↔ handle, and which trees know each.
//!
//! Knows: when a handle may be given to someone else. Must not know: scores.
//!
//! A handle stands for the same member from one completed checkpoint to the next: checkpoints copy members
//! while the writer goes on, so a reused handle would attribute one member's score to another. Hence two
//! rules:
//! - A handle that is given up is quarantined until a checkpoint that began afterwards has completed.
//! - While a checkpoint is running, new members get handles never used before, and the checkpoint leaves
//!   those out. So the disk never names a member that arrived after the checkpoint began, and which may get
//!   another handle in a replay.

mod check;
mod dictionary;

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::sync::Arc;

use crate::state::entry::TreeId;
use crate::state::handle_map::{HandleSet, Segments};
use crate::state::handle_stack::HandleStack;
use crate::state::ids::Ids;
use crate::state::index::Index;
use crate::state::memberships::Memberships;
use crate::tree::{Handle, MemberOrder, PageSet, compare_ids};

pub use dictionary::{Dictionary, DictionaryIndex};

/// Handles per dictionary page on disk.
pub const MEMBERS_PER_PAGE: u32 = if cfg!(test) { 4 } else { 256 };

/// The most handles that a shard gives out, and so the most members that it can hold: handles are 32 bits
/// wide, and the last value is reserved.
pub const HANDLES_MAX: u32 = u32::MAX;

/// Handles freed per hold of the lock: some 50 µs.
const HANDLES_FREED_PER_HOLD: usize = if cfg!(test) { 3 } else { 512 };

/// Members who leave that are prefetched for as a group: with the runs of slots they are in, a quarter of a
/// second-level cache at the most.
const REMOVALS_WARMED: usize = 64;

/// A member's hash, computed once per look-up.
#[derive(Debug, Clone, Copy)]
pub struct MemberHash(u64);

/// A time in which no handle goes from one member to another. No two are equal, whatever shard they are of.
#[derive(Debug, Clone, Default)]
pub struct Era(Arc<()>);

impl PartialEq for Era {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

pub struct Members {
    ids: Ids,
    index: Index,
    hasher: foldhash::fast::RandomState,
    /// By handle: the trees that know the member. None: the handle is free or quarantined.
    memberships: Memberships,
    free: HandleStack,
    /// Handles that were free when the running checkpoint began, and which are not given out until it ends.
    /// `free` is empty meanwhile.
    unavailable_until_checkpoint_ends: HandleStack,
    /// Handles from this one on are newer than the running checkpoint.
    checkpoint_handle_end: u32,
    /// Handles released since the last checkpoint began.
    quarantined: HandleSet,
    /// Handles released before the running checkpoint began; they are freed once it completes. One more set
    /// for each checkpoint that failed.
    quarantined_before_checkpoint: Vec<HandleSet>,
    /// Handles that no checkpoint names any more: they are freed a slice at a time.
    freeing: Vec<Segments<()>>,
    /// The slice that is being freed.
    freeing_now: Vec<Handle>,
    /// Dictionary pages to write at the next checkpoint.
    dirty_pages: PageSet,
    /// Another one whenever handles may begin to be given out anew.
    era: Era,
    /// The most handles to give out: [`HANDLES_MAX`], or fewer in tests.
    handles_max: u32,
}

impl Default for Members {
    fn default() -> Self {
        Self::new()
    }
}

impl Members {
    pub fn new() -> Self {
        Self::over(Ids::default(), Index::new(), 0)
    }

    fn over(ids: Ids, index: Index, handles: u32) -> Self {
        Self {
            ids,
            index,
            hasher: foldhash::fast::RandomState::default(),
            memberships: Memberships::new(handles),
            free: HandleStack::default(),
            era: Era::default(),
            unavailable_until_checkpoint_ends: HandleStack::default(),
            checkpoint_handle_end: u32::MAX,
            quarantined: HandleSet::default(),
            quarantined_before_checkpoint: Vec::new(),
            freeing: Vec::new(),
            freeing_now: Vec::new(),
            dirty_pages: PageSet::default(),
            handles_max: HANDLES_MAX,
        }
    }

    /// How many members can still be added. Members that left count until a checkpoint has completed without
    /// them.
    pub fn room(&self) -> usize {
        let unused = self.handles_max.saturating_sub(self.handle_space());
        self.free.len() + usize::try_from(unused).unwrap_or(usize::MAX)
    }

    /// Limits the handles, so that a test need not add four billion members.
    #[cfg(test)]
    pub fn limit_handles(&mut self, handles_max: u32) {
        self.handles_max = handles_max;
    }

    /// Members that at least one tree knows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One past the highest handle ever given out.
    pub fn handle_space(&self) -> u32 {
        self.memberships.len()
    }

    pub fn hash(&self, id: &[u8]) -> MemberHash {
        MemberHash(self.hasher.hash_one(id))
    }

    pub fn prefetch_index(&self, hash: MemberHash) {
        self.index.prefetch(hash.0);
    }

    /// Prefetches the id that a look-up will compare with, and returns its handle, so that a planner can
    /// prefetch by it. A hint: the handle may be another member's.
    pub fn prefetch_id(&self, hash: MemberHash) -> Option<Handle> {
        let handle = self.index.first_candidate(hash.0)?;
        self.ids.prefetch(handle);
        Some(handle)
    }

    /// Prefetches the id behind a handle.
    pub fn prefetch_id_of(&self, handle: Handle) {
        self.ids.prefetch(handle);
    }

    /// Prefetches the part of a long id that is not in its slot. Call it some time after
    /// [`Members::prefetch_id`].
    pub fn prefetch_long_id(&self, handle: Handle) {
        self.ids.prefetch_long(handle);
    }

    pub fn find(&self, hash: MemberHash, id: &[u8]) -> Option<Handle> {
        self.index.find(hash.0, |handle| self.ids.get(handle) == id)
    }

    pub fn get(&self, id: &[u8]) -> Option<Handle> {
        let hash = self.hash(id);
        // A look-up reads a tag, then a handle, each in a line of its own: asked for here, both come at once.
        self.prefetch_index(hash);
        self.find(hash, id)
    }

    /// As long as it is the same, a handle that a tree has had stands for the same member: one that has left
    /// is given out anew only after a checkpoint.
    pub fn era(&self) -> Era {
        self.era.clone()
    }

    /// The id behind a handle; empty for one never given out.
    pub fn id(&self, handle: Handle) -> &[u8] {
        self.ids.get(handle)
    }

    /// The handle that the `nth` member to be added from now on will get (0 is the next one). There is one if
    /// `nth` is below [`Members::room`].
    pub fn nth_next_handle(&self, nth: usize) -> Handle {
        match self.free.nth_next_handle(nth) {
            Some(handle) => handle,
            None => Handle(
                self.handle_space() + u32::try_from(nth - self.free.len()).expect("handles are 32 bits wide"),
            ),
        }
    }

    /// Adds a new member, and returns its handle. The caller has checked that there is [room](Members::room).
    pub fn add(&mut self, id: &[u8]) -> Handle {
        let handle = self.free.pop().unwrap_or_else(|| self.memberships.push());
        self.ids.set(handle, id);
        self.enter(handle);
        self.dirty_pages.insert(handle.0 / MEMBERS_PER_PAGE);
        handle
    }

    /// Adds a tree to a member's trees. Within a batch, a member may have left every tree and come back.
    pub fn add_tree(&mut self, handle: Handle, tree: TreeId) {
        if self.memberships.add(handle, tree) && self.quarantined.remove(handle).is_some() {
            self.enter(handle);
        }
    }

    /// Removes a tree from a member's trees. A member without trees is forgotten.
    pub fn remove_tree(&mut self, handle: Handle, tree: TreeId) {
        if self.memberships.remove(handle, tree) {
            self.forget(handle);
        }
    }

    /// The trees that hold an entry of a member, ascending, after `after`. Costs nothing for other or earlier
    /// trees. Includes trees of dropped boards that have not released the member yet.
    pub fn trees_after(&self, handle: Handle, after: Option<TreeId>) -> impl Iterator<Item = TreeId> {
        self.memberships.trees_after(handle, after)
    }

    /// Forgets a member that is on no tree: left over from a start-up, or from changes that cancelled out.
    pub fn forget_unless_known(&mut self, handle: Handle) {
        if !self.memberships.is_on_any_tree(handle) && self.get(self.id(handle)) == Some(handle) {
            self.forget(handle);
        }
    }

    /// Prefetches what [`Members::remove_tree`] will touch. To take a member out of the index, the ids of all
    /// behind it in its run of slots are hashed, and each of them is somewhere else in memory.
    pub fn warm_removals(&self, leaving: &[Handle]) {
        let mut hashes = [0; REMOVALS_WARMED];
        for group in leaving.chunks(REMOVALS_WARMED) {
            for handle in group {
                self.ids.prefetch(*handle);
                self.memberships.prefetch(*handle);
            }
            for (hash, handle) in hashes.iter_mut().zip(group) {
                *hash = self.hasher.hash_one(self.ids.get(*handle));
                self.index.prefetch(*hash);
            }
            for (hash, _) in hashes.iter().zip(group) {
                self.index.each_of_run(*hash, |other| self.ids.prefetch(other));
            }
            for (hash, _) in hashes.iter().zip(group) {
                self.index.each_of_run(*hash, |other| self.ids.prefetch_long(other));
            }
        }
    }

    fn forget(&mut self, handle: Handle) {
        let hash = self.hasher.hash_one(self.ids.get(handle));
        let (ids, hasher) = (&self.ids, &self.hasher);
        let hash_of = |other| hasher.hash_one(ids.get(other));
        self.index.remove(hash, handle, hash_of, |other| ids.prefetch(other));
        self.quarantined.insert(handle, ());
        self.dirty_pages.insert(handle.0 / MEMBERS_PER_PAGE);
    }

    fn enter(&mut self, handle: Handle) {
        let hash = self.hasher.hash_one(self.ids.get(handle));
        let (ids, hasher) = (&self.ids, &self.hasher);
        let hash_of = |other| hasher.hash_one(ids.get(other));
        self.index.insert(hash, handle, hash_of, |other| ids.prefetch(other));
    }

    /// Begins a checkpoint, and returns the pages to write. O(1) in the number of members.
    pub fn begin_checkpoint(&mut self) -> PageSet {
        let quarantined = std::mem::take(&mut self.quarantined);
        if !quarantined.is_empty() {
            self.quarantined_before_checkpoint.push(quarantined);
        }
        move_all(&mut self.free, &mut self.unavailable_until_checkpoint_ends);
        self.checkpoint_handle_end = self.handle_space();
        std::mem::take(&mut self.dirty_pages)
    }

    /// Completes a checkpoint. O(1) in the number of members.
    pub fn complete_checkpoint(&mut self) {
        self.end_checkpoint();
        if !self.quarantined_before_checkpoint.is_empty() {
            self.era = Era::default();
        }
        self.freeing.extend(self.quarantined_before_checkpoint.drain(..).map(HandleSet::into_segments));
        self.free_slice();
    }

    /// Whether there are handles for [`Members::free_slice`].
    pub fn has_handles_to_free(&self) -> bool {
        !(self.freeing.is_empty() && self.freeing_now.is_empty())
    }

    /// Frees a slice of the handles that completed checkpoints no longer name, and returns whether there are
    /// more. A dropped board of millions leaves millions.
    pub fn free_slice(&mut self) -> bool {
        // While a checkpoint is running, only handles never used before are given out.
        let to = if self.checkpoint_handle_end == u32::MAX {
            &mut self.free
        } else {
            &mut self.unavailable_until_checkpoint_ends
        };
        for _ in 0..HANDLES_FREED_PER_HOLD {
            while self.freeing_now.is_empty()
                && let Some(segments) = self.freeing.last_mut()
            {
                match segments.next() {
                    Some(slice) => self.freeing_now = slice,
                    None => drop(self.freeing.pop()),
                }
            }
            let Some(handle) = self.freeing_now.pop() else { break };
            self.ids.set(handle, b"");
            to.push(handle);
        }
        self.has_handles_to_free()
    }

    /// Ends a failed checkpoint: its pages are dirty again.
    pub fn abandon_checkpoint(&mut self, pages: PageSet) {
        self.end_checkpoint();
        self.dirty_pages.merge(pages);
    }

    fn end_checkpoint(&mut self) {
        move_all(&mut self.unavailable_until_checkpoint_ends, &mut self.free);
        self.checkpoint_handle_end = u32::MAX;
    }

    /// One past the highest handle that the running checkpoint may name.
    pub fn checkpoint_handle_end(&self) -> u32 {
        self.checkpoint_handle_end
    }

    /// Marks every page dirty: for a rebuild.
    pub fn mark_all_dirty(&mut self) {
        self.dirty_pages.extend(0..self.handle_space().div_ceil(MEMBERS_PER_PAGE));
    }

    /// The members of a dictionary page that exist, or did when the running checkpoint began.
    pub fn page(&self, page: u32) -> impl Iterator<Item = (Handle, &[u8])> {
        let first = page * MEMBERS_PER_PAGE;
        let past = (first + MEMBERS_PER_PAGE).min(self.handle_space()).min(self.checkpoint_handle_end);
        let existed =
            |handle: &Handle| self.memberships.is_on_any_tree(*handle) || self.quarantined.contains(*handle);
        (first..past).map(Handle).filter(existed).map(|handle| (handle, self.ids.get(handle)))
    }

    pub fn bytes(&self) -> usize {
        self.bytes_by_part().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Heap memory of each part, in bytes and by name.
    pub fn bytes_by_part(&self) -> [(&'static str, usize); 4] {
        let leaving = self.free.bytes()
            + self.unavailable_until_checkpoint_ends.bytes()
            + self.quarantined.bytes()
            + self.quarantined_before_checkpoint.iter().map(HandleSet::bytes).sum::<usize>();
        [
            ("ids", self.ids.bytes()),
            ("index", self.index.bytes()),
            ("memberships", self.memberships.bytes()),
            ("free handles, and what is due to the disk", leaving + self.dirty_pages.bytes()),
        ]
    }
}

/// Moves all handles. O(1) if `to` is empty, which it is unless a checkpoint failed.
fn move_all(from: &mut HandleStack, to: &mut HandleStack) {
    if to.is_empty() {
        std::mem::swap(from, to);
    }
    while let Some(handle) = from.pop() {
        to.push(handle);
    }
}

impl MemberOrder for Members {
    fn compare(&self, words: &[u64], a: Handle, b: Handle) -> Ordering {
        compare_ids(words, self.ids.get(a), self.ids.get(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: TreeId = TreeId(0);

    fn pages(set: &PageSet) -> Vec<u32> {
        set.iter().collect()
    }

    #[test]
    fn a_handle_is_not_reused_before_a_checkpoint_that_saw_it_go() {
        let mut members = Members::new();
        let [a, b] = ["a", "b"].map(|id| {
            let handle = members.add(id.as_bytes());
            members.add_tree(handle, TREE);
            handle
        });
        assert_eq!(pages(&members.begin_checkpoint()), [0]);
        members.remove_tree(a, TREE);
        assert_eq!(members.get(b"a"), None);
        assert_eq!(members.page(0).count(), 2, "the checkpoint under way began before it went");
        members.complete_checkpoint();
        assert_ne!(members.nth_next_handle(0), a);
        assert_eq!(pages(&members.begin_checkpoint()), [0]);
        assert_eq!(members.page(0).map(|(handle, _)| handle).collect::<Vec<_>>(), [b]);
        members.complete_checkpoint();
        assert_eq!(members.nth_next_handle(0), a);
        assert_eq!(members.nth_next_handle(1), Handle(2));
        assert_eq!(members.add(b"c"), a);
        assert_eq!(members.id(a), b"c");
    }

    /// Freeing goes on beside the next checkpoint, which must not see handles change hands.
    #[test]
    fn handles_are_freed_a_slice_at_a_time_and_not_given_out_during_a_checkpoint() {
        let mut members = Members::new();
        let gone: Vec<Handle> = (0..10_u8).map(|id| members.add(&[b'a' + id])).collect();
        for handle in &gone {
            members.add_tree(*handle, TREE);
            members.remove_tree(*handle, TREE);
        }
        members.begin_checkpoint();
        members.complete_checkpoint();
        assert!(members.nth_next_handle(2).0 < 10, "three are free");
        assert_eq!(members.nth_next_handle(3), Handle(10), "and no more than three");
        members.begin_checkpoint();
        while members.free_slice() {}
        assert_eq!(members.nth_next_handle(0), Handle(10));
        members.complete_checkpoint();
        let mut given: Vec<Handle> = (0..10).map(|nth| members.nth_next_handle(nth)).collect();
        given.sort_unstable();
        assert_eq!(given, gone);
    }

    #[test]
    fn a_member_that_leaves_and_returns_keeps_its_handle() {
        let mut members = Members::new();
        let a = members.add(b"a");
        members.add_tree(a, TREE);
        members.remove_tree(a, TREE);
        assert_eq!(members.get(b"a"), None);
        members.add_tree(a, TREE);
        assert_eq!(members.get(b"a"), Some(a));
        assert!(pages(&members.begin_checkpoint()).contains(&0));
        members.complete_checkpoint();
        assert_eq!(members.nth_next_handle(0), Handle(1), "the handle is in use and not free");
    }

    #[test]
    fn an_era_ends_before_a_handle_goes_to_another_member() {
        let mut members = Members::new();
        let a = members.add(b"a");
        members.add_tree(a, TREE);
        let era = members.era();
        members.remove_tree(a, TREE);
        members.begin_checkpoint();
        members.abandon_checkpoint(PageSet::default());
        members.begin_checkpoint();
        let b = members.add(b"b");
        assert_eq!((members.id(a), members.id(b)), (&b"a"[..], &b"b"[..]));
        assert!(members.era() == era && Members::new().era() != era);
        members.complete_checkpoint();
        assert!(members.era() != era, "the handle is free");
        assert_eq!(members.nth_next_handle(0), a);
    }
}
