//! What is stored on a board in the place of all that it has: entries of other boards, combined.
//!
//! Knows: what each shard needs to know to make its part by itself, of what it has when its turn comes. Must
//! not know: how it is made (`writer::plan`), or who asked for it.

use crate::board::{Aggregate, Combination, KeyType};
use crate::state::dropped::Incarnation;
use crate::state::trim_point::TrimPoint;
use crate::types::{BoardName, Number};

/// The most boards that a result is made of.
pub const STORE_SOURCES_MAX: usize = 64;

/// What is to be stored, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOrder {
    /// The board that has the result afterwards, and nothing else. It may be one of the sources.
    pub board: BoardName,
    /// None: nothing is left.
    pub sources: Vec<StoreSource>,
    pub combination: Combination,
    pub aggregate: Aggregate,
    /// Integers if all scores and weights are.
    pub numbers: KeyType,
}

/// A board of which entries are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSource {
    /// The name of the instance on the shards.
    pub board: BoardName,
    /// What its scores are multiplied by.
    pub weight: Number,
    /// `None`: all entries.
    pub range: Option<StoreRange>,
}

/// Entries between two of them, these included, as they were in one life of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRange {
    pub incarnation: Incarnation,
    /// What is before the first of them.
    pub first: TrimPoint,
    /// What is after the last.
    pub last: TrimPoint,
}
