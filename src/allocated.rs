//! Counts what a thread allocates, so that tests can hold what things cost. Test builds only.
//!
//! Bytes as asked for, not as the system's allocator rounds them up: the same on every machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// What came of running something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocated {
    /// Bytes allocated in it and not freed; less what it freed of what was there.
    pub held: i64,
    /// The largest piece that it asked for at once.
    pub largest: usize,
    /// How often it asked for memory.
    pub allocations: u64,
}

/// Runs something, and counts what this thread allocates meanwhile.
pub fn count<T>(run: impl FnOnce() -> T) -> (T, Allocated) {
    let (held, allocations) = (HELD.get(), ALLOCATIONS.get());
    LARGEST.set(0);
    let made = run();
    let held = HELD.get() - held;
    (made, Allocated { held, largest: LARGEST.get(), allocations: ALLOCATIONS.get() - allocations })
}

fn note(freed: usize, taken: usize) {
    let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    // A thread that ends frees memory after its counters are gone.
    let _ = HELD.try_with(|held| held.set(held.get() + signed(taken) - signed(freed)));
    if taken > 0 {
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(taken)));
        let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
    }
}

#[allow(unsafe_code, reason = "implementing GlobalAlloc takes unsafe code; only builds of tests contain it")]
// SAFETY: every call is passed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(0, layout.size());
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(0, layout.size());
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(layout.size(), 0);
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(layout.size(), new_size);
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
