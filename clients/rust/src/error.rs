//! What can go wrong.
//!
//! Every answer of the service that is a problem (RFC 9457) is one of the kinds of [`Error`], by its status. Its
//! `code` is stable and for programs; `detail` is for people.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Token;
use crate::types::{JobProblem, JobResult};

/// Anything that this package says about the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// 400, 413, 422: the request can never succeed as it is. Nothing was applied. `errors` says which jobs
    /// are wrong.
    #[error("{0}")]
    Invalid(Box<Problem>),
    /// 401, 403: the bearer token is missing or unknown, or does not allow this.
    #[error("{0}")]
    Access(Box<Problem>),
    /// 404: no such board, member or position.
    #[error("{0}")]
    NotFound(Box<Problem>),
    /// 409: the state refuses it: `stale_version`, `out_of_range`, `overflow`, `board_differs` and others.
    #[error("{0}")]
    Rejected(Box<Problem>),
    /// 503: overloaded, or a shard that no node answers for (`shards`). Try again after `retry_after`.
    ///
    /// With the code `commit_unknown` a write may or may not be applied.
    #[error("{0}")]
    Unavailable(Box<Problem>),
    /// 504: the writes that `after` names were not applied in time.
    #[error("{0}")]
    NotYetApplied(Box<Problem>),
    /// Another status.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// No answer came.
    #[error("{detail}")]
    ConnectionFailed {
        /// What happened, for people.
        detail: String,
        /// The request was a write and may have reached the service. Send it again with the `version` it
        /// had, before later writes of the member: then it counts once.
        may_be_applied: bool,
    },
    /// NATS did not acknowledge a message.
    #[cfg(feature = "nats")]
    #[error(transparent)]
    Publish(#[from] crate::nats::PublishError),
    /// NATS did not acknowledge some messages of a `publish_many`.
    #[cfg(feature = "nats")]
    #[error(transparent)]
    PublishMany(#[from] Box<crate::nats::PublishManyError>),
    /// A publisher does not know how many shards there are.
    #[cfg(feature = "nats")]
    #[error("{0}")]
    UnknownShards(String),
    /// What was given cannot be sent.
    #[error("{0}")]
    Argument(String),
}

impl Error {
    /// The service's answer, if it is one.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Invalid(problem)
            | Self::Access(problem)
            | Self::NotFound(problem)
            | Self::Rejected(problem)
            | Self::Unavailable(problem)
            | Self::NotYetApplied(problem)
            | Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// The stable code of the service's answer, if it is one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| &*problem.code)
    }
}

impl From<crate::TokenError> for Error {
    fn from(error: crate::TokenError) -> Self {
        Self::Argument(error.to_string())
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let kind = match problem.status {
            400 | 413 | 422 => Self::Invalid,
            401 | 403 => Self::Access,
            404 => Self::NotFound,
            409 => Self::Rejected,
            503 => Self::Unavailable,
            504 => Self::NotYetApplied,
            _ => Self::Problem,
        };
        kind(Box::new(problem))
    }
}

/// The service refused a request, or could not do it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// The status of HTTP.
    pub status: u16,
    /// Stable, for programs.
    pub code: String,
    /// For people. It may change.
    pub detail: String,
    /// When to try again, if the service said.
    pub retry_after: Option<Duration>,
    /// Names the jobs of a request that were stored although others failed.
    pub token: Option<Token>,
    /// Which jobs of a request are invalid.
    pub errors: Vec<JobProblem>,
    /// The outcome of each job of a request that failed in part.
    pub results: Vec<JobResult>,
    /// The shards that no node answers for.
    pub shards: Vec<u64>,
    /// The whole answer; `null` if it is not JSON.
    pub body: Value,
}

impl Problem {
    /// Reads an answer that is not a success.
    pub(crate) fn read(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            status,
            code: text("code").unwrap_or_else(|| "unknown".to_owned()),
            detail: text("detail").unwrap_or_else(|| "the answer says no more".to_owned()),
            retry_after,
            token: text("token").map(Token::from),
            errors: list(&body, "errors"),
            results: list(&body, "results"),
            shards: list(&body, "shards"),
            body,
        }
    }
}

/// What can be read of a list, since other answers may have other things under its name.
fn list<T: DeserializeOwned>(body: &Value, name: &str) -> Vec<T> {
    let values = body.get(name).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(|value| T::deserialize(value).ok()).collect()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status, self.code, self.detail)
    }
}

impl std::error::Error for Problem {}
