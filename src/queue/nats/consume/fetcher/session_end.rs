//! Why a session ended, and so what the fetcher does next.

use crate::queue::nats::consume::copy_need::NeededCopy;

/// Why a session ended.
pub enum SessionEnd {
    /// Nothing is wrong. The next session reads what this one changed.
    Restart,
    /// Retention saw a stream that this session may not have read, so the next one asks the leader first.
    Recheck,
    /// A failure that may be over at the next attempt.
    Retry(String),
    /// The stream does not continue what was applied, as far as the server of this consumer knows.
    ConsumerMismatch(String),
    /// The leader says so, too. A leader that has just started may not know the end of the stream yet.
    LeaderMismatch(String),
    /// The stream does not continue what was applied, and an operator may accept that. The text says what to
    /// do.
    Halt(String),
    /// The stream does not continue what was applied, and another owner's data are of it: no operator may
    /// accept that here. The text says what to do.
    Refused(String),
    /// The stream no longer has what comes next, and another owner's copy may.
    CopyNeeded(NeededCopy),
    /// The shard cannot continue, and `--accept-gap` does not help.
    Unrecoverable(String),
    /// The source is gone.
    Closed,
}
