//! The lock of a shard's state. Every caller states a purpose, and hold and wait times are measured by
//! purpose.
//!
//! Knows: the lock, the clock and the metrics. Must not know: what is read or changed under the lock.
//!
//! It stands between `state`, which reads no clock and holds no lock, and the modules that share a shard
//! between threads.

mod guards;
mod lock;
mod purpose;
#[cfg(test)]
mod tests;
mod timings;
mod waiting;
mod yielding;

pub use guards::{ReadGuard, WriteGuard};
pub use lock::StateLock;
pub use purpose::Purpose;
pub use timings::HoldObserver;
pub use yielding::YieldingReadGuard;
