//! From an opened shard to a running one: its writer, on a thread of its own, and the handle that readers and
//! publishers have of it.

use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::watch;

use crate::applied_sequence::applied_sequence;
use crate::config::ServeConfig;
use crate::query::ShardHandle;
use crate::service::opening::OpenedShard;
use crate::state::{EarlyInstances, LogHashes, ShardTime};
use crate::types::Sequence;
use crate::writer::{
    CheckpointGate, CheckpointPolicy, Checkpointer, Gauges, JobSource, Parking, Registry, RejectErasure,
    RejectLog, RejectRetention, Writer,
};

/// What the writers of a node share.
pub struct Common<'a> {
    config: &'a ServeConfig,
    /// The number of all shards.
    shards: u16,
    registry: &'a Arc<Registry>,
    gate: CheckpointGate,
    reject_log: Arc<RejectLog>,
}

impl<'a> Common<'a> {
    pub fn new(config: &'a ServeConfig, shards: u16, registry: &'a Arc<Registry>) -> Self {
        Self { config, shards, registry, gate: CheckpointGate::default(), reject_log: Arc::default() }
    }
}

/// Starts a shard's writer.
///
/// # Errors
/// When the system has no thread for it.
pub fn start<S: JobSource + 'static>(
    shard: OpenedShard,
    source: S,
    parking: Option<Parking>,
    common: &Common<'_>,
) -> std::io::Result<(ShardHandle, JoinHandle<()>)> {
    let Common { config, shards, registry, gate, reject_log } = common;
    let (applied, applied_receiver) = applied_sequence(Sequence::default());
    let (starting, started) = watch::channel(false);
    let policy = CheckpointPolicy {
        interval: config.checkpoint_interval,
        changes_min: config.checkpoint_changes,
        ..CheckpointPolicy::default()
    };
    let handle = ShardHandle {
        id: shard.id,
        state: Arc::clone(&shard.state),
        applied: applied_receiver,
        health: Arc::clone(&shard.health),
        store: Arc::clone(&shard.store),
        started,
        summaries: Arc::default(),
    };
    let writer = Writer {
        id: shard.id,
        shards: *shards,
        source,
        shard: shard.state,
        store: shard.store,
        registry: Arc::clone(registry),
        health: shard.health,
        applied,
        started: starting,
        checkpointer: Checkpointer::new(policy, gate.clone(), shard.replayed),
        reopen: shard.reopen,
        gauges: Gauges::new(shard.id),
        rejects_kept: RejectRetention::default(),
        erasing: RejectErasure::default(),
        reject_log: Arc::clone(reject_log),
        parking,
        time: ShardTime::default(),
        early: EarlyInstances::default(),
        hashes: LogHashes::default(),
    };
    Ok((handle, spawn(writer)?))
}

fn spawn<S: JobSource + 'static>(writer: Writer<S>) -> std::io::Result<JoinHandle<()>> {
    let id = writer.id;
    std::thread::Builder::new().name(format!("writer-{id}")).spawn(move || {
        let run = std::panic::AssertUnwindSafe(|| writer.run());
        if std::panic::catch_unwind(run).is_err() {
            // The state in memory may be half changed. The one on disk is whole: a restart reads it.
            tracing::error!(shard = %id, "the writer panicked, which is a bug; ending the process, because ranks could be wrong");
            std::process::exit(70);
        }
    })
}
