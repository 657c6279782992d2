//! The log lines about disks that cannot be read while reads are answered.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::storage::StorageError;
use crate::types::ShardId;

/// The least time between two log lines about metadata that cannot be read.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Logs that the disk cannot be read, at most every ten seconds.
pub(super) fn log_unreadable(shard: ShardId, error: &StorageError) {
    static LAST_LINE: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST_LINE.lock();
    if last.is_none_or(|at| at.elapsed() >= LINE_INTERVAL) {
        *last = Some(Instant::now());
        match error {
            StorageError::Closed => {
                tracing::warn!(%shard, "metadata and profiles are answered as null until the shard's storage is open again; /readyz says why it is closed");
            }
            _ => {
                tracing::error!(%shard, %error, "metadata or profiles cannot be read and are answered as null; ranktree verify tells what is damaged");
            }
        }
    }
}
