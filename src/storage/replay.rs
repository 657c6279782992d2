//! Replays the deltas after a checkpoint: at a start after a crash, and in the writer after a failed commit.
//!
//! Knows: that deltas hold absolute values. So many of them can be merged, and only the last change of an
//! entry is applied. Must not know: where the shard came from.
//!
//! One thread reads and decodes, another one applies. Most of the time of applying is spent waiting for
//! memory. So members are looked up in groups: the cache lines of a whole group are prefetched before any is
//! used. A tree gets many changes at once for the same reason.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, sync_channel};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::state::{
    Applied, BoardEvent, Change, Entry, EntryState, IdBytes, MemberHash, Shard, Step, TreeId,
};
use crate::storage::codec::{self, Delta, DeltaChange, Undecodable};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::{Progress, Store};
use crate::tree::Handle;
use crate::types::{Sequence, count};

/// Changes applied at once: enough for merging to save work, with little memory.
const CHANGES_AT_ONCE: usize = if cfg!(test) { 8 } else { 65_536 };
/// Deltas decoded in advance. A delta has about a thousand changes; the largest, of a full batch of large
/// requests, has some tens of thousands.
const DECODED_AHEAD: usize = 16;
/// Look-ups whose waits for memory overlap.
const GROUP: usize = 16;

/// How many entries trees should list, by tree.
pub type ExpectedCounts = BTreeMap<TreeId, u64>;

/// Applies the deltas after the shard's applied sequence. Returns how many there were, and how many changes
/// they had.
///
/// # Arguments
/// `totals`: how many entries some trees should list. The replay adds the entries that deltas create, and
/// subtracts those that they remove.
///
/// # Errors
/// When one is damaged or missing, or the log does not end where its meta record says.
pub fn replay(
    store: &Store,
    shard: &mut Shard,
    totals: &mut ExpectedCounts,
    progress: Progress<'_>,
) -> Result<(u64, u64), StorageError> {
    let start = shard.applied.sequence;
    let end = store.meta()?.map_or(0, |meta| meta.applied_sequence);
    if end < start.0 {
        return Err(store
            .damaged(format!("its log ends at sequence {end}, before {start}, which was on disk already")));
    }
    let told = |at: Sequence| progress("replaying deltas", at.0 - start.0, end - start.0);
    let (scanned, replayed) = std::thread::scope(|scope| {
        let (sender, decoded) = sync_channel(DECODED_AHEAD);
        let scan = scope.spawn(move || {
            store.scan_log(&[keys::DELTA], &keys::delta(start.next()), |_, value| {
                // The applying thread has stopped because of an error, which it returns.
                let stopped = |_| Undecodable {
                    kind: "delta",
                    reason: "it is no longer needed, because applying the deltas failed".to_owned(),
                };
                sender.send(codec::decode_delta(value)?).map_err(stopped)
            })
        });
        let replayed = apply_all(shard, decoded, totals, &told);
        (scan.join().expect("reading the log does not panic"), replayed)
    });
    let (deltas, changes) = replayed.map_err(|error| store.damaged(error))?;
    scanned?;
    let applied = shard.applied.sequence;
    if applied.0 != end {
        return Err(store.damaged(format!(
            "its meta record says that {end} is applied, but its deltas end at {applied}"
        )));
    }
    // The log has them as they are at its end.
    let (bans, versions) = store.member_records()?;
    shard.set_records(bans, versions, (store.last_jobs()?, store.job_ids()?));
    Ok((deltas, changes))
}

fn apply_all(
    shard: &mut Shard,
    decoded: Receiver<Delta>,
    totals: &mut ExpectedCounts,
    told: &dyn Fn(Sequence),
) -> Result<(u64, u64), Undecodable> {
    let mut pending = Pending::new(shard.applied);
    let (mut deltas, mut changes) = (0, 0);
    for delta in decoded {
        let expected = pending.applied.sequence.next();
        if delta.first > expected {
            return Err(Undecodable {
                kind: "delta",
                reason: format!("messages {expected} to {} are missing before it", delta.first.0 - 1),
            });
        }
        if !delta.events.is_empty() {
            // The delta may define trees that its own changes name, so its events come first.
            pending.apply(shard);
            check_definitions(shard, &delta.events)?;
            let applied = shard.applied;
            shard.apply(&Step { events: delta.events, applied, ..Step::default() });
        }
        deltas += 1;
        changes += count(delta.changes.len());
        if !totals.is_empty() {
            add_up(totals, &delta.changes);
        }
        pending.add(shard, &delta.changes)?;
        pending.applied = delta.applied;
        if pending.changes.len() >= CHANGES_AT_ONCE {
            pending.apply(shard);
            told(shard.applied.sequence);
        }
    }
    pending.apply(shard);
    told(shard.applied.sequence);
    Ok((deltas, changes))
}

/// A definition that turns a life of a board into another board is of another shard, or of damaged data.
fn check_definitions(shard: &Shard, events: &[BoardEvent]) -> Result<(), Undecodable> {
    for event in events {
        if let BoardEvent::Define { board, incarnation, definition, .. } = event
            && let Some(known) = shard.board(board.as_str())
            && known.incarnation == *incarnation
            && !known.definition.agrees_with(definition)
        {
            let reason =
                format!("it defines the board {board} anew, with other fields than the same life has");
            return Err(Undecodable { kind: "delta", reason });
        }
    }
    Ok(())
}

fn add_up(totals: &mut ExpectedCounts, changes: &[DeltaChange]) {
    let listed = |entry: Option<Entry>| {
        u64::from(entry.is_some_and(|entry| matches!(entry.state, EntryState::Listed(_))))
    };
    for change in changes {
        if let Some(total) = totals.get_mut(&change.tree) {
            *total = (*total + listed(change.after)).saturating_sub(listed(change.before));
        }
    }
}

/// Changes of several deltas, to be applied together.
struct Pending {
    /// Of the last delta added.
    applied: Applied,
    /// In the order in which they came.
    changes: Vec<Change>,
    /// Members that the shard does not have yet, in the order of the handles that they will get.
    new_members: Vec<IdBytes>,
    by_id: HashMap<IdBytes, Handle, FixedState>,
}

impl Pending {
    fn new(applied: Applied) -> Self {
        Self { applied, changes: Vec::new(), new_members: Vec::new(), by_id: HashMap::default() }
    }

    /// Adds a delta's changes. Nothing in the shard changes yet.
    fn add(&mut self, shard: &Shard, changes: &[DeltaChange]) -> Result<(), Undecodable> {
        let mut columns: Option<(TreeId, Option<usize>)> = None;
        for group in changes.chunks(GROUP) {
            let mut hashes = [None::<MemberHash>; GROUP];
            for (hash, change) in hashes.iter_mut().zip(group) {
                let hashed = shard.members.hash(&change.member);
                shard.members.prefetch_index(hashed);
                *hash = Some(hashed);
            }
            for hash in hashes.iter().flatten() {
                // Prefetches the cache lines in which the member is likely to be found.
                let _ = shard.members.prefetch_id(*hash);
            }
            for (hash, change) in hashes.iter().flatten().zip(group) {
                let of_tree = match columns {
                    Some((tree, columns)) if tree == change.tree => columns,
                    _ => shard.tree(change.tree).map(|tree| tree.tree.columns()),
                };
                columns = Some((change.tree, of_tree));
                // If the tree does not exist, a later message of the same delta dropped its board.
                let Some(of_tree) = of_tree else { continue };
                let words = change.after.and_then(|entry: Entry| entry.words());
                if words.is_some_and(|words| words.as_slice().len() != of_tree) {
                    let tree = change.tree.0;
                    let reason =
                        format!("the number of words of an entry of tree {tree} is not that of its board");
                    return Err(Undecodable { kind: "delta", reason });
                }
                if let Some(handle) = self.handle_of(shard, *hash, change)? {
                    self.changes.push(Change { tree: change.tree, handle, after: change.after });
                }
            }
        }
        Ok(())
    }

    /// `None`: the change removes an entry of a member that the shard does not know, so there is nothing to
    /// remove.
    fn handle_of(
        &mut self,
        shard: &Shard,
        hash: MemberHash,
        change: &DeltaChange,
    ) -> Result<Option<Handle>, Undecodable> {
        let id = change.member.as_slice();
        let known = shard.members.find(hash, id).or_else(|| self.by_id.get(id).copied());
        if known.is_some() || change.after.is_none() {
            return Ok(known);
        }
        if self.new_members.len() >= shard.members.room() {
            let reason = "it adds more members than a shard can hold".to_owned();
            return Err(Undecodable { kind: "delta", reason });
        }
        let handle = shard.members.nth_next_handle(self.new_members.len());
        self.new_members.push(id.into());
        self.by_id.insert(id.into(), handle);
        Ok(Some(handle))
    }

    /// Applies the added changes: for each entry, only the last one.
    fn apply(&mut self, shard: &mut Shard) {
        // Sorted by handle, because everything that is kept by handle is in that order in memory; then in the
        // order of arrival.
        let numbered = (0_usize..).zip(&self.changes);
        let mut order: Vec<_> = numbered.map(|(at, change)| (change.tree, change.handle, at)).collect();
        order.sort_unstable();
        let last = order.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter_map(<[_]>::last);
        let changes = last.filter_map(|(_, _, at)| self.changes.get(*at).copied()).collect();
        self.changes.clear();
        self.by_id.clear();
        let added = std::mem::take(&mut self.new_members);
        shard.apply(&Step { added, changes, applied: self.applied, ..Step::default() });
    }
}
