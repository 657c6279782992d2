//! What ordering costs: plan + commit + apply of set-score jobs, against a raw RocksDB write batch of member
//! → score.
//!
//! Both sides get the same members, the same batch sizes and the same sync (none per batch), and a column
//! family with the same options; both run with their background work: the engine's checkpoints and RocksDB's
//! compactions. What is timed is plan + commit + apply on one side and building plus writing the batch on the
//! other; making up jobs is not.
//!
//! Both are loaded first. Then they take turns, `--rounds` times `--seconds` each, because the speed of a
//! machine changes within minutes; a turn begins when the other side's background work has ended. Prints
//! `RATIO engine_apply_… raw/engine`, the median of the rounds' ratios: 1.00 is as fast as not ordering at
//! all.
//!
//! `cargo bench --bench engine_apply -- --members 1000000,10000000 --batches 100,1000,10000 --access
//! uniform,zipf --scores distinct,tied --seconds 60 --rounds 5`
//!
//! `--hash false` leaves out the engine's second turn, with the hash of the log, as with streams, whose
//! replicas are compared by it.

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::time::{Duration, Instant};

use ranktree::state::LogHash;
use support::engine::{Engine, MADE_UP, Updates, Verbs};
use support::machine::{load, median, spread};
use support::raw_scores::RawScores;
use support::workload::{Access, Scores, Workload};
use support::{argument, list, micros, number, scratch, short};

fn main() {
    let time = Duration::from_secs(number("seconds", 20));
    let batches: Vec<u64> =
        list("batches", "100,1000,10000").iter().map(|n| n.parse().expect("a number")).collect();
    for members in list("members", "1000000,10000000") {
        let members: u64 = members.parse().expect("a number");
        for scores in list("scores", "distinct,tied") {
            let scores = if scores == "tied" { Scores::Tied } else { Scores::Distinct };
            for access in list("access", "uniform,zipf") {
                let access = if access == "zipf" { Access::Zipf } else { Access::Uniform };
                compare(members, access, scores, &batches, time);
            }
        }
    }
}

fn compare(members: u64, access: Access, scores: Scores, batches: &[u64], time: Duration) {
    let folders = [scratch(), scratch()];
    let raw = RawScores::open(folders[0].path());
    let mut raw_workload = Workload::new(members, access, scores);
    raw.load(members, &mut raw_workload);
    let mut engine = Engine::open(folders[1].path());
    let mut workload = Workload::new(members, access, scores);
    engine.load(members, &mut workload);
    let with_hash = argument("hash").is_none_or(|hash| hash != "false");
    for batch in batches {
        let of_scores = if scores == Scores::Tied { "tied" } else { "distinct" };
        let of_access = if access == Access::Zipf { "zipf" } else { "uniform" };
        let name = format!("{}_b{batch}_{of_access}_{of_scores}", short(members));
        println!("{}", load());
        let (mut ratios, mut hash_ratios) = (Vec::new(), Vec::new());
        for _ in 0..number("rounds", 5) {
            let raw = run_raw(&raw, *batch, &mut raw_workload, time);
            let plain = run_engine(&mut engine, *batch, &mut workload, time);
            println!("engine_apply {name} raw {raw:.3} us, engine {}", plain.text);
            ratios.push(raw / plain.per_job);
            if with_hash {
                engine.hash = Some(LogHash::default());
                let hashed = run_engine(&mut engine, *batch, &mut workload, time);
                engine.hash = None;
                println!("engine_apply {name} with the hash of the log {}", hashed.text);
                hash_ratios.push(plain.per_job / hashed.per_job);
            }
        }
        report(&format!("engine_apply_{name}"), &ratios);
        if with_hash {
            report(&format!("log_hash_{name}"), &hash_ratios);
        }
    }
    engine.close();
}

fn report(name: &str, ratios: &[f64]) {
    println!("{name}: {}", spread(ratios, 3));
    println!("RATIO {name} {:.3}", median(ratios));
}

/// The baseline's time of a job, in microseconds.
fn run_raw(raw: &RawScores, batch: u64, workload: &mut Workload, time: Duration) -> f64 {
    let (mut spent, mut jobs) = (Duration::ZERO, 0);
    let started = Instant::now();
    while started.elapsed() < time {
        let made_up: Vec<_> = (0..MADE_UP).map(|_| RawScores::make_up(batch, workload)).collect();
        for scores in &made_up {
            let writing = Instant::now();
            raw.write(scores);
            spent += writing.elapsed();
            jobs += batch;
        }
    }
    raw.wait_for_compactions();
    micros(spent) / jobs as f64
}

/// A turn of the engine.
struct Turn {
    /// A job's time, in microseconds.
    per_job: f64,
    text: String,
}

fn run_engine(engine: &mut Engine, batch: u64, workload: &mut Workload, time: Duration) -> Turn {
    let Updates { jobs, verbs, checkpoints } = engine.update(workload, batch, time);
    let waited_for = u64::from(engine.wait_for_checkpoint());
    let each = |verb: Duration| micros(verb) / jobs as f64;
    let (per_job, Verbs { plan, commit, apply }) = (each(verbs.total()), verbs);
    let text = format!(
        "{per_job:.3} us = plan {:.3} + commit {:.3} + apply {:.3}; {} checkpoints",
        each(plan),
        each(commit),
        each(apply),
        checkpoints + waited_for,
    );
    Turn { per_job, text }
}
