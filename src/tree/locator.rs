//! The locator: handle → the leaf that holds its entry.
//!
//! Must not know what is in a leaf. Handles are split into ranges of 65,536; each range is a hash map while
//! the tree holds few of it and an array once it holds a quarter. So a window of ten members costs no array,
//! ten million members cost three bytes each, and nothing larger than 256 KB is ever copied at once.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::leaf::NONE;
use super::prefetch;
use super::words::Handle;

/// Handles per range: a `u16` names one within it, so that an array access needs no bounds check.
const RANGE: usize = 1 << 16;

/// A map entry takes 9 to 18 bytes and an array slot 2 to 4, so at a quarter the array is smaller at last.
const DENSE_AT: usize = RANGE / 4;

/// Back to a map far below `DENSE_AT`, so that a tree at the boundary does not convert again and again.
const SPARSE_AT: u32 = RANGE as u32 / 16;

/// Arrays made from this number of leaves on have a byte more than they need as yet, and others are given it
/// one at a time with each new leaf: the first leaf whose number takes that byte may have entries of many
/// ranges, and making all of them wider at once would be a pause.
const THREE_FROM: u32 = 0xf000;
const FOUR_FROM: u32 = 0xff_0000;

/// A leaf for each handle of a range, in as many bytes as the leaves' numbers need: two up to three million
/// entries, three up to 800 million.
enum Slots {
    Two(Box<[[u8; 2]; RANGE]>),
    Three(Box<[[u8; 3]; RANGE]>),
    Four(Box<[[u8; 4]; RANGE]>),
}

/// `NONE` as any of [`Slots`] has it.
const VACANT: u8 = u8::MAX;

#[allow(clippy::unnecessary_box_returns, reason = "an array of 128 KB and more")]
fn vacant<const BYTES: usize>() -> Box<[[u8; BYTES]; RANGE]> {
    vec![[VACANT; BYTES]; RANGE].into_boxed_slice().try_into().expect("the vector was made with this length")
}

#[inline]
fn read<const BYTES: usize>(slot: [u8; BYTES]) -> u32 {
    let mut leaf = [0; 4];
    leaf[..BYTES].copy_from_slice(&slot);
    let leaf = u32::from_le_bytes(leaf);
    if leaf == NONE >> (32 - 8 * BYTES) { NONE } else { leaf }
}

#[inline]
fn write<const BYTES: usize>(slot: &mut [u8; BYTES], leaf: u32) -> u32 {
    let before = read(*slot);
    slot.copy_from_slice(&leaf.to_le_bytes()[..BYTES]);
    before
}

#[allow(clippy::unnecessary_box_returns, reason = "an array of 192 KB and more")]
fn widened<const FROM: usize, const TO: usize>(slots: &[[u8; FROM]; RANGE]) -> Box<[[u8; TO]; RANGE]> {
    let mut wider = vacant();
    for (to, from) in wider.iter_mut().zip(slots) {
        write(to, read(*from));
    }
    wider
}

impl Slots {
    /// All vacant, in as many bytes as this leaf's number needs.
    fn for_leaf(leaf: u32) -> Self {
        match leaf {
            0..THREE_FROM => Self::Two(vacant()),
            THREE_FROM..FOUR_FROM => Self::Three(vacant()),
            _ => Self::Four(vacant()),
        }
    }

    /// Whether `for_leaf` would make wider ones.
    fn is_narrow_for(&self, leaf: u32) -> bool {
        match self {
            Self::Two(_) => leaf >= THREE_FROM,
            Self::Three(_) => leaf >= FOUR_FROM,
            Self::Four(_) => false,
        }
    }

    #[inline]
    fn get(&self, at: u16) -> u32 {
        match self {
            Self::Two(slots) => read(slots[usize::from(at)]),
            Self::Three(slots) => read(slots[usize::from(at)]),
            Self::Four(slots) => read(slots[usize::from(at)]),
        }
    }

    #[inline]
    fn fits(&self, leaf: u32) -> bool {
        match self {
            Self::Two(_) => leaf < 0xffff,
            Self::Three(_) => leaf < 0xff_ffff,
            Self::Four(_) => true,
        }
    }

    /// Sets a leaf that fits, or `NONE`. Returns the one before.
    #[inline]
    fn set(&mut self, at: u16, leaf: u32) -> u32 {
        match self {
            Self::Two(slots) => write(&mut slots[usize::from(at)], leaf),
            Self::Three(slots) => write(&mut slots[usize::from(at)], leaf),
            Self::Four(slots) => write(&mut slots[usize::from(at)], leaf),
        }
    }

    /// Makes slots wide enough for a leaf that did not fit, or soon will not.
    #[cold]
    fn widen(&mut self, leaf: u32) {
        *self = match self {
            Self::Two(slots) if leaf < FOUR_FROM => Self::Three(widened(slots)),
            Self::Two(slots) => Self::Four(widened(slots)),
            Self::Three(slots) => Self::Four(widened(slots)),
            Self::Four(_) => return,
        };
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Two(slots) => size_of_val(&**slots),
            Self::Three(slots) => size_of_val(&**slots),
            Self::Four(slots) => size_of_val(&**slots),
        }
    }

    #[inline]
    fn prefetch(&self, at: u16) {
        match self {
            Self::Two(slots) => prefetch::line_of(&slots[usize::from(at)]),
            Self::Three(slots) => prefetch::line_of(&slots[usize::from(at)]),
            Self::Four(slots) => prefetch::line_of(&slots[usize::from(at)]),
        }
    }
}

enum Range {
    Empty,
    Sparse(Box<HashMap<u16, u32, FixedState>>),
    Dense { slots: Slots, used: u32 },
}

impl Range {
    fn bytes(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Sparse(map) => size_of::<HashMap<u16, u32, FixedState>>() + map.allocation_size(),
            Self::Dense { slots, .. } => slots.bytes(),
        }
    }
}

#[derive(Default)]
pub(super) struct Locator {
    ranges: Vec<Range>,
    /// Heap memory of the contents of ranges, in bytes.
    allocated_bytes: usize,
    /// The greatest leaf that was announced.
    greatest: u32,
    /// Ranges below this one are wide enough for it.
    prepared: usize,
}

#[inline]
fn split(handle: Handle) -> (usize, u16) {
    ((handle.0 >> 16) as usize, handle.0 as u16)
}

impl Locator {
    /// A locator about to hold all of `handles`: chooses each range's form once, rather than growing into it.
    /// `greatest`: the greatest leaf.
    pub(super) fn sized_for(handles: impl Iterator<Item = u32>, greatest: u32) -> Self {
        let mut counts: Vec<usize> = Vec::new();
        for handle in handles {
            let range = (handle >> 16) as usize;
            if range >= counts.len() {
                counts.resize(range + 1, 0);
            }
            counts[range] += 1;
        }
        let form = |&count: &usize| match count {
            0 => Range::Empty,
            1..DENSE_AT => {
                Range::Sparse(Box::new(HashMap::with_capacity_and_hasher(count, FixedState::default())))
            }
            _ => Range::Dense { slots: Slots::for_leaf(greatest), used: 0 },
        };
        let ranges: Vec<Range> = counts.iter().map(form).collect();
        Self { allocated_bytes: ranges.iter().map(Range::bytes).sum(), ranges, greatest, prepared: 0 }
    }

    /// Announces a leaf: makes one array wider, if one soon will be too narrow.
    #[inline]
    pub(super) fn prepare_for(&mut self, leaf: u32) {
        if leaf >= THREE_FROM {
            self.widen_next(leaf);
        }
    }

    fn widen_next(&mut self, leaf: u32) {
        if leaf >= FOUR_FROM && self.greatest < FOUR_FROM {
            self.prepared = 0;
        }
        self.greatest = self.greatest.max(leaf);
        while let Some(range) = self.ranges.get_mut(self.prepared) {
            self.prepared += 1;
            if let Range::Dense { slots, .. } = range
                && slots.is_narrow_for(self.greatest)
            {
                self.allocated_bytes -= slots.bytes();
                slots.widen(self.greatest);
                self.allocated_bytes += slots.bytes();
                return;
            }
        }
    }

    /// The handle's leaf, or [`NONE`].
    #[inline]
    pub(super) fn get(&self, handle: Handle) -> u32 {
        let (range, at) = split(handle);
        match self.ranges.get(range) {
            Some(Range::Dense { slots, .. }) => slots.get(at),
            Some(Range::Sparse(map)) => map.get(&at).copied().unwrap_or(NONE),
            Some(Range::Empty) | None => NONE,
        }
    }

    /// Sets the handle's leaf, and returns the previous one.
    #[inline]
    pub(super) fn set(&mut self, handle: Handle, leaf: u32) -> u32 {
        let (range, at) = split(handle);
        if let Some(Range::Dense { slots, used }) = self.ranges.get_mut(range) {
            if !slots.fits(leaf) {
                self.allocated_bytes -= slots.bytes();
                slots.widen(leaf);
                self.allocated_bytes += slots.bytes();
            }
            let before = slots.set(at, leaf);
            *used += u32::from(before == NONE);
            return before;
        }
        self.set_sparse(range, at, leaf)
    }

    fn set_sparse(&mut self, range: usize, at: u16, leaf: u32) -> u32 {
        if self.ranges.len() <= range {
            self.ranges.resize_with(range + 1, || Range::Empty);
        }
        let held = &mut self.ranges[range];
        self.allocated_bytes -= held.bytes();
        if let Range::Empty = held {
            *held = Range::Sparse(Box::default());
        }
        let Range::Sparse(map) = held else { unreachable!("a dense range is set by the caller") };
        let before = map.insert(at, leaf).unwrap_or(NONE);
        if map.len() >= DENSE_AT {
            let greatest = map.values().copied().max().unwrap_or(0);
            let mut slots = Slots::for_leaf(greatest.max(self.greatest));
            for (&at, &leaf) in map.iter() {
                slots.set(at, leaf);
            }
            *held = Range::Dense { used: map.len() as u32, slots };
        }
        self.allocated_bytes += held.bytes();
        before
    }

    /// Removes the handle, and returns its leaf.
    #[inline]
    pub(super) fn remove(&mut self, handle: Handle) -> u32 {
        let (range, at) = split(handle);
        let Some(held) = self.ranges.get_mut(range) else { return NONE };
        match held {
            Range::Empty => NONE,
            Range::Sparse(map) => {
                let before = map.remove(&at).unwrap_or(NONE);
                if map.is_empty() {
                    self.allocated_bytes -= held.bytes();
                    *held = Range::Empty;
                }
                before
            }
            Range::Dense { slots, used } => {
                let before = slots.set(at, NONE);
                *used -= u32::from(before != NONE);
                if *used < SPARSE_AT {
                    let present = (0..=u16::MAX).map(|at| (at, slots.get(at)));
                    let map: HashMap<_, _, _> = present.filter(|&(_, leaf)| leaf != NONE).collect();
                    self.allocated_bytes -= held.bytes();
                    *held = Range::Sparse(Box::new(map));
                    self.allocated_bytes += held.bytes();
                }
                before
            }
        }
    }

    #[inline]
    pub(super) fn prefetch(&self, handle: Handle) {
        let (range, at) = split(handle);
        if let Some(Range::Dense { slots, .. }) = self.ranges.get(range) {
            slots.prefetch(at);
        }
    }

    /// Handles held.
    pub(super) fn len(&self) -> u64 {
        let len = |range: &Range| match range {
            Range::Empty => 0,
            Range::Sparse(map) => map.len() as u64,
            Range::Dense { used, .. } => u64::from(*used),
        };
        self.ranges.iter().map(len).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.allocated_bytes + self.ranges.capacity() * size_of::<Range>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Set(u32, u32),
        Remove(u32),
        PrepareFor(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        // The first 20,000 are in an array, and those of the next range in a map.
        let handle = || prop_oneof![0_u32..20_100, (1_u32 << 16)..(1 << 16) + 50];
        let borders = [0, 0xfe, THREE_FROM - 1, THREE_FROM, 0xfffe, 0xffff, 0x1_0000];
        let greater = [FOUR_FROM - 1, FOUR_FROM, 0xff_fffe, 0xff_ffff, 0x100_0000, u32::MAX - 1];
        let one_of = |leaves: &[u32]| prop::sample::select(leaves.to_vec());
        let leaf = || prop_oneof![8 => one_of(&borders), 1 => one_of(&greater)];
        prop_oneof![
            6 => (handle(), leaf()).prop_map(|(handle, leaf)| Op::Set(handle, leaf)),
            3 => handle().prop_map(Op::Remove),
            1 => leaf().prop_map(Op::PrepareFor),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn agrees_with_a_map_whatever_the_width_of_slots(ops in prop::collection::vec(op(), 1..100)) {
            let mut locator = Locator::default();
            let mut model: std::collections::HashMap<u32, u32> = (0..20_000).map(|n| (n, n)).collect();
            for n in 0..20_000 {
                locator.set(Handle(n), n);
            }
            for op in ops {
                match op {
                    Op::Set(handle, leaf) => {
                        let before = model.insert(handle, leaf).unwrap_or(NONE);
                        prop_assert_eq!(locator.set(Handle(handle), leaf), before);
                    }
                    Op::Remove(handle) => {
                        let before = model.remove(&handle).unwrap_or(NONE);
                        prop_assert_eq!(locator.remove(Handle(handle)), before);
                    }
                    Op::PrepareFor(leaf) => locator.prepare_for(leaf),
                }
                prop_assert_eq!(locator.len(), model.len() as u64);
                let bytes = locator.ranges.iter().map(Range::bytes).sum::<usize>();
                prop_assert_eq!(locator.allocated_bytes, bytes);
            }
            for handle in (0..20_200).chain((1 << 16)..(1 << 16) + 60) {
                let leaf = model.get(&handle).copied().unwrap_or(NONE);
                prop_assert_eq!(locator.get(Handle(handle)), leaf);
            }
        }
    }

    #[test]
    fn a_range_changes_form_and_keeps_every_handle() {
        let mut locator = Locator::default();
        let handle = |n: u32| Handle(3 * 65_536 + n * 2);
        let count = 20_000;
        for n in 0..count {
            assert_eq!(locator.set(handle(n), n), NONE);
        }
        assert!(locator.bytes() < 4 * RANGE + 1_000, "an array by now");
        assert_eq!(locator.allocated_bytes, locator.ranges.iter().map(Range::bytes).sum::<usize>());
        assert_eq!((locator.len(), locator.get(Handle(3 * 65_536 + 1))), (u64::from(count), NONE));
        for n in 0..count {
            assert_eq!(locator.get(handle(n)), n);
            assert_eq!(locator.set(handle(n), n + 1), n);
        }
        for n in 5..count {
            assert_eq!(locator.remove(handle(n)), n + 1);
            assert_eq!(locator.remove(handle(n)), NONE);
        }
        assert!(locator.bytes() < 2 * RANGE, "a map again");
        for n in 0..5 {
            assert_eq!(locator.get(handle(n)), n + 1);
        }
        assert_eq!(locator.len(), 5);
        assert_eq!(locator.allocated_bytes, locator.ranges.iter().map(Range::bytes).sum::<usize>());
        assert_eq!(locator.get(Handle(u32::MAX - 1)), NONE);
    }

    #[test]
    fn an_array_becomes_wider_with_the_first_leaf_that_does_not_fit() {
        let mut locator = Locator::default();
        for n in 0..20_000 {
            locator.set(Handle(n), n);
        }
        let mut bytes = vec![locator.bytes()];
        for leaf in [0xfffe, 0xffff, 0xff_fffe, 0xff_ffff, u32::MAX - 1] {
            assert_eq!(locator.set(Handle(7), leaf), 7);
            assert_eq!(locator.get(Handle(7)), leaf);
            assert_eq!((locator.get(Handle(19_999)), locator.get(Handle(20_000))), (19_999, NONE));
            assert_eq!(locator.set(Handle(7), 7), leaf);
            assert_eq!(locator.allocated_bytes, locator.ranges.iter().map(Range::bytes).sum::<usize>());
            bytes.push(locator.bytes());
        }
        let widths: Vec<usize> = bytes.iter().map(|bytes| bytes / RANGE).collect();
        assert_eq!(widths, [2, 2, 3, 3, 4, 4]);
        assert_eq!(locator.len(), 20_000);
    }

    #[test]
    fn arrays_become_wider_one_at_a_time_before_they_have_to() {
        let mut locator = Locator::default();
        let handles = || (0..5_u32).flat_map(|range| (0..20_000).map(move |n| Handle((range << 16) + n * 3)));
        for (leaf, handle) in (0..).zip(handles()) {
            locator.set(handle, leaf % THREE_FROM);
        }
        let wide = |locator: &Locator, from: u32| {
            let narrow =
                |range: &Range| matches!(range, Range::Dense { slots, .. } if slots.is_narrow_for(from));
            locator.ranges.iter().filter(|range| !narrow(range)).count()
        };
        locator.prepare_for(THREE_FROM - 1);
        for from in [THREE_FROM, FOUR_FROM] {
            for (nth, leaf) in (from..from + 7).enumerate() {
                assert_eq!(wide(&locator, from), nth.min(5));
                locator.prepare_for(leaf);
            }
            for (leaf, handle) in (0..).zip(handles()) {
                assert_eq!(locator.get(handle), leaf % THREE_FROM);
            }
            assert_eq!((locator.len(), locator.get(Handle(1))), (100_000, NONE));
            assert_eq!(locator.allocated_bytes, locator.ranges.iter().map(Range::bytes).sum::<usize>());
        }
        // A range that comes later is wide enough from the beginning.
        for n in 0..20_000 {
            locator.set(Handle((7 << 16) + n), n);
        }
        assert_eq!(wide(&locator, FOUR_FROM), locator.ranges.len());
    }
}
