//! Has parked jobs unparked whose boards are defined by now.
//!
//! A message unparks a bounded number of jobs, so that no hold of a shard's lock grows with the number of
//! parked jobs. Later messages of jobs unpark more. Where the stream is quiet, the node publishes `free`
//! commands, which unpark the rest. They have places in the stream, so that every replica unparks the same
//! jobs at the same message. Several nodes may publish more of them than are needed, which does no harm.

use std::time::Duration;

use futures_util::future::try_join_all;

use crate::queue::error::NotPublished;
use crate::queue::nats::shard::NatsShard;
use crate::writer::{Payload, UNPARKED_PER_MESSAGE};

/// Commands in flight at once: enough to keep the writer busy while the next ones are published.
const COMMANDS_MAX: u64 = 16;
/// A shard that is not live unparks nothing, or unparks jobs with the messages that it has yet to apply.
const RECHECK_INTERVAL: Duration = Duration::from_millis(200);
/// How long commands may take to be applied, before more of them are published.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Has parked jobs of a shard unparked, for as long as the service runs.
pub async fn unpark_ready_jobs(mut shard: NatsShard) {
    let mut has_ready_jobs = shard.health.has_ready_jobs.subscribe();
    while has_ready_jobs.wait_for(|has_ready_jobs| *has_ready_jobs).await.is_ok() {
        if !shard.health.is_live() {
            tokio::time::sleep(RECHECK_INTERVAL).await;
            continue;
        }
        if let Err(error) = publish_unpark_commands(&mut shard).await {
            tracing::warn!(
                shard = %shard.id, %error, "jobs whose boards exist now could not be unparked; trying again"
            );
            tokio::time::sleep(RECHECK_INTERVAL).await;
        }
    }
}

async fn publish_unpark_commands(shard: &mut NatsShard) -> Result<(), NotPublished> {
    let jobs = u64::try_from(UNPARKED_PER_MESSAGE).unwrap_or(u64::MAX);
    let commands = shard.health.get(|health| health.jobs_parked).div_ceil(jobs).clamp(1, COMMANDS_MAX);
    let payload = Payload::Unpark { jobs: UNPARKED_PER_MESSAGE };
    let stored = try_join_all((0..commands).map(|_| shard.publisher.store_command(&payload))).await?;
    let last = stored.into_iter().max().unwrap_or_default();
    // If the commands are late, the next round sees what is left to be unparked.
    let _ = tokio::time::timeout(DELIVERY_TIMEOUT, shard.applied.reach(last)).await;
    Ok(())
}
