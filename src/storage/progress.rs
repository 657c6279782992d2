//! Progress reports of long work over a whole shard.

/// Called as work proceeds, with the kind of work, how much is done, and the total, which is 0 if it is
/// unknown.
pub type Progress<'a> = &'a (dyn Fn(&'static str, u64, u64) + Sync);
