//! Work that is done apart from the threads that connections share.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::operations::admission::RequestPermit;
use crate::operations::failure::Failure;

/// Requests that read much from the disk at a time. Most of it is cached in memory, so more would only share
/// the cores.
const DISK_READS_AT_ONCE: usize = 8;

/// Where such work goes.
pub struct Offload {
    /// The runtime whose threads share their work.
    runtime: Handle,
    /// Permits to read much from the disk. More readers at once would only have more threads, and more
    /// memory, wait.
    disk_reads: Arc<Semaphore>,
}

impl Offload {
    /// Work is offloaded to the runtime that this is called in.
    pub(super) fn new() -> Self {
        Self { runtime: Handle::current(), disk_reads: Arc::new(Semaphore::new(DISK_READS_AT_ONCE)) }
    }

    /// Runs a future on the runtime's threads. It is dropped with this future. `None`: it panicked.
    pub async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        // A set of one task aborts it when the set is dropped.
        let mut set = JoinSet::new();
        set.spawn_on(work, &self.runtime);
        set.join_next().await?.ok()
    }

    /// Reads from the disk on a thread for blocking work, once fewer than eight others do.
    ///
    /// # Arguments
    /// `permit`: the request's. The reading holds it until it is done, whether or not the client still waits.
    ///
    /// # Errors
    /// When the reading panicked.
    pub async fn read_disk<T: Send + 'static>(
        &self,
        permit: Option<Arc<RequestPermit>>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = Arc::clone(&self.disk_reads).acquire_owned().await.map_err(|_| Failure::Internal)?;
        let read = move || {
            let (_permit, _turn) = (permit, turn);
            read()
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| Failure::Internal)
    }
}
