//! What the fetcher hands to its shard's source.

use crate::writer::{BatchLimits, Message, OriginChanged};

/// A batch: enough to share what a commit costs, few enough that nobody waits long for its end.
pub const BATCH_LIMITS: BatchLimits = BatchLimits { jobs: 1_000, bytes: 4 << 20 };

/// What the fetcher hands on, in order.
pub enum Chunk {
    Messages(Vec<Message>),
    /// The messages after this one come from another stream, or are counted with another offset.
    OriginChanged(OriginChanged),
}
