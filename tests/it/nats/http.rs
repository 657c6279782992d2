//! Writes over HTTP to a service that is fed by NATS.

use std::thread;

use serde_json::{Value, json};

use crate::support::arena::define;
use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;
use crate::support::raw::ask;

#[test]
fn http_writes_are_published_and_their_tokens_are_stream_sequences() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(3).stream_mib(16).start();
    let client = service.client();
    define(&client, &json!({}));
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
    // A job that is invalid in any state refuses the whole request.
    let (status, answer) =
        client.post("/v1/jobs", &json!([{ "board": "arena", "member": "x", "score": 1 }, {}]));
    assert_eq!((status, answer["errors"][0]["index"].clone()), (422, json!(1)), "{answer}");
    // A client that waits learns that a job was rejected because of the current state.
    let path = format!("{}?wait=applied", entry_path("arena", "alice"));
    let (status, answer) = client.put(&path, &json!({ "score": [1, 2] }));
    assert_eq!((status, answer["code"].clone()), (409, json!("bad_score")), "{answer}");
    assert!(service.terminate().success());
    service.verify();
}

const CLIENTS: usize = 16;
const WRITES: usize = 50;

#[test]
fn concurrent_writes_share_messages_and_each_gets_its_own_result() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).start();
    define(&service.client(), &json!({}));
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
/// Jobs of one member in one request, which fill several messages.
const IN_ORDER: i64 = 200;

#[test]
fn jobs_of_one_request_keep_their_order_when_they_share_messages_with_others() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(64).flags(&["--http-threads", "4"]).start();
    define(&service.client(), &json!({}));
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

/// One message's jobs, and the score that each brings: its place in the request.
const PER_MESSAGE: i64 = 64;

#[test]
fn jobs_behind_a_refused_one_of_their_member_are_not_applied() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).start();
    let client = service.client();
    define(&client, &json!({}));
    // The server refuses the second message only, after it has stored the first one, and while the third one
    // has arrived already.
    let mut stream = nats.info("RANKTREE_JOBS_0").config;
    stream.max_message_size = 32 << 10;
    nats.update(&stream);
    let job = |score: i64| {
        let is_second = score / PER_MESSAGE == 1;
        let text = if is_second { "x".repeat(900) } else { String::new() };
        json!({ "board": "arena", "member": "m", "score": score, "meta": { "text": text } })
    };
    let jobs: Vec<_> = (0..3 * PER_MESSAGE).map(job).collect();
    for wait in ["", "?wait=applied"] {
        let (status, answer) = client.post(&format!("/v1/jobs{wait}"), &Value::from(jobs.clone()));
        assert_eq!(status, 503, "{answer}");
        let results = answer["results"].as_array().expect("one per job");
        let failed: Vec<bool> = results.iter().map(|result| result["failed"].is_string()).collect();
        let expected: Vec<bool> = (0..3 * PER_MESSAGE).map(|place| place >= PER_MESSAGE).collect();
        assert_eq!(failed, expected, "{answer}");
        // Everything that was sent is applied before this job.
        let (status, other) =
            client.put(&format!("{}?wait=applied", entry_path("arena", "other")), &json!({ "score": 1 }));
        assert_eq!(status, 200, "{other}");
        let (status, entry) = client.get(&entry_path("arena", "m"));
        assert_eq!((status, &entry["score"]), (200, &json!(PER_MESSAGE - 1)), "{entry}");
    }
    // Jobs of other members are not delayed by it.
    let others = jobs.iter().enumerate().map(|(place, job)| {
        let mut job = job.clone();
        job["member"] = json!(format!("m{place}"));
        job
    });
    let (status, answer) = client.post("/v1/jobs?wait=applied", &others.collect());
    assert_eq!(status, 503, "{answer}");
    let results = answer["results"].as_array().expect("one per job");
    let applied = results.iter().filter(|result| result["changed"] == json!(true)).count();
    assert_eq!(i64::try_from(applied), Ok(2 * PER_MESSAGE), "{answer}");
    assert!(service.terminate().success());
    service.verify();
}

/// Text that would change if it were parsed and written again.
const META: &str = r#"{"id":123456789012345678901234567890,"price":1.10,"k":1,"k":2,"e":1E2,"u":"\u0001"}"#;

#[test]
fn metadata_keeps_its_text_over_http_and_in_parked_jobs() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).start();
    let address = service.address().to_owned();
    let send = |method: &str, path: &str, body: &str| {
        let length = body.len();
        let head = "host: localhost\r\nconnection: close";
        ask(
            &address,
            &format!("{method} {path} HTTP/1.1\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}"),
        )
    };
    // The boards are new: the jobs wait for them.
    let said = send("PUT", "/v1/boards/new/members/m", &format!(r#"{{"score":1,"meta":{META}}}"#));
    assert!(said.starts_with("HTTP/1.1 202"), "{said}");
    nats.publish("ranktree.jobs.0", format!(r#"{{"board":"newer","member":"m","score":1,"meta":{META}}}"#));
    for board in ["new", "newer"] {
        let mut said = String::new();
        wait_until("the board is there", || {
            said = send("GET", &format!("/v1/boards/{board}/members/m"), "");
            said.starts_with("HTTP/1.1 200")
        });
        assert!(said.contains(&format!("\"meta\":{META}")), "{said}");
    }
    // In the second round the boards exist, and the jobs do not wait.
    let said =
        send("PUT", "/v1/boards/new/members/n?wait=applied", &format!(r#"{{"score":1,"meta":{META}}}"#));
    assert!(said.starts_with("HTTP/1.1 200") && said.contains(&format!("\"meta\":{META}")), "{said}");
    let said = send("GET", "/v1/boards/new/members/n", "");
    assert!(said.contains(&format!("\"meta\":{META}")), "{said}");
    assert!(service.terminate().success());
    service.verify();
}

fn write_and_check(client: &Client, number: usize, turn: usize) {
    let member = format!("m{number}-{turn}");
    let path = entry_path("arena", &member);
    let score = number * WRITES + turn;
    match turn % 5 {
        // The job is rejected because the board has another number of keys.
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
