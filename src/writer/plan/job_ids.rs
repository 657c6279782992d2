//! The ids of jobs, as the batch sees them: which were applied, and which are forgotten.
//!
//! Knows: the shard's, overlaid with the batch's own. What is forgotten follows from the messages: of each,
//! a few ids whose time is over, and the oldest one where there would be too many. Must not know: what a job
//! does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::job::Job;
use crate::state::{FirstApplied, JOB_IDS_MAX, JobIdAge, JobIdChange};
use crate::types::{Sequence, Timestamp};
use crate::writer::plan::Batch;

/// Ids that a message forgets at most, beside one for each that it brings beyond the limit.
const FORGOTTEN_PER_MESSAGE: usize = if cfg!(test) { 2 } else { 64 };

/// What the batch has changed.
#[derive(Default)]
pub(super) struct BatchJobIds {
    changed: BTreeMap<Arc<str>, Option<FirstApplied>>,
    /// Those that the batch has brought and that are kept.
    by_age: BTreeSet<JobIdAge>,
    /// Ids that there are more than on the shard.
    more: isize,
    /// The shard's up to this one are dealt with.
    forgotten: Option<JobIdAge>,
    /// Whether the job being planned has changed anything that readers see.
    pub(super) job_changed: bool,
}

impl BatchJobIds {
    pub(super) fn into_changes(self) -> Vec<JobIdChange> {
        self.changed.into_iter().map(|(id, after)| JobIdChange { id, after }).collect()
    }
}

impl Batch<'_> {
    /// What came of the job that was applied under an id, if it is still known.
    pub(super) fn applied_under(&self, id: &str) -> Option<FirstApplied> {
        self.kept_id(id).filter(|first| !self.is_over(first.time))
    }

    /// A job was applied under an id.
    pub(super) fn keep_job_id(&mut self, id: &str, sequence: Sequence, changed: bool) {
        if self.kept_id(id).is_none() {
            let held = self.shard.job_ids().len();
            if held.saturating_add_signed(self.job_ids.more) >= JOB_IDS_MAX
                && let Some(oldest) = self.oldest_job_id()
            {
                self.forget_job_id(oldest);
            }
            self.job_ids.more += 1;
        }
        let first = FirstApplied { time: self.time, sequence, changed };
        self.put_job_id(JobIdChange { id: id.into(), after: Some(first) });
    }

    /// Forgets some ids whose time is over. Costs a comparison where there are none.
    pub(super) fn forget_old_job_ids(&mut self) {
        if self.shard.job_ids().is_empty() && self.job_ids.by_age.is_empty() {
            return;
        }
        for _ in 0..FORGOTTEN_PER_MESSAGE {
            match self.oldest_job_id() {
                Some(oldest) if self.is_over(oldest.0) => self.forget_job_id(oldest),
                _ => break,
            }
        }
    }

    /// Whether an id that came then is not kept any more.
    fn is_over(&self, time: Timestamp) -> bool {
        let kept = self.planner.registry.job_ids_keep_micros();
        time.as_micros().saturating_add(kept) <= self.time.as_micros()
    }

    fn kept_id(&self, id: &str) -> Option<FirstApplied> {
        match self.job_ids.changed.get(id) {
            Some(of_batch) => *of_batch,
            None => self.shard.job_ids().get(id),
        }
    }

    /// The id that came first of all that are kept.
    fn oldest_job_id(&mut self) -> Option<JobIdAge> {
        let of_shard = self.shard.job_ids().oldest_after(self.job_ids.forgotten.as_ref());
        let of_shard = of_shard.into_iter().find(|(_, id)| !self.job_ids.changed.contains_key(id)).cloned();
        let of_batch = self.job_ids.by_age.first().cloned();
        [of_shard, of_batch].into_iter().flatten().min()
    }

    fn forget_job_id(&mut self, oldest: JobIdAge) {
        self.job_ids.more -= 1;
        self.put_job_id(JobIdChange { id: Arc::clone(&oldest.1), after: None });
        if !self.job_ids.by_age.remove(&oldest) {
            self.job_ids.forgotten = Some(oldest);
        }
    }

    fn put_job_id(&mut self, change: JobIdChange) {
        let JobIdChange { id, after } = &change;
        if let Some(Some(before)) = self.job_ids.changed.get(id) {
            self.job_ids.by_age.remove(&(before.time, Arc::clone(id)));
        }
        if let Some(after) = after {
            self.job_ids.by_age.insert((after.time, Arc::clone(id)));
        }
        self.job_ids.changed.insert(Arc::clone(id), *after);
        self.step.job_ids.push(change);
    }

    /// What a waiting client is shown of a job that was applied before: the entries as they are.
    pub(super) fn show_unchanged(&mut self, job: &Job) {
        let handle = self.find_member(&job.member);
        for board in job.boards() {
            self.show_as_it_is(board, handle);
        }
    }
}
