//! Member ids by handle, in 16 bytes each while they are short.
//!
//! Knows: bytes and handles. Must not know: which ids exist (`index`), or who refers to them (`members`).

use crate::tree::Handle;

/// Ids up to one byte less than this live in their slot: 14 covers account numbers and most names, and makes a slot 16
/// bytes, four to a cache line.
const INLINE_BYTES: usize = 15;
/// Slots per chunk: the store grows by chunks, so that growing never copies what is there.
const CHUNK: usize = 4_096;

#[derive(Clone)]
enum Slot {
    Inline { length: u8, bytes: [u8; INLINE_BYTES - 1] },
    Heap(Box<Box<[u8]>>),
}

/// Handle → id bytes. Every look-up is one cache line for short ids, two for long ones.
#[derive(Default)]
pub struct Ids {
    chunks: Vec<Box<[Slot]>>,
    heap_bytes: usize,
}

impl Ids {
    /// The id in a slot; empty for a slot never written.
    #[must_use]
    pub fn get(&self, handle: Handle) -> &[u8] {
        match self.slot(handle) {
            Some(Slot::Inline { length, bytes }) => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Some(Slot::Heap(bytes)) => bytes,
            None => &[],
        }
    }

    pub fn set(&mut self, handle: Handle, id: &[u8]) {
        let (chunk, offset) = place(handle);
        while self.chunks.len() <= chunk {
            self.chunks.push(vec![Slot::Inline { length: 0, bytes: [0; INLINE_BYTES - 1] }; CHUNK].into());
        }
        let mut bytes = [0; INLINE_BYTES - 1];
        let slot = match bytes.get_mut(..id.len()) {
            Some(head) => {
                head.copy_from_slice(id);
                Slot::Inline { length: u8::try_from(id.len()).unwrap_or_default(), bytes }
            }
            None => Slot::Heap(Box::new(id.into())),
        };
        self.heap_bytes += heap_bytes(&slot);
        if let Some(place) = self.chunks.get_mut(chunk).and_then(|chunk| chunk.get_mut(offset)) {
            self.heap_bytes -= heap_bytes(place);
            *place = slot;
        }
    }

    /// Asks the processor to fetch a slot that will be read soon.
    pub fn prefetch(&self, handle: Handle) {
        if let Some(slot) = self.slot(handle) {
            crate::tree::prefetch(slot);
        }
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<Slot>() + self.heap_bytes
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

/// What a slot holds outside itself, with the two allocations' headers.
fn heap_bytes(slot: &Slot) -> usize {
    match slot {
        Slot::Inline { .. } => 0,
        Slot::Heap(bytes) => bytes.len() + 16 + 32,
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
}
