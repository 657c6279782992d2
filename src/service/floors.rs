//! Records in the data directory's marker how far each shard is, every few seconds and at a stop, so that an older
//! copy of a shard's directory is known for what it is.

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use crate::query::Node;
use crate::storage::raise_floors;

/// One small file is written and synced, if any shard has gone on.
const INTERVAL: Duration = Duration::from_secs(5);

/// Records for as long as the node runs.
pub async fn keep_floors(node: Weak<Node>, data_dir: PathBuf, has_streams: bool) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(node) = node.upgrade() else { return };
        let data_dir = data_dir.clone();
        // It logs what fails.
        let _ = tokio::task::spawn_blocking(move || note_floors(&node, &data_dir, has_streams)).await;
    }
}

/// Records how far each shard is.
///
/// # Arguments
/// `has_streams`: only checkpoints are synced; what came since is in the stream.
pub fn note_floors(node: &Node, data_dir: &Path, has_streams: bool) {
    let mut reached = Vec::with_capacity(node.shards.len());
    for shard in &node.shards {
        // A store that is closed at the moment is recorded later.
        let Ok(store) = shard.store.get() else { continue };
        let health = &shard.health;
        let floor = if has_streams { health.safe_sequence() } else { health.applied_sequence() };
        reached.push((shard.id, store.identity(), floor));
    }
    if let Err(error) = raise_floors(data_dir, &reached) {
        tracing::warn!(%error, "how far the shards are could not be recorded in the data directory; trying again");
    }
}
