//! What a plan consists of: what the commit writes, and the steps that are applied and answered.

use std::sync::Arc;

use crate::board::Definition;
use crate::job::Reject;
use crate::state::{Applied, BoardEvent, Incarnation, Step, TreeId};
use crate::storage::codec::{MetadataRecord, ParkedRecord, RejectRecord};
use crate::tree::Handle;
use crate::types::{BoardName, Sequence, Timestamp};
use crate::writer::outcome::Later;
use crate::writer::parking::{Asker, Parking};
use crate::writer::source::AnswerTo;

/// Where a job was meant to take effect, for the answer.
#[derive(Debug, Clone)]
pub struct PlannedBoard {
    pub board: BoardName,
    pub definition: Arc<Definition>,
    pub tree: TreeId,
    pub handle: Option<Handle>,
    pub changed: bool,
}

/// One job of a message that somebody waits for, applied on its own so that its place before and after can be
/// told.
#[derive(Debug, Clone)]
pub enum PlannedJob {
    Rejected(Reject),
    Applied { step: Step, boards: Vec<PlannedBoard> },
    Parked(Later),
}

/// A job that waited and waits no longer, or several whose outcomes nobody asked for.
pub struct PlannedFreed {
    pub job: PlannedJob,
    pub to: Option<Asker>,
}

/// What is applied under one hold of the lock.
pub enum PlannedStep {
    Bulk(Step),
    /// What a message freed that somebody waits for, and all else that it did, in order.
    Freed {
        jobs: Vec<PlannedFreed>,
        applied: Applied,
    },
    Answered {
        jobs: Vec<PlannedJob>,
        /// What the message freed, after its own jobs.
        freed: Vec<PlannedFreed>,
        /// Entries that the message removed as a trim.
        removed: u64,
        applied: Applied,
        answer: AnswerTo,
    },
}

impl PlannedStep {
    /// Of a step that is not going to be applied: who waits for its message, and who for jobs that it would
    /// have freed.
    #[must_use]
    pub fn into_waiting(self) -> (Option<(Sequence, AnswerTo)>, Vec<Asker>) {
        let (answer, freed) = match self {
            Self::Bulk(_) => (None, Vec::new()),
            Self::Freed { jobs, .. } => (None, jobs),
            Self::Answered { freed, applied, answer, .. } => (Some((applied.sequence, answer)), freed),
        };
        (answer, freed.into_iter().filter_map(|freed| freed.to).collect())
    }

    /// Boards that it drops because a stream decided so.
    #[must_use]
    pub fn dropped(&self) -> Vec<(BoardName, Incarnation)> {
        let Self::Bulk(Step { events, .. }) = self else { return Vec::new() };
        let dropped = events.iter().filter_map(|event| match event {
            BoardEvent::Drop { board, incarnation, number: Some(_) } => Some((board.clone(), *incarnation)),
            BoardEvent::Drop { .. } | BoardEvent::Define { .. } => None,
        });
        dropped.collect()
    }
}

/// What a batch comes to.
pub struct Plan {
    pub first: Sequence,
    pub applied: Applied,
    /// The shard's effective time after it: the latest time of any message so far. It never runs backwards,
    /// whatever the clocks of the queue's servers do, and is the time of a job that names none.
    pub time: Timestamp,
    pub jobs: usize,
    pub changes: usize,
    pub steps: Vec<PlannedStep>,
    pub rejects: Vec<RejectRecord>,
    pub delta: Vec<u8>,
    pub metadata: Vec<(TreeId, Vec<u8>, Option<MetadataRecord>)>,
    pub dropped_trees: Vec<TreeId>,
    /// Jobs that wait from now on, or for another board from now on, in the form that is stored, and their
    /// lines.
    pub parked: Vec<(u32, ParkedRecord)>,
    /// Those that wait no longer: line, sequence and index.
    pub unparked: Vec<(u32, Sequence, u32)>,
    /// What the planner was given, with what this batch changed. Should the batch not be committed, what is
    /// on disk counts.
    pub parking: Option<Parking>,
    /// Why jobs that wait could not be read. The plan must not be committed then: it lacks what they would
    /// have done.
    pub unreadable: Option<String>,
}
