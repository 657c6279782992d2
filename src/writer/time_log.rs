//! Tells an operator what a shard believes of the time, and what follows from it: leaps, and seasons that had
//! begun and come to begin later.

use crate::state::ShardTime;
use crate::types::{BoardName, ShardId};

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

/// Logs which instances a definition has taken back that came after they had begun.
pub fn log_taken_back(shard: ShardId, instances: &[BoardName]) {
    for (board, season) in instances.iter().map(BoardName::split) {
        tracing::warn!(
            %shard, board, season,
            "the season was moved or cancelled before it began, and this came to the shard after jobs had entered it: \
             it begins anew, and what they did in it is dropped. They stay in the board's other windows"
        );
    }
}
