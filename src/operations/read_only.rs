//! Whether a board or the service may be written to, and how that changes.
//!
//! It is decided, brought to every shard and kept as a board's definition is: of the service in the place of
//! a board that no client can name. So it is the same on all nodes, and outlasts restarts. Shards refuse jobs
//! by it (`writer/plan/read_only.rs`); here requests are refused before anything of them is sent.

use std::sync::Arc;

use crate::board::ReadOnly;
use crate::job::{Job, Op};
use crate::operations::boards::BoardChanges;
use crate::operations::failure::Failure;
use crate::operations::shared::Operations;
use crate::query::NoBoard;
use crate::queue::nats::Decided;
use crate::types::{AsOf, BoardName};
use crate::writer::BoardChange;

/// Whether a board, or the service, is read-only after a request about it.
pub struct SetReadOnly {
    pub read_only: Option<Arc<ReadOnly>>,
    pub token: AsOf,
    /// Whether that was otherwise before.
    pub changed: bool,
}

impl Operations {
    /// Why the service is read-only, as far as this node knows.
    pub fn read_only(&self) -> Option<Arc<ReadOnly>> {
        self.registry.read_only(&BoardName::service())
    }

    /// Refuses jobs that may not be written now: all of a request, as none of them is sent then.
    ///
    /// # Errors
    /// When the service is read-only, or a board of a job that is no ban.
    pub(super) fn check_jobs_writable(&self, jobs: &[Job]) -> Result<(), Failure> {
        if let Some(why) = self.read_only() {
            return Err(Failure::ReadOnly(None, why));
        }
        let written = jobs.iter().filter(|job| !job.op.is_some_and(Op::is_ban));
        written.flat_map(Job::boards).try_for_each(|board| self.check_board_writable(board))
    }

    /// # Errors
    /// When the board is read-only.
    fn check_board_writable(&self, board: &BoardName) -> Result<(), Failure> {
        let why = self.registry.read_only(board);
        why.map_or(Ok(()), |why| Err(Failure::ReadOnly(Some(board.clone()), why)))
    }

    /// Refuses what takes entries away from a board.
    ///
    /// # Errors
    /// When the service or the board is read-only.
    pub(super) fn check_writable(&self, board: &BoardName) -> Result<(), Failure> {
        match self.read_only() {
            Some(why) => Err(Failure::ReadOnly(None, why)),
            None => self.check_board_writable(board),
        }
    }
}

impl BoardChanges {
    /// Refuses a change while the service is read-only, unless it would change nothing: programs define their
    /// boards whenever they start. What a board that is read-only may become, [`BoardChange`] says.
    ///
    /// # Errors
    /// When the service is read-only, or the boards' stream cannot be read.
    pub(super) async fn check_change(&self, name: &BoardName, change: &BoardChange) -> Result<(), Failure> {
        let Some(why) = self.service_read_only().await? else { return Ok(()) };
        let known = self.definition_of(name).await?;
        let changed = change.applied_to(known.as_deref(), self.operations.now());
        if known.is_some_and(|known| changed.is_ok_and(|changed| changed == *known)) {
            return Ok(());
        }
        Err(Failure::ReadOnly(None, why))
    }

    /// The same of a board that is to be cleared or dropped.
    ///
    /// # Errors
    /// When the service or the board is read-only, or the boards' stream cannot be read.
    pub(super) async fn check_removable(&self, name: &BoardName) -> Result<(), Failure> {
        if let Some(why) = self.service_read_only().await? {
            return Err(Failure::ReadOnly(None, why));
        }
        let known = self.definition_of(name).await?;
        match known.and_then(|known| known.read_only.clone()) {
            Some(why) => Err(Failure::ReadOnly(Some(name.clone()), why)),
            None => Ok(()),
        }
    }

    /// As it was decided last, by whichever node.
    async fn service_read_only(&self) -> Result<Option<Arc<ReadOnly>>, Failure> {
        let decided = self.definition_of(&BoardName::service()).await?;
        Ok(decided.and_then(|decided| decided.read_only.clone()))
    }

    /// Has a board or the service be read-only for a reason, or not any more.
    ///
    /// # Arguments
    /// `board`: `None`: the service, with all boards, those to come included.
    ///
    /// # Errors
    /// When there is no such board, or a shard does not take the change.
    pub async fn set_read_only(
        self,
        board: Option<BoardName>,
        reason: Option<Arc<str>>,
    ) -> Result<SetReadOnly, Failure> {
        let (name, change) = match board {
            Some(board) => (board, BoardChange::ReadOnly(reason.clone())),
            None => (BoardName::service(), BoardChange::ServiceReadOnly(reason.clone())),
        };
        let before = self.definition_of(&name).await?;
        if before.is_none() && !name.is_service() {
            return Err(Failure::NoBoard(NoBoard::Unknown));
        }
        if before.is_none() && reason.is_none() {
            // Nothing was ever decided of the service, and nothing need be.
            let shards = self.operations.node.shards.iter();
            let token = AsOf(shards.map(|shard| (shard.id, shard.applied.get())).collect());
            return Ok(SetReadOnly { read_only: None, token, changed: false });
        }
        let Decided { definition, token, .. } = self.change(&name, &change, None).await?;
        let read_only = definition.read_only.clone();
        let changed = before.and_then(|before| before.read_only.clone()) != read_only;
        Ok(SetReadOnly { read_only, token, changed })
    }
}
