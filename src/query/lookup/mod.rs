//! Ranks a group of members among themselves: friends' boards.

mod found;
mod in_memory;
mod remote;

use std::collections::HashSet;
use std::sync::Arc;

use crate::query::answer::Listed;
use crate::query::board_view::{BoardShards, BoardView};
use crate::query::entries::VisitEntries;
use crate::query::lookup::found::{AskedOfShard, Found, FoundMembers};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::types::MemberId;

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

/// Finds members and ranks them among themselves, each once, however often it is named.
///
/// # Errors
/// When some shard does not reply, or members kept changing too quickly.
pub async fn lookup(board: &BoardView<'_>, members: &[MemberId]) -> Result<Lookup, ReadError> {
    let asked = by_home(board, members);
    match board.shards() {
        BoardShards::InMemory(shard_boards) => Ok(ranked(board, in_memory::find(shard_boards, &asked))),
        BoardShards::Remote { shards, life } => {
            let replies = remote::find(shards, life, &asked).await?;
            Ok(ranked(board, replies.members(&asked)))
        }
    }
}

/// The members of each shard, by number.
fn by_home<'m>(board: &BoardView<'_>, members: &'m [MemberId]) -> Vec<AskedOfShard<'m>> {
    let mut by_home: Vec<AskedOfShard<'_>> = Vec::new();
    by_home.resize_with(usize::from(board.shard_count()), AskedOfShard::default);
    let mut named = HashSet::with_capacity_and_hasher(members.len(), foldhash::fast::RandomState::default());
    for (index, member) in members.iter().enumerate().filter(|(_, member)| named.insert(*member)) {
        if let Some(of_shard) = by_home.get_mut(board.home_of(member).index()) {
            of_shard.members.push(member);
            of_shard.indexes.push(index);
        }
    }
    by_home
}

fn ranked(board: &BoardView<'_>, members: FoundMembers<'_>) -> Lookup {
    let FoundMembers { found, not_listed: mut not_found } = members;
    // Fewer are before the better of two keys, so the counts order entries as their keys do.
    let mut order: Vec<(u64, &Found<'_>)> = found.iter().map(|found| (found.counts.before, found)).collect();
    order.sort_unstable_by_key(|(before, _)| *before);
    let mut entries = Vec::with_capacity(order.len());
    let mut group_rank = 0;
    // One that is better counts among those that are better than the other. So the same number of them means
    // the same score.
    let mut better_than_previous = None;
    for ((ahead, found), place) in order.into_iter().zip(1_u64..) {
        let better = found.counts.better;
        if better_than_previous.replace(better) != Some(better) {
            group_rank = place;
        }
        if board.definition.capacity_after(ahead) == 0 {
            not_found.push(found.index);
            continue;
        }
        let listed = Listed::new(&board.definition, &found.entry, better, ahead + 1);
        entries.extend(listed.map(|listed| (listed, group_rank)));
    }
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
