//! Where in a data directory a shard's files are.

use std::path::{Path, PathBuf};

use crate::types::ShardId;

/// A shard's directory.
pub fn shard_directory(data_dir: &Path, shard: ShardId) -> PathBuf {
    data_dir.join(directory_name(shard))
}

pub(super) fn directory_name(shard: ShardId) -> String {
    format!("shard-{:03}", shard.0)
}
