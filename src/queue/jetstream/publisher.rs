//! The publishing end of a shard's stream, for writes over HTTP.

use std::sync::Arc;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use tokio::sync::{oneshot, watch};

use crate::job::Job;
use crate::queue::describe::describe;
use crate::queue::jetstream::command;
use crate::queue::jetstream::connection::Connection;
use crate::queue::jetstream::waiters::Waiters;
use crate::queue::publisher::NotPublished;
use crate::types::Sequence;
use crate::writer::{MessageOutcome, Payload};

/// Publishes to one shard's stream; clone it freely.
#[derive(Clone)]
pub struct StreamPublisher {
    pub(super) connection: Connection,
    pub(super) jobs_subject: String,
    /// What only nodes may publish to.
    pub(super) control_subject: String,
    pub(super) stream: String,
    pub(super) waiters: Arc<Waiters>,
    pub(super) closing: watch::Sender<bool>,
}

impl StreamPublisher {
    /// Publishes jobs of this shard as one message, and returns once it is stored.
    ///
    /// # Errors
    /// When it was not stored, or nobody knows whether it was.
    pub async fn store_jobs(&self, jobs: &[Job]) -> Result<Sequence, NotPublished> {
        self.store(&self.jobs_subject, self.message(jobs_json(jobs), None)).await
    }

    /// Publishes jobs of this shard as one message, and waits until this node has applied it.
    ///
    /// # Errors
    /// As [`StreamPublisher::store_jobs`], or when this node cannot apply it.
    pub async fn publish_jobs(&self, jobs: &[Job]) -> Result<MessageOutcome, NotPublished> {
        let body = jobs_json(jobs);
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { waiters: &self.waiters, number: self.waiters.next() };
        // Before it is published: the source may meet the message before the server's answer comes.
        self.waiters.wait(waiting.number, answer);
        let message = self.message(body, Some(&self.waiters.id(waiting.number)));
        self.store(&self.jobs_subject, message).await?;
        let lost =
            |_| NotPublished::Unknown("it is stored, and this node ended before it was applied".to_owned());
        Ok(answered.await.map_err(lost)??)
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
            .expected_stream(&self.stream)
            .payload(body.into());
        self.store(&self.control_subject, message).await
    }

    /// Ends the queue's reading end on this node; what is stored stays.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    fn message(&self, body: Vec<u8>, id: Option<&str>) -> PublishMessage {
        // The stream's name guards against a subject that some other stream has taken.
        let message = PublishMessage::build().expected_stream(&self.stream).payload(body.into());
        match id {
            Some(id) => message.message_id(id),
            None => message,
        }
    }

    async fn store(&self, subject: &str, message: PublishMessage) -> Result<Sequence, NotPublished> {
        if !self.connection.is_up() {
            // The client would keep it and send it at some later time, when nobody waits for it any more.
            return Err(NotPublished::Unavailable("NATS cannot be reached".to_owned()));
        }
        let sent = self.connection.context.send_publish(subject.to_owned(), message).await;
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
struct Waiting<'a> {
    waiters: &'a Waiters,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waiters.forget(self.number);
    }
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

fn jobs_json(jobs: &[Job]) -> Vec<u8> {
    if let [job] = jobs {
        return describe(job);
    }
    let mut body = vec![b'['];
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend(describe(job));
    }
    body.push(b']');
    body
}
