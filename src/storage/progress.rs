//! Progress reports of long work over a whole shard.

/// Called as work proceeds, with what is being done, and how far: (done, total), 0 for a total not known.
pub type Progress<'a> = &'a (dyn Fn(&'static str, u64, u64) + Sync);
