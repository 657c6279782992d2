//! Follows a stream of which each subject's last message counts: those that there are first, and then every
//! new one.
//!
//! Messages that were lost with a connection do not come again, so a new connection ends it, and whoever
//! follows begins again.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use futures_util::StreamExt as _;
use tokio::sync::watch;

use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::connect::leader_requests::LeaderError;

const HEARTBEAT: Duration = Duration::from_millis(500);
/// While the stream is read from the beginning, the server is asked after so long without a message whether
/// there are more: the awaited ones may have expired, or may have been deleted.
const ASK_AFTER: Duration = Duration::from_secs(1);

pub struct LastMessages {
    consumer: Consumer<pull::Config>,
    messages: pull::Stream,
    connected: watch::Receiver<u64>,
    delivered: u64,
    /// Messages that follow of those that there are.
    pending: u64,
    has_read_all: bool,
    /// The server has delivered messages that were not here yet when it was asked last.
    is_missing: bool,
}

/// What comes next.
pub enum Followed {
    Message(Box<Message>),
    /// All that the stream had was read. Comes once.
    AllRead,
    /// The server has ended the consumer.
    Ended,
}

impl LastMessages {
    /// # Errors
    /// When there is no such stream, or no answer comes.
    pub async fn begin(
        managing: &Connection,
        stream: &str,
        subjects: String,
        description: &str,
    ) -> Result<Self, LeaderError> {
        let config = pull::Config {
            description: Some(description.to_owned()),
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: subjects,
            ack_policy: AckPolicy::None,
            inactive_threshold: Duration::from_secs(60),
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let mut connected = managing.connected.clone();
        connected.borrow_and_update();
        let mut consumer = managing.create_consumer(stream, &config).await?;
        let info = consumer.info().await.map_err(|error| LeaderError::no_answer(&error))?;
        let pending = info.num_pending;
        let messages = consumer.stream().heartbeat(HEARTBEAT).messages().await;
        let messages = messages.map_err(|error| LeaderError::no_answer(&error))?;
        let (delivered, has_read_all, is_missing) = (0, false, false);
        Ok(Self { consumer, messages, connected, delivered, pending, has_read_all, is_missing })
    }

    /// May be cancelled once all is read.
    ///
    /// # Errors
    /// When messages were lost, or the connection.
    pub async fn next(&mut self) -> Result<Followed, String> {
        loop {
            if self.pending == 0 && !self.has_read_all {
                self.has_read_all = true;
                return Ok(Followed::AllRead);
            }
            let message = tokio::select! {
                biased;
                _ = self.connected.changed() => return Err("the connection to NATS was lost".to_owned()),
                message = self.messages.next() => message,
                () = tokio::time::sleep(ASK_AFTER), if !self.has_read_all => {
                    let info = self.consumer.info().await.map_err(|error| error.to_string())?;
                    if info.delivered.consumer_sequence == self.delivered {
                        self.pending = info.num_pending;
                    } else if std::mem::replace(&mut self.is_missing, true) {
                        return Err("messages that the server delivered did not arrive".to_owned());
                    }
                    continue;
                }
            };
            let Some(message) = message else { return Ok(Followed::Ended) };
            let message = message.map_err(|error| error.to_string())?;
            let info = message.info().map_err(|error| error.to_string())?;
            self.delivered += 1;
            let lost = info.consumer_sequence.saturating_sub(self.delivered);
            if lost > 0 {
                return Err(format!(
                    "{lost} messages before message {} did not arrive",
                    info.stream_sequence
                ));
            }
            (self.pending, self.is_missing) = (info.pending, false);
            return Ok(Followed::Message(Box::new(message)));
        }
    }
}
