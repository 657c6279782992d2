//! The batch's way through its messages, and the steps that it makes of them.
//!
//! Knows: where a step ends, and which messages are answered. Must not know: what a job does.

use crate::state::{Applied, Step};
use crate::writer::plan::jobs::JobPlan;
use crate::writer::plan::{Batch, PlannedJob, PlannedStep};
use crate::writer::source::{AnswerTo, Message, Payload};

/// Jobs per step of messages that nobody waits for: some 50 µs under the lock.
const STEP_JOBS: usize = 64;

impl Batch<'_> {
    pub(super) fn plan_message(&mut self, message: Message, applied: Applied) {
        // For jobs, the effective time; readers and the disk have the message's own.
        let timed = Applied { timestamp: self.time, ..applied };
        match (message.payload, message.answer) {
            (Payload::Jobs(jobs), Some(answer)) => {
                self.close_step();
                let mut planned = Vec::with_capacity(jobs.len());
                self.with_look_ahead(&jobs, |batch, index, job| {
                    batch.told = Some(Vec::new());
                    let outcome = batch.plan_job(job, index, timed);
                    let boards = batch.told.take().unwrap_or_default();
                    let mut step = batch.take_step();
                    step.applied = applied;
                    planned.push(match outcome {
                        Ok(JobPlan::Taken) => PlannedJob::Applied { step, boards },
                        Ok(JobPlan::Parked) => PlannedJob::Parked,
                        Err(reject) => PlannedJob::Rejected(reject),
                    });
                });
                self.steps.push(PlannedStep::Answered { jobs: planned, applied, answer });
            }
            (Payload::Jobs(jobs), None) => {
                self.with_look_ahead(&jobs, |batch, index, job| {
                    // The reason is among the rejects already, and nobody waits for it.
                    let _ = batch.plan_job(job, index, timed);
                });
                self.end_message(jobs.len(), applied);
            }
            (Payload::Define { board, incarnation, definition }, answer) => {
                // A definition that its own drop overtook must not bring the board back; nor one that the next life did.
                if !self.is_over(&board, incarnation) {
                    self.define(&board, incarnation, definition);
                    self.unpark(timed);
                }
                self.end_command(applied, answer);
            }
            (Payload::Drop { board, incarnation, settled }, answer) => {
                self.close_step();
                self.drop_board(board, incarnation, settled);
                self.end_command(applied, answer);
            }
        }
    }

    fn end_command(&mut self, applied: Applied, answer: Option<AnswerTo>) {
        self.end_message(1, applied);
        self.close_step();
        if let Some(answer) = answer {
            self.steps.push(PlannedStep::Answered { jobs: Vec::new(), applied, answer });
        }
    }

    fn end_message(&mut self, jobs: usize, applied: Applied) {
        self.step.applied = applied;
        self.step_jobs += jobs;
        if self.step_jobs >= STEP_JOBS {
            self.close_step();
        }
    }

    /// Ends the step being filled, if there is anything in it.
    pub(super) fn close_step(&mut self) {
        if self.step_jobs > 0 {
            let step = self.take_step();
            self.steps.push(PlannedStep::Bulk(step));
            self.step_jobs = 0;
        }
    }

    fn take_step(&mut self) -> Step {
        self.step_number += 1;
        std::mem::take(&mut self.step)
    }
}
