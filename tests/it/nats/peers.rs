//! Several nodes on the same streams: they know of each other, and purge nothing that another one needs.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};

use crate::support::arena::{self, STREAM, define, end_unhalted, publish};
use crate::support::client::{Client, count_of};
use crate::support::nats::{Nats, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::{Node, NodeSetup};

/// A node that checkpoints and purges soon.
fn named(nats: &Nats, name: &str) -> NodeSetup {
    let often = ["--checkpoint-seconds", "1", "--nats-keep", "0"];
    Node::with_nats(nats).flags(&["--node", name]).flags(&often)
}

/// Two nodes of one shard, with a board, whose stream may be purged at once.
fn two(nats: &Nats, flags: &[&str]) -> (Node, Node) {
    let (a, b) = (named(nats, "a").flags(flags).start(), named(nats, "b").flags(flags).start());
    define(&a.client(), &json!({ "policy": "incr" }));
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    (a, b)
}

fn node_in_status(client: &Client, name: &str) -> Value {
    let status = client.get("/v1/status").1;
    let nodes = status["nodes"].as_array().expect("a list").clone();
    nodes.into_iter().find(|node| node["node"] == name).unwrap_or_default()
}

fn owner_in_status(client: &Client, shard: usize, name: &str) -> Value {
    let owners = shard_status(client, shard)["owners"].as_array().expect("a list").clone();
    owners.into_iter().find(|owner| owner["node"] == name).unwrap_or_default()
}

fn count(value: &Value) -> u64 {
    u64::try_from(count_of(value)).expect("it fits")
}

fn checkpoint(client: &Client) -> u64 {
    count(&shard_status(client, 0)["checkpoint_sequence"])
}

fn first(nats: &Nats) -> u64 {
    nats.info(STREAM).state.first_sequence
}

/// What the node has said that it needs.
fn floor(nats: &Nats, name: &str) -> u64 {
    let stream = "KV_RANKTREE_FLOORS";
    let state = nats.info(stream).state;
    let messages = nats.messages(stream, state.first_sequence, usize::try_from(state.messages).expect("few"));
    assert!(!messages.is_empty(), "{name} has said nothing");
    let node = node_directory(nats, name);
    let own =
        messages.iter().filter(|floor| floor["directory"] == node).map(|floor| count(&floor["sequence"]));
    own.max().expect("it has said it")
}

/// The identity of a node's data directory, as the node gives it.
fn node_directory(nats: &Nats, name: &str) -> Value {
    let stream = "KV_RANKTREE_NODES";
    let last = nats.last_of(stream, &format!("$KV.RANKTREE_NODES.{name}"));
    last.expect("it is there")["directory"].clone()
}

fn publish_many(nats: &Nats, messages: u32) -> u64 {
    (0..messages).map(|_| publish(nats, "m7")).last().expect("there are some")
}

/// Publishes, and waits until both have applied and checkpointed it, and it is purged.
fn settle(nats: &Nats, nodes: &[&Node]) -> u64 {
    let last = publish_many(nats, 20);
    for node in nodes {
        wait_applied(&node.client(), &[last]);
    }
    // A node stores its floors once it has read the stream. Before that, the others may purge without it.
    wait_until("each has said what it needs", || {
        nats.info("KV_RANKTREE_FLOORS").state.messages >= u64::try_from(nodes.len()).expect("few")
    });
    wait_until("what both have checkpointed is purged", || first(nats) == last);
    last
}

/// Opening a directory syncs what it holds, although no checkpoint does. So a node that has fetched a copy,
/// and is started again before its own checkpoint, holds the stream where it is, and not where nothing is
/// left.
#[test]
fn a_start_needs_what_comes_after_all_that_it_has_opened() {
    let nats = Nats::start();
    let rarely = ["--node", "b", "--nats-keep", "0", "--checkpoint-seconds", "3600"];
    let (a, mut b) = (named(&nats, "a").start(), Node::with_nats(&nats).flags(&rarely).start());
    define(&a.client(), &json!({ "policy": "incr" }));
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    let last = publish_many(&nats, 20);
    for node in [&a, &b] {
        wait_applied(&node.client(), &[last]);
    }
    wait_until("each has said what it needs", || nats.info("KV_RANKTREE_FLOORS").state.messages == 2);
    let before = checkpoint(&b.client());
    assert!(before < last);
    b.kill9();
    b.restart();
    wait_until("it has said what it needs", || floor(&nats, "b") == last);
    assert_eq!(checkpoint(&b.client()), before);
    wait_until("the rest is purged", || first(&nats) == last);
    b.kill9();
    b.restart();
    wait_state(&b.client(), 0, "live");
    assert_eq!(b.metric("ranktree_copies_total{result=\"installed\"}"), Some(0.0));
    wait_applied(&b.client(), &[publish(&nats, "m7")]);
    end_unhalted(a);
    end_unhalted(b);
}

#[test]
fn two_nodes_of_all_shards_see_each_other_in_status_until_one_is_killed() {
    let nats = Nats::start();
    let start = |name| named(&nats, name).shards(2).start();
    let (a, mut b) = (start("a"), start("b:1.x"));
    define(&a.client(), &json!({}));
    for (here, client, there) in [("a", a.client(), "b:1.x"), ("b:1.x", b.client(), "a")] {
        wait_until("they know of each other", || node_in_status(&client, there)["alive"] == true);
        let status = client.get("/v1/status").1;
        assert_eq!(status["node"], here);
        let names: Vec<_> =
            status["nodes"].as_array().expect("a list").iter().map(|node| &node["node"]).collect();
        assert_eq!(names, ["a", "b:1.x"], "{status}");
        let node = node_in_status(&client, there);
        let address = if there == "a" { a.base() } else { b.base() };
        assert_eq!((node["address"].as_str(), &node["problem"]), (Some(address), &Value::Null), "{node}");
        assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
        for shard in 0..2 {
            wait_until("it is live on both", || {
                [here, there].iter().all(|name| owner_in_status(&client, shard, name)["state"] == "live")
            });
        }
    }
    let last = publish(&nats, "m7");
    wait_until("each knows how far the other is", || {
        let owner = |client: &Client, name| owner_in_status(client, 0, name);
        [owner(&a.client(), "b:1.x"), owner(&b.client(), "a")]
            .iter()
            .all(|owner| count(&owner["applied_sequence"]) >= last && count(&owner["lag"]) == 0)
    });
    assert_eq!(a.metric("ranktree_shard_owners_live{shard=\"1\"}"), Some(2.0));
    b.kill9();
    let client = a.client();
    wait_until("it is not heard of any more", || node_in_status(&client, "b:1.x")["alive"] == false);
    assert!(count(&node_in_status(&client, "b:1.x")["silent_seconds"]) >= 10);
    assert_eq!(owner_in_status(&client, 1, "b:1.x")["state"], "silent");
    assert_eq!(owner_in_status(&client, 1, "a")["state"], "live");
    wait_until("the metrics say so", || {
        let version = format!("ranktree_nodes{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
        a.metric(&version) == Some(1.0)
            && a.metric("ranktree_shard_owners_live{shard=\"1\"}") == Some(1.0)
            && a.metric("ranktree_shard_owners{shard=\"1\"}") == Some(2.0)
            && a.metric("ranktree_node_silent_seconds{node=\"b:1.x\"}") > Some(5.0)
    });
    b.restart();
    wait_until("it is back", || node_in_status(&client, "b:1.x")["alive"] == true);
    end_unhalted(b);
    end_unhalted(a);
}

#[test]
fn without_nats_status_lists_this_node_alone() {
    let node = Node::flags(&["--node", "only"]).start();
    let status = node.client().get("/v1/status").1;
    assert_eq!(status["node"], "only");
    assert_eq!(status["nodes"].as_array().map(Vec::len), Some(1), "{status}");
    let this = node_in_status(&node.client(), "only");
    assert_eq!((this["address"].as_str(), &this["alive"]), (Some(node.base()), &json!(true)));
    let owners = &status["shards"][0]["owners"];
    assert_eq!((owners.as_array().map(Vec::len), &owners[0]["state"]), (Some(1), &json!("live")));
}

#[test]
fn a_name_is_refused_while_a_node_with_another_data_directory_has_it() {
    let nats = Nats::start();
    let mut first = named(&nats, "a").start();
    let client = first.client();
    wait_until("it has said that it is there", || {
        nats.last_of("KV_RANKTREE_NODES", "$KV.RANKTREE_NODES.a").is_some()
    });
    let said = named(&nats, "a").start_or_refusal().err().expect("the name is taken");
    for part in ["another node with the name a is running at", first.base(), "give each node a --node"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(client.get("/readyz").0, 200);
    // The same directory again: the lock says that the other process is gone.
    first.kill9();
    first.restart();
    // The name is free once nobody renews the entry.
    first.kill9();
    let second = named(&nats, "a").start();
    wait_until("it has the name", || {
        let last = nats.last_of("KV_RANKTREE_NODES", "$KV.RANKTREE_NODES.a");
        last.is_some_and(|entry| entry["address"] == second.base())
    });
    assert_eq!(node_in_status(&second.client(), "a")["problem"], Value::Null);
    end_unhalted(second);
}

#[test]
fn a_node_that_is_down_holds_the_purge_back_and_catches_up() {
    let nats = Nats::start();
    let (a, mut b) = two(&nats, &[]);
    settle(&nats, &[&a, &b]);
    b.kill9();
    let client = a.client();
    let floor_of_b = floor(&nats, "b");
    // What both have checkpointed goes although one is down; what only one has stays.
    let last = publish_many(&nats, 200);
    wait_applied(&client, &[last]);
    wait_until("there is a checkpoint", || checkpoint(&client) == last);
    wait_until("messages are held for the other", || {
        count(&shard_status(&client, 0)["stream"]["held_by"]["nodes"]["messages"]) > 100
    });
    let held_for = shard_status(&client, 0)["stream"]["held_for"].as_str().expect("it says why").to_owned();
    assert!(
        held_for.contains("the node b") && held_for.contains(&format!("from {floor_of_b} on")),
        "{held_for}"
    );
    assert_eq!(first(&nats), floor_of_b);
    b.restart();
    wait_applied(&b.client(), &[last]);
    wait_until("what both have checkpointed is purged", || first(&nats) == last);
    wait_until("nothing is held", || shard_status(&client, 0)["stream"]["held_for"] == Value::Null);
    for node in [&a, &b] {
        assert_eq!(node.client().get("/v1/boards/arena/members/m7").1["score"], 220);
    }
    end_unhalted(b);
    end_unhalted(a);
}

#[test]
fn a_node_under_another_name_takes_its_floors_along() {
    let nats = Nats::start();
    let a = named(&nats, "a").start();
    // Its name comes from its port, which is another one after each start.
    let mut b = Node::with_nats(&nats).flags(&["--checkpoint-seconds", "1"]).start();
    define(&a.client(), &json!({ "policy": "incr" }));
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    settle(&nats, &[&a, &b]);
    b.kill9();
    b.restart();
    wait_state(&b.client(), 0, "live");
    settle(&nats, &[&a, &b]);
    wait_until("there are two nodes", || {
        a.client().get("/v1/status").1["nodes"].as_array().map(Vec::len) == Some(2)
    });
    wait_until("its earlier floor is deleted", || nats.info("KV_RANKTREE_FLOORS").state.messages == 2);
    end_unhalted(b);
    end_unhalted(a);
}

#[test]
fn a_node_that_is_silent_for_long_is_forgotten() {
    let nats = Nats::start();
    let (mut a, mut b) = two(&nats, &["--nats-forget", "3s", "--nats-halt-seconds", "1"]);
    settle(&nats, &[&a, &b]);
    b.kill9();
    let last = publish_many(&nats, 50);
    wait_applied(&a.client(), &[last]);
    wait_until("it is no longer waited for", || first(&nats) == last);
    let count_of_lines =
        |node: &Node, words: &str| node.log().lines().filter(|line| line.contains(words)).count();
    assert_eq!(count_of_lines(&a, "silent for longer than --nats-forget"), 1, "{}", a.log());
    // What it needs is gone, so it gets a copy of the other's data, and holds the stream back again.
    b.restart();
    wait_state(&b.client(), 0, "live");
    settle(&nats, &[&a, &b]);
    assert!(count_of_lines(&a, "needs messages that are purged already") <= 1, "{}", a.log());
    end_unhalted(b);
    assert!(a.terminate().success());
    a.verify();
}

#[test]
fn a_floor_that_cannot_be_read_keeps_the_stream_until_it_is_deleted() {
    let nats = Nats::start();
    let a = named(&nats, "a").start();
    let client = a.client();
    define(&client, &json!({ "policy": "incr" }));
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    settle(&nats, &[&a]);
    let kept = first(&nats);
    let later = json!({ "format": 9, "readable_from": 9, "directory": "d", "floors": [1] });
    nats.publish("$KV.RANKTREE_FLOORS.z.0", later.to_string());
    wait_until("it is read", || a.log().contains("the floor of a node cannot be read"));
    let last = publish_many(&nats, 50);
    wait_until("it says what it is held for", || {
        let held_for = shard_status(&client, 0)["stream"]["held_for"].clone();
        held_for.as_str().is_some_and(|words| words.contains("the node z") && words.contains("format 9"))
    });
    wait_until("there is a checkpoint", || checkpoint(&client) == last);
    assert_eq!(first(&nats), kept);
    // A later entry that says that earlier versions may read it is read.
    let readable = json!({ "format": 9, "readable_from": 1, "directory": "d", "stream": "another", "sequence": 5, "more": {} });
    nats.publish("$KV.RANKTREE_FLOORS.z.0", readable.to_string());
    wait_until("the stream is purged", || first(&nats) == last);
    nats.publish("$KV.RANKTREE_FLOORS.z.0", later.to_string());
    let last = publish_many(&nats, 50);
    wait_until("there is a checkpoint", || checkpoint(&client) == last);
    let mut headers = HeaderMap::new();
    headers.insert("KV-Operation", "DEL");
    nats.try_publish_with("$KV.RANKTREE_FLOORS.z.0", b"", headers).expect("it is stored");
    wait_until("the stream is purged", || first(&nats) == last);
    end_unhalted(a);
}

/// The other node stays down: it would halt.
#[test]
fn a_stream_that_fills_up_is_purged_although_a_node_that_is_down_needs_it() {
    const STREAM_MIB: u64 = 8;
    let nats = Nats::start();
    let start = |name| named(&nats, name).stream_mib(STREAM_MIB).start();
    let (a, mut b) = (start("a"), start("b"));
    define(&a.client(), &json!({ "policy": "incr" }));
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    settle(&nats, &[&a, &b]);
    b.kill9();
    let floor_of_b = floor(&nats, "b");
    let filler = "x".repeat(900);
    let job = json!({ "board": "arena", "member": "m7", "score": 1, "meta": { "m": filler } });
    let body = Value::from(vec![job; 20]).to_string();
    let mut last = 0;
    for _ in 0..STREAM_MIB * 80 {
        // Publishes no faster than checkpoints make room.
        wait_until("there is room", || nats.info(STREAM).state.bytes < (STREAM_MIB << 20) / 16 * 15);
        last = nats.publish(arena::SUBJECT, &body);
    }
    wait_applied(&a.client(), &[last]);
    assert!(first(&nats) > floor_of_b);
    assert!(a.log().contains("that another node's checkpoint does not hold"), "{}", a.log());
    end_unhalted(a);
}

#[test]
fn buckets_that_are_lost_are_made_again_and_filled() {
    let nats = Nats::start();
    let (a, b) = two(&nats, &[]);
    settle(&nats, &[&a, &b]);
    for bucket in ["KV_RANKTREE_NODES", "KV_RANKTREE_FLOORS"] {
        nats.delete(bucket);
    }
    wait_until("both have said again what they need", || {
        nats.try_info("KV_RANKTREE_FLOORS").is_some_and(|info| info.state.messages == 2)
    });
    for (client, other) in [(a.client(), "b"), (b.client(), "a")] {
        wait_until("they know of each other", || node_in_status(&client, other)["alive"] == true);
    }
    settle(&nats, &[&a, &b]);
    end_unhalted(b);
    end_unhalted(a);
}
