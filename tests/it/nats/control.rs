//! A client that may publish jobs can do nothing else: commands about boards have a subject of their own, and
//! the server refuses headers that make it treat a message differently.

use async_nats::HeaderMap;
use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};

use crate::support::arena::{STREAM, SUBJECT};
use crate::support::client::{Client, count_of};
use crate::support::nats::{Nats, shard_status, wait_applied, wait_until};
use crate::support::node::Node;

const CONTROL: &str = "ranktree.control.0";

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.insert(*name, *value);
    }
    headers
}

fn job(score: i64) -> Vec<u8> {
    json!({ "board": "arena", "member": "m", "score": score }).to_string().into_bytes()
}

fn score(client: &Client) -> Value {
    client.get("/v1/boards/arena/members/m").1["score"].clone()
}

fn start(nats: &Nats) -> Node {
    let service = Node::with_nats(nats).start();
    let (status, answer) = service.client().put("/v1/boards/arena", &json!({ "policy": "best" }));
    assert_eq!(status, 201, "{answer}");
    service
}

#[test]
fn a_command_on_the_job_subject_is_a_malformed_job() {
    let nats = Nats::start();
    let mut service = start(&nats);
    let client = service.client();
    // The first message of the stream is the real command, which an attacker may have read.
    let real = nats.message(STREAM, 1);
    assert_eq!(real["board"], "arena");
    let mut other = real.clone();
    other["definition"]["policy"] = json!("incr");
    let mut later = other.clone();
    later["incarnation"] = json!(1_000);
    let drop = json!({ "board": "arena", "incarnation": real["incarnation"] });
    let mut last = 0;
    for (command, body) in [("define", &real), ("define", &other), ("define", &later), ("drop", &drop)] {
        let headers = headers(&[("Ranktree-Command", command)]);
        last = nats.try_publish_with(SUBJECT, body.to_string().as_bytes(), headers).expect("it is stored");
    }
    wait_applied(&client, &[last]);
    assert_eq!(client.get("/v1/boards/arena").1["policy"], "best");
    let status = shard_status(&client, 0);
    assert_eq!((count_of(&status["rejects"]), &status["state"]), (4, &json!("live")));
    // The header has no effect on a job, which is applied. On the subject of commands the same bytes are a
    // command.
    let header = || headers(&[("Ranktree-Command", "drop")]);
    last = nats.try_publish_with(SUBJECT, &job(5), header()).expect("it is stored");
    wait_applied(&client, &[last]);
    assert_eq!(score(&client), 5);
    last = nats.try_publish_with(CONTROL, drop.to_string().as_bytes(), header()).expect("it is stored");
    wait_applied(&client, &[last]);
    assert_eq!(count_of(&shard_status(&client, 0)["rejects"]), 4);
    assert_eq!(shard_status(&client, 0)["state"], "live");
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn an_undecodable_command_is_rejected_and_later_messages_are_applied() {
    let nats = Nats::start();
    let mut service = start(&nats);
    let client = service.client();
    for (command, body) in [("define", "{}"), ("drop", "nonsense"), ("trim", "{}"), ("free", "[]")] {
        let headers = headers(&[("Ranktree-Command", command)]);
        nats.try_publish_with(CONTROL, body.as_bytes(), headers).expect("it is stored");
    }
    // A job on the subject of commands is rejected. Only nodes may publish there, and they publish no jobs.
    nats.publish(CONTROL, job(5));
    let last = nats.publish(SUBJECT, job(7));
    wait_applied(&client, &[last]);
    assert_eq!(score(&client), 7);
    let status = shard_status(&client, 0);
    assert_eq!((count_of(&status["rejects"]), &status["state"]), (5, &json!("live")));
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn the_server_refuses_headers_that_ask_for_more_than_storing() {
    let nats = Nats::start();
    let mut service = start(&nats);
    let client = service.client();
    let last = nats.publish(SUBJECT, job(1));
    let drop = json!({ "board": "arena", "incarnation": 1 }).to_string();
    let command = ("Ranktree-Command", "drop");
    for (what, pairs) in [
        ("it would erase the log", &[("Nats-Rollup", "all")][..]),
        ("it would erase the jobs", &[("Nats-Rollup", "sub")]),
        ("it would vanish from the log", &[("Nats-TTL", "1s")]),
        ("it would become a number", &[("Nats-Incr", "+1")]),
        (
            "it would be stored on the control subject",
            &[("Nats-Schedule", "@at 2020-01-01T00:00:00Z"), ("Nats-Schedule-Target", CONTROL), command],
        ),
        (
            "it would come again for ever",
            &[("Nats-Schedule", "@every 1s"), ("Nats-Schedule-Target", SUBJECT)],
        ),
        ("it would wait for others", &[("Nats-Batch-Id", "b"), ("Nats-Batch-Sequence", "1")]),
        ("it is for another stream", &[("Nats-Expected-Stream", "RANKTREE_BOARDS")]),
        ("it is for another moment", &[("Nats-Expected-Last-Sequence", "999")]),
        ("it is for another moment", &[("Nats-Expected-Last-Msg-Id", "999")]),
    ] {
        let refused = nats.try_publish_with(SUBJECT, drop.as_bytes(), headers(pairs));
        assert!(refused.is_err(), "{what}: {pairs:?} {refused:?}");
    }
    let info = nats.info(STREAM);
    assert_eq!((info.state.first_sequence, info.state.last_sequence), (1, last), "nothing came or went");
    // A publisher that reuses another's message id keeps that message out for two minutes, and gets the
    // sequence of the first one.
    let id = || headers(&[("Nats-Msg-Id", "mine")]);
    let first = nats.try_publish_with(SUBJECT, &job(2), id()).expect("it is stored");
    assert_eq!(nats.try_publish_with(SUBJECT, &job(900), id()).expect("it is answered"), first);
    wait_applied(&client, &[first]);
    assert_eq!((score(&client), &shard_status(&client, 0)["state"]), (json!(2), &json!("live")));
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn a_stream_of_another_layout_is_refused_with_an_explanation() {
    let nats = Nats::start();
    let mut service = start(&nats);
    assert!(service.terminate().success());
    let config = nats.info(STREAM).config;
    nats.delete(STREAM);
    let mut metadata = config.metadata.clone();
    metadata.insert("ranktree-layout".to_owned(), "1".to_owned());
    nats.create(Config { subjects: vec![SUBJECT.to_owned()], metadata, ..config });
    let (status, words) = Node::with_nats(&nats).refusal();
    assert!(!status.success(), "{words}");
    for said in [STREAM, "another version of ranktree", "--prefix", CONTROL] {
        assert!(words.contains(said), "it does not say {said}: {words}");
    }
}

/// The server sends its acknowledgement to any subject that the publisher names, also to one that the
/// publisher may not publish to.
#[test]
fn a_reply_to_a_subject_where_only_nodes_publish_does_no_harm() {
    let nats = Nats::start();
    let mut service = start(&nats);
    let client = service.client();
    nats.publish(SUBJECT, "no job");
    wait_until("a reject is told", || nats.info("RANKTREE_REJECTS").state.messages == 1);
    let boards = || nats.info("RANKTREE_BOARDS").state.last_sequence;
    let before = boards();
    for (score, (reply, stream)) in (0..).zip([
        (CONTROL, STREAM),
        ("ranktree.boards.arena", "RANKTREE_BOARDS"),
        ("ranktree.boards.unheard", "RANKTREE_BOARDS"),
        ("ranktree.rejects.0", "RANKTREE_REJECTS"),
    ]) {
        let at = nats.info(stream).state.last_sequence;
        nats.publish_with_reply(SUBJECT, &job(score), reply);
        wait_until("the answer has arrived there", || nats.info(stream).state.last_sequence > at);
    }
    wait_until("the board's definition is said again", || boards() == before + 3);
    let (status, answer) = client.put("/v1/boards/arena", &json!({ "policy": "best" }));
    assert_eq!(status, 200, "it is what it was: {answer}");
    let (status, answer) = client.put("/v1/boards/unheard", &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");
    // Rejects continue where they were, none of them twice.
    nats.publish(SUBJECT, "still no job");
    wait_until("the next rejects are told", || nats.info("RANKTREE_REJECTS").state.messages == 4);
    let told: Vec<Value> = (1..=4).map(|sequence| nats.message("RANKTREE_REJECTS", sequence)).collect();
    let jobs: Vec<&Value> = told.iter().map(|told| &told["job"]).filter(|job| !job.is_null()).collect();
    assert!(jobs.len() == 3 && jobs[1]["stream"] == STREAM, "{told:?}");
    assert_eq!((jobs[0], jobs[2]), (&json!("no job"), &json!("still no job")));
    service.kill9();
    service.restart();
    let client = service.client();
    assert_eq!(client.get("/v1/boards/arena").1["policy"], "best");
    assert_eq!(client.get("/v1/boards/unheard").1["policy"], "incr");
    assert_eq!(shard_status(&client, 0)["state"], "live");
    assert!(service.terminate().success());
    service.verify();
}
