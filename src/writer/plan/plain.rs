//! Plans jobs in their commonest form: a score for one board that has no other window than `all`, and nothing
//! beside its entries. What comes of such a job is what [`jobs`](super::jobs) makes of any; this way there is
//! less to look up and to copy.

use std::sync::Arc;

use crate::job::{Job, Reject, Targets};
use crate::state::{Applied, Entry, TreeId};
use crate::types::{BoardName, Score};
use crate::writer::decide::{Request, decide};
use crate::writer::outcome::FoundBoard;
use crate::writer::parking::Parking;
use crate::writer::plan::jobs::{BoardSource, JobPlan, default_op};
use crate::writer::plan::{Batch, PlannedBoard};

/// The board of the last such job. Most jobs of a batch name the same one.
pub(super) struct PlainBoard {
    board: Arc<FoundBoard>,
    tree: TreeId,
}

impl Batch<'_> {
    /// Plans a job if it is of that form; `None` leaves it as it is, for the way that all jobs can go.
    pub(super) fn plan_plain(&mut self, job: &Job, applied: Applied) -> Option<Result<JobPlan, Reject>> {
        let Targets::Boards(boards) = &job.targets else { return None };
        let [(name, Some(score))] = boards.as_slice() else { return None };
        let may_park = |parking: &Parking| parking.has_parked(&job.member);
        if job.meta.is_some() || self.replaying_parked || self.parking.as_ref().is_some_and(may_park) {
            return None;
        }
        // Taken out and put back: to count its definition up and down for each job would cost more.
        let board = self.take_plain_board(name)?;
        let planned = self.plan_on(&board, job, score, applied);
        self.plain_board = Some(board);
        planned
    }

    fn plan_on(
        &mut self,
        board: &PlainBoard,
        job: &Job,
        score: &Score,
        applied: Applied,
    ) -> Option<Result<JobPlan, Reject>> {
        let PlainBoard { board, tree } = board;
        let FoundBoard { name, definition, incarnation } = &**board;
        let handle = self.find_member(&job.member);
        if handle.is_none() && self.added >= self.shard.members.room() {
            return None;
        }
        let before = handle.and_then(|handle| self.entry(*tree, handle));
        if before.as_ref().is_some_and(|entry| entry.has_metadata) {
            return None;
        }
        // What is kept of members beside their entries goes the other way. Listed entries are of nobody who
        // is hidden.
        let held = before.as_ref().and_then(Entry::words);
        let is_hidden = before.is_some_and(|entry| entry.state.is_hidden());
        if (held.is_none() && self.bans_of(&job.member).is_some())
            || (job.version.is_some() && self.member_version(&job.member).is_some())
        {
            return None;
        }
        if let Err(reject) = self.count_trees(1) {
            return Some(Err(reject));
        }
        let request = Request {
            op: job.op.unwrap_or_else(|| default_op(definition.policy)),
            score: Some(score),
            version: job.version,
            at: job.at.unwrap_or(applied.timestamp),
            member: &job.member,
            member_version: None,
            is_hidden,
            metadata: None,
        };
        let decision = match decide(definition, before.as_ref(), &request) {
            Ok(decision) => decision,
            Err(reject) => return Some(Err(reject)),
        };
        self.job_ids.job_changed = decision.changed;
        self.hash_entry((name, *incarnation), &job.member, (before.as_ref(), decision.after.as_ref()));
        let (changed, mut handle) = (decision.changed, handle);
        if before != decision.after {
            let changing = handle.unwrap_or_else(|| self.add_member(&job.member));
            self.change(*tree, changing, before.as_ref(), decision.after);
            handle = Some(changing);
        }
        if self.outcome_has_ranks
            && let Some(boards) = &mut self.outcome_boards
        {
            let (board, tree) = (Arc::clone(board), *tree);
            boards.push(PlannedBoard { board, tree, handle, changed, takes_metadata: false });
        }
        Some(Ok(JobPlan::Plain { changed }))
    }

    /// The board, if it is on the shard and has nothing beside its entries.
    fn take_plain_board(&mut self, name: &BoardName) -> Option<PlainBoard> {
        let last = self.plain_board.take();
        // Without NATS, the board's next life may have begun meanwhile.
        let may_have_ended = self.parking.is_none() && self.planner.registry.has_next_incarnation();
        if let Some(last) = last
            && last.board.name == *name
            && !may_have_ended
        {
            return Some(last);
        }
        let Ok(BoardSource::OnShard(tree, incarnation, definition)) = self.source_of(name) else {
            return None;
        };
        let is_plain = definition.has_only_all()
            && !definition.is_top_k()
            && !definition.movement
            && definition.entry_ttl_micros.is_none()
            && definition.expires_after_micros.is_none();
        let name = name.clone();
        is_plain.then(|| PlainBoard { board: Arc::new(FoundBoard { name, definition, incarnation }), tree })
    }
}
