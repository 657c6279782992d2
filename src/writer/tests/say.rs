//! Messages, as tests say them.

use std::sync::Arc;

use crate::board::Definition;
use crate::job::Job;
use crate::types::{BoardName, Timestamp};
use crate::writer::tests::model::Place;

/// A message, as tests say it.
#[derive(Clone)]
pub enum Say {
    /// Nobody waits for these.
    Jobs(Vec<Job>),
    /// Somebody does.
    Ask(Vec<Job>),
    /// Somebody does, to be told only whether they change anything.
    AskWhetherChanged(Vec<Job>),
    Define(BoardName, Arc<Definition>),
    Drop(BoardName),
    Clear(BoardName),
    /// Of these members, removes those who are behind a place.
    Trim(BoardName, Place, Vec<String>),
}

/// One line a message, so that a failing history can be read.
impl std::fmt::Debug for Say {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, jobs) = match self {
            Self::Jobs(jobs) => ("jobs", jobs),
            Self::Ask(jobs) => ("ask", jobs),
            Self::AskWhetherChanged(jobs) => ("ask whether changed", jobs),
            Self::Define(name, _) => return write!(f, "define {name}"),
            Self::Drop(name) => return write!(f, "drop {name}"),
            Self::Clear(name) => return write!(f, "clear {name}"),
            Self::Trim(name, place, members) => return write!(f, "trim {name} {place:?} {members:?}"),
        };
        write!(f, "{what}")?;
        for job in jobs {
            let Job { member, targets, op, version, at, meta, id: _ } = job;
            write!(f, " [{member} {op:?}")?;
            match targets {
                crate::job::Targets::EveryBoard => write!(f, " everywhere")?,
                crate::job::Targets::Profile(profile) => write!(f, " {}", profile.0)?,
                crate::job::Targets::Boards(boards) => {
                    boards.iter().try_for_each(|(name, score)| write!(f, " {name}={score:?}"))?;
                }
            }
            write!(
                f,
                " v{version:?} @{:?} {:?}]",
                at.map(Timestamp::as_micros),
                meta.as_ref().map(|meta| &*meta.0)
            )?;
        }
        Ok(())
    }
}
