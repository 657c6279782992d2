//! Records in the data directory's marker how far each shard is, every few seconds and at a stop, so that an
//! older copy of a shard's directory is known for what it is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::query::Node;
use crate::storage::{ShardIdentity, raise_floors};
use crate::types::ShardId;

/// One small file is written and synced, if any shard has gone on.
const INTERVAL: Duration = Duration::from_secs(5);

/// How far the shards of a data directory are.
pub struct Floors {
    data_dir: PathBuf,
    /// Only checkpoints are synced then; what came since is in the stream.
    has_streams: bool,
    /// What each shard was when its store was last seen open: writers close them when they end.
    known: Mutex<BTreeMap<ShardId, ShardIdentity>>,
    /// The last attempt failed, and the log says so.
    fails: AtomicBool,
}

impl Floors {
    /// Records for as long as the node runs.
    pub fn start(node: &Arc<Node>, data_dir: PathBuf, has_streams: bool) -> Arc<Self> {
        let (known, fails) = (Mutex::default(), AtomicBool::new(false));
        let floors = Arc::new(Self { data_dir, has_streams, known, fails });
        tokio::spawn(Arc::clone(&floors).keep(Arc::downgrade(node)));
        floors
    }

    async fn keep(self: Arc<Self>, node: Weak<Node>) {
        loop {
            let Some(node) = node.upgrade() else { return };
            let this = Arc::clone(&self);
            // It logs what fails.
            let _ = tokio::task::spawn_blocking(move || this.note(&node)).await;
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Records how far each shard is.
    pub fn note(&self, node: &Node) {
        let mut known = self.known.lock();
        let mut reached = Vec::with_capacity(node.shards.len());
        for shard in &node.shards {
            if let Ok(store) = shard.store.get() {
                known.insert(shard.id, store.identity());
            }
            let Some(identity) = known.get(&shard.id) else { continue };
            let health = &shard.health;
            let floor = if self.has_streams {
                health.safe_sequence()
            } else {
                health.get(|health| health.applied_sequence)
            };
            reached.push((shard.id, *identity, floor));
        }
        let raised = raise_floors(&self.data_dir, &reached);
        let was_failing = self.fails.swap(raised.is_err(), Ordering::Relaxed);
        if let Err(error) = raised
            && !was_failing
        {
            tracing::warn!(%error, "how far the shards are could not be recorded in the data directory; trying again");
        }
    }
}
