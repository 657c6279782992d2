//! Member id → handle: a hash index of four bytes a slot that grows without pauses; five beyond 16 million
//! handles.
//!
//! Knows: hashes, and that the ids themselves are elsewhere. Must not know: what a handle stands for.
//!
//! The index is cut by the hash's upper bits into segments, each an open-addressing table of its own with
//! linear probing (Knuth, The Art of Computer Programming 3, 6.4) that grows by a quarter when it is four
//! fifths full: so the load stays between 0.64 and 0.8, and growing moves one segment, a four-thousandth of
//! the whole.

use crate::tree::Handle;

/// 2^12 segments: at 10 million members one of them holds 2,400, at 100 million ten times as many.
const SEGMENT_BITS: u32 = 12;
/// Ids that are fetched ahead while a segment grows or a run moves up: each is somewhere else in memory.
const FETCHED_AHEAD: usize = 16;
/// The most slots of a run that are prefetched for: at the highest load, a look-up of an id that is not there
/// takes 13 on average.
const RUN_WARMED: usize = 32;
const SMALLEST_CAPACITY: usize = 8;
const EMPTY: u8 = 0;

/// Handles below this take three bytes.
const SHORT_HANDLES: u32 = 1 << 24;
/// Once a handle of four bytes is in use, new members soon have put one into every segment. So segments are
/// widened before, one for this many new handles, and no step of the writer widens more than a few.
const HANDLES_PER_WIDENED: u32 = 64;
/// A handle is read as four bytes, of which the last may be behind the segment's last handle.
const READ_BEHIND: usize = 1;

/// Tags, side by side, and handles behind them: one allocation.
#[derive(Clone, Default)]
struct Segment {
    /// A tag for each slot: eight bits of the hash, never 0, so that most mismatches are found without
    /// reading the id. Then as many handles.
    bytes: Box<[u8]>,
    capacity: u32,
    len: u32,
    /// Whether handles take four bytes and not three.
    wide: bool,
}

pub struct Index {
    segments: Vec<Segment>,
    len: usize,
}

impl Index {
    pub fn new() -> Self {
        Self { segments: vec![Segment::default(); 1 << SEGMENT_BITS], len: 0 }
    }

    /// An index that `members` ids fit in without growing: what a start-up fills.
    pub fn with_capacity(members: usize) -> Self {
        let mut index = Self::new();
        let each = (members >> SEGMENT_BITS) * 5 / 4;
        // A twentieth more, because hashing spreads ids unevenly over the segments.
        let capacity = (each + each / 20).max(SMALLEST_CAPACITY);
        for segment in &mut index.segments {
            *segment = Segment::new(capacity, u32::try_from(members).is_ok_and(|all| all > SHORT_HANDLES));
        }
        index
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The handle whose id has this hash and satisfies `matches_id`.
    pub fn find(&self, hash: u64, mut matches_id: impl FnMut(Handle) -> bool) -> Option<Handle> {
        self.segments.get(segment_of(hash))?.find(hash, &mut matches_id)
    }

    /// The handle whose id a look-up will most likely compare first, for prefetching.
    pub fn first_candidate(&self, hash: u64) -> Option<Handle> {
        self.find(hash, |_| true)
    }

    /// Asks the processor to fetch the slots that a look-up of this hash begins with.
    pub fn prefetch(&self, hash: u64) {
        if let Some(segment) = self.segments.get(segment_of(hash)) {
            let start = segment.start(hash);
            for byte in [start, segment.place_of(start)] {
                if let Some(byte) = segment.bytes.get(byte) {
                    crate::tree::prefetch(byte);
                }
            }
        }
    }

    /// Calls `each` for the handles of the run of slots that a look-up of this hash begins in, for
    /// prefetching: the first of them, should the run be long.
    pub fn each_of_run(&self, hash: u64, each: impl FnMut(Handle)) {
        let Some(segment) = self.segments.get(segment_of(hash)) else { return };
        let start = segment.start(hash);
        let occupant = |slot: usize| segment.occupant(slot.checked_rem(segment.capacity())?);
        (start..start + RUN_WARMED).map_while(occupant).for_each(each);
    }

    /// Adds a handle that is not there yet.
    ///
    /// # Arguments
    /// `hash_of`: the hash of any handle present. `fetch`: prefetches what `hash_of` will read.
    pub fn insert(
        &mut self,
        hash: u64,
        handle: Handle,
        hash_of: impl Fn(Handle) -> u64,
        fetch: impl Fn(Handle),
    ) {
        self.len += 1;
        if let Some(segment) = widened_at(handle).and_then(|number| self.segments.get_mut(number))
            && !segment.wide
        {
            segment.widen();
        }
        if let Some(segment) = self.segments.get_mut(segment_of(hash)) {
            if segment.len + segment.len / 4 >= segment.capacity {
                segment.grow(hash_of, fetch);
            }
            if handle.0 >= SHORT_HANDLES && !segment.wide {
                segment.widen();
            }
            segment.place(hash, handle.0);
        }
    }

    /// Removes a handle, and moves later ones of its run up, so that no look-up ends early.
    ///
    /// # Arguments
    /// As those of [`Index::insert`].
    pub fn remove(
        &mut self,
        hash: u64,
        handle: Handle,
        hash_of: impl Fn(Handle) -> u64,
        fetch: impl Fn(Handle),
    ) -> bool {
        let Some(segment) = self.segments.get_mut(segment_of(hash)) else { return false };
        let removed = segment.remove(hash, handle.0, hash_of, fetch);
        self.len -= usize::from(removed);
        removed
    }

    pub fn bytes(&self) -> usize {
        let slots: usize = self.segments.iter().map(|segment| segment.bytes.len()).sum();
        slots + self.segments.len() * size_of::<Segment>()
    }
}

impl Segment {
    fn new(capacity: usize, wide: bool) -> Self {
        let slot = if wide { 5 } else { 4 };
        let bytes = vec![EMPTY; capacity * slot + READ_BEHIND].into();
        Self { bytes, capacity: u32::try_from(capacity).unwrap_or(u32::MAX), len: 0, wide }
    }

    fn capacity(&self) -> usize {
        usize::try_from(self.capacity).unwrap_or(0)
    }

    #[inline]
    fn tags(&self) -> &[u8] {
        self.bytes.get(..self.capacity()).unwrap_or_default()
    }

    /// Where the handle of a slot is in `bytes`.
    #[inline]
    fn place_of(&self, slot: usize) -> usize {
        self.capacity() + slot * (3 + usize::from(self.wide))
    }

    #[inline]
    fn handle(&self, slot: usize) -> Option<u32> {
        let bytes = self.bytes.get(self.place_of(slot)..)?.first_chunk()?;
        let read = u32::from_le_bytes(*bytes);
        Some(if self.wide { read } else { read & (SHORT_HANDLES - 1) })
    }

    /// Makes room for handles of four bytes.
    #[cold]
    fn widen(&mut self) {
        let mut wide = Self::new(self.capacity(), true);
        for slot in 0..self.capacity() {
            if let (Some(tag), Some(handle)) = (self.tags().get(slot), self.handle(slot)) {
                wide.write(slot, *tag, handle);
            }
        }
        wide.len = self.len;
        *self = wide;
    }

    /// The first handle with this tag, from the slot on where the hash begins, that `matches_id`.
    #[inline]
    fn find(&self, hash: u64, matches_id: &mut impl FnMut(Handle) -> bool) -> Option<Handle> {
        let (mut slot, tag) = (self.start(hash), tag_of(hash));
        let tags = self.tags();
        // There is an empty slot: a segment is never full.
        loop {
            let held = *tags.get(slot)?;
            if held == tag {
                let handle = Handle(self.handle(slot)?);
                if matches_id(handle) {
                    return Some(handle);
                }
            } else if held == EMPTY {
                return None;
            }
            slot += 1;
            if slot == tags.len() {
                slot = 0;
            }
        }
    }

    /// Maps the hash's lower half to a slot by multiplication, so that any capacity will do
    /// (Lemire, "Fast random integer generation in an interval", 2019).
    fn start(&self, hash: u64) -> usize {
        let low = hash & 0xffff_ffff;
        usize::try_from((low * u64::from(self.capacity)) >> 32).unwrap_or(0)
    }

    /// Who is in a slot. `None`: it is empty.
    fn occupant(&self, slot: usize) -> Option<Handle> {
        let (tag, handle) = (self.tags().get(slot)?, self.handle(slot)?);
        (*tag != EMPTY).then_some(Handle(handle))
    }

    fn grow(&mut self, hash_of: impl Fn(Handle) -> u64, fetch: impl Fn(Handle)) {
        let capacity = (self.capacity() + self.capacity() / 4).max(SMALLEST_CAPACITY);
        let present: Vec<Handle> = (0..self.capacity()).filter_map(|slot| self.occupant(slot)).collect();
        *self = Self::new(capacity, self.wide);
        for group in present.chunks(FETCHED_AHEAD) {
            for handle in group {
                fetch(*handle);
            }
            for handle in group {
                self.place(hash_of(*handle), handle.0);
            }
        }
    }

    fn place(&mut self, hash: u64, handle: u32) {
        let mut slot = self.start(hash);
        let tags = self.tags();
        while tags.get(slot).is_some_and(|tag| *tag != EMPTY) {
            slot += 1;
            if slot == tags.len() {
                slot = 0;
            }
        }
        self.write(slot, tag_of(hash), handle);
        self.len += 1;
    }

    fn write(&mut self, slot: usize, tag: u8, handle: u32) {
        let (place, width) = (self.place_of(slot), 3 + usize::from(self.wide));
        if let Some(held) = self.bytes.get_mut(slot) {
            *held = tag;
        }
        let bytes = handle.to_le_bytes();
        if let (Some(held), Some(bytes)) = (self.bytes.get_mut(place..place + width), bytes.get(..width)) {
            held.copy_from_slice(bytes);
        }
    }

    fn remove(
        &mut self,
        hash: u64,
        handle: u32,
        hash_of: impl Fn(Handle) -> u64,
        fetch: impl Fn(Handle),
    ) -> bool {
        let capacity = self.capacity();
        let mut hole = self.start(hash);
        loop {
            match self.occupant(hole) {
                Some(found) if found.0 == handle => break,
                Some(_) => {}
                None => return false,
            }
            hole = (hole + 1) % capacity;
        }
        // A later slot of the run moves into the hole, unless that would put it before its own start (Knuth's
        // Algorithm R).
        let ahead = (hole + 1..hole + FETCHED_AHEAD).map(|slot| slot % capacity);
        ahead.map_while(|slot| self.occupant(slot)).for_each(&fetch);
        let mut next = hole;
        loop {
            self.occupant((next + FETCHED_AHEAD) % capacity).into_iter().for_each(&fetch);
            next = (next + 1) % capacity;
            let (Some(&tag), Some(candidate)) = (self.tags().get(next), self.handle(next)) else { break };
            if tag == EMPTY {
                break;
            }
            let from_start = |slot: usize, start: usize| (slot + capacity - start) % capacity;
            let start = self.start(hash_of(Handle(candidate)));
            if from_start(hole, start) < from_start(next, start) {
                self.write(hole, tag, candidate);
                hole = next;
            }
        }
        self.write(hole, EMPTY, 0);
        self.len -= 1;
        true
    }
}

/// The segment that is widened when this handle comes. New handles come in order, so each one's turn comes
/// before a handle of four bytes.
fn widened_at(handle: Handle) -> Option<usize> {
    const FIRST: u32 = SHORT_HANDLES - (HANDLES_PER_WIDENED << SEGMENT_BITS);
    let handles = handle.0.checked_sub(FIRST).filter(|_| handle.0 < SHORT_HANDLES)?;
    usize::try_from(handles / HANDLES_PER_WIDENED)
        .ok()
        .filter(|_| handles.is_multiple_of(HANDLES_PER_WIDENED))
}

fn segment_of(hash: u64) -> usize {
    usize::try_from(hash >> (64 - SEGMENT_BITS)).unwrap_or(0)
}

/// Bits that neither the segment nor, mostly, the slot depends on.
fn tag_of(hash: u64) -> u8 {
    u8::try_from((hash >> 40) & 0xff).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;

    /// Few distinct hashes in one segment, so that runs collide, wrap and are cut in the middle.
    fn hash_of(handle: Handle) -> u64 {
        u64::from(handle.0 % 7).wrapping_mul(0x2492_4924) | (u64::from(handle.0 % 3) << 40)
    }

    proptest! {
        #[test]
        fn finds_what_was_inserted_and_not_removed(
            ops in prop::collection::vec((any::<bool>(), 0_u32..40), 1..200),
        ) {
            let mut index = Index::new();
            let mut model = BTreeSet::new();
            for (insert, number) in ops {
                let handle = Handle(number);
                if insert {
                    if model.insert(number) {
                        index.insert(hash_of(handle), handle, hash_of, |_| ());
                    }
                } else {
                    let removed = index.remove(hash_of(handle), handle, hash_of, |_| ());
                    prop_assert_eq!(removed, model.remove(&number));
                }
                prop_assert_eq!(index.len(), model.len());
                for number in 0..40 {
                    let handle = Handle(number);
                    let found = index.find(hash_of(handle), |candidate| candidate == handle);
                    prop_assert_eq!(found.is_some(), model.contains(&number));
                }
            }
        }
    }

    /// The first handle of four bytes comes when a segment has handles of three.
    #[test]
    fn handles_of_any_width_are_found() {
        let hash_of = |handle: Handle| u64::from(handle.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
        let handles: Vec<Handle> = (0..500)
            .map(|n| Handle(n * 11))
            .chain((0..500).map(|n| Handle(SHORT_HANDLES - 250 + n)))
            .collect();
        for mut index in [Index::new(), Index::with_capacity(1_000)] {
            for (nth, handle) in handles.iter().enumerate() {
                index.insert(hash_of(*handle), *handle, hash_of, |_| ());
                for known in handles.iter().take(nth + 1).step_by(7) {
                    assert_eq!(index.find(hash_of(*known), |found| found == *known), Some(*known));
                }
            }
            for handle in &handles {
                assert!(index.remove(hash_of(*handle), *handle, hash_of, |_| ()));
                assert_eq!(index.find(hash_of(*handle), |found| found == *handle), None);
            }
            assert_eq!(index.len(), 0);
        }
    }

    #[test]
    fn segments_are_widened_one_by_one_before_a_handle_needs_it() {
        let hash_of = |handle: Handle| u64::from(handle.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut index = Index::new();
        let wide = |index: &Index| index.segments.iter().filter(|segment| segment.wide).count();
        let first = SHORT_HANDLES - (HANDLES_PER_WIDENED << SEGMENT_BITS);
        index.insert(hash_of(Handle(first - 1)), Handle(first - 1), hash_of, |_| ());
        assert_eq!(wide(&index), 0);
        for number in first..SHORT_HANDLES {
            let before = wide(&index);
            index.insert(hash_of(Handle(number)), Handle(number), hash_of, |_| ());
            assert!(wide(&index) <= before + usize::from(number % HANDLES_PER_WIDENED == 0));
        }
        assert_eq!(wide(&index), 1 << SEGMENT_BITS);
        for number in (first..SHORT_HANDLES).step_by(977) {
            assert_eq!(index.find(hash_of(Handle(number)), |found| found.0 == number), Some(Handle(number)));
        }
    }

    #[test]
    fn growing_looks_at_the_members_of_one_of_many_segments() {
        let mut index = Index::new();
        let members = 200_000;
        let hasher = foldhash::fast::FixedState::default();
        let hash_of = |handle: Handle| std::hash::BuildHasher::hash_one(&hasher, handle.0);
        let mut most = 0;
        for handle in (0..members).map(Handle) {
            let (looked_at, fetched) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
            let look = |handle: Handle| {
                looked_at.set(looked_at.get() + 1);
                hash_of(handle)
            };
            index.insert(hash_of(handle), handle, look, |_| fetched.set(fetched.get() + 1));
            assert_eq!(looked_at, fetched, "each test asks for a slot before it reads it");
            most = most.max(looked_at.get());
        }
        // Twice what a segment of 4,096 holds on average: hashing spreads members unevenly.
        assert!(most > 0 && most < 2 * members / 4_096, "{most}");
    }

    #[test]
    fn a_removal_asks_for_each_id_before_it_hashes_it() {
        let mut index = Index::new();
        // All in one segment, at the highest load: runs are long, and some wrap.
        let hasher = foldhash::fast::FixedState::default();
        let hash_of = |handle: Handle| std::hash::BuildHasher::hash_one(&hasher, handle.0) >> SEGMENT_BITS;
        for handle in (0..400).map(Handle) {
            index.insert(hash_of(handle), handle, hash_of, |_| ());
        }
        let mut hashed = 0;
        for handle in (0..400).map(Handle) {
            let asked = std::cell::RefCell::new(BTreeSet::new());
            let looks = std::cell::Cell::new(0);
            let look = |other: Handle| {
                assert!(asked.borrow().contains(&other), "hashed without having been asked for");
                looks.set(looks.get() + 1);
                hash_of(other)
            };
            let ask = |other| {
                asked.borrow_mut().insert(other);
            };
            assert!(index.remove(hash_of(handle), handle, look, ask));
            hashed += looks.get();
        }
        assert!(hashed > 100, "{hashed}");
    }
}
