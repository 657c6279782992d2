//! Plans jobs whose outcomes clients wait for: with ranks, or only whether they changed anything.
//!
//! Knows: what is gathered of a job for its answer. Must not know: what a job does ([`jobs`](super::jobs)).

use crate::job::{Job, Reject};
use crate::state::Applied;
use crate::writer::outcome::JobOutcome;
use crate::writer::plan::jobs::JobPlan;
use crate::writer::plan::{Batch, BesideEntries, PlannedBoard, PlannedBoards, PlannedJob};
use crate::writer::source::BadJob;

/// How a job was planned, what became of its boards, and of the member's profile.
type Awaited = (Result<JobPlan, Reject>, PlannedBoards, Option<BesideEntries>);

impl Batch<'_> {
    /// Plans one job as a part of the step that is applied on its own, so that the answer has the member's
    /// rank before and after.
    ///
    /// # Arguments
    /// `job_applied`: `applied`, with the effective time of the message that brought the job. For a job that
    /// was parked, that is an earlier message.
    pub(super) fn plan_answered_job(
        &mut self,
        job: &Result<Job, BadJob>,
        index: usize,
        job_applied: Applied,
        applied: Applied,
    ) -> PlannedJob {
        self.outcome_has_ranks = true;
        let (outcome, boards, profile) = self.plan_awaited_job(job, index, job_applied);
        self.outcome_has_ranks = false;
        let part = self.end_part();
        match outcome {
            Ok(JobPlan::Planned | JobPlan::Plain { .. }) => {
                PlannedJob::Applied { part, boards, profile, first: None }
            }
            Ok(JobPlan::Repeated(first)) => {
                PlannedJob::Applied { part, boards, profile: None, first: Some(first) }
            }
            Ok(JobPlan::Parked) => PlannedJob::Parked(self.outcome_of_parked(index, applied)),
            Err(reject) => PlannedJob::Rejected(reject),
        }
    }

    /// Plans one job of which a client is told only whether it changed anything, among the others of its
    /// step.
    pub(super) fn plan_told_job(
        &mut self,
        job: &Result<Job, BadJob>,
        index: usize,
        job_applied: Applied,
        applied: Applied,
    ) -> JobOutcome {
        let (outcome, boards, profile) = self.plan_awaited_job(job, index, job_applied);
        match outcome {
            Ok(JobPlan::Plain { changed }) => JobOutcome::Changed(changed),
            Ok(JobPlan::Planned) => {
                let boards = boards.into_iter().map(PlannedBoard::without_rankings).collect();
                match profile {
                    None => JobOutcome::Applied(boards),
                    Some((changed, left)) => JobOutcome::WithProfile { boards, changed, left },
                }
            }
            Ok(JobPlan::Repeated(first)) => {
                let boards = boards.into_iter().map(PlannedBoard::without_rankings).collect();
                JobOutcome::Repeated(boards, first)
            }
            Ok(JobPlan::Parked) => JobOutcome::Parked(self.outcome_of_parked(index, applied)),
            Err(reject) => JobOutcome::Rejected(reject),
        }
    }

    /// Plans a job, and gathers what became of its boards, and of the member's profile.
    fn plan_awaited_job(&mut self, job: &Result<Job, BadJob>, index: usize, applied: Applied) -> Awaited {
        self.outcome_boards = Some(PlannedBoards::new());
        (self.outcome_profile, self.outcome_left) = (None, None);
        let outcome = self.plan_job(job, index, applied);
        let boards = self.outcome_boards.take().unwrap_or_default();
        let left = self.outcome_left.take();
        (outcome, boards, self.outcome_profile.take().map(|changed| (changed, left)))
    }
}
