//! Boards that parked jobs wait for, reported to the task that can have them defined.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::types::BoardName;

/// Boards that are still wanted are reported again at this interval.
const TELL_AGAIN: Duration = Duration::from_secs(2);

/// Boards that jobs wait for, over all shards of the node.
#[derive(Default)]
pub struct WantedBoards {
    boards: Mutex<BTreeSet<BoardName>>,
    pub changed: Notify,
}

impl WantedBoards {
    fn want(&self, boards: impl IntoIterator<Item = BoardName>) {
        self.boards.lock().extend(boards);
        self.changed.notify_one();
    }

    /// The boards wanted since the last call.
    #[must_use]
    pub fn take(&self) -> BTreeSet<BoardName> {
        std::mem::take(&mut *self.boards.lock())
    }
}

/// Which boards one shard wants, and when it last reported them.
pub struct Wants {
    wanted: Arc<WantedBoards>,
    /// Not reported yet.
    new: BTreeSet<BoardName>,
    /// When the last report of all wanted boards began.
    told_all: Option<Instant>,
    /// If that report is not complete: the last board that it has covered.
    told_to: Option<BoardName>,
}

impl Wants {
    pub fn new(wanted: Arc<WantedBoards>) -> Self {
        Self { wanted, new: BTreeSet::new(), told_all: None, told_to: None }
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
    pub fn tell(&mut self, all: impl FnOnce(Option<&BoardName>) -> (Vec<BoardName>, Option<BoardName>)) {
        let mut wanted = std::mem::take(&mut self.new);
        let due = self.told_all.is_none_or(|told| told.elapsed() >= TELL_AGAIN);
        if due || self.told_to.is_some() {
            if self.told_to.is_none() {
                self.told_all = Some(Instant::now());
            }
            let (part, told_to) = all(self.told_to.as_ref());
            wanted.extend(part);
            self.told_to = told_to;
        }
        if !wanted.is_empty() {
            self.wanted.want(wanted);
        }
    }

    /// Discards the new boards, and makes a full report due.
    pub fn defer(&mut self) {
        self.new.clear();
        (self.told_all, self.told_to) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_at_once_and_all_of_it_once_nobody_defers_any_longer() {
        let names = ["a", "b", "c"].map(|name| BoardName::new(name).expect("a good name"));
        let [a, b, c] = &names;
        let told = |wanted: &WantedBoards| wanted.take().into_iter().collect::<Vec<_>>();
        let wanted = Arc::new(WantedBoards::default());
        let mut wants = Wants::new(Arc::clone(&wanted));
        // All wanted boards, in parts of two.
        let all = |from: Option<&BoardName>| {
            let rest: Vec<_> = names.iter().filter(|name| from.is_none_or(|from| *name > from)).collect();
            let part: Vec<BoardName> = rest.iter().copied().take(2).cloned().collect();
            let last = part.last().cloned().filter(|_| rest.len() > 2);
            (part, last)
        };
        wants.add([c, c].into_iter());
        wants.tell(all);
        assert_eq!(told(&wanted), names);
        wants.tell(all);
        assert_eq!(told(&wanted), std::slice::from_ref(c), "the other part");
        // A full report is not due for a while: only new boards are reported.
        wants.told_all = Some(Instant::now() + TELL_AGAIN);
        wants.add([b].into_iter());
        wants.tell(all);
        assert_eq!(told(&wanted), std::slice::from_ref(b));
        wants.tell(all);
        assert_eq!(told(&wanted), []);
        wants.add([c].into_iter());
        wants.defer();
        assert_eq!(told(&wanted), []);
        wants.tell(all);
        assert_eq!(told(&wanted), [a.clone(), b.clone()]);
        wants.tell(all);
        assert_eq!(told(&wanted), std::slice::from_ref(c));
    }
}
