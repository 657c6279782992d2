//! Looks after a shard's stream: how far it goes, what is purged from it, and when a checkpoint has to make
//! room.
//!
//! Knows: how a stream is looked at and purged, and that a session must have confirmed that the stream
//! continues what was applied. Must not know: what may be purged (`policy`), or what a checkpoint is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::stream::{Info, Stream};
use metrics::{Counter, Gauge, counter, gauge};

use crate::metrics::{self as names, figure};
use crate::queue::nats::consume::origin::identity;
use crate::queue::nats::consume::sessions::Confirmed;
use crate::queue::nats::consume::shard_stream::ShardStream;
use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::peers::floors::{FloorsOfOthers, PurgedStream};
use crate::queue::nats::retention::policy::{Purge, Retention, StreamSnapshot};
use crate::queue::nats::retention::room;
use crate::queue::nats::shard::NatsShard;
use crate::writer::{QueueFault, QueueLevel, QueueRoom};

/// How often a stream is looked at, unless it grows quickly.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked at while room waits for a checkpoint.
const CHECK_INTERVAL_WAITING: Duration = Duration::from_millis(100);
/// The purge of young messages is logged at most this often.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// It is logged that it is unknown what other nodes need once that lasts: what they say is read a moment
/// after a start, or after a connection was lost.
const UNKNOWN_LOGGED_AFTER: Duration = Duration::from_secs(5);

/// Metrics and log lines about a shard's stream.
struct Report {
    messages: Gauge,
    bytes: Gauge,
    bytes_max: Gauge,
    purged: Counter,
    purged_early: Counter,
    /// Messages that were purged early and are not logged yet.
    unlogged: u64,
    logged: Option<Instant>,
    /// When it was last logged that the stream has little room, and whether it still has.
    full_logged: Option<Instant>,
    is_full: bool,
    /// When it was last logged that messages were purged that other nodes need.
    beyond_logged: Option<Instant>,
    /// Since when it has been unknown what other nodes need, and when that was logged.
    unknown: Option<(Instant, Option<Instant>)>,
    misconfigured: Gauge,
    /// When it was last logged that the stream is not configured as it must be, and what was said.
    fault_logged: Option<(Instant, QueueFault)>,
}

impl Report {
    fn new(stream: &ShardStream) -> Self {
        let label = || [("shard", stream.shard.to_string())];
        Self {
            messages: gauge!(names::STREAM_MESSAGES, &label()),
            bytes: gauge!(names::STREAM_BYTES, &label()),
            bytes_max: gauge!(names::STREAM_BYTES_MAX, &label()),
            purged: counter!(names::STREAM_PURGED_MESSAGES_TOTAL, &label()),
            purged_early: counter!(names::STREAM_PURGED_EARLY_MESSAGES_TOTAL, &label()),
            unlogged: 0,
            logged: None,
            full_logged: None,
            is_full: false,
            beyond_logged: None,
            unknown: None,
            misconfigured: gauge!(names::STREAM_MISCONFIGURED, &label()),
            fault_logged: None,
        }
    }

    /// Logs that a stream has little room, and what holds its messages; and that it has room again.
    fn note_room(&mut self, stream: &ShardStream, room: &QueueRoom) {
        let is_full = room.level > QueueLevel::Roomy;
        if is_full && self.full_logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            tracing::warn!(
                shard = %stream.shard,
                level = room.level.name(),
                reason = room.reason,
                "the stream is full or nearly full, and refuses publishers or will soon"
            );
            (self.full_logged, self.is_full) = (Some(Instant::now()), true);
        } else if !is_full && self.is_full {
            tracing::info!(shard = %stream.shard, bytes = room.bytes, "the stream has room again");
            self.is_full = false;
        }
    }

    /// Logs that the stream's settings were changed, and that they are as they must be again.
    fn note_fault(&mut self, stream: &ShardStream, fault: Option<&QueueFault>) {
        self.misconfigured.set(if fault.is_some() { 1.0 } else { 0.0 });
        match (fault, &self.fault_logged) {
            (Some(fault), Some((when, said))) if said == fault && when.elapsed() < LOG_INTERVAL => {}
            (Some(fault), _) => {
                tracing::error!(shard = %stream.shard, fault = fault.what, "the stream of jobs cannot be relied on");
                self.fault_logged = Some((Instant::now(), fault.clone()));
            }
            (None, Some(_)) => {
                tracing::info!(shard = %stream.shard, "the stream of jobs is configured as it must be again");
                self.fault_logged = None;
            }
            (None, None) => {}
        }
    }

    /// Logs that it cannot be told what other nodes need, once in a while.
    fn note_holder(&mut self, stream: &ShardStream, floors: &FloorsOfOthers) {
        let Some(why) = floors.holder.as_ref().filter(|_| floors.is_unknown) else {
            self.unknown = None;
            return;
        };
        let (since, logged) = self.unknown.get_or_insert_with(|| (Instant::now(), None));
        let is_due = logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL);
        if since.elapsed() >= UNKNOWN_LOGGED_AFTER && is_due {
            tracing::warn!(shard = %stream.shard, why, "the stream is not purged for now, unless it fills up");
            *logged = Some(Instant::now());
        }
    }

    /// Logs that other nodes lost messages that they need.
    fn note_beyond_floors(&mut self, stream: &ShardStream, before: u64) {
        if self.beyond_logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            tracing::warn!(
                shard = %stream.shard,
                before,
                "the stream is filling up, so messages were purged that another node's checkpoint does not hold; \
                 if that node has not applied them, it needs a copy of another node's data"
            );
            self.beyond_logged = Some(Instant::now());
        }
    }

    fn note_early(&mut self, stream: &ShardStream, snapshot: &StreamSnapshot, early: u64) {
        self.purged_early.increment(early);
        self.unlogged += early;
        if early > 0 && self.logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            tracing::warn!(
                shard = %stream.shard,
                messages = self.unlogged,
                stream_bytes_max = snapshot.bytes_max,
                "the stream is filling up, so messages that may be younger than its duplicate window were \
                 purged. A checkpoint holds them, but after a restart nats-server would store them a \
                 second time for publishers that retry with the same Nats-Msg-Id; give the stream more \
                 room"
            );
            (self.logged, self.unlogged) = (Some(Instant::now()), 0);
        }
    }
}

/// What retention keeps of one shard's stream between its checks.
struct RetentionState {
    retention: Retention,
    /// The session that confirmed the stream, and how often the connection had been made when it was first
    /// seen.
    session: Option<(Confirmed, u64)>,
    report: Report,
    /// What other owners were found to need.
    floors: FloorsOfOthers,
    /// Why the last attempt to purge it failed.
    failure: Option<String>,
    /// What is wrong with its settings.
    fault: Option<QueueFault>,
}

impl JetStream {
    /// Looks after a shard's stream for as long as the service runs.
    pub async fn run_retention(&self, shard: &NatsShard) {
        let stream = &shard.stream;
        let (retention, report) = (Retention::default(), Report::new(stream));
        let floors = FloorsOfOthers::NONE;
        let (session, failure, fault) = (None, None, None);
        let mut state = RetentionState { retention, session, report, floors, failure, fault };
        let mut pause = CHECK_INTERVAL;
        loop {
            stream.growth.wait(pause).await;
            pause = CHECK_INTERVAL;
            if !self.managing.is_up() {
                continue;
            }
            match self.check_and_purge(shard, &mut state).await {
                Ok(waits) if waits => pause = CHECK_INTERVAL_WAITING,
                Ok(_) => {}
                Err(error) => {
                    let error = self.managing.explain(&error);
                    if self.managing.should_log(&error) {
                        tracing::warn!(shard = %stream.shard, error, "the state of the shard's stream could not be read, or the stream could not be purged");
                    }
                }
            }
        }
    }

    /// Looks at the stream, and purges what may go. `true`: room waits for a checkpoint.
    async fn check_and_purge(&self, shard: &NatsShard, state: &mut RetentionState) -> Result<bool, String> {
        let shared = &shard.stream;
        let name = self.names.jobs_stream(shard.id);
        let connections = *self.managing.connected.borrow();
        // Before the stream is asked, so that its answer is later than what the session has confirmed.
        let confirmed = shared.sessions.confirmed();
        let mut stream = self.managing.stream(&name).await.map_err(|error| error.to_string())?;
        let mut snapshot = snapshot_of(stream.cached_info());
        state.fault = self.jobs_fault(&stream.cached_info().config, shard.id);
        state.report.note_fault(shared, state.fault.as_ref());
        state.report.messages.set(figure(snapshot.messages));
        state.report.bytes.set(figure(snapshot.bytes));
        state.report.bytes_max.set(figure(snapshot.bytes_max));
        // Only the stream that the shard is filled from is purged, once it is known to continue what was
        // applied.
        let confirmed = confirmed.filter(|_| identity(stream.cached_info()) == shared.stream());
        let Some(session) = confirmed else {
            state.session = None;
            self.note_room(shard, state, &snapshot);
            return Ok(false);
        };
        shared.growth.note_check(snapshot.bytes_to_next());
        if state.session.is_none_or(|(before, _)| before != session) {
            state.retention.begin_session(session.end);
            state.session = Some((session, connections));
        }
        let same_connection = state.session == Some((session, connections));
        if !state.retention.note(&snapshot) || !same_connection {
            // Another server may have answered, or one that has lost the end of the stream. The tip must be
            // compared again.
            shared.sessions.doubt();
            return Ok(false);
        }
        shared.health.set_last_sequence(snapshot.last);
        let Some(keeps) = self.settings.purge_keeps else {
            self.note_room(shard, state, &snapshot);
            return Ok(false);
        };
        let checkpoint = || shared.health.get(|health| health.checkpoint_sequence);
        let identity = shared.stream();
        // Sizes are estimates, so one purge may make too little room.
        loop {
            // In this order. If no copy is given after the checkpoint was looked at, every later copy holds
            // what that checkpoint holds. If one is given no more, the floor of the node that fetched it was
            // read.
            let (held, given) = (checkpoint(), shared.copies.given());
            let purged = PurgedStream { identity: &identity, first: snapshot.first };
            state.floors = self.peers.floors(shard.id, purged).with_given(given);
            state.report.note_holder(shared, &state.floors);
            let Some(purge) = state.retention.purge(&snapshot, held, keeps, &state.floors) else { break };
            let same_connection = *self.managing.connected.borrow() == connections;
            if !self.managing.is_up() || !same_connection || shared.sessions.confirmed() != Some(session) {
                return Ok(false);
            }
            let purged = self.purge(shared, &stream, &snapshot, purge, &mut state.report).await;
            state.failure = purged.as_ref().err().map(|error| self.managing.explain(error));
            if let Err(error) = purged {
                self.note_room(shard, state, &snapshot);
                return Err(error);
            }
            let first = snapshot.first;
            snapshot = snapshot_of(stream.info().await.map_err(|error| error.to_string())?);
            if !state.retention.note(&snapshot) {
                shared.sessions.doubt();
                return Ok(false);
            }
            if snapshot.first == first {
                break;
            }
        }
        self.note_room(shard, state, &snapshot);
        let checkpoint = checkpoint();
        let wants = state.retention.wants_checkpoint(&snapshot, checkpoint, shard.applied.get().0);
        if wants {
            shared.health.want_checkpoint_after(checkpoint);
        }
        Ok(wants)
    }

    /// Notes how full the stream is, and what holds its messages.
    fn note_room(&self, shard: &NatsShard, state: &mut RetentionState, snapshot: &StreamSnapshot) {
        let shared = &shard.stream;
        // The stream's own sequences are smaller by the offset.
        let offset = shared.sequence_offset().unwrap_or(0);
        let in_stream = |sequence: u64| sequence.saturating_sub(offset);
        let is_known = state.session.is_some();
        let progress = room::Progress {
            applied: in_stream(shard.applied.get().0),
            checkpoint: in_stream(shared.health.get(|health| health.checkpoint_sequence)),
            past_duplicate_window: if is_known { state.retention.past_duplicate_window(snapshot) } else { 0 },
            floor: state.floors.all,
            is_live: shared.health.is_live(),
        };
        let purging = room::Purging {
            stream: &self.names.jobs_stream(shared.shard),
            purge_keeps: self.settings.purge_keeps,
            holder: state.floors.holder.as_deref(),
            failure: state.failure.as_deref(),
        };
        // If the stream is not known to be the shard's, all messages are taken to be of one size.
        let average = snapshot.bytes.checked_div(snapshot.messages).unwrap_or(0);
        let mut room = room::room_of(snapshot, progress, purging, |after, up_to| {
            if is_known { state.retention.bytes_between(after, up_to) } else { average * (up_to - after) }
        });
        // Where the stream of rejects is not as it must be, the shards' rejects wait.
        let of_rejects =
            || Some(QueueFault { what: self.rejects_fault.lock().clone()?, refuses_writes: false });
        room.fault = state.fault.clone().or_else(of_rejects);
        state.report.note_room(shared, &room);
        shared.health.set(|health| health.queue_room = Some(Arc::new(room)));
    }

    async fn purge(
        &self,
        shared: &ShardStream,
        stream: &Stream<Info>,
        snapshot: &StreamSnapshot,
        purge: Purge,
        report: &mut Report,
    ) -> Result<(), String> {
        let purged = stream.purge().sequence(purge.before).await.map_err(|error| error.to_string())?.purged;
        report.purged.increment(purged);
        report.note_early(shared, snapshot, purge.early);
        if purge.is_beyond_floors {
            report.note_beyond_floors(shared, purge.before);
        }
        tracing::debug!(shard = %shared.shard, messages = purged, "purged messages that a checkpoint holds");
        Ok(())
    }
}

fn snapshot_of(info: &Info) -> StreamSnapshot {
    let limit = |limit: i64| u64::try_from(limit).unwrap_or(0);
    StreamSnapshot {
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
