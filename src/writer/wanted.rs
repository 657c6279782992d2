//! Boards that parked jobs wait for, reported to the task that can have them defined.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::types::BoardName;
use crate::writer::board_change::MAX_BOARDS;

/// Boards that are still wanted are reported again at this interval.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Boards that jobs wait for, over all shards of the node.
#[derive(Default)]
pub struct WantedBoards {
    boards: Mutex<BTreeSet<BoardName>>,
    pub changed: Notify,
}

impl WantedBoards {
    /// Boards beyond as many as there can be are left out: their shards report them again.
    fn want(&self, boards: impl IntoIterator<Item = BoardName>) {
        let mut wanted = self.boards.lock();
        for board in boards {
            if wanted.len() >= MAX_BOARDS {
                break;
            }
            wanted.insert(board);
        }
        drop(wanted);
        self.changed.notify_one();
    }

    /// The boards wanted since the last call.
    pub fn take(&self) -> BTreeSet<BoardName> {
        std::mem::take(&mut *self.boards.lock())
    }
}

/// Which boards one shard wants, and when it last reported them.
pub struct WantedReporter {
    wanted: Arc<WantedBoards>,
    /// Not reported yet.
    new: BTreeSet<BoardName>,
    /// When the last report of all wanted boards began.
    all_reported_at: Option<Instant>,
    /// If that report is not complete: the last board that it has covered.
    reported_through: Option<BoardName>,
}

impl WantedReporter {
    pub fn new(wanted: Arc<WantedBoards>) -> Self {
        Self { wanted, new: BTreeSet::new(), all_reported_at: None, reported_through: None }
    }

    pub fn add<'a>(&mut self, boards: impl Iterator<Item = &'a BoardName>) {
        for board in boards {
            if !self.new.contains(board) {
                self.new.insert(board.clone());
            }
        }
    }

    /// Reports new boards, and, if a full report is due, the next part of all wanted boards.
    ///
    /// # Arguments
    /// `all`: returns some of the wanted boards after a board, and the board to continue after; `None` at the
    /// end.
    pub fn report(&mut self, all: impl FnOnce(Option<&BoardName>) -> (Vec<BoardName>, Option<BoardName>)) {
        let mut wanted = std::mem::take(&mut self.new);
        let due = self.all_reported_at.is_none_or(|began| began.elapsed() >= REPORT_INTERVAL);
        if due || self.reported_through.is_some() {
            if self.reported_through.is_none() {
                self.all_reported_at = Some(Instant::now());
            }
            let (part, reported_through) = all(self.reported_through.as_ref());
            wanted.extend(part);
            self.reported_through = reported_through;
        }
        if !wanted.is_empty() {
            self.wanted.want(wanted);
        }
    }

    /// Discards the new boards, and makes a full report due.
    pub fn defer(&mut self) {
        self.new.clear();
        (self.all_reported_at, self.reported_through) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_boards_are_reported_immediately_and_all_after_deferral_ends() {
        let names = ["a", "b", "c"].map(|name| BoardName::new(name).expect("a good name"));
        let [a, b, c] = &names;
        let reported = |wanted: &WantedBoards| wanted.take().into_iter().collect::<Vec<_>>();
        let wanted = Arc::new(WantedBoards::default());
        let mut wants = WantedReporter::new(Arc::clone(&wanted));
        // All wanted boards, in parts of two.
        let all = |from: Option<&BoardName>| {
            let rest: Vec<_> = names.iter().filter(|name| from.is_none_or(|from| *name > from)).collect();
            let part: Vec<BoardName> = rest.iter().copied().take(2).cloned().collect();
            let last = part.last().cloned().filter(|_| rest.len() > 2);
            (part, last)
        };
        wants.add([c, c].into_iter());
        wants.report(all);
        assert_eq!(reported(&wanted), names);
        wants.report(all);
        assert_eq!(reported(&wanted), std::slice::from_ref(c), "the other part");
        // A full report is not due for a while: only new boards are reported.
        wants.all_reported_at = Some(Instant::now() + REPORT_INTERVAL);
        wants.add([b].into_iter());
        wants.report(all);
        assert_eq!(reported(&wanted), std::slice::from_ref(b));
        wants.report(all);
        assert_eq!(reported(&wanted), []);
        wants.add([c].into_iter());
        wants.defer();
        assert_eq!(reported(&wanted), []);
        wants.report(all);
        assert_eq!(reported(&wanted), [a.clone(), b.clone()]);
        wants.report(all);
        assert_eq!(reported(&wanted), std::slice::from_ref(c));
    }

    #[test]
    fn no_more_boards_are_kept_than_there_can_be() {
        let wanted = WantedBoards::default();
        let names = |from: usize| {
            (from..from + MAX_BOARDS).map(|nth| BoardName::new(&format!("b{nth}")).expect("a good name"))
        };
        wanted.want(names(0));
        wanted.want(names(10));
        assert_eq!(wanted.take().len(), MAX_BOARDS);
        wanted.want(names(10).take(1));
        assert_eq!(wanted.take().len(), 1, "there is room again");
    }
}
