//! What the nodes of a cluster do for each other, beside following the same streams.
//!
//! - `copies`: a node that cannot go on by its stream fetches a copy of a shard from another owner

pub mod copies;
