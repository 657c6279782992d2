//! Random numbers from a seed.

use std::time::{SystemTime, UNIX_EPOCH};

/// `SplitMix64`. Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
pub struct Random(u64);

impl Random {
    /// From the clock, or from `RANKTREE_CRASH_SEED`, which repeats a run as far as the moments of its
    /// crashes go.
    pub fn seeded() -> Self {
        let seed = if let Ok(seed) = std::env::var("RANKTREE_CRASH_SEED") {
            seed.parse().expect("a seed is an unsigned integer")
        } else {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
            u64::try_from(now.as_micros()).expect("it is before the year 500,000")
        };
        // Shown if the test fails.
        println!("RANKTREE_CRASH_SEED={seed}");
        Self(seed)
    }

    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Other random numbers, which follow from these.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `limit`, which is at least 1. Slightly uneven, which does not matter here.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Below `limit`, to count or to index with.
    pub fn index(&mut self, limit: usize) -> usize {
        let below = self.below(u64::try_from(limit).expect("it is small"));
        usize::try_from(below).expect("it is below a usize")
    }

    /// The same as a score.
    pub fn score(&mut self, limit: u64) -> i64 {
        i64::try_from(self.below(limit)).expect("it is small")
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(u64::try_from(from.len()).expect("a small slice")));
        from.get(index.expect("below a length")).expect("the slice is not empty")
    }
}
