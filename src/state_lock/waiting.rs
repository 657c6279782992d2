//! How threads wait for a lock of `parking_lot` that others hold for some microseconds.
//!
//! Knows: cores, and threads that sleep. Must not know: what the lock is for.
//!
//! A thread that queues for such a lock first yields its core seven times, each time to whoever wants it and
//! for up to a tick of the system's clock, a few milliseconds. Then it sleeps, and is handed the lock before
//! it is awake: an idle core of a virtual machine takes up to half a millisecond for that, and nobody else
//! can have the lock meanwhile. So all look for a while before they queue, and who reads for an answer waits
//! in another way for some time:
//!
//! - It keeps its core and looks, unless it has taken the core of who holds the lock.
//! - Then it sleeps, and is woken when the lock is released. It is handed nothing: who comes first gets the
//!   lock.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use parking_lot_core::{DEFAULT_PARK_TOKEN, DEFAULT_UNPARK_TOKEN, park, unpark_all};

/// Looks at the lock are so many pauses of the processor apart, of 20 to 50 ns each: who looks takes the
/// lock's line of the cache away from who holds it.
const PAUSES_PER_LOOK: u32 = 8;

/// How often a thread that is in no hurry looks.
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// No core, or one that is not known.
const NONE: u32 = u32::MAX;

/// The cores of threads that hold a lock for some time. They may have moved to others since.
pub(super) struct Cores {
    has_several: bool,
    changing: AtomicU32,
    copying: AtomicU32,
}

impl Cores {
    pub(super) fn new() -> Self {
        let has_several = available_parallelism().is_ok_and(|cores| cores.get() > 1);
        Self { has_several, changing: AtomicU32::new(NONE), copying: AtomicU32::new(NONE) }
    }

    /// Notes that the calling thread changes what the lock is for.
    pub(super) fn note_changing(&self) -> NotedCore<'_> {
        NotedCore::new(&self.changing)
    }

    /// Notes that the calling thread reads, and more of it than others do.
    pub(super) fn note_copying(&self) -> NotedCore<'_> {
        NotedCore::new(&self.copying)
    }

    /// Tries for a while, and at least once, as long as none of those threads wants the caller's core.
    pub(super) fn spin<L>(&self, max: Duration, try_lock: impl Fn() -> Option<L>) -> Option<L> {
        let core = this_core();
        let since = Instant::now();
        loop {
            let locked = try_lock();
            let is_theirs = core.is_some_and(|core| {
                [&self.changing, &self.copying].iter().any(|of| of.load(Ordering::Relaxed) == core)
            });
            if locked.is_some() || is_theirs || !self.has_several || since.elapsed() >= max {
                return locked;
            }
            (0..PAUSES_PER_LOOK).for_each(|_| spin_loop());
        }
    }
}

/// That a thread holds the lock, until dropped.
pub(super) struct NotedCore<'a>(&'a AtomicU32);

impl<'a> NotedCore<'a> {
    fn new(place: &'a AtomicU32) -> Self {
        place.store(this_core().unwrap_or(NONE), Ordering::Relaxed);
        Self(place)
    }
}

impl Drop for NotedCore<'_> {
    fn drop(&mut self) {
        self.0.store(NONE, Ordering::Relaxed);
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "rustix's ends the process under Valgrind, which counts what a job takes")]
fn this_core() -> Option<u32> {
    // SAFETY: it returns a number, and touches no memory of the caller's.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(target_os = "linux"))]
const fn this_core() -> Option<u32> {
    None
}

/// Readers that sleep until the lock is released.
#[derive(Default)]
pub(super) struct WaitingReaders {
    count: AtomicU32,
    releases: AtomicUsize,
}

impl WaitingReaders {
    /// Tries, and sleeps until the lock is released or it is late. `None`: the lock may be free now.
    pub(super) fn sleep<L>(&self, until: Instant, try_lock: impl Fn() -> Option<L>) -> Option<L> {
        self.count.fetch_add(1, Ordering::SeqCst);
        // See `wake`.
        fence(Ordering::SeqCst);
        let releases = self.releases.load(Ordering::SeqCst);
        let locked = try_lock();
        if locked.is_none() {
            self.park(until, releases);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        locked
    }

    #[allow(unsafe_code, reason = "a condition variable wakes one after the other, and needs a mutex")]
    fn park(&self, until: Instant, releases: usize) {
        let is_unreleased = || self.releases.load(Ordering::SeqCst) == releases;
        // SAFETY: the key is an address of this struct's, which nothing else parks on; the functions neither
        // panic nor call `parking_lot`.
        unsafe {
            park(self.key(), is_unreleased, || {}, |_, _| {}, DEFAULT_PARK_TOKEN, Some(until));
        }
    }

    /// For who has released the lock.
    #[allow(unsafe_code, reason = "as above")]
    fn wake(&self) {
        // Both this fence and the one in `sleep` are needed, as the lock itself has none: if no reader is
        // counted below, one that comes later sees that the lock is free.
        fence(Ordering::SeqCst);
        self.releases.fetch_add(1, Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) > 0 {
            // SAFETY: the key is an address of this struct's, which nothing else parks on.
            unsafe {
                unpark_all(self.key(), DEFAULT_UNPARK_TOKEN);
            }
        }
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.count).addr()
    }
}

/// Wakes readers when dropped, after the lock.
pub(super) struct WakeReaders<'a>(pub(super) &'a WaitingReaders);

impl Drop for WakeReaders<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Tries now and then, and sleeps in between.
pub(super) fn look_for<L>(max: Duration, try_lock: impl Fn() -> Option<L>) -> Option<L> {
    let since = Instant::now();
    while since.elapsed() < max {
        sleep(LOOK_EVERY);
        if let Some(locked) = try_lock() {
            return Some(locked);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;
    use std::thread::{scope, yield_now};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn it_looks_until_the_lock_is_free_while_others_have_other_cores() {
        let cores = Cores { has_several: true, changing: AtomicU32::new(NONE - 2), ..Cores::new() };
        let looks = Cell::new(0);
        let found = cores.spin(LONG, || {
            looks.set(looks.get() + 1);
            (looks.get() == 5).then_some("locked")
        });
        assert_eq!((found, looks.get()), (Some("locked"), 5));
        assert_eq!(cores.spin(Duration::ZERO, || None::<()>), None, "not for longer than it may");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn it_does_not_keep_the_core_of_who_holds_the_lock() {
        on_one_core(|| {
            let cores = Cores { has_several: true, ..Cores::new() };
            let once = || {
                let looks = Cell::new(0);
                let found = cores.spin(LONG, || {
                    looks.set(looks.get() + 1);
                    (looks.get() == 2).then_some(())
                });
                found.is_none()
            };
            assert!(!once(), "nobody holds it");
            let noted = cores.note_changing();
            assert!(once());
            drop(noted);
            assert!(!once(), "it was released");
            let _noted = cores.note_copying();
            assert!(once());
        });
    }

    #[test]
    fn there_is_one_look_on_a_machine_of_one_core() {
        let cores = Cores { has_several: false, ..Cores::new() };
        let looks = Cell::new(0);
        let found = cores.spin(LONG, || {
            looks.set(looks.get() + 1);
            None::<()>
        });
        assert_eq!((found, looks.get()), (None, 1));
    }

    #[test]
    fn a_reader_that_sleeps_is_woken_by_a_release() {
        let (waiting, is_free) = (WaitingReaders::default(), AtomicBool::new(false));
        let late = Instant::now() + LONG;
        scope(|scope| {
            let reader = scope.spawn(|| {
                let try_lock = || is_free.load(Ordering::SeqCst).then_some(());
                while waiting.sleep(late, try_lock).is_none() {
                    assert!(Instant::now() < late, "nobody wakes it");
                }
            });
            while waiting.count.load(Ordering::SeqCst) == 0 {
                assert!(Instant::now() < late, "it does not sleep");
                yield_now();
            }
            is_free.store(true, Ordering::SeqCst);
            // Once is enough, whether it sleeps already or has yet to.
            drop(WakeReaders(&waiting));
            reader.join().expect("it has the lock");
        });
        assert_eq!(waiting.count.load(Ordering::SeqCst), 0);
    }

    /// On a core that the thread keeps.
    #[cfg(target_os = "linux")]
    fn on_one_core(work: impl FnOnce() + Send) {
        use rustix::thread::{CpuSet, sched_setaffinity};

        scope(|scope| {
            scope.spawn(|| {
                let mut only = CpuSet::new();
                only.set(this_core().and_then(|core| core.try_into().ok()).expect("it is known"));
                sched_setaffinity(None, &only).expect("a thread may keep to a core");
                work();
            });
        });
    }
}
