//! Where the shards of a data directory are.

use std::path::{Path, PathBuf};

use crate::storage::store::StorageError;
use crate::types::ShardId;

/// A shard's directory.
#[must_use]
pub fn shard_directory(data_dir: &Path, shard: ShardId) -> PathBuf {
    data_dir.join(format!("shard-{:03}", shard.0))
}

/// How many shards a data directory holds: 0 for one that does not exist or is empty.
///
/// # Errors
/// When it cannot be read.
pub fn shards_in(data_dir: &Path) -> Result<u16, StorageError> {
    let entries = match std::fs::read_dir(data_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(StorageError::Io { path: data_dir.to_owned(), error }),
    };
    let number = |name: &str| name.strip_prefix("shard-")?.parse::<u16>().ok();
    let highest = entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?)).max();
    Ok(highest.map_or(0, |highest| highest.saturating_add(1)))
}

/// The first of so many shards that has no directory.
#[must_use]
pub fn missing_shard(data_dir: &Path, shards: u16) -> Option<ShardId> {
    (0..shards).map(ShardId).find(|id| !shard_directory(data_dir, *id).exists())
}
