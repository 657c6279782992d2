//! Jobs that wait for the queue to bring the definition of a board, and those that wait no longer.

use crate::job::{Job, Reject, RejectCode};
use crate::state::Applied;
use crate::storage::codec::ParkedRecord;
use crate::types::BoardName;
use crate::writer::parking::{self, ParkedJob, Parking};
use crate::writer::plan::Batch;

impl Batch<'_> {
    /// Whether a job has to wait for the queue to bring a board's definition.
    pub(super) fn must_wait(&self, job: &Job) -> Result<bool, Reject> {
        let Some(parking) = self.parking.as_ref().filter(|_| !self.frees) else { return Ok(false) };
        let unknown = parking::boards(job).find(|name| self.board(name).is_none());
        if unknown.is_none() && !parking.holds(&job.member) {
            return Ok(false);
        }
        let refuse = |detail| Err(Reject::new(RejectCode::UnknownBoard, detail));
        match unknown {
            Some(name) if !parking.auto_create => refuse(format!("there is no board {name}")),
            Some(name) if self.has_all_boards(parking) => refuse(no_more_boards(name, parking)),
            Some(name) if parking.is_full() => {
                refuse(format!("there is no board {name}, and too many jobs wait for boards to be defined"))
            }
            // It is not applied either: a member's jobs keep their order.
            None if parking.is_full() => refuse(
                "an earlier job of this member waits for its board to be defined, and too many jobs wait"
                    .to_owned(),
            ),
            _ => Ok(true),
        }
    }

    /// Whether the shard holds as many boards as there can be: no definition of another one will come. Told by the
    /// shard's own boards, so that every replica rejects the same jobs.
    fn has_all_boards(&self, parking: &Parking) -> bool {
        let shard = self.planner.shard;
        let is_known = |name: &BoardName| shard.board(name.as_str()).is_some();
        let (mut defined, mut dropped) = (0, 0);
        for (name, board) in &self.boards {
            match board {
                Some(_) => defined += usize::from(!is_known(name)),
                None => dropped += usize::from(is_known(name)),
            }
        }
        shard.board_count() + defined - dropped >= parking.boards_max
    }

    pub(super) fn park(&mut self, job: &Job, index: usize, applied: Applied) {
        let Some(parking) = &mut self.parking else { return };
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let Applied { sequence, timestamp, .. } = applied;
        self.parked.push(ParkedRecord { sequence, index, timestamp, job: (self.planner.describe)(job) });
        parking.park((sequence, index), ParkedJob { timestamp, job: job.clone() });
    }

    /// Plans the jobs that waited for no other board than are known now.
    pub(super) fn unpark(&mut self, applied: Applied) {
        let Some(mut parking) = self.parking.take() else { return };
        let free = if parking.is_empty() {
            Vec::new()
        } else {
            // Where no more boards can come, what waits for one is rejected, and holds up nobody any longer.
            let has_all = self.has_all_boards(&parking);
            parking.take_free(|name| has_all || self.board(name).is_some())
        };
        self.parking = Some(parking);
        self.frees = true;
        for (index, (place, parked)) in free.into_iter().enumerate() {
            self.unparked.push(place);
            // What comes of it is this message's doing; its time is that of the message that brought it.
            let applied = Applied { timestamp: parked.timestamp, ..applied };
            let _ = self.plan_job(&Ok(parked.job), index, applied);
        }
        self.frees = false;
    }
}

pub(super) fn no_more_boards(name: &BoardName, parking: &Parking) -> String {
    format!("there is no board {name}, and there can be no more than {}, the limit", parking.boards_max)
}
