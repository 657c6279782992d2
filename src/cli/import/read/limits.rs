//! How long what is sent may be.

/// The largest body that the service takes.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// The largest job that fits a body of its own, between its brackets.
pub const MAX_JOB_BYTES: usize = MAX_BODY_BYTES - 2;
