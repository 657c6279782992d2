//! One shard's RocksDB directory: opening it, and the few ways in which it is touched.
//!
//! Knows: options, column families, and what an error of RocksDB means for us. Must not know: what records say, beyond
//! the meta record that tells whose directory this is.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode,
    Env, Options, ReadOptions, WriteBatch, WriteOptions,
};
use thiserror::Error;

use crate::state::TreeId;
use crate::storage::codec::{
    self, FORMAT_VERSION, Meta, MetadataRecord, ParkedRecord, RejectRecord, Undecodable,
};
use crate::storage::keys;
use crate::types::{Sequence, ShardId};

pub(super) const LOG: &str = "log";
pub(super) const CHECKPOINT: &str = "checkpoint";
/// Half-written checkpoint files live here until they are ingested.
const STAGING: &str = "staging";

/// What went wrong with a shard's directory, and what follows from it.
#[derive(Debug, Error)]
pub enum StorageError {
    /// Another process holds the directory: end it, or use another directory.
    #[error("{} is in use by another process; stop it, or give another --data-dir", .0.display())]
    InUse(PathBuf),
    /// Nothing was changed; a newer ranktree can open it.
    #[error(
        "{} was written by a newer ranktree (format {found}, this one reads up to {FORMAT_VERSION}); upgrade, or restore an older snapshot",
        path.display()
    )]
    NewerFormat { path: PathBuf, found: u32 },
    /// Nothing was changed.
    #[error("{} holds shard {found_shard} of {found_shards}, and was opened as shard {shard} of {shards}; start with --shards {found_shards}, or export and import into a new directory", path.display())]
    OtherLayout { path: PathBuf, found_shard: u16, found_shards: u16, shard: u16, shards: u16 },
    /// The directory cannot be trusted: restore a snapshot, or replay the queue into a new one.
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    /// The disk or RocksDB refused. After a failed write the store must be closed and opened again.
    #[error("RocksDB: {0}")]
    RocksDb(#[from] rocksdb::Error),
    #[error("{} cannot be made: {error}; give a --data-dir that may be written to", path.display())]
    NoDirectory { path: PathBuf, error: std::io::Error },
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    /// Between a failed commit and the reopening.
    #[error("the shard's storage is closed after a failure and will be reopened")]
    Closed,
}

/// How much memory the stores of one process share.
#[derive(Clone)]
pub struct StorageResources {
    block_cache: Cache,
    write_buffer_bytes: usize,
}

impl StorageResources {
    /// # Arguments
    /// `cache_bytes`: for blocks read from disk, over all shards. `shards`: how many stores will share.
    #[must_use]
    pub fn new(cache_bytes: usize, shards: u16) -> Self {
        // 256 MiB of memtables over all shards, 4 MiB at least: below that, flushes become too small to be worth one.
        let each = (256 << 20) / usize::from(shards.max(1));
        Self {
            block_cache: Cache::new_lru_cache(cache_bytes),
            write_buffer_bytes: each.clamp(4 << 20, 64 << 20),
        }
    }
}

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

    /// The metadata of an entry, as of the last commit.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn metadata(&self, tree: TreeId, member: &[u8]) -> Result<Option<MetadataRecord>, StorageError> {
        let found = self.db.get_pinned_cf(self.log(), keys::metadata(tree, member))?;
        found.map(|bytes| codec::decode_metadata(&bytes).map_err(|error| self.damaged(error))).transpose()
    }

    /// The store as it is now, whatever is committed meanwhile.
    #[must_use]
    pub fn snapshot(&self) -> StoreSnapshot<'_> {
        StoreSnapshot { store: self, moment: self.db.snapshot() }
    }

    /// The newest rejects, newest first.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn rejects(&self, limit: usize) -> Result<Vec<RejectRecord>, StorageError> {
        let mut rejects = Vec::new();
        let mut iterator = self.db.raw_iterator_cf_opt(self.log(), prefix_options(&[keys::REJECT]));
        iterator.seek_to_last();
        while let (true, Some((key, value))) = (rejects.len() < limit, iterator.item()) {
            if let Some((sequence, index)) = keys::place_in_stream(key) {
                let reject = codec::decode_reject(sequence, index, value);
                rejects.push(reject.map_err(|error| self.damaged(error))?);
            }
            iterator.prev();
        }
        iterator.status()?;
        Ok(rejects)
    }

    /// Rejects after this place, the oldest first.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn rejects_after(
        &self,
        (sequence, index): (Sequence, u32),
        limit: usize,
    ) -> Result<Vec<RejectRecord>, StorageError> {
        let mut rejects = Vec::new();
        let mut iterator = self.db.raw_iterator_cf_opt(self.log(), prefix_options(&[keys::REJECT]));
        iterator.seek(keys::reject(sequence, index));
        while let (true, Some((key, value))) = (rejects.len() < limit, iterator.item()) {
            if let Some(place) = keys::place_in_stream(key)
                && place != (sequence, index)
            {
                let reject = codec::decode_reject(place.0, place.1, value);
                rejects.push(reject.map_err(|error| self.damaged(error))?);
            }
            iterator.next();
        }
        iterator.status()?;
        Ok(rejects)
    }

    /// Jobs that wait for a board's definition, the oldest first.
    ///
    /// # Errors
    /// When the disk cannot be read, or a record is none.
    pub fn parked(&self) -> Result<Vec<ParkedRecord>, StorageError> {
        let mut parked = Vec::new();
        self.scan_log(&[keys::PARKED], &[keys::PARKED], |key, value| {
            if let Some((sequence, index)) = keys::place_in_stream(key) {
                parked.push(codec::decode_parked(sequence, index, value)?);
            }
            Ok(())
        })?;
        Ok(parked)
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

    /// Drops rejects with sequences below this, in the background of RocksDB.
    pub(super) fn drop_rejects_below(&self, batch: &mut WriteBatch, below: Sequence) {
        batch.delete_range_cf(self.log(), keys::reject(Sequence(0), 0), keys::reject(below, 0));
    }
}

/// A store at one moment: the last commit before it. Keeps old data from being compacted away, so it is short-lived.
pub struct StoreSnapshot<'a> {
    store: &'a Store,
    moment: rocksdb::Snapshot<'a>,
}

impl StoreSnapshot<'_> {
    /// The metadata of an entry.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn metadata(&self, tree: TreeId, member: &[u8]) -> Result<Option<MetadataRecord>, StorageError> {
        let found = self.moment.get_pinned_cf(self.store.log(), keys::metadata(tree, member))?;
        found
            .map(|bytes| codec::decode_metadata(&bytes).map_err(|error| self.store.damaged(error)))
            .transpose()
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

/// Where a shard's store is, while there is one: a failed commit closes it until it is opened again.
#[derive(Default)]
pub struct StoreSlot {
    store: RwLock<Option<Arc<Store>>>,
}

impl StoreSlot {
    /// # Errors
    /// [`StorageError::Closed`] between a failure and the reopening.
    pub fn get(&self) -> Result<Arc<Store>, StorageError> {
        self.store.read().clone().ok_or(StorageError::Closed)
    }

    pub fn put(&self, store: Arc<Store>) {
        *self.store.write() = Some(store);
    }

    /// Takes the store away from new users. It closes when the last of those who use it now is done.
    pub fn take(&self) -> Option<Arc<Store>> {
        self.store.write().take()
    }

    /// The metadata of an entry, as of the last commit.
    ///
    /// # Errors
    /// When the store is closed, or the disk cannot be read.
    pub fn metadata(&self, tree: TreeId, member: &[u8]) -> Result<Option<MetadataRecord>, StorageError> {
        self.get()?.metadata(tree, member)
    }
}

fn database_options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // A torn end of the log is what a power failure leaves of writes that nobody was told of.
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    // A log that was synced and is shorter now, or gone, is refused at open.
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_max_background_jobs(2);
    if let Ok(mut environment) = Env::new() {
        // Flushes and compactions of all stores share these threads, and wait for a core rather than let readers wait.
        environment.lower_thread_pool_cpu_priority();
        environment.lower_high_priority_thread_pool_cpu_priority();
        options.set_env(&environment);
    }
    options.set_bytes_per_sync(1 << 20);
    options.set_wal_bytes_per_sync(1 << 20);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(4 << 20);
    options
}

fn log_options(resources: &StorageResources) -> Options {
    let mut options = Options::default();
    options.set_write_buffer_size(resources.write_buffer_bytes);
    options.set_max_write_buffer_number(3);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_block_based_table_factory(&table_options(resources));
    options
}

fn checkpoint_options(resources: &StorageResources) -> Options {
    let mut options = Options::default();
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_block_based_table_factory(&table_options(resources));
    options.set_target_file_size_base(128 << 20);
    options.set_max_bytes_for_level_base(1 << 30);
    options
}

/// What checkpoint files are written with before they are ingested.
pub(super) fn staging_options() -> Options {
    let mut options = Options::default();
    options.set_compression_type(DBCompressionType::Lz4);
    let mut table = BlockBasedOptions::default();
    table.set_format_version(6);
    // Pages are a kilobyte or more and are read in long scans.
    table.set_block_size(32 << 10);
    options.set_block_based_table_factory(&table);
    options
}

fn table_options(resources: &StorageResources) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&resources.block_cache);
    table.set_format_version(6);
    table.set_block_size(16 << 10);
    table.set_bloom_filter(10.0, false);
    table
}

fn prefix_options(prefix: &[u8]) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(prefix.to_vec());
    options.set_iterate_upper_bound(keys::after(prefix));
    options.set_readahead_size(2 << 20);
    // A scan of a checkpoint must not push what readers need out of the cache.
    options.fill_cache(false);
    options
}

/// What tests do to a directory behind the engine's back.
#[cfg(test)]
impl Store {
    /// Records that the checkpoint has of a tree.
    pub(crate) fn checkpoint_records_of(&self, tree: TreeId) -> Result<usize, StorageError> {
        let mut records = 0;
        for kind in [keys::MEMBER_PAGE, keys::EXTRA, keys::TREE_PAGE] {
            self.scan_checkpoint(&keys::of_tree(kind, tree), |_, _| {
                records += 1;
                Ok(())
            })?;
        }
        Ok(records)
    }

    fn family_of(&self, key: &[u8]) -> &ColumnFamily {
        let in_log = key.first().is_some_and(|kind| *kind < keys::DICTIONARY_PAGE);
        if in_log { self.log() } else { self.checkpoint() }
    }

    /// Replaces a record, or removes it. The families part by the first byte.
    pub(crate) fn damage(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), StorageError> {
        let family = self.family_of(key);
        let mut batch = WriteBatch::default();
        match value {
            Some(value) => batch.put_cf(family, key, value),
            None => batch.delete_cf(family, key),
        }
        self.write(batch, true)
    }

    pub(crate) fn record(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let family = self.family_of(key);
        Ok(self.db.get_cf(family, key)?)
    }

    /// Keys that begin so.
    pub(crate) fn keys_from(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StorageError> {
        let mut found = Vec::new();
        let family = self.family_of(prefix);
        self.scan(family, prefix, prefix, |key, _| {
            found.push(key.to_vec());
            Ok(())
        })?;
        Ok(found)
    }

    /// Makes the log end before a sequence, at which a batch ended, as a lost end of it would.
    pub(crate) fn cut_log_for_test(&self, from: Sequence) -> Result<(), StorageError> {
        let mut meta = self.meta()?.expect("it was written at open");
        meta.applied_sequence = from.0 - 1;
        let mut batch = WriteBatch::default();
        batch.delete_cf(self.log(), keys::delta(from));
        batch.put_cf(self.log(), keys::meta(), codec::encode_meta(&meta));
        self.write(batch, true)
    }
}
