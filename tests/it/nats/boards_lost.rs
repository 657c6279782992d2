//! The boards' stream is lost, and with it the records of all boards. The shards still hold the boards, and
//! no entries are lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::jetstream::stream::Config;
use parking_lot::Mutex;
use ranktree::state::REMEMBERED_MAX;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, Reply, count_of};
use crate::support::delivery_link::{DeliveryAction, DeliveryLink};
use crate::support::nats::{Nats, wait_applied, wait_state, wait_until};
use crate::support::node::Node;

const SHARDS: u16 = 3;
const STREAM: &str = "RANKTREE_BOARDS";
const MEMBERS: usize = 30;

/// Deletes the stream and creates it again, with the same settings, but numbered from 1.
fn lose(nats: &Nats) {
    let config = nats.info(STREAM).config;
    nats.delete(STREAM);
    nats.create(Config { first_sequence: None, ..config });
}

fn start(nats: &Nats) -> Node {
    Node::with_nats(nats).shards(SHARDS).stream_mib(16).start()
}

/// The answer to a definition or a drop, once boards can be decided.
fn decide(client: &Client, method: &Method, board: &str, definition: Option<&Value>) -> Reply {
    let path = format!("/v1/boards/{board}");
    let mut answer = (0, Value::Null);
    wait_until("boards can be decided", || {
        answer = client.send(method.clone(), &path, definition).expect("it answers");
        answer.0 != 503
    });
    answer
}

fn score_all(nats: &Nats, client: &Client, board: &str, score: i64) {
    let jobs: Vec<_> =
        (0..MEMBERS).map(|n| json!({ "board": board, "member": format!("m{n}"), "score": score })).collect();
    wait_applied(client, &nats.publish_jobs(SHARDS, &jobs, 5));
}

fn total(client: &Client, board: &str) -> usize {
    count_of(&client.get(&format!("/v1/boards/{board}/top?limit=1")).1["total"])
}

fn names_every_shard(answer: &Value) {
    let token = answer["token"].as_str().unwrap_or_else(|| panic!("a token: {answer}"));
    let named: Vec<_> = token.split(',').filter_map(|part| Some(part.split_once(':')?.0)).collect();
    assert_eq!(named, ["0", "1", "2"], "{answer}");
}

#[test]
fn a_board_that_is_defined_again_after_the_stream_was_lost_keeps_its_entries() {
    let nats = Nats::start();
    let mut service = start(&nats);
    let best = json!({ "policy": "best" });
    let (status, answer) = service.client().put("/v1/boards/arena", &best);
    assert_eq!(status, 201, "{answer}");
    names_every_shard(&answer);
    score_all(&nats, &service.client(), "arena", 5);
    // The stream is lost while the service runs, and while it is stopped.
    for stops in [false, true, false] {
        if stops {
            service.kill9();
        }
        lose(&nats);
        if stops {
            service.restart();
        }
        let client = service.client();
        let (status, answer) = decide(&client, &Method::PUT, "arena", Some(&best));
        assert_eq!((status, &answer["policy"]), (200, &json!("best")), "stops: {stops}: {answer}");
        names_every_shard(&answer);
        assert_eq!(total(&client, "arena"), MEMBERS, "stops: {stops}");
        let other = decide(&client, &Method::PUT, "arena", Some(&json!({ "ties": "last" })));
        assert_eq!(other.0, 409, "{}", other.1);
        wait_until("the stream knows it again", || nats.info(STREAM).state.messages == 1);
    }
    score_all(&nats, &service.client(), "arena", 3);
    let (_, top) = service.client().get("/v1/boards/arena/top?limit=1");
    assert_eq!(top["entries"][0]["score"], 5, "the policy is what it was: {top}");
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn a_board_that_is_dropped_after_the_stream_was_lost_is_removed_and_can_be_created_again() {
    let nats = Nats::start();
    let mut service = start(&nats);
    // Incarnations are numbered by the stream. Those of the new stream begin far below the old ones.
    for number in 0..20 {
        let (status, answer) = service.client().put(&format!("/v1/boards/b{number}"), &json!({}));
        assert_eq!(status, 201, "{answer}");
    }
    for defined_again in [true, false] {
        let client = service.client();
        score_all(&nats, &client, "b19", 7);
        assert_eq!(total(&client, "b19"), MEMBERS);
        lose(&nats);
        if defined_again {
            let (status, answer) = decide(&client, &Method::PUT, "b19", Some(&json!({})));
            assert_eq!(status, 200, "{answer}");
        }
        let (status, answer) = decide(&client, &Method::DELETE, "b19", None);
        assert_eq!(status, 200, "{answer}");
        names_every_shard(&answer);
        assert_eq!(client.get("/v1/boards/b19/top").0, 404);
        service.kill9();
        service.restart();
        let client = service.client();
        assert_eq!(client.get("/v1/boards/b19/top").0, 404);
        // The next incarnation must be a later one for every shard, or its entries would never be applied.
        let (status, answer) = decide(&client, &Method::PUT, "b19", Some(&json!({})));
        assert_eq!((status, &answer["totals"]["all"]), (201, &json!(0)), "{answer}");
    }
    score_all(&nats, &service.client(), "b19", 1);
    assert_eq!(total(&service.client(), "b19"), MEMBERS);
    assert!(service.terminate().success());
    service.verify();
}

/// The service itself decides boards that jobs need. It must not begin an incarnation that a shard has
/// already, either.
#[test]
fn lost_boards_are_published_again_before_jobs_create_any() {
    const BOARDS: usize = 500;
    let nats = Nats::start();
    let mut service = start(&nats);
    let job = |board: String, score: i64| json!({ "board": board, "member": "m", "score": score });
    let known = |score| (0..BOARDS).map(move |n| job(format!("b{n}"), score)).collect::<Vec<_>>();
    let listed =
        |client: &Client| client.get("/v1/boards?limit=1000").1["boards"].as_array().map_or(0, Vec::len);
    let score_of = |client: &Client, board: usize| {
        client.get(&format!("/v1/boards/b{board}/members/m")).1["score"].clone()
    };
    nats.publish_jobs(SHARDS, &known(1), 100);
    let client = service.client();
    wait_until("all boards are there", || {
        listed(&client) == BOARDS && (0..BOARDS).all(|board| score_of(&client, board) == 1)
    });
    service.kill9();
    nats.delete(STREAM);
    let jobs: Vec<_> = known(2).into_iter().chain([job("new".to_owned(), 2)]).collect();
    let last = nats.publish_jobs(SHARDS, &jobs, 100);
    service.restart();
    let client = service.client();
    wait_applied(&client, &last);
    wait_until("the stream knows all", || {
        nats.info(STREAM).state.messages == 1 + u64::try_from(BOARDS).expect("few")
    });
    wait_until("the new board is there", || client.get("/v1/boards/new/members/m").1["score"] == 2);
    for board in 0..BOARDS {
        assert_eq!(score_of(&client, board), 2, "b{board}");
    }
    assert!(service.terminate().success());
    service.verify();
}

/// Only the service creates the stream again.
#[test]
fn a_deleted_boards_stream_is_created_again_while_the_service_runs() {
    let nats = Nats::start();
    let mut service = start(&nats);
    let client = service.client();
    assert_eq!(client.put("/v1/boards/arena", &json!({})).0, 201);
    score_all(&nats, &client, "arena", 5);
    nats.delete(STREAM);
    wait_until("the stream is there again", || {
        nats.try_info(STREAM).is_some_and(|info| info.state.messages == 1)
    });
    let (status, answer) = decide(&client, &Method::PUT, "other", Some(&json!({})));
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = decide(&client, &Method::PUT, "arena", Some(&json!({})));
    assert_eq!((status, total(&client, "arena")), (200, MEMBERS), "{answer}");
    assert!(service.terminate().success());
    service.verify();
}

/// This version cannot read a record of a newer version, and does not overwrite it.
#[test]
fn a_record_that_cannot_be_read_is_not_overwritten() {
    let nats = Nats::start();
    let mut service = start(&nats);
    assert_eq!(service.client().put("/v1/boards/arena", &json!({})).0, 201);
    score_all(&nats, &service.client(), "arena", 5);
    service.kill9();
    let newer = json!({ "incarnation": 1, "definition": { "policy": "newest" } });
    let sequence = nats.publish("ranktree.boards.arena", newer.to_string());
    service.restart();
    let client = service.client();
    let (status, answer) = decide(&client, &Method::PUT, "other", Some(&json!({})));
    assert_eq!(status, 201, "{answer}");
    assert_eq!(total(&client, "arena"), MEMBERS);
    let (status, answer) = client.put("/v1/boards/arena", &json!({}));
    assert_eq!(status, 503, "{answer}");
    assert_eq!(nats.message(STREAM, sequence), newer);
    assert!(service.terminate().success());
    service.verify();
}

/// If a connection is lost, messages in flight are lost with it.
#[test]
fn records_that_do_not_arrive_are_read_again() {
    let nats = Nats::start();
    let link = DeliveryLink::start(nats.url().strip_prefix("nats://").expect("a URL"));
    let nodes = [nats.url(), link.url()].map(|url| Node::with_nats(&url).start());
    let [one, two] = nodes.each_ref().map(Node::client);
    assert_eq!(one.put("/v1/boards/first", &json!({})).0, 201);
    wait_until("the other one hears of boards", || two.get("/v1/boards/first").0 == 200);
    let mut withheld = 1;
    link.pass_if(move |delivery| {
        let is_withheld = delivery.stream == STREAM && withheld > 0;
        withheld -= usize::from(is_withheld);
        !is_withheld
    });
    for board in ["second", "third"] {
        assert_eq!(one.put(&format!("/v1/boards/{board}"), &json!({})).0, 201);
    }
    for board in ["third", "second"] {
        wait_until(board, || two.get(&format!("/v1/boards/{board}")).0 == 200);
    }
    for mut node in nodes {
        assert!(node.terminate().success());
        node.verify();
    }
}

/// While the stream is read from its beginning, the service knows how many messages follow. It waits again
/// for a late message, and reads the stream again if one is lost. Nothing is decided before all were read.
#[test]
fn late_records_are_waited_for_and_lost_ones_are_read_again() {
    let nats = Nats::start();
    let link = DeliveryLink::start(nats.url().strip_prefix("nats://").expect("a URL"));
    let mut service = Node::with_nats(&link.url()).start();
    assert_eq!(service.client().put("/v1/boards/first", &json!({})).0, 201);
    for action in [DeliveryAction::Delay, DeliveryAction::Drop] {
        service.kill9();
        let (consumers, seen) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(Mutex::new(false)));
        let (noting, meeting) = (Arc::clone(&consumers), Arc::clone(&seen));
        link.decide(move |delivery| {
            if delivery.stream != STREAM {
                return DeliveryAction::Pass;
            }
            noting.lock().insert(delivery.consumer.clone());
            // When the stream is read again, its messages are late again, but none is lost again.
            let is_met = std::mem::replace(&mut *meeting.lock(), true);
            if action == DeliveryAction::Drop && is_met { DeliveryAction::Pass } else { action }
        });
        service.restart();
        let client = service.client();
        wait_until("the stream is read", || *seen.lock());
        let (status, answer) = decide(&client, &Method::PUT, "first", Some(&json!({})));
        assert_eq!(status, 200, "{answer}");
        let readers = if action == DeliveryAction::Delay { 1 } else { 2 };
        assert_eq!(consumers.lock().len(), readers, "{action:?}");
        link.pass_if(|_| true);
    }
    assert!(service.terminate().success());
    service.verify();
}

/// A halted shard has never applied the drop of a board. The stream and the other shards have forgotten that
/// drop. If the halted shard were asked which boards exist, the board would be created again everywhere.
#[test]
fn boards_that_only_a_halted_shard_holds_are_not_published_again() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(2).start();
    let client = service.client();
    assert_eq!(client.put("/v1/boards/gone", &json!({ "policy": "best" })).0, 201);
    let jobs = |board: &str| -> Vec<_> {
        (0..MEMBERS).map(|n| json!({ "board": board, "member": format!("m{n}"), "score": 1 })).collect()
    };
    wait_applied(&client, &nats.publish_jobs(2, &jobs("gone"), 1));
    let life = nats.info(STREAM).state.last_sequence;
    assert!(service.terminate().success());
    // Another node drops the board, and then more boards than the running shard remembers. The other shard
    // misses the purged messages.
    let drop = |shard: u16, board: String, life: u64| {
        let mut headers = HeaderMap::new();
        headers.insert("Ranktree-Command", "drop");
        let drop = json!({ "board": board, "incarnation": life }).to_string();
        (format!("ranktree.control.{shard}"), headers, drop)
    };
    let others =
        (1..=REMEMBERED_MAX).map(|n| drop(1, format!("gone-{n}"), life + u64::try_from(n).expect("it fits")));
    nats.publish_all([drop(1, "gone".to_owned(), life)].into_iter().chain(others));
    let missed = nats.publish_all([drop(0, "gone".to_owned(), life)]);
    nats.publish("ranktree.control.0", "no command");
    nats.purge("RANKTREE_JOBS_0", missed + 1);
    lose(&nats);
    service.restart_with(&["--nats-halt-seconds", "1"]);
    let client = service.client();
    wait_state(&client, 0, "halted");
    // A board that jobs want is decided once the stream was compared with the shards.
    nats.publish_jobs(2, &jobs("other"), 1);
    let listed = |board: &str| client.get(&format!("/v1/boards/{board}/top?limit=1")).1["total"].as_u64();
    wait_until("the other board is there", || listed("other") > Some(0));
    let info = nats.info(STREAM).state;
    let records = nats.messages(STREAM, info.first_sequence, usize::try_from(info.messages).expect("few"));
    assert!(records.len() == 1 && records[0]["definition"]["policy"] != "best", "{records:?}");
    assert_eq!(client.get("/v1/boards/gone").0, 404);
    service.kill9();
    service.verify();
}

/// A shard's stream of jobs was created again and holds a drop, which the shard applies under another
/// sequence because of the rebase.
#[test]
fn a_drop_in_a_rebased_stream_counts_before_lost_boards_are_published_again() {
    const JOBS: &str = "RANKTREE_JOBS_0";
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).start();
    let client = service.client();
    for (board, policy) in [("arena", "best"), ("gone", "incr")] {
        assert_eq!(client.put(&format!("/v1/boards/{board}"), &json!({ "policy": policy })).0, 201);
    }
    let job = |n: usize| json!({ "board": "arena", "member": format!("m{}", n % MEMBERS), "score": n });
    let jobs: Vec<_> = (0..30_000).map(job).collect();
    wait_applied(&client, &nats.publish_jobs(1, &jobs[..100], 1));
    let life = nats.info(STREAM).state.last_sequence;
    assert!(service.terminate().success());
    let config = nats.info(JOBS).config;
    nats.delete(JOBS);
    nats.create(config);
    nats.publish_jobs(1, &jobs, 1);
    let mut headers = HeaderMap::new();
    headers.insert("Ranktree-Command", "drop");
    let drop = json!({ "board": "gone", "incarnation": life }).to_string();
    nats.try_publish_with("ranktree.control.0", drop.as_bytes(), headers).expect("it is stored");
    lose(&nats);
    service.restart_with(&["--accept-gap", "0"]);
    let client = service.client();
    let (status, answer) = decide(&client, &Method::PUT, "other", Some(&json!({ "policy": "set" })));
    assert_eq!(status, 201, "{answer}");
    assert_eq!((client.get("/v1/boards/gone").0, total(&client, "arena")), (404, MEMBERS));
    let count = usize::try_from(nats.info(STREAM).state.messages).expect("few");
    let records = nats.messages(STREAM, 1, count);
    assert!(records.iter().any(|record| record["definition"]["policy"] == "best"), "{records:?}");
    assert!(records.iter().all(|record| record["definition"]["policy"] != "incr"), "{records:?}");
    assert!(service.terminate().success());
    service.verify();
}

/// A node was killed after it decided the drop of a board, and before the drop reached the shards. After the
/// next start, readers get 404 as soon as the decision is known, and entries that are written after that are
/// kept.
#[test]
fn entries_written_after_an_interrupted_drop_are_kept() {
    let nats = Nats::start();
    let mut service = start(&nats);
    for round in 0..5 {
        let (board, client) = (format!("b{round}"), service.client());
        assert_eq!(client.put(&format!("/v1/boards/{board}"), &json!({})).0, 201);
        score_all(&nats, &client, &board, 5);
        let life = nats.info(STREAM).state.last_sequence;
        service.kill9();
        nats.publish(&format!("ranktree.boards.{board}"), json!({ "incarnation": life }).to_string());
        service.restart();
        let client = service.client();
        wait_until("the drop is known", || client.get(&format!("/v1/boards/{board}")).0 == 404);
        let path = format!("/v1/boards/{board}/members/late");
        let put = || client.put(&format!("{path}?wait=applied"), &json!({ "score": 1 }));
        let mut answer = put();
        // Only after the shard takes writes and boards can be decided.
        wait_until("it is written", || {
            if answer.0 != 200 {
                answer = put();
            }
            answer.0 == 200
        });
        let (_, written) = answer;
        assert_eq!(written["previous"], Value::Null, "{written}");
        let token = written["token"].as_str().expect("a token").to_owned();
        assert_eq!(client.get(&format!("{path}?after={token}")).1["score"], 1);
        wait_until("its shards have heard of everything", || total(&client, &board) == 1);
        // Another job, after all messages that were still in flight.
        assert_eq!(
            client.put(&format!("/v1/boards/{board}/members/last?wait=applied"), &json!({ "score": 2 })).0,
            200
        );
        assert_eq!((client.get(&path).1["score"].clone(), total(&client, &board)), (json!(1), 2));
    }
    assert!(service.terminate().success());
    service.verify();
}
