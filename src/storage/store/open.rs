//! Opens a store from its directory. Nothing is written before the existing files have been read and checked.
//!
//! If RocksDB opens a damaged directory, it makes the damage final: it creates an empty database where it
//! finds none, drops what it cannot read of its logs, and removes files that its manifest does not name. So a
//! directory with a database is opened in three steps. First its manifest and logs are read here. Then
//! RocksDB opens it without writing, and the shard is loaded. Last, RocksDB opens it for writing. The log is
//! read three times then, but no page is read twice.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parking_lot::Mutex;
use rocksdb::{ColumnFamilyDescriptor, DB, Options, WriteBatch};

use super::{Access, CHECKPOINT, LOG, Store};
use crate::storage::codec::{self, FORMAT_VERSION, Meta};
use crate::storage::error::StorageError;
use crate::storage::files::{
    DirectoryLock, Floor, FlushedSequence, HeldDirectory, Logs, Marker, Stage, TornEnd, check_logs,
    check_manifest, holds_a_database, make_private_directory,
};
use crate::storage::identity::ShardIdentity;
use crate::storage::keys;
use crate::storage::options::{
    StorageResources, checkpoint_options, creation_options, database_options, log_options,
};
use crate::types::ShardId;

/// Which directory is opened again at a shard's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopened {
    /// The one that was open before.
    Same,
    /// One that this process has put in its place.
    Installed,
}

impl Store {
    /// Opens a shard's directory for writing, or creates it, and checks that it belongs to that shard.
    ///
    /// # Errors
    /// See [`StorageError`]. A directory that is refused is left unchanged.
    pub fn open(
        path: &Path,
        shard: ShardId,
        shards: u16,
        resources: &StorageResources,
    ) -> Result<Self, StorageError> {
        Self::open_to_load(path, shard, shards, resources)?.into_writable()
    }

    /// As [`Store::open`], but existing files are only read until [`Store::into_writable`]. The caller loads
    /// the shard in between. So damage that is found while loading leaves the directory unchanged, too.
    pub fn open_to_load(
        path: &Path,
        shard: ShardId,
        shards: u16,
        resources: &StorageResources,
    ) -> Result<Self, StorageError> {
        Self::inspect(path, shard, shards, resources)?.open()
    }

    /// Opens a directory again that this process had open.
    ///
    /// # Errors
    /// As [`Store::open`], and [`StorageError::Replaced`] if its path leads elsewhere now. Nothing is created
    /// then.
    pub fn reopen(
        held: &HeldDirectory,
        shard: ShardId,
        shards: u16,
        resources: &StorageResources,
    ) -> Result<Self, StorageError> {
        held.check()?;
        let inspected = Self::inspect(held.path(), shard, shards, resources)?;
        // The path may have changed before it was locked.
        held.check()?;
        match inspected.found {
            DirectoryContents::Nothing => Err(StorageError::Replaced(held.path().to_owned())),
            DirectoryContents::Shard { .. } => inspected.open()?.into_writable(),
        }
    }

    /// Locks a shard's directory, and checks whether it may be opened, before RocksDB reads or writes
    /// anything in it. Creates the directory if it does not exist, and changes nothing else.
    pub fn inspect(
        path: &Path,
        shard: ShardId,
        shards: u16,
        resources: &StorageResources,
    ) -> Result<InspectedDirectory, StorageError> {
        // Other users must not read the data. The mode of an existing directory is left as its owner set it.
        make_private_directory(path)?;
        let lock = DirectoryLock::exclusive(path)?;
        let marker = Marker::read(path)?;
        let is_new = match &marker {
            Some(marker) => marker.stage == Stage::Creating,
            None => !holds_a_database(path)?,
        };
        let place = StoreLocation { path: path.to_owned(), shard, shards, resources: resources.clone() };
        let found = if is_new { DirectoryContents::Nothing } else { place.read_contents(marker)? };
        Ok(InspectedDirectory { place, lock, found })
    }

    /// Opens a shard's directory without ever writing to it. Several processes may do so at the same time.
    ///
    /// # Errors
    /// As [`Store::open`], and when there is no shard.
    pub fn open_for_reading(
        path: &Path,
        shard: ShardId,
        shards: u16,
        resources: &StorageResources,
    ) -> Result<Self, StorageError> {
        if !holds_a_database(path)? {
            return Err(StorageError::Empty(path.to_owned()));
        }
        let lock = DirectoryLock::shared(path)?;
        let marker = Marker::read(path)?;
        if marker.as_ref().is_some_and(|marker| marker.stage == Stage::Creating) {
            return Err(StorageError::Empty(path.to_owned()));
        }
        let place = StoreLocation { path: path.to_owned(), shard, shards, resources: resources.clone() };
        let found = place.read_contents(marker)?;
        if let DirectoryContents::Shard { torn: Some(end), .. } = &found
            && !end.rocksdb_stops
        {
            let (name, at, length) = (end.name(), end.at, end.length);
            return Err(place.damaged(format!(
                "its log {name} is broken after {at} of {length} bytes; a start drops the rest, none of which was synced"
            )));
        }
        InspectedDirectory { place, lock, found }.open()
    }

    /// Whether a directory's shard has been in service. If so, other shards may hold data that belongs
    /// together with the data of this one.
    ///
    /// # Errors
    /// When it cannot be read, or is another shard's.
    pub fn was_in_service(path: &Path, shard: ShardId, shards: u16) -> Result<Option<bool>, StorageError> {
        let Some(marker) = Marker::read(path)? else { return Ok(None) };
        check_layout(path, (marker.shard, marker.shards), (shard.0, shards))?;
        Ok(marker.damage.is_none().then_some(marker.stage == Stage::InService))
    }

    /// Marks that every shard of the data directory exists. From then on an empty shard has lost its data.
    pub fn mark_in_service(&mut self) -> Result<(), StorageError> {
        self.marker.as_mut().map_or(Ok(()), |marker| marker.set_stage(Stage::InService))
    }

    /// The same directory, open for writing.
    ///
    /// # Errors
    /// When RocksDB or the disk refuses.
    pub fn into_writable(self) -> Result<Self, StorageError> {
        if self.access == Access::Writing {
            return Ok(self);
        }
        let read = self.meta()?;
        let Self { db, path, shard, shards, marker, torn, resources, lock, .. } = self;
        drop(db);
        if let Some(end) = torn.filter(|end| end.rocksdb_stops) {
            end.truncate()?;
        }
        let place = StoreLocation { path, shard, shards, resources };
        let anchor = lock.held().anchor();
        let db = DB::open_cf_descriptors(&database_options(), &anchor, families(&place.resources))
            .map_err(|error| place.refused(&error))?;
        let mut store = place.store(db, lock, Access::Writing);
        if store.meta()? != read {
            return Err(store.damaged(
                "RocksDB returned an older meta record after opening the directory for writing than before",
            ));
        }
        let meta = match read {
            Some(meta) => meta,
            None => store.begin()?,
        };
        store.clear_staging()?;
        // RocksDB has written the content of its logs into files, and has synced them.
        let floor =
            Floor { applied: meta.applied_sequence, rocksdb_sequence: store.db.latest_sequence_number() };
        *store.written.lock() = floor;
        let marker = match marker {
            Some(marker) if marker.damage.is_none() => {
                marker.raise_floor(floor);
                marker
            }
            lost => {
                let stage = lost.map_or(Stage::Created, |marker| marker.stage);
                Marker::put(&store.path, stage, (shard.0, shards), floor)?
            }
        };
        *store.identity.lock() = meta.identity;
        if marker.identity().is_some() || meta.identity != ShardIdentity::default() {
            marker.set_identity(meta.identity)?;
        }
        if !meta.stream.is_empty() {
            marker.note_filled_from_stream()?;
        }
        store.marker = Some(marker.written_in(&anchor));
        Ok(store)
    }

    /// A description of the log's torn end, if it has one. Nothing that was synced is missing then.
    pub fn torn_end(&self) -> Option<String> {
        self.torn.as_ref().map(|torn| {
            format!(
                "its log {} ends within a record, after {} of {} bytes",
                torn.name(),
                torn.at,
                torn.length
            )
        })
    }

    /// Whether any part of the marker cannot be read.
    pub fn has_damaged_marker(&self) -> bool {
        self.marker.as_ref().is_some_and(|marker| marker.damage.is_some())
    }

    /// Writes the first record.
    fn begin(&self) -> Result<Meta, StorageError> {
        let meta = Meta {
            format_version: FORMAT_VERSION,
            shard: self.shard.0,
            shards: self.shards,
            applied_sequence: 0,
            message_timestamp_micros: 0,
            message_hash: 0,
            time_micros: 0,
            leap_micros: None,
            jobs_rejected: 0,
            stream: String::new(),
            identity: ShardIdentity::default(),
        };
        let mut batch = WriteBatch::default();
        batch.put_cf(self.log(), keys::meta(), codec::encode_meta(&meta));
        self.write(batch, true)?;
        Ok(meta)
    }

    /// Checks that the directory is this shard's, and that it has everything that was synced.
    fn check(&self, marked: Option<Floor>) -> Result<(), StorageError> {
        let Some(meta) = self.meta()? else {
            // The meta record is written first. A directory that lacks it and is not empty has lost it.
            let lost = marked.is_some() || !self.is_empty()?;
            let what =
                "it holds data, but not the meta record, which names the shard and the applied sequence";
            return if lost { Err(self.damaged(what)) } else { Ok(()) };
        };
        check_layout(&self.path, (meta.shard, meta.shards), (self.shard.0, self.shards))?;
        *self.identity.lock() = meta.identity;
        let floor = marked.unwrap_or_default();
        if meta.applied_sequence < floor.applied {
            return Err(self.damaged(format!(
                "it holds messages up to {} only, but messages up to {} had been applied and synced",
                meta.applied_sequence, floor.applied
            )));
        }
        if self.db.latest_sequence_number() < floor.rocksdb_sequence {
            return Err(self.damaged(format!(
                "it ends at RocksDB's operation {}, but operations up to {} had been synced",
                self.db.latest_sequence_number(),
                floor.rocksdb_sequence
            )));
        }
        Ok(())
    }
}

/// A directory that passed all checks that need no RocksDB. It stays locked.
pub struct InspectedDirectory {
    place: StoreLocation,
    lock: DirectoryLock,
    found: DirectoryContents,
}

/// What a directory holds.
enum DirectoryContents {
    /// Nothing, or the remains of a shard whose creation a crash interrupted.
    Nothing,
    Shard {
        marker: Option<Box<Marker>>,
        torn: Option<TornEnd>,
    },
}

impl InspectedDirectory {
    /// Whether opening it to load changes files: a new shard is created, or a log is cut at a break that
    /// RocksDB would skip.
    pub fn changes_when_opened(&self) -> bool {
        match &self.found {
            DirectoryContents::Nothing => true,
            DirectoryContents::Shard { torn, .. } => torn.as_ref().is_some_and(|end| !end.rocksdb_stops),
        }
    }

    /// What the shard's marker says that it is; `None` if it says nothing. RocksDB was not opened for that.
    pub fn marked_identity(&self) -> Option<ShardIdentity> {
        match &self.found {
            DirectoryContents::Shard { marker: Some(marker), .. } if marker.damage.is_none() => {
                marker.identity()
            }
            DirectoryContents::Shard { .. } | DirectoryContents::Nothing => None,
        }
    }

    /// Opens the directory to load the shard. Existing files are only read from then on, until
    /// [`Store::into_writable`].
    pub fn open(self) -> Result<Store, StorageError> {
        let Self { place, lock, found } = self;
        match found {
            DirectoryContents::Nothing => place.create(lock),
            DirectoryContents::Shard { marker, torn } => {
                place.open_what_is_there(lock, marker.map(|marker| *marker), torn)
            }
        }
    }
}

/// A directory, the shard that it should belong to, and the resources to open it with.
struct StoreLocation {
    path: PathBuf,
    shard: ShardId,
    shards: u16,
    resources: StorageResources,
}

impl StoreLocation {
    /// Creates a shard in an empty directory, or in one where a crash interrupted its creation.
    fn create(&self, lock: DirectoryLock) -> Result<Store, StorageError> {
        let mut marker =
            Marker::put(&self.path, Stage::Creating, (self.shard.0, self.shards), Floor::default())?;
        let anchor = lock.held().anchor();
        let db = DB::open_cf_descriptors(&creation_options(), &anchor, families(&self.resources))
            .map_err(|error| self.refused(&error))?;
        let mut store = self.store(db, lock, Access::Writing);
        store.check(None)?;
        if store.meta()?.is_none() {
            store.begin()?;
        }
        store.clear_staging()?;
        marker.set_stage(Stage::Created)?;
        store.marker = Some(marker.written_in(&anchor));
        Ok(store)
    }

    /// Checks the marker, the manifest and the logs, before RocksDB reads them.
    fn read_contents(&self, marker: Option<Marker>) -> Result<DirectoryContents, StorageError> {
        if let Some(marker) = &marker {
            check_layout(&self.path, (marker.shard, marker.shards), (self.shard.0, self.shards))?;
            if marker.damage.is_some() {
                tracing::warn!(shard = %self.shard, "the file RANKTREE is damaged; what it says follows from the shard's other files, and a start writes it again");
            }
        }
        let in_files = check_manifest(&self.path)?;
        let logs = check_logs(&self.path, &keys::meta())?;
        let torn = self.check_torn_end(logs, &in_files, marker.as_ref())?;
        Ok(DirectoryContents::Shard { marker: marker.map(Box::new), torn })
    }

    /// Opens an existing shard without writing, after its files have been checked.
    fn open_what_is_there(
        &self,
        lock: DirectoryLock,
        marker: Option<Marker>,
        torn: Option<TornEnd>,
    ) -> Result<Store, StorageError> {
        if let Some(end) = &torn {
            if !end.rocksdb_stops {
                end.truncate()?;
            }
            tracing::warn!(
                shard = %self.shard, log = end.name(), at = end.at, bytes = end.length - end.at,
                "the log ends within a record, which is dropped: its write was never answered, or the stream still holds it"
            );
        }
        let (options, families) = (database_options(), families(&self.resources));
        let db = DB::open_cf_descriptors_read_only(&options, &self.path, families, false)
            .map_err(|error| self.refused(&error))?;
        let mut store = self.store(db, lock, Access::Reading);
        let marked = marker.as_ref().map(Marker::floor);
        (store.marker, store.torn) = (marker, torn);
        store.check(marked)?;
        Ok(store)
    }

    /// Whether a power failure can have torn the log, without the loss of any write that was answered.
    /// Refuses other breaks as damage.
    fn check_torn_end(
        &self,
        logs: Logs,
        in_files: &FlushedSequence,
        marker: Option<&Marker>,
    ) -> Result<Option<TornEnd>, StorageError> {
        let Some(torn) = logs.torn else { return Ok(None) };
        let (name, at, length) = (torn.name(), torn.at, torn.length);
        let floor = marker.map(Marker::floor).unwrap_or_default();
        // A log without a record before its break is a new one. Everything that was written before it is in
        // files.
        if logs.last_rocksdb_sequence.unwrap_or(in_files.last_rocksdb_sequence) < floor.rocksdb_sequence {
            return Err(self.damaged(format!(
                "its log {name} is broken after {at} of {length} bytes, before the end of what had been synced"
            )));
        }
        if torn.records_follow {
            // Records follow the break. Without a stream each write is synced before the next one begins, so
            // a power failure cannot cause this. With a stream nothing is synced between checkpoints, so a
            // power failure may keep later blocks and lose earlier ones. That is no loss, because the stream
            // holds everything since the last sync.
            let is_filled_from_stream = match &torn.last_value {
                Some(bytes) => codec::decode_meta(bytes).is_ok_and(|meta| !meta.stream.is_empty()),
                None => marker.is_some_and(Marker::is_filled_from_stream),
            };
            if !is_filled_from_stream {
                return Err(self.damaged(format!(
                    "its log {name} is broken after {at} of {length} bytes, but has whole records after that"
                )));
            }
        }
        Ok(Some(torn))
    }

    fn store(&self, db: DB, lock: DirectoryLock, access: Access) -> Store {
        Store {
            db,
            path: self.path.clone(),
            shard: self.shard,
            shards: self.shards,
            access,
            written: Mutex::default(),
            marker: None,
            torn: None,
            identity: Mutex::default(),
            damage: OnceLock::new(),
            checkpoints: Mutex::default(),
            resources: self.resources.clone(),
            lock,
        }
    }

    fn damaged(&self, what: impl ToString) -> StorageError {
        StorageError::damaged(&self.path, what)
    }

    /// Why RocksDB did not open it.
    fn refused(&self, error: &rocksdb::Error) -> StorageError {
        let words = error.to_string();
        if is_in_use(&words) {
            return StorageError::InUse(self.path.clone());
        }
        match error.kind() {
            // Missing files or column families are damage, like unreadable ones.
            rocksdb::ErrorKind::Corruption
            | rocksdb::ErrorKind::InvalidArgument
            | rocksdb::ErrorKind::NotFound => self.damaged(words),
            _ if words.contains("No such file or directory") => self.damaged(words),
            _ => error.clone().into(),
        }
    }
}

fn families(resources: &StorageResources) -> [ColumnFamilyDescriptor; 3] {
    [
        ColumnFamilyDescriptor::new("default", Options::default()),
        ColumnFamilyDescriptor::new(LOG, log_options(resources)),
        ColumnFamilyDescriptor::new(CHECKPOINT, checkpoint_options(resources)),
    ]
}

/// # Arguments
/// `found`: the shard's number and the number of shards. 0 shards mean that the marker cannot be read.
fn check_layout(path: &Path, found: (u16, u16), wanted: (u16, u16)) -> Result<(), StorageError> {
    if found == wanted || found.1 == 0 {
        return Ok(());
    }
    let ((found_shard, found_shards), (shard, shards)) = (found, wanted);
    Err(StorageError::OtherLayout { path: path.to_owned(), found_shard, found_shards, shard, shards })
}

/// Whether another process, or another store in this process, has the directory open. The crate has no error
/// kind for that, so RocksDB's text is compared; it is pinned with RocksDB's version. The text comes first in
/// the message, so a path cannot be mistaken for it.
fn is_in_use(words: &str) -> bool {
    ["IO error: While lock file: ", "IO error: lock hold by current process"]
        .iter()
        .any(|start| words.starts_with(start))
}
