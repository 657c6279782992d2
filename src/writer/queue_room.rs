//! How full the queue is that feeds a shard, and what holds the messages in it, as of the last look.
//!
//! Whoever looks at the queue decides and words that; status, readiness and refusals repeat it.

/// How far a queue is from refusing publishers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueLevel {
    Roomy,
    NearlyFull,
    Full,
}

impl QueueLevel {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Roomy => "roomy",
            Self::NearlyFull => "nearly_full",
            Self::Full => "full",
        }
    }
}

/// What keeps messages in a queue, in the order of the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// They are not applied yet.
    Lag,
    /// They are applied, and in no checkpoint yet.
    Checkpoint,
    /// They may be published again under their ids.
    DuplicateWindow,
    /// They are kept for other nodes and older copies.
    Keep,
}

impl HeldBy {
    pub const ALL: [Self; 4] = [Self::Lag, Self::Checkpoint, Self::DuplicateWindow, Self::Keep];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lag => "lag",
            Self::Checkpoint => "checkpoint",
            Self::DuplicateWindow => "duplicate_window",
            Self::Keep => "keep",
        }
    }
}

/// A part of the messages in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub by: HeldBy,
    pub messages: u64,
    /// Known for all of them together, and estimated for a part.
    pub bytes: u64,
}

/// What a look at a queue came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRoom {
    pub level: QueueLevel,
    pub bytes: u64,
    /// `None`: there is no limit.
    pub bytes_max: Option<u64>,
    pub messages: u64,
    pub messages_max: Option<u64>,
    /// All of them, each part once.
    pub held: [Held; 4],
    /// What holds most of them, and what would make room.
    pub reason: String,
}
