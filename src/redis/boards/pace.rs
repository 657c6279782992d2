//! Long commands leave others their turns: a thread serves many connections.

use std::time::{Duration, Instant};

use crate::redis::boards::asked::Asking;
use crate::redis::refused::Refused;

/// A member, a place or a board that is looked up, in entries that are read in a row.
pub const LOOKUP: usize = 10;
/// Entries that are read in a row until others have their turn. They take half a millisecond.
const WORK_PER_TURN: usize = 1_000;
/// A command that takes longer is given up if its client has left.
const DONE_FOR_NOBODY: Duration = Duration::from_secs(1);

/// How much a command has done since others had their turn.
pub struct Pace {
    work: usize,
    began: Instant,
}

impl Pace {
    pub fn begin() -> Self {
        Self { work: 0, began: Instant::now() }
    }

    /// Notes what was done, and lets others have their turn if that was much.
    ///
    /// # Errors
    /// When the client has left.
    pub async fn note(&mut self, asking: &Asking<'_>, work: usize) -> Result<(), Refused> {
        self.work += work;
        if self.work < WORK_PER_TURN {
            return Ok(());
        }
        self.work = 0;
        tokio::task::yield_now().await;
        if self.began.elapsed() > DONE_FOR_NOBODY && asking.peer.is_gone() {
            return Err(Refused::new("ERR the client has left"));
        }
        Ok(())
    }
}
