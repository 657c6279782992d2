//! What handlers work with, and how many of them at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::query::Node;
use crate::writer::Registry;

/// What an operator may turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in work at a time, probes and metrics apart; more are shed with 503.
    pub requests_in_flight: usize,
    /// Messages that a shard may be behind its queue and still be called ready.
    pub lag: u64,
}

impl Default for Limits {
    fn default() -> Self {
        // 4,096 requests of a kilobyte or two are a few megabytes; a queue longer than that only makes all wait.
        Self { requests_in_flight: 4_096, lag: 10_000 }
    }
}

/// Everything that requests are answered from.
pub struct Api {
    pub node: Arc<Node>,
    pub registry: Arc<Registry>,
    /// Renders all metrics as Prometheus text.
    pub render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub limits: Limits,
    /// Held by whoever defines or drops a board, until every shard has it: two definitions never overtake each other
    /// on their way to the shards. A tokio one, because it is held while shards commit.
    pub(super) boards: tokio::sync::Mutex<()>,
    in_flight: AtomicUsize,
}

impl Api {
    #[must_use]
    pub fn new(
        node: Arc<Node>,
        registry: Arc<Registry>,
        render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
        limits: Limits,
    ) -> Self {
        let (boards, in_flight) = (tokio::sync::Mutex::new(()), AtomicUsize::new(0));
        Self { node, registry, render_metrics, limits, boards, in_flight }
    }

    /// Takes a request in, unless there are too many.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Admitted> {
        let others = self.in_flight.fetch_add(1, Ordering::Relaxed);
        // The guard gives back what was taken, also when it was one too many.
        let admitted = Admitted(Arc::clone(self));
        (others < self.limits.requests_in_flight).then_some(admitted)
    }

    /// Whether some shard applies nothing at the moment, so that answers may be behind.
    pub(super) fn is_stale(&self) -> bool {
        !self.node.shards.iter().all(|shard| shard.health.is_live())
    }
}

/// A request in work.
pub(super) struct Admitted(Arc<Api>);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
