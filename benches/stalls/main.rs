//! How long a shard's lock is held, and how long a reader waits for it, in each case that was found to stall
//! one.
//!
//! A real shard with its writer, its RocksDB directory and its checkpoints goes through the cases one after
//! the other, while a reader asks for all locks again and again, as requests do. Printed for each case:
//! - how long it took;
//! - by purpose, the longest holds of the lock on the clock, as the service's own metric has them
//!   (`ranktree_state_lock_held_seconds`);
//! - by purpose, the most work that a hold took: its thread's processor time, page faults included;
//! - the reader's longest wait; in parentheses the part of it in which no other thread had the core that the
//!   reader wanted: the lock's own share. Of what it looks up itself, the bench tells the longest look-up as
//!   well.
//!
//! Target: no hold above a millisecond, no wait above two. A hold that is long on the clock and short in work
//! lost its core to another thread: so it takes a quiet machine, or `chrt -r 5` before the command, which
//! then has pauses of 50 ms now and then that Linux makes threads of real-time priority take
//! (`kernel.sched_rt_runtime_us`). What the code decides is the work, which a busy machine changes little.
//!
//! `cargo bench --bench stalls -- --members 10000000 --boards 88000`; `--help` tells the rest.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]
#![allow(
    clippy::unnecessary_wraps,
    reason = "all cases are played in the same way, and some measure more than others"
)]

mod cases;
mod holds;
mod longest;
mod reader;
mod shard;
#[path = "../support/mod.rs"]
mod support;

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cases::{CASES, Case, Sizes};
use holds::{Hold, HoldTimes, Longest, longest_page_fault};
use longest::WaitTimes;
use ranktree::allocator::keep_huge_pages;
use reader::{Met, Reader};
use rustix::thread::disable_transparent_huge_pages;
use shard::Running;
use support::{argument, list, machine, number, scratch, short};

const HOLD_MAX: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_millis(2);
/// Holds that are printed, from the longest on, if they are this long.
const HOLDS_TOLD: usize = 4;
const HOLD_TOLD: Duration = Duration::from_micros(100);
/// Beside the table.
const HOLD_EXPLAINED: Duration = Duration::from_micros(300);

/// Has the system give so many MiB of memory, and leaves them to the allocator, which keeps them if
/// `MIMALLOC_PURGE_DELAY=-1` says so.
fn touch_memory(mebibytes: u64) {
    let touched: Vec<Vec<u8>> = (0..mebibytes).map(|_| vec![1; 1 << 20]).collect();
    std::hint::black_box(touched);
}

fn main() {
    if std::env::args().any(|argument| argument == "--help") {
        return help();
    }
    if argument("huge-pages").is_some_and(|wanted| wanted == "false") {
        disable_transparent_huge_pages(true).expect("Linux allows it");
    }
    keep_huge_pages();
    touch_memory(number("touch", 0));
    let sizes = Sizes {
        members: number("members", 10_000_000),
        half: number("half", 1_000_000),
        boards: number("boards", 88_000),
        new_boards: number("new-boards", 1_000),
        parked: number("parked", 100_000),
        daily: number("daily", 10_000),
        seconds: Duration::from_secs(number("seconds", 10)),
    };
    let wanted = list("cases", "");
    let is_wanted = |case: &Case| wanted.iter().any(|name| name.is_empty() || name == case.name);
    let (all_waits, all_holds) = (WaitTimes::install(), HoldTimes::new());
    let folder = scratch();
    let mut running = Running::open(folder.path(), &all_holds);
    let reader = Reader::start(Arc::clone(&running.node), cases::ARENA);
    let busy = Busy::start(number("busy", 0));
    eprintln!("  {}", machine::load());
    eprintln!("  the longest page fault when touching a GiB: {} ms of work", millis(longest_page_fault()));
    println!(
        "stalls: {} members, {} boards of ten, {} parked jobs for {} boards, {} busy threads beside",
        short(sizes.members),
        short(sizes.boards),
        short(sizes.parked),
        short(sizes.new_boards),
        busy.threads.len()
    );
    println!();
    println!("| case | took | longest holds, ms | most work of a hold, ms | a reader's longest wait, ms |");
    println!("|---|---|---|---|---|");
    let (mut over, mut done) = (Vec::new(), 0);
    for case in CASES {
        (case.prepare)(&mut running, &sizes);
        if !is_wanted(&case) {
            continue;
        }
        all_holds.take();
        all_waits.take();
        reader.take();
        let started = Instant::now();
        let told = (case.play)(&mut running, &sizes);
        let took = started.elapsed();
        let (holds, waits, met) = (all_holds.take(), all_waits.take(), reader.take());
        println!("{}", row(&case, took, &holds, &met, told));
        let at = |part| millis(Duration::from_nanos(met.reads.value_at_quantile(part)));
        eprintln!(
            "  {}: {} reads, p50 {} p99 {} p99.9 {} ms; waits {}",
            case.name,
            met.reads.len(),
            at(0.5),
            at(0.99),
            at(0.999),
            millis_by_purpose(&waits)
        );
        for (purpose, longest) in &holds {
            explain(purpose, longest);
        }
        done += 1;
        for (purpose, Longest { clock, work, .. }) in holds {
            let (clock, work) = (clock.clock, work.work);
            if work > HOLD_MAX {
                over.push(format!("{}: {purpose} {} ms, {} of work", case.name, millis(clock), millis(work)));
            } else if clock > HOLD_MAX {
                over.push(format!("{}: {purpose} {} ms", case.name, millis(clock)));
            }
        }
        if met.longest_for_lock > WAIT_MAX {
            over.push(format!("{}: a reader waits {} ms", case.name, millis(met.longest_for_lock)));
        }
    }
    println!();
    if over.is_empty() {
        println!("all {done} cases: no hold above 1 ms, and no wait above 2 ms");
    } else {
        println!("OVER {}", over.join("; "));
    }
    eprintln!("  {}", machine::load());
}

fn row(
    case: &Case,
    took: Duration,
    holds: &[(&'static str, Longest)],
    met: &Met,
    told: Option<String>,
) -> String {
    let by = |duration: fn(&Longest) -> Duration| {
        let mut all: Vec<_> = holds.iter().map(|(purpose, longest)| (*purpose, duration(longest))).collect();
        all.sort_by_key(|(_, longest)| std::cmp::Reverse(*longest));
        millis_by_purpose(&all)
    };
    format!(
        "| {} | {:.1} s | {} | {} | {} ({}){} |",
        case.what,
        took.as_secs_f64(),
        by(|longest| longest.clock.clock),
        by(|longest| longest.work.work),
        millis(met.longest),
        millis(met.longest_for_lock),
        told.map(|told| format!("; {told}")).unwrap_or_default()
    )
}

/// Says what a purpose's longest holds were spent with, if they are worth it.
fn explain(purpose: &str, longest: &Longest) {
    let Longest { clock, work, long, long_work, holds } = longest;
    if clock.clock <= HOLD_EXPLAINED {
        return;
    }
    let spent = |hold: &Hold| {
        let (work, without) = (hold.work, hold.without_core);
        let asleep = hold.clock.saturating_sub(work + without);
        format!(
            "{} = {} work ({} page faults) + {} without a core + {} asleep",
            millis(hold.clock),
            millis(work),
            hold.faults,
            millis(without),
            millis(asleep)
        )
    };
    eprintln!(
        "    {purpose}: {holds} holds, {long} above 1 ms, {long_work} of them in work; the longest {}; the most work {}",
        spent(clock),
        spent(work)
    );
}

/// The longest ones, and at least one.
fn millis_by_purpose(all: &[(impl Display, Duration)]) -> String {
    let mut text = String::new();
    let told =
        all.iter().take(HOLDS_TOLD).enumerate().filter(|(at, (_, hold))| *at == 0 || *hold >= HOLD_TOLD);
    for (at, (purpose, hold)) in told {
        let comma = if at > 0 { ", " } else { "" };
        write!(text, "{comma}{purpose} {}", millis(*hold)).expect("a String takes it");
    }
    text
}

fn millis(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

/// Threads that keep cores busy.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Busy {
    fn start(threads: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..threads).map(|_| std::thread::spawn(spin(Arc::clone(&stop)))).collect();
        Self { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("it only spins"));
    }
}

fn help() {
    println!(
        "How long a shard's lock is held, and how long a reader waits for it.

  --members N      members with versions on one board (10000000)
  --half N         members of a second board, half of whom are removed (1000000)
  --boards N       boards of ten members each (88000: with the other boards, no more than a node takes)
  --parked N       jobs that wait for boards (100000)
  --new-boards N   boards that they wait for (1000)
  --daily N        boards with a window of a day, which ends (10000)
  --seconds N      how long updates go on beside checkpoints, in each case that has them (10)
  --busy N         threads that keep cores busy meanwhile (0)
  --huge-pages B   whether Linux may give memory in pages of 2 MiB (true)
  --touch MIB      memory that is touched before, and left to the allocator (0); with MIMALLOC_PURGE_DELAY=-1 in
                   the environment, which has the allocator keep it, this shows what page faults are to blame for
  --cases A,B      only these; what they need is prepared all the same
  --dir PATH       where the shard's directory is made, some 200 bytes a member
  --keep true      leaves it there

Cases:"
    );
    for case in CASES {
        println!("  {:<12}     {}", case.name, case.what);
    }
}
