//! When boards that end after a quiet time had their last job on a shard.
//!
//! Knows: nothing but what messages brought. Must not know: the jobs of other shards, without which nobody
//! can say that a board has ended.

use std::collections::BTreeMap;

use crate::types::{BoardName, Timestamp};

/// A board had a job at this time, or does not end after a quiet time any more: `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastJobChange {
    pub board: BoardName,
    pub after: Option<Timestamp>,
}

/// The effective times of the last jobs, by board: some 100 bytes each. Boards without `expires_after` have
/// none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastJobs(BTreeMap<BoardName, Timestamp>);

impl LastJobs {
    pub fn get(&self, board: &str) -> Option<Timestamp> {
        self.0.get(board).copied()
    }

    pub fn apply(&mut self, LastJobChange { board, after }: &LastJobChange) {
        match after {
            Some(time) => {
                self.0.insert(board.clone(), *time);
            }
            None => {
                self.0.remove(board);
            }
        }
    }
}
