//! Memory that the system has given before it is needed.
//!
//! The first touch of new memory is a page fault. On a virtual machine whose host hands out memory slowly a
//! fault takes up to some 15 ms (`docs/benchmarks.md`, stalls), and a writer that holds a shard's lock then
//! keeps all readers waiting. So a thread of its own takes some memory from the allocator several times a
//! second, touches it and gives it back. The allocator keeps it for about a second, and hands it out without
//! a fault.
//!
//! Must not know: who needs memory. It takes no lock but the allocator's.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How often memory is touched. The allocator gives back what was not used for a second.
const INTERVAL: Duration = Duration::from_millis(200);
/// Memory is taken in pieces that the allocator hands on to any thread when they are free.
const PIECE: usize = 1 << 20;
/// The smallest page that a system gives.
const PAGE: usize = 4_096;

/// Keeps memory at hand until it is dropped.
pub struct MemoryReserve {
    ended: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryReserve {
    /// Keeps so much memory at hand, in MiB. With 0 nothing is kept.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn keep(mebibytes: usize) -> std::io::Result<Self> {
        let ended: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        if mebibytes == 0 {
            return Ok(Self { ended, thread: None });
        }
        touch(mebibytes);
        let until = Arc::clone(&ended);
        let keep = move || {
            let (ended, changed) = &*until;
            let mut ended = ended.lock();
            while !*ended {
                if changed.wait_for(&mut ended, INTERVAL).timed_out() {
                    touch(mebibytes);
                }
            }
        };
        let thread = std::thread::Builder::new().name("memory-reserve".to_owned()).spawn(keep)?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for MemoryReserve {
    fn drop(&mut self) {
        *self.ended.0.lock() = true;
        self.ended.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot panic, and nothing depends on how it ended.
            let _ = thread.join();
        }
    }
}

/// Takes memory, touches each page and gives all of it back. Pages that were touched before cost a cache line
/// each: 0.1 ms for 32 MiB.
fn touch(mebibytes: usize) {
    let mut pieces: Vec<Vec<u8>> = Vec::with_capacity(mebibytes);
    for _ in 0..mebibytes {
        let mut piece = Vec::with_capacity(PIECE);
        for byte in piece.spare_capacity_mut().iter_mut().step_by(PAGE) {
            *byte = MaybeUninit::new(1);
        }
        pieces.push(std::hint::black_box(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_it_is_dropped() {
        for mebibytes in [0, 1] {
            let reserve = MemoryReserve::keep(mebibytes).expect("a thread starts");
            assert_eq!(reserve.thread.is_some(), mebibytes > 0);
            let ended = Arc::clone(&reserve.ended);
            drop(reserve);
            assert!(*ended.0.lock());
            assert_eq!(Arc::strong_count(&ended), 1, "the thread has let go of it");
        }
    }
}
