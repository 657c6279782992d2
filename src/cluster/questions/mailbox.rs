//! Replies to the questions of this node, as they arrive.
//!
//! All replies come by one subscription, whose subjects end in the number of the question. The NATS client
//! has such a thing as well, but takes one message for each request. A question that nobody waits for any
//! more is forgotten, and so are its replies.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Message, StatusCode, Subscriber};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::cluster::questions::parts::{Arrived, Parts};
use crate::queue::nats::trace_headers;
use crate::traces::TraceContext;

/// How long a question waits for a connection, and how often it looks.
const CONNECTION_WAIT: Duration = Duration::from_millis(500);
const CONNECTION_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Where replies arrive.
pub struct Mailbox {
    client: Client,
    /// The subject of a reply, without the question's number.
    inbox: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
}

struct Waiting {
    parts: Parts,
    done: oneshot::Sender<Arrived>,
}

/// A question in flight. Forgotten when it is dropped.
pub struct InFlight {
    mailbox: Arc<Mailbox>,
    number: u64,
    done: oneshot::Receiver<Arrived>,
}

impl Mailbox {
    /// Subscribes to the replies.
    ///
    /// # Errors
    /// When the client is gone.
    pub async fn open(client: Client) -> Result<Arc<Self>, String> {
        let inbox = client.new_inbox();
        let replies = client.subscribe(format!("{inbox}.*")).await.map_err(|error| error.to_string())?;
        let mailbox = Self { client, inbox, next: AtomicU64::new(0), waiting: Mutex::default() };
        let mailbox = Arc::new(mailbox);
        tokio::spawn(Self::run(Arc::downgrade(&mailbox), replies));
        Ok(mailbox)
    }

    async fn run(this: std::sync::Weak<Self>, mut replies: Subscriber) {
        while let Some(message) = replies.next().await {
            let Some(this) = this.upgrade() else { return };
            this.take(&message);
        }
    }

    fn take(&self, message: &Message) {
        let number = message.subject.rsplit('.').next().and_then(|number| number.parse().ok());
        let Some(number) = number else { return };
        let mut waiting = self.waiting.lock();
        let Some(question) = waiting.get_mut(&number) else { return };
        let arrived = if message.status == Some(StatusCode::NO_RESPONDERS) {
            Some(Arrived::NobodyThere)
        } else {
            question.parts.take(&message.payload)
        };
        if let Some(arrived) = arrived
            && let Some(question) = waiting.remove(&number)
        {
            // The asking task may have ended.
            let _ = question.done.send(arrived);
        }
    }

    /// What is sent without a connection would arrive once there is one, when nobody waits for it any more. A
    /// connection that moves to another server is away for a moment only.
    async fn wait_for_connection(&self) -> Result<(), String> {
        let since = Instant::now();
        while self.client.connection_state() != State::Connected {
            if since.elapsed() >= CONNECTION_WAIT {
                return Err("this node has no connection to NATS".to_owned());
            }
            tokio::time::sleep(CONNECTION_CHECK_INTERVAL).await;
        }
        Ok(())
    }

    /// Sends a question.
    ///
    /// # Errors
    /// When the client is gone, or the message is larger than the server lets through.
    ///
    /// # Arguments
    /// `caller`: the span that has caused it, if that is sampled.
    pub async fn send(
        self: &Arc<Self>,
        subject: String,
        question: Vec<u8>,
        caller: Option<&TraceContext>,
    ) -> Result<InFlight, String> {
        self.wait_for_connection().await?;
        let limit = self.client.max_payload();
        if question.len() > limit {
            return Err(format!("the question has {} bytes, and NATS lets {limit} through", question.len()));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, arrived) = oneshot::channel();
        self.waiting.lock().insert(number, Waiting { parts: Parts::default(), done });
        let in_flight = InFlight { mailbox: Arc::clone(self), number, done: arrived };
        let reply_to = format!("{}.{number}", self.inbox);
        let sent = match trace_headers::of(caller) {
            None => self.client.publish_with_reply(subject, reply_to, question.into()).await,
            Some(headers) => {
                let client = &self.client;
                client.publish_with_reply_and_headers(subject, reply_to, headers, question.into()).await
            }
        };
        sent.map_err(|error| error.to_string())?;
        Ok(in_flight)
    }
}

impl InFlight {
    /// What arrives of the reply.
    pub async fn arrived(&mut self) -> Arrived {
        (&mut self.done).await.unwrap_or(Arrived::Garbage)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.mailbox.waiting.lock().remove(&self.number);
    }
}
