//! Sends batches to the service, one after the other, through trouble that passes.
//!
//! A request ends in one of three ways, and what may be done next depends on which: answered; certainly not applied
//! (send it again); unknown, because the connection broke after the request left (send it again only if that
//! changes nothing).

use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use ureq::http::{Response, StatusCode, Uri, header};
use ureq::{Agent, Body, Timeout};

use crate::cli::import::ImportError;
use crate::cli::import::batch::Batch;
use crate::cli::import::row::RejectedLine;
use crate::cli::import::tally::Tally;

const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// A connection that takes longer will not come to be.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Far above what a synced commit takes, on a slow disk too.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Refusals of a request before any of its jobs is looked at.
const NOT_APPLIED: [&str; 1] = ["overloaded"];

/// The service, and how patient to be with it.
pub struct Service<'a> {
    base: String,
    authorization: Option<String>,
    retry_for: Duration,
    tally: &'a Tally,
}

/// One keep-alive connection.
pub struct Connection<'a> {
    service: &'a Service<'a>,
    agent: Agent,
}

/// How a request ended.
enum Attempt {
    Answered(StatusCode, Vec<u8>),
    NotApplied { reason: String, wait: Option<Duration> },
    Unknown { reason: String },
    Hopeless { reason: String },
}

/// A batch that was answered: results in its order, or what is wrong with some of its jobs and none applied.
#[derive(Deserialize)]
struct Answer {
    results: Vec<JobResult>,
}

#[derive(Deserialize)]
struct JobResult {
    #[serde(default)]
    changed: bool,
    rejected: Option<String>,
    #[serde(default)]
    detail: String,
}

/// `application/problem+json`, as far as it matters here.
#[derive(Deserialize, Default)]
struct Problem {
    #[serde(default)]
    code: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    errors: Vec<InvalidJob>,
}

#[derive(Deserialize)]
struct InvalidJob {
    index: usize,
    code: String,
    #[serde(default)]
    detail: String,
}

impl<'a> Service<'a> {
    /// # Errors
    /// When the address is not one that can be connected to.
    pub fn new(
        to: &str,
        token: Option<&str>,
        retry_for: Duration,
        tally: &'a Tally,
    ) -> Result<Self, ImportError> {
        let base = to.trim_end_matches('/').to_owned();
        let is_http = base.parse::<Uri>().is_ok_and(|uri| uri.scheme_str() == Some("http"));
        if !is_http {
            return Err(ImportError::Address(to.to_owned()));
        }
        let authorization = token.map(|token| format!("Bearer {token}"));
        Ok(Self { base, authorization, retry_for, tally })
    }

    pub fn connection(&'a self) -> Connection<'a> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .timeout_recv_body(Some(ANSWER_TIMEOUT))
            .user_agent(concat!("ranktree-import/", env!("CARGO_PKG_VERSION")))
            .build();
        Connection { service: self, agent: Agent::new_with_config(config) }
    }
}

impl Connection<'_> {
    /// Sends a batch until it is answered. Jobs that the service finds invalid are taken out and the rest sent again,
    /// because such an answer means that none was applied.
    ///
    /// # Errors
    /// When the import cannot go on.
    pub fn send(&self, mut batch: Batch) -> Result<(), ImportError> {
        while !batch.rows.is_empty() {
            match self.post(&batch)? {
                Ok(answer) => return self.settle(&batch, answer),
                Err(invalid) => self.take_out(&mut batch, invalid)?,
            }
        }
        Ok(())
    }

    /// Whether jobs that name no operation add to what is there on this board.
    ///
    /// # Errors
    /// When the service cannot be reached.
    pub fn board_adds(&self, board: &str) -> Result<bool, ImportError> {
        #[derive(Deserialize)]
        struct Board {
            policy: String,
        }
        let uri = format!("{}/v1/boards/{board}", self.service.base);
        let (status, body) = self.until_answered(true, (0, 0), || {
            let mut request = self.agent.get(&uri);
            if let Some(authorization) = &self.service.authorization {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            request.call()
        })?;
        if status == StatusCode::NOT_FOUND {
            // It will be created with the defaults, whose policy is set.
            return Ok(false);
        }
        // Whoever may not read the definition is told more than may be true, rather than less.
        Ok(serde_json::from_slice::<Board>(&body).map_or(true, |board| board.policy == "incr"))
    }

    fn post(&self, batch: &Batch) -> Result<Result<Answer, Vec<InvalidJob>>, ImportError> {
        let uri = format!("{}/v1/jobs?wait=applied", self.service.base);
        let body = batch.body();
        let (status, answer) = self.until_answered(batch.is_repeatable(), batch.lines(), || {
            let mut request = self.agent.post(&uri).header(header::CONTENT_TYPE, "application/json");
            if let Some(authorization) = &self.service.authorization {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            request.send(&body)
        })?;
        if status.is_success() {
            let not_understood = |why: serde_json::Error| self.not_understood(why.to_string());
            return serde_json::from_slice(&answer).map(Ok).map_err(not_understood);
        }
        let problem: Problem = serde_json::from_slice(&answer).unwrap_or_default();
        if status == StatusCode::UNPROCESSABLE_ENTITY && !problem.errors.is_empty() {
            return Ok(Err(problem.errors));
        }
        let (first, last) = batch.lines();
        let to = self.service.base.clone();
        Err(ImportError::Refused { to, first, last, reason: problem.describe(status) })
    }

    /// Counts what came of a batch.
    fn settle(&self, batch: &Batch, answer: Answer) -> Result<(), ImportError> {
        let (found, expected) = (answer.results.len(), batch.rows.len());
        if found != expected {
            return Err(self.not_understood(format!("{found} results for {expected} jobs")));
        }
        let (mut applied, mut changed) = (0, 0);
        let mut rejected = Vec::new();
        for (row, result) in batch.rows.iter().zip(answer.results) {
            if let Some(code) = result.rejected {
                rejected.push(RejectedLine { line: row.line, code, detail: result.detail });
            } else {
                applied += 1;
                changed += u64::from(result.changed);
            }
        }
        // Counted first: what is applied stays applied, also if the rejects are more than the import bears.
        self.service.tally.applied(applied, changed);
        rejected.into_iter().try_for_each(|line| self.service.tally.rejected(line))
    }

    /// Reports invalid jobs, and leaves the others in the batch.
    fn take_out(&self, batch: &mut Batch, invalid: Vec<InvalidJob>) -> Result<(), ImportError> {
        let mut rows: Vec<_> = std::mem::take(&mut batch.rows).into_iter().map(Some).collect();
        for InvalidJob { index, code, detail } in invalid {
            let Some(place) = rows.get_mut(index) else {
                return Err(self.not_understood(format!("an error about job {index}, which was not sent")));
            };
            // A second error about the same job adds nothing.
            if let Some(row) = place.take() {
                self.service.tally.rejected(RejectedLine { line: row.line, code, detail })?;
            }
        }
        batch.rows = rows.into_iter().flatten().collect();
        Ok(())
    }

    /// Tries until there is an answer other than "not now", or patience ends.
    fn until_answered(
        &self,
        is_repeatable: bool,
        (first, last): (u64, u64),
        request: impl Fn() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<(StatusCode, Vec<u8>), ImportError> {
        let service = self.service;
        let to = || service.base.clone();
        let mut trouble_since = None;
        let mut backoff = BACKOFF_FIRST;
        loop {
            let (reason, wait) = match attempt(request()) {
                Attempt::Answered(status, body) => return Ok((status, body)),
                Attempt::NotApplied { reason, wait } => (reason, wait),
                Attempt::Unknown { reason } if is_repeatable => (reason, None),
                Attempt::Unknown { reason } => {
                    return Err(ImportError::InDoubt { to: to(), first, last, reason });
                }
                Attempt::Hopeless { reason } => {
                    return Err(ImportError::Refused { to: to(), first, last, reason });
                }
            };
            if trouble_since.is_none() {
                service.tally.note(&format!("{} does not answer ({reason}); trying again", service.base));
            }
            let since = *trouble_since.get_or_insert_with(Instant::now);
            let wait = wait.unwrap_or_default().max(backoff);
            if since.elapsed() + wait > service.retry_for {
                let seconds = service.retry_for.as_secs();
                return Err(ImportError::Unreachable { to: to(), seconds, reason });
            }
            thread::sleep(wait);
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    fn not_understood(&self, reason: String) -> ImportError {
        ImportError::Answer { to: self.service.base.clone(), reason }
    }
}

fn attempt(response: Result<Response<Body>, ureq::Error>) -> Attempt {
    let mut response = match response {
        Ok(response) => response,
        Err(error) => return classify(&error),
    };
    let status = response.status();
    let retry_after = response.headers().get(header::RETRY_AFTER);
    let wait = retry_after.and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
    let body = match response.body_mut().read_to_vec() {
        Ok(body) => body,
        Err(error) => return Attempt::Unknown { reason: error.to_string() },
    };
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let problem: Problem = serde_json::from_slice(&body).unwrap_or_default();
            let reason = problem.describe(status);
            let is_certain = NOT_APPLIED.contains(&problem.code.as_str());
            if is_certain { Attempt::NotApplied { reason, wait } } else { Attempt::Unknown { reason } }
        }
        _ if status.is_server_error() => {
            let problem: Problem = serde_json::from_slice(&body).unwrap_or_default();
            Attempt::Unknown { reason: problem.describe(status) }
        }
        _ => Attempt::Answered(status, body),
    }
}

/// What a failed request says about whether it was received.
fn classify(error: &ureq::Error) -> Attempt {
    let reason = error.to_string();
    match error {
        ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
            Attempt::NotApplied { reason, wait: None }
        }
        ureq::Error::ConnectionFailed | ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            Attempt::NotApplied { reason, wait: None }
        }
        ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => {
            Attempt::Unknown { reason }
        }
        // A host that has no address, a URL that is none: waiting does not help.
        _ => Attempt::Hopeless { reason },
    }
}

impl Problem {
    fn describe(&self, status: StatusCode) -> String {
        let words = if self.detail.is_empty() { &self.title } else { &self.detail };
        let parts = [status.as_str(), &self.code, words];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::cli::import::progress::Progress;
    use crate::cli::import::row::Row;

    /// What the service does with one request.
    #[derive(Clone, Copy)]
    enum Reply {
        With(u16, &'static str),
        /// Reads the request and closes the connection.
        Break,
    }

    /// A service that answers as it is told and passes on the bodies it got, then is gone.
    fn service(replies: Vec<Reply>) -> (String, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (got, bodies) = channel();
        thread::spawn(move || {
            for reply in replies {
                let (stream, _) = listener.accept().expect("a connection");
                let mut stream = BufReader::new(stream);
                let mut length = 0;
                let mut line = String::new();
                while stream.read_line(&mut line).expect("readable") > 2 {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a length");
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).expect("readable");
                let _ = got.send(String::from_utf8(body).expect("JSON is UTF-8"));
                if let Reply::With(status, body) = reply {
                    let head =
                        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close", body.len());
                    let answer = format!("{head}\r\nretry-after: 0\r\n\r\n{body}");
                    stream.get_mut().write_all(answer.as_bytes()).expect("writable");
                }
            }
        });
        (format!("http://{address}"), bodies)
    }

    /// Sends the jobs `0`, `1`, ... of lines 10, 11, ... as one batch; bodies received, and the summary or the error.
    fn send(replies: Vec<Reply>, jobs: u64, op: &str) -> (Vec<String>, Result<String, String>) {
        let patience = if replies.is_empty() { Duration::ZERO } else { Duration::from_secs(30) };
        let (base, bodies) = service(replies);
        let tally = Tally::new(Progress::new(Arc::default(), None), None, None).expect("no file to create");
        let service = Service::new(&base, None, patience, &tally).expect("an address");
        let row = |job: u64| Row::new(job + 10, job.to_string(), "m", Some(op), false, Vec::new());
        let batch = Batch::of((0..jobs).map(row));
        let sent = service.connection().send(batch).map_err(|error| error.to_string().replace(&base, "URL"));
        let summary = tally.finish(false).expect("no file to write").0;
        (bodies.try_iter().collect(), sent.map(|()| summary))
    }

    fn check(replies: Vec<Reply>, jobs: u64, bodies: &[&str], summary: &[&str]) {
        let (got, sent) = send(replies, jobs, "set");
        assert_eq!(got, bodies);
        let sent = sent.expect("the batch is settled");
        for line in summary {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert!(sent.lines().any(|found| words(found) == words(line)), "{line:?} in {sent}");
        }
    }

    #[test]
    fn results_are_counted() {
        let answer = r#"{"token":"0:7","results":[{"changed":true,"entry":{},"previous":null},
            {"changed":false},{"rejected":"stale_version","detail":"7 is stored"}]}"#;
        check(
            vec![Reply::With(200, answer)],
            3,
            &["[0,1,2]"],
            &["applied 2", "changed 1", "rejected 1", "line 12: stale_version: 7 is stored"],
        );
    }

    #[test]
    fn invalid_jobs_are_taken_out_and_the_others_sent_again() {
        let refusal = r#"{"code":"invalid_jobs","errors":[{"index":2,"code":"bad_score","detail":"c"},
            {"index":0,"code":"malformed","detail":"a"},{"index":0,"code":"bad_score"}]}"#;
        check(
            vec![
                Reply::With(422, refusal),
                Reply::With(200, r#"{"results":[{"changed":true},{"changed":true}]}"#),
            ],
            4,
            &["[0,1,2,3]", "[1,3]"],
            &["applied 2", "rejected 2", "line 10: malformed: a", "line 12: bad_score: c"],
        );
        let all = r#"{"errors":[{"index":0,"code":"malformed","detail":"a"}]}"#;
        check(vec![Reply::With(422, all)], 1, &["[0]"], &["applied 0", "rejected 1"]);
    }

    #[test]
    fn an_overloaded_service_is_asked_again() {
        let overloaded = Reply::With(503, r#"{"code":"overloaded"}"#);
        let applied = Reply::With(200, r#"{"results":[{"changed":true}]}"#);
        check(vec![overloaded, overloaded, applied], 1, &["[0]"; 3], &["applied 1"]);
        let (bodies, sent) = send(vec![overloaded, applied], 1, "incr");
        assert_eq!(
            (bodies.len(), sent.is_ok()),
            (2, true),
            "nothing was applied, so that sending again is safe"
        );
    }

    #[test]
    fn a_batch_of_unknown_fate_is_sent_again_only_if_that_changes_nothing() {
        for trouble in [Reply::Break, Reply::With(500, "{}"), Reply::With(503, r#"{"code":"commit_failed"}"#)]
        {
            let applied = Reply::With(200, r#"{"results":[{"changed":true}]}"#);
            let (bodies, sent) = send(vec![trouble, applied], 1, "incr");
            let error = sent.expect_err("nobody knows whether it was applied");
            assert!(error.starts_with("URL may or may not have applied lines 10 to 10"), "{error}");
            assert_eq!(bodies, ["[0]"]);
            check(vec![trouble, applied], 1, &["[0]"; 2], &["applied 1"]);
        }
    }

    #[test]
    fn a_refusal_or_a_strange_answer_ends_the_import() {
        for (reply, expect) in [
            (
                Reply::With(401, r#"{"code":"unauthorized","detail":"a token is needed"}"#),
                "URL refused lines 10 to 10: 401 unauthorized a token is needed",
            ),
            (Reply::With(404, "nothing here"), "URL refused lines 10 to 10: 404"),
            (Reply::With(200, "hello"), "URL gave an answer that"),
            (Reply::With(200, r#"{"results":[]}"#), "URL gave an answer that"),
            (Reply::With(422, r#"{"errors":[{"index":1,"code":"malformed"}]}"#), "URL gave an answer that"),
        ] {
            let error = send(vec![reply], 1, "set").1.expect_err(expect);
            assert!(error.starts_with(expect), "{error}");
        }
    }

    #[test]
    fn patience_ends() {
        let (_, sent) = send(Vec::new(), 1, "set");
        let error = sent.expect_err("nobody is there");
        assert!(error.starts_with("no answer from URL for 0 s (--retry-for):"), "{error}");
    }

    #[test]
    fn only_plain_http_addresses_are_taken() {
        let tally = Tally::new(Progress::new(Arc::default(), None), None, None).expect("no file to create");
        for bad in ["", "127.0.0.1:8080", "https://ranks.example", "ftp://ranks.example", "http://"] {
            assert!(Service::new(bad, None, Duration::ZERO, &tally).is_err(), "{bad}");
        }
        let service =
            Service::new("http://ranks.example/base/", None, Duration::ZERO, &tally).expect("an address");
        assert_eq!(service.base, "http://ranks.example/base");
    }
}
