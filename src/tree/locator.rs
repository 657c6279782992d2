//! The locator: handle → the leaf that holds its entry.
//!
//! Must not know what is in a leaf. Handles are split into ranges of 65,536; each range is a hash map while
//! the tree holds few of it and an array once it holds a quarter. So a window of ten members costs no array,
//! ten million members cost four bytes each, and nothing larger than 256 KB is ever copied at once.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::leaf::NONE;
use super::prefetch;
use super::words::Handle;

/// Handles per range: a `u16` names one within it, so that an array access needs no bounds check.
const RANGE: usize = 1 << 16;

/// A map entry takes 9 to 18 bytes and an array slot 4, so a quarter is about where the array becomes
/// smaller.
const DENSE_AT: usize = RANGE / 4;

/// Back to a map far below `DENSE_AT`, so that a tree at the boundary does not convert again and again.
const SPARSE_AT: u32 = RANGE as u32 / 16;

enum Range {
    Empty,
    Sparse(Box<HashMap<u16, u32, FixedState>>),
    Dense { slots: Box<[u32; RANGE]>, used: u32 },
}

impl Range {
    fn bytes(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Sparse(map) => size_of::<HashMap<u16, u32, FixedState>>() + map.allocation_size(),
            Self::Dense { .. } => size_of::<[u32; RANGE]>(),
        }
    }
}

#[derive(Default)]
pub(super) struct Locator {
    ranges: Vec<Range>,
    /// Heap memory of the contents of ranges, in bytes.
    allocated_bytes: usize,
}

#[inline]
fn split(handle: Handle) -> (usize, u16) {
    ((handle.0 >> 16) as usize, handle.0 as u16)
}

fn dense() -> Box<[u32; RANGE]> {
    vec![NONE; RANGE].into_boxed_slice().try_into().expect("the vector was made with this length")
}

impl Locator {
    /// A locator about to hold all of `handles`: chooses each range's form once, rather than growing into it.
    pub(super) fn sized_for<'a>(handles: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut counts: Vec<usize> = Vec::new();
        for &handle in handles.flatten() {
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
            _ => Range::Dense { slots: dense(), used: 0 },
        };
        let ranges: Vec<Range> = counts.iter().map(form).collect();
        Self { allocated_bytes: ranges.iter().map(Range::bytes).sum(), ranges }
    }

    /// The handle's leaf, or [`NONE`].
    #[inline]
    pub(super) fn get(&self, handle: Handle) -> u32 {
        let (range, at) = split(handle);
        match self.ranges.get(range) {
            Some(Range::Dense { slots, .. }) => slots[usize::from(at)],
            Some(Range::Sparse(map)) => map.get(&at).copied().unwrap_or(NONE),
            Some(Range::Empty) | None => NONE,
        }
    }

    /// Sets the handle's leaf, and returns the previous one.
    #[inline]
    pub(super) fn set(&mut self, handle: Handle, leaf: u32) -> u32 {
        let (range, at) = split(handle);
        if let Some(Range::Dense { slots, used }) = self.ranges.get_mut(range) {
            let slot = &mut slots[usize::from(at)];
            *used += u32::from(*slot == NONE);
            return std::mem::replace(slot, leaf);
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
            let mut slots = dense();
            for (&at, &leaf) in map.iter() {
                slots[usize::from(at)] = leaf;
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
                let before = std::mem::replace(&mut slots[usize::from(at)], NONE);
                *used -= u32::from(before != NONE);
                if *used < SPARSE_AT {
                    let present = slots.iter().enumerate().filter(|&(_, &leaf)| leaf != NONE);
                    let map: HashMap<_, _, _> = present.map(|(at, &leaf)| (at as u16, leaf)).collect();
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
            prefetch::line_of(&slots[usize::from(at)]);
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
    use super::*;

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
}
