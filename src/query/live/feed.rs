//! The views of one board, window and rate: computed together, at most so often, and only if something has
//! changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use metrics::counter;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::board::Definition;
use crate::metrics::LIVE_COMPUTATIONS_TOTAL;
use crate::query::instance::WindowChoice;
use crate::query::live::asked::NotLive;
use crate::query::live::found::Found;
use crate::query::live::source::LiveSource;
use crate::query::live::view::{Now, View};
use crate::query::question::BoardLife;
use crate::query::read::NoBoard;
use crate::query::remote_shards::ReadError;
use crate::state::Incarnation;
use crate::types::{AsOf, BoardName, MemberId, Sequence, ShardId, Timestamp};
use crate::window::Instance;

/// How long a feed without watchers is kept, so that one that comes back is told only what has changed.
pub(super) const KEPT: Duration = Duration::from_secs(30);
/// A board that cannot be asked about is computed no more often than that.
const RETRY: Duration = Duration::from_secs(1);
/// Shards that have said for so long that they are at an earlier sequence were restored from an earlier time.
const REPLACED_AFTER: Duration = Duration::from_secs(15);
/// Views that nobody watches are looked for so often.
const SWEEP: Duration = Duration::from_secs(10);
/// Views that are shown a state at once. Then others have their turn.
const VIEWS_AT_ONCE: usize = 64;

/// A board, a window as it was asked for, and a rate.
pub(super) type FeedKey = (BoardName, String, u32);

/// What was found out last about whether the shown states are those of now.
#[derive(Debug, Clone, Default)]
pub(super) struct Checked {
    /// When that began.
    pub(super) at: Option<Instant>,
    pub(super) exact_at: AsOf,
    /// Of which computation a view must be for this to be true of it; 0: of none.
    pub(super) computation: u64,
}

/// The length of its top, and its members.
type ViewKey = (usize, Arc<[MemberId]>);

#[derive(Debug)]
pub(super) struct Feed {
    pub(super) key: FeedKey,
    choice: WindowChoice,
    /// The least time between two computations.
    pub(super) interval: Duration,
    /// Changed only under the lock of [`super::feeds::Feeds`].
    pub(super) watchers: AtomicUsize,
    views: Mutex<Views>,
    plan: Mutex<Plan>,
    pub(super) checked: watch::Sender<Checked>,
}

#[derive(Debug)]
struct Views {
    by_key: HashMap<ViewKey, Arc<View>>,
    swept: Instant,
}

/// When a feed is looked at next, and what its states are of.
#[derive(Debug)]
struct Plan {
    next: Instant,
    /// Whether there is a new watcher since it was looked at last.
    is_joined: bool,
    /// When it was computed last.
    computed: Option<Instant>,
    /// How often all watched views were computed.
    computations: u64,
    /// It is computed once shards answer again.
    is_owed: bool,
    known: Option<Known>,
    /// Whether there is something that a watcher could go on from.
    has_state: bool,
    /// Since when some shard says that it is at an earlier sequence than the states.
    behind: Option<Instant>,
}

/// What the shown states are of.
#[derive(Debug, Clone)]
struct Known {
    /// Views of other computations show what was before.
    computation: u64,
    definition: Arc<Definition>,
    exact_at: AsOf,
    found: Arc<Found>,
}

impl Known {
    fn is_of(&self, incarnation: Incarnation, instance: Instance, definition: &Arc<Definition>) -> bool {
        self.found.incarnation == incarnation
            && self.found.instance == instance
            && Arc::ptr_eq(&self.definition, definition)
    }
}

/// What is to be done about a feed.
pub(super) enum Due {
    Nothing,
    /// Shards are asked whether it has changed.
    Check(BoardLife),
    Compute(Which),
}

/// Which views are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// Those that somebody has begun to watch, while the others are as they should be.
    New,
}

impl Feed {
    pub(super) fn new(key: FeedKey, choice: WindowChoice, interval: Duration) -> Self {
        let now = Instant::now();
        let plan = Plan {
            next: now,
            is_joined: false,
            computed: None,
            computations: 0,
            is_owed: false,
            known: None,
            has_state: false,
            behind: None,
        };
        Self {
            key,
            choice,
            interval,
            watchers: AtomicUsize::new(0),
            views: Mutex::new(Views { by_key: HashMap::new(), swept: now }),
            plan: Mutex::new(plan),
            checked: watch::channel(Checked::default()).0,
        }
    }

    /// The view of a question, and a watcher's part of it.
    pub(super) fn view(&self, top: usize, members: &Arc<[MemberId]>) -> (Arc<View>, watch::Receiver<Now>) {
        let mut views = self.views.lock();
        let new = || Arc::new(View::new(top, Arc::clone(members)));
        let view = views.by_key.entry((top, Arc::clone(members))).or_insert_with(new);
        view.begin();
        // Under the lock, because views without watchers are forgotten.
        (Arc::clone(view), view.now.subscribe())
    }

    /// There is a new watcher, which is told what is there now.
    pub(super) fn note_joined(&self) {
        self.plan.lock().is_joined = true;
    }

    /// When it is looked at next.
    pub(super) fn next(&self, now: Instant) -> Instant {
        let plan = self.plan.lock();
        if plan.is_joined { now } else { plan.next }
    }

    /// Whether it is worth keeping without watchers.
    pub(super) fn has_state(&self) -> bool {
        self.plan.lock().has_state
    }

    #[cfg(test)]
    pub(super) fn pretend_state(&self) {
        self.plan.lock().has_state = true;
    }

    fn watched_views(&self) -> Vec<Arc<View>> {
        self.views.lock().by_key.values().filter(|view| view.has_watchers()).cloned().collect()
    }

    /// The same. What the others show is old from now on.
    fn take_watched_views(&self) -> Vec<Arc<View>> {
        let views = self.views.lock();
        let (watched, others): (Vec<_>, Vec<_>) = views.by_key.values().partition(|view| view.has_watchers());
        for view in others {
            view.forget_computation();
        }
        watched.into_iter().cloned().collect()
    }

    /// Forgets views that nobody has watched for long, or at all if there are many.
    fn forget_views(&self, now: Instant) {
        let mut views = self.views.lock();
        let are_many = views.by_key.len() > 2 * self.watchers.load(Ordering::Relaxed) + 16;
        if !are_many && now < views.swept + SWEEP {
            return;
        }
        views.swept = now;
        let is_kept = |left: Instant| !are_many && now.saturating_duration_since(left) < KEPT;
        views.by_key.retain(|_, view| view.has_watchers() || is_kept(view.left()));
    }

    /// Finds out what to do, from what this node knows by itself.
    ///
    /// # Arguments
    /// `time`: decides which instances are current.
    /// `is_silent`: some shard has not answered a moment ago. It is asked before anything is computed,
    /// because a computation waits longer for it.
    pub(super) fn due(&self, source: &LiveSource, now: Instant, time: Timestamp, is_silent: bool) -> Due {
        // Before all that a new watcher is told.
        self.plan.lock().is_joined = false;
        self.forget_views(now);
        let (registered, instance) = match source.find(&self.key.0, self.choice, time) {
            Ok(found) => found,
            Err(why) => {
                self.end(&why, now);
                return Due::Nothing;
            }
        };
        let mut plan = self.plan.lock();
        let may_compute = plan.computed.is_none_or(|computed| now >= computed + self.interval);
        let known = plan.known.as_ref();
        let known =
            known.filter(|known| known.is_of(registered.incarnation, instance, &registered.definition));
        let wanted = match known {
            None => Some(Which::All),
            Some(known) => {
                let has_new = self.watched_views().iter().any(|view| view.is_new(known.computation));
                has_new.then_some(if may_compute { Which::All } else { Which::New })
            }
        };
        let board = instance.name_on_shards(&self.key.0);
        let check = Due::Check(BoardLife { board, incarnation: registered.incarnation });
        match wanted {
            Some(_) if is_silent || plan.is_owed => {
                plan.is_owed = true;
                check
            }
            Some(Which::New) => Due::Compute(Which::New),
            _ if !may_compute => {
                plan.next = plan.computed.map_or(now, |computed| computed + self.interval);
                Due::Nothing
            }
            Some(Which::All) => Due::Compute(Which::All),
            None => check,
        }
    }

    /// Takes what shards have said: for each, its sequence and when the board changed last; `None` if it did
    /// not answer. Returns whether the states have to be computed.
    ///
    /// # Arguments
    /// `silent`: why some shard has not answered in time, if so. Nothing can be computed then.
    pub(super) fn has_changed(
        &self,
        begun: Instant,
        told: &[(ShardId, Option<(Sequence, Sequence)>)],
        silent: Option<&ReadError>,
        pause: Duration,
    ) -> bool {
        if let Some(why) = silent {
            self.fail(begun, why);
            return false;
        }
        let mut plan = self.plan.lock();
        let (computed, is_owed) = (plan.computed, plan.is_owed);
        let Some(known) = &mut plan.known else { return true };
        let (mut has_changed, mut is_unknown, mut is_behind) = (false, false, false);
        for (shard, told) in told {
            let Some((sequence, changed)) = told else {
                is_unknown = true;
                continue;
            };
            match known.exact_at.0.iter_mut().find(|(id, _)| id == shard) {
                Some((_, exact)) if changed > exact => has_changed = true,
                Some((_, exact)) => {
                    is_behind |= *sequence < *exact;
                    *exact = (*exact).max(*sequence);
                }
                None => has_changed = true,
            }
        }
        let (exact_at, computation) = (known.exact_at.clone(), known.computation);
        // A shard may apply again what is published, and the board be as it was.
        let may_recover = known.found.is_stale;
        plan.behind = if is_behind { plan.behind.or(Some(begun)) } else { None };
        let was_restored = plan.behind.is_some_and(|since| begun >= since + REPLACED_AFTER);
        let may_retry = computed.is_none_or(|computed| begun >= computed + RETRY);
        if has_changed || is_owed || was_restored || ((is_unknown || may_recover) && may_retry) {
            return true;
        }
        plan.next = Instant::now() + pause;
        drop(plan);
        if !is_unknown && self.checked.receiver_count() > 0 {
            self.checked.send_replace(Checked { at: Some(begun), exact_at, computation });
        }
        false
    }

    /// There is nothing to watch.
    fn end(&self, why: &NotLive, now: Instant) {
        for view in self.take_watched_views() {
            view.end(why.clone());
        }
        let mut plan = self.plan.lock();
        (plan.known, plan.computed, plan.is_owed, plan.has_state) = (None, None, false, false);
        plan.next = now + RETRY;
        drop(plan);
        self.checked.send_replace(Checked { at: Some(now), ..Checked::default() });
    }

    /// What was begun then could not be read.
    pub(super) fn fail(&self, begun: Instant, why: &ReadError) {
        let mut plan = self.plan.lock();
        plan.computed = Some(begun);
        plan.is_owed = true;
        plan.next = Instant::now() + self.interval.max(RETRY);
        let computation = plan.known.as_ref().map_or(0, |known| known.computation);
        drop(plan);
        let why = NotLive::Read(why.clone());
        for view in self.take_watched_views() {
            view.fail(&why, computation);
        }
        self.checked.send_replace(Checked { at: Some(begun), exact_at: AsOf::default(), computation });
    }

    /// Computes views that are watched, and shows what has changed. Returns false if some shard has not
    /// replied.
    pub(super) async fn compute(&self, source: &LiveSource, time: Timestamp, which: Which) -> bool {
        counter!(LIVE_COMPUTATIONS_TOTAL).increment(1);
        let begun = Instant::now();
        // Before the read: what is defined meanwhile is another definition afterwards.
        let registered = source.registry.get(self.key.0.as_str());
        let before = self.plan.lock().known.clone();
        let mut views = self.watched_views();
        if let (Which::New, Some(known)) = (which, &before) {
            views.retain(|view| view.is_new(known.computation));
        }
        let top = views.iter().map(|view| view.top).max().unwrap_or(1);
        let mut named = HashSet::new();
        let members = views.iter().flat_map(|view| view.members.iter());
        let members: Vec<MemberId> = members.filter(|member| named.insert(*member)).cloned().collect();
        let found = match Found::read(source, (&self.key.0, self.choice), time, top, &members).await {
            Ok(Ok(found)) => found,
            Ok(Err(why)) => {
                self.end(&why, begun);
                return true;
            }
            Err(why) => {
                self.fail(begun, &why);
                return !matches!(why, ReadError::Unavailable(_));
            }
        };
        let Some(registered) = registered else {
            self.end(&NotLive::from(NoBoard::Unknown), begun);
            return true;
        };
        let found = match &before {
            Some(before) => found.sharing(&before.found),
            None => found,
        };
        let found = Arc::new(found);
        let checked = match (which, before) {
            (Which::New, Some(known)) => {
                if !known.is_of(found.incarnation, found.instance, &registered.definition) {
                    // All views are computed as soon as they may be.
                    let mut plan = self.plan.lock();
                    plan.next = plan.computed.map_or(begun, |computed| computed + self.interval);
                    return true;
                }
                self.take_in(known.computation, &found.as_of)
            }
            _ => self.take_over(begun, registered.definition, &found),
        };
        for (index, view) in views.iter().enumerate() {
            view.show(found.state_of(view), checked.computation);
            if (index + 1) % VIEWS_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.checked.send_replace(checked);
        true
    }

    /// All watched views are of what was found.
    fn take_over(&self, begun: Instant, definition: Arc<Definition>, found: &Arc<Found>) -> Checked {
        let mut plan = self.plan.lock();
        plan.computed = Some(begun);
        plan.next = begun + self.interval;
        (plan.behind, plan.is_owed) = (None, false);
        plan.computations += 1;
        let (computation, exact_at) = (plan.computations, found.as_of.clone());
        let known = Known { computation, definition, exact_at: exact_at.clone(), found: Arc::clone(found) };
        (plan.known, plan.has_state) = (Some(known), true);
        Checked { at: Some(begun), exact_at, computation }
    }

    /// Some views more are of what was found. All of them together are exact at the earlier sequences.
    fn take_in(&self, computation: u64, as_of: &AsOf) -> Checked {
        let mut plan = self.plan.lock();
        let at = self.checked.borrow().at;
        let Some(known) = &mut plan.known else { return Checked::default() };
        for (shard, exact) in &mut known.exact_at.0 {
            let found = as_of.0.iter().find(|(id, _)| id == shard);
            *exact = found.map_or(Sequence::default(), |(_, found)| (*exact).min(*found));
        }
        Checked { at, exact_at: known.exact_at.clone(), computation }
    }
}
