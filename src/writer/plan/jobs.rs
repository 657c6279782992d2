//! Plans one job: it is rejected, parked, or changes all of its boards.
//!
//! Knows: how the board that a job names is found or created. What an operation means is in `decide`.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::board::{Definition, Policy};
use crate::job::{Job, Op, Reject, RejectCode, Targets};
use crate::state::{Applied, Entry, Incarnation, TreeId};
use crate::storage::codec::RejectRecord;
use crate::tree::Handle;
use crate::types::{BoardName, Floats, Score, Timestamp, shard_of};
use crate::window::Window;
use crate::wire;
use crate::writer::decide::{Decision, Request, check_time};
use crate::writer::outcome::{FoundBoard, LeftBehind};
use crate::writer::plan::boards::BatchBoard;
use crate::writer::plan::parked::{no_more_boards, no_such_board};
use crate::writer::plan::top_k::{self, OtherChange};
use crate::writer::plan::{Batch, PlannedBoard};
use crate::writer::registered::RegisteredBoard;
use crate::writer::registry::BoardLookup;
use crate::writer::source::BadJob;

/// Boards of a member that are planned before the lock is yielded.
pub(super) const BOARDS_PER_YIELD: usize = 16;

/// What became of a job that was not rejected.
pub(super) enum JobPlan {
    Planned,
    /// By [`plain`](super::plain); and whether it changed anything that readers see.
    Plain {
        changed: bool,
    },
    Parked,
}

impl Batch<'_> {
    /// Plans one job. If it is refused, a rejection is recorded.
    pub(super) fn plan_job(
        &mut self,
        job: &Result<Job, BadJob>,
        index: usize,
        applied: Applied,
    ) -> Result<JobPlan, Reject> {
        let outcome = match job {
            Ok(job) => {
                self.try_job(job, index, applied).map_err(|reject| self.bad_number(job).unwrap_or(reject))
            }
            Err(bad) => Err(bad.reject.clone()),
        };
        // A parked job is counted when it is unparked.
        self.jobs += usize::from(!matches!(outcome, Ok(JobPlan::Parked)));
        if let Err(reject) = &outcome {
            self.hash_reject(index, reject.code);
            let bytes = match job {
                Ok(job) => wire::cut_job(&wire::encode(job)),
                Err(bad) => wire::cut_job(&bad.bytes),
            };
            // One that is not there could have any name: whoever sends such jobs would have a share for each.
            let is_there =
                |board: &&BoardName| self.source_of(board).is_ok_and(|source| source.definition().is_some());
            let named = job.as_ref().ok().and_then(|job| job.boards().next());
            let board = named.filter(is_there).cloned();
            self.rejects.push(RejectRecord {
                sequence: applied.sequence,
                index: u32::try_from(index).unwrap_or(u32::MAX),
                code: reject.code,
                detail: reject.detail.clone(),
                job: bytes,
                time: self.time,
                board,
            });
        }
        outcome
    }

    fn try_job(&mut self, job: &Job, index: usize, applied: Applied) -> Result<JobPlan, Reject> {
        self.begin_job();
        let home = shard_of(&job.member, self.planner.shards);
        if home != self.planner.id {
            let detail = format!("{} belongs to shard {home} of {}", job.member, self.planner.shards);
            return Err(Reject::new(RejectCode::WrongShard, detail));
        }
        // Before parking: a job's time is compared with its own message's, whenever its board is defined.
        check_time(job, applied.timestamp)?;
        self.check_writable(job)?;
        if let Some(planned) = self.plan_plain(job, applied) {
            return planned;
        }
        if job.targets != Targets::EveryBoard && self.must_park(job)? {
            self.park(job, index, applied);
            return Ok(JobPlan::Parked);
        }
        if let Targets::Profile(profile) = &job.targets {
            let decided = self.decide_profile(job, profile.json())?;
            self.record_profile(&job.member, decided, applied.sequence);
            return Ok(JobPlan::Planned);
        }
        self.check_room()?;
        if let Some(op) = job.op.filter(|op| op.is_ban()) {
            return self.plan_ban(job, op, applied);
        }
        let handle = self.find_member(&job.member);
        loop {
            self.trees_counted = self.trees_counted_before;
            // Most jobs name one board, whose only window is `all`. This path allocates nothing.
            if let Targets::Boards(boards) = &job.targets
                && let [(board, score)] = boards.as_slice()
            {
                let source = self.source_of(board)?;
                if source.definition().is_none_or(|definition| definition.has_only_all()) {
                    self.count_trees(1)?;
                    let decision =
                        self.decide_on(job, board, source, score.as_ref(), handle, applied.timestamp)?;
                    let mut decided = [decision];
                    self.admit_member(handle, &decided)?;
                    if self.create_missing_boards(&mut decided)? {
                        let [decided] = decided;
                        self.record(job, decided, handle, applied);
                        return Ok(JobPlan::Planned);
                    }
                    continue;
                }
            }
            // A job on many boards or windows takes as long as dozens of others.
            self.shard.yield_if_due();
            // All or nothing: every board is decided before any is changed.
            let every;
            let mut decided = Decided::new();
            let (mut profile, mut left) = (None, LeftBehind::default());
            let is_everywhere = job.targets == Targets::EveryBoard;
            match &job.targets {
                Targets::Boards(boards) => {
                    for (board, score) in boards {
                        self.shard.yield_if_due();
                        self.decide_on_windows(
                            job,
                            board,
                            score.as_ref(),
                            handle,
                            applied.timestamp,
                            &mut decided,
                        )?;
                    }
                }
                Targets::EveryBoard => {
                    every = self.boards_to_leave(handle);
                    self.count_trees(every.len())?;
                    let removal = self.decide_removal_everywhere(job, &every, handle, applied)?;
                    (decided, profile, left) = (removal.decided, removal.profile, removal.left);
                }
                // Planned above.
                Targets::Profile(_) => {}
            }
            self.admit_member(handle, &decided)?;
            if self.create_missing_boards(&mut decided)? {
                let mut handle = handle;
                for (index, decided) in decided.drain(..).enumerate() {
                    if index % BOARDS_PER_YIELD == 0 {
                        self.shard.yield_if_due();
                    }
                    handle = self.record(job, decided, handle, applied);
                }
                if is_everywhere {
                    self.record_removal_everywhere(job, profile, left, index, applied);
                    if self.removes_early(job) {
                        self.park(job, index, applied);
                    }
                }
                return Ok(JobPlan::Planned);
            }
        }
    }

    /// Why a job has a number that its board's key has not, if the board is known: as for what is no number
    /// at all, that is the reason, whatever else is wrong. Only jobs that are rejected are looked at.
    fn bad_number(&self, job: &Job) -> Option<Reject> {
        let Targets::Boards(boards) = &job.targets else { return None };
        boards.iter().find_map(|(board, score)| {
            let score = score.as_ref().filter(|score| score.floats() != Floats::NONE)?;
            let definition = self.source_of(board).ok()?.definition().cloned().unwrap_or_default();
            let refused = definition.typed_first_keys(score).err()?;
            let detail = definition.refused(refused.into(), score);
            Some(with_board(job, board, Reject::new(RejectCode::BadScore, detail)))
        })
    }

    /// Refuses a new member if the shard has no handles left.
    pub(super) fn admit_member(
        &self,
        handle: Option<Handle>,
        decided: &[BoardDecision<'_>],
    ) -> Result<(), Reject> {
        let members = &self.shard.members;
        if handle.is_some() || self.added < members.room() || !decided.iter().any(BoardDecision::changes) {
            return Ok(());
        }
        let detail = format!(
            "shard {} holds {} members and has no handle for another; a service with more shards can hold more members",
            self.planner.id,
            members.len() + self.added
        );
        Err(Reject::new(RejectCode::TooLarge, detail))
    }

    /// Creates the missing boards of an accepted job: all of them or none. Returns `false` if a client has
    /// just defined one of them differently; the job must then be decided again, by that definition.
    fn create_missing_boards(&self, decided: &mut [BoardDecision<'_>]) -> Result<bool, Reject> {
        let is_new = |decided: &&BoardDecision<'_>| matches!(decided.source, BoardSource::New);
        let names: Vec<&BoardName> = decided.iter().filter(is_new).map(|decided| &*decided.name).collect();
        if names.is_empty() {
            return Ok(true);
        }
        let created = self.planner.registry.create_defaults(&names);
        let created =
            created.map_err(|refused| Reject::new(RejectCode::UnknownBoard, refused.to_string()))?;
        let Some(created) = created else { return Ok(false) };
        let new = decided.iter_mut().filter(|decided| matches!(decided.source, BoardSource::New));
        for (decided, RegisteredBoard { definition, incarnation }) in new.zip(created) {
            decided.source = BoardSource::OnNode { definition, incarnation };
        }
        Ok(true)
    }

    /// Where a board is found, or an instance that exists.
    pub(super) fn source_of(&self, board: &BoardName) -> Result<BoardSource, Reject> {
        let begun = self.next_incarnation(board);
        let here = self.board(board).filter(|_| begun.is_none());
        Ok(match (here, begun) {
            (Some(board), _) => {
                BoardSource::OnShard(board.tree, board.incarnation, Arc::clone(board.definition))
            }
            (None, Some(RegisteredBoard { definition, incarnation })) => {
                BoardSource::OnNode { definition, incarnation }
            }
            (None, None) if self.parking.is_some() => {
                let detail = self.parking.as_ref().map(|parking| no_more_boards(board, parking));
                return Err(Reject::new(RejectCode::UnknownBoard, detail.unwrap_or_default()));
            }
            (None, None) => match self.planner.registry.lookup(board.as_str()) {
                BoardLookup::Exists(RegisteredBoard { definition, incarnation }) => {
                    BoardSource::OnNode { definition, incarnation }
                }
                BoardLookup::Creatable => BoardSource::New,
                BoardLookup::Unknown => {
                    let detail = no_such_board(board);
                    return Err(Reject::new(RejectCode::UnknownBoard, detail));
                }
            },
        })
    }

    /// Decides a job on one tree: of a board that has no other window than `all`, or of an instance.
    pub(super) fn decide_on<'job>(
        &mut self,
        job: &Job,
        board: &'job BoardName,
        source: BoardSource,
        score: Option<&Score>,
        handle: Option<Handle>,
        now: Timestamp,
    ) -> Result<BoardDecision<'job>, Reject> {
        let default;
        let definition = if let Some(definition) = source.definition() {
            &**definition
        } else {
            default = Definition::default();
            &default
        };
        let before = source.entry(self, handle);
        let found = self.unless_expired(definition, board, before);
        let op = job.op.unwrap_or_else(|| default_op(definition.policy));
        top_k::check(definition, job, op, score).map_err(|reject| with_board(job, board, reject))?;
        let decided = self.decide_entry(
            definition,
            source.tree(),
            found.as_ref(),
            &Request {
                op,
                score,
                // The version is that of the member on the board: an instance has none of its own.
                version: job.version.filter(|_| !board.is_instance()),
                at: job.at.unwrap_or(now),
                member: &job.member,
                // A removal from every board was compared with it before.
                member_version: match job.targets {
                    Targets::EveryBoard => None,
                    _ => job.version.and_then(|_| self.version_everywhere(&job.member)),
                },
                is_hidden: self.is_hidden(&job.member, board),
                metadata: job.meta.as_ref().map(|metadata| &*metadata.0 != "{}"),
            },
        );
        let (decision, other) = decided.map_err(|reject| with_board(job, board, reject))?;
        let decision = self.unless_same_metadata(job, (source.tree(), handle), decision);
        let decision = self.unless_too_old(definition, board, decision);
        // Of a job on every board only their number is told. With rankings before and after, the lock would
        // be held three times as long, for as many boards as the member is on.
        let changed = decision.changed;
        let shown = match job.targets {
            Targets::EveryBoard => Shown::NoEntry { changed },
            Targets::Boards(_) | Targets::Profile(_) => Shown::Entry { changed },
        };
        let other = other.map(Box::new);
        Ok(BoardDecision { name: Cow::Borrowed(board), source, before, decision, other, shown })
    }

    /// Records a decision in the plan. Returns the member's handle, which it may have allocated.
    pub(super) fn record(
        &mut self,
        job: &Job,
        decided: BoardDecision<'_>,
        handle: Option<Handle>,
        applied: Applied,
    ) -> Option<Handle> {
        let changes = decided.changes();
        let BoardDecision { name, source, before, decision, other, shown } = decided;
        let name = &*name;
        let expires = |definition: &&Arc<Definition>| definition.entry_ttl_micros.is_some();
        let expiring = source.definition().filter(expires).cloned();
        let is_counted = source.definition().is_some_and(|definition| definition.is_top_k());
        let moving = source.definition().filter(|definition| definition.movement).cloned();
        let (tree, incarnation) = match source {
            BoardSource::OnShard(tree, incarnation, _) => (tree, incarnation),
            // A job that leaves an instance as it is must not be what creates it.
            BoardSource::OnNode { .. } if name.is_instance() && !changes => {
                self.show_outcome(name, None, None, (shown, false));
                return handle;
            }
            BoardSource::OnNode { definition, incarnation } => {
                let board = name.board();
                // An instance comes after its board.
                if name.is_instance()
                    && self.board(&board).is_none_or(|board| board.incarnation != incarnation)
                {
                    self.define(&board, incarnation, None, Arc::clone(&definition));
                }
                (self.define(name, incarnation, None, definition), incarnation)
            }
            BoardSource::New => unreachable!(
                "a job for a board that does not exist is rejected or parked before its decisions are recorded"
            ),
        };
        if let Some(other) = other {
            self.record_other((name, incarnation), tree, *other, applied.sequence);
        }
        self.hash_entry((name, incarnation), &job.member, (before.as_ref(), decision.after.as_ref()));
        let handle = match handle {
            None if changes => Some(self.add_member(&job.member)),
            known => known,
        };
        if let Some(handle) = handle.filter(|_| changes) {
            self.change(tree, handle, before.as_ref(), decision.after);
            if is_counted {
                self.note_counted(tree, (&job.member, handle), (before.as_ref(), decision.after.as_ref()));
            }
            if let Some(definition) = moving {
                let board = (name, incarnation, &definition);
                self.note_movement(board, (&job.member, handle), (before.as_ref(), decision.after.as_ref()));
            }
            if let Some(definition) = expiring {
                self.note_expiring(&definition, name, (tree, handle), &job.member, decision.after.as_ref());
            }
            self.plan_metadata(
                (&job.member, job.meta.as_ref()),
                tree,
                handle,
                before.as_ref(),
                &decision,
                applied.sequence,
            );
        }
        self.show_outcome(name, Some(tree), handle, (shown, decision.takes_metadata));
        handle
    }

    /// Adds to the answer, if a client waits for it, what became of a board.
    ///
    /// # Arguments
    /// `takes_metadata`: whether the entry that is shown has the job's metadata now.
    fn show_outcome(
        &mut self,
        name: &BoardName,
        tree: Option<TreeId>,
        handle: Option<Handle>,
        (shown, takes_metadata): (Shown, bool),
    ) {
        let (changed, handle) = match shown {
            Shown::Not => return,
            Shown::Entry { changed } => (changed, handle),
            Shown::NoEntry { changed } => (changed, None),
        };
        let Some(mut outcome_boards) = self.outcome_boards.take() else { return };
        if let Some((board, of_board)) = self.find_board(name) {
            let tree = tree.unwrap_or(of_board);
            outcome_boards.push(PlannedBoard { board, tree, handle, changed, takes_metadata });
        }
        self.outcome_boards = Some(outcome_boards);
    }

    /// A board or an instance as it is now, and the tree. Of an instance that is not there: the board's.
    fn find_board(&mut self, name: &BoardName) -> Option<(Arc<FoundBoard>, TreeId)> {
        let BatchBoard { definition, tree, incarnation } =
            self.board(name).or_else(|| self.board(&name.board()))?;
        let is_it = |found: &&Arc<FoundBoard>| {
            found.incarnation == incarnation
                && Arc::ptr_eq(&found.definition, definition)
                && found.name == *name
        };
        if let Some(found) = self.found_board.as_ref().filter(is_it) {
            return Some((Arc::clone(found), tree));
        }
        let (name, definition) = (name.clone(), Arc::clone(definition));
        let found = Arc::new(FoundBoard { name, definition, incarnation });
        self.found_board = Some(Arc::clone(&found));
        Some((found, tree))
    }
}

/// A job of several boards is rejected for all of them: the reason says which one it is about. If it is about
/// an instance of another window than `all`, it says which.
pub(super) fn with_board(job: &Job, board: &BoardName, reject: Reject) -> Reject {
    let is_only_board = job.boards().nth(1).is_none();
    let about = match (is_only_board, board.split()) {
        (true, (_, None)) => return reject,
        (true, (_, Some(instance))) => instance.to_owned(),
        (false, (board, None)) => board.to_owned(),
        (false, (board, Some(instance))) => format!("{board}, {instance}"),
    };
    Reject { detail: format!("{about}: {}", reject.detail), ..reject }
}

/// The operation of a job without an `op`.
pub(super) fn default_op(policy: Policy) -> Op {
    match policy {
        Policy::Set => Op::Set,
        Policy::Best => Op::Best,
        Policy::Incr => Op::Incr,
    }
}

/// Where the board that a job names was found, or an instance of it.
#[derive(Clone)]
pub(super) enum BoardSource {
    /// On this shard, with its tree.
    OnShard(TreeId, Incarnation, Arc<Definition>),
    /// In the node's registry, and not on this shard yet; or an instance that no job has entered yet.
    OnNode { definition: Arc<Definition>, incarnation: Incarnation },
    /// It does not exist yet: the job creates it.
    New,
}

impl BoardSource {
    /// The definition of the board, which is also that of its instances. `None`: the default one, which the
    /// job gives it.
    pub(super) fn definition(&self) -> Option<&Arc<Definition>> {
        match self {
            Self::OnShard(_, _, definition) | Self::OnNode { definition, .. } => Some(definition),
            Self::New => None,
        }
    }

    pub(super) fn tree(&self) -> Option<TreeId> {
        match self {
            Self::OnShard(tree, ..) => Some(*tree),
            Self::OnNode { .. } | Self::New => None,
        }
    }

    /// A member's entry before the job.
    pub(super) fn entry(&self, batch: &Batch<'_>, handle: Option<Handle>) -> Option<Entry> {
        batch.entry(self.tree()?, handle?)
    }
}

/// What of a decision the answer to a waiting client shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing: another instance of the board is shown.
    Not,
    /// The entry. `changed`: whether the job changed anything on the board that readers see.
    Entry { changed: bool },
    /// Only whether anything changed.
    NoEntry { changed: bool },
}

/// What a job does to its boards and their windows: those of one board need no memory of their own.
pub(super) type Decided<'job> = SmallVec<[BoardDecision<'job>; Window::ALL.len()]>;

pub(super) struct BoardDecision<'job> {
    pub(super) name: Cow<'job, BoardName>,
    pub(super) source: BoardSource,
    pub(super) before: Option<Entry>,
    pub(super) decision: Decision,
    /// Of another member on the board.
    pub(super) other: Option<Box<OtherChange>>,
    pub(super) shown: Shown,
}

impl BoardDecision<'_> {
    /// Whether anything changes, so that the member needs a handle.
    fn changes(&self) -> bool {
        self.before != self.decision.after || self.decision.takes_metadata
    }
}
