//! Nodes that own some of the shards: two with halves of four, and one that owns nothing.
//!
//! - [`writes`]: what each says of the shards, writes through any of them, and reads that lack shards
//! - [`boards`]: boards are decided through any node, for all shards, exactly
//! - [`changes`]: what a node owns grows and shrinks, and the commands on its directory
//! - [`refusals`]: what is refused, in words

mod boards;
mod changes;
mod refusals;
mod writes;

use std::collections::BTreeMap;

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};

use crate::support::client::{Client, count_of, entry_path};
use crate::support::nats::{Nats, shard_status, wait_until};
use crate::support::node::{Node, NodeSetup};

const SHARDS: u16 = 4;
const BOARD: &str = "arena";
/// What is said of a node that was not heard of lately.
const SILENT: &str = "silent";

/// A node of this name that owns these shards, and has the streams say how many there are.
fn owner(nats: &Nats, name: &str, own: &str) -> NodeSetup {
    Node::with_nats(nats).stream_mib(16).flags(&["--node", name, "--own", own])
}

struct Cluster {
    nats: Nats,
    /// Owns the shards 0 and 1.
    low: Node,
    /// Owns the shards 2 and 3.
    high: Node,
    /// Owns no shard.
    none: Node,
}

impl Cluster {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(flags: &[&str]) -> Self {
        let nats = Nats::start();
        let low = owner(&nats, "low", "0-1").shards(SHARDS).flags(flags).start();
        let high = owner(&nats, "high", "2,3").flags(flags).start();
        let none = owner(&nats, "none", "none").flags(flags).start();
        let cluster = Self { nats, low, high, none };
        for node in cluster.nodes() {
            wait_until("the owners are known", || owners(&node.client()) == ["low", "low", "high", "high"]);
        }
        cluster
    }

    fn nodes(&self) -> [&Node; 3] {
        [&self.low, &self.high, &self.none]
    }

    /// The node that owns a shard.
    fn owner_of(&self, shard: usize) -> &Node {
        if shard < 2 { &self.low } else { &self.high }
    }

    /// Waits until the owners have applied this.
    fn wait_applied(&self, written: &BTreeMap<usize, u64>) {
        for (shard, sequence) in written {
            wait_until("an owner has applied it", || applied(self.owner_of(*shard), *shard) >= *sequence);
        }
    }

    /// The messages in a shard's stream with commands about boards.
    fn commands(&self, shard: u16) -> Vec<Value> {
        let stream = format!("RANKTREE_JOBS_{shard}");
        let end = self.nats.info(&stream).state.last_sequence;
        let messages = (1..=end).map(|sequence| self.nats.message(&stream, sequence));
        messages.filter(|message| message.get("incarnation").is_some()).collect()
    }

    fn end(mut self) {
        for node in [&mut self.none, &mut self.high, &mut self.low] {
            assert!(node.terminate().success());
            assert!(!node.log().contains("is halted"), "{}", node.log());
        }
        self.low.verify();
        self.high.verify();
    }
}

/// The names of the first owner of each shard.
fn owners(client: &Client) -> Vec<String> {
    let shards = client.get("/v1/status").1["shards"].as_array().expect("a list").clone();
    let first = |shard: &Value| shard["owners"][0]["node"].as_str().unwrap_or_default().to_owned();
    shards.iter().map(first).collect()
}

fn applied(node: &Node, shard: usize) -> u64 {
    u64::try_from(count_of(&shard_status(&node.client(), shard)["applied_sequence"])).expect("it fits")
}

/// Members, the same number for each shard, and the shard of each.
fn members(each: usize) -> Vec<(String, usize)> {
    let mut left = vec![each; usize::from(SHARDS)];
    let home =
        |member: &String| shard_of(&MemberId::new(member.as_str()).expect("a good id"), SHARDS).index();
    let named = (0..).map(|number| format!("m{number}")).map(|member| (home(&member), member));
    let mut members = Vec::new();
    for (shard, member) in named {
        if left[shard] > 0 {
            left[shard] -= 1;
            members.push((member, shard));
        }
        if left.iter().all(|left| *left == 0) {
            break;
        }
    }
    members
}

/// Shard and sequence of each part of a token.
fn parts(answer: &Value) -> BTreeMap<usize, u64> {
    let token = answer["token"].as_str().unwrap_or_else(|| panic!("a token in {answer}"));
    let part = |part: &str| {
        let (shard, sequence) = part.split_once(':').expect("a shard and a sequence");
        (shard.parse().expect("a number"), sequence.parse().expect("a number"))
    };
    token.split(',').map(part).collect()
}

/// Defines a board, once the owners of all shards have been heard of.
fn define(client: &Client, board: &str, definition: &Value) -> (u16, Value) {
    let mut reply = (503, Value::Null);
    wait_until("the board is decided", || {
        reply = client.put(&format!("/v1/boards/{board}"), definition);
        reply.0 != 503
    });
    reply
}

fn score(client: &Client, member: &str, score: i64) -> (u16, Value) {
    client.put(&entry_path(BOARD, member), &json!({ "score": score }))
}

/// How many members an owner has on a shard.
fn members_on(node: &Node, shard: usize) -> usize {
    count_of(&shard_status(&node.client(), shard)["members"])
}
