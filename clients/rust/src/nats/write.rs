//! Jobs that a node writes and answers.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{HeaderMap, Request};
use bytes::Bytes;
use serde_json::json;

use crate::error::{Error, Problem};
use crate::nats::batch::shard_of_job;
use crate::nats::link::Link;
use crate::types::{Job, JobsWritten};

/// Jobs that a node is about to write: `.await` them.
///
/// Nothing is sent again. If no answer comes in time, that is [`Error::ConnectionFailed`]; give jobs a `version`,
/// and send them again before later ones of the same members.
#[must_use = "jobs are sent when this is awaited"]
pub struct Write {
    link: Arc<Link>,
    jobs: Result<(u32, Bytes), Error>,
    is_short: bool,
    timeout: Duration,
}

impl Write {
    pub(super) fn new(link: Arc<Link>, jobs: &[Job]) -> Self {
        let jobs = one_shard(jobs, link.shards).map(|shard| {
            let text = serde_json::to_vec(jobs).expect("jobs have text for keys, and finite numbers");
            (shard, Bytes::from(text))
        });
        Self { link, jobs, is_short: false, timeout: Duration::from_secs(35) }
    }

    /// Asks for a short answer: whether each job changed anything.
    pub fn changed_only(mut self) -> Self {
        self.is_short = true;
        self
    }

    /// How long the node may take, 35 seconds unless it is another time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn send(self) -> Result<JobsWritten, Error> {
        let (shard, body) = self.jobs?;
        let subject = format!("{}.write.{shard}", self.link.prefix);
        if !self.link.is_connected() {
            let detail = format!("{subject}: not connected to NATS; nothing was sent");
            return Err(Error::ConnectionFailed { detail, may_be_applied: false });
        }
        let mut request = Request::new().payload(body).timeout(Some(self.timeout));
        if self.is_short {
            let mut headers = HeaderMap::new();
            headers.insert("Ranktree-Results", "changed");
            request = request.headers(headers);
        }
        let answer = self.link.connection.send_request(subject.clone(), request).await;
        let answer = answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => {
                let detail = format!("no node answers to {subject}; try again");
                let body = json!({ "code": "shard_unavailable", "detail": detail, "shards": [shard] });
                Problem::read(503, body.to_string().as_bytes(), None).into()
            }
            RequestErrorKind::TimedOut => Error::ConnectionFailed {
                detail: format!("no node answered to {subject} within {} s", self.timeout.as_secs_f32()),
                may_be_applied: true,
            },
            _ => Error::ConnectionFailed { detail: format!("{subject}: {error}"), may_be_applied: true },
        })?;
        let status = answer.headers.as_ref().and_then(|headers| headers.get("Nats-Service-Error-Code"));
        if let Some(status) = status {
            let status = status.as_str().parse().unwrap_or(500);
            return Err(Problem::read(status, &answer.payload, None).into());
        }
        serde_json::from_slice(&answer.payload).map_err(|error| {
            let mut problem = Problem::read(200, &answer.payload, None);
            problem.detail = format!("the answer cannot be read: {error}");
            problem.into()
        })
    }
}

impl IntoFuture for Write {
    type Output = Result<JobsWritten, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

fn one_shard(jobs: &[Job], shards: u32) -> Result<u32, Error> {
    let mut found = jobs.iter().map(|job| shard_of_job(job, shards)).collect::<Result<Vec<_>, _>>()?;
    found.sort_unstable();
    found.dedup();
    match &*found {
        [shard] => Ok(*shard),
        found => {
            let told = "the jobs of a write belong to one shard";
            Err(Error::Argument(format!("{told}; these belong to {found:?}")))
        }
    }
}
