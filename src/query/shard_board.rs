//! One board's tree on one shard that is in memory: the counts that every sum is made of.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::query::question::{BoardLife, Counted, KeyCounts, Mark, SortKey};
use crate::state::{Incarnation, MemberHash, Shard, TreeId, WindowTree};
use crate::tree::{Ahead, Handle, Sought, Tree};

/// Members whose cache misses overlap.
const MEMBERS_PREFETCHED: usize = 16;

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
    pub fn of(shard: &'v Shard, name: &str, incarnation: Incarnation) -> Self {
        let board = shard.board(name).filter(|board| board.incarnation == incarnation);
        Self { shard, window: board.and_then(|board| Some((board.all, shard.tree(board.all)?))) }
    }

    pub fn of_life(shard: &'v Shard, life: &BoardLife) -> Self {
        Self::of(shard, life.board.as_str(), life.incarnation)
    }
}

impl ShardBoard<'_> {
    pub fn total(&self) -> u64 {
        self.window.map_or(0, |(_, window)| window.total())
    }

    /// Entries before the mark, and with those at it. An entry at a mark is not looked for: of an entry, only
    /// those before it are counted.
    pub fn counted(&self, mark: &Mark<'_>) -> Counted {
        match mark {
            Mark::Score(score) => self.at_score(score.as_slice()),
            Mark::Entry(key) => {
                let before = self.before(key);
                Counted { before, through: before }
            }
        }
    }

    /// As [`ShardBoard::counted`] for each mark.
    pub fn counted_at_all(&self, marks: &[Mark<'_>]) -> Vec<Counted> {
        let scores: Option<Vec<&[u64]>> = marks.iter().map(Mark::score_words).collect();
        let (Some((_, window)), Some(scores)) = (self.window, scores) else {
            return marks.iter().map(|mark| self.counted(mark)).collect();
        };
        let mut counted = Vec::with_capacity(marks.len());
        window.tree.count_ranges(&scores, |(before, through)| counted.push(Counted { before, through }));
        counted
    }

    /// Entries better than a score's words, and those with the ones equal to them.
    pub fn at_score(&self, score: &[u64]) -> Counted {
        let Some((_, window)) = self.window else { return Counted::default() };
        let (before, through) = window.tree.count_range(score);
        Counted { before, through }
    }

    /// Entries better than a score's words.
    pub fn better(&self, score: &[u64]) -> u64 {
        self.window.map_or(0, |(_, window)| window.tree.count_below(score))
    }

    /// Entries in relation to each of these, which need not be here.
    pub fn counts_at_keys(&self, keys: &[SortKey<'_>]) -> Vec<KeyCounts> {
        let Some((_, window)) = self.window else { return vec![KeyCounts::default(); keys.len()] };
        let members = &self.shard.members;
        let mut compare = |nth: usize, handle| {
            keys.get(nth).map_or(Ordering::Less, |key| key.compare_id(members.id(handle)))
        };
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            let words = key.words.as_slice();
            places.push(Sought { words, score_words: words.len().min(window.definition.keys.len()) });
        }
        let mut counts = Vec::with_capacity(keys.len());
        window.tree.count_entries(&places, &mut compare, |(better, before)| {
            counts.push(KeyCounts { better, before });
        });
        counts
    }

    /// Entries before the key, which need not be here.
    pub fn before(&self, key: &SortKey<'_>) -> u64 {
        self.count(key, |other| other)
    }

    /// Entries before the key, and the one at it.
    pub fn through(&self, key: &SortKey<'_>) -> u64 {
        self.count(key, |other| other.then(Ordering::Less))
    }

    fn count(&self, key: &SortKey<'_>, adjust: impl Fn(Ordering) -> Ordering) -> u64 {
        let Some((_, window)) = self.window else { return 0 };
        let members = &self.shard.members;
        let mut compare = |handle: Handle| adjust(key.compare_id(members.id(handle)));
        window.tree.count_before(key.words.as_slice(), &mut compare)
    }

    /// Visits the handle of each of these members, in their order: `None` if this shard does not know it. On
    /// this board it may not be listed.
    ///
    /// Where a member is, its id, where its entry is, and the entry: each is a cache miss, and waiting for
    /// one member's after the other took most of the time. So they are prefetched for a group.
    ///
    /// # Arguments
    /// `prefetch`: asks for what `visit` reads of the tree.
    pub fn each_handle(
        &self,
        members: &[impl AsRef<[u8]>],
        prefetch: impl Fn(&Tree, Handle),
        mut visit: impl FnMut(Option<Handle>),
    ) {
        let Some((_, window)) = self.window else { return members.iter().for_each(|_| visit(None)) };
        let of_shard = &self.shard.members;
        for group in members.chunks(MEMBERS_PREFETCHED) {
            let hashes: SmallVec<[MemberHash; MEMBERS_PREFETCHED]> =
                group.iter().map(|member| of_shard.hash(member.as_ref())).collect();
            hashes.iter().for_each(|hash| of_shard.prefetch_index(*hash));
            let likely: SmallVec<[Handle; MEMBERS_PREFETCHED]> =
                hashes.iter().filter_map(|hash| of_shard.prefetch_id(*hash)).collect();
            likely.iter().for_each(|handle| window.tree.prefetch_locator(*handle));
            for handle in &likely {
                of_shard.prefetch_long_id(*handle);
                prefetch(&window.tree, *handle);
            }
            for (hash, member) in hashes.into_iter().zip(group) {
                visit(of_shard.find(hash, member.as_ref()));
            }
        }
    }

    /// Visits what is ahead of each of these members on this shard, in their order: `None` if it is not
    /// listed.
    pub fn each_ahead(&self, members: &[&[u8]], mut visit: impl FnMut(Option<(Handle, Ahead)>)) {
        let prefetch = |tree: &Tree, handle| {
            tree.prefetch_entry(handle);
            tree.prefetch_ahead(handle);
        };
        self.each_handle(members, prefetch, |handle| {
            let listed = handle.zip(self.window).and_then(|(handle, (_, window))| {
                Some((handle, window.tree.ahead(handle, window.definition.keys.len())?))
            });
            visit(listed);
        });
    }
}
