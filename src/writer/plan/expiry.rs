//! Plans which entries expire at a message: on boards with an `entry_ttl`, those that were not updated for
//! that long.
//!
//! Knows: the order in which entries expire, which is the same on all replicas, however they cut the log into
//! batches. Must not know: how the shard keeps that order.
//!
//! All that is due at a message is gone before the message does anything else: readers of what it has done
//! find nothing of it. Where that is much, it is applied in several steps before the message's own. Readers
//! of other boards are shown the message before meanwhile, and those of these boards wait. A limit keeps a
//! message from taking all memory: later messages expire the rest, and until then a job takes it as gone, and
//! a reader does not.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::board::Definition;
use crate::state::{Applied, Entry, EntryState, Expiring, TreeId};
use crate::tree::Handle;
use crate::types::{BoardName, MemberId, Timestamp, fnv1a_32};
use crate::window::Instance;
use crate::writer::decide::{Decision, Request, decide};
use crate::writer::plan::Batch;

/// Expired entries that one step removes: few enough to be applied in a fifth of a millisecond. After a
/// message's jobs there is one such step at most: only a change of a definition leaves more.
const EXPIRED_PER_STEP: usize = if cfg!(test) { 3 } else { 64 };
/// Expired entries that a message removes before its jobs: some 20 MB of a commit.
const EXPIRED_PER_MESSAGE: usize = if cfg!(test) { 300 } else { 100_000 };
/// Entries that are planned before the lock is yielded.
const ENTRIES_PER_YIELD: usize = 16;

type ExpiringInTree = (Expiring, TreeId);

/// Which entries expire next, as the batch sees it.
#[derive(Default)]
pub(super) struct DueEntries {
    /// The shard's: the next of each tree that was looked at.
    heads: BinaryHeap<Reverse<ExpiringInTree>>,
    /// The last tree that was looked at, with the time at which its first entry expires.
    last_tree: Option<(Timestamp, TreeId)>,
    /// Entries that the batch changed, and those that were too many for a message, with their members.
    changed: BTreeMap<ExpiringInTree, MemberId>,
}

/// An entry that has expired.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Expired {
    at: Timestamp,
    hash: u32,
    /// The board or instance.
    name: BoardName,
    member: MemberId,
    tree: TreeId,
    handle: Handle,
}

impl Expired {
    fn key(&self) -> ExpiringInTree {
        (Expiring { at: self.at, hash: self.hash, handle: self.handle }, self.tree)
    }
}

impl Batch<'_> {
    /// An entry as a job finds it: none, or only its version, if it has expired.
    pub(super) fn unless_expired(
        &self,
        definition: &Definition,
        board: &BoardName,
        entry: Option<Entry>,
    ) -> Option<Entry> {
        let found = entry?;
        if definition.entry_ttl_micros.is_none() || found.state == EntryState::Removed {
            return entry;
        }
        let has_expired = expires_at(definition, board, &found).is_some_and(|at| at <= self.time);
        if !has_expired {
            return entry;
        }
        found.version.map(|_| Entry { state: EntryState::Removed, has_metadata: false, ..found })
    }

    /// What a job decides, if its entry does not expire at once: then it enters nothing, because its time is
    /// as long ago as entries stay. Only an entry that was not there can: a job makes no entry older.
    pub(super) fn unless_too_old(
        &self,
        definition: &Definition,
        board: &BoardName,
        decision: Decision,
    ) -> Decision {
        let after = match decision.after {
            Some(after) if definition.entry_ttl_micros.is_some() && after.state != EntryState::Removed => {
                after
            }
            _ => return decision,
        };
        if expires_at(definition, board, &after).is_none_or(|at| at > self.time) {
            return decision;
        }
        let after = after.version.map(|_| Entry { state: EntryState::Removed, has_metadata: false, ..after });
        Decision::of(after, false)
    }

    /// Notes when an entry expires that the batch changed.
    pub(super) fn note_expiring(
        &mut self,
        definition: &Definition,
        board: &BoardName,
        (tree, handle): (TreeId, Handle),
        member: &MemberId,
        entry: Option<&Entry>,
    ) {
        let entry = entry.filter(|entry| entry.state != EntryState::Removed);
        if let Some(at) = entry.and_then(|entry| expires_at(definition, board, entry)) {
            let expiring = Expiring { at, hash: fnv1a_32(member.as_bytes()), handle };
            self.expiring.changed.insert((expiring, tree), member.clone());
        }
    }

    /// Removes the entries that have expired, before a message's jobs. All but the last of them are applied
    /// in steps of their own, after those of the messages before. Returns how many the step being filled has.
    pub(super) fn expire_all_due(&mut self, applied: Applied) -> usize {
        let mut due = self.next_expired();
        let mut expired = 0;
        loop {
            expired += due.len();
            let next = if expired < EXPIRED_PER_MESSAGE { self.next_expired() } else { Vec::new() };
            if next.is_empty() {
                self.expire_each(&due, applied);
                return due.len();
            }
            // What the step being filled has is of the messages before.
            self.close_step();
            self.expire_each(&due, applied);
            self.close_step_ahead();
            due = next;
        }
    }

    /// Removes some of the entries that have expired, after a message's jobs.
    pub(super) fn expire_some_due(&mut self, applied: Applied) -> usize {
        let due = self.next_expired();
        self.expire_each(&due, applied);
        due.len()
    }

    fn expire_each(&mut self, due: &[Expired], applied: Applied) {
        for (index, expired) in due.iter().enumerate() {
            if index % ENTRIES_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            self.expire(expired, applied);
        }
    }

    /// The entries of one step that have expired.
    fn next_expired(&mut self) -> Vec<Expired> {
        let is_due = |at: Timestamp| at <= self.time;
        let first_changed = self.expiring.changed.first_key_value().map(|((expiring, _), _)| expiring.at);
        // Usually nothing is.
        if !self.shard.expiry().next().is_some_and(is_due) && !first_changed.is_some_and(is_due) {
            return Vec::new();
        }
        self.due_entries()
    }

    fn expire(&mut self, Expired { name, member, tree, handle, .. }: &Expired, applied: Applied) {
        let Some(board) = self.board(name) else { return };
        let (definition, incarnation) = (Arc::clone(board.definition), board.incarnation);
        let before = self.entry(*tree, *handle);
        let request = Request::removal(member, self.time);
        let Ok(decision) = decide(&definition, before.as_ref(), &request) else { return };
        self.hash_entry((name, incarnation), member, (before.as_ref(), decision.after.as_ref()));
        self.change(*tree, *handle, before.as_ref(), decision.after);
        let (found, left) = (before.as_ref(), decision.after.as_ref());
        self.note_movement((name, incarnation, &definition), (member, *handle), (found, left));
        self.expired += 1;
        self.plan_metadata((member, None), *tree, *handle, before.as_ref(), &decision, applied.sequence);
    }

    /// The next entries to expire, the earliest first. Those that expire at the same time are in
    /// an order that replicas share: by the hash of the member's id, the board and the id.
    fn due_entries(&mut self) -> Vec<Expired> {
        let mut due: Vec<Expired> = Vec::new();
        while let Some(next) = self.next_due_entry() {
            let is_alike = due.last().is_some_and(|last| (last.at, last.hash) == (next.at, next.hash));
            if due.len() >= EXPIRED_PER_STEP && !is_alike {
                self.expiring.changed.insert(next.key(), next.member);
                break;
            }
            due.push(next);
        }
        due.sort_unstable();
        for surplus in due.drain(EXPIRED_PER_STEP.min(due.len())..) {
            self.expiring.changed.insert(surplus.key(), surplus.member);
        }
        due
    }

    /// Takes the entry that expires next, if its time has come.
    fn next_due_entry(&mut self) -> Option<Expired> {
        let now = self.time;
        loop {
            let DueEntries { heads, last_tree, changed } = &mut self.expiring;
            let expiry = self.shard.expiry();
            // Trees come in the order of their first entries.
            while let Some((at, tree)) = expiry.tree_after(*last_tree)
                && at <= now
                && heads.peek().is_none_or(|Reverse((head, _))| at <= head.at)
            {
                *last_tree = Some((at, tree));
                heads.extend(expiry.entry_after(tree, None).map(|first| Reverse((first, tree))));
            }
            let is_due = |(expiring, _): &ExpiringInTree| expiring.at <= now;
            let of_shard = heads.peek().map(|Reverse(head)| *head).filter(is_due);
            let of_batch = changed.first_key_value().map(|(key, _)| *key).filter(is_due);
            let next = match (of_shard, of_batch) {
                (Some(of_shard), Some(of_batch)) => of_shard.min(of_batch),
                (of_shard, of_batch) => of_shard.or(of_batch)?,
            };
            let (expiring @ Expiring { at, hash, handle }, tree) = next;
            let of_batch = changed.remove(&next);
            let member = if of_shard == Some(next) {
                heads.pop();
                // Of a tree that is gone there may be any number.
                if self.may_expire(tree) {
                    let later = self.shard.expiry().entry_after(tree, Some(expiring));
                    self.expiring.heads.extend(later.map(|later| Reverse((later, tree))));
                }
                let id = std::str::from_utf8(self.shard.members.id(handle));
                id.ok().and_then(|id| MemberId::new(id).ok())
            } else {
                of_batch
            };
            if let Some(member) = member
                && let Some(name) = self.name_if_expiring(next)
            {
                return Some(Expired { at, hash, name, member, tree, handle });
            }
        }
    }

    /// Whether a tree of the shard is still there, and its entries expire.
    fn may_expire(&self, tree: TreeId) -> bool {
        let Some(name) = self.shard.tree(tree).map(|window| &window.board) else { return false };
        let expires =
            |name| self.board(name).is_some_and(|board| board.definition.entry_ttl_micros.is_some());
        self.board(name).is_some_and(|board| board.tree == tree) && expires(&name.board())
    }

    /// The name of an entry's board or instance, unless the entry has changed since.
    fn name_if_expiring(&self, (expiring, tree): ExpiringInTree) -> Option<BoardName> {
        let known = self.shard.tree(tree).map(|window| &window.board);
        let name = known.or_else(|| self.new_trees.get(&tree))?;
        let board = self.board(name).filter(|board| board.tree == tree)?;
        // An instance has the definition that its board has now.
        let definition = self.board(&name.board()).map_or(board.definition, |board| board.definition);
        let instance = Instance::of_name_on_shards(name)?;
        let entry = self.entry(tree, expiring.handle).filter(|entry| entry.state != EntryState::Removed)?;
        (definition.expires_at(instance, entry.updated_at) == Some(expiring.at)).then(|| name.clone())
    }
}

fn expires_at(definition: &Definition, board: &BoardName, entry: &Entry) -> Option<Timestamp> {
    let instance = Instance::of_name_on_shards(board)?;
    definition.expires_at(instance, entry.updated_at)
}
