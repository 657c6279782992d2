//! What handlers work with, and how many of them at a time.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::access::Access;
use crate::http::error::Problem;
use crate::http::refusals::Refusals;
use crate::metrics::HTTP_REQUESTS_SHED_TOTAL;
use crate::query::Node;
use crate::queue::Publishers;
use crate::queue::nats::BoardsStream;
use crate::writer::Registry;

/// Requests that read much from the disk at a time. Most of it is in memory, so that more would only share the cores.
const DISK_READS_AT_ONCE: usize = 8;

/// What an operator may turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in work at a time, probes and metrics apart; more are shed with 503.
    pub requests_in_flight: usize,
    /// Bytes that the bodies of requests in work may have together; a request that would exceed it is shed.
    pub body_bytes_in_flight: usize,
    /// Bytes that the answers of requests in work may have together, until they are written; one that would exceed it is
    /// shed, a write before it is published.
    pub answer_bytes_in_flight: usize,
    /// Messages that a shard may be behind its queue and still be called ready.
    pub lag: u64,
    /// How long a body may take to arrive.
    pub body: Duration,
    /// How long a body may take to get on at all.
    pub body_stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // A quarter of the connections, each of which has one request at a time: a queue longer than that only makes all
        // wait. Of the largest bodies, 128 at a time keep any disk busy.
        // At a mebibyte, 30 seconds are 35 kB/s.
        Self {
            requests_in_flight: 1_024,
            body_bytes_in_flight: 128 << 20,
            // A page of 1,000 entries with metadata takes 1.3 MB, a request of 4,000 boards 7 MB at most.
            answer_bytes_in_flight: 128 << 20,
            lag: 10_000,
            body: Duration::from_secs(30),
            body_stall: Duration::from_secs(10),
        }
    }
}

/// Everything that requests are answered from.
pub struct Api {
    pub node: Arc<Node>,
    pub publishers: Arc<Publishers>,
    pub registry: Arc<Registry>,
    /// Renders all metrics as Prometheus text.
    pub render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub limits: Limits,
    /// Whose tokens are needed; `None`: none are, everybody may do everything.
    pub access: Option<Arc<Access>>,
    /// Where boards are decided, if not by the registry alone.
    pub boards_stream: Option<Arc<BoardsStream>>,
    /// Held by whoever defines or drops a board, until every shard has it: two definitions never overtake each other
    /// on their way to the shards. A tokio one, because it is held while shards commit.
    pub(super) boards: tokio::sync::Mutex<()>,
    pub(super) refusals: Refusals,
    /// Where work goes on that takes long: connections share few threads.
    aside: Handle,
    in_flight: AtomicUsize,
    /// Bytes of bodies held by requests in work.
    body_bytes: AtomicUsize,
    /// Bytes of answers in the making or not written yet.
    pub(super) answer_bytes: AtomicUsize,
    /// Turns of those who read much from the disk: more at once would only have more threads, and more memory, wait.
    disk_reads: Arc<Semaphore>,
}

impl Api {
    /// What takes long is done on the runtime that this is called in.
    #[must_use]
    pub fn new(
        node: Arc<Node>,
        publishers: Arc<Publishers>,
        registry: Arc<Registry>,
        render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
        limits: Limits,
        access: Option<Arc<Access>>,
        boards_stream: Option<Arc<BoardsStream>>,
    ) -> Self {
        // There from the start, so that its rate can be asked for.
        metrics::counter!(HTTP_REQUESTS_SHED_TOTAL).increment(0);
        Self {
            node,
            publishers,
            registry,
            render_metrics,
            limits,
            access,
            boards_stream,
            boards: tokio::sync::Mutex::new(()),
            refusals: Refusals::new(),
            aside: Handle::current(),
            in_flight: AtomicUsize::new(0),
            body_bytes: AtomicUsize::new(0),
            answer_bytes: AtomicUsize::new(0),
            disk_reads: Arc::new(Semaphore::new(DISK_READS_AT_ONCE)),
        }
    }

    /// Takes a request into work, unless there are too many.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Admitted> {
        let others = self.in_flight.fetch_add(1, Ordering::Relaxed);
        // The guard gives back what was taken, also when it was one too many.
        let admitted = Admitted(Arc::clone(self));
        (others < self.limits.requests_in_flight).then_some(admitted)
    }

    /// Requests in work.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Has work done apart from the threads that connections share. `None`: it panicked.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        // A set of one ends with whoever waits for it.
        let mut set = JoinSet::new();
        set.spawn_on(work, &self.aside);
        set.join_next().await?.ok()
    }

    /// Reads from the disk on a thread of its own, when it is this one's turn.
    ///
    /// # Arguments
    /// `place`: the request's, which it keeps until the reading is done, whether or not its client still waits.
    ///
    /// # Errors
    /// When the reading panicked.
    pub(super) async fn read_disk<T: Send + 'static>(
        &self,
        place: Option<Arc<Admitted>>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = Arc::clone(&self.disk_reads).acquire_owned().await.map_err(|_| Problem::internal())?;
        let read = move || {
            let (_place, _turn) = (place, turn);
            read()
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| Problem::internal())
    }

    /// Whether some shard applies nothing at the moment, so that answers may be behind.
    pub(super) fn is_stale(&self) -> bool {
        !self.node.shards.iter().all(|shard| shard.health.is_live())
    }
}

/// Counts a request that is turned away because there are too many of something.
pub(super) fn note_shed() {
    metrics::counter!(HTTP_REQUESTS_SHED_TOTAL).increment(1);
}

/// Memory that a request's body takes, counted while it is read and given back with the request.
pub(super) struct BodyBytes {
    api: Arc<Api>,
    taken: usize,
}

impl BodyBytes {
    pub(super) fn none(api: &Arc<Api>) -> Self {
        Self { api: Arc::clone(api), taken: 0 }
    }

    /// Takes more, unless all bodies together are too large; what was taken is given back in either case.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        self.taken += bytes;
        self.api.body_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
            <= self.api.limits.body_bytes_in_flight
    }
}

impl Drop for BodyBytes {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.api.body_bytes.fetch_sub(self.taken, Ordering::Relaxed);
        }
    }
}

/// A request's place among those in work.
pub(super) struct Admitted(Arc<Api>);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
