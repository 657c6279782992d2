//! The boards that parked jobs name.
//!
//! A job may be parked although its own board is known: behind another job of its member, or because it names
//! another board as well. Such a job is not found by the board that its line is filed under
//! ([`order`](crate::writer::order)). So this counts the parked jobs that name each board.
//!
//! Knows: for each board, how many parked jobs name it, and a sequence that none of them comes before. Its
//! memory grows with the boards that are named, and not with the jobs.

use std::collections::{BTreeMap, HashMap};

use crate::job::Job;
use crate::types::{BoardName, Sequence};

#[derive(Default)]
pub struct ParkedNames {
    by_board: HashMap<BoardName, Named>,
    /// Boards that began or ceased to be named since readers were told, and the lowest sequence meanwhile.
    changed: BTreeMap<BoardName, Sequence>,
}

struct Named {
    jobs: usize,
    /// The lowest sequence since no job named the board.
    since: Sequence,
}

impl ParkedNames {
    /// A job of this sequence is parked.
    pub fn add(&mut self, job: &Job, sequence: Sequence) {
        for board in job.boards() {
            if let Some(named) = self.by_board.get_mut(board) {
                named.jobs += 1;
                if sequence < named.since {
                    named.since = sequence;
                    note_changed(&mut self.changed, board, sequence);
                }
            } else {
                self.by_board.insert(board.clone(), Named { jobs: 1, since: sequence });
                note_changed(&mut self.changed, board, sequence);
            }
        }
    }

    /// A job is not parked any more.
    pub fn remove(&mut self, job: &Job) {
        for board in job.boards() {
            let Some(named) = self.by_board.get_mut(board) else { continue };
            named.jobs -= 1;
            if named.jobs == 0 {
                note_changed(&mut self.changed, board, named.since);
                self.by_board.remove(board);
            }
        }
    }

    /// No job that names the board and is parked has a lower sequence; `None`: no parked job names it.
    pub fn since(&self, board: &BoardName) -> Option<Sequence> {
        self.by_board.get(board).map(|named| named.since)
    }

    /// What has changed since the last call.
    pub fn take_changed(&mut self) -> BTreeMap<BoardName, Sequence> {
        std::mem::take(&mut self.changed)
    }
}

fn note_changed(changed: &mut BTreeMap<BoardName, Sequence>, board: &BoardName, sequence: Sequence) {
    let lowest = changed.entry(board.clone()).or_insert(sequence);
    *lowest = sequence.min(*lowest);
}
