//! Why a write was not published, or why its outcome is unknown.

use crate::writer::CommitFailed;

/// Why a write was not published, or why its outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPublished {
    #[error("too many writes are waiting for this shard; try again in a moment")]
    Overloaded,
    #[error("this shard takes no writes now: {0}")]
    Unavailable(String),
    #[error("this shard takes no writes now: {0}")]
    Full(String),
    #[error("{0}")]
    TooLarge(String),
    /// The queue may have stored it, or not.
    #[error("{0}; a job with a version, or a trim, may safely be sent again")]
    Unknown(String),
    #[error(transparent)]
    CommitFailed(#[from] CommitFailed),
}
