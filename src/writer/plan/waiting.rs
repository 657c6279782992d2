//! Jobs that wait for the queue to bring the definition of a board, and those that wait no longer.
//!
//! Every message frees jobs, but no more than a bounded number, so that neither a batch nor a hold of the lock grows with how
//! many wait. What one message leaves, the next ones free: messages of jobs as many as they bring, and commands of their own
//! that nodes publish where the queue is quiet. So each message's effect is whole, whatever it frees, a crash between any
//! two of them is like any other, and every replica frees the same jobs at the same message.

use std::collections::VecDeque;

use crate::job::{Job, Reject, RejectCode};
use crate::state::Applied;
use crate::storage::codec::ParkedRecord;
use crate::types::BoardName;
use crate::writer::outcome::Later;
use crate::writer::parking::{self, ParkedJob, Parking, Place, Turn};
use crate::writer::plan::{Batch, PlannedFreed, PlannedJob};

/// What a message frees.
#[derive(Default)]
pub(super) struct FreedJobs {
    pub(super) count: usize,
    /// All that the step holds, in order, if somebody waits for one of the jobs; otherwise it is in the step being filled.
    pub(super) told: Vec<PlannedFreed>,
}

impl Batch<'_> {
    /// Whether a job has to wait for the queue to bring a board's definition, or behind one that does.
    pub(super) fn must_wait(&self, job: &Job) -> Result<bool, Reject> {
        let Some(parking) = self.parking.as_ref().filter(|_| !self.frees) else { return Ok(false) };
        let unknown = parking::boards(job).find(|name| self.board(name).is_none());
        let refuse = |detail| Err(Reject::new(RejectCode::UnknownBoard, detail));
        match unknown {
            Some(name) if !parking.auto_create => refuse(format!("there is no board {name}")),
            Some(name) if self.has_all_boards(parking) => refuse(no_more_boards(name, parking)),
            Some(_) => Ok(true),
            None => Ok(parking.holds(&job.member)),
        }
    }

    /// Whether the shard holds as many boards as there can be: no definition of another one will come. Told by the
    /// shard's own boards, so that every replica rejects the same jobs.
    fn has_all_boards(&self, parking: &Parking) -> bool {
        self.board_count >= parking.boards_max
    }

    pub(super) fn park(&mut self, job: &Job, index: usize, applied: Applied) {
        let Some(mut parking) = self.parking.take() else { return };
        let Applied { sequence, timestamp, .. } = applied;
        let place = (sequence, index_in_message(index));
        let parked = ParkedJob { timestamp, job: job.clone() };
        let line = parking.park(place, parked, |name| self.board(name).is_some());
        let record = ParkedRecord { sequence, index: place.1, timestamp, job: (self.planner.describe)(job) };
        self.parked.push((line, record));
        self.parking = Some(parking);
    }

    /// What will have come of a job that was just parked.
    pub(super) fn ask_later(&mut self, index: usize, applied: Applied) -> PlannedJob {
        let place = (applied.sequence, index_in_message(index));
        let parking = self.parking.as_mut().expect("a job was parked there");
        PlannedJob::Parked(Later::new(parking.ask(place)))
    }

    /// Plans up to `limit` of the jobs that wait no longer, after a message's own.
    ///
    /// # Arguments
    /// `own`: how many jobs the message brought. Rejects of those that it frees are numbered behind these.
    pub(super) fn free(&mut self, limit: usize, own: usize, applied: Applied) -> FreedJobs {
        let mut freed = FreedJobs::default();
        let Some(parking) = self.parking.as_ref().filter(|parking| !parking.is_empty()) else { return freed };
        let has_all = self.has_all_boards(parking);
        self.frees = true;
        while freed.count < limit {
            let Some(parking) = &mut self.parking else { break };
            // Where no more boards can come, what waits for one is rejected, and holds up nobody any longer.
            parking.note_has_all(has_all);
            let Some(turn) = parking.take_turn() else { break };
            let line = turn.line;
            let mut jobs = match self.read(turn, limit - freed.count) {
                Ok(jobs) => jobs,
                Err(reason) => {
                    self.unreadable = Some(reason);
                    break;
                }
            };
            let before = freed.count;
            let next = loop {
                let Some((place, parked)) = jobs.first() else { break None };
                let unknown = parking::boards(&parked.job).find(|name| self.board(name).is_none());
                let unknown = unknown.filter(|_| !has_all).cloned();
                if unknown.is_some() || freed.count == limit {
                    break Some((*place, unknown));
                }
                let Some((place, parked)) = jobs.take_first() else { break None };
                self.unparked.push((line, place.0, place.1));
                self.plan_freed(place, parked, own + freed.count, applied, &mut freed.told);
                freed.count += 1;
            };
            if let Some(parking) = &mut self.parking {
                parking.give_back(line, freed.count - before, jobs.into_fresh(), next);
            }
        }
        self.frees = false;
        if !freed.told.is_empty() {
            self.set_aside(applied, &mut freed.told);
        }
        freed
    }

    fn plan_freed(
        &mut self,
        place: Place,
        ParkedJob { timestamp, job }: ParkedJob,
        index: usize,
        applied: Applied,
        told: &mut Vec<PlannedFreed>,
    ) {
        // What comes of it is this message's doing; its time is that of the message that brought it.
        let then = Applied { timestamp, ..applied };
        let job = Ok(job);
        let Some(to) = self.parking.as_mut().and_then(|parking| parking.take_asked(place)) else {
            // The reason is among the rejects already, and nobody waits for it.
            let _ = self.plan_job(&job, index, then);
            return;
        };
        self.set_aside(applied, told);
        let planned = self.plan_told_job(&job, index, then, applied);
        told.push(PlannedFreed { job: planned, to: Some(to) });
    }

    /// Puts what the step holds so far before what comes now.
    pub(super) fn set_aside(&mut self, applied: Applied, told: &mut Vec<PlannedFreed>) {
        let step = &self.step;
        if !(step.events.is_empty() && step.added.is_empty() && step.changes.is_empty()) {
            let step = self.take_step(applied);
            told.push(PlannedFreed { job: PlannedJob::Applied { step, boards: Vec::new() }, to: None });
        }
    }

    /// The first jobs of a line: as many as may be freed, and the next one, which tells what the others wait for.
    fn read(&self, turn: Turn, limit: usize) -> Result<FrontOfLine, String> {
        let Turn { line, first, on_disk, fresh } = turn;
        let wanted = on_disk.min(limit + 1);
        let stored = if wanted == 0 { Vec::new() } else { (self.planner.parked)(line, first, wanted)? };
        if stored.len() != wanted || stored.first().is_some_and(|(place, _)| *place != first) {
            return Err(format!("of {wanted} jobs that wait from {first:?} on, {} are there", stored.len()));
        }
        // Behind those that are not read nothing may go.
        let all_read = wanted == on_disk;
        Ok(FrontOfLine { stored: stored.into(), fresh, all_read })
    }
}

/// Jobs at the front of a line, as far as they were read.
struct FrontOfLine {
    stored: VecDeque<(Place, ParkedJob)>,
    fresh: VecDeque<(Place, ParkedJob)>,
    /// The fresh ones come right after the stored ones.
    all_read: bool,
}

impl FrontOfLine {
    fn first(&self) -> Option<&(Place, ParkedJob)> {
        self.stored.front().or_else(|| self.fresh.front().filter(|_| self.all_read))
    }

    fn take_first(&mut self) -> Option<(Place, ParkedJob)> {
        match self.stored.pop_front() {
            None if self.all_read => self.fresh.pop_front(),
            stored => stored,
        }
    }

    fn into_fresh(self) -> VecDeque<(Place, ParkedJob)> {
        self.fresh
    }
}

fn index_in_message(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

pub(super) fn no_more_boards(name: &BoardName, parking: &Parking) -> String {
    format!("there is no board {name}, and there can be no more than {}, the limit", parking.boards_max)
}
