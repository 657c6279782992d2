//! The service over HTTP against Redis on the same machine, and against Valkey if it is here: the real
//! binary, real servers, the same number of connections (50, unpipelined unless said), one load-generator
//! thread each, runs in turn, the median of `--runs`, five if not said.
//!
//! - `http_rank_vs_zrevrank`: GET of a member's entry (rank, position, ties, total) against ZREVRANK of a
//!   member
//! - `http_score_rank_vs_zcount`: GET of any score's rank (better, tied, worse, total, by shard) against
//!   ZCOUNT of the better ones
//! - `http_lookup_vs_zrevrank`: POST of `members:lookup` with 100 members, in entries, against ZREVRANK
//!   pipelined by 100
//! - `http_ranks_of_vs_zcount`: POST of `ranks:of` with 100 scores, in ranks, against ZCOUNT pipelined by 100
//! - `durable_put_vs_zadd`: PUT of a score, answered once synced, against ZADD with `appendfsync always`
//! - `durable_batch_vs_zadd`: POST of 100 jobs, in jobs, against ZADD pipelined by 100, `appendfsync always`
//! - `durable_put_changed_vs_zadd`, `durable_batch_changed_vs_zadd`: the same with `results=changed`, whose
//!   answers say no more than ZADD's do; the others tell where the member stands now, and where it stood
//! - `durable_put_p50_of_10_vs_zadd`, `durable_put_p99_of_10_vs_zadd` and so on: how long these PUTs and
//!   ZADDs take with 1, 10, 50 and 500 connections; theirs / ours. With `--before ANOTHER_RANKTREE` also
//!   against that one's PUTs (`…_vs_before`)
//! - `durable_nats_put_vs_zadd`: the same PUT with NATS behind it, answered once stored by a nats-server with
//!   `sync_interval: always`, against the same ZADD
//! - `nats_put_vs_zadd`: the same with nats-server's default, a sync in two minutes
//!
//! Needs Debian's `redis-server`, `redis-tools` and `wrk`, and nats-server (`make nats`); `make valkey`
//! unpacks a valkey-server, and `--valkey` or `VALKEY_SERVER` names another one. Prints `RATIO name value`,
//! ours / Redis's per second, and the same against Valkey, whose name has `_vs_valkey_`.
//!
//! `cargo bench --bench http_vs_redis -- --members 1000000 --seconds 10 --runs 5
//! [--binary ANOTHER_RANKTREE]`
//!
//! `--cases lookup,ranks-of` runs these alone; the others are `rank`, `score-rank`, `put`, `batch`, `latency`
//! and `nats`.

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::cell::Cell;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use support::measured::Measured;
use support::nats::Nats;
use support::redis::{Redis, ratio_name};
use support::{argument, list, micros, number, scratch, wrk};

const CONNECTIONS: u64 = 50;
/// Items of a request that has many, and commands of a pipeline.
const BATCH: u64 = 100;

fn main() {
    for tool in ["redis-server", "redis-benchmark", "wrk"] {
        assert!(
            Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok(),
            "{tool} is missing: apt install redis-server redis-tools wrk"
        );
    }
    let members = number("members", 1_000_000);
    let seconds = number("seconds", 10);
    let runs = number("runs", 5);
    let cases = list("cases", "rank,score-rank,lookup,ranks-of,put,batch,latency,nats");
    let asked = |case: &str| cases.iter().any(|asked| asked == case);
    let folder = scratch();
    let servers = Redis::start_all(folder.path(), CONNECTIONS);
    let binary = argument("binary").unwrap_or_else(|| env!("CARGO_BIN_EXE_ranktree").to_owned());
    let ranktree = Ranktree::start(&binary, &folder.path().join("ranktree"), &[]);
    eprintln!("  loading {members} members into all");
    ranktree.load(members);
    for server in &servers {
        server.load(members);
    }

    let zrevrank = ["ZREVRANK", "arena", "m__rand_int__"];
    let zcount = ["ZCOUNT", "arena", "(__rand_int__", "+inf"];
    let compare = |name: &str, unit: &str, ours: &dyn Fn() -> f64, theirs: &dyn Fn(&Redis) -> f64| {
        let round = |_| (ours(), servers.iter().map(theirs).collect());
        report(name, unit, &servers, &(0..runs).map(round).collect::<Vec<_>>());
    };
    let one = |server: &Redis, command| server.run(members, seconds * 50_000, 1, command);
    let many = |server: &Redis, command| server.run(members, seconds * 300_000, BATCH, command);
    let run = |requests: &str| ranktree.run(CONNECTIONS, seconds, members, requests).per_second;
    if asked("rank") {
        let ours = || run(READ);
        compare("http_rank_vs_zrevrank", "reads/s", &ours, &|server| one(server, &zrevrank));
    }
    if asked("score-rank") {
        let ours = || run(RANK);
        compare("http_score_rank_vs_zcount", "reads/s", &ours, &|server| one(server, &zcount));
    }
    if asked("lookup") {
        let ours = || run(LOOKUP) * BATCH as f64;
        compare("http_lookup_vs_zrevrank", "entries/s", &ours, &|server| many(server, &zrevrank));
    }
    if asked("ranks-of") {
        let ours = || run(RANKS_OF) * BATCH as f64;
        compare("http_ranks_of_vs_zcount", "ranks/s", &ours, &|server| many(server, &zcount));
    }

    if ["put", "batch", "latency", "nats"].into_iter().any(asked) {
        servers.iter().for_each(Redis::make_durable);
    }
    let durable = |server: &Redis| server.run(members, seconds * 5_000, 1, &server.zadd());
    if asked("put") {
        compare("durable_put_vs_zadd", "writes/s", &|| run(PUT), &durable);
        let ours = || run(&[CHANGED, PUT].concat());
        compare("durable_put_changed_vs_zadd", "writes/s", &ours, &durable);
    }
    if asked("batch") {
        let ours = || run(BATCH_OF_JOBS) * BATCH as f64;
        let theirs = |server: &Redis| server.run(members, seconds * 100_000, BATCH, &server.zadd());
        compare("durable_batch_vs_zadd", "writes/s", &ours, &theirs);
        let ours = || run(&[CHANGED, BATCH_OF_JOBS].concat()) * BATCH as f64;
        compare("durable_batch_changed_vs_zadd", "writes/s", &ours, &theirs);
    }
    if asked("latency") {
        let before = argument("before").map(|binary| {
            let before = Ranktree::start(&binary, &folder.path().join("before"), &[]);
            before.load(members);
            before
        });
        let put = |service: &Ranktree, connections| service.run(connections, seconds, members, PUT);
        for connections in [1, 10, 50, 500] {
            let commands = seconds * 1_000 * u64::clamp(connections, 2, 20);
            let rounds: Vec<Latencies> = (0..runs)
                .map(|_| {
                    let zadd =
                        |server: &Redis| server.measure(connections, members, commands, &server.zadd());
                    let theirs: Vec<Measured> = servers.iter().map(zadd).collect();
                    let before = before.as_ref().map(|service| put(service, connections));
                    Latencies { ours: put(&ranktree, connections), before, theirs }
                })
                .collect();
            report_latencies(connections, &servers, &rounds);
        }
    }
    drop(ranktree);

    for (name, sync) in [("durable_nats_put_vs_zadd", "always"), ("nats_put_vs_zadd", "2m")] {
        if !asked("nats") {
            break;
        }
        let nats = Nats::start_syncing(&folder.path().join(name), sync).expect("nats-server is installed");
        let data = folder.path().join(format!("{name}-ranktree"));
        let ranktree =
            Ranktree::start(&binary, &data, &["--nats", &nats.url(), "--nats-stream-mib", "16384"]);
        ranktree.load(members);
        compare(name, "writes/s", &|| ranktree.run(CONNECTIONS, seconds, members, PUT).per_second, &durable);
    }
}

/// # Arguments
/// `rounds`: in each ours, and that of each server.
fn report(name: &str, unit: &str, servers: &[Redis], rounds: &[(f64, Vec<f64>)]) {
    for (ours, theirs) in rounds {
        let theirs: Vec<String> = servers
            .iter()
            .zip(theirs)
            .map(|(server, theirs)| format!("{} {theirs:.0}", server.name))
            .collect();
        println!("{name}, {unit}: ranktree {ours:.0}, {}", theirs.join(", "));
    }
    for (nth, server) in servers.iter().enumerate() {
        let mut ratios: Vec<f64> =
            rounds.iter().filter_map(|(ours, theirs)| Some(ours / theirs.get(nth)?)).collect();
        ratios.sort_by(f64::total_cmp);
        if let Some(median) = ratios.get(ratios.len() / 2) {
            println!("RATIO {} {median:.2}", ratio_name(name, server.name));
        }
    }
}

/// How long PUTs took in one round.
struct Latencies {
    ours: Measured,
    before: Option<Measured>,
    theirs: Vec<Measured>,
}

fn report_latencies(connections: u64, servers: &[Redis], rounds: &[Latencies]) {
    let told = |name: &str, of: &Measured| {
        format!(
            "{name} {:.0} µs, p99 {:.0} µs, {:.0} a second",
            micros(of.p50),
            micros(of.p99),
            of.per_second
        )
    };
    for Latencies { ours, before, theirs } in rounds {
        let mut all = vec![told("ranktree", ours)];
        all.extend(before.as_ref().map(|before| told("before", before)));
        all.extend(servers.iter().zip(theirs).map(|(server, of)| told(server.name, of)));
        println!("durable PUT, {connections} connections, p50: {}", all.join("; "));
    }
    for name in ["p50", "p99"] {
        let percentile = |of: &Measured| if name == "p50" { of.p50 } else { of.p99 };
        let ratio = |against: &str, their: &dyn Fn(&Latencies) -> Option<Measured>| {
            let of_round = |round: &Latencies| {
                Some(micros(percentile(&their(round)?)) / micros(percentile(&round.ours)))
            };
            let mut ratios: Vec<f64> = rounds.iter().filter_map(of_round).collect();
            ratios.sort_by(f64::total_cmp);
            if let Some(median) = ratios.get(ratios.len() / 2) {
                println!("RATIO {against} {median:.2}");
            }
        };
        for (nth, server) in servers.iter().enumerate() {
            let theirs = |round: &Latencies| round.theirs.get(nth).copied();
            ratio(&ratio_name(&format!("durable_put_{name}_of_{connections}_vs_zadd"), server.name), &theirs);
        }
        ratio(&format!("durable_put_{name}_of_{connections}_vs_before"), &|round| round.before);
    }
}

/// What Lua makes requests of for wrk. They are put together from text, as redis-benchmark does it: wrk's own
/// `format` takes several times as long, and the load generator shares the cores with the servers.
const LUA: &str = r"
local function get(path) return 'GET ' .. path .. ' HTTP/1.1\r\nHost: ' .. host .. '\r\n\r\n' end
local function with_body(method, path, body)
  return method .. ' ' .. path .. ' HTTP/1.1\r\nHost: ' .. host .. '\r\nContent-Type: application/json\r\n' ..
    'Content-Length: ' .. #body .. '\r\n\r\n' .. body
end
local function member() return ('m%012d'):format(math.random(0, members - 1)) end
";

/// Ids are as redis-benchmark makes them, twelve digits.
const READ: &str = r"request = function() return get('/v1/boards/arena/members/' .. member()) end";

/// Scores are below a million, as they are loaded.
const RANK: &str =
    r"request = function() return get('/v1/boards/arena/rank?score=' .. math.random(0, 999999)) end";

const PUT: &str = r#"
request = function()
  local path = '/v1/boards/arena/members/' .. member() .. query
  return with_body('PUT', path, '{"score":' .. math.random(0, 999999) .. '}')
end
"#;

/// Before requests that write: their answers are to be short.
const CHANGED: &str = "query = '?results=changed'\n";

/// 4,000 requests, made beforehand. Each eight have the same members and other scores: a request that came
/// again would change nothing.
const BATCH_OF_JOBS: &str = r#"
local requests = {}
for n = 1, 500 do
  local of_jobs = {}
  for job = 1, batch do of_jobs[job] = member() end
  for variant = 1, 8 do
    local jobs = {}
    for job = 1, batch do
      jobs[job] = '{"board":"arena","member":"' .. of_jobs[job] .. '","score":' .. math.random(0, 999999) .. '}'
    end
    requests[#requests + 1] = with_body('POST', '/v1/jobs' .. query, '[' .. table.concat(jobs, ',') .. ']')
  end
end
request = function() return requests[math.random(#requests)] end
"#;

const LOOKUP: &str = r#"
local requests = {}
for n = 1, 2000 do
  local items = {}
  for nth = 1, batch do items[nth] = '"' .. member() .. '"' end
  local body = '{"members":[' .. table.concat(items, ',') .. ']}'
  requests[n] = with_body('POST', '/v1/boards/arena/members:lookup', body)
end
request = function() return requests[math.random(#requests)] end
"#;

const RANKS_OF: &str = r#"
local requests = {}
for n = 1, 2000 do
  local items = {}
  for nth = 1, batch do items[nth] = math.random(0, 999999) end
  local body = '{"scores":[' .. table.concat(items, ',') .. ']}'
  requests[n] = with_body('POST', '/v1/boards/arena/ranks:of', body)
end
request = function() return requests[math.random(#requests)] end
"#;

struct Ranktree {
    process: Child,
    url: String,
    /// How many there were; they seed the draws of the next one.
    runs: Cell<u64>,
}

impl Ranktree {
    fn start(binary: &str, data: &Path, extra: &[&str]) -> Self {
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
        Self { process, url, runs: Cell::new(0) }
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

    /// # Arguments
    /// `requests`: Lua whose `request` makes one of them.
    fn run(&self, connections: u64, seconds: u64, members: u64, requests: &str) -> Measured {
        let host = self.url.trim_start_matches("http://");
        self.runs.set(self.runs.get() + 1);
        let facts = format!(
            "local host, members, batch, query = '{host}', {members}, {BATCH}, ''\nmath.randomseed({})\n",
            self.runs.get()
        );
        wrk::run(&self.url, connections, seconds, &[&facts, LUA, requests].concat())
    }
}

impl Drop for Ranktree {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
