//! Memory of leaves by the size of their block, without holes: a block that goes is replaced by the last one.
//!
//! A leaf whose columns become wider moves to a larger block. Were its old one kept for another leaf, a
//! tree whose leaves all become wider, as times pass, would take its memory twice. So all blocks of a size
//! lie side by side, and each begins with the number of the leaf that owns it.
//!
//! Must not know what is in a block, but for its owner.

/// Blocks of one of the first chunks, as a shift. A chunk of the usual leaves is 40 kB; the last of each size
/// is half empty.
const CHUNK_SHIFT: u32 = 6;
/// As many first chunks, and larger ones behind them: of a hundred million entries the list of small ones
/// would take half a megabyte, and each look-up of a leaf would wait for it.
const FIRST_CHUNKS: usize = if cfg!(test) { 2 } else { 256 };
const FIRST_BLOCKS: u32 = (FIRST_CHUNKS as u32) << CHUNK_SHIFT;
/// Blocks of the others, as a shift: a sixteenth of those before them.
const LARGE_CHUNK_SHIFT: u32 = if cfg!(test) { 5 } else { 10 };
/// Bytes of the owner's number.
const OWNER: usize = 4;

/// Blocks of one size.
pub(super) struct LeafBlocks {
    /// Bytes of a block, without the owner's number.
    pub(super) size: usize,
    /// Only the first one is ever smaller than a full one, and only it moves when it grows.
    chunks: Vec<Box<[u8]>>,
    /// Blocks in use: the first ones.
    used: u32,
}

/// The chunk of a place, and the block in it.
#[inline]
fn split(place: u32) -> (usize, usize) {
    match place.checked_sub(FIRST_BLOCKS) {
        None => ((place >> CHUNK_SHIFT) as usize, place as usize & ((1 << CHUNK_SHIFT) - 1)),
        Some(behind) => (
            FIRST_CHUNKS + (behind >> LARGE_CHUNK_SHIFT) as usize,
            behind as usize & ((1 << LARGE_CHUNK_SHIFT) - 1),
        ),
    }
}

/// Blocks of a full chunk.
fn blocks_of(chunk: usize) -> usize {
    1 << if chunk < FIRST_CHUNKS { CHUNK_SHIFT } else { LARGE_CHUNK_SHIFT }
}

/// Chunks that hold so many blocks.
fn chunks_for(blocks: u32) -> usize {
    blocks.checked_sub(1).map_or(0, |last| split(last).0 + 1)
}

impl LeafBlocks {
    pub(super) fn new(size: usize) -> Self {
        Self { size, chunks: Vec::new(), used: 0 }
    }

    fn stride(&self) -> usize {
        OWNER + self.size
    }

    #[inline]
    pub(super) fn get(&self, place: u32) -> &[u8] {
        let (chunk, slot) = split(place);
        &self.chunks[chunk][slot * self.stride() + OWNER..][..self.size]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> &mut [u8] {
        let (chunk, slot) = split(place);
        let start = slot * self.stride() + OWNER;
        &mut self.chunks[chunk][start..][..self.size]
    }

    /// The leaf whose block this is.
    pub(super) fn owner(&self, place: u32) -> u32 {
        let (chunk, slot) = split(place);
        let owner = self.chunks[chunk][slot * self.stride()..].first_chunk();
        u32::from_le_bytes(*owner.expect("a block begins with its owner"))
    }

    /// Blocks in use.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// A block for a leaf. What is in it is not defined.
    pub(super) fn take(&mut self, owner: u32) -> u32 {
        let place = self.used;
        self.used += 1;
        let (chunk, slot) = split(place);
        let stride = self.stride();
        // Most trees are small, and a service has many of them: their only chunk grows by doubling.
        let blocks = if chunk == 0 { (slot + 1).next_power_of_two() } else { blocks_of(chunk) };
        match self.chunks.get_mut(chunk) {
            None => self.chunks.push(vec![0; blocks * stride].into()),
            Some(chunk) if chunk.len() <= slot * stride => {
                let mut larger = vec![0; blocks * stride];
                larger[..chunk.len()].copy_from_slice(chunk);
                *chunk = larger.into();
            }
            Some(_) => {}
        }
        self.chunks[chunk][slot * stride..][..OWNER].copy_from_slice(&owner.to_le_bytes());
        place
    }

    /// Gives a block back. Returns the leaf whose block was moved to its place, if one was.
    pub(super) fn give_back(&mut self, place: u32) -> Option<u32> {
        self.used -= 1;
        let (last, stride) = (self.used, self.stride());
        let moved = (place != last).then(|| {
            let ((to_chunk, to), (from_chunk, from)) = (split(place), split(last));
            if to_chunk == from_chunk {
                self.chunks[to_chunk].copy_within(from * stride..(from + 1) * stride, to * stride);
            } else {
                let (before, behind) = self.chunks.split_at_mut(from_chunk);
                before[to_chunk][to * stride..(to + 1) * stride]
                    .copy_from_slice(&behind[0][from * stride..(from + 1) * stride]);
            }
            self.owner(place)
        });
        // One chunk more than there has to be stays, so that one block at the boundary does not cost one each
        // time.
        if self.used == 0 {
            self.chunks = Vec::new();
        } else if self.chunks.len() > chunks_for(self.used) + 1 {
            self.chunks.pop();
        }
        moved
    }

    /// Heap memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        // All but the first are full: the first ones, and the larger ones behind.
        let first = self.chunks.first().map_or(0, |chunk| chunk.len());
        let small = self.chunks.len().clamp(1, FIRST_CHUNKS) - 1;
        let large = self.chunks.len().saturating_sub(FIRST_CHUNKS);
        let others = (small << CHUNK_SHIFT) + (large << LARGE_CHUNK_SHIFT);
        first + others * self.stride() + self.chunks.capacity() * size_of::<Box<[u8]>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stay_side_by_side_and_their_memory_is_given_back() {
        let mut blocks = LeafBlocks::new(12);
        let mut places = Vec::new();
        for leaf in 0..300_u32 {
            places.push(blocks.take(leaf));
            blocks.get_mut(leaf).copy_from_slice(&[leaf.to_le_bytes(); 3].concat());
        }
        let full = blocks.bytes();
        // In an order that takes from everywhere.
        for leaf in (0..300).map(|nth| nth * 7 % 300) {
            if let Some(moved) = blocks.give_back(places[leaf]) {
                places[moved as usize] = places[leaf];
            }
            places[leaf] = u32::MAX;
            for (owner, &place) in places.iter().enumerate().filter(|(_, place)| **place != u32::MAX) {
                assert!(place < blocks.used());
                assert_eq!(blocks.owner(place) as usize, owner);
                assert_eq!(blocks.get(place), [(owner as u32).to_le_bytes(); 3].concat());
            }
            let chunks = blocks.chunks.len();
            assert!(chunks <= chunks_for(blocks.used()) + 1, "{chunks}");
            let held: usize = blocks.chunks.iter().map(|chunk| chunk.len()).sum();
            assert_eq!(blocks.bytes(), held + blocks.chunks.capacity() * size_of::<Box<[u8]>>());
        }
        assert_eq!((blocks.used(), blocks.bytes(), chunks_for(0)), (0, 0, 0));
        assert!(full > 0);
    }
}
