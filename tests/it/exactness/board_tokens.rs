//! Tokens of definitions and drops name every shard, even those where nothing had to be done. No token is
//! ever empty.

use std::fs;
use std::path::Path;
use std::process::Command;

use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::Client;
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;

const SHARDS: u16 = 3;

fn send(client: &Client, method: Method, path: &str) -> (u16, Value) {
    let body = (method == Method::PUT).then(|| json!({}));
    client.send(method, path, body.as_ref()).expect("the service is there")
}

/// Checks that the request succeeded, and that its token names every shard, each with a sequence that was
/// applied.
fn check_token(client: &Client, (status, answer): &(u16, Value), expected: u16) {
    assert_eq!(*status, expected, "{answer}");
    let token = answer["token"].as_str().unwrap_or_else(|| panic!("there is a token: {answer}"));
    let shards: Vec<(u16, u64)> = token
        .split(',')
        .map(|part| part.split_once(':').expect("shard:sequence"))
        .map(|(shard, sequence)| (shard.parse().expect("a shard"), sequence.parse().expect("a sequence")))
        .collect();
    assert_eq!(
        shards.iter().map(|part| part.0).collect::<Vec<_>>(),
        (0..SHARDS).collect::<Vec<_>>(),
        "{token}"
    );
    assert!(shards.iter().all(|part| part.1 > 0), "{token}");
    // A read can wait for the token, and the wait ends.
    let (status, waited) = client.get(&format!("/v1/boards?limit=1&timeout_ms=60000&after={token}"));
    assert_eq!(status, 200, "{token}: {waited}");
}

fn define_again_and_drop(client: &Client) {
    let (put, delete) =
        (|path: &str| send(client, Method::PUT, path), |path: &str| send(client, Method::DELETE, path));
    check_token(client, &put("/v1/boards/a"), 201);
    // Nothing changes.
    check_token(client, &put("/v1/boards/a"), 200);
    let (status, answer) = client.put("/v1/boards/a", &json!({ "keep": 3 }));
    check_token(client, &(status, answer), 200);
    // A board that a job created: on one shard without NATS, on all shards with NATS.
    let (status, answer) = client.put("/v1/boards/by-job/members/m?wait=applied", &json!({ "score": 1 }));
    assert_eq!(status, 200, "{answer}");
    check_token(client, &put("/v1/boards/by-job"), 200);
    check_token(client, &put("/v1/boards/by-job"), 200);
    for board in ["a", "by-job"] {
        check_token(client, &delete(&format!("/v1/boards/{board}")), 200);
        let (status, answer) = delete(&format!("/v1/boards/{board}"));
        assert_eq!((status, &answer["code"]), (404, &"unknown_board".into()), "{answer}");
        assert_eq!(answer["token"], Value::Null);
        // The next incarnation, right after the drop.
        check_token(client, &put(&format!("/v1/boards/{board}")), 201);
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("there is a cp").success());
}

#[test]
fn tokens_of_board_changes_name_every_shard_without_nats() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    let mut service = Node::at(&data).shards(SHARDS).start();
    define_again_and_drop(&service.client());
    check_token(&service.client(), &send(&service.client(), Method::PUT, "/v1/boards/cut"), 201);

    // A crash interrupts a drop and a definition: one shard has received neither.
    assert!(service.terminate().success());
    let (shard, aside) = (data.join("shard-001"), folder.path().join("aside"));
    copy(&shard, &aside);
    service.restart();
    let client = service.client();
    check_token(&client, &send(&client, Method::DELETE, "/v1/boards/cut"), 200);
    check_token(&client, &send(&client, Method::PUT, "/v1/boards/late"), 201);
    // The logs of the other shards still have the drop. It is forgotten once every shard has made it.
    service.kill9();
    fs::remove_dir_all(&shard).expect("it is there");
    copy(&aside, &shard);
    // It is an older copy, which stands for a shard that a crash has cut off.
    service.restart_with(&["--adopt", "1"]);
    let client = service.client();
    assert_eq!(client.get("/v1/boards/cut").0, 404, "it is dropped");
    check_token(&client, &send(&client, Method::PUT, "/v1/boards/late"), 200);
    check_token(&client, &send(&client, Method::PUT, "/v1/boards/cut"), 201);
    check_token(&client, &send(&client, Method::DELETE, "/v1/boards/cut"), 200);
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn tokens_of_board_changes_name_every_shard_with_nats_and_an_interrupted_drop_is_completed() {
    let nats = Nats::start();
    // The streams stay full.
    let mut service =
        Node::with_nats(&nats).shards(SHARDS).stream_mib(16).flags(&["--nats-no-purge"]).start();
    let client = service.client();
    define_again_and_drop(&client);
    let (cut, stream) = ("/v1/boards/cut", "RANKTREE_JOBS_1");
    check_token(&client, &send(&client, Method::PUT, cut), 201);
    // One of the streams is full, so the drop reaches only the other shards.
    let roomy = nats.info(stream).config;
    let state = nats.info(stream).state;
    let messages = i64::try_from(state.messages).expect("few");
    nats.update(&Config { max_messages: messages, ..roomy.clone() });
    for _ in 0..3 {
        let (status, answer) = send(&client, Method::DELETE, cut);
        assert_eq!(
            (status, &answer["code"]),
            (503, &"queue_full".into()),
            "it goes on, and cannot: {answer}"
        );
        assert_eq!(answer["token"], Value::Null);
    }
    // The drop is also completed after a crash in the middle of it.
    service.kill9();
    service.restart();
    let client = service.client();
    wait_until("boards can be decided again", || {
        let (status, answer) = send(&client, Method::DELETE, cut);
        assert_eq!(status, 503, "{answer}");
        answer["code"] == "queue_full"
    });
    nats.update(&roomy);
    // The node may have completed it by itself by now.
    let dropped = send(&client, Method::DELETE, cut);
    if dropped.0 == 404 {
        assert_eq!(dropped.1["code"], "unknown_board");
    } else {
        check_token(&client, &dropped, 200);
    }
    check_token(&client, &send(&client, Method::PUT, cut), 201);
    check_token(&client, &send(&client, Method::DELETE, cut), 200);
    assert!(service.terminate().success());
    service.verify();
}

/// If no job of a request was stored, the answer has no token.
#[test]
fn no_token_is_empty() {
    let nats = Nats::start();
    // The streams stay full.
    let mut service = Node::with_nats(&nats).stream_mib(16).flags(&["--nats-no-purge"]).start();
    let client = service.client();
    let jobs =
        json!([{ "board": "b", "member": "m", "score": 1 }, { "board": "b", "member": "n", "score": 1 }]);
    let (status, answer) = client.post("/v1/jobs?wait=applied", &jobs);
    assert_eq!(status, 200, "{answer}");
    assert!(answer["token"].as_str().is_some_and(|token| token.starts_with("0:")), "{answer}");
    let config = nats.info("RANKTREE_JOBS_0").config;
    let messages = i64::try_from(nats.info("RANKTREE_JOBS_0").state.messages).expect("few");
    nats.update(&Config { max_messages: messages, ..config });
    for wait in ["", "?wait=applied"] {
        let (status, answer) = client.post(&format!("/v1/jobs{wait}"), &jobs);
        assert_eq!((status, &answer["code"]), (503, &"queue_full".into()), "{answer}");
        assert_eq!(answer["results"].as_array().map(Vec::len), Some(2), "{answer}");
        assert_eq!(answer.get("token"), None, "{answer}");
    }
    assert!(service.terminate().success());
}
