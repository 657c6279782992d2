//! Rejects of every kind: two nodes, which are killed meanwhile, publish each once, and `ranktree rejects`
//! lists them.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::jetstream::stream::Config;
use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::arena::SUBJECT;
use crate::support::client::count_of;
use crate::support::command::run;
use crate::support::nats::{Nats, shard_status, wait_applied, wait_until};
use crate::support::node::Node;

const SHARDS: u16 = 2;
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
fn two_nodes_publish_rejections_of_every_kind_once_and_list_them() {
    let nats = Nats::start();
    let mut nodes = [(); 2]
        .map(|()| Node::with_nats(&nats).shards(SHARDS).stream_mib(16).flags(&["--no-auto-create"]).start());
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
            // The second of the two jobs is bad. The first one is rejected, too, if it is applied again,
            // because of its version.
            let index = usize::from(bytes.starts_with(b"["));
            let sequence = usize::try_from(last).expect("small");
            expected.insert((sequence, index), reason);
            if reason == "stale_version" && round > 0 {
                expected.insert((sequence, 0), reason);
            }
        }
        // One of the nodes is killed while it may be publishing, or before it begins.
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
    // One more reject, which is published after all that either node still has to publish.
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

/// The stream of rejects keeps what other members have, also where a removed one is named behind the part of
/// a job that is kept, and what comes after the removal.
#[test]
fn rejects_of_a_removed_member_leave_the_stream_of_rejects() {
    let nats = Nats::start();
    let mut nodes = [(); 2].map(|()| Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start());
    let members = members();
    let [gone, other] = &members;
    let long = |member: &str| {
        let filler = "x".repeat(6_000);
        format!(r#"{{"board":"arena","meta":{{"m":"{filler}"}},"score":true,"member":"{member}"}}"#)
    };
    let kept = || nats.stored(REJECTS);
    let of = |member: &str| kept().iter().filter(|reject| reject.to_string().contains(member)).count();
    let mut published = 0;
    for member in &members {
        // On the shard of the member, on the other one, which refuses it, and within a message of several.
        for subject in ["ranktree.jobs.0", "ranktree.jobs.1"] {
            let both = format!("[{},{}]", bad_job(member), bad_job("somebody"));
            for body in [bad_job(member), long(member), both] {
                nats.publish(subject, body);
            }
            published += 4;
        }
    }
    wait_until("all are published", || kept().len() == published);
    let before = (of(gone), of(other));
    assert_eq!(before, (6, 6));
    let client = nodes[0].client();
    let (status, answer) =
        client.send(Method::DELETE, &format!("/v1/members/{gone}?wait=applied"), None).expect("an answer");
    assert_eq!(status, 200, "{answer}");
    wait_until("they have left the stream", || of(gone) == 0);
    assert_eq!((of(other), kept().len()), (6, published - 6));
    // What comes later is kept, also over a restart.
    nats.publish("ranktree.jobs.0", bad_job(gone));
    wait_until("the new one is published", || of(gone) == 1);
    for node in &mut nodes {
        assert!(node.terminate().success());
        node.restart();
    }
    nats.publish("ranktree.jobs.0", bad_job(other));
    wait_until("the next one is published", || of(other) == 7);
    assert_eq!(of(gone), 1);
}

fn bad_job(member: &str) -> String {
    json!({ "board": "arena", "member": member, "score": "1200 points" }).to_string()
}

/// Members of each shard.
fn members() -> [String; 2] {
    [0, 1].map(|shard| {
        let home =
            |member: &String| shard_of(&MemberId::new(member.as_str()).expect("a good id"), SHARDS).index();
        let mut members = (0..50).map(|number| format!("m{number}"));
        members.find(|member| home(member) == shard).expect("one of fifty")
    })
}

/// Too many to be published one by one in time, and more than a store keeps of published rejects.
#[test]
fn a_burst_of_rejections_is_published_completely_in_order_and_once() {
    const MESSAGES: usize = 30;
    const JOBS: usize = 1_000;
    let nats = Nats::start();
    let mut nodes = [(); 2].map(|()| Node::with_nats(&nats).shards(SHARDS).stream_mib(64).start());
    let bodies = members().map(|member| format!("[{}]", vec![bad_job(&member); JOBS].join(",")));
    let mut last = [0; 2];
    for _ in 0..MESSAGES {
        for (shard, body) in bodies.iter().enumerate() {
            last[shard] = nats.publish(&format!("ranktree.jobs.{shard}"), body);
        }
    }
    // One of the nodes is killed while it publishes.
    nodes[0].kill9();
    nodes[0].restart();
    let rejects = MESSAGES * JOBS * usize::from(SHARDS);
    let told = || count_of(&json!(nats.info(REJECTS).state.messages));
    wait_until("all rejects are told", || told() >= rejects);
    for node in &nodes {
        wait_applied(&node.client(), &last);
    }
    let mut next = [(1, 0); 2];
    for reject in nats.messages(REJECTS, 1, rejects) {
        let shard = count_of(&reject["shard"]);
        let place = (count_of(&reject["sequence"]), count_of(&reject["index"]));
        assert_eq!(place, next[shard], "of shard {shard}");
        next[shard] = if place.1 + 1 < JOBS { (place.0, place.1 + 1) } else { (place.0 + 1, 0) };
    }
    assert_eq!(next, [(MESSAGES + 1, 0); 2]);
    assert_eq!(told(), rejects);
    for node in &mut nodes {
        assert!(node.terminate().success());
    }
}

/// The stream discards old rejects of any shard.
#[test]
fn rejections_are_not_published_again_when_the_stream_has_discarded_the_last_one() {
    let nats = Nats::start();
    let mut node = Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start();
    let [quiet, busy] = members().map(|member| bad_job(&member));
    for _ in 0..5 {
        nats.publish("ranktree.jobs.0", &quiet);
    }
    let end = || nats.info(REJECTS).state.last_sequence;
    wait_until("the quiet shard's are told", || end() == 5);
    nats.update(&Config { max_bytes: 4_000, ..nats.info(REJECTS).config });
    for _ in 0..50 {
        nats.publish("ranktree.jobs.1", &busy);
    }
    wait_until("the busy shard's are told", || end() == 55);
    assert!(nats.info(REJECTS).state.first_sequence > 6, "the quiet shard's are gone");
    node.kill9();
    node.restart();
    let last = nats.publish("ranktree.jobs.0", &quiet);
    wait_until("the new one is told", || end() > 55);
    wait_applied(&node.client(), &[last, 50]);
    let told = nats.message(REJECTS, 56);
    assert_eq!((&told["shard"], &told["sequence"]), (&json!(0), &json!(last)));
    // One more reject, which would be published after any repeated ones.
    let last = nats.publish("ranktree.jobs.0", &quiet);
    wait_until("it is told", || end() > 56);
    assert_eq!(nats.message(REJECTS, 57)["sequence"], last);
    assert!(node.terminate().success());
}

/// Whoever is erased may have been sent to another shard by mistake, as a job or as something that is none.
#[test]
fn rejects_of_jobs_that_were_sent_to_another_shard_are_erased_too() {
    let nats = Nats::start();
    let start = |own: &str| Node::with_nats(&nats).shards(3).stream_mib(16).flags(&["--own", own]).start();
    let (home, mut other) = (start("1"), start("0,2"));
    let home_of = |member: &str| shard_of(&MemberId::new(member).expect("a good id"), 3).index();
    let member = (0..50).map(|number| format!("p{number}")).find(|member| home_of(member) == 1);
    let member = member.expect("one of fifty");
    let sent = |member: &str| {
        let job = json!({ "board": "b", "member": member, "score": 5, "meta": { "mail": "secret" } });
        let half = job.to_string().replace("}}", "}");
        [job.to_string(), half, job.to_string().replace(":5,", ":1.5,")]
    };
    let publish = |member: &str| {
        let mut last = [0; 3];
        for (shard, last) in last.iter_mut().enumerate() {
            for body in sent(member) {
                *last = nats.publish(&format!("ranktree.jobs.{shard}"), body);
            }
        }
        last
    };
    let bystander = format!("{member}x");
    publish(&member);
    let last = publish(&bystander);
    let client = home.client();
    wait_until("all are applied", || {
        let statuses = [(&home, 1), (&other, 0), (&other, 2)];
        statuses.iter().all(|(node, shard)| {
            let (_, status) = node.client().get("/v1/status");
            let shards = status["shards"].as_array().expect("a list").clone();
            let of = shards.iter().find(|of| of["shard"] == *shard).expect("it is listed");
            of["applied_sequence"].as_u64() >= Some(last[usize::try_from(*shard).expect("small")])
        })
    });
    let text = |node: &Node| node.client().get("/v1/rejects?limit=1000").1["rejects"].to_string();
    assert!(text(&other).contains(&format!("\"{member}\"")), "{}", text(&other));
    // Through the node that does not own the other shards, and by a job, too.
    let (status, answer) =
        client.send(Method::DELETE, &format!("/v1/members/{member}?wait=applied"), None).expect("an answer");
    assert_eq!(status, 200, "{answer}");
    let token = answer["token"].as_str().expect("a token").to_owned();
    assert_eq!(token.split(',').count(), 3, "a read that waits for it waits for every shard: {token}");
    assert_eq!(other.client().get(&format!("/v1/boards?after={token}")).0, 200);
    let is_erased = |node: &Node, member: &str| {
        !text(node).contains(&format!("{member}\\\"")) && !text(node).contains(&format!("\"{member}\""))
    };
    for node in [&home, &other] {
        assert!(is_erased(node, &member), "{}", text(node));
        assert!(!is_erased(node, &bystander), "others keep theirs: {}", text(node));
    }
    let job = json!([{ "member": bystander, "op": "remove" }]);
    let (status, answer) = client.post("/v1/jobs?wait=applied", &job);
    assert_eq!(status, 200, "{answer}");
    let token = answer["token"].as_str().expect("a token").to_owned();
    assert_eq!(other.client().get(&format!("/v1/boards?after={token}")).0, 200);
    other.kill9();
    other.restart();
    for node in [&home, &other] {
        assert!(is_erased(node, &bystander), "{}", text(node));
    }
}

/// Each job could be rejected for a reason that is told and for others, which come later in the order of
/// `docs/wire.md`.
#[test]
fn of_several_reasons_the_first_in_the_documented_order_is_told() {
    let nats = Nats::start();
    let node = Node::with_nats(&nats).shards(SHARDS).flags(&["--no-auto-create"]).start();
    let client = node.client();
    let bounded = json!({ "keys": [{ "name": "score", "min": 0, "max": 10 }] });
    let daily = json!({ "keys": bounded["keys"], "windows": ["day"] });
    for (board, definition) in [
        ("arena", &bounded),
        ("closed", &bounded),
        ("daily", &daily),
        ("a-top", &json!({ "kind": "top_k", "capacity": 10 })),
    ] {
        let (status, answer) = client.put(&format!("/v1/boards/{board}"), definition);
        assert_eq!(status, 201, "{board}: {answer}");
    }
    let read_only = json!({ "board": "closed", "readonly": true, "reason": "the season is over" });
    let (status, answer) = client.post("/v1/readonly", &read_only);
    assert_eq!(status, 200, "{answer}");
    let of_shard = |shard: u16| {
        let mut members = (0..50).map(|number| format!("m{number}"));
        let home = |member: &String| shard_of(&MemberId::new(member.as_str()).expect("a good id"), SHARDS).0;
        members.find(|member| home(member) == shard).expect("one of fifty")
    };
    let (member, stranger) = (of_shard(0), of_shard(1));
    let (late, early) = ("2100-01-01T00:00:00Z", "2001-01-01T00:00:00Z");
    let first = nats.publish(
        SUBJECT,
        json!({ "board": "arena", "member": member, "score": 1, "version": 5 }).to_string(),
    );
    let jobs = [
        ("malformed", json!({ "board": "none", "member": stranger, "score": 1, "at": late, "op": "double" })),
        ("wrong_shard", json!({ "board": "closed", "member": stranger, "score": 1, "at": late })),
        ("future_time", json!({ "board": "closed", "member": member, "score": [1, 2], "at": late })),
        ("future_time", json!({ "board": "none", "member": member, "score": 1, "at": late })),
        ("read_only", json!({ "board": "closed", "member": member, "score": [1, 2] })),
        ("read_only", json!({ "scores": { "closed": 1, "none": 1 }, "member": member })),
        ("unknown_board", json!({ "scores": { "a-top": -1, "none": 1 }, "member": member })),
        ("bad_score", json!({ "scores": { "a-top": -1, "arena": 1 }, "member": member, "version": 4 })),
        ("stale_version", json!({ "board": "arena", "member": member, "score": [1, 2], "version": 4 })),
        ("stale_version", json!({ "board": "arena", "member": member, "score": 11, "version": 4 })),
        ("closed_window", json!({ "board": "daily", "member": member, "score": [1, 2], "at": early })),
        ("bad_score", json!({ "scores": { "arena": [11, 2], "daily": 11 }, "member": member })),
        ("out_of_range", json!({ "scores": { "arena": 11, "daily": [1, 2] }, "member": member })),
    ];
    let sequences: Vec<u64> = jobs.iter().map(|(_, job)| nats.publish(SUBJECT, job.to_string())).collect();
    let last = sequences.last().copied().unwrap_or(first);
    wait_until("all are applied", || shard_status(&client, 0)["applied_sequence"].as_u64() >= Some(last));
    let (status, answer) = client.get("/v1/rejects?limit=100");
    assert_eq!(status, 200, "{answer}");
    let told: BTreeMap<u64, String> = answer["rejects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|reject| {
            (
                reject["sequence"].as_u64().expect("a number"),
                reject["reason"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    for (sequence, (code, job)) in sequences.iter().zip(&jobs) {
        assert_eq!(told.get(sequence).map(String::as_str), Some(*code), "{job}: {answer}");
    }
    assert_eq!(told.len(), jobs.len());
}
