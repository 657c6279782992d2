//! Prefetches the memory that the next jobs need.
//!
//! Prefetches are hints: a needless one costs time and changes no result.

use crate::job::{Job, Targets};
use crate::writer::plan::Batch;
use crate::writer::source::{BadJob, Message, Payload};

/// Jobs prefetched as a group: enough to hide a cache miss, few enough to stay in the first-level cache.
pub(super) const LOOK_AHEAD: usize = 16;

impl Batch<'_> {
    /// Calls `each` for every job, after prefetching for its group.
    pub(super) fn with_look_ahead(
        &mut self,
        jobs: &[Result<Job, BadJob>],
        mut each: impl FnMut(&mut Self, usize, &Result<Job, BadJob>),
    ) {
        for (group, start) in jobs.chunks(LOOK_AHEAD).zip((0..).step_by(LOOK_AHEAD)) {
            self.shard.yield_if_due();
            if jobs.len() > 1 {
                self.look_ahead(group.iter().filter_map(|job| job.as_ref().ok()));
            }
            for (offset, job) in group.iter().enumerate() {
                each(self, start + offset, job);
            }
        }
    }

    /// Prefetches for a group of jobs. A look-up misses the cache four times: index, id, locator, leaf. The
    /// misses of a group overlap.
    pub(super) fn look_ahead<'a>(&self, mut jobs: impl Iterator<Item = &'a Job> + Clone) {
        let shard = &*self.shard;
        let members = &shard.members;
        let mut hashes = [None; LOOK_AHEAD];
        for (hash, job) in hashes.iter_mut().zip(jobs.clone()) {
            let hashed = members.hash(job.member.as_bytes());
            members.prefetch_index(hashed);
            *hash = Some(hashed);
        }
        let mut handles = [None; LOOK_AHEAD];
        for (handle, hash) in handles.iter_mut().zip(hashes) {
            *handle = hash.and_then(|hash| members.prefetch_id(hash));
        }
        let tree_of = |job: &Job| match &job.targets {
            Targets::Boards(boards) => shard.board_tree(boards.first()?.0.as_str()),
            Targets::EveryBoard | Targets::Profile(_) => None,
        };
        // Most batches name one board, so one look-up is enough for a hint.
        let Some(tree) = jobs.find_map(tree_of) else { return };
        handles.iter().flatten().for_each(|handle| tree.tree.prefetch_locator(*handle));
        handles.iter().flatten().for_each(|handle| members.prefetch_long_id(*handle));
        handles.iter().flatten().for_each(|handle| tree.prefetch_extra(*handle));
        handles.iter().flatten().for_each(|handle| tree.tree.prefetch_entry(*handle));
    }
}

/// The job of a message of one job.
pub(super) fn only_job(message: &Message) -> Option<&Job> {
    match &message.payload {
        Payload::Jobs(jobs) => match jobs.as_slice() {
            [job] => job.as_ref().ok(),
            _ => None,
        },
        Payload::Define { .. }
        | Payload::Drop { .. }
        | Payload::Trim { .. }
        | Payload::Unpark { .. }
        | Payload::Tick => None,
    }
}
