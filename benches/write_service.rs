//! Durable single writes: the write service against single messages published to a stream, and against Redis.
//! nats-server syncs always, and so does Redis (`appendfsync always`). Each of the connections (50 unless
//! said) waits for each of its answers; one thread of load, runs in turn, the median of three.
//!
//! - `write_service_vs_published`: a request of one job, answered with its entry and rank, against a
//!   JetStream message of one job, answered once stored
//! - `write_service_vs_bare`: the first request against one that a subscriber answers at once, without any
//!   work and without a stream: what NATS leaves of the machine for an answer
//! - `write_service_vs_zadd`, `write_service_vs_set`: the first request against ZADD of a member, and SET of
//!   a key; `write_service_vs_valkey_zadd` and `…_set` against Valkey's, if it is here (`make valkey`)
//!
//! Beside each run of the write service it says how many messages were stored a second, and how many requests
//! shared one.
//!
//! Needs Debian's `redis-server` and `redis-tools`, and nats-server (`make nats`). Prints
//! `RATIO name value`, ours / theirs per second.
//!
//! `cargo bench --bench write_service -- --members 100000 --seconds 5 --connections 50 [--binary ANOTHER]`
//!
//! `--stream-mib 4096` where the disk has no room for a stream of 16 GiB.

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use support::http::Http;
use support::nats::Nats;
use support::raw_nats::{self, Run};
use support::redis::{Redis, ratio_name};
use support::service::{Service, define_board};
use support::{number, scratch};

const RUNS: usize = 3;
/// As long as the answer of the write service is.
const BARE_ANSWER: &[u8] = &[b'x'; 300];

fn main() {
    let (members, seconds) = (number("members", 100_000), number("seconds", 5));
    let connections = number("connections", 50);
    let time = Duration::from_secs(seconds);
    let folder = scratch();
    let servers = Redis::start_all(folder.path(), connections);
    for server in &servers {
        server.load(members);
        server.make_durable();
    }
    let nats = Nats::start_syncing(&folder.path().join("nats"), "always").expect("nats-server is installed");
    let service = Service::start(&folder.path().join("ranktree"), &nats.url(), 1);
    define_board(&mut service.http());
    let job = move |connection: u64, nth: u64| {
        // Spread over the members, and different for each connection and request.
        let drawn = (connection * 1_000_003 + nth).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (member, score) = ((drawn >> 32) % members, drawn % 1_000_000);
        format!(r#"{{"board":"arena","member":"m{member:012}","score":{score}}}"#)
    };
    let written = |answer: &[u8]| answer.starts_with(b"{\"token\"");
    let stored = |answer: &[u8]| answer.starts_with(b"{\"stream\"");
    let ask = |subject, is_good| raw_nats::run(nats.port, subject, connections, time, job, is_good);
    let bare = |answer: &[u8]| answer == BARE_ANSWER;
    raw_nats::answer_at_once(nats.url(), "bare", BARE_ANSWER);
    raw_nats::wait_until_answered(nats.port, "bare", &job(0, 0), bare);
    raw_nats::wait_until_answered(nats.port, "ranktree.write.0", &job(0, 0), written);
    // As many members as Redis has; what is measured comes after.
    ask("ranktree.write.0", written);
    let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..RUNS {
        let before = Stored::of(&mut service.http());
        let ours = ask("ranktree.write.0", written);
        Stored::of(&mut service.http()).since(&before).print(seconds);
        let theirs = ask("ranktree.jobs.0", stored);
        let bare = ask("bare", bare);
        print(&ours, &theirs, &bare);
        let mut note = |name: String, per_second: f64| {
            ratios.entry(name).or_default().push(ours.per_second / per_second);
        };
        note("write_service_vs_published".to_owned(), theirs.per_second);
        note("write_service_vs_bare".to_owned(), bare.per_second);
        let commands = seconds * 10_000;
        for server in &servers {
            let zadd = server.run(members, commands, 1, &server.zadd());
            let set = server.run(members, commands, 1, &["SET", "m__rand_int__", "__rand_int__"]);
            println!("{}: ZADD {zadd:.0}/s, SET {set:.0}/s", server.name);
            note(ratio_name("write_service_vs_zadd", server.name), zadd);
            note(ratio_name("write_service_vs_set", server.name), set);
        }
    }
    for (name, ratios) in &mut ratios {
        ratios.sort_by(f64::total_cmp);
        let median = ratios.get(RUNS / 2).copied().unwrap_or_default();
        println!("RATIO {name} {median:.2}");
    }
}

/// What the service has stored since it started.
struct Stored {
    messages: f64,
    requests: f64,
}

impl Stored {
    fn of(http: &mut Http) -> Self {
        let (_, metrics) = http.get("/metrics");
        let figure = |series: &str| {
            let of_series = |line: &str| line.strip_prefix(series)?.trim().parse().ok();
            metrics.lines().find_map(of_series).unwrap_or(0.0)
        };
        Self {
            messages: figure("ranktree_message_requests_count{shard=\"0\"}"),
            requests: figure("ranktree_message_requests_sum{shard=\"0\"}"),
        }
    }

    fn since(self, before: &Self) -> Self {
        Self { messages: self.messages - before.messages, requests: self.requests - before.requests }
    }

    fn print(&self, seconds: u64) {
        println!(
            "write service: {:.0} messages stored a second, {:.1} requests in each",
            self.messages / seconds as f64,
            self.requests / self.messages
        );
    }
}

fn print(ours: &Run, theirs: &Run, bare: &Run) {
    println!(
        "write service {:.0}/s (p50 {:.2} ms, p99 {:.2} ms), published {:.0}/s (p50 {:.2} ms, p99 {:.2} ms), \
         bare {:.0}/s (p50 {:.2} ms)",
        ours.per_second,
        millis(ours.p50),
        millis(ours.p99),
        theirs.per_second,
        millis(theirs.p50),
        millis(theirs.p99),
        bare.per_second,
        millis(bare.p50),
    );
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
