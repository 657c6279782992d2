//! One member's entry.

use crate::query::answer::{Listed, MemberEntry, Standing};
use crate::query::board_view::{BoardView, SortKey};
use crate::query::merge::MergedEntry;
use crate::types::{MemberId, shard_of};

/// The member's entry; `None` if it is not listed: never here, removed or hidden.
#[must_use]
pub fn member(board: &BoardView<'_>, member: &MemberId) -> Option<MemberEntry> {
    let found = find(board, member)?;
    let standing = standing(board, &found);
    let listed =
        Listed::new(board.parts().get(found.part)?, &found, standing.better, ahead(board, &found) + 1)?;
    Some(MemberEntry { listed, standing })
}

/// Where a listed member is.
pub(super) fn find<'v>(board: &BoardView<'v>, member: &'v MemberId) -> Option<MergedEntry<'v>> {
    let shards = u16::try_from(board.parts().len()).ok()?;
    let index = shard_of(member, shards).index();
    let part = board.parts().get(index)?;
    let (_, window) = part.window?;
    let handle = part.shard.members.get(member.as_bytes())?;
    let words = window.tree.get(handle)?;
    Some(MergedEntry { part: index, handle, key: SortKey { words, member: member.as_bytes() } })
}

/// Entries before it: on its own shard by its place in the tree, elsewhere by its key.
pub(super) fn ahead(board: &BoardView<'_>, found: &MergedEntry<'_>) -> u64 {
    let parts = board.parts().iter().enumerate();
    let ahead = parts.map(|(index, part)| match part.window {
        Some((_, window)) if index == found.part => window.tree.index_of(found.handle).unwrap_or(0),
        _ => part.before(&found.key),
    });
    ahead.sum()
}

pub(super) fn standing(board: &BoardView<'_>, found: &MergedEntry<'_>) -> Standing {
    let score = board.score_words(&found.key.words);
    let better = board.better(score);
    Standing { better, tied: board.through(score) - better, total: board.total() }
}
