//! The nodes that a stream of jobs is played to.

use std::thread;
use std::time::Duration;

use async_nats::HeaderMap;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::client::{Client, count_of};
use crate::support::nats::{Nats, shard_status, wait_state, wait_until};
use crate::support::node::{Node, NodeSetup};
use crate::support::snapshots::{restore, snapshot};
use crate::support::write_service::{Answer, GameService};

pub struct Cluster {
    pub shards: u16,
    pub nodes: Vec<Node>,
    /// The shards of each node.
    owned: Vec<Vec<u16>>,
    clients: Vec<Client>,
    pub nats: Option<Nats>,
    writer: Option<GameService>,
    /// Where the data directories are.
    folder: TempDir,
}

impl Cluster {
    pub fn embedded(shards: u16) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let node = often(Node::at(folder.path().join("0")).shards(shards)).start();
        let owned = vec![(0..shards).collect()];
        Self::of(shards, vec![node], owned, None, folder)
    }

    /// # Arguments
    /// `owned`: what each node owns, as `--own` has it.
    pub fn with_nats(shards: u16, owned: &[&[u16]]) -> Self {
        let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
        let node = |(number, owned): (usize, &&[u16])| {
            let own: Vec<String> = owned.iter().map(u16::to_string).collect();
            let setup = Node::with_nats(&nats).at(folder.path().join(number.to_string())).shards(shards);
            let flags = ["--node", &format!("node-{number}"), "--own", &own.join(",")];
            often(setup.stream_mib(16).flags(&flags)).start()
        };
        let nodes = owned.iter().enumerate().map(node).collect();
        Self::of(shards, nodes, owned.iter().map(|owned| owned.to_vec()).collect(), Some(nats), folder)
    }

    fn of(shards: u16, nodes: Vec<Node>, owned: Vec<Vec<u16>>, nats: Option<Nats>, folder: TempDir) -> Self {
        let clients = nodes.iter().map(|node| node.client().waiting_for_writes()).collect();
        let writer = nats.as_ref().map(|nats| GameService::connect(&nats.url()));
        let cluster = Self { shards, nodes, owned, clients, nats, writer, folder };
        cluster.wait_live();
        cluster
    }

    pub fn client(&self, node: usize) -> &Client {
        self.clients.get(node).expect("there is such a node")
    }

    pub fn kill9(&mut self, node: usize) {
        self.nodes.get_mut(node).expect("there is such a node").kill9();
    }

    /// Starts a node that was killed, and waits until every node answers for every shard.
    pub fn restart(&mut self, node: usize) {
        let stopped = self.nodes.get_mut(node).expect("there is such a node");
        stopped.restart();
        *self.clients.get_mut(node).expect("each node has one") = stopped.client().waiting_for_writes();
        self.wait_live();
    }

    /// Kills a node that is not the only owner of its shards, and takes one of them away: it gets a copy.
    pub fn lose_a_shard(&mut self, node: usize) {
        self.kill9(node);
        let shard = self.owned.get(node).and_then(|owned| owned.first()).expect("it owns one");
        let folder = self.nodes.get(node).expect("there is such a node").data_dir();
        std::fs::remove_dir_all(folder.join(format!("shard-{shard:03}"))).expect("it is there");
        self.restart(node);
    }

    /// Has the only node go on with what a snapshot of it holds.
    pub fn go_on_from_a_snapshot(&mut self) {
        let [taken, restored] = ["snapshot", "restored"].map(|name| self.folder.path().join(name));
        snapshot(&self.nodes[0], &taken);
        assert!(self.nodes[0].terminate().success(), "{}", self.nodes[0].log());
        let (code, said) = restore(&taken, &restored, &[]);
        assert_eq!(code, Some(0), "{said}");
        self.nodes[0] = often(Node::at(restored).shards(self.shards)).start();
        self.clients[0] = self.nodes[0].client().waiting_for_writes();
        self.wait_live();
    }

    /// Kills a node, and takes its data away.
    pub fn lose(&mut self, node: usize) {
        self.kill9(node);
        let folder = self.nodes.get(node).expect("there is such a node").data_dir().to_owned();
        std::fs::remove_dir_all(folder).expect("it can be removed");
    }

    fn wait_live(&self) {
        for client in &self.clients {
            for shard in 0..usize::from(self.shards) {
                wait_state(client, shard, "live");
            }
        }
    }

    /// Has an owner of a shard write jobs, and gives its answer.
    pub fn write(&self, shard: u16, jobs: &Value) -> Value {
        let writer = self.writer.as_ref().expect("there is NATS");
        let subject = format!("ranktree.write.{shard}");
        loop {
            // An owner subscribes after its shard is live.
            match writer.ask(&subject, &jobs.to_string(), HeaderMap::new()) {
                Answer::NoResponders => thread::sleep(Duration::from_millis(10)),
                Answer::Said(200, answer) => return answer,
                other => panic!("it was not taken: {other:?}"),
            }
        }
    }

    /// What reads wait for: all that the streams have, or that the only node has applied.
    pub fn token(&self) -> String {
        let Some(nats) = &self.nats else {
            let (_, answer) = self.client(0).get("/v1/boards?limit=1");
            return answer["as_of"].as_str().expect("a token").to_owned();
        };
        let end = |shard| nats.info(&format!("RANKTREE_JOBS_{shard}")).state.last_sequence;
        let ends: Vec<String> = (0..self.shards).map(|shard| format!("{shard}:{}", end(shard))).collect();
        ends.join(",")
    }

    /// Waits until every owner of a shard has applied all that the streams have.
    pub fn wait_applied(&self) {
        let Some(nats) = &self.nats else { return };
        for shard in 0..self.shards {
            let end = nats.info(&format!("RANKTREE_JOBS_{shard}")).state.last_sequence;
            let owners = self.owned.iter().zip(&self.clients).filter(|(owned, _)| owned.contains(&shard));
            for (_, client) in owners {
                wait_until("it is applied", || {
                    let status = shard_status(client, usize::from(shard));
                    count_of(&status["applied_sequence"]) >= usize::try_from(end).expect("it is small")
                });
            }
        }
    }

    /// Another node, beside these.
    pub fn other(&self, shards: u16) -> Node {
        Node::at(self.folder.path().join("other")).shards(shards).start()
    }

    /// The path of a file beside the data directories.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("it is text").to_owned()
    }

    /// Ends all nodes, and verifies what they have.
    pub fn end(&mut self) {
        for node in &mut self.nodes {
            assert!(node.terminate().success(), "{}", node.log());
            node.verify();
        }
    }
}

/// Checkpoints are frequent, so that a start loads one and replays what came after it.
fn often(setup: NodeSetup) -> NodeSetup {
    setup.flags(&["--checkpoint-changes", "400"])
}
