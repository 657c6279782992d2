//! The longest holds of a shard's lock, by purpose, and what they were spent with: the holding thread's work,
//! waiting for a core that another thread had, or sleep.
//!
//! A hold is long on the clock if its thread lost its core, which other threads decide. Work is what the code
//! decides. Page faults are work; sleep is waiting for something but a core, such as a lock within the
//! kernel.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ranktree::state_lock::{HoldObserver, Purpose};
use rustix::time::{ClockId, clock_gettime};

use crate::support::thread_figures::ThreadFigures;

/// What a hold was spent with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hold {
    pub clock: Duration,
    /// Of that, on a core.
    pub work: Duration,
    /// Ready to go on, while others had the cores.
    pub without_core: Duration,
    /// Page faults: the system gives memory when it is first touched, which is part of the work.
    pub faults: u64,
}

/// The longest holds for one purpose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Longest {
    pub clock: Hold,
    pub work: Hold,
    /// Holds longer than a millisecond on the clock, and in work.
    pub long: u64,
    pub long_work: u64,
    pub holds: u64,
}

#[derive(Default)]
pub struct HoldTimes(Mutex<BTreeMap<&'static str, Longest>>);

const LONG: Duration = Duration::from_millis(1);

thread_local! {
    static FIGURES: OnceCell<ThreadFigures> = const { OnceCell::new() };
    /// When the thread took the lock: how long it had waited for cores, its page faults, and its processor
    /// time. It holds one at a time.
    static ACQUIRED: Cell<(Duration, u64, Duration)> =
        const { Cell::new((Duration::ZERO, 0, Duration::ZERO)) };
}

/// How long this thread has waited for cores so far, and its page faults.
fn waits_and_faults() -> (Duration, u64) {
    FIGURES.with(|figures| {
        let figures = figures.get_or_init(ThreadFigures::of_this_thread);
        (figures.core_waits(), figures.page_faults())
    })
}

fn work() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl HoldObserver for HoldTimes {
    fn acquired(&self) {
        let (without_core, faults) = waits_and_faults();
        ACQUIRED.set((without_core, faults, work()));
    }

    fn released(&self, purpose: Purpose, clock: Duration) {
        let (without_core_then, faults_then, work_then) = ACQUIRED.get();
        let work = work().saturating_sub(work_then);
        let (without_core, faults) = waits_and_faults();
        let without_core = without_core.saturating_sub(without_core_then);
        let hold = Hold { clock, work, without_core, faults: faults - faults_then };
        let mut all = self.0.lock().expect("nobody panics with it");
        let longest = all.entry(purpose.name()).or_default();
        if hold.clock > longest.clock.clock {
            longest.clock = hold;
        }
        if hold.work > longest.work.work {
            longest.work = hold;
        }
        longest.holds += 1;
        longest.long += u64::from(hold.clock > LONG);
        longest.long_work += u64::from(hold.work > LONG);
    }
}

impl HoldTimes {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The holds since the last call, the longest on the clock first.
    pub fn take(&self) -> Vec<(&'static str, Longest)> {
        let taken = std::mem::take(&mut *self.0.lock().expect("nobody panics with it"));
        let mut taken: Vec<_> = taken.into_iter().collect();
        taken.sort_by_key(|(_, longest)| std::cmp::Reverse(longest.clock.clock));
        taken
    }
}

/// Touches so much memory that nobody had before.
const TOUCHED: usize = 1 << 30;
const PAGE: usize = 4_096;

/// The longest that the machine takes to give a page of memory to who touches it, in work: no hold that
/// touches new memory can be promised to take less. A virtual machine may have to ask its host for each.
pub fn longest_page_fault() -> Duration {
    let mut memory = vec![0_u8; TOUCHED];
    let (mut longest, mut then) = (Duration::ZERO, work());
    for byte in memory.iter_mut().step_by(PAGE) {
        *byte = 1;
        let now = work();
        longest = longest.max(now.saturating_sub(then));
        then = now;
    }
    black_box(memory);
    longest
}
