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
use crate::query::answer::Listed;
use crate::query::instance::{InstanceAsked, WindowChoice};
use crate::query::live::asked::NotLive;
use crate::query::live::read::{MEMBERS_AT_ONCE, ReadLive, by_member};
use crate::query::live::source::LiveSource;
use crate::query::live::state::LiveState;
use crate::query::live::view::View;

use crate::query::lookup::LookupMembers;
use crate::query::question::BoardLife;
use crate::query::read::{NoBoard, OfBoard};
use crate::query::remote_shards::ReadError;
use crate::state::Incarnation;
use crate::types::{AsOf, BoardName, MemberId, Sequence, ShardId, Timestamp};
use crate::window::Instance;

/// How long a feed without watchers is kept, so that one that comes back is told only what has changed.
const KEPT: Duration = Duration::from_secs(30);
/// A board that cannot be asked about is computed no more often than that.
const RETRY: Duration = Duration::from_secs(1);
/// Shards that have said for so long that they are at an earlier sequence were restored from an earlier time.
const REPLACED_AFTER: Duration = Duration::from_secs(15);

/// What was found out last about whether the shown states are those of now.
#[derive(Debug, Clone, Default)]
pub(super) struct Checked {
    /// When that began.
    pub(super) at: Option<Instant>,
    pub(super) exact_at: AsOf,
}

/// The length of its top, and its members.
type ViewKey = (usize, Arc<[MemberId]>);

#[derive(Debug)]
pub(super) struct Feed {
    pub(super) board: BoardName,
    pub(super) choice: WindowChoice,
    /// The least time between two computations.
    pub(super) interval: Duration,
    pub(super) watchers: AtomicUsize,
    views: Mutex<HashMap<ViewKey, Arc<View>>>,
    plan: Mutex<Plan>,
    pub(super) checked: watch::Sender<Checked>,
}

/// When a feed is looked at next, and what its states are of.
#[derive(Debug)]
struct Plan {
    next: Instant,
    /// Whether there is a new watcher since it was looked at last.
    is_joined: bool,
    /// Since when nobody watches.
    left: Option<Instant>,
    computed: Option<Instant>,
    known: Option<Known>,
    /// Since when some shard says that it is at an earlier sequence than the states.
    behind: Option<Instant>,
}

/// What the shown states are of.
#[derive(Debug, Clone)]
struct Known {
    incarnation: Incarnation,
    definition: Arc<Definition>,
    instance: Instance,
    exact_at: AsOf,
}

/// What is to be done about a feed.
pub(super) enum Due {
    Nothing,
    /// Shards are asked whether it has changed.
    Check(BoardLife),
    Compute,
}

impl Feed {
    pub(super) fn new(board: BoardName, choice: WindowChoice, interval: Duration) -> Self {
        let now = Instant::now();
        let left = Some(now);
        let plan = Plan { next: now, is_joined: false, left, computed: None, known: None, behind: None };
        Self {
            board,
            choice,
            interval,
            watchers: AtomicUsize::new(0),
            views: Mutex::default(),
            plan: Mutex::new(plan),
            checked: watch::channel(Checked::default()).0,
        }
    }

    /// The view of a question.
    pub(super) fn view(&self, top: usize, members: &Arc<[MemberId]>) -> Arc<View> {
        let mut views = self.views.lock();
        let new = || Arc::new(View::new(top, Arc::clone(members)));
        let view = Arc::clone(views.entry((top, Arc::clone(members))).or_insert_with(new));
        drop(views);
        view
    }

    /// There is a new watcher, which is told what is there now.
    pub(super) fn is_joined(&self) {
        let mut plan = self.plan.lock();
        (plan.left, plan.is_joined) = (None, true);
    }

    pub(super) fn is_left(&self) {
        self.plan.lock().left = Some(Instant::now());
    }

    /// When it is looked at next; `None` while nobody watches.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        if self.watchers.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let plan = self.plan.lock();
        Some(if plan.is_joined { now } else { plan.next })
    }

    /// Whether nobody has watched for long.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let is_left = |left: Instant| now.saturating_duration_since(left) >= KEPT;
        self.watchers.load(Ordering::Relaxed) == 0 && self.plan.lock().left.is_some_and(is_left)
    }

    fn watched_views(&self) -> Vec<Arc<View>> {
        self.views.lock().values().filter(|view| view.has_watchers()).cloned().collect()
    }

    /// Forgets views that nobody watches, if there are many.
    fn forget_views(&self) {
        let mut views = self.views.lock();
        if views.len() > 2 * self.watchers.load(Ordering::Relaxed) + 16 {
            views.retain(|_, view| view.has_watchers());
        }
    }

    /// Finds out what to do, from what this node knows by itself.
    ///
    /// # Arguments
    /// `time`: decides which instances are current.
    pub(super) fn due(&self, source: &LiveSource, now: Instant, time: Timestamp) -> Due {
        // Before all that a new watcher is told.
        self.plan.lock().is_joined = false;
        let Some(registered) = source.registry.get(self.board.as_str()) else {
            self.end(&NotLive::from(NoBoard::Unknown), now);
            return Due::Nothing;
        };
        let asked = InstanceAsked { choice: self.choice, now: time };
        let instance = match asked.of(&registered.definition) {
            Ok(instance) => instance,
            Err(why) => {
                self.end(&NotLive::from(NoBoard::Window(why)), now);
                return Due::Nothing;
            }
        };
        let mut plan = self.plan.lock();
        let is_as_known = plan.known.as_ref().is_some_and(|known| {
            known.incarnation == registered.incarnation
                && Arc::ptr_eq(&known.definition, &registered.definition)
                && known.instance == instance
        });
        let may_compute = plan.computed.is_none_or(|computed| now >= computed + self.interval);
        let has_new_view = || self.watched_views().iter().any(|view| view.is_new());
        if !is_as_known || has_new_view() {
            if may_compute || plan.known.is_none() || has_new_view() {
                return Due::Compute;
            }
            plan.next = plan.computed.map_or(now, |computed| computed + self.interval);
            return Due::Nothing;
        }
        if !may_compute {
            plan.next = plan.computed.map_or(now, |computed| computed + self.interval);
            return Due::Nothing;
        }
        let board = instance.name_on_shards(&self.board);
        Due::Check(BoardLife { board, incarnation: registered.incarnation })
    }

    /// Takes what shards have said: for each, its sequence and when the board changed last; `None` if it did
    /// not answer. Returns whether the states have to be computed.
    pub(super) fn has_changed(
        &self,
        begun: Instant,
        told: &[(ShardId, Option<(Sequence, Sequence)>)],
        pause: Duration,
    ) -> bool {
        let mut plan = self.plan.lock();
        let computed = plan.computed;
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
        let exact_at = known.exact_at.clone();
        plan.behind = if is_behind { plan.behind.or(Some(begun)) } else { None };
        let was_restored = plan.behind.is_some_and(|since| begun >= since + REPLACED_AFTER);
        let may_retry = computed.is_none_or(|computed| begun >= computed + RETRY);
        if has_changed || was_restored || (is_unknown && may_retry) {
            return true;
        }
        plan.next = Instant::now() + pause;
        drop(plan);
        if !is_unknown && self.checked.receiver_count() > 0 {
            self.checked.send_replace(Checked { at: Some(begun), exact_at });
        }
        false
    }

    /// There is nothing to watch.
    fn end(&self, why: &NotLive, now: Instant) {
        for view in self.watched_views() {
            view.end(why.clone());
        }
        let mut plan = self.plan.lock();
        (plan.known, plan.computed) = (None, None);
        plan.next = now + RETRY;
        drop(plan);
        self.checked.send_replace(Checked { at: Some(now), exact_at: AsOf::default() });
    }

    /// Computes all views that are watched, and shows what has changed.
    pub(super) async fn compute(&self, source: &LiveSource, time: Timestamp) {
        counter!(LIVE_COMPUTATIONS_TOTAL).increment(1);
        let begun = Instant::now();
        // Before the read: what is defined meanwhile is another definition afterwards.
        let registered = source.registry.get(self.board.as_str());
        self.forget_views();
        let views = self.watched_views();
        let top = views.iter().map(|view| view.top).max().unwrap_or(1);
        let mut named = HashSet::new();
        let members = views.iter().flat_map(|view| view.members.iter());
        let members: Vec<MemberId> = members.filter(|member| named.insert(*member)).cloned().collect();
        let found = self.read(source, time, top, &members).await;
        let mut plan = self.plan.lock();
        plan.computed = Some(begun);
        plan.next = begun + self.interval;
        plan.behind = None;
        match (found, registered) {
            (Ok(Ok(found)), Some(registered)) => {
                let known = Known {
                    incarnation: found.incarnation,
                    definition: registered.definition,
                    instance: found.instance,
                    exact_at: found.as_of.clone(),
                };
                plan.known = Some(known);
                drop(plan);
                for view in &views {
                    view.show(found.state_of(view));
                }
                self.checked.send_replace(Checked { at: Some(begun), exact_at: found.as_of });
            }
            (Ok(Err(why)), _) => {
                drop(plan);
                self.end(&why, begun);
            }
            (Ok(Ok(_)), None) => {
                drop(plan);
                self.end(&NotLive::from(NoBoard::Unknown), begun);
            }
            (Err(why), _) => {
                // It is tried again as often as shards are asked at all.
                plan.next = begun + self.interval.max(RETRY);
                drop(plan);
                let why = NotLive::Read(why);
                for view in &views {
                    view.fail(&why);
                }
                self.checked.send_replace(Checked { at: Some(begun), exact_at: AsOf::default() });
            }
        }
    }

    async fn read(
        &self,
        source: &LiveSource,
        time: Timestamp,
        top: usize,
        members: &[MemberId],
    ) -> Result<Result<Found, NotLive>, ReadError> {
        let (first, rest) = members.split_at(members.len().min(MEMBERS_AT_ONCE));
        let asked = OfBoard {
            board: self.board.clone(),
            instance: InstanceAsked { choice: self.choice, now: time },
            read: ReadLive { top, members: first.to_vec() },
        };
        let (answer, mut is_stale) = source.read(asked).await?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return Ok(Err(why.into())),
        };
        let instance = answer.instance;
        let body = answer.body;
        let mut members = by_member(body.found);
        for chunk in rest.chunks(MEMBERS_AT_ONCE) {
            let asked = OfBoard {
                board: self.board.clone(),
                instance: InstanceAsked { choice: WindowChoice::Named(instance), now: time },
                read: LookupMembers { members: chunk.to_vec() },
            };
            let (answer, is_stale_too) = source.read(asked).await?;
            is_stale |= is_stale_too;
            match answer {
                Ok(answer) => members.extend(by_member(answer.body)),
                Err(why) => return Ok(Err(why.into())),
            }
            // Writers, and other watched boards, have their turn.
            tokio::task::yield_now().await;
        }
        Ok(Ok(Found {
            incarnation: body.incarnation,
            instance,
            total: body.total,
            entries: body.page.entries.into_iter().map(Arc::new).collect(),
            members: members.into_iter().map(|(id, listed)| (id, Arc::new(listed))).collect(),
            is_stale,
            as_of: body.as_of,
        }))
    }
}

/// What a computation found, for all views.
struct Found {
    incarnation: Incarnation,
    instance: Instance,
    total: u64,
    entries: Vec<Arc<Listed>>,
    members: HashMap<Box<str>, Arc<Listed>>,
    is_stale: bool,
    as_of: AsOf,
}

impl Found {
    fn state_of(&self, view: &View) -> LiveState {
        let state = LiveState {
            id: 0,
            incarnation: self.incarnation,
            instance: self.instance,
            total: self.total,
            entries: self.entries.iter().take(view.top).cloned().collect(),
            members: view.members.iter().map(|member| self.members.get(member.as_str()).cloned()).collect(),
            is_stale: self.is_stale,
            as_of: self.as_of.clone(),
        };
        state.identified()
    }
}
