//! What all handlers share: the operations, the tokens, the limits.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::access::ActiveTokens;
use crate::http::guard::limits::Limits;
use crate::http::guard::refusal_log::RefusalLog;
use crate::http::guard::watchers::Watchers;
use crate::http::resources::scrapes::{RenderMetrics, Scrapes};
use crate::operations::Operations;
use crate::snapshot::Snapshots;

/// What all handlers share.
pub struct Api {
    pub operations: Arc<Operations>,
    pub(super) scrapes: Scrapes,
    pub limits: Limits,
    /// The tokens that requests need; `None` if everybody may do everything.
    pub access: Option<Arc<ActiveTokens>>,
    /// The copies that clients fetch; `None` if the node's data cannot be copied.
    pub snapshots: Option<Arc<Snapshots>>,
    pub(super) watchers: Arc<Watchers>,
    pub(super) refusal_log: RefusalLog,
    /// For each shard, whether it lagged too much to be ready when it was last asked.
    pub(super) lagging: Box<[AtomicBool]>,
}

impl Api {
    pub fn new(
        operations: Arc<Operations>,
        render_metrics: RenderMetrics,
        limits: Limits,
        access: Option<Arc<ActiveTokens>>,
        snapshots: Option<Arc<Snapshots>>,
    ) -> Self {
        let lagging = operations.node.shards.iter().map(|_| AtomicBool::new(false)).collect();
        Self {
            operations,
            scrapes: Scrapes::new(render_metrics),
            limits,
            access,
            snapshots,
            watchers: Watchers::new(limits.watchers),
            refusal_log: RefusalLog::new(),
            lagging,
        }
    }
}
