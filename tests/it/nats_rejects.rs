//! Rejects: of every kind, told once by two nodes that are killed meanwhile, and listed by `ranktree rejects`.

use std::collections::{BTreeMap, BTreeSet};

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};

use crate::support::binary::{Binary, run};
use crate::support::client::count_of;
use crate::support::nats::{Nats, shard_status, wait_applied, wait_until};

const SHARDS: u16 = 2;
const SUBJECT: &str = "ranktree.jobs.0";
const REJECTS: &str = "RANKTREE_REJECTS";
const ROUNDS: usize = 4;

/// A message with one bad job each, and why. `closed_window` is not among them: only windows have it.
fn bad_messages() -> Vec<(Vec<u8>, &'static str)> {
    let home =
        |member: &String| shard_of(&MemberId::new(member.as_str()).expect("a good id"), SHARDS).index();
    let mut members = (0..50).map(|number| format!("m{number}"));
    let member = members.find(|member| home(member) == 0).expect("one of fifty");
    let stranger = members.find(|member| home(member) == 1).expect("one of fifty");
    let job = |job: Value| job.to_string().into_bytes();
    vec![
        (b"\xff not JSON".to_vec(), "malformed"),
        (job(json!({ "board": "arena", "member": member, "score": 1, "op": "double" })), "malformed"),
        (job(json!({ "board": "nowhere", "member": member, "score": 1 })), "unknown_board"),
        (job(json!({ "board": "arena", "member": "", "score": 1 })), "bad_member"),
        (job(json!({ "board": "arena", "member": member, "score": 1.5 })), "bad_score"),
        (job(json!({ "board": "arena", "member": member, "score": 11 })), "out_of_range"),
        (
            job(json!([
                { "board": "wide", "member": member, "score": i64::MAX.to_string() },
                { "board": "wide", "member": member, "score": 1, "op": "incr" }
            ])),
            "overflow",
        ),
        (
            job(json!([
                { "board": "arena", "member": member, "score": 2, "version": u64::MAX },
                { "board": "arena", "member": member, "score": 3, "version": 7 }
            ])),
            "stale_version",
        ),
        (job(json!({ "board": "arena", "member": stranger, "score": 1 })), "wrong_shard"),
        (
            job(
                json!({ "board": "arena", "member": member, "score": 1, "meta": { "m": "x".repeat(2_000) } }),
            ),
            "too_large",
        ),
    ]
}

/// Rejects as they are published and listed, by their place.
fn by_place(rejects: impl Iterator<Item = Value>) -> BTreeMap<(usize, usize), Value> {
    let mut places = BTreeMap::new();
    for reject in rejects {
        let place = (count_of(&reject["sequence"]), count_of(&reject["index"]));
        assert_eq!(reject["shard"], 0);
        assert_eq!(places.insert(place, reject), None, "{place:?} is told twice");
    }
    places
}

#[test]
fn rejects_of_every_kind_are_told_once_by_two_nodes_and_listed() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let url = nats.url();
    let arguments = ["--nats", &url, "--nats-stream-mib", "16", "--no-auto-create"];
    let mut nodes = ["one", "two"].map(|name| Binary::start(&folder.path().join(name), SHARDS, &arguments));
    for (board, definition) in
        [("arena", json!({ "keys": [{ "name": "score", "min": 0, "max": 10 }] })), ("wide", json!({}))]
    {
        let (status, answer) = nodes[0].client().put(&format!("/v1/boards/{board}"), &definition);
        assert_eq!(status, 201, "{answer}");
    }
    let mut expected = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut last = 0;
        for (bytes, reason) in bad_messages() {
            last = nats.publish(SUBJECT, &bytes);
            // Of two jobs the second is the bad one; the first is too, once it has set its version before.
            let index = usize::from(bytes.starts_with(b"["));
            let sequence = usize::try_from(last).expect("small");
            expected.insert((sequence, index), reason);
            if reason == "stale_version" && round > 0 {
                expected.insert((sequence, 0), reason);
            }
        }
        // One of the nodes is killed while it may be telling, or has not begun to.
        let (node, other) = (round % 2, (round + 1) % 2);
        if round >= 2 {
            wait_applied(&nodes[node].client(), &[last, 0]);
        }
        nodes[node].kill9();
        wait_applied(&nodes[other].client(), &[last, 0]);
        nodes[node].restart();
        wait_applied(&nodes[node].client(), &[last, 0]);
    }
    wait_until("all rejects are told", || {
        count_of(&json!(nats.info(REJECTS).state.messages)) >= expected.len()
    });
    for node in &nodes {
        assert_eq!(count_of(&shard_status(&node.client(), 0)["rejects"]), expected.len());
        assert_eq!(count_of(&shard_status(&node.client(), 0)["parked"]), 0);
    }
    // One more, which comes after whatever either node still has to tell.
    let last = nats.publish(SUBJECT, "the last");
    expected.insert((usize::try_from(last).expect("small"), 0), "malformed");
    let told = || count_of(&json!(nats.info(REJECTS).state.messages));
    wait_until("the last one is told", || {
        let end = nats.info(REJECTS).state.last_sequence;
        nats.message(REJECTS, end)["sequence"] == last
    });
    assert_eq!(told(), expected.len());
    let end = nats.info(REJECTS).state.last_sequence;
    let published = by_place((1..=end).map(|sequence| nats.message(REJECTS, sequence)));
    let reasons: BTreeMap<_, _> = published
        .iter()
        .map(|(place, reject)| (*place, reject["reason"].as_str().expect("a code")))
        .collect();
    assert_eq!(reasons, expected);
    assert_eq!(expected.values().collect::<BTreeSet<_>>().len(), 9);
    assert!(
        published.values().all(|reject| reject["detail"].as_str().is_some_and(|detail| !detail.is_empty()))
    );
    for node in &mut nodes {
        assert!(node.terminate().success());
        node.verify();
        let listed = run("rejects", node.data_dir());
        assert!(listed.status.success());
        let lines = String::from_utf8(listed.stdout).expect("it is text");
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect();
        let newest_first =
            lines.windows(2).all(|pair| pair[0]["sequence"].as_u64() >= pair[1]["sequence"].as_u64());
        assert!(newest_first, "{lines:?}");
        assert_eq!(by_place(lines.into_iter()), published);
    }
}
