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

/// States that a watcher may go on from, and the most that those take beside the newest one that are kept for
/// watchers that come back.
const RECENT_MAX: usize = 16;
const RECENT_BYTES: usize = 64 * 1024;

/// A state as it was published.
#[derive(Debug)]
pub struct Shown {
    /// Counts the states of the view.
    pub number: u64,
    pub state: Arc<LiveState>,
    written: OnceLock<Bytes>,
    /// What has changed since the state itself, the one before, the one before that, and so on.
    written_changes: [OnceLock<Bytes>; RECENT_MAX + 1],
}

/// What is sent of a state is written by the first watcher that takes it, and shared by all who are sent the
/// same. Whoever has missed more states than there are changes kept for is told the whole state.
impl Shown {
    fn new(number: u64, state: Arc<LiveState>) -> Self {
        Self { number, state, written: OnceLock::new(), written_changes: Default::default() }
    }

    pub(super) fn as_past(&self) -> Past {
        Past { number: self.number, state: Arc::clone(&self.state) }
    }

    /// The whole state, as it is written.
    pub fn written(&self, write: impl FnOnce() -> Bytes) -> Bytes {
        self.written.get_or_init(write).clone()
    }

    /// What has changed since the state of that number, as it is written.
    pub fn written_change(&self, since: u64, write: impl FnOnce() -> Bytes) -> Bytes {
        match self.change_since(since) {
            Some(change) => change.get_or_init(write).clone(),
            None => write(),
        }
    }

    /// Whether a change says all that a watcher has missed who had an earlier state, and is shared.
    pub(super) fn can_follow(&self, earlier: &Past) -> bool {
        self.change_since(earlier.number).is_some() && self.state.can_follow(&earlier.state)
    }

    fn change_since(&self, number: u64) -> Option<&OnceLock<Bytes>> {
        let states_ago = usize::try_from(self.number.checked_sub(number)?).ok()?;
        self.written_changes.get(states_ago)
    }
}

/// A state that a watcher has taken, or that was shown.
#[derive(Debug, Clone)]
pub struct Past {
    pub number: u64,
    pub state: Arc<LiveState>,
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
    history: Mutex<History>,
    /// When somebody left it last.
    left: Mutex<Instant>,
}

/// States that were shown.
#[derive(Debug, Default)]
struct History {
    /// How many.
    number: u64,
    /// Each with the bytes that it has not in common with the one before.
    recent: VecDeque<(usize, Past)>,
    bytes: usize,
}

impl History {
    fn add(&mut self, state: &Arc<LiveState>) -> u64 {
        self.number += 1;
        let bytes = self.recent.back().map_or(0, |(_, before)| state.bytes_beside(&before.state));
        self.recent.push_back((bytes, Past { number: self.number, state: Arc::clone(state) }));
        self.bytes += bytes;
        while self.recent.len() > RECENT_MAX || (self.bytes > RECENT_BYTES && self.recent.len() > 1) {
            let dropped = self.recent.pop_front();
            self.bytes -= dropped.map_or(0, |(bytes, _)| bytes);
        }
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
            history: Mutex::default(),
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
        if !self.shown().is_some_and(|shown| shown.state.shows_same(&state)) {
            let state = Arc::new(state);
            let number = self.history.lock().add(&state);
            self.now.send_replace(Now::Shown(Arc::new(Shown::new(number, state))));
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

    pub(super) fn recent(&self, id: u64) -> Option<Past> {
        let history = self.history.lock();
        history.recent.iter().rev().find(|(_, past)| past.state.id == id).map(|(_, past)| past.clone())
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

    /// A thousand watchers, each of which had another state or the same as others, take the newest one.
    #[test]
    fn what_slow_watchers_are_sent_is_written_once_for_each_state_that_they_had() {
        const STATES: u64 = 40;
        let view = View::new(10, Arc::default());
        let had: Vec<Past> = (1..=STATES)
            .map(|total| {
                view.show(state(total), total);
                view.recent(state(total).id).expect("it is the newest")
            })
            .collect();
        let newest = view.shown().expect("it is shown");
        let (mut changes, mut wholes, mut sent) = (0, 0, std::collections::HashSet::new());
        for past in had.iter().cycle().take(1_000) {
            let bytes = if newest.can_follow(past) {
                newest.written_change(past.number, || {
                    changes += 1;
                    format!("since {}", past.number).into()
                })
            } else {
                newest.written(|| {
                    wholes += 1;
                    "all".into()
                })
            };
            let is_kept = STATES - past.number <= 16;
            assert_eq!(bytes, if is_kept { format!("since {}", past.number) } else { "all".to_owned() });
            sent.insert(bytes.as_ptr());
        }
        assert_eq!(
            (changes, wholes, sent.len()),
            (17, 1, 18),
            "the state itself, 16 before it, and all of it"
        );
        assert!(!newest.can_follow(&Past { number: STATES + 1, state: Arc::new(state(1)) }), "it is later");
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
