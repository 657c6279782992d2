//! The layout of a data directory.

use std::path::{Path, PathBuf};

use crate::storage::error::StorageError;
use crate::storage::files::{MARKER, Marker, has_marker, holds_a_database, marked_shards};
use crate::types::{ShardId, decimal};

/// The file of a data directory into which a snapshot is being put: some shards may be those of before, and
/// others those of the snapshot. `snapshot` writes and removes it.
pub const RESTORING: &str = "RESTORING";

/// A shard's directory.
#[must_use]
pub fn shard_directory(data_dir: &Path, shard: ShardId) -> PathBuf {
    data_dir.join(directory_name(shard))
}

fn directory_name(shard: ShardId) -> String {
    format!("shard-{:03}", shard.0)
}

/// How many shards a data directory holds: 0 for one that does not exist or is empty.
///
/// # Errors
/// When it cannot be read.
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

/// How many shards a data directory has had in service; `None` if it is new, or was made by a version that
/// did not record that.
///
/// # Errors
/// When it cannot be read, is from a newer ranktree, or a restore was interrupted.
pub fn known_shards(data_dir: &Path) -> Result<Option<u16>, StorageError> {
    check_directory(data_dir)?;
    let path = data_dir.join(RESTORING);
    match path.try_exists() {
        Ok(false) => {}
        Ok(true) => return Err(StorageError::HalfRestored(data_dir.to_owned())),
        Err(error) => return Err(StorageError::Io { path, error }),
    }
    marked_shards(data_dir)
}

/// Whether a directory is a data directory, or a shard's directory, by its marker.
#[must_use]
pub fn is_of_data(directory: &Path) -> bool {
    directory.join(MARKER).is_file()
}

/// Refuses a path that is not a directory, such as a configuration file given by mistake.
fn check_directory(data_dir: &Path) -> Result<(), StorageError> {
    match std::fs::metadata(data_dir) {
        Ok(found) if !found.is_dir() => Err(StorageError::NotADirectory(data_dir.to_owned())),
        _ => Ok(()),
    }
}

/// Refuses a shard's directory that has lost its marker, because nothing else would show what more it lost:
/// RocksDB does not notice a missing log. A data directory of a version before markers has none either; it is
/// recognised by its own marker, which is missing too.
///
/// # Errors
/// When the marker is gone.
pub fn check_marked(data_dir: &Path, shard: ShardId) -> Result<(), StorageError> {
    let path = shard_directory(data_dir, shard);
    if known_shards(data_dir)?.is_none() || !holds_a_database(&path)? || has_marker(&path)? {
        return Ok(());
    }
    Err(StorageError::damaged(
        &path,
        format!(
            "its file {MARKER} is missing, which records how far the data was synced, so it is unknown \
             whether other data is missing too; if the directory is a complete copy that was made with an \
             older ranktree, which did not write this file, remove {} to start with the copy as it is",
            data_dir.join(MARKER).display()
        ),
    ))
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
/// When it cannot be read, or is from a newer ranktree.
pub fn filled_from(data_dir: &Path, shard: ShardId) -> Result<FilledFrom, StorageError> {
    let marker = Marker::read(&shard_directory(data_dir, shard))?;
    Ok(match marker {
        Some(marker) if marker.is_filled_from_stream() => FilledFrom::Stream,
        Some(marker) if marker.floor().applied > 0 => FilledFrom::EmbeddedQueue,
        Some(_) | None => FilledFrom::Unknown,
    })
}

/// The first of this many shards that has no directory.
#[must_use]
pub fn missing_shard(data_dir: &Path, shards: u16) -> Option<ShardId> {
    (0..shards).map(ShardId).find(|id| !shard_directory(data_dir, *id).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(missing_shard(folder.path(), 13), Some(ShardId(1)));
    }
}
