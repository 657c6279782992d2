//! When a shard is checkpointed, and the thread that does it beside the writer.
//!
//! Knows: one checkpoint at a time per shard, and that it begins when the shard has its turn and not before:
//! from its beginning on, the writer sets aside every leaf that it changes. Must not know: what a checkpoint
//! consists of (`storage::checkpoint`), or who else waits for a turn (`checkpoint_gate`).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::state_lock::{Purpose, StateLock};
use crate::storage::{Checkpoint, CheckpointFigures, StorageError, Store};
use crate::types::Sequence;
use crate::writer::checkpoint_gate::{CheckpointGate, PlaceInLine};

/// When a checkpoint is due. Start-up after a kill replays what came since the last one began. A checkpoint
/// that follows scattered changes writes nearly everything, which costs as much as a fifth of the members'
/// changes do. So under full load it waits for as many changes as there are members; under less, it comes as
/// soon as it takes no more than a small share of a core.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointPolicy {
    /// Changes since the last one, at least.
    pub changes_min: u64,
    /// From one beginning to the next, this many times as long as the last one took.
    pub rest: u32,
    /// So many changes, as a share of the members in percent, are enough before that.
    pub changes_percent: u64,
    /// However few changes there are, after this long.
    pub interval: Duration,
}

impl Default for CheckpointPolicy {
    fn default() -> Self {
        Self { changes_min: 1_000_000, rest: 10, changes_percent: 100, interval: Duration::from_secs(300) }
    }
}

/// A checkpoint that the queue wants is not begun so soon after one that failed: the disk may be full.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

impl CheckpointPolicy {
    /// Changes after which nothing else is waited for.
    #[must_use]
    pub fn changes_max(&self, members: u64) -> u64 {
        self.changes_min.max(members * self.changes_percent / 100)
    }
}

/// A checkpoint that a thread is writing.
struct Running {
    thread: JoinHandle<()>,
    /// Shared with the thread: should it end without a word, what the checkpoint owes the disk is not
    /// forgotten.
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
    /// When the last one began.
    last: Instant,
    /// How long the last one took that was written.
    took: Duration,
    /// While a checkpoint is due and waits for its turn.
    place: Option<PlaceInLine>,
    running: Option<Running>,
}

impl Checkpointer {
    /// # Arguments
    /// `changes`: how many the log holds already after the last checkpoint.
    #[must_use]
    pub fn new(policy: CheckpointPolicy, gate: CheckpointGate, changes: u64) -> Self {
        Self {
            policy,
            gate,
            changes,
            failures: 0,
            failed: None,
            last: Instant::now(),
            took: Duration::ZERO,
            place: None,
            running: None,
        }
    }

    /// Counts committed changes.
    pub fn count(&mut self, changes: u64) {
        self.changes += changes;
    }

    /// Whether a checkpoint is to begin as soon as the shard has its turn.
    #[must_use]
    pub fn is_due(&self, members: u64) -> bool {
        if self.place.is_some() {
            // The line waits for a shard that has its place: it stays due, also if it has grown meanwhile.
            return true;
        }
        let since = self.last.elapsed();
        let rested = since >= self.took.saturating_mul(self.policy.rest);
        let enough = if rested { self.policy.changes_min } else { self.policy.changes_max(members) };
        let old = since >= self.policy.interval;
        self.running.is_none() && self.changes > 0 && (self.changes >= enough || old)
    }

    /// Whether one can begin that is not due yet: there is something to put into it, and the last did not
    /// just fail.
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

    /// Memory that the checkpoint under way holds beside the shard's, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.checkpoint.bytes())
    }

    /// Whether anything was committed since the last checkpoint began.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.changes > 0
    }

    /// Begins a checkpoint of the shard as it is now, if it is the shard's turn, and returns while it is
    /// written. If not, the shard has its place in the line and is due until it has begun.
    pub fn start_in_turn(&mut self, store: Arc<Store>, shard: &Arc<StateLock>) {
        let place = self.place.take().unwrap_or_else(|| self.gate.line_up());
        if place.has_turn() {
            self.start(store, shard, place);
        } else {
            self.place = Some(place);
        }
    }

    /// As [`Checkpointer::start_in_turn`], after waiting for the turn: at the end, when there is nothing else
    /// to do.
    pub fn start_after_others(&mut self, store: Arc<Store>, shard: &Arc<StateLock>) {
        let place = self.place.take().unwrap_or_else(|| self.gate.line_up());
        place.wait_for_turn();
        self.start(store, shard, place);
    }

    fn start(&mut self, store: Arc<Store>, shard: &Arc<StateLock>, turn: PlaceInLine) {
        let checkpoint = Arc::new(Checkpoint::begin(&mut shard.write(Purpose::CheckpointBegin)));
        self.changes = 0;
        self.last = Instant::now();
        let (sender, written) = channel();
        let (its_checkpoint, its_shard) = (Arc::clone(&checkpoint), Arc::clone(shard));
        let name = format!("checkpoint-{}", store.shard());
        let write = move || {
            let written = its_checkpoint.write(&store, &its_shard);
            drop(turn);
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
    pub fn poll(&mut self, shard: &StateLock) -> Option<(Sequence, CheckpointFigures)> {
        let written = match self.running.as_ref()?.written.try_recv() {
            Ok(written) => Some(written),
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => None,
        };
        self.conclude(written, shard)
    }

    /// Waits for the checkpoint under way, if there is one, and leaves the line.
    pub fn wait(&mut self, shard: &StateLock) -> Option<(Sequence, CheckpointFigures)> {
        self.place = None;
        let written = self.running.as_ref()?.written.recv().ok();
        self.conclude(written, shard)
    }

    /// `None`: its thread panicked, and has reported that itself.
    fn conclude(
        &mut self,
        written: Option<Result<CheckpointFigures, StorageError>>,
        shard: &StateLock,
    ) -> Option<(Sequence, CheckpointFigures)> {
        let Running { thread, checkpoint, .. } = self.running.take()?;
        // It has nothing left to do, and the store that it held is free once it has ended.
        let _ = thread.join();
        match written {
            Some(Ok(figures)) => {
                self.took = figures.took;
                checkpoint.complete(&mut shard.write(Purpose::CheckpointEnd));
                self.failed = None;
                return Some((checkpoint.applied().sequence, figures));
            }
            Some(Err(error)) => tracing::warn!(%error, "a checkpoint failed; it will be tried again"),
            None => tracing::error!("a checkpoint ended without an outcome; it will be tried again"),
        }
        self.give_up(&checkpoint, shard);
        None
    }

    fn give_up(&mut self, checkpoint: &Checkpoint, shard: &StateLock) {
        checkpoint.abandon(shard);
        self.failures += 1;
        self.failed = Some(Instant::now());
        // Due again at the next interval, not at once: the disk may be full.
        self.changes += 1;
    }
}
