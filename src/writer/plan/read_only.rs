//! Jobs that come while their board, or the service, is read-only: they are rejected.
//!
//! What holds is what the log says before a job: so it is the same on every replica and in every replay. A
//! job that was parked before goes on when its board is defined, as it had its place in the log.

use crate::job::{Job, Op, Reject, RejectCode};
use crate::types::BoardName;
use crate::writer::plan::Batch;

impl Batch<'_> {
    /// Refuses a job that may not be written now.
    ///
    /// On a board that is read-only bans go on, and so do removals from every board and profiles, which are
    /// not of the board: whoever has to leave leaves. While the service is read-only nothing goes on.
    pub(super) fn check_writable(&self, job: &Job) -> Result<(), Reject> {
        if !self.may_be_read_only || self.replaying_parked {
            return Ok(());
        }
        self.check_service_writable()?;
        if job.op.is_some_and(Op::is_ban) {
            return Ok(());
        }
        job.boards().try_for_each(|board| self.check_board_writable(board))
    }

    pub(super) fn check_service_writable(&self) -> Result<(), Reject> {
        self.check_decided(&BoardName::service(), "the service")
    }

    pub(super) fn check_board_writable(&self, board: &BoardName) -> Result<(), Reject> {
        self.check_decided(board, &format!("the board {board}"))
    }

    fn check_decided(&self, name: &BoardName, told: &str) -> Result<(), Reject> {
        let read_only = self.board(name).and_then(|board| board.definition.read_only.as_ref());
        match read_only {
            Some(why) => {
                Err(Reject::new(RejectCode::ReadOnly, format!("{told} is read-only: {}", why.reason)))
            }
            None => Ok(()),
        }
    }
}
