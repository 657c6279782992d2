//! Prefetches the memory that the next jobs need.
//!
//! Prefetches are hints: a needless one costs time and changes no result.

use smallvec::SmallVec;

use crate::job::{Job, Targets};
use crate::state::WindowTree;
use crate::tree::Handle;
use crate::types::BoardName;
use crate::window::Window;
use crate::writer::plan::Batch;
use crate::writer::source::{BadJob, Message, Payload};

/// Jobs prefetched as a group: enough to hide a cache miss, few enough to stay in the first-level cache.
pub(super) const LOOK_AHEAD: usize = 16;
/// Entries of a group that are prefetched: of jobs on one board, those of eight windows.
const TREES_PREFETCHED: usize = 8 * LOOK_AHEAD;

type Trees<'a> = SmallVec<[&'a WindowTree; Window::ALL.len()]>;

impl Batch<'_> {
    /// Calls `each` for every job, after prefetching for its group.
    pub(super) fn with_look_ahead(
        &mut self,
        jobs: &[Result<Job, BadJob>],
        mut each: impl FnMut(&mut Self, usize, &Result<Job, BadJob>),
    ) {
        for (group, start) in jobs.chunks(LOOK_AHEAD).zip((0..).step_by(LOOK_AHEAD)) {
            // For messages of one job each, the planner does both in groups: to yield reads the clock.
            if jobs.len() > 1 {
                self.shard.yield_if_due();
                self.look_ahead(group.iter().filter_map(|job| job.as_ref().ok()));
            }
            for (offset, job) in group.iter().enumerate() {
                each(self, start + offset, job);
            }
        }
    }

    /// Prefetches for a group of jobs. A look-up misses the cache four times: index, id, locator, leaf. The
    /// misses of a group overlap.
    pub(super) fn look_ahead<'a>(&self, jobs: impl Iterator<Item = &'a Job> + Clone) {
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
        let mut wanted = SmallVec::<[(&WindowTree, Handle); TREES_PREFETCHED]>::new();
        let (mut board, mut trees) = (None, Trees::new());
        for (job, handle) in jobs.zip(handles) {
            let (Some(handle), Targets::Boards(boards)) = (handle, &job.targets) else { continue };
            members.prefetch_long_id(handle);
            for (name, _) in boards.iter().take(TREES_PREFETCHED - wanted.len()) {
                // Most jobs of a group name the same board.
                if board != Some(name) {
                    (board, trees) = (Some(name), self.trees_entered(name));
                }
                for tree in trees.iter().take(TREES_PREFETCHED - wanted.len()) {
                    wanted.push((*tree, handle));
                }
            }
        }
        wanted.iter().for_each(|(tree, handle)| tree.tree.prefetch_locator(*handle));
        wanted.iter().for_each(|(tree, handle)| tree.prefetch_extra(*handle));
        wanted.iter().for_each(|(tree, handle)| tree.tree.prefetch_entry(*handle));
    }

    /// The trees of a board that its jobs change, as far as the batch knows by now.
    fn trees_entered(&self, board: &BoardName) -> Trees<'_> {
        let shard = &*self.shard;
        let entered = self.entered.of_board(board).filter_map(|(_, entered)| entered.tree);
        let kept = self.movements.of_board(board).flat_map(|(_, kept)| kept.trees());
        let of_windows = entered.chain(kept).filter_map(|tree| shard.tree(tree));
        shard.board_tree(board.as_str()).into_iter().chain(of_windows).collect()
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
        | Payload::Store(_)
        | Payload::Erase { .. }
        | Payload::Unpark { .. }
        | Payload::Tick => None,
    }
}
