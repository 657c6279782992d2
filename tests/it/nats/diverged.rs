//! Replicas of a shard that differ: both halt, say why, stay halted over restarts, and go on once the wrong
//! one was given a copy of the right one's data, or an operator says which one is right.

use std::path::Path;

use ranktree::state::{Change, EntryState, Step};
use ranktree::state_lock::{Purpose, StateLock};
use ranktree::storage::{Checkpoint, StorageResources, Store, TreesFrom, recover, shard_directory};
use ranktree::tree::Words;
use ranktree::types::{MemberId, ShardId, shard_of};
use serde_json::{Value, json};

use crate::support::arena::{STREAM, SUBJECT, define, end_unhalted, publish};
use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::snapshots::{restore, snapshot};

fn node(nats: &Nats, name: &str) -> Node {
    Node::with_nats(nats).stream_mib(64).flags(&["--node", name]).start()
}

/// Nodes of one shard, with a board that holds some members.
fn filled(nats: &Nats, names: &[&str]) -> Vec<Node> {
    let nodes: Vec<Node> = names.iter().map(|name| node(nats, name)).collect();
    define(&nodes[0].client(), &json!({ "policy": "incr" }));
    let mut last = 0;
    for number in 0..30 {
        last = publish(nats, &format!("m{}", number % 10));
    }
    for node in &nodes {
        wait_applied(&node.client(), &[last]);
    }
    nodes
}

/// Gives a member of a stopped node another score than its jobs say, in memory and in the checkpoint, as a
/// defect of the machine or of the program might. `ranktree verify` finds nothing: all pages agree.
fn falsify(data_dir: &Path, member: &str, shards: u16) {
    let path = shard_directory(data_dir, ShardId(0));
    let store = Store::open(&path, ShardId(0), shards, &StorageResources::new(8 << 20, 1)).expect("it opens");
    let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("it is whole");
    let mut shard = recovered.shard;
    let handle = shard.members.get(member.as_bytes()).expect("it is known");
    let tree = shard.board("arena").expect("it is defined").all;
    let mut entry = shard.entry(tree, handle).expect("it is listed");
    let mut words = entry.words().expect("it has some").as_slice().to_vec();
    words[0] -= 1_000;
    entry.state = EntryState::Listed(Words::from_slice(&words));
    let (applied, changes) = (shard.applied, vec![Change { tree, handle, after: Some(entry) }]);
    shard.apply(&Step { changes, applied, ..Step::default() });
    let state = StateLock::new(shard);
    let checkpoint = Checkpoint::begin(&mut state.write(Purpose::Apply));
    checkpoint.write(&store, &state).expect("the disk takes it");
    store.sync().expect("the disk takes it");
}

fn falsify_stopped(node: &mut Node, member: &str) {
    falsify_shard_0(node, member, 1);
}

fn falsify_shard_0(node: &mut Node, member: &str, shards: u16) {
    stop_and_falsify(node, member, shards);
    node.restart();
    wait_state(&node.client(), 0, "live");
}

fn stop_and_falsify(node: &mut Node, member: &str, shards: u16) {
    assert!(node.terminate().success());
    falsify(node.data_dir(), member, shards);
    node.verify();
}

fn score(client: &Client, member: &str) -> i64 {
    client.get(&entry_path("arena", member)).1["score"].as_i64().expect("an integer")
}

/// How many of the other replicas differ from the node's.
fn differing(node: &Node) -> Option<f64> {
    node.metric("ranktree_shard_replicas_differing{shard=\"0\"}")
}

/// The hashes that a node knows of all owners, by name.
fn hashes(client: &Client) -> Vec<Value> {
    let owners = shard_status(client, 0)["owners"].as_array().expect("a list").clone();
    owners.into_iter().map(|owner| owner["hash"].clone()).collect()
}

fn wait_equal_hashes(nodes: &[&Node]) {
    for node in nodes {
        let client = node.client();
        wait_until("all owners have the same hash", || {
            let hashes = hashes(&client);
            hashes.len() == nodes.len() && hashes.iter().all(|hash| hash.is_string() && *hash == hashes[0])
        });
    }
}

#[test]
fn two_replicas_that_differ_halt_until_one_is_given_a_copy_of_the_other() {
    let nats = Nats::start();
    let mut nodes = filled(&nats, &["a", "b"]);
    wait_equal_hashes(&[&nodes[0], &nodes[1]]);
    falsify_stopped(&mut nodes[1], "m3");
    let last = publish(&nats, "m3");
    let [a, b] = &mut nodes[..] else { panic!("there are two") };
    assert_eq!(score(&a.client(), "m7"), 3);
    for (node, other) in [(&*a, "the node b"), (&*b, "the node a")] {
        let reason = wait_state(&node.client(), 0, "halted");
        for part in [other, &format!("up to message {last}"), "RANKTREE_JOBS_0@", "--accept-diverged 0"] {
            assert!(reason.contains(part), "{part}: {reason}");
        }
        wait_until("the metric says so", || differing(node) == Some(1.0));
        // Reads go on, and say that they may be stale; writes are refused.
        let (status, entry) = node.client().get(&entry_path("arena", "m7"));
        assert_eq!((status, &entry["stale"]), (200, &json!(true)), "{entry}");
        let (status, answer) = node.client().put(&entry_path("arena", "m7"), &json!({ "score": 1 }));
        assert_eq!(status, 503, "{answer}");
    }
    assert_ne!(score(&a.client(), "m3"), score(&b.client(), "m3"));
    // Nobody applies what comes now, and nobody forgets, whichever is restarted first.
    let later = publish(&nats, "m7");
    for node in [&mut *b, &mut *a] {
        node.kill9();
        node.restart();
        let reason = wait_state(&node.client(), 0, "halted");
        assert!(reason.contains(&format!("up to message {last}")), "{reason}");
    }
    assert!(shard_status(&a.client(), 0)["applied_sequence"].as_u64() < Some(later));
    let folder = tempfile::tempdir().expect("a temporary directory");
    let copy = folder.path().join("copy");
    snapshot(a, &copy);
    assert!(b.terminate().success());
    let (code, said) = restore(&copy, b.data_dir(), &["--replace"]);
    assert_eq!(code, Some(0), "{said}");
    b.restart();
    for node in [&*a, &*b] {
        wait_state(&node.client(), 0, "live");
        wait_applied(&node.client(), &[later]);
        assert_eq!((score(&node.client(), "m3"), score(&node.client(), "m7")), (4, 4));
        wait_until("the metric says so", || differing(node) == Some(0.0));
    }
    wait_equal_hashes(&[a, b]);
    // It is over for good.
    for node in [&mut *a, &mut *b] {
        assert!(node.terminate().success());
        node.verify();
        node.restart();
        wait_state(&node.client(), 0, "live");
    }
    let last = publish(&nats, "m3");
    for node in [&*a, &*b] {
        wait_applied(&node.client(), &[last]);
    }
    wait_equal_hashes(&[a, b]);
}

#[test]
fn an_operator_says_which_replica_is_right_and_the_other_begins_anew() {
    let nats = Nats::start();
    let mut nodes = filled(&nats, &["a", "b"]);
    falsify_stopped(&mut nodes[1], "m3");
    let last = publish(&nats, "m3");
    let [a, b] = &mut nodes[..] else { panic!("there are two") };
    for node in [&*a, &*b] {
        wait_state(&node.client(), 0, "halted");
    }
    // Also while the wrong one is still there, and says what it has.
    assert!(a.terminate().success());
    a.restart_with(&["--accept-diverged", "0"]);
    wait_state(&a.client(), 0, "live");
    let later = publish(&nats, "m3");
    wait_applied(&a.client(), &[later]);
    assert_eq!(score(&a.client(), "m3"), 5);
    assert!(a.log().contains("because of --accept-diverged"), "{}", a.log());
    wait_state(&b.client(), 0, "halted");
    b.kill9();
    drop(std::mem::replace(b, node(&nats, "c")));
    wait_applied(&b.client(), &[later]);
    wait_equal_after(&nats, &[a, b], last);
    assert!(a.terminate().success());
    a.restart();
    wait_state(&a.client(), 0, "live");
    assert_eq!((score(&a.client(), "m3"), score(&b.client(), "m3")), (5, 5));
    wait_until("the metric says so", || differing(b) == Some(0.0));
}

/// Waits until both have said the same after some message.
fn wait_equal_after(nats: &Nats, nodes: &[&mut Node], after: u64) {
    let last = publish(nats, "m9");
    assert!(last > after);
    for node in nodes {
        wait_applied(&node.client(), &[last]);
        let client = node.client();
        wait_until("both have the same hash", || {
            let live = shard_status(&client, 0)["owners"].as_array().expect("a list").clone();
            let hashes: Vec<_> =
                live.iter().filter(|owner| owner["state"] == "live").map(|owner| &owner["hash"]).collect();
            hashes.len() == nodes.len() && hashes.iter().all(|hash| hash.is_string() && *hash == hashes[0])
        });
    }
}

#[test]
fn of_three_replicas_the_one_that_differs_halts_alone() {
    let nats = Nats::start();
    let mut nodes = filled(&nats, &["a", "b", "c"]);
    stop_and_falsify(&mut nodes[0], "m3", 1);
    let last = publish(&nats, "m3");
    // Else these would have to say what they have within six seconds after the first one does.
    for node in &nodes[1..] {
        let (client, point) = (node.client(), format!("{last}:"));
        let is_there = |hash: &Value| hash.as_str().is_some_and(|hash| hash.starts_with(&point));
        wait_until("the other two have said what they have", || {
            hashes(&client).iter().filter(|hash| is_there(hash)).count() == 2
        });
    }
    nodes[0].restart();
    let reason = wait_state(&nodes[0].client(), 0, "halted");
    assert!(reason.contains("the node b") || reason.contains("the node c"), "{reason}");
    for node in &nodes[1..] {
        wait_until("it sees that one differs", || differing(node) == Some(1.0));
        wait_until("the log says so", || node.log().contains("more replicas have this node's hash"));
    }
    let last = publish(&nats, "m7");
    for node in nodes.drain(1..) {
        wait_applied(&node.client(), &[last]);
        end_unhalted(node);
    }
}

/// Each of the two may be wrong, and a copy of the wrong one would outvote the right one.
#[test]
fn a_node_that_needs_a_copy_gets_none_of_replicas_that_differ() {
    let nats = Nats::start();
    let mut nodes = filled(&nats, &["a", "b"]);
    falsify_stopped(&mut nodes[1], "m3");
    publish(&nats, "m3");
    for node in &nodes {
        wait_state(&node.client(), 0, "halted");
    }
    let stream = nats.info(STREAM).state;
    nats.purge(STREAM, stream.last_sequence);
    // The stream cannot fill it.
    let new = node(&nats, "c");
    wait_until("it says that nobody can give a copy", || {
        let reason = wait_state(&new.client(), 0, "halted");
        ["on a it is halted", "on b it is halted"].iter().all(|part| reason.contains(part))
    });
    // Not while they start, either: a shard is halted by its writer.
    for node in &mut nodes {
        node.kill9();
        node.restart();
    }
    for node in &nodes {
        wait_state(&node.client(), 0, "halted");
    }
    let (a, _) = nodes.split_at_mut(1);
    assert_eq!(shard_status(&new.client(), 0)["members"], json!(0));
    assert!(!new.log().contains("a copy of another node's data is in place"), "{}", new.log());
    // The operator says which one is right.
    assert!(a[0].terminate().success());
    a[0].restart_with(&["--accept-diverged", "0"]);
    wait_state(&new.client(), 0, "live");
    // As long as it hears only of the wrong one, its own may be wrong as well.
    a[0].kill9();
    let reason = wait_state(&new.client(), 0, "halted");
    assert!(reason.contains("the node b"), "{reason}");
    a[0].restart_with(&["--accept-diverged", "0"]);
    wait_state(&new.client(), 0, "live");
    let later = publish(&nats, "m3");
    for node in [&a[0], &new] {
        wait_applied(&node.client(), &[later]);
        assert_eq!(score(&node.client(), "m3"), 5);
    }
}

/// A shard that is halted for a difference takes no copy, and does not keep one from the node's other shards.
#[test]
fn a_shard_that_differs_takes_no_copy_and_the_others_of_its_node_do() {
    let nats = Nats::start();
    let start = |name| Node::with_nats(&nats).shards(2).stream_mib(64).flags(&["--node", name]).start();
    let mut nodes = ["a", "b", "c"].map(start);
    define(&nodes[0].client(), &json!({ "policy": "incr" }));
    let job = |member: String| json!({ "board": "arena", "member": member, "score": 1 });
    let jobs: Vec<Value> = (0..40).map(|number| job(format!("m{}", number % 20))).collect();
    let last = nats.publish_jobs(2, &jobs, 1);
    for node in &nodes {
        wait_applied(&node.client(), &last);
    }
    let is_home =
        |member: &String| shard_of(&MemberId::new(member.as_str()).expect("a good id"), 2) == ShardId(0);
    let member = (0..20).map(|number| format!("m{number}")).find(is_home).expect("one of many");
    falsify_shard_0(&mut nodes[2], &member, 2);
    nats.publish_jobs(2, &[job(member)], 1);
    wait_state(&nodes[2].client(), 0, "halted");
    assert!(nodes[2].terminate().success());
    let last = nats.publish_jobs(2, &jobs, 1);
    for node in &nodes[..2] {
        wait_applied(&node.client(), &last);
    }
    for (shard, last) in last.iter().enumerate() {
        nats.purge(&format!("RANKTREE_JOBS_{shard}"), last + 1);
    }
    let [a, _, c] = &mut nodes;
    c.restart();
    wait_state(&c.client(), 1, "live");
    let reason = wait_state(&c.client(), 0, "halted");
    assert!(reason.contains("--accept-diverged 0"), "{reason}");
    // The operator does without what is wrong here.
    assert!(c.terminate().success());
    c.restart_with(&["--accept-diverged", "0"]);
    wait_state(&c.client(), 0, "live");
    wait_applied(&c.client(), &last);
    assert_eq!(
        c.client().get("/v1/boards/arena/top").1["entries"],
        a.client().get("/v1/boards/arena/top").1["entries"]
    );
}

/// What is no hash is passed over, and one that lies is outvoted. An entry expires with its node.
#[test]
fn entries_that_cannot_be_read_or_lie_halt_nobody() {
    let nats = Nats::start();
    let nodes = filled(&nats, &["a", "b"]);
    wait_equal_hashes(&[&nodes[0], &nodes[1]]);
    let known = nats.last_of("KV_RANKTREE_NODES", "$KV.RANKTREE_NODES.a").expect("it is there");
    let hashes = &known["shards"][0]["hashes"];
    let entry = |name: &str, hashes: Value| {
        let mut entry = known.clone();
        entry["directory"] = json!(format!("h:/{name}"));
        entry["shards"][0]["hashes"] = hashes;
        nats.publish(&format!("$KV.RANKTREE_NODES.{name}"), entry.to_string());
    };
    let last = hashes["at"].as_array().and_then(|at| at.last()).and_then(Value::as_str).expect("a point");
    let (sequence, _) = last.split_once(':').expect("a sequence and a hash");
    let lie = format!("{sequence}:00000000000000ff");
    let with = |field: &str, value: Value| {
        let mut hashes = hashes.clone();
        hashes["at"] = json!([lie]);
        hashes[field] = value;
        hashes
    };
    for (number, unreadable) in [
        json!(7),
        with("at", json!([lie, 5])),
        with("at", json!([format!("{sequence}:zz"), sequence, "x:00000000000000ff"])),
        with("version", json!(99)),
        with("stream", json!("ANOTHER@1")),
    ]
    .into_iter()
    .enumerate()
    {
        entry(&format!("y{number}"), unreadable);
    }
    let mut sees = [false; 2];
    wait_until("both see that one differs", || {
        // It is forgotten within seconds.
        entry("z", with("at", json!([lie])));
        for (node, sees) in nodes.iter().zip(&mut sees) {
            *sees |= differing(node) == Some(1.0);
        }
        sees == [true; 2]
    });
    wait_until("the entries are forgotten", || nodes.iter().all(|node| differing(node) == Some(0.0)));
    let last = nats.publish(SUBJECT, json!({ "board": "arena", "member": "m3", "score": 1 }).to_string());
    for node in nodes {
        wait_applied(&node.client(), &[last]);
        end_unhalted(node);
    }
}
