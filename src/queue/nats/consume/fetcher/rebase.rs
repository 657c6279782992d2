//! Rebase: going on with a stream that does not continue what a shard has applied, because the operator says
//! so.
//!
//! Knows: such a stream uses sequences again that stand for other messages here. So its new messages are
//! applied under sequences after the applied one, each greater by a constant *sequence offset* than in the
//! stream, while the stream refuses publishers. Then a purge moves the stream's own sequences past the
//! applied one, and the offset is 0 again. So no message is passed over, and no sequence ever stands for two
//! messages of one shard: earlier tokens are satisfied, and later ones mean what they say.
//!
//! A crash at any moment is safe. The offset is in the same write batch as the applied sequence; nothing is
//! purged before everything is on disk; and the stream shows whether the purge was done. Must not know: what
//! a job does.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::{Config, Info};
use tokio::sync::oneshot;

use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::fetcher::run::{Chunk, Fetcher, SessionEnd, consumer};
use crate::queue::nats::consume::origin::{Origin, identity};
use crate::writer::{OriginChanged, ShardState};

/// Where the metadata of a stream that refuses publishers keep the limit in bytes that it had.
const LIMIT_KEY: &str = "ranktree-limit-before";
/// No message is so small. With `discard=new` the stream stores no more messages, and keeps those that it
/// has.
const NO_BYTES: i64 = 1;
/// On a cluster a message may be on its way into the stream when the limit changes. After so long, none is.
const SETTLE_TIME: Duration = Duration::from_secs(1);

impl Fetcher {
    /// Decides from which message on the stream is new, and with which offset its messages are applied.
    pub(super) async fn begin_rebase(
        &mut self,
        connection: &Connection,
        info: &Info,
    ) -> Result<(), SessionEnd> {
        let (tip, last) = (self.tip.sequence.0, info.state.last_sequence);
        let stored_from = if info.state.messages == 0 { last + 1 } else { info.state.first_sequence };
        let new_from =
            if identity(info) != self.origin.stream || stored_from + self.origin.sequence_offset > tip {
                stored_from
            } else {
                self.first_after_tip(connection, info).await?
            };
        // With an offset of 0, no new message has a sequence that stands for another one.
        let sequence_offset = (tip + 1).saturating_sub(new_from);
        let origin = Origin { sequence_offset, ..Origin::of(info) };
        let new = (last + 1).saturating_sub(new_from);
        tracing::warn!(shard = %self.shared.shard, new, from = new_from, sequence_offset, "continuing with the messages that the stream holds");
        self.change_origin(origin).await?;
        if sequence_offset == 0 {
            // Operators wait for these words.
            tracing::warn!(shard = %self.shared.shard, "the rebase is done: there was nothing to renumber, because the stream's messages come after {tip}");
        }
        self.admits_gap = true;
        Ok(())
    }

    /// The first message that was stored after the tip's message, by its time. Earlier messages were applied,
    /// whether their sequences were used again or not.
    async fn first_after_tip(&self, connection: &Connection, info: &Info) -> Result<u64, SessionEnd> {
        let after = i128::from(self.tip.timestamp.as_micros() + 1) * 1_000;
        let failed = |error: &dyn std::fmt::Display| {
            SessionEnd::Retry(format!("the stream cannot be searched by time: {error}"))
        };
        let start_time = async_nats::datetime::from_nanos(after).map_err(|error| failed(&error))?;
        let config =
            pull::Config { deliver_policy: DeliverPolicy::ByStartTime { start_time }, ..consumer(1) };
        let made = connection.context.create_consumer_on_stream(config, &info.config.name).await;
        let made = made.map_err(|error| failed(&error))?;
        Ok(made.cached_info().delivered.stream_sequence + 1)
    }

    /// Has the writer store and sync where messages come from, behind all messages that were handed on so
    /// far.
    pub(super) async fn change_origin(&mut self, origin: Origin) -> Result<(), SessionEnd> {
        let (done, is_done) = oneshot::channel();
        let changed = OriginChanged { stream: origin.to_string(), done };
        self.chunks.send(Chunk::OriginChanged(changed)).await.map_err(|_| SessionEnd::Closed)?;
        is_done.await.map_err(|_| SessionEnd::Closed)?;
        self.shared.set_filled_from(&origin.stream);
        self.origin = origin;
        Ok(())
    }

    /// Makes the stream refuse publishers, who see a full stream, until [`Fetcher::finish_rebase`] is done.
    pub(super) async fn refuse_publishers(
        &self,
        connection: &Connection,
        info: &Info,
    ) -> Result<(), SessionEnd> {
        if refuses_publishers(info) {
            return Ok(());
        }
        let mut config = info.config.clone();
        config.metadata.insert(LIMIT_KEY.to_owned(), config.max_bytes.to_string());
        config.max_bytes = NO_BYTES;
        self.update(connection, &config, "its limit cannot be changed to refuse publishers").await
    }

    /// Gives a stream its limit back after a rebase.
    pub(super) async fn admit_publishers(
        &self,
        connection: &Connection,
        info: &Info,
    ) -> Result<(), SessionEnd> {
        let mut config = info.config.clone();
        let limit = config.metadata.remove(LIMIT_KEY).and_then(|limit| limit.parse().ok());
        // Another node may be rebasing onto a stream that holds messages.
        let Some(limit) = limit.filter(|_| info.state.messages == 0) else { return Ok(()) };
        if refuses_publishers(info) {
            config.max_bytes = limit;
        }
        self.update(connection, &config, "its limit cannot be restored").await
    }

    async fn update(&self, connection: &Connection, config: &Config, what: &str) -> Result<(), SessionEnd> {
        let name = &config.name;
        let updated = connection.context.update_stream(config).await.map_err(|error| {
            SessionEnd::Retry(connection.explain(&format!(
                "--accept-gap: rebasing onto the stream {name}, but {what}: {error}; check that the \
                 node's user has the permission to publish to $JS.API.STREAM.UPDATE.{name}"
            )))
        });
        updated.map(drop)
    }

    /// After all messages of the stream were handed on: waits until they are on disk, and purges the stream
    /// past the tip.
    pub(super) async fn finish_rebase(&mut self, connection: &Connection) -> Result<(), SessionEnd> {
        let (tip, shard) = (self.tip.sequence.0, self.shared.shard);
        self.change_origin(self.origin.clone()).await?;
        tokio::time::sleep(SETTLE_TIME).await;
        let info = self.stream_info(connection).await?;
        if identity(&info) != self.origin.stream || !refuses_publishers(&info) {
            return Err(SessionEnd::Retry("the stream was changed during the rebase".to_owned()));
        }
        if !self.is_purged_past_tip(&info) {
            if info.state.last_sequence + self.origin.sequence_offset > tip {
                return Err(SessionEnd::Restart);
            }
            let name = &info.config.name;
            let failed = |error: &dyn std::fmt::Display| {
                SessionEnd::Retry(connection.explain(&format!(
                    "rebasing onto the stream {name}, but its sequences cannot be moved up to {}: {error}",
                    tip + 1
                )))
            };
            let stream = connection.context.get_stream(name).await.map_err(|error| failed(&error))?;
            let purged = stream.purge().sequence(tip + 1).await.map_err(|error| failed(&error))?;
            if purged.purged > info.state.messages {
                let lost = purged.purged - info.state.messages;
                tracing::error!(%shard, lost, "messages arrived although publishers were refused, and were purged without being applied; send those messages again");
            }
        }
        self.change_origin(Origin { sequence_offset: 0, ..self.origin.clone() }).await?;
        tracing::warn!(%shard, "the rebase is done, and the stream continues after {tip}");
        let info = self.stream_info(connection).await?;
        self.admit_publishers(connection, &info).await
    }

    /// Whether a purge has moved the stream's own sequences past the tip. Publishers are admitted only after
    /// the writer has stored that, so the stream holds nothing until then.
    pub(super) fn is_purged_past_tip(&self, info: &Info) -> bool {
        self.origin.sequence_offset > 0
            && info.state.messages == 0
            && info.state.last_sequence == self.tip.sequence.0
    }

    pub(super) fn note_rebase_progress(&self, info: &Info) {
        let left =
            (info.state.last_sequence + self.origin.sequence_offset).saturating_sub(self.tip.sequence.0);
        self.shared.set_state(ShardState::CatchingUp(format!(
            "rebasing onto the stream {}, because of --accept-gap: {left} messages left; its publishers are refused until that is done",
            info.config.name
        )));
    }
}

fn refuses_publishers(info: &Info) -> bool {
    info.config.max_bytes == NO_BYTES && info.config.metadata.contains_key(LIMIT_KEY)
}
