//! Ranks a group of members among themselves: friends' boards.

use std::collections::HashSet;
use std::sync::Arc;

use crate::query::answer::Listed;
use crate::query::board_view::{BoardView, ShardLookup};
use crate::query::entries::VisitEntries;
use crate::query::merge::{EntrySource, MergedEntry};
use crate::query::question::{ShardEntry, SortKey};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::types::{MemberId, ShardId};

/// Round trips that follow members whose scores change while they are counted.
const ATTEMPTS: u32 = 16;

/// The members that were found, and those that were not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// Best first, each with its competition rank within the group.
    pub entries: Vec<(Listed, u64)>,
    /// Not listed, or beyond the capacity: indexes into the request.
    pub not_found: Vec<usize>,
}

impl VisitEntries for Lookup {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        for (listed, _) in &mut self.entries {
            visit(listed);
        }
    }
}

/// Each member once, however often it is named. One round trip with each shard finds the members, and one
/// counts at their keys. If a member has moved between the two, the second one found its new key and is
/// followed by another.
///
/// # Errors
/// When some shard does not reply, or members kept changing too quickly.
pub async fn lookup(board: &BoardView<'_>, members: &[MemberId]) -> Result<Lookup, ReadError> {
    let mut by_shard: Vec<Vec<&str>> = vec![Vec::new(); usize::from(board.shard_count())];
    let mut indexes: Vec<Vec<usize>> = vec![Vec::new(); by_shard.len()];
    let mut named = HashSet::with_capacity_and_hasher(members.len(), foldhash::fast::RandomState::default());
    for (index, id) in members.iter().enumerate().filter(|(_, id)| named.insert(*id)) {
        let home = board.home_of(id).index();
        if let (Some(shard), Some(indexes)) = (by_shard.get_mut(home), indexes.get_mut(home)) {
            shard.push(id.as_str());
            indexes.push(index);
        }
    }
    let mut replies = board.look_up(&by_shard, &[], false).await?;
    // Over shards that stay as they are the members are not looked for again.
    let again = if board.is_snapshot() { vec![Vec::new(); by_shard.len()] } else { by_shard };
    for _ in 0..ATTEMPTS {
        let found = found_in(&replies);
        let keys: Vec<SortKey<'_>> = found.iter().map(|(_, entry)| entry.key()).collect();
        let counted = board.look_up(&again, &keys, true).await?;
        let is_same = || found.iter().map(|(_, entry)| entry.key()).eq(keys_in(&counted));
        if board.is_snapshot() || is_same() {
            let latest = if board.is_snapshot() { &replies } else { &counted };
            return Ok(ranked(board, latest, &counted, &indexes));
        }
        replies = counted;
    }
    Err(ReadError::KeptChanging(ATTEMPTS))
}

/// The members found, shard by shard.
fn found_in(replies: &[ShardLookup]) -> Vec<(ShardId, &ShardEntry)> {
    let mut found = Vec::new();
    for reply in replies {
        found.extend(reply.members.iter().flatten().map(|entry| (reply.shard, entry)));
    }
    found
}

fn keys_in(replies: &[ShardLookup]) -> impl Iterator<Item = SortKey<'_>> {
    replies.iter().flat_map(|reply| reply.members.iter().flatten().map(ShardEntry::key))
}

/// # Arguments
/// `counted`: the shards' counts at the keys of the members in `replies`.
fn ranked<'r>(
    board: &BoardView<'_>,
    replies: &'r [ShardLookup],
    counted: &[ShardLookup],
    indexes: &[Vec<usize>],
) -> Lookup {
    let merged = |(nth, (shard, entry)): (usize, (ShardId, &'r ShardEntry))| {
        (nth, MergedEntry { shard, key: entry.key(), source: EntrySource::Replied(entry) })
    };
    let run: Vec<(usize, MergedEntry<'r>)> = found_in(replies).into_iter().enumerate().map(merged).collect();
    // Keys are large: it is their places that are moved.
    let mut order: Vec<&(usize, MergedEntry<'_>)> = run.iter().collect();
    order.sort_unstable_by(|(_, one), (_, other)| one.key.cmp(&other.key));
    let mut entries = Vec::with_capacity(order.len());
    let mut beyond = HashSet::new();
    let mut previous: Option<&MergedEntry<'_>> = None;
    let mut group_rank = 0;
    for ((nth, found), place) in order.into_iter().zip(1_u64..) {
        let score = board.score_words(&found.key.words);
        if previous.is_none_or(|previous| board.score_words(&previous.key.words) != score) {
            group_rank = place;
        }
        previous = Some(found);
        let (mut better, mut ahead) = (0, 0);
        for at in counted.iter().filter_map(|reply| reply.keys.get(*nth)) {
            better += at.better;
            ahead += at.before;
        }
        if board.definition.capacity_after(ahead) == 0 {
            beyond.insert(found.key.member);
            continue;
        }
        let listed = Listed::new(&board.definition, found, better, ahead + 1);
        entries.extend(listed.map(|listed| (listed, group_rank)));
    }
    let indexes_of = |reply: &ShardLookup| indexes.get(reply.shard.index()).into_iter().flatten();
    let mut not_found: Vec<usize> = replies
        .iter()
        .flat_map(|reply| reply.members.iter().zip(indexes_of(reply)))
        .filter(|(found, _)| found.as_ref().is_none_or(|found| beyond.contains(&*found.member)))
        .map(|(_, index)| *index)
        .collect();
    not_found.sort_unstable();
    Lookup { entries, not_found }
}

/// Reads [`lookup`].
pub struct LookupMembers {
    /// Shared with who asks, and says which of them were not found.
    pub members: Arc<[MemberId]>,
}

impl BoardRead for LookupMembers {
    type Answer = Lookup;

    fn lookups(&self) -> usize {
        self.members.len()
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        lookup(board, &self.members).await
    }
}
