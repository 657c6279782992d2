//! Members of a shard on other boards than the one that is asked about.
//!
//! Knows: one shard at one applied sequence. Must not know: the other shards, or why the members are shown.

use crate::query::question::BoardLife;
use crate::query::shard_board::ShardBoard;
use crate::state::Shard;
use crate::tree::{Tree, Words};

/// The words of each member's entry on each of the boards, member by member; `None` where it is not listed.
pub fn words_on_boards(
    shard: &Shard,
    boards: &[&BoardLife],
    members: &[impl AsRef<[u8]>],
) -> Vec<Option<Words>> {
    let mut found = vec![None; members.len() * boards.len()];
    for (column, life) in boards.iter().enumerate() {
        let shard_board = ShardBoard::of_life(shard, life);
        let Some((_, window)) = shard_board.window else { continue };
        let mut places = found.iter_mut().skip(column).step_by(boards.len());
        shard_board.each_handle(members, Tree::prefetch_entry, |handle| {
            if let Some(place) = places.next() {
                *place = handle.and_then(|handle| window.tree.get(handle));
            }
        });
    }
    found
}
