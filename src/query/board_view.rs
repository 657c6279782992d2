//! One board over all shards of a view: the sums that every read is made of.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::board::Definition;
use crate::query::node::View;
use crate::state::{Incarnation, Shard, TreeId, WindowTree};
use crate::tree::{Handle, Words};
use crate::types::{AsOf, ShardId};
use crate::writer::RegisteredBoard;

/// Where an entry stands in the total order that all shards share: words, then the bytes of the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey<'a> {
    pub words: Words,
    pub member: &'a [u8],
}

/// How one shard's entries compare with a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardStanding {
    pub shard: ShardId,
    /// Strictly better entries.
    pub better: u64,
    /// Entries with this score.
    pub tied: u64,
    /// All entries.
    pub total: u64,
}

/// One board's tree on one shard.
#[derive(Clone, Copy)]
pub struct Part<'v> {
    pub shard: &'v Shard,
    /// `None` if the board is not on this shard yet.
    pub window: Option<(TreeId, &'v WindowTree)>,
}

/// One board over all shards of a view.
pub struct BoardView<'v> {
    pub definition: Arc<Definition>,
    pub incarnation: Incarnation,
    parts: Vec<Part<'v>>,
}

impl<'v> BoardView<'v> {
    /// The board with the incarnation of `known`, which may not have reached every shard.
    #[must_use]
    pub fn new(view: &'v View<'_>, name: &str, known: &RegisteredBoard) -> Self {
        let part = |shard: &'v Shard| {
            // A shard may still hold an earlier incarnation of the name, which readers must not see.
            let board = shard.board(name).filter(|board| board.incarnation == known.incarnation);
            Part { shard, window: board.and_then(|board| Some((board.all, shard.tree(board.all)?))) }
        };
        let parts = view.shards.iter().map(|guard| part(guard)).collect();
        Self { definition: Arc::clone(&known.definition), incarnation: known.incarnation, parts }
    }

    /// Every shard, by number.
    #[must_use]
    pub fn parts(&self) -> &[Part<'v>] {
        &self.parts
    }

    pub fn windows(&self) -> impl Iterator<Item = &'v WindowTree> {
        self.parts.iter().filter_map(|part| part.window).map(|(_, window)| window)
    }

    /// Members counted and listed, on all shards.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.windows().map(WindowTree::total).sum()
    }

    /// Entries strictly better than a score's words.
    #[must_use]
    pub fn better(&self, score: &[u64]) -> u64 {
        self.windows().map(|window| window.tree.count_below(score)).sum()
    }

    /// Entries better than a score's words, or equal to them.
    #[must_use]
    pub fn through(&self, score: &[u64]) -> u64 {
        self.windows().map(|window| window.tree.count_through(score)).sum()
    }

    /// How every shard's entries compare with a score's words.
    pub fn standings(&self, score: &[u64]) -> impl Iterator<Item = ShardStanding> {
        self.parts.iter().map(move |part| part.standing(score))
    }

    /// The applied sequences behind this view.
    #[must_use]
    pub fn as_of(&self) -> AsOf {
        AsOf(self.parts.iter().map(|part| (part.shard.id, part.shard.applied.sequence)).collect())
    }

    /// The words of the score that an entry's words begin with.
    #[must_use]
    pub fn score_words<'w>(&self, words: &'w Words) -> &'w [u64] {
        let words = words.as_slice();
        words.get(..self.definition.keys.len()).unwrap_or(words)
    }
}

impl Part<'_> {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.window.map_or(0, |(_, window)| window.total())
    }

    /// How this shard's entries compare with a score's words.
    #[must_use]
    pub fn standing(&self, score: &[u64]) -> ShardStanding {
        let shard = self.shard.id;
        let Some((_, window)) = self.window else {
            return ShardStanding { shard, better: 0, tied: 0, total: 0 };
        };
        let (better, through) = window.tree.count_range(score);
        let tied = through - better;
        ShardStanding { shard, better, tied, total: window.total() }
    }

    /// Entries before the key, which need not be here.
    #[must_use]
    pub fn before(&self, key: &SortKey<'_>) -> u64 {
        self.count(key, |other| other)
    }

    /// Entries before the key, and the one at it.
    #[must_use]
    pub fn through(&self, key: &SortKey<'_>) -> u64 {
        self.count(key, |other| other.then(Ordering::Less))
    }

    fn count(&self, key: &SortKey<'_>, adjust: impl Fn(Ordering) -> Ordering) -> u64 {
        let Some((_, window)) = self.window else { return 0 };
        let members = &self.shard.members;
        let mut compare = |handle: Handle| adjust(members.id(handle).cmp(key.member));
        window.tree.count_before(key.words.as_slice(), &mut compare)
    }
}
