//! The fetcher's loop: one session after the other, each with a consumer of its own.
//!
//! Knows: the tip, which is the last message that was handed on. Must not know: what makes a stream continue
//! the tip (`continuity`), or what follows when it does not (`recovery`, `rebase`).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream;
use tokio::sync::mpsc;

use crate::metrics::DECODE_SECONDS;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::copy_need::NeededCopy;
use crate::queue::nats::consume::fetcher::lag::lag;
use crate::queue::nats::consume::origin::Origin;
use crate::queue::nats::consume::place::Places;
use crate::queue::nats::consume::pull::Pull;
use crate::queue::nats::consume::shard_stream::{Prepared, ShardStream};
use crate::state::Applied;
use crate::wire::BoardNames;
use crate::writer::{BatchLimits, Message, OriginChanged, ShardState};

/// The pause between sessions doubles from `PAUSE_FIRST` up to `PAUSE_MAX`.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often a shard that catches up says how far behind it is: each time is a line in the log.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How often the reason for a missing connection is looked up.
const DOWN_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Reads one shard's stream ahead of its writer.
pub struct Fetcher {
    pub(super) shared: Arc<ShardStream>,
    /// The last message that was handed on: its sequence, time and hash.
    pub(super) tip: Applied,
    /// Where the tip is from.
    pub(super) origin: Origin,
    pub(super) chunks: mpsc::Sender<Chunk>,
    /// Its messages are commands of nodes.
    pub(super) control_subject: String,
    pub(super) names: BoardNames,
    /// How long chunks took to decode.
    decode: metrics::Histogram,
    /// The stream does not continue the tip, and the operator has accepted that: the next session rebases.
    pub(super) rebase_accepted: bool,
    /// The operator has accepted that messages are missing before the next one.
    pub(super) admits_gap: bool,
    pub(super) mismatch: MismatchState,
    pub(super) pause: Duration,
    /// When this session last said how far behind the shard is.
    progress_noted: Option<Instant>,
}

impl Fetcher {
    /// # Arguments
    /// `origin`: where the tip is from, as it was stored with it.
    pub fn new(shared: Arc<ShardStream>, tip: Applied, origin: &str, chunks: mpsc::Sender<Chunk>) -> Self {
        let control_subject = shared.names.control_subject(shared.shard);
        let decode = metrics::histogram!(DECODE_SECONDS, "shard" => shared.shard.to_string());
        let origin = Origin::read(origin);
        shared.set_filled_from(&origin.stream);
        Self {
            shared,
            tip,
            origin,
            chunks,
            control_subject,
            names: BoardNames::default(),
            decode,
            rebase_accepted: false,
            admits_gap: false,
            mismatch: MismatchState::default(),
            pause: PAUSE_FIRST,
            progress_noted: None,
        }
    }

    /// Hands on messages until the source is gone. A shard that is halted looks again now and then.
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
                SessionEnd::Closed => return,
                SessionEnd::Restart => {}
                SessionEnd::Recheck => self.mismatch.ask_leader_first = true,
                SessionEnd::Unrecoverable(reason) => {
                    self.shared.set_state(ShardState::Halted(reason));
                    return;
                }
                SessionEnd::Halt(reason) => self.halt(reason).await,
                SessionEnd::Refused(reason) => self.refuse(reason).await,
                SessionEnd::CopyNeeded(need) => self.on_copy_needed(need).await,
                SessionEnd::LeaderMismatch(reason) => self.on_leader_mismatch(reason).await,
                SessionEnd::ConsumerMismatch(reason) => self.on_consumer_mismatch(reason).await,
                SessionEnd::Retry(reason) => self.retry(reason).await,
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
                return Err("the node is shutting down".to_owned());
            }
        }
    }

    /// One consumer's life.
    ///
    /// # Arguments
    /// `number`: the session's, under which it confirms to retention that the stream continues the tip.
    async fn session(&mut self, number: u64) -> Result<Infallible, SessionEnd> {
        self.progress_noted = None;
        let shared = Arc::clone(&self.shared);
        let connection = shared.connection().await.map_err(SessionEnd::Unrecoverable)?;
        let mut connected = connection.connected.clone();
        while !connection.is_up() {
            self.note_waiting(connection.why_down());
            tokio::select! {
                _ = connected.changed() => {}
                () = tokio::time::sleep(DOWN_CHECK_INTERVAL) => {}
                () = self.chunks.closed() => return Err(SessionEnd::Closed),
            }
        }
        connected.borrow_and_update();
        let info = self.check_stream(connection).await?;
        let offset = self.origin.sequence_offset;
        shared.set_sequence_offset(offset);
        let target = info.state.last_sequence + offset;
        if offset > 0 && (self.is_purged_past_tip(&info) || target <= self.tip.sequence.0) {
            self.finish_rebase(connection).await?;
            return Err(SessionEnd::Restart);
        }
        self.shared.health.set_last_sequence(target);
        let purged = info.state.first_sequence + offset > self.tip.sequence.0;
        // While a stream is rebased, it does not hold the tip's message until one of its own is the tip.
        let mut overlaps = self.tip.sequence.0 > 0 && !purged && !self.admits_gap && offset == 0;
        let start = if overlaps { self.tip.sequence.0 } else { self.tip.sequence.0 + 1 - offset };
        let retry = |error: &dyn std::fmt::Display| {
            SessionEnd::Retry(connection.explain(&format!("the stream cannot be read: {error}")))
        };
        let name = shared.names.jobs_stream(shared.shard);
        let consumer = connection.create_consumer(&name, &consumer(start)).await;
        let consumer = consumer.map_err(|error| retry(&error))?;
        let mut pull = Pull::begin(&connection.client, &consumer).await.map_err(|error| retry(&error))?;
        let mut places = Places::default();
        // Confirmed once. With an offset the stream does not continue what was applied.
        let mut unconfirmed = (offset == 0).then_some(target);
        let mut confirm =
            || unconfirmed.take().into_iter().for_each(|end| shared.sessions.confirm(number, end));
        if !overlaps {
            confirm();
            self.note_progress(target);
        }
        let delivered = AtomicU64::new(self.tip.sequence.0.saturating_sub(offset));
        let mut lag = std::pin::pin!(lag(&shared, connection, &delivered));
        // Most chunks are as long as the one before.
        let mut chunk_length = 0;
        loop {
            let overlapped = overlaps;
            pull.ask_if_few_are_due().await.map_err(|error| SessionEnd::Retry(error.to_string()))?;
            let mut next = tokio::select! {
                // What ends the session comes first: there is always another message while the shard catches
                // up.
                biased;
                () = self.chunks.closed() => return Err(SessionEnd::Closed),
                _ = connected.changed() => return Err(SessionEnd::Retry("the connection to NATS was lost".to_owned())),
                () = shared.sessions.doubted(number) => return Err(SessionEnd::Recheck),
                reason = &mut lag => return Err(SessionEnd::Retry(reason)),
                next = pull.next() => next,
            };
            let came = Instant::now();
            let mut chunk = Vec::with_capacity(chunk_length);
            // The writer gives the name back that this thread counts up: on one that both use at the same
            // time, each would wait for the other's cache.
            self.names = BoardNames::default();
            let (mut jobs, mut bytes) = (0, 0);
            let failed = loop {
                let accepted = match &next {
                    Ok(message) => self.accept_message(message, &mut places, &mut overlaps, &mut chunk),
                    Err(error) => Err(SessionEnd::Retry(error.to_string())),
                };
                match accepted {
                    Ok((more_jobs, more_bytes)) => (jobs, bytes) = (jobs + more_jobs, bytes + more_bytes),
                    Err(end) => break Some(end),
                }
                if jobs >= BATCH_LIMITS.jobs || bytes >= BATCH_LIMITS.bytes {
                    break None;
                }
                // Messages that are here already join this chunk. Waiting for more would only delay it.
                match pull.ready() {
                    Some(message) => next = message,
                    None => break None,
                }
            };
            delivered.store(self.tip.sequence.0.saturating_sub(offset), Ordering::Relaxed);
            let has_progress = !chunk.is_empty() || overlapped && !overlaps;
            if !chunk.is_empty() {
                shared.health.raise_last_sequence(self.tip.sequence.0);
                chunk_length = chunk.len();
                self.decode.record(came.elapsed());
                shared.growth.note(bytes);
                self.chunks.send(Chunk::Messages(chunk)).await.map_err(|_| SessionEnd::Closed)?;
                self.forget_mismatch();
            }
            if let Some(end) = failed {
                return Err(end);
            }
            if offset > 0 && self.tip.sequence.0 >= target {
                self.finish_rebase(connection).await?;
                return Err(SessionEnd::Restart);
            }
            if has_progress {
                confirm();
                self.note_progress(target);
            }
        }
    }

    /// Reads the stream's state, and makes sure that the stream continues the tip.
    async fn check_stream(&mut self, connection: &Connection) -> Result<stream::Info, SessionEnd> {
        let mut info = self.stream_info(connection).await?;
        self.wait_for_owners(&info).await;
        if self.rebase_accepted {
            // The stream may be another one than that whose state was accepted.
            self.check_no_owner_has_it(&info)?;
            self.begin_rebase(connection, &info).await?;
            self.rebase_accepted = false;
        }
        self.check(&info)?;
        self.shared.copies.clear_need();
        self.ask_leader(connection, &info).await?;
        if self.origin.sequence_offset > 0 {
            self.refuse_publishers(connection, &info).await?;
            info = self.stream_info(connection).await?;
            self.check(&info)?;
            self.note_rebase_progress(&info);
        } else {
            if self.origin != Origin::of(&info) {
                // Nothing was applied yet: the shard is filled from this stream.
                self.change_origin(Origin::of(&info)).await?;
            }
            self.admit_publishers(connection, &info).await?;
            self.shared.set_stream(&self.origin.stream);
        }
        Ok(info)
    }

    pub(super) async fn stream_info(&self, connection: &Connection) -> Result<stream::Info, SessionEnd> {
        let name = self.shared.names.jobs_stream(self.shared.shard);
        match connection.stream(&name).await {
            Ok(stream) => Ok(stream.cached_info().clone()),
            Err(error) if error.is_no_stream() => Err(SessionEnd::LeaderMismatch(format!(
                "the stream {name} does not exist any more, or --nats or --prefix leads to another server, \
                 which never had it: compare them with those of the other nodes first; then restore it from \
                 a backup, or start with --accept-gap {} to continue with an empty one",
                self.shared.shard
            ))),
            Err(error) => Err(SessionEnd::Retry(
                connection.explain(&format!("the state of the stream {name} cannot be read: {error}")),
            )),
        }
    }

    /// The shard is live once all messages are handed on that the stream held when the session began.
    fn note_progress(&mut self, target: u64) {
        let tip = self.tip.sequence.0;
        if tip >= target {
            self.pause = PAUSE_FIRST;
            self.forget_mismatch();
            self.shared.set_state(ShardState::Live);
            // `--accept-gap` is about what the start finds, not about what may happen in a month.
            if self.shared.accept_gap.withdraw() && !self.shared.gap_policy.binds {
                tracing::info!(shard = %self.shared.shard, "the stream continues what was applied, so --accept-gap was not needed; remove it");
            }
        } else if self.progress_noted.is_none_or(|noted| noted.elapsed() >= PROGRESS_INTERVAL) {
            self.progress_noted = Some(Instant::now());
            self.shared
                .set_state(ShardState::CatchingUp(format!("{} messages behind the stream", target - tip)));
        }
    }
}

/// The evidence that the stream does not continue the tip.
#[derive(Default)]
pub struct MismatchState {
    /// Something did not fit since messages were last handed on: the next session begins by asking the
    /// leader.
    pub ask_leader_first: bool,
    /// Since when the leader has reported a mismatch at every look.
    pub leader_mismatch_since: Option<Instant>,
    /// The shard is halted.
    pub halted: bool,
}

/// The server forgets a consumer that nobody has pulled from for so long.
const INACTIVE_THRESHOLD: Duration = Duration::from_secs(60);

/// A consumer without a name that starts at a sequence of the stream and acknowledges nothing.
pub fn consumer(start_sequence: u64) -> pull::Config {
    pull::Config {
        description: Some("ranktree: the writer of this shard".to_owned()),
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
        ack_policy: AckPolicy::None,
        inactive_threshold: INACTIVE_THRESHOLD,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    }
}

/// Why a session ended.
pub enum SessionEnd {
    /// Nothing is wrong. The next session reads what this one changed.
    Restart,
    /// Retention saw a stream that this session may not have read, so the next one asks the leader first.
    Recheck,
    /// A failure that may be over at the next attempt.
    Retry(String),
    /// The stream does not continue what was applied, as far as the server of this consumer knows.
    ConsumerMismatch(String),
    /// The leader says so, too. A leader that has just started may not know the end of the stream yet.
    LeaderMismatch(String),
    /// The stream does not continue what was applied, and an operator may accept that. The text says what to
    /// do.
    Halt(String),
    /// The stream does not continue what was applied, and another owner's data are of it: no operator may
    /// accept that here. The text says what to do.
    Refused(String),
    /// The stream no longer has what comes next, and another owner's copy may.
    CopyNeeded(NeededCopy),
    /// The shard cannot continue, and `--accept-gap` does not help.
    Unrecoverable(String),
    /// The source is gone.
    Closed,
}

/// A batch: enough to share what a commit costs, few enough that nobody waits long for its end.
pub const BATCH_LIMITS: BatchLimits = BatchLimits { jobs: 1_000, bytes: 4 << 20 };

/// What the fetcher hands on, in order.
pub enum Chunk {
    Messages(Vec<Message>),
    /// The messages after this one come from another stream, or are counted with another offset.
    OriginChanged(OriginChanged),
}
