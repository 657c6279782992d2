//! What one shard knows of an entry's rank.

use crate::tree::Words;
use crate::types::Timestamp;

/// An entry and its rank counts within its own shard, at one applied sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardRanking {
    pub words: Words,
    pub updated_at: Timestamp,
    pub has_metadata: bool,
    /// Entries of this shard with a strictly better score.
    pub better: u64,
    /// Entries of this shard with the same score, this one included.
    pub tied: u64,
    /// Entries of this shard that come before it: better, or equal and ahead by the tie rule.
    pub ahead: u64,
    /// All entries of this shard.
    pub total: u64,
}
