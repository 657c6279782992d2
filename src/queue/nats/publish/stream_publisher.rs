//! The publishing end of a shard's stream, for HTTP writes and for commands.

use std::future::IntoFuture as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{self, ErrorCode};
use tokio::sync::{oneshot, watch};

use crate::job::Job;
use crate::metrics::figure;
use crate::queue::error::NotPublished;
use crate::queue::message_order::MessageOrder;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::peers::owners::AppliedByOthers;
use crate::queue::nats::publish::batcher::{self, InFlight, PublishBatcher, PublishRequest, ReplyTo};
use crate::queue::nats::publish::pending_replies::{PendingReplies, PendingReply};
use crate::queue::nats::{message, trace_headers};
use crate::traces::TraceContext;
use crate::types::{NodeName, Sequence, count};
use crate::writer::{CommitFailed, Health, MessageOutcome, Outcome, OutcomeDetail, Payload};

/// The most bytes that the headers of a message take, with names of streams as long as they may be.
const HEADERS_BYTES_MAX: usize = 512;
/// A message that was not acknowledged for so long holds up the next ones no longer. Its connection may be
/// lost, and another one there already.
const ACK_GRACE: Duration = Duration::from_millis(100);

/// Publishes to one shard's stream; clone it freely.
#[derive(Clone)]
pub struct StreamPublisher {
    pub(in crate::queue::nats) inner: Arc<Inner>,
}

/// Where a shard's messages go, and where replies to them are expected.
pub struct Inner {
    pub connection: Connection,
    pub jobs_subject: String,
    /// Only nodes may publish to this subject.
    pub control_subject: String,
    pub stream: String,
    /// `false`: other nodes apply the shard's messages, and this one does not.
    pub is_own: bool,
    pub applied_by_others: AppliedByOthers,
    pub pending_replies: Arc<PendingReplies>,
    pub batcher: Arc<PublishBatcher>,
    pub health: Arc<Health>,
    pub closing: watch::Sender<bool>,
    /// How many requests shared a message.
    pub message_requests: metrics::Histogram,
}

impl StreamPublisher {
    /// Publishes jobs of this shard, in a message that others may share, and returns once it is stored.
    ///
    /// # Arguments
    /// `order`: is notified once the message is stored or refused. The caller has waited for the messages
    /// before it.
    ///
    /// # Errors
    /// When it was not stored, or it is unknown whether it was.
    pub async fn store_jobs(&self, jobs: &[Job], order: MessageOrder) -> Result<Sequence, NotPublished> {
        let (answer, answered) = oneshot::channel();
        self.push(PublishRequest::new(jobs, ReplyTo::Stored(answer), order))?;
        answered.await.map_err(|_| lost())?
    }

    /// Publishes jobs of this shard, in a message that others may share, and waits until this node has
    /// applied it.
    ///
    /// # Arguments
    /// - `order`: as for [`StreamPublisher::store_jobs`].
    /// - `detail`: what the client wants to be told of the jobs. It may be told more.
    ///
    /// # Errors
    /// As [`StreamPublisher::store_jobs`], or when this node cannot apply it.
    pub async fn publish_jobs(
        &self,
        jobs: &[Job],
        order: MessageOrder,
        detail: OutcomeDetail,
    ) -> Result<MessageOutcome, NotPublished> {
        let (answer, answered) = oneshot::channel();
        self.push(PublishRequest::new(jobs, ReplyTo::Applied(answer, detail), order))?;
        answered.await.map_err(|_| lost())?
    }

    /// Queues a request, unless it would certainly be refused. A caller that sends several requests learns
    /// that before it sends the next one.
    fn push(&self, request: PublishRequest) -> Result<(), NotPublished> {
        let is_too_large = request.bytes() + HEADERS_BYTES_MAX > self.inner.connection.client.max_payload();
        let may_go = self.check_queue().and_then(|()| self.check_owners());
        let may_go = may_go.and(if is_too_large { Err(too_large()) } else { Ok(()) });
        if let Err(why) = may_go {
            batcher::refuse(vec![request], &why);
            return Err(why);
        }
        self.inner.batcher.push(request);
        self.send_batches();
        Ok(())
    }

    /// Sends what may be sent now, on a task of its own: a message has the writes of several clients, and any
    /// of them may disconnect.
    fn send_batches(&self) {
        let payload_max = self.inner.connection.client.max_payload();
        if let Some(mut lease) = self.inner.batcher.lease(payload_max) {
            let publisher = self.clone();
            tokio::spawn(async move {
                lease.gather().await;
                while let Some((group, in_flight)) = lease.next() {
                    publisher.send_batch(group, in_flight).await;
                }
            });
        }
    }

    /// Sends one message with all these requests. Their replies come later.
    async fn send_batch(&self, group: Vec<PublishRequest>, in_flight: InFlight) {
        let wanted = batcher::wanted_outcome(&group);
        let pending = wanted.map(|detail| self.inner.pending_replies.expect_reply(detail));
        let id = pending.as_ref().map(|(pending, _)| pending.id());
        let message = self.message(batcher::body(&group), id.as_deref(), &batcher::callers(&group));
        self.inner.message_requests.record(figure(count(group.len())));
        let applied = self.applied();
        match self.send(&self.inner.jobs_subject, message).await {
            Ok(sent) => drop(tokio::spawn(self.clone().reply(group, pending, sent, applied, in_flight))),
            Err(why) => batcher::refuse(group, &why),
        }
    }

    /// What of the stream is known to be applied, on this node or another one.
    fn applied(&self) -> AppliedBefore {
        let own = self.inner.health.get(|health| health.applied_sequence);
        match self.inner.applied_by_others.more_than(own) {
            Some((node, sequence)) => AppliedBefore { sequence, node: Some(node) },
            None => AppliedBefore { sequence: own, node: None },
        }
    }

    /// Replies to the requests that wait until their message is stored, and then to those that wait until it
    /// is applied.
    ///
    /// # Arguments
    /// `applied`: what was applied before the message was sent.
    async fn reply(
        self,
        mut group: Vec<PublishRequest>,
        pending: Option<(PendingReply, oneshot::Receiver<Outcome>)>,
        sent: PublishAckFuture,
        applied: AppliedBefore,
        in_flight: InFlight,
    ) {
        let began = Instant::now();
        let mut stored = pin!(sent.into_future());
        let soon = tokio::time::timeout(ACK_GRACE, stored.as_mut()).await;
        match &soon {
            Ok(_) => drop(in_flight),
            Err(_) => in_flight.end_late(),
        }
        self.send_batches();
        let stored = match soon {
            Ok(stored) => stored,
            Err(_) => stored.await,
        };
        self.inner.connection.note_publish(&stored, began).await;
        let stored = sequence(stored, &self.inner.health);
        match stored.and_then(|sequence| applied.check(sequence, &self.inner.stream)) {
            Ok(sequence) => batcher::reply_stored(&mut group, sequence),
            Err(why) => return batcher::refuse(group, &why),
        }
        let Some((_pending, applied)) = pending else { return };
        tokio::select! {
            outcome = applied => {
                let applied = outcome.map_err(|_| lost());
                batcher::reply_applied(group, applied.and_then(|applied| applied.map_err(will_be_applied)));
            }
            // A shard that is halted never replies.
            () = batcher::all_disconnected(&mut group) => {}
        }
    }

    /// Publishes a board's definition or drop, and returns once it is stored.
    pub async fn store_command(&self, payload: &Payload) -> Result<Sequence, NotPublished> {
        self.send_command(payload).await?.stored().await
    }

    /// Publishes a command, and waits until this node has applied it.
    pub async fn publish_command(&self, payload: &Payload) -> Result<MessageOutcome, NotPublished> {
        let (pending, applied) = self.inner.pending_replies.expect_reply(OutcomeDetail::Rankings);
        let message = command_message(&self.inner.stream, payload)?.message_id(pending.id());
        let sent = self.send(&self.inner.control_subject, message).await?;
        sequence(sent.await, &self.inner.health)?;
        applied.await.map_err(|_| lost())?.map_err(will_be_applied)
    }

    /// Sends a board's definition or drop, without waiting until it is stored.
    pub async fn send_command(&self, payload: &Payload) -> Result<SentCommand, NotPublished> {
        let message = command_message(&self.inner.stream, payload)?;
        let sent = self.send(&self.inner.control_subject, message).await?;
        Ok(SentCommand { sent, health: Arc::clone(&self.inner.health) })
    }

    /// Ends the reading end on this node. The stream keeps its messages.
    pub fn close(&self) {
        self.inner.closing.send_replace(true);
    }

    /// # Arguments
    /// `callers`: the spans that have caused it. They are left out if the message would be too large.
    fn message(&self, body: Vec<u8>, id: Option<&str>, callers: &[TraceContext]) -> PublishMessage {
        let mut message = PublishMessage::build();
        if let Some(headers) = trace_headers::of_message(callers) {
            let room = self.inner.connection.client.max_payload().saturating_sub(body.len());
            if trace_headers::bytes(&headers) + HEADERS_BYTES_MAX <= room {
                message = message.headers(headers);
            }
        }
        // The stream's name guards against another stream that has taken the subject.
        let message = message.expected_stream(&self.inner.stream).payload(body.into());
        match id {
            Some(id) => message.message_id(id),
            None => message,
        }
    }

    async fn send(&self, subject: &str, message: PublishMessage) -> Result<PublishAckFuture, NotPublished> {
        self.check_queue()?;
        let sent = self.inner.connection.context.send_publish(subject.to_owned(), message).await;
        sent.map_err(|error| refused(&error, &self.inner.health))
    }

    /// Whether some node may apply jobs some time. Nobody reads the streams of a mistyped prefix, or of a
    /// shard that every `--own` leaves out.
    fn check_owners(&self) -> Result<(), NotPublished> {
        if self.inner.is_own || !self.inner.applied_by_others.nobody_owns() {
            return Ok(());
        }
        Err(NotPublished::Unavailable(format!(
            "under this --prefix no node has ever owned it, so nobody would apply what its stream {} takes; \
             start a node that owns it",
            self.inner.stream
        )))
    }

    /// Whether messages may go into the stream.
    ///
    /// Without a connection the NATS client would keep a message and send it some time later, when its client
    /// no longer waits.
    fn check_queue(&self) -> Result<(), NotPublished> {
        if !self.inner.connection.is_up() {
            return Err(NotPublished::Unavailable("NATS cannot be reached".to_owned()));
        }
        match self
            .inner
            .health
            .get(|health| health.queue_room.clone())
            .as_ref()
            .and_then(|room| room.fault.as_ref())
        {
            Some(fault) if fault.refuses_writes => Err(NotPublished::Unavailable(fault.what.clone())),
            Some(_) | None => Ok(()),
        }
    }
}

fn command_message(stream: &str, payload: &Payload) -> Result<PublishMessage, NotPublished> {
    let Some((name, body)) = message::encode(payload) else {
        return Err(NotPublished::Unavailable(
            "only commands can be sent this way, not jobs, which is a bug".to_owned(),
        ));
    };
    let message = PublishMessage::build()
        .header(message::COMMAND_HEADER, name)
        .header(message::FORMAT_HEADER, message::command_format(payload));
    Ok(message.expected_stream(stream).payload(body.into()))
}

/// A command that was sent.
pub struct SentCommand {
    sent: PublishAckFuture,
    health: Arc<Health>,
}

impl SentCommand {
    /// Waits until the command is stored.
    pub async fn stored(self) -> Result<Sequence, NotPublished> {
        sequence(self.sent.await, &self.health)
    }
}

/// The sequence under which a message was stored.
fn sequence(stored: Result<PublishAck, PublishError>, health: &Health) -> Result<Sequence, NotPublished> {
    let stored = stored.map_err(|error| refused(&error, health))?;
    if stored.duplicate {
        // Ids begin with 22 random letters of this process. Another publisher must have read and used one.
        return Err(NotPublished::Unavailable(
            "the server dropped the message, because another publisher has used its id; send it again"
                .to_owned(),
        ));
    }
    Ok(Sequence(stored.sequence))
}

/// What was applied of a stream before a message was sent to it.
struct AppliedBefore {
    sequence: u64,
    /// The node that says so; `None`: this one.
    node: Option<NodeName>,
}

impl AppliedBefore {
    /// Refuses a sequence that stands for another message already: a token with it would be satisfied before
    /// this message is applied.
    fn check(&self, stored: Sequence, stream: &str) -> Result<Sequence, NotPublished> {
        if stored.0 > self.sequence {
            return Ok(stored);
        }
        let node = self.node.as_ref().map_or("this node".to_owned(), |node| format!("the node {node}"));
        Err(NotPublished::Unknown(format!(
            "the stream {stream} has stored the message as {stored}, and {node} has applied its messages up to \
             {} already: the stream was created again, or lost its end, so it is not known whether this \
             write is applied; see the reason of the shard in /v1/status",
            self.sequence
        )))
    }
}

fn too_large() -> NotPublished {
    NotPublished::TooLarge(
        "the jobs take more bytes than the NATS server allows in a message; send fewer at a time".to_owned(),
    )
}

/// A message whose batch failed comes again from the stream, so the reply must not say that it was not
/// applied.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes its argument by value")]
fn will_be_applied(failed: CommitFailed) -> NotPublished {
    NotPublished::Unknown(format!(
        "the write is stored in the stream, and is applied as soon as this node can commit again; {failed}"
    ))
}

/// Why a stream is full, as retention saw it last.
fn full(health: &Health) -> String {
    health.note_queue_full();
    match health.get(|health| health.queue_room.clone()) {
        Some(room) => format!("its stream is full; try again in a moment: {}", room.reason),
        None => {
            "its stream is full, because the service is behind or does not purge it; try again in a moment"
                .to_owned()
        }
    }
}

fn lost() -> NotPublished {
    NotPublished::Unknown(
        "this node is shutting down, and did not learn whether the write was applied".to_owned(),
    )
}

fn refused(error: &PublishError, health: &Health) -> NotPublished {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<jetstream::Error>());
    match (error.kind(), cause.map(jetstream::Error::error_code)) {
        (_, Some(ErrorCode::STREAM_STORE_FAILED)) => NotPublished::Full(full(health)),
        (PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe, _) => {
            NotPublished::Unknown("NATS did not answer whether it stored the message".to_owned())
        }
        (PublishErrorKind::MaxAckPending, _) => NotPublished::Overloaded,
        (PublishErrorKind::MaxPayloadExceeded, _) => too_large(),
        (PublishErrorKind::StreamNotFound, _) => {
            NotPublished::Unavailable("no stream has the subject of its messages".to_owned())
        }
        _ => NotPublished::Unavailable(cause.map_or_else(|| error.to_string(), ToString::to_string)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_that_was_applied_before_is_no_token() {
        let node = NodeName::new("b").expect("a good name");
        for node in [None, Some(node)] {
            let applied = AppliedBefore { sequence: 7, node };
            assert_eq!(applied.check(Sequence(8), "S"), Ok(Sequence(8)));
            for stored in [1, 7] {
                let refused = applied.check(Sequence(stored), "S");
                assert!(matches!(refused, Err(NotPublished::Unknown(_))), "{refused:?}");
            }
        }
    }
}
