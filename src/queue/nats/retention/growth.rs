//! How much a shard's stream has grown, so that retention looks at it in time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How much a stream has grown since retention looked at it last. A small stream with a quick publisher
/// cannot wait a second for the next look.
#[derive(Default)]
pub struct Growth {
    unseen: AtomicU64,
    look_at: AtomicU64,
    looks: Notify,
}

impl Growth {
    /// Notes bytes that the stream has brought.
    pub fn note(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.unseen.fetch_add(bytes, Ordering::Relaxed);
        let look_at = self.look_at.load(Ordering::Relaxed);
        if look_at > 0 && before < look_at && before + bytes >= look_at {
            self.looks.notify_one();
        }
    }

    /// Notes a look at the stream. The next one is due after `next` bytes.
    pub fn seen(&self, next: u64) {
        self.look_at.store(next, Ordering::Relaxed);
        self.unseen.store(0, Ordering::Relaxed);
    }

    /// Waits until a look is due, and no longer than `at_most`.
    pub async fn wait(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.looks.notified()).await;
    }
}
