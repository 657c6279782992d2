//! The data directory is moved, replaced or deleted while a service runs: nothing more is answered, and
//! nothing is written or deleted in the directory that is at the path now.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{Client, entry_path, score_of};
use crate::support::command::run;
use crate::support::node::Node;

const WITHIN: Duration = Duration::from_secs(60);
/// Checkpoints all the time: they delete and create files.
const CHECKPOINTS: [&str; 4] = ["--checkpoint-seconds", "1", "--checkpoint-changes", "1"];

#[test]
fn moved_directory_is_left_whole_and_so_is_another_one_in_its_place() {
    let mut first = Node::flags(&CHECKPOINTS).start();
    let client = first.client();
    let (path, moved) = (first.data_dir().to_owned(), first.data_dir().with_extension("moved"));
    assert_eq!(write_many(&client, "a", 1).0, 200);
    fs::rename(&path, &moved).expect("it can be moved");
    let mut second = Node::at(&path).flags(&CHECKPOINTS).start();
    // Without a write, too, the service notices that its directory is gone.
    wait_until_halted(&client);
    for round in 2..6 {
        assert_eq!(write_many(&second.client(), "b", round).0, 200);
        let (status, refused) = write_many(&client, "a", round);
        assert_eq!(status, 503, "{refused}");
        assert!(refused.to_string().contains("no longer leads to the directory"), "{refused}");
        wait_for_a_checkpoint(&second.client());
    }
    let (status, answer) = client.get(&entry_path("a", "m1"));
    assert_eq!((status, &answer["stale"]), (200, &json!(true)), "reads are answered: {answer}");

    assert!(first.terminate().success());
    second.kill9();
    second.verify();
    second.restart();
    assert_eq!(score(&second.client(), "b"), 5);
    assert_eq!(second.client().get("/v1/boards/a").0, 404);
    assert!(second.terminate().success());
    verify(&moved);
    let back = Node::at(&moved).start();
    assert_eq!(score(&back.client(), "a"), 1);
}

#[test]
fn directory_that_is_put_back_is_taken_up_again() {
    let mut node = Node::flags(&CHECKPOINTS).start();
    let client = node.client();
    let (path, moved) = (node.data_dir().to_owned(), node.data_dir().with_extension("moved"));
    assert_eq!(write_many(&client, "a", 1).0, 200);
    fs::rename(&path, &moved).expect("it can be moved");
    wait_until_halted(&client);
    assert!(!path.exists(), "nothing is created in its place");
    fs::rename(&moved, &path).expect("it can be moved");
    let until = Instant::now() + WITHIN;
    while client.get("/readyz").0 != 200 {
        assert!(Instant::now() < until, "{:?}", client.get("/v1/status"));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(write_many(&client, "a", 2).0, 200);
    node.kill9();
    node.verify();
    node.restart();
    assert_eq!(score(&node.client(), "a"), 2);
}

#[test]
fn after_its_directory_was_deleted_a_service_answers_no_write() {
    let mut node = Node::flags(&CHECKPOINTS).start();
    let client = node.client();
    assert_eq!(write_many(&client, "a", 1).0, 200);
    // The checkpoint may make a file while it goes on.
    while let Err(error) = fs::remove_dir_all(node.data_dir()) {
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "{error}");
    }
    let (status, refused) = write_many(&client, "a", 2);
    assert_eq!(status, 503, "{refused}");
    wait_until_halted(&client);
    assert!(node.terminate().success());
    assert!(!node.data_dir().exists(), "nothing is created in its place");
}

fn write_many(client: &Client, board: &str, score: i64) -> (u16, Value) {
    let jobs: Vec<Value> = (0..300)
        .map(|number| json!({ "board": board, "member": format!("m{number}"), "score": score }))
        .collect();
    client.post("/v1/jobs?wait=applied", &Value::from(jobs))
}

fn score(client: &Client, board: &str) -> i64 {
    let (status, board_of) = client.get(&format!("/v1/boards/{board}"));
    assert_eq!((status, &board_of["totals"]["all"]), (200, &json!(300)), "{board_of}");
    score_of(&client.get(&entry_path(board, "m299")).1["score"])[0]
}

fn wait_until_halted(client: &Client) {
    let until = Instant::now() + WITHIN;
    loop {
        let shard = client.get("/v1/status").1["shards"][0].clone();
        if shard["state"] == "halted" {
            let reason = shard["reason"].as_str().expect("a halted shard says why").to_owned();
            assert!(reason.contains("no longer leads to the directory"), "{reason}");
            assert_eq!(client.get("/readyz").0, 503);
            return;
        }
        assert!(Instant::now() < until, "{shard}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn wait_for_a_checkpoint(client: &Client) {
    let until = Instant::now() + WITHIN;
    loop {
        let shard = client.get("/v1/status").1["shards"][0].clone();
        if shard["checkpoint_sequence"] == shard["applied_sequence"] {
            return;
        }
        assert!(Instant::now() < until, "{shard}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn verify(data_dir: &Path) {
    let verified = run("verify", data_dir);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
