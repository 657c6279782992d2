//! What the fetcher does when a stream does not seem to continue what was applied.
//!
//! Knows: a consumer is fed by one server, which may lag behind the stream's leader or lack messages that the
//! leader has. The leader decides. A server that starts, or has just become the leader, may not know the
//! stream's end yet, so its answer counts once it has been the same for a while. An operator may mend the
//! stream, so a shard that is halted looks again. Must not know: what makes a stream continue; see
//! `continuity`.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::Info;

use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::connect::leader_requests::LeaderError;
use crate::queue::nats::consume::copy_need::NeededCopy;
use crate::queue::nats::consume::fetcher::run::{Fetcher, MismatchState, SessionEnd};
use crate::queue::nats::consume::fingerprint::{hash, micros_of};
use crate::types::ShardId;
use crate::writer::ShardState;

/// How often the leader is asked again about a mismatch that it reported.
const LEADER_MISMATCH_PAUSE: Duration = Duration::from_millis(500);
/// How often a shard that is halted checks its stream again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

impl Fetcher {
    /// After a consumer brought something that does not fit.
    pub(super) async fn on_consumer_mismatch(&mut self, reason: String) {
        tracing::warn!(shard = %self.shared.shard, reason, "a consumer delivered messages that do not continue what was applied; asking the stream's leader");
        self.mismatch.ask_leader_first = true;
        self.wait(ShardState::CatchingUp(reason), self.pause).await;
        self.slow_down();
    }

    /// After the leader reported a mismatch. The shard halts if the leader still reports it after a while.
    pub(super) async fn on_leader_mismatch(&mut self, reason: String) {
        self.mismatch.ask_leader_first = true;
        let since = *self.mismatch.leader_mismatch_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.shared.gap_policy.halt_after {
            self.halt(reason).await;
            return;
        }
        self.wait(ShardState::CatchingUp(reason), LEADER_MISMATCH_PAUSE).await;
    }

    /// After the leader reported a mismatch that is a reason to halt. Returns when it is time to look again,
    /// or when the operator has accepted the mismatch.
    pub(super) async fn halt(&mut self, reason: String) {
        if self.shared.accept_gap.take(self.tip.sequence) {
            let because = if self.shared.gap_policy.binds {
                "a restore with --bind-new-streams"
            } else {
                "--accept-gap"
            };
            tracing::warn!(shard = %self.shared.shard, reason, "a stream that does not continue what was applied is accepted, because of {because}");
            (self.rebase_accepted, self.mismatch) = (true, MismatchState::default());
            return;
        }
        self.stay_halted(reason).await;
    }

    /// After a mismatch that no operator may accept here, because another owner's data are of the stream. A
    /// permission that was given ends: that owner may be gone later, and nobody was asked about that.
    pub(super) async fn refuse(&mut self, reason: String) {
        self.rebase_accepted = false;
        if self.shared.accept_gap.revoke() {
            tracing::error!(shard = %self.shared.shard, reason, "--accept-gap is refused");
        }
        self.stay_halted(reason).await;
    }

    async fn stay_halted(&mut self, reason: String) {
        (self.mismatch.ask_leader_first, self.mismatch.halted) = (true, true);
        self.shared.set_state(ShardState::Halted(reason));
        self.rest(RECHECK_INTERVAL).await;
    }

    /// After the stream was found to lack what comes next. Waits while another owner's copy is fetched; the
    /// writer begins another fetcher once it has the copy. Halts as long as there is none to be had.
    pub(super) async fn on_copy_needed(&mut self, need: NeededCopy) {
        let is_lost = self.shared.copies.lost().is_some();
        if !is_lost && self.shared.accept_gap.take(self.tip.sequence) {
            tracing::warn!(shard = %self.shared.shard, reason = need.reason, "a stream that does not continue what was applied is accepted, because of --accept-gap");
            (self.rebase_accepted, self.mismatch) = (true, MismatchState::default());
            return;
        }
        let mut outlook = self.shared.copies.outlook();
        outlook.borrow_and_update();
        let state = self.shared.copies.note_need(need);
        self.mismatch.ask_leader_first = true;
        self.mismatch.halted = matches!(state, ShardState::Halted(_));
        self.shared.set_state(state);
        tokio::select! {
            () = self.rest(RECHECK_INTERVAL) => {}
            _ = outlook.changed() => {}
        }
    }

    /// After a failure that may be over at the next attempt.
    pub(super) async fn retry(&mut self, reason: String) {
        tracing::info!(shard = %self.shared.shard, reason, "the session with the stream ended; beginning another one");
        // A leader that does not answer confirms nothing.
        self.mismatch.leader_mismatch_since = None;
        self.wait(ShardState::CatchingUp(reason), self.pause).await;
        self.slow_down();
    }

    /// Waits in a state. A shard that is halted stays halted, even if it cannot look again at the moment.
    async fn wait(&self, state: ShardState, pause: Duration) {
        if self.mismatch.halted {
            self.rest(RECHECK_INTERVAL).await;
        } else {
            self.shared.set_state(state);
            self.rest(pause).await;
        }
    }

    /// Waits, but not longer than the source lives.
    async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.chunks.closed() => {}
        }
    }

    /// Why messages do not come at the moment.
    pub(super) fn note_waiting(&self, reason: String) {
        if !self.mismatch.halted {
            self.shared.set_state(ShardState::CatchingUp(reason));
        }
    }

    /// Forgets the mismatch, because messages were handed on or none are missing.
    pub(super) fn forget_mismatch(&mut self) {
        self.mismatch = MismatchState::default();
    }

    /// Checks that the leader has the tip's message as it was handed on, and the message after it.
    pub(super) async fn ask_leader(
        &mut self,
        connection: &Connection,
        info: &Info,
    ) -> Result<(), SessionEnd> {
        if !self.mismatch.ask_leader_first || self.is_purged_past_tip(info) {
            return Ok(());
        }
        let (name, shard, tip) = (&info.config.name, self.shared.shard, self.tip);
        let at = tip.sequence.0.saturating_sub(self.origin.sequence_offset);
        let is_stored =
            |sequence: u64| (info.state.first_sequence..=info.state.last_sequence).contains(&sequence);
        let unanswered = |error: LeaderError| {
            SessionEnd::Retry(
                connection.explain(&format!("the leader of the stream {name} does not answer: {error}")),
            )
        };
        if self.origin.sequence_offset == 0 && tip.sequence.0 > 0 && is_stored(at) {
            let Some(message) = connection.message(name, at).await.map_err(unanswered)? else {
                return Err(SessionEnd::LeaderMismatch(missing(name, at, info, shard)));
            };
            let timestamp = micros_of(message.time.unix_timestamp_nanos());
            if (timestamp, hash(&message.payload)) != (tip.timestamp, tip.hash) {
                return Err(SessionEnd::Halt(format!(
                    "the message {at} of the stream {name} is not the one that was applied here (its time \
                     is {timestamp}, and that of the applied one was {applied}): the server lost the end \
                     of the stream and used the sequences again; restore the stream, or start with \
                     --accept-gap {shard} to continue with the messages that were stored after {applied}",
                    applied = tip.timestamp
                )));
            }
        }
        let next = at + 1;
        if !self.admits_gap
            && is_stored(next)
            && connection.message(name, next).await.map_err(unanswered)?.is_none()
        {
            return Err(SessionEnd::LeaderMismatch(missing(name, next, info, shard)));
        }
        if std::mem::take(&mut self.mismatch.halted) {
            tracing::warn!(%shard, "the stream continues what was applied again, so the shard is no longer halted");
        }
        Ok(())
    }
}

fn missing(name: &str, sequence: u64, info: &Info, shard: ShardId) -> String {
    format!(
        "the message {sequence} is missing in the stream {name}, which has messages up to {}; restore the \
         stream, or start with --accept-gap {shard} to continue without the missing messages",
        info.state.last_sequence
    )
}
