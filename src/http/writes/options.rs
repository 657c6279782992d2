//! The parameters of a write: how long it waits, and how detailed its answer is.

use crate::http::api::Api;
use crate::http::render::problem::Problem;
use crate::http::request::params::{Params, invalid_value};
use crate::writer::OutcomeDetail;

/// How long a write waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until it is safe in the queue.
    UntilStored,
    /// Until this node has applied it, to tell what came of it.
    UntilApplied,
}

/// How detailed the answer is about each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Whether it changed anything, the entry as the job left it, and where the entry stood before.
    Entries,
    /// Whether it changed anything.
    Changed,
}

impl Detail {
    /// What the writer is asked for.
    pub fn of_outcomes(self) -> OutcomeDetail {
        match self {
            Self::Entries => OutcomeDetail::Rankings,
            Self::Changed => OutcomeDetail::Changed,
        }
    }
}

/// The options of a write of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    pub wait: Wait,
    pub detail: Detail,
}

impl WriteOptions {
    /// The parameters that hold them.
    pub const PARAMS: [&'static str; 2] = ["wait", "results"];

    /// # Errors
    /// When a parameter is not as it should be.
    pub fn read(api: &Api, params: &Params<'_>) -> Result<Self, Problem> {
        let detail = match params.get("results") {
            None => Detail::Entries,
            Some("changed") => Detail::Changed,
            Some(other) => return Err(invalid_value("results must be changed", other)),
        };
        Ok(Self { wait: read_wait(api, params)?, detail })
    }
}

/// How long a write waits. Without a stream, it always waits for its commit.
///
/// # Errors
/// When the parameter is not as it should be.
pub fn read_wait(api: &Api, params: &Params<'_>) -> Result<Wait, Problem> {
    match params.get("wait") {
        None if api.boards_stream.is_some() => Ok(Wait::UntilStored),
        None | Some("applied") => Ok(Wait::UntilApplied),
        Some(other) => Err(invalid_value("wait must be applied", other)),
    }
}
