//! Recovery from a failed commit: the store is reopened until that works, and the clients that wait for the
//! batch get an answer.
//!
//! Knows: which outcomes of a failed batch are unknown, and which clients wait for them. Must not know: why a
//! commit fails, or how one is made.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::state_lock::Purpose;
use crate::storage::{ExpectedCounts, Reopened, StorageError, Store, replay};
use crate::types::Sequence;
use crate::writer::health::ShardState;
use crate::writer::outcome::CommitFailed;
use crate::writer::parking::OutcomeWaiter;
use crate::writer::plan::PlannedStep;
use crate::writer::source::{Fetched, JobSource, Message, OutcomeSender};
use crate::writer::writer_loop::Writer;

/// The reason given for a batch that is on disk although its commit failed.
const FOUND_APPLIED: &str = "the batch was found on disk when the store was opened again";
/// Pauses between attempts to reopen after a failed commit.
const REOPEN_FIRST: Duration = Duration::from_millis(100);
const REOPEN_MAX: Duration = Duration::from_secs(10);
const UNREADABLE_PAUSE: Duration = Duration::from_secs(1);

/// Why a batch was not processed to its end.
pub(super) struct BatchFailed {
    pub(super) reason: String,
    /// A parked job could not be read, so the commit was not tried.
    pub(super) is_unreadable: bool,
    pub(super) waiting: BatchWaiters,
}

/// The clients that wait for a batch.
#[derive(Default)]
pub(super) struct BatchWaiters {
    /// Those that wait for messages which the queue will redeliver, with the messages' sequences.
    messages: Vec<(Sequence, OutcomeSender)>,
    /// Those that wait for parked jobs which the batch would have unparked.
    jobs: Vec<OutcomeWaiter>,
}

impl BatchWaiters {
    /// Takes the waiting clients out of steps that will not be applied.
    pub(super) fn of(steps: Vec<PlannedStep>) -> Self {
        let mut waiting = Self::default();
        for step in steps {
            let (messages, jobs) = step.into_waiters();
            waiting.messages.extend(messages);
            waiting.jobs.extend(jobs);
        }
        waiting
    }

    /// Adds those that wait for messages which were not planned.
    pub(super) fn add_messages(&mut self, messages: Vec<Message>) {
        let answers = messages.into_iter().filter_map(|message| Some((message.sequence, message.answer?)));
        self.messages.extend(answers);
    }

    /// Those that wait for parked jobs.
    pub(super) fn of_parked(jobs: Vec<OutcomeWaiter>) -> Self {
        Self { messages: Vec::new(), jobs }
    }

    /// Answers the clients that wait for messages: the outcome is unknown.
    pub(super) fn fail_messages(&mut self, reason: &str) {
        for (_, answer) in self.messages.drain(..) {
            // The client may have disconnected.
            let _ = answer.send(Err(CommitFailed { reason: reason.to_owned() }));
        }
    }

    pub(super) fn fail_all(&mut self, reason: &str) {
        self.fail_messages(reason);
        self.jobs.drain(..).for_each(|waiter| fail_waiter(waiter, reason));
    }
}

fn fail_waiter(waiter: OutcomeWaiter, reason: &str) {
    // The client may have disconnected.
    let _ = waiter.sender.send(Err(CommitFailed { reason: reason.to_owned() }));
}

impl<S: JobSource> Writer<S> {
    /// Reopens the store until that works. After a failed commit nothing more is written through the old
    /// store: it is unknown how much of the batch is on disk, and RocksDB does not recover from a failed
    /// append to its log.
    pub(super) fn reopen_with_retries(&mut self, interrupted: BatchFailed) {
        let BatchFailed { reason, is_unreadable, mut waiting } = interrupted;
        tracing::error!(shard = %self.id, reason, "a commit failed; reopening the store. Reads are served meanwhile, and marked stale");
        self.health.set_state(ShardState::CatchingUp(format!("reopening after a failed commit: {reason}")));
        self.gauges.note_failed_commit();
        if let Some((sequence, figures)) = self.checkpointer.wait(&self.shard) {
            self.note_checkpoint(sequence, figures);
        }
        let mut pause = REOPEN_FIRST;
        // The store would open at once, and the batch would meet the unreadable job again. So pause first.
        if is_unreadable && self.refuse_messages(&reason, UNREADABLE_PAUSE) {
            return;
        }
        loop {
            self.close_store();
            self.gauges.note_state(&self.shard, &self.health, None, &self.checkpointer);
            match self.try_reopen(&mut waiting) {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(shard = %self.id, %error, "reopening failed; trying again in {pause:?}");
                    // This may last until an operator makes room on the disk, which is longer than clients
                    // wait.
                    waiting.fail_all(&error.to_string());
                    let reason = format!("reopening after a failed commit: {error}");
                    let state = match &error {
                        // Only an operator can put the directory back. It is taken up again if they do.
                        StorageError::Replaced(_) => ShardState::Halted(error.to_string()),
                        _ => ShardState::CatchingUp(reason.clone()),
                    };
                    self.health.set_state(state);
                    if self.refuse_messages(&reason, pause) {
                        tracing::warn!(shard = %self.id, "shutting down before the store could be opened again; all writes that were answered are on disk");
                        return;
                    }
                    pause = (pause * 2).min(REOPEN_MAX);
                }
            }
        }
        tracing::info!(shard = %self.id, "the store was reopened after a failed commit");
        self.health.set_state(self.state());
    }

    pub(super) fn close_store(&self) {
        let Some(mut store) = self.store.take() else { return };
        // The store that is opened next has not met it yet.
        self.note_damage_of(Some(&store));
        // Readers of metadata hold the store for the length of a look-up.
        loop {
            match Arc::try_unwrap(store) {
                Ok(store) => {
                    drop(store);
                    return;
                }
                Err(shared) => {
                    store = shared;
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// # Arguments
    /// `waiting`: the clients that wait for the failed batch. None are left on success; redelivered messages
    /// bring theirs with them.
    fn try_reopen(&mut self, waiting: &mut BatchWaiters) -> Result<(), StorageError> {
        let store = (self.reopen)(Reopened::Same)?;
        // The failed batch may be on disk after all, so everything committed is replayed.
        let applied = {
            let mut shard = self.shard.write(Purpose::Start);
            replay(&store, &mut shard, &mut ExpectedCounts::new(), &|_, _, _| {})?;
            for (name, life) in shard.dropped().iter() {
                self.registry.forget(name, life);
            }
            shard.applied
        };
        // Replayed changes count for the next checkpoint as committed ones do.
        self.checkpointer.add_changes(1);
        if let Some(meta) = store.meta()? {
            self.shard.write(Purpose::Start).note_time(meta.time());
            self.health.set(|health| health.jobs_rejected = meta.jobs_rejected);
        }
        // A write that reaches the disk shows that there is room again.
        store.sync()?;
        store.probe()?;
        self.reattach_waiters(&store, &mut waiting.jobs)?;
        self.store.put(Arc::new(store));
        // Messages that are on disk are not redelivered, and their outcomes are no longer known.
        waiting.messages.retain(|(sequence, _)| *sequence <= applied.sequence);
        waiting.fail_messages(FOUND_APPLIED);
        self.resume(applied)
            .map_err(|what| StorageError::Damaged { path: std::path::PathBuf::from("queue"), what })?;
        self.show(applied.sequence);
        Ok(())
    }

    /// Registers the clients of jobs that are still parked again. The outcomes of the other jobs are no
    /// longer known.
    fn reattach_waiters(&mut self, store: &Store, jobs: &mut Vec<OutcomeWaiter>) -> Result<(), StorageError> {
        while let Some(waiter) = jobs.last() {
            let still_waits = store.is_parked(waiter.line, waiter.place)?;
            match (&mut self.parking, jobs.pop()) {
                (Some(parking), Some(waiter)) if still_waits => parking.requeue_waiter(waiter),
                (_, Some(waiter)) => fail_waiter(waiter, FOUND_APPLIED),
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Refuses messages that arrive while nothing can be written, instead of letting their clients wait
    /// indefinitely. Returns whether the source has ended, so that reopening is no longer needed.
    pub(super) fn refuse_messages(&mut self, reason: &str, pause: Duration) -> bool {
        if self.source.needs_sync() {
            let until = Instant::now() + pause;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                match self.source.fetch(self.source.limits(), left) {
                    Fetched::Batch(messages) => {
                        for answer in messages.into_iter().filter_map(|message| message.answer) {
                            let _ = answer.send(Err(CommitFailed { reason: reason.to_owned() }));
                        }
                    }
                    Fetched::OriginChanged(_) | Fetched::Nothing => {}
                    Fetched::Ended => return true,
                }
            }
        } else {
            std::thread::sleep(pause);
        }
        self.source.has_ended()
    }
}
