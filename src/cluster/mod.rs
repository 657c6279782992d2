//! What nodes are asked over NATS by request and reply: by game services, by tools, by one another.
//!
//! Knows: subjects, queue groups, and who answers them when. Must not know: HTTP, or what comes of a request
//! (`http` answers those that it is handed).
//!
//! - `write_service`: takes jobs, and answers what came of each
//! - `write_client`: asks the write service of whichever node owns a shard
//! - `discovery`: what `nats micro` tools are told of a node's endpoints

mod discovery;
mod write_client;
mod write_service;

pub use write_client::WriteClient;
pub use write_service::{Refusal, ServedShard, WriteAnswer, WriteHandler, WriteRequest, WriteService};
