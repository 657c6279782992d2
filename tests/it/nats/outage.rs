//! NATS is down or stalls, or the service stalls: the service answers reads from its data, reports the
//! reason, and continues afterwards.

use std::fs;

use serde_json::{Value, json};

use crate::support::arena::{STREAM, SUBJECT};
use crate::support::client::{Client, entry_path};
use crate::support::command::signal;
use crate::support::nats::{Nats, shard_status, wait_applied, wait_state, wait_until};
use crate::support::nats_server::free_port;
use crate::support::node::Node;

/// Reads are answered and marked stale. Refused writes and readiness give the reason.
fn check_serves_what_it_has(client: &Client) {
    let reason = wait_state(client, 0, "catching_up");
    assert!(reason.contains("NATS") || reason.contains("stream") || reason.contains("delivery"), "{reason}");
    let (status, entry) = client.get(&entry_path("arena", "a"));
    assert_eq!((status, &entry["score"], &entry["stale"]), (200, &json!(1), &json!(true)), "{entry}");
    let (status, answer) = client.get("/readyz");
    assert_eq!((status, &answer["shards"][0]["state"]), (503, &json!("catching_up")), "{answer}");
    assert_ne!(answer["shards"][0]["reason"], Value::Null, "{answer}");
    assert_eq!(client.get("/healthz").0, 200);
    for path in [entry_path("arena", "b"), format!("{}?wait=applied", entry_path("arena", "b"))] {
        let (status, answer) = client.put(&path, &json!({ "score": 2 }));
        assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{answer}");
        assert!(answer["detail"].as_str().is_some_and(|detail| detail.contains("NATS")), "{answer}");
    }
    let (status, answer) = client.put("/v1/boards/other", &json!({}));
    assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{answer}");
}

/// Answers to others cannot be sent then, and are not waited for.
#[test]
fn a_node_that_ends_while_nats_is_away_has_nothing_to_wait_for() {
    let mut nats = Nats::start();
    let mut service = Node::with_nats(&nats).start();
    wait_state(&service.client(), 0, "live");
    nats.kill9();
    wait_state(&service.client(), 0, "catching_up");
    assert!(service.terminate().success());
    assert!(!service.log().contains("were not answered before the shutdown"), "{}", service.log());
}

#[test]
fn a_service_without_nats_serves_stored_data_and_connects_when_nats_starts() {
    let mut nats = Nats::start();
    let mut service = Node::with_nats(&nats).start();
    let (status, answer) = service.client().put("/v1/boards/arena", &json!({}));
    assert_eq!(status, 201, "{answer}");
    let job =
        |member: &str, score: i64| json!({ "board": "arena", "member": member, "score": score }).to_string();
    wait_applied(&service.client(), &[nats.publish(SUBJECT, job("a", 1))]);
    assert!(service.terminate().success());

    nats.kill9();
    // `start` waits until the service is ready, so the service does not wait for NATS.
    service.restart();
    check_serves_what_it_has(&service.client());
    nats.restart();
    wait_until("it is ready", || service.client().get("/readyz").0 == 200);
    assert_eq!(shard_status(&service.client(), 0)["reason"], Value::Null);
    let path = format!("{}?wait=applied", entry_path("arena", "b"));
    let (status, answer) = service.client().put(&path, &json!({ "score": 2 }));
    assert_eq!((status, &answer["entry"]["rank"]), (200, &json!(1)), "{answer}");
    assert_eq!(service.client().get(&entry_path("arena", "a")).1["stale"], Value::Null);

    // While it runs, twice.
    for round in 0..2 {
        nats.kill9();
        check_serves_what_it_has(&service.client());
        nats.restart();
        wait_state(&service.client(), 0, "live");
        let member = format!("m{round}");
        let sequence = nats.publish(SUBJECT, job(&member, 5));
        wait_applied(&service.client(), &[sequence]);
        assert_eq!(service.client().get(&entry_path("arena", &member)).0, 200);
    }
    assert!(service.terminate().success());
    service.verify();
}

/// The most memory that a process ever had in use, in MiB.
fn memory_peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is running");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

const MEMBERS: usize = 900;
/// Nearly the largest payload that the server takes.
const METADATA_BYTES: usize = 1_000;
const MESSAGES: u64 = 600;
/// Under the size of the messages, and enough for what is in flight at once and for the storage's own
/// buffers, of which a busy machine makes it need more: 180 to 257 were seen, and 310 beside two busy loops.
const MEMORY_MIB: u64 = 450;

/// The service is paused for so long that NATS disconnects it, while far more is published than the service
/// may hold in memory. Then NATS is paused for so long that the service disconnects.
#[test]
fn a_service_that_was_too_slow_for_nats_catches_up_within_bounds() {
    let monitor = free_port();
    let settings = format!("write_deadline: \"200ms\"\nhttp: \"127.0.0.1:{monitor}\"\n");
    let nats = Nats::start_with(&settings);
    let mut service = Node::with_nats(&nats).stream_mib(1024).start();
    let client = service.client();
    let (status, answer) = client.put("/v1/boards/arena", &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");
    let filler = "x".repeat(METADATA_BYTES);
    let jobs: Vec<_> = (0..MEMBERS)
        .map(|member| {
            json!({ "board": "arena", "member": format!("m{member}"), "score": 1, "meta": { "m": filler } })
        })
        .collect();
    let body = Value::from(jobs).to_string();
    wait_applied(&client, &[nats.publish(SUBJECT, &body)]);
    let before = memory_peak(service.pid());

    signal("STOP", service.pid());
    let mut last = 0;
    for _ in 1..MESSAGES {
        last = nats.publish(SUBJECT, &body);
    }
    let monitor = Client::new(&format!("http://127.0.0.1:{monitor}"));
    wait_until("NATS has given up on it", || {
        monitor.get("/varz").1["slow_consumers"].as_u64().is_some_and(|count| count > 0)
    });
    signal("CONT", service.pid());
    wait_applied(&client, &[last]);
    wait_state(&client, 0, "live");
    check_counts(&client, MESSAGES);
    let (after, published) =
        (memory_peak(service.pid()), (u64::try_from(body.len()).expect("small") * MESSAGES) >> 20);
    println!("memory: {before} MiB before, {after} MiB at most, with {published} MiB published");
    assert!(published > MEMORY_MIB + 50, "{published} MiB would fit");
    assert!(after - before < MEMORY_MIB, "{after} MiB after {before} MiB, with {published} MiB published");

    signal("STOP", nats.pid());
    let reason = wait_state(&client, 0, "catching_up");
    assert!(!reason.is_empty());
    signal("CONT", nats.pid());
    last = nats.publish(SUBJECT, &body);
    wait_applied(&client, &[last]);
    wait_state(&client, 0, "live");
    check_counts(&client, MESSAGES + 1);
    assert_eq!(nats.info(STREAM).state.last_sequence, last);
    assert!(service.terminate().success());
    service.verify();
}

fn check_counts(client: &Client, count: u64) {
    let (status, top) = client.get("/v1/boards/arena/top?limit=1000");
    assert_eq!(status, 200, "{top}");
    let entries = top["entries"].as_array().expect("a list");
    assert_eq!(entries.len(), MEMBERS);
    assert!(entries.iter().all(|entry| entry["score"] == count), "{}", entries[0]["score"]);
}
