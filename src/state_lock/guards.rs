//! The guards of a lock.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};

use super::timings::HoldTimer;
use super::waiting::{NotedCore, WakeReaders};
use crate::state::Shard;

/// A read guard.
pub struct ReadGuard<'a> {
    /// Noted of a checkpoint's copier, which reads more than others do, so that readers leave it its core.
    pub(super) _core: Option<NotedCore<'a>>,
    pub(super) shard: RwLockReadGuard<'a, Shard>,
    pub(super) held: HoldTimer<'a>,
}

impl ReadGuard<'_> {
    /// How long it has been held; zero if it is not timed.
    pub(super) fn held_for(&self) -> Duration {
        self.held.held_for()
    }
}

impl Deref for ReadGuard<'_> {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.shard
    }
}

/// A write guard.
///
/// Its fields are dropped in their order: the lock is free before its time is noted, and readers that wait
/// for it are woken last.
pub struct WriteGuard<'a> {
    pub(super) core: NotedCore<'a>,
    pub(super) shard: RwLockWriteGuard<'a, Shard>,
    pub(super) held: HoldTimer<'a>,
    pub(super) waiting: WakeReaders<'a>,
}

impl WriteGuard<'_> {
    /// Unlocks fairly, handing the lock to a waiting thread. Otherwise a thread that soon locks again would
    /// get it first every time.
    pub fn unlock_fair(self) {
        let Self { core, shard, held, waiting } = self;
        drop(core);
        RwLockWriteGuard::unlock_fair(shard);
        drop(held);
        drop(waiting);
    }
}

impl Deref for WriteGuard<'_> {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for WriteGuard<'_> {
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}
