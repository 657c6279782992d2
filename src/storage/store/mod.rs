//! One shard's RocksDB directory: opening it, and every read and write of it.
//!
//! Knows: column families, and what an error of RocksDB means for the shard. Must not know: the content of
//! records, except of the meta record, which names the shard. [`records`], [`parked`] and
//! [`hashes`] read other records, and [`read_all`] reads all, whatever they are.

mod hashes;
mod histories;
mod job_ids;
mod last_jobs;
mod member_records;
mod open;
mod parked;
mod read_all;
mod records;

#[cfg(test)]
mod damage;

use std::path::PathBuf;
use std::sync::OnceLock;

use parking_lot::{Mutex, MutexGuard};
use rocksdb::{ColumnFamily, DB, ReadOptions, WriteBatch, WriteOptions};

pub use hashes::HashCommit;
pub use open::{InspectedDirectory, Reopened};
pub use parked::ParkedLine;
pub use read_all::{Progress, ReadPlace};
pub use records::{ProfileAt, StoreSnapshot};

use crate::storage::codec::{self, FORMAT_VERSION, Meta, Undecodable};
use crate::storage::error::StorageError;
use crate::storage::files::{DirectoryLock, Floor, HeldDirectory, MARKER, Marker, TornEnd};
use crate::storage::identity::ShardIdentity;
use crate::storage::keys;
use crate::storage::options::{StorageResources, prefix_options};
use crate::types::{Sequence, ShardId, count};

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
    access: Access,
    /// The highest sequences that were written, synced or not.
    written: Mutex<Floor>,
    marker: Option<Marker>,
    torn: Option<TornEnd>,
    /// What the shard is; in every meta record that is written.
    identity: Mutex<ShardIdentity>,
    /// A description of the first damage that was found since the store was opened.
    damage: OnceLock<String>,
    resources: StorageResources,
    /// Held while a checkpoint takes effect, and while the files are copied.
    checkpoints: Mutex<()>,
    /// The last field, so that the lock is released after RocksDB is closed.
    lock: DirectoryLock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Reading,
    Writing,
}

impl Store {
    fn is_empty(&self) -> Result<bool, StorageError> {
        for family in [self.log(), self.checkpoint()] {
            let mut iterator = self.db.raw_iterator_cf(family);
            iterator.seek_to_first();
            iterator.status().map_err(|error| self.failed(error))?;
            if iterator.valid() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The meta record: which shard this is, and the applied sequence of the last commit.
    ///
    /// # Errors
    /// When it cannot be read, or has another format.
    pub fn meta(&self) -> Result<Option<Meta>, StorageError> {
        let found = self.db.get_pinned_cf(self.log(), keys::meta()).map_err(|error| self.failed(error))?;
        let Some(bytes) = found else { return Ok(None) };
        if let Some(found) = codec::format_version(&bytes).filter(|found| *found != FORMAT_VERSION) {
            return Err(StorageError::OtherFormat { path: self.path.clone(), found, known: FORMAT_VERSION });
        }
        codec::decode_meta(&bytes).map(Some).map_err(|error| self.damaged(error))
    }

    /// What the shard is.
    pub fn identity(&self) -> ShardIdentity {
        *self.identity.lock()
    }

    /// After the meta record says it.
    pub(super) fn set_identity(&self, identity: ShardIdentity) -> Result<(), StorageError> {
        *self.identity.lock() = identity;
        self.marker.as_ref().map_or(Ok(()), |marker| marker.set_identity(identity))
    }

    /// Hands every record of the log that begins with `prefix` to `each`, in key order.
    pub(super) fn scan_log(
        &self,
        prefix: &[u8],
        from: &[u8],
        each: impl FnMut(&[u8], &[u8]) -> Result<(), Undecodable>,
    ) -> Result<(), StorageError> {
        self.scan(self.log(), prefix_options(prefix), from, each)
    }

    /// Hands every record of the checkpoint that begins with `prefix` to `each`, in key order.
    pub(super) fn scan_checkpoint(
        &self,
        prefix: &[u8],
        each: impl FnMut(&[u8], &[u8]) -> Result<(), Undecodable>,
    ) -> Result<(), StorageError> {
        self.scan(self.checkpoint(), prefix_options(prefix), prefix, each)
    }

    fn scan(
        &self,
        family: &ColumnFamily,
        options: ReadOptions,
        from: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Undecodable>,
    ) -> Result<(), StorageError> {
        let mut iterator = self.db.raw_iterator_cf_opt(family, options);
        iterator.seek(from);
        while let Some((key, value)) = iterator.item() {
            if self.resources.stop.is_set() {
                return Err(StorageError::Stopped);
            }
            each(key, value).map_err(|error| self.damaged(error))?;
            iterator.next();
        }
        // An iterator over a damaged file just ends; only its status shows the error.
        iterator.status().map_err(|error| self.damaged(error))
    }

    pub(super) fn get_checkpoint(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.db.get_cf(self.checkpoint(), key).map_err(|error| self.failed(error))
    }

    pub(super) fn write(&self, batch: WriteBatch, sync: bool) -> Result<(), StorageError> {
        self.write_up_to(batch, sync, Sequence(0))
    }

    /// As [`Store::write`], for a batch that applies messages up to `applied`.
    pub(super) fn write_up_to(
        &self,
        batch: WriteBatch,
        sync: bool,
        applied: Sequence,
    ) -> Result<(), StorageError> {
        let before = *self.written.lock();
        // Other threads may write at the same time, so the number of the batch's last operation is this or
        // greater.
        let rocksdb_sequence = self.db.latest_sequence_number() + count(batch.len());
        let floor = before.max(Floor { applied: applied.0, rocksdb_sequence });
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        self.db.write_opt(batch, &options).map_err(|error| match error.kind() {
            // Once a compaction has met damage, RocksDB refuses whatever comes.
            rocksdb::ErrorKind::Corruption => self.damaged(error),
            _ => error.into(),
        })?;
        // After the write: what is answered was in the directory that the path leads to.
        self.check_directory()?;
        {
            let mut written = self.written.lock();
            *written = written.max(floor);
        }
        if sync {
            self.note_synced(floor);
        }
        Ok(())
    }

    /// Whether the path still leads to this directory, and its files were not deleted. One or two system
    /// calls.
    ///
    /// # Errors
    /// [`StorageError::Replaced`].
    pub fn check_directory(&self) -> Result<(), StorageError> {
        self.lock.held().check()?;
        match self.marker.as_ref().map(|_| self.path.join(MARKER).try_exists()) {
            Some(Ok(false)) => Err(StorageError::Replaced(self.path.clone())),
            // A marker that cannot be looked at is not missing.
            Some(Ok(true) | Err(_)) | None => Ok(()),
        }
    }

    /// The directory, to be opened again with [`Store::reopen`].
    pub fn hold_directory(&self) -> Result<HeldDirectory, StorageError> {
        self.lock.held().hold_again()
    }

    /// Makes everything written so far survive a power failure.
    pub fn sync(&self) -> Result<(), StorageError> {
        let floor = *self.written.lock();
        self.db.flush_wal(true)?;
        self.note_synced(floor);
        Ok(())
    }

    /// Raises the marker's floor. Only called after a sync, because data below the floor must never be
    /// missing.
    fn note_synced(&self, floor: Floor) {
        if let Some(marker) = &self.marker {
            marker.raise_floor(floor);
        }
    }

    /// Records in the marker that a stream holds the messages after the last sync.
    pub(super) fn mark_filled_from_stream(&self) -> Result<(), StorageError> {
        self.marker.as_ref().map_or(Ok(()), Marker::note_filled_from_stream)
    }

    /// Syncs the marker, so that its floor survives a power failure.
    pub(super) fn sync_marker(&self) {
        if let Some(marker) = &self.marker {
            marker.sync();
        }
    }

    /// Writes the existing meta record again, to find out whether the disk accepts writes.
    pub fn probe(&self) -> Result<(), StorageError> {
        let Some(meta) = self.meta()? else { return Ok(()) };
        let mut batch = WriteBatch::default();
        batch.put_cf(self.log(), keys::meta(), codec::encode_meta(&meta));
        self.write(batch, true)
    }

    /// Keeps checkpoints from taking effect. RocksDB copies its list of files before the end of its log: the
    /// log of such a copy could delete the deltas that a checkpoint supersedes, and the list lack the
    /// checkpoint.
    pub(super) fn hold_checkpoints(&self) -> MutexGuard<'_, ()> {
        self.checkpoints.lock()
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
        // The path by which RocksDB was opened leads here even if the directory was moved.
        self.db.path().join(STAGING)
    }

    pub fn shard(&self) -> ShardId {
        self.shard
    }

    pub fn shards(&self) -> u16 {
        self.shards
    }

    /// One of RocksDB's integer properties, summed over the column families.
    pub fn property(&self, name: &str) -> u64 {
        let of = |family| self.db.property_int_value_cf(family, name).ok().flatten().unwrap_or(0);
        of(self.log()) + of(self.checkpoint())
    }

    /// One of RocksDB's integer properties of the whole database, or of what the column families share.
    pub fn database_property(&self, name: &str) -> u64 {
        self.db.property_int_value_cf(self.log(), name).ok().flatten().unwrap_or(0)
    }

    pub(super) fn damaged(&self, what: impl ToString) -> StorageError {
        let damaged = StorageError::damaged(&self.path, what);
        self.damage.get_or_init(|| damaged.to_string());
        damaged
    }

    /// The first damage that was found since the store was opened, and what to do about it. A start does not
    /// read every record, so damage may be found later.
    pub fn first_damage(&self) -> Option<&str> {
        self.damage.get().map(String::as_str)
    }

    /// What an error of RocksDB while reading means.
    pub(super) fn failed(&self, error: rocksdb::Error) -> StorageError {
        match error.kind() {
            rocksdb::ErrorKind::Corruption => self.damaged(error),
            // A missing file is damage, too: its content is lost.
            // So is what the disk cannot read.
            _ if ["No such file or directory", "Input/output error"]
                .iter()
                .any(|words| error.to_string().contains(words)) =>
            {
                self.damaged(error)
            }
            _ => error.into(),
        }
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
