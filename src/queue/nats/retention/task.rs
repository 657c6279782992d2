//! Housekeeping of the streams: how far they go, what of them goes away, and when a checkpoint has to make room.
//!
//! Knows: how a stream is looked at and purged, and that its session must have found that it continues what was applied.
//! Must not know: what may go (`policy`), nor what a checkpoint is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::stream::{Info, Stream};
use metrics::{Counter, Gauge, counter, gauge};
use tokio::sync::{Notify, watch};

use crate::metrics::{self as names, figure};
use crate::queue::nats::consume::origin::identity;
use crate::queue::nats::consume::sessions::Confirmed;
use crate::queue::nats::consume::source::Shared;
use crate::queue::nats::retention::policy::{Look, Purge, Retention};
use crate::queue::nats::retention::room;
use crate::queue::nats::streams::set_up::JetStream;
use crate::storage::StoreSlot;
use crate::types::Sequence;
use crate::writer::{QueueLevel, QueueRoom};

/// How often a stream is looked at, unless it grows quickly.
const EVERY: Duration = Duration::from_secs(1);
/// While room waits for a checkpoint.
const EVERY_WAITING: Duration = Duration::from_millis(100);
/// That young messages give way is logged at most this often.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// A shard whose stream is looked after.
pub struct Kept {
    pub shared: Arc<Shared>,
    pub store: Arc<StoreSlot>,
    pub applied: watch::Receiver<Sequence>,
}

/// How much a stream has grown since the last look: a second is too long for a small stream and a quick publisher.
#[derive(Default)]
pub struct Growth {
    unseen: AtomicU64,
    look_at: AtomicU64,
    looks: Notify,
}

impl Growth {
    /// Takes note of bytes that came by the stream.
    pub fn note(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.unseen.fetch_add(bytes, Ordering::Relaxed);
        let look_at = self.look_at.load(Ordering::Relaxed);
        if look_at > 0 && before < look_at && before + bytes >= look_at {
            self.looks.notify_one();
        }
    }

    /// A look was made; the next one is due after so many bytes.
    fn seen(&self, next: u64) {
        self.look_at.store(next, Ordering::Relaxed);
        self.unseen.store(0, Ordering::Relaxed);
    }

    async fn wait(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.looks.notified()).await;
    }
}

/// What is told of a shard's stream.
struct Told {
    messages: Gauge,
    bytes: Gauge,
    bytes_max: Gauge,
    purged: Counter,
    purged_early: Counter,
    /// Early ones that were not logged yet.
    unsaid: u64,
    said: Option<Instant>,
    /// When it was said last that the stream has little room, and whether it has been said since that it has some again.
    said_full: Option<Instant>,
    is_full: bool,
}

impl Told {
    fn new(shared: &Shared) -> Self {
        let label = || [("shard", shared.shard.to_string())];
        Self {
            messages: gauge!(names::STREAM_MESSAGES, &label()),
            bytes: gauge!(names::STREAM_BYTES, &label()),
            bytes_max: gauge!(names::STREAM_BYTES_MAX, &label()),
            purged: counter!(names::STREAM_PURGED_MESSAGES_TOTAL, &label()),
            purged_early: counter!(names::STREAM_PURGED_EARLY_MESSAGES_TOTAL, &label()),
            unsaid: 0,
            said: None,
            said_full: None,
            is_full: false,
        }
    }

    /// Says that a stream has little room, and what holds its messages; and that it has room again.
    fn note_room(&mut self, shared: &Shared, room: &QueueRoom) {
        let is_full = room.level > QueueLevel::Roomy;
        if is_full && self.said_full.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
            tracing::warn!(
                shard = %shared.shard,
                level = room.level.name(),
                reason = room.reason,
                "the stream has little or no room left for publishers"
            );
            (self.said_full, self.is_full) = (Some(Instant::now()), true);
        } else if !is_full && self.is_full {
            tracing::info!(shard = %shared.shard, bytes = room.bytes, "the stream has room again");
            self.is_full = false;
        }
    }

    fn note_early(&mut self, shared: &Shared, look: &Look, early: u64) {
        self.purged_early.increment(early);
        self.unsaid += early;
        if early > 0 && self.said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
            tracing::warn!(
                shard = %shared.shard,
                messages = self.unsaid,
                stream_bytes_max = look.bytes_max,
                "the stream fills up, so messages that may be younger than its duplicate window were purged; a \
                 checkpoint holds them, but if nats-server restarts it will store them again for publishers who retry \
                 by Nats-Msg-Id; give the stream more room"
            );
            (self.said, self.unsaid) = (Some(Instant::now()), 0);
        }
    }
}

/// What is known of one shard's stream, from look to look.
struct Keeping {
    retention: Retention,
    /// The session that it is of, and how often the connection had been made when it was first seen.
    session: Option<(Confirmed, u64)>,
    told: Told,
    /// Why it could not be purged when that was tried last.
    failure: Option<String>,
}

impl JetStream {
    /// Looks after a shard's stream for as long as the service runs.
    pub async fn keep(&self, kept: &Kept) {
        let shared = &kept.shared;
        let (retention, told) = (Retention::default(), Told::new(shared));
        let mut keeping = Keeping { retention, session: None, told, failure: None };
        let mut pause = EVERY;
        loop {
            shared.growth.wait(pause).await;
            pause = EVERY;
            if !self.managing.is_up() {
                continue;
            }
            match self.look_after(kept, &mut keeping).await {
                Ok(waits) if waits => pause = EVERY_WAITING,
                Ok(_) => {}
                Err(error) => {
                    let error = self.managing.explain(&error);
                    if self.managing.is_news(&error) {
                        tracing::warn!(shard = %shared.shard, error, "its stream could not be looked after");
                    }
                }
            }
        }
    }

    /// `true` if room waits for a checkpoint.
    async fn look_after(&self, kept: &Kept, keeping: &mut Keeping) -> Result<bool, String> {
        let shared = &kept.shared;
        let name = self.names.jobs_stream(shared.shard);
        let connections = *self.managing.connected.borrow();
        // Before the stream is asked: what it says has to be of later than what the session has found.
        let confirmed = shared.sessions.confirmed();
        let mut stream = self.managing.stream(&name).await.map_err(|error| error.to_string())?;
        let mut look = look_of(stream.cached_info());
        keeping.told.messages.set(figure(look.messages));
        keeping.told.bytes.set(figure(look.bytes));
        keeping.told.bytes_max.set(figure(look.bytes_max));
        // Only of the stream that the shard is filled from, and that is known to continue what was applied.
        let confirmed = confirmed.filter(|_| identity(stream.cached_info()) == shared.stream());
        let Some(session) = confirmed else {
            keeping.session = None;
            self.note_room(kept, keeping, &look);
            return Ok(false);
        };
        shared.growth.seen(look.bytes_to_next());
        if keeping.session.is_none_or(|(before, _)| before != session) {
            keeping.retention.begin_session(session.end);
            keeping.session = Some((session, connections));
        }
        let same_connection = keeping.session == Some((session, connections));
        if !keeping.retention.note(&look) || !same_connection {
            // Another server may answer, or one that has lost the end of the stream: the tip has to be compared again.
            shared.sessions.doubt();
            return Ok(false);
        }
        shared.health.set_last_sequence(look.last);
        let Some(keeps) = self.settings.purge_keeps else {
            self.note_room(kept, keeping, &look);
            return Ok(false);
        };
        let checkpoint = || shared.health.checkpoint_sequence();
        // Estimates of sizes may be off, so that one purge may not make all the room.
        while let Some(purge) = keeping.retention.purge(&look, checkpoint(), keeps) {
            let same_connection = *self.managing.connected.borrow() == connections;
            if !self.managing.is_up() || !same_connection || shared.sessions.confirmed() != Some(session) {
                return Ok(false);
            }
            let purged = self.purge(shared, &stream, &look, purge, &mut keeping.told).await;
            keeping.failure = purged.as_ref().err().map(|error| self.managing.explain(error));
            if let Err(error) = purged {
                self.note_room(kept, keeping, &look);
                return Err(error);
            }
            let first = look.first;
            look = look_of(stream.info().await.map_err(|error| error.to_string())?);
            if !keeping.retention.note(&look) {
                shared.sessions.doubt();
                return Ok(false);
            }
            if look.first == first {
                break;
            }
        }
        self.note_room(kept, keeping, &look);
        let checkpoint = checkpoint();
        let wants = keeping.retention.wants_checkpoint(&look, checkpoint, kept.applied.borrow().0);
        if wants {
            shared.health.want_checkpoint_after(checkpoint);
        }
        Ok(wants)
    }

    /// Takes note of how full the stream is after a look, and what holds the messages in it.
    fn note_room(&self, kept: &Kept, keeping: &mut Keeping, look: &Look) {
        let shared = &kept.shared;
        // Sequences here may be greater than the stream's own.
        let shift = shared.shift().unwrap_or(0);
        let in_stream = |sequence: u64| sequence.saturating_sub(shift);
        let is_known = keeping.session.is_some();
        let progress = room::Progress {
            applied: in_stream(kept.applied.borrow().0),
            checkpoint: in_stream(shared.health.checkpoint_sequence()),
            settled: if is_known { keeping.retention.settled(look) } else { 0 },
            is_live: shared.health.is_live(),
        };
        let set = room::Keeping {
            stream: &self.names.jobs_stream(shared.shard),
            purge_keeps: self.settings.purge_keeps,
            failure: keeping.failure.as_deref(),
        };
        // Of a stream that is not known to be the shard's, all messages are taken to be of one size.
        let average = look.bytes.checked_div(look.messages).unwrap_or(0);
        let room = room::room_of(look, progress, set, |after, up_to| {
            if is_known { keeping.retention.bytes_between(after, up_to) } else { average * (up_to - after) }
        });
        keeping.told.note_room(shared, &room);
        shared.health.set_queue_room(room);
    }

    async fn purge(
        &self,
        shared: &Shared,
        stream: &Stream<Info>,
        look: &Look,
        purge: Purge,
        told: &mut Told,
    ) -> Result<(), String> {
        let purged = stream.purge().sequence(purge.before).await.map_err(|error| error.to_string())?.purged;
        told.purged.increment(purged);
        told.note_early(shared, look, purge.early);
        tracing::debug!(shard = %shared.shard, messages = purged, "purged what a checkpoint holds");
        Ok(())
    }
}

fn look_of(info: &Info) -> Look {
    let limit = |limit: i64| u64::try_from(limit).unwrap_or(0);
    Look {
        at: Instant::now(),
        first: info.state.first_sequence,
        last: info.state.last_sequence,
        messages: info.state.messages,
        bytes: info.state.bytes,
        bytes_max: limit(info.config.max_bytes),
        messages_max: limit(info.config.max_messages),
        duplicate_window: info.config.duplicate_window,
    }
}
