//! How much a shard's stream has grown, so that retention checks it in time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How much a stream has grown since retention checked it last. A small stream with a quick publisher
/// cannot wait a second for the next check.
#[derive(Default)]
pub struct Growth {
    bytes_since_check: AtomicU64,
    check_at_bytes: AtomicU64,
    check_due: Notify,
}

impl Growth {
    /// Notes bytes that the stream has brought.
    pub fn note(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.bytes_since_check.fetch_add(bytes, Ordering::Relaxed);
        let check_at_bytes = self.check_at_bytes.load(Ordering::Relaxed);
        if check_at_bytes > 0 && before < check_at_bytes && before + bytes >= check_at_bytes {
            self.check_due.notify_one();
        }
    }

    /// Notes a check of the stream. The next one is due after `next` bytes.
    pub fn note_check(&self, next: u64) {
        self.check_at_bytes.store(next, Ordering::Relaxed);
        self.bytes_since_check.store(0, Ordering::Relaxed);
    }

    /// Waits until a check is due, and no longer than `at_most`.
    pub async fn wait(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.check_due.notified()).await;
    }
}
