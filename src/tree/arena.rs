//! An arena of blocks of equal size, addressed by small ids, in chunks that never move once they are
//! full-sized.
//!
//! Must not know what is in a block. A `Vec` of all blocks would copy a hundred megabytes when it grows: a
//! pause that readers and the writer would feel.

/// Blocks per chunk, as a shift. A chunk of the usual leaves is 1 MB: large enough that the chunk table stays
/// in the first-level cache, small enough that the last, half-used chunk is no waste.
const CHUNK_SHIFT: u32 = 10;
const CHUNK_BLOCKS: usize = 1 << CHUNK_SHIFT;

const SHAPE: &str = "the caller knows what a block consists of";
const ALLOCATED: &str = "the caller names an allocated block";

/// Fixed-size blocks of `T`, addressed by id.
pub struct Blocks<T> {
    chunks: Vec<Vec<T>>,
    stride: usize,
    /// How many `T` there is memory for.
    capacity: usize,
}

#[inline]
fn chunk_of(id: u32) -> usize {
    (id >> CHUNK_SHIFT) as usize
}

#[inline]
fn slot_of(id: u32) -> usize {
    id as usize & (CHUNK_BLOCKS - 1)
}

impl<T: Copy + Default> Blocks<T> {
    /// `stride` is the number of `T` in a block.
    pub fn new(stride: usize) -> Self {
        Self { chunks: Vec::new(), stride, capacity: 0 }
    }

    #[inline]
    pub fn get(&self, id: u32) -> &[T] {
        let start = slot_of(id) * self.stride;
        &self.chunks[chunk_of(id)][start..start + self.stride]
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut [T] {
        let start = slot_of(id) * self.stride;
        &mut self.chunks[chunk_of(id)][start..start + self.stride]
    }

    /// A block of one `T`.
    #[inline]
    pub fn one(&self, id: u32) -> &T {
        debug_assert_eq!(self.stride, 1, "{SHAPE}");
        &self.chunks[chunk_of(id)][slot_of(id)]
    }

    #[inline]
    pub fn one_mut(&mut self, id: u32) -> &mut T {
        debug_assert_eq!(self.stride, 1, "{SHAPE}");
        &mut self.chunks[chunk_of(id)][slot_of(id)]
    }

    /// Array `nth` of a block that consists of `arrays` of `N`. Quicker than [`Blocks::get`] where both are
    /// constant: one check, and no multiplication.
    #[inline]
    pub fn array<const N: usize>(&self, id: u32, arrays: usize, nth: usize) -> &[T; N] {
        debug_assert_eq!(self.stride, arrays * N, "{SHAPE}");
        let start = (slot_of(id) * arrays + nth) * N;
        self.chunks[chunk_of(id)][start..].first_chunk().expect(ALLOCATED)
    }

    #[inline]
    pub fn array_mut<const N: usize>(&mut self, id: u32, arrays: usize, nth: usize) -> &mut [T; N] {
        debug_assert_eq!(self.stride, arrays * N, "{SHAPE}");
        let start = (slot_of(id) * arrays + nth) * N;
        self.chunks[chunk_of(id)][start..].first_chunk_mut().expect(ALLOCATED)
    }

    /// Two different blocks at once.
    pub fn pair_mut(&mut self, a: u32, b: u32) -> (&mut [T], &mut [T]) {
        let stride = self.stride;
        let range = |id| slot_of(id) * stride..(slot_of(id) + 1) * stride;
        if chunk_of(a) == chunk_of(b) {
            let [a, b] = self.chunks[chunk_of(a)]
                .get_disjoint_mut([range(a), range(b)])
                .expect("the caller names two different allocated blocks");
            (a, b)
        } else {
            let [chunk_a, chunk_b] = self
                .chunks
                .get_disjoint_mut([chunk_of(a), chunk_of(b)])
                .expect("the caller names allocated blocks, and their chunks differ");
            (&mut chunk_a[range(a)], &mut chunk_b[range(b)])
        }
    }

    /// Allocates the block's memory. Other blocks keep their content; only the first chunk ever moves, while
    /// it is small.
    pub fn ensure(&mut self, id: u32) {
        let (chunk, slot) = (chunk_of(id), slot_of(id));
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, Vec::new);
        }
        let cells = &mut self.chunks[chunk];
        if cells.len() >= (slot + 1) * self.stride {
            return;
        }
        // Most trees are small, and a service has many of them: their only chunk grows by doubling.
        let blocks = if chunk == 0 { (slot + 1).next_power_of_two().max(2) } else { CHUNK_BLOCKS };
        let len = blocks * self.stride;
        self.capacity += len - cells.len();
        if cells.is_empty() {
            // Zeroed memory comes from the system untouched, so a large chunk costs nothing until it is used.
            *cells = vec![T::default(); len];
        } else {
            cells.reserve_exact(len - cells.len());
            cells.resize(len, T::default());
        }
    }

    /// Memory held, in bytes. O(1), as every figure that is read with each change.
    pub fn bytes(&self) -> usize {
        self.capacity * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_content_while_others_come() {
        let mut blocks = Blocks::<u32>::new(3);
        let ids = [0, 1, 5, 1023, 1024, 2047, 5000];
        for id in ids {
            blocks.ensure(id);
            blocks.get_mut(id).fill(id + 1);
        }
        for id in ids {
            assert_eq!(blocks.get(id), [id + 1; 3]);
            assert_eq!(blocks.array(id, 1, 0), &[id + 1; 3]);
            blocks.array_mut::<1>(id, 3, 1)[0] = 0;
            assert_eq!(blocks.get(id), [id + 1, 0, id + 1]);
            assert_eq!([0, 1, 2].map(|nth| blocks.array::<1>(id, 3, nth)[0]), [id + 1, 0, id + 1]);
        }
        for (a, b) in [(0, 1), (1, 0), (1023, 1024), (5000, 2)] {
            blocks.pair_mut(a, b).0.fill(7);
            assert_eq!(blocks.get(a), [7; 3]);
        }
    }

    #[test]
    fn blocks_of_one_are_got_without_a_slice() {
        let mut blocks = Blocks::<u32>::new(1);
        for id in [0, 1, 1023, 1024, 5000] {
            blocks.ensure(id);
            *blocks.one_mut(id) = id + 1;
            assert_eq!((blocks.one(id), blocks.get(id)), (&(id + 1), &[id + 1][..]));
        }
    }
}
