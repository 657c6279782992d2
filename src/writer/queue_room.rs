//! How full a shard's queue is, and why its messages are retained, as of the last check.
//!
//! The task that checks the queue decides the level and words the reason. Status, readiness and refusals
//! repeat them.

/// How far a queue is from refusing publishers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueLevel {
    Roomy,
    NearlyFull,
    Full,
}

impl QueueLevel {
    pub fn name(self) -> &'static str {
        match self {
            Self::Roomy => "roomy",
            Self::NearlyFull => "nearly_full",
            Self::Full => "full",
        }
    }
}

/// Why messages are retained in a queue, the reason for the newest messages first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainedBy {
    /// They are not applied yet.
    Lag,
    /// They are applied, and in no checkpoint yet.
    Checkpoint,
    /// They are within the window in which publishers may repeat a message id.
    DuplicateWindow,
    /// The last checkpoint of another node does not hold them.
    Nodes,
    /// They are kept for older copies of the data.
    KeepSetting,
}

impl RetainedBy {
    pub const ALL: [Self; 5] =
        [Self::Lag, Self::Checkpoint, Self::DuplicateWindow, Self::Nodes, Self::KeepSetting];

    pub fn name(self) -> &'static str {
        match self {
            Self::Lag => "lag",
            Self::Checkpoint => "checkpoint",
            Self::DuplicateWindow => "duplicate_window",
            Self::Nodes => "nodes",
            Self::KeepSetting => "keep",
        }
    }
}

/// A part of the messages in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetainedMessages {
    pub by: RetainedBy,
    pub messages: u64,
    /// Exact for the whole queue, estimated for a part.
    pub bytes: u64,
}

/// The result of checking a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRoom {
    pub level: QueueLevel,
    pub bytes: u64,
    /// `None`: there is no limit.
    pub bytes_max: Option<u64>,
    pub messages: u64,
    pub messages_max: Option<u64>,
    /// The whole queue, divided by reason.
    pub held: [RetainedMessages; 5],
    /// Which other node messages are held for, or why that is unknown.
    pub held_for: Option<String>,
    /// Why most of them are retained, and what would make room.
    pub reason: String,
    /// What is wrong with the queue itself.
    pub fault: Option<QueueFault>,
}

/// Something is wrong with a queue that only an operator can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFault {
    /// What is wrong, and what to do.
    pub what: String,
    /// Messages are not published into it, because it may lose them.
    pub refuses_writes: bool,
}
