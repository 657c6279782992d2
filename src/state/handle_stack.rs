//! A stack of free handles: the last one freed is given out first.
//!
//! It has chunks that never move: growing a plain vector of ten million would block the writer.

use crate::tree::Handle;

const CHUNK: usize = 4_096;

#[derive(Default)]
pub(super) struct HandleStack {
    /// All full but the last one, which is not empty.
    chunks: Vec<Vec<Handle>>,
    len: usize,
}

impl HandleStack {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, handle: Handle) {
        self.len += 1;
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(handle),
            _ => self.chunks.push(vec![handle]),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Handle> {
        let last = self.chunks.last_mut()?;
        let handle = last.pop()?;
        self.len -= 1;
        if last.is_empty() {
            self.chunks.pop();
        }
        Some(handle)
    }

    /// The handle that the pop after `nth` others will give.
    pub(super) fn nth_next_handle(&self, nth: usize) -> Option<Handle> {
        let at = self.len.checked_sub(nth + 1)?;
        self.chunks.get(at / CHUNK)?.get(at % CHUNK).copied()
    }

    /// Its handles, in no particular order.
    pub(super) fn handles(&self) -> impl Iterator<Item = Handle> {
        self.chunks.iter().flatten().copied()
    }

    pub(super) fn bytes(&self) -> usize {
        self.chunks.len() * (CHUNK * size_of::<Handle>() + size_of::<Vec<Handle>>())
    }
}

impl FromIterator<Handle> for HandleStack {
    fn from_iter<I: IntoIterator<Item = Handle>>(handles: I) -> Self {
        let mut stack = Self::default();
        handles.into_iter().for_each(|handle| stack.push(handle));
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_the_last_first_and_grows_by_a_chunk() {
        let mut stack = HandleStack::default();
        let count = 1_000_000;
        let ((), allocated) =
            crate::allocated::count(|| (0..count).for_each(|handle| stack.push(Handle(handle))));
        assert!(allocated.largest <= CHUNK * size_of::<Handle>(), "{}", allocated.largest);
        assert_eq!(stack.nth_next_handle(1_000_000), None);
        assert!(stack.handles().eq((0..count).map(Handle)));
        for handle in (0..count).rev() {
            let below = handle.checked_sub(5_000).map(Handle);
            assert_eq!(
                (stack.nth_next_handle(0), stack.nth_next_handle(5_000)),
                (Some(Handle(handle)), below)
            );
            assert_eq!(stack.pop(), Some(Handle(handle)));
        }
        assert_eq!((stack.pop(), stack.len(), stack.is_empty(), stack.bytes()), (None, 0, true, 0));
    }
}
