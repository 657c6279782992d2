//! Writes over HTTP to a service that is fed by NATS.

use std::path::Path;
use std::thread;

use serde_json::{Value, json};

use crate::support::binary::Binary;
use crate::support::client::{Client, entry_path};
use crate::support::nats::Nats;

fn start(nats: &Nats, data: &Path, shards: u16) -> Binary {
    Binary::start(data, shards, &["--nats", &nats.url(), "--nats-stream-mib", "16"])
}

fn define_arena(client: &Client) {
    let (status, answer) = client.put("/v1/boards/arena", &json!({}));
    assert_eq!(status, 201, "{answer}");
}

#[test]
fn http_writes_are_published_and_their_tokens_are_stream_sequences() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut service = start(&nats, &folder.path().join("data"), 3);
    let client = service.client();
    define_arena(&client);
    let (status, answer) = client.put(&entry_path("arena", "alice"), &json!({ "score": 7 }));
    assert_eq!(status, 202, "{answer}");
    let token = answer["token"].as_str().expect("a token");
    let (shard, sequence) = token.split_once(':').expect("a shard and a sequence");
    let stream = format!("RANKTREE_JOBS_{shard}");
    assert_eq!(nats.info(&stream).state.last_sequence.to_string(), sequence);
    let (status, answer) = client.get(&format!("{}?after={token}", entry_path("arena", "alice")));
    assert_eq!((status, answer["score"].clone()), (200, json!(7)), "{answer}");
    let jobs: Vec<_> = (0..500)
        .map(|n| json!({ "board": "arena", "member": format!("m{n}"), "score": n, "meta": { "n": n } }))
        .collect();
    let (status, answer) = client.post("/v1/jobs?wait=applied", &Value::from(jobs.clone()));
    assert_eq!(status, 200, "{answer}");
    let results = answer["results"].as_array().expect("one per job");
    assert_eq!(results.len(), 500);
    assert!(results.iter().enumerate().all(|(n, result)| result["entry"]["score"] == n), "{answer}");
    assert_eq!(results[9]["entry"]["meta"], json!({ "n": 9 }));
    let (status, answer) = client.post("/v1/jobs", &Value::from(jobs));
    assert_eq!((status, answer.get("results")), (202, None), "{answer}");
    // What can be judged at once refuses all of it.
    let (status, answer) =
        client.post("/v1/jobs", &json!([{ "board": "arena", "member": "x", "score": 1 }, {}]));
    assert_eq!((status, answer["errors"][0]["index"].clone()), (422, json!(1)), "{answer}");
    // What takes the state to judge is told to who waits.
    let path = format!("{}?wait=applied", entry_path("arena", "alice"));
    let (status, answer) = client.put(&path, &json!({ "score": [1, 2] }));
    assert_eq!((status, answer["code"].clone()), (409, json!("bad_score")), "{answer}");
    assert!(service.terminate().success());
    service.verify();
}

const CLIENTS: usize = 16;
const WRITES: usize = 50;

#[test]
fn writes_of_the_same_moment_share_messages_and_each_is_told_of_its_own() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut service = start(&nats, &folder.path().join("data"), 1);
    define_arena(&service.client());
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let client = service.client();
            scope.spawn(move || (0..WRITES).for_each(|turn| write_and_check(&client, number, turn)));
        }
    });
    let messages = nats.info("RANKTREE_JOBS_0").state.last_sequence;
    let jobs = u64::try_from(CLIENTS * WRITES).expect("small");
    assert!(messages < jobs, "{messages} messages for {jobs} jobs");
    let (status, answer) = service.client().get(&entry_path("arena", "m0-2"));
    assert_eq!((status, &answer["total"]), (200, &json!(CLIENTS * WRITES * 4 / 5)), "{answer}");
    assert!(service.terminate().success());
    service.verify();
}

const ROUNDS: i64 = 20;
/// Of one member, in one request: they fill several messages.
const IN_ORDER: i64 = 200;

#[test]
fn jobs_of_one_request_are_applied_in_their_order_whatever_shares_their_messages() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let url = nats.url();
    let arguments = ["--nats", &url, "--nats-stream-mib", "64", "--http-threads", "4"];
    let mut service = Binary::start(&folder.path().join("data"), 1, &arguments);
    define_arena(&service.client());
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let client = service.client();
            scope.spawn(move || {
                let member = format!("m{number}");
                for round in 0..ROUNDS {
                    let scores = (round * IN_ORDER..).take(usize::try_from(IN_ORDER).expect("small"));
                    let jobs: Vec<_> = scores
                        .map(|score| json!({ "board": "arena", "member": member, "score": score }))
                        .collect();
                    let (status, answer) = client.post("/v1/jobs", &Value::from(jobs));
                    assert_eq!(status, 202, "{answer}");
                    let token = answer["token"].as_str().expect("a token");
                    let path = format!("{}?after={token}", entry_path("arena", &member));
                    let (status, answer) = client.get(&path);
                    let last = (round + 1) * IN_ORDER - 1;
                    assert_eq!((status, &answer["score"]), (200, &json!(last)), "{answer}");
                }
            });
        }
    });
    assert!(service.terminate().success());
    service.verify();
}

fn write_and_check(client: &Client, number: usize, turn: usize) {
    let member = format!("m{number}-{turn}");
    let path = entry_path("arena", &member);
    let score = number * WRITES + turn;
    match turn % 5 {
        // The state says that this is no score of the board's.
        0 => {
            let (status, answer) =
                client.put(&format!("{path}?wait=applied"), &json!({ "score": [score, 2] }));
            assert_eq!((status, answer["code"].clone()), (409, json!("bad_score")), "{answer}");
            assert_eq!(client.get(&path).0, 404);
        }
        1 => {
            let jobs =
                [score, score + 1].map(|score| json!({ "board": "arena", "member": member, "score": score }));
            let (status, answer) = client.post("/v1/jobs?wait=applied", &json!(jobs));
            assert_eq!(status, 200, "{answer}");
            for (result, job) in answer["results"].as_array().expect("one per job").iter().zip(&jobs) {
                assert_eq!(result["entry"]["score"], job["score"], "{answer}");
                assert_eq!(result["entry"]["member"], *member, "{answer}");
            }
        }
        2 | 3 => {
            let (status, answer) = client.put(&format!("{path}?wait=applied"), &json!({ "score": score }));
            assert_eq!((status, &answer["entry"]["score"]), (200, &json!(score)), "{answer}");
            assert_eq!(answer["entry"]["member"], *member, "{answer}");
        }
        _ => {
            let (status, answer) = client.put(&path, &json!({ "score": score }));
            assert_eq!(status, 202, "{answer}");
            let token = answer["token"].as_str().expect("a token");
            let (status, answer) = client.get(&format!("{path}?after={token}"));
            assert_eq!((status, &answer["score"]), (200, &json!(score)), "{answer}");
        }
    }
}
