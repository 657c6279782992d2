//! Going on with a stream that does not continue what a shard has applied, because the operator says so.
//!
//! Knows: such a stream uses sequences again that stand for other messages here. What is new in it is applied under the
//! sequences after the applied one, each a constant *shift* greater than in the stream, while its publishers are refused;
//! then the stream's own sequences are moved past the applied one by a purge, and the shift is over. So no message is passed over,
//! and no sequence ever stands for two messages of one shard: tokens of before are satisfied, and those of later mean what
//! they say.
//!
//! A crash at any moment finds the way on in what is stored: the shift is in the same write batch as the applied sequence;
//! nothing is purged before all is on disk; and whether the purge was done shows in the stream. Must not know: what a job does.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::{Config, Info};
use tokio::sync::oneshot;

use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::fetcher::{End, Fetcher, consumer};
use crate::queue::nats::consume::origin::{Origin, identity};
use crate::queue::nats::consume::source::Chunk;
use crate::writer::{Renamed, ShardState};

/// In the metadata of a stream whose publishers are refused: the limit in bytes that it had.
const LIMIT_KEY: &str = "ranktree-limit-before";
/// No message is so small: with `discard=new` none is stored any more, and none that is stored goes away.
const NO_BYTES: i64 = 1;
/// On a cluster a message may be on its way into the stream when its limit changes. So long after that, none is.
const SETTLES: Duration = Duration::from_secs(1);

impl Fetcher {
    /// Settles where a stream goes on that is at odds with the tip.
    pub(super) async fn take_up(&mut self, connection: &Connection, info: &Info) -> Result<(), End> {
        let (tip, last) = (self.tip.sequence.0, info.state.last_sequence);
        let stored_from = if info.state.messages == 0 { last + 1 } else { info.state.first_sequence };
        let new_from = if identity(info) != self.origin.stream || stored_from + self.origin.shift > tip {
            stored_from
        } else {
            self.first_after_tip(connection, info).await?
        };
        // With a shift of 0, nothing new has a sequence that stands for something else.
        let shift = (tip + 1).saturating_sub(new_from);
        let origin = Origin { shift, ..Origin::of(info) };
        let new = (last + 1).saturating_sub(new_from);
        tracing::warn!(shard = %self.shared.shard, new, from = new_from, shift, "going on with what the stream holds");
        self.rename(origin).await?;
        self.admits_gap = true;
        Ok(())
    }

    /// The first message that was stored after the tip's, by its time: what is earlier was applied, sequences used
    /// again or not.
    async fn first_after_tip(&self, connection: &Connection, info: &Info) -> Result<u64, End> {
        let after = i128::from(self.tip.timestamp.as_micros() + 1) * 1_000;
        let failed =
            |error: &dyn std::fmt::Display| End::Retry(format!("the stream cannot be searched: {error}"));
        let start_time = async_nats::datetime::from_nanos(after).map_err(|error| failed(&error))?;
        let config =
            pull::Config { deliver_policy: DeliverPolicy::ByStartTime { start_time }, ..consumer(1) };
        let made = connection.context.create_consumer_on_stream(config, &info.config.name).await;
        let made = made.map_err(|error| failed(&error))?;
        Ok(made.cached_info().delivered.stream_sequence + 1)
    }

    /// Has the writer put down where messages come from, synced, behind all that was handed on so far.
    pub(super) async fn rename(&mut self, origin: Origin) -> Result<(), End> {
        let (done, is_done) = oneshot::channel();
        let renamed = Renamed { stream: origin.to_string(), done };
        self.chunks.send(Chunk::Renamed(renamed)).await.map_err(|_| End::Closed)?;
        is_done.await.map_err(|_| End::Closed)?;
        self.origin = origin;
        Ok(())
    }

    /// Refuses publishers, who see a full stream, until [`Fetcher::finish_taking_up`] is done.
    pub(super) async fn refuse_publishers(&self, connection: &Connection, info: &Info) -> Result<(), End> {
        if refuses_publishers(info) {
            return Ok(());
        }
        let mut config = info.config.clone();
        config.metadata.insert(LIMIT_KEY.to_owned(), config.max_bytes.to_string());
        config.max_bytes = NO_BYTES;
        self.update(connection, &config, "its publishers cannot be refused").await
    }

    /// Gives a stream its limit back, if it is one that was taken up.
    pub(super) async fn admit_publishers(&self, connection: &Connection, info: &Info) -> Result<(), End> {
        let mut config = info.config.clone();
        let limit = config.metadata.remove(LIMIT_KEY).and_then(|limit| limit.parse().ok());
        // One that holds messages may be in the middle of being taken up, by another node.
        let Some(limit) = limit.filter(|_| info.state.messages == 0) else { return Ok(()) };
        if refuses_publishers(info) {
            config.max_bytes = limit;
        }
        self.update(connection, &config, "its limit cannot be set back").await
    }

    async fn update(&self, connection: &Connection, config: &Config, what: &str) -> Result<(), End> {
        let name = &config.name;
        let updated = connection.context.update_stream(config).await.map_err(|error| {
            End::Retry(connection.explain(&format!(
                "the stream {name} is taken up, and {what}, which takes the permission for \
                 $JS.API.STREAM.UPDATE.{name}: {error}"
            )))
        });
        updated.map(drop)
    }

    /// Everything that the stream holds was handed on: waits until it is on disk, and moves the stream on.
    pub(super) async fn finish_taking_up(&mut self, connection: &Connection) -> Result<(), End> {
        let (tip, shard) = (self.tip.sequence.0, self.shared.shard);
        self.rename(self.origin.clone()).await?;
        tokio::time::sleep(SETTLES).await;
        let info = self.stream_info(connection).await?;
        if identity(&info) != self.origin.stream || !refuses_publishers(&info) {
            return Err(End::Retry("the stream was changed while it was taken up".to_owned()));
        }
        if !self.is_moved_on(&info) {
            if info.state.last_sequence + self.origin.shift > tip {
                return Err(End::Again);
            }
            let name = &info.config.name;
            let failed = |error: &dyn std::fmt::Display| {
                End::Retry(connection.explain(&format!(
                    "the stream {name} is taken up, and its sequences cannot be moved on to {}: {error}",
                    tip + 1
                )))
            };
            let stream = connection.context.get_stream(name).await.map_err(|error| failed(&error))?;
            let purged = stream.purge().sequence(tip + 1).await.map_err(|error| failed(&error))?;
            if purged.purged > info.state.messages {
                let lost = purged.purged - info.state.messages;
                tracing::error!(%shard, lost, "messages came although publishers were refused, and were purged unseen; send them again");
            }
        }
        self.rename(Origin { shift: 0, ..self.origin.clone() }).await?;
        tracing::warn!(%shard, "the stream is taken up, and goes on after {tip}");
        let info = self.stream_info(connection).await?;
        self.admit_publishers(connection, &info).await
    }

    /// Whether the stream's own sequences were moved past the tip. Nothing is stored in it before its publishers are let in
    /// again, and they are not before that is put down.
    pub(super) fn is_moved_on(&self, info: &Info) -> bool {
        self.origin.shift > 0 && info.state.messages == 0 && info.state.last_sequence == self.tip.sequence.0
    }

    pub(super) fn note_taking_up(&self, info: &Info) {
        let left = (info.state.last_sequence + self.origin.shift).saturating_sub(self.tip.sequence.0);
        self.shared.set_state(ShardState::CatchingUp(format!(
            "the stream {} is taken up, as --accept-gap said: {left} messages to go; its publishers are refused meanwhile",
            info.config.name
        )));
    }
}

fn refuses_publishers(info: &Info) -> bool {
    info.config.max_bytes == NO_BYTES && info.config.metadata.contains_key(LIMIT_KEY)
}
