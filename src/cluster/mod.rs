//! What nodes do over NATS beside following streams: they answer game services that write, tools that look,
//! and one another's questions, and give one another copies of shards.
//!
//! Knows: subjects, queue groups, who answers when, and who the other nodes are. Must not know: HTTP, or what
//! comes of a write (`http` answers those that it is handed).
//!
//! - `questions`: carries questions to shards of other nodes, and answers theirs
//! - `copies`: a node that cannot go on by its stream fetches a copy of a shard from another owner
//! - `write_service`: takes jobs, and answers what came of each
//! - `write_client`: asks the write service of whichever node owns a shard
//! - `trim`: removes the entries of a shard after a trim point
//! - `first_there`: which of several owners gets work that must not be sent twice
//! - `discovery`: what `nats micro` tools are told of a node's endpoints

pub mod copies;
mod discovery;
mod first_there;
pub mod questions;
mod trim;
mod write_client;
mod write_service;

pub use trim::{TrimOrder, TrimTerms, Trimmed, TrimmingShard};
pub use write_client::WriteClient;
pub use write_service::{Refusal, ServedShard, WriteAnswer, WriteHandler, WriteRequest, WriteService};
