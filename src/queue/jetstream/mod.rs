//! The queue on NATS `JetStream`: one stream per shard, which is the log that everything can be replayed from.
//!
//! Knows: streams, connections, and how to tell that a stream is not what it was. Must not know: what a job does.

mod acceptance;
mod access;
mod boards;
mod bulk_publisher;
mod choice;
mod command;
mod connection;
mod credentials;
mod fetcher;
mod freeing;
mod groups;
mod keeper;
mod layout;
mod names;
mod origin;
mod own_streams;
mod publisher;
mod questions;
mod rejects;
mod retention;
mod room;
mod servers;
mod session;
mod source;
mod stream_sizes;
mod streams;
mod taking_up;
mod waiters;

pub use access::{Access, AccessError};
pub use boards::{BoardRefused, Boards, BoardsOfShard};
pub use bulk_publisher::{BulkPublisher, NotStored};
pub use credentials::{Credentials, CredentialsError, Login, Secret, SecretFrom, Tls};
pub use freeing::Freeing;
pub use keeper::Kept;
pub use publisher::StreamPublisher;
pub use servers::{Servers, ServersError};
pub use source::{Shared, StreamSource};
pub use streams::{JetStream, Settings, SetupError, ShardStart};
