//! Metadata of entries that an answer holds, read from disk after the shards were let go.
//!
//! The disk may be ahead of the answer. A record that is newer than the answer's `as_of`, or gone, says that the
//! entry has changed since; whoever asked then reads again.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::query::answer::{Entry, Listed, ListedMetadata, Page};
use crate::query::lookup::Lookup;
use crate::query::node::Node;
use crate::query::outcome::EntryChange;
use crate::state::TreeId;
use crate::storage::StorageError;
use crate::storage::codec::MetadataRecord;
use crate::types::{AsOf, Sequence, ShardId};

/// How often it is said at most that metadata cannot be read.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// An answer with entries in it.
pub trait HoldsEntries {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed));
}

impl HoldsEntries for Entry {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        visit(&mut self.listed);
    }
}

impl<E: HoldsEntries> HoldsEntries for Option<E> {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        if let Some(entries) = self {
            entries.each_entry(visit);
        }
    }
}

impl<E: HoldsEntries> HoldsEntries for Vec<E> {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        for entry in self {
            entry.each_entry(visit);
        }
    }
}

impl HoldsEntries for Listed {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        visit(self);
    }
}

impl HoldsEntries for Page {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        self.entries.each_entry(visit);
    }
}

impl HoldsEntries for Lookup {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        for (listed, _) in &mut self.entries {
            visit(listed);
        }
    }
}

/// Entries whose metadata is still to be read.
pub fn missing_metadata(answer: &mut impl HoldsEntries) -> usize {
    let mut missing = 0;
    answer.each_entry(&mut |listed| {
        missing += usize::from(matches!(listed.metadata, ListedMetadata::OnDisk(..)));
    });
    missing
}

/// Reads what is missing from the disk as it is. False: some of it is newer than the answer, or gone; that is left to
/// be read.
pub fn fill_metadata(node: &Node, as_of: &AsOf, answer: &mut impl HoldsEntries) -> bool {
    let read = |shard: ShardId, tree, member: &str| {
        node.shards.get(shard.index()).map(|handle| handle.store.metadata(tree, member.as_bytes()))
    };
    fill(as_of, answer, read).is_empty()
}

/// As [`fill_metadata`], of one moment, however long reading takes. Gives the sequences that the disk is known to be
/// ahead at.
pub(super) fn fill_metadata_of_now(node: &Node, as_of: &AsOf, answer: &mut impl HoldsEntries) -> AsOf {
    let stores: Vec<_> = node.shards.iter().map(|shard| shard.store.get()).collect();
    let snapshots: Vec<_> =
        stores.iter().map(|store| store.as_ref().ok().map(|store| store.snapshot())).collect();
    let read = |shard: ShardId, tree, member: &str| {
        snapshots.get(shard.index()).map(|snapshot| match snapshot {
            Some(snapshot) => snapshot.metadata(tree, member.as_bytes()),
            None => Err(StorageError::Closed),
        })
    };
    AsOf(fill(as_of, answer, read))
}

/// Fills in what `read` finds, and gives for each shard the newest sequence that was too new.
fn fill(
    as_of: &AsOf,
    answer: &mut impl HoldsEntries,
    read: impl Fn(ShardId, TreeId, &str) -> Option<Result<Option<MetadataRecord>, StorageError>>,
) -> Vec<(ShardId, Sequence)> {
    let mut ahead: Vec<(ShardId, Sequence)> = Vec::new();
    answer.each_entry(&mut |listed| {
        if let ListedMetadata::OnDisk(shard, tree) = listed.metadata {
            let Some(record) = read(shard, tree, &listed.member) else { return };
            let told = sequence_of(as_of, shard);
            let newer = match record {
                Ok(Some(record)) if record.sequence <= told.0 => {
                    listed.metadata = ListedMetadata::Json(record.json.into());
                    return;
                }
                Err(error) => {
                    tell_unreadable(shard, &error);
                    listed.metadata = ListedMetadata::Unreadable;
                    return;
                }
                Ok(Some(record)) => Sequence(record.sequence),
                Ok(None) => told.next(),
            };
            match ahead.iter_mut().find(|(known, _)| *known == shard) {
                Some((_, known)) => *known = newer.max(*known),
                None => ahead.push((shard, newer)),
            }
        }
    });
    ahead
}

/// Reads the metadata that a job left as it was. What has been written since by another job is not the entry's of that
/// moment, and what was there before it is gone: then it cannot be told.
pub fn recall_metadata(node: &Node, change: &mut EntryChange) {
    let EntryChange { entry, as_of, .. } = change;
    entry.each_entry(&mut |listed| {
        if let ListedMetadata::OnDisk(shard, tree) = listed.metadata {
            let Some(handle) = node.shards.get(shard.index()) else { return };
            listed.metadata = match handle.store.metadata(tree, listed.member.as_bytes()) {
                Ok(Some(record)) if Sequence(record.sequence) < sequence_of(as_of, shard) => {
                    ListedMetadata::Json(record.json.into())
                }
                Ok(_) => ListedMetadata::Unreadable,
                Err(error) => {
                    tell_unreadable(shard, &error);
                    ListedMetadata::Unreadable
                }
            };
        }
    });
}

/// Says that the disk cannot be read, not more often than somebody can read that.
fn tell_unreadable(shard: ShardId, error: &StorageError) {
    static TOLD: Mutex<Option<Instant>> = Mutex::new(None);
    let mut told = TOLD.lock();
    if told.is_none_or(|at| at.elapsed() >= TELL_AGAIN) {
        *told = Some(Instant::now());
        tracing::error!(%shard, %error, "metadata cannot be read and is answered as null; ranktree verify tells what is damaged");
    }
}

fn sequence_of(as_of: &AsOf, shard: ShardId) -> Sequence {
    as_of.0.iter().find(|(id, _)| *id == shard).map_or(Sequence::default(), |(_, sequence)| *sequence)
}
