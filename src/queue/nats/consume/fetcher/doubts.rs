//! What is known against a stream.

use std::time::Instant;

/// What is known against a stream.
#[derive(Default)]
pub struct Doubts {
    /// Something did not fit since messages were last handed on: the next session begins by asking the
    /// leader.
    pub any: bool,
    /// Since when the leader has reported a mismatch at every look.
    pub suspected: Option<Instant>,
    /// The shard is halted: it says why, and applies nothing.
    pub halted: bool,
}
