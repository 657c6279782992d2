//! The lock itself: who waits in which way, and when a long reading or a step should let others in.
//!
//! Must not know: how a thread waits; that is `waiting`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::guards::{ReadGuard, WriteGuard};
use super::purpose::Purpose;
use super::timings::{HoldObserver, HoldTimer, Timings, is_due, measure_wait};
use super::waiting::{Cores, WaitingReaders, WakeReaders, look_for};
use crate::state::Shard;

/// After so many steps without a reader in between, nobody reads: 256 steps of 64 jobs are at least some
/// 20 ms.
const STEPS_UNREAD: u32 = if cfg!(test) { 3 } else { 256 };

/// After this time a thread that is in no hurry waits as any other: a writer that only applies, and plans
/// nothing, would keep it away for ever.
const UNHURRIED_MAX: Duration = Duration::from_millis(20);
/// The same of who wants to change the state: several readers that overlap would keep it away as well, and a
/// checkpoint does it 600 times for a million members.
const UNHURRIED_CHANGE_MAX: Duration = Duration::from_millis(2);

/// For how long a thread keeps its core and looks whether the lock is free: most holds are shorter.
const READ_SPIN_MAX: Duration = Duration::from_micros(100);
const WRITE_SPIN_MAX: Duration = Duration::from_micros(20);
/// After this time who reads for an answer queues, and yields its core before. In tests it hardly does, so
/// that a missed wake-up shows.
const READ_WAIT_MAX: Duration = Duration::from_millis(if cfg!(test) { 600_000 } else { 2 });

/// A shard's state, shared by its one writer and all readers.
pub struct StateLock {
    pub(super) state: RwLock<Shard>,
    timings: [Timings; Purpose::ALL.len()],
    cores: Cores,
    waiting: WaitingReaders,
    /// Whether it was read for an answer since the last step.
    was_read: AtomicBool,
    /// How many steps were applied since then.
    steps_unread: AtomicU32,
    /// Whether a thread waits to change it.
    is_wanted: AtomicBool,
}

impl StateLock {
    pub fn new(shard: Shard) -> Self {
        let timings = Purpose::ALL.map(Timings::new);
        let (was_read, steps_unread) = (AtomicBool::new(true), AtomicU32::new(0));
        let is_wanted = AtomicBool::new(false);
        let (cores, waiting) = (Cores::new(), WaitingReaders::default());
        Self { state: RwLock::new(shard), timings, cores, waiting, was_read, steps_unread, is_wanted }
    }

    /// A lock whose holds are reported to a bench or a test.
    pub fn observed(shard: Shard, observer: &Arc<dyn HoldObserver>) -> Self {
        let mut lock = Self::new(shard);
        lock.timings.iter_mut().for_each(|timings| timings.observer = Some(Arc::clone(observer)));
        lock
    }

    /// Locks for reading, shared with other readers.
    pub fn read(&self, purpose: Purpose) -> ReadGuard<'_> {
        // Looked at before it is set: readers on several cores then share the line that holds it.
        if purpose == Purpose::Read && !self.was_read.load(Ordering::Relaxed) {
            self.was_read.store(true, Ordering::Relaxed);
        }
        let timings = self.timings.get(purpose.index());
        let shard =
            self.state.try_read().unwrap_or_else(|| measure_wait(timings, || self.wait_to_read(purpose)));
        let is_timed = purpose != Purpose::Read || is_due();
        ReadGuard { shard, held: HoldTimer::since_now(timings.filter(|_| is_timed)), _core: None }
    }

    fn wait_to_read(&self, purpose: Purpose) -> RwLockReadGuard<'_, Shard> {
        let try_read = || self.state.try_read();
        let spin = || self.cores.spin(READ_SPIN_MAX, try_read);
        if purpose != Purpose::Read {
            return spin().unwrap_or_else(|| self.state.read());
        }
        let late = Instant::now() + READ_WAIT_MAX;
        loop {
            if let Some(shard) = spin().or_else(|| self.waiting.sleep(late, try_read)) {
                return shard;
            }
            if Instant::now() >= late {
                return self.state.read();
            }
        }
    }

    /// Locks for reading, for a thread that is in no hurry: it comes when nobody changes the state, as while
    /// a batch is planned, and stands in no queue. Who sleeps in the queue is handed the lock first and woken
    /// up afterwards, and the writer, which wants it back at once, waits for all of that. So it is for
    /// threads that come often.
    pub fn read_unhurried(&self, purpose: Purpose) -> ReadGuard<'_> {
        let shard =
            self.lock_unhurried(purpose, UNHURRIED_MAX, || self.state.try_read(), || self.state.read());
        let held = HoldTimer::since_now(self.timings.get(purpose.index()));
        ReadGuard { shard, held, _core: Some(self.cores.note_copying()) }
    }

    /// Locks for changes, as unhurriedly: while it looks, neither the writer nor readers wait for it.
    pub fn write_unhurried(&self, purpose: Purpose) -> WriteGuard<'_> {
        let shard = self.lock_unhurried(
            purpose,
            UNHURRIED_CHANGE_MAX,
            || self.state.try_write(),
            || self.state.write(),
        );
        self.write_guard(shard, purpose)
    }

    /// # Arguments
    /// `max`: after this time it waits as any other.
    pub(super) fn lock_unhurried<L>(
        &self,
        purpose: Purpose,
        max: Duration,
        try_lock: impl Fn() -> Option<L>,
        lock: impl FnOnce() -> L,
    ) -> L {
        try_lock().unwrap_or_else(|| {
            measure_wait(self.timings.get(purpose.index()), || look_for(max, try_lock).unwrap_or_else(lock))
        })
    }

    /// Whether a thread waits to change the state. Who reads for long looks now and then, and unlocks.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Counts a step since somebody read for an answer. For the shard's writer, before each step that it
    /// applies.
    pub fn count_step(&self) {
        // A reader that comes just now is noticed here or the next time. Only the writer sets the count.
        let unread = if self.was_read.swap(false, Ordering::Relaxed) {
            0
        } else {
            self.steps_unread.load(Ordering::Relaxed).saturating_add(1)
        };
        self.steps_unread.store(unread, Ordering::Relaxed);
    }

    /// Whether somebody has read for an answer during the last steps, so that it is worth some work to hold
    /// the lock for less time.
    pub fn is_read(&self) -> bool {
        self.was_read.load(Ordering::Relaxed) || self.steps_unread.load(Ordering::Relaxed) < STEPS_UNREAD
    }

    /// Lets others have the core that the caller is on, if somebody has read for an answer lately.
    /// For who has much to do, holds no lock, and has no answers to send: a thread that became ready on
    /// the same core would else wait for the next tick of the clock, which is 4 ms away on many systems,
    /// however short its own slices are.
    pub fn give_way(&self) {
        if self.is_read() {
            yield_now();
        }
    }

    /// Locks for changes.
    pub fn write(&self, purpose: Purpose) -> WriteGuard<'_> {
        let timings = self.timings.get(purpose.index());
        let shard = self.state.try_write().unwrap_or_else(|| {
            measure_wait(timings, || {
                // Of two that wait, the first takes the mark away: then who reads unlocks a little later.
                self.is_wanted.store(true, Ordering::Relaxed);
                let shard = self
                    .cores
                    .spin(WRITE_SPIN_MAX, || self.state.try_write())
                    .unwrap_or_else(|| self.state.write());
                self.is_wanted.store(false, Ordering::Relaxed);
                shard
            })
        });
        self.write_guard(shard, purpose)
    }

    fn write_guard<'a>(&'a self, shard: RwLockWriteGuard<'a, Shard>, purpose: Purpose) -> WriteGuard<'a> {
        let core = self.cores.note_changing();
        let held = HoldTimer::since_now(self.timings.get(purpose.index()));
        WriteGuard { core, shard, held, waiting: WakeReaders(&self.waiting) }
    }
}

#[cfg(test)]
impl StateLock {
    /// Whether any thread holds it, for any purpose.
    pub fn is_held(&self) -> bool {
        self.state.is_locked()
    }
}
