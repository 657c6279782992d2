//! Tells an operator of leaps of time: what a shard believes, and what follows from it.

use crate::state::ShardTime;
use crate::types::ShardId;

/// Logs what became of a leap with a batch.
pub fn log_leap(shard: ShardId, before: ShardTime, after: ShardTime) {
    let (time, now) = (before.effective, after.effective);
    match (before.leap, after.leap) {
        (None, Some(leap)) => tracing::warn!(
            %shard, %time, stamped = %leap,
            "a message is more than an hour after the shard's time: nothing came for so long, or a clock is wrong. \
             Nothing closes, is dropped or expires by it until a message of a minute later confirms it"
        ),
        (Some(leap), None) if now >= leap => {
            tracing::info!(%shard, %time, %now, "the leap of time is confirmed; the shard's time follows it");
        }
        (Some(leap), None) => tracing::warn!(
            %shard, %time, stamped = %leap,
            "the clock is back where it was, so the leap of time is forgotten; what jobs did meanwhile in instances \
             that have not begun is dropped"
        ),
        (None, None) | (Some(_), Some(_)) => {}
    }
}
