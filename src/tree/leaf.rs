//! Leaves: they hold the entries. Each is a page of the checkpoint.
//!
//! Knows which leaf ids are free, where each leaf's block is, and when it has to be a wider one. Must not
//! know the inner nodes, or where a handle is.
//!
//! A leaf has `N` slots. How many bytes they take depends on its entries; see `narrow`. A leaf's columns
//! become wider as soon as an entry does not fit, and as narrow as can be whenever entries move between
//! leaves.

use super::arena::Blocks;
use super::columns::Columns;
use super::leaf_address::LeafAddress;
use super::leaf_blocks::LeafBlocks;
use super::narrow::{Narrow, NarrowMut, Widths};
use super::prefetch;
use super::run::Run;
use super::words::{Handle, MAX_WORDS};

/// No node: the parent of the root, the leaf of an absent handle.
pub(super) const NONE: u32 = u32::MAX;

/// The `kind` of a leaf without a block.
const NO_BLOCK: u8 = u8::MAX;

/// Metadata of a leaf. Twelve bytes, so that those of ten million entries are in a cache, if not the nearest.
#[derive(Clone, Copy)]
pub(super) struct LeafMeta {
    pub(super) parent: u32,
    /// Where its block is among those of its kind.
    place: u32,
    /// Entries; 0 in free leaves, and in the root of an empty tree.
    len: u8,
    /// Which of the leaves' kinds of blocks it has.
    kind: u8,
    /// The last known slot of this leaf in its parent. A hint: checked before use.
    pub(super) slot: u8,
    /// See `capture`.
    pub(super) marks: u8,
}

impl Default for LeafMeta {
    fn default() -> Self {
        Self { parent: 0, place: 0, len: 0, kind: NO_BLOCK, slot: 0, marks: 0 }
    }
}

/// The blocks of leaves whose entries take as many bytes.
struct Kind {
    /// Bytes of all words of an entry.
    all_words: u8,
    /// Bytes of a handle.
    handle: u8,
    blocks: LeafBlocks,
}

pub(super) struct Leaves<const N: usize> {
    columns: usize,
    meta: Blocks<LeafMeta>,
    /// In the order in which they were first needed.
    kinds: Vec<Kind>,
    /// Ids below `allocated` that are not in use.
    pub(super) free: Vec<u32>,
    /// One past the highest id ever used.
    pub(super) allocated: u32,
    /// Leaves whose block is elsewhere than their parents hold.
    pub(super) moved: Vec<u32>,
}

impl<const N: usize> Leaves<N> {
    pub(super) fn new(columns: usize) -> Self {
        const { assert!(N >= 4 && N < 256, "leaves split into two that can lend an entry; a byte counts") };
        // The words of an entry take one to eight bytes each, and a handle three or four.
        const { assert!(2 * (7 * MAX_WORDS + 1) < NO_BLOCK as usize, "a byte names a kind") };
        Self {
            columns,
            meta: Blocks::new(1),
            kinds: Vec::new(),
            free: Vec::new(),
            allocated: 0,
            moved: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn meta(&self, leaf: u32) -> &LeafMeta {
        self.meta.one(leaf)
    }

    /// Asks for a leaf's metadata.
    #[inline]
    pub(super) fn prefetch_meta(&self, leaf: u32) {
        prefetch::line_of(self.meta(leaf));
    }

    #[inline]
    pub(super) fn meta_mut(&mut self, leaf: u32) -> &mut LeafMeta {
        self.meta.one_mut(leaf)
    }

    #[inline]
    pub(super) fn len(&self, leaf: u32) -> usize {
        usize::from(self.meta(leaf).len)
    }

    #[inline]
    pub(super) fn columns(&self, leaf: u32) -> Columns<'_> {
        let block = self.block(leaf);
        Columns::narrow(block, self.len(leaf))
    }

    #[inline]
    pub(super) fn address(&self, leaf: u32) -> LeafAddress {
        let meta = self.meta(leaf);
        LeafAddress::of(meta.kind, meta.place)
    }

    /// The entries at an address, which are so many. The leaf's metadata is not read.
    #[inline]
    pub(super) fn columns_at(&self, address: LeafAddress, len: usize) -> Option<Columns<'_>> {
        let (kind, place) = address.parts()?;
        let kind = self.kinds.get(kind)?;
        let (bytes, handle) = (kind.blocks.get(place), usize::from(kind.handle));
        Some(Columns::narrow(Narrow { bytes, slots: N, columns: self.columns, handle }, len))
    }

    /// What a leaf's entries are in; empty for a leaf without any.
    #[inline]
    pub(super) fn block(&self, leaf: u32) -> Narrow<'_> {
        let meta = self.meta(leaf);
        let (bytes, handle) = match self.kinds.get(usize::from(meta.kind)) {
            Some(kind) => (kind.blocks.get(meta.place), usize::from(kind.handle)),
            None => (&[][..], 0),
        };
        Narrow { bytes, slots: N, columns: self.columns, handle }
    }

    #[inline]
    fn block_mut(&mut self, leaf: u32) -> Option<NarrowMut<'_>> {
        let LeafMeta { place, kind, .. } = *self.meta(leaf);
        let kind = self.kinds.get_mut(usize::from(kind))?;
        let handle = usize::from(kind.handle);
        Some(NarrowMut { bytes: kind.blocks.get_mut(place), slots: N, columns: self.columns, handle })
    }

    /// Gives a leaf a block that is wide enough for an entry that is to be written.
    #[cold]
    #[inline(never)]
    fn widen(&mut self, leaf: u32, words: &[u64], handle: u32) -> NarrowMut<'_> {
        let len = self.len(leaf);
        let mut run = Run::new(self.columns, len + 1);
        run.extend(&self.columns(leaf), 0..len);
        run.push(words, handle);
        self.store(leaf, &run.entries(), len);
        self.block_mut(leaf).expect("a leaf that was filled has a block")
    }

    /// Adds an entry to a leaf that is not full.
    #[inline]
    pub(super) fn insert(&mut self, leaf: u32, at: usize, words: &[u64], handle: Handle) {
        let len = self.len(leaf);
        match self.block_mut(leaf) {
            Some(mut block) if block.fits(words, handle.0) => block.insert(len, at, words, handle.0),
            _ => self.widen(leaf, words, handle.0).insert(len, at, words, handle.0),
        }
        self.meta_mut(leaf).len += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, leaf: u32, at: usize) {
        let len = self.len(leaf);
        self.block_mut(leaf).expect("a leaf with entries has a block").close(len, at);
        self.meta_mut(leaf).len -= 1;
    }

    /// Moves an entry within its leaf, and gives it other words.
    #[inline]
    pub(super) fn shift(&mut self, leaf: u32, (from, to): (usize, usize), words: &[u64], handle: Handle) {
        match self.block_mut(leaf) {
            Some(mut block) if block.fits(words, handle.0) => block.shift(from, to, words, handle.0),
            _ => self.widen(leaf, words, handle.0).shift(from, to, words, handle.0),
        }
    }

    /// Moves entries between two neighbours so that the left one holds `target` of them.
    pub(super) fn redistribute(&mut self, left: u32, right: u32, target: usize) {
        let (left_entries, right_entries) = (self.columns(left), self.columns(right));
        let (left_len, right_len) = (left_entries.len(), right_entries.len());
        let (from_left, from_right) = (target.min(left_len), target.saturating_sub(left_len));
        let mut first = Run::new(self.columns, target.max(1));
        first.extend(&left_entries, 0..from_left);
        first.extend(&right_entries, 0..from_right);
        let mut second = Run::new(self.columns, (left_len + right_len - target).max(1));
        second.extend(&left_entries, from_left..left_len);
        second.extend(&right_entries, from_right..right_len);
        self.fill(left, &first.entries());
        self.fill(right, &second.entries());
    }

    /// Replaces a leaf's entries.
    pub(super) fn fill(&mut self, leaf: u32, entries: &Columns<'_>) {
        if !entries.is_empty() {
            self.store(leaf, entries, entries.len());
        }
        self.meta_mut(leaf).len = entries.len() as u8;
    }

    /// Gives a leaf a block in which all of `entries` fit, and writes the first `len` of them.
    fn store(&mut self, leaf: u32, entries: &Columns<'_>, len: usize) {
        let entries = entries.whole().expect("a run and a small tree hold whole words");
        let widths = Widths::of(&entries);
        let kind = self.kind_of(&widths);
        if self.meta(leaf).kind != kind {
            self.drop_block(leaf);
            let place = self.kinds[usize::from(kind)].blocks.take(leaf);
            let meta = self.meta_mut(leaf);
            (meta.kind, meta.place) = (kind, place);
            self.moved.push(leaf);
        }
        self.block_mut(leaf).expect("it has one now").fill(&widths, &entries, len);
    }

    fn kind_of(&mut self, widths: &Widths) -> u8 {
        let same = |kind: &Kind| (kind.all_words, kind.handle) == (widths.all_words, widths.handle);
        let kind = self.kinds.iter().position(same).unwrap_or_else(|| {
            let blocks = LeafBlocks::new(widths.block_bytes(self.columns, N));
            self.kinds.push(Kind { all_words: widths.all_words, handle: widths.handle, blocks });
            self.kinds.len() - 1
        });
        kind as u8
    }

    fn drop_block(&mut self, leaf: u32) {
        let LeafMeta { place, kind, .. } = *self.meta(leaf);
        let Some(kind) = self.kinds.get_mut(usize::from(kind)) else { return };
        if let Some(moved) = kind.blocks.give_back(place) {
            self.meta_mut(moved).place = place;
            self.moved.push(moved);
        }
        self.meta_mut(leaf).kind = NO_BLOCK;
    }

    /// A leaf without entries. Its marks are those it had when it was last in use.
    pub(super) fn allocate(&mut self) -> u32 {
        let leaf = self.free.pop().unwrap_or_else(|| {
            self.allocated += 1;
            self.allocated - 1
        });
        self.ensure(leaf);
        leaf
    }

    /// Allocates a leaf's metadata. It exists for every id below `allocated`, a block only for leaves that
    /// hold entries: a loaded tree may have holes.
    pub(super) fn ensure(&mut self, leaf: u32) {
        self.meta.ensure(leaf);
    }

    /// Takes ids up to `allocated` as given out; those that are not in use are to be put in `free`.
    pub(super) fn set_allocated(&mut self, allocated: u32) {
        self.allocated = allocated;
        for leaf in 0..allocated {
            self.meta.ensure(leaf);
        }
    }

    pub(super) fn release(&mut self, leaf: u32) {
        self.drop_block(leaf);
        self.meta_mut(leaf).len = 0;
        self.free.push(leaf);
    }

    pub(super) fn bytes(&self) -> usize {
        let blocks: usize = self.kinds.iter().map(|kind| kind.blocks.bytes()).sum();
        blocks
            + self.kinds.capacity() * size_of::<Kind>()
            + self.meta.bytes()
            + (self.free.capacity() + self.moved.capacity()) * size_of::<u32>()
    }

    /// A leaf whose block is not its own, if there is one, or `NONE` if there are blocks that no leaf has.
    pub(super) fn misplaced(&self) -> Option<u32> {
        let mut with_block = 0;
        for leaf in 0..self.allocated {
            let LeafMeta { place, kind, len, .. } = *self.meta(leaf);
            match self.kinds.get(usize::from(kind)) {
                Some(kind) if place < kind.blocks.used() && kind.blocks.owner(place) == leaf => {
                    with_block += 1;
                }
                None if len == 0 => {}
                Some(_) | None => return Some(leaf),
            }
        }
        let used: u32 = self.kinds.iter().map(|kind| kind.blocks.used()).sum();
        (with_block != used).then_some(NONE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Entry = (Vec<u64>, u32);

    /// Words and handles of every width, often with the same upper bytes.
    fn entry() -> impl Strategy<Value = Entry> {
        let upper = prop::sample::select(&[0, 1 << 63, 0x0102_0304_0506_0708, u64::MAX][..]);
        let word = (upper, any::<u64>(), 0_u32..=64).prop_map(|(upper, random, bits)| {
            let lower = u64::MAX.checked_shr(bits).unwrap_or(0);
            (upper & !lower) | (random & lower)
        });
        let handle = prop_oneof![Just(0), 0_u32..200, Just((1 << 24) - 1), Just(1 << 24), 0..u32::MAX - 1];
        (prop::collection::vec(word, 2), handle)
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u32, usize, Entry),
        Remove(u32, usize),
        Shift(u32, usize, usize, Entry),
        Redistribute(u32, u32, usize),
        Release(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        let (leaf, at) = (0_u32..8, 0_usize..9);
        prop_oneof![
            6 => (leaf.clone(), at.clone(), entry())
                .prop_map(|(leaf, at, entry)| Op::Insert(leaf, at, entry)),
            2 => (leaf.clone(), at.clone()).prop_map(|(leaf, at)| Op::Remove(leaf, at)),
            2 => (leaf.clone(), at.clone(), at.clone(), entry())
                .prop_map(|(leaf, from, to, entry)| Op::Shift(leaf, from, to, entry)),
            3 => (leaf.clone(), leaf.clone(), at).prop_map(|(a, b, target)| Op::Redistribute(a, b, target)),
            1 => leaf.prop_map(Op::Release),
        ]
    }

    fn entries_of(leaves: &Leaves<8>, leaf: u32) -> Vec<Entry> {
        let entries = leaves.columns(leaf);
        (0..entries.len()).map(|at| (entries.words(at).as_slice().to_vec(), entries.handle(at).0)).collect()
    }

    proptest! {
        #[test]
        fn leaves_hold_what_was_put_into_them_whatever_its_width(ops in prop::collection::vec(op(), 1..120)) {
            let mut leaves = Leaves::<8>::new(2);
            let mut model: Vec<Vec<Entry>> = vec![Vec::new(); 8];
            for leaf in 0..8 {
                prop_assert_eq!(leaves.allocate(), leaf);
            }
            for op in ops {
                match op {
                    Op::Insert(leaf, at, (words, handle)) => {
                        let entries = &mut model[leaf as usize];
                        if entries.len() < 8 {
                            let at = at.min(entries.len());
                            leaves.insert(leaf, at, &words, Handle(handle));
                            entries.insert(at, (words, handle));
                        }
                    }
                    Op::Remove(leaf, at) => {
                        let entries = &mut model[leaf as usize];
                        if at < entries.len() {
                            leaves.remove(leaf, at);
                            entries.remove(at);
                        }
                    }
                    Op::Shift(leaf, from, to, (words, _)) => {
                        let entries = &mut model[leaf as usize];
                        if from < entries.len() && to < entries.len() {
                            let (_, handle) = entries.remove(from);
                            leaves.shift(leaf, (from, to), &words, Handle(handle));
                            entries.insert(to, (words, handle));
                        }
                    }
                    Op::Redistribute(left, right, target) => {
                        let all = [model[left as usize].clone(), model[right as usize].clone()].concat();
                        let target = target.min(8).clamp(all.len().saturating_sub(8), all.len());
                        if left != right {
                            leaves.redistribute(left, right, target);
                            model[left as usize] = all[..target].to_vec();
                            model[right as usize] = all[target..].to_vec();
                        }
                    }
                    Op::Release(leaf) => {
                        leaves.release(leaf);
                        prop_assert_eq!(leaves.allocate(), leaf);
                        model[leaf as usize].clear();
                    }
                }
                for (leaf, entries) in (0..).zip(&model) {
                    prop_assert_eq!(&entries_of(&leaves, leaf), entries);
                    let columns = leaves.columns(leaf);
                    let handles: Vec<u32> = entries.iter().map(|entry| entry.1).collect();
                    prop_assert_eq!(columns.handles().collect::<Vec<_>>(), handles);
                    for column in 0..2 {
                        let words: Vec<u64> = entries.iter().map(|entry| entry.0[column]).collect();
                        prop_assert_eq!(columns.column(column).collect::<Vec<_>>(), words);
                    }
                    for (_, handle) in entries {
                        let found = columns.find(Handle(*handle));
                        prop_assert_eq!(found, entries.iter().position(|entry| entry.1 == *handle));
                    }
                    prop_assert_eq!(columns.find(Handle(77_777_777)), None);
                }
                prop_assert_eq!(leaves.misplaced(), None);
            }
        }

        #[test]
        fn ranges_are_found_in_columns_of_every_width(
            entries in prop::collection::vec(entry(), 1..60),
            sought in entry(),
        ) {
            let mut sorted = entries;
            sorted.sort();
            let mut leaves = Leaves::<64>::new(2);
            let leaf = leaves.allocate();
            for (at, (words, handle)) in sorted.iter().enumerate() {
                leaves.insert(leaf, at, words, Handle(*handle));
            }
            let columns = leaves.columns(leaf);
            for (words, _) in sorted.iter().chain([&sought]) {
                for prefix in [&words[..1], &words[..]] {
                    let low = sorted.partition_point(|entry| entry.0[..prefix.len()] < *prefix);
                    let high = sorted.partition_point(|entry| entry.0[..prefix.len()] <= *prefix);
                    prop_assert_eq!(columns.equal_range(prefix), (low, high));
                }
            }
            for (at, (words, _)) in sorted.iter().enumerate() {
                prop_assert_eq!(columns.first_word(at), words[0]);
            }
        }
    }

    #[test]
    fn a_leaf_of_neighbours_takes_a_few_bytes_an_entry() {
        let mut leaves = Leaves::<64>::new(2);
        let leaf = leaves.allocate();
        for number in 0..64_u64 {
            let words = [(7 << 60) + number * 300, 1_700_000_000_000_000 + number * 1_000_000];
            leaves.insert(leaf, number as usize, &words, Handle(number as u32 * 1_000));
        }
        let block = leaves.block(leaf);
        assert_eq!(block.bytes.len(), 16 + 64 * (2 + 4 + 3));
    }
}
