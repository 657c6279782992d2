//! One shard's RocksDB directory: opening it, and the few ways in which it is touched.
//!
//! Knows: column families, and what an error of RocksDB means for us. Must not know: what records say, beyond the meta
//! record that tells whose directory this is; others are read in [`records`].

mod records;

#[cfg(test)]
mod damage;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, Options, WriteBatch, WriteOptions};

pub use records::StoreSnapshot;

use crate::storage::codec::{self, FORMAT_VERSION, Meta, Undecodable};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::{
    StorageResources, checkpoint_options, database_options, log_options, prefix_options,
};
use crate::types::ShardId;

const LOG: &str = "log";
const CHECKPOINT: &str = "checkpoint";
/// Half-written checkpoint files live here until they are ingested.
const STAGING: &str = "staging";

/// An open directory.
pub struct Store {
    db: DB,
    path: PathBuf,
    shard: ShardId,
    shards: u16,
}

impl Store {
    /// Opens or creates a shard's directory, and makes sure that it is that shard's.
    ///
    /// # Errors
    /// See [`StorageError`]; nothing is changed by a directory that is refused.
    pub fn open(
        path: &Path,
        shard: ShardId,
        shards: u16,
        resources: &StorageResources,
    ) -> Result<Self, StorageError> {
        // Nobody else reads what boards hold; one that is there is left as its owner made it.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| StorageError::NoDirectory { path: path.to_owned(), error })?;
        let families = [
            ColumnFamilyDescriptor::new("default", Options::default()),
            ColumnFamilyDescriptor::new(LOG, log_options(resources)),
            ColumnFamilyDescriptor::new(CHECKPOINT, checkpoint_options(resources)),
        ];
        let db = DB::open_cf_descriptors(&database_options(), path, families).map_err(|error| {
            if is_in_use(&error) {
                StorageError::InUse(path.to_owned())
            } else if error.kind() == rocksdb::ErrorKind::Corruption {
                StorageError::Damaged { path: path.to_owned(), what: error.to_string() }
            } else {
                StorageError::RocksDb(error)
            }
        })?;
        let store = Self { db, path: path.to_owned(), shard, shards };
        store.check_ownership()?;
        store.clear_staging()?;
        Ok(store)
    }

    fn check_ownership(&self) -> Result<(), StorageError> {
        let Some(meta) = self.meta()? else {
            // It is the first thing ever written: what lacks it and is not empty has lost it.
            if !self.is_empty()? {
                return Err(
                    self.damaged("it holds data, but not the meta record that says whose and how far")
                );
            }
            let mut batch = WriteBatch::default();
            batch.put_cf(self.log(), keys::meta(), codec::encode_meta(&self.first_meta()));
            return self.write(batch, true);
        };
        if (meta.shard, meta.shards) == (self.shard.0, self.shards) {
            return Ok(());
        }
        Err(StorageError::OtherLayout {
            path: self.path.clone(),
            found_shard: meta.shard,
            found_shards: meta.shards,
            shard: self.shard.0,
            shards: self.shards,
        })
    }

    fn is_empty(&self) -> Result<bool, StorageError> {
        for family in [self.log(), self.checkpoint()] {
            let mut iterator = self.db.raw_iterator_cf(family);
            iterator.seek_to_first();
            iterator.status()?;
            if iterator.valid() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn first_meta(&self) -> Meta {
        Meta {
            format_version: FORMAT_VERSION,
            shard: self.shard.0,
            shards: self.shards,
            applied_sequence: 0,
            message_timestamp_micros: 0,
            message_hash: 0,
            time_micros: 0,
            jobs_rejected: 0,
            stream: String::new(),
        }
    }

    /// How far the last commit was, and whose directory this is.
    ///
    /// # Errors
    /// When it cannot be read, or was written by a newer ranktree.
    pub fn meta(&self) -> Result<Option<Meta>, StorageError> {
        let Some(bytes) = self.db.get_pinned_cf(self.log(), keys::meta())? else { return Ok(None) };
        // The version comes first in the record, so that it can be read whatever follows it.
        if let Some(found) = codec::format_version(&bytes)
            && found > FORMAT_VERSION
        {
            return Err(StorageError::NewerFormat { path: self.path.clone(), found });
        }
        codec::decode_meta(&bytes).map(Some).map_err(|error| self.damaged(error))
    }

    /// Hands every record of the log that begins with `prefix` to `each`, in key order.
    pub(super) fn scan_log(
        &self,
        prefix: &[u8],
        from: &[u8],
        each: impl FnMut(&[u8], &[u8]) -> Result<(), Undecodable>,
    ) -> Result<(), StorageError> {
        self.scan(self.log(), prefix, from, each)
    }

    /// Hands every record of the checkpoint that begins with `prefix` to `each`, in key order.
    pub(super) fn scan_checkpoint(
        &self,
        prefix: &[u8],
        each: impl FnMut(&[u8], &[u8]) -> Result<(), Undecodable>,
    ) -> Result<(), StorageError> {
        self.scan(self.checkpoint(), prefix, prefix, each)
    }

    fn scan(
        &self,
        family: &ColumnFamily,
        prefix: &[u8],
        from: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Undecodable>,
    ) -> Result<(), StorageError> {
        let mut iterator = self.db.raw_iterator_cf_opt(family, prefix_options(prefix));
        iterator.seek(from);
        while let Some((key, value)) = iterator.item() {
            each(key, value).map_err(|error| self.damaged(error))?;
            iterator.next();
        }
        // An iterator over a damaged file just ends: only the status tells.
        iterator
            .status()
            .map_err(|error| StorageError::Damaged { path: self.path.clone(), what: error.to_string() })
    }

    pub(super) fn get_checkpoint(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.db.get_cf(self.checkpoint(), key)?)
    }

    pub(super) fn write(&self, batch: WriteBatch, sync: bool) -> Result<(), StorageError> {
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        Ok(self.db.write_opt(batch, &options)?)
    }

    /// Makes everything written so far survive a power failure.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> Result<(), StorageError> {
        Ok(self.db.flush_wal(true)?)
    }

    /// Writes what is there already once more, to see whether the disk takes writes.
    ///
    /// # Errors
    /// When it does not.
    pub fn probe(&self) -> Result<(), StorageError> {
        let Some(meta) = self.meta()? else { return Ok(()) };
        let mut batch = WriteBatch::default();
        batch.put_cf(self.log(), keys::meta(), codec::encode_meta(&meta));
        self.write(batch, true)
    }

    pub(super) fn db(&self) -> &DB {
        &self.db
    }

    pub(super) fn log(&self) -> &ColumnFamily {
        self.db.cf_handle(LOG).expect("opened with this column family")
    }

    pub(super) fn checkpoint(&self) -> &ColumnFamily {
        self.db.cf_handle(CHECKPOINT).expect("opened with this column family")
    }

    pub(super) fn staging(&self) -> PathBuf {
        self.path.join(STAGING)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    #[must_use]
    pub fn shards(&self) -> u16 {
        self.shards
    }

    /// One of RocksDB's integer properties, summed over the column families.
    #[must_use]
    pub fn property(&self, name: &str) -> u64 {
        let of = |family| self.db.property_int_value_cf(family, name).ok().flatten().unwrap_or(0);
        of(self.log()) + of(self.checkpoint())
    }

    /// One of RocksDB's integer properties that is the database's, or of what the column families share.
    #[must_use]
    pub fn database_property(&self, name: &str) -> u64 {
        self.db.property_int_value_cf(self.log(), name).ok().flatten().unwrap_or(0)
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "errors are handed over; that this copies their text is its business"
    )]
    pub(super) fn damaged(&self, what: impl ToString) -> StorageError {
        StorageError::Damaged { path: self.path.clone(), what: what.to_string() }
    }

    fn clear_staging(&self) -> Result<(), StorageError> {
        let staging = self.staging();
        match std::fs::remove_dir_all(&staging) {
            Ok(()) => {
                tracing::info!(shard = %self.shard, "removed the files of a checkpoint that was not completed");
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(StorageError::Io { path: staging, error }),
        }
        Ok(())
    }
}

/// Whether another process, or another opening in this one, holds the directory. The crate has no kind for it; the words
/// are RocksDB's own, pinned with its version. They come first, so that no path can look like them.
fn is_in_use(error: &rocksdb::Error) -> bool {
    let words = error.to_string();
    ["IO error: While lock file: ", "IO error: lock hold by current process"]
        .iter()
        .any(|start| words.starts_with(start))
}
