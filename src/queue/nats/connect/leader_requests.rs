//! Questions to a stream's leader, asked again while nobody answers.
//!
//! Knows: a question may go to a server that is frozen, or to a leader that is just being replaced. Neither says anything,
//! and who waits out the time limit of one request misses the moment from which there is an answer. So the same question is
//! asked again while the first is on its way, and the first answer counts. Must not know: what an answer means.

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

/// Without an answer for so long, a question is asked again...
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// ...until it was asked so often.
const TIMES_MAX: usize = 4;

/// Why a question has no good answer.
#[derive(Debug, Error)]
pub enum Unanswered {
    /// The server's answer.
    #[error("{0}")]
    Refused(jetstream::Error),
    /// None, or one that says that nobody can answer at the moment.
    #[error("{0}")]
    Silence(String),
}

impl Unanswered {
    /// Whether the answer is that there is no such stream.
    pub fn is_no_stream(&self) -> bool {
        matches!(self, Self::Refused(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
    }

    fn of(error: &jetstream::Error) -> Self {
        // A cluster without a leader says so. An answer by its leader may be another one.
        match error.code() {
            503 => Self::Silence(error.to_string()),
            _ => Self::Refused(error.clone()),
        }
    }

    fn silence(error: &dyn Display) -> Self {
        Self::Silence(error.to_string())
    }
}

impl Connection {
    /// A stream, with what its leader says of it.
    ///
    /// # Errors
    /// When it is not there, or nobody says.
    pub async fn stream(&self, name: &str) -> Result<Stream<Info>, Unanswered> {
        self.ask(|| async {
            self.context.get_stream(name).await.map_err(|error| match error.kind() {
                GetStreamErrorKind::JetStream(error) => Unanswered::of(&error),
                _ => Unanswered::silence(&error),
            })
        })
        .await
    }

    /// A message as the stream's leader has it; `None` if it has none with this sequence.
    ///
    /// # Errors
    /// When nobody says.
    pub async fn message(&self, stream: &str, sequence: u64) -> Result<Option<StreamMessage>, Unanswered> {
        self.ask(|| async {
            let stream = self.context.get_stream_no_info(stream).await;
            let stream = stream.map_err(|error| Unanswered::silence(&error))?;
            match stream.get_raw_message(sequence).await {
                Ok(message) => Ok(Some(message)),
                Err(error) => match error.kind() {
                    RawMessageErrorKind::NoMessageFound => Ok(None),
                    RawMessageErrorKind::JetStream(error) => Err(Unanswered::of(&error)),
                    RawMessageErrorKind::InvalidSubject | RawMessageErrorKind::Other => {
                        Err(Unanswered::silence(&error))
                    }
                },
            }
        })
        .await
    }

    /// A new consumer without a name. The cluster may give it to a server that is frozen, which it notices after minutes: then
    /// the next one is likely to be elsewhere. The server forgets those that nobody reads.
    ///
    /// # Errors
    /// When it is refused, or nobody says.
    pub async fn create_consumer(
        &self,
        stream: &str,
        config: &pull::Config,
    ) -> Result<Consumer<pull::Config>, Unanswered> {
        self.ask(|| async {
            let created = self.context.create_consumer_on_stream(config.clone(), stream).await;
            created.map_err(|error| match error.kind() {
                ConsumerErrorKind::JetStream(error) => Unanswered::of(&error),
                _ => Unanswered::silence(&error),
            })
        })
        .await
    }

    /// Asks until there is an answer, the question was asked often enough, or there is a new connection, over which no answer
    /// comes to what was asked before. A question must do no harm when it is asked twice.
    async fn ask<T, F>(&self, question: impl Fn() -> F) -> Result<T, Unanswered>
    where
        F: Future<Output = Result<T, Unanswered>>,
    {
        let mut connected = self.connected.clone();
        connected.borrow_and_update();
        let began = Instant::now();
        let mut asked = FuturesUnordered::from_iter([question()]);
        let mut times = 1;
        loop {
            tokio::select! {
                Some(answer) = asked.next() => match answer {
                    Err(Unanswered::Silence(why)) => {
                        if asked.is_empty() {
                            self.note_silence(began).await;
                            return Err(Unanswered::Silence(why));
                        }
                    }
                    answer => {
                        self.note_answer();
                        return answer;
                    }
                },
                () = tokio::time::sleep(ASK_AGAIN), if times < TIMES_MAX => {
                    asked.push(question());
                    times += 1;
                }
                _ = connected.changed() => {
                    return Err(Unanswered::Silence("the connection to NATS was lost".to_owned()));
                }
            }
        }
    }
}
