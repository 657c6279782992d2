//! Why a session ended, and so what the fetcher does next.

/// Why a session ended.
pub enum SessionEnd {
    /// Nothing is wrong: the next session sees what this one changed.
    Again,
    /// What this session has found is doubted: the next one begins by asking the leader.
    Recheck,
    /// A failure that may be over at the next attempt.
    Retry(String),
    /// The stream does not continue what was applied, as far as the server of this consumer knows.
    Doubt(String),
    /// The leader says so, too. A leader that has just started may not know the end of the stream yet.
    Suspect(String),
    /// The stream does not continue what was applied, and an operator may accept that. The text says what to
    /// do.
    Halt(String),
    /// The shard cannot continue, and `--accept-gap` does not help.
    Refuse(String),
    /// The source is gone.
    Closed,
}
