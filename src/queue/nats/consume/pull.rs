//! A consumer's messages, as they come by a subscription with pull requests of our own.
//!
//! Knows: how much was asked for and has not come, so that the server never waits for the next request; and
//! what the server says beside messages. Must not know: what a message is about.
//!
//! async-nats's own stream of a pull consumer does the same. It makes a handle for each message, by which it
//! could be acknowledged, and looks at a channel of a second task each time; nothing here is acknowledged.

use std::fmt::Display;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::{Client, HeaderMap, HeaderValue, Message, StatusCode, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use serde::Serialize;
use thiserror::Error;

/// Messages asked for at a time. The next request goes out at half, so the server never waits for one.
/// Compared with 4,000, the server spends a tenth less time per message.
const MESSAGES: usize = 16_000;
/// Bytes asked for at a time: more than the largest possible message, which would otherwise never be
/// delivered.
const BYTES: usize = 16 << 20;
/// A server that says nothing for twice as long is gone.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// A pull request that nothing answered is made again after so long, and [`ANSWER_TIME`].
const EXPIRES: Duration = Duration::from_secs(30);
/// For how long the server's word that a request has ended may be on its way.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// How much of a request that has ended was not delivered.
const PENDING_MESSAGES_HEADER: &str = "Nats-Pending-Messages";
const PENDING_BYTES_HEADER: &str = "Nats-Pending-Bytes";

/// Why no more messages come by a subscription.
#[derive(Debug, Error)]
pub enum PullError {
    #[error("the server ended the delivery of messages")]
    Ended,
    #[error("the delivery of messages failed: the NATS server says nothing any more")]
    MissedHeartbeat,
    #[error("the delivery of messages failed: {0}")]
    Failed(String),
}

/// What asks the server for messages.
#[derive(Serialize)]
struct Request {
    batch: usize,
    max_bytes: usize,
    /// In nanoseconds.
    expires: u128,
    idle_heartbeat: u128,
}

/// A subscription to which the server delivers what was asked for.
pub struct Pull {
    client: Client,
    messages: Subscriber,
    /// Where requests go.
    subject: Subject,
    /// Where messages come by.
    inbox: Subject,
    request: Bytes,
    max_bytes: usize,
    /// What was asked for and has not come.
    messages_due: usize,
    bytes_due: usize,
    asked: Instant,
}

impl Pull {
    /// Subscribes, and asks for the first messages.
    ///
    /// # Errors
    /// When the client is gone.
    pub async fn begin(client: &Client, consumer: &Consumer<pull::Config>) -> Result<Self, PullError> {
        let info = consumer.cached_info();
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", info.stream_name, info.name);
        let inbox = Subject::from(client.new_inbox());
        let messages = client.subscribe(inbox.clone()).await.map_err(failed)?;
        let max_bytes = BYTES.max(client.max_payload() * 2);
        let (expires, idle_heartbeat) = (EXPIRES.as_nanos(), HEARTBEAT.as_nanos());
        let request = Request { batch: MESSAGES, max_bytes, expires, idle_heartbeat };
        let request = serde_json::to_vec(&request).expect("the value has no maps whose keys are not strings");
        let mut pull = Self {
            client: client.clone(),
            messages,
            subject: subject.into(),
            inbox,
            request: request.into(),
            max_bytes,
            messages_due: 0,
            bytes_due: 0,
            asked: Instant::now(),
        };
        pull.ask_if_few_are_due().await?;
        Ok(pull)
    }

    /// Asks for more if less than half of a request is due. Call it between chunks, each of less than that.
    ///
    /// # Errors
    /// When the client is gone.
    pub async fn ask_if_few_are_due(&mut self) -> Result<(), PullError> {
        if self.messages_due <= MESSAGES / 2 || self.bytes_due <= self.max_bytes / 2 {
            self.ask().await?;
            self.messages_due += MESSAGES;
            self.bytes_due += self.max_bytes;
        }
        Ok(())
    }

    async fn ask(&mut self) -> Result<(), PullError> {
        let (subject, inbox) = (self.subject.clone(), self.inbox.clone());
        let sent = self.client.publish_with_reply(subject, inbox, self.request.clone()).await;
        self.asked = Instant::now();
        sent.map_err(failed)
    }

    /// Waits for the next message. May be cancelled: no message is lost by that.
    ///
    /// # Errors
    /// When no more come by this subscription.
    pub async fn next(&mut self) -> Result<Message, PullError> {
        loop {
            if let Some(message) = self.ready() {
                return message;
            }
            self.ask_if_few_are_due().await?;
            // In case the server's word that a request has ended got lost.
            if self.asked.elapsed() > EXPIRES + ANSWER_TIME {
                self.ask().await?;
                (self.messages_due, self.bytes_due) = (MESSAGES, self.max_bytes);
            }
            let message = tokio::time::timeout(2 * HEARTBEAT, self.messages.next()).await;
            let message = message.map_err(|_| PullError::MissedHeartbeat)?.ok_or(PullError::Ended)?;
            if self.note(&message)? {
                return Ok(message);
            }
        }
    }

    /// The next message, if it is here already.
    ///
    /// # Errors
    /// When no more come by this subscription.
    pub fn ready(&mut self) -> Option<Result<Message, PullError>> {
        loop {
            let Some(message) = self.messages.next().now_or_never()? else {
                return Some(Err(PullError::Ended));
            };
            match self.note(&message) {
                Ok(true) => return Some(Ok(message)),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Whether a message is of the stream. What the server says beside them has no subject to reply to,
    /// where a message of the stream has its place.
    fn note(&mut self, message: &Message) -> Result<bool, PullError> {
        if let (Some(status), None) = (message.status, &message.reply) {
            return self.note_status(status, message).map(|()| false);
        }
        self.messages_due = self.messages_due.saturating_sub(1);
        self.bytes_due = self.bytes_due.saturating_sub(message.length);
        Ok(true)
    }

    #[cold]
    fn note_status(&mut self, status: StatusCode, message: &Message) -> Result<(), PullError> {
        let said = message.description.as_deref().unwrap_or_default();
        match status {
            // The consumer is there, and has nothing.
            StatusCode::IDLE_HEARTBEAT => Ok(()),
            StatusCode::TIMEOUT | StatusCode::REQUEST_TERMINATED if !is_final(said) => {
                let headers = message.headers.as_ref();
                self.messages_due -=
                    self.messages_due.min(undelivered(headers, PENDING_MESSAGES_HEADER, MESSAGES));
                self.bytes_due -=
                    self.bytes_due.min(undelivered(headers, PENDING_BYTES_HEADER, self.max_bytes));
                Ok(())
            }
            status => Err(PullError::Failed(format!("{status} {said}"))),
        }
    }
}

/// Whether the same request would be refused again: the consumer is gone, or does not allow such requests.
fn is_final(said: &str) -> bool {
    said == "Consumer Deleted" || said == "Consumer is push based" || said.starts_with("Exceeded MaxRequest")
}

/// How much of a request that has ended was not delivered: all of it, if the server does not say.
fn undelivered(headers: Option<&HeaderMap>, name: &str, all: usize) -> usize {
    let said = headers.and_then(|headers| headers.get(name)).map(HeaderValue::as_str);
    said.and_then(|said| said.parse().ok()).unwrap_or(all)
}

fn failed(error: impl Display) -> PullError {
    PullError::Failed(error.to_string())
}
