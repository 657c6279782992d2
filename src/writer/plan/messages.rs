//! Plans messages one by one, and groups them into steps.
//!
//! Knows: where a step ends, and which messages are answered. Must not know: what a job does.

use std::sync::Arc;

use crate::state::{Applied, Step, StepPart, StepPlace};
use crate::writer::outcome::OutcomeDetail;
use crate::writer::plan::parked::UnparkedJobs;
use crate::writer::plan::{Batch, PlannedJob, PlannedStep, ToldMessage};
use crate::writer::source::{Message, OutcomeSender, Payload};

/// A step of messages that no client waits for is closed once it has so many jobs. To apply 64 jobs takes
/// some 50 µs under the lock. The step is longer if its last message brings more. Messages that clients wait
/// for are applied together up to so many jobs.
pub const STEP_JOBS: usize = 64;
/// The same for changes, as a job may change a dozen entries: windows, movement.
const STEP_CHANGES: usize = 4 * STEP_JOBS;
/// As how many jobs the drop of an instance counts.
const DROP_COST: usize = 8;
/// Parked jobs that a definition unparks: enough for the first jobs of a board, few enough to apply in one
/// step.
const UNPARKED_BY_DEFINITION: usize = if cfg!(test) { 3 } else { 64 };

impl Batch<'_> {
    /// Plans a message in its place: most are several cache lines long.
    pub(super) fn plan_message(&mut self, message: &mut Message, applied: Applied) {
        // Jobs get the effective time, or the message's own if that is a leap. Readers and the disk get the
        // message's own.
        let job_applied = Applied { timestamp: self.message_time, ..applied };
        match (&message.payload, message.answer.take()) {
            (Payload::Jobs(jobs), Some(answer)) if answer.detail() == OutcomeDetail::Changed => {
                self.begin_with_what_is_due(job_applied);
                let mut told = Vec::with_capacity(jobs.len());
                self.with_look_ahead(jobs, |batch, index, job| {
                    told.push(batch.plan_told_job(job, index, job_applied, applied));
                });
                let unparked = self.unpark(jobs.len(), jobs.len(), applied);
                self.told.push(ToldMessage { sequence: applied.sequence, jobs: told, answer });
                self.end_message(jobs.len(), unparked, applied);
            }
            (Payload::Jobs(jobs), Some(answer)) => {
                self.close_step();
                let due = self.plan_due(job_applied);
                let mut planned = Vec::with_capacity(jobs.len());
                self.with_look_ahead(jobs, |batch, index, job| {
                    planned.push(batch.plan_answered_job(job, index, job_applied, applied));
                });
                let mut unparked = self.unpark(jobs.len(), jobs.len(), applied).answered;
                self.do_what_is_due(job_applied);
                self.due_cost = 0;
                self.close_partial_step(&mut unparked);
                let step = self.take_step(applied);
                let jobs = planned;
                self.steps.push(PlannedStep::Answered { step, due, jobs, unparked, entries: 0, answer });
            }
            (Payload::Jobs(jobs), None) => {
                self.begin_with_what_is_due(job_applied);
                self.with_look_ahead(jobs, |batch, index, job| {
                    // The rejection is already recorded, and no client waits for it.
                    let _ = batch.plan_job(job, index, job_applied);
                });
                let unparked = self.unpark(jobs.len(), jobs.len(), applied);
                self.end_message(jobs.len(), unparked, applied);
            }
            (Payload::Define { board, incarnation, number, definition }, answer) => {
                let (incarnation, number) = (*incarnation, *number);
                // A definition that arrives after the drop of its incarnation, or after the next incarnation,
                // must not bring the board back.
                // Nor may it turn a life of the board into another board: its entries would be read wrongly.
                let agrees = self.board(board).is_none_or(|known| {
                    known.incarnation != incarnation || known.definition.agrees_with(definition)
                });
                let applies =
                    agrees && !self.has_ended(board, incarnation) && !self.may_have_ended(board, number);
                if applies && self.board(board).is_some_and(|known| known.incarnation < incarnation) {
                    // It ends an incarnation of the board, as a drop does.
                    self.close_step();
                }
                // By the definition that was there when their time came.
                self.begin_with_what_is_due(job_applied);
                if applies {
                    self.define(board, incarnation, number, Arc::clone(definition));
                }
                let unparked = self.unpark(UNPARKED_BY_DEFINITION, 0, applied);
                self.end_command(unparked, 0, applied, answer);
            }
            (Payload::Erase { members }, answer) => {
                self.begin_with_what_is_due(job_applied);
                let place = (applied.sequence, 0);
                self.erased.extend(members.iter().map(|member| (member.clone(), place)));
                self.end_command(UnparkedJobs::default(), 0, applied, answer);
            }
            (Payload::Unpark { jobs }, answer) => {
                self.begin_with_what_is_due(job_applied);
                let unparked = self.unpark(*jobs, 0, applied);
                self.end_command(unparked, 0, applied, answer);
            }
            (Payload::Tick, answer) => {
                self.begin_with_what_is_due(job_applied);
                self.end_command(UnparkedJobs::default(), 0, applied, answer);
            }
            (Payload::Drop { board, incarnation, number }, answer) => {
                self.close_step();
                self.drop_board(board.clone(), *incarnation, *number);
                self.end_command(UnparkedJobs::default(), 0, applied, answer);
            }
            (Payload::Trim { board, incarnation, point, members }, answer) => {
                // A trim gets a step of its own: it is as much as one hold of the lock may do.
                self.close_step();
                let removed = self.trim(board, *incarnation, point, members, job_applied);
                self.end_command(UnparkedJobs::default(), removed, applied, answer);
            }
            (Payload::Store(order), answer) => {
                // What it changes is applied in many steps, and none is of a message before.
                self.close_step();
                self.begin_with_what_is_due(job_applied);
                let (entries, rejected) = match self.store(order, job_applied) {
                    Ok(entries) => (entries, Vec::new()),
                    Err(reject) => (0, vec![PlannedJob::Rejected(reject)]),
                };
                self.end_answered_command((rejected, entries), UnparkedJobs::default(), applied, answer);
            }
        }
    }

    fn end_command(
        &mut self,
        unparked: UnparkedJobs,
        entries: u64,
        applied: Applied,
        answer: Option<OutcomeSender>,
    ) {
        self.end_answered_command((Vec::new(), entries), unparked, applied, answer);
    }

    fn end_answered_command(
        &mut self,
        (jobs, entries): (Vec<PlannedJob>, u64),
        unparked: UnparkedJobs,
        applied: Applied,
        answer: Option<OutcomeSender>,
    ) {
        self.end_message(1, unparked, applied);
        self.close_step();
        if let Some(answer) = answer {
            // What it did is in a step before.
            let (step, due) =
                (Step { applied, time: self.known_time(), ..Step::default() }, StepPart::default());
            let unparked = Vec::new();
            self.steps.push(PlannedStep::Answered { step, due, jobs, unparked, entries, answer });
        }
    }

    fn end_message(&mut self, jobs: usize, mut unparked: UnparkedJobs, applied: Applied) {
        self.do_what_is_due(applied);
        if !unparked.answered.is_empty() {
            self.close_partial_step(&mut unparked.answered);
        }
        if !unparked.answered.is_empty() {
            self.due_cost = 0;
            let (jobs, told) = (unparked.answered, std::mem::take(&mut self.told));
            let step = self.take_step(applied);
            self.steps.push(PlannedStep::Unparked { step, jobs, told });
            self.step_jobs = 0;
            return;
        }
        self.step.applied = applied;
        self.step_jobs += jobs + unparked.count + std::mem::take(&mut self.due_cost);
        if self.step_jobs >= STEP_JOBS || self.step.changes.len() >= STEP_CHANGES {
            self.close_step();
        }
    }

    /// What is due at a message whose jobs are answered, as a part of its own: a job that is rejected has
    /// none.
    fn plan_due(&mut self, job_applied: Applied) -> StepPart {
        self.begin_with_what_is_due(job_applied);
        self.end_part()
    }

    /// Expires all entries and drops instances whose time has come, before the message does anything else.
    fn begin_with_what_is_due(&mut self, applied: Applied) {
        let expired = self.expire_all_due(applied);
        self.drop_what_is_due(expired);
    }

    /// Does the same after the message's jobs, which may leave something to do.
    fn do_what_is_due(&mut self, applied: Applied) {
        let expired = self.expire_some_due(applied);
        self.drop_what_is_due(expired);
    }

    /// # Arguments
    /// `expired`: how many expired entries the step being filled removes.
    fn drop_what_is_due(&mut self, expired: usize) {
        let dropped = self.instances_dropped;
        self.drop_due_instances();
        self.due_cost += expired + DROP_COST * (self.instances_dropped - dropped);
    }

    /// Closes a step of a message that has more: of nothing but expired entries, or of what a result
    /// replaces. Readers are shown the message before until all of it is applied, and nothing of these boards
    /// meanwhile.
    pub(super) fn close_step_ahead(&mut self) {
        let step = Step { is_ahead: true, ..self.take_step(self.last_message) };
        self.steps.push(PlannedStep::Bulk { step, told: Vec::new() });
    }

    /// Closes the step being filled, unless it is empty.
    pub(super) fn close_step(&mut self) {
        if self.step_jobs > 0 || !self.told.is_empty() {
            let step = self.take_step(self.step.applied);
            let told = std::mem::take(&mut self.told);
            self.steps.push(PlannedStep::Bulk { step, told });
            self.step_jobs = 0;
        }
    }

    /// Ends a part of the step being filled: what comes next is applied after it.
    pub(super) fn end_part(&mut self) -> StepPart {
        self.step_number += 1;
        let end = self.step.end();
        StepPart::between(std::mem::replace(&mut self.parts_end, end), end)
    }

    fn take_step(&mut self, applied: Applied) -> Step {
        self.step_number += 1;
        self.parts_end = StepPlace::default();
        // The next step is most likely as long.
        let changes = Vec::with_capacity(self.step.changes.len());
        let step = std::mem::replace(&mut self.step, Step { changes, ..Step::default() });
        Step { applied, time: self.known_time(), ..step }
    }
}
