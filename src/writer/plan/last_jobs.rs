//! When boards that end after a quiet time had their last job, as the batch sees it.
//!
//! Knows: which boards that is kept of. Must not know: when a board ends, which takes the jobs of all shards.

use std::collections::BTreeMap;

use crate::board::Definition;
use crate::state::LastJobChange;
use crate::types::{BoardName, Timestamp};
use crate::writer::plan::Batch;

/// What the batch has changed, by board.
pub(super) type ChangedLastJobs = BTreeMap<BoardName, Option<Timestamp>>;

impl Batch<'_> {
    /// A job was applied on a board, or on an instance of it. Costs a comparison on boards that do not end
    /// after a quiet time.
    pub(super) fn note_job_on(&mut self, definition: &Definition, name: &BoardName) {
        if definition.expires_after_micros.is_some() {
            let board = if name.is_instance() { name.board() } else { name.clone() };
            self.put_last_job(&board, Some(self.time));
        }
    }

    /// A board is defined. What changes how long it may be quiet counts as a job: no board ends by a change
    /// of that alone.
    ///
    /// # Arguments
    /// `known`: what the shard had before; `None`: the board's life is new here.
    pub(super) fn note_defined_quiet(
        &mut self,
        board: &BoardName,
        known: Option<&Definition>,
        definition: &Definition,
    ) {
        let after = definition.expires_after_micros;
        if known.is_none_or(|known| known.expires_after_micros != after) {
            self.put_last_job(board, after.map(|_| self.time));
        }
    }

    /// A board is dropped.
    pub(super) fn forget_last_job(&mut self, board: &BoardName) {
        self.put_last_job(board, None);
    }

    fn put_last_job(&mut self, board: &BoardName, after: Option<Timestamp>) {
        let of_shard = || self.shard.last_jobs().get(board.as_str());
        let before = self.last_jobs.get(board).copied().unwrap_or_else(of_shard);
        if before == after {
            return;
        }
        self.last_jobs.insert(board.clone(), after);
        self.step.last_jobs.push(LastJobChange { board: board.clone(), after });
    }
}
