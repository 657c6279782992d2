//! The parts of a plan: what the commit writes, and the steps that are applied and answered.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::job::{JobPlace, Reject};
use crate::state::{
    Applied, BanChange, BoardEvent, EarlyInstances, FirstApplied, HashPoint, Incarnation, JobIdChange,
    LastJobChange, LogHash, MemberVersionChange, ShardTime, Step, StepPart, TreeId,
};
use crate::storage::codec::{MetadataRecord, ParkedRecord, ProfileRecord, RejectRecord};
use crate::tree::Handle;
use crate::types::{BoardName, MemberId, Sequence};
use crate::writer::outcome::{BoardOutcome, FoundBoard, JobOutcome, LeftBehind, ParkedOutcome};
use crate::writer::parking::{OutcomeWaiter, Parking};
use crate::writer::source::OutcomeSender;

/// A board that a job named, for the answer.
#[derive(Debug, Clone)]
pub struct PlannedBoard {
    pub board: Arc<FoundBoard>,
    pub tree: TreeId,
    pub handle: Option<Handle>,
    pub changed: bool,
    /// Whether the job's metadata are now those of the entry that is shown.
    pub takes_metadata: bool,
}

impl PlannedBoard {
    /// For a client that is not told of ranks.
    pub fn without_rankings(self) -> BoardOutcome {
        let Self { board, changed, takes_metadata, .. } = self;
        BoardOutcome { board, changed, takes_metadata, before: None, after: None }
    }
}

/// The boards of a job, in its order.
pub type PlannedBoards = SmallVec<[PlannedBoard; 1]>;

/// A message whose client is told only whether its jobs changed anything. That is known when they are
/// planned, so they share a step with others; the client is told once it is applied.
pub struct ToldMessage {
    pub sequence: Sequence,
    pub jobs: Vec<JobOutcome>,
    pub answer: OutcomeSender,
}

/// Whether a job changes what is kept of a member beside its entries; and what a removal has left.
pub type BesideEntries = (bool, Option<Arc<LeftBehind>>);

/// A job whose outcome a client waits for, with ranks. It is a part of its message's step that is applied on
/// its own, so that the answer has the member's rank before and after.
#[derive(Debug, Clone)]
pub enum PlannedJob {
    Rejected(Reject),
    Applied {
        part: StepPart,
        boards: PlannedBoards,
        /// Of a job about what is kept of the member beside its entries, its profile or a ban of all boards:
        /// whether it changes that, and what a removal has left.
        profile: Option<BesideEntries>,
        /// Of a job that was applied before, under its id: what came of it then.
        first: Option<FirstApplied>,
    },
    Parked(ParkedOutcome),
}

/// An unparked job, or several jobs whose outcomes no client waits for.
pub struct PlannedUnparked {
    pub job: PlannedJob,
    pub to: Option<OutcomeWaiter>,
}

/// What is applied under one hold of the lock.
pub enum PlannedStep {
    Bulk {
        step: Step,
        /// Those of its messages that are answered.
        told: Vec<ToldMessage>,
    },
    /// A message that unparked jobs which clients wait for: these, and everything else that it did, in order.
    Unparked {
        step: Step,
        jobs: Vec<PlannedUnparked>,
        /// Messages in it that are answered.
        told: Vec<ToldMessage>,
    },
    Answered {
        /// All that the message does.
        step: Step,
        /// What its time brings, before its jobs.
        due: StepPart,
        jobs: Vec<PlannedJob>,
        /// Jobs that the message unparked, after its own.
        unparked: Vec<PlannedUnparked>,
        /// Of a trim: how many entries the message removed. Of a result that it stored: how many that has.
        entries: u64,
        answer: OutcomeSender,
    },
}

impl PlannedStep {
    /// Takes the waiting clients out of a step that will not be applied: those that wait for its messages,
    /// and those that wait for jobs which it would have unparked.
    pub fn into_waiters(self) -> (Vec<(Sequence, OutcomeSender)>, Vec<OutcomeWaiter>) {
        let of_told = |told: Vec<ToldMessage>| -> Vec<_> {
            told.into_iter().map(|message| (message.sequence, message.answer)).collect()
        };
        let (answers, unparked) = match self {
            Self::Bulk { told, .. } => (of_told(told), Vec::new()),
            Self::Unparked { jobs, told, .. } => (of_told(told), jobs),
            Self::Answered { step, unparked, answer, .. } => {
                (vec![(step.applied.sequence, answer)], unparked)
            }
        };
        (answers, unparked.into_iter().filter_map(|unparked| unparked.to).collect())
    }

    /// As how many jobs of one board it counts, if it is a message that a client waits for and does nothing
    /// but its jobs.
    pub fn answered_jobs(&self) -> Option<usize> {
        /// A job of one board changes an entry, and looks the member up before and after. So do jobs that
        /// name several boards on each of them, even where they change nothing.
        const ACCESSES_OF_JOB: usize = 4;
        let cost = |job: &PlannedJob| match job {
            PlannedJob::Applied { part, boards, .. } => {
                let accesses = part.len() + 2 * boards.len();
                accesses.div_ceil(ACCESSES_OF_JOB).max(1)
            }
            PlannedJob::Rejected(_) | PlannedJob::Parked(_) => 1,
        };
        match self {
            Self::Answered { due, jobs, unparked, .. } if due.is_empty() && unparked.is_empty() => {
                Some(jobs.iter().map(cost).sum())
            }
            Self::Answered { .. } | Self::Bulk { .. } | Self::Unparked { .. } => None,
        }
    }

    pub fn step(&self) -> &Step {
        match self {
            Self::Bulk { step, .. } | Self::Unparked { step, .. } | Self::Answered { step, .. } => step,
        }
    }

    /// Boards whose drops came from the boards' stream.
    pub fn dropped(&self) -> Vec<(BoardName, Incarnation)> {
        let Self::Bulk { step: Step { events, .. }, .. } = self else { return Vec::new() };
        let dropped = events.iter().filter_map(|event| match event {
            BoardEvent::Drop { board, incarnation, number: Some(_) } => Some((board.clone(), *incarnation)),
            BoardEvent::Drop { .. } | BoardEvent::Define { .. } => None,
        });
        dropped.collect()
    }
}

/// The result of planning a batch.
pub struct Plan {
    pub applied: Applied,
    /// What is known of the time after the batch.
    pub time: ShardTime,
    /// The instances that have not begun by then: the planner's, with this batch's changes. If the batch is
    /// not committed, the shard is asked for them again.
    pub early: EarlyInstances,
    pub jobs: usize,
    pub changes: usize,
    /// Entries that expired.
    pub expired: usize,
    /// Instances that were dropped because their time was over.
    pub instances_dropped: usize,
    /// Instances that had begun, and begin later or never by a definition that the batch brought.
    pub taken_back: Vec<BoardName>,
    pub steps: Vec<PlannedStep>,
    pub rejects: Vec<RejectRecord>,
    /// The hash of the log after the batch, and those within the batch that are kept.
    pub hash: Option<(LogHash, Vec<HashPoint>)>,
    pub delta: Vec<u8>,
    pub metadata: Vec<(TreeId, Vec<u8>, Option<MetadataRecord>)>,
    pub profiles: Vec<(Vec<u8>, Option<ProfileRecord>)>,
    /// Bans that begin or end, in their order.
    pub bans: Vec<BanChange>,
    /// Versions of members that are remembered or forgotten, in their order.
    pub versions: Vec<MemberVersionChange>,
    /// The last jobs of boards that end after a quiet time, each once.
    pub last_jobs: Vec<LastJobChange>,
    /// Ids of jobs that are kept or forgotten, each once.
    pub job_ids: Vec<JobIdChange>,
    /// Members that left every board, and by what job: what earlier rejects have of them is erased.
    pub erased: Vec<(MemberId, JobPlace)>,
    pub dropped_trees: Vec<TreeId>,
    /// Lines and records of jobs that the batch parked, or that wait for another board than before.
    pub parked: Vec<(u32, ParkedRecord)>,
    /// Unparked jobs: line, sequence and index.
    pub unparked: Vec<(u32, Sequence, u32)>,
    /// The planner's parking, with this batch's changes. If the batch is not committed, it is loaded from
    /// disk again.
    pub parking: Option<Parking>,
    /// Why parked jobs or profiles could not be read. Such a plan must not be committed: it lacks their
    /// changes.
    pub unreadable: Option<String>,
}
