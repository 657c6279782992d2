//! A reader that reads at a fixed rate, and what each slow read waited for.

use std::hint::{black_box, spin_loop};
use std::num::NonZero;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use ranktree::state::Shard;
use ranktree::state_lock::{Purpose, StateLock};

use crate::support::thread_figures::ThreadFigures;
use crate::support::workload::id;
use crate::support::{argument, number};

/// 4,000 reads a second: rare enough that one that waits does not make the next one wait in line behind it.
const READ_EVERY: Duration = Duration::from_micros(250);
/// A read that takes longer is slow, and what it waited for is noted.
const SLOW: Duration = Duration::from_micros(200);
/// From so much on it is found out what a wait was spent on, which takes a microsecond itself.
const NOTED: Duration = Duration::from_micros(50);
/// Reads of a kind that are noted before memory is taken for more: of a minute.
const NOTED_AT_ONCE: usize = 100_000;
/// The kinds of reads, in turn.
pub const KINDS: [&str; 3] = ["rank", "position", "page_of_100"];

/// What a reader met.
#[derive(Default)]
pub struct Reads {
    /// How long reads took, waits included, by kind as in [`KINDS`].
    pub took: [Vec<Duration>; KINDS.len()],
    pub slow: Slow,
}

/// What the slow reads waited for, altogether.
#[derive(Default, Clone, Copy)]
pub struct Slow {
    pub reads: u64,
    pub all: Duration,
    /// Until an earlier read was done: one that stalls makes those late that are due meanwhile.
    pub behind: Duration,
    /// From then, or from when they were due, to when they began: the thread was asleep until then.
    pub asleep: Wait,
    /// From asking for the lock to having it.
    pub lock: Wait,
}

/// A wait, and what of it Linux counts as ready to go on while others had the cores.
#[derive(Default, Clone, Copy)]
pub struct Wait {
    pub all: Duration,
    pub ready: Duration,
}

impl AddAssign for Slow {
    fn add_assign(&mut self, more: Self) {
        self.reads += more.reads;
        self.all += more.all;
        self.behind += more.behind;
        self.asleep += more.asleep;
        self.lock += more.lock;
    }
}

impl AddAssign for Wait {
    fn add_assign(&mut self, more: Self) {
        self.all += more.all;
        self.ready += more.ready;
    }
}

impl Reads {
    /// With memory that is the process's already: to clear a huge page takes milliseconds on some machines,
    /// which are not the read's that is noted then.
    fn with_room() -> Self {
        let mut reads = Self::default();
        for took in &mut reads.took {
            took.resize(NOTED_AT_ONCE, Duration::ZERO);
            took.clear();
        }
        reads
    }

    pub fn extend(&mut self, more: Self) {
        self.took.iter_mut().zip(more.took).for_each(|(all, more)| all.extend(more));
        self.slow += more.slow;
    }

    pub fn sort(&mut self) {
        self.took.iter_mut().for_each(|took| took.sort_unstable());
    }
}

/// Reads for a time, or until it is told to stop. Each read is timed from the moment it was meant to begin: a
/// reader who is kept waiting does not make the next one late for free.
pub fn read_for(shard: &StateLock, members: u64, time: Duration, stop: &AtomicBool) -> Reads {
    let mut random = SmallRng::seed_from_u64(7);
    let mut reads = Reads::with_room();
    let figures = ThreadFigures::of_this_thread();
    // Linux wakes a sleeper up to 50 us late unless asked for better. Packets wake threads without that.
    rustix::thread::set_current_timer_slack(NonZero::new(1)).expect("any thread may");
    let early = wakes_early();
    let started = Instant::now();
    let mut free = Duration::ZERO;
    for read in 0.. {
        let due = READ_EVERY * read;
        if due >= time || stop.load(Ordering::Relaxed) {
            break;
        }
        let waited = figures.core_waits();
        wait_until(started, due, early);
        let begun = started.elapsed();
        let behind = free.saturating_sub(due);
        let mut asleep = Wait { all: begun.saturating_sub(due.max(free)), ready: Duration::ZERO };
        if asleep.all > NOTED {
            asleep.ready = figures.core_waits().saturating_sub(waited);
        }
        let kind = read as usize % KINDS.len();
        let answer = ask(kind, &mut random, members);
        let asked = started.elapsed();
        let state = shard.read(Purpose::Read);
        let locked = started.elapsed();
        answer(&state);
        drop(state);
        free = started.elapsed();
        let all = free.saturating_sub(due);
        reads.took[kind].push(all);
        if all > SLOW {
            let ready = figures.core_waits().saturating_sub(waited).saturating_sub(asleep.ready);
            let waited = locked.saturating_sub(asked);
            let lock = Wait { all: waited, ready: ready.min(waited) };
            reads.slow += Slow { reads: 1, all, behind, asleep, lock };
        }
    }
    reads.sort();
    reads
}

/// Draws a read of a kind.
fn ask(kind: usize, random: &mut SmallRng, members: u64) -> impl FnOnce(&Shard) {
    let drawn: u64 = random.random();
    move |shard| {
        let tree = &shard.board_tree("arena").expect("the board is there").tree;
        match kind {
            0 => {
                let score = !((drawn >> 24) ^ (1 << 63));
                black_box((tree.count_below(&[score]), tree.count_through(&[score])));
            }
            1 => {
                let handle = shard.members.get(id(drawn % members).as_bytes());
                black_box(tree.index_of(handle.expect("the member is there")));
            }
            _ => {
                let page = tree.cursor_at(drawn % members);
                black_box(page.take(100).map(|(_, words)| words.as_slice()[0]).fold(0, |a, b| a ^ b));
            }
        }
    }
}

/// As `--reader` and `--early` say: how long before a read the sleep ends, and spinning begins. `None`: there
/// is no sleep. A reader that sleeps gets a core as soon as it wants one, as a thread that waits for requests
/// does. One that spins has used up its share by then.
fn wakes_early() -> Option<Duration> {
    argument("reader").is_none_or(|how| how != "spins").then(|| Duration::from_micros(number("early", 80)))
}

fn wait_until(started: Instant, due: Duration, early: Option<Duration>) {
    if let Some(rest) = early.and_then(|early| due.checked_sub(started.elapsed() + early)) {
        std::thread::sleep(rest);
    }
    while started.elapsed() < due {
        spin_loop();
    }
}
