//! The client of the write service: has jobs applied by an owner of their shard, whichever node that is.
//!
//! Knows: which failures mean that nothing was applied, and after which that is unknown. Must not know: what
//! came of each job.

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{HeaderMap, Message, Request};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cluster::write_service::{ERROR_CODE_HEADER, RESULTS_HEADER};
use crate::queue::nats::{Connection, Names};
use crate::queue::{NotPublished, RemoteWriter};
use crate::types::ShardId;
use crate::writer::CommitFailed;

/// How long an owner may take. An owner waits ten seconds for a new board, and a cluster that lost its leader
/// has another one sooner. An owner that died with a request answers nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

/// Sends requests to the write service.
pub struct WriteClient {
    connection: Connection,
    subjects: Names,
}

impl WriteClient {
    #[must_use]
    pub fn new(connection: &Connection, subjects: &Names) -> Self {
        Self { connection: connection.clone(), subjects: subjects.clone() }
    }

    async fn ask(&self, shard: ShardId, jobs: Vec<u8>, only_changed: bool) -> Result<Vec<u8>, NotPublished> {
        // The NATS client would keep a request and send it some time later, when nobody waits any more.
        if !self.connection.is_up() {
            return Err(NotPublished::Unavailable(self.connection.why_down()));
        }
        let mut request = Request::new().payload(jobs.into()).timeout(Some(ANSWER_TIMEOUT));
        if only_changed {
            let mut headers = HeaderMap::new();
            headers.insert(RESULTS_HEADER, "changed");
            request = request.headers(headers);
        }
        let answer = self.connection.client.send_request(self.subjects.write_subject(shard), request).await;
        match answer {
            Ok(answer) => read_answer(answer),
            Err(error) => Err(match error.kind() {
                RequestErrorKind::NoResponders => NotPublished::Unavailable(format!(
                    "no node on which shard {shard} is live takes writes; try again in a moment"
                )),
                RequestErrorKind::MaxPayloadExceeded => NotPublished::TooLarge(
                    "the jobs take more bytes than the NATS server allows in a message; send fewer at a time"
                        .to_owned(),
                ),
                RequestErrorKind::InvalidSubject => NotPublished::Unavailable(error.to_string()),
                RequestErrorKind::TimedOut | RequestErrorKind::Other => {
                    NotPublished::Unknown("the node that took the write did not answer in time".to_owned())
                }
            }),
        }
    }
}

impl RemoteWriter for WriteClient {
    fn write(
        &self,
        shard: ShardId,
        jobs: Vec<u8>,
        only_changed: bool,
    ) -> BoxFuture<'_, Result<Vec<u8>, NotPublished>> {
        self.ask(shard, jobs, only_changed).boxed()
    }
}

/// A problem, as far as it decides what is known of the jobs.
#[derive(Deserialize)]
struct Problem {
    code: String,
    #[serde(default)]
    detail: String,
    /// What came of each job, if some of them may have been applied.
    results: Option<IgnoredAny>,
}

fn read_answer(answer: Message) -> Result<Vec<u8>, NotPublished> {
    let is_problem = answer.headers.is_some_and(|headers| headers.get(ERROR_CODE_HEADER).is_some());
    let body = Vec::from(answer.payload);
    if !is_problem {
        return Ok(body);
    }
    match serde_json::from_slice::<Problem>(&body) {
        Ok(Problem { results: Some(_), .. }) => Ok(body),
        Ok(Problem { code, detail, results: None }) => Err(failure(&code, detail)),
        Err(_) => Err(NotPublished::Unknown("another node sent an answer that cannot be read".to_owned())),
    }
}

/// Why a write failed on its owner, by the code and the detail of the problem.
fn failure(code: &str, detail: String) -> NotPublished {
    // What is added when the failure is told once more.
    let unavailable =
        |detail: &str| detail.strip_prefix("this shard takes no writes now: ").unwrap_or(detail).to_owned();
    match code {
        "overloaded" => NotPublished::Overloaded,
        "queue_full" => NotPublished::Full(unavailable(&detail)),
        "too_large" => NotPublished::TooLarge(detail),
        "commit_failed" => {
            let reason = detail.strip_prefix("the batch could not be committed: ").unwrap_or(&detail);
            NotPublished::CommitFailed(CommitFailed { reason: reason.to_owned() })
        }
        "commit_unknown" => {
            let known = detail.strip_suffix("; a job with a version, or a trim, may safely be sent again");
            NotPublished::Unknown(known.unwrap_or(&detail).to_owned())
        }
        _ => NotPublished::Unavailable(unavailable(&detail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: Option<u16>, body: &str) -> Result<Vec<u8>, NotPublished> {
        let headers = status.map(|status| {
            let mut headers = HeaderMap::new();
            headers.insert(ERROR_CODE_HEADER, status.to_string());
            headers
        });
        let payload = body.to_owned().into();
        let (reply, status, description, length) = (None, None, None, body.len());
        read_answer(Message { subject: "inbox".into(), reply, payload, headers, status, description, length })
    }

    #[test]
    fn answers_with_results_are_handed_on_and_problems_say_what_is_known() {
        let written = r#"{"token":"1:18","results":[{"changed":true}]}"#;
        assert_eq!(read(None, written), Ok(written.into()));
        let partly = r#"{"code":"queue_full","detail":"full","token":"1:18","results":[{"changed":true}]}"#;
        assert_eq!(read(Some(503), partly), Ok(partly.into()));
        let failures = [
            NotPublished::Overloaded,
            NotPublished::Unavailable("halted".to_owned()),
            NotPublished::Full("its stream is full".to_owned()),
            NotPublished::TooLarge("send fewer".to_owned()),
            NotPublished::Unknown("gone".to_owned()),
            NotPublished::CommitFailed(CommitFailed { reason: "no room".to_owned() }),
        ];
        let codes =
            ["overloaded", "shard_unavailable", "queue_full", "too_large", "commit_unknown", "commit_failed"];
        for (failure, code) in failures.into_iter().zip(codes) {
            let problem = serde_json::json!({ "status": 503, "code": code, "detail": failure.to_string() });
            assert_eq!(read(Some(503), &problem.to_string()), Err(failure));
        }
        assert!(matches!(read(Some(500), "?"), Err(NotPublished::Unknown(_))));
    }
}
