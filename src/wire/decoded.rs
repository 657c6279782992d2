//! What decoding a job gives.

use crate::job::{Job, Reject};

/// A job, or the reason why the bytes are no job.
pub type Decoded = Result<Job, Reject>;
