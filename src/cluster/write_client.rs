//! The client of the write service: has jobs applied by an owner of their shard, whichever node that is.
//!
//! Knows: which owner is asked, which failures mean that nothing was applied, and after which that is
//! unknown. Must not know: what an answer says.
//!
//! A write that was sent is never sent again: the first owner may have applied it. So where there are
//! several owners and none has answered within a moment, all are asked whether they are there, and the first
//! one to answer gets the write. An owner that is stopped then costs no write but those of that moment.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::client::{RequestError, RequestErrorKind};
use async_nats::{Message, Request};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::cluster::first_there::{PROBE_TIMEOUT, first_there};
use crate::cluster::questions::Owners;
use crate::cluster::write_service::{HEADERS_BYTES_MAX, RESULTS_HEADER};
use crate::queue::NotPublished;
use crate::queue::nats::{Connection, Names, trace_headers};
use crate::traces::{self, Kind};
use crate::types::{NodeName, ShardId};

/// How long an owner may take. An owner waits ten seconds for a new board, and a cluster that lost its
/// leader has another one sooner. An owner that died with a request answers nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);
/// An owner that has answered within this time is taken to be there.
const HEARD_WITHIN: Duration = Duration::from_millis(500);

/// Sends requests to the write service.
pub struct WriteClient {
    connection: Connection,
    subjects: Names,
    owners: Arc<Owners>,
    /// When each owner has answered last.
    heard: Mutex<HashMap<NodeName, Instant>>,
}

impl WriteClient {
    pub fn new(connection: &Connection, subjects: &Names, owners: Arc<Owners>) -> Self {
        let (connection, subjects) = (connection.clone(), subjects.clone());
        Self { connection, subjects, owners, heard: Mutex::default() }
    }

    /// The most bytes that the jobs of a request may have, and that its answer may have.
    pub fn bytes_max(&self) -> usize {
        self.connection.client.max_payload().saturating_sub(HEADERS_BYTES_MAX)
    }

    /// Sends jobs of one shard, and waits until an owner has applied them.
    ///
    /// # Arguments
    /// - `jobs`: a JSON array of 1 to 1,000 jobs.
    /// - `only_changed`: the results tell only whether each job changed anything (`results=changed`).
    ///
    /// Returns the body of what `POST /v1/jobs?wait=applied` answers: a JSON object with `token`, and
    /// `results` in the order of the jobs; or a problem.
    ///
    /// # Errors
    /// When no owner takes the jobs, or it is unknown whether one did.
    pub async fn write(
        &self,
        shard: ShardId,
        jobs: Vec<u8>,
        only_changed: bool,
    ) -> Result<Vec<u8>, NotPublished> {
        let mut span = traces::child(Kind::Client, "write");
        if let Some(span) = &mut span {
            span.attribute("ranktree.shard", u64::from(shard.0));
        }
        let asking = pin!(self.ask(shard, jobs, only_changed));
        let answer = traces::within(span.as_ref(), asking).await;
        if let (Some(span), Err(why)) = (&mut span, &answer) {
            span.fail(why.to_string());
        }
        answer
    }

    async fn ask(&self, shard: ShardId, jobs: Vec<u8>, only_changed: bool) -> Result<Vec<u8>, NotPublished> {
        // The NATS client would keep a request and send it some time later, when nobody waits any more.
        if !self.connection.is_up() {
            return Err(NotPublished::Unavailable(self.connection.why_down()));
        }
        let jobs = Bytes::from(jobs);
        let live = self.owners.choices(shard).into_iter().filter(|choice| !choice.may_be_behind);
        let mut live: Vec<NodeName> = live.filter_map(|choice| choice.node).collect();
        while let Some(node) = self.first_there(shard, &live).await {
            let subject = self.subjects.write_node_subject(shard, &node);
            match self.send(subject, jobs.clone(), only_changed).await {
                Ok(answer) => {
                    self.note_heard(node);
                    return Ok(answer.payload.into());
                }
                // It takes no writes for the shard now, or is of a version that listens with all owners
                // only.
                Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                    live.retain(|other| *other != node);
                }
                Err(error) => {
                    if error.kind() == RequestErrorKind::TimedOut {
                        // It is passed over until it is heard of again, for questions too.
                        self.heard.lock().remove(&node);
                        self.owners.note_silent(&node);
                    }
                    return Err(failure(shard, &error));
                }
            }
        }
        // Whichever owner there is, if one has come that is not known yet.
        let answer = self.send(self.subjects.write_subject(shard), jobs, only_changed).await;
        answer.map(|answer| answer.payload.into()).map_err(|error| failure(shard, &error))
    }

    fn note_heard(&self, node: NodeName) {
        let mut heard = self.heard.lock();
        if heard.insert(node, Instant::now()).is_none() {
            // Nodes come and go. What is older is not looked at.
            heard.retain(|_, at| at.elapsed() < HEARD_WITHIN);
        }
    }

    async fn send(&self, subject: String, jobs: Bytes, only_changed: bool) -> Result<Message, RequestError> {
        let mut request = Request::new().payload(jobs).timeout(Some(ANSWER_TIMEOUT));
        let mut headers = trace_headers::of_message(traces::current().as_slice()).unwrap_or_default();
        if only_changed {
            headers.insert(RESULTS_HEADER, "changed");
        }
        if !headers.is_empty() {
            request = request.headers(headers);
        }
        self.connection.client.send_request(subject, request).await
    }

    /// An owner that has answered lately, or the first one that says that it is there.
    async fn first_there(&self, shard: ShardId, owners: &[NodeName]) -> Option<NodeName> {
        let has_answered = |node: &&NodeName| {
            self.heard.lock().get(*node).is_some_and(|heard| heard.elapsed() < HEARD_WITHIN)
        };
        if let Some(node) = owners.iter().find(has_answered) {
            return Some(node.clone());
        }
        first_there(owners, |node| async move {
            let probe = Request::new().timeout(Some(PROBE_TIMEOUT));
            let subject = self.subjects.write_node_subject(shard, node);
            self.connection.client.send_request(subject, probe).await.is_ok()
        })
        .await
    }
}

fn failure(shard: ShardId, error: &RequestError) -> NotPublished {
    match error.kind() {
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
    }
}
