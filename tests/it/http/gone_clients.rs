//! Clients that disconnect before their answer: their permits are released long before the answer would come,
//! even if they had sent more bytes.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;

use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::raw::{connect, get};

const PLACES: usize = 20;
/// A read that waits for a write that never comes, for the longest time that is allowed.
const WAIT: &str = "GET /v1/boards/a?after=0:999&timeout_ms=60000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
fn count(address: &str, metric: &str) -> u64 {
    let metrics = get(address, "/metrics");
    let count = metrics.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    count.expect("it is there from the start").trim().parse().expect("a count")
}

/// Takes all permits by requests that wait.
fn occupy(address: &str, beyond: &str) -> Vec<TcpStream> {
    let waits: Vec<_> = (0..PLACES)
        .map(|_| {
            let mut stream = connect(address);
            stream.write_all(format!("{WAIT}{beyond}").as_bytes()).expect("it is open");
            stream
        })
        .collect();
    wait_until("all places are taken", || get(address, "/v1/boards/a").starts_with("HTTP/1.1 503"));
    waits
}

#[test]
fn a_client_that_disconnects_releases_its_permits_even_if_it_sent_more() {
    let limit = PLACES.to_string();
    let service = Node::flags(&["--max-connections", &limit, "--max-connections-per-client", "0"]).start();
    let address = service.address();
    {
        let client = service.client();
        assert_eq!(client.put("/v1/boards/a/members/m", &json!({"score": 1})).0, 200);
    }
    wait_until("it has left", || count(address, "ranktree_http_connections") == 1);
    // The client has sent nothing more, a byte of a next request, or more bytes than are read in advance.
    let many = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(500);
    let mut left = 0;
    for beyond in ["", "G", &many] {
        let waits = occupy(address, beyond);
        drop(waits);
        wait_until("there is room again", || get(address, "/v1/boards/a").starts_with("HTTP/1.1 200"));
        wait_until("all have left", || count(address, "ranktree_http_connections") == 1);
        left = check_left(address, left);
    }

    // Bytes that arrive later do not hide the disconnection, either.
    let mut waits = occupy(address, "");
    for stream in &mut waits {
        stream.write_all(b"G").expect("it is open");
    }
    drop(waits);
    wait_until("there is room again", || get(address, "/v1/boards/a").starts_with("HTTP/1.1 200"));
    wait_until("all have left", || count(address, "ranktree_http_connections") == 1);
    check_left(address, left);
}

/// How many connections ended because the client left, and not because of a timeout.
fn check_left(address: &str, before: u64) -> u64 {
    let now = count(address, "ranktree_http_connections_ended_total{reason=\"left\"}");
    // The previous connection may not have ended yet, so one of these may have had no permit.
    let left = usize::try_from(now - before).expect("few");
    assert!((PLACES - 1..=PLACES).contains(&left), "{before}, {now}");
    now
}
