//! Jobs of every kind that come while their board is being dropped, without NATS. None is rejected for that:
//! it counts in the life of the board that ends, or begins the next one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, entry_path};
use crate::support::node::Node;
use crate::support::tokens::new_token;

const SHARDS: u16 = 4;
const DROPS: usize = 150;

/// What a client sends again and again.
type Sends = fn(&Client, round: usize);

/// Each job of a list, none of which may be rejected.
fn post(client: &Client, path: &str, jobs: &[Value]) {
    let (status, answer) = client.post(path, &jobs.into());
    assert_eq!(status, 200, "{answer}");
    for (job, result) in jobs.iter().zip(answer["results"].as_array().expect("a list")) {
        assert!(result.get("rejected").is_none(), "{job}: {result}");
    }
}

/// Of members on all shards.
fn member(round: usize, number: usize) -> String {
    format!("m{}", (round * 7 + number) % 40)
}

fn every_operation(client: &Client, round: usize) {
    let jobs: Vec<Value> = (0..5)
        .flat_map(|number| {
            let member = member(round, number);
            [
                json!({"board": "arena", "member": member, "score": 1}),
                json!({"board": "arena", "member": member, "score": 2, "op": "incr", "meta": {"car": "mx5"}}),
                json!({"board": "arena", "member": member, "score": 3, "op": "best"}),
                json!({"board": "arena", "member": member, "op": "hide"}),
                json!({"board": "arena", "member": member, "op": "show"}),
                json!({"board": "arena", "member": member, "op": "remove"}),
                json!({"member": member, "op": "remove"}),
            ]
        })
        .collect();
    post(client, "/v1/jobs?results=changed", &jobs);
}

fn several_boards_at_once(client: &Client, round: usize) {
    let job =
        |number| json!({"member": member(round, number), "scores": {"arena": 1, "lasting": 2, "arena2": 3}});
    let jobs: Vec<Value> = (0..8).map(job).collect();
    // With their entries, which other shards are asked for.
    post(client, "/v1/jobs", &jobs);
}

fn one_entry(client: &Client, round: usize) {
    let (status, answer) = client.put(&entry_path("arena", &member(round, 0)), &json!({"score": round}));
    assert_eq!(status, 200, "{answer}");
}

fn definitions(client: &Client, _: usize) {
    let (status, answer) =
        client.put("/v1/boards/arena", &json!({"windows": ["all", "day"], "movement": true}));
    // A job may have begun it with the defaults.
    assert!([200, 201, 409].contains(&status), "{answer}");
}

fn drop_board(client: &Client, board: &str) {
    let answer = client.send(Method::DELETE, &format!("/v1/boards/{board}"), None);
    let (status, answer) = answer.expect("the service is there");
    assert!([200, 404].contains(&status), "{answer}");
}

/// Drops the boards again and again while clients send.
fn drop_while(operator: &Client, senders: &[(Client, Sends)]) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for (client, send) in senders {
            let stop = &stop;
            scope.spawn(move || {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    send(client, round);
                }
            });
        }
        for _ in 0..DROPS {
            drop_board(operator, "arena");
            drop_board(operator, "arena2");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let (status, answer) = operator.get("/v1/rejects?reason=unknown_board");
    assert_eq!((status, &answer["rejects"]), (200, &json!([])));
}

#[test]
fn no_kind_of_job_is_rejected_because_its_board_is_being_dropped() {
    let mut node = Node::shards(SHARDS).start();
    let senders: [(Client, Sends); 4] = [
        (node.client(), every_operation),
        (node.client(), several_boards_at_once),
        (node.client(), one_entry),
        (node.client(), definitions),
    ];
    drop_while(&node.client(), &senders);
    assert!(node.terminate().success());
    node.verify();
}

/// Boards that such a token's jobs would create are defined before its jobs are sent.
#[test]
fn jobs_of_a_token_with_a_limit_on_boards_are_not_rejected_during_a_drop_either() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let (operator, of_operator) = new_token(&["--name", "operator", "--scope", "admin"]);
    let limits = ["--board-prefix", "arena", "--board-prefix", "lasting", "--max-boards", "3"];
    let game = [&["--name", "game", "--scope", "write"][..], &limits].concat();
    let (game, of_game) = new_token(&game);
    std::fs::write(&file, format!("{of_operator}\n{of_game}")).expect("it can be written");
    let node = Node::shards(SHARDS).flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    let client = || node.client().with_token(&game);
    let senders: [(Client, Sends); 2] = [(client(), several_boards_at_once), (client(), one_entry)];
    drop_while(&node.client().with_token(&operator), &senders);
    let (status, boards) = node.client().with_token(&operator).get("/v1/boards");
    assert_eq!(status, 200, "{boards}");
    assert!(boards["boards"].as_array().expect("a list").len() <= 3, "{boards}");
}
