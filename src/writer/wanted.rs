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
    /// When all of it was told last.
    told_all: Option<Instant>,
}

impl Wants {
    pub fn new(wanted: Arc<WantedBoards>) -> Self {
        Self { wanted, new: BTreeSet::new(), told_all: None }
    }

    pub fn add<'a>(&mut self, boards: impl Iterator<Item = &'a BoardName>) {
        for board in boards {
            if !self.new.contains(board) {
                self.new.insert(board.clone());
            }
        }
    }

    /// Tells what is new, and `all` if that is due; whether it was.
    pub fn tell<'a>(&mut self, all: impl ExactSizeIterator<Item = &'a BoardName>) -> bool {
        let mut wanted = std::mem::take(&mut self.new);
        let due = self.told_all.is_none_or(|told| told.elapsed() >= TELL_AGAIN);
        if due {
            self.told_all = Some(Instant::now());
            wanted.extend(all.cloned());
        }
        if !wanted.is_empty() {
            self.wanted.want(wanted);
        }
        due
    }

    /// Forgets what is new, and makes all of it due.
    pub fn defer(&mut self) {
        self.new.clear();
        self.told_all = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_at_once_and_all_of_it_once_nobody_defers_any_longer() {
        let names = ["a", "b", "c"].map(|name| BoardName::new(name).expect("a good name"));
        let [a, b, _] = &names;
        let told = |wanted: &WantedBoards| wanted.take().into_iter().collect::<Vec<_>>();
        let wanted = Arc::new(WantedBoards::default());
        let mut wants = Wants::new(Arc::clone(&wanted));
        wants.add([a, a].into_iter());
        wants.tell([a].into_iter());
        assert_eq!(told(&wanted), std::slice::from_ref(a));
        // Not due again for a while: only what is new.
        wants.told_all = Some(Instant::now() + TELL_AGAIN);
        wants.add([b].into_iter());
        wants.tell(names.iter());
        assert_eq!(told(&wanted), std::slice::from_ref(b));
        wants.tell(names.iter());
        assert_eq!(told(&wanted), []);
        wants.add([b].into_iter());
        wants.defer();
        assert_eq!(told(&wanted), []);
        wants.tell(names.iter());
        assert_eq!(told(&wanted), names);
    }
}
