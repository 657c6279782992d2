//! Boards that jobs wait for, told to whoever can have them defined.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::types::BoardName;

/// What is still wanted is told again so often.
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

/// What one shard wants, and when it said so last.
pub struct Wants {
    wanted: Arc<WantedBoards>,
    /// Not told yet.
    new: BTreeSet<BoardName>,
    /// When telling all of it began last.
    told_all: Option<Instant>,
    /// What of it was told then, if not all yet: up to this board.
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

    /// Tells what is new, and a part of all that is wanted if that is due.
    ///
    /// # Arguments
    /// `all`: some of it, from behind a board on, and the board behind which to go on; `None` at the end.
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

    /// Forgets what is new, and makes all of it due.
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
        // What is wanted in all, in parts of two boards.
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
        // Not due again for a while: only what is new.
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
