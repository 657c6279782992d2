//! Member ids by handle: 16 bytes for a short id, 16 plus the id's length for a long one.
//!
//! Knows: bytes and handles. Must not know: which ids exist (`index`), or who refers to them (`members`).

use crate::tree::{Blocks, Handle};

/// Ids up to this length live in their slot: 14 covers account numbers and most names, and makes a slot 16
/// bytes, four to a cache line.
const INLINE_BYTES: usize = 14;
/// Slots per chunk: the store grows by chunks, so that growing never copies what is there.
const CHUNK: usize = 4_096;
/// Cells of long ids come in steps of this many bytes: UUIDs, the commonest, are 36 and fill theirs.
const CELL_STEP: usize = 4;
/// No cell.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
enum Slot {
    Inline {
        length: u8,
        bytes: [u8; INLINE_BYTES],
    },
    /// In a cell among those of its size.
    Long {
        length: u8,
        cell: u32,
    },
}

const VACANT: Slot = Slot::Inline { length: 0, bytes: [0; INLINE_BYTES] };

/// Handle → id bytes. Every look-up is one cache line for short ids, and one or two more for long ones, side
/// by side.
#[derive(Default)]
pub struct Ids {
    chunks: Vec<Box<[Slot]>>,
    /// Long ids by size: the nth has cells of n steps.
    cells: Vec<Cells>,
}

impl Ids {
    /// The id in a slot; empty for a slot never written.
    #[must_use]
    #[inline]
    pub fn get(&self, handle: Handle) -> &[u8] {
        match self.slot(handle) {
            Some(Slot::Inline { length, bytes }) => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Some(Slot::Long { length, cell }) => self.long(*length, *cell),
            None => &[],
        }
    }

    fn long(&self, length: u8, cell: u32) -> &[u8] {
        let length = usize::from(length);
        let cells = self.cells.get(length.div_ceil(CELL_STEP));
        cells.and_then(|cells| cells.blocks.get(cell).get(..length)).unwrap_or_default()
    }

    /// Puts an id of at most 255 bytes into a slot; an empty one vacates it.
    pub fn set(&mut self, handle: Handle, id: &[u8]) {
        let (chunk, offset) = place(handle);
        while self.chunks.len() <= chunk {
            self.chunks.push(vec![VACANT; CHUNK].into());
        }
        let length = u8::try_from(id.len()).expect("ids are at most 128 bytes");
        let mut bytes = [0; INLINE_BYTES];
        let slot = match bytes.get_mut(..id.len()) {
            Some(head) => {
                head.copy_from_slice(id);
                Slot::Inline { length, bytes }
            }
            None => Slot::Long { length, cell: self.add_long(id) },
        };
        if let Some(place) = self.chunks.get_mut(chunk).and_then(|chunk| chunk.get_mut(offset)) {
            let before = std::mem::replace(place, slot);
            if let Slot::Long { length, cell } = before
                && let Some(cells) = self.cells.get_mut(usize::from(length).div_ceil(CELL_STEP))
            {
                cells.release(cell);
            }
        }
    }

    fn add_long(&mut self, id: &[u8]) -> u32 {
        let size = id.len().div_ceil(CELL_STEP);
        while self.cells.len() <= size {
            self.cells.push(Cells::new(self.cells.len() * CELL_STEP));
        }
        self.cells.get_mut(size).map_or(NONE, |cells| cells.add(id))
    }

    /// Asks the processor to fetch a slot that will be read soon.
    pub fn prefetch(&self, handle: Handle) {
        if let Some(slot) = self.slot(handle) {
            crate::tree::prefetch(slot);
        }
    }

    /// Asks for what a slot does not hold itself; waits for the slot, unless it was asked for before.
    pub fn prefetch_long(&self, handle: Handle) {
        if let Some(Slot::Long { length, cell }) = self.slot(handle)
            && let [first, .., last] = self.long(*length, *cell)
        {
            crate::tree::prefetch(first);
            crate::tree::prefetch(last);
        }
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        let long: usize = self.cells.iter().map(|cells| cells.blocks.bytes()).sum();
        self.chunks.len() * CHUNK * size_of::<Slot>() + long + self.cells.capacity() * size_of::<Cells>()
    }

    fn slot(&self, handle: Handle) -> Option<&Slot> {
        let (chunk, offset) = place(handle);
        self.chunks.get(chunk)?.get(offset)
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
    use super::*;

    #[test]
    fn a_slot_is_sixteen_bytes_and_holds_ids_of_any_length() {
        assert_eq!(size_of::<Slot>(), 16);
        let mut ids = Ids::default();
        for (length, handle) in [(1, 7), (13, 5_000), (14, 5_001), (15, 9_000), (16, 9_001), (128, 89_600)] {
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
        let length = |number: u32| usize::try_from(15 + number % 114).expect("small");
        let id = |number: u32| format!("{}{}", uuid(number), "x".repeat(128)).into_bytes();
        for number in 0..5_000 {
            ids.set(Handle(number), &id(number)[..length(number)]);
        }
        let bytes = ids.bytes();
        // All of a size leave, and others of that size come in another order.
        for number in (0..5_000).filter(|number| number % 3 == 0) {
            ids.set(Handle(number), b"");
        }
        for number in (0..5_000).rev().filter(|number| number % 3 == 0) {
            assert_eq!(ids.get(Handle(number)), b"");
            ids.set(Handle(number), &id(number + 7)[..length(number)]);
        }
        for number in 0..5_000 {
            let id = if number % 3 == 0 { id(number + 7) } else { id(number) };
            assert_eq!(ids.get(Handle(number)), &id[..length(number)]);
        }
        assert_eq!(ids.bytes(), bytes);
    }

    #[test]
    fn a_uuid_takes_its_slot_and_36_bytes_and_no_allocation_of_its_own() {
        let mut ids = Ids::default();
        let uuids: Vec<String> = (0..200_000).map(uuid).collect();
        let ((), allocated) = crate::allocated::count(|| {
            for (handle, uuid) in (0..).zip(&uuids) {
                ids.set(Handle(handle), uuid.as_bytes());
            }
        });
        let bytes = allocated.held / 200_000;
        assert!(bytes <= 54, "{bytes} bytes");
        assert!(allocated.allocations < 400, "{}", allocated.allocations);
        assert!(allocated.largest <= CHUNK * size_of::<Slot>(), "{}: a pause", allocated.largest);
        assert!(uuids.iter().zip(0..).all(|(uuid, handle)| ids.get(Handle(handle)) == uuid.as_bytes()));
    }
}
