//! Apply: puts committed steps into the state in memory, and tells those who wait what came of their jobs.
//!
//! Knows: the lock, which it holds for one step at a time. Must not know: what a step means.

use parking_lot::{RwLock, RwLockWriteGuard};

use crate::state::{Change, Shard, TreeId};
use crate::tree::Handle;
use crate::types::Sequence;
use crate::writer::outcome::{BoardOutcome, JobOutcome, MessageOutcome, Place};
use crate::writer::plan::{PlannedBoard, PlannedJob, PlannedStep};
use crate::writer::source::AnswerTo;

/// Applies a step, and gives back who waits for it, with the answer. The caller sends it once readers have been told
/// of the sequence, so that whoever has the answer can read what it wrote.
pub fn apply(shard: &RwLock<Shard>, step: PlannedStep) -> (Sequence, Option<Answer>) {
    match step {
        PlannedStep::Bulk(step) => {
            // Waiting for memory is half of the work, and needs no readers kept out.
            shard.read().warm(&step.changes);
            let mut guard = shard.write();
            guard.apply(&step);
            // To readers who wait, and not to the next step, which would be there first every time.
            RwLockWriteGuard::unlock_fair(guard);
            (step.applied.sequence, None)
        }
        PlannedStep::Answered { jobs, applied, answer } => {
            let mut outcomes = Vec::with_capacity(jobs.len());
            shard.read().warm(&changes_of(&jobs));
            {
                let mut guard = shard.write();
                let shard = &mut *guard;
                for job in jobs {
                    outcomes.push(match job {
                        PlannedJob::Rejected(reject) => JobOutcome::Rejected(reject),
                        PlannedJob::Parked => JobOutcome::Parked,
                        PlannedJob::Applied { step, boards } => apply_job(shard, &step, boards),
                    });
                }
                shard.applied = applied;
                RwLockWriteGuard::unlock_fair(guard);
            }
            let outcome = MessageOutcome { sequence: applied.sequence, jobs: outcomes };
            (applied.sequence, Some(Answer { outcome, to: answer }))
        }
    }
}

fn changes_of(jobs: &[PlannedJob]) -> Vec<Change> {
    let changes = |job: &PlannedJob| match job {
        PlannedJob::Rejected(_) | PlannedJob::Parked => Vec::new(),
        PlannedJob::Applied { step, .. } => step.changes.clone(),
    };
    jobs.iter().flat_map(changes).collect()
}

/// An answer, and who waits for it.
pub struct Answer {
    pub outcome: MessageOutcome,
    pub to: AnswerTo,
}

fn apply_job(shard: &mut Shard, step: &crate::state::Step, boards: Vec<PlannedBoard>) -> JobOutcome {
    let places = |shard: &Shard| -> Vec<Option<Place>> {
        boards.iter().map(|board| board.handle.and_then(|handle| place(shard, board.tree, handle))).collect()
    };
    let before = places(shard);
    shard.apply(step);
    let after = places(shard);
    let outcomes = boards.into_iter().zip(before.into_iter().zip(after)).map(|(board, (before, after))| {
        let PlannedBoard { board, definition, changed, .. } = board;
        BoardOutcome { board, definition, changed, before, after }
    });
    JobOutcome::Applied(outcomes.collect())
}

/// Where a member stands within its shard; `None` if it is not listed.
fn place(shard: &Shard, tree: TreeId, handle: Handle) -> Option<Place> {
    let tree = shard.tree(tree)?;
    let entry = tree.entry(handle)?;
    let words = entry.listed()?;
    let (_, score) = words.as_slice().split_last()?;
    let (better, through) = tree.tree.count_range(score);
    Some(Place {
        words,
        updated_at: entry.updated_at,
        has_metadata: entry.has_metadata,
        better,
        tied: through - better,
        ahead: tree.tree.index_of(handle)?,
        total: tree.total(),
    })
}
