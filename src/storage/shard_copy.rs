//! Copies a shard's files while the shard is in use.
//!
//! Knows: RocksDB's checkpoints, and which files a copy consists of. Must not know: where copies go, or who
//! asks for them. Called by `snapshot`.
//!
//! Table files are hard links, because they never change. RocksDB writes its memtables to files first, which
//! happens in the background; what the writer commits meanwhile is in the copied end of the log. So the copy
//! holds everything up to one applied sequence, and the writer is not held.

use std::path::Path;

use rocksdb::checkpoint::Checkpoint as LinkedFiles;

use crate::storage::error::StorageError;
use crate::storage::files::{Floor, Marker, Stage, is_of_a_database};
use crate::storage::identity::{ServiceId, ShardIdentity};
use crate::storage::options::StorageResources;
use crate::storage::store::Store;
use crate::types::{Sequence, ShardId};

/// Nothing but the meta record is read.
const CACHE_BYTES: usize = 1 << 20;
/// RocksDB makes a new one where it is missing.
const IDENTITY: &str = "IDENTITY";

/// A copy of a shard's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardCopy {
    pub shard: ShardId,
    /// The applied sequence that the copy holds.
    pub applied: Sequence,
    /// Identity of the queue that the sequence belongs to: empty without NATS.
    pub stream: String,
    /// Names and sizes, by name.
    pub files: Vec<(String, u64)>,
}

/// Copies a shard's files into a new directory. The files are not synced.
///
/// # Errors
/// When RocksDB or the disk refuses. Remains of the copy are left to the caller.
pub fn copy_shard(store: &Store, to: &Path) -> Result<ShardCopy, StorageError> {
    let (shard, shards) = (store.shard(), store.shards());
    // The copy is made by path: it must not get into another data directory.
    store.check_directory()?;
    {
        let _unchanged = store.hold_checkpoints();
        LinkedFiles::new(store.db())?.create_checkpoint(to)?;
    }
    // A copy has a marker of its own. The original's floor may have been raised since.
    let put = |floor| Marker::put(to, Stage::InService, (shard.0, shards), floor);
    put(Floor::default())?;
    let copy = Store::open_for_reading(to, shard, shards, &StorageResources::new(CACHE_BYTES, 1))?;
    let meta = copy.meta()?.ok_or_else(|| copy.damaged("the copy has no meta record"))?;
    let rocksdb_sequence = copy.db().latest_sequence_number();
    drop(copy);
    let marker = put(Floor { applied: meta.applied_sequence, rocksdb_sequence })?;
    marker.set_identity(meta.identity)?;
    if !meta.stream.is_empty() {
        marker.note_filled_from_stream()?;
    }
    Ok(ShardCopy { shard, applied: Sequence(meta.applied_sequence), stream: meta.stream, files: files(to)? })
}

/// Gives a copy of a shard, which nothing uses yet, a lineage of its own: what was the shard's before, and
/// goes on elsewhere or was moved aside, is not taken for this one any more.
///
/// # Arguments
/// `service`: the one that the copy is for; `None`: its own
///
/// # Errors
/// When it cannot be opened, or the disk refuses.
pub fn begin_lineage(
    copy: &Path,
    shard: ShardId,
    shards: u16,
    service: Option<ServiceId>,
) -> Result<(), StorageError> {
    let store = Store::open(copy, shard, shards, &StorageResources::new(CACHE_BYTES, 1))?;
    store.put_identity(ShardIdentity::unopened(service.or(store.identity().service)))
}

fn files(directory: &Path) -> Result<Vec<(String, u64)>, StorageError> {
    let failed = |error| StorageError::Io { path: directory.to_owned(), error };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|name| is_of_a_database(name) && *name != IDENTITY) {
            files.push((name.to_owned(), entry.metadata().map_err(failed)?.len()));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_an_open_shard_opens_and_has_its_applied_sequence() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let resources = StorageResources::new(1 << 20, 1);
        let path = folder.path().join("shard-001");
        let store = Store::open(&path, ShardId(1), 3, &resources).expect("a new shard");
        let to = folder.path().join("copy");
        let copy = copy_shard(&store, &to).expect("it can be copied");
        assert_eq!((copy.shard, copy.applied, copy.stream.as_str()), (ShardId(1), Sequence(0), ""));
        let names: Vec<_> = copy.files.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"CURRENT") && names.contains(&"RANKTREE"), "{names:?}");
        assert!(names.iter().all(|name| !name.starts_with("LO")), "{names:?}");
        // Only the listed files, elsewhere, while the original is open.
        let elsewhere = folder.path().join("elsewhere");
        std::fs::create_dir_all(&elsewhere).expect("it can be made");
        for (name, bytes) in &copy.files {
            let copied = std::fs::copy(to.join(name), elsewhere.join(name)).expect("it is there");
            assert_eq!(copied, *bytes, "{name}");
        }
        let opened = Store::open(&elsewhere, ShardId(1), 3, &resources).expect("it is whole");
        assert_eq!(opened.meta().expect("readable"), store.meta().expect("readable"));
        // As another shard it is refused.
        drop(opened);
        assert!(Store::open(&elsewhere, ShardId(0), 3, &resources).is_err());
    }
}
