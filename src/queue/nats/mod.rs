//! The queue on NATS `JetStream`: one stream per shard, which is the log that everything can be replayed from.
//!
//! Knows: streams, connections, and how to tell that a stream is not what it was. Must not know: what a job does.

mod message;
mod names;

mod connect;

mod streams;

mod publish;

mod consume;

mod retention;

mod boards;

pub use boards::{BoardRefused, Boards, BoardsOfShard};
pub use connect::access::{Access, AccessError};
pub use connect::credentials::{Credentials, CredentialsError, Login, Secret, SecretFrom, Tls};
pub use connect::servers::{Servers, ServersError};
pub use consume::source::{Shared, StreamSource};
pub use publish::bulk_publisher::{BulkPublisher, NotStored};
pub use publish::freeing::Freeing;
pub use publish::publisher::StreamPublisher;
pub use retention::task::Kept;
pub use streams::set_up::{JetStream, Settings, SetupError, ShardStart};
