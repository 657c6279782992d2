//! Housekeeping of the streams: how far they go, and what of them may go away.
//!
//! Knows: a message may be purged once a checkpoint holds it, which is synced; the checkpoint's own last message stays,
//! because a start compares it. Must not know: what a checkpoint is.

use std::sync::Arc;
use std::time::Duration;

use crate::metrics::{self as names, figure};
use crate::queue::jetstream::fetcher::identity;
use crate::queue::jetstream::source::Shared;
use crate::queue::jetstream::streams::JetStream;
use crate::storage::StoreSlot;

/// How often streams are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// A shard whose stream is looked after.
pub struct Kept {
    pub shared: Arc<Shared>,
    pub store: Arc<StoreSlot>,
}

impl JetStream {
    /// Looks after the shards' streams for as long as the service runs.
    pub async fn keep(&self, shards: &[Kept]) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.managing.is_up() {
                continue;
            }
            for kept in shards {
                if let Err(error) = self.look_after(&kept.shared).await {
                    let error = self.managing.explain(&error);
                    tracing::warn!(shard = %kept.shared.shard, error, "its stream could not be looked after");
                }
            }
        }
    }

    async fn look_after(&self, shared: &Shared) -> Result<(), String> {
        let health = &shared.health;
        let name = self.names.jobs_stream(shared.shard);
        let stream = self.managing.context.get_stream(name).await.map_err(|error| error.to_string())?;
        let info = stream.cached_info();
        let label = || [("shard", shared.shard.to_string())];
        metrics::gauge!(names::STREAM_MESSAGES, &label()).set(figure(info.state.messages));
        metrics::gauge!(names::STREAM_BYTES, &label()).set(figure(info.state.bytes));
        let bytes_max = u64::try_from(info.config.max_bytes).unwrap_or(0);
        metrics::gauge!(names::STREAM_BYTES_MAX, &label()).set(figure(bytes_max));
        let purged_total = metrics::counter!(names::STREAM_PURGED_MESSAGES_TOTAL, &label());
        // Only of the stream that the shard is filled from, and not while it is at odds with it.
        if identity(info) != shared.stream() || !health.is_live() {
            return Ok(());
        }
        health.set_last_sequence(info.state.last_sequence);
        let Some(keeps) = self.settings.purge_keeps else { return Ok(()) };
        let up_to = health.checkpoint_sequence().saturating_sub(keeps);
        if up_to > info.state.first_sequence {
            let purged = stream.purge().sequence(up_to).await.map_err(|error| error.to_string())?;
            purged_total.increment(purged.purged);
            tracing::debug!(shard = %shared.shard, messages = purged.purged, "purged what a checkpoint holds");
        }
        Ok(())
    }
}
