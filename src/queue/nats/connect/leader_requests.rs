//! Requests to a stream's leader, repeated while no answer comes.
//!
//! Knows: a request may go to a server that is frozen, or to a leader that is just being replaced. Neither
//! answers, and a caller that waits for the time limit of one request misses the moment from which on answers
//! come. So the same request is sent again while the first is in flight, and the first answer counts. Must
//! not know: what an answer means.

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{ConsumerErrorKind, Info, RawMessageErrorKind, Stream};
use async_nats::jetstream::{self, ErrorCode};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use thiserror::Error;

use crate::queue::nats::connect::connection::Connection;

/// A request without an answer is repeated after so long.
const RESEND_INTERVAL: Duration = Duration::from_secs(1);
/// How often a request is sent at most.
const SENDS_MAX: usize = 4;

/// Why a request failed.
#[derive(Debug, Error)]
pub enum LeaderError {
    /// The leader answered with an error.
    #[error("{0}")]
    Refused(jetstream::Error),
    /// No answer came, or the answer says that no server can answer at the moment.
    #[error("{0}")]
    NoAnswer(String),
}

impl LeaderError {
    /// Whether the leader answered that there is no such stream.
    pub fn is_no_stream(&self) -> bool {
        matches!(self, Self::Refused(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
    }

    fn of(error: &jetstream::Error) -> Self {
        // A cluster without a leader answers this. Its next leader may answer otherwise.
        match error.code() {
            503 => Self::NoAnswer(error.to_string()),
            _ => Self::Refused(error.clone()),
        }
    }

    pub fn no_answer(error: &dyn Display) -> Self {
        Self::NoAnswer(error.to_string())
    }
}

impl Connection {
    /// A stream, with its state as the leader has it.
    ///
    /// # Errors
    /// When there is no such stream, or no answer comes.
    pub async fn stream(&self, name: &str) -> Result<Stream<Info>, LeaderError> {
        self.ask(|| async {
            self.context.get_stream(name).await.map_err(|error| match error.kind() {
                GetStreamErrorKind::JetStream(error) => LeaderError::of(&error),
                _ => LeaderError::no_answer(&error),
            })
        })
        .await
    }

    /// A message as the stream's leader has it; `None` if it has none with this sequence.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn message(&self, stream: &str, sequence: u64) -> Result<Option<StreamMessage>, LeaderError> {
        self.ask(|| async {
            let stream = self.context.get_stream_no_info(stream).await;
            let stream = stream.map_err(|error| LeaderError::no_answer(&error))?;
            match stream.get_raw_message(sequence).await {
                Ok(message) => Ok(Some(message)),
                Err(error) => match error.kind() {
                    RawMessageErrorKind::NoMessageFound => Ok(None),
                    RawMessageErrorKind::JetStream(error) => Err(LeaderError::of(&error)),
                    RawMessageErrorKind::InvalidSubject | RawMessageErrorKind::Other => {
                        Err(LeaderError::no_answer(&error))
                    }
                },
            }
        })
        .await
    }

    /// A new consumer without a name. The cluster may place it on a frozen server, which it notices only
    /// after minutes; then a repeated request is likely to place one elsewhere. The server forgets consumers
    /// that nobody reads.
    ///
    /// # Errors
    /// When the leader refuses, or no answer comes.
    pub async fn create_consumer(
        &self,
        stream: &str,
        config: &pull::Config,
    ) -> Result<Consumer<pull::Config>, LeaderError> {
        self.ask(|| async {
            let created = self.context.create_consumer_on_stream(config.clone(), stream).await;
            created.map_err(|error| match error.kind() {
                ConsumerErrorKind::JetStream(error) => LeaderError::of(&error),
                _ => LeaderError::no_answer(&error),
            })
        })
        .await
    }

    /// Repeats a request until an answer comes, it was sent [`SENDS_MAX`] times, or the connection was
    /// replaced, which loses the answers. The request must be harmless when it is sent twice.
    async fn ask<T, F>(&self, request: impl Fn() -> F) -> Result<T, LeaderError>
    where
        F: Future<Output = Result<T, LeaderError>>,
    {
        let mut connected = self.connected.clone();
        connected.borrow_and_update();
        let began = Instant::now();
        let mut asked = FuturesUnordered::from_iter([request()]);
        let mut times = 1;
        loop {
            tokio::select! {
                Some(answer) = asked.next() => match answer {
                    Err(LeaderError::NoAnswer(why)) => {
                        if asked.is_empty() {
                            self.note_silence(began).await;
                            return Err(LeaderError::NoAnswer(why));
                        }
                    }
                    answer => {
                        self.note_answer();
                        return answer;
                    }
                },
                () = tokio::time::sleep(RESEND_INTERVAL), if times < SENDS_MAX => {
                    asked.push(request());
                    times += 1;
                }
                _ = connected.changed() => {
                    return Err(LeaderError::NoAnswer("the connection to NATS was lost".to_owned()));
                }
            }
        }
    }
}
