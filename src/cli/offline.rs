//! What commands share that work on the data of a stopped service.

use std::path::PathBuf;

use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::storage::{StorageResources, Store, shard_directory, shards_in};
use crate::types::ShardId;

/// Enough to read ahead with; nothing is read twice.
const CACHE_BYTES: usize = 64 << 20;

#[derive(Debug, clap::Args)]
pub struct Offline {
    /// The service's data directory
    #[arg(long, env = "RANKTREE_DATA_DIR", value_name = "DIR", default_value = "./data")]
    data_dir: PathBuf,
}

impl Offline {
    /// Opens one shard after the other, and has each worked on.
    ///
    /// # Errors
    /// When there are none, one cannot be opened, or the work fails.
    pub fn each_shard(
        &self,
        mut work: impl FnMut(ShardId, &Store, &Progress) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let shards = shards_in(&self.data_dir)?;
        if shards == 0 {
            let folder = self.data_dir.display();
            return Err(format!("{folder} holds no shards; give the service's --data-dir").into());
        }
        let resources = StorageResources::new(CACHE_BYTES, 1);
        for id in (0..shards).map(ShardId) {
            let store = Store::open(&shard_directory(&self.data_dir, id), id, shards, &resources)?;
            let progress = Progress::new(format!("shard {id}"));
            work(id, &store, &progress)?;
            progress.finish();
        }
        Ok(())
    }
}
