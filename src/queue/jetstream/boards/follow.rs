//! What other nodes decided, as the boards' stream says it.
//!
//! Each time that the stream is followed anew it is read from the beginning, because it may be another one: an operator may
//! have deleted it, or brought an older copy back. Nothing is decided until that was compared with what the shards hold.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures_util::StreamExt as _;

use crate::queue::jetstream::boards::Boards;
use crate::queue::jetstream::boards::decide::Stored;
use crate::queue::jetstream::boards::record::{Record, Recorded, is_foreign};
use crate::types::BoardName;

const RETRY_PAUSE: Duration = Duration::from_millis(500);
const HEARTBEAT: Duration = Duration::from_millis(500);

/// What the stream said of each board when it was read from the beginning.
pub type Heard = HashMap<BoardName, Recorded>;

impl Boards {
    /// Follows the boards' stream for as long as the service runs.
    pub async fn follow(&self) {
        loop {
            let followed = self.follow_once().await;
            self.compared.send_replace(false);
            if let Err(error) = followed {
                let error = self.managing.explain(&error);
                tracing::warn!(error, "the boards' stream cannot be followed; trying on");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    async fn follow_once(&self) -> Result<(), String> {
        self.reached.store(0, Ordering::Relaxed);
        self.heard_through.store(0, Ordering::Relaxed);
        self.pending.lock().begin_again();
        let consumer = pull::Config {
            description: Some("ranktree: what each board is".to_owned()),
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: self.names.all_boards(),
            ack_policy: AckPolicy::None,
            inactive_threshold: Duration::from_secs(60),
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let consumer =
            self.managing.context.create_consumer_on_stream(consumer, self.names.boards_stream()).await;
        let mut consumer = consumer.map_err(|error| error.to_string())?;
        let mut pending = consumer.info().await.map_err(|error| error.to_string())?.num_pending;
        let messages = consumer.stream().heartbeat(HEARTBEAT).messages().await;
        let mut messages = messages.map_err(|error| error.to_string())?;
        let mut heard = Heard::new();
        while pending > 0 {
            let Some(message) = messages.next().await else { return Ok(()) };
            let message = message.map_err(|error| error.to_string())?;
            pending = self.hear(&message, Some(&mut heard)).await?;
        }
        let mut comparing = pin!(self.compare(heard));
        let mut is_compared = false;
        loop {
            tokio::select! {
                compared = &mut comparing, if !is_compared => {
                    compared?;
                    is_compared = true;
                    self.compared.send_replace(true);
                }
                message = messages.next() => {
                    let Some(message) = message else { return Ok(()) };
                    self.hear(&message.map_err(|error| error.to_string())?, None).await?;
                }
            }
        }
    }

    /// Takes note of a message; says how many follow.
    ///
    /// # Arguments
    /// `first`: while the stream is read from the beginning, what it said so far.
    async fn hear(&self, message: &Message, first: Option<&mut Heard>) -> Result<u64, String> {
        let info = message.info().map_err(|error| error.to_string())?;
        let (sequence, pending) = (info.stream_sequence, info.pending);
        self.reached.fetch_max(sequence, Ordering::Relaxed);
        let name = self.names.board_of(&message.subject);
        if is_foreign(&message.payload) {
            self.put_right(&message.subject, name, sequence).await?;
        } else if let Some((name, recorded)) = name.zip(Recorded::read(sequence, &message.payload)) {
            // What was dropped before this node followed has arrived where it had to, unless a shard holds the board.
            self.note(&name, &recorded, first.is_none());
            if let Some(heard) = first {
                heard.insert(name, recorded);
            }
        } else {
            tracing::warn!(subject = %message.subject, "a message of the boards' stream cannot be read");
        }
        // Earlier messages that are not there any more were followed by others of the same board, which were heard.
        if pending == 0 {
            self.heard_through.fetch_max(sequence, Ordering::Relaxed);
        }
        Ok(pending)
    }

    /// Says again what a board is where a foreign message has taken its place.
    async fn put_right(&self, subject: &str, name: Option<BoardName>, sequence: u64) -> Result<(), String> {
        tracing::warn!(
            subject,
            sequence,
            "a message of the boards' stream is not from a node; who may publish there?"
        );
        let Some(name) = name else { return Ok(()) };
        let Some(decision) = self.held(&name) else { return Ok(()) };
        let record = Record::of(&decision);
        self.store(Stored { name, record, after: sequence }).await.map_err(|error| error.to_string())?;
        Ok(())
    }
}
