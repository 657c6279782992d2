//! Housekeeping of the streams: how far they go, and what of them may go away.
//!
//! Knows: a message may be purged once a checkpoint holds it, which is synced, and nobody may send it again under its id;
//! the checkpoint's own last message stays, because a start compares it. Must not know: what a checkpoint is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::metrics::{self as names, figure};
use crate::queue::jetstream::origin::identity;
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

/// Where a stream ended, and when that was seen: tells how far it is older than its duplicate window, whatever the
/// server's clock says. Empty after a start, so that nothing is purged before a window has gone by.
#[derive(Default)]
struct Ends(VecDeque<(Instant, u64)>);

impl Ends {
    fn note(&mut self, now: Instant, last: u64) {
        // One that stands still was first seen there when it was.
        if self.0.back().is_none_or(|(_, before)| *before != last) {
            self.0.push_back((now, last));
        }
    }

    /// Where it ended at the latest look that was at least `age` ago.
    fn before(&mut self, now: Instant, age: Duration) -> Option<u64> {
        let is_old = |(seen, _): &(Instant, u64)| now.duration_since(*seen) >= age;
        while self.0.get(1).is_some_and(is_old) {
            self.0.pop_front();
        }
        self.0.front().filter(|end| is_old(end)).map(|(_, last)| *last)
    }
}

impl JetStream {
    /// Looks after the shards' streams for as long as the service runs.
    pub async fn keep(&self, shards: &[Kept]) {
        let mut shards: Vec<(&Kept, Ends)> = shards.iter().map(|kept| (kept, Ends::default())).collect();
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.managing.is_up() {
                continue;
            }
            for (kept, ends) in &mut shards {
                if let Err(error) = self.look_after(&kept.shared, ends).await {
                    let error = self.managing.explain(&error);
                    tracing::warn!(shard = %kept.shared.shard, error, "its stream could not be looked after");
                }
            }
        }
    }

    async fn look_after(&self, shared: &Shared, ends: &mut Ends) -> Result<(), String> {
        let health = &shared.health;
        let name = self.names.jobs_stream(shared.shard);
        let stream = self.managing.stream(&name).await.map_err(|error| error.to_string())?;
        let info = stream.cached_info();
        let label = || [("shard", shared.shard.to_string())];
        metrics::gauge!(names::STREAM_MESSAGES, &label()).set(figure(info.state.messages));
        metrics::gauge!(names::STREAM_BYTES, &label()).set(figure(info.state.bytes));
        let bytes_max = u64::try_from(info.config.max_bytes).unwrap_or(0);
        metrics::gauge!(names::STREAM_BYTES_MAX, &label()).set(figure(bytes_max));
        let purged_total = metrics::counter!(names::STREAM_PURGED_MESSAGES_TOTAL, &label());
        // Only of the stream that the shard is filled from, and not while it is at odds with it.
        if identity(info) != shared.stream() || !health.is_live() {
            *ends = Ends::default();
            return Ok(());
        }
        health.set_last_sequence(info.state.last_sequence);
        let Some(keeps) = self.settings.purge_keeps else { return Ok(()) };
        let now = Instant::now();
        ends.note(now, info.state.last_sequence);
        let Some(settled) = ends.before(now, info.config.duplicate_window) else { return Ok(()) };
        let up_to = health.checkpoint_sequence().saturating_sub(keeps).min(settled);
        if up_to > info.state.first_sequence {
            let purged = stream.purge().sequence(up_to).await.map_err(|error| error.to_string())?;
            purged_total.increment(purged.purged);
            tracing::debug!(shard = %shared.shard, messages = purged.purged, "purged what a checkpoint holds");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_settled_up_to_where_it_ended_a_window_ago() {
        let (mut ends, start, window) = (Ends::default(), Instant::now(), Duration::from_secs(10));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(ends.before(at(0), window), None);
        for (second, last) in [(0, 5), (1, 5), (4, 8), (9, 20)] {
            ends.note(at(second), last);
            assert_eq!(ends.before(at(second), window), None);
        }
        for (second, settled) in [(10, 5), (13, 5), (14, 8), (18, 8), (19, 20), (100, 20)] {
            assert_eq!(ends.before(at(second), window), Some(settled), "at {second} s");
        }
    }
}
