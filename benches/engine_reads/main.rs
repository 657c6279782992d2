//! What readers get of a shard: reads in process at rest and while the writer works, memory, and start-up.
//!
//! Prints `RATIO read_p99_under_load …` (loaded p99 / idle p99), `RATIO memory_per_member_vs_redis …` (bytes
//! per member / those that a Redis sorted set takes for 12-byte ids; the same for Valkey), and the start-up
//! time. What a sorted set takes is measured in the same run with a million members, if redis-server is here
//! (Debian's `redis-server` and `redis-tools`; `make valkey`); else it is the 110 bytes of Redis 7 that were
//! measured for the design.
//!
//! The write load is 80 % of what the engine can do: it works for four fifths of the time and sleeps for one.
//!
//! The reader sleeps between reads until 80 µs before the next is due, as waking up takes a virtual machine's
//! core some 40, and has short time slices, as a thread of connections does. `--early 0` has it sleep until
//! the time, so that waking up counts; `--reader spins` has it not sleep at all, `--slice long` leaves it the
//! system's slices, and `--writer-niceness 5` lowers the writer's priority.
//!
//! What reads of over 200 µs waited for is printed as well: an earlier read, the end of their thread's sleep,
//! or the lock, and what part of that the thread was ready to go on, but others had the cores.
//!
//! `cargo bench --bench engine_reads -- --members 10000000 --seconds 20`

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod reader;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ranktree::short_slice;
use ranktree::state_lock::Purpose;

use reader::{KINDS, Reads, read_for};
use support::engine::Engine;
use support::redis::{Redis, is_here, ratio_name};
use support::workload::{Access, Scores, Workload, id};
use support::{argument, micros, number, percentile, resident_bytes, scratch, short};

/// A Redis 7 sorted set, per member with a 12-byte id, measured while the project was designed.
const REDIS_BYTES_PER_MEMBER: f64 = 110.0;
/// Members of the sorted set that is measured.
const SORTED_SET_MEMBERS: u64 = 1_000_000;
const BATCH: usize = 1_000;
/// Batches made up at a time under load.
const WINDOW_BATCHES: usize = 400;

fn main() {
    let members = number("members", 10_000_000);
    let time = Duration::from_secs(number("seconds", 20));
    let folder = scratch();
    let sorted_sets = sorted_sets(folder.path());
    let before = resident_bytes();
    let mut workload = Workload::new(members, Access::Uniform, Scores::Distinct);
    let mut engine = Engine::open(folder.path());
    engine.load(members, &mut workload);
    report_memory("loaded", members, &engine, before, &sorted_sets);
    let idle = read_for(&engine.shard, members, time, &AtomicBool::new(false));
    print_reads("idle", members, &idle);
    let (loaded, jobs) = read_under_load(&mut engine, &mut workload, members, time);
    print_reads("loaded", members, &loaded);
    println!("write load {jobs:.0} jobs/s");
    for (name, (idle, loaded)) in KINDS.iter().zip(idle.took.iter().zip(&loaded.took)) {
        let ratio = micros(percentile(loaded, 0.99)) / micros(percentile(idle, 0.99));
        println!("RATIO {name}_p99_under_load_vs_idle_{} {ratio:.2}", short(members));
    }
    engine.checkpoint();
    report_memory("after updates", members, &engine, before, &sorted_sets);
    engine.close();
    for attempt in ["first", "second"] {
        let started = Instant::now();
        let engine = Engine::open(folder.path());
        let took = started.elapsed().as_secs_f64();
        println!("startup_{} {took:.2} s ({attempt} opening)", short(members));
        assert_eq!(engine.shard.read(Purpose::Read).members.len() as u64, members, "everyone is back");
        engine.close();
    }
}

/// Whether the reader has short time slices, as threads of connections have.
fn slices_are_short() -> bool {
    argument("slice").is_none_or(|slice| slice != "long")
}

/// Reads while the writer works four fifths of the time. Jobs are made up between windows of about a second,
/// during which nobody reads.
fn read_under_load(
    engine: &mut Engine,
    workload: &mut Workload,
    members: u64,
    time: Duration,
) -> (Reads, f64) {
    let mut all = Reads::default();
    let (mut jobs, mut loaded) = (0_u64, Duration::ZERO);
    let niceness = i32::try_from(number("writer-niceness", 0)).expect("0 to 19");
    rustix::process::setpriority_process(Some(rustix::thread::gettid()), niceness).expect("it may be nicer");
    while loaded < time {
        let batches: Vec<_> = (0..WINDOW_BATCHES)
            .map(|_| {
                let jobs = (0..BATCH).map(|_| workload.job()).collect();
                engine.messages(jobs)
            })
            .collect();
        let shard = Arc::clone(&engine.shard);
        let stop = AtomicBool::new(false);
        let started = Instant::now();
        let reads = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                if slices_are_short() {
                    short_slice::for_this_thread();
                }
                read_for(&shard, members, Duration::MAX, &stop)
            });
            for messages in batches {
                let worked = engine.turn(messages).total();
                std::thread::sleep(worked / 4);
            }
            stop.store(true, Ordering::Relaxed);
            reader.join().expect("the reader does not panic")
        });
        loaded += started.elapsed();
        jobs += (WINDOW_BATCHES * BATCH) as u64;
        all.extend(reads);
    }
    all.sort();
    (all, jobs as f64 / loaded.as_secs_f64())
}

fn print_reads(when: &str, members: u64, reads: &Reads) {
    for (name, samples) in KINDS.iter().zip(&reads.took) {
        println!(
            "{name} {} {when}: p50 {:.2} us, p99 {:.2} us, p99.9 {:.2} us, {} reads",
            short(members),
            micros(percentile(samples, 0.5)),
            micros(percentile(samples, 0.99)),
            micros(percentile(samples, 0.999)),
            samples.len()
        );
    }
    let slow = reads.slow;
    if slow.reads > 0 {
        let each = |time: Duration| micros(time) / slow.reads as f64;
        println!(
            "  {} reads took over 200 us, {:.0} each: {:.0} behind an earlier one, {:.0} asleep (of that {:.0} ready, \
             without a core), {:.0} for the lock ({:.0})",
            slow.reads,
            each(slow.all),
            each(slow.behind),
            each(slow.asleep.all),
            each(slow.asleep.ready),
            each(slow.lock.all),
            each(slow.lock.ready),
        );
    }
}

/// The name of each server's ratio, and what its sorted sets take for each member.
fn sorted_sets(folder: &Path) -> Vec<(String, f64)> {
    let name =
        |server: &str| ratio_name("memory_per_member_vs_redis", server).replace("valkey_redis", "valkey");
    if !is_here() {
        println!("redis-server is not here: 110 bytes a member, as measured for the design");
        return vec![(name("Redis"), REDIS_BYTES_PER_MEMBER)];
    }
    let mut found = Vec::new();
    for server in Redis::start_all(folder, 1) {
        let bytes = server.bytes_per_member(SORTED_SET_MEMBERS, id);
        println!("{}: {bytes:.1} B per member of a sorted set", server.name);
        found.push((name(server.name), bytes));
    }
    found
}

fn report_memory(when: &str, members: u64, engine: &Engine, before: u64, sorted_sets: &[(String, f64)]) {
    let shard = engine.shard.read(Purpose::Read);
    let own = (shard.tree_bytes() + shard.members.bytes()) as f64 / members as f64;
    let resident = resident_bytes().saturating_sub(before) as f64 / members as f64;
    println!(
        "memory {when}: {own:.1} B per member in tree and index, {resident:.1} B resident, RocksDB included"
    );
    for (name, theirs) in sorted_sets {
        println!("RATIO {name}_{} {:.2}", short(members), own / theirs);
    }
}
