//! Counts at many places at once.
//!
//! A search in a large tree waits for memory most of its time. So searches are made in groups, a level at a
//! time: what the next level needs is prefetched for the whole group before it is looked at, and the misses
//! of a group overlap. Changes nothing, and finds what `search` finds one by one.

use std::cmp::Ordering;

use super::columns::Columns;
use super::large::LargeTree;
use super::words::Handle;

/// Searches whose misses overlap; see `GROUP` of `apply`.
const GROUP: usize = 16;

/// An entry's place, for [`Tree::count_entries`](super::Tree::count_entries).
#[derive(Clone, Copy)]
pub struct Sought<'a> {
    pub words: &'a [u64],
    /// How many of the words are the score.
    pub score_words: usize,
}

impl<'a> Sought<'a> {
    #[inline]
    pub(super) fn score(&self) -> &'a [u64] {
        &self.words[..self.score_words]
    }
}

/// Two counts that are searched for together as long as both are below the same node.
#[derive(Clone, Copy)]
struct Pair<'t> {
    /// The lowest node found that both are below, unless `parted`: the leaf's parent at last, or the only
    /// leaf.
    node: u32,
    /// The entries of the leaf that both end in, once it is found; never if `parted`.
    leaf: Option<Columns<'t>>,
    /// Entries before that node, or before the leaf; once `parted`, the first count and the second one.
    counted: (u64, u64),
    parted: bool,
}

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    /// As `count_range` for each prefix, in their order.
    pub(super) fn count_ranges(&self, prefixes: &[&[u64]], mut found: impl FnMut((u64, u64))) {
        for group in prefixes.chunks(GROUP) {
            let mut pairs = self.begin();
            let pairs = &mut pairs[..group.len()];
            for height in (0..self.height).rev() {
                for (pair, prefix) in pairs.iter_mut().zip(group).filter(|(pair, _)| !pair.parted) {
                    let (below, through) = self.inners.separators(pair.node).equal_range(prefix);
                    // The first and the last such entry are below the same child if nothing is between them.
                    if below == through && self.enter(pair, below, height) {
                        continue;
                    }
                    self.part(
                        pair,
                        height,
                        (below, |node: Columns<'_>| node.equal_range(prefix).0),
                        (through, |node: Columns<'_>| node.equal_range(prefix).1),
                    );
                }
            }
            for (pair, prefix) in pairs.iter().zip(group) {
                found(pair.total(|entries| entries.equal_range(prefix)));
            }
        }
    }

    /// For each place the entries before its score, and those before it.
    ///
    /// # Arguments
    /// `compare`: how a handle's id compares with that of the nth place.
    pub(super) fn count_entries(
        &self,
        places: &[Sought<'_>],
        compare: &mut dyn FnMut(usize, Handle) -> Ordering,
        mut found: impl FnMut((u64, u64)),
    ) {
        for (nth, group) in places.chunks(GROUP).enumerate() {
            let first = nth * GROUP;
            let mut pairs = self.begin();
            let pairs = &mut pairs[..group.len()];
            for height in (0..self.height).rev() {
                let going_on = pairs.iter_mut().zip(group).zip(first..).filter(|((pair, _), _)| !pair.parted);
                for ((pair, place), nth) in going_on {
                    let separators = self.inners.separators(pair.node);
                    let before = separators.entries_before(place.words, |handle| compare(nth, handle));
                    let better = separators.better_than(place.score(), before);
                    if better == before && self.enter(pair, before, height) {
                        continue;
                    }
                    self.part(
                        pair,
                        height,
                        (better, |node: Columns<'_>| node.equal_range(place.score()).0),
                        (before, |node: Columns<'_>| {
                            node.entries_before(place.words, |handle| compare(nth, handle))
                        }),
                    );
                }
            }
            for ((pair, place), nth) in pairs.iter().zip(group).zip(first..) {
                found(pair.total(|entries| {
                    let before = entries.entries_before(place.words, |handle| compare(nth, handle));
                    (entries.better_than(place.score(), before), before)
                }));
            }
        }
    }

    fn begin(&self) -> [Pair<'_>; GROUP] {
        let leaf = (self.height == 0).then(|| self.leaves.columns(self.root));
        [Pair { node: self.root, leaf, counted: (0, 0), parted: false }; GROUP]
    }

    /// Goes on below the child that holds the place before which `end` children begin. False: there is none.
    #[inline]
    fn enter<'t>(&'t self, pair: &mut Pair<'t>, end: usize, height: u8) -> bool {
        let Some(slot) = end.checked_sub(1) else { return false };
        let passed = self.inners.sum_before(pair.node, slot);
        pair.counted = (pair.counted.0 + passed, pair.counted.1 + passed);
        if height > 0 {
            pair.node = self.inners.child(pair.node, slot);
            self.inners.prefetch(pair.node, height);
        } else {
            pair.leaf = Some(self.entries_of_child(pair.node, slot));
        }
        true
    }

    /// Searches for both counts on their own, below the pair's node. Seldom: the entries of a score, or those
    /// between a score and an entry, lie on both sides of where two children part.
    #[inline(never)]
    fn part(
        &self,
        pair: &mut Pair<'_>,
        height: u8,
        first: (usize, impl FnMut(Columns<'_>) -> usize),
        second: (usize, impl FnMut(Columns<'_>) -> usize),
    ) {
        pair.counted.0 += self.count_within(pair.node, first.0, height, first.1);
        pair.counted.1 += self.count_within(pair.node, second.0, height, second.1);
        pair.parted = true;
    }
}

impl Pair<'_> {
    /// Both counts, with those of the leaf that holds both.
    #[inline]
    fn total(&self, in_leaf: impl FnOnce(&Columns<'_>) -> (usize, usize)) -> (u64, u64) {
        let Some(entries) = &self.leaf else { return self.counted };
        let (first, second) = in_leaf(entries);
        (self.counted.0 + first as u64, self.counted.1 + second as u64)
    }
}
