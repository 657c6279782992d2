//! Too many requests: the surplus gets 503 with `Retry-After`, while probes and metrics answer.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::raw::{connect, get};

const LIMIT: usize = 2;

/// How many requests were shed.
fn shed(address: &str) -> u64 {
    let metrics = get(address, "/metrics");
    let count = metrics.lines().find_map(|line| line.strip_prefix("ranktree_http_requests_shed_total "));
    count.expect("it is there from the start").trim().parse().expect("a count")
}

#[test]
fn requests_beyond_the_limit_are_shed_while_probes_and_metrics_answer() {
    let service =
        Node::shards(2).flags(&["--write-seconds", "3600", "--max-requests", &LIMIT.to_string()]).start();
    let (client, address) = (service.client(), service.address());
    assert_eq!(client.put("/v1/boards/a", &json!({})).0, 201);
    assert_eq!(client.put("/v1/boards/a/members/m", &json!({"score": 1})).0, 200);
    let jobs: Vec<Value> =
        (0..1_000).map(|n| json!({"board": "full", "member": format!("member-{n}"), "score": n})).collect();
    assert_eq!(client.post("/v1/jobs?results=changed", &json!(jobs)).0, 200);

    // A write whose body does not arrive takes no permit.
    let bodies: Vec<_> = (0..5)
        .map(|_| {
            let mut stream = connect(address);
            let head =
                "PUT /v1/boards/a/members/m HTTP/1.1\r\nhost: localhost\r\ncontent-length: 11\r\n\r\n{\"score\"";
            stream.write_all(head.as_bytes()).expect("it is open");
            stream
        })
        .collect();
    assert_eq!(client.get("/v1/boards/a").0, 200);

    // Nor does a read that waits for a write that never comes.
    let waits: Vec<_> = (0..5)
        .map(|_| {
            let mut stream = connect(address);
            let wait = "GET /v1/boards/a?after=0:999&timeout_ms=60000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
            stream.write_all(wait.as_bytes()).expect("it is open");
            stream
        })
        .collect();
    assert_eq!(client.get("/v1/boards/a").0, 200);
    assert_eq!(shed(address), 0);

    // Clients that do not read their answers. The answers are larger than the buffers of both sides.
    let blocked: Vec<_> = (0..LIMIT)
        .map(|_| {
            let mut stream = connect(address);
            let top = "GET /v1/boards/full/top?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
            stream.write_all(top.repeat(300).as_bytes()).expect("it is open");
            stream
        })
        .collect();
    wait_until("the service is full for good", || (0..100).all(|_| client.get("/v1/boards/a").0 == 503));
    let said = get(address, "/v1/boards/a/top");
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("\"code\":\"overloaded\""), "{said}");
    assert!(said.contains("retry-after: 1\r\n"), "{said}");
    let (status, problem) = client.put("/v1/boards/a/members/m", &json!({"score": 2}));
    assert_eq!((status, &problem["code"]), (503, &json!("overloaded")));
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(client.get(path).0, 200, "{path}");
    }

    assert!(shed(address) >= 3, "each that was turned away is counted");

    // A client that disconnects gives its permit back.
    drop(blocked);
    wait_until("there is room again", || client.get("/v1/boards/a").0 == 200);
    assert_eq!(client.get("/v1/boards/a/members/m").1["score"], 1, "what was shed was not applied");
    drop((bodies, waits));
}
