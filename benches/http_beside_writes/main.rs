//! Reads over HTTP beside writes: how long a read takes that is due at a fixed time, while a shard of a real
//! nats-server's stream is drained.
//!
//! Three phases, on one board that holds nineteen of twenty members beforehand. `--reads` a second are due in
//! each of them:
//! - **idle**: nothing is published;
//! - **saturation**: jobs are published, a hundred a message, as fast as they become visible, with
//!   [`WINDOW`](publisher::WINDOW) messages on their way. That is what this machine takes beside the reads;
//! - **loaded**: jobs are published at `--load` per cent of that, on a schedule, in `--rounds` runs.
//!
//! Reads are a member's entry and the rank of a score, in turn, over `--connections` connections, one request
//! at a time on each. A read is timed from when it was *due* until its answer is there, so that a stall is in
//! the time of all reads that were due meanwhile. All reads are sent by one thread, which has short time
//! slices, as the service's threads of connections do: readers of a real service are on other machines and do
//! not wait for its cores. Service, nats-server, publisher and reader share this machine all the same; the
//! processor time that each of them took is printed beside.
//!
//! `cargo bench --bench http_beside_writes -- --members 10000000 --reads 20000 --load 80 --seconds 10
//! --rounds 3`; needs nats-server (`make nats`). `--rates 100000,200000` measures at these numbers of jobs a
//! second in place of the saturation and its share.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod publisher;
mod reader;
#[path = "../support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use publisher::Pace;
use reader::Reads;
use support::machine::{cpu_seconds, load, spread};
use support::nats::{Messages, Nats, connect, publish_all, runtime};
use support::service::{Service, applied, define_board};
use support::{argument, list, number, scratch, short};

/// Jobs in a message.
const JOBS: u64 = 100;

/// A service with a full board, and what it is fed by.
struct Machine {
    nats: Nats,
    service: Service,
    members: u64,
    reads: u64,
    connections: usize,
}

/// What one phase gave.
struct Phase {
    /// Jobs that became visible a second.
    jobs: f64,
    reads: Reads,
}

fn main() {
    let members = number("members", 1_000_000);
    let (reads, connections) = (number("reads", 20_000), number("connections", 20) as usize);
    let time = Duration::from_secs(number("seconds", 10));
    println!("{}", load());
    let folder = scratch();
    let nats = Nats::start(&folder.path().join("nats")).unwrap_or_else(|missing| panic!("{missing}"));
    let service = Service::start(&folder.path().join("ranktree"), &nats.url(), 1);
    let machine = Machine { nats, service, members, reads, connections };
    machine.fill();
    let mut seed = 1;
    let idle = machine.phase("idle", Pace::Idle, time, seed);
    let rates = argument("rates").map(|_| list("rates", ""));
    let rates = rates.map_or_else(
        || {
            let saturation = machine.phase("saturation", Pace::Saturating, time, 2).jobs;
            let rate = saturation * number("load", 80) as f64 / 100.0;
            vec![rate; number("rounds", 3) as usize]
        },
        |rates| rates.iter().map(|rate| rate.parse().expect("a number of jobs a second")).collect(),
    );
    let mut p99s = Vec::new();
    for rate in rates {
        seed += 2;
        let phase = machine.phase("loaded", Pace::Scheduled(rate), time, seed);
        p99s.push(phase.reads.from_due.value_at_quantile(0.99) as f64 / 1e6);
    }
    println!("{}", load());
    println!("http_read_p99_beside_writes, ms: {}", spread(&p99s, 2));
    let idle = idle.reads.from_due.value_at_quantile(0.99) as f64 / 1e6;
    println!(
        "RATIO http_read_p99_{}_beside_writes_vs_idle {:.2}",
        short(members),
        support::machine::median(&p99s) / idle
    );
}

impl Machine {
    /// Gives every member a score.
    fn fill(&self) {
        eprintln!("  loading {} members", self.members);
        define_board(&mut self.service.http());
        let mut messages = Messages::new(1, self.members, 1, 1_000);
        let stored = runtime().block_on(async {
            let client = connect(&self.nats.url()).await;
            // Members are drawn, so that three times as many jobs leave a twentieth of them without a score.
            publish_all(&client, &mut messages, (self.members * 3).div_ceil(1_000)).await
        });
        self.wait_until_applied(stored.iter().sum());
    }

    fn wait_until_applied(&self, sequence: u64) {
        let mut http = self.service.http();
        while applied(&mut http).iter().sum::<u64>() < sequence {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn phase(&self, name: &str, pace: Pace, time: Duration, seed: u64) -> Phase {
        let mut messages = Messages::new(seed, self.members, 1, JOBS);
        let stop = AtomicBool::new(false);
        let cpu = || {
            let own = cpu_seconds(std::process::id());
            [cpu_seconds(self.service.pid()), cpu_seconds(self.nats.pid()), own]
        };
        let (before, mut http) = (applied(&mut self.service.http()).iter().sum::<u64>(), self.service.http());
        let (reads, took, jobs) = std::thread::scope(|scope| {
            let publishing = scope
                .spawn(|| publisher::publish(&self.nats.url(), &self.service, &mut messages, pace, &stop));
            // The first quarter warms up.
            std::thread::sleep(time / 4);
            let (began, cpu_before, first) = (Instant::now(), cpu(), applied(&mut http).iter().sum::<u64>());
            let reading = scope
                .spawn(|| reader::read(self.service.port, self.connections, self.reads, self.members, time));
            let reads = reading.join().expect("the reader does not panic");
            let (last, after) = (applied(&mut http).iter().sum::<u64>(), cpu());
            let seconds = began.elapsed().as_secs_f64();
            stop.store(true, Ordering::Relaxed);
            publishing.join().expect("the publisher does not panic");
            let took: Vec<f64> =
                cpu_before.iter().zip(after).map(|(before, after)| (after - before) / seconds).collect();
            (reads, took, (last - first) as f64 * JOBS as f64 / seconds)
        });
        let published = applied(&mut http).iter().sum::<u64>() - before;
        let phase = Phase { jobs, reads };
        println!(
            "{name}: {jobs:.0} jobs/s visible ({published} messages in all), {} reads",
            phase.reads.from_due.len()
        );
        println!("  from due to answered: {}", times(&phase.reads.from_due));
        println!("  from sent to answered: {}", times(&phase.reads.from_sent));
        println!(
            "  cores: ranktree {:.2}, nats-server {:.2}, publisher and reader {:.2}; the reader itself {:.2}",
            took.first().copied().unwrap_or_default(),
            took.get(1).copied().unwrap_or_default(),
            took.get(2).copied().unwrap_or_default(),
            phase.reads.cores
        );
        phase
    }
}

fn times(reads: &Histogram<u64>) -> String {
    let at = |quantile| reads.value_at_quantile(quantile) as f64 / 1e6;
    format!(
        "p50 {:.3} ms, p99 {:.2} ms, p99.9 {:.2} ms, most {:.2} ms",
        at(0.5),
        at(0.99),
        at(0.999),
        reads.max() as f64 / 1e6
    )
}
