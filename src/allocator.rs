//! How long the program's allocator, mimalloc, keeps memory that is free.
//!
//! It takes memory from the system in pages of 2 MiB where the system gives such ("huge pages"; Linux:
//! `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always`). By default it gives memory back
//! a second after it became free, in pieces of 64 KiB. Each piece splits its page for good: while a shard
//! grew to 10 million members, four fifths of its pages were split. A tree is read at random, so that most
//! reads of a small page miss the processor's table of pages as well as its caches.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set, mi_option_set_default, mi_option_t};

/// `mi_option_purge_delay` of mimalloc 3: milliseconds until freed memory goes back to the system, -1 for
/// never. The crate has no names for this one and the next.
const PURGE_DELAY: mi_option_t = 15;
/// `mi_option_minimal_purge_size`: KiB that are given back at a time if all of them are free.
const MINIMAL_PURGE_SIZE: mi_option_t = 44;

/// Most of what becomes free is needed again within a minute.
const KEPT_MS: c_long = 60_000;
const HUGE_PAGE_KIB: c_long = 2_048;

/// Leaves huge pages whole: free memory goes back to the system after a minute, a whole page at a time where
/// all of it is free, and in pieces of 64 KiB elsewhere. The thread that next frees memory gives it back.
/// What the
/// variables `MIMALLOC_PURGE_DELAY` and `MIMALLOC_MINIMAL_PURGE_SIZE` say goes before. For the start of a
/// program.
#[allow(unsafe_code, reason = "measured: a rank among 10 million took two thirds of the time")]
pub fn keep_huge_pages() {
    // SAFETY: the function stores a number in a table of options, whose size it checks.
    unsafe {
        mi_option_set_default(PURGE_DELAY, KEPT_MS);
        mi_option_set_default(MINIMAL_PURGE_SIZE, HUGE_PAGE_KIB);
    }
}

/// Gives nothing back to the system from now on.
#[allow(unsafe_code, reason = "mimalloc's options have no safe interface; this one may change at any time")]
pub fn keep_all() {
    // SAFETY: as above.
    unsafe {
        mi_option_set(PURGE_DELAY, -1);
    }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::{mi_option_get, mi_option_t};

    use super::{HUGE_PAGE_KIB, KEPT_MS, MINIMAL_PURGE_SIZE, PURGE_DELAY, keep_all, keep_huge_pages};

    #[allow(unsafe_code, reason = "mimalloc's options have no safe interface")]
    fn value(option: mi_option_t) -> std::ffi::c_long {
        // SAFETY: the function reads a number in a table of options, whose size it checks.
        unsafe { mi_option_get(option) }
    }

    /// The numbers of options are an enumeration's, so that another version of mimalloc could mean others by
    /// them: their defaults tell.
    #[test]
    fn options_have_the_defaults_of_those_that_are_meant_and_take_new_values() {
        assert_eq!((value(PURGE_DELAY), value(MINIMAL_PURGE_SIZE)), (1_000, 0));
        // The neighbours: `arena_purge_mult`'s default and `allow_thp`'s are 1.
        assert_eq!((value(24), value(43)), (1, 1));
        keep_huge_pages();
        assert_eq!((value(PURGE_DELAY), value(MINIMAL_PURGE_SIZE)), (KEPT_MS, HUGE_PAGE_KIB));
        keep_all();
        assert_eq!(value(PURGE_DELAY), -1);
    }
}
