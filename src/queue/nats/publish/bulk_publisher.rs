//! Publishes messages that are encoded already, with many in flight: for load generators and benchmarks.
//!
//! Knows: how a game service publishes, with the stream's name as a guard and an acknowledgement for every
//! message. It needs no more permissions than a game service, unless it has to find out how many shards there
//! are.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::jetstream::context::{ContextBuilder, GetStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{ConnectErrorKind, Event, Request, Subject};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::queue::nats::connect::access::NatsAccess;
use crate::queue::nats::connect::connection::{explain_failure, explain_server_error, with_timeouts};
use crate::queue::nats::names::Names;
use crate::queue::nats::streams::jobs_config;
use crate::types::{MAX_SHARDS, Sequence, ShardId};

/// How long the server may take to acknowledge a message.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
/// Above what the write service itself waits for a commit, so that its answer tells the outcome.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(35);

/// Why a message was not stored: a stable name to count by, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct NotStored {
    pub kind: &'static str,
    pub detail: String,
}

/// A connection for publishing; clone it freely.
#[derive(Clone)]
pub struct BulkPublisher {
    context: Context,
    names: Names,
    /// Subject and stream of each shard.
    shards: Arc<[(Subject, String)]>,
    /// The last error that the server reported. It reports errors apart from its answers.
    server_error: Arc<Mutex<Option<String>>>,
}

impl BulkPublisher {
    /// Connects, and finds out how many shards there are, unless `shards` says it.
    ///
    /// # Arguments
    /// `in_flight`: how many messages may wait for their acknowledgement.
    ///
    /// # Errors
    /// When there is no connection or there are no streams; the text says what to do.
    pub async fn connect(
        access: &NatsAccess,
        prefix: &str,
        shards: Option<u16>,
        in_flight: usize,
    ) -> Result<Self, String> {
        let server_error = Arc::new(Mutex::new(None));
        let names = Names::new(prefix);
        let client = connect(access, Arc::clone(&server_error)).await?;
        let context = ContextBuilder::new()
            .timeout(ACK_TIMEOUT)
            .ack_timeout(ACK_TIMEOUT)
            .max_ack_inflight(in_flight.max(1))
            .build(client);
        let mut publisher = Self { context, names, shards: Arc::new([]), server_error };
        let shards = match shards {
            Some(shards) => shards,
            None => publisher.find_shards().await?,
        };
        if !(1..=MAX_SHARDS).contains(&shards) {
            return Err(format!("the number of shards must be 1 to {MAX_SHARDS}; got {shards}"));
        }
        let of_shard = |shard| {
            let shard = ShardId(shard);
            (Subject::from(publisher.names.jobs_subject(shard)), publisher.names.jobs_stream(shard))
        };
        publisher.shards = (0..shards).map(of_shard).collect();
        Ok(publisher)
    }

    pub fn shards(&self) -> u16 {
        u16::try_from(self.shards.len()).expect("there are at most MAX_SHARDS shards")
    }

    /// Sends a message with jobs of this shard's members. Returns once it is sent; the returned future is its
    /// acknowledgement.
    ///
    /// # Errors
    /// When the message was not sent. The future fails when the message was not stored, or it is unknown
    /// whether it was.
    pub async fn send(
        &self,
        shard: ShardId,
        body: Bytes,
    ) -> Result<impl Future<Output = Result<Sequence, NotStored>> + Send + 'static + use<>, NotStored> {
        let Some((subject, stream)) = self.shards.get(shard.index()) else {
            let detail =
                format!("there is no shard {shard}; there are {} shards, numbered from 0", self.shards.len());
            return Err(NotStored { kind: "no_such_shard", detail });
        };
        let message = PublishMessage::build().expected_stream(stream).payload(body);
        let sent = self.context.send_publish(subject.clone(), message).await;
        let sent = sent.map_err(|error| explain(&error, subject, stream, &self.server_error))?;
        // Only a failure needs these, which is rare.
        let (shards, server_error) = (Arc::clone(&self.shards), Arc::clone(&self.server_error));
        Ok(async move {
            match sent.await {
                Ok(stored) => Ok(Sequence(stored.sequence)),
                Err(error) => {
                    let (subject, stream) =
                        shards.get(shard.index()).expect("the shard was found when the message was sent");
                    Err(explain(&error, subject, stream, &server_error))
                }
            }
        })
    }

    /// Sends a request with jobs of this shard's members to the write service, and waits for its answer: its
    /// status, and JSON.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn ask(&self, shard: ShardId, body: Bytes) -> Result<(u16, Bytes), NotStored> {
        let request = Request::new().payload(body).timeout(Some(SERVICE_TIMEOUT));
        let answer = self.context.client().send_request(self.names.write_subject(shard), request).await;
        let answer = answer.map_err(|error| {
            let kind = match error.kind() {
                RequestErrorKind::NoResponders => "no_responders",
                RequestErrorKind::TimedOut => "unanswered",
                RequestErrorKind::MaxPayloadExceeded => "too_large",
                RequestErrorKind::InvalidSubject | RequestErrorKind::Other => "refused",
            };
            let detail = match error.kind() {
                RequestErrorKind::NoResponders => format!("no node takes writes for shard {shard}"),
                _ => format!("the write service did not answer: {error}{}", reported(&self.server_error)),
            };
            NotStored { kind, detail }
        })?;
        let code = answer.headers.as_ref().and_then(|headers| headers.get("Nats-Service-Error-Code"));
        let status = code.and_then(|code| code.as_str().parse().ok()).unwrap_or(200);
        Ok((status, answer.payload))
    }

    async fn find_shards(&self) -> Result<u16, String> {
        let name = self.names.jobs_stream(ShardId(0));
        let stream = self.context.get_stream(&name).await.map_err(|error| match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                format!("the stream {name} does not exist; start `ranktree serve --nats` first, or give the service's --prefix")
            }
            _ => format!(
                "the number of shards cannot be read from the stream {name}: {error}{}; a user that may \
                 only publish needs --shards",
                self.server_error.lock().as_ref().map(|said| format!(" ({said})")).unwrap_or_default()
            ),
        })?;
        let config = &stream.cached_info().config;
        jobs_config::shards_of(config).ok_or_else(|| {
            format!("the stream {name} does not say how many shards there are, so ranktree did not create it; check --prefix, or give --shards")
        })
    }
}

async fn connect(
    access: &NatsAccess,
    server_error: Arc<Mutex<Option<String>>>,
) -> Result<async_nats::Client, String> {
    let inbox = access.inbox.clone();
    let events = move |event| {
        match event {
            Event::ServerError(error) => {
                *server_error.lock() = Some(explain_server_error(&error, &inbox));
            }
            Event::Disconnected => tracing::warn!("the connection to NATS was lost; reconnecting"),
            Event::Connected => tracing::debug!("connected to NATS"),
            event => tracing::debug!("NATS: {event}"),
        }
        std::future::ready(())
    };
    let options =
        with_timeouts(access.options()).name("ranktree load").max_reconnects(None).event_callback(events);
    options.connect(access.servers.addresses()).await.map_err(|error| {
        let (servers, words) = (&access.servers, explain_failure(&error.to_string(), access.has_login()));
        match error.kind() {
            ConnectErrorKind::Io | ConnectErrorKind::Dns | ConnectErrorKind::TimedOut => {
                format!("no NATS server can be reached at {servers}: {words}")
            }
            _ => format!("no connection to NATS at {servers}: {words}"),
        }
    })
}

/// The error that the server reported last, to be added to one that it explains.
fn reported(server_error: &Mutex<Option<String>>) -> String {
    server_error.lock().as_ref().map(|said| format!("; the server reported: {said}")).unwrap_or_default()
}

fn explain(
    error: &PublishError,
    subject: &str,
    stream: &str,
    server_error: &Mutex<Option<String>>,
) -> NotStored {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<jetstream::Error>());
    let code = cause.map(jetstream::Error::error_code);
    let (kind, detail) = match (error.kind(), code) {
        (_, Some(ErrorCode::STREAM_STORE_FAILED)) => (
            "stream_full",
            format!(
                "the stream {stream} is full and refuses new messages, because the service is behind, is \
                 not running, or does not purge it"
            ),
        ),
        (_, Some(ErrorCode::STREAM_NOT_MATCH)) => (
            "wrong_stream",
            format!("the subject {subject} belongs to another stream than {stream}; check --prefix"),
        ),
        (PublishErrorKind::StreamNotFound, _) => {
            ("no_stream", format!("no stream has the subject {subject}; start `ranktree serve --nats` first"))
        }
        (PublishErrorKind::MaxPayloadExceeded, _) => (
            "too_large",
            "a message is larger than the NATS server allows; send fewer jobs in a message".to_owned(),
        ),
        (PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe, _) => (
            "unanswered",
            format!(
                "NATS did not answer in time whether it stored a message, so it may be stored or not{}",
                reported(server_error)
            ),
        ),
        _ => {
            let cause = cause.map_or_else(|| error.to_string(), ToString::to_string);
            ("refused", format!("NATS refused a message for {stream}: {cause}"))
        }
    };
    NotStored { kind, detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::nats::connect::credentials::{NatsCredentials, Secret};

    #[tokio::test]
    async fn an_unreachable_server_is_reported_without_its_password() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        drop(listener);
        let urls = Secret::new(format!("nats://me:secret@{address}"));
        let access =
            NatsAccess::new(&urls, NatsCredentials::default(), None, "ranktree").expect("a good URL");
        let error = BulkPublisher::connect(&access, "ranktree", None, 1).await;
        let error = error.err().expect("nobody is there");
        assert!(error.contains("no NATS server can be reached"), "{error}");
        assert!(error.contains(&address.to_string()) && !error.contains("secret"), "{error}");
    }
}
