//! The composition root, which alone sees everything.
//!
//! - `run`: the service from its start to its end
//! - `opening`: from a data directory to shards in memory
//! - `writers`: a thread for each shard's writer
//! - `nats`: a node's streams, and what runs beside its writers
//! - `board_repair`: without NATS, completes changes of boards that a crash cut short

mod board_repair;
mod nats;
mod opening;
mod run;
mod writers;

use std::path::PathBuf;

use thiserror::Error;

pub use run::{RenderMetrics, run};

use crate::credential_files::CredentialFilesError;
use crate::queue::nats::SetupError;
use crate::storage::StorageError;
use crate::types::ShardId;

/// Why the service did not start, or did not end well.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("shard {shard} cannot be opened: {error}")]
    Shard { shard: ShardId, error: StorageError },
    #[error(transparent)]
    Credentials(#[from] CredentialFilesError),
    #[error("NATS cannot be used: {0}")]
    Nats(#[from] SetupError),
    #[error("the data directory cannot be used: {0}")]
    DataDirectory(StorageError),
    #[error(
        "{} is missing or empty, and it held data, or the shards beside it do: bring it back, or move the whole data \
         directory away to start anew",
        .0.display()
    )]
    MissingShard(PathBuf),
    /// Told to end while it loaded.
    #[error("loading did not end when it was told to: {0}")]
    StillLoading(String),
    #[error("the service cannot be run: {0}")]
    Io(#[from] std::io::Error),
}
