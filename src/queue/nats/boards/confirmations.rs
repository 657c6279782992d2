//! What a node has read of inquiries and confirmations.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::types::ShardId;

/// What was read of inquiries and confirmations since the stream is followed.
#[derive(Debug, Default)]
pub struct Confirmations {
    /// The last inquiry of any node.
    pub(super) inquired: u64,
    /// The last inquiry of this node.
    pub(super) own: u64,
    pub(super) own_at: Option<Instant>,
    /// For each shard: its owners have confirmed an inquiry of this sequence.
    pub(super) confirmed: BTreeMap<ShardId, u64>,
}

impl Confirmations {
    /// Up to where every decision is in force on a shard, as far as its owners have said.
    pub fn of(&self, shard: ShardId) -> u64 {
        self.confirmed.get(&shard).copied().unwrap_or(0)
    }
}
