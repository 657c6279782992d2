//! The queue on NATS `JetStream`: one stream per shard, which is the log that everything can be replayed from.
//!
//! Knows: streams, connections, and how to tell that a stream is not what it was. Must not know: what a job does.

mod boards;
mod command;
mod connection;
mod fetcher;
mod keeper;
mod layout;
mod names;
mod publisher;
mod rejects;
mod source;
mod streams;
mod waiters;

pub use boards::{BoardRefused, Boards, BoardsOfShard};
pub use keeper::Kept;
pub use publisher::StreamPublisher;
pub use source::{Shared, StreamSource};
pub use streams::{JetStream, Settings, SetupError, ShardStart};
