//! Several nodes: how many reads a second they answer, how long the loss of one is noticed, and how long an
//! empty one takes to be level.
//!
//! - `nodes`: nodes that own all shards are added one by one, on the cores that there are. Prints `RATIO
//!   cluster_reads_<n>_nodes`, their reads a second over those of one node.
//! - `kill`: three nodes with six shards, two copies of each. One is killed with SIGKILL while clients read
//!   through the other two. Prints the time from the kill to the end of the last read that failed or took
//!   over 100 ms, and `RATIO cluster_kill_to_last_slow_read`, that time over a second; the worst of
//!   `--kills`.
//! - `level`: a node with an empty directory, whose stream was purged, gets a copy from another one. Prints
//!   the time until its shard is live, and `RATIO cluster_empty_node_level`, members a second over a million.
//!
//! `cargo bench --bench cluster -- --case nodes,kill,level --members 10000000`
//!
//! `--nodes 4`, `--seconds 5`, `--clients 8`, `--kills 5`; `--read-members 100000` for the first two cases;
//! `--stream-mib 4096` where the disk has no room for a stream of 16 GiB.

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use support::http::Http;
use support::nats::{Messages, Nats, connect, publish_all, runtime, stream};
use support::service::{Service, define_board, states};
use support::{list, number, scratch, short};

/// A read that takes longer is noticed.
const SLOW: Duration = Duration::from_millis(100);
/// How long reads are watched after a kill: longer than a node is taken to be there that says nothing.
const WATCHED: Duration = Duration::from_secs(15);
const JOBS_PER_MESSAGE: u64 = 100;

fn main() {
    for case in list("case", "nodes,kill,level") {
        let folder = scratch();
        let nats = Nats::start(&folder.path().join("nats")).expect("nats-server is installed");
        match case.as_str() {
            "nodes" => nodes_added(folder.path(), &nats),
            "kill" => kill(folder.path(), &nats),
            "level" => level(folder.path(), &nats),
            other => panic!("--case is a list of nodes, kill and level, not {other}"),
        }
    }
}

fn node(folder: &Path, nats: &Nats, name: &str, own: &str, shards: u16) -> Service {
    let shards = shards.to_string();
    Service::start_with(
        &folder.join(name),
        &nats.url(),
        &["--node", name, "--own", own, "--shards", &shards, "--checkpoint-seconds", "5"],
    )
}

/// Defines the board once it can be decided, and publishes scores of all members, some of them twice. Gives
/// the last sequence of each shard.
fn fill(service: &Service, nats: &Nats, members: u64, shards: u16) -> Vec<u64> {
    while !matches!(service.http().request("PUT", "/v1/boards/arena", "{}").0, 200 | 201) {
        std::thread::sleep(Duration::from_millis(50));
    }
    define_board(&mut service.http());
    let mut messages = Messages::new(7, members, shards, JOBS_PER_MESSAGE);
    runtime().block_on(async {
        let client = connect(&nats.url()).await;
        publish_all(&client, &mut messages, members.div_ceil(JOBS_PER_MESSAGE) * 3).await
    })
}

/// Waits until a node's own shards are live and have applied this much.
fn wait_level(service: &Service, last: &[u64]) {
    let is_level = || {
        states(&mut service.http()).iter().zip(last).all(|((state, applied), last)| {
            // Of another node's shard, only the state is known.
            state == "live" && applied.is_none_or(|applied| applied >= *last)
        })
    };
    while !is_level() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn path(nth: u64) -> String {
    format!("/v1/boards/arena/rank?score={}", nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << 40))
}

fn nodes_added(folder: &Path, nats: &Nats) {
    const SHARDS: u16 = 4;
    let (nodes, clients) = (number("nodes", 4), number("clients", 8));
    let time = Duration::from_secs(number("seconds", 5));
    let mut services: Vec<Service> = Vec::new();
    let (mut last, mut alone) = (Vec::new(), 0.0);
    for count in 1..=nodes {
        services.push(node(folder, nats, &format!("node-{count}"), "0-3", SHARDS));
        if count == 1 {
            last = fill(&services[0], nats, number("read-members", 100_000), SHARDS);
        }
        for service in &services {
            wait_level(service, &last);
        }
        let (read, until) = (AtomicU64::new(0), Instant::now() + time);
        std::thread::scope(|scope| {
            for (client, service) in (0..clients).zip(services.iter().cycle()) {
                let read = &read;
                scope.spawn(move || {
                    let mut http = service.http();
                    let mut nth = client << 32;
                    while Instant::now() < until {
                        assert_eq!(http.get(&path(nth)).0, 200);
                        nth += 1;
                        read.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let per_second = read.load(Ordering::Relaxed) as f64 / time.as_secs_f64();
        if count == 1 {
            alone = per_second;
        }
        println!("cluster_reads_{count}_nodes: {per_second:.0}/s through {clients} connections");
        println!("RATIO cluster_reads_{count}_nodes {:.2}", per_second / alone);
    }
}

fn kill(folder: &Path, nats: &Nats) {
    const SHARDS: u16 = 6;
    const OWN: [(&str, &str); 3] = [("a", "0-3"), ("b", "2-5"), ("c", "0-1,4-5")];
    let start = |(name, own): (&str, &str)| node(folder, nats, name, own, SHARDS);
    let mut services: Vec<Service> = OWN.map(start).into();
    let last = fill(&services[0], nats, number("read-members", 100_000), SHARDS);
    for service in &services {
        wait_level(service, &last);
    }
    let mut worst = Duration::ZERO;
    for round in 0..number("kills", 5) {
        let victim = usize::try_from(round % 3).expect("one of three");
        let readers: Vec<u16> =
            (0..3).filter(|other| *other != victim).map(|other| services[other].port).collect();
        let (stop, noticed) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let mut killed_at = Instant::now();
        std::thread::scope(|scope| {
            for client in 0..number("clients", 8) {
                let port = readers[usize::try_from(client).expect("a few") % readers.len()];
                let (stop, noticed) = (&stop, &noticed);
                scope.spawn(move || read_until(port, client, stop, noticed));
            }
            std::thread::sleep(Duration::from_secs(1));
            killed_at = Instant::now();
            services[victim].kill9();
            std::thread::sleep(WATCHED);
            stop.store(true, Ordering::Relaxed);
        });
        let noticed = noticed.into_inner().expect("no reader panicked");
        let after: Vec<Instant> = noticed.into_iter().filter(|ended| *ended > killed_at).collect();
        let last_slow = after.iter().max().map_or(Duration::ZERO, |ended| *ended - killed_at);
        worst = worst.max(last_slow);
        println!(
            "cluster_kill: {} of {} killed; {} reads failed or took over {} ms, the last of them ended {:.0} ms after the kill",
            OWN[victim].0,
            OWN.len(),
            after.len(),
            SLOW.as_millis(),
            last_slow.as_secs_f64() * 1e3,
        );
        services[victim] = start(OWN[victim]);
        wait_level(&services[victim], &last);
    }
    println!("RATIO cluster_kill_to_last_slow_read {:.3}", worst.as_secs_f64());
}

/// Reads until it is told to stop, and notes when reads end that failed or were slow.
fn read_until(port: u16, client: u64, stop: &AtomicBool, noticed: &Mutex<Vec<Instant>>) {
    let (mut http, mut nth) = (Http::connect(port), client << 32);
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        nth += 1;
        let status =
            http.as_mut().and_then(|http| http.try_request("GET", &path(nth), "")).map(|(status, _)| status);
        if status != Some(200) || began.elapsed() > SLOW {
            noticed.lock().expect("no reader panicked").push(Instant::now());
        }
        if status.is_none() {
            http = Http::connect(port);
        }
    }
}

fn level(folder: &Path, nats: &Nats) {
    let members = number("members", 10_000_000);
    let full = node(folder, nats, "full", "0", 1);
    let last = fill(&full, nats, members, 1);
    wait_level(&full, &last);
    runtime().block_on(async {
        let context = async_nats::jetstream::new(connect(&nats.url()).await);
        let stream = context.get_stream(stream(0)).await.expect("it is there");
        stream.purge().sequence(last.first().copied().unwrap_or_default()).await.expect("it is purged");
    });
    let began = Instant::now();
    let empty = node(folder, nats, "empty", "0", 1);
    wait_level(&empty, &last);
    let took = began.elapsed().as_secs_f64();
    println!("cluster_empty_node_level: {} members are level after {took:.1} s", short(members));
    println!("RATIO cluster_empty_node_level {:.2}", members as f64 / took / 1e6);
}
