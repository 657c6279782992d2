//! How much a question may ask for, so that no question holds a shard's lock for long.
//!
//! The limits are above what the HTTP interface lets through.

use thiserror::Error;

use crate::query::question::Question;

/// Entries of a run, on both sides together: a page of 1,000, and what a search adds.
const RUN_MAX: u32 = 4_096;
/// Evenly spaced entries of one reply.
const EVEN_MAX: u16 = 64;
/// Boards of one question, and marks of all of them.
const BOARDS_MAX: usize = 4_096;
const MARKS_MAX: usize = 8_192;
/// Members of a look-up, and keys.
const MEMBERS_MAX: usize = 4_096;

/// A question that asks for too much.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the question asks for {asked} {what}, and the limit is {limit}")]
pub struct InvalidQuestion {
    what: &'static str,
    asked: u64,
    limit: u64,
}

/// Checks a question against the limits.
///
/// # Errors
/// When it asks for too much.
pub fn check(question: &Question<'_>) -> Result<(), InvalidQuestion> {
    let within = |what, asked: usize, limit: usize| {
        let (asked, limit) = (crate::types::count(asked), crate::types::count(limit));
        if asked <= limit { Ok(()) } else { Err(InvalidQuestion { what, asked, limit }) }
    };
    match question {
        Question::Counts(boards) => {
            within("boards", boards.len(), BOARDS_MAX)?;
            within("marks", boards.iter().map(|(_, marks)| marks.len()).sum(), MARKS_MAX)
        }
        Question::Run(_, run) => {
            let (asked, limit) = (u64::from(run.above) + u64::from(run.below), u64::from(RUN_MAX));
            if asked <= limit { Ok(()) } else { Err(InvalidQuestion { what: "entries", asked, limit }) }
        }
        Question::Splitters(_, splitters) => {
            within("entries", usize::from(splitters.even), usize::from(EVEN_MAX))
        }
        Question::Lookup { members, keys, .. } => {
            within("members", members.len(), MEMBERS_MAX)?;
            within("keys", keys.len(), MEMBERS_MAX)
        }
        Question::MemberOnBoards { boards, .. } => within("boards", boards.len(), BOARDS_MAX),
        Question::BoardsOfMember { limit, .. } => {
            within("boards", usize::try_from(*limit).unwrap_or(usize::MAX), BOARDS_MAX)
        }
    }
}
