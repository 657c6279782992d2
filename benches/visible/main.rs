//! From publishing a score to its being visible to a reader, on systems that do the same job on the same
//! machine:
//!
//! - **ranktree**, fed by NATS: jobs published to a JetStream stream of a real nats-server, each
//!   acknowledged;
//! - **Redis**, with `appendfsync everysec` and with `always`: `XADD` to a stream, pipelined; a consumer
//!   reads up to 1,000 entries at a time and writes them as one transaction: a `ZADD` of them all, and how
//!   far it is;
//! - **PostgreSQL**: jobs queued in memory, which is kinder to it than a table would be, and upserted up to
//!   1,000 at a time in one transaction with `synchronous_commit` on, into a table with an index on the
//!   score.
//! - **a stream alone**, if asked for with `--systems ranktree,stream,redis`: published as for ranktree, and
//!   received in this process by a consumer that only notes the marker's score, which the reader looks at
//!   without any request. It holds no members, its loads are shares of ranktree's saturation, and it is the
//!   least that anything fed by a stream can take.
//!
//! Each of the others holds the same members beforehand, gets the same jobs, one at a time, and is alone on
//! the machine while it is measured. First its **saturation** is found in a closed loop: as many jobs as it
//! makes visible with 20,000 on their way. Then, at shares of its own saturation, jobs are published at fixed
//! times (open loop), and timed from when they were *meant* to be published until a reader sees them.
//!
//! That is told in one way for all: every twentieth job sets the score of one member, the *marker*, to its
//! own number; a reader asks for the marker's score every half millisecond (`GET` of its entry, `ZSCORE`,
//! `SELECT` by primary key). What it reads says which jobs are visible. So figures are up to half a
//! millisecond and one read late, everywhere alike.
//!
//! At last, with nothing else going on, the **rank of a score** is asked for: `GET …/rank?score=`, `ZCOUNT`,
//! and `count(*) … where score >`.
//!
//! Prints `RATIO visible_…` as theirs / ours for times and ours / theirs for rates: above 1, ranktree is
//! ahead. A system that is not installed is left out, and said so: Debian has `redis-server` and
//! `postgresql-15`; `make nats` installs nats-server.
//!
//! nats-server syncs its stream every two minutes, its default; `--nats-sync always` has each job on disk
//! before it counts as published, which is what to hold against Redis with `always` and PostgreSQL.
//!
//! A system that takes more jobs has more of them at 70 % of what it takes. With `--loads-of redis` all
//! systems get the same jobs a second instead: the shares are of the saturation of Redis with `everysec`,
//! which is measured first.
//!
//! `cargo bench --bench visible -- --members 1000000 --seconds 10 --loads 20,50,70,90 --systems
//! ranktree,redis,postgres`

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod postgres;
mod ranktree;
mod redis;
mod run;
mod stream_alone;
#[path = "../support/mod.rs"]
mod support;
mod system;

use std::path::Path;
use std::time::Duration;

use run::{Figures, measure};
use support::machine::load;
use support::{argument, list, number, scratch};
use system::System;

fn main() {
    let members = number("members", 1_000_000);
    let seconds = Duration::from_secs(number("seconds", 10));
    let loads: Vec<u64> = list("loads", "20,50,70,90").iter().map(|n| n.parse().expect("a number")).collect();
    let systems = list("systems", "ranktree,redis,valkey,postgres");
    let asked = |name: &str| systems.iter().any(|asked| asked == name);
    println!("{}", load());
    let mut all = Vec::new();
    let mut add = |system: Result<Box<dyn System>, String>, of: Option<f64>| match system {
        Ok(mut system) => {
            let figures = measure(&mut *system, members, &loads, of, seconds);
            figures.print();
            let saturation = figures.saturation;
            all.push(figures);
            Some(saturation)
        }
        Err(missing) => {
            println!("left out: {missing}");
            None
        }
    };
    let folder = scratch();
    let everysec = |folder: &Path| redis::start(&folder.join("everysec"), "everysec");
    let same = argument("loads-of").map(|name| {
        assert_eq!(name, "redis", "loads are of each system, or of redis");
        add(everysec(folder.path()), None).expect("loads are shares of what Redis takes")
    });
    let ours = if asked("ranktree") { add(ranktree::start(folder.path()), same) } else { None };
    if asked("stream") {
        add(
            ours.ok_or("the stream alone, as ranktree was not measured".to_owned())
                .and_then(|_| stream_alone::start(folder.path())),
            same.or(ours),
        );
    }
    if asked("redis") {
        if same.is_none() {
            add(everysec(folder.path()), None);
        }
        add(redis::start(&folder.path().join("always"), "always"), same);
    }
    if asked("valkey") {
        for sync in ["everysec", "always"] {
            add(redis::start_valkey(&folder.path().join(format!("valkey_{sync}")), sync), same);
        }
    }
    if asked("postgres") {
        add(postgres::start(), same);
    }
    println!("{}", load());
    let Some(ours) = all.iter().find(|figures| figures.name == "ranktree") else { return };
    for theirs in all.iter().filter(|figures| figures.name != ours.name) {
        compare(ours, theirs, members);
    }
}

fn compare(ours: &Figures, theirs: &Figures, members: u64) {
    let name = &theirs.name;
    println!("RATIO visible_saturation_vs_{name} {:.2}", ours.saturation / theirs.saturation);
    for ((load, ours), (_, theirs)) in ours.latencies.iter().zip(&theirs.latencies) {
        for (what, quantile) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
            let ratio = theirs.value_at_quantile(quantile) as f64 / ours.value_at_quantile(quantile) as f64;
            println!("RATIO visible_{what}_at_{load}_vs_{name} {ratio:.2}");
        }
    }
    if theirs.rank_reads.is_empty() {
        return;
    }
    let median = |figures: &Figures| figures.rank_reads.value_at_quantile(0.5) as f64;
    println!(
        "RATIO rank_of_score_{}_vs_{name} {:.2}",
        support::short(members),
        median(theirs) / median(ours)
    );
}
