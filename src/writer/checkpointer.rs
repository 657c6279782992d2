//! Decides when a shard is checkpointed, and runs the thread that does it while the writer continues.
//!
//! Knows: a shard has one checkpoint at a time, and it begins only when the gate admits it, because from then
//! on the writer copies every leaf before it changes it. Must not know: what a checkpoint consists of
//! (`storage::checkpoint`), or which other shards wait (`checkpoint_gate`).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::state_lock::{Purpose, StateLock};
use crate::storage::{Checkpoint, CheckpointFigures, StorageError, Store};
use crate::types::Sequence;
use crate::writer::checkpoint_gate::{CheckpointGate, CheckpointTicket};

/// When a checkpoint is due. A start after a crash replays the changes since the last checkpoint began, so
/// checkpoints should be frequent. But after scattered changes a checkpoint writes nearly all pages, which
/// costs as much as applying changes to a fifth of the members. So under full load it waits for as many
/// changes as there are members. Under less load it begins as soon as checkpoints take no more than a small
/// share of a core.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointPolicy {
    /// The least number of changes since the last checkpoint.
    pub changes_min: u64,
    /// The least time from one beginning to the next, as a multiple of the last checkpoint's duration.
    pub pause_factor: u32,
    /// This many changes, in percent of the members, make a checkpoint due before that time.
    pub changes_percent: u64,
    /// After this time a checkpoint is due, however few changes there are.
    pub interval: Duration,
}

impl Default for CheckpointPolicy {
    fn default() -> Self {
        Self {
            changes_min: 1_000_000,
            pause_factor: 10,
            changes_percent: 100,
            interval: Duration::from_secs(300),
        }
    }
}

/// After a failed checkpoint, one that the queue wants is delayed by this: the disk may be full.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

impl CheckpointPolicy {
    /// The number of changes that makes a checkpoint due at once.
    pub fn changes_max(&self, members: u64) -> u64 {
        self.changes_min.max(members * self.changes_percent / 100)
    }
}

/// A checkpoint that a thread is writing.
struct Running {
    thread: JoinHandle<()>,
    /// Shared with the thread: if that panics, the pages that the checkpoint still owes the disk are not
    /// lost.
    checkpoint: Arc<Checkpoint>,
    written: Receiver<Result<CheckpointFigures, StorageError>>,
}

/// A shard's checkpoints.
pub struct Checkpointer {
    policy: CheckpointPolicy,
    gate: CheckpointGate,
    changes: u64,
    failures: u64,
    last_failed_at: Option<Instant>,
    /// When the last one began.
    last_began_at: Instant,
    /// How long the last successful one took.
    last_duration: Duration,
    /// The place at the gate, while a checkpoint is due and waits.
    ticket: Option<CheckpointTicket>,
    running: Option<Running>,
}

impl Checkpointer {
    /// # Arguments
    /// `changes`: how many changes the log holds after the last checkpoint.
    pub fn new(policy: CheckpointPolicy, gate: CheckpointGate, changes: u64) -> Self {
        Self {
            policy,
            gate,
            changes,
            failures: 0,
            last_failed_at: None,
            last_began_at: Instant::now(),
            last_duration: Duration::ZERO,
            ticket: None,
            running: None,
        }
    }

    /// Counts committed changes.
    pub fn add_changes(&mut self, changes: u64) {
        self.changes += changes;
    }

    /// The shard was replaced by another one, whose log holds so many changes after its last checkpoint. If
    /// it has any, a checkpoint is due: each start until then would replay them.
    pub fn begin_anew(&mut self, changes: u64) {
        let now = Instant::now();
        self.changes = changes;
        self.last_began_at = now.checked_sub(self.policy.interval).unwrap_or(now);
    }

    /// Whether a checkpoint should begin as soon as the gate admits it.
    pub fn is_due(&self, members: u64) -> bool {
        if self.ticket.is_some() {
            // A shard with a place at the gate stays due, even if it has gained members meanwhile: others
            // wait behind it.
            return true;
        }
        let since = self.last_began_at.elapsed();
        let paused_enough = since >= self.last_duration.saturating_mul(self.policy.pause_factor);
        let enough = if paused_enough { self.policy.changes_min } else { self.policy.changes_max(members) };
        let old = since >= self.policy.interval;
        self.running.is_none() && self.changes > 0 && (self.changes >= enough || old)
    }

    /// Whether a checkpoint that is not due may begin: there are changes, and the last one did not just fail.
    pub fn can_begin(&self) -> bool {
        let failed_just_now =
            self.last_failed_at.is_some_and(|failed| failed.elapsed() < PAUSE_AFTER_FAILURE);
        self.running.is_none() && self.changes > 0 && !failed_just_now
    }

    /// Changes committed since the last checkpoint began.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Checkpoints that failed since the start.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Memory that the running checkpoint holds in addition to the shard's, in bytes.
    pub fn bytes(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.checkpoint.bytes())
    }

    /// Whether anything was committed since the last checkpoint began.
    pub fn has_changes(&self) -> bool {
        self.changes > 0
    }

    /// Begins a checkpoint of the shard as it is now, if the gate admits it, and returns while it is written.
    /// Otherwise the shard keeps its place at the gate, and stays due.
    pub fn start_if_admitted(&mut self, store: Arc<Store>, shard: &Arc<StateLock>) {
        let ticket = self.ticket.take().unwrap_or_else(|| self.gate.enqueue());
        if ticket.is_admitted() {
            self.start(store, shard, ticket);
        } else {
            self.ticket = Some(ticket);
        }
    }

    /// As [`Checkpointer::start_if_admitted`], but blocks until the gate admits it: for the shutdown.
    pub fn start_when_admitted(&mut self, store: Arc<Store>, shard: &Arc<StateLock>) {
        let ticket = self.ticket.take().unwrap_or_else(|| self.gate.enqueue());
        ticket.wait_until_admitted();
        self.start(store, shard, ticket);
    }

    fn start(&mut self, store: Arc<Store>, shard: &Arc<StateLock>, ticket: CheckpointTicket) {
        let checkpoint = Arc::new(Checkpoint::begin(&mut shard.write(Purpose::CheckpointBegin)));
        self.changes = 0;
        self.last_began_at = Instant::now();
        let (sender, written) = channel();
        let (its_checkpoint, its_shard) = (Arc::clone(&checkpoint), Arc::clone(shard));
        let name = format!("checkpoint-{}", store.shard());
        let write = move || {
            let written = its_checkpoint.write(&store, &its_shard);
            drop(ticket);
            // Close the store before the outcome is sent: the writer may then reopen the directory.
            drop(store);
            // The writer may have ended. The checkpoint is on disk all the same.
            let _ = sender.send(written);
        };
        match std::thread::Builder::new().name(name).spawn(write) {
            Ok(thread) => self.running = Some(Running { thread, checkpoint, written }),
            Err(error) => {
                tracing::error!(%error, "the thread for a checkpoint could not be started; the checkpoint will be tried again");
                self.abandon(&checkpoint, shard);
            }
        }
    }

    /// Concludes a checkpoint that has ended. Returns its sequence and figures if it succeeded.
    pub fn poll(&mut self, shard: &StateLock) -> Option<(Sequence, CheckpointFigures)> {
        let written = match self.running.as_ref()?.written.try_recv() {
            Ok(written) => Some(written),
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => None,
        };
        self.finish_running(written, shard)
    }

    /// Waits for the running checkpoint, if there is one, and gives up a place at the gate.
    pub fn wait(&mut self, shard: &StateLock) -> Option<(Sequence, CheckpointFigures)> {
        self.ticket = None;
        let written = self.running.as_ref()?.written.recv().ok();
        self.finish_running(written, shard)
    }

    /// `written`: `None` if the thread panicked, which the panic hook has reported.
    fn finish_running(
        &mut self,
        written: Option<Result<CheckpointFigures, StorageError>>,
        shard: &StateLock,
    ) -> Option<(Sequence, CheckpointFigures)> {
        let Running { thread, checkpoint, .. } = self.running.take()?;
        // The thread has nothing left to do. Once it has ended, its handle on the store is dropped.
        let _ = thread.join();
        match written {
            Some(Ok(figures)) => {
                self.last_duration = figures.took;
                checkpoint.complete(&mut shard.write(Purpose::CheckpointEnd));
                self.last_failed_at = None;
                return Some((checkpoint.applied().sequence, figures));
            }
            Some(Err(error)) => tracing::warn!(%error, "a checkpoint failed; it will be tried again"),
            None => tracing::error!("a checkpoint ended without an outcome; it will be tried again"),
        }
        self.abandon(&checkpoint, shard);
        None
    }

    fn abandon(&mut self, checkpoint: &Checkpoint, shard: &StateLock) {
        checkpoint.abandon(shard);
        self.failures += 1;
        self.last_failed_at = Some(Instant::now());
        // Due again at the next interval, not at once: the disk may be full.
        self.changes += 1;
    }
}
