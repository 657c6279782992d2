//! What watchers of the same question share: the newest state, and some before it.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::query::live::asked::NotLive;
use crate::query::live::state::LiveState;
use crate::types::MemberId;

/// States that a watcher that comes back may go on from.
const RECENT_MAX: usize = 16;

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
    recent: Mutex<VecDeque<Arc<LiveState>>>,
}

impl View {
    pub(super) fn new(top: usize, members: Arc<[MemberId]>) -> Self {
        Self { top, members, now: watch::channel(Now::Nothing).0, recent: Mutex::default() }
    }

    pub(super) fn has_watchers(&self) -> bool {
        self.now.receiver_count() > 0
    }

    pub(super) fn is_new(&self) -> bool {
        !matches!(*self.now.borrow(), Now::Shown(_))
    }

    /// Shows a state, unless it is the one that is shown.
    pub(super) fn show(&self, state: LiveState) {
        let state = Arc::new(state);
        let shown = self.shown();
        if shown.as_ref().is_some_and(|shown| shown.state.shows_same(&state)) {
            return;
        }
        let mut recent = self.recent.lock();
        if recent.len() == RECENT_MAX {
            recent.pop_front();
        }
        recent.push_back(Arc::clone(&state));
        drop(recent);
        self.now.send_replace(Now::Shown(Arc::new(Shown {
            number: shown.as_ref().map_or(1, |shown| shown.number + 1),
            state,
            before: shown.map(|shown| Arc::clone(&shown.state)),
            written: OnceLock::new(),
            written_change: OnceLock::new(),
        })));
    }

    /// What it shows cannot be computed at present: what is shown is old from now on.
    pub(super) fn fail(&self, why: &NotLive) {
        match self.shown() {
            Some(shown) if shown.state.is_stale => {}
            Some(shown) => {
                self.show(LiveState { is_stale: true, ..LiveState::clone(&shown.state) }.identified());
            }
            None => self.end(why.clone()),
        }
    }

    pub(super) fn end(&self, why: NotLive) {
        self.now.send_replace(Now::Gone(why));
    }

    pub(super) fn shown(&self) -> Option<Arc<Shown>> {
        match &*self.now.borrow() {
            Now::Shown(shown) => Some(Arc::clone(shown)),
            Now::Nothing | Now::Gone(_) => None,
        }
    }

    pub(super) fn recent(&self, id: u64) -> Option<Arc<LiveState>> {
        self.recent.lock().iter().rev().find(|state| state.id == id).cloned()
    }
}
