//! Member ids by handle: side by side, in as many bytes as those of neighbours need.
//!
//! Knows: bytes and handles. Must not know: which ids exist (`index`), or who refers to them (`members`).
//!
//! Handles are given out in order, and ids of one service look alike: all are UUIDs, or all are account
//! numbers. So the ids of 256 handles lie in a chunk of slots of one length, which is chosen such that it and
//! the few ids that are longer take the least memory together. A slot shorter than its id says in which cell
//! the id is.

use super::in_groups::InGroups;
use crate::tree::{Blocks, Handle};
use crate::types::MAX_MEMBER_BYTES;

/// Slots per chunk.
const CHUNK: usize = 256;
const CHUNK_SETS: u16 = 256;
/// A slot with less would not hold a reference to a cell.
const SHORTEST_SLOT: usize = 6;
/// The longest id.
const LONGEST: usize = MAX_MEMBER_BYTES;
/// The first byte of a slot whose id is in a cell. No id has it, nor zero, for control characters are not
/// allowed in ids.
const IN_CELL: u8 = 1;
/// Cells of long ids come in steps of this many bytes.
const CELL_STEP: usize = 4;
/// No cell.
const NONE: u32 = u32::MAX;

/// Slots of one length: an id and zeros behind it, or a reference to a cell.
#[derive(Default)]
struct Chunk {
    bytes: Box<[u8]>,
    /// How many of its ids are in cells.
    long: u16,
    /// How many ids were ever put into it, until that is looked at anew.
    sets: u16,
}

#[derive(Clone, Copy)]
struct CellRef {
    /// Of the id, from 1.
    length: u16,
    cell: u32,
}

impl CellRef {
    fn of(slot: &[u8]) -> Option<Self> {
        match *slot {
            [IN_CELL, length, a, b, c, d, ..] => {
                Some(Self { length: u16::from(length) + 1, cell: u32::from_le_bytes([a, b, c, d]) })
            }
            _ => None,
        }
    }

    fn bytes(self) -> [u8; SHORTEST_SLOT] {
        let [a, b, c, d] = self.cell.to_le_bytes();
        // An id of 256 bytes has a length of one byte, too: none is empty.
        [IN_CELL, u8::try_from(self.length - 1).unwrap_or(u8::MAX), a, b, c, d]
    }
}

/// The id in a slot that holds one, or none.
#[inline]
fn without_zeros(slot: &[u8]) -> &[u8] {
    match slot.last() {
        Some(0) => slot.get(..slot.partition_point(|byte| *byte != 0)).unwrap_or_default(),
        _ => slot,
    }
}

fn write(slot: &mut [u8], bytes: &[u8]) {
    let (head, tail) = slot.split_at_mut(bytes.len().min(slot.len()));
    head.copy_from_slice(bytes.get(..head.len()).unwrap_or_default());
    tail.fill(0);
}

impl Chunk {
    fn new(slot: usize) -> Self {
        Self { bytes: vec![0; CHUNK * slot].into(), long: 0, sets: 0 }
    }

    #[inline]
    fn slot_length(&self) -> usize {
        self.bytes.len() / CHUNK
    }

    #[inline]
    fn slot(&self, at: usize) -> &[u8] {
        let length = self.slot_length();
        self.bytes.get(at * length..(at + 1) * length).unwrap_or_default()
    }

    fn slot_mut(&mut self, at: usize) -> &mut [u8] {
        let length = self.slot_length();
        self.bytes.get_mut(at * length..(at + 1) * length).unwrap_or_default()
    }

    /// Whether it is time to look at the length of slots, now that an id comes. That looks at all ids of the
    /// chunk, so not with each one.
    fn is_due(&mut self, id: &[u8]) -> bool {
        self.sets = if self.sets < 1_024 { self.sets + 1 } else { CHUNK_SETS };
        let is_long = id.len() > self.slot_length();
        [8, 64, CHUNK_SETS, 1_024].contains(&self.sets) || is_long && (self.long + 1).is_power_of_two()
    }

    /// How long slots should be for the ids that are there and one more.
    fn best_slot_length(&self, one_more: usize) -> usize {
        let mut count_of = [0_usize; LONGEST + 1];
        let mut all = 0;
        let held = (0..CHUNK).map(|at| {
            let slot = self.slot(at);
            CellRef::of(slot).map_or_else(|| without_zeros(slot).len(), |cell| usize::from(cell.length))
        });
        for length in held.filter(|length| *length > 0).chain([one_more]) {
            if let Some(count) = count_of.get_mut(length) {
                *count += 1;
                all += 1;
            }
        }
        let (mut best, mut least, mut in_cells) = (LONGEST, usize::MAX, 0);
        for (length, count) in count_of.iter().enumerate().skip(SHORTEST_SLOT).rev() {
            if length * all + in_cells <= least {
                (best, least) = (length, length * all + in_cells);
            }
            in_cells += count * length.next_multiple_of(CELL_STEP);
        }
        best
    }
}

/// Handle → id bytes. Every look-up is one cache line for most ids of up to 60 bytes, or two.
#[derive(Default)]
pub struct Ids {
    chunks: InGroups<Chunk>,
    /// Heap memory of chunks, in bytes.
    chunk_bytes: usize,
    /// Long ids by size: the nth has cells of n steps.
    cells: Vec<Cells>,
}

impl Ids {
    /// The id in a slot; empty for a slot never written.
    #[inline]
    pub fn get(&self, handle: Handle) -> &[u8] {
        let slot = self.slot(handle);
        match CellRef::of(slot) {
            Some(cell) => self.in_cell(cell),
            None => without_zeros(slot),
        }
    }

    fn in_cell(&self, CellRef { length, cell }: CellRef) -> &[u8] {
        let length = usize::from(length);
        let cells = self.cells.get(length.div_ceil(CELL_STEP));
        cells.and_then(|cells| cells.blocks.get(cell).get(..length)).unwrap_or_default()
    }

    /// Puts an id of at most 256 bytes into a slot; an empty one vacates it.
    pub fn set(&mut self, handle: Handle, id: &[u8]) {
        let (number, at) = place(handle);
        self.chunks.reach(number);
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        if chunk.bytes.is_empty() {
            *chunk = Chunk::new(id.len().max(SHORTEST_SLOT));
            self.chunk_bytes += chunk.bytes.len();
        }
        if let Some(cell) = CellRef::of(chunk.slot(at)) {
            chunk.long -= 1;
            chunk.slot_mut(at).fill(0);
            self.release(cell);
        }
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        write(chunk.slot_mut(at), b"");
        if !id.is_empty() && chunk.is_due(id) {
            let best = chunk.best_slot_length(id.len());
            if best != chunk.slot_length() {
                self.remake(number, best);
            }
        }
        self.put(number, at, id);
    }

    /// Writes an id into a vacant slot or into a cell.
    fn put(&mut self, number: usize, at: usize, id: &[u8]) {
        let fits = self.chunks.get(number).is_some_and(|chunk| id.len() <= chunk.slot_length());
        let cell = if fits { None } else { Some(self.add_long(id)) };
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        match cell {
            Some(cell) => {
                chunk.long += 1;
                write(chunk.slot_mut(at), &cell.bytes());
            }
            None => write(chunk.slot_mut(at), id),
        }
    }

    /// Gives a chunk slots of another length.
    #[cold]
    fn remake(&mut self, number: usize, length: usize) {
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        let sets = chunk.sets;
        let before = std::mem::replace(chunk, Chunk { sets, ..Chunk::new(length) });
        self.chunk_bytes += chunk.bytes.len();
        self.chunk_bytes -= before.bytes.len();
        for at in 0..CHUNK {
            let slot = before.slot(at);
            match CellRef::of(slot) {
                Some(cell) => {
                    let id = self.in_cell(cell).to_vec();
                    self.release(cell);
                    self.put(number, at, &id);
                }
                None => self.put(number, at, without_zeros(slot)),
            }
        }
    }

    fn add_long(&mut self, id: &[u8]) -> CellRef {
        let size = id.len().div_ceil(CELL_STEP);
        while self.cells.len() <= size {
            self.cells.push(Cells::new(self.cells.len() * CELL_STEP));
        }
        let length = u16::try_from(id.len()).expect("ids are at most 256 bytes");
        CellRef { length, cell: self.cells.get_mut(size).map_or(NONE, |cells| cells.add(id)) }
    }

    fn release(&mut self, CellRef { length, cell }: CellRef) {
        if let Some(cells) = self.cells.get_mut(usize::from(length).div_ceil(CELL_STEP)) {
            cells.release(cell);
        }
    }

    /// Asks the processor to fetch a slot that will be read soon.
    pub fn prefetch(&self, handle: Handle) {
        if let [first, .., last] = self.slot(handle) {
            crate::tree::prefetch(first);
            crate::tree::prefetch(last);
        }
    }

    /// Asks for what a slot does not hold itself; waits for the slot, unless it was asked for before.
    pub fn prefetch_long(&self, handle: Handle) {
        if let Some(cell) = CellRef::of(self.slot(handle))
            && let [first, .., last] = self.in_cell(cell)
        {
            crate::tree::prefetch(first);
            crate::tree::prefetch(last);
        }
    }

    pub fn bytes(&self) -> usize {
        let long: usize = self.cells.iter().map(|cells| cells.blocks.bytes()).sum();
        self.chunk_bytes + self.chunks.bytes() + long + self.cells.capacity() * size_of::<Cells>()
    }

    #[inline]
    fn slot(&self, handle: Handle) -> &[u8] {
        let (chunk, at) = place(handle);
        self.chunks.get(chunk).map_or(&[], |chunk| chunk.slot(at))
    }
}

fn place(handle: Handle) -> (usize, usize) {
    let index = handle.index();
    (index / CHUNK, index % CHUNK)
}

/// Ids of about the same size, side by side: an allocation for a thousand of them, and none that moves.
struct Cells {
    blocks: Blocks<u8>,
    /// The first of the free ones, each of which names the next in its first bytes.
    free: u32,
    /// One past the highest ever used.
    used: u32,
}

impl Cells {
    fn new(size: usize) -> Self {
        Self { blocks: Blocks::new(size), free: NONE, used: 0 }
    }

    fn add(&mut self, id: &[u8]) -> u32 {
        let cell = if self.free == NONE {
            self.used += 1;
            self.blocks.ensure(self.used - 1);
            self.used - 1
        } else {
            let next =
                self.blocks.get(self.free).first_chunk().map_or(NONE, |next| u32::from_le_bytes(*next));
            std::mem::replace(&mut self.free, next)
        };
        if let Some(place) = self.blocks.get_mut(cell).get_mut(..id.len()) {
            place.copy_from_slice(id);
        }
        cell
    }

    fn release(&mut self, cell: u32) {
        if let Some(next) = self.blocks.get_mut(cell).first_chunk_mut() {
            *next = self.free.to_le_bytes();
        }
        self.free = cell;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id() -> impl Strategy<Value = Vec<u8>> {
        let length = prop_oneof![4 => Just(36_usize), 4 => 1_usize..16, 1 => 0_usize..1, 1 => 1_usize..257];
        (length, b'!'..b'~').prop_map(|(length, first)| {
            let mut id = vec![b'x'; length];
            id.iter_mut().take(1).for_each(|byte| *byte = first);
            id
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_vector(
            sets in prop::collection::vec((0_u32..600, id()), 1..1_500),
            alike in 1_usize..257,
        ) {
            let mut ids = Ids::default();
            let mut model = vec![Vec::new(); 600];
            // In between, all become alike.
            let all = (0..600).map(|handle| (handle, vec![b'a'; alike]));
            for (handle, id) in sets.iter().cloned().chain(all).chain(sets.iter().rev().cloned()) {
                ids.set(Handle(handle), &id);
                model[Handle(handle).index()] = id;
                prop_assert_eq!(ids.get(Handle(handle)), &model[Handle(handle).index()]);
            }
            for (handle, id) in (0..).map(Handle).zip(&model) {
                prop_assert_eq!(ids.get(handle), id);
            }
            let chunks: usize = ids.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
            prop_assert_eq!(ids.chunk_bytes, chunks);
            for chunk in ids.chunks.iter() {
                let long = (0..CHUNK).filter(|at| CellRef::of(chunk.slot(*at)).is_some()).count();
                prop_assert_eq!(usize::from(chunk.long), long);
            }
        }
    }

    #[test]
    fn ids_of_any_length_are_held() {
        let mut ids = Ids::default();
        for (length, handle) in
            [(1, 7), (13, 5_000), (14, 5_001), (15, 9_000), (16, 9_001), (255, 89_601), (256, 89_600)]
        {
            let handle = Handle(handle);
            let id = vec![b'x'; length];
            ids.set(handle, &id);
            assert_eq!(ids.get(handle), id);
        }
        ids.set(Handle(89_600), b"short");
        assert_eq!(ids.get(Handle(89_600)), b"short");
        assert_eq!(ids.get(Handle(5)), b"");
    }

    fn uuid(number: u32) -> String {
        format!("{:08x}-1cc0-4e1b-9d2a-{:012x}", number.wrapping_mul(2_654_435_761), number)
    }

    #[test]
    fn long_ids_come_and_go_and_their_room_is_used_again() {
        let mut ids = Ids::default();
        let length = |number: u32| usize::try_from(15 + number % 242).expect("small");
        let id = |number: u32| format!("{}{}", uuid(number), "x".repeat(256)).into_bytes();
        for number in 0..5_000 {
            ids.set(Handle(number), &id(number)[..length(number)]);
        }
        let bytes = ids.bytes();
        // Some leave and come again in another order.
        for number in (0..5_000).filter(|number| number % 3 == 0) {
            ids.set(Handle(number), b"");
        }
        for number in (0..5_000).rev().filter(|number| number % 3 == 0) {
            assert_eq!(ids.get(Handle(number)), b"");
            ids.set(Handle(number), &id(number + 114)[..length(number)]);
        }
        for number in 0..5_000 {
            let id = if number % 3 == 0 { id(number + 114) } else { id(number) };
            assert_eq!(ids.get(Handle(number)), &id[..length(number)]);
        }
        assert!(ids.bytes() <= bytes + bytes / 10, "{} and then {}", bytes, ids.bytes());
    }

    /// Bytes an id, of many.
    fn bytes_each(id: impl Fn(u32) -> String) -> i64 {
        let mut ids = Ids::default();
        let all: Vec<String> = (0..200_000).map(id).collect();
        let ((), allocated) = crate::allocated::count(|| {
            for (handle, id) in (0..).zip(&all) {
                ids.set(Handle(handle), id.as_bytes());
            }
        });
        // A thousand cells of the longest id.
        assert!(allocated.largest <= 128 << 10, "{}: a pause", allocated.largest);
        assert!(all.iter().zip(0..).all(|(id, handle)| ids.get(Handle(handle)) == id.as_bytes()));
        allocated.held / 200_000
    }

    #[test]
    fn an_id_takes_about_its_length() {
        assert_eq!(bytes_each(|number| format!("{number:012}")), 12);
        assert_eq!(bytes_each(uuid), 36);
        let one_in_ten_is_long = |number: u32| {
            if number.is_multiple_of(10) { uuid(number) } else { format!("{number:09}") }
        };
        assert!(bytes_each(one_in_ten_is_long) <= 14);
        // The first of a chunk is like none of the others.
        let one_in_256_is_long = |number: u32| {
            if number.is_multiple_of(256) { "x".repeat(128) } else { format!("{number:09}") }
        };
        assert!(bytes_each(one_in_256_is_long) <= 10);
        let one_in_ten_is_short = |number: u32| {
            if number.is_multiple_of(10) { format!("{number:09}") } else { uuid(number) }
        };
        assert_eq!(bytes_each(one_in_ten_is_short), 36);
    }
}
