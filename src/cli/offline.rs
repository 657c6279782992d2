//! What commands share that work on the data of a stopped service.

use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::config::{DataArgs, FileArgs};
use crate::storage::{StorageResources, Store, missing_shard, shard_directory, shards_in};
use crate::types::ShardId;

/// Enough to read ahead with; nothing is read twice.
const CACHE_BYTES: usize = 64 << 20;

#[derive(Debug, clap::Args)]
pub struct Offline {
    /// Read where the arguments are.
    #[command(flatten)]
    _file: FileArgs,
    #[command(flatten)]
    data: DataArgs,
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
        let shards = self.shards()?;
        let resources = StorageResources::new(CACHE_BYTES, 1);
        for id in (0..shards).map(ShardId) {
            let store = self.open(id, shards, &resources)?;
            let progress = Progress::new(format!("shard {id}"));
            work(id, &store, &progress)?;
            progress.finish();
        }
        Ok(())
    }

    /// Opens all shards, by number.
    ///
    /// # Errors
    /// When there are none, or one cannot be opened.
    pub fn open_all(&self) -> Result<Vec<Store>, Failure> {
        let shards = self.shards()?;
        let resources = StorageResources::new(CACHE_BYTES, shards);
        (0..shards).map(|id| self.open(ShardId(id), shards, &resources)).collect()
    }

    fn open(&self, id: ShardId, shards: u16, resources: &StorageResources) -> Result<Store, Failure> {
        Ok(Store::open(&shard_directory(&self.data.data_dir, id), id, shards, resources)?)
    }

    /// How many there are, at least one, and none missing.
    fn shards(&self) -> Result<u16, Failure> {
        let data_dir = &self.data.data_dir;
        let shards = shards_in(data_dir)?;
        if shards == 0 {
            let folder = data_dir.display();
            return Err(format!("{folder} holds no shards; give the service's --data-dir").into());
        }
        // Opening it would make an empty one, of which nobody could tell that it lost its members.
        if let Some(missing) = missing_shard(data_dir, shards) {
            let folder = shard_directory(data_dir, missing);
            return Err(format!("{} is missing; bring it back before anything else", folder.display()).into());
        }
        Ok(shards)
    }
}
