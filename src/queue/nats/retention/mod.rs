//! Retention: what of a shard's stream is purged, and how full the stream is.
//!
//! - `task`: looks at the stream, and purges it
//! - `policy`: what may be purged; `sizes`: how old and how large the messages are
//! - `room`: how full the stream is, and why; `growth`: when it must be looked at again

pub mod growth;
pub mod policy;
pub mod room;
pub mod sizes;
pub mod task;
