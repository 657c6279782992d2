//! Three nats-servers, three nodes, six shards, two copies of each. Nodes reach the servers by links that can
//! be cut.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::{self, stream::Config};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::support::client::Client;
use crate::support::nats::{connect, wait_until};
use crate::support::nats_cluster::Cluster;
use crate::support::node::Node;
use crate::support::toggled_link::ToggledLink;

pub const SHARDS: u16 = 6;
/// Each shard on two nodes, and no two nodes with the same shards.
const OWNED: [(&str, &str); 3] = [("a", "0-3"), ("b", "2-5"), ("c", "0-1,4-5")];
/// Defined once, and there until the end.
pub const ARENA: &str = "arena";
/// Dropped and defined again and again.
pub const SEASON: &str = "season";
/// Messages that are safe in checkpoints are purged when they are older than this, so that a node that lost
/// its data needs a copy.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(5);

pub struct World {
    pub cluster: Cluster,
    pub nodes: Vec<Node>,
    /// Each node's links to the servers.
    pub links: Vec<Vec<ToggledLink>>,
    /// An earlier copy of each node's data directory, if one was taken.
    pub copies: Vec<Option<PathBuf>>,
    pub folder: TempDir,
}

impl World {
    pub fn start() -> Self {
        let cluster = Cluster::start_unadvertised();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (mut nodes, mut links) = (Vec::new(), Vec::new());
        for (name, owned) in OWNED {
            let to: Vec<_> = cluster.addresses().iter().map(|address| ToggledLink::start(address)).collect();
            let urls: Vec<_> = to.iter().map(|link| format!("nats://{}", link.address())).collect();
            let setup = Node::with_nats(&urls.join(",")).shards(SHARDS).stream_mib(64);
            let setup = setup.at(folder.path().join(name)).flags(&["--node", name, "--own", owned]);
            let often = ["--nats-replicas", "3", "--checkpoint-seconds", "1", "--nats-keep", "0"];
            nodes.push(setup.flags(&often).flags(&["--no-auto-create"]).start());
            links.push(to);
        }
        let world = Self { cluster, nodes, links, copies: vec![None; OWNED.len()], folder };
        world.define(ARENA);
        world.shorten_duplicate_windows();
        world
    }

    fn define(&self, board: &str) {
        let client = self.nodes[0].client();
        wait_until("the board is defined", || {
            let (status, answer) = client.put(&format!("/v1/boards/{board}"), &definition());
            assert!(matches!(status, 200 | 201 | 503), "{answer}");
            status != 503
        });
    }

    fn shorten_duplicate_windows(&self) {
        let config = |stream: &String| self.cluster.info(stream).expect("all servers are up").config;
        let configs: Vec<Config> = Self::streams().iter().map(config).collect();
        Runtime::new().expect("a runtime").block_on(async {
            let context = jetstream::new(connect(&self.cluster.urls()).await);
            for config in configs {
                let config = Config { duplicate_window: DUPLICATE_WINDOW, ..config };
                context.update_stream(config).await.expect("it is updated");
            }
        });
    }

    pub fn streams() -> Vec<String> {
        (0..SHARDS).map(|shard| format!("RANKTREE_JOBS_{shard}")).collect()
    }

    /// Where the nodes are at the moment: a node has another port after each start.
    pub fn bases(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.base().to_owned()).collect()
    }

    pub fn cut(&self, node: usize) {
        self.links[node].iter().for_each(ToggledLink::cut);
    }

    pub fn join(&self, node: usize) {
        self.links[node].iter().for_each(ToggledLink::join);
    }

    /// Copies a stopped node's data directory, for later.
    pub fn keep_copy(&mut self, node: usize) {
        let to = self.folder.path().join(format!("copy-{node}"));
        let _ = fs::remove_dir_all(&to);
        crate::support::files::copy_folder(self.nodes[node].data_dir(), &to);
        self.copies[node] = Some(to);
    }

    /// Puts the earlier copy back in place of a stopped node's data directory; without one, leaves it.
    pub fn put_copy_back(&self, node: usize) {
        let Some(copy) = &self.copies[node] else { return };
        let data = self.nodes[node].data_dir();
        fs::remove_dir_all(data).expect("it can be removed");
        crate::support::files::copy_folder(copy, data);
    }

    pub fn empty(&self, node: usize) {
        fs::remove_dir_all(self.nodes[node].data_dir()).expect("it can be removed");
    }

    /// Waits until every owned shard of every node applies what is published at present.
    pub fn wait_ready(&self) {
        for node in &self.nodes {
            let client = node.client();
            wait_until("every node is ready", || {
                assert!(!node.log().contains("is halted"), "{}", node.log());
                client.get("/readyz").0 == 200
            });
        }
    }
}

/// Both boards: every job counts once or is missed at once, and ties need no times.
pub fn definition() -> serde_json::Value {
    json!({ "policy": "incr", "ties": "member" })
}

/// The client of a node at an address.
pub fn client(base: &str) -> Client {
    Client::new(base)
}
