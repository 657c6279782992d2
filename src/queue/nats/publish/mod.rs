//! What a node publishes: HTTP writes, commands and rejects; and what a load generator publishes.

pub mod batcher;
pub mod bulk_publisher;
pub mod freeing;
pub mod pending_replies;
pub mod publisher;
pub mod rejects;
