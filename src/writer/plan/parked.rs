//! Parks jobs until the queue brings the definitions of their boards, and unparks them.
//!
//! Every message unparks a bounded number of jobs, and looks at no more lines than that, so neither a batch
//! nor a hold of the lock grows with the number of parked jobs. Later messages unpark the rest: a message of
//! jobs as many as it brings, and on a quiet queue `free` commands that nodes publish. So each message's
//! effect is atomic, a crash between two messages needs no special care, and every replica unparks the same
//! jobs at the same message.

use std::collections::VecDeque;

use crate::job::{Job, JobPlace, Reject, RejectCode};
use crate::state::Applied;
use crate::state_lock::Purpose;
use crate::storage::codec::ParkedRecord;
use crate::types::{BoardName, MemberId};
use crate::wire;
use crate::writer::decide::stale_version;
use crate::writer::outcome::ParkedOutcome;
use crate::writer::parking::{CheckedOutLine, OutcomeWaiter, ParkedJob, Parking};
use crate::writer::plan::boards::board_in;
use crate::writer::plan::{Batch, PlannedBoards, PlannedJob, PlannedUnparked};

/// The most jobs that one message unparks, and the most lines that it looks at. All of that is applied under
/// one hold of the lock, in a quarter of a millisecond or so. It must be the same on every replica.
pub const UNPARKED_PER_MESSAGE: usize = 256;

/// The jobs that a message unparked.
#[derive(Default)]
pub(super) struct UnparkedJobs {
    pub(super) count: usize,
    /// If a client waits for one of the jobs: everything in the step, in order. Otherwise empty, and the
    /// changes are in the step being filled.
    pub(super) answered: Vec<PlannedUnparked>,
}

impl Batch<'_> {
    /// Whether jobs of a member may be parked.
    pub(super) fn has_parked(&self, member: &MemberId) -> bool {
        self.parking.as_ref().is_some_and(|parking| parking.has_parked(member))
    }

    /// Whether a job must be parked: for a board's definition, or behind a parked job of its member. One of
    /// all boards waits for nothing.
    pub(super) fn must_park(&self, job: &Job) -> Result<bool, Reject> {
        let Some(parking) = self.parking.as_ref().filter(|_| !self.replaying_parked) else {
            return Ok(false);
        };
        let unknown = job.awaited_boards().find(|name| self.board(name).is_none());
        let refuse = |detail| Err(Reject::new(RejectCode::UnknownBoard, detail));
        match unknown {
            Some(name) if !parking.auto_create => refuse(no_such_board(name)),
            Some(name) if self.is_at_board_limit(parking) => refuse(no_more_boards(name, parking)),
            Some(name) if parking.is_line_full(&job.member) => {
                let detail = format!(
                    "there is no board {name} yet, and {} jobs of this member wait for boards already, which is \
                     the limit; PUT /v1/boards/{name} creates it, or send the job again later",
                    parking.jobs_of_line_max
                );
                Err(Reject::new(RejectCode::TooLarge, detail))
            }
            None if !parking.has_parked(&job.member) => Ok(false),
            // What is of all boards does not wait, so its versions are those of the log's order now. By the
            // time that this job takes its turn they may be those of later jobs.
            Some(_) | None => match (job.version, job.version.and(self.member_version(&job.member))) {
                (Some(version), Some(stored)) if version <= stored && job.boards().next().is_some() => {
                    Err(stale_version(version, stored))
                }
                _ => Ok(true),
            },
        }
    }

    /// Whether the shard is at its board limit, so that no further board will be defined. Only the shard's
    /// own boards count, so that every replica rejects the same jobs.
    fn is_at_board_limit(&self, parking: &Parking) -> bool {
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

    fn put_parked(&mut self, line: u32, (sequence, index): JobPlace, parked: &ParkedJob) {
        self.hash_parked(line, (sequence, index), parked.board);
        let ParkedJob { timestamp, job, board } = parked;
        let (job, timestamp, board) = (wire::encode(job), *timestamp, *board);
        self.parked.push((line, ParkedRecord { sequence, index, timestamp, job, board }));
    }

    /// The future outcome of the job that was just parked.
    pub(super) fn outcome_of_parked(&mut self, index: usize, applied: Applied) -> ParkedOutcome {
        let place = (applied.sequence, index_in_message(index));
        let (line, _) = *self.parked.last().expect("the caller has parked a job just before");
        let parking = self.parking.as_mut().expect("`park` created the parking");
        ParkedOutcome::new(parking.add_waiter(place, line))
    }

    /// After a message's own jobs: plans up to `limit` parked jobs whose boards are defined, and no more than
    /// [`UNPARKED_PER_MESSAGE`].
    ///
    /// # Arguments
    /// `own`: how many jobs the message brought. Rejections of unparked jobs get indexes after these.
    pub(super) fn unpark(&mut self, limit: usize, own: usize, applied: Applied) -> UnparkedJobs {
        let mut unparked = UnparkedJobs::default();
        self.note_board_count();
        let Some(parking) = self.parking.as_ref().filter(|parking| parking.has_ready()) else {
            return unparked;
        };
        // At the board limit, jobs that wait for a missing board are rejected, and block their lines no
        // longer.
        let at_board_limit = self.is_at_board_limit(parking);
        self.replaying_parked = true;
        let mut budget = limit.min(UNPARKED_PER_MESSAGE);
        // What the message does beside them counts as well: later messages unpark the rest.
        while budget > 0 && self.has_room_for_parked() {
            let Some(checked_out) = self.parking.as_mut().and_then(Parking::check_out_line) else { break };
            let line = checked_out.line;
            let mut jobs = match self.read_front_of_line(checked_out, budget, at_board_limit) {
                Ok(jobs) => jobs,
                Err(reason) => {
                    self.unreadable = Some(reason);
                    break;
                }
            };
            let before = unparked.count;
            while unparked.count - before < budget
                && self.has_room_for_parked()
                && jobs
                    .first()
                    .is_some_and(|(_, parked)| at_board_limit || self.first_unknown_board(parked).is_none())
                && let Some((place, parked)) = jobs.take_first()
            {
                self.shard.yield_if_due();
                self.unparked.push((line, place.0, place.1));
                self.hash_unparked(line, place);
                if let Some(parking) = &mut self.parking {
                    parking.note_unparked(&parked.job);
                }
                self.plan_unparked(place, parked, own + unparked.count, applied, &mut unparked.answered);
                unparked.count += 1;
            }
            let unparked_here = unparked.count - before;
            // A line whose first job stays blocked costs as much as a job: a great many lines may wait for
            // another board. Which lines are looked at follows from what is on disk, not from what this
            // process has looked at before.
            budget -= unparked_here.max(1);
            self.check_in_line(line, unparked_here, jobs, budget > 0 || unparked_here == 0);
        }
        self.replaying_parked = false;
        if !unparked.answered.is_empty() {
            self.close_partial_step(&mut unparked.answered);
        }
        unparked
    }

    /// Puts a line back after some of its jobs were unparked.
    ///
    /// # Arguments
    /// `was_seen`: whether the first remaining job was looked at. If not, its stored board stays.
    fn check_in_line(&mut self, line: u32, unparked: usize, jobs: FrontOfLine, was_seen: bool) {
        let mut next = jobs.first().cloned();
        if let Some((place, parked)) = next.as_mut().filter(|_| was_seen)
            && let Some(board) = self.first_unknown_board(parked).filter(|board| *board != parked.board)
        {
            parked.board = board;
            self.put_parked(line, *place, parked);
        }
        let Some(mut parking) = self.parking.take() else { return };
        let is_known = |name: &BoardName| self.board(name).is_some();
        parking.check_in_line(line, unparked, jobs.into_fresh(), next.as_ref(), is_known);
        self.parking = Some(parking);
    }

    /// The index of the first unknown board among those that a job names.
    fn first_unknown_board(&self, parked: &ParkedJob) -> Option<u32> {
        let mut boards = (0..).zip(parked.job.awaited_boards());
        boards.find(|(_, name)| self.board(name).is_none()).map(|(at, _)| at)
    }

    /// After boards were defined or dropped: updates whether the shard is at its board limit.
    pub(super) fn note_board_count(&mut self) {
        let Some(at_board_limit) = self.parking.as_ref().map(|parking| self.is_at_board_limit(parking))
        else {
            return;
        };
        if let Some(parking) = &mut self.parking {
            parking.set_at_board_limit(at_board_limit);
        }
    }

    fn plan_unparked(
        &mut self,
        place: JobPlace,
        ParkedJob { timestamp, job, .. }: ParkedJob,
        index: usize,
        applied: Applied,
        answered: &mut Vec<PlannedUnparked>,
    ) {
        // Its effects belong to this message; its time is that of the message that brought it, unless that
        // was of a leap which is not believed any more.
        let job_applied = Applied { timestamp: timestamp.min(self.message_time), ..applied };
        let job = Ok(job);
        let Some(to) = self.take_waiter(place) else {
            // The rejection is already recorded, and no client waits for it.
            let _ = self.plan_job(&job, index, job_applied);
            return;
        };
        self.close_partial_step(answered);
        let planned = self.plan_answered_job(&job, index, job_applied, applied);
        answered.push(PlannedUnparked { job: planned, to: Some(to) });
    }

    fn take_waiter(&mut self, place: JobPlace) -> Option<OutcomeWaiter> {
        self.parking.as_mut().and_then(|parking| parking.take_waiter(place))
    }

    /// Ends a part of the step being filled, if it changes anything, so that its changes come before the next
    /// job's.
    pub(super) fn close_partial_step(&mut self, answered: &mut Vec<PlannedUnparked>) {
        let part = self.end_part();
        if !part.is_empty() {
            let boards = PlannedBoards::new();
            answered.push(PlannedUnparked {
                job: PlannedJob::Applied { part, boards, profile: None, first: None },
                to: None,
            });
        }
    }

    /// Reads the first jobs of a line: up to `limit` that can be unparked, and the next one, which the line
    /// is then filed by. The rest is not read.
    fn read_front_of_line(
        &mut self,
        checked_out: CheckedOutLine,
        limit: usize,
        at_board_limit: bool,
    ) -> Result<FrontOfLine, String> {
        let CheckedOutLine { line, first, board, on_disk, fresh } = checked_out;
        let wanted = on_disk.min(limit + 1);
        let mut waits = false;
        let (planner, boards) = (self.planner, &self.boards);
        let mut read_on = |parked: &ParkedJob| {
            // This runs within `unlocked`, without the outer lock: a second read lock beside it could
            // deadlock.
            let shard = planner.shard.read(Purpose::Plan);
            let is_known = |name: &BoardName| board_in(boards, &shard, name).is_some();
            waits = !at_board_limit && !parked.job.awaited_boards().all(is_known);
            !waits
        };
        let stored = if wanted == 0 {
            Vec::new()
        } else {
            self.shard.unlocked(|| (planner.read_parked)(line, first, wanted, &mut read_on))?
        };
        let is_cut_off = stored.len() != wanted && !waits;
        if is_cut_off || stored.first().is_some_and(|(place, _)| *place != first) {
            return Err(format!(
                "only {} of the {wanted} parked jobs from {first:?} on could be found on disk",
                stored.len()
            ));
        }
        // A fresh job must not overtake stored ones that were not read.
        let all_read = stored.len() == on_disk;
        let mut jobs = FrontOfLine { stored: stored.into(), fresh, all_read };
        if let Some((_, first)) = jobs.first_mut() {
            // The batch may have changed its board since the last commit.
            first.board = board;
        }
        Ok(jobs)
    }
}

/// The first jobs of a line, as far as they were read.
struct FrontOfLine {
    stored: VecDeque<(JobPlace, ParkedJob)>,
    fresh: VecDeque<(JobPlace, ParkedJob)>,
    /// Whether all stored jobs were read, so that the fresh ones come right after them.
    all_read: bool,
}

impl FrontOfLine {
    fn first(&self) -> Option<&(JobPlace, ParkedJob)> {
        self.stored.front().or_else(|| self.fresh.front().filter(|_| self.all_read))
    }

    fn first_mut(&mut self) -> Option<&mut (JobPlace, ParkedJob)> {
        self.stored.front_mut().or_else(|| self.fresh.front_mut().filter(|_| self.all_read))
    }

    fn take_first(&mut self) -> Option<(JobPlace, ParkedJob)> {
        match self.stored.pop_front() {
            None if self.all_read => self.fresh.pop_front(),
            stored => stored,
        }
    }

    fn into_fresh(self) -> VecDeque<(JobPlace, ParkedJob)> {
        self.fresh
    }
}

pub(super) fn index_in_message(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Why a job for a board that nobody has defined is rejected where jobs create no boards.
pub(super) fn no_such_board(board: &BoardName) -> String {
    format!(
        "there is no board {board}, and jobs create none here (--no-auto-create); PUT /v1/boards/{board} creates it"
    )
}

pub(super) fn no_more_boards(name: &BoardName, parking: &Parking) -> String {
    format!(
        "there is no board {name}, and it cannot be created, because the shard has reached the limit of {} boards",
        parking.boards_max
    )
}
