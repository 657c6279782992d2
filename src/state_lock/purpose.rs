//! What a lock is held for.

/// What the state is locked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Answers to clients.
    Read,
    /// Planning a batch.
    Plan,
    /// Bringing the memory of a step into the cache, before it is applied.
    Warm,
    /// Applying a step.
    Apply,
    /// Releasing members of dropped boards, and handles of members that left.
    Release,
    /// Beginning a checkpoint, and joining some boards to it.
    CheckpointBegin,
    /// Copying a slice of a checkpoint's data.
    CheckpointCopy,
    /// Completing a checkpoint, or marking a slice of a failed one dirty again.
    CheckpointEnd,
    /// Reading gauges for metrics and the status.
    Gauges,
    /// Comparing the shard's boards with the decided ones.
    Boards,
    /// Summarising a board's tree for approximate ranks.
    Summary,
    /// Loading, before anything is served or while nothing can be written.
    Start,
}

impl Purpose {
    pub const ALL: [Self; 12] = [
        Self::Read,
        Self::Plan,
        Self::Warm,
        Self::Apply,
        Self::Release,
        Self::CheckpointBegin,
        Self::CheckpointCopy,
        Self::CheckpointEnd,
        Self::Gauges,
        Self::Boards,
        Self::Summary,
        Self::Start,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Plan => "plan",
            Self::Warm => "warm",
            Self::Apply => "apply",
            Self::Release => "release",
            Self::CheckpointBegin => "checkpoint_begin",
            Self::CheckpointCopy => "checkpoint_copy",
            Self::CheckpointEnd => "checkpoint_end",
            Self::Gauges => "gauges",
            Self::Boards => "boards",
            Self::Summary => "summary",
            Self::Start => "start",
        }
    }

    /// Its index in [`Purpose::ALL`].
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Read => 0,
            Self::Plan => 1,
            Self::Warm => 2,
            Self::Apply => 3,
            Self::Release => 4,
            Self::CheckpointBegin => 5,
            Self::CheckpointCopy => 6,
            Self::CheckpointEnd => 7,
            Self::Gauges => 8,
            Self::Boards => 9,
            Self::Summary => 10,
            Self::Start => 11,
        }
    }
}
