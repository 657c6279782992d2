//! The evidence that the stream does not continue the tip.

use std::time::Instant;

/// The evidence that the stream does not continue the tip.
#[derive(Default)]
pub struct MismatchState {
    /// Something did not fit since messages were last handed on: the next session begins by asking the
    /// leader.
    pub ask_leader_first: bool,
    /// Since when the leader has reported a mismatch at every look.
    pub leader_mismatch_since: Option<Instant>,
    /// The shard is halted.
    pub halted: bool,
}
