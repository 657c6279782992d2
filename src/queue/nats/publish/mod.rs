//! What a node publishes: HTTP writes, commands and rejects; and what a load generator publishes.
//!
//! - `stream_publisher`: HTTP writes and commands of one shard
//! - `batcher`: which writes share a message; `pending_replies`: which of them wait for its outcome
//! - `unparking`: commands that unpark jobs
//! - `rejects`: the stream of rejects; `reject_erasure`: what it has of members that were removed
//! - `bulk_publisher`: for load generators and benchmarks

pub mod batcher;
pub mod bulk_publisher;
pub mod pending_replies;
pub mod reject_erasure;
pub mod rejects;
pub mod stream_publisher;
pub mod unparking;
