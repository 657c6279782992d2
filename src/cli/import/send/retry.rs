//! Tries a request through trouble that passes.
//!
//! A try ends in one of three ways, and what may be done next depends on which: answered; certainly not applied
//! (try again); unknown, because the connection broke after the request left (try again only if that changes
//! nothing).

use std::thread;
use std::time::{Duration, Instant};

use ureq::http::{Response, StatusCode, header};
use ureq::{Body, Timeout};

use crate::cli::client::tls_roots::is_untrusted;
use crate::cli::import::ImportError;
use crate::cli::import::send::answer::Answer;
use crate::cli::import::send::connection::Service;
use crate::types::decimal;

const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Above the longest answer, which tells of 1,000 jobs on 64 boards each in about 400 bytes per board.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Refusals of a whole request before any of its jobs is under way.
const REQUEST_NOT_APPLIED: [&str; 2] = ["overloaded", "shard_unavailable"];

/// How trying ended.
pub enum Ended {
    Answered(StatusCode, Box<Answer>),
    /// It may have been applied, and trying again could apply it twice.
    InDoubt {
        reason: String,
    },
    Hopeless {
        reason: String,
    },
}

/// Tries until there is an answer other than "not now".
///
/// # Errors
/// When patience ends.
pub fn until_answered(
    request: impl Fn() -> Result<Response<Body>, ureq::Error>,
    is_repeatable: bool,
    patience: &mut Patience<'_>,
) -> Result<Ended, ImportError> {
    loop {
        let attempt = attempt(request());
        if !matches!(attempt, Attempt::NotThere { .. }) {
            patience.service.note_answered();
        }
        match attempt {
            Attempt::NotThere { reason } => patience.wait(reason, Duration::ZERO)?,
            Attempt::Answered(status, answer) => return Ok(Ended::Answered(status, answer)),
            Attempt::NotApplied { reason, wait } => patience.wait(reason, wait)?,
            Attempt::Unknown { reason } if is_repeatable => {
                patience.wait(reason, Duration::ZERO)?;
                patience.sent_twice = true;
            }
            Attempt::Unknown { reason } => return Ok(Ended::InDoubt { reason }),
            Attempt::Hopeless { reason } => return Ok(Ended::Hopeless { reason }),
        }
    }
}

/// How long trouble has lasted, and how long to wait before the next try.
pub struct Patience<'a> {
    service: &'a Service<'a>,
    trouble_since: Option<Instant>,
    backoff: Duration,
    /// A request may have been applied whose answer was lost, and was sent again.
    pub sent_twice: bool,
}

impl<'a> Patience<'a> {
    pub fn new(service: &'a Service<'a>) -> Self {
        Self { service, trouble_since: None, backoff: BACKOFF_FIRST, sent_twice: false }
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// When the trouble would last longer than the service is given.
    pub fn wait(&mut self, reason: String, at_least: Duration) -> Result<(), ImportError> {
        let Service { base, tally, .. } = self.service;
        let Some(retry_for) = self.service.retry_for() else {
            return Err(ImportError::NotThere { to: base.clone(), reason });
        };
        if self.trouble_since.is_none() {
            tally.note(&format!("{base} cannot be written to ({reason}); trying again"));
        }
        let since = *self.trouble_since.get_or_insert_with(Instant::now);
        let wait = self.backoff.max(at_least);
        // No sum: a service may ask to wait for longer than a duration can say.
        if wait > retry_for.saturating_sub(since.elapsed()) {
            return Err(ImportError::Unreachable { to: base.clone(), seconds: retry_for.as_secs(), reason });
        }
        thread::sleep(wait);
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        Ok(())
    }
}

/// How a request ended.
enum Attempt {
    Answered(StatusCode, Box<Answer>),
    /// Nobody took the request.
    NotThere {
        reason: String,
    },
    NotApplied {
        reason: String,
        wait: Duration,
    },
    Unknown {
        reason: String,
    },
    Hopeless {
        reason: String,
    },
}

fn attempt(response: Result<Response<Body>, ureq::Error>) -> Attempt {
    let mut response = match response {
        Ok(response) => response,
        Err(error) => return classify(&error),
    };
    let status = response.status();
    let retry_after = response.headers().get(header::RETRY_AFTER);
    let wait = retry_after.and_then(|value| decimal(value.to_str().ok()?)).map(Duration::from_secs);
    let body = match response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec() {
        Ok(body) => body,
        Err(error) => return Attempt::Unknown { reason: error.to_string() },
    };
    let answer: Answer = serde_json::from_slice(&body).unwrap_or_default();
    let is_passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    // Results say more than the status: which jobs were applied.
    if !is_passing || !answer.results.is_empty() {
        return Attempt::Answered(status, Box::new(answer));
    }
    let reason = answer.describe(status);
    if REQUEST_NOT_APPLIED.contains(&answer.code.as_str()) {
        Attempt::NotApplied { reason, wait: wait.unwrap_or_default() }
    } else {
        Attempt::Unknown { reason }
    }
}

/// What a failed request says about whether it was received.
fn classify(error: &ureq::Error) -> Attempt {
    let reason = error.to_string();
    match error {
        error if is_untrusted(error) => Attempt::Hopeless { reason },
        ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
            Attempt::NotThere { reason }
        }
        ureq::Error::ConnectionFailed | ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            Attempt::NotThere { reason }
        }
        ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => {
            Attempt::Unknown { reason }
        }
        // A host that has no address, a URL that is none: waiting does not help.
        _ => Attempt::Hopeless { reason },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cli::import::progress::Progress;
    use crate::cli::import::tally::Tally;

    #[test]
    fn what_a_service_asks_for_is_waited_unless_that_is_too_long_or_no_number() {
        let tally = Tally::new(Progress::new(Arc::default(), None), None, None).expect("no file to create");
        let service = Service::new("http://nowhere", None, None, Some(Duration::from_secs(60)), &tally);
        let service = service.expect("an address");
        for (asked, expect) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("+7", Some(0)),
            ("-1", Some(0)),
            ("soon", Some(0)),
            ("Sat, 21 Nov 2026 07:00:00 GMT", Some(0)),
        ] {
            let body = Body::builder().data(r#"{"code":"overloaded"}"#);
            let answer = Response::builder().status(503).header(header::RETRY_AFTER, asked).body(body);
            let waits = match attempt(Ok(answer.expect("a good answer"))) {
                Attempt::NotApplied { wait, .. } => Some(wait.as_secs()),
                _ => None,
            };
            assert_eq!(waits, expect, "{asked}");
        }
        // Longer than it is given, and so long that a sum of it and anything is no duration any more.
        for asked in [Duration::from_secs(61), Duration::from_secs(u64::MAX)] {
            let mut patience = Patience::new(&service);
            assert!(matches!(patience.wait(String::new(), asked), Err(ImportError::Unreachable { .. })));
        }
    }
}
