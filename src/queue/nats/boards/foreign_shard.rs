//! What is known of a shard whose data are not of its stream. Must not know: how that is found out.

use crate::types::ShardId;

/// A shard whose data are not of its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignShard {
    pub shard: ShardId,
    pub why: String,
}
