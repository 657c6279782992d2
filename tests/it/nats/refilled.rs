//! Nodes that have lost all their data are filled from their streams, and have the boards that there were:
//! none that was dropped is there again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::client::{Client, count_of, entry_path};
use crate::support::nats::{Nats, wait_state, wait_until};
use crate::support::node::{Node, NodeSetup};

const SHARDS: u16 = 2;
const BOARDS: &str = "RANKTREE_BOARDS";
const MEMBERS: usize = 20;

fn named(nats: &Nats, folder: &Path, name: &str) -> NodeSetup {
    let soon = ["--checkpoint-seconds", "1", "--node", name];
    Node::with_nats(nats).shards(SHARDS).stream_mib(64).flags(&soon).at(folder.join(name))
}

/// Jobs for a board, which is made by them unless there is one.
fn fill(client: &Client, board: &str) {
    let job = |member| json!({ "board": board, "member": format!("m{member}"), "score": member });
    let jobs: Vec<Value> = (0..MEMBERS).map(job).collect();
    wait_until("the jobs are applied", || {
        let (status, answer) = client.post("/v1/jobs?wait=applied", &json!(jobs));
        assert!(matches!(status, 200 | 503), "{answer}");
        status == 200
    });
}

fn drop_board(client: &Client, board: &str) {
    let dropped = client.send(ureq::http::Method::DELETE, &format!("/v1/boards/{board}"), None);
    let (status, answer) = dropped.expect("it answers");
    assert_eq!(status, 200, "{answer}");
}

fn boards(client: &Client) -> BTreeSet<String> {
    let (status, answer) = client.get("/v1/boards");
    assert_eq!(status, 200, "{answer}");
    let listed = answer["boards"].as_array().expect("a list").iter();
    listed.map(|board| board["board"].as_str().expect("a name").to_owned()).collect()
}

fn total(client: &Client, board: &str) -> Option<usize> {
    let (status, answer) = client.get(&format!("/v1/boards/{board}/top?limit=1"));
    (status == 200 && answer["stale"].is_null()).then(|| count_of(&answer["total"]))
}

fn all_live(nodes: &[Node]) {
    for node in nodes {
        for shard in 0..usize::from(SHARDS) {
            wait_state(&node.client(), shard, "live");
        }
    }
}

/// Boards of every kind: made by jobs or by a request, dropped at once or later, and made again.
fn make_and_drop(nodes: &[Node]) -> BTreeSet<String> {
    let (first, second) = (nodes[0].client(), nodes[1].client());
    fill(&first, "arena");
    for number in 0..8 {
        fill(&first, &format!("r{number}"));
        drop_board(&second, &format!("r{number}"));
    }
    assert_eq!(first.put("/v1/boards/defined", &json!({})).0, 201);
    fill(&second, "defined");
    fill(&second, "again");
    drop_board(&first, "again");
    drop_board(&first, "defined");
    fill(&first, "again");
    let there: BTreeSet<String> = ["again", "arena"].map(str::to_owned).into();
    for node in nodes {
        wait_until("both have the same boards", || boards(&node.client()) == there);
    }
    there
}

/// A board that a job wants after all was read is made after those that were wanted before.
fn holds_only(nats: &Nats, nodes: &[Node], there: &BTreeSet<String>, records: u64, late: &[&str]) {
    for (node, name) in nodes.iter().zip(late) {
        fill(&node.client(), name);
    }
    let there: BTreeSet<String> = there.iter().cloned().chain(late.iter().map(ToString::to_string)).collect();
    for node in nodes {
        wait_until("it has the boards that there were", || boards(&node.client()) == there);
        for board in &there {
            wait_until("they are whole", || total(&node.client(), board) == Some(MEMBERS));
        }
    }
    let made = u64::try_from(late.len()).expect("small");
    assert_eq!(nats.info(BOARDS).state.last_sequence, records + made, "no other record was stored");
}

#[test]
fn boards_that_were_dropped_stay_dropped_when_all_nodes_are_filled_from_the_streams() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let mut nodes: Vec<Node> = ["a", "b"].map(|name| named(&nats, folder.path(), name).start()).into();
    all_live(&nodes);
    let there = make_and_drop(&nodes);
    let records = nats.info(BOARDS).state.last_sequence;
    for node in &mut nodes {
        assert!(node.terminate().success());
        fs::remove_dir_all(node.data_dir()).expect("it is there");
    }
    for node in &mut nodes {
        node.restart();
    }
    all_live(&nodes);
    holds_only(&nats, &nodes, &there, records, &["late", "later"]);
    for node in &mut nodes {
        assert!(node.terminate().success());
        node.verify();
    }
}

/// A job for a board that was dropped before it begins another life of it, as ever.
#[test]
fn a_job_after_the_drop_makes_the_board_again_on_a_node_that_was_filled_from_the_streams() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let mut nodes = vec![named(&nats, folder.path(), "a").start()];
    all_live(&nodes);
    fill(&nodes[0].client(), "arena");
    drop_board(&nodes[0].client(), "arena");
    assert!(nodes[0].terminate().success());
    fs::remove_dir_all(nodes[0].data_dir()).expect("it is there");
    // It waits in the stream, behind the drop.
    let late = json!({ "board": "arena", "member": "late", "score": 1 });
    nats.publish_jobs(SHARDS, &[late], 1);
    nodes[0].restart();
    all_live(&nodes);
    let client = nodes[0].client();
    wait_until("the board is there again", || total(&client, "arena") == Some(1));
    assert_eq!(client.get(&entry_path("arena", "late")).0, 200);
    assert!(nodes[0].terminate().success());
    nodes[0].verify();
}
