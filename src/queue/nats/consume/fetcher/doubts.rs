//! What is done when a stream does not seem to continue what was applied.
//!
//! Knows: a consumer is fed by one server, which may lag behind the stream's leader or lack messages that the leader has; the
//! leader has the last word. A server that starts, or has just become the leader, may not know the stream's end yet, so its
//! last word counts once it has held for a while. And what was wrong may be put right: a shard that is halted looks again.
//! Must not know: what makes a stream continue; see `continuity`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::stream::Info;

use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::connect::leader_requests::Unanswered;
use crate::queue::nats::consume::fetcher::{End, Fetcher};
use crate::queue::nats::consume::source::Shared;
use crate::queue::nats::message;
use crate::types::Timestamp;
use crate::writer::ShardState;

/// How often a stream is asked whether a suspicion still holds.
const SUSPICION_PAUSE: Duration = Duration::from_millis(500);
/// How often a shard that is halted looks whether all is well again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// A consumer that brings nothing for so long is compared with the stream's end. Two such looks in a row, with nothing
/// brought between them, and it is left.
const LAG_LOOK: Duration = Duration::from_secs(3);

/// What is known against a stream.
#[derive(Default)]
pub(super) struct Doubts {
    /// Something did not fit since messages were last handed on: the next session begins with questions to the leader.
    pub(super) any: bool,
    /// Since when the leader has said so without a pause.
    suspected: Option<Instant>,
    /// What is wrong is told to everybody, and nothing is applied.
    halted: bool,
}

impl Fetcher {
    /// After something did not fit that a consumer brought.
    pub(super) async fn doubt(&mut self, reason: String) {
        tracing::warn!(shard = %self.shared.shard, reason, "what a consumer brought does not fit; asking the stream's leader");
        self.doubts.any = true;
        self.wait(ShardState::CatchingUp(reason), self.pause).await;
        self.slow_down();
    }

    /// After the leader said what would be a reason to halt, unless it says something else in a while.
    pub(super) async fn suspect(&mut self, reason: String) {
        self.doubts.any = true;
        let since = *self.doubts.suspected.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.shared.on_gap.halt_after {
            self.halt(reason).await;
            return;
        }
        self.wait(ShardState::CatchingUp(reason), SUSPICION_PAUSE).await;
    }

    /// After the leader said what is a reason to halt. Returns when it is time to look again, or the operator has accepted it.
    pub(super) async fn halt(&mut self, reason: String) {
        if self.shared.accept_gap.swap(false, Ordering::SeqCst) {
            tracing::warn!(shard = %self.shared.shard, reason, "accepted, as --accept-gap says");
            (self.accepted, self.doubts) = (true, Doubts::default());
            return;
        }
        (self.doubts.any, self.doubts.halted) = (true, true);
        self.shared.set_state(ShardState::Halted(reason));
        self.rest(LOOK_AGAIN).await;
    }

    /// After a failure that may be over at the next attempt.
    pub(super) async fn retry(&mut self, reason: String) {
        tracing::info!(shard = %self.shared.shard, reason, "the stream is taken up again");
        // Who cannot be asked confirms no suspicion.
        self.doubts.suspected = None;
        self.wait(ShardState::CatchingUp(reason), self.pause).await;
        self.slow_down();
    }

    /// Waits in a state. A shard that is halted stays that, whatever keeps it from looking again.
    async fn wait(&self, state: ShardState, pause: Duration) {
        if self.doubts.halted {
            self.rest(LOOK_AGAIN).await;
        } else {
            self.shared.set_state(state);
            self.rest(pause).await;
        }
    }

    /// Waits, but not when nobody listens any more.
    async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.chunks.closed() => {}
        }
    }

    /// Why messages do not come at the moment.
    pub(super) fn note_waiting(&self, reason: String) {
        if !self.doubts.halted {
            self.shared.set_state(ShardState::CatchingUp(reason));
        }
    }

    /// Messages were handed on, or none are missing.
    pub(super) fn note_no_doubts(&mut self) {
        self.doubts = Doubts::default();
    }

    /// Whether the leader has the last message that was handed on, as it was, and the one after it.
    pub(super) async fn ask_leader(&mut self, connection: &Connection, info: &Info) -> Result<(), End> {
        if !self.doubts.any || self.is_moved_on(info) {
            return Ok(());
        }
        let (name, shard, tip) = (&info.config.name, self.shared.shard, self.tip);
        let at = tip.sequence.0.saturating_sub(self.origin.shift);
        let is_stored =
            |sequence: u64| (info.state.first_sequence..=info.state.last_sequence).contains(&sequence);
        let unanswered = |error: Unanswered| {
            End::Retry(
                connection.explain(&format!("the leader of the stream {name} cannot be asked: {error}")),
            )
        };
        if self.origin.shift == 0 && tip.sequence.0 > 0 && is_stored(at) {
            let Some(message) = connection.message(name, at).await.map_err(unanswered)? else {
                return Err(End::Suspect(missing(name, at, info, shard)));
            };
            let timestamp = micros_of(message.time.unix_timestamp_nanos());
            if (timestamp, message::hash(&message.payload)) != (tip.timestamp, tip.hash) {
                return Err(End::Halt(format!(
                    "the message {at} of the stream {name} is not the one that was applied here (it is of {timestamp}, \
                     and that one was of {applied}): the server lost the end of the stream and used the sequences again; \
                     restore the stream, or start with --accept-gap {shard} to go on with what was stored after {applied}",
                    applied = tip.timestamp
                )));
            }
        }
        let next = at + 1;
        if !self.admits_gap
            && is_stored(next)
            && connection.message(name, next).await.map_err(unanswered)?.is_none()
        {
            return Err(End::Suspect(missing(name, next, info, shard)));
        }
        if std::mem::take(&mut self.doubts.halted) {
            tracing::warn!(%shard, "the stream continues what was applied: the shard goes on");
        }
        Ok(())
    }
}

fn missing(name: &str, sequence: u64, info: &Info, shard: crate::types::ShardId) -> String {
    format!(
        "the message {sequence} is missing in the stream {name}, which goes on up to {}; restore the stream, or start with \
         --accept-gap {shard} to go on without what is missing",
        info.state.last_sequence
    )
}

/// A server's time, to the microsecond.
pub(super) fn micros_of(nanos: i128) -> Timestamp {
    let micros = i64::try_from(nanos / 1_000).unwrap_or_default();
    Timestamp::from_micros(micros).unwrap_or_default()
}

/// Returns when a consumer brings nothing although its stream goes on: its server lags behind the leader, or is cut off from
/// it.
///
/// # Arguments
/// `tip`: the stream's sequence of the last message that was taken.
pub(super) async fn lag(shared: &Shared, connection: &Connection, tip: &AtomicU64) -> String {
    let name = shared.names.jobs_stream(shared.shard);
    let mut was_behind_at = None;
    loop {
        let at = tip.load(Ordering::Relaxed);
        tokio::time::sleep(LAG_LOOK).await;
        if tip.load(Ordering::Relaxed) != at {
            continue;
        }
        // Without an answer the connection is left before long, which ends the session.
        let Ok(stream) = connection.stream(&name).await else { continue };
        let last = stream.cached_info().state.last_sequence;
        if last <= at || tip.load(Ordering::Relaxed) != at {
            was_behind_at = None;
        } else if was_behind_at.replace(at) == Some(at) {
            return format!(
                "the consumer brings nothing after {at}, and the stream {name} goes on up to {last}"
            );
        }
    }
}
