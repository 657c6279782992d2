//! What watchers of the same question share: the newest state, and some before it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::query::live::asked::NotLive;
use crate::query::live::state::LiveState;
use crate::types::MemberId;

/// States that a watcher that comes back may go on from, and the most that they take beside the newest one.
const RECENT_MAX: usize = 16;
const RECENT_BYTES: usize = 64 * 1024;

/// A state as it was published.
#[derive(Debug)]
pub struct Shown {
    /// Counts the states of the view.
    pub number: u64,
    pub state: Arc<LiveState>,
    /// The state before, if there is one.
    pub before: Option<Arc<LiveState>>,
    /// The state, and the change since `before`, as they are written for whoever takes them: once for all.
    pub written: OnceLock<Bytes>,
    pub written_change: OnceLock<Bytes>,
}

/// What a view has for its watchers.
#[derive(Debug, Clone)]
pub(super) enum Now {
    /// It was not computed yet.
    Nothing,
    Shown(Arc<Shown>),
    /// There is nothing to watch any more, or there never was.
    Gone(NotLive),
}

/// What watchers of the same question share.
#[derive(Debug)]
pub(super) struct View {
    pub(super) top: usize,
    pub(super) members: Arc<[MemberId]>,
    pub(super) now: watch::Sender<Now>,
    /// The feed's computation that what is shown belongs to; 0: none. A view that nobody watches is left out
    /// of computations, and what it shows is old once there was one without it.
    computation: AtomicU64,
    past: Mutex<Past>,
    /// When somebody left it last.
    left: Mutex<Instant>,
}

/// States that were shown.
#[derive(Debug, Default)]
struct Past {
    /// How many.
    number: u64,
    /// Each with the bytes that it has not in common with the one before.
    recent: VecDeque<(usize, Arc<LiveState>)>,
    bytes: usize,
}

impl Past {
    fn add(&mut self, state: &Arc<LiveState>) -> u64 {
        let bytes = self.recent.back().map_or(0, |(_, before)| state.bytes_beside(before));
        self.recent.push_back((bytes, Arc::clone(state)));
        self.bytes += bytes;
        while self.recent.len() > RECENT_MAX || (self.bytes > RECENT_BYTES && self.recent.len() > 1) {
            let dropped = self.recent.pop_front();
            self.bytes -= dropped.map_or(0, |(bytes, _)| bytes);
        }
        self.number += 1;
        self.number
    }
}

impl View {
    pub(super) fn new(top: usize, members: Arc<[MemberId]>) -> Self {
        Self {
            top,
            members,
            now: watch::channel(Now::Nothing).0,
            computation: AtomicU64::new(0),
            past: Mutex::default(),
            left: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn has_watchers(&self) -> bool {
        self.now.receiver_count() > 0
    }

    pub(super) fn note_left(&self) {
        *self.left.lock() = Instant::now();
    }

    /// When somebody left it last; before that, when it was made.
    pub(super) fn left(&self) -> Instant {
        *self.left.lock()
    }

    /// Whether what it shows belongs to that computation of the feed.
    pub(super) fn is_of(&self, computation: u64) -> bool {
        computation != 0 && self.computation.load(Ordering::Acquire) == computation
    }

    /// Whether it has to be computed before somebody is shown it.
    pub(super) fn is_new(&self, computation: u64) -> bool {
        !self.is_of(computation) || !matches!(*self.now.borrow(), Now::Shown(_))
    }

    /// It may be old from now on.
    pub(super) fn forget_computation(&self) {
        self.computation.store(0, Ordering::Release);
    }

    /// Forgets that there was nothing to watch, as far as nobody is still to be told.
    pub(super) fn begin(&self) {
        if !self.has_watchers() && matches!(*self.now.borrow(), Now::Gone(_)) {
            self.now.send_replace(Now::Nothing);
        }
    }

    /// Shows a state, unless it is the one that is shown.
    pub(super) fn show(&self, state: LiveState, computation: u64) {
        let shown = self.shown();
        if !shown.as_ref().is_some_and(|shown| shown.state.shows_same(&state)) {
            let state = Arc::new(state);
            let number = self.past.lock().add(&state);
            self.now.send_replace(Now::Shown(Arc::new(Shown {
                number,
                state,
                before: shown.map(|shown| Arc::clone(&shown.state)),
                written: OnceLock::new(),
                written_change: OnceLock::new(),
            })));
        }
        self.computation.store(computation, Ordering::Release);
    }

    /// What it shows cannot be computed at present: what is shown is old from now on.
    pub(super) fn fail(&self, why: &NotLive, computation: u64) {
        match self.shown() {
            Some(shown) => {
                let state = LiveState { is_stale: true, ..LiveState::clone(&shown.state) };
                self.show(state.identified(), computation);
            }
            None => self.end(why.clone()),
        }
    }

    pub(super) fn end(&self, why: NotLive) {
        self.forget_computation();
        self.now.send_replace(Now::Gone(why));
    }

    pub(super) fn shown(&self) -> Option<Arc<Shown>> {
        match &*self.now.borrow() {
            Now::Shown(shown) => Some(Arc::clone(shown)),
            Now::Nothing | Now::Gone(_) => None,
        }
    }

    pub(super) fn recent(&self, id: u64) -> Option<Arc<LiveState>> {
        let past = self.past.lock();
        past.recent.iter().rev().find(|(_, state)| state.id == id).map(|(_, state)| Arc::clone(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::read::NoBoard;
    use crate::state::Incarnation;
    use crate::types::AsOf;
    use crate::window::Instance;

    fn state(total: u64) -> LiveState {
        let (incarnation, instance, as_of) = (Incarnation(7), Instance::ALL, AsOf::default());
        let (entries, members) = (Vec::new(), Vec::new());
        let state =
            LiveState { id: 0, incarnation, instance, total, entries, members, is_stale: false, as_of };
        state.identified()
    }

    #[test]
    fn a_view_that_was_left_out_of_a_computation_is_new_and_keeps_its_past() {
        let view = View::new(10, Arc::default());
        assert!(view.is_new(0) && view.is_new(1), "it was not computed");
        view.show(state(1), 1);
        assert!(!view.is_new(1) && view.is_new(2));
        view.show(state(1), 2);
        assert!(!view.is_new(2), "it shows the same still");
        view.fail(&NotLive::NotInTime, 3);
        assert!(!view.is_new(3) && view.shown().is_some_and(|shown| shown.state.is_stale));
        assert!(view.recent(state(1).id).is_some());
    }

    #[test]
    fn numbers_of_states_go_on_after_there_was_nothing() {
        let view = View::new(10, Arc::default());
        view.show(state(1), 1);
        view.end(NotLive::from(NoBoard::Unknown));
        assert!(view.is_new(1));
        view.begin();
        assert!(matches!(*view.now.borrow(), Now::Nothing));
        view.show(state(2), 2);
        assert_eq!(view.shown().map(|shown| shown.number), Some(2));
    }

    #[test]
    fn the_states_to_go_on_from_are_limited() {
        let view = View::new(10, Arc::default());
        for total in 0..40 {
            view.show(state(total), total + 1);
        }
        let kept = (0..40).filter(|total| view.recent(state(*total).id).is_some()).count();
        assert_eq!(kept, RECENT_MAX);
    }
}
