//! The client of the write service: has jobs applied by an owner of their shard, whichever node that is.
//!
//! Knows: which owner is asked, which failures mean that nothing was applied, and after which that is unknown.
//! Must not know: what an answer says.
//!
//! A write that was sent is never sent again: the first owner may have applied it. So an owner that was not
//! heard of for a moment is first asked whether it is there, if there is another one. An owner that is stopped
//! then costs a fraction of a second and not the write.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::client::{RequestError, RequestErrorKind};
use async_nats::{HeaderMap, Message, Request};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;

use crate::cluster::questions::Owners;
use crate::cluster::write_service::{HEADERS_BYTES_MAX, RESULTS_HEADER};
use crate::queue::nats::{Connection, Names};
use crate::queue::{NotPublished, RemoteWriter};
use crate::types::{NodeName, ShardId};

/// How long an owner may take. An owner waits ten seconds for a new board, and a cluster that lost its leader
/// has another one sooner. An owner that died with a request answers nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);
/// An owner that has answered within this time is taken to be there.
const HEARD_WITHIN: Duration = Duration::from_millis(500);
/// How long an owner may take to say that it is there, before the next one is asked.
const PROBE_TIMEOUT: Duration = Duration::from_millis(250);

/// Sends requests to the write service.
pub struct WriteClient {
    connection: Connection,
    subjects: Names,
    owners: Arc<Owners>,
    /// When each owner has answered last.
    heard: Mutex<HashMap<NodeName, Instant>>,
}

impl WriteClient {
    #[must_use]
    pub fn new(connection: &Connection, subjects: &Names, owners: Arc<Owners>) -> Self {
        let (connection, subjects) = (connection.clone(), subjects.clone());
        Self { connection, subjects, owners, heard: Mutex::default() }
    }

    async fn ask(&self, shard: ShardId, jobs: Vec<u8>, only_changed: bool) -> Result<Vec<u8>, NotPublished> {
        // The NATS client would keep a request and send it some time later, when nobody waits any more.
        if !self.connection.is_up() {
            return Err(NotPublished::Unavailable(self.connection.why_down()));
        }
        let jobs = Bytes::from(jobs);
        let live = self.owners.choices(shard).into_iter().filter(|choice| !choice.may_be_behind);
        let live: Vec<NodeName> = live.filter_map(|choice| choice.node).collect();
        for node in &live {
            if live.len() > 1 && !self.is_there(shard, node).await {
                continue;
            }
            let subject = self.subjects.write_node_subject(shard, node);
            match self.send(subject, jobs.clone(), only_changed).await {
                Ok(answer) => {
                    self.heard.lock().insert(node.clone(), Instant::now());
                    return Ok(answer.payload.into());
                }
                // It takes no writes for the shard now, or is of a version that listens with all owners only.
                Err(error) if error.kind() == RequestErrorKind::NoResponders => {}
                Err(error) => {
                    if error.kind() == RequestErrorKind::TimedOut {
                        self.note_silent(node);
                    }
                    return Err(failure(shard, &error));
                }
            }
        }
        // Whichever owner there is, if one has come that is not known yet.
        let answer = self.send(self.subjects.write_subject(shard), jobs, only_changed).await;
        answer.map(|answer| answer.payload.into()).map_err(|error| failure(shard, &error))
    }

    async fn send(&self, subject: String, jobs: Bytes, only_changed: bool) -> Result<Message, RequestError> {
        let mut request = Request::new().payload(jobs).timeout(Some(ANSWER_TIMEOUT));
        if only_changed {
            let mut headers = HeaderMap::new();
            headers.insert(RESULTS_HEADER, "changed");
            request = request.headers(headers);
        }
        self.connection.client.send_request(subject, request).await
    }

    /// Whether an owner has answered lately, or does so at once.
    async fn is_there(&self, shard: ShardId, node: &NodeName) -> bool {
        if self.heard.lock().get(node).is_some_and(|heard| heard.elapsed() < HEARD_WITHIN) {
            return true;
        }
        let probe = Request::new().timeout(Some(PROBE_TIMEOUT));
        let subject = self.subjects.write_node_subject(shard, node);
        match self.connection.client.send_request(subject, probe).await {
            Ok(_) => {
                self.heard.lock().insert(node.clone(), Instant::now());
                true
            }
            Err(error) => {
                if error.kind() == RequestErrorKind::TimedOut {
                    self.note_silent(node);
                }
                false
            }
        }
    }

    /// It is passed over until it is heard of again, for questions too.
    fn note_silent(&self, node: &NodeName) {
        self.heard.lock().remove(node);
        self.owners.note_silent(node);
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

impl RemoteWriter for WriteClient {
    fn bytes_max(&self) -> usize {
        self.connection.client.max_payload().saturating_sub(HEADERS_BYTES_MAX)
    }

    fn write(
        &self,
        shard: ShardId,
        jobs: Vec<u8>,
        only_changed: bool,
    ) -> BoxFuture<'_, Result<Vec<u8>, NotPublished>> {
        self.ask(shard, jobs, only_changed).boxed()
    }
}
