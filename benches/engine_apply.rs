//! What ordering costs: plan + commit + apply of set-score jobs, against a raw RocksDB write batch of member
//! → score.
//!
//! Both sides get the same members, the same batch sizes and the same sync (none per batch), and a column
//! family with the same options; both run with their background work: the engine's checkpoints and RocksDB's
//! compactions. What is timed is plan + commit + apply on one side and building plus writing the batch on the
//! other; making up jobs is not. Prints `RATIO engine_apply_… raw/engine`: 1.00 is as fast as not ordering at
//! all.
//!
//! `cargo bench --bench engine_apply -- --members 1000000,10000000 --batches 100,1000,10000 --access
//! uniform,zipf --scores distinct,tied --seconds 60`
//!
//! `--hash false` leaves out the engine's second run, with the hash of the log.

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::time::{Duration, Instant};

use ranktree::state::LogHash;
use support::engine::{Engine, MADE_UP, Updates};
use support::raw_scores::RawScores;
use support::workload::{Access, Scores, Workload};
use support::{argument, list, micros, number, scratch, short};

fn main() {
    let seconds = Duration::from_secs(number("seconds", 20));
    let batches: Vec<u64> =
        list("batches", "100,1000,10000").iter().map(|n| n.parse().expect("a number")).collect();
    for members in list("members", "1000000,10000000") {
        let members: u64 = members.parse().expect("a number");
        for scores in list("scores", "distinct,tied") {
            let scores = if scores == "tied" { Scores::Tied } else { Scores::Distinct };
            for access in list("access", "uniform,zipf") {
                let access = if access == "zipf" { Access::Zipf } else { Access::Uniform };
                compare(members, access, scores, &batches, seconds);
            }
        }
    }
}

fn compare(members: u64, access: Access, scores: Scores, batches: &[u64], time: Duration) {
    let name = |batch: u64| {
        let access = if access == Access::Zipf { "zipf" } else { "uniform" };
        let scores = if scores == Scores::Tied { "tied" } else { "distinct" };
        format!("{}_b{batch}_{access}_{scores}", short(members))
    };
    let raw: Vec<f64> = {
        let folder = scratch();
        let raw = RawScores::open(folder.path());
        let mut workload = Workload::new(members, access, scores);
        raw.load(members, &mut workload);
        batches.iter().map(|batch| run_raw(&raw, *batch, &mut workload, time)).collect()
    };
    let folder = scratch();
    let mut engine = Engine::open(folder.path());
    let mut workload = Workload::new(members, access, scores);
    engine.load(members, &mut workload);
    for (batch, raw) in batches.iter().zip(raw) {
        let Updates { jobs, verbs, checkpoints } = engine.update(&mut workload, *batch, time);
        let each = |verb: Duration| micros(verb) / jobs as f64;
        let per_job = each(verbs.total());
        println!(
            "engine_apply {} raw {raw:.3} us, engine {per_job:.3} us = plan {:.3} + commit {:.3} + apply {:.3}; {checkpoints} checkpoints",
            name(*batch),
            each(verbs.plan),
            each(verbs.commit),
            each(verbs.apply),
        );
        println!("RATIO engine_apply_{} {:.3}", name(*batch), raw / per_job);
        if argument("hash").is_some_and(|hash| hash == "false") {
            continue;
        }
        // As with streams, whose replicas are compared by the hash of the log.
        engine.hash = Some(LogHash::default());
        let hashed = engine.update(&mut workload, *batch, time);
        let hashed = micros(hashed.verbs.total()) / hashed.jobs as f64;
        engine.hash = None;
        println!("engine_apply {} {hashed:.3} us with the hash of the log", name(*batch));
        println!("RATIO log_hash_{} {:.3}", name(*batch), per_job / hashed);
    }
    engine.close();
}

/// The baseline's time of a job.
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
    micros(spent) / jobs as f64
}
