//! What a job did, told for the whole board. The writer knows its own shard only (`writer::outcome`); the
//! counts of the others are added here.

use crate::query::answer::{Listed, ListedMetadata, MemberEntry, Standing};
use crate::query::board_view::{BoardView, SortKey};
use crate::query::entries::ConsistentAnswer;
use crate::query::node::View;
use crate::state::TreeId;
use crate::types::{AsOf, BoardName, MemberId, Score, Sequence, ShardId};
use crate::writer::{BoardOutcome, Registry, ShardRanking};

/// What a job did on one board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChange {
    pub board: BoardName,
    pub changed: bool,
    /// The entry now; `None` if it is not listed.
    pub entry: Option<MemberEntry>,
    /// Where it stood just before, among the others as they are now.
    pub previous: Option<Previous>,
    pub as_of: AsOf,
}

/// Where an entry stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Previous {
    pub score: Score,
    pub rank: u64,
    pub position: u64,
}

impl ConsistentAnswer for EntryChange {
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf)) {
        if let Some(entry) = &mut self.entry {
            visit(&mut entry.listed, &self.as_of);
        }
    }
}

/// Adds the other shards' counts to what the shard `home` found at `sequence`.
#[must_use]
pub fn add_other_shards(
    view: &View<'_>,
    registry: &Registry,
    home: ShardId,
    sequence: Sequence,
    member: &MemberId,
    outcome: &BoardOutcome,
) -> EntryChange {
    let name = outcome.board.as_str();
    let known = registry.get(name);
    let board = known.map(|known| BoardView::new(view, name, &known));
    let sum = |ranking: &ShardRanking| {
        Summed::over(board.as_ref(), home, member, ranking, outcome.definition.columns())
    };
    let tree = board.as_ref().and_then(|board| board.parts().get(home.index())?.window).map(|(tree, _)| tree);
    let after = outcome.after.as_ref().map(|after| (after, sum(after)));
    let before = outcome.before.as_ref().map(|before| (before, sum(before)));
    let as_of = view
        .shards
        .iter()
        .map(|shard| (shard.id, if shard.id == home { sequence } else { shard.applied.sequence }));
    EntryChange {
        board: outcome.board.clone(),
        changed: outcome.changed,
        entry: after.map(|(after, summed)| MemberEntry {
            listed: Listed {
                member: member.as_str().into(),
                score: outcome.definition.score_of(after.words.as_slice()),
                better: summed.standing.better,
                position: summed.ahead + 1,
                updated_at: after.updated_at,
                reached_at: outcome.definition.reached_at(after.words.as_slice()),
                metadata: metadata(after, home, tree),
            },
            standing: summed.standing,
        }),
        previous: before.map(|(before, summed)| Previous {
            score: outcome.definition.score_of(before.words.as_slice()),
            rank: summed.standing.rank(),
            position: summed.ahead + 1,
        }),
        as_of: AsOf(as_of.collect()),
    }
}

fn metadata(ranking: &ShardRanking, home: ShardId, tree: Option<TreeId>) -> ListedMetadata {
    match tree {
        Some(tree) if ranking.has_metadata => ListedMetadata::OnDisk(home, tree),
        _ => ListedMetadata::None,
    }
}

struct Summed {
    standing: Standing,
    ahead: u64,
}

impl Summed {
    fn over(
        board: Option<&BoardView<'_>>,
        home: ShardId,
        member: &MemberId,
        ranking: &ShardRanking,
        columns: usize,
    ) -> Self {
        let mut sum = Self {
            standing: Standing { better: ranking.better, tied: ranking.tied, total: ranking.total },
            ahead: ranking.ahead,
        };
        let words = ranking.words.as_slice();
        let score = words.get(..columns.saturating_sub(1)).unwrap_or(words);
        let key = SortKey { words: ranking.words, member: member.as_bytes() };
        let parts = board.into_iter().flat_map(BoardView::parts);
        for part in parts.filter(|part| part.shard.id != home) {
            let there = part.standing(score);
            sum.standing.better += there.better;
            sum.standing.tied += there.tied;
            sum.standing.total += there.total;
            sum.ahead += part.before(&key);
        }
        sum
    }
}
