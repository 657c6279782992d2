//! How long a lock is held and waited for, by purpose.
//!
//! Knows: the clock and the metrics. Must not know: the lock.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{Histogram, histogram};

use super::purpose::Purpose;
use crate::metrics::{STATE_LOCK_HELD_SECONDS, STATE_LOCK_WAIT_SECONDS};

/// One in this many reads for answers is timed: reading the clock twice costs a fortieth of the shortest
/// read. A prime, so that a thread that locks several shards for each answer times each of them in turn.
const READS_PER_TIMED: u32 = 17;

/// A purpose's metrics, looked up once. They are per process and not per shard: a reader locks all shards, so
/// series per shard would say little more.
pub(super) struct Timings {
    purpose: Purpose,
    held: Histogram,
    waited: Histogram,
    pub(super) observer: Option<Arc<dyn HoldObserver>>,
}

impl Timings {
    pub(super) fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            held: histogram!(STATE_LOCK_HELD_SECONDS, "purpose" => purpose.name()),
            waited: histogram!(STATE_LOCK_WAIT_SECONDS, "purpose" => purpose.name()),
            observer: None,
        }
    }
}

/// Observes timed holds, on the holding thread, so that a bench can find out what a long hold was spent on. A
/// service has none.
pub trait HoldObserver: Send + Sync {
    /// The thread has acquired the lock.
    fn acquired(&self);

    /// The thread has released it.
    fn released(&self, purpose: Purpose, held: Duration);
}

/// Since when a lock is held; records the time when dropped. Guards declare it after the lock itself, so that
/// it is dropped after that.
pub(super) struct HoldTimer<'a>(Option<(Instant, &'a Timings)>);

impl<'a> HoldTimer<'a> {
    pub(super) fn since_now(timings: Option<&'a Timings>) -> Self {
        if let Some(observer) = timings.and_then(|timings| timings.observer.as_deref()) {
            observer.acquired();
        }
        Self(timings.map(|timings| (Instant::now(), timings)))
    }
}

impl HoldTimer<'_> {
    /// How long the lock has been held; zero if that is not timed.
    pub(super) fn held_for(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |(since, _)| since.elapsed())
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

/// Locks, and records how long that takes. Called only if the lock is not free at once, which is rare.
#[cold]
pub(super) fn measure_wait<L>(timings: Option<&Timings>, lock: impl FnOnce() -> L) -> L {
    let asked = Instant::now();
    let locked = lock();
    if let Some(timings) = timings {
        timings.waited.record(asked.elapsed());
    }
    locked
}

/// Whether this read is one of those that are timed. Counted per thread, as a shared counter would cost as
/// much as it saves.
pub(super) fn is_due() -> bool {
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
