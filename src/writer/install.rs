//! Replaces what the writer has of its shard by a copy of another owner's, while readers go on with the state
//! of before.
//!
//! Knows: in which order the store is closed, the files are put in place, and the state is replaced. Must not
//! know: where the copy came from, or how files are put in place.

use std::time::Duration;

use crate::state::Applied;
use crate::state_lock::Purpose;
use crate::storage::{Reopened, StorageError, TreesFrom, mark_rebuilt, recover};
use crate::writer::health::{Filling, ShardState};
use crate::writer::reopen::BatchWaiters;
use crate::writer::source::{CopyToInstall, JobSource};
use crate::writer::writer_loop::Writer;

/// Why clients are told that an outcome is unknown that they still wait for.
const REPLACED: &str = "the shard's data was replaced by a copy of another node's";
/// Pauses between attempts to put the copy in place and to open it.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

impl<S: JobSource> Writer<S> {
    /// Goes on from a copy of the shard. Readers see the state of before until the copy is loaded, marked
    /// stale. Tries again until it works: once files have moved, there is no way back.
    pub(super) fn install_copy(&mut self, mut copy: CopyToInstall) {
        let before = self.shard.read(Purpose::Start).applied.sequence;
        if copy.applied < before {
            tracing::info!(shard = %self.id, applied = %before, copy = %copy.applied, "the shard went on by itself, so the copy of another node's data is not needed");
            return;
        }
        tracing::info!(shard = %self.id, applied = %before, copy = %copy.applied, "putting the copy of another node's data in place");
        self.health.set_state(ShardState::CatchingUp("loading a copy of another node's data".to_owned()));
        // What it writes is replaced.
        self.checkpointer.wait(&self.shard);
        if let Some(parking) = &mut self.parking {
            let mut waiting = BatchWaiters::of_parked(parking.take_waiters());
            waiting.fail_all(REPLACED);
        }
        let mut pause = PAUSE_FIRST;
        loop {
            self.close_store();
            match self.try_install(&mut copy) {
                Ok(applied) => {
                    tracing::info!(shard = %self.id, applied = %applied.sequence, "the shard goes on from the copy of another node's data");
                    break;
                }
                Err(error) => {
                    tracing::error!(shard = %self.id, %error, "the copy of another node's data cannot be put in place or opened; trying again in {pause:?}");
                    let reason = format!("loading a copy of another node's data: {error}");
                    self.health.set_state(ShardState::CatchingUp(reason.clone()));
                    if self.refuse_messages(&reason, pause) {
                        return;
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
        self.health.set_state(self.source.state());
        // The caller may have ended.
        let _ = copy.done.send(());
    }

    fn try_install(&mut self, copy: &mut CopyToInstall) -> Result<Applied, StorageError> {
        (copy.put_in_place)()?;
        let store = (self.reopen)(Reopened::Installed)?;
        let mut recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {})?;
        let mut rebuilt = Vec::new();
        for (board, reason) in std::mem::take(&mut recovered.rebuilt) {
            tracing::warn!(shard = %self.id, %board, reason, "a damaged or missing tree was rebuilt from its members");
            rebuilt.push(board);
        }
        mark_rebuilt(&store, &mut recovered.shard, &rebuilt)?;
        // Another replica's hash says nothing more of what it and its copy have in common.
        store.note_copied_from(&copy.from)?;
        // The giver goes on, so what it has noted is mended there. Here it would halt the next start.
        store.note_divergence(None)?;
        let applied = recovered.shard.applied;
        for (name, life) in recovered.shard.dropped().iter() {
            self.registry.forget(name, life);
        }
        if let Some(meta) = store.meta()? {
            self.health.set(|health| health.jobs_rejected = meta.jobs_rejected);
        }
        let before = std::mem::replace(&mut *self.shard.write(Purpose::Start), recovered.shard);
        // It may be large. If the thread cannot be started, the closure is dropped here, and the memory with
        // it.
        let _ = std::thread::Builder::new().name("free".to_owned()).spawn(move || drop(before));
        self.store.put(std::sync::Arc::new(store));
        // Opening has synced everything, so the stream is needed from here on, and not from the copy's last
        // checkpoint.
        self.health.set(|health| health.checkpoint_sequence = applied.sequence.0);
        self.checkpointer.begin_anew(recovered.changes + recovered.deltas);
        self.resume(applied)
            .map_err(|what| StorageError::Damaged { path: std::path::PathBuf::from("queue"), what })?;
        self.show(applied.sequence);
        self.health.set_filling(Filling::Filled);
        Ok(applied)
    }
}
