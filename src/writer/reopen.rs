//! What a writer does when a batch could not be committed: its store is opened again until that works, and
//! those who wait for the batch are told what can be told.
//!
//! Knows: what of a failed batch is unknown, and who waits for it. Must not know: why a commit fails, or how
//! one is made.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::state_lock::Purpose;
use crate::storage::{StorageError, Store, Totals, replay};
use crate::types::Sequence;
use crate::writer::health::ShardState;
use crate::writer::outcome::CommitFailed;
use crate::writer::parking::Asker;
use crate::writer::plan::PlannedStep;
use crate::writer::source::{AnswerTo, Fetched, JobSource};
use crate::writer::turn::Writer;

/// What is told of a batch that is on disk although its commit failed.
const FOUND_APPLIED: &str = "it was found applied when the store was opened again";
/// Pauses between attempts to reopen after a failed commit.
const REOPEN_FIRST: Duration = Duration::from_millis(100);
const REOPEN_MAX: Duration = Duration::from_secs(10);
const UNREADABLE_PAUSE: Duration = Duration::from_secs(1);

/// Why a writer's turn did not come to its end.
pub(super) struct Interrupted {
    pub(super) reason: String,
    /// It was not the commit that failed: a job that waits could not be read.
    pub(super) is_unreadable: bool,
    pub(super) waiting: Waiting,
}

/// Who waits for a batch.
#[derive(Default)]
pub(super) struct Waiting {
    /// For messages that the queue will bring again, by the messages' sequences.
    messages: Vec<(Sequence, AnswerTo)>,
    /// For jobs that the batch would have freed, and that wait on if it did not.
    jobs: Vec<Asker>,
}

impl Waiting {
    /// Of steps that are not going to be applied.
    pub(super) fn of(steps: Vec<PlannedStep>) -> Self {
        let mut waiting = Self::default();
        for step in steps {
            let (message, jobs) = step.into_waiting();
            waiting.messages.extend(message);
            waiting.jobs.extend(jobs);
        }
        waiting
    }

    /// Tells who waits for messages that it is unknown what comes of these.
    pub(super) fn tell_of_messages(&mut self, reason: &str) {
        for (_, answer) in self.messages.drain(..) {
            // The client may have disconnected.
            let _ = answer.send(Err(CommitFailed { reason: reason.to_owned() }));
        }
    }

    fn tell_all(&mut self, reason: &str) {
        self.tell_of_messages(reason);
        self.jobs.drain(..).for_each(|asker| tell_of_job(asker, reason));
    }
}

fn tell_of_job(asker: Asker, reason: &str) {
    // The client may have disconnected.
    let _ = asker.tell.send(Err(CommitFailed { reason: reason.to_owned() }));
}

impl<S: JobSource> Writer<S> {
    /// After a failed commit nothing more is written through the store that failed: what of the batch is on
    /// disk is unknown, and a RocksDB whose log append failed does not heal. It is opened again until that
    /// works.
    pub(super) fn reopen_until_well(&mut self, interrupted: Interrupted) {
        let Interrupted { reason, is_unreadable, mut waiting } = interrupted;
        tracing::error!(shard = %self.id, reason, "a commit failed; reads go on, stale, and the store is reopened");
        self.health.set_state(ShardState::CatchingUp(format!("reopening after a failed commit: {reason}")));
        self.gauges.note_failed_commit();
        if let Some((sequence, figures)) = self.checkpointer.wait(&self.shard) {
            self.note_checkpoint(sequence, figures);
        }
        let mut pause = REOPEN_FIRST;
        // The store opens, and what cannot be read is met again at once.
        if is_unreadable && self.refuse_waiting(&reason, UNREADABLE_PAUSE) {
            return;
        }
        loop {
            self.close_store();
            self.gauges.note_state(&self.shard, &self.health, None, &self.checkpointer);
            match self.try_reopen(&mut waiting) {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(shard = %self.id, %error, "reopening failed; trying again in {pause:?}");
                    // It may take until somebody makes room on the disk: longer than anybody waits.
                    waiting.tell_all(&error.to_string());
                    let reason = format!("reopening after a failed commit: {error}");
                    self.health.set_state(ShardState::CatchingUp(reason.clone()));
                    if self.refuse_waiting(&reason, pause) {
                        tracing::warn!(shard = %self.id, "told to end before the store could be opened again; what was answered is on disk");
                        return;
                    }
                    pause = (pause * 2).min(REOPEN_MAX);
                }
            }
        }
        tracing::info!(shard = %self.id, "the store is open again");
        self.health.set_state(self.source.state());
    }

    pub(super) fn close_store(&self) {
        let Some(mut store) = self.store.take() else { return };
        // Readers of metadata hold it for the length of a look-up.
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
    /// `waiting`: who waits for the failed batch. None is left when it works: what the queue brings again is
    /// waited for again.
    fn try_reopen(&mut self, waiting: &mut Waiting) -> Result<(), StorageError> {
        let store = (self.reopen)()?;
        // The failed batch may be on disk after all: what is committed is what is applied.
        let applied = {
            let mut shard = self.shard.write(Purpose::Start);
            replay(&store, &mut shard, &mut Totals::new(), &|_, _, _| {})?;
            for (name, life) in shard.dropped().iter() {
                self.registry.forget(name, life);
            }
            shard.applied
        };
        // What was replayed wants a checkpoint as what was committed does.
        self.checkpointer.count(1);
        if let Some(meta) = store.meta()? {
            self.health.set_jobs_rejected(meta.jobs_rejected);
        }
        // A write that reaches the disk shows that there is room again.
        store.sync()?;
        store.probe()?;
        self.find_again(&store, &mut waiting.jobs)?;
        self.store.put(Arc::new(store));
        // What is on disk after all does not come again, and what came of it can no longer be told.
        waiting.messages.retain(|(sequence, _)| *sequence <= applied.sequence);
        waiting.tell_of_messages(FOUND_APPLIED);
        self.resume(applied)
            .map_err(|what| StorageError::Damaged { path: std::path::PathBuf::from("queue"), what })?;
        self.applied.send_replace(applied.sequence);
        Ok(())
    }

    /// Has those who ask for jobs that still wait be told when these are freed. What came of the others can
    /// no longer be told.
    fn find_again(&mut self, store: &Store, jobs: &mut Vec<Asker>) -> Result<(), StorageError> {
        while let Some(asker) = jobs.last() {
            let still_waits = store.is_parked(asker.line, asker.place)?;
            match (&mut self.parking, jobs.pop()) {
                (Some(parking), Some(asker)) if still_waits => parking.ask_again(asker),
                (_, Some(asker)) => tell_of_job(asker, FOUND_APPLIED),
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Answers what arrives while nothing can be written, instead of letting it wait for nobody knows how
    /// long. Says whether the source has ended, and with it the need to reopen.
    fn refuse_waiting(&mut self, reason: &str, pause: Duration) -> bool {
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
