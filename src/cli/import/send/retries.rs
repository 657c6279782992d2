//! Sends a request until it is answered, while the service is away or overloaded.
//!
//! A try ends in one of three ways, and what may be done next depends on which: answered; certainly not
//! applied (try again); unknown, because the connection broke after the request left (try again only if that
//! changes nothing).

use std::thread;
use std::time::{Duration, Instant};

use ureq::http::StatusCode;

use crate::cli::client::{Backoff, Failed, Reply};
use crate::cli::import::ImportError;
use crate::cli::import::send::answer::Answer;
use crate::cli::import::send::service::Service;
use crate::cli::import::stop::is_stopped;

/// Refusals of a whole request before any of its jobs was sent on.
const REQUEST_NOT_APPLIED: [&str; 2] = ["overloaded", "shard_unavailable"];

/// How often a pause looks whether the import is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How trying ended.
pub enum Ended {
    Answered(StatusCode, Box<Answer>),
    /// It may have been applied, and trying again could apply it twice.
    OutcomeUnknown {
        reason: String,
    },
    Permanent {
        reason: String,
    },
}

/// Retries until there is an answer other than "not now".
///
/// # Errors
/// When the service has failed for longer than it is given.
pub fn until_answered(
    request: impl Fn() -> Result<Reply, Failed>,
    is_repeatable: bool,
    retries: &mut Retries<'_>,
) -> Result<Ended, ImportError> {
    loop {
        let attempt = attempt(request());
        if !matches!(attempt, Attempt::NotReached { .. }) {
            retries.service.note_answered();
        }
        match attempt {
            Attempt::NotReached { reason } => retries.wait(reason, Duration::ZERO)?,
            Attempt::Answered(status, answer) => return Ok(Ended::Answered(status, answer)),
            Attempt::NotApplied { reason, wait } => retries.wait(reason, wait)?,
            Attempt::Unknown { reason } if is_repeatable => {
                retries.wait(reason, Duration::ZERO)?;
                retries.sent_twice = true;
            }
            Attempt::Unknown { reason } => return Ok(Ended::OutcomeUnknown { reason }),
            Attempt::Permanent { reason } => return Ok(Ended::Permanent { reason }),
        }
    }
}

/// The retries of one request, or of a batch whose jobs are settled one after the other.
pub struct Retries<'a> {
    service: &'a Service<'a>,
    backoff: Backoff,
    /// A request may have been applied whose answer was lost, and was sent again.
    pub sent_twice: bool,
}

impl<'a> Retries<'a> {
    pub fn new(service: &'a Service<'a>) -> Self {
        Self { service, backoff: Backoff::default(), sent_twice: false }
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// When the service has failed for longer than it is given.
    pub fn wait(&mut self, reason: String, at_least: Duration) -> Result<(), ImportError> {
        let Service { client, tally, .. } = self.service;
        let to = client.base().to_owned();
        let Some(retry_for) = self.service.retry_for() else {
            return Err(ImportError::NotThere { to, reason });
        };
        if !self.backoff.has_failed() {
            tally.note(&format!("{to} did not take the rows ({reason}); trying again"));
        }
        let Some(pause) = self.backoff.pause(at_least, retry_for) else {
            return Err(ImportError::Unreachable { to, seconds: retry_for.as_secs(), reason });
        };
        let ends = Instant::now() + pause;
        loop {
            if is_stopped() {
                return Err(ImportError::Interrupted);
            }
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK_INTERVAL));
        }
    }
}

/// How a request ended.
enum Attempt {
    Answered(StatusCode, Box<Answer>),
    /// Nobody took the request.
    NotReached {
        reason: String,
    },
    NotApplied {
        reason: String,
        wait: Duration,
    },
    Unknown {
        reason: String,
    },
    Permanent {
        reason: String,
    },
}

fn attempt(reply: Result<Reply, Failed>) -> Attempt {
    let reply = match reply {
        Ok(reply) => reply,
        Err(Failed::NotReached(reason)) => return Attempt::NotReached { reason },
        Err(Failed::Unknown(reason) | Failed::TooLong(reason)) => return Attempt::Unknown { reason },
        Err(Failed::Permanent(reason)) => return Attempt::Permanent { reason },
    };
    let Reply { status, retry_after, body, .. } = reply;
    let answer = Answer::read(status, &body);
    let is_transient = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    // Results say more than the status: which jobs were applied.
    if !is_transient || !answer.results.is_empty() {
        return Attempt::Answered(status, Box::new(answer));
    }
    let reason = answer.describe(status);
    if REQUEST_NOT_APPLIED.contains(&answer.code.as_str()) {
        Attempt::NotApplied { reason, wait: retry_after.unwrap_or_default() }
    } else {
        Attempt::Unknown { reason }
    }
}
