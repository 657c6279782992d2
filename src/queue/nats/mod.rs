//! The queue on NATS JetStream: one stream per shard, which is the log that everything can be replayed from.
//!
//! Knows: streams, connections, and how to detect that a stream was replaced or lost messages. Must not know:
//! what a job does.
//!
//! - `names`, `message`, `definition_json`, `store_json`: what streams and subjects are called, and what
//!   messages say; `trace_headers`: which traces they belong to
//! - `last_messages`: follows a stream whose subjects have a last message each
//! - `connect`: connections; `streams`: how streams are configured and set up
//! - `publish`, `consume`: the two ends of each shard's stream
//! - `jetstream`: a node's NATS, which makes both ends; `shard`: a shard as the tasks beside its writer see
//!   it
//! - `retention`: what is purged; `peers`: which other nodes there are; `boards`: what boards there are,
//!   decided once for all nodes

mod definition_json;
mod last_messages;
mod message;
mod names;
mod store_json;
pub(crate) mod trace_headers;

mod connect;
mod streams;

mod consume;
mod publish;

mod jetstream;
mod shard;

mod boards;
mod peers;
mod retention;

pub use boards::{BoardLimit, BoardRefused, BoardsStream, Decided};
pub use connect::access::{NatsAccess, NatsAccessError};
pub(crate) use connect::connection::Connection;
pub use connect::credentials::{Login, NatsCredentials, NatsCredentialsError, Secret, SecretFrom, Tls};
pub use connect::inbox::{InboxPrefix, InboxPrefixError};
pub use connect::servers::{Servers, ServersError};
pub use consume::copy_need::{CopyFloor, CopyOutlook, NeededCopy, ShardCopies};
pub use consume::shard_stream::ShardStream;
pub use consume::source::StreamSource;
pub use jetstream::{JetStream, Settings, SetupError, ShardStart};
pub(crate) use names::Names;
pub use peers::claim::Claim;
pub(crate) use peers::entries;
pub use peers::holding::ReadFloor;
pub use peers::known::{Hearing, Peers};
pub use peers::roster::{KnownNode, OwnedShard};
pub use publish::bulk_publisher::{BulkPublisher, NotStored};
pub use publish::stream_publisher::StreamPublisher;
pub use publish::unparking::unpark_ready_jobs;
pub use shard::{NatsShard, OtherShard};
pub use streams::boards_config::ServiceFacts;
pub use streams::find_shards::find_shards;
pub use streams::jobs_config::{STEP_TO_OWN_SERVICE, of_another_service};
pub use streams::set_up::StartedShard;
