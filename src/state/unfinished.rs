//! What is left to be done to the instances of a board that was defined otherwise, or has ended.

use std::sync::Arc;

use crate::board::Definition;
use crate::state::dropped::Incarnation;
use crate::types::BoardName;

pub(super) struct Unfinished {
    pub(super) board: BoardName,
    pub(super) what: What,
    /// It is done to those up to this one.
    pub(super) through: Option<BoardName>,
}

pub(super) enum What {
    /// Those of this life.
    Redefine(Incarnation, Arc<Definition>),
    /// Those of this life, and of those before it.
    Drop(Incarnation),
}
