//! Handle → something small: a hash map that grows without pauses.
//!
//! Knows handles. Must not know the values.
//!
//! The map is cut into segments of some hundred entries, each an open-addressing table of its own with linear
//! probing (Knuth, The Art of Computer Programming 3, 6.4). When all are well filled, one of them is split
//! into two, in turn (Litwin, "Linear hashing: a new tool for file and table addressing", 1980): so no step
//! moves more than one segment, however many entries there are, and a map of a few entries is one small
//! segment.

use crate::tree::Handle;

/// Average entries per segment above which a segment is split. Splitting one takes microseconds.
const SEGMENT_ENTRIES: usize = 384;
/// Marks a free slot; no member has this handle.
const EMPTY: u32 = u32::MAX;

pub(super) struct HandleMap<V> {
    segments: Vec<Segment<V>>,
    len: usize,
    /// Slots of all segments, filled or not.
    slots: usize,
}

/// A place in a map, invalid once the map changes.
#[derive(Default)]
pub(super) struct MapPlace {
    segment: usize,
    slot: usize,
}

/// The handles of a consumed map, by segment.
pub(super) struct Segments<V>(std::vec::IntoIter<Segment<V>>);

impl<V: Copy + Default> Iterator for Segments<V> {
    type Item = Vec<Handle>;

    fn next(&mut self) -> Option<Vec<Handle>> {
        let segment = self.0.next()?;
        Some(segment.entries().map(|(handle, _)| Handle(handle)).collect())
    }
}

impl<V: Copy + Default> Segments<V> {
    /// Handles that were not handed out yet.
    pub(super) fn handles(&self) -> impl Iterator<Item = Handle> {
        self.0.as_slice().iter().flat_map(Segment::entries).map(|(handle, _)| Handle(handle))
    }
}

/// A set of handles.
pub(super) type HandleSet = HandleMap<()>;

/// Handles and values in separate arrays, so that there is no padding.
#[derive(Default)]
struct Segment<V> {
    handles: Box<[u32]>,
    values: Box<[V]>,
    len: usize,
}

impl<V> Default for HandleMap<V> {
    fn default() -> Self {
        Self { segments: Vec::new(), len: 0, slots: 0 }
    }
}

impl<V: Copy + Default> HandleMap<V> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, handle: Handle) -> Option<V> {
        let hash = hash_of(handle.0);
        self.segments.get(self.segment_of(hash))?.get(hash, handle.0)
    }

    pub(super) fn contains(&self, handle: Handle) -> bool {
        self.get(handle).is_some()
    }

    /// Stores a value, and returns the previous one.
    pub(super) fn insert(&mut self, handle: Handle, value: V) -> Option<V> {
        if self.len >= self.segments.len() * SEGMENT_ENTRIES {
            self.split();
        }
        let hash = hash_of(handle.0);
        let segment = self.segment_of(hash);
        let segment = self.segments.get_mut(segment)?;
        self.slots -= segment.handles.len();
        let before = segment.insert(hash, handle.0, value);
        self.slots += segment.handles.len();
        self.len += usize::from(before.is_none());
        before
    }

    pub(super) fn remove(&mut self, handle: Handle) -> Option<V> {
        let hash = hash_of(handle.0);
        let segment = self.segment_of(hash);
        let segment = self.segments.get_mut(segment)?;
        let slots = segment.handles.len();
        let before = segment.remove(hash, handle.0)?;
        self.slots = self.slots + segment.handles.len() - slots;
        self.len -= 1;
        // Far below where a segment is added, so that a map at the boundary does not split and merge again
        // and again.
        if self.len < self.segments.len() * (SEGMENT_ENTRIES / 3) {
            self.merge_last_segment();
        }
        Some(before)
    }

    /// Everything in it, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Handle, V)> {
        self.segments.iter().flat_map(Segment::entries).map(|(handle, value)| (Handle(handle), value))
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = Handle> {
        self.iter().map(|(handle, _)| handle)
    }

    /// Adds the handles from a place on to `found`, until that holds `most`; the place is then behind them.
    /// All are found once if nothing changes meanwhile.
    pub(super) fn handles_from(&self, place: &mut MapPlace, most: usize, found: &mut Vec<Handle>) {
        while found.len() < most
            && let Some(segment) = self.segments.get(place.segment)
        {
            match segment.handles.get(place.slot) {
                None => *place = MapPlace { segment: place.segment + 1, slot: 0 },
                Some(handle) => {
                    place.slot += 1;
                    found.extend((*handle != EMPTY).then_some(Handle(*handle)));
                }
            }
        }
    }

    /// All handles, a segment at a time. Each segment is freed when it was handed out.
    pub(super) fn into_segments(self) -> Segments<V> {
        Segments(self.segments.into_iter())
    }

    /// Asks the processor to fetch what a look-up begins with.
    pub(super) fn prefetch(&self, handle: Handle) {
        let hash = hash_of(handle.0);
        let Some(segment) = self.segments.get(self.segment_of(hash)) else { return };
        let start = segment.start(hash);
        if let (Some(handle), Some(value)) = (segment.handles.get(start), segment.values.get(start)) {
            crate::tree::prefetch(handle);
            crate::tree::prefetch(value);
        }
    }

    /// Heap memory, in bytes, without the struct itself.
    pub(super) fn bytes(&self) -> usize {
        self.slots * (size_of::<u32>() + size_of::<V>()) + self.segments.capacity() * size_of::<Segment<V>>()
    }

    /// Selects a segment by the low bits of the hash (linear hashing): enough bits to number all segments,
    /// one bit fewer if that number does not exist yet.
    fn segment_of(&self, hash: u64) -> usize {
        let mask = self.segments.len().next_power_of_two() - 1;
        let number = usize::try_from(hash & 0xffff_ffff).unwrap_or(0) & mask;
        if number < self.segments.len() { number } else { number & (mask >> 1) }
    }

    /// Adds a segment, with about half of the entries of the next one to split.
    fn split(&mut self) {
        if self.segments.is_empty() {
            // Most maps stay with one.
            self.segments.reserve_exact(1);
        }
        let added = self.segments.len();
        self.segments.push(Segment::default());
        let Some(segment) = self.segments.get_mut(parent_of(added)) else { return };
        let entries: Vec<_> =
            segment.entries().map(|(handle, value)| (hash_of(handle), handle, value)).collect();
        let (goes, stays): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(hash, ..)| self.segment_of(*hash) == added);
        for (number, entries) in [(parent_of(added), stays), (added, goes)] {
            if let Some(segment) = self.segments.get_mut(number) {
                self.slots -= segment.handles.len();
                *segment = Segment::of(&entries);
                self.slots += segment.handles.len();
            }
        }
    }

    /// The reverse of [`HandleMap::split`].
    fn merge_last_segment(&mut self) {
        if self.is_empty() {
            *self = Self::default();
            return;
        }
        if self.segments.len() < 2 {
            return;
        }
        let Some(last) = self.segments.pop() else { return };
        let joined = parent_of(self.segments.len());
        self.slots -= last.handles.len();
        if let Some(segment) = self.segments.get_mut(joined) {
            self.slots -= segment.handles.len();
            for (handle, value) in last.entries() {
                segment.insert(hash_of(handle), handle, value);
            }
            self.slots += segment.handles.len();
        }
    }
}

/// The segment that this one is split from.
fn parent_of(segment: usize) -> usize {
    segment.checked_ilog2().map_or(0, |bit| segment - (1 << bit))
}

/// Spreads handles, which are dense, over all bits: the lower half says which segment, the upper where in it.
fn hash_of(handle: u32) -> u64 {
    let mixed = (u64::from(handle) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

impl<V: Copy + Default> Segment<V> {
    /// A segment of these entries, three quarters full.
    fn of(entries: &[(u64, u32, V)]) -> Self {
        let mut segment = Self::with_capacity(entries.len() + entries.len() / 3 + 1);
        for (hash, handle, value) in entries {
            segment.place(*hash, *handle, *value);
        }
        segment
    }

    fn with_capacity(capacity: usize) -> Self {
        Self { handles: vec![EMPTY; capacity].into(), values: vec![V::default(); capacity].into(), len: 0 }
    }

    fn entries(&self) -> impl Iterator<Item = (u32, V)> {
        let slots = self.handles.iter().copied().zip(self.values.iter().copied());
        slots.filter(|(handle, _)| *handle != EMPTY)
    }

    /// Maps the hash's upper half to a slot by multiplication, so that any capacity will do
    /// (Lemire, "Fast random integer generation in an interval", 2019).
    fn start(&self, hash: u64) -> usize {
        let capacity = u64::try_from(self.handles.len()).unwrap_or(0);
        usize::try_from(((hash >> 32) * capacity) >> 32).unwrap_or(0)
    }

    /// Where the handle is, or the free slot that ends the search for it. `None` only if the segment has no
    /// slots.
    fn find(&self, hash: u64, handle: u32) -> Option<(usize, bool)> {
        let mut slot = self.start(hash);
        loop {
            match *self.handles.get(slot)? {
                EMPTY => return Some((slot, false)),
                found if found == handle => return Some((slot, true)),
                _ => slot = if slot + 1 == self.handles.len() { 0 } else { slot + 1 },
            }
        }
    }

    fn get(&self, hash: u64, handle: u32) -> Option<V> {
        match self.find(hash, handle)? {
            (slot, true) => self.values.get(slot).copied(),
            (_, false) => None,
        }
    }

    fn insert(&mut self, hash: u64, handle: u32, value: V) -> Option<V> {
        if let Some((slot, true)) = self.find(hash, handle) {
            return self.values.get_mut(slot).map(|held| std::mem::replace(held, value));
        }
        // Four fifths, as the index of members: then runs are short.
        if (self.len + 1) * 5 > self.handles.len() * 4 {
            let capacity = self.handles.len();
            self.resize(capacity + (capacity / 4).max(4));
        }
        self.place(hash, handle, value);
        None
    }

    fn place(&mut self, hash: u64, handle: u32, value: V) {
        if let Some((slot, _)) = self.find(hash, handle) {
            self.write(slot, handle, value);
            self.len += 1;
        }
    }

    fn write(&mut self, slot: usize, handle: u32, value: V) {
        if let (Some(handles), Some(values)) = (self.handles.get_mut(slot), self.values.get_mut(slot)) {
            *handles = handle;
            *values = value;
        }
    }

    fn resize(&mut self, capacity: usize) {
        let mut larger = Self::with_capacity(capacity);
        for (handle, value) in self.entries() {
            larger.place(hash_of(handle), handle, value);
        }
        *self = larger;
    }

    fn remove(&mut self, hash: u64, handle: u32) -> Option<V> {
        let (mut hole, true) = self.find(hash, handle)? else { return None };
        let removed = self.values.get(hole).copied();
        let capacity = self.handles.len();
        // A later slot of the run moves into the hole, unless that would put it before its own start (Knuth's
        // Algorithm R).
        let mut next = hole;
        loop {
            next = if next + 1 == capacity { 0 } else { next + 1 };
            let (Some(&found), Some(&value)) = (self.handles.get(next), self.values.get(next)) else { break };
            if found == EMPTY {
                break;
            }
            let from_start = |slot: usize, start: usize| (slot + capacity - start) % capacity;
            let start = self.start(hash_of(found));
            if from_start(hole, start) < from_start(next, start) {
                self.write(hole, found, value);
                hole = next;
            }
        }
        self.write(hole, EMPTY, V::default());
        self.len -= 1;
        if self.len * 4 < capacity && capacity > 16 {
            self.resize(self.len * 2 + 1);
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_map_too_simple_to_be_wrong(
            runs in prop::collection::vec((any::<bool>(), 0_u32..4_000, 0_u32..1_500, 1_u32..5), 1..12)
        ) {
            let mut map = HandleMap::<u64>::default();
            let mut model = BTreeMap::new();
            for (round, (insert, first, count, step)) in runs.into_iter().enumerate() {
                for handle in (0..count).map(|number| first + number * step) {
                    if insert {
                        let value = u64::from(handle) << 8 | u64::try_from(round).expect("small");
                        prop_assert_eq!(map.insert(Handle(handle), value), model.insert(handle, value));
                    } else {
                        prop_assert_eq!(map.remove(Handle(handle)), model.remove(&handle));
                    }
                    prop_assert_eq!(map.len(), model.len());
                }
                for handle in 0..10_000 {
                    prop_assert_eq!(map.get(Handle(handle)), model.get(&handle).copied());
                }
                let all: BTreeMap<u32, u64> = map.iter().map(|(handle, value)| (handle.0, value)).collect();
                prop_assert_eq!(&all, &model);
                prop_assert_eq!(map.iter().count(), model.len());
                let (mut place, mut found) = (MapPlace::default(), Vec::new());
                while found.len() < model.len() {
                    let most = found.len() + 100;
                    map.handles_from(&mut place, most, &mut found);
                }
                prop_assert_eq!(found, map.handles().collect::<Vec<_>>());
                let slots: usize = map.segments.iter().map(|segment| segment.handles.len()).sum();
                prop_assert_eq!(map.slots, slots);
            }
            let all: Vec<Handle> = map.handles().collect();
            let mut segments = map.into_segments();
            prop_assert!(segments.handles().eq(all.iter().copied()));
            let mut handed_out = segments.next().unwrap_or_default();
            prop_assert!(handed_out.iter().copied().chain(segments.handles()).eq(all.iter().copied()));
            handed_out.extend(segments.flatten());
            prop_assert_eq!(handed_out, all);
        }
    }

    #[test]
    fn growing_moves_a_segment_at_a_time_and_an_entry_costs_17_bytes() {
        let mut map = HandleMap::<u64>::default();
        let count = 500_000;
        let (mut steps_largest, mut steps_held) = (0, 0);
        for first in (0..count).step_by(1_000) {
            let ((), allocated) = crate::allocated::count(|| {
                for handle in first..first + 1_000 {
                    map.insert(Handle(handle), u64::from(handle));
                }
            });
            steps_largest = steps_largest.max(allocated.largest);
            steps_held += allocated.held;
        }
        let each = steps_held / i64::from(count);
        assert!(each <= 17, "{each}");
        // The table of segments: 40 bytes for some hundred entries.
        assert!(steps_largest <= 2_048 * size_of::<Segment<u64>>(), "{steps_largest}");
        assert_eq!(map.bytes(), usize::try_from(steps_held).expect("it grew"));
        let ((), allocated) = crate::allocated::count(|| {
            for handle in 0..count {
                map.remove(Handle(handle));
            }
        });
        assert_eq!(allocated.held, -steps_held, "all is given back");
    }

    #[test]
    fn a_map_of_ten_is_small() {
        let mut map = HandleMap::<u64>::default();
        for handle in 0..10 {
            map.insert(Handle(handle * 1_000_003), 1);
        }
        assert!(map.bytes() <= 240, "{}", map.bytes());
    }
}
