//! The boards that parked jobs name.
//!
//! A job may be parked although its own board is known: behind another job of its member, or because it names
//! another board as well. Such a job is not found by the board that its line is filed under
//! ([`order`](crate::writer::order)). So this counts the parked jobs that name each board.
//!
//! Knows: for each board, how many parked jobs name it, and a sequence that none of them comes before; and
//! the same of jobs that are for every board, or for a member's profile. Its memory grows with the boards
//! that are named, up to a limit. Beyond that, every board counts as named until no job is parked.

use std::collections::{BTreeMap, HashMap};

use crate::job::Job;
use crate::types::{BoardName, Sequence};

/// Boards that are counted by name.
const NAMES_MAX: usize = if cfg!(test) { 8 } else { 100_000 };

#[derive(Default)]
pub struct ParkedNames {
    /// Parked jobs.
    jobs: usize,
    by_board: HashMap<BoardName, Named>,
    /// Jobs that name no board.
    unnamed: Named,
    /// More boards were named than are counted, by jobs of this sequence on. Nothing is counted by name then.
    too_many: Option<Sequence>,
    /// Boards that began or ceased to be named since readers were told, and the lowest sequence meanwhile.
    changed: BTreeMap<BoardName, Sequence>,
}

#[derive(Default)]
struct Named {
    jobs: usize,
    /// The lowest sequence since there were no such jobs.
    since: Sequence,
}

impl Named {
    /// Returns whether `since` is another one now.
    fn add(&mut self, sequence: Sequence) -> bool {
        let is_lower = self.jobs == 0 || sequence < self.since;
        self.jobs += 1;
        if is_lower {
            self.since = sequence;
        }
        is_lower
    }
}

impl ParkedNames {
    /// A job of this sequence is parked.
    pub fn add(&mut self, job: &Job, sequence: Sequence) {
        self.jobs += 1;
        let mut boards = job.boards().peekable();
        if boards.peek().is_none() {
            self.unnamed.add(sequence);
        }
        for board in boards {
            if let Some(since) = &mut self.too_many {
                *since = sequence.min(*since);
            } else if let Some(named) = self.by_board.get_mut(board) {
                if named.add(sequence) {
                    note_changed(&mut self.changed, board, sequence);
                }
            } else if self.by_board.len() < NAMES_MAX {
                self.by_board.insert(board.clone(), Named { jobs: 1, since: sequence });
                note_changed(&mut self.changed, board, sequence);
            } else {
                let lowest = self.by_board.values().map(|named| named.since).min();
                self.too_many = Some(lowest.map_or(sequence, |lowest| lowest.min(sequence)));
                for (board, named) in std::mem::take(&mut self.by_board) {
                    note_changed(&mut self.changed, &board, named.since);
                }
            }
        }
    }

    /// A job is not parked any more.
    pub fn remove(&mut self, job: &Job) {
        self.jobs = self.jobs.saturating_sub(1);
        if self.jobs == 0 {
            self.too_many = None;
        }
        let mut boards = job.boards().peekable();
        if boards.peek().is_none() {
            self.unnamed.jobs = self.unnamed.jobs.saturating_sub(1);
        }
        for board in boards {
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

    /// The same of jobs that count for every board.
    pub fn everywhere_since(&self) -> Option<Sequence> {
        let unnamed = (self.unnamed.jobs > 0).then_some(self.unnamed.since);
        unnamed.into_iter().chain(self.too_many).min()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Op, Targets};
    use crate::types::MemberId;

    fn job(boards: &[String]) -> Job {
        let boards = boards.iter().map(|name| (BoardName::new(name).expect("a good name"), None));
        Job {
            member: MemberId::new("m").expect("a good id"),
            targets: Targets::Boards(boards.collect()),
            op: Some(Op::Remove),
            version: None,
            at: None,
            meta: None,
            id: None,
        }
    }

    #[test]
    fn beyond_the_limit_every_board_counts_as_named_until_no_job_is_parked() {
        let mut names = ParkedNames::default();
        let all: Vec<String> = (0..=NAMES_MAX).map(|number| format!("b{number}")).collect();
        let since = |names: &ParkedNames| {
            let first = BoardName::new("b0").expect("a good name");
            (names.since(&first).map(|since| since.0), names.everywhere_since().map(|since| since.0))
        };
        let (first, rest) = all.split_at(1);
        names.add(&job(first), Sequence(3));
        names.add(&job(&rest[..NAMES_MAX - 1]), Sequence(5));
        assert_eq!((since(&names), names.take_changed().len()), ((Some(3), None), NAMES_MAX));
        names.add(&job(&rest[NAMES_MAX - 1..]), Sequence(7));
        assert_eq!((since(&names), names.take_changed().len()), ((None, Some(3)), NAMES_MAX));
        names.remove(&job(first));
        names.remove(&job(&rest[..NAMES_MAX - 1]));
        assert_eq!(since(&names), (None, Some(3)));
        names.remove(&job(&rest[NAMES_MAX - 1..]));
        assert_eq!(since(&names), (None, None));
        // One that is for every board counts for each.
        names.add(&job(&[]), Sequence(9));
        assert_eq!(since(&names), (None, Some(9)));
        names.remove(&job(&[]));
        assert_eq!(since(&names), (None, None));
    }
}
