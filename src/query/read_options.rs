//! What a request says of shards: whether all must have a part in the answer, and how far they must be.

use std::time::Instant;

use crate::types::AsOf;

/// How a read treats shards that have to be waited for, or that do not reply.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Answer without the shards that do not reply, instead of not at all.
    pub partial: bool,
    /// Whether entries are wanted with their members' profiles.
    pub profiles: bool,
    /// What the answer must be of at least: a shard named here replies once it has applied this sequence. A
    /// read over shards in memory takes no notice of it: whoever asks has waited for them.
    pub after: AsOf,
    /// Until when shards are waited for; `None`: as long as any read waits.
    pub deadline: Option<Instant>,
}
