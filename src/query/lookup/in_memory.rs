//! Members on shards in memory, all of one moment: one way up the tree of its home shard tells where a member
//! stands there, and the other shards count at its key.

use crate::query::lookup::found::{AskedOfShard, Found, FoundMembers};
use crate::query::merge::{EntrySource, MergedEntry};
use crate::query::question::{KeyCounts, SortKey};
use crate::query::shard_board::ShardBoard;
use crate::types::MemberId;

/// What the shards have of the members, with all counts.
///
/// # Arguments
/// `asked`: for each shard, in their order.
pub(super) fn find<'v>(shard_boards: &[ShardBoard<'v>], asked: &[AskedOfShard<'_>]) -> FoundMembers<'v> {
    let mut members = FoundMembers::default();
    for (shard_board, AskedOfShard { members: ids, indexes }) in shard_boards.iter().zip(asked) {
        members.found.reserve(ids.len());
        let ids: Vec<&[u8]> = ids.iter().copied().map(MemberId::as_bytes).collect();
        let mut indexes = indexes.iter().copied();
        shard_board.each_ahead(&ids, |found| {
            let Some(index) = indexes.next() else { return };
            let Some((handle, ahead)) = found else { return members.not_listed.push(index) };
            let key = SortKey { words: ahead.words, member: shard_board.shard.members.id(handle) };
            let source = EntrySource::InMemory(*shard_board, handle);
            members.found.push(Found {
                index,
                entry: MergedEntry { shard: shard_board.shard.id, key, source },
                counts: KeyCounts { better: ahead.better, before: ahead.index },
            });
        });
    }
    if shard_boards.len() > 1 {
        for shard_board in shard_boards {
            add_counts(shard_board, &mut members.found);
        }
    }
    members
}

/// Adds what a shard counts at the keys of other shards' members.
fn add_counts(shard_board: &ShardBoard<'_>, found: &mut [Found<'_>]) {
    let is_other = |found: &Found<'_>| found.entry.shard != shard_board.shard.id;
    let keys: Vec<SortKey<'_>> = found.iter().filter(|f| is_other(f)).map(|found| found.entry.key).collect();
    let counts = shard_board.counts_at_keys(&keys);
    for (found, counts) in found.iter_mut().filter(|found| is_other(found)).zip(counts) {
        found.counts.add(counts);
    }
}
