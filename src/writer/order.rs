//! The order in which lines of parked jobs are unparked.
//!
//! Each line is filed under one board that its first job names. While that board is unknown, the line is
//! blocked. Once it is known, the line is taken in turn. If its first job turns out to wait for another board
//! as well, the line is filed again, under that one. A definition or a drop costs the same however many lines
//! there are: it only moves their board from blocked to ready or back.
//!
//! Knows: which lines are ready, and that the one with the oldest first job comes next. Must not know: jobs.
//! The order follows from where lines are filed and which boards exist. Both are on disk, so a restart does
//! not change it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::job::JobPlace;
use crate::types::{BoardName, Sequence};

/// The place of a line's first job, and the line.
type Head = (JobPlace, u32);

/// The board that a line is filed under. `None`: its first job names no board, so it waits for none.
type FiledUnder = Option<BoardName>;

#[derive(Default)]
pub struct LineOrder {
    lines_by_board: BTreeMap<FiledUnder, Lines>,
    /// The first line of each board that is known.
    ready: BTreeMap<Head, FiledUnder>,
    /// The first line of each board that is not.
    blocked: BTreeMap<Head, FiledUnder>,
    /// The shard is at its board limit. No missing board will be defined, so blocked lines are ready too:
    /// their jobs are rejected.
    at_board_limit: bool,
    /// Boards whose lines have changed since readers were told, and the lowest sequence that was first.
    changed: BTreeMap<BoardName, Sequence>,
}

/// The lines of a board: at least one.
struct Lines {
    heads: BTreeSet<Head>,
    is_known: bool,
}

impl LineOrder {
    /// Files a line that is not filed.
    pub fn file(&mut self, head: Head, board: FiledUnder, is_known: bool) {
        let lines = self.lines_by_board.entry(board.clone());
        let lines = lines.or_insert_with(|| Lines { heads: BTreeSet::new(), is_known });
        let first = lines.heads.first().copied();
        lines.heads.insert(head);
        note_changed(&mut self.changed, board.as_ref(), head);
        if first.is_none_or(|first| head < first) {
            let heads = if lines.is_known { &mut self.ready } else { &mut self.blocked };
            if let Some(first) = first {
                heads.remove(&first);
            }
            heads.insert(head, board);
        }
    }

    /// Takes the next line: of the ready ones, the one with the oldest first job.
    pub fn take_next(&mut self) -> Option<Head> {
        let ready = self.ready.first_key_value().map(|(head, _)| *head);
        let blocked = self.blocked.first_key_value().map(|(head, _)| *head).filter(|_| self.at_board_limit);
        let heads = match (ready, blocked) {
            (Some(ready), Some(blocked)) if blocked < ready => &mut self.blocked,
            (None, Some(_)) => &mut self.blocked,
            _ => &mut self.ready,
        };
        let (head, board) = heads.pop_first()?;
        let lines = self.lines_by_board.get_mut(&board)?;
        lines.heads.remove(&head);
        note_changed(&mut self.changed, board.as_ref(), head);
        match lines.heads.first() {
            Some(next) => drop(heads.insert(*next, board)),
            None => drop(self.lines_by_board.remove(&board)),
        }
        Some(head)
    }

    /// Notes that a board was defined or dropped. Returns whether lines are filed under it.
    pub fn note_board(&mut self, board: &BoardName, is_known: bool) -> bool {
        let Some(lines) = self.lines_by_board.get_mut(&Some(board.clone())) else { return false };
        if lines.is_known != is_known
            && let Some(first) = lines.heads.first()
        {
            lines.is_known = is_known;
            let (from, to) = if is_known {
                (&mut self.blocked, &mut self.ready)
            } else {
                (&mut self.ready, &mut self.blocked)
            };
            to.extend(from.remove_entry(first));
        }
        true
    }

    /// Sets whether the shard is at its board limit. If so, jobs that wait for a missing board are taken too,
    /// and are rejected.
    pub fn set_at_board_limit(&mut self, at_board_limit: bool) {
        self.at_board_limit = at_board_limit;
    }

    /// The boards whose lines have changed since the last call, and the lowest sequence that was first.
    pub fn take_changed(&mut self) -> BTreeMap<BoardName, Sequence> {
        std::mem::take(&mut self.changed)
    }

    /// The first job of the lines that are filed under a board.
    pub fn first_of(&self, board: &BoardName) -> Option<Sequence> {
        let lines = self.lines_by_board.get(&Some(board.clone()))?;
        lines.heads.first().map(|((sequence, _), _)| *sequence)
    }

    /// The oldest job of all lines.
    pub fn oldest(&self) -> Option<Sequence> {
        let of = |heads: &BTreeMap<Head, FiledUnder>| Some(heads.first_key_value()?.0.0.0);
        of(&self.ready).into_iter().chain(of(&self.blocked)).min()
    }

    /// Whether any line is ready.
    pub fn has_next(&self) -> bool {
        !self.ready.is_empty() || (self.at_board_limit && !self.blocked.is_empty())
    }

    /// Of the first jobs of lines that wait for a board that is not known, the oldest one, and the board.
    pub fn oldest_blocked(&self) -> Option<(JobPlace, &BoardName)> {
        let ((place, _), board) = self.blocked.first_key_value()?;
        Some((*place, board.as_ref()?))
    }

    /// Looks at up to `limit` boards after `from`, or from the first one on. Returns those that lines wait
    /// for, and the board to continue after; `None` at the end.
    pub fn wanted(&self, from: Option<&BoardName>, limit: usize) -> (Vec<BoardName>, Option<BoardName>) {
        let mut boards = self.lines_by_board.range((Bound::Excluded(from.cloned()), Bound::Unbounded));
        let (mut wanted, mut last) = (Vec::new(), None);
        for (board, lines) in boards.by_ref().take(limit) {
            wanted.extend(board.clone().filter(|_| !lines.is_known));
            last.clone_from(board);
        }
        (wanted, last.filter(|_| boards.next().is_some()))
    }
}

fn note_changed(changed: &mut BTreeMap<BoardName, Sequence>, board: Option<&BoardName>, head: Head) {
    let Some(board) = board else { return };
    let ((sequence, _), _) = head;
    let lowest = changed.entry(board.clone()).or_insert(sequence);
    *lowest = sequence.min(*lowest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> BoardName {
        BoardName::new(text).expect("a good name")
    }

    fn head(number: u32) -> Head {
        ((Sequence(u64::from(number)), 0), number)
    }

    /// Takes lines for as long as there are any.
    fn taken(order: &mut LineOrder) -> Vec<u32> {
        std::iter::from_fn(|| order.take_next()).map(|(_, line)| line).collect()
    }

    #[test]
    fn lines_go_on_by_age_whatever_their_board_once_it_is_known() {
        let mut order = LineOrder::default();
        for (line, board) in [(5, "a"), (3, "b"), (4, "a"), (1, "c"), (2, "a"), (6, "b")] {
            order.file(head(line), Some(name(board)), false);
        }
        order.file(head(7), None, true);
        assert_eq!(taken(&mut order), [7]);
        assert!(!order.has_next());
        assert!(order.note_board(&name("a"), true) && order.note_board(&name("b"), true));
        assert!(!order.note_board(&name("another"), true));
        assert_eq!(order.take_next(), Some(head(2)));
        // Its first job turns out to wait for c as well.
        order.file(head(2), Some(name("c")), false);
        order.note_board(&name("b"), false);
        assert_eq!(taken(&mut order), [4, 5]);
        let oldest = order.oldest_blocked().map(|((sequence, _), board)| (sequence.0, board.to_string()));
        assert_eq!(oldest, Some((1, "c".to_owned())));
        order.note_board(&name("b"), true);
        assert_eq!(order.take_next(), Some(head(3)));
        order.set_at_board_limit(true);
        assert_eq!(taken(&mut order), [1, 2, 6]);
        assert!(order.lines_by_board.is_empty() && order.ready.is_empty() && order.blocked.is_empty());
    }

    #[test]
    fn lines_block_again_below_the_board_limit() {
        let mut order = LineOrder::default();
        order.file(head(1), Some(name("a")), false);
        order.file(head(2), Some(name("a")), false);
        order.set_at_board_limit(true);
        assert_eq!(order.take_next(), Some(head(1)));
        order.set_at_board_limit(false);
        assert!(!order.has_next());
        assert_eq!(order.take_next(), None);
    }

    #[test]
    fn what_changed_says_where_the_first_job_of_a_board_was_and_is() {
        let mut order = LineOrder::default();
        for (line, board) in [(5, "a"), (3, "b"), (4, "a")] {
            order.file(head(line), Some(name(board)), true);
        }
        let changed = |order: &mut LineOrder| {
            let changed = order.take_changed().into_iter();
            let changed = changed.map(|(board, lowest)| {
                let first = order.first_of(&board).map(|first| first.0);
                (board.to_string(), lowest.0, first)
            });
            changed.collect::<Vec<_>>()
        };
        let expect = |board: &str, lowest: u64, first: Option<u64>| (board.to_owned(), lowest, first);
        assert_eq!(changed(&mut order), [expect("a", 4, Some(4)), expect("b", 3, Some(3))]);
        assert_eq!((changed(&mut order), order.oldest()), (Vec::new(), Some(Sequence(3))));
        order.note_board(&name("a"), false);
        assert_eq!(changed(&mut order), [], "the same jobs are parked at the same places");
        order.note_board(&name("a"), true);
        assert_eq!((order.take_next(), order.take_next()), (Some(head(3)), Some(head(4))));
        assert_eq!(changed(&mut order), [expect("a", 4, Some(5)), expect("b", 3, None)]);
        assert_eq!(order.oldest(), Some(Sequence(5)));
    }

    #[test]
    fn wanted_boards_are_looked_at_a_few_at_a_time() {
        let mut order = LineOrder::default();
        assert_eq!(order.wanted(None, 2), (Vec::new(), None));
        for (line, board) in [(1, "a"), (2, "b"), (3, "c"), (4, "c"), (5, "d")] {
            order.file(head(line), Some(name(board)), board == "b");
        }
        order.file(head(6), None, true);
        let (mut from, mut looks) = (None, Vec::new());
        loop {
            let (wanted, next) = order.wanted(from.as_ref(), 2);
            looks.push(wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
            from = next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(looks, ["a", "c,d"]);
    }
}
