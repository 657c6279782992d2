//! Boards are decided through any node, for all shards, exactly.

use std::thread;

use serde_json::{Value, json};
use ureq::http::Method;

use super::{BOARD, Cluster, SHARDS, SILENT, applied, define, members, members_on, owner, parts, score};
use crate::support::client::{Client, count_of, entry_path};
use crate::support::command::signal;
use crate::support::nats::{shard_status, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::tokens::new_token;

fn definition(client: &Client, board: &str) -> Option<Value> {
    // Where shards are missing, the registry answers whether there is such a board.
    match client.get(&format!("/v1/boards/{board}/top")) {
        (404, _) => None,
        (_, answer) => Some(answer),
    }
}

#[test]
fn boards_that_are_defined_and_dropped_through_a_node_without_shards_reach_all() {
    let cluster = Cluster::start();
    let none = cluster.none.client();
    let (status, answer) = define(&none, BOARD, &json!({ "ties": "last" }));
    assert_eq!((status, &answer["ties"], answer.get("missing")), (201, &json!("last"), None), "{answer}");
    cluster.wait_applied(&parts(&answer));
    for shard in 0..SHARDS {
        // One whose acknowledgement is late is sent again, and does nothing twice.
        let mut commands = cluster.commands(shard);
        commands.dedup();
        assert_eq!(commands.len(), 1, "shard {shard}: {commands:?}");
    }
    for node in cluster.nodes() {
        wait_until("every node knows it", || definition(&node.client(), BOARD).is_some());
    }
    // The same again, and a change of what can change.
    assert_eq!(define(&cluster.high.client(), BOARD, &json!({ "ties": "last" })).0, 200);
    let (status, answer) = define(&cluster.high.client(), BOARD, &json!({ "ties": "first" }));
    assert_eq!((status, &answer["code"]), (409, &json!("board_differs")), "{answer}");
    for (member, _) in members(2) {
        assert_eq!(score(&none, &member, 3).0, 202);
    }
    let dropped = none.send(Method::DELETE, "/v1/boards/arena", None).expect("it answers");
    assert_eq!(dropped.0, 200, "{}", dropped.1);
    let token = parts(&dropped.1);
    assert_eq!(token.len(), usize::from(SHARDS));
    cluster.wait_applied(&token);
    for node in cluster.nodes() {
        wait_until("no node knows it", || definition(&node.client(), BOARD).is_none());
    }
    let again = none.send(Method::DELETE, "/v1/boards/arena", None).expect("it answers");
    assert_eq!((again.0, &again.1["code"]), (404, &json!("unknown_board")), "{}", again.1);
    cluster.end();
}

#[test]
fn of_two_nodes_that_define_a_board_differently_one_wins() {
    let cluster = Cluster::start();
    assert_eq!(define(&cluster.none.client(), "first", &json!({})).0, 201);
    for round in 0..8 {
        let board = format!("b{round}");
        let replies = thread::scope(|scope| {
            let define = |node: &Node, ties: &'static str| {
                let (client, board) = (node.client(), board.clone());
                scope.spawn(move || (ties, define(&client, &board, &json!({ "ties": ties }))))
            };
            let defining = [
                define(&cluster.low, "first"),
                define(&cluster.high, "last"),
                define(&cluster.none, "last"),
                define(&cluster.none, "member"),
            ];
            defining.map(|defining| defining.join().expect("no panic"))
        });
        let created = replies.iter().filter(|(_, (status, _))| *status == 201).count();
        let first = replies.iter().find(|(_, (status, _))| *status == 201).map(|(ties, _)| *ties);
        assert_eq!(created, 1, "{replies:?}");
        for (wanted, (status, answer)) in &replies {
            let agrees = Some(*wanted) == first;
            assert!(if agrees { matches!(status, 200 | 201) } else { *status == 409 }, "{status} {answer}");
        }
    }
    cluster.end();
}

/// Jobs create boards on the shards that they are for, and all other shards get the boards as well.
#[test]
fn a_board_that_jobs_create_on_shards_of_two_nodes_is_one() {
    let cluster = Cluster::start();
    for (member, _) in members(3) {
        assert_eq!(score(&cluster.none.client(), &member, 1).0, 202);
    }
    for node in [&cluster.low, &cluster.high] {
        for shard in 0..usize::from(SHARDS) {
            let own = shard_status(&node.client(), shard);
            if own["owner"] == "local" {
                wait_until("its jobs are applied", || {
                    let said = shard_status(&node.client(), shard);
                    said["parked"] == 0 && members_on(node, shard) == 3
                });
            }
        }
    }
    let lives: Vec<Value> =
        (0..SHARDS).map(|shard| cluster.commands(shard)[0]["incarnation"].clone()).collect();
    assert!(lives.iter().all(|life| *life == lives[0]), "{lives:?}");
    cluster.end();
}

/// A trim through a node that owns nothing, while one of two owners is stopped, and after one was killed in
/// the middle of it.
#[test]
fn a_trim_through_another_node_passes_over_owners_that_do_not_answer() {
    const MEMBERS: usize = 8_000;
    let mut cluster = Cluster::start();
    // A second owner of the shards of `low`.
    let other = owner(&cluster.nats, "other", "0-1").start();
    let none = cluster.none.client();
    assert_eq!(define(&none, BOARD, &json!({})).0, 201);
    let jobs: Vec<Value> = (0..MEMBERS)
        .map(|number| json!({ "board": BOARD, "member": format!("t{number}"), "score": number }))
        .collect();
    let mut last = std::collections::BTreeMap::new();
    for jobs in jobs.chunks(1_000) {
        let (status, answer) = none.post("/v1/jobs", &json!(jobs));
        assert_eq!(status, 202, "{answer}");
        last.extend(parts(&answer));
    }
    cluster.wait_applied(&last);
    wait_until("both owners are live and have applied it", || {
        let owners = shard_status(&none, 0)["owners"].as_array().expect("a list").clone();
        let has_all =
            owners.iter().filter(|owner| owner["state"] == "live" && owner["lag"] == 0).count() == 2;
        has_all
            && last.iter().filter(|(shard, _)| **shard < 2).all(|(shard, at)| applied(&other, *shard) >= *at)
    });
    signal("STOP", cluster.low.pid());
    let trim = |beyond: usize| none.post("/v1/boards/arena:trim", &json!({ "positions_beyond": beyond }));
    let total = || none.get("/v1/boards/arena/top?limit=1").1["total"].as_u64();
    let (mut status, mut answer) = (0, Value::Null);
    // Nothing is removed as long as the other owner is not level, and the place cannot be found.
    wait_until("the other owner is level", || {
        (status, answer) = trim(6_000);
        answer["code"] != "shard_unavailable"
    });
    assert_eq!((status, &answer["removed"]), (200, &json!(MEMBERS - 6_000)), "{answer}");
    wait_until("it is seen", || total() == Some(6_000));
    signal("CONT", cluster.low.pid());
    // Killed while it may be at work: what it did not do, the other one does at the next request.
    let answer = std::thread::scope(|scope| {
        let trimming = scope.spawn(|| trim(10));
        wait_until("some are gone", || total().is_some_and(|total| total < 6_000));
        cluster.low.kill9();
        trimming.join().expect("no panic")
    });
    assert!(matches!(answer.0, 200 | 503), "{}", answer.1);
    wait_until("the rest is removed", || trim(10).0 == 200);
    wait_until("the rest is gone", || total() == Some(10));
    cluster.low.restart();
    for shard in 0..usize::from(SHARDS) {
        wait_state(&cluster.owner_of(shard).client(), shard, "live");
    }
    cluster.end();
}

/// What was written before a drop is gone with it, and what is written afterwards is not.
#[test]
fn a_write_behind_a_drop_through_another_node_is_kept() {
    let cluster = Cluster::start();
    let [low, high, none] = cluster.nodes().map(Node::client);
    let mut last = std::collections::BTreeMap::new();
    for round in 0..6 {
        assert_eq!(define(&high, BOARD, &json!({})).0, 201, "round {round}");
        for (member, _) in members(2) {
            last.extend(parts(&score(&high, &member, 1).1));
        }
        let dropped = none.send(Method::DELETE, "/v1/boards/arena", None).expect("it answers");
        assert_eq!(dropped.0, 200, "{}", dropped.1);
        wait_until("the node knows that it is dropped", || definition(&low, BOARD).is_none());
        for (member, _) in members(2) {
            let (status, answer) = score(&low, &member, 2);
            assert_eq!(status, 202, "{answer}");
            last.extend(parts(&answer));
        }
        cluster.wait_applied(&last);
        wait_until("the board that the jobs create is there", || definition(&none, BOARD).is_some());
        for shard in 0..usize::from(SHARDS) {
            let owner = cluster.owner_of(shard);
            wait_until("its jobs are applied", || shard_status(&owner.client(), shard)["parked"] == 0);
            assert_eq!(members_on(owner, shard), 2, "shard {shard} in round {round}");
        }
        let dropped = high.send(Method::DELETE, "/v1/boards/arena", None).expect("it answers");
        assert_eq!(dropped.0, 200, "{}", dropped.1);
    }
    cluster.end();
}

/// A node that knows nothing of the boards makes the stream again. It decides nothing before the owners have
/// stored there what their shards hold.
#[test]
fn a_node_without_shards_that_makes_the_lost_boards_stream_again_ends_no_board() {
    let mut cluster = Cluster::start();
    for board in ["first", BOARD] {
        assert_eq!(define(&cluster.low.client(), board, &json!({ "ties": "last" })).0, 201);
    }
    let mut last = std::collections::BTreeMap::new();
    for (member, _) in members(2) {
        last.extend(parts(&score(&cluster.low.client(), &member, 3).1));
    }
    cluster.wait_applied(&last);
    let lives = |cluster: &Cluster| -> Vec<Value> {
        let last = |shard| cluster.commands(shard).last().map(|command| command["incarnation"].clone());
        (0..SHARDS).map(|shard| last(shard).expect("it is defined")).collect()
    };
    let before = lives(&cluster);
    assert!(cluster.none.terminate().success());
    cluster.nats.delete("RANKTREE_BOARDS");
    cluster.none.restart();
    let none = cluster.none.client();
    let (status, answer) = define(&none, BOARD, &json!({ "ties": "first" }));
    assert_eq!((status, &answer["code"]), (409, &json!("board_differs")), "{answer}");
    let (status, answer) = define(&none, BOARD, &json!({ "ties": "last" }));
    assert_eq!(status, 200, "{answer}");
    cluster.wait_applied(&parts(&answer));
    assert_eq!(lives(&cluster), before);
    for shard in 0..usize::from(SHARDS) {
        assert_eq!(members_on(cluster.owner_of(shard), shard), 2);
    }
    cluster.end();
}

#[test]
fn a_tokens_limit_of_boards_holds_over_nodes() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let limits = ["--board-prefix", "eu-", "--max-boards", "3"];
    let (secret, lines) = new_token(&[&["--scope", "admin", "--name", "game"][..], &limits].concat());
    let tokens = folder.path().join("tokens.toml");
    std::fs::write(&tokens, lines).expect("it can be written");
    let tokens = tokens.to_str().expect("UTF-8").to_owned();
    let nats = crate::support::nats::Nats::start();
    let flags = ["--tokens", &tokens];
    let low = owner(&nats, "low", "0-1").shards(SHARDS).flags(&flags).start();
    let high = owner(&nats, "high", "2-3").flags(&flags).start();
    let none = owner(&nats, "none", "none").flags(&flags).start();
    let client = |node: &Node| node.client().with_token(&secret);
    assert_eq!(define(&client(&low), "eu-first", &json!({})).0, 201);
    let replies = thread::scope(|scope| {
        let nodes = [&low, &high, &none, &low, &high, &none];
        let defining: Vec<_> = nodes
            .into_iter()
            .enumerate()
            .map(|(number, node)| {
                let client = client(node);
                scope.spawn(move || {
                    if number % 2 == 0 {
                        define(&client, &format!("eu-{number}"), &json!({}))
                    } else {
                        let mut reply = (503, Value::Null);
                        wait_until("the job is taken or refused", || {
                            let path = entry_path(&format!("eu-{number}"), "m");
                            reply = client.put(&path, &json!({ "score": 1 }));
                            reply.0 != 503
                        });
                        reply
                    }
                })
            })
            .collect();
        defining.into_iter().map(|defining| defining.join().expect("no panic")).collect::<Vec<_>>()
    });
    let made = replies.iter().filter(|(status, _)| matches!(status, 201 | 202)).count();
    assert_eq!(made, 2, "{replies:?}");
    let refused = |(status, answer): &&(u16, Value)| *status == 422 && answer["code"] == "too_many_boards";
    assert_eq!(replies.iter().filter(refused).count(), 4, "{replies:?}");
}

#[test]
fn a_shard_without_an_owner_takes_jobs_and_no_decisions() {
    let mut cluster = Cluster::start();
    let none = cluster.none.client();
    assert_eq!(define(&none, BOARD, &json!({})).0, 201);
    cluster.high.kill9();
    // Each node hears the others by itself.
    for client in [cluster.none.client(), cluster.low.client()] {
        wait_until("the owner is missed", || {
            (2..4).all(|shard| shard_status(&client, shard)["owners"][0]["state"] == SILENT)
        });
    }
    assert_eq!(shard_status(&none, 2)["state"], SILENT);
    for client in [cluster.none.client(), cluster.low.client()] {
        let (status, answer) = client.put("/v1/boards/other", &json!({}));
        assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{answer}");
        assert_eq!(answer["shards"], json!([2, 3]), "{answer}");
    }
    let mut last = std::collections::BTreeMap::new();
    for (member, _) in members(3) {
        let (status, answer) = score(&none, &member, 4);
        assert_eq!(status, 202, "{answer}");
        last.extend(parts(&answer));
    }
    cluster.high.restart();
    cluster.wait_applied(&last);
    for shard in 0..usize::from(SHARDS) {
        assert_eq!(members_on(cluster.owner_of(shard), shard), 3);
        assert_eq!(count_of(&shard_status(&cluster.owner_of(shard).client(), shard)["rejects"]), 0);
    }
    assert_eq!(define(&none, "other", &json!({})).0, 201);
    cluster.end();
}

/// A board is cleared, or dropped, and the node that did so dies before a shard whose owner is down has heard
/// of it. Another node learns that from the boards' stream alone. What is written through it now comes after
/// the clear, and is not removed by it.
#[test]
fn a_write_behind_a_clear_that_its_shard_has_not_heard_of_is_kept() {
    for is_dropped in [false, true] {
        let mut cluster = Cluster::start();
        assert_eq!(define(&cluster.none.client(), BOARD, &json!({})).0, 201);
        let mut last = std::collections::BTreeMap::new();
        for (member, _) in members(3) {
            last.extend(parts(&score(&cluster.low.client(), &member, 1).1));
        }
        cluster.wait_applied(&last);
        cluster.high.kill9();
        assert!(cluster.none.terminate().success());
        // As a node leaves it that dies at once: the owners of other shards have nothing of it.
        let subject = "ranktree.boards.arena";
        let mut record = cluster.nats.last_of("RANKTREE_BOARDS", subject).expect("it is defined");
        let life = cluster.commands(2)[0]["incarnation"].as_u64().expect("a number");
        record["number"] = json!(life + 1_000);
        if is_dropped {
            record["incarnation"] = json!(life);
            record.as_object_mut().expect("a record").remove("definition");
        }
        cluster.nats.publish(subject, record.to_string());
        cluster.none.restart();
        let none = cluster.none.client();
        wait_until("the node has read the stream", || definition(&none, BOARD).is_some() != is_dropped);
        let mut written = Vec::new();
        for (member, shard) in members(3).into_iter().filter(|(_, shard)| *shard >= 2) {
            if written.len() < 4 {
                let (status, answer) = score(&none, &member, 2);
                assert_eq!(status, 202, "{answer}");
                last.extend(parts(&answer));
                written.push((member, shard));
            }
        }
        cluster.high.restart();
        cluster.wait_applied(&last);
        for (member, shard) in &written {
            let high = cluster.high.client();
            wait_until("its jobs are applied", || shard_status(&high, *shard)["parked"] == 0);
            let path = entry_path(BOARD, member);
            wait_until("the shard is live", || none.get(&path).0 != 503);
            let (status, entry) = none.get(&path);
            assert_eq!((status, &entry["score"]), (200, &json!(2)), "dropped: {is_dropped}; {entry}");
        }
        let of_shard = |shard| written.iter().filter(|(_, home)| *home == shard).count();
        for shard in 2..4 {
            assert_eq!(members_on(&cluster.high, shard), of_shard(shard), "dropped: {is_dropped}");
        }
        // The node has published the decision, and the owner has found nothing to add.
        let lives: Vec<_> =
            cluster.commands(2).into_iter().map(|command| command["incarnation"].clone()).collect();
        assert!(lives.len() >= 2, "{lives:?}");
        cluster.end();
    }
}
