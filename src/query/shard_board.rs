//! One board's tree on one shard that is in memory: the counts that every sum is made of.

use std::cmp::Ordering;

use crate::query::question::{BoardLife, Counted, KeyCounts, Mark, SortKey};
use crate::state::{Incarnation, Shard, TreeId, WindowTree};
use crate::tree::Handle;

/// One board's tree on one shard.
#[derive(Clone, Copy)]
pub struct ShardBoard<'v> {
    pub shard: &'v Shard,
    /// `None` if the board is not on this shard yet.
    pub window: Option<(TreeId, &'v WindowTree)>,
}

impl<'v> ShardBoard<'v> {
    /// The board of that name and life. A shard may still hold an earlier life of the name, which readers
    /// must not see.
    #[must_use]
    pub fn of(shard: &'v Shard, name: &str, incarnation: Incarnation) -> Self {
        let board = shard.board(name).filter(|board| board.incarnation == incarnation);
        Self { shard, window: board.and_then(|board| Some((board.all, shard.tree(board.all)?))) }
    }

    #[must_use]
    pub fn of_life(shard: &'v Shard, life: &BoardLife) -> Self {
        Self::of(shard, life.board.as_str(), life.incarnation)
    }
}

impl ShardBoard<'_> {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.window.map_or(0, |(_, window)| window.total())
    }

    /// Entries before the mark, and with those at it. An entry at a mark is not looked for: of an entry, only
    /// those before it are counted.
    #[must_use]
    pub fn counted(&self, mark: &Mark<'_>) -> Counted {
        match mark {
            Mark::Score(score) => self.at_score(score.as_slice()),
            Mark::Entry(key) => {
                let before = self.before(key);
                Counted { before, through: before }
            }
        }
    }

    /// Entries better than a score's words, and those with the ones equal to them.
    #[must_use]
    pub fn at_score(&self, score: &[u64]) -> Counted {
        let Some((_, window)) = self.window else { return Counted::default() };
        let (before, through) = window.tree.count_range(score);
        Counted { before, through }
    }

    /// Entries better than a score's words.
    #[must_use]
    pub fn better(&self, score: &[u64]) -> u64 {
        self.window.map_or(0, |(_, window)| window.tree.count_below(score))
    }

    /// Entries in relation to one of another shard.
    #[must_use]
    pub fn key_counts(&self, key: &SortKey<'_>) -> KeyCounts {
        let Some((_, window)) = self.window else { return KeyCounts::default() };
        let words = key.words.as_slice();
        let score = words.get(..window.definition.keys.len()).unwrap_or(words);
        KeyCounts { better: window.tree.count_below(score), before: self.before(key) }
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
