//! The publishing end of a shard's stream, for writes over HTTP.

use std::sync::Arc;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use tokio::sync::{oneshot, watch};

use crate::job::Job;
use crate::queue::jetstream::command;
use crate::queue::jetstream::connection::Connection;
use crate::queue::jetstream::groups::{self, Answer, Groups, Request};
use crate::queue::jetstream::waiters::Waiters;
use crate::queue::publisher::NotPublished;
use crate::types::Sequence;
use crate::writer::{CommitFailed, MessageOutcome, Payload};

/// Publishes to one shard's stream; clone it freely.
#[derive(Clone)]
pub struct StreamPublisher {
    pub(super) ends: Arc<Ends>,
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
    pub closing: watch::Sender<bool>,
}

impl StreamPublisher {
    /// Publishes jobs of this shard, in a message that others may share, and returns once it is stored.
    ///
    /// # Errors
    /// When it was not stored, or nobody knows whether it was.
    pub async fn store_jobs(&self, jobs: &[Job]) -> Result<Sequence, NotPublished> {
        let (answer, answered) = oneshot::channel();
        self.push(Request::new(jobs, Answer::Stored(answer)));
        answered.await.map_err(|_| lost())?
    }

    /// Publishes jobs of this shard, in a message that others may share, and waits until this node has applied it.
    ///
    /// # Errors
    /// As [`StreamPublisher::store_jobs`], or when this node cannot apply it.
    pub async fn publish_jobs(&self, jobs: &[Job]) -> Result<MessageOutcome, NotPublished> {
        let (answer, answered) = oneshot::channel();
        self.push(Request::new(jobs, Answer::Applied(answer)));
        answered.await.map_err(|_| lost())?
    }

    fn push(&self, request: Request) {
        if let Some(mut turn) = self.ends.groups.push(request) {
            let publisher = self.clone();
            // Apart from the request: others wait for it too, and whoever made it may leave.
            tokio::spawn(async move {
                let client = &publisher.ends.connection.client;
                while let Some(group) = turn.next(client.max_payload()) {
                    publisher.publish_group(group).await;
                }
            });
        }
    }

    /// Publishes a message of all these, tells who waits for that, and has the others told later.
    async fn publish_group(&self, mut group: Vec<Request>) {
        let waiting = groups::want_outcome(&group).then(|| Waiting::new(&self.ends.waiters));
        let id = waiting.as_ref().map(|(waiting, _)| waiting.id());
        let message = self.message(groups::body(&group), id.as_deref());
        let sequence = match self.store(&self.ends.jobs_subject, message).await {
            Ok(sequence) => sequence,
            Err(why) => return groups::refuse(group, &why),
        };
        groups::tell_stored(&mut group, sequence);
        if let Some((waiting, applied)) = waiting {
            // The next message need not wait for that.
            tokio::spawn(async move {
                let _waiting = waiting;
                tokio::select! {
                    outcome = applied => {
                        let outcome = outcome.map_err(|_| lost()).and_then(|outcome| Ok(outcome?));
                        groups::tell_applied(group, outcome);
                    }
                    // A shard that is halted tells nothing.
                    () = groups::all_leave(&mut group) => {}
                }
            });
        }
    }

    /// Publishes a board's definition or drop, and returns once it is stored.
    ///
    /// # Errors
    /// As [`StreamPublisher::store_jobs`].
    pub async fn store_command(&self, payload: &Payload) -> Result<Sequence, NotPublished> {
        let Some((name, body)) = command::encode(payload) else {
            return Err(NotPublished::Unavailable("jobs are no command".to_owned()));
        };
        let message = PublishMessage::build()
            .header(command::COMMAND_HEADER, name)
            .expected_stream(&self.ends.stream)
            .payload(body.into());
        self.store(&self.ends.control_subject, message).await
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

    async fn store(&self, subject: &str, message: PublishMessage) -> Result<Sequence, NotPublished> {
        if !self.ends.connection.is_up() {
            // The client would keep it and send it at some later time, when nobody waits for it any more.
            return Err(NotPublished::Unavailable("NATS cannot be reached".to_owned()));
        }
        let sent = self.ends.connection.context.send_publish(subject.to_owned(), message).await;
        let stored = sent.map_err(refused)?.await.map_err(refused)?;
        if stored.duplicate {
            // Ids are this process's own and begin with 22 random letters: somebody has read them and was first.
            return Err(NotPublished::Unavailable(
                "another publisher has used the id of this message, and the server dropped it".to_owned(),
            ));
        }
        Ok(Sequence(stored.sequence))
    }
}

/// Takes the waiter away again, also when whoever waited is gone.
struct Waiting {
    waiters: Arc<Waiters>,
    number: u64,
}

impl Waiting {
    /// Before it is published: the source may meet the message before the server's answer comes.
    fn new(waiters: &Arc<Waiters>) -> (Self, oneshot::Receiver<Result<MessageOutcome, CommitFailed>>) {
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

fn lost() -> NotPublished {
    NotPublished::Unknown("this node ended before it heard what came of it".to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn refused(error: PublishError) -> NotPublished {
    let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<jetstream::Error>());
    match (error.kind(), cause.map(jetstream::Error::error_code)) {
        (_, Some(ErrorCode::STREAM_STORE_FAILED)) => NotPublished::Full(
            "its stream is full: the service is behind, or does not purge; try again in a moment".to_owned(),
        ),
        (PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe, _) => {
            NotPublished::Unknown("NATS did not say whether it stored the message".to_owned())
        }
        (PublishErrorKind::MaxAckPending, _) => NotPublished::Overloaded,
        (PublishErrorKind::MaxPayloadExceeded, _) => NotPublished::TooLarge(
            "the jobs are more bytes than the NATS server takes in a message".to_owned(),
        ),
        (PublishErrorKind::StreamNotFound, _) => {
            NotPublished::Unavailable("no stream takes its subject".to_owned())
        }
        _ => NotPublished::Unavailable(cause.map_or_else(|| error.to_string(), ToString::to_string)),
    }
}
