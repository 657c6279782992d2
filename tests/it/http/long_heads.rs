//! Long heads of requests: together they take a limited amount of memory, whether they have arrived whole or
//! not, and connections without one do not notice.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;

use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::raw::{ask, connect, get, rest_of};

const CLIENTS: usize = 700;
const HEAD_BYTES: usize = 120_000;
/// What the heads of all of them may take in the service, without the first 8 KiB of each.
const BUDGET: usize = 32 << 20;
/// Of these at least one connection each has to end. Heads that come in at the same time may end more.
const BEYOND: usize = CLIENTS - BUDGET / (HEAD_BYTES - (8 << 10)) - 1;
/// Twice the budget, as buffers grow by doubling, 32 KiB for each connection, and as much again for what is
/// only free.
const GROWTH_KIB_MAX: usize = (2 * BUDGET / 1_024 + 32 * CLIENTS) * 2;

fn ended(service: &Node) -> usize {
    let metrics = get(service.address(), "/metrics");
    let name = "ranktree_http_connections_ended_total{reason=\"long_heads\"} ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |count| count.trim().parse().expect("a count"))
}

/// The memory of the service, in KiB: what it takes, or the most that it took.
fn memory(service: &Node, line: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid())).expect("it runs");
    let found = status.lines().find_map(|text| text.strip_prefix(line)).expect("Linux says so");
    found.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A head of about [`HEAD_BYTES`], up to the empty line at its end.
fn long_head(line: &str) -> String {
    let field = format!("x: {}\r\n", "y".repeat(HEAD_BYTES / 60 - 5));
    format!("{line} HTTP/1.1\r\nhost: localhost\r\n{}", field.repeat(60))
}

#[test]
fn long_heads_of_all_connections_together_have_a_limit() {
    // A read that waits for a write that never comes, for the longest time that is allowed.
    const WAIT: &str = "GET /v1/boards/a?after=0:999&timeout_ms=60000";
    for is_whole in [false, true] {
        let service = Node::flags(&["--header-seconds", "3600", "--max-connections-per-client", "0"]).start();
        let address = service.address();
        assert_eq!(service.client().put("/v1/boards/a/members/m", &json!({"score": 1})).0, 200);
        let before = memory(&service, "VmRSS:");
        let head = long_head(WAIT) + if is_whole { "\r\n" } else { "" };
        let mut held: Vec<TcpStream> = Vec::new();
        for _ in 0..CLIENTS {
            let mut stream = connect(address);
            // It may be closed before all of it is written.
            let _ = stream.write_all(head.as_bytes());
            held.push(stream);
        }
        wait_until("those beyond the limit are closed", || ended(&service) >= BEYOND);
        assert!(ended(&service) < CLIENTS, "others are kept");
        let grown = memory(&service, "VmHWM:").saturating_sub(before);
        assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
        // Requests with short heads are answered, and so are probes.
        assert_eq!(service.client().put("/v1/boards/a/members/m", &json!({"score": 2})).0, 200);
        assert!(get(address, "/readyz").starts_with("HTTP/1.1 200"));
        drop(held);
        // Once they have left there is room for others.
        let whole = long_head("GET /healthz") + "\r\n";
        wait_until("a long head is taken", || ask(address, &whole).starts_with("HTTP/1.1 200"));
    }
}

#[test]
fn a_connection_ends_with_the_answer_to_a_long_head_and_goes_on_after_short_ones() {
    let service = Node::start();
    let address = service.address();
    let short = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let said = ask(address, &(short.repeat(400) + &long_head("GET /healthz") + "\r\n" + short));
    assert_eq!(said.matches("HTTP/1.1 200").count(), 401, "all up to the long one");
    assert_eq!(said.matches("connection: close\r\n").count(), 1);
    // Byte by byte, a head is the same head.
    let mut stream = connect(address);
    for piece in (long_head("GET /healthz") + "\r\n").as_bytes().chunks(997) {
        stream.write_all(piece).expect("it is open");
    }
    let said = rest_of(&mut stream);
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("connection: close\r\n"), "{said}");
}
