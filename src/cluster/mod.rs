//! What nodes do together, over NATS: so far, they answer each other's questions to shards.
//!
//! Knows: queues, reads, and who the other nodes are. Must not know: HTTP.

pub mod questions;
