//! Draining a stream: messages from stored to visible to readers, against a bare pull of the same stream.
//!
//! In one run, for 1 and for 100 jobs per message: the stream of a real nats-server is filled beforehand;
//! then, in turn and several times, a process that only counts messages (**pull**) and a ranktree that starts
//! from an empty data directory (**drain**) take all of them, from the first sequence to the same last one.
//!
//! What makes the two sides equal:
//! - both are one process of their own, on the same server and stream, with nothing else of theirs running;
//! - the pull consumes as ranktree's fetcher does: an ephemeral pull consumer without acknowledgements, the
//!   same batch, bytes and heartbeat, one connection and one single-threaded runtime per shard. It reads each
//!   message's place (sequence and time), and nothing of its body;
//! - a publisher goes on storing jobs on the same streams during both, at a fixed rate (`--rate-1`,
//!   `--rate-100`, in messages/s), each acknowledged by the server;
//! - both are timed in the same way: from the first progress that is seen, after connecting and creating the
//!   consumer, to the last sequence, looking every 10 ms. For the drain that is the applied sequence that
//!   `/v1/status` tells, which readers of ranks see at the same moment; for the pull, its own count.
//!
//! The ratio is of the medians over `--rounds`; the least and the most are printed beside, with the processor
//! time per message of ranktree or the pull, the server and the publisher. A shard's board is defined before
//! its first job, as games do.
//!
//! `cargo bench --bench drain -- --messages-1 6000000 --messages-100 150000 --members 1000000 --shards 1
//! --rounds 3`; with `--jobs 1` or `--jobs 100` only one of the two; `--seconds` cuts each round, for a quick
//! look. Needs nats-server (`make nats`) and some GB in `--dir`.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures_util::StreamExt as _;

use support::machine::{cpu_seconds, load, median, spread};
use support::nats::{Messages, Nats, connect, publish_all, runtime, stream, subject};
use support::service::{Service, applied, define_board};
use support::{argument, list, number, scratch};

/// As ranktree's fetcher asks.
const PULL_MESSAGES: usize = 16_000;
const PULL_BYTES: usize = 16 << 20;
const HEARTBEAT: Duration = Duration::from_millis(500);
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);
const PUBLISH_EVERY: Duration = Duration::from_millis(1);
/// Messages that the publisher sends before it waits for what is stored.
const UNSTORED_MAX: usize = 2_000;

fn main() {
    if let Some(targets) = argument("pull-to") {
        let targets: Vec<u64> = targets.split(',').map(|n| n.parse().expect("a number")).collect();
        pull_process(&argument("url").expect("given with it"), &targets);
        return;
    }
    println!("{}", load());
    for jobs in list("jobs", "1,100") {
        let jobs: u64 = jobs.parse().expect("a number");
        compare(jobs);
    }
}

/// What a side took: messages per second, and seconds of processor time per message of itself, server and
/// publisher.
struct Round {
    messages_per_second: f64,
    cpu: [f64; 3],
}

fn compare(jobs: u64) {
    let messages = number(&format!("messages-{jobs}"), 6_000_000 / jobs.min(40));
    let rate = number(&format!("rate-{jobs}"), if jobs == 1 { 20_000 } else { 1_000 });
    let members = number("members", 1_000_000);
    let shards = u16::try_from(number("shards", 1)).expect("there are few shards");
    let rounds = number("rounds", 3);
    let folder = scratch();
    let nats =
        Nats::start(&folder.path().join("nats")).unwrap_or_else(|missing| panic!("missing: {missing}"));
    {
        let service = Service::start(&folder.path().join("setup"), &nats.url(), shards);
        define_board(&mut service.http());
    }
    let mut made_up = Messages::new(1, members, shards, jobs);
    let targets = runtime().block_on(async {
        let client = connect(&nats.url()).await;
        let started = Instant::now();
        let targets = publish_all(&client, &mut made_up, messages).await;
        let rate = messages as f64 / started.elapsed().as_secs_f64();
        eprintln!("  {messages} messages of {jobs} jobs stored, {rate:.0} messages/s");
        targets
    });
    let (mut pulls, mut drains) = (Vec::new(), Vec::new());
    with_publisher(&nats.url(), Messages::new(2, members, shards, jobs), rate, || {
        for round in 0..rounds {
            let pull = pull(&nats, &targets);
            let data = folder.path().join(format!("data-{round}"));
            let drain = drain(&nats, &data, shards, &targets);
            let _ = std::fs::remove_dir_all(&data);
            println!(
                "  round {round}: pull {:.0}, drain {:.0} messages/s, ratio {:.3}",
                pull.messages_per_second,
                drain.messages_per_second,
                drain.messages_per_second / pull.messages_per_second
            );
            pulls.push(pull);
            drains.push(drain);
        }
    });
    println!(
        "{jobs} jobs a message, {messages} messages, {members} members, {shards} shards, {rate} messages/s published \
         meanwhile; {}",
        load()
    );
    report("pull", jobs, &pulls);
    report("drain", jobs, &drains);
    let rates =
        |rounds: &[Round]| median(&rounds.iter().map(|round| round.messages_per_second).collect::<Vec<_>>());
    println!("RATIO drain_vs_pull_{jobs} {:.3}", rates(&drains) / rates(&pulls));
}

fn report(side: &str, jobs: u64, rounds: &[Round]) {
    let each = |value: &dyn Fn(&Round) -> f64| rounds.iter().map(value).collect::<Vec<_>>();
    println!(
        "{side}: {} messages/s = {} thousand jobs/s; processor time per message {} us, nats-server {} us, publisher {} us",
        spread(&each(&|round| round.messages_per_second), 0),
        spread(&each(&|round| round.messages_per_second * jobs as f64 / 1e3), 1),
        spread(&each(&|round| round.cpu[0] * 1e6), 2),
        spread(&each(&|round| round.cpu[1] * 1e6), 2),
        spread(&each(&|round| round.cpu[2] * 1e6), 2),
    );
}

/// Looks at how far a side has come, from its first progress until it has all.
fn time_it(nats: &Nats, pid: u32, targets: &[u64], mut look: impl FnMut() -> Vec<u64>) -> Round {
    let cpu = || [pid, nats.pid(), std::process::id()].map(cpu_seconds);
    let come = |seen: &[u64]| seen.iter().zip(targets).map(|(seen, target)| seen.min(target)).sum::<u64>();
    let all: u64 = targets.iter().sum();
    let cut = argument("seconds").map(|text| Duration::from_secs(text.parse().expect("a number")));
    // The definition of the board and a few messages are nothing yet.
    let began = loop {
        let seen = come(&look());
        if seen > all / 100 {
            break (Instant::now(), seen, cpu());
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let seen = loop {
        let seen = come(&look());
        if seen == all || cut.is_some_and(|cut| began.0.elapsed() >= cut) {
            break seen;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let (seconds, messages) = (began.0.elapsed().as_secs_f64(), (seen - began.1) as f64);
    let [own, server, publisher] = cpu();
    let cpu =
        [own - began.2[0], server - began.2[1], publisher - began.2[2]].map(|seconds| seconds / messages);
    Round { messages_per_second: messages / seconds, cpu }
}

fn drain(nats: &Nats, data: &std::path::Path, shards: u16, targets: &[u64]) -> Round {
    let service = Service::start(data, &nats.url(), shards);
    let mut http = service.http();
    time_it(nats, service.pid(), targets, || applied(&mut http))
}

/// This binary once more, as a process that only counts, and says how far it is when asked.
fn pull(nats: &Nats, targets: &[u64]) -> Round {
    use std::io::{BufRead as _, BufReader, Write as _};
    let to: Vec<String> = targets.iter().map(ToString::to_string).collect();
    let mut process = Command::new(std::env::current_exe().expect("this runs"))
        .args(["--pull-to", &to.join(","), "--url", &nats.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs once more");
    let mut ask = process.stdin.take().expect("it is piped");
    let mut told = BufReader::new(process.stdout.take().expect("it is piped"));
    let round = time_it(nats, process.id(), targets, || {
        ask.write_all(b"\n").expect("it listens");
        let mut line = String::new();
        told.read_line(&mut line).expect("it answers");
        line.trim().split(',').map(|n| n.parse().expect("a number")).collect()
    });
    let _ = process.kill();
    let _ = process.wait();
    round
}

/// The process that only counts. Ends with its standard input.
fn pull_process(url: &str, targets: &[u64]) {
    let seen: Vec<Arc<AtomicU64>> = targets.iter().map(|_| Arc::default()).collect();
    for (shard, seen) in (0..).zip(&seen) {
        let (url, seen) = (url.to_owned(), Arc::clone(seen));
        std::thread::spawn(move || runtime().block_on(pull_shard(&url, shard, &seen)));
    }
    for _ in std::io::stdin().lines() {
        let seen: Vec<String> = seen.iter().map(|seen| seen.load(Ordering::Relaxed).to_string()).collect();
        println!("{}", seen.join(","));
    }
}

async fn pull_shard(url: &str, shard: u16, seen: &AtomicU64) {
    let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
    let client = options.connect(url).await.expect("the server is there");
    let context = async_nats::jetstream::new(client);
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: 1 },
        ack_policy: AckPolicy::None,
        inactive_threshold: Duration::from_secs(60),
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer =
        context.create_consumer_on_stream(config, stream(shard)).await.expect("the stream is there");
    let messages = consumer
        .stream()
        .max_messages_per_batch(PULL_MESSAGES)
        .max_bytes_per_batch(PULL_BYTES)
        .heartbeat(HEARTBEAT)
        .expires(PULL_EXPIRES);
    let mut messages = messages.messages().await.expect("it can be read");
    while let Some(message) = messages.next().await {
        let message = message.expect("the delivery goes on");
        let info = message.info().expect("it has a place");
        seen.store(info.stream_sequence, Ordering::Relaxed);
    }
}

/// Runs `work` while a publisher stores messages at a rate, each acknowledged.
fn with_publisher(url: &str, mut messages: Messages, rate: u64, work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            runtime().block_on(async {
                let context = async_nats::jetstream::new(connect(url).await);
                let (started, mut published, mut unstored) = (Instant::now(), 0, VecDeque::new());
                while !stop.load(Ordering::Relaxed) {
                    let due = (started.elapsed().as_secs_f64() * rate as f64) as u64;
                    while published < due {
                        let (shard, body) = messages.next();
                        let stored = context.publish(subject(shard), body.into()).await;
                        unstored.push_back(stored.expect("it is connected"));
                        published += 1;
                        if unstored.len() >= UNSTORED_MAX {
                            break;
                        }
                    }
                    while let Some(stored) = unstored.pop_front() {
                        stored.await.expect("it is stored");
                    }
                    tokio::time::sleep(PUBLISH_EVERY).await;
                }
                println!(
                    "  the publisher stored {:.0} messages/s",
                    published as f64 / started.elapsed().as_secs_f64()
                );
            });
        });
        work();
        stop.store(true, Ordering::Relaxed);
    });
}
