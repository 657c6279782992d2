//! Boards are cleared and trimmed with NATS: every replica and every replay has the same result, even if
//! nodes are killed.

use std::thread;

use async_nats::HeaderMap;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::exactness::removals::{bounds_change, clear_while_others_write};
use crate::support::client::{Client, count_of};
use crate::support::nats::{Nats, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::{Node, limit_files};

const SHARDS: u16 = 2;
const MEMBERS: usize = 8_000;
const KEPT: usize = 1_000;

/// What a client can read of a board: its entries in order, with all of their fields.
fn all_of(client: &Client, after: &str) -> Vec<Value> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = format!("limit=1000&cursor={cursor}&after={after}&timeout_ms=60000");
        let (status, page) = client.get(&format!("/v1/boards/arena/range?{page}"));
        assert_eq!(status, 200, "{page}");
        entries.extend(page["entries"].as_array().expect("a list").clone());
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return entries,
        }
    }
}

fn post(client: &Client, path: &str, body: Option<&Value>) -> (usize, String) {
    let (status, answer) = client.send(Method::POST, path, body).expect("it answers");
    assert_eq!(status, 200, "{answer}");
    let token = answer["token"].as_str().expect("text").to_owned();
    assert_eq!(token.split(',').count(), usize::from(SHARDS), "{answer}");
    (count_of(&answer["removed"]), token)
}

fn job(n: usize) -> Value {
    let (a, b) = (n % 700, n % 3);
    match n % 10 {
        0 => json!({ "board": "arena", "member": format!("m{n}"), "score": [a, b], "version": 5 }),
        1 => json!({ "board": "arena", "member": format!("m{n}"), "score": [a, b], "meta": { "n": n } }),
        _ => json!({ "board": "arena", "member": format!("m{n}"), "score": [a, b] }),
    }
}

#[test]
fn trims_and_clears_have_the_same_result_on_replicas_and_in_replays() {
    let nats = Nats::start();
    let start = || Node::with_nats(&nats).shards(SHARDS).flags(&["--nats-no-purge"]).start();
    let (mut one, mut two) = (start(), start());
    let keys = json!({ "keys": [{ "name": "points" }, { "name": "ms", "order": "asc" }] });
    assert_eq!(one.client().put("/v1/boards/arena", &keys).0, 201);
    let mut jobs: Vec<Value> = (0..MEMBERS).map(job).collect();
    jobs.extend(
        (0..MEMBERS)
            .step_by(50)
            .map(|n| json!({ "board": "arena", "member": format!("m{n}"), "op": "hide" })),
    );
    wait_applied(&one.client(), &nats.publish_jobs(SHARDS, &jobs, 100));
    let before = all_of(&one.client(), "0:0");
    assert_eq!(before.len(), MEMBERS - MEMBERS / 50);

    // One of the replicas is killed in the middle of it, and catches up completely.
    let trim = json!({ "positions_beyond": KEPT });
    let mut token = String::new();
    thread::scope(|scope| {
        let client = one.client();
        let trimming = scope.spawn(move || post(&client, "/v1/boards/arena:trim", Some(&trim)));
        let client = two.client();
        wait_until("some are gone", || {
            count_of(&client.get("/v1/boards/arena").1["totals"]["all"]) < before.len()
        });
        two.kill9();
        let (removed, trimmed) = trimming.join().expect("no panic");
        let hidden = removed - (before.len() - KEPT);
        assert!((1..=MEMBERS / 50).contains(&hidden), "{removed} went");
        token = trimmed;
    });
    two.restart();
    let left = all_of(&one.client(), &token);
    let ids = |entries: &[Value]| entries.iter().map(|entry| entry["member"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&left), ids(&before[..KEPT]));
    assert_eq!(all_of(&two.client(), &token), left);

    // A trim by a score's first key, on the other node. The versions of removed entries are remembered.
    let place = count_of(&left[KEPT / 2]["score"][0]);
    let stay = |entry: &&Value| count_of(&entry["score"][0]) >= place;
    let kept = left.iter().filter(stay).count();
    let (removed, token) =
        post(&two.client(), "/v1/boards/arena:trim", Some(&json!({ "worse_than": place })));
    // Hidden entries that were before the first place may be behind this one.
    assert!(removed >= left.len() - kept && kept < left.len(), "{removed}");
    let after_score = all_of(&two.client(), &token);
    assert_eq!(ids(&after_score), ids(&left[..kept]));
    assert_eq!(all_of(&one.client(), &token), after_score);
    let late = |version: u64| json!({ "score": [0, 0], "version": version });
    for node in [&one, &two] {
        let (status, answer) = node.client().put("/v1/boards/arena/members/m10?wait=applied", &late(5));
        assert_eq!((status, &answer["code"]), (409, &json!("stale_version")), "{answer}");
    }

    // The clear removes the effects of earlier jobs. Later jobs are applied, even with versions that are not
    // greater than earlier ones.
    nats.publish_jobs(SHARDS, &[json!({ "board": "arena", "member": "before", "score": [1, 1] })], 1);
    let (removed, token) = post(&one.client(), "/v1/boards/arena:clear", None);
    assert!(removed > 0);
    for node in [&one, &two] {
        assert!(all_of(&node.client(), &token).is_empty());
    }
    let (status, answer) = two.client().put("/v1/boards/arena/members/m10?wait=applied", &late(5));
    assert_eq!((status, &answer["changed"]), (200, &json!(true)), "{answer}");
    let token = answer["token"].as_str().expect("text").to_owned();

    // A node that begins with an empty directory has the same result from the streams alone, and so does a
    // restarted node.
    one.kill9();
    one.restart();
    let mut three = start();
    for node in [&one, &two, &three] {
        let entries = all_of(&node.client(), &token);
        assert_eq!(ids(&entries), [json!("m10")]);
        assert_eq!(node.client().get("/v1/boards/arena").1["keys"][1]["order"], "asc");
        let status = node.client().get("/v1/status").1;
        let rejects = status["shards"].as_array().expect("a list").iter().map(|s| count_of(&s["rejects"]));
        // Only the two late versions are rejected, and no command.
        assert_eq!(rejects.sum::<usize>(), 2, "{status}");
    }
    for node in [&mut one, &mut two, &mut three] {
        assert!(node.terminate().success());
        node.verify();
    }
}

#[test]
fn a_clear_removes_no_later_write() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(SHARDS).start();
    clear_while_others_write(&service);
    assert!(service.terminate().success());
    service.verify();
}

/// A command of a later version is neither rejected nor silently skipped, because replicas would differ then.
#[test]
fn an_unknown_command_halts_a_shard_until_the_operator_accepts_it() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).start();
    let client = service.client();
    wait_applied(
        &client,
        &[nats
            .publish("ranktree.jobs.0", json!({ "board": "arena", "member": "m", "score": 1 }).to_string())],
    );
    wait_until("its board is there", || client.get("/v1/boards/arena/members/m").0 == 200);
    let mut headers = HeaderMap::new();
    headers.insert("Ranktree-Command", "explode");
    nats.try_publish_with("ranktree.control.0", b"{}", headers).expect("it is stored");
    let last =
        nats.publish("ranktree.jobs.0", json!({ "board": "arena", "member": "m", "score": 2 }).to_string());
    let halted = |client: &Client| {
        wait_until("the shard is halted", || shard_status(client, 0)["state"] == "halted");
        let status = shard_status(client, 0);
        let reason = status["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("explode") && reason.contains("--accept-gap 0"), "{status}");
        assert_eq!(client.get("/v1/boards/arena/members/m").1["score"], 1);
        assert_eq!(count_of(&status["rejects"]), 0);
    };
    halted(&client);
    service.kill9();
    service.restart();
    halted(&service.client());
    assert!(service.terminate().success());
    service.restart_with(&["--accept-gap", "0"]);
    let client = service.client();
    wait_applied(&client, &[last]);
    assert_eq!(client.get("/v1/boards/arena/members/m").1["score"], 2);
    let status = shard_status(&client, 0);
    assert_eq!((count_of(&status["rejects"]), &status["state"]), (1, &json!("live")));
    assert!(service.terminate().success());
    service.verify();
}

/// A limit on file sizes of the running service simulates a full disk: the command is fetched and decoded,
/// but cannot be committed.
#[test]
fn an_unknown_command_stays_accepted_until_it_is_applied() {
    let mut nats = Nats::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    let mut service = Node::with_nats(&nats).at(&data).stream_mib(16).start();
    let job = |score: u32| json!({ "board": "arena", "member": "m", "score": score }).to_string();
    let last = nats.publish("ranktree.jobs.0", job(1));
    wait_applied(&service.client(), &[last]);
    wait_until("its board is there", || service.client().get("/v1/boards/arena/members/m").0 == 200);
    assert!(service.terminate().success());
    let mut headers = HeaderMap::new();
    headers.insert("Ranktree-Command", "explode");
    nats.try_publish_with("ranktree.control.0", b"{}", headers).expect("it is stored");
    let last = nats.publish("ranktree.jobs.0", job(2));
    nats.kill9();

    let mut service = Node::with_nats(&nats).at(&data).stream_mib(16).flags(&["--accept-gap", "0"]).start();
    limit_files(&service, "0");
    nats.restart();
    let client = service.client();
    wait_until("a commit has failed", || {
        shard_status(&client, 0)["reason"].as_str().is_some_and(|reason| reason.contains("a failed commit"))
    });
    limit_files(&service, "unlimited");
    wait_state(&client, 0, "live");
    wait_applied(&client, &[last]);
    assert_eq!(client.get("/v1/boards/arena/members/m").1["score"], 2);
    assert_eq!(count_of(&shard_status(&client, 0)["rejects"]), 1);
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn changed_bounds_are_the_same_on_every_node() {
    let nats = Nats::start();
    let start = || Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start();
    let (mut one, mut two) = (start(), start());
    bounds_change(&one.client());
    let key = |node: &Node| node.client().get("/v1/boards/bounded").1["keys"][0].clone();
    wait_until("the other node has them too", || key(&two)["max"] == 10);
    let (status, answer) =
        two.client().put("/v1/boards/bounded/members/m9?wait=applied", &json!({ "score": 11 }));
    assert_eq!((status, &answer["code"]), (409, &json!("out_of_range")), "{answer}");
    assert_eq!(key(&one), key(&two));
    for node in [&mut one, &mut two] {
        assert!(node.terminate().success());
        node.verify();
    }
}
