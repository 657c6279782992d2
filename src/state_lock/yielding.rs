//! A read guard that lets others in.

use std::ops::Deref;
use std::time::Duration;

use super::guards::ReadGuard;
use super::lock::StateLock;
use super::purpose::Purpose;
use crate::state::Shard;

/// After this time a long reading yields the lock. In tests it yields at every opportunity, as they count the
/// holds.
const READ_HOLD_MAX: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_micros(100) };

/// A read guard for long work, which yields the lock in between.
///
/// A long read hold blocks no readers by itself. But a waiting writer blocks all later readers, and would
/// have to wait for the whole hold.
pub struct YieldingReadGuard<'a> {
    lock: &'a StateLock,
    purpose: Purpose,
    /// `None` only within [`YieldingReadGuard::unlocked`].
    shard: Option<ReadGuard<'a>>,
}

impl<'a> YieldingReadGuard<'a> {
    pub fn new(lock: &'a StateLock, purpose: Purpose) -> Self {
        Self { lock, purpose, shard: Some(lock.read(purpose)) }
    }

    /// Yields the lock, and the core, if it was held for long enough. Values read before may be outdated
    /// afterwards.
    pub fn yield_if_due(&mut self) {
        if self.shard.as_ref().is_some_and(|shard| shard.held_for() >= READ_HOLD_MAX) {
            let lock = self.lock;
            self.unlocked(|| lock.give_way());
        }
    }

    /// Releases the lock for `work`, and takes it again.
    pub fn unlocked<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.shard = None;
        let done = work();
        self.shard = Some(self.lock.read(self.purpose));
        done
    }
}

impl Deref for YieldingReadGuard<'_> {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        self.shard.as_ref().expect(
            "the shard is locked except while `unlocked` runs, and nothing can dereference the guard then",
        )
    }
}
