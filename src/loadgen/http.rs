//! Requests to a service over HTTP: keep-alive connections, one request at a time on each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use tokio::time::timeout;

use crate::loadgen::feed::{Due, Feed};
use crate::loadgen::service::Service;
use crate::loadgen::tally::{OperationError, Stored, Tally, Times};
use crate::loadgen::workload::{Message, Operation, Read, Spec};
use crate::types::{Sequence, ShardId, decimal};

/// Above what the service itself waits for a commit, so that its answer tells the outcome.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(35);
/// Above the longest answer: what came of 1,000 jobs.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// A service that asks to be left alone for longer is asked again all the same, so that a run ends when it is
/// told to.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

struct Answer {
    status: StatusCode,
    retry_after: Option<Duration>,
    body: Bytes,
}

/// A connection that is made when it is needed, and again after it broke.
pub struct Connection {
    service: Service,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    pub fn new(service: Service) -> Self {
        Self { service, sender: None }
    }

    /// Whether a ranktree answers, and takes the token.
    ///
    /// # Errors
    /// In words, when not.
    pub async fn check(&mut self) -> Result<(), String> {
        let health = match self.send(Method::GET, "/healthz", Bytes::new()).await {
            Ok(health) => health,
            Err(error) => {
                let advice = self.service.lacks_tls().await;
                return Err(advice.map_or(error.detail, |advice| format!("{}: {advice}", self.service.url())));
            }
        };
        if !health.status.is_success() {
            // A ranktree service answers a request without TLS so where it speaks TLS.
            if let Some(advice) = self.service.lacks_tls().await {
                return Err(format!("{}: {advice}", self.service.url()));
            }
            return Err(format!(
                "{} is not a ranktree service, or does not work: {}",
                self.service.url(),
                health.status
            ));
        }
        // Other failures may pass and are counted. A refused token would be refused every time.
        let list = self.send(Method::GET, "/v1/boards?limit=1", Bytes::new()).await;
        let list = list.map_err(|error| error.detail)?;
        match list.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(refused(&list).detail),
            _ => Ok(()),
        }
    }

    /// Sends operations until there are no more.
    pub async fn work(mut self, feed: Arc<Feed>, tally: Arc<Tally>, spec: Arc<Spec>, visible: bool) {
        while let Some(Due { operation, intended }) = feed.next().await {
            let pause = match operation {
                Operation::Write(message) => self.write(&message, intended, &tally, &spec, visible).await,
                Operation::Read(read) => self.read(&read, intended, &tally).await,
            };
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// How long the target asks to be left alone, if it does.
    async fn write(
        &mut self,
        message: &Message,
        intended: Instant,
        tally: &Tally,
        spec: &Spec,
        visible: bool,
    ) -> Option<Duration> {
        let started = Instant::now();
        let (method, mut path) = if message.jobs == 1 && spec.jobs_per_message == 1 {
            (Method::PUT, spec.path_of(message))
        } else {
            (Method::POST, "/v1/jobs".to_owned())
        };
        if visible {
            path.push_str("?wait=applied");
        }
        let answer = self.send(method, &path, message.body.clone()).await;
        let ended = Instant::now();
        let outcome = answer.and_then(|answer| stored(&answer, message.jobs));
        let pause = outcome.as_ref().err().and_then(|error| error.pause);
        if visible && outcome.is_ok() {
            tally.visible(intended, ended);
        }
        tally.write(Times { intended, started, ended }, message.jobs, outcome);
        pause
    }

    pub async fn read(&mut self, read: &Read, intended: Instant, tally: &Tally) -> Option<Duration> {
        let started = Instant::now();
        let answer = self.send(Method::GET, &read.path, Bytes::new()).await;
        let ended = Instant::now();
        let outcome = answer.and_then(|answer| found(&answer));
        let pause = outcome.as_ref().err().and_then(|error| error.pause);
        tally.read(Times { intended, started, ended }, outcome);
        pause
    }

    /// Waits until readers see this shard at this sequence.
    pub async fn until_visible(&mut self, shard: ShardId, sequence: Sequence) -> Result<(), OperationError> {
        let path = format!("/v1/boards?limit=1&timeout_ms=30000&after={shard}:{}", sequence.0);
        let answer = self.send(Method::GET, &path, Bytes::new()).await?;
        if answer.status.is_success() { Ok(()) } else { Err(refused(&answer)) }
    }

    /// The service's metrics, as Prometheus has them.
    pub async fn metrics(&mut self) -> Result<String, OperationError> {
        let answer = self.send(Method::GET, "/metrics", Bytes::new()).await?;
        if !answer.status.is_success() {
            return Err(refused(&answer));
        }
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// How the shards are doing and who owns them, as JSON.
    pub async fn status(&mut self) -> Result<Bytes, OperationError> {
        let answer = self.send(Method::GET, "/v1/status", Bytes::new()).await?;
        if answer.status.is_success() { Ok(answer.body) } else { Err(refused(&answer)) }
    }

    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<Answer, OperationError> {
        let mut sender = match self.sender.take() {
            Some(sender) if sender.is_ready() => sender,
            // Closed by the service while it was idle, or never opened.
            _ => self.service.connect().await?,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.service.base()))
            .header(HOST, self.service.host())
            .header(USER_AGENT, concat!("ranktree-load/", env!("CARGO_PKG_VERSION")));
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(authorization) = self.service.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request
            .body(Full::new(body))
            .expect("the path is built from valid parts, and the headers were checked before");
        let exchange = async {
            sender.ready().await.map_err(|error| broken(&error))?;
            let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
            let status = response.status();
            let retry_after = response.headers().get(RETRY_AFTER);
            let retry_after = retry_after.and_then(|value| decimal(value.to_str().ok()?));
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| broken(&*error))?.to_bytes();
            Ok(Answer { status, retry_after: retry_after.map(Duration::from_secs), body })
        };
        let answer = timeout(ANSWER_TIMEOUT, exchange).await.map_err(|_| {
            OperationError::new("unanswered", format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))
        })?;
        if answer.is_ok() && sender.ready().await.is_ok() {
            self.sender = Some(sender);
        }
        answer
    }
}

fn broken(error: &dyn std::error::Error) -> OperationError {
    let cause = error.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let detail = format!(
        "the connection broke, and it is unknown whether the request was carried out: {error}{cause}"
    );
    OperationError::new("connection_broken", detail)
}

/// What the answer to a write says. Only what is needed of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WriteJson {
    code: String,
    detail: String,
    results: Vec<ResultJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResultJson {
    rejected: Option<String>,
    failed: Option<String>,
}

/// What the write service answered, which answers as a service over HTTP does.
///
/// # Errors
/// When it was refused.
pub fn written(status: u16, body: Bytes, jobs: u32) -> Result<Stored, OperationError> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    stored(&Answer { status, retry_after: None, body }, jobs)
}

fn stored(answer: &Answer, jobs: u32) -> Result<Stored, OperationError> {
    let all = Stored { jobs: jobs.into(), rejected: BTreeMap::new() };
    if answer.status == StatusCode::ACCEPTED {
        return Ok(all);
    }
    let json: WriteJson = serde_json::from_slice(&answer.body).unwrap_or_default();
    if json.results.iter().any(|result| result.failed.is_some()) {
        return Err(refused(answer));
    }
    if !json.results.is_empty() || answer.status.is_success() {
        let mut stored = all;
        for reason in json.results.into_iter().filter_map(|result| result.rejected) {
            stored.jobs = stored.jobs.saturating_sub(1);
            *stored.rejected.entry(reason).or_default() += 1;
        }
        return Ok(stored);
    }
    if answer.status == StatusCode::CONFLICT {
        return Ok(Stored { jobs: 0, rejected: BTreeMap::from([(json.code, 1)]) });
    }
    Err(refused(answer))
}

/// Whether a read found what it asked for. Members and boards that were never written to are no errors.
fn found(answer: &Answer) -> Result<bool, OperationError> {
    match answer.status {
        StatusCode::OK => Ok(true),
        StatusCode::NOT_FOUND => {
            let json: WriteJson = serde_json::from_slice(&answer.body).unwrap_or_default();
            if json.code == "unknown_member" || json.code == "unknown_board" {
                Ok(false)
            } else {
                Err(refused(answer))
            }
        }
        _ => Err(refused(answer)),
    }
}

/// An answer that is a refusal, in the service's own code and words.
fn refused(answer: &Answer) -> OperationError {
    let json: WriteJson = serde_json::from_slice(&answer.body).unwrap_or_default();
    let status = answer.status;
    let failed = json.results.iter().find_map(|result| result.failed.clone());
    let kind = match (failed, json.code.as_str()) {
        (Some(failed), _) => failed,
        (None, "") => format!("status_{}", status.as_u16()),
        (None, code) => code.to_owned(),
    };
    let advice = match status {
        StatusCode::UNAUTHORIZED => "; set RANKTREE_TOKEN, or give --token-file",
        StatusCode::FORBIDDEN => "; the token lacks the scope: write for jobs, read for reads",
        _ => "",
    };
    let detail = format!("the service answered {status}: {}{advice}", json.detail);
    OperationError {
        pause: answer.retry_after.map(|pause| pause.min(RETRY_PAUSE_MAX)),
        ..OperationError::new(kind, detail)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::TcpListener;

    use super::*;
    use crate::loadgen::schedule::Schedule;
    use crate::loadgen::workload::Workload;

    fn answer(status: u16, body: &str) -> Answer {
        let status = StatusCode::from_u16(status).expect("a status");
        Answer { status, retry_after: Some(Duration::from_secs(1)), body: Bytes::from(body.to_owned()) }
    }

    #[test]
    fn answers_to_writes_are_told_apart() {
        let jobs = |status, body| stored(&answer(status, body), 3).map(|stored| stored.jobs);
        assert_eq!(jobs(202, r#"{"token":"0:1"}"#), Ok(3));
        assert_eq!(
            jobs(200, r#"{"token":"0:1","results":[{"changed":true},{"rejected":"overflow"},{}]}"#),
            Ok(2)
        );
        let one = stored(&answer(409, r#"{"code":"stale_version"}"#), 1).expect("an answer");
        assert_eq!((one.jobs, one.rejected.get("stale_version")), (0, Some(&1)));
        let error = jobs(503, r#"{"code":"overloaded","detail":"too much"}"#).expect_err("a refusal");
        assert_eq!((error.kind.as_str(), error.pause), ("overloaded", Some(Duration::from_secs(1))));
        assert!(error.detail.contains("too much"), "{}", error.detail);
        let error = jobs(401, "who are you").expect_err("a refusal");
        assert_eq!(error.kind, "status_401");
        assert!(error.detail.contains("RANKTREE_TOKEN"), "{}", error.detail);
        let partly = r#"{"results":[{"changed":true},{"failed":"shard_unavailable"}]}"#;
        assert_eq!(jobs(503, partly).expect_err("a refusal").kind, "shard_unavailable");
        assert_eq!(found(&answer(404, r#"{"code":"unknown_member"}"#)), Ok(false));
        assert!(found(&answer(404, r#"{"code":"unknown_route"}"#)).is_err());
    }

    /// Answers every request at once, but the first after half a second.
    async fn stalls_once(listener: TcpListener) {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut stream = BufReader::new(stream);
        let mut stalled = false;
        loop {
            let mut length = 0;
            let mut line = String::new();
            loop {
                line.clear();
                if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                    return;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.expect("a body");
            if !stalled {
                stalled = true;
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 15\r\n\r\n{\"token\":\"0:1\"}";
            stream.write_all(answer).await.expect("writable");
        }
    }

    #[tokio::test]
    async fn a_stall_is_in_the_latency_of_all_that_was_due_meanwhile() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        tokio::spawn(stalls_once(listener));
        let spec = Arc::new(Spec::of_sets(Some(80)));
        let workload = Workload::new((*spec).clone());
        let feed = Feed::start(workload, Schedule::per_second(100.0), None).expect("a thread");
        let tally = Arc::new(Tally::new(feed.started()));
        let service = Service::new(&url, None, None).expect("an address");
        Connection::new(service).work(Arc::clone(&feed), Arc::clone(&tally), spec, false).await;
        tally.with(|counts| {
            assert_eq!((counts.messages_acked, counts.errors.len()), (80, 0), "{:?}", counts.errors);
            // 50 were due while the first waited, 40 of them more than 100 ms before its answer. A generator
            // that counted from when it could send them would have seen one slow request.
            let slow = counts.writes.total.count_between(100_000, 10_000_000);
            assert!((35..=80).contains(&slow), "{slow} slow ones");
            assert!(counts.late >= 35, "{} began late", counts.late);
        });
    }
}
