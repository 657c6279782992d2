//! What a watcher asks for, and why it may get nothing.

use std::time::Instant;

use thiserror::Error;

use crate::query::instance::WindowChoice;
use crate::query::read::NoBoard;
use crate::query::remote_shards::ReadError;
use crate::types::{AsOf, BoardName, MemberId};

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveAsked {
    pub board: BoardName,
    pub choice: WindowChoice,
    /// How many of the best entries.
    pub top: usize,
    /// Members wherever they are; repeated ones count once.
    pub members: Vec<MemberId>,
    /// States a second, at most.
    pub rate: u32,
}

/// What a watcher must see first.
#[derive(Debug, Clone)]
pub struct LiveStart {
    /// What the first state must be of at least.
    pub after: AsOf,
    /// Until when it waits.
    pub until: Instant,
    /// The id of the state that it had, and what that was exact at.
    pub resumed: Option<(u64, AsOf)>,
}

/// Why there is nothing to watch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotLive {
    #[error("there is nothing to read")]
    NoBoard(Box<NoBoard>),
    #[error(transparent)]
    Read(ReadError),
    /// What the first state must be of was not applied in time.
    #[error("not applied in time")]
    NotYetApplied,
    /// The node was too busy to compute it.
    #[error("not computed in time")]
    NotInTime,
}

impl From<NoBoard> for NotLive {
    fn from(why: NoBoard) -> Self {
        Self::NoBoard(Box::new(why))
    }
}
