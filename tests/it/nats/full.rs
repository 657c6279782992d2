//! A full stream: the log, `/readyz`, `/v1/status` and refused writes say what holds its messages and what
//! makes room.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};

use crate::support::arena::{STREAM, SUBJECT, define, publish};
use crate::support::client::{Client, count_of};
use crate::support::delivery_link::DeliveryLink;
use crate::support::nats::{Nats, shard_status, wait_applied, wait_until};
use crate::support::node::Node;
use crate::support::raw::get;

const STREAM_MIB: u64 = 2;

/// A job with so much metadata that a few thousand of them fill a stream.
fn large_job() -> String {
    json!({ "board": "arena", "member": "m", "score": 1, "meta": { "m": "x".repeat(900) } }).to_string()
}

/// Publishes until the stream is full.
fn fill(nats: &Nats) {
    let body = format!("[{}]", vec![large_job(); 20].join(","));
    wait_until("the stream is full", || nats.try_publish(SUBJECT, body.as_bytes()).is_err());
    // Then publishes smaller messages.
    wait_until("the stream is full", || nats.try_publish(SUBJECT, large_job().as_bytes()).is_err());
}

fn stream_of(client: &Client) -> Value {
    shard_status(client, 0)["stream"].clone()
}

/// The answer to a write over HTTP.
fn refusal(client: &Client) -> String {
    let (mut refused, mut said) = (Value::Null, 0);
    // The write may be small enough for the room that is left.
    wait_until("a write is refused", || {
        let meta = json!({ "m": "x".repeat(900) });
        let path = "/v1/boards/arena/members/m?results=changed";
        (said, refused) = client.put(path, &json!({ "score": 1, "meta": meta }));
        said != 202
    });
    assert_eq!((said, &refused["code"]), (503, &"queue_full".into()), "{refused}");
    refused["detail"].as_str().expect("words").to_owned()
}

fn warnings(service: &Node) -> Vec<String> {
    let log = service.log();
    log.lines().filter(|line| line.contains("the stream is full or nearly full")).map(str::to_owned).collect()
}

fn ready(service: &Node) -> String {
    get(service.address(), "/readyz")
}

#[test]
fn a_stream_that_is_never_purged_is_reported_when_it_is_full_and_when_it_has_room_again() {
    let started = Instant::now();
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats)
        .stream_mib(STREAM_MIB)
        .flags(&["--nats-no-purge", "--checkpoint-seconds", "1"])
        .start();
    let client = service.client();
    define(&client, &json!({}));
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    wait_until("the stream was looked at", || stream_of(&client)["level"] == "roomy");
    let stream = stream_of(&client);
    assert_eq!((&stream["reason"], count_of(&stream["bytes_max"])), (&Value::Null, 2 << 20), "{stream}");
    assert_eq!(client.get("/v1/status").1["degraded"], false);
    assert!(ready(&service).ends_with("\r\n\r\nready\n"), "{}", ready(&service));

    fill(&nats);
    wait_until("the node says that it is full", || stream_of(&client)["level"] == "full");
    let status = client.get("/v1/status").1;
    assert_eq!((&status["ready"], &status["degraded"]), (&true.into(), &true.into()), "{status}");
    // After a checkpoint holds the messages, only the flag keeps them.
    wait_until("it says what holds it", || {
        count_of(&stream_of(&client)["held_by"]["keep"]["bytes"]) > 1 << 20
    });
    let said = refusal(&client);
    assert!(said.contains("without --nats-no-purge"), "{said}");
    assert!(
        said.contains("its stream is full") && said.contains(&format!("the stream {STREAM} holds")),
        "{said}"
    );
    // A node that answers reads stays in service.
    let said = ready(&service);
    assert!(
        said.starts_with("HTTP/1.1 200 ")
            && said.contains("\r\n\r\nready, degraded\nshard 0: its stream is full: "),
        "{said}"
    );
    let warned = warnings(&service);
    // It is said again once a minute.
    let most = 1 + usize::try_from(started.elapsed().as_secs() / 60).expect("small");
    assert!((1..=most).contains(&warned.len()), "{warned:?}");
    assert!(warned[0].contains("WARN") && warned[0].contains(STREAM), "{warned:?}");

    let last = nats.info(STREAM).state.last_sequence;
    wait_applied(&client, &[last]);
    nats.purge(STREAM, last);
    wait_until("it has room again", || stream_of(&client)["level"] == "roomy");
    assert!(ready(&service).ends_with("\r\n\r\nready\n"));
    assert!(service.log().contains("the stream has room again"), "{}", service.log());
    let (status, answer) = client.put("/v1/boards/arena/members/m?wait=applied", &json!({ "score": 2 }));
    assert_eq!(status, 200, "{answer}");
    assert!(service.terminate().success());
}

/// The link delivers nothing of the stream, so that all of it waits to be applied.
#[test]
fn a_full_stream_of_a_lagging_shard_is_reported_as_held_by_lag() {
    let nats = Nats::start();
    let link = DeliveryLink::start(nats.url().strip_prefix("nats://").expect("a URL"));
    link.pass_if(|_| true);
    let mut service = Node::with_nats(&link.url()).stream_mib(STREAM_MIB).start();
    let client = service.client();
    define(&client, &json!({}));
    let last = publish(&nats, "first");
    wait_applied(&client, &[last]);
    link.pass_if(move |delivery| delivery.stream != STREAM || delivery.stream_sequence <= last);
    fill(&nats);
    wait_until("lag holds most of it", || {
        let stream = stream_of(&client);
        stream["level"] == "full" && count_of(&stream["held_by"]["lag"]["bytes"]) > 1 << 20
    });
    let said = refusal(&client);
    assert!(said.contains("not applied yet (lag)"), "{said}");
    let reason = stream_of(&client)["reason"].as_str().expect("it is full").to_owned();
    let live = reason.contains("--nats-stream-mib") && reason.contains("let it catch up");
    assert!(live || reason.contains("does not apply messages"), "{reason}");
    assert!(!warnings(&service).is_empty(), "{}", service.log());
    link.pass_if(|_| true);
    wait_applied(&client, &[nats.info(STREAM).state.last_sequence]);
    wait_until("room is made once it is applied", || stream_of(&client)["level"] == "roomy");
    assert!(service.terminate().success());
}
