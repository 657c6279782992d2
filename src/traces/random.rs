//! The numbers of spans and traces.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A number that nobody else has, other than 0. The standard library seeds its hashers from the system, and
/// each differs from the one before.
pub fn random_id() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

/// The same for a trace.
pub fn random_trace() -> u128 {
    u128::from(random_id()) << 64 | u128::from(random_id())
}
