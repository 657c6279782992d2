//! What more members cost: an update, reads, memory, a checkpoint, the disk and a start, at several sizes.
//!
//! Each size runs in a process of its own, so that none finds memory that another one left. Members have ids
//! of 12 bytes and distinct scores, and are updated at random, in batches of 1,000. Prints a line for each
//! figure, and `RATIO growth_…` of the costs at each size divided by those at the first one.
//!
//! One of the figures is no cost of ranktree: `memory_ns` is what a load takes that waits for the one before
//! it, at random over as much memory as the trees and the index of members have at that size. More members
//! lie in farther caches and behind more pages, so that each line that a read waits for costs more. What the
//! structures themselves add is what a cost grows beyond that.
//!
//! `cargo bench --bench growth -- --members 1000000,10000000,100000000 --seconds 60`
//!
//! 100 million members take 8 GB of memory, 15 GB of disk (`--dir` says where) and ten minutes.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use ranktree::allocator::keep_huge_pages;
use ranktree::state_lock::Purpose;
use ranktree::writer::CheckpointPolicy;

use support::engine::{Engine, Updates};
use support::workload::{Access, Scores, Workload, id};
use support::{argument, list, micros, number, resident_bytes, scratch, short};

const BATCH: u64 = 1_000;
const READS: u64 = 200_000;
/// What is compared with the first size.
const COSTS: [&str; 6] =
    ["update_us", "rank_us", "position_us", "page_us", "update_written_bytes", "memory_ns"];
/// Loads that wait for one another: some tenths of a second.
const LOADS: u64 = 2_000_000;

fn main() {
    if let Some(folder) = argument("grow") {
        return grow(Path::new(&folder), number("size", 1_000_000));
    }
    if let Some(folder) = argument("open") {
        return open(Path::new(&folder));
    }
    if argument("load").is_some() {
        return load_at_random(number("size", 1_000_000));
    }
    let mut first: Option<BTreeMap<String, f64>> = None;
    for members in list("members", "1000000,10000000") {
        let members: u64 = members.parse().expect("a number");
        let folder = scratch();
        let mut figures = child(folder.path(), "grow", members);
        figures.extend(child(folder.path(), "open", members));
        let bytes = figures.get("memory_bytes").copied().expect("it says how much memory it takes");
        figures.extend(child(folder.path(), "load", bytes as u64));
        for (name, figure) in &figures {
            println!("growth_{} {name} {figure:.3}", short(members));
        }
        let Some(first) = &first else {
            first = Some(figures);
            continue;
        };
        for name in COSTS {
            let ratio = figures.get(name).zip(first.get(name)).map_or(f64::NAN, |(here, first)| here / first);
            println!("RATIO growth_{}_{name} {ratio:.2}", short(members));
        }
    }
}

/// Runs a part in a process of its own, and reads the figures that it prints: a name and a number a line.
///
/// # Arguments
/// `size`: members, or bytes of memory.
fn child(folder: &Path, part: &str, size: u64) -> BTreeMap<String, f64> {
    let mut command = Command::new(std::env::current_exe().expect("it was started from a file"));
    command.args([&format!("--{part}"), folder.to_str().expect("a temporary folder has a plain name")]);
    command.args(["--size", &size.to_string(), "--seconds", &number("seconds", 20).to_string()]);
    let output = command.stderr(Stdio::inherit()).output().expect("it can be run again");
    assert!(output.status.success(), "the part {part} failed");
    let text = String::from_utf8(output.stdout).expect("it says words");
    let figures = text.lines().filter_map(|line| line.split_once(' '));
    figures.map(|(name, figure)| (name.to_owned(), figure.parse().expect("a number"))).collect()
}

fn grow(folder: &Path, members: u64) {
    let before = resident_bytes();
    let mut workload = Workload::new(members, Access::Uniform, Scores::Distinct);
    let mut engine = Engine::open(folder);
    let started = Instant::now();
    engine.load(members, &mut workload);
    println!("load_s {:.3}", started.elapsed().as_secs_f64());
    update(&mut engine, &mut workload, members);
    memory(&engine, members, before);
    read(&engine, members);
    println!("disk_bytes_per_member {:.3}", bytes_of(folder) as f64 / members as f64);
    engine.close();
}

/// Updates at random for the given time, with the checkpoints that fall into it, and a checkpoint after it.
/// If none fell into it, what an update writes is its part of the commits, and of a checkpoint that comes as
/// often as the policy has it.
fn update(engine: &mut Engine, workload: &mut Workload, members: u64) {
    let time = Duration::from_secs(number("seconds", 20));
    let written = written_bytes();
    let Updates { jobs, verbs, checkpoints } = engine.update(workload, BATCH, time);
    println!("update_us {:.3}", micros(verbs.total()) / jobs as f64);
    for (name, verb) in [("plan_us", verbs.plan), ("commit_us", verbs.commit), ("apply_us", verbs.apply)] {
        println!("{name} {:.3}", micros(verb) / jobs as f64);
    }
    println!("updates {jobs}");
    let by_updates = written_bytes() - written;
    println!("checkpoints {checkpoints}");
    let (started, written) = (Instant::now(), written_bytes());
    engine.checkpoint();
    let by_checkpoint = written_bytes() - written;
    println!("checkpoint_s {:.3}", started.elapsed().as_secs_f64());
    println!("checkpoint_mb {:.3}", by_checkpoint as f64 / 1e6);
    let each = |bytes: u64, jobs: u64| bytes as f64 / jobs as f64;
    let written = if checkpoints == 0 {
        each(by_updates, jobs) + each(by_checkpoint, CheckpointPolicy::default().changes_max(members))
    } else {
        each(by_updates + by_checkpoint, jobs)
    };
    println!("update_written_bytes {written:.3}");
}

fn memory(engine: &Engine, members: u64, before: u64) {
    let shard = engine.shard.read(Purpose::Read);
    let own = shard.tree_bytes() + shard.members.bytes();
    println!("memory_bytes {own}");
    println!("memory_bytes_per_member {:.3}", own as f64 / members as f64);
    println!("levels {}", shard.board_tree("arena").expect("the board is there").tree.levels());
    println!("resident_mb {:.3}", resident_bytes().saturating_sub(before) as f64 / 1e6);
}

/// Means of reads one after the other, each of which takes and gives back the lock, with nothing beside.
fn read(engine: &Engine, members: u64) {
    let mut random = SmallRng::seed_from_u64(7);
    let started = Instant::now();
    for _ in 0..READS {
        let score = !(random.random_range(0..1_u64 << 40) ^ (1 << 63));
        let shard = engine.shard.read(Purpose::Read);
        let tree = &shard.board_tree("arena").expect("the board is there").tree;
        black_box((tree.count_below(&[score]), tree.count_through(&[score])));
    }
    println!("rank_us {:.3}", micros(started.elapsed()) / READS as f64);
    let asked: Vec<String> = (0..READS).map(|_| id(random.random_range(0..members))).collect();
    let started = Instant::now();
    for member in &asked {
        let shard = engine.shard.read(Purpose::Read);
        let handle = shard.members.get(member.as_bytes()).expect("the member is there");
        black_box(shard.board_tree("arena").expect("the board is there").tree.index_of(handle));
    }
    println!("position_us {:.3}", micros(started.elapsed()) / READS as f64);
    let started = Instant::now();
    for _ in 0..READS {
        let position = random.random_range(0..members);
        let shard = engine.shard.read(Purpose::Read);
        let page = shard.board_tree("arena").expect("the board is there").tree.cursor_at(position);
        black_box(
            page.take(100).filter_map(|(_, words)| words.as_slice().first().copied()).fold(0, |a, b| a ^ b),
        );
    }
    println!("page_us {:.3}", micros(started.elapsed()) / READS as f64);
}

/// Mean of loads of which each waits for the one before, at random over memory that this process has to
/// itself: from the service's allocator, in large pages where the system gives them.
fn load_at_random(bytes: u64) {
    keep_huge_pages();
    // Ones, so that each page is written: the system gives the same page of zeros for all that are only read.
    let memory =
        vec![1_u64; usize::try_from(bytes).expect("it fitted into memory before") / size_of::<u64>()];
    let mut random = SmallRng::seed_from_u64(7);
    let (mut at, mut loaded) = (0, 0);
    let started = Instant::now();
    for _ in 0..LOADS {
        loaded = memory.get(at).copied().unwrap_or_default();
        // The next place is known only once the word is there.
        let place = u128::from(random.random::<u64>().wrapping_add(loaded)) * memory.len() as u128;
        at = usize::try_from(place >> 64).expect("less than the length");
    }
    black_box(loaded);
    println!("memory_ns {:.3}", started.elapsed().as_secs_f64() * 1e9 / LOADS as f64);
}

fn open(folder: &Path) {
    let started = Instant::now();
    let engine = Engine::open(folder);
    println!("start_s {:.3}", started.elapsed().as_secs_f64());
    engine.close();
}

/// What this process had written to the disk so far, its background work included.
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").expect("Linux tells it");
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes:"));
    line.and_then(|number| number.trim().parse().ok()).expect("Linux tells it")
}

fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("the folder can be read").flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_of(&entry.path()),
            Ok(found) => found.len(),
            // Compactions take files away.
            Err(_) => 0,
        })
        .sum()
}
