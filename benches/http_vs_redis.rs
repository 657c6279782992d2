//! The service over HTTP against Redis on the same machine: the real binary, a real redis-server, the same
//! number of connections (50, unpipelined unless said), one load-generator thread each, runs in turn, the
//! median of three.
//!
//! - `http_rank_vs_zrevrank`: GET of a member's entry (rank, position, ties, total) against ZREVRANK of a
//!   member
//! - `http_score_rank_vs_zcount`: GET of any score's rank (better, tied, worse, total, by shard) against
//!   ZCOUNT of the better ones
//! - `durable_put_vs_zadd`: PUT of a score, answered once synced, against ZADD with `appendfsync always`
//! - `durable_batch_vs_zadd`: POST of 100 jobs, in jobs, against ZADD pipelined by 100, `appendfsync always`
//!
//! - `durable_nats_put_vs_zadd`: the same PUT with NATS behind it, answered once stored by a nats-server with
//!   `sync_interval: always`, against the same ZADD
//! - `nats_put_vs_zadd`: the same with nats-server's default, a sync in two minutes
//!
//! Needs Debian's `redis-server`, `redis-tools` and `wrk`, and nats-server (`make nats`). Prints
//! `RATIO name value`, ours / Redis's per second.
//!
//! `cargo bench --bench http_vs_redis -- --members 1000000 --seconds 10 [--binary ANOTHER_RANKTREE]`

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use support::nats::Nats;
use support::redis::Redis;
use support::{argument, number, scratch};

const CONNECTIONS: u64 = 50;
const RUNS: usize = 3;

fn main() {
    for tool in ["redis-server", "redis-benchmark", "wrk"] {
        assert!(
            Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok(),
            "{tool} is missing: apt install redis-server redis-tools wrk"
        );
    }
    let members = number("members", 1_000_000);
    let seconds = number("seconds", 10);
    let folder = scratch();
    let redis = Redis::start(folder.path(), CONNECTIONS);
    let ranktree = Ranktree::start(&folder.path().join("ranktree"), &[]);
    eprintln!("  loading {members} members into both");
    ranktree.load(members);
    redis.load(members);

    let reads = (0..RUNS).map(|_| {
        let theirs = redis.run(members, seconds * 50_000, 1, &["ZREVRANK", "arena", "m__rand_int__"]);
        (ranktree.run(seconds, &read_script(members)), theirs)
    });
    report("http_rank_vs_zrevrank", "reads/s", reads.collect());
    let ranks = (0..RUNS).map(|_| {
        let theirs = redis.run(members, seconds * 50_000, 1, &["ZCOUNT", "arena", "(__rand_int__", "+inf"]);
        (ranktree.run(seconds, &rank_script()), theirs)
    });
    report("http_score_rank_vs_zcount", "reads/s", ranks.collect());

    redis.make_durable();
    let puts = (0..RUNS).map(|_| {
        let theirs =
            redis.run(members, seconds * 5_000, 1, &["ZADD", "arena", "__rand_int__", "m__rand_int__"]);
        (ranktree.run(seconds, &put_script(members)), theirs)
    });
    report("durable_put_vs_zadd", "writes/s", puts.collect());
    let batches = (0..RUNS).map(|_| {
        let theirs =
            redis.run(members, seconds * 100_000, 100, &["ZADD", "arena", "__rand_int__", "m__rand_int__"]);
        (ranktree.run(seconds, &batch_script(members)) * 100.0, theirs)
    });
    report("durable_batch_vs_zadd", "writes/s", batches.collect());
    drop(ranktree);

    for (name, sync) in [("durable_nats_put_vs_zadd", "always"), ("nats_put_vs_zadd", "2m")] {
        let nats = Nats::start_syncing(&folder.path().join(name), sync).expect("nats-server is installed");
        let data = folder.path().join(format!("{name}-ranktree"));
        let ranktree = Ranktree::start(&data, &["--nats", &nats.url(), "--nats-stream-mib", "16384"]);
        ranktree.load(members);
        let puts = (0..RUNS).map(|_| {
            let theirs =
                redis.run(members, seconds * 5_000, 1, &["ZADD", "arena", "__rand_int__", "m__rand_int__"]);
            (ranktree.run(seconds, &put_script(members)), theirs)
        });
        report(name, "writes/s", puts.collect());
    }
}

fn report(name: &str, unit: &str, mut runs: Vec<(f64, f64)>) {
    for (ours, theirs) in &runs {
        println!("{name}: ranktree {ours:.0} {unit}, Redis {theirs:.0} {unit}");
    }
    runs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    if let Some((ours, theirs)) = runs.get(runs.len() / 2) {
        println!("RATIO {name} {:.2}", ours / theirs);
    }
}

/// Lua for wrk: `request` makes one request. Ids are as redis-benchmark makes them, twelve digits.
fn read_script(members: u64) -> String {
    format!(
        "local path = '/v1/boards/arena/members/m%012d'\n\
         request = function() return wrk.format('GET', path:format(math.random(0, {members} - 1))) end\n"
    )
}

/// Scores are below a million, as they are loaded.
fn rank_script() -> String {
    "request = function()\n\
       return wrk.format('GET', '/v1/boards/arena/rank?score=' .. math.random(0, 999999))\n\
     end\n"
        .to_owned()
}

fn put_script(members: u64) -> String {
    format!(
        "local path = '/v1/boards/arena/members/m%012d'\n\
         local headers = {{ ['Content-Type'] = 'application/json' }}\n\
         request = function()\n\
           local body = ('{{\"score\":%d}}'):format(math.random(0, 1000000))\n\
           return wrk.format('PUT', path:format(math.random(0, {members} - 1)), headers, body)\n\
         end\n"
    )
}

fn batch_script(members: u64) -> String {
    format!(
        "local headers = {{ ['Content-Type'] = 'application/json' }}\n\
         local bodies = {{}}\n\
         for n = 1, 500 do\n\
           local jobs = {{}}\n\
           for job = 1, 100 do\n\
             jobs[job] = ('{{\"board\":\"arena\",\"member\":\"m%012d\",\"score\":%d}}')\n\
               :format(math.random(0, {members} - 1), math.random(0, 1000000))\n\
           end\n\
           bodies[n] = '[' .. table.concat(jobs, ',') .. ']'\n\
         end\n\
         request = function() return wrk.format('POST', '/v1/jobs', headers, bodies[math.random(500)]) end\n"
    )
}

struct Ranktree {
    process: Child,
    url: String,
    scripts: tempfile::TempDir,
}

impl Ranktree {
    fn start(data: &Path, extra: &[&str]) -> Self {
        let binary = argument("binary").unwrap_or_else(|| env!("CARGO_BIN_EXE_ranktree").to_owned());
        let mut process = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data)
            .args(extra)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        let output = process.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("it says where it listens");
        let url = line.split_whitespace().last().expect("an address").to_owned();
        Self { process, url, scripts: tempfile::tempdir().expect("a scratch folder") }
    }

    fn load(&self, members: u64) {
        let agent = ureq::agent();
        for first in (0..members).step_by(1_000) {
            let jobs: Vec<String> = (first..(first + 1_000).min(members))
                .map(|member| {
                    let score = member.wrapping_mul(2_654_435_761) % 1_000_000;
                    format!(r#"{{"board":"arena","member":"m{member:012}","score":{score}}}"#)
                })
                .collect();
            let body = format!("[{}]", jobs.join(","));
            agent
                .post(format!("{}/v1/jobs?wait=applied", self.url))
                .send(&body)
                .expect("the service takes it");
        }
    }

    /// Requests per second that were answered with success.
    fn run(&self, seconds: u64, script: &str) -> f64 {
        let path = self.scripts.path().join("script.lua");
        std::fs::write(&path, script).expect("the script is written");
        let output = Command::new("wrk")
            .args(["-t1", "-c", &CONNECTIONS.to_string(), "-d", &seconds.to_string(), "-s"])
            .arg(&path)
            .arg(&self.url)
            .output()
            .expect("wrk runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!text.contains("Non-2xx"), "some requests failed:\n{text}");
        let line = text.lines().find_map(|line| line.strip_prefix("Requests/sec:")).expect("wrk says so");
        line.trim().parse().expect("a number")
    }
}

impl Drop for Ranktree {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
