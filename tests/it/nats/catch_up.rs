//! A start with a long backlog: the node answers probes and stale reads meanwhile, and ends on a signal. One
//! that has nothing yet answers no read.

use std::process::Command;

use ranktree::types::{MemberId, ShardId, shard_of};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::arena::SUBJECT;
use crate::support::client::{Client, entry_path};
use crate::support::command;
use crate::support::nats::{Nats, applied, shard_status, wait_applied, wait_state, wait_until};
use crate::support::nats_server::free_port;
use crate::support::node::Node;
use crate::support::slow_link::SlowLink;

const MEMBERS: u64 = 100;
const METADATA_BYTES: usize = 1_000;
const MESSAGES: u64 = 900;
/// About ten messages a second. All of them take a minute and a half; a start waits for ten seconds.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// A part of the stream is applied, and the rest is not delivered yet.
fn check_is_behind(client: &Client, first: u64, last: u64) {
    wait_until("it is on its way", || {
        let status = shard_status(client, 0);
        let reason = status["reason"].as_str().unwrap_or_default().to_owned();
        reason.contains("messages behind the stream") && applied(client, 0) > first + 2
    });
    assert_eq!(client.get("/healthz").0, 200);
    assert_eq!(client.get("/metrics").0, 200);
    let (status, answer) = client.get("/readyz");
    assert_eq!((status, &answer["shards"][0]["state"]), (503, &json!("catching_up")), "{answer}");
    let (status, entry) = client.get(&entry_path("arena", "a"));
    assert_eq!((status, &entry["score"], &entry["stale"]), (200, &json!(1), &json!(true)), "{entry}");
    // Reads are exact as of the applied sequence: each message adds one to each of these members.
    let (_, top) = client.get("/v1/boards/arena/top?limit=1000");
    let at = top["as_of"].as_str().and_then(|as_of| as_of.strip_prefix("0:")).expect("one shard");
    let at: u64 = at.parse().expect("a sequence");
    assert!(first < at && at < last, "{at} is between {first} and {last}");
    let entries = top["entries"].as_array().expect("a list");
    let counts = entries.iter().filter(|entry| entry["member"] != "a").map(|entry| &entry["score"]);
    assert!(counts.clone().all(|count| *count == at - first), "{}", entries[0]);
    assert_eq!(top["stale"], true);
    // A read that asks for the last sequence waits, and gets 504.
    let (status, answer) = client.get(&format!("/v1/boards/arena?timeout_ms=50&after=0:{last}"));
    assert_eq!((status, &answer["code"]), (504, &json!("not_yet_applied")), "{answer}");
}

#[test]
fn a_node_that_is_catching_up_answers_and_ends_on_a_signal() {
    // The server must not disconnect a client because of a slow link.
    let nats = Nats::start_with("write_deadline: \"10m\"\n");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data_dir = folder.path().join("data");
    let mut service = Node::with_nats(&nats).at(&data_dir).start();
    let (status, answer) = service.client().put("/v1/boards/arena", &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");
    let first = nats.publish(SUBJECT, json!({"board": "arena", "member": "a", "score": 1}).to_string());
    wait_applied(&service.client(), &[first]);
    assert!(service.terminate().success());
    let filler = "x".repeat(METADATA_BYTES);
    let jobs: Vec<_> = (0..MEMBERS)
        .map(|m| json!({"board": "arena", "member": format!("m{m}"), "score": 1, "meta": {"m": filler}}))
        .collect();
    let body = Value::from(jobs).to_string();
    let last = (0..MESSAGES).map(|_| nats.publish(SUBJECT, &body)).last().expect("there are some");
    let url = nats.url();
    let link = SlowLink::start(url.strip_prefix("nats://").expect("a URL"), BYTES_PER_SECOND);
    let slow_url = format!("nats://{}", link.address());

    // The node listens before it prints its address. So the port is given, as an operator gives it.
    let listen = format!("127.0.0.1:{}", free_port());
    let path = data_dir.to_str().expect("UTF-8");
    let mut started =
        command::spawn(&["serve", "--listen", &listen, "--data-dir", path, "--nats", &slow_url]);
    let client = Client::new(&format!("http://{listen}"));
    wait_until("it answers", || {
        client.send(Method::GET, "/healthz", None).is_ok_and(|(status, _)| status == 200)
    });
    check_is_behind(&client, first, last);
    let before = applied(&client, 0);
    let kill = Command::new("sh").arg("-c").arg(format!("kill -TERM {}", started.id())).status();
    assert!(kill.expect("there is a shell").success());
    assert!(started.wait().expect("it ends").success(), "it was told to, in the middle of it");

    // The next start continues from there, and prints its address after ten seconds, although it is still
    // behind.
    let mut service = Node::with_nats(&slow_url).at(&data_dir).start();
    let client = service.client();
    check_is_behind(&client, first, last);
    assert!(applied(&client, 0) >= before, "nothing is applied twice");
    link.open();
    wait_applied(&client, &[last]);
    wait_state(&client, 0, "live");
    wait_until("it is ready", || client.get("/readyz").0 == 200);
    let (_, top) = client.get("/v1/boards/arena/top?limit=1000");
    let entries = top["entries"].as_array().expect("a list");
    let counts = entries.iter().filter(|entry| entry["member"] != "a").map(|entry| &entry["score"]);
    assert_eq!((counts.clone().count(), &top["stale"]), (100, &Value::Null));
    assert!(counts.clone().all(|count| *count == MESSAGES), "{}", entries[0]);
    assert!(service.terminate().success());
    service.verify();
}

/// What it would answer is of before everything: that nobody is there.
#[test]
fn a_node_that_begins_empty_answers_no_read_until_it_has_what_the_stream_has() {
    let nats = Nats::start_with("write_deadline: \"10m\"\n");
    let mut before = Node::with_nats(&nats).shards(2).start();
    let (status, answer) = before.client().put("/v1/boards/arena", &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");
    let members = (0..).map(|number| format!("m{number}"));
    let of_shard = |member: &String| shard_of(&MemberId::new(member).expect("a good id"), 2) == ShardId(0);
    let members: Vec<_> = members.filter(of_shard).take(100).collect();
    let filler = "x".repeat(METADATA_BYTES);
    let job = |member| json!({"board": "arena", "member": member, "score": 1, "meta": {"m": filler}});
    let body = Value::from(members.iter().map(job).collect::<Vec<_>>()).to_string();
    let last = (0..300).map(|_| nats.publish(SUBJECT, &body)).last().expect("there are some");
    wait_state(&before.client(), 0, "live");
    wait_until("all is applied", || applied(&before.client(), 0) == last);
    assert!(before.terminate().success());

    // All shards are in memory; or shards are asked one by one, and shard 0 has no other owner.
    let _other = Node::with_nats(&nats).shards(2).flags(&["--node", "other", "--own", "1"]).start();
    for own in [&["--node", "all"][..], &["--node", "one", "--own", "0"]] {
        let url = nats.url();
        let link = SlowLink::start(url.strip_prefix("nats://").expect("a URL"), BYTES_PER_SECOND);
        // Prints its address after ten seconds, although it is still behind.
        let slow_url = format!("nats://{}", link.address());
        let node = Node::with_nats(&slow_url).shards(2).flags(own).start();
        let client = node.client();
        let path = entry_path("arena", &members[0]);
        let (status, answer) = client.get(&path);
        assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{own:?}: {answer}");
        assert!(answer["detail"].as_str().expect("words").contains("still being filled"), "{answer}");
        assert_eq!(client.get("/v1/boards/arena/members/nobody").0, 503, "{own:?}");
        let progress = wait_state(&client, 0, "catching_up");
        assert!(progress.contains("messages behind the stream"), "{own:?}: {progress}");
        link.open();
        wait_state(&client, 0, "live");
        wait_until("it answers", || client.get(&path).0 == 200);
        let (_, entry) = client.get(&path);
        assert_eq!((&entry["score"], &entry["stale"]), (&json!(300), &Value::Null), "{own:?}: {entry}");
    }
}
