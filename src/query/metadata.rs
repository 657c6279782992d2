//! Metadata of entries that an answer holds, read from disk after the shards were let go.
//!
//! The disk may be ahead of the answer. A record that is newer than the answer's `as_of`, or gone, says that the
//! entry has changed since; whoever asked then reads again.

use crate::query::answer::{Entry, Listed, ListedMetadata, Page};
use crate::query::lookup::Lookup;
use crate::query::node::Node;
use crate::types::{AsOf, ShardId};

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

/// Reads what is missing. False: some of it is newer than the answer, or gone; that is left to be read.
pub fn fill_metadata(node: &Node, as_of: &AsOf, answer: &mut impl HoldsEntries) -> bool {
    let mut fresh = true;
    answer.each_entry(&mut |listed| {
        if let ListedMetadata::OnDisk(shard, tree) = listed.metadata {
            let Some(handle) = node.shards.get(shard.index()) else { return };
            match handle.store.metadata(tree, listed.member.as_bytes()) {
                Ok(Some(record)) if record.sequence <= sequence_of(as_of, shard) => {
                    listed.metadata = ListedMetadata::Json(record.json.into());
                }
                Ok(_) => fresh = false,
                Err(_) => listed.metadata = ListedMetadata::Unreadable,
            }
        }
    });
    fresh
}

/// As [`fill_metadata`], taking the disk as it is now.
pub fn settle_metadata(node: &Node, answer: &mut impl HoldsEntries) {
    answer.each_entry(&mut |listed| {
        if let ListedMetadata::OnDisk(shard, tree) = listed.metadata {
            let Some(handle) = node.shards.get(shard.index()) else { return };
            listed.metadata = match handle.store.metadata(tree, listed.member.as_bytes()) {
                Ok(Some(record)) => ListedMetadata::Json(record.json.into()),
                Ok(None) => ListedMetadata::None,
                Err(_) => ListedMetadata::Unreadable,
            };
        }
    });
}

fn sequence_of(as_of: &AsOf, shard: ShardId) -> u64 {
    as_of.0.iter().find(|(id, _)| *id == shard).map_or(0, |(_, sequence)| sequence.0)
}
