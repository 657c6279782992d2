//! The layout of a data directory.

use std::path::{Path, PathBuf};

use crate::regular_file::is_there;
use crate::storage::error::StorageError;
use crate::storage::files::{
    DataLayout, DataMarker, MARKER, Marker, Stage, has_marker, holds_a_database, is_of_a_database,
    read_data_marker,
};
use crate::storage::identity::ServiceId;
use crate::storage::shard_directory::{directory_name, shard_directory};
use crate::types::{ShardId, ShardSet, decimal};

/// The file of a data directory into which a snapshot is being put: some shards may be those of before, and
/// others those of the snapshot. `snapshot` writes and removes it.
pub const RESTORING: &str = "RESTORING";

/// The file that says what a snapshot holds; `snapshot` writes and reads it.
pub const SNAPSHOT: &str = "SNAPSHOT.json";

/// RocksDB's file that names the manifest in use: every shard's directory has one, and no data directory.
const CURRENT: &str = "CURRENT";

/// How many shards a data directory holds: 0 for one that does not exist or is empty.
pub fn shards_in(data_dir: &Path) -> Result<u16, StorageError> {
    check_directory(data_dir)?;
    let entries = match std::fs::read_dir(data_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(StorageError::Io { path: data_dir.to_owned(), error }),
    };
    // Only names that `shard_directory` makes count. A directory with a similar name must not be taken for a
    // shard.
    let number = |name: &str| {
        let id = ShardId(decimal(name.strip_prefix("shard-")?)?);
        (name == directory_name(id)).then_some(id.0)
    };
    let highest = entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?)).max();
    Ok(highest.map_or(0, |highest| highest.saturating_add(1)))
}

/// How many shards the service of a data directory has; see [`known_layout`].
pub fn known_shards(data_dir: &Path) -> Result<Option<u16>, StorageError> {
    Ok(known_layout(data_dir)?.map(|layout| layout.shards))
}

/// Which shards a data directory has had in service; `None` if it is new.
///
/// # Errors
/// When it cannot be read, has another format, or a restore was interrupted.
pub fn known_layout(data_dir: &Path) -> Result<Option<DataLayout>, StorageError> {
    Ok(known_data(data_dir)?.map(|known| known.layout))
}

/// What a data directory has recorded of itself and its shards; `None` as for [`known_layout`].
pub fn known_data(data_dir: &Path) -> Result<Option<DataMarker>, StorageError> {
    check_directory(data_dir)?;
    let path = data_dir.join(RESTORING);
    match is_there(&path) {
        Ok(false) => {}
        Ok(true) => return Err(StorageError::HalfRestored(data_dir.to_owned())),
        Err(error) => return Err(StorageError::Io { path, error }),
    }
    read_data_marker(data_dir)
}

/// Refuses a snapshot, of which a start would use up the files.
///
/// # Errors
/// [`StorageError::OfASnapshot`].
pub fn check_no_snapshot(data_dir: &Path) -> Result<(), StorageError> {
    if data_dir.join(SNAPSHOT).exists() {
        return Err(StorageError::OfASnapshot(data_dir.to_owned()));
    }
    Ok(())
}

/// The data directory, or the shard's directory, that a place is in or would be in, or that it is itself.
///
/// # Errors
/// When there is no current directory that a relative path could be of.
pub fn data_around(place: &Path) -> std::io::Result<Option<PathBuf>> {
    let place = std::path::absolute(place)?;
    let existing = place.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    let mut around = existing.as_deref().into_iter().flat_map(Path::ancestors);
    let is_data = |directory: &&Path| {
        std::fs::symlink_metadata(directory.join(MARKER)).is_ok_and(|found| !found.is_dir())
    };
    Ok(around.find(is_data).map(Path::to_owned))
}

/// Refuses a path that is given by mistake: one that is not a directory, such as a configuration file, and a
/// shard's own directory, whose marker would be taken for a damaged one of a data directory, and replaced.
///
/// # Errors
/// When it is one of these.
pub fn check_directory(data_dir: &Path) -> Result<(), StorageError> {
    match std::fs::metadata(data_dir) {
        Ok(found) if !found.is_dir() => Err(StorageError::NotADirectory(data_dir.to_owned())),
        _ if data_dir.join(CURRENT).is_file() => Err(StorageError::OfOneShard(data_dir.to_owned())),
        _ => Ok(()),
    }
}

/// Refuses a shard's directory that has lost its marker, because nothing else would show what more it lost:
/// RocksDB does not notice a missing log. Without the data directory's own marker, an operator has said that
/// the copy is complete.
///
/// # Errors
/// When the marker is gone.
pub fn check_marked(data_dir: &Path, shard: ShardId) -> Result<(), StorageError> {
    let path = shard_directory(data_dir, shard);
    if known_shards(data_dir)?.is_none() || !holds_a_database(&path)? {
        return Ok(());
    }
    if has_marker(&path)? {
        return if has_lost(data_dir, shard)? { Err(StorageError::Empty(path)) } else { Ok(()) };
    }
    Err(StorageError::damaged(
        &path,
        format!(
            "its file {MARKER} is missing, which records how far the data was synced, so it is unknown \
             whether other data is missing too"
        ),
    ))
}

/// Whether a shard has no data although the data directory had it in service once: its directory
/// is gone or empty, or a start has made a new one since, which waits for a copy of another node's data.
pub fn has_lost(data_dir: &Path, shard: ShardId) -> Result<bool, StorageError> {
    let path = shard_directory(data_dir, shard);
    if !known_layout(data_dir)?.is_some_and(|known| known.own.contains(shard)) {
        return Ok(false);
    }
    Ok(!holds_a_database(&path)?
        || Marker::read(&path)?.is_some_and(|marker| {
            marker.damage.is_none() && marker.stage == Stage::Created && marker.floor().applied == 0
        }))
}

/// Removes the shard that a start has made in the place of a lost one, as far as it is still empty.
pub fn remove_in_place_of_lost(data_dir: &Path, shard: ShardId) -> Result<(), StorageError> {
    let path = shard_directory(data_dir, shard);
    if !has_lost(data_dir, shard)? || !holds_a_database(&path)? {
        return Ok(());
    }
    let failed = |error| StorageError::Io { path: path.clone(), error };
    let is_rocksdbs = |name: &str| is_of_a_database(name) || name == "LOCK" || name.starts_with("LOG");
    for entry in std::fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().is_some_and(is_rocksdbs) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    // Whatever else is there is not the shard's.
    let _ = std::fs::remove_dir(path.join("staging"));
    let _ = std::fs::remove_dir(&path);
    Ok(())
}

/// The origin of a shard's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilledFrom {
    /// It is empty, or has no readable marker.
    Unknown,
    /// The embedded queue.
    EmbeddedQueue,
    /// A NATS stream.
    Stream,
}

/// The origin of a shard's data according to its marker. Also works while a service has the shard open.
///
/// # Errors
/// When it cannot be read, or has another format.
pub fn filled_from(data_dir: &Path, shard: ShardId) -> Result<FilledFrom, StorageError> {
    let marker = Marker::read(&shard_directory(data_dir, shard))?;
    Ok(match marker {
        Some(marker) if marker.is_filled_from_stream() => FilledFrom::Stream,
        Some(marker) if marker.floor().applied > 0 => FilledFrom::EmbeddedQueue,
        Some(_) | None => FilledFrom::Unknown,
    })
}

/// The service of a shard's data according to its marker.
///
/// # Errors
/// When the marker cannot be read, or has another format.
pub fn service_in(shard_directory: &Path) -> Result<Option<ServiceId>, StorageError> {
    Ok(Marker::read(shard_directory)?.and_then(|marker| marker.identity()?.service))
}

/// The first of these shards that has no directory.
pub fn missing_shard(data_dir: &Path, shards: &ShardSet) -> Option<ShardId> {
    shards.iter().find(|id| !shard_directory(data_dir, *id).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{StorageResources, Store, mark_layout};

    #[test]
    fn file_in_the_place_of_the_data_directory_is_refused_with_advice() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let refused = [shards_in(file.path()).err(), known_shards(file.path()).err()];
        for error in refused {
            let said = error.expect("it is a file").to_string();
            assert!(said.contains("is not a directory; give the directory"), "{said}");
        }
        assert_eq!(shards_in(&file.path().with_extension("none")).expect("nothing is there yet"), 0);
    }

    #[test]
    fn directory_of_one_shard_is_not_taken_for_a_data_directory() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let resources = StorageResources::new(1 << 20, 1);
        let shard = shard_directory(folder.path(), ShardId(0));
        drop(Store::open(&shard, ShardId(0), 1, &resources).expect("it opens"));
        let marker = || std::fs::read(shard.join(MARKER)).expect("it has one");
        let before = marker();
        for error in [shards_in(&shard).err(), known_shards(&shard).err()] {
            let said = error.expect("it is a shard's").to_string();
            assert!(said.contains("is the directory of a single shard; give the one above"), "{said}");
        }
        assert_eq!(marker(), before);
        assert_eq!(shards_in(folder.path()).expect("the one above"), 1);
    }

    #[test]
    fn a_shard_made_in_place_of_a_lost_one_is_known_and_can_be_taken_away() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let resources = StorageResources::new(1 << 20, 1);
        let open = |shard| {
            Store::open(&shard_directory(folder.path(), ShardId(shard)), ShardId(shard), 2, &resources)
                .expect("it opens")
        };
        let lost = |shard| has_lost(folder.path(), ShardId(shard)).expect("readable");
        for shard in 0..2 {
            let mut store = open(shard);
            assert!(!lost(shard), "a first start makes all shards");
            store.mark_in_service().expect("the disk takes it");
        }
        mark_layout(folder.path(), &DataLayout::all(2)).expect("the disk takes it");
        assert!(!lost(0) && !lost(1));
        let path = shard_directory(folder.path(), ShardId(1));
        std::fs::remove_dir_all(&path).expect("it is there");
        assert!(!lost(0) && lost(1));
        drop(open(1));
        assert!(lost(1), "the next start knows");
        assert!(matches!(check_marked(folder.path(), ShardId(1)), Err(StorageError::Empty(_))));
        for shard in 0..2 {
            remove_in_place_of_lost(folder.path(), ShardId(shard)).expect("the disk takes it");
        }
        assert!(!path.exists() && !lost(0));
        open(1).mark_in_service().expect("the disk takes it");
        assert!(!lost(1), "as a copy is marked");
    }

    #[test]
    fn only_directories_of_a_shards_own_name_count() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let count = |names: &[&str]| {
            for name in names {
                std::fs::create_dir(folder.path().join(name)).expect("it can be made");
            }
            shards_in(folder.path()).expect("it can be read")
        };
        assert_eq!(
            count(&["shard-+07", "shard-7", "shard-0007", "shard--01", "shard-007.old", "shard-", "x"]),
            0
        );
        assert_eq!(count(&["shard-000"]), 1);
        assert_eq!(count(&["shard-012"]), 13);
        assert_eq!(missing_shard(folder.path(), &ShardSet::first(13)), Some(ShardId(1)));
    }
}
