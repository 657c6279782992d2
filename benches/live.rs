//! Boards that are watched while they are written to: 1,000 watchers of one board, and 1,000 boards with one
//! watcher each. Beside them a run without watchers, each twice, in turn.
//!
//! Writers send requests of 100 jobs, one after another, over 4 connections. A probe writes one member's
//! score every 50 ms, which leads its board. For each such write and each watcher the time is taken from when
//! it was sent until an event has that score or a later one: the wait for the next event is part of it, 200
//! ms at the most at the default of five events a second.
//!
//! Prints events and computations a second, the time from a write to its event, and `RATIO name value`: jobs
//! written with watchers / without. The watchers are on the same cores as the service.
//!
//! `cargo bench --bench live -- --watchers 1000 --seconds 10`

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use support::http::Http;
use support::nats::free_port;
use support::{number, percentile, scratch};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const WRITERS: u64 = 4;
const JOBS: u64 = 100;
const PROBE_EVERY: Duration = Duration::from_millis(50);

struct Service {
    process: Child,
    port: u16,
}

impl Service {
    fn start(data: &Path) -> Self {
        let port = free_port();
        let process = Command::new(env!("CARGO_BIN_EXE_ranktree"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--shards", "2", "--data-dir"])
            .arg(data)
            .args(["--max-connections", "0", "--max-connections-per-client", "0"])
            .args(["--max-watchers", "0", "--max-watchers-per-client", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        while Http::connect(port).is_none() {
            thread::sleep(Duration::from_millis(10));
        }
        Self { process, port }
    }

    fn http(&self) -> Http {
        Http::connect(self.port).expect("it listens")
    }

    /// The value of a metric of watched boards.
    fn metric(&self, name: &str) -> u64 {
        let mut http = self.http();
        let (_, text) = http.get("/metrics");
        let name = format!("ranktree_live_{name}_total ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        line.and_then(|value| value.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// When each probe was sent; its score is its place, from 1.
#[derive(Default)]
struct Probes(Mutex<Vec<Instant>>);

/// What a run has counted.
#[derive(Default)]
struct Counts {
    jobs: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    taken: Mutex<Vec<Duration>>,
    is_over: AtomicBool,
}

fn main() {
    let (watchers, seconds) = (number("watchers", 1_000), number("seconds", 10));
    let folder = scratch();
    let service = Service::start(&folder.path().join("data"));
    let boards = watchers.max(1);
    let mut http = service.http();
    for board in 0..boards {
        let (status, answer) =
            http.request("PUT", &format!("/v1/boards/b{board}/members/first"), "{\"score\":1}");
        assert_eq!(status, 200, "{answer}");
    }
    // Each run draws other jobs: those of the run before would change nothing.
    let runs = AtomicU64::new(0);
    let run = |name: &str, watched: u64, spread: u64| {
        let seed = runs.fetch_add(1, Ordering::Relaxed) * 1_000;
        run(&service, name, (watched, spread), (seed, seconds))
    };
    // Once for nothing: files and memory are set up.
    run("warm up", 0, 1);
    let mut ratios = Vec::new();
    for (name, spread) in [("one_board", 1), ("a_board_each", boards)] {
        let without = [run(&format!("{name}, no watchers"), 0, spread)];
        let with = [run(&format!("{name}, {watchers} watchers"), watchers, spread)];
        let again = [run(&format!("{name}, no watchers"), 0, spread)];
        let with_again = [run(&format!("{name}, {watchers} watchers"), watchers, spread)];
        let sum = |parts: [&[f64; 1]; 2]| parts.iter().flat_map(|part| part.iter()).sum::<f64>();
        ratios.push((name, sum([&with, &with_again]) / sum([&without, &again])));
    }
    for (name, ratio) in ratios {
        println!("RATIO live_writes_{name} {ratio:.2}");
    }
}

/// Jobs written a second.
///
/// # Arguments
/// `watched`: how many watch. `spread`: boards that are written to, and watched in turn.
fn run(service: &Service, name: &str, (watched, spread): (u64, u64), (seed, seconds): (u64, u64)) -> f64 {
    let (counts, probes) = (Arc::new(Counts::default()), Arc::new(Probes::default()));
    let port = service.port;
    let begun_probes = probes.0.lock().expect("nobody panics").len();
    assert_eq!(begun_probes, 0);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a thread can be started");
    // A board that is probed: the score begins anew with each run.
    let mut http = service.http();
    for board in 0..spread.min(10) {
        http.request("DELETE", &format!("/v1/boards/b{board}/members/probe"), "");
    }
    for watcher in 0..watched {
        let (counts, probes) = (Arc::clone(&counts), Arc::clone(&probes));
        runtime.spawn(async move { watch(port, watcher % spread, &counts, &probes).await });
    }
    // All have their first state.
    let patience = Instant::now();
    while counts.events.load(Ordering::Relaxed) < watched {
        assert!(patience.elapsed() < Duration::from_secs(120), "the watchers are told nothing");
        thread::sleep(Duration::from_millis(10));
    }
    let (events, computed) = (counts.events.load(Ordering::Relaxed), service.metric("computations"));
    let coalesced = service.metric("coalesced");
    let begun = Instant::now();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let counts = &counts;
            scope.spawn(move || write(port, seed + writer, spread, counts));
        }
        scope.spawn(|| {
            let mut http = service.http();
            let mut score = 0_u64;
            while !counts.is_over.load(Ordering::Relaxed) {
                score += 1;
                probes.0.lock().expect("nobody panics").push(Instant::now());
                for board in 0..spread.min(10) {
                    let path = format!("/v1/boards/b{board}/members/probe");
                    // Above all that writers draw.
                    http.request("PUT", &path, &format!("{{\"score\":{}}}", 1_000_000_000 + score));
                }
                thread::sleep(PROBE_EVERY);
            }
        });
        thread::sleep(Duration::from_secs(seconds));
        counts.is_over.store(true, Ordering::Relaxed);
    });
    let took = begun.elapsed().as_secs_f64();
    let jobs = counts.jobs.load(Ordering::Relaxed) as f64 / took;
    let events = (counts.events.load(Ordering::Relaxed) - events) as f64 / took;
    let computed = (service.metric("computations") - computed) as f64 / took;
    let coalesced = (service.metric("coalesced") - coalesced) as f64 / took;
    let megabytes = counts.bytes.load(Ordering::Relaxed) as f64 / took / 1e6;
    println!(
        "{name}: {jobs:.0} jobs/s, {events:.0} events/s, {computed:.0} computations/s, {coalesced:.0} coalesced/s, {megabytes:.1} MB/s"
    );
    let mut taken = std::mem::take(&mut *counts.taken.lock().expect("nobody panics"));
    if !taken.is_empty() {
        taken.sort_unstable();
        let millis = |share: f64| percentile(&taken, share).as_secs_f64() * 1e3;
        println!(
            "  from a write to its event: p50 {:.0} ms, p99 {:.0} ms, {} seen",
            millis(0.5),
            millis(0.99),
            taken.len()
        );
    }
    runtime.shutdown_timeout(Duration::from_secs(5));
    jobs
}

fn write(port: u16, writer: u64, spread: u64, counts: &Counts) {
    let mut http = Http::connect(port).expect("it listens");
    let mut drawn = writer + 1;
    while !counts.is_over.load(Ordering::Relaxed) {
        let mut jobs = String::from("[");
        for nth in 0..JOBS {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (board, member, score) =
                ((drawn >> 40) % spread, (drawn >> 20) % 50_000, (drawn >> 33) % 1_000_000);
            let comma = if nth == 0 { "" } else { "," };
            let job = format!(r#"{{"board":"b{board}","member":"m{member}","score":{score}}}"#);
            jobs += comma;
            jobs += &job;
        }
        jobs.push(']');
        let (status, answer) = http.request("POST", "/v1/jobs?results=changed", &jobs);
        assert_eq!(status, 200, "{answer}");
        counts.jobs.fetch_add(JOBS, Ordering::Relaxed);
    }
}

/// Counts events, and notes when the probe's scores are seen.
async fn watch(port: u16, board: u64, counts: &Counts, probes: &Probes) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let request = format!("GET /v1/boards/b{board}/live HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let (mut buffer, mut text, mut seen) = (vec![0; 16 << 10], String::new(), 0_usize);
    loop {
        let Ok(length @ 1..) = stream.read(&mut buffer).await else { return };
        counts.bytes.fetch_add(length as u64, Ordering::Relaxed);
        text.push_str(&String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()));
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            if !event.contains("event: ") {
                continue;
            }
            counts.events.fetch_add(1, Ordering::Relaxed);
            let score = event.split("\"member\":\"probe\",\"score\":").nth(1);
            let score =
                score.and_then(|rest| rest.split(',').next()).and_then(|text| text.parse::<usize>().ok());
            let Some(newest) = score.and_then(|score| score.checked_sub(1_000_000_000)) else { continue };
            let sent: Vec<Instant> = {
                let probes = probes.0.lock().expect("nobody panics");
                probes.get(seen..newest).map(<[_]>::to_vec).unwrap_or_default()
            };
            seen = seen.max(newest);
            let mut taken = counts.taken.lock().expect("nobody panics");
            taken.extend(sent.iter().map(Instant::elapsed));
        }
    }
}
