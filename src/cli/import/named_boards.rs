//! The boards that rows name: the first row of each is told of, and where a row may add, the service is asked
//! for the board's policy.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cli::import::ImportError;
use crate::cli::import::read::Row;
use crate::cli::import::send::Connection;
use crate::cli::import::tally::Tally;

/// Whether jobs that name no operation add to what is there on a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    NotAsked,
    /// The service did not tell.
    Unknown,
    Adds,
    Replaces,
}

pub struct NamedBoards<'a> {
    connection: Connection<'a>,
    tally: &'a Tally,
    policies: HashMap<Arc<str>, Policy>,
    /// Most rows name the same board as the one before, and share its name.
    last: Option<(Arc<str>, Policy)>,
}

impl<'a> NamedBoards<'a> {
    pub fn new(connection: Connection<'a>, tally: &'a Tally) -> Self {
        Self { connection, tally, policies: HashMap::new(), last: None }
    }

    /// Tells of the row's boards if they are new, and decides whether the row adds. Returns whether it does
    /// for sure: where that is not known, a request whose answer is lost is not sent twice either.
    ///
    /// # Errors
    /// When the service cannot be reached.
    pub fn note(&mut self, row: &mut Row) -> Result<bool, ImportError> {
        let mut adds_for_sure = row.adds;
        for board in &row.boards {
            let policy = self.policy(board, row.is_undecided)?;
            if row.is_undecided {
                adds_for_sure |= policy == Policy::Adds;
                row.adds |= policy != Policy::Replaces;
            }
        }
        Ok(adds_for_sure)
    }

    fn policy(&mut self, board: &Arc<str>, is_asked: bool) -> Result<Policy, ImportError> {
        let is_enough = |policy: Policy| !is_asked || policy != Policy::NotAsked;
        if let Some((last, policy)) = &self.last
            && Arc::ptr_eq(last, board)
            && is_enough(*policy)
        {
            return Ok(*policy);
        }
        let known = self.policies.get(board).copied();
        if known.is_none() {
            self.tally.named(board);
        }
        let mut policy = known.unwrap_or(Policy::NotAsked);
        if !is_enough(policy) {
            policy = match self.connection.board_adds(board)? {
                None => Policy::Unknown,
                Some(true) => Policy::Adds,
                Some(false) => Policy::Replaces,
            };
        }
        self.policies.insert(Arc::clone(board), policy);
        self.last = Some((Arc::clone(board), policy));
        Ok(policy)
    }
}
