//! Memory of leaves by the size of their block, without holes: a block that goes is replaced by the last one.
//!
//! A leaf whose columns become wider moves to a larger block. Were its old one kept for another leaf, a
//! tree whose leaves all become wider, as times pass, would take its memory twice. So all blocks of a size
//! lie side by side, and each begins with the number of the leaf that owns it.
//!
//! Must not know what is in a block, but for its owner.

/// Blocks per chunk, as a shift. A chunk of the usual leaves is 40 kB; the last of each size is half empty.
const CHUNK_SHIFT: u32 = 6;
const CHUNK_BLOCKS: usize = 1 << CHUNK_SHIFT;
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

#[inline]
fn split(place: u32) -> (usize, usize) {
    ((place >> CHUNK_SHIFT) as usize, place as usize & (CHUNK_BLOCKS - 1))
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
        let blocks = if chunk == 0 { (slot + 1).next_power_of_two() } else { CHUNK_BLOCKS };
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
        let chunks = (self.used as usize).div_ceil(CHUNK_BLOCKS);
        if self.used == 0 {
            self.chunks = Vec::new();
        } else if self.chunks.len() > chunks + 1 {
            self.chunks.pop();
        }
        moved
    }

    /// Heap memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let first = self.chunks.first().map_or(0, |chunk| chunk.len());
        let others = self.chunks.len().saturating_sub(1) * CHUNK_BLOCKS * self.stride();
        first + others + self.chunks.capacity() * size_of::<Box<[u8]>>()
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
            assert!(chunks <= (blocks.used() as usize).div_ceil(CHUNK_BLOCKS) + 1, "{chunks}");
        }
        assert_eq!((blocks.used(), blocks.bytes()), (0, 0));
        assert!(full > 0);
    }
}
