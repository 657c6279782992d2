//! When a shard is checkpointed, and the thread that does it beside the writer.
//!
//! Knows: one checkpoint at a time per shard, and per process no more than cores can bear. Must not know: what a
//! checkpoint consists of (`storage::checkpoint`).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::state::Shard;
use crate::storage::{Checkpoint, CheckpointFigures, StorageError, Store};
use crate::types::Sequence;

/// When a checkpoint is due. Start-up replays what came after the last one, at about a microsecond a change, and a
/// checkpoint of everything costs about as much as a fifth of the members' changes do: so it waits for as many as
/// there are members.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointPolicy {
    /// Changes since the last one, at least.
    pub changes_min: u64,
    /// And as a share of the members, in percent.
    pub changes_percent: u64,
    /// However few changes there are, after this long.
    pub interval: Duration,
}

impl Default for CheckpointPolicy {
    fn default() -> Self {
        Self { changes_min: 1_000_000, changes_percent: 100, interval: Duration::from_secs(300) }
    }
}

/// A checkpoint that the queue wants is not begun so soon after one that failed: the disk may be full.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Lets one checkpoint of the process write at a time: they are for the background, and one core of it.
pub type CheckpointGate = Arc<Mutex<()>>;

/// Lower than whoever reads and writes; on Linux a thread has a priority of its own.
const NICENESS: i32 = 10;

/// Makes the calling thread wait for a core rather than let readers wait for it.
fn yield_to_others() {
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS) {
        tracing::debug!(%error, "a checkpoint's thread keeps its priority");
    }
}

/// A checkpoint that a thread is writing.
struct Running {
    thread: JoinHandle<()>,
    /// Shared with the thread: should it end without a word, what the checkpoint owes the disk is not forgotten.
    checkpoint: Arc<Checkpoint>,
    written: Receiver<Result<CheckpointFigures, StorageError>>,
}

/// A shard's checkpoints.
pub struct Checkpointer {
    policy: CheckpointPolicy,
    gate: CheckpointGate,
    changes: u64,
    failures: u64,
    failed: Option<Instant>,
    last: Instant,
    running: Option<Running>,
}

impl Checkpointer {
    /// # Arguments
    /// `changes`: how many the log holds already after the last checkpoint.
    #[must_use]
    pub fn new(policy: CheckpointPolicy, gate: CheckpointGate, changes: u64) -> Self {
        Self { policy, gate, changes, failures: 0, failed: None, last: Instant::now(), running: None }
    }

    /// Counts committed changes.
    pub fn count(&mut self, changes: u64) {
        self.changes += changes;
    }

    #[must_use]
    pub fn is_due(&self, members: u64) -> bool {
        let enough = self.policy.changes_min.max(members * self.policy.changes_percent / 100);
        let old = self.last.elapsed() >= self.policy.interval;
        self.running.is_none() && self.changes > 0 && (self.changes >= enough || old)
    }

    /// Whether one can begin that is not due yet: there is something to put into it, and the last did not just fail.
    #[must_use]
    pub fn can_begin(&self) -> bool {
        let failed_just_now = self.failed.is_some_and(|failed| failed.elapsed() < PAUSE_AFTER_FAILURE);
        self.running.is_none() && self.changes > 0 && !failed_just_now
    }

    /// Changes committed since the last checkpoint began.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Checkpoints that failed since the start.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Whether anything was committed since the last checkpoint began.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.changes > 0
    }

    /// Begins a checkpoint of the shard as it is now, and returns while it is written.
    pub fn start(&mut self, store: Arc<Store>, shard: &Arc<RwLock<Shard>>) {
        let checkpoint = Arc::new(Checkpoint::begin(&mut shard.write()));
        self.changes = 0;
        self.last = Instant::now();
        let (sender, written) = channel();
        let (its_checkpoint, its_shard, gate) =
            (Arc::clone(&checkpoint), Arc::clone(shard), Arc::clone(&self.gate));
        let name = format!("checkpoint-{}", store.shard());
        let write = move || {
            yield_to_others();
            let written = {
                let _turn = gate.lock();
                its_checkpoint.write(&store, &its_shard)
            };
            // Whoever waits for the outcome may open the directory again.
            drop(store);
            // The writer may be gone; the checkpoint is on disk all the same.
            let _ = sender.send(written);
        };
        match std::thread::Builder::new().name(name).spawn(write) {
            Ok(thread) => self.running = Some(Running { thread, checkpoint, written }),
            Err(error) => {
                tracing::error!(%error, "no thread could be had for a checkpoint; it will be tried again");
                self.give_up(&checkpoint, shard);
            }
        }
    }

    /// Takes note of a checkpoint that has ended. Its sequence and figures, if it succeeded.
    pub fn poll(&mut self, shard: &RwLock<Shard>) -> Option<(Sequence, CheckpointFigures)> {
        let written = match self.running.as_ref()?.written.try_recv() {
            Ok(written) => Some(written),
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => None,
        };
        self.conclude(written, shard)
    }

    /// Waits for the checkpoint under way, if there is one.
    pub fn wait(&mut self, shard: &RwLock<Shard>) -> Option<(Sequence, CheckpointFigures)> {
        let written = self.running.as_ref()?.written.recv().ok();
        self.conclude(written, shard)
    }

    /// `None`: its thread panicked, and has reported that itself.
    fn conclude(
        &mut self,
        written: Option<Result<CheckpointFigures, StorageError>>,
        shard: &RwLock<Shard>,
    ) -> Option<(Sequence, CheckpointFigures)> {
        let Running { thread, checkpoint, .. } = self.running.take()?;
        // It has nothing left to do, and the store that it held is free once it has ended.
        let _ = thread.join();
        match written {
            Some(Ok(figures)) => {
                checkpoint.complete(&mut shard.write());
                self.failed = None;
                return Some((checkpoint.applied().sequence, figures));
            }
            Some(Err(error)) => tracing::warn!(%error, "a checkpoint failed; it will be tried again"),
            None => tracing::error!("a checkpoint ended without an outcome; it will be tried again"),
        }
        self.give_up(&checkpoint, shard);
        None
    }

    fn give_up(&mut self, checkpoint: &Checkpoint, shard: &RwLock<Shard>) {
        checkpoint.abandon(&mut shard.write());
        self.failures += 1;
        self.failed = Some(Instant::now());
        // Due again at the next interval, not at once: the disk may be full.
        self.changes += 1;
    }
}
