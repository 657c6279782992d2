//! A node that owns a shard with others is led to another server for a while, and comes back with data that
//! are not of the shard's stream. It halts, and harms nobody, whatever its operator permits; with its
//! directory out of the way it gets a copy.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arena::{STREAM, define};
use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, shard_status, wait_state, wait_until};
use crate::support::node::{NatsAddress, Node, NodeSetup};

const ACCEPT: [&str; 2] = ["--accept-gap", "0"];

/// Counts up by one through a node, which has to answer that it is applied.
fn count_up(client: &Client, times: usize) {
    for _ in 0..times {
        let path = format!("{}?wait=applied", entry_path("arena", "p1"));
        let (status, answer) = client.put(&path, &json!({ "score": 1 }));
        assert_eq!(status, 200, "{answer}");
    }
}

fn wait_ready(client: &Client) {
    wait_until("it takes writes", || client.get("/readyz").0 == 200);
}

fn score(client: &Client) -> Value {
    client.get(&entry_path("arena", "p1")).1["score"].clone()
}

/// What a rebase would change: the limit, the mark in the metadata, and the first message.
fn stream(nats: &Nats) -> (i64, bool, u64) {
    let info = nats.info(STREAM);
    let is_marked = info.config.metadata.contains_key("ranktree-limit-before");
    (info.config.max_bytes, is_marked, info.state.first_sequence)
}

/// Two owners of a shard, and a node that owns none. One of the owners was led to an empty server, took it
/// up there as its reason says, and is back, stopped.
struct Astray {
    nats: Nats,
    _other: Nats,
    folder: TempDir,
    healthy: Node,
    reader: Node,
    back: Node,
    stream: (i64, bool, u64),
}

const BEFORE: usize = 10;
const AWAY: usize = 30;

fn node(nats: &(impl NatsAddress + ?Sized), folder: &TempDir, name: &str, own: &str) -> NodeSetup {
    let soon = ["--checkpoint-seconds", "1", "--nats-halt-seconds", "1"];
    let setup = Node::with_nats(nats).shards(1).stream_mib(64).flags(&soon);
    setup.flags(&["--node", name, "--own", own]).at(folder.path().join(name))
}

impl Astray {
    fn start() -> Self {
        let (nats, other) = (Nats::start(), Nats::start());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let healthy = node(&nats, &folder, "a", "0").start();
        define(&healthy.client(), &json!({ "policy": "incr" }));
        let mut back = node(&nats, &folder, "b", "0").start();
        let reader = node(&nats, &folder, "c", "none").start();
        wait_ready(&healthy.client());
        count_up(&healthy.client(), BEFORE);
        wait_until("both have it", || score(&back.client()) == json!(BEFORE));
        assert!(back.terminate().success());

        let mut away = node(&other, &folder, "b", "0").start();
        let reason = wait_state(&away.client(), 0, "halted");
        for said in ["does not exist any more", "--nats or --prefix leads to another server"] {
            assert!(reason.contains(said), "{said}: {reason}");
        }
        assert!(away.terminate().success());
        away.restart_with(&ACCEPT);
        wait_state(&away.client(), 0, "live");
        wait_ready(&away.client());
        count_up(&away.client(), AWAY);
        assert!(away.terminate().success());
        let stream = stream(&nats);
        Self { nats, _other: other, folder, healthy, reader, back, stream }
    }

    /// The node is halted, and says what is wrong and what to do.
    fn halts(&self) {
        let reason = wait_state(&self.back.client(), 0, "halted");
        for said in ["the node a has the data", "shard-000", "without --accept-gap", "a copy of a's data"] {
            assert!(reason.contains(said), "{said}: {reason}");
        }
        assert!(!reason.contains("start with --accept-gap"), "{reason}");
        assert_eq!(stream(&self.nats), self.stream, "the stream has changed");
    }

    fn shard_of_back(&self) -> PathBuf {
        self.back.data_dir().join("shard-000")
    }

    /// With the shard's directory out of the way, the node has the data of the healthy one.
    fn mend(mut self) {
        assert!(self.back.terminate().success());
        let aside = self.folder.path().join("aside");
        fs::rename(self.shard_of_back(), aside).expect("it can be moved");
        self.back.restart();
        wait_state(&self.back.client(), 0, "live");
        wait_ready(&self.healthy.client());
        count_up(&self.healthy.client(), 1);
        let expect = score(&self.healthy.client());
        wait_until("it has the same data", || score(&self.back.client()) == expect);
        for node in [&mut self.back, &mut self.reader, &mut self.healthy] {
            assert!(node.terminate().success());
        }
        self.back.verify();
        self.healthy.verify();
    }
}

#[test]
fn a_stream_that_a_live_owner_has_is_not_renumbered_for_one_that_was_led_astray() {
    let mut astray = Astray::start();
    astray.back.restart();
    astray.halts();
    let healthy = astray.healthy.client();
    wait_until("the others have heard of it", || {
        let status = shard_status(&healthy, 0);
        let mut owners = status["owners"].as_array().into_iter().flatten();
        owners.any(|owner| owner["node"] == "b" && owner["state"] == "halted")
    });
    // It has applied more elsewhere. Writes through the others are of no concern to it.
    count_up(&healthy, 4);
    count_up(&astray.reader.client(), 4);
    let path = entry_path("arena", "p1");
    assert_eq!(astray.back.client().put(&path, &json!({ "score": 1 })).0, 503);
    // As it was told at the wrong server; also if it is killed then.
    for _ in 0..2 {
        astray.back.kill9();
        astray.back.restart_with(&ACCEPT);
        astray.halts();
        wait_until("the log says so", || astray.back.log().contains("--accept-gap is refused"));
        count_up(&healthy, 1);
        count_up(&astray.reader.client(), 1);
    }
    assert_eq!(score(&healthy), json!(BEFORE + 12));
    wait_state(&healthy, 0, "live");
    astray.mend();
}

/// The owner whose data are of the stream is down. Its floor tells of it.
#[test]
fn a_stream_is_not_renumbered_while_its_owner_is_down() {
    let mut astray = Astray::start();
    let floor = || astray.nats.last_of("KV_RANKTREE_FLOORS", "$KV.RANKTREE_FLOORS.a.0");
    wait_until("its floor is stored", || floor().is_some());
    assert!(astray.healthy.terminate().success());
    astray.back.restart_with(&ACCEPT);
    astray.halts();
    astray.healthy.restart();
    wait_state(&astray.healthy.client(), 0, "live");
    assert_eq!(score(&astray.healthy.client()), json!(BEFORE));
    astray.mend();
}
