//! Plans the removal of a member from every board: its entries in all instances, open ones and closed ones,
//! and its profile.
//!
//! Knows: that the removal's version holds for boards and for the profile where the member has nothing, too:
//! it is remembered once, for the member. Must not know: how rejected jobs of the member are erased, which
//! follows the commit (`storage::erasures`).

use std::borrow::Cow;
use std::sync::Arc;

use crate::job::{Job, Reject, RejectCode};
use crate::state::Applied;
use crate::tree::Handle;
use crate::types::BoardName;
use crate::writer::decide::{Decision, stale_version};
use crate::writer::outcome::LeftBehind;
use crate::writer::plan::Batch;
use crate::writer::plan::jobs::{BOARDS_PER_YIELD, BoardDecision, Decided, Shown};
use crate::writer::plan::parked::index_in_message;
use crate::writer::plan::profiles::ProfileDecision;

/// What a removal does.
pub(super) struct RemovalEverywhere<'job> {
    pub(super) decided: Decided<'job>,
    pub(super) profile: Option<ProfileDecision>,
    /// What stays, because its version is greater than the removal's.
    pub(super) left: LeftBehind,
}

impl Batch<'_> {
    /// Whether a removal from every board comes before its place: it waits behind nothing, and removes what
    /// is there. It is parked as well, behind the jobs of its member that wait, so that it removes what they
    /// bring; in that place it is what it would be if they had not waited.
    pub(super) fn removes_early(&self, job: &Job) -> bool {
        !self.replaying_parked && self.has_parked(&job.member)
    }

    /// The boards and instances that hold an entry of the member.
    pub(super) fn boards_to_leave(&mut self, handle: Option<Handle>) -> Vec<BoardName> {
        handle.map(|handle| self.boards_of(handle)).unwrap_or_default()
    }

    /// Decides a removal from every board. What is stored with a greater version than the removal's, or with
    /// the same, stays, and keeps nothing else from being removed: whoever may write to one board must not
    /// protect others by it.
    ///
    /// # Arguments
    /// `boards`: those of [`Batch::boards_to_leave`].
    pub(super) fn decide_removal_everywhere<'job>(
        &mut self,
        job: &Job,
        boards: &'job [BoardName],
        handle: Option<Handle>,
        applied: Applied,
    ) -> Result<RemovalEverywhere<'job>, Reject> {
        if let (Some(version), Some(stored)) = (job.version, self.version_everywhere(&job.member))
            && version <= stored
        {
            return Err(stale_version(version, stored));
        }
        // What is remembered of each board stays as it is for the jobs that wait.
        let unversioned = self.removes_early(job).then(|| Job { version: None, ..job.clone() });
        let (mut decided, mut left, mut newer) = (Decided::new(), LeftBehind::default(), None::<BoardName>);
        decided.reserve_exact(boards.len());
        for (index, board) in boards.iter().enumerate() {
            if index % BOARDS_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            // An instance follows its board, which has the version of all of them.
            if newer.as_ref().is_some_and(|newer| board.is_instance() && *newer == board.board()) {
                continue;
            }
            let source = self.source_of(board)?;
            let mut on_board = match self.decide_on(job, board, source, None, handle, applied.timestamp) {
                Err(reject) if reject.code == RejectCode::StaleVersion => {
                    left.add_board(board.board());
                    newer = Some(board.clone());
                    let (source, shown) = (self.source_of(board)?, Shown::NoEntry { changed: false });
                    let before = source.entry(self, handle);
                    let (name, decision) = (Cow::Borrowed(board), Decision::of(before, false));
                    decided.push(BoardDecision { name, source, before, decision, other: None, shown });
                    continue;
                }
                decided => decided?,
            };
            if let Some(unversioned) = &unversioned {
                let source = self.source_of(board)?;
                on_board = self.decide_on(unversioned, board, source, None, handle, applied.timestamp)?;
            } else if job.version.is_some() {
                // It is remembered for the member.
                on_board.decision.after = None;
            }
            decided.push(on_board);
        }
        let profile = match self.decide_profile_removal(job) {
            Err(reject) if reject.code == RejectCode::StaleVersion => {
                left.profile = true;
                None
            }
            profile => profile?,
        };
        Ok(RemovalEverywhere { decided, profile, left })
    }

    /// After the entries' decisions: records what becomes of the profile and of the version, and which
    /// rejects are to be erased.
    ///
    /// # Arguments
    /// `index`: the job's, in its message. That of a reject that comes later in it is greater.
    pub(super) fn record_removal_everywhere(
        &mut self,
        job: &Job,
        profile: Option<ProfileDecision>,
        left: LeftBehind,
        index: usize,
        applied: Applied,
    ) {
        if let Some(decided) = profile {
            self.record_profile(&job.member, decided, applied.sequence);
        } else if left.profile {
            self.outcome_profile = Some(false);
        }
        self.outcome_left = (!left.is_empty()).then(|| Arc::new(left));
        // In its place in the line it comes for the second time.
        if let Some(version) = job.version.filter(|_| !self.replaying_parked) {
            self.set_member_version(&job.member, version, applied.sequence);
        }
        self.erased.push((job.member.clone(), (applied.sequence, index_in_message(index))));
    }
}
