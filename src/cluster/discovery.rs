//! Service discovery: what `nats micro` tools are told of this node and its endpoints, by the protocol of
//! NATS services (ADR-32): `$SRV.PING`, `$SRV.INFO` and `$SRV.STATS`, of all services, of all of one name, or
//! of one process.
//!
//! The NATS client has such services as well. They list an endpoint for ever once it was added, their errors
//! have no body, and what was on its way to an endpoint that is drained is lost to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::Message;
use futures_util::StreamExt as _;
use futures_util::stream::select_all;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::queue::ThisNode;
use crate::queue::nats::{Connection, Names};

/// The name of the service, which all nodes share.
pub const SERVICE: &str = "ranktree";
/// The queue group of every endpoint: of the nodes that listen, one gets each request.
pub const QUEUE_GROUP: &str = "q";
const DESCRIPTION: &str = "Takes jobs for a leaderboard's shard, and answers what came of each.";

/// One endpoint, and what it has done.
pub struct Endpoint {
    name: String,
    pub subject: String,
    /// Endpoints that take no requests at the moment are not listed.
    is_listed: AtomicBool,
    requests: AtomicU64,
    errors: AtomicU64,
    nanos: AtomicU64,
    last_error: Mutex<Option<(u16, &'static str)>>,
}

impl Endpoint {
    pub fn new(name: String, subject: String) -> Self {
        Self {
            name,
            subject,
            is_listed: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            last_error: Mutex::new(None),
        }
    }

    pub fn set_listed(&self, is_listed: bool) {
        self.is_listed.store(is_listed, Ordering::Relaxed);
    }

    /// Notes a request that was answered.
    ///
    /// # Arguments
    /// `error`: the status and the code of a problem.
    pub fn note(&self, took: Duration, error: Option<(u16, &'static str)>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        if let Some(error) = error {
            self.errors.fetch_add(1, Ordering::Relaxed);
            *self.last_error.lock() = Some(error);
        }
    }

    fn info(&self) -> Value {
        json!({ "name": self.name, "subject": self.subject, "queue_group": QUEUE_GROUP, "metadata": {} })
    }

    fn stats(&self) -> Value {
        let requests = self.requests.load(Ordering::Relaxed);
        let nanos = self.nanos.load(Ordering::Relaxed);
        let last_error = *self.last_error.lock();
        json!({
            "name": self.name, "subject": self.subject, "queue_group": QUEUE_GROUP,
            "num_requests": requests,
            "num_errors": self.errors.load(Ordering::Relaxed),
            "last_error": last_error.map(|(status, code)| format!("{status}:{code}")).unwrap_or_default(),
            "processing_time": nanos,
            "average_processing_time": nanos.checked_div(requests).unwrap_or_default(),
        })
    }
}

/// What tools are told.
pub struct Discovery {
    connection: Connection,
    subjects: Names,
    /// Tells this process from others.
    id: String,
    node: ThisNode,
    started: String,
    endpoints: Vec<Arc<Endpoint>>,
}

impl Discovery {
    pub fn new(
        connection: Connection,
        subjects: Names,
        node: ThisNode,
        endpoints: Vec<Arc<Endpoint>>,
    ) -> Self {
        let id = connection.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned();
        Self { connection, subjects, id, node, started: jiff::Timestamp::now().to_string(), endpoints }
    }

    /// Answers tools, for as long as the node takes requests.
    pub async fn run(&self) {
        let client = &self.connection.client;
        let id = &self.id;
        let mut subscriptions = Vec::new();
        for about in ["$SRV.*".to_owned(), format!("$SRV.*.{SERVICE}"), format!("$SRV.*.{SERVICE}.{id}")] {
            match client.subscribe(about).await {
                Ok(subscription) => subscriptions.push(subscription),
                Err(error) => tracing::warn!(%error, "the node cannot be listed by `nats micro`"),
            }
        }
        let mut asked = select_all(subscriptions);
        while let Some(Message { subject, reply: Some(reply), .. }) = asked.next().await {
            let verb = subject.split('.').nth(1).unwrap_or_default();
            if let (Some(answer), true) = (self.answer(verb), self.subjects.may_be_inbox(&reply)) {
                // Fails only if the connection is closed for good.
                let _ = client.publish(reply, answer.to_string().into()).await;
            }
        }
    }

    fn answer(&self, verb: &str) -> Option<Value> {
        let (kind, more) = match verb {
            "PING" => ("ping", None),
            "INFO" => ("info", Some(("description", json!(DESCRIPTION), self.listed(Endpoint::info)))),
            "STATS" => ("stats", Some(("started", json!(self.started), self.listed(Endpoint::stats)))),
            _ => return None,
        };
        let mut answer = json!({
            "type": format!("io.nats.micro.v1.{kind}_response"), "name": SERVICE, "id": self.id,
            "version": ThisNode::VERSION,
            "metadata": { "node": self.node.name.as_str(), "address": self.node.address },
        });
        if let (Some((name, value, endpoints)), Some(members)) = (more, answer.as_object_mut()) {
            members.insert(name.to_owned(), value);
            members.insert("endpoints".to_owned(), endpoints);
        }
        Some(answer)
    }

    fn listed(&self, tell: impl Fn(&Endpoint) -> Value) -> Value {
        let listed = self.endpoints.iter().filter(|endpoint| endpoint.is_listed.load(Ordering::Relaxed));
        listed.map(|endpoint| tell(endpoint)).collect()
    }
}
