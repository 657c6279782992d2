//! The publishing end of a shard's stream, for writes over HTTP.

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
use crate::queue::error::NotPublished;
use crate::queue::message_order::MessageOrder;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::message;
use crate::queue::nats::publish::batcher::{self, Answer, Groups, Request, UnderWay};
use crate::queue::nats::publish::pending_replies::Waiters;
use crate::types::Sequence;
use crate::writer::{CommitFailed, Health, MessageOutcome, Outcome, Payload};

/// What the headers of a message take at most, names of streams being as long as they may be.
const HEADERS_BYTES_MAX: usize = 512;
/// A message whose server says nothing for so long keeps the next ones waiting no longer: its connection may be lost, and
/// another one there already.
const STORED_SOON: Duration = Duration::from_millis(100);

/// Publishes to one shard's stream; clone it freely.
#[derive(Clone)]
pub struct StreamPublisher {
    pub(in crate::queue::nats) ends: Arc<Ends>,
}

/// Where a shard's messages go, and where what comes of them is told.
pub struct Ends {
    pub connection: Connection,
    pub jobs_subject: String,
    /// What only nodes may publish to.
    pub control_subject: String,
    pub stream: String,
    pub waiters: Arc<Waiters>,
    pub groups: Arc<Groups>,
    pub health: Arc<Health>,
    pub closing: watch::Sender<bool>,
}

impl StreamPublisher {
    /// Publishes jobs of this shard, in a message that others may share, and returns once it is stored.
    ///
    /// # Arguments
    /// `order`: told once the message is stored or refused. Those before it were waited for.
    ///
    /// # Errors
    /// When it was not stored, or nobody knows whether it was.
    pub async fn store_jobs(&self, jobs: &[Job], order: MessageOrder) -> Result<Sequence, NotPublished> {
        let (answer, answered) = oneshot::channel();
        self.push(Request::new(jobs, Answer::Stored(answer), order))?;
        answered.await.map_err(|_| lost())?
    }

    /// Publishes jobs of this shard, in a message that others may share, and waits until this node has applied it.
    ///
    /// # Errors
    /// As [`StreamPublisher::store_jobs`], or when this node cannot apply it.
    pub async fn publish_jobs(
        &self,
        jobs: &[Job],
        order: MessageOrder,
    ) -> Result<MessageOutcome, NotPublished> {
        let (answer, answered) = oneshot::channel();
        self.push(Request::new(jobs, Answer::Applied(answer), order))?;
        answered.await.map_err(|_| lost())?
    }

    /// Queues a request unless it is known that it would be refused: who sends several is told before the next one.
    fn push(&self, request: Request) -> Result<(), NotPublished> {
        let is_too_large = request.bytes() + HEADERS_BYTES_MAX > self.ends.connection.client.max_payload();
        let may_go = self.check_connection().and(if is_too_large { Err(too_large()) } else { Ok(()) });
        if let Err(why) = may_go {
            batcher::refuse(vec![request], &why);
            return Err(why);
        }
        self.ends.groups.push(request);
        self.send_on();
        Ok(())
    }

    /// Sends what may be sent now. Apart from any request: others wait for it too, and whoever made it may leave.
    fn send_on(&self) {
        let payload_max = self.ends.connection.client.max_payload();
        if let Some(mut sending) = self.ends.groups.sending(payload_max) {
            let publisher = self.clone();
            tokio::spawn(async move {
                while let Some((group, under_way)) = sending.next() {
                    publisher.send_group(group, under_way).await;
                }
            });
        }
    }

    /// Sends a message of all these; what comes of it is told later.
    async fn send_group(&self, group: Vec<Request>, under_way: UnderWay) {
        let waiting = batcher::want_outcome(&group).then(|| Waiting::new(&self.ends.waiters));
        let id = waiting.as_ref().map(|(waiting, _)| waiting.id());
        let message = self.message(batcher::body(&group), id.as_deref());
        match self.send(&self.ends.jobs_subject, message).await {
            Ok(sent) => drop(tokio::spawn(self.clone().tell(group, waiting, sent, under_way))),
            Err(why) => batcher::refuse(group, &why),
        }
    }

    /// Tells who waits for a message to be stored, and then who waits for it to be applied.
    async fn tell(
        self,
        mut group: Vec<Request>,
        waiting: Option<(Waiting, Applied)>,
        sent: PublishAckFuture,
        under_way: UnderWay,
    ) {
        let began = Instant::now();
        let mut stored = pin!(sent.into_future());
        let soon = tokio::time::timeout(STORED_SOON, stored.as_mut()).await;
        drop(under_way);
        self.send_on();
        let stored = match soon {
            Ok(stored) => stored,
            Err(_) => stored.await,
        };
        self.ends.connection.note_publish(&stored, began).await;
        match sequence(stored, &self.ends.health) {
            Ok(sequence) => batcher::tell_stored(&mut group, sequence),
            Err(why) => return batcher::refuse(group, &why),
        }
        let Some((_waiting, applied)) = waiting else { return };
        tokio::select! {
            outcome = applied => {
                let outcome = outcome.map_err(|_| lost()).and_then(|outcome| outcome.map_err(will_be_applied));
                batcher::tell_applied(group, outcome);
            }
            // A shard that is halted tells nothing.
            () = batcher::all_leave(&mut group) => {}
        }
    }

    /// Publishes a board's definition or drop, and returns once it is stored.
    ///
    /// # Errors
    /// As [`StreamPublisher::store_jobs`].
    pub async fn store_command(&self, payload: &Payload) -> Result<Sequence, NotPublished> {
        self.send_command(payload).await?.stored().await
    }

    /// Publishes a command, and waits until this node has applied it.
    ///
    /// # Errors
    /// As [`StreamPublisher::publish_jobs`].
    pub async fn publish_command(&self, payload: &Payload) -> Result<MessageOutcome, NotPublished> {
        let (waiting, applied) = Waiting::new(&self.ends.waiters);
        let message = command_message(&self.ends.stream, payload)?.message_id(waiting.id());
        let sent = self.send(&self.ends.control_subject, message).await?;
        sequence(sent.await, &self.ends.health)?;
        applied.await.map_err(|_| lost())?.map_err(will_be_applied)
    }

    /// Sends a board's definition or drop, without waiting until it is stored.
    ///
    /// # Errors
    /// As [`StreamPublisher::store_jobs`].
    pub async fn send_command(&self, payload: &Payload) -> Result<SentCommand, NotPublished> {
        let message = command_message(&self.ends.stream, payload)?;
        let sent = self.send(&self.ends.control_subject, message).await?;
        Ok(SentCommand { sent, health: Arc::clone(&self.ends.health) })
    }

    /// Ends the queue's reading end on this node; what is stored stays.
    pub fn close(&self) {
        self.ends.closing.send_replace(true);
    }

    fn message(&self, body: Vec<u8>, id: Option<&str>) -> PublishMessage {
        // The stream's name guards against a subject that some other stream has taken.
        let message = PublishMessage::build().expected_stream(&self.ends.stream).payload(body.into());
        match id {
            Some(id) => message.message_id(id),
            None => message,
        }
    }

    async fn send(&self, subject: &str, message: PublishMessage) -> Result<PublishAckFuture, NotPublished> {
        self.check_connection()?;
        let sent = self.ends.connection.context.send_publish(subject.to_owned(), message).await;
        sent.map_err(|error| refused(&error, &self.ends.health))
    }

    /// Without a connection the client would keep a message and send it at some later time, when nobody waits for it any
    /// more.
    fn check_connection(&self) -> Result<(), NotPublished> {
        if self.ends.connection.is_up() {
            Ok(())
        } else {
            Err(NotPublished::Unavailable("NATS cannot be reached".to_owned()))
        }
    }
}

fn command_message(stream: &str, payload: &Payload) -> Result<PublishMessage, NotPublished> {
    let Some((name, body)) = message::encode(payload) else {
        return Err(NotPublished::Unavailable("jobs are no command".to_owned()));
    };
    let message = PublishMessage::build().header(message::COMMAND_HEADER, name);
    Ok(message.expected_stream(stream).payload(body.into()))
}

/// A command on its way.
pub struct SentCommand {
    sent: PublishAckFuture,
    health: Arc<Health>,
}

impl SentCommand {
    /// Returns once it is stored.
    ///
    /// # Errors
    /// As [`StreamPublisher::store_jobs`].
    pub async fn stored(self) -> Result<Sequence, NotPublished> {
        sequence(self.sent.await, &self.health)
    }
}

/// Where a message was stored.
fn sequence(stored: Result<PublishAck, PublishError>, health: &Health) -> Result<Sequence, NotPublished> {
    let stored = stored.map_err(|error| refused(&error, health))?;
    if stored.duplicate {
        // Ids are this process's own and begin with 22 random letters: somebody has read them and was first.
        return Err(NotPublished::Unavailable(
            "another publisher has used the id of this message, and the server dropped it".to_owned(),
        ));
    }
    Ok(Sequence(stored.sequence))
}

type Applied = oneshot::Receiver<Outcome>;

/// Takes the waiter away again, also when whoever waited is gone.
struct Waiting {
    waiters: Arc<Waiters>,
    number: u64,
}

impl Waiting {
    /// Before it is published: the source may meet the message before the server's answer comes.
    fn new(waiters: &Arc<Waiters>) -> (Self, Applied) {
        let (answer, answered) = oneshot::channel();
        let waiting = Self { waiters: Arc::clone(waiters), number: waiters.next() };
        waiters.wait(waiting.number, answer);
        (waiting, answered)
    }

    fn id(&self) -> String {
        self.waiters.id(self.number)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waiters.forget(self.number);
    }
}

fn too_large() -> NotPublished {
    NotPublished::TooLarge("the jobs are more bytes than the NATS server takes in a message".to_owned())
}

/// A batch that failed comes again from the stream: it must not be taken for one that was not applied.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn will_be_applied(failed: CommitFailed) -> NotPublished {
    NotPublished::Unknown(format!(
        "the write is stored in the stream, and is applied once this node can commit again; {failed}"
    ))
}

/// What holds the messages of a stream that takes no more, as of the last look at it.
fn full(health: &Health) -> String {
    health.note_queue_full();
    match health.queue_room() {
        Some(room) => format!("its stream is full, try again in a moment: {}", room.reason),
        None => {
            "its stream is full: the service is behind, or does not purge; try again in a moment".to_owned()
        }
    }
}

fn lost() -> NotPublished {
    NotPublished::Unknown("this node ended before it heard what came of it".to_owned())
}

fn refused(error: &PublishError, health: &Health) -> NotPublished {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<jetstream::Error>());
    match (error.kind(), cause.map(jetstream::Error::error_code)) {
        (_, Some(ErrorCode::STREAM_STORE_FAILED)) => NotPublished::Full(full(health)),
        (PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe, _) => {
            NotPublished::Unknown("NATS did not say whether it stored the message".to_owned())
        }
        (PublishErrorKind::MaxAckPending, _) => NotPublished::Overloaded,
        (PublishErrorKind::MaxPayloadExceeded, _) => too_large(),
        (PublishErrorKind::StreamNotFound, _) => {
            NotPublished::Unavailable("no stream takes its subject".to_owned())
        }
        _ => NotPublished::Unavailable(cause.map_or_else(|| error.to_string(), ToString::to_string)),
    }
}
