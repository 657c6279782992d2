//! Fetch and decode, ahead of the writer: a pull consumer that is made anew whenever anything is odd.
//!
//! Knows: the sequence, time and hash of the last message it handed on (the *tip*), and that the stream has to continue
//! exactly there. Must not know: what a job does. The writer's applied sequence, in the same write batch as its effects,
//! is the only acknowledgement: nothing is acknowledged to the server, and a consumer is worth nothing once lost.
//!
//! What async-nats 0.51 was seen to do, and what is done about it: its ordered consumer restarts from 1 and resumes past
//! lost data, so this is a plain consumer that starts *at* the tip, whose message must come back as it was; it may sit
//! out a dead server for minutes, so a heartbeat is asked for twice a second, and every reconnect ends the session.

mod continuity;
mod doubts;
mod rebase;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;

use crate::metrics::DECODE_SECONDS;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::fetcher::doubts::{Doubts, lag};
use crate::queue::nats::consume::origin::Origin;
use crate::queue::nats::consume::source::{Chunk, LIMITS, Shared};
use crate::queue::nats::streams::set_up::Prepared;
use crate::state::Applied;
use crate::wire::BoardNames;
use crate::writer::ShardState;

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

/// Why a session ended.
pub(super) enum End {
    /// Nothing is wrong: the next one sees what this one changed.
    Again,
    /// What this one has found is doubted: the next one begins with questions to the leader.
    Recheck,
    /// Something failed that may be well again.
    Retry(String),
    /// The stream does not continue what was applied, as far as the server of this consumer knows.
    Doubt(String),
    /// Its leader says so too. It may be one that does not know better yet.
    Suspect(String),
    /// It does not, and an operator may accept that. The text says what to do.
    Halt(String),
    /// There is no going on from here.
    Refuse(String),
    /// Nobody listens any more.
    Closed,
}

pub struct Fetcher {
    pub(super) shared: Arc<Shared>,
    /// The last message handed on.
    pub(super) tip: Applied,
    /// Where the tip is from.
    pub(super) origin: Origin,
    pub(super) chunks: mpsc::Sender<Chunk>,
    /// What comes by it is from a node.
    control_subject: String,
    names: BoardNames,
    /// How long chunks took to decode.
    decode: metrics::Histogram,
    /// The stream is at odds with the tip, and the operator has accepted that.
    accepted: bool,
    /// And that messages may be missing before the next one.
    pub(super) admits_gap: bool,
    doubts: Doubts,
    pause: Duration,
}

impl Fetcher {
    /// # Arguments
    /// `origin`: where the tip is from, as it was stored with it.
    pub fn new(shared: Arc<Shared>, tip: Applied, origin: &str, chunks: mpsc::Sender<Chunk>) -> Self {
        let control_subject = shared.names.control_subject(shared.shard);
        let decode = metrics::histogram!(DECODE_SECONDS, "shard" => shared.shard.to_string());
        Self {
            shared,
            tip,
            origin: Origin::read(origin),
            chunks,
            control_subject,
            names: BoardNames::default(),
            decode,
            accepted: false,
            admits_gap: false,
            doubts: Doubts::default(),
            pause: PAUSE_FIRST,
        }
    }

    /// Hands on messages until nobody listens. A shard that halts looks again now and then.
    pub async fn run(mut self) {
        if let Err(reason) = self.wait_until_prepared().await {
            self.shared.set_state(ShardState::Halted(reason));
            return;
        }
        loop {
            let number = self.shared.sessions.begin();
            let Err(end) = self.session(number).await;
            self.shared.sessions.end();
            match end {
                End::Closed => return,
                End::Again => {}
                End::Recheck => self.doubts.any = true,
                End::Refuse(reason) => {
                    self.shared.set_state(ShardState::Halted(reason));
                    return;
                }
                End::Halt(reason) => self.halt(reason).await,
                End::Suspect(reason) => self.suspect(reason).await,
                End::Doubt(reason) => self.doubt(reason).await,
                End::Retry(reason) => self.retry(reason).await,
            }
            if self.chunks.is_closed() {
                return;
            }
        }
    }

    /// The next session waits longer than this one did.
    pub(super) fn slow_down(&mut self) {
        self.pause = (self.pause * 2).min(PAUSE_MAX);
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
    ///
    /// # Arguments
    /// `number`: the session's, under which it tells the keeper what it has found.
    async fn session(&mut self, number: u64) -> Result<Infallible, End> {
        let shared = Arc::clone(&self.shared);
        let connection = shared.connection().await.map_err(End::Refuse)?;
        let mut connected = connection.connected.clone();
        while !connection.is_up() {
            self.note_waiting(connection.why_down());
            tokio::select! {
                _ = connected.changed() => {}
                () = tokio::time::sleep(DOWN_LOOK) => {}
                () = self.chunks.closed() => return Err(End::Closed),
            }
        }
        connected.borrow_and_update();
        let info = self.meet_stream(connection).await?;
        let shift = self.origin.shift;
        shared.set_shift(shift);
        let target = info.state.last_sequence + shift;
        if shift > 0 && (self.is_moved_on(&info) || target <= self.tip.sequence.0) {
            self.finish_taking_up(connection).await?;
            return Err(End::Again);
        }
        self.shared.health.set_last_sequence(target);
        let purged = info.state.first_sequence + shift > self.tip.sequence.0;
        // A stream that is taken up does not hold the tip's message until its own first one is the tip.
        let mut overlaps = self.tip.sequence.0 > 0 && !purged && !self.admits_gap && shift == 0;
        let start = if overlaps { self.tip.sequence.0 } else { self.tip.sequence.0 + 1 - shift };
        let retry = |error: &dyn std::fmt::Display| {
            End::Retry(connection.explain(&format!("the stream cannot be read: {error}")))
        };
        let name = shared.names.jobs_stream(shared.shard);
        let consumer = connection.create_consumer(&name, &consumer(start)).await;
        let consumer = consumer.map_err(|error| retry(&error))?;
        let messages = consumer
            .stream()
            .max_messages_per_batch(PULL_MESSAGES)
            .max_bytes_per_batch(PULL_BYTES.max(connection.client.max_payload() * 2))
            .heartbeat(HEARTBEAT)
            .expires(PULL_EXPIRES);
        let mut messages = messages.messages().await.map_err(|error| retry(&error))?;
        // Said once. With a shift the stream does not continue what was applied.
        let mut unconfirmed = (shift == 0).then_some(target);
        let mut confirm =
            || unconfirmed.take().into_iter().for_each(|end| shared.sessions.confirm(number, end));
        if !overlaps {
            confirm();
            self.note_progress(target);
        }
        let taken = AtomicU64::new(self.tip.sequence.0.saturating_sub(shift));
        let mut lag = std::pin::pin!(lag(&shared, connection, &taken));
        loop {
            let overlapped = overlaps;
            let mut next = tokio::select! {
                // What ends the session comes first: there is always another message while the shard catches up.
                biased;
                () = self.chunks.closed() => return Err(End::Closed),
                _ = connected.changed() => return Err(End::Retry("the connection to NATS was lost".to_owned())),
                () = shared.sessions.doubted(number) => return Err(End::Recheck),
                reason = &mut lag => return Err(End::Retry(reason)),
                next = messages.next() => Some(next),
            };
            let came = Instant::now();
            let mut chunk = Vec::new();
            let (mut jobs, mut bytes, mut failed) = (0, 0, None);
            while let Some(message) = next.take() {
                match self.take(message, &mut overlaps) {
                    Ok(Some(message)) => {
                        jobs += message.payload.cost();
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
            taken.store(self.tip.sequence.0.saturating_sub(shift), Ordering::Relaxed);
            let goes_on = !chunk.is_empty() || overlapped && !overlaps;
            if !chunk.is_empty() {
                self.decode.record(came.elapsed());
                shared.growth.note(bytes);
                self.chunks.send(Chunk::Messages(chunk)).await.map_err(|_| End::Closed)?;
                self.note_no_doubts();
            }
            if let Some(end) = failed {
                return Err(end);
            }
            if shift > 0 && self.tip.sequence.0 >= target {
                self.finish_taking_up(connection).await?;
                return Err(End::Again);
            }
            if goes_on {
                confirm();
                self.note_progress(target);
            }
        }
    }

    /// What the stream says of itself, which fits the tip.
    async fn meet_stream(&mut self, connection: &Connection) -> Result<stream::Info, End> {
        let mut info = self.stream_info(connection).await?;
        if self.accepted {
            self.take_up(connection, &info).await?;
            self.accepted = false;
        }
        self.check(&info)?;
        self.ask_leader(connection, &info).await?;
        if self.origin.shift > 0 {
            self.refuse_publishers(connection, &info).await?;
            info = self.stream_info(connection).await?;
            self.check(&info)?;
            self.note_taking_up(&info);
        } else {
            if self.origin != Origin::of(&info) {
                // Nothing was applied yet: this is where it comes from.
                self.rename(Origin::of(&info)).await?;
            }
            self.admit_publishers(connection, &info).await?;
            self.shared.set_stream(&self.origin.stream);
        }
        Ok(info)
    }

    pub(super) async fn stream_info(&self, connection: &Connection) -> Result<stream::Info, End> {
        let name = self.shared.names.jobs_stream(self.shared.shard);
        match connection.stream(&name).await {
            Ok(stream) => Ok(stream.cached_info().clone()),
            Err(error) if error.is_no_stream() && self.is_from_elsewhere() => {
                Err(End::Refuse(self.why_elsewhere()))
            }
            Err(error) if error.is_no_stream() => Err(End::Suspect(format!(
                "the stream {name} is gone; restore it from a backup, or start with --accept-gap {} to go on with an \
                 empty one",
                self.shared.shard
            ))),
            Err(error) => {
                Err(End::Retry(connection.explain(&format!("the stream {name} cannot be asked: {error}"))))
            }
        }
    }

    /// Live once all is handed on that was stored when the session began.
    fn note_progress(&mut self, target: u64) {
        let tip = self.tip.sequence.0;
        if tip >= target {
            self.pause = PAUSE_FIRST;
            self.note_no_doubts();
            self.shared.set_state(ShardState::Live);
            // Said of what was found at the start, not of what may happen in a month.
            if self.shared.accept_gap.swap(false, Ordering::SeqCst) {
                tracing::info!(shard = %self.shared.shard, "the stream continues what was applied: --accept-gap had nothing to accept");
            }
        } else {
            self.shared
                .set_state(ShardState::CatchingUp(format!("{} messages behind the stream", target - tip)));
        }
    }
}

pub(super) fn consumer(start_sequence: u64) -> pull::Config {
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
