//! How much a question may ask for, so that no question holds a shard's lock for long.
//!
//! The limits are above what the HTTP interface lets through.

use thiserror::Error;

use crate::board::COMBINED_WEIGHT_MAX;
use crate::query::question::combine::{COMBINED_BOARDS_MAX, COMBINED_LISTED_MAX};
use crate::query::question::{Question, RejectsQuestion};
use crate::types::Number;

/// Runs of one question: up to five for each of a thousand percentiles.
const RUNS_MAX: usize = 5_120;
/// Entries of all runs, on both sides together. A page is at most 1,000 long, and a search adds some.
pub const ENTRIES_MAX: u64 = 16_384;
/// Searches of one question, and the evenly spaced entries that they ask for.
const SEARCHES_MAX: usize = 1_024;
const SPLITTERS_MAX: usize = 8_192;
/// Boards of one question, and marks of all of them.
const BOARDS_MAX: usize = 4_096;
const MARKS_MAX: usize = 8_192;
/// Bans of one question.
const BANS_MAX: usize = 4_096;
/// Members of a look-up, and keys.
const MEMBERS_MAX: usize = 4_096;

/// Boards beside a question, and entries on all of them together that are looked up.
const COLUMNS_MAX: usize = 64;
const COLUMN_ENTRIES_MAX: u64 = 32_768;

/// Rejects of one question, those that are read for it, and bytes of them.
const REJECTS_MAX: u32 = 1_000;
const REJECTS_READ_MAX: u32 = 4_000;
const REJECTS_BYTES_MAX: u32 = 2 << 20;

/// A question that asks for too much.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the question asks for {asked} {what}, and the limit is {limit}")]
pub struct InvalidQuestion {
    pub(super) what: &'static str,
    pub(super) asked: u64,
    pub(super) limit: u64,
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
        Question::Runs(_, runs) => {
            within("runs", runs.len(), RUNS_MAX)?;
            let entries = runs.iter().map(|run| u64::from(run.above) + u64::from(run.below));
            let (asked, limit) = (entries.sum(), ENTRIES_MAX);
            if asked <= limit { Ok(()) } else { Err(InvalidQuestion { what: "entries", asked, limit }) }
        }
        Question::Splitters(_, splitters) => {
            within("searches", splitters.len(), SEARCHES_MAX)?;
            within("splitters", splitters.iter().map(|asked| usize::from(asked.even)).sum(), SPLITTERS_MAX)
        }
        Question::Lookup { members, keys, .. } | Question::Movement { members, keys, .. } => {
            within("members", members.len(), MEMBERS_MAX)?;
            within("keys", keys.len(), MEMBERS_MAX)
        }
        Question::Summary { .. } | Question::LastJob(_) => Ok(()),
        Question::Hidden(asked) => {
            within("bans", usize::try_from(asked.limit).unwrap_or(usize::MAX), BANS_MAX)
        }
        Question::MemberOnBoards { boards, .. } | Question::Changed(boards) => {
            within("boards", boards.len(), BOARDS_MAX)
        }
        Question::BoardsOfMember { limit, .. } => {
            within("boards", usize::try_from(*limit).unwrap_or(usize::MAX), BOARDS_MAX)
        }
        Question::WithColumns { question, boards } => {
            let entries = match &**question {
                Question::Counts(_) | Question::Splitters(..) => 0,
                Question::Runs(_, runs) => {
                    runs.iter().map(|run| u64::from(run.above) + u64::from(run.below)).sum()
                }
                Question::Lookup { members, .. } => crate::types::count(members.len()),
                _ => {
                    return Err(InvalidQuestion {
                        what: "columns beside such a question",
                        asked: 1,
                        limit: 0,
                    });
                }
            };
            check(question)?;
            within("boards beside it", boards.len(), COLUMNS_MAX)?;
            within("marks", boards.iter().map(|(_, marks)| marks.len()).sum(), MARKS_MAX)?;
            let shown = if question.shows_entries() { entries } else { 0 };
            let (asked, limit) = (shown * crate::types::count(boards.len()), COLUMN_ENTRIES_MAX);
            if asked <= limit {
                Ok(())
            } else {
                Err(InvalidQuestion { what: "entries on other boards", asked, limit })
            }
        }
        Question::Combine(asked) => {
            within("boards", asked.boards.len(), COMBINED_BOARDS_MAX)?;
            let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
            within("entries", limit, usize::try_from(COMBINED_LISTED_MAX).unwrap_or(usize::MAX))?;
            let (limit, weights) = (COMBINED_WEIGHT_MAX.unsigned_abs(), asked.boards.iter());
            let weights = weights.map(|(_, weight)| match weight {
                Number::Integer(weight) => weight.unsigned_abs(),
                Number::Float(_) => 0,
            });
            let asked = weights.max().unwrap_or_default();
            if asked <= limit { Ok(()) } else { Err(InvalidQuestion { what: "times a score", asked, limit }) }
        }
        Question::Rejects(RejectsQuestion { rejects, read, bytes, .. }) => {
            let within = |what, asked: u32, limit: u32| {
                let (asked, limit) = (u64::from(asked), u64::from(limit));
                if asked <= limit { Ok(()) } else { Err(InvalidQuestion { what, asked, limit }) }
            };
            within("rejects", *rejects, REJECTS_MAX)?;
            within("rejects to be read", *read, REJECTS_READ_MAX)?;
            within("bytes of rejects", *bytes, REJECTS_BYTES_MAX)
        }
    }
}
