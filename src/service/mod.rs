//! The composition root, the only module that knows all others.
//!
//! - `run`: the service from its start to its end
//! - `layout`: which shards the node owns, of how many
//! - `directory`: whether a start takes the data directory, before anything is made in it
//! - `opening`: from a data directory to shards in memory
//! - `fits`: whether what lies in the shards' places is what was there, and was filled from where jobs come
//! - `floors`: records how far each shard is, outside its directory
//! - `this_node`: this node's name, address and data directory, as others know them
//! - `touched_memory`: memory that is taken from the system at the start
//! - `writers`: a thread for each shard's writer
//! - `nats`: a node's streams, and the tasks that run beside its writers
//! - `nats_writing`: the write service, and its client for shards of other nodes
//! - `ticks`: tells quiet shards the time; `board_ends`: drops boards that have ended by it
//! - `read_files`: reads all files now and then, so that damage is found before somebody needs them

mod board_ends;
mod directory;
mod fits;
mod floors;
mod layout;
mod nats;
mod nats_writing;
mod opening;
mod read_files;
mod run;
mod this_node;
mod ticks;
mod touched_memory;
mod writers;

use std::path::PathBuf;

use thiserror::Error;

pub use directory::check_data;
pub use run::run;

use crate::credential_files::CredentialFilesError;
use crate::queue::nats::SetupError;
use crate::storage::StorageError;
use crate::types::{BoardName, ShardId};

/// Why the service did not start, or did not end well.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("shard {shard} cannot be opened: {error}")]
    Shard { shard: ShardId, error: StorageError },
    #[error("{0}")]
    Listen(String),
    #[error(transparent)]
    Credentials(#[from] CredentialFilesError),
    #[error("NATS cannot be used: {0}")]
    Nats(#[from] SetupError),
    #[error("the data directory cannot be used: {0}")]
    DataDirectory(StorageError),
    #[error(
        "the shard's directory {} is missing or empty, although it held data, or other shards of the data \
         directory do; restore a snapshot with ranktree restore --from SNAPSHOT --data-dir {} --replace",
        .0.display(), .0.parent().unwrap_or(.0).display()
    )]
    MissingShard(PathBuf),
    #[error(
        "the data directory {} is of a node of a service with NATS: it is filled from the streams under the prefix \
         {prefix}, it has the shards {own}, and --nats is not set. Nothing was changed. Start with --nats URL \
         --prefix {prefix} --own {own}",
        .path.display()
    )]
    WithoutNats { path: PathBuf, prefix: String, own: String },
    #[error(
        "the shard's directory {} is missing or empty, although it held data, or other shards of the data \
         directory do, and no other node that owns the shard runs; start one, which gives a copy of it. If there \
         is none, move the whole data directory away: a new one is filled from the streams, as far as they reach \
         back",
        .0.display()
    )]
    NoOwner(PathBuf),
    #[error(
        "the shards {one} and {other} have two definitions of the same life of the board {board}, so they do not \
         belong together. Nothing was changed. Put the directory back that belongs here"
    )]
    BoardsDisagree { board: BoardName, one: ShardId, other: ShardId },
    #[error(
        "it is not known how many shards there are in all: no stream under the prefix {prefix} says it, and \
         --own does not; if the service is new, start with --shards N, and otherwise check --nats and --prefix"
    )]
    UnknownShards { prefix: String },
    #[error(
        "the streams under the prefix {prefix} have {found} shard{}, and not {wanted}: start with --shards {found}. \
         The first node that used the prefix decided it. No data directory was made",
        plural(*found)
    )]
    OtherShardsInStreams { prefix: String, found: u16, wanted: u16 },
    #[error("--own: there is no shard {own}: there are {shards}, numbered from 0; correct the list")]
    OwnBeyondShards { own: ShardId, shards: u16 },
    #[error(
        "--touch-memory {asked}: the machine has {available} MiB that are free, of which 256 are left to others; \
         give a lower number, or 0 to take memory as it is needed"
    )]
    TouchMemory { asked: usize, available: usize },
    /// Told to end while it loaded.
    #[error("loading did not stop in time after a signal to end: {0}")]
    StillLoading(String),
    #[error("the service failed: {0}")]
    Io(#[from] std::io::Error),
}

fn plural(count: u16) -> &'static str {
    if count == 1 { "" } else { "s" }
}
