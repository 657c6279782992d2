//! Plans `hide` and `show`: a ban begins or ends, and with it the member's entries are hidden or shown.
//!
//! Knows: that a ban is of the member on a board, or on all boards, and neither of an entry nor of an
//! instance. So it is there before a first score, and after a removal. Must not know: how entries that come
//! later are hidden, which [`jobs`](super::jobs) decides by [`Batch::is_hidden`].

use std::borrow::Cow;

use crate::job::{Job, Op, Reject, RejectCode, Targets};
use crate::state::{Applied, BanChange, BanRecord, BanScope, MemberBans};
use crate::tree::Handle;
use crate::types::BoardName;
use crate::writer::decide::{Decision, Request, stale_version};
use crate::writer::plan::Batch;
use crate::writer::plan::jobs::{BoardDecision, BoardSource, Decided, JobPlan, Shown, with_board};
use crate::writer::plan::top_k;

/// Entries of a member that are planned before the lock is yielded.
const ENTRIES_PER_YIELD: usize = 16;

/// A ban that is planned.
struct PlannedBan<'job> {
    job: &'job Job,
    op: Op,
    scope: BanScope,
    /// The member's bans once the job has applied.
    bans: MemberBans,
    /// Whether the job begins it or ends it: it may have done so before.
    changes: bool,
    applied: Applied,
}

impl Batch<'_> {
    /// Plans a job that hides a member or shows it: on one board in all instances, or on all boards.
    pub(super) fn plan_ban(&mut self, job: &Job, op: Op, applied: Applied) -> Result<JobPlan, Reject> {
        let scope = match &job.targets {
            Targets::Boards(boards) => boards.first().map(|(board, _)| board.clone()),
            Targets::EveryBoard | Targets::Profile(_) => None,
        };
        let mut bans = self.bans_of(&job.member).cloned().unwrap_or_default();
        let (begins, before) = (op == Op::Hide, bans.get(&scope));
        let was_there = before.is_some();
        let source = match &scope {
            Some(board) => self.source_of_banned(board, was_there)?,
            None => None,
        };
        if begins
            && !was_there
            && let Some(has) = self.no_room_for_ban(&scope)
        {
            let detail = format!(
                "there is no room for this ban: shard {} has {has} with the operation show; \
                 GET /v1/hidden lists them",
                self.planner.id
            );
            return Err(Reject::new(RejectCode::TooLarge, detail));
        }
        // A board forgets its members' versions when it is cleared or dropped, and the ban stays.
        if let (Some(version), Some(stored)) = (job.version, before.and_then(|ban| ban.version))
            && version <= stored
        {
            return Err(stale_version(version, stored));
        }
        let since = before.map_or(job.at.unwrap_or(applied.timestamp), |ban| ban.since);
        let version = job.version.or(before.and_then(|ban| ban.version));
        let after = begins.then_some(BanRecord { since, version });
        bans.set(&scope, after);
        let ban = PlannedBan { job, op, scope, bans, changes: begins != was_there, applied };
        let handle = self.find_member(&job.member);
        let decided = self.decide_ban(&ban, source.as_ref(), handle)?;
        self.admit_member(handle, &decided)?;
        if before != after {
            self.put_ban(BanChange { scope: ban.scope.clone(), member: job.member.clone(), after });
        }
        let mut handle = handle;
        for (index, decided) in decided.into_iter().enumerate() {
            if index % ENTRIES_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            handle = self.record(job, decided, handle, applied);
        }
        if let (None, Some(version)) = (&ban.scope, job.version) {
            self.set_member_version(&job.member, version, applied.sequence);
        }
        self.job_ids.job_changed |= ban.changes;
        // Of all boards, or of one that is gone: the answer has no board that could say it.
        if source.is_none() {
            self.outcome_profile = Some(ban.changes);
        }
        Ok(JobPlan::Planned)
    }

    /// Where the board of a ban is found. A ban creates no board, and one that is there can be ended although
    /// its board is gone: `None`.
    fn source_of_banned(&self, board: &BoardName, is_there: bool) -> Result<Option<BoardSource>, Reject> {
        match self.source_of(board) {
            Ok(BoardSource::New) | Err(_) if is_there => Ok(None),
            Ok(BoardSource::New) | Err(_) => {
                let detail = format!(
                    "there is no board {board}, and hide and show create none; PUT /v1/boards/{board} creates \
                     it, and without board they are of all boards, those to come included"
                );
                Err(Reject::new(RejectCode::UnknownBoard, detail))
            }
            Ok(source) => Ok(Some(source)),
        }
    }

    /// Decides what becomes of the member's entries, listed or hidden, open instances and closed ones alike.
    fn decide_ban<'job>(
        &mut self,
        ban: &PlannedBan<'job>,
        source: Option<&BoardSource>,
        handle: Option<Handle>,
    ) -> Result<Decided<'job>, Reject> {
        // A life of the board that is over for clients has no entries that anyone will see.
        let mut names = match (handle, source, &ban.scope) {
            (Some(handle), Some(BoardSource::OnShard(..)), Some(board)) => self.rankings_on(board, handle),
            (Some(handle), None, None) => self.boards_of(handle),
            _ => Vec::new(),
        };
        if let Some(board) = &ban.scope {
            // The board remembers the version.
            if ban.job.version.is_some() && source.is_some() && !names.contains(board) {
                names.push(board.clone());
            }
        } else if let (Some(version), Some(stored)) = (ban.job.version, self.member_version(&ban.job.member))
            && version <= stored
        {
            return Err(stale_version(version, stored));
        }
        self.count_trees(names.len().max(1))?;
        let mut decided = Decided::new();
        for (index, name) in names.into_iter().enumerate() {
            if index % ENTRIES_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            decided.push(self.decide_ban_on(ban, name, handle)?);
        }
        if let (Some(board), Some(source)) = (&ban.scope, source) {
            self.show_current_instance(ban, board, source, &mut decided);
        }
        Ok(decided)
    }

    fn decide_ban_on<'job>(
        &mut self,
        ban: &PlannedBan<'job>,
        name: BoardName,
        handle: Option<Handle>,
    ) -> Result<BoardDecision<'job>, Reject> {
        let job = ban.job;
        let source = self.source_of(&name)?;
        let before = source.entry(self, handle);
        let is_of_board = ban.scope.is_some();
        // The version of a ban of all boards is remembered once, for the member, and compared with nothing
        // that a board knows: whoever may write to one board must not keep others from a ban.
        let version = job.version.filter(|_| is_of_board && !name.is_instance());
        let request = Request {
            op: ban.op,
            score: None,
            version,
            at: job.at.unwrap_or(ban.applied.timestamp),
            member: &job.member,
            member_version: version.and_then(|_| self.version_everywhere(&job.member)),
            is_hidden: ban.bans.hide(&name.board()),
            metadata: None,
        };
        let definition = source.definition().cloned().unwrap_or_default();
        if is_of_board {
            top_k::check(&definition, job, ban.op, None).map_err(|reject| with_board(job, &name, reject))?;
        }
        let decision = self.decide_entry(&definition, source.tree(), before.as_ref(), &request);
        let (decision, other) = decision.map_err(|reject| with_board(job, &name, reject))?;
        let shown = if is_of_board { Shown::Not } else { Shown::NoEntry { changed: decision.changed } };
        let (name, other) = (Cow::Owned(name), other.map(Box::new));
        Ok(BoardDecision { name, source, before, decision, other, shown })
    }

    /// Chooses what the answer shows of the board: the current instance of its default window. If the member
    /// has no entry there, only whether the ban is another one.
    fn show_current_instance<'job>(
        &self,
        ban: &PlannedBan<'job>,
        board: &BoardName,
        source: &BoardSource,
        decided: &mut Decided<'job>,
    ) {
        let changed = ban.changes;
        let definition = source.definition().cloned().unwrap_or_default();
        let current = definition.calendar().instance_at(definition.default_window(), self.time);
        let current = current.map(|instance| instance.name_on_shards(board));
        if let Some(shown) = decided.iter_mut().find(|decided| Some(&*decided.name) == current.as_ref()) {
            shown.shown = Shown::Entry { changed };
        } else if let Some(first) = decided.first_mut() {
            first.shown = Shown::NoEntry { changed };
        } else {
            let (name, source) = (Cow::Owned(board.clone()), source.clone());
            let (decision, shown) = (Decision::of(None, false), Shown::NoEntry { changed });
            decided.push(BoardDecision { name, source, before: None, decision, other: None, shown });
        }
    }
}
