//! That a board cannot be exported, because it lacks the instance. Others may have it.

use thiserror::Error;

/// That a board does not have the instance that is asked for.
#[derive(Debug, Error)]
#[error("{at}: {why}")]
pub struct NoInstance {
    pub at: String,
    pub why: String,
}
