//! Jobs that wait for the queue to bring the definition of a board, and those that wait no longer.
//!
//! Every message frees jobs, but no more than a bounded number, and looks at no more lines than that, so that
//! neither a batch nor a hold of the lock grows with how many wait. What one message leaves, the next ones
//! free: messages of jobs as many as they bring, and commands of their own that nodes publish where the queue
//! is quiet. So each message's effect is whole, whatever it frees, a crash between any two of them is like
//! any other, and every replica frees the same jobs at the same message.

use std::collections::VecDeque;

use crate::job::{Job, Reject, RejectCode};
use crate::state::Applied;
use crate::state_lock::Purpose;
use crate::storage::codec::ParkedRecord;
use crate::types::BoardName;
use crate::wire;
use crate::writer::outcome::Later;
use crate::writer::parking::{Asker, ParkedJob, Parking, Place, Turn};
use crate::writer::plan::boards::board_in;
use crate::writer::plan::{Batch, PlannedFreed, PlannedJob};

/// Jobs that one message frees at most, and lines that it looks at: all of that is under one hold of a lock,
/// a quarter of a millisecond or so. Every replica has the same number.
pub const FREED_PER_MESSAGE: usize = 256;

/// What a message frees.
#[derive(Default)]
pub(super) struct FreedJobs {
    pub(super) count: usize,
    /// All that the step holds, in order, if somebody waits for one of the jobs; otherwise it is in the step
    /// being filled.
    pub(super) told: Vec<PlannedFreed>,
}

impl Batch<'_> {
    /// Whether a job has to wait for the queue to bring a board's definition, or behind one that does.
    pub(super) fn must_wait(&self, job: &Job) -> Result<bool, Reject> {
        let Some(parking) = self.parking.as_ref().filter(|_| !self.frees) else { return Ok(false) };
        let unknown = job.boards().find(|name| self.board(name).is_none());
        let refuse = |detail| Err(Reject::new(RejectCode::UnknownBoard, detail));
        match unknown {
            Some(name) if !parking.auto_create => refuse(format!("there is no board {name}")),
            Some(name) if self.has_all_boards(parking) => refuse(no_more_boards(name, parking)),
            Some(_) => Ok(true),
            None => Ok(parking.holds(&job.member)),
        }
    }

    /// Whether the shard holds as many boards as there can be: no definition of another one will come. Told
    /// by the shard's own boards, so that every replica rejects the same jobs.
    fn has_all_boards(&self, parking: &Parking) -> bool {
        self.board_count >= parking.boards_max
    }

    pub(super) fn park(&mut self, job: &Job, index: usize, applied: Applied) {
        let Some(mut parking) = self.parking.take() else { return };
        let Applied { sequence, timestamp, .. } = applied;
        let place = (sequence, index_in_message(index));
        let mut parked = ParkedJob { timestamp, job: job.clone(), board: 0 };
        let line = parking.park(place, &mut parked, |name| self.board(name).is_some());
        self.parking = Some(parking);
        self.put_parked(line, place, &parked);
    }

    fn put_parked(&mut self, line: u32, (sequence, index): Place, parked: &ParkedJob) {
        let ParkedJob { timestamp, job, board } = parked;
        let (job, timestamp, board) = (wire::encode(job), *timestamp, *board);
        self.parked.push((line, ParkedRecord { sequence, index, timestamp, job, board }));
    }

    /// What will have come of a job that was just parked.
    pub(super) fn ask_later(&mut self, index: usize, applied: Applied) -> PlannedJob {
        let place = (applied.sequence, index_in_message(index));
        let (line, _) = *self.parked.last().expect("a job was parked just now");
        let parking = self.parking.as_mut().expect("a job was parked there");
        PlannedJob::Parked(Later::new(parking.ask(place, line)))
    }

    /// Plans up to `limit` of the jobs that wait no longer, after a message's own, and no more than a message
    /// may free.
    ///
    /// # Arguments
    /// `own`: how many jobs the message brought. Rejects of those that it frees are numbered behind these.
    pub(super) fn free(&mut self, limit: usize, own: usize, applied: Applied) -> FreedJobs {
        let mut freed = FreedJobs::default();
        self.note_board_count();
        let Some(parking) = self.parking.as_ref().filter(|parking| parking.has_ready()) else { return freed };
        // Where no more boards can come, what waits for one is rejected, and holds up nobody any longer.
        let has_all = self.has_all_boards(parking);
        self.frees = true;
        let mut budget = limit.min(FREED_PER_MESSAGE);
        while budget > 0 {
            let Some(turn) = self.parking.as_mut().and_then(Parking::take_turn) else { break };
            let line = turn.line;
            let mut jobs = match self.read(turn, budget, has_all) {
                Ok(jobs) => jobs,
                Err(reason) => {
                    self.unreadable = Some(reason);
                    break;
                }
            };
            let before = freed.count;
            while freed.count - before < budget
                && jobs.first().is_some_and(|(_, parked)| has_all || self.unknown(parked).is_none())
                && let Some((place, parked)) = jobs.take_first()
            {
                self.shard.let_others_in();
                self.unparked.push((line, place.0, place.1));
                self.plan_freed(place, parked, own + freed.count, applied, &mut freed.told);
                freed.count += 1;
            }
            let freed_here = freed.count - before;
            // A line that was looked at in vain costs as much as a job: all of a great many may wait for
            // another board. What is looked at follows from what is on disk, not from what this process has
            // looked at before.
            budget -= freed_here.max(1);
            self.give_back(line, freed_here, jobs, budget > 0 || freed_here == 0);
        }
        self.frees = false;
        if !freed.told.is_empty() {
            self.set_aside(applied, &mut freed.told);
        }
        freed
    }

    /// Puts a line back in its place after its turn.
    ///
    /// # Arguments
    /// `was_seen`: whether the first of the jobs that are left was found to wait. If not, it is as it was put
    /// down.
    fn give_back(&mut self, line: u32, freed: usize, jobs: FrontOfLine, was_seen: bool) {
        let mut next = jobs.first().cloned();
        if let Some((place, parked)) = next.as_mut().filter(|_| was_seen)
            && let Some(board) = self.unknown(parked).filter(|board| *board != parked.board)
        {
            parked.board = board;
            self.put_parked(line, *place, parked);
        }
        let Some(mut parking) = self.parking.take() else { return };
        let is_known = |name: &BoardName| self.board(name).is_some();
        parking.give_back(line, freed, jobs.into_fresh(), next.as_ref(), is_known);
        self.parking = Some(parking);
    }

    /// Which of the boards that a job names is the first that is unknown.
    fn unknown(&self, parked: &ParkedJob) -> Option<u32> {
        let mut boards = (0..).zip(parked.job.boards());
        boards.find(|(_, name)| self.board(name).is_none()).map(|(at, _)| at)
    }

    /// Boards were defined or dropped: there may be as many as there can be, or no longer.
    pub(super) fn note_board_count(&mut self) {
        let Some(has_all) = self.parking.as_ref().map(|parking| self.has_all_boards(parking)) else { return };
        if let Some(parking) = &mut self.parking {
            parking.note_has_all(has_all);
        }
    }

    fn plan_freed(
        &mut self,
        place: Place,
        ParkedJob { timestamp, job, .. }: ParkedJob,
        index: usize,
        applied: Applied,
        told: &mut Vec<PlannedFreed>,
    ) {
        // What comes of it is this message's doing; its time is that of the message that brought it.
        let then = Applied { timestamp, ..applied };
        let job = Ok(job);
        let Some(to) = self.take_asked(place) else {
            // The reason is among the rejects already, and nobody waits for it.
            let _ = self.plan_job(&job, index, then);
            return;
        };
        self.set_aside(applied, told);
        let planned = self.plan_told_job(&job, index, then, applied);
        told.push(PlannedFreed { job: planned, to: Some(to) });
    }

    fn take_asked(&mut self, place: Place) -> Option<Asker> {
        self.parking.as_mut().and_then(|parking| parking.take_asked(place))
    }

    /// Puts what the step holds so far before what comes now.
    pub(super) fn set_aside(&mut self, applied: Applied, told: &mut Vec<PlannedFreed>) {
        let step = &self.step;
        if !(step.events.is_empty() && step.added.is_empty() && step.changes.is_empty()) {
            let step = self.take_step(applied);
            told.push(PlannedFreed { job: PlannedJob::Applied { step, boards: Vec::new() }, to: None });
        }
    }

    /// The first jobs of a line: those that may be freed, up to `limit`, and the next one, which tells what
    /// the others wait for. Others are not read.
    fn read(&mut self, turn: Turn, limit: usize, has_all: bool) -> Result<FrontOfLine, String> {
        let Turn { line, first, board, on_disk, fresh } = turn;
        let wanted = on_disk.min(limit + 1);
        let mut waits = false;
        let (planner, boards) = (self.planner, &self.boards);
        let mut goes_on = |parked: &ParkedJob| {
            // Within `aside`: the disk may take its time, and a second lock beside the first could wait for
            // ever.
            let shard = planner.shard.read(Purpose::Plan);
            let is_known = |name: &BoardName| board_in(boards, &shard, name).is_some();
            waits = !has_all && !parked.job.boards().all(is_known);
            !waits
        };
        let stored = if wanted == 0 {
            Vec::new()
        } else {
            self.shard.aside(|| (planner.parked)(line, first, wanted, &mut goes_on))?
        };
        let is_cut_off = stored.len() != wanted && !waits;
        if is_cut_off || stored.first().is_some_and(|(place, _)| *place != first) {
            return Err(format!("of {wanted} jobs that wait from {first:?} on, {} are there", stored.len()));
        }
        // Behind those that are not read nothing may go.
        let all_read = stored.len() == on_disk;
        let mut jobs = FrontOfLine { stored: stored.into(), fresh, all_read };
        if let Some((_, first)) = jobs.first_mut() {
            // The batch may have put it down otherwise than it was read.
            first.board = board;
        }
        Ok(jobs)
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

    fn first_mut(&mut self) -> Option<&mut (Place, ParkedJob)> {
        self.stored.front_mut().or_else(|| self.fresh.front_mut().filter(|_| self.all_read))
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
