//! The loop of one shard: fetch → plan → commit → apply → show. Jobs are decoded before they are fetched.
//!
//! Knows: the order of the five verbs, and what happens when one fails. Must not know: what any of them does.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::applied_sequence::AppliedSequence;
use crate::job::JobPlace;
use crate::state::{Applied, EarlyInstances, Expiring, LogHashes, Retired, ShardTime, TreeId};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::codec::Meta;
use crate::storage::{Commit, HashCommit, Reopened, StorageError, Store, StoreSlot};
use crate::types::{BoardName, MemberId, Sequence, ShardId, count};
use crate::writer::apply::apply_next;
use crate::writer::checkpointer::Checkpointer;
use crate::writer::gauges::{Committed, Gauges};
use crate::writer::health::{Health, ShardState};
use crate::writer::one_batch::length_of_batch;
use crate::writer::parked_places::ParkedChanges;
use crate::writer::parking::Parking;
use crate::writer::plan::{Plan, PlannedStep, Planner, ReadOn};
use crate::writer::registry::Registry;
use crate::writer::reject_erasure::RejectErasure;
use crate::writer::reject_log::RejectLog;
use crate::writer::reject_retention::RejectRetention;
use crate::writer::reopen::{BatchFailed, BatchWaiters};
use crate::writer::source::{Fetched, JobSource, Message, OriginChanged};
use crate::writer::stored_parked;
use crate::writer::time_log::{log_leap, log_taken_back};
use crate::writer::traced::{TracedBatch, VerbTimes};

/// How long a fetch waits for the first message. It bounds only how late idle work, such as a due checkpoint,
/// is noticed.
const FETCH_WAIT: Duration = Duration::from_millis(500);
/// The same while a full queue waits for a checkpoint: publishers are blocked until it completes.
const FETCH_WAIT_CHECKPOINT_WANTED: Duration = Duration::from_millis(25);
/// How often a shard that another replica's hash has halted looks whether it may go on.
const DIVERGED_WAIT: Duration = Duration::from_millis(100);
/// Entries whose expiry is noted per hold of the lock: some 100 µs.
const NOTED_PER_HOLD: usize = if cfg!(test) { 3 } else { 256 };
/// Members of dropped boards that are released per iteration of the loop: about 20 µs.
const RELEASED_PER_ITERATION: usize = 128;
/// Up to this many entries of dropped boards are freed on the writer's thread; more get a thread of their
/// own. About a millisecond's work.
const FREED_INLINE_MAX: u64 = 16_384;

/// Everything a writer works with. [`crate::service`] constructs it.
pub struct Writer<S> {
    pub id: ShardId,
    pub shards: u16,
    pub source: S,
    pub shard: Arc<StateLock>,
    pub store: Arc<StoreSlot>,
    pub registry: Arc<Registry>,
    pub health: Arc<Health>,
    pub applied: AppliedSequence,
    /// Set to true once the writer has resumed its queue, or has halted.
    pub started: watch::Sender<bool>,
    pub checkpointer: Checkpointer,
    /// Opens the shard's directory again.
    pub reopen: Box<dyn Fn(Reopened) -> Result<Store, StorageError> + Send>,
    pub gauges: Gauges,
    /// Parked jobs, if definitions come through the queue.
    pub parking: Option<Parking>,
    /// What is known of the time after the last committed message.
    pub time: ShardTime,
    /// The instances that have not begun by then.
    pub early: EarlyInstances,
    /// The hashes of the log, as of the last commit. They are computed where there are streams, which other
    /// nodes may apply too.
    pub hashes: LogHashes,
    /// Which rejects are kept.
    pub rejects_kept: RejectRetention,
    /// What rejects have of members that were removed from every board is being erased.
    pub erasing: RejectErasure,
    /// Logs rejections, at a limited rate.
    pub reject_log: Arc<RejectLog>,
}

impl<S: JobSource> Writer<S> {
    /// Drains the source until it ends, then checkpoints and returns. Runs on a thread of its own.
    pub fn run(mut self) {
        let applied = self.shard.read(Purpose::Start).applied;
        if let Err(reason) = self.resume(applied) {
            self.note_damage_of(self.store.get().ok().as_deref());
            // It answers reads of what it has, and says how far that is.
            self.show(applied.sequence);
            self.halt(reason);
            self.gauges.note_state(&self.shard, &self.health, None, &self.checkpointer);
            self.started.send_replace(true);
            return;
        }
        self.show(applied.sequence);
        self.health.set_state(self.state());
        self.started.send_replace(true);
        loop {
            if self.health.divergence().is_some() {
                self.update_shard_state();
                self.run_maintenance();
                if self.source.has_ended() {
                    break;
                }
                std::thread::sleep(DIVERGED_WAIT);
                continue;
            }
            let asked = Instant::now();
            let messages = match self.source.fetch(self.source.limits(), self.fetch_wait()) {
                Fetched::Batch(messages) => messages,
                Fetched::OriginChanged(changed) => {
                    if let Err(interrupted) = self.store_origin(changed) {
                        self.reopen_with_retries(interrupted);
                    }
                    Vec::new()
                }
                Fetched::Nothing => Vec::new(),
                Fetched::Ended => break,
            };
            let done = if messages.is_empty() {
                self.check_directory()
            } else {
                self.process_in_parts(messages, asked.elapsed())
            };
            if let Err(interrupted) = done {
                self.reopen_with_retries(interrupted);
            }
            if let Some(copy) = self.source.copy_to_install() {
                self.install_copy(copy);
            }
            self.update_shard_state();
            self.run_maintenance();
        }
        self.finish();
    }

    /// Positions the source after the store's applied sequence, and loads what the writer keeps in memory in
    /// addition to the shard.
    pub(super) fn resume(&mut self, applied: Applied) -> Result<(), String> {
        let store = match self.store.get() {
            Ok(store) => store,
            // The first commit will fail on the closed store, and the store is then reopened.
            Err(_) if self.parking.is_none() => return self.source.resume(applied, ""),
            Err(error) => return Err(error.to_string()),
        };
        let meta = store.meta().map_err(|error| error.to_string())?;
        self.time = meta.as_ref().map_or(self.time, Meta::time);
        self.early = self.shard.read(Purpose::Start).early_instances();
        let others = store.other_histories().map_err(|error| error.to_string())?;
        self.applied.note_others(others);
        self.hashes = store.log_hashes(applied.sequence).map_err(|error| error.to_string())?;
        self.health.set(|health| health.hashes = self.hashes.clone());
        let copied_from = store.copied_from().map_err(|error| error.to_string())?;
        self.health.set(|health| health.copied_from = copied_from);
        if let Some(mut parking) = self.parking.take() {
            let loaded = self.load_parking(&mut parking, &store);
            self.parking = Some(parking);
            loaded?;
            self.shard.write(Purpose::Start).number_drops();
        }
        self.rejects_kept = RejectRetention::default();
        let noted = store.reject_places(|place, board| self.rejects_kept.note(place, board));
        match noted {
            // Scores do not depend on them. Operators are told of it, as of all damage, and those who list
            // rejects.
            Ok(()) | Err(StorageError::Damaged { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
        self.erasing = RejectErasure::default();
        self.erasing.note();
        self.source.resume(applied, &meta.map(|meta| meta.stream).unwrap_or_default())
    }

    /// Loads the lines of parked jobs from the store.
    fn load_parking(&self, parking: &mut Parking, store: &Store) -> Result<(), String> {
        let (lines, names) = (stored_parked::lines(store)?, stored_parked::names(store)?);
        // After a failed commit readers are served while this runs, so the lock is released between lines.
        let is_known = |board: &BoardName| self.shard.read(Purpose::Start).board(board.as_str()).is_some();
        parking.load(lines, names, is_known);
        // On a quiet stream no message would set this, and jobs that must be rejected would stay parked.
        parking.set_at_board_limit(self.shard.read(Purpose::Start).board_count() >= parking.boards_max);
        self.health.set(|health| health.jobs_parked = count(parking.len()));
        self.health.parked_places.replace(parking.take_changes());
        Ok(())
    }

    /// Shows readers that everything up to a sequence is applied.
    pub(super) fn show(&self, sequence: Sequence) {
        self.health.set(|health| health.applied_sequence = sequence.0);
        self.applied.show(sequence);
    }

    /// The source's state, unless another replica differs.
    pub(super) fn state(&self) -> ShardState {
        match self.health.divergence() {
            Some(diverged) => ShardState::Halted(diverged.reason.clone()),
            None => self.source.state(),
        }
    }

    /// Takes over the source's state, which may have changed with the connection to the queue.
    fn update_shard_state(&mut self) {
        let state = self.state();
        if self.health.state() != state {
            match &state {
                ShardState::Live => tracing::info!(shard = %self.id, "the shard is live"),
                ShardState::CatchingUp(reason) => {
                    tracing::info!(shard = %self.id, reason, "the shard is catching up");
                }
                ShardState::Halted(reason) => {
                    tracing::error!(shard = %self.id, reason, "the shard is halted");
                }
            }
            self.health.set_state(state);
        }
        if let Some(parking) = &mut self.parking {
            // While the shard catches up, the definitions that it wants may still be ahead in its queue.
            if self.health.is_live() {
                parking.report_wanted();
                let applied = Sequence(self.health.get(|health| health.applied_sequence));
                let (is_long, board) = parking.note_long_wait(applied, Instant::now());
                self.health.set(|health| health.jobs_wait_long = is_long);
                if let Some(board) = board {
                    tracing::warn!(shard = %self.id, %board, "jobs wait long for a board that is not defined; define it with PUT, whose answer says what is in the way");
                }
            } else {
                parking.defer_wanted();
                self.health.set(|health| health.jobs_wait_long = false);
            }
            let has_ready = parking.has_ready();
            self.health
                .has_ready_jobs
                .send_if_modified(|known| std::mem::replace(known, has_ready) != has_ready);
        }
    }

    /// Stores the new origin of the messages. The source hands out further messages only afterwards.
    fn store_origin(&mut self, changed: OriginChanged) -> Result<(), BatchFailed> {
        let stored = self.store.get().and_then(|store| store.store_origin(&changed.stream));
        stored.map_err(|error| BatchFailed {
            reason: error.to_string(),
            is_unreadable: false,
            waiting: BatchWaiters::default(),
        })?;
        // If the fetcher restarted, it rereads the stored identity.
        let _ = changed.done.send(());
        Ok(())
    }

    /// Processes messages in one batch, or in several; see [`length_of_batch`].
    fn process_in_parts(&mut self, messages: Vec<Message>, waited: Duration) -> Result<(), BatchFailed> {
        let mut rest = messages;
        while !rest.is_empty() {
            self.note_expiring();
            let later = rest.split_off(length_of_batch(&self.shard, &rest));
            if let Err(mut failed) = self.process_batch(rest, waited) {
                failed.waiting.add_messages(later);
                if self.source.needs_sync() {
                    failed.waiting.fail_messages(&failed.reason);
                }
                return Err(failed);
            }
            rest = later;
        }
        // Not only before the next message: what is due on a quiet shard is known by it.
        self.note_expiring();
        Ok(())
    }

    /// Notes when entries expire of boards whose `entry_ttl` changed. Usually there is nothing to note.
    fn note_expiring(&self) {
        while self.shard.read(Purpose::Release).has_expiry_to_note() {
            self.shard.write(Purpose::Release).note_expiring(NOTED_PER_HOLD);
        }
    }

    /// Processes one drained batch: plan, commit, apply, show.
    ///
    /// # Arguments
    /// `waited`: how long the fetch took.
    fn process_batch(&mut self, messages: Vec<Message>, waited: Duration) -> Result<(), BatchFailed> {
        let started = Instant::now();
        let mut messages = messages;
        let mut traced = TracedBatch::take(self.id, &mut messages, started);
        let arrived = self.gauges.note_batch(&messages, waited);
        let mut plan = self.plan(messages);
        self.parking = plan.parking.take();
        // If the commit fails, the shard is asked for them again.
        self.early = std::mem::take(&mut plan.early);
        let hash = plan.hash.take();
        let planned = Instant::now();
        let hashes = hash.as_ref().map(|(running, kept)| HashCommit {
            running: *running,
            kept: kept.clone(),
            // If the commit fails, they are loaded from disk again.
            dropped: self.hashes.advance(*running, kept),
        });
        let (steps, committed) = self.commit(plan, hashes)?;
        let committed_at = Instant::now();
        let mut parked = ParkedChanges::default();
        if let Some(parking) = &mut self.parking {
            parking.note_committed();
            // Before readers see the sequence: a client that waited for it must not read a count of parked
            // jobs from before it.
            self.health.set(|health| health.jobs_parked = count(parking.len()));
            parked = parking.take_changes();
            self.health.parked_places.begin(&parked);
        }
        let mut steps = steps.into_iter().peekable();
        while let Some(next) = steps.peek() {
            let dropped = next.dropped();
            let Some((sequence, answers)) = apply_next(&self.shard, &mut steps) else { break };
            // The boards' stream keeps the record of a drop only for a while, so the node may never read it
            // there.
            for (board, incarnation) in dropped {
                self.registry.forget(&board, incarnation);
            }
            // Show after commit and apply: a reader must never see what a crash could take back, and a client
            // that has an answer must be able to read what it wrote.
            self.show(sequence);
            if let Some(traced) = &mut traced {
                traced.shown(sequence);
            }
            // Whoever waits for answers is woken by them, and may have to share this core.
            let is_awaited = !answers.is_empty();
            answers.send();
            // After the answers: who waits for them would wait for all that has the core meanwhile.
            if is_awaited { yield_now() } else { self.shard.give_way() }
        }
        self.health.parked_places.end(&parked);
        if let Some((running, kept)) = hash {
            self.health.set(|health| health.hashes.advance(running, &kept));
        }
        self.health.raise_last_sequence(committed.sequence.0);
        self.gauges.record_batch(&committed, &arrived, self.health.is_live(), started, planned, committed_at);
        // Last: no request that waits for its answer waits for spans.
        if let Some(traced) = traced {
            traced.end(VerbTimes { planned, committed: committed_at });
        }
        Ok(())
    }

    fn plan(&mut self, messages: Vec<Message>) -> Plan {
        let parking = self.parking.take();
        let read_parked = |line: u32, from: JobPlace, limit: usize, read_on: ReadOn<'_>| {
            let store = self.store.get().map_err(|error| error.to_string())?;
            stored_parked::read_line(&store, line, from, limit, read_on)
        };
        let read_profile = |member: &MemberId| {
            let store = self.store.get().map_err(|error| error.to_string())?;
            store.profile(member.as_bytes()).map_err(|error| error.to_string())
        };
        let read_metadata = |tree: TreeId, member: &[u8]| {
            let store = self.store.get().map_err(|error| error.to_string())?;
            store.metadata(tree, member).map_err(|error| error.to_string())
        };
        let planner = Planner {
            shard: &self.shard,
            id: self.id,
            shards: self.shards,
            registry: &self.registry,
            time: self.time,
            early: Cell::new(std::mem::take(&mut self.early)),
            hash: parking.as_ref().map(|_| self.hashes.running),
            read_parked: &read_parked,
            read_profile: &read_profile,
            read_metadata: &read_metadata,
        };
        planner.plan(messages, parking)
    }

    /// Writes the batch. On failure nothing has been applied, and the waiting clients get an error, unless
    /// the queue will redeliver the messages.
    fn commit(
        &mut self,
        plan: Plan,
        hashes: Option<HashCommit>,
    ) -> Result<(Vec<PlannedStep>, Committed), BatchFailed> {
        let jobs_rejected = self.health.get(|health| health.jobs_rejected) + count(plan.rejects.len());
        let committed = Committed {
            sequence: plan.applied.sequence,
            jobs: count(plan.jobs),
            expired: count(plan.expired),
            instances_dropped: count(plan.instances_dropped),
            rejects: plan.rejects.iter().map(|reject| reject.code).collect(),
        };
        for reject in &plan.rejects {
            self.rejects_kept.note((reject.sequence, reject.index), reject.board.clone());
        }
        // Rejects are published where there are streams.
        let published = self.parking.as_ref().map(|_| self.health.get(|health| health.rejects_published));
        let commit = Commit {
            applied: plan.applied,
            time: plan.time,
            delta: plan.delta,
            rejects_dropped: self.rejects_kept.prune(published),
            rejects: plan.rejects,
            metadata: plan.metadata,
            profiles: plan.profiles,
            bans: plan.bans,
            last_jobs: plan.last_jobs,
            job_ids: plan.job_ids,
            versions: plan.versions,
            erased: plan.erased,
            dropped_trees: plan.dropped_trees,
            parked: plan.parked,
            unparked: plan.unparked,
            stream: self.source.stream(),
            jobs_rejected,
            hashes,
        };
        let write = || self.store.get().and_then(|store| store.commit(&commit, self.source.needs_sync()));
        let is_unreadable = plan.unreadable.is_some();
        let written = match plan.unreadable {
            None => write().map_err(|error| error.to_string()),
            Some(reason) => Err(reason),
        };
        match written {
            Ok(()) => {
                // While the shard catches up, messages of long ago may be far apart.
                if self.health.is_live() {
                    log_leap(self.id, self.time, plan.time);
                }
                log_taken_back(self.id, &plan.taken_back);
                self.time = plan.time;
                self.health.set(|health| health.jobs_rejected = jobs_rejected);
                self.reject_log.note(self.id, &commit.rejects);
                self.checkpointer.add_changes(count(plan.changes) + 1);
                if !commit.erased.is_empty() {
                    self.erasing.note();
                }
                Ok((plan.steps, committed))
            }
            Err(reason) => {
                let mut waiting = BatchWaiters::of(plan.steps);
                if self.source.needs_sync() {
                    waiting.fail_messages(&reason);
                }
                Err(BatchFailed { reason, is_unreadable, waiting })
            }
        }
    }

    /// Each commit checks this too; an idle shard must also notice that its directory is gone.
    fn check_directory(&self) -> Result<(), BatchFailed> {
        let Ok(store) = self.store.get() else { return Ok(()) };
        store.check_directory().map_err(|error| BatchFailed {
            reason: error.to_string(),
            is_unreadable: false,
            waiting: BatchWaiters::default(),
        })
    }

    fn halt(&self, reason: String) {
        tracing::error!(shard = %self.id, reason, "the shard is halted");
        self.health.set_state(ShardState::Halted(reason));
    }

    /// Maintenance between two batches: checkpoints, and the release of dropped boards' members.
    fn run_maintenance(&mut self) {
        self.reject_log.log_due();
        // After a store was opened again.
        self.note_expiring();
        if let Some((sequence, figures)) = self.checkpointer.poll(&self.shard) {
            self.note_checkpoint(sequence, figures);
        }
        let (members, retired, freeing, has_expired) = {
            let shard = self.shard.read(Purpose::Release);
            let freeing = shard.members.has_handles_to_free();
            (count(shard.members.len()), shard.has_retired(), freeing, shard.has_expired_to_free())
        };
        if retired {
            let released = {
                let mut shard = self.shard.write(Purpose::Release);
                shard.release_retired(RELEASED_PER_ITERATION);
                shard.take_released()
            };
            free_in_background(released);
        }
        if freeing {
            self.shard.write(Purpose::Release).members.free_slice();
        }
        if has_expired {
            let expired = self.shard.write(Purpose::Release).take_expired();
            free_expired_in_background(expired);
        }
        let is_wanted = self.health.is_checkpoint_wanted() && self.checkpointer.can_begin();
        if (is_wanted || self.checkpointer.is_due(members))
            && let Ok(store) = self.store.get()
        {
            self.checkpointer.start_if_admitted(store, &self.shard);
        }
        let store = self.store.get().ok();
        if let Some(store) = store.as_deref().filter(|_| !self.erasing.is_idle()) {
            // Where there are streams, rejects are published.
            match self.erasing.go_on(store, self.parking.is_some(), self.source.needs_sync()) {
                Ok(true) => self.health.set(|health| health.rejects_erased += 1),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(shard = %self.id, %error, "rejects of removed members could not be erased on disk; readers do not see them");
                }
            }
        }
        self.note_damage_of(store.as_deref());
        self.gauges.note_time(self.id, self.time.effective, &self.health);
        self.gauges.note_state(&self.shard, &self.health, store.as_deref(), &self.checkpointer);
    }

    /// Tells operators of damage that a store has found, if it is the first.
    pub(super) fn note_damage_of(&self, store: Option<&Store>) {
        if let Some(damage) = store.and_then(Store::first_damage)
            && self.health.note_damage(damage)
        {
            tracing::error!(shard = %self.id, damage, "the shard's files are damaged; stop the node and run ranktree verify, which lists all damage");
        }
    }

    fn fetch_wait(&self) -> Duration {
        let idle_work = {
            let shard = self.shard.read(Purpose::Release);
            shard.has_retired() || shard.members.has_handles_to_free() || !self.erasing.is_idle()
        };
        if idle_work {
            Duration::ZERO
        } else if self.health.is_checkpoint_wanted() {
            FETCH_WAIT_CHECKPOINT_WANTED
        } else {
            FETCH_WAIT
        }
    }

    pub(super) fn note_checkpoint(&self, sequence: Sequence, figures: crate::storage::CheckpointFigures) {
        self.health.set(|health| health.checkpoint_sequence = sequence.0);
        self.gauges.note_checkpoint(&figures);
        tracing::info!(
            shard = %self.id,
            %sequence,
            pages = figures.pages,
            bytes = figures.bytes,
            took_ms = u64::try_from(figures.took.as_millis()).unwrap_or(u64::MAX),
            "checkpoint completed"
        );
    }

    /// The source has ended: everything in it is committed. A checkpoint makes the next start quick.
    fn finish(&mut self) {
        self.checkpointer.wait(&self.shard);
        if self.checkpointer.has_changes()
            && let Ok(store) = self.store.get()
        {
            self.checkpointer.start_when_admitted(store, &self.shard);
            if let Some((sequence, figures)) = self.checkpointer.wait(&self.shard) {
                self.note_checkpoint(sequence, figures);
            }
        }
        self.health.set_state(ShardState::CatchingUp("shut down".to_owned()));
        self.close_store();
    }
}

/// Frees the memory of dropped boards, on another thread if there is much of it.
fn free_in_background(released: Vec<Retired>) {
    if released.iter().map(Retired::entries).sum::<u64>() > FREED_INLINE_MAX {
        // If the thread cannot be started, the closure is dropped here, and the memory with it.
        let _ = std::thread::Builder::new().name("free".to_owned()).spawn(move || drop(released));
    }
}

/// Frees what was known of expiring entries, on another thread if there is much of it.
fn free_expired_in_background(expired: Vec<BTreeSet<Expiring>>) {
    if expired.iter().map(|of_tree| count(of_tree.len())).sum::<u64>() > FREED_INLINE_MAX {
        let _ = std::thread::Builder::new().name("free".to_owned()).spawn(move || drop(expired));
    }
}
