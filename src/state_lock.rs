//! The lock of a shard's state. Every caller states a purpose, and hold and wait times are measured by
//! purpose.
//!
//! Knows: the lock, the clock and the metrics. Must not know: what is read or changed under the lock.
//!
//! It stands between `state`, which reads no clock and holds no lock, and the modules that share a shard
//! between threads.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use metrics::{Histogram, histogram};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::metrics::{STATE_LOCK_HELD_SECONDS, STATE_LOCK_WAIT_SECONDS};
use crate::state::Shard;

/// One in this many reads for answers is timed: reading the clock twice costs a fortieth of the shortest
/// read. A prime, so that a thread that locks several shards for each answer times each of them in turn.
const READS_PER_TIMED: u32 = 17;

/// After this time a long reading yields the lock. In tests it yields at every opportunity, as they count the
/// holds.
const READ_HOLD_MAX: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_micros(100) };

/// After so many steps without a reader in between, nobody reads: 256 steps of 64 jobs are at least some
/// 20 ms.
const STEPS_UNREAD: u32 = if cfg!(test) { 3 } else { 256 };

/// How often a thread that is in no hurry looks whether the lock is free, and after which time it waits as
/// any other: a writer that only applies, and plans nothing, would keep it away for ever.
const LOOK_EVERY: Duration = Duration::from_micros(50);
const UNHURRIED_MAX: Duration = Duration::from_millis(20);
/// The same of who wants to change the state: several readers that overlap would keep it away as well, and a
/// checkpoint does it 600 times for a million members.
const UNHURRIED_CHANGE_MAX: Duration = Duration::from_millis(2);

/// What the state is locked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Answers to clients.
    Read,
    /// Planning a batch.
    Plan,
    /// Bringing the memory of a step into the cache, before it is applied.
    Warm,
    /// Applying a step.
    Apply,
    /// Releasing members of dropped boards, and handles of members that left.
    Release,
    /// Beginning a checkpoint, and joining some boards to it.
    CheckpointBegin,
    /// Copying a slice of a checkpoint's data.
    CheckpointCopy,
    /// Completing a checkpoint, or marking a slice of a failed one dirty again.
    CheckpointEnd,
    /// Reading gauges for metrics and the status.
    Gauges,
    /// Comparing the shard's boards with the decided ones.
    Boards,
    /// Summarising a board's tree for approximate ranks.
    Summary,
    /// Loading, before anything is served or while nothing can be written.
    Start,
}

impl Purpose {
    pub const ALL: [Self; 12] = [
        Self::Read,
        Self::Plan,
        Self::Warm,
        Self::Apply,
        Self::Release,
        Self::CheckpointBegin,
        Self::CheckpointCopy,
        Self::CheckpointEnd,
        Self::Gauges,
        Self::Boards,
        Self::Summary,
        Self::Start,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Plan => "plan",
            Self::Warm => "warm",
            Self::Apply => "apply",
            Self::Release => "release",
            Self::CheckpointBegin => "checkpoint_begin",
            Self::CheckpointCopy => "checkpoint_copy",
            Self::CheckpointEnd => "checkpoint_end",
            Self::Gauges => "gauges",
            Self::Boards => "boards",
            Self::Summary => "summary",
            Self::Start => "start",
        }
    }

    /// Its index in [`Purpose::ALL`].
    const fn index(self) -> usize {
        match self {
            Self::Read => 0,
            Self::Plan => 1,
            Self::Warm => 2,
            Self::Apply => 3,
            Self::Release => 4,
            Self::CheckpointBegin => 5,
            Self::CheckpointCopy => 6,
            Self::CheckpointEnd => 7,
            Self::Gauges => 8,
            Self::Boards => 9,
            Self::Summary => 10,
            Self::Start => 11,
        }
    }
}

/// A shard's state, shared by its one writer and all readers.
pub struct StateLock {
    state: RwLock<Shard>,
    timings: [Timings; Purpose::ALL.len()],
    /// Whether it was read for an answer since the last step.
    was_read: AtomicBool,
    /// How many steps were applied since then.
    steps_unread: AtomicU32,
    /// Whether a thread waits to change it.
    is_wanted: AtomicBool,
}

/// A purpose's metrics, looked up once. They are per process and not per shard: a reader locks all shards, so
/// series per shard would say little more.
struct Timings {
    purpose: Purpose,
    held: Histogram,
    waited: Histogram,
    observer: Option<Arc<dyn HoldObserver>>,
}

/// Observes timed holds, on the holding thread, so that a bench can find out what a long hold was spent on. A
/// service has none.
pub trait HoldObserver: Send + Sync {
    /// The thread has acquired the lock.
    fn acquired(&self);

    /// The thread has released it.
    fn released(&self, purpose: Purpose, held: Duration);
}

impl StateLock {
    #[must_use]
    pub fn new(shard: Shard) -> Self {
        let timings = Purpose::ALL.map(|purpose| Timings {
            purpose,
            held: histogram!(STATE_LOCK_HELD_SECONDS, "purpose" => purpose.name()),
            waited: histogram!(STATE_LOCK_WAIT_SECONDS, "purpose" => purpose.name()),
            observer: None,
        });
        let (was_read, steps_unread) = (AtomicBool::new(true), AtomicU32::new(0));
        let is_wanted = AtomicBool::new(false);
        Self { state: RwLock::new(shard), timings, was_read, steps_unread, is_wanted }
    }

    /// A lock whose holds are reported to a bench or a test.
    #[must_use]
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
        let shard = self.state.try_read().unwrap_or_else(|| measure_wait(timings, || self.state.read()));
        let is_timed = purpose != Purpose::Read || is_due();
        ReadGuard { shard, held: HoldTimer::since_now(timings.filter(|_| is_timed)) }
    }

    /// Locks for reading, for a thread that is in no hurry: it comes when nobody changes the state, as while
    /// a batch is planned, and stands in no queue. Who sleeps in the queue is handed the lock first and woken
    /// up afterwards, and the writer, which wants it back at once, waits for all of that. So it is for
    /// threads that come often.
    pub fn read_unhurried(&self, purpose: Purpose) -> ReadGuard<'_> {
        let shard =
            self.lock_unhurried(purpose, UNHURRIED_MAX, || self.state.try_read(), || self.state.read());
        ReadGuard { shard, held: HoldTimer::since_now(self.timings.get(purpose.index())) }
    }

    /// Locks for changes, as unhurriedly: while it looks, neither the writer nor readers wait for it.
    pub fn write_unhurried(&self, purpose: Purpose) -> WriteGuard<'_> {
        let shard = self.lock_unhurried(
            purpose,
            UNHURRIED_CHANGE_MAX,
            || self.state.try_write(),
            || self.state.write(),
        );
        WriteGuard { shard, held: HoldTimer::since_now(self.timings.get(purpose.index())) }
    }

    /// # Arguments
    /// `max`: after this time it waits as any other.
    fn lock_unhurried<L>(
        &self,
        purpose: Purpose,
        max: Duration,
        try_lock: impl Fn() -> Option<L>,
        lock: impl FnOnce() -> L,
    ) -> L {
        try_lock().unwrap_or_else(|| {
            measure_wait(self.timings.get(purpose.index()), || {
                let since = Instant::now();
                while since.elapsed() < max {
                    sleep(LOOK_EVERY);
                    if let Some(locked) = try_lock() {
                        return locked;
                    }
                }
                lock()
            })
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
                let shard = self.state.write();
                self.is_wanted.store(false, Ordering::Relaxed);
                shard
            })
        });
        WriteGuard { shard, held: HoldTimer::since_now(timings) }
    }
}

#[cfg(test)]
impl StateLock {
    /// Whether any thread holds it, for any purpose.
    pub fn is_held(&self) -> bool {
        self.state.try_write().is_none()
    }
}

/// Locks, and records how long that takes. Called only if the lock is not free at once, which is rare.
#[cold]
fn measure_wait<L>(timings: Option<&Timings>, lock: impl FnOnce() -> L) -> L {
    let asked = Instant::now();
    let locked = lock();
    if let Some(timings) = timings {
        timings.waited.record(asked.elapsed());
    }
    locked
}

/// Whether this read is one of those that are timed. Counted per thread, as a shared counter would cost as
/// much as it saves.
fn is_due() -> bool {
    thread_local! {
        static READS: Cell<u32> = const { Cell::new(0) };
    }
    READS.with(|reads| {
        let next = reads.get() + 1;
        let is_due = next == READS_PER_TIMED;
        reads.set(if is_due { 0 } else { next });
        is_due
    })
}

/// Since when a lock is held; records the time when dropped. Guards declare it after the lock itself, so that
/// it is dropped after that.
struct HoldTimer<'a>(Option<(Instant, &'a Timings)>);

impl<'a> HoldTimer<'a> {
    fn since_now(timings: Option<&'a Timings>) -> Self {
        if let Some(observer) = timings.and_then(|timings| timings.observer.as_deref()) {
            observer.acquired();
        }
        Self(timings.map(|timings| (Instant::now(), timings)))
    }
}

impl Drop for HoldTimer<'_> {
    fn drop(&mut self) {
        if let Some((since, timings)) = self.0 {
            let held = since.elapsed();
            timings.held.record(held);
            if let Some(observer) = timings.observer.as_deref() {
                observer.released(timings.purpose, held);
            }
        }
    }
}

/// A read guard.
pub struct ReadGuard<'a> {
    shard: RwLockReadGuard<'a, Shard>,
    held: HoldTimer<'a>,
}

impl ReadGuard<'_> {
    /// How long it has been held; zero if it is not timed.
    fn held_for(&self) -> Duration {
        self.held.0.map_or(Duration::ZERO, |(since, _)| since.elapsed())
    }
}

impl Deref for ReadGuard<'_> {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.shard
    }
}

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
    #[must_use]
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

/// A write guard.
pub struct WriteGuard<'a> {
    shard: RwLockWriteGuard<'a, Shard>,
    held: HoldTimer<'a>,
}

impl WriteGuard<'_> {
    /// Unlocks fairly, handing the lock to a waiting thread. Otherwise a thread that soon locks again would
    /// get it first every time.
    pub fn unlock_fair(self) {
        let Self { shard, held } = self;
        RwLockWriteGuard::unlock_fair(shard);
        drop(held);
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

#[cfg(test)]
mod tests {
    use std::thread;

    use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

    use super::*;
    use crate::types::{Sequence, ShardId};

    #[test]
    fn each_purpose_has_a_place_and_a_name_of_its_own() {
        for (place, purpose) in Purpose::ALL.into_iter().enumerate() {
            assert_eq!(purpose.index(), place, "{purpose:?}");
            let of_that_name = Purpose::ALL.iter().filter(|other| other.name() == purpose.name());
            assert_eq!(of_that_name.count(), 1, "{purpose:?}");
        }
    }

    #[test]
    fn it_is_read_until_nobody_has_read_it_for_a_while() {
        let lock = StateLock::new(Shard::new(ShardId(0)));
        let steps = || {
            [(); 5].map(|()| {
                lock.count_step();
                lock.is_read()
            })
        };
        let few = [true, true, true, false, false];
        assert_eq!(steps(), few, "nobody has read it yet, and somebody may come");
        Purpose::ALL.into_iter().filter(|purpose| *purpose != Purpose::Read).for_each(|purpose| {
            drop(lock.read(purpose));
        });
        assert!(!lock.is_read(), "only answers count");
        drop(lock.read(Purpose::Read));
        assert!(lock.is_read(), "at once, whenever the next step is");
        assert_eq!(steps(), few);
    }

    #[test]
    fn yielding_guard_unlocks_for_waiters_and_for_unlocked_work() {
        let lock = StateLock::new(Shard::new(ShardId(0)));
        thread::scope(|scope| {
            let mut reading = YieldingReadGuard::new(&lock, Purpose::Plan);
            assert!(lock.is_held());
            scope.spawn(|| lock.write(Purpose::CheckpointCopy).applied.sequence = Sequence(7));
            let started = Instant::now();
            while reading.applied.sequence != Sequence(7) {
                assert!(started.elapsed() < Duration::from_secs(60), "it waits for ever");
                reading.yield_if_due();
            }
            reading.unlocked(|| assert!(!lock.is_held()));
            assert!(lock.is_held());
        });
    }

    #[test]
    fn who_reads_is_told_while_somebody_waits_to_change_the_state() {
        let lock = StateLock::new(Shard::new(ShardId(0)));
        thread::scope(|scope| {
            let reading = lock.read_unhurried(Purpose::CheckpointCopy);
            assert!(!lock.is_wanted());
            let changed = scope.spawn(|| lock.write(Purpose::Apply).applied.sequence = Sequence(7));
            let started = Instant::now();
            while !lock.is_wanted() {
                assert!(started.elapsed() < Duration::from_secs(60), "nobody says that it waits");
                thread::yield_now();
            }
            assert_eq!(reading.applied.sequence, Sequence(0));
            drop(reading);
            changed.join().expect("it gets the lock");
        });
        assert!(!lock.is_wanted());
        assert_eq!(lock.read_unhurried(Purpose::CheckpointCopy).applied.sequence, Sequence(7));
    }

    #[test]
    fn an_unhurried_reader_comes_even_if_the_state_is_changed_without_a_pause() {
        let lock = StateLock::new(Shard::new(ShardId(0)));
        let is_done = AtomicBool::new(false);
        let mut changing = lock.write(Purpose::Apply);
        thread::scope(|scope| {
            scope.spawn(|| {
                (0..3).for_each(|_| drop(lock.read_unhurried(Purpose::CheckpointCopy)));
                is_done.store(true, Ordering::Relaxed);
            });
            let started = Instant::now();
            while !is_done.load(Ordering::Relaxed) {
                assert!(started.elapsed() < Duration::from_secs(60), "it waits for ever");
                changing.unlock_fair();
                changing = lock.write(Purpose::Apply);
            }
        });
    }

    #[test]
    fn readers_come_while_somebody_waits_unhurriedly_to_change_the_state() {
        let lock = StateLock::new(Shard::new(ShardId(0)));
        let looks = AtomicU32::new(0);
        let look = || {
            looks.fetch_add(1, Ordering::Relaxed);
            lock.state.try_write()
        };
        thread::scope(|scope| {
            let reading = lock.read(Purpose::Read);
            let waiting = scope.spawn(|| {
                let queue = || panic!("it waits as any other");
                lock.lock_unhurried(Purpose::CheckpointCopy, Duration::MAX, look, queue).applied.sequence =
                    Sequence(7);
            });
            let started = Instant::now();
            while looks.load(Ordering::Relaxed) < 2 {
                assert!(started.elapsed() < Duration::from_secs(60), "it does not look again");
                thread::yield_now();
            }
            assert!(lock.state.try_read().is_some(), "who comes now need not wait");
            assert!(!lock.is_wanted());
            drop(reading);
            waiting.join().expect("it gets the lock");
        });
        assert_eq!(lock.read(Purpose::Read).applied.sequence, Sequence(7));
    }

    #[test]
    fn an_unhurried_change_comes_even_if_the_state_is_always_read() {
        let lock = StateLock::new(Shard::new(ShardId(0)));
        thread::scope(|scope| {
            let mut reading = YieldingReadGuard::new(&lock, Purpose::Plan);
            scope.spawn(|| lock.write_unhurried(Purpose::CheckpointCopy).applied.sequence = Sequence(7));
            let started = Instant::now();
            while reading.applied.sequence != Sequence(7) {
                assert!(started.elapsed() < Duration::from_secs(60), "it waits for ever");
                reading.yield_if_due();
            }
        });
    }

    #[test]
    fn holds_are_counted_by_purpose_and_of_reads_for_answers_one_in_seventeen() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let lock = metrics::with_local_recorder(&recorder, || StateLock::new(Shard::new(ShardId(0))));
        // A thread of its own, which has read nothing yet.
        thread::scope(|scope| {
            scope.spawn(|| (0..170).for_each(|_| drop(lock.read(Purpose::Read))));
        });
        (0..3).for_each(|_| drop(lock.read(Purpose::Gauges)));
        lock.write(Purpose::Apply).unlock_fair();
        drop(lock.write(Purpose::Apply));
        let count = |metric, purpose: Purpose| counted(&recorder, metric, purpose);
        let held = [Purpose::Read, Purpose::Gauges, Purpose::Apply, Purpose::Plan];
        assert_eq!(held.map(|purpose| count(STATE_LOCK_HELD_SECONDS, purpose)), [10, 3, 2, 0]);
        assert_eq!(Purpose::ALL.map(|purpose| count(STATE_LOCK_WAIT_SECONDS, purpose)), [0; 12]);
        // Sooner or later a reader comes while the lock is held, however busy the machine is.
        let started = Instant::now();
        while count(STATE_LOCK_WAIT_SECONDS, Purpose::Read) == 0 {
            assert!(started.elapsed() < Duration::from_secs(60), "no wait is counted");
            let changing = lock.write(Purpose::Apply);
            thread::scope(|scope| {
                scope.spawn(|| drop(lock.read(Purpose::Read)));
                thread::sleep(Duration::from_millis(10));
                drop(changing);
            });
        }
    }

    fn counted(recorder: &PrometheusRecorder, metric: &str, purpose: Purpose) -> u64 {
        let series = format!("{metric}_count{{purpose=\"{}\"}} ", purpose.name());
        let text = recorder.handle().render();
        let count = text.lines().find_map(|line| line.strip_prefix(&series));
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}
