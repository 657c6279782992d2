//! Plans a job on a board that has other windows than `all`: it changes every open instance that its time
//! falls in.
//!
//! Knows: which instances those are, and that a version is of a member on a board, whatever its windows. Must
//! not know: what an operation does to an entry.
//!
//! The board's own tree is that of `all`. If `all` is not one of its windows, the tree lists nothing, and
//! only remembers the versions of its members.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::board::Definition;
use crate::job::{Job, Op, Reject, RejectCode};
use crate::state::{Incarnation, TreeId};
use crate::tree::Handle;
use crate::types::{BoardName, Score, Timestamp};
use crate::window::{Instance, Span, Window};
use crate::writer::decide::{Decision, Request, decide};
use crate::writer::plan::Batch;
use crate::writer::plan::jobs::{BoardDecision, BoardSource, Decided, Shown, default_op, with_board};
use crate::writer::plan::top_k;

/// Instances whose drop is due that one message drops. Later messages drop the rest.
pub(super) const DROPS_PER_MESSAGE: usize = if cfg!(test) { 2 } else { 32 };

/// Instances of a board whose definition changes that are looked at before the lock is yielded.
const INSTANCES_PER_YIELD: usize = 16;

/// Open instances that are looked at one by one.
const FEW_INSTANCES: usize = if cfg!(test) { 4 } else { 16 };

/// An open instance that a job has entered in this batch: the next one most likely enters it too.
pub(super) struct EnteredInstance {
    name: BoardName,
    /// Of the board.
    incarnation: Incarnation,
    span: Span,
    closes_at: Option<Timestamp>,
    /// `None`: no job has entered it yet.
    pub(super) tree: Option<TreeId>,
}

/// What a batch knows of the windows of the boards that its jobs name: few of each board, and found quickly.
pub(super) struct ByWindow<T>(HashMap<BoardName, Vec<(Window, T)>, RandomState>);

impl<T> Default for ByWindow<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T> ByWindow<T> {
    pub(super) fn get(&self, board: &BoardName, window: Window) -> Option<&T> {
        self.of_board(board).find(|(of, _)| *of == window).map(|(_, known)| known)
    }

    pub(super) fn of_board(&self, board: &BoardName) -> impl Iterator<Item = (Window, &T)> {
        self.0.get(board).into_iter().flatten().map(|(window, known)| (*window, known))
    }

    pub(super) fn insert(&mut self, board: &BoardName, window: Window, known: T) {
        let of_board = self.0.entry_ref(board).or_default();
        match of_board.iter_mut().find(|(of, _)| *of == window) {
            Some((_, replaced)) => *replaced = known,
            None => of_board.push((window, known)),
        }
    }

    pub(super) fn forget(&mut self, board: &BoardName) {
        self.0.remove(board);
    }
}

/// When instances are dropped, as far as the batch differs from the shard.
#[derive(Default)]
pub(super) struct DueDrops {
    /// The shard's drops up to this one are dealt with.
    seen: Option<(Timestamp, BoardName)>,
    /// Boards whose instances the shard may have with other times.
    redefined: BTreeSet<BoardName>,
    /// Instances of those, and instances that the batch created.
    due: BTreeSet<(Timestamp, BoardName)>,
}

/// A board on which a job is decided.
struct OnBoard<'a, 'job> {
    job: &'a Job,
    board: &'job BoardName,
    definition: Arc<Definition>,
    incarnation: Incarnation,
    op: Op,
    score: Option<&'a Score>,
    handle: Option<Handle>,
    at: Timestamp,
}

impl Batch<'_> {
    /// Decides a job on a board and all of its instances that the job changes, or else refuses it.
    pub(super) fn decide_on_windows<'job>(
        &mut self,
        job: &Job,
        board: &'job BoardName,
        score: Option<&Score>,
        handle: Option<Handle>,
        now: Timestamp,
        decided: &mut Decided<'job>,
    ) -> Result<(), Reject> {
        let source = self.source_of(board)?;
        let definition = match source.definition() {
            Some(definition) if !definition.has_only_all() => Arc::clone(definition),
            _ => {
                self.count_trees(1)?;
                decided.push(self.decide_on(job, board, source, score, handle, now)?);
                return Ok(());
            }
        };
        let incarnation = match &source {
            BoardSource::OnShard(_, incarnation, _) | BoardSource::OnNode { incarnation, .. } => *incarnation,
            BoardSource::New => Incarnation::default(),
        };
        let op = job.op.unwrap_or_else(|| default_op(definition.policy));
        let at = job.at.unwrap_or(now);
        let on = OnBoard { job, board, definition, incarnation, op, score, handle, at };
        if op == Op::Take {
            let removal = Job { op: Some(Op::Remove), ..job.clone() };
            if self.is_held(&on, &source)? {
                return self.decide_on_windows(&removal, board, None, handle, now, decided);
            }
            return self.decide_nothing(&on, source, now, decided);
        }
        self.count_trees(on.definition.trees_of_job())?;
        top_k::check(&on.definition, job, op, score).map_err(|reject| with_board(job, board, reject))?;
        let first = decided.len();
        if on.definition.has_all() {
            decided.push(self.decide_on(job, board, source.clone(), score, handle, now)?);
        } else if job.version.is_some() {
            decided.push(self.decide_version(&on, source.clone())?);
        }
        let entered = if op.takes_score() {
            self.decide_on_instances_of_time(&on, decided)?
        } else {
            self.decide_on_open_instances(&on, decided)?;
            true
        };
        if !entered && !on.definition.has_all() {
            let detail = format!("no instance that {at} falls in is open at {}", self.message_time);
            return Err(with_board(job, board, Reject::new(RejectCode::ClosedWindow, detail)));
        }
        let is_asked = self.outcome_boards.is_some();
        show_default_window(&on, source, (first, is_asked), decided);
        Ok(())
    }

    /// Decides a job whose condition does not hold: its version is remembered.
    fn decide_nothing<'job>(
        &mut self,
        on: &OnBoard<'_, 'job>,
        source: BoardSource,
        now: Timestamp,
        decided: &mut Decided<'job>,
    ) -> Result<(), Reject> {
        self.count_trees(1)?;
        let first = decided.len();
        if on.definition.has_all() {
            decided.push(self.decide_on(on.job, on.board, source.clone(), on.score, on.handle, now)?);
        } else if on.job.version.is_some() {
            decided.push(self.decide_version(on, source.clone())?);
        }
        let is_asked = self.outcome_boards.is_some();
        show_default_window(on, source, (first, is_asked), decided);
        Ok(())
    }

    /// Whether the member has the job's score in the board's default window.
    fn is_held(&mut self, on: &OnBoard<'_, '_>, source: &BoardSource) -> Result<bool, Reject> {
        let sent = on.score.ok_or_else(|| Reject::new(RejectCode::BadScore, "the job has no score"));
        let given = sent.and_then(|sent| {
            let typed = on.definition.typed(sent);
            typed.map_err(|why| Reject::new(RejectCode::BadScore, on.definition.refused(why, sent)))
        });
        let given = given.map_err(|reject| with_board(on.job, on.board, reject))?;
        let window = on.definition.default_window();
        let place = if window == Window::All {
            Some((on.board.clone(), source.tree()))
        } else {
            self.open_instance_at(on, window)
        };
        let Some((name, Some(tree))) = place else { return Ok(false) };
        let before = on.handle.and_then(|handle| self.entry(tree, handle));
        let words = self.unless_expired(&on.definition, &name, before).and_then(|entry| entry.words());
        Ok(words.is_some_and(|words| on.definition.score_of(words.as_slice()) == *given))
    }

    /// Compares and remembers the version of a member on a board whose tree lists nothing.
    fn decide_version<'job>(
        &self,
        on: &OnBoard<'_, 'job>,
        source: BoardSource,
    ) -> Result<BoardDecision<'job>, Reject> {
        let before = source.entry(self, on.handle);
        let request = Request {
            op: Op::Remove,
            score: None,
            version: on.job.version,
            at: on.at,
            member: &on.job.member,
            member_version: self.member_version(&on.job.member),
            is_hidden: false,
            metadata: None,
        };
        let decision = decide(&on.definition, before.as_ref(), &request);
        let decision = decision.map_err(|reject| with_board(on.job, on.board, reject))?;
        let name = Cow::Borrowed(on.board);
        Ok(BoardDecision { name, source, before, decision, other: None, shown: Shown::Not })
    }

    /// Decides a job with a score on the open instances that its time falls in. Returns whether there is one.
    fn decide_on_instances_of_time<'job>(
        &mut self,
        on: &OnBoard<'_, 'job>,
        decided: &mut Decided<'job>,
    ) -> Result<bool, Reject> {
        let mut entered = false;
        for window in on.definition.windows.iter().copied().filter(|window| *window != Window::All) {
            let Some((name, tree)) = self.open_instance_at(on, window) else { continue };
            entered = true;
            decided.push(self.decide_on_instance(on, name, tree)?);
        }
        Ok(entered)
    }

    /// Decides a job without a score on all open instances that have entries.
    fn decide_on_open_instances<'job>(
        &mut self,
        on: &OnBoard<'_, 'job>,
        decided: &mut Decided<'job>,
    ) -> Result<(), Reject> {
        let Some(handle) = on.handle else { return Ok(()) };
        let names = if let Some(open) = self.few_open_instances(on) {
            open
        } else {
            let entered = self.rankings_on(on.board, handle);
            self.count_trees(entered.len())?;
            entered
        };
        for name in names {
            let (board, Some(instance)) = name.split() else { continue };
            let is_open = |instance| self.is_open(&on.definition, instance);
            if board != on.board.as_str() || !Instance::of_name(instance).is_some_and(is_open) {
                continue;
            }
            let known = self.board(&name).filter(|known| known.incarnation == on.incarnation);
            let Some(tree) = known.map(|known| known.tree) else { continue };
            // Whether a member without an entry has a handle does not follow from the log: nothing may depend
            // on it.
            if self.entry(tree, handle).is_some() {
                decided.push(self.decide_on_instance(on, name, Some(tree))?);
            }
        }
        Ok(())
    }

    /// Whether a job of the message may change an instance. While a leap is not believed, the one that its
    /// time falls in has begun, and none is closed by it.
    pub(super) fn is_open(&self, definition: &Definition, instance: Instance) -> bool {
        definition.is_open_between(instance, self.time, self.message_time)
    }

    /// The open instances of a board. `None`: there are more than a few, because its grace is long.
    fn few_open_instances(&self, on: &OnBoard<'_, '_>) -> Option<Vec<BoardName>> {
        let mut open = Vec::new();
        for window in on.definition.windows.iter().copied().filter(|window| *window != Window::All) {
            let current = on.definition.calendar().instance_at(window, self.message_time);
            let back = std::iter::successors(current, |instance| Some(instance.later(-1)));
            for instance in back.take_while(|instance| self.is_open(&on.definition, *instance)) {
                if open.len() == FEW_INSTANCES {
                    return None;
                }
                open.push(instance.name_on_shards(on.board));
            }
        }
        Some(open)
    }

    fn decide_on_instance<'job>(
        &mut self,
        on: &OnBoard<'_, 'job>,
        name: BoardName,
        tree: Option<TreeId>,
    ) -> Result<BoardDecision<'job>, Reject> {
        let (definition, incarnation) = (Arc::clone(&on.definition), on.incarnation);
        let source = match tree {
            Some(tree) => BoardSource::OnShard(tree, incarnation, definition),
            None => BoardSource::OnNode { definition, incarnation },
        };
        let before = source.entry(self, on.handle);
        let found = self.unless_expired(&on.definition, &name, before);
        let request = Request {
            op: on.op,
            score: on.score,
            version: None,
            at: on.at,
            member: &on.job.member,
            member_version: None,
            is_hidden: self.is_hidden(&on.job.member, on.board),
            metadata: on.job.meta.as_ref().map(|metadata| &*metadata.0 != "{}"),
        };
        let decided = self.decide_entry(&on.definition, tree, found.as_ref(), &request);
        let (decision, other) = decided.map_err(|reject| with_board(on.job, &name, reject))?;
        let decision = self.unless_same_metadata(on.job, (tree, on.handle), decision);
        let decision = self.unless_too_old(&on.definition, &name, decision);
        let (other, shown) = (other.map(Box::new), Shown::Not);
        Ok(BoardDecision { name: Cow::Owned(name), source, before, decision, other, shown })
    }

    /// The instance of a window that a job's time falls in, if it is open, and its tree if it has one.
    fn open_instance_at(
        &mut self,
        on: &OnBoard<'_, '_>,
        window: Window,
    ) -> Option<(BoardName, Option<TreeId>)> {
        let (believed, latest) = (self.time, self.message_time);
        let is_known =
            |known: &EnteredInstance| known.incarnation == on.incarnation && known.span.contains(on.at);
        if !self.entered.get(on.board, window).is_some_and(is_known) {
            let calendar = on.definition.calendar();
            let instance = calendar.instance_at(window, on.at)?;
            let span = calendar.span(instance)?;
            let name = instance.name_on_shards(on.board);
            let closes_at = on.definition.closes_at(instance);
            let tree = self.board(&name).filter(|known| known.incarnation == on.incarnation);
            let tree = tree.map(|known| known.tree);
            let entered = EnteredInstance { name, incarnation: on.incarnation, span, closes_at, tree };
            self.entered.insert(on.board, window, entered);
        }
        let known = self.entered.get(on.board, window)?;
        let has_begun = known.span.begin <= latest;
        let is_open = has_begun && known.closes_at.is_none_or(|closes_at| believed < closes_at);
        is_open.then(|| (known.name.clone(), known.tree))
    }

    /// After a board or an instance was defined or dropped: notes when its instances are dropped, and forgets
    /// which of them jobs entered.
    pub(super) fn note_drops_due(&mut self, name: &BoardName) {
        let board = name.board();
        self.entered.forget(&board);
        self.movements.forget(&board);
        let definition = self.board(&board).map(|board| Arc::clone(board.definition));
        let drops_at = |name: &BoardName| definition.as_ref()?.drops_name_at(name);
        if name.is_instance() {
            let due = drops_at(name).map(|at| (at, name.clone()));
            match (due, self.board(name).is_some()) {
                (Some(due), true) => self.drops.due.insert(due),
                (Some(due), false) => self.drops.due.remove(&due),
                (None, _) => false,
            };
            return;
        }
        // It may be new to the shard, which has no instances of it then.
        self.drops.due.retain(|(_, of)| of.split().0 != board.as_str());
        for (index, name) in self.instances_of(&board).into_iter().enumerate() {
            if index.is_multiple_of(INSTANCES_PER_YIELD) {
                self.shard.yield_if_due();
            }
            self.drops.due.extend(drops_at(&name).map(|at| (at, name)));
        }
        self.drops.redefined.insert(board);
    }

    /// Drops instances whose time has come, a bounded number per message.
    pub(super) fn drop_due_instances(&mut self) {
        self.drop_early_instances();
        let due = self.next_drops_due();
        for name in due {
            let Some(incarnation) = self.board(&name).map(|instance| instance.incarnation) else { continue };
            self.drop_board(name, incarnation, None);
            self.instances_dropped += 1;
        }
    }

    /// The instances to drop at this message, the earliest first: on every replica the same, however it cuts
    /// the log into batches.
    fn next_drops_due(&mut self) -> Vec<BoardName> {
        let now = self.time;
        let is_due = |due: &(Timestamp, BoardName)| due.0 <= now;
        let is_any_due = self.shard.next_due().is_some_and(|at| at <= now);
        if !is_any_due && !self.drops.due.first().is_some_and(is_due) {
            return Vec::new();
        }
        let (drops, boards) = (&self.drops, &self.boards);
        let is_overlaid = |due: &(Timestamp, BoardName)| {
            boards.contains_key(&due.1) || drops.redefined.contains(due.1.split().0)
        };
        let mut seen = None;
        let mut due: Vec<(Timestamp, BoardName)> = Vec::new();
        for of_shard in self.shard.drops_due_after(drops.seen.as_ref()).take_while(|due| is_due(due)) {
            if !is_overlaid(of_shard) {
                if due.len() == DROPS_PER_MESSAGE {
                    break;
                }
                due.push(of_shard.clone());
            } else if due.is_empty() {
                // It stays overlaid for the rest of the batch.
                seen = Some(of_shard.clone());
            }
        }
        due.extend(drops.due.iter().take_while(|due| is_due(due)).take(DROPS_PER_MESSAGE).cloned());
        due.sort_unstable();
        due.truncate(DROPS_PER_MESSAGE);
        if seen.is_some() {
            self.drops.seen = seen;
        }
        due.into_iter().map(|(_, name)| name).collect()
    }
}

/// Chooses what the answer shows of a board: the instance of its default window, or else the first that the
/// job has entered.
///
/// # Arguments
/// - `first`: the first of the board's decisions.
/// - `is_asked`: whether a client waits for the answer.
fn show_default_window<'job>(
    on: &OnBoard<'_, 'job>,
    source: BoardSource,
    (first, is_asked): (usize, bool),
    decided: &mut Decided<'job>,
) {
    // A board that is named has a decision, whether or not a client waits: replicas must not differ.
    if decided.len() == first {
        let decision = Decision::of(None, false);
        let (name, shown) = (Cow::Borrowed(on.board), Shown::NoEntry { changed: false });
        decided.push(BoardDecision { name, source, before: None, decision, other: None, shown });
        return;
    }
    if !is_asked {
        return;
    }
    let default = on.definition.default_window();
    let has_all = on.definition.has_all();
    let of_board = decided.get_mut(first..).unwrap_or_default();
    // Without a window `all`, the board's own tree only remembers versions.
    let is_shown = |decided: &BoardDecision<'_>| has_all || decided.name.is_instance();
    let is_default = |decided: &BoardDecision<'_>| {
        let instance = Instance::of_name_on_shards(&decided.name);
        is_shown(decided) && instance.is_some_and(|instance| instance.window == default)
    };
    let changed = of_board.iter().any(|decided| is_shown(decided) && decided.decision.changed);
    let shown = of_board.iter().position(is_default).or_else(|| of_board.iter().position(is_shown));
    if let Some(decided) = shown.and_then(|shown| of_board.get_mut(shown)) {
        decided.shown = Shown::Entry { changed };
    } else if let Some(version) = of_board.first_mut() {
        version.shown = Shown::NoEntry { changed };
    }
}
