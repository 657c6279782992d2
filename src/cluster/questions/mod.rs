//! Questions to shards of other nodes, and their replies, over NATS. `docs/internals/cluster.md` describes
//! the protocol.
//!
//! - `link`: the connection
//! - `wire`: questions and replies as bytes
//! - `parts`: a reply as one message or several
//! - `refusal`: why a node does not answer
//! - `service`: this node answers; `level`: when it may
//! - `mailbox`: replies as they arrive; `owners`: who is asked; `latency`: after how long another one is
//! - `trims`: has shards of other nodes trimmed, and trims this node's for others
//! - `client`: asks shards, on this node or on others

mod link;
mod parts;
mod refusal;
mod wire;

mod level;
mod service;

mod latency;
mod mailbox;
mod owners;

mod client;
mod trims;

pub use client::{AskingShards, NodeShards};
pub use level::{PauseWatch, ShardEnd, StreamEnds};
pub use link::{AskSubjects, Link};
pub use owners::{KnownOwner, KnownShard, OwnerSource, Owners};
pub use service::{QuestionService, ServiceLimits};
pub use trims::Trimming;
