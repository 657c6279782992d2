//! The file `RANKTREE` in a shard's directory. It records that this shard exists, which one it is, and the
//! least applied sequence that its data must have.
//!
//! RocksDB creates an empty database where it finds none, and opens an older state if it finds only the
//! beginning of the manifest. So a start compares the data with this file, which says what was there.
//!
//! ```text
//!    0  "ranktree" │ format: u32 │ stage: u32 │ shard: u16 │ shards: u16 │ crc32c of all that: u32
//! 128  service: u128 │ lineage: u128 │ epoch: u64 │ opening: u64 │ the one before: u64 │ crc32c: u32; zeros
//! for none
//!  256  "a stream" │ crc32c of that: u32, once the shard was filled from one; zeros before
//!  512  a floor: applied sequence: u64 │ RocksDB's sequence: u64 │ crc32c of both: u32
//! 1024  another
//! ```
//!
//! The two floors are written in turns, each in a sector of its own, so that one stays whole if a power
//! failure damages the other. A floor is written after the data that it names was synced, and is not synced
//! itself. So it survives a crash of the process, a power failure may set it back by seconds, and it is never
//! ahead of the data.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::regular_file::read_small_in;
use crate::storage::error::StorageError;
use crate::storage::files::replaced::replace_file;
use crate::storage::identity::{Lineage, ServiceId, ShardIdentity};

pub const MARKER: &str = "RANKTREE";
/// The new file, which is renamed over the old one once it is written and synced.
const NEW: &str = "RANKTREE.new";
const MAGIC: &[u8; 8] = b"ranktree";
/// The format of this file, the only one that is read.
const FORMAT: u32 = 1;
const HEAD_BYTES: usize = 20;
const IDENTITY_AT: usize = 128;
const IDENTITY_BYTES: usize = 56;
const SOURCE: &[u8; 8] = b"a stream";
const SOURCE_AT: usize = 256;
const FLOOR_BYTES: usize = 16;
const FLOORS_AT: [usize; 2] = [512, 1024];
const FILE_BYTES: usize = 1536;
/// More than a file of any format has.
const MAX_BYTES: u64 = 64 << 10;

/// The stage of a shard's creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// RocksDB is being created. Files that exist may be replaced.
    Creating,
    /// The shard exists.
    Created,
    /// Every other shard of the data directory exists too: from now on they may hold data.
    InService,
}

/// A lower bound of what was synced. A directory that holds less has lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Floor {
    pub applied: u64,
    /// RocksDB's own number, which every operation raises.
    pub rocksdb_sequence: u64,
}

impl Floor {
    /// The greater of both, by component.
    pub fn max(self, other: Self) -> Self {
        Self {
            applied: self.applied.max(other.applied),
            rocksdb_sequence: self.rocksdb_sequence.max(other.rocksdb_sequence),
        }
    }
}

/// Which part of a marker is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The shard's number, or the stage.
    All,
    /// One of the floors. The other one may be lower.
    OneFloor,
}

/// A shard's marker.
pub struct Marker {
    path: PathBuf,
    pub stage: Stage,
    pub shard: u16,
    pub shards: u16,
    written: Mutex<Written>,
    pub damage: Option<Damage>,
}

struct Written {
    floor: Floor,
    is_filled_from_stream: bool,
    identity: Option<ShardIdentity>,
    /// Index of the floor that is written next.
    next_slot: usize,
    /// The file, opened by the first write.
    file: Option<File>,
}

impl Marker {
    /// The marker of a directory, if it has one.
    ///
    /// # Errors
    /// When it cannot be read, or has another format.
    pub fn read(directory: &Path) -> Result<Option<Self>, StorageError> {
        let path = directory.join(MARKER);
        let bytes = match read_small_in(directory, MARKER, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StorageError::Io { path, error }),
        };
        let Some((stage, shard, shards)) = decode_head(directory, &bytes)? else {
            // No field of a damaged marker is used; the other files of the directory decide.
            let damage = Some(Damage::All);
            return Ok(Some(Self { damage, ..Self::unwritten(path, Stage::Created, 0, 0) }));
        };
        let floors = FLOORS_AT.map(|at| decode_floor(&bytes, at));
        let floor = floors.into_iter().flatten().fold(Floor::default(), Floor::max);
        let damage = match floors.iter().flatten().count() {
            0 => Some(Damage::All),
            1 => Some(Damage::OneFloor),
            _ => None,
        };
        // The floor that is lower, or damaged, is written next.
        let [first, _] = floors;
        let next_slot = usize::from(first == Some(floor));
        let marker = Self::unwritten(path, stage, shard, shards);
        let is_filled_from_stream =
            checked(&bytes, SOURCE_AT, SOURCE.len()).is_some_and(|found| found == SOURCE);
        let identity = decode_identity(&bytes);
        let written = Mutex::new(Written { floor, is_filled_from_stream, identity, next_slot, file: None });
        Ok(Some(Self { written, damage, ..marker }))
    }

    fn unwritten(path: PathBuf, stage: Stage, shard: u16, shards: u16) -> Self {
        let (floor, next_slot) = (Floor::default(), 0);
        let (is_filled_from_stream, identity) = (false, None);
        let written = Mutex::new(Written { floor, is_filled_from_stream, identity, next_slot, file: None });
        Self { path, stage, shard, shards, written, damage: None }
    }

    /// Writes a marker, replacing an existing one; synced once this returns.
    pub fn put(
        directory: &Path,
        stage: Stage,
        (shard, shards): (u16, u16),
        floor: Floor,
    ) -> Result<Self, StorageError> {
        let marker = Self::unwritten(directory.join(MARKER), stage, shard, shards);
        marker.written.lock().floor = floor;
        marker.replace().map_err(|error| StorageError::Io { path: marker.path.clone(), error })?;
        Ok(marker)
    }

    /// The same marker, written by another path that leads to its directory.
    pub fn written_in(self, directory: &Path) -> Self {
        Self { path: directory.join(MARKER), ..self }
    }

    /// Stores a new stage.
    pub fn set_stage(&mut self, stage: Stage) -> Result<(), StorageError> {
        if self.stage == stage {
            return Ok(());
        }
        self.stage = stage;
        self.replace().map_err(|error| StorageError::Io { path: self.path.clone(), error })
    }

    /// Whether the shard is filled from a stream, which holds what comes after the last sync.
    pub fn is_filled_from_stream(&self) -> bool {
        self.written.lock().is_filled_from_stream
    }

    /// Stores that the shard is filled from a stream. A broken log may have lost the record that says so.
    pub fn note_filled_from_stream(&self) -> Result<(), StorageError> {
        if std::mem::replace(&mut self.written.lock().is_filled_from_stream, true) {
            return Ok(());
        }
        self.replace().map_err(|error| {
            self.written.lock().is_filled_from_stream = false;
            StorageError::Io { path: self.path.clone(), error }
        })
    }

    /// What the shard is; `None` if the marker does not say it.
    pub fn identity(&self) -> Option<ShardIdentity> {
        self.written.lock().identity
    }

    /// Stores what the shard is; synced once this returns.
    pub fn set_identity(&self, identity: ShardIdentity) -> Result<(), StorageError> {
        let before = self.written.lock().identity.replace(identity);
        if before == Some(identity) {
            return Ok(());
        }
        self.replace().map_err(|error| {
            self.written.lock().identity = before;
            StorageError::Io { path: self.path.clone(), error }
        })
    }

    fn replace(&self) -> std::io::Result<()> {
        let mut written = self.written.lock();
        let mut bytes = vec![0; FILE_BYTES];
        place(&mut bytes, 0, &encode_head(self.stage, self.shard, self.shards));
        if let Some(identity) = written.identity {
            place(&mut bytes, IDENTITY_AT, &encode_identity(identity));
        }
        if written.is_filled_from_stream {
            place(&mut bytes, SOURCE_AT, &with_checksum(SOURCE.to_vec()));
        }
        for at in FLOORS_AT {
            place(&mut bytes, at, &encode_floor(written.floor));
        }
        // The file that is open is replaced by another one of this name.
        written.file = None;
        written.file = Some(replace_file(&self.path, &self.path.with_file_name(NEW), &bytes)?);
        Ok(())
    }

    pub fn floor(&self) -> Floor {
        self.written.lock().floor
    }

    /// Raises the floor to what was synced. It is written but not synced: the system brings it to disk later.
    pub fn raise_floor(&self, floor: Floor) {
        let mut written = self.written.lock();
        let floor = written.floor.max(floor);
        if floor == written.floor {
            return;
        }
        let (next_slot, at) =
            (written.next_slot, FLOORS_AT.get(written.next_slot).copied().unwrap_or_default());
        if let Err(error) = self.write_at(&mut written, &encode_floor(floor), at) {
            // The data itself is on disk. The only consequence is that its loss would not be noticed.
            tracing::debug!(path = %self.path.display(), %error, "the applied sequence that was synced could not be written to the marker");
            return;
        }
        written.floor = floor;
        written.next_slot = 1 - next_slot;
    }

    fn write_at(&self, written: &mut Written, bytes: &[u8], at: usize) -> std::io::Result<()> {
        if written.file.is_none() {
            let no_link = OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(&self.path)?;
            written.file = Some(no_link);
        }
        let at = u64::try_from(at).map_err(std::io::Error::other)?;
        written.file.as_ref().map_or(Ok(()), |file| file.write_all_at(bytes, at))
    }

    /// Syncs the floor to disk.
    pub fn sync(&self) {
        let synced = self.written.lock().file.as_ref().map_or(Ok(()), File::sync_data);
        if let Err(error) = synced {
            tracing::debug!(path = %self.path.display(), %error, "the applied sequence in the marker could not be synced");
        }
    }
}

fn place(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes.iter_mut().skip(at).zip(part).for_each(|(to, from)| *to = *from);
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

/// `length` bytes from `at`, if the checksum after them is right.
fn checked(bytes: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    let (part, rest) = bytes.get(at..)?.split_at_checked(length)?;
    (crc32c::crc32c(part).to_le_bytes() == *rest.first_chunk::<4>()?).then_some(part)
}

pub(super) fn encode_head(stage: Stage, shard: u16, shards: u16) -> Vec<u8> {
    let stage: u32 = match stage {
        Stage::Creating => 0,
        Stage::Created => 1,
        Stage::InService => 2,
    };
    let head = [&MAGIC[..], &FORMAT.to_le_bytes(), &stage.to_le_bytes()].concat();
    with_checksum([&head[..], &shard.to_le_bytes(), &shards.to_le_bytes()].concat())
}

/// `None`: it is damaged.
fn decode_head(directory: &Path, bytes: &[u8]) -> Result<Option<(Stage, u16, u16)>, StorageError> {
    let Some(head) = checked(bytes, 0, HEAD_BYTES) else { return Ok(None) };
    let number = |at: usize| {
        head.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let half = |at: usize| {
        head.get(at..).and_then(|rest| rest.first_chunk::<2>()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
    };
    let found = number(8);
    if found != FORMAT {
        return Err(StorageError::OtherFormat { path: directory.to_owned(), found, known: FORMAT });
    }
    let stage = match number(12) {
        0 => Stage::Creating,
        1 => Stage::Created,
        2 => Stage::InService,
        _ => return Ok(None),
    };
    Ok(head.starts_with(MAGIC).then_some((stage, half(16), half(18))))
}

fn encode_identity(identity: ShardIdentity) -> Vec<u8> {
    let ShardIdentity { service, lineage, epoch, opening, opened_before } = identity;
    let service = service.map_or(0, |service| service.0).to_le_bytes();
    let lineage = lineage.map_or(0, |lineage| lineage.0).to_le_bytes();
    let numbers = [epoch, opening, opened_before].map(u64::to_le_bytes).concat();
    with_checksum([&service[..], &lineage[..], &numbers].concat())
}

fn decode_identity(bytes: &[u8]) -> Option<ShardIdentity> {
    let (ids, numbers) = checked(bytes, IDENTITY_AT, IDENTITY_BYTES)?.split_at_checked(32)?;
    let [service, lineage] = *ids.as_chunks::<16>().0 else { return None };
    let [service, lineage] = [service, lineage].map(u128::from_le_bytes);
    let [epoch, opening, opened_before] = *numbers.as_chunks::<8>().0 else { return None };
    let [epoch, opening, opened_before] = [epoch, opening, opened_before].map(u64::from_le_bytes);
    let service = (service > 0).then_some(ServiceId(service));
    let lineage = (lineage > 0).then_some(Lineage(lineage));
    Some(ShardIdentity { service, lineage, epoch, opening, opened_before })
}

pub(super) fn encode_floor(floor: Floor) -> Vec<u8> {
    with_checksum([floor.applied.to_le_bytes(), floor.rocksdb_sequence.to_le_bytes()].concat())
}

fn decode_floor(bytes: &[u8], at: usize) -> Option<Floor> {
    let (applied, rocksdb_sequence) = checked(bytes, at, FLOOR_BYTES)?.split_first_chunk::<8>()?;
    let rocksdb_sequence = u64::from_le_bytes(*rocksdb_sequence.first_chunk::<8>()?);
    Some(Floor { applied: u64::from_le_bytes(*applied), rocksdb_sequence })
}
