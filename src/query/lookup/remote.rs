//! Members on remote shards. One round trip with each shard finds the members, and one counts at their keys.
//! If a member has moved between the two, the second one found its new key and is followed by another.

use crate::query::lookup::found::{AskedOfShard, Found, FoundMembers};
use crate::query::merge::{EntrySource, MergedEntry};
use crate::query::question::{BoardLife, KeyCounts, Question, Reply, ShardEntry, SortKey};
use crate::query::remote_shards::{ReadError, RemoteShards, unexpected};
use crate::types::{MemberId, ShardId};

/// Round trips that follow members whose scores change while they are counted.
const ATTEMPTS: u32 = 16;

/// What a shard replies.
struct ShardLookup {
    shard: ShardId,
    /// One for each of its members that were asked for; `None` if it is not listed.
    members: Vec<Option<ShardEntry>>,
    /// One for each key.
    keys: Vec<KeyCounts>,
}

/// What all shards reply, with counts at the keys of the members in it.
pub(super) struct Lookups(Vec<ShardLookup>);

/// Finds the members, and counts at the keys that they have then.
///
/// # Errors
/// When some shard does not reply, or members kept changing too quickly.
pub(super) async fn find(
    shards: &RemoteShards<'_>,
    life: &BoardLife,
    asked: &[AskedOfShard<'_>],
) -> Result<Lookups, ReadError> {
    let mut replies = ask(shards, life, asked, &[], false).await?;
    for _ in 0..ATTEMPTS {
        let keys: Vec<SortKey<'_>> = keys_in(&replies).collect();
        let counted = ask(shards, life, asked, &keys, true).await?;
        if keys.iter().copied().eq(keys_in(&counted)) {
            return Ok(Lookups(counted));
        }
        replies = counted;
    }
    Err(ReadError::KeptChanging(ATTEMPTS))
}

/// Each shard's members of those asked for, and its counts at keys.
///
/// # Arguments
/// `metadata`: whether theirs is wanted.
async fn ask(
    shards: &RemoteShards<'_>,
    life: &BoardLife,
    asked: &[AskedOfShard<'_>],
    keys: &[SortKey<'_>],
    metadata: bool,
) -> Result<Vec<ShardLookup>, ReadError> {
    let questions: Vec<_> = asked
        .iter()
        .map(|asked| Question::Lookup {
            board: life.clone(),
            members: asked.members.iter().copied().map(MemberId::as_str).collect(),
            keys: keys.to_vec(),
            metadata,
        })
        .collect();
    let replies = shards.ask(shards.ids().zip(&questions)).await?;
    let found = replies.into_iter().map(|(shard, reply)| match reply {
        Reply::Lookup { members, keys: counts, .. } if counts.len() == keys.len() => {
            Ok(ShardLookup { shard, members, keys: counts })
        }
        _ => Err(unexpected(shard)),
    });
    found.collect()
}

fn keys_in(replies: &[ShardLookup]) -> impl Iterator<Item = SortKey<'_>> {
    replies.iter().flat_map(|reply| reply.members.iter().flatten().map(ShardEntry::key))
}

impl Lookups {
    /// The members in it, each with the sum of all shards' counts.
    ///
    /// # Arguments
    /// `asked`: for each shard, by number.
    pub(super) fn members(&self, asked: &[AskedOfShard<'_>]) -> FoundMembers<'_> {
        let mut members = FoundMembers::default();
        for reply in &self.0 {
            let indexes = asked.get(reply.shard.index()).into_iter().flat_map(|asked| &asked.indexes);
            for (entry, index) in reply.members.iter().zip(indexes.copied()) {
                let Some(entry) = entry else {
                    members.not_listed.push(index);
                    continue;
                };
                let nth = members.found.len();
                let mut counts = KeyCounts::default();
                self.0
                    .iter()
                    .filter_map(|reply| reply.keys.get(nth))
                    .for_each(|of_shard| counts.add(*of_shard));
                let source = EntrySource::Replied(entry);
                let entry = MergedEntry { shard: reply.shard, key: entry.key(), source };
                members.found.push(Found { index, entry, counts });
            }
        }
        members
    }
}
