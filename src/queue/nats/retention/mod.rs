//! What of a shard's stream is purged, and how full the stream is.

pub mod policy;
pub mod room;
pub mod sizes;
pub mod task;
