//! The hidden entries of a board whose shards are in memory: what a copy of the board needs besides its
//! lists.
//!
//! Knows: entries that are not listed. Must not know: who is hidden without an entry.

use crate::query::node::View;
use crate::query::shard_board::ShardBoard;
use crate::state::TreeId;
use crate::types::{BoardName, Score, ShardId, Timestamp};
use crate::window::Instance;
use crate::writer::RegisteredBoard;

/// An entry that is neither counted nor listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenEntry {
    pub member: Box<str>,
    pub score: Score,
    pub updated_at: Timestamp,
    /// When the score was reached, where that orders ties.
    pub reached_at: Option<Timestamp>,
    pub version: Option<u64>,
    /// Where its metadata are on disk, if it has some.
    pub metadata: Option<(ShardId, TreeId)>,
}

/// The hidden entries of an instance of a board, by member.
pub fn hidden_entries(
    view: &View<'_>,
    name: &BoardName,
    instance: Instance,
    known: &RegisteredBoard,
) -> Vec<HiddenEntry> {
    let (name, definition) = (instance.name_on_shards(name), &known.definition);
    let mut found = Vec::new();
    for shard in view.shards.iter() {
        let shard_board = ShardBoard::of(shard, name.as_str(), known.incarnation);
        let Some((tree, window)) = shard_board.window else { continue };
        for (handle, words) in window.hidden_in(0..u32::MAX) {
            let Some(entry) = window.entry(handle) else { continue };
            let member = String::from_utf8_lossy(shard_board.shard.members.id(handle));
            found.push(HiddenEntry {
                member: member.into(),
                score: definition.score_of(words.as_slice()),
                updated_at: entry.updated_at,
                reached_at: definition.reached_at(words.as_slice()),
                version: entry.version,
                metadata: entry.has_metadata.then_some((shard_board.shard.id, tree)),
            });
        }
    }
    found.sort_by(|one, other| one.member.cmp(&other.member));
    found
}
