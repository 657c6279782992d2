//! Has jobs freed that need not wait for a board any longer.
//!
//! A message frees a bounded number of jobs, so that no hold of a shard's lock grows with how many wait. Where more messages
//! of jobs come, these free the rest. Where the stream is quiet, the node publishes commands that do. They take their places
//! in the stream, so that every replica frees the same jobs at the same message; several nodes that publish more of them
//! than are needed do no harm.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::watch;

use crate::queue::error::NotPublished;
use crate::queue::nats::publish::publisher::StreamPublisher;
use crate::types::{Sequence, ShardId};
use crate::writer::{FREED_PER_MESSAGE, Health, Payload};

/// Commands on their way at once. Enough to keep the writer at work while the next ones are published.
const COMMANDS_MAX: u64 = 16;
/// A shard that is not live frees nothing, or frees by the messages that it has yet to apply.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How long commands may take to be applied, before more of them are published.
const ARRIVE_WITHIN: Duration = Duration::from_secs(10);

/// A shard whose waiting jobs are freed.
pub struct Freeing {
    pub shard: ShardId,
    pub health: Arc<Health>,
    pub applied: watch::Receiver<Sequence>,
    pub publisher: StreamPublisher,
}

impl Freeing {
    /// Goes on for as long as the service runs.
    pub async fn run(mut self) {
        let mut frees = self.health.frees();
        while frees.wait_for(|frees| *frees).await.is_ok() {
            if !self.health.is_live() {
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            }
            if let Err(error) = self.free_some().await {
                tracing::warn!(shard = %self.shard, %error, "jobs that wait no longer for a board could not be freed; trying on");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }

    async fn free_some(&mut self) -> Result<(), NotPublished> {
        let jobs = u64::try_from(FREED_PER_MESSAGE).unwrap_or(u64::MAX);
        let commands = self.health.jobs_parked().div_ceil(jobs).clamp(1, COMMANDS_MAX);
        let payload = Payload::Free { jobs: FREED_PER_MESSAGE };
        let stored = try_join_all((0..commands).map(|_| self.publisher.store_command(&payload))).await?;
        let last = stored.into_iter().max().unwrap_or_default();
        // Late or not at all: what is to be freed then is seen by the next look.
        let _ = tokio::time::timeout(ARRIVE_WITHIN, self.applied.wait_for(|applied| *applied >= last)).await;
        Ok(())
    }
}
