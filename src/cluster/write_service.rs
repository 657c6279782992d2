//! The write service: `{prefix}.write.{shard}` takes a job or an array of jobs, and answers what came of
//! each.
//!
//! Knows: on which subjects it listens and when, how many requests are in progress, and how an answer gets
//! back. Must not know: what a job is. The owners of a shard share a queue group, so each request goes to one
//! of them. A node whose shard is not live leaves the group, so that another owner gets the requests. Other
//! nodes choose the owner themselves: each listens on a subject of its own as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{HeaderMap, Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::cluster::discovery::{Discovery, Endpoint, QUEUE_GROUP};
use crate::metrics as names;
use crate::queue::ThisNode;
use crate::queue::nats::{Connection, Names, trace_headers};
use crate::traces::{self, Kind, Span};
use crate::types::ShardId;
use crate::writer::Health;

/// Requests in progress for each shard. More of them would only wait longer: the writer is behind then.
const IN_PROGRESS_MAX: usize = 1_024;
const IN_PROGRESS_PERMITS: u32 = 1_024;
/// How often a shard's state is looked at.
const STATE_INTERVAL: Duration = Duration::from_millis(50);
/// A subscription counts as known to the server after this time, although nothing has said so: the server may
/// forbid the message that would, or have lost it.
const GREETING_TIMEOUT: Duration = Duration::from_secs(1);
/// How long requests may arrive that were on their way when this node left the queue group.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long requests in progress may take at a shutdown. Their jobs are stored by then, or will be refused.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a message beside its body: the headers of an error.
pub const HEADERS_BYTES_MAX: usize = 512;

/// Tells how detailed the answer is: `changed` leaves entries out.
pub const RESULTS_HEADER: &str = "Ranktree-Results";
/// Publishers of streams set it, so that the server drops repetitions.
const MESSAGE_ID_HEADER: &str = "Nats-Msg-Id";
/// The headers of an error, as NATS services have them.
const ERROR_HEADER: &str = "Nats-Service-Error";
const ERROR_CODE_HEADER: &str = "Nats-Service-Error-Code";

/// A request for one shard.
pub struct WriteRequest {
    pub shard: ShardId,
    /// One job, or an array of them, as JSON.
    pub jobs: Bytes,
    /// How detailed the answer is to be, if the request says.
    pub results: Option<String>,
    /// The request's message id, by which repetitions of it are recognised.
    pub message_id: Option<String>,
    /// The most bytes that the answer may have.
    pub answer_bytes_max: usize,
}

/// The answer to a request: JSON.
pub struct WriteAnswer {
    pub body: Vec<u8>,
    /// How many jobs were taken.
    pub jobs: u64,
    /// If the body is a problem: its status and code.
    pub refusal: Option<Refusal>,
    /// What the answer takes of what all requests share. Dropped once it is sent.
    pub held: Option<Box<dyn Send>>,
}

/// A problem's status and code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub code: &'static str,
}

/// Answers requests.
pub trait WriteHandler: Send + Sync {
    /// Has the jobs of a request applied.
    fn write(&self, request: WriteRequest) -> BoxFuture<'_, WriteAnswer>;

    /// The answer to a request that is not taken, because too many are in progress.
    fn overloaded(&self) -> WriteAnswer;
}

/// A shard that this node owns.
pub struct ServedShard {
    pub id: ShardId,
    pub health: Arc<Health>,
}

/// The service of a node, while it runs.
pub struct WriteService {
    stopping: watch::Sender<bool>,
    listening: Mutex<JoinSet<()>>,
    connection: Connection,
    in_progress: Vec<Arc<Semaphore>>,
}

impl WriteService {
    /// Begins to take requests for each of the shards that is live.
    pub fn start(
        connection: &Connection,
        subjects: &Names,
        node: ThisNode,
        shards: Vec<ServedShard>,
        handler: &Arc<dyn WriteHandler>,
    ) -> Self {
        let (stopping, _) = watch::channel(false);
        let (mut listening, mut in_progress, mut endpoints) = (JoinSet::new(), Vec::new(), Vec::new());
        for shard in shards {
            shard.health.set(|health| health.is_unserved = true);
            let shard_id = shard.id;
            let endpoint =
                Arc::new(Endpoint::new(format!("write-{}", shard.id), subjects.write_subject(shard.id)));
            let permits = Arc::new(Semaphore::new(IN_PROGRESS_MAX));
            in_progress.push(Arc::clone(&permits));
            endpoints.push(Arc::clone(&endpoint));
            let served = ShardEndpoint {
                metrics: ShardMetrics::new(shard.id),
                shard,
                connection: connection.clone(),
                own_subject: subjects.write_node_subject(shard_id, &node.name),
                subjects: subjects.clone(),
                endpoint,
                in_progress: permits,
                handler: Arc::clone(handler),
            };
            listening.spawn(Arc::new(served).serve(stopping.subscribe()));
        }
        let discovery = Discovery::new(connection.clone(), subjects.clone(), node, endpoints);
        let mut stopped = stopping.subscribe();
        listening.spawn(async move {
            tokio::select! {
                () = discovery.run() => {}
                () = stop(&mut stopped) => {}
            }
        });
        Self { stopping, listening: Mutex::new(listening), connection: connection.clone(), in_progress }
    }

    /// Takes no more requests, from now on.
    pub fn begin_stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Takes no more requests, and waits until those in progress are answered.
    pub async fn stop(&self) {
        self.begin_stop();
        let listening = std::mem::take(&mut *self.listening.lock());
        let answered = async {
            listening.join_all().await;
            for permits in &self.in_progress {
                // The semaphores are never closed.
                let _ = permits.acquire_many(IN_PROGRESS_PERMITS).await;
            }
            // Without a connection it would wait for one, and nobody waits for the answers any more.
            if self.connection.is_up() {
                let _ = tokio::time::timeout(DRAIN_TIMEOUT, self.connection.client.flush()).await;
            }
        };
        if tokio::time::timeout(STOP_TIMEOUT, answered).await.is_err() {
            tracing::warn!("some requests of the write service were not answered before the shutdown");
        }
    }
}

/// Waits until the service stops.
async fn stop(stopping: &mut watch::Receiver<bool>) {
    // If the sender is gone, so is the service.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// One shard's endpoint.
struct ShardEndpoint {
    shard: ServedShard,
    connection: Connection,
    endpoint: Arc<Endpoint>,
    in_progress: Arc<Semaphore>,
    handler: Arc<dyn WriteHandler>,
    metrics: ShardMetrics,
    subjects: Names,
    /// Where other nodes have this one write.
    own_subject: String,
}

impl ShardEndpoint {
    async fn serve(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut look = tokio::time::interval(STATE_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while !self.shard.health.is_live() {
                tokio::select! {
                    _ = look.tick() => {}
                    () = stop(&mut stopping) => return,
                }
            }
            let client = &self.connection.client;
            let subscribed = client.queue_subscribe(self.endpoint.subject.clone(), QUEUE_GROUP.to_owned());
            let (Ok(mut requests), Ok(mut own)) =
                (subscribed.await, client.subscribe(self.own_subject.clone()).await)
            else {
                // The connection is closed for good.
                return;
            };
            self.endpoint.set_listed(true);
            let subscribed = Instant::now();
            self.greet().await;
            let is_stopping = loop {
                tokio::select! {
                    request = requests.next() => match request {
                        Some(request) => self.take(request).await,
                        None => return,
                    },
                    request = own.next() => match request {
                        Some(request) if self.is_greeting(&request) => {
                            self.shard.health.set(|health| health.is_unserved = false);
                        }
                        Some(request) => self.take_own(request).await,
                        None => return,
                    },
                    _ = look.tick() => {
                        if !self.shard.health.is_live() {
                            break false;
                        }
                        if !self.shard.health.takes_writes() {
                            if subscribed.elapsed() < GREETING_TIMEOUT {
                                self.greet().await;
                            } else {
                                self.shard.health.set(|health| health.is_unserved = false);
                            }
                        }
                    }
                    () = stop(&mut stopping) => break true,
                }
            };
            self.endpoint.set_listed(false);
            self.shard.health.set(|health| health.is_unserved = true);
            tokio::join!(self.leave(requests), self.leave(own));
            if is_stopping {
                return;
            }
        }
    }

    /// Sends a message to the node's own subject. Once it is back, the server knows both subscriptions: it
    /// reads what a connection sends in order.
    async fn greet(&self) {
        // It fails only if the connection is closed for good.
        let _ = self.connection.client.publish(self.own_subject.clone(), Bytes::new()).await;
    }

    fn is_greeting(&self, request: &Message) -> bool {
        request.reply.is_none() && request.payload.is_empty() && *request.subject == *self.own_subject
    }

    /// Leaves the queue group, and takes the requests that were on their way.
    async fn leave(self: &Arc<Self>, mut requests: Subscriber) {
        if requests.drain().await.is_err() {
            return;
        }
        let rest = async {
            while let Some(request) = requests.next().await {
                self.take_own(request).await;
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
    }

    /// Takes a request of another node, which may also ask whether this node is there: without jobs.
    async fn take_own(self: &Arc<Self>, request: Message) {
        match request.reply.as_ref().filter(|reply| self.subjects.may_be_inbox(reply)) {
            Some(reply) if request.payload.is_empty() && *request.subject == *self.own_subject => {
                // It fails only if the connection is closed for good.
                let _ = self.connection.client.publish(reply.clone(), Bytes::new()).await;
            }
            _ => self.take(request).await,
        }
    }

    /// Begins to answer a request, on a task of its own.
    async fn take(self: &Arc<Self>, request: Message) {
        let began = Instant::now();
        let Message { reply, payload, headers, .. } = request;
        let Ok(permit) = Arc::clone(&self.in_progress).try_acquire_owned() else {
            // Answered before the next request is looked at, so that refusals do not pile up.
            return self.answer(reply, self.handler.overloaded(), began).await;
        };
        let span = self.span(headers.as_ref());
        let header = |name| headers.as_ref().and_then(|headers| headers.get(name));
        let request = WriteRequest {
            shard: self.shard.id,
            jobs: payload,
            results: header(RESULTS_HEADER).map(|value| value.as_str().to_owned()),
            message_id: header(MESSAGE_ID_HEADER).map(|value| value.as_str().to_owned()),
            answer_bytes_max: self.connection.client.max_payload().saturating_sub(HEADERS_BYTES_MAX),
        };
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let answer = traces::within(span.as_ref(), this.handler.write(request)).await;
            end_span(span, answer.refusal);
            this.answer(reply, answer, began).await;
            drop(permit);
        });
    }

    /// The span of a request, if that is sampled.
    fn span(&self, headers: Option<&HeaderMap>) -> Option<Span> {
        let mut span = traces::begin(Kind::Server, "write", || trace_headers::read_one(headers))?;
        span.attribute("ranktree.shard", u64::from(self.shard.id.0));
        Some(span)
    }

    async fn answer(&self, reply: Option<Subject>, answer: WriteAnswer, began: Instant) {
        let WriteAnswer { body, jobs, refusal, held: _held } = answer;
        self.metrics.note(jobs, refusal, began.elapsed());
        self.endpoint.note(began.elapsed(), refusal.map(|Refusal { status, code }| (status, code)));
        let Some(reply) = reply.filter(|reply| self.subjects.may_be_inbox(reply)) else { return };
        let client = &self.connection.client;
        let sent = match refusal {
            None => client.publish(reply, body.into()).await,
            Some(Refusal { status, code }) => {
                let mut headers = HeaderMap::new();
                headers.insert(ERROR_HEADER, code);
                headers.insert(ERROR_CODE_HEADER, status.to_string());
                client.publish_with_headers(reply, headers, body.into()).await
            }
        };
        if let Err(error) = sent {
            tracing::debug!(shard = %self.shard.id, %error, "an answer of the write service was not sent");
        }
    }
}

/// Ends the span of a request that is about to be answered.
fn end_span(span: Option<Span>, refusal: Option<Refusal>) {
    if let (Some(mut span), Some(Refusal { status, code })) = (span, refusal) {
        span.attribute("ranktree.status", u64::from(status));
        span.fail(code);
    }
}

/// One shard's figures.
struct ShardMetrics {
    taken: metrics::Counter,
    refused: metrics::Counter,
    failed: metrics::Counter,
    jobs: metrics::Counter,
    seconds: metrics::Histogram,
}

impl ShardMetrics {
    fn new(shard: ShardId) -> Self {
        let label = shard.to_string();
        let requests = |class: &'static str| {
            let counter =
                metrics::counter!(names::WRITE_REQUESTS_TOTAL, "shard" => label.clone(), "class" => class);
            counter.increment(0);
            counter
        };
        Self {
            taken: requests("2xx"),
            refused: requests("4xx"),
            failed: requests("5xx"),
            jobs: metrics::counter!(names::WRITE_JOBS_TOTAL, "shard" => label.clone()),
            seconds: metrics::histogram!(names::WRITE_SECONDS, "shard" => label.clone()),
        }
    }

    fn note(&self, jobs: u64, refusal: Option<Refusal>, took: Duration) {
        match refusal {
            None => self.taken.increment(1),
            Some(Refusal { status: ..500, .. }) => self.refused.increment(1),
            Some(_) => self.failed.increment(1),
        }
        self.jobs.increment(jobs);
        self.seconds.record(took);
    }
}
