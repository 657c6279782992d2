//! Why settings cannot be used; the text says which, and what to do.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::queue::nats::NatsAccessError;
use crate::traces::SettingsError;
use crate::types::ShardId;

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    // What the line holds is not shown: it may be a secret.
    #[error("line {line}, column {column} of the configuration file {}: {problem}", path.display())]
    Malformed { path: PathBuf, line: usize, column: usize, problem: String },
    #[error("line {line} of the configuration file {}: {key}: {problem}", path.display())]
    Value { path: PathBuf, line: usize, key: String, problem: String },
    #[error("line {line} of the configuration file {}: there is no setting {key}{advice}", path.display())]
    UnknownKey { path: PathBuf, line: usize, key: String, advice: String },
    #[error(transparent)]
    Access(#[from] NatsAccessError),
    #[error(
        "{0} and {1} are both set, by flags, in the environment or in the configuration file; remove one of them"
    )]
    Conflicting(&'static str, &'static str),
    #[error("{0} is set without {1}; set both, or neither")]
    RequiresOther(&'static str, &'static str),
    #[error("--prefix must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -; got {0:?}")]
    Prefix(String),
    #[error("--node: {0}")]
    Node(String),
    #[error("--cache-mib must be at most {max}; got {got}")]
    Cache { got: usize, max: usize },
    #[error("--accept-gap {0}: there is no such shard with --shards {1}; shards are counted from 0")]
    AcceptGapShard(u16, u16),
    #[error("--adopt {0}: there is no such shard with --shards {1}; shards are counted from 0")]
    AdoptShard(u16, u16),
    #[error("--accept-gap is about streams, and there are none without --nats; remove it, or set --nats")]
    AcceptGapWithoutNats,
    #[error("--own: {0}")]
    Own(String),
    #[error(
        "--own: there is no shard {own} among {shards}, which are numbered from 0; name shards that there are, or correct --shards"
    )]
    OwnBeyondShards { own: ShardId, shards: u16 },
    #[error(
        "--own is set without --nats: without NATS a node is alone and owns every shard; set --nats, or leave --own out"
    )]
    OwnWithoutNats,
    #[error(
        "other machines can reach {0}, and requests need no token: make a token with ranktree token new and pass --tokens FILE, or pass --insecure if everybody who reaches the port may do everything"
    )]
    Exposed(SocketAddr),
    #[error("--redis-listen: {expected}; got {got}")]
    RedisListen { expected: &'static str, got: String },
    #[error("{0}: {1}")]
    Traces(&'static str, SettingsError),
    #[error(
        "--otlp-endpoint: this ranktree was built without the feature otlp and cannot send traces; leave the endpoint out, or build with the feature"
    )]
    WithoutTraces,
    #[error("cannot read {what} from {}: {error}", path.display())]
    SecretFile { what: &'static str, path: PathBuf, error: std::io::Error },
}
