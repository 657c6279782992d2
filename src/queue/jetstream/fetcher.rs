//! Fetch and decode, ahead of the writer: a pull consumer that is made anew whenever anything is odd.
//!
//! Knows: the sequence, time and hash of the last message it handed on (the *tip*), and that the stream has to continue
//! exactly there. Must not know: what a job does. The writer's applied sequence, in the same write batch as its effects,
//! is the only acknowledgement: nothing is acknowledged to the server, and a consumer is worth nothing once lost.
//!
//! What async-nats 0.51 was seen to do, and what is done about it: its ordered consumer restarts from 1 and resumes past
//! lost data, so this is a plain consumer that starts *at* the tip, whose message must come back as it was; it may sit
//! out a dead server for minutes, so a heartbeat is asked for twice a second, and every reconnect ends the session.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::{self, ErrorCode, stream};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;

use crate::queue::jetstream::command;
use crate::queue::jetstream::connection::Connection;
use crate::queue::jetstream::source::{LIMITS, Shared, jobs_in};
use crate::queue::jetstream::streams::Prepared;
use crate::queue::wire::BoardNames;
use crate::state::Applied;
use crate::types::{Sequence, Timestamp};
use crate::writer::{Message, ShardState};

/// Messages asked for at a time; the next request goes out at half, so the server never waits for one. Asking for four
/// times as many as 4,000 took a tenth off what the server spends on each.
const PULL_MESSAGES: usize = 16_000;
/// And bytes. More than the largest message there can be, or that one would never come.
const PULL_BYTES: usize = 16 << 20;
/// A server that says nothing for twice as long is gone.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// A pull request that nothing answered is made again after so long.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
/// The server forgets a consumer that nobody pulls from after so long.
const CONSUMER_INACTIVE: Duration = Duration::from_secs(60);
/// Pauses between sessions double from the first to the second.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often the reason is looked at why there is no connection.
const DOWN_LOOK: Duration = Duration::from_millis(500);
/// A server that is just starting, or has just become the leader, may not know the end of the stream yet: what it says
/// must be said so often, a pause apart, to be believed.
const SUSPICIONS: u32 = 5;
const SUSPICION_PAUSE: Duration = Duration::from_millis(500);

/// Why a session ended.
enum End {
    /// Something failed that may be well again.
    Retry(String),
    /// The stream does not continue what was applied, as far as this server knows.
    Suspect(String),
    /// It does not. The text says what to do.
    Halt(String),
    /// Nobody listens any more.
    Closed,
}

pub struct Fetcher {
    shared: Arc<Shared>,
    /// The last message handed on.
    tip: Applied,
    /// The identity of the stream that the tip is from; empty if it is not known.
    stream: String,
    chunks: mpsc::Sender<Vec<Message>>,
    /// What comes by it is from a node.
    control_subject: String,
    names: BoardNames,
    /// The stream is at odds with the tip, and the operator has accepted that: the tip's message is not asked for.
    accepted: bool,
    /// Sessions in a row that met the same gap.
    gaps: u32,
    suspicions: u32,
    pause: Duration,
}

impl Fetcher {
    pub fn new(
        shared: Arc<Shared>,
        tip: Applied,
        stream: String,
        chunks: mpsc::Sender<Vec<Message>>,
    ) -> Self {
        let pause = PAUSE_FIRST;
        let control_subject = shared.names.control_subject(shared.shard);
        Self {
            shared,
            tip,
            stream,
            chunks,
            control_subject,
            names: BoardNames::default(),
            accepted: false,
            gaps: 0,
            suspicions: 0,
            pause,
        }
    }

    /// Hands on messages until the shard halts or nobody listens.
    pub async fn run(mut self) {
        if let Err(reason) = self.wait_until_prepared().await {
            self.halt(reason);
            return;
        }
        loop {
            let Err(end) = self.session().await;
            match end {
                End::Closed => return,
                End::Halt(reason) => {
                    self.halt(reason);
                    return;
                }
                End::Suspect(reason) => {
                    self.suspicions += 1;
                    if self.suspicions >= SUSPICIONS {
                        self.halt(reason);
                        return;
                    }
                    self.shared.set_state(ShardState::CatchingUp(reason));
                    tokio::time::sleep(SUSPICION_PAUSE).await;
                }
                End::Retry(reason) => {
                    tracing::info!(shard = %self.shared.shard, reason, "the stream is taken up again");
                    self.shared.set_state(ShardState::CatchingUp(reason));
                    tokio::time::sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    fn halt(&self, reason: String) {
        self.shared.set_state(ShardState::Halted(reason));
    }

    async fn wait_until_prepared(&mut self) -> Result<(), String> {
        let mut prepared = self.shared.prepared.clone();
        loop {
            match &*prepared.borrow_and_update() {
                Prepared::Waiting(reason) => self.shared.set_state(ShardState::CatchingUp(reason.clone())),
                Prepared::Refused(reason) => return Err(reason.clone()),
                Prepared::Ready => return Ok(()),
            }
            if prepared.changed().await.is_err() {
                return Err("the service is ending".to_owned());
            }
        }
    }

    /// One consumer's life.
    async fn session(&mut self) -> Result<Infallible, End> {
        let shared = Arc::clone(&self.shared);
        let connection = shared.connection().await.map_err(End::Halt)?;
        let mut connected = connection.connected.clone();
        while !connection.is_up() {
            self.shared.set_state(ShardState::CatchingUp(connection.why_down()));
            tokio::select! {
                _ = connected.changed() => {}
                () = tokio::time::sleep(DOWN_LOOK) => {}
                () = self.chunks.closed() => return Err(End::Closed),
            }
        }
        connected.borrow_and_update();
        let info = self.stream_info(connection).await?;
        self.shared.health.set_last_sequence(info.state.last_sequence);
        self.check(&info)?;
        if self.accepted {
            self.move_stream_on(connection, &info).await?;
        }
        self.stream = identity(&info);
        self.shared.set_stream(&self.stream);
        let purged = info.state.first_sequence > self.tip.sequence.0;
        let mut overlaps = self.tip.sequence.0 > 0 && !self.accepted && !purged;
        let start = if overlaps { self.tip.sequence.0 } else { self.tip.sequence.0 + 1 };
        let retry = |error: &dyn std::fmt::Display| {
            End::Retry(connection.explain(&format!("the stream cannot be read: {error}")))
        };
        let consumer = connection
            .context
            .create_consumer_on_stream(consumer(start), shared.names.jobs_stream(shared.shard));
        let consumer = consumer.await.map_err(|error| retry(&error))?;
        let messages = consumer
            .stream()
            .max_messages_per_batch(PULL_MESSAGES)
            .max_bytes_per_batch(PULL_BYTES.max(connection.client.max_payload() * 2))
            .heartbeat(HEARTBEAT)
            .expires(PULL_EXPIRES);
        let mut messages = messages.messages().await.map_err(|error| retry(&error))?;
        let target = info.state.last_sequence;
        self.note_progress(target);
        loop {
            let mut next = tokio::select! {
                next = messages.next() => Some(next),
                _ = connected.changed() => return Err(End::Retry("the connection to NATS was lost".to_owned())),
                () = self.chunks.closed() => return Err(End::Closed),
            };
            let mut chunk = Vec::new();
            let (mut jobs, mut bytes, mut failed) = (0, 0, None);
            while let Some(message) = next.take() {
                match self.take(message, &mut overlaps) {
                    Ok(Some(message)) => {
                        jobs += jobs_in(&message.payload);
                        bytes += message.bytes;
                        chunk.push(message);
                    }
                    Ok(None) => {}
                    Err(end) => {
                        failed = Some(end);
                        break;
                    }
                }
                if jobs >= LIMITS.jobs || bytes >= LIMITS.bytes {
                    break;
                }
                // What is here already belongs to this chunk; waiting for more would only delay it.
                next = messages.next().now_or_never();
            }
            if !chunk.is_empty() {
                self.chunks.send(chunk).await.map_err(|_| End::Closed)?;
                self.note_progress(target);
            }
            if let Some(end) = failed {
                return Err(end);
            }
        }
    }

    async fn stream_info(&self, connection: &Connection) -> Result<stream::Info, End> {
        let name = self.shared.names.jobs_stream(self.shared.shard);
        match connection.context.get_stream(&name).await {
            Ok(stream) => Ok(stream.cached_info().clone()),
            Err(error) => Err(match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    End::Suspect(format!(
                        "the stream {name} is gone; restore it from a backup, or start with --accept-gap {} to go on \
                         with an empty one",
                        self.shared.shard
                    ))
                }
                _ => End::Retry(connection.explain(&format!("the stream {name} cannot be asked: {error}"))),
            }),
        }
    }

    /// Whether the stream can be the one that the tip is from, and still holds all that comes after.
    fn check(&mut self, info: &stream::Info) -> Result<(), End> {
        let (tip, shard) = (self.tip.sequence.0, self.shared.shard);
        let (first, last) = (info.state.first_sequence, info.state.last_sequence);
        let name = &info.config.name;
        let found = identity(info);
        let odd = if tip > 0 && self.stream.is_empty() {
            Some(End::Halt(format!(
                "this directory was filled without NATS up to {tip}, which the stream {name} does not continue; \
                 export it and import it into a new one"
            )))
        } else if tip > 0 && self.stream != found {
            Some(End::Halt(format!(
                "the stream {name} is not the one that this shard was filled from up to {tip} ({found}, and not {}): \
                 it was deleted and made again, or belongs to another system; restore the stream, or start with \
                 --accept-gap {shard} to go on with what is stored in it after {tip}",
                self.stream
            )))
        } else if last < tip {
            Some(End::Suspect(format!(
                "the stream {name} ends at {last}, and this shard has applied up to {tip}: the server lost the end of \
                 it, and will use the sequences again; restore the stream, or start with --accept-gap {shard} to go on \
                 with what is stored from now on"
            )))
        } else if first > tip + 1 {
            Some(End::Halt(format!(
                "the messages {} to {} are gone from the stream {name} and were never applied here; restore a newer \
                 snapshot of this shard, or start with --accept-gap {shard} to go on without them",
                tip + 1,
                first - 1
            )))
        } else {
            None
        };
        match odd {
            None => {
                self.suspicions = 0;
                Ok(())
            }
            Some(end) => self.unless_accepted(end),
        }
    }

    fn unless_accepted(&mut self, end: End) -> Result<(), End> {
        let (End::Halt(reason) | End::Suspect(reason)) = &end else { return Err(end) };
        if !self.shared.accept_gap.swap(false, Ordering::SeqCst) {
            return Err(end);
        }
        tracing::warn!(shard = %self.shared.shard, reason, "accepted, as --accept-gap says");
        self.accepted = true;
        Ok(())
    }

    /// Makes the stream's next sequence come after the tip, so that no sequence stands for two messages here.
    async fn move_stream_on(&mut self, connection: &Connection, info: &stream::Info) -> Result<(), End> {
        let tip = self.tip.sequence.0;
        if info.state.last_sequence < tip {
            let failed = |error: &dyn std::fmt::Display| {
                self.shared.accept_gap.store(true, Ordering::SeqCst);
                End::Retry(format!("the stream's sequences cannot be moved on to {}: {error}", tip + 1))
            };
            let stream =
                connection.context.get_stream(&info.config.name).await.map_err(|error| failed(&error))?;
            let purged = stream.purge().sequence(tip + 1).await.map_err(|error| failed(&error))?;
            tracing::warn!(shard = %self.shared.shard, messages = purged.purged, "the stream goes on after {tip}");
        }
        if info.state.first_sequence > tip + 1 {
            self.tip.sequence = Sequence(info.state.first_sequence - 1);
        }
        Ok(())
    }

    /// A message as the writer takes it; `None` if it was handed on before.
    fn take(
        &mut self,
        next: Option<Result<jetstream::Message, pull::MessagesError>>,
        overlaps: &mut bool,
    ) -> Result<Option<Message>, End> {
        let message = next
            .ok_or_else(|| End::Retry("the server ended the delivery".to_owned()))?
            .map_err(|error| End::Retry(format!("the delivery failed: {error}")))?;
        let info = message.info().map_err(|error| End::Retry(format!("a message has no place: {error}")))?;
        let sequence = info.stream_sequence;
        let micros = i64::try_from(info.published.unix_timestamp_nanos() / 1_000).unwrap_or_default();
        let timestamp = Timestamp::from_micros(micros).unwrap_or_default();
        let hash = command::hash(&message.payload);
        let tip = self.tip;
        if *overlaps && sequence == tip.sequence.0 {
            if (timestamp, hash) != (tip.timestamp, tip.hash) {
                let shard = self.shared.shard;
                let end = End::Halt(format!(
                    "the message {sequence} of the stream is not the one that was applied here (it is of {timestamp}, \
                     and that one was of {}): the server lost the end of the stream and used the sequences again; \
                     restore the stream, or start with --accept-gap {shard} to go on after {sequence}",
                    tip.timestamp
                ));
                self.unless_accepted(end)?;
            }
            *overlaps = false;
            return Ok(None);
        }
        if sequence <= tip.sequence.0 {
            return Ok(None);
        }
        if *overlaps || sequence != tip.sequence.0 + 1 {
            let reason = format!(
                "the stream goes on at {sequence} after {}: messages between are missing; restore the stream, or start \
                 with --accept-gap {} to go on without them",
                tip.sequence, self.shared.shard
            );
            self.gaps += 1;
            // They may have been lost on the way here; a new consumer shows whether they are there.
            return Err(if self.gaps > 1 { End::Halt(reason) } else { End::Retry(reason) });
        }
        self.gaps = 0;
        self.accepted = false;
        self.tip = Applied { sequence: Sequence(sequence), timestamp, hash };
        self.shared.health.set_last_sequence(sequence + info.pending);
        let headers = message.headers.as_ref();
        let id = headers.and_then(|headers| headers.get(async_nats::header::NATS_MESSAGE_ID));
        let answer = id.and_then(|id| self.shared.waiters.take(id.as_str()));
        Ok(Some(Message {
            sequence: self.tip.sequence,
            timestamp,
            hash,
            payload: if message.subject.as_str() == self.control_subject {
                command::decode_control(headers, &message.payload)
            } else {
                command::decode_jobs(&mut self.names, &message.payload)
            },
            bytes: message.length,
            answer,
        }))
    }

    /// Live once all is handed on that was stored when the session began.
    fn note_progress(&mut self, target: u64) {
        let tip = self.tip.sequence.0;
        if tip >= target {
            self.pause = PAUSE_FIRST;
            self.shared.set_state(ShardState::Live);
        } else {
            self.shared
                .set_state(ShardState::CatchingUp(format!("{} messages behind the stream", target - tip)));
        }
    }
}

fn consumer(start_sequence: u64) -> pull::Config {
    pull::Config {
        description: Some("ranktree: the writer of this shard".to_owned()),
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
        ack_policy: AckPolicy::None,
        inactive_threshold: CONSUMER_INACTIVE,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    }
}

/// Which stream this is: a stream that is deleted and made again has the same name, and another birth.
pub fn identity(info: &stream::Info) -> String {
    format!("{}@{}", info.config.name, info.created.unix_timestamp_nanos())
}
