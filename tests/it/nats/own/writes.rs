//! What each node says of the shards, writes through any of them, and reads that lack shards.

use std::thread;

use serde_json::{Value, json};

use super::{BOARD, Cluster, SHARDS, SILENT, define, members, members_on, owner, parts, score};
use crate::support::client::{count_of, entry_path};
use crate::support::command::signal;
use crate::support::nats::{Nats, shard_status, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::raw::get;

#[test]
fn every_node_lists_every_shard_and_its_owners_and_is_ready_by_its_own() {
    let cluster = Cluster::start();
    for (node, own) in cluster.nodes().into_iter().zip([&[0, 1][..], &[2, 3], &[]]) {
        assert_eq!(node.client().get("/readyz").0, 200);
        let status = node.client().get("/v1/status").1;
        let shards = status["shards"].as_array().expect("a list");
        assert_eq!((shards.len(), &status["ready"]), (usize::from(SHARDS), &json!(true)));
        for (shard, said) in shards.iter().enumerate() {
            let is_own = own.contains(&shard);
            assert_eq!(said["shard"], shard);
            assert_eq!(said["owner"], if is_own { "local" } else { "remote" });
            // A node has figures of its own shards only.
            for figure in ["members", "applied_sequence", "checkpoint_sequence", "stream", "rejects"] {
                assert_eq!(said.get(figure).is_some(), is_own, "{figure} of {said}");
            }
            wait_until("the owner says that it is live", || {
                let said = shard_status(&node.client(), shard);
                said["state"] == "live" && said["owners"][0]["state"] == "live"
            });
        }
        let labelled = get(node.address(), "/metrics");
        // Of other shards, a node has metrics of its questions only.
        for metric in ["shard_state", "message_requests_count"] {
            let labels = |shard: &usize| labelled.contains(&format!("ranktree_{metric}{{shard=\"{shard}\""));
            let all = 0..usize::from(SHARDS);
            assert_eq!(all.filter(labels).collect::<Vec<_>>(), own, "{metric} in {labelled}");
        }
    }
    cluster.end();
}

#[test]
fn writes_through_any_node_arrive_at_the_owners() {
    let cluster = Cluster::start();
    let (status, answer) = define(&cluster.none.client(), BOARD, &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");
    let mut last = parts(&answer);
    assert_eq!(last.len(), usize::from(SHARDS), "{answer}");
    let members = members(5);
    for node in cluster.nodes() {
        let client = node.client();
        for (member, home) in &members {
            let (status, answer) = score(&client, member, 2);
            assert_eq!(status, 202, "{answer}");
            let token = parts(&answer);
            assert_eq!(token.keys().collect::<Vec<_>>(), [home]);
            last.extend(token);
        }
        let jobs: Vec<Value> =
            members.iter().map(|(member, _)| json!({"board": BOARD, "member": member, "score": 1})).collect();
        let (status, answer) = client.post("/v1/jobs", &json!(jobs));
        assert_eq!(status, 202, "{answer}");
        last.extend(parts(&answer));
    }
    cluster.wait_applied(&last);
    for shard in 0..usize::from(SHARDS) {
        let owner = cluster.owner_of(shard);
        assert_eq!(members_on(owner, shard), 5);
        assert_eq!(count_of(&shard_status(&owner.client(), shard)["rejects"]), 0);
    }
    cluster.end();
}

/// An owner that is stopped keeps its connection, so NATS goes on to send it requests.
#[test]
fn writes_that_wait_pass_over_an_owner_that_is_stopped() {
    const WRITES: i64 = 20;
    let cluster = Cluster::start();
    assert_eq!(define(&cluster.low.client(), BOARD, &json!({ "policy": "incr" })).0, 201);
    // A second owner of the shards of `low`.
    let other = owner(&cluster.nats, "other", "0-1").start();
    let none = cluster.none.client();
    wait_until("both owners are known to be live", || {
        let owners = shard_status(&none, 0)["owners"].as_array().expect("a list").clone();
        owners.iter().filter(|owner| owner["state"] == "live").count() == 2
    });
    let (member, _) = members(1).into_iter().find(|(_, home)| *home == 0).expect("one for each shard");
    let path = format!("{}?wait=applied", entry_path(BOARD, &member));
    let write = || {
        let (status, answer) = none.put(&path, &json!({ "score": 1 }));
        match (status, answer["code"].as_str()) {
            (200, _) => true,
            (503, Some("commit_unknown")) => false,
            _ => panic!("{status}: {answer}"),
        }
    };
    assert!(write() && write(), "each has been asked once");
    signal("STOP", cluster.low.pid());
    let taken = (0..WRITES).filter(|_| write()).count();
    // Only the first one can be on its way to an owner that has answered just before.
    assert!(taken >= usize::try_from(WRITES).expect("few") - 1, "{taken}");
    signal("CONT", cluster.low.pid());
    // Whatever was sent is applied in the end, once, and on both.
    for node in [&cluster.low, &other] {
        wait_until("all of it is applied", || {
            node.client().get(&entry_path(BOARD, &member)).1["score"] == json!(WRITES + 2)
        });
    }
    cluster.end();
}

/// Boards are decided only once the owners of all shards have confirmed theirs, so a job for a new board
/// waits on its shard until then.
#[test]
fn a_read_after_a_write_that_creates_its_board_waits_for_the_board() {
    let nats = Nats::start();
    let low = owner(&nats, "low", "0-1").shards(SHARDS).start();
    let none = owner(&nats, "none", "none").start();
    for shard in 0..2 {
        wait_state(&low.client(), shard, "live");
    }
    let (member, _) = members(1).into_iter().find(|(_, shard)| *shard == 0).expect("one of shard 0");
    let (status, answer) = score(&low.client(), &member, 7);
    assert_eq!(status, 202, "{answer}");
    let token = answer["token"].as_str().expect("a token").to_owned();
    wait_until("the job is parked", || shard_status(&low.client(), 0)["parked"] == 1);
    let path = |timeout_ms: u32| {
        let path = entry_path(BOARD, &member);
        format!("{path}?partial=true&after={token}&timeout_ms={timeout_ms}")
    };
    // Its owner knows that it is parked. Another node does not know the board in time.
    let (status, answer) = low.client().get(&path(200));
    assert_eq!((status, &answer["code"]), (504, &json!("not_yet_applied")), "{answer}");
    let (status, answer) = none.client().get(&path(200));
    assert_eq!((status, &answer["code"]), (404, &json!("unknown_board")), "{answer}");
    // A board that no job waits for is unknown at once where the shard is.
    let (status, answer) = low.client().get(&format!("/v1/boards/other/top?after={token}&timeout_ms=60000"));
    assert_eq!((status, &answer["code"]), (404, &json!("unknown_board")), "{answer}");
    let high = thread::scope(|scope| {
        let reads = [&low, &none].map(|node| {
            let path = path(60_000);
            scope.spawn(move || node.client().get(&path))
        });
        let high = owner(&nats, "high", "2,3").start();
        for read in reads {
            let (status, answer) = read.join().expect("it answers");
            assert_eq!((status, &answer["score"]), (200, &json!(7)), "{answer}");
        }
        high
    });
    Cluster { nats, low, high, none }.end();
}

#[test]
fn what_needs_shards_that_nobody_answers_for_names_them() {
    let mut cluster = Cluster::start();
    assert_eq!(define(&cluster.low.client(), BOARD, &json!({})).0, 201);
    let members = members(1);
    for (member, _) in &members {
        assert_eq!(score(&cluster.none.client(), member, 7).0, 202);
    }
    let low = cluster.low.client();
    cluster.high.kill9();
    for path in ["/v1/boards/arena/top", "/v1/boards/arena/rank?score=5", "/v1/boards", "/v1/boards/arena"] {
        let (status, answer) = low.get(path);
        assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{path}: {answer}");
        assert_eq!(answer["shards"], json!([2, 3]), "{path}: {answer}");
    }
    let (status, answer) = low.get("/v1/boards/unheard/top");
    assert_eq!((status, &answer["code"]), (404, &json!("unknown_board")));
    let (status, answer) = low.get("/v1/boards/arena/top?after=4:1");
    assert_eq!((status, &answer["code"]), (422, &json!("unknown_shard")));
    for (member, home) in &members {
        let path = format!("{}?wait=applied", entry_path(BOARD, member));
        let (status, answer) = low.put(&path, &json!({ "score": 9 }));
        if *home < 2 {
            // It is applied, but nobody tells how it stands among the others.
            assert_eq!((status, &answer["changed"]), (200, &json!(true)), "{answer}");
            assert_eq!((&answer["missing"], answer.get("entry")), (&json!([2, 3]), None), "{answer}");
            let changed = low.put(&format!("{path}&results=changed"), &json!({ "score": 8, "op": "best" }));
            assert_eq!((changed.0, &changed.1["changed"]), (200, &json!(false)), "{}", changed.1);
        } else {
            assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{answer}");
            assert!(answer["detail"].to_string().contains(&format!("shard {home}")), "{answer}");
        }
    }
    let trimmed = low.post("/v1/boards/arena:trim", &json!({ "positions_beyond": 1 }));
    assert_eq!((trimmed.0, &trimmed.1["shards"]), (503, &json!([2, 3])), "{}", trimmed.1);
    // Rejects of a shard are on its owners' disks.
    let all = low.get("/v1/rejects");
    assert_eq!((all.0, &all.1["code"]), (503, &json!("shard_unavailable")), "{}", all.1);
    assert_eq!(all.1["shards"], json!([2, 3]), "{}", all.1);
    let some = low.get("/v1/rejects?partial=true");
    assert_eq!((some.0, &some.1["missing"]), (200, &json!([2, 3])), "{}", some.1);
    // Without any shard, a page would say nothing.
    assert_eq!(low.get("/v1/rejects?shard=2&partial=true").1["shards"], json!([2]));
    let one = low.get("/v1/rejects?shard=1");
    assert_eq!((one.0, one.1.get("missing")), (200, None), "{}", one.1);
    assert_eq!(low.get("/v1/rejects?shard=2").1["shards"], json!([2]));
    cluster.high.restart();
    cluster.end();
}

/// A member's jobs keep their order. So a job for a board that is there waits behind one whose board cannot
/// be decided yet, and a read that names it in `after` waits as well.
#[test]
fn a_read_after_a_write_behind_a_job_of_another_board_waits_for_it() {
    let mut cluster = Cluster::start();
    let none = cluster.none.client();
    for board in [BOARD, "third"] {
        assert_eq!(define(&none, board, &json!({})).0, 201);
    }
    let (member, _) = members(1).into_iter().find(|(_, shard)| *shard == 0).expect("one of each shard");
    let (status, answer) = score(&none, &member, 1);
    assert_eq!(status, 202, "{answer}");
    cluster.wait_applied(&parts(&answer));
    // After its start, a node decides nothing before the owners of all shards have confirmed.
    cluster.high.kill9();
    cluster.low.kill9();
    cluster.low.restart();
    wait_until("the shard is live", || shard_status(&cluster.low.client(), 0)["state"] == "live");
    wait_until("both owners are heard of, or missed", || {
        shard_status(&none, 0)["owners"][0]["state"] == "live"
            && shard_status(&none, 2)["owners"][0]["state"] == SILENT
    });
    let behind = json!([
        { "member": member, "board": "new", "score": 1 },
        { "member": member, "board": BOARD, "score": 2 },
    ]);
    for jobs in [behind, json!([{ "member": member, "scores": { BOARD: 3, "newer": 1 } }])] {
        let (status, answer) = none.post("/v1/jobs", &jobs);
        assert_eq!(status, 202, "{answer}");
        let token = answer["token"].as_str().expect("a token").to_owned();
        // What waits for a parked job waits in vain. What does not is answered once it is applied.
        let (in_vain, long) = (300, 60_000);
        let read = |node: &Node, board: &str, timeout_ms: u32| {
            let path = entry_path(board, &member);
            node.client().get(&format!("{path}?partial=true&timeout_ms={timeout_ms}&after={token}"))
        };
        for node in [&cluster.low, &cluster.none] {
            let (status, answer) = read(node, BOARD, in_vain);
            assert_eq!((status, &answer["code"]), (504, &json!("not_yet_applied")), "{answer}");
            // No parked job names this one.
            let (status, answer) = read(node, "third", long);
            assert_eq!((status, &answer["code"]), (404, &json!("unknown_member")), "{answer}");
            let of_member = |boards: &str, timeout_ms: u32| {
                let path = format!("/v1/members/{member}?partial=true&timeout_ms={timeout_ms}&after={token}");
                node.client().get(&format!("{path}{boards}"))
            };
            for boards in ["", "&boards=third,arena"] {
                let (status, answer) = of_member(boards, in_vain);
                assert_eq!((status, &answer["code"]), (504, &json!("not_yet_applied")), "{boards}: {answer}");
            }
            let (status, answer) = of_member("&boards=third", long);
            assert_eq!((status, &answer["not_found"]), (200, &json!(["third"])), "{answer}");
        }
    }
    let (_, answer) = none.get(&format!("{}?partial=true", entry_path(BOARD, &member)));
    assert_eq!(answer["score"], 1, "{answer}");
    // They wait over a restart as well.
    cluster.low.kill9();
    cluster.low.restart();
    let token = format!("0:{}", cluster.nats.info("RANKTREE_JOBS_0").state.last_sequence);
    let path = format!("{}?after={token}&timeout_ms=60000", entry_path(BOARD, &member));
    wait_until("the shard is live", || shard_status(&cluster.low.client(), 0)["state"] == "live");
    let (status, answer) = cluster.low.client().get(&format!("{path}&partial=true").replace("60000", "300"));
    assert_eq!((status, &answer["code"]), (504, &json!("not_yet_applied")), "{answer}");
    cluster.high.restart();
    let mut answer = (0, Value::Null);
    wait_until("all shards answer", || {
        answer = none.get(&path);
        answer.0 != 503
    });
    assert_eq!((answer.0, &answer.1["score"]), (200, &json!(3)), "{}", answer.1);
    cluster.end();
}
