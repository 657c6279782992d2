//! How many trees know each member, by handle.
//!
//! In chunks that never move: a plain vector of ten million counts would stop the writer for 35 ms to grow.

use crate::tree::{Blocks, Handle};

/// Counts per chunk of [`Blocks`] are a multiple of this.
const STEP: u32 = 512;

pub(super) struct References {
    counts: Blocks<u32>,
    len: u32,
}

impl References {
    /// So many handles, which no tree knows.
    pub(super) fn new(len: u32) -> Self {
        let mut counts = Blocks::new(1);
        for last in (STEP - 1..len).step_by(512).chain(len.checked_sub(1)) {
            counts.ensure(last);
        }
        Self { counts, len }
    }

    /// Handles ever given out.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Another handle, which no tree knows.
    pub(super) fn push(&mut self) -> Handle {
        self.counts.ensure(self.len);
        self.len += 1;
        Handle(self.len - 1)
    }

    /// `None`: the handle was never given out.
    pub(super) fn get(&self, handle: Handle) -> Option<u32> {
        if handle.0 >= self.len {
            return None;
        }
        self.counts.get(handle.0).first().copied()
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut u32> {
        if handle.0 >= self.len {
            return None;
        }
        self.counts.get_mut(handle.0).first_mut()
    }

    pub(super) fn bytes(&self) -> usize {
        self.counts.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handle_has_a_count_and_growing_allocates_no_more_than_a_chunk() {
        for len in [0, 1, 511, 512, 513, 5_000] {
            let mut references = References::new(len);
            let ((), allocated) = crate::allocated::count(|| {
                for next in len..50_000 {
                    assert_eq!(references.push(), Handle(next));
                }
            });
            assert!(allocated.largest <= 4 * 1_024, "{}", allocated.largest);
            for handle in 0..50_000 {
                *references.get_mut(Handle(handle)).expect("given out") += handle;
            }
            assert!((0..50_000).all(|handle| references.get(Handle(handle)) == Some(handle)));
            assert_eq!((references.get(Handle(50_000)), references.len()), (None, 50_000));
        }
    }
}
