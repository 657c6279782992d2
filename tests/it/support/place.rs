//! Where the contract must hold: at a node that owns every shard, and at one that owns none.
//!
//! A scenario of the contract is a function of a [`Place`]. [`at_each_place`] makes two tests of it, so the
//! list that the macro is given says which scenarios run twice.

use std::ops::{Deref, DerefMut};

use serde_json::json;
use ureq::http::Method;

use crate::support::client::Client;
use crate::support::nats::{Nats, wait_state, wait_until};
use crate::support::node::Node;

/// Makes a test of each scenario at each place.
macro_rules! at_each_place {
    ($($scenario:ident),* $(,)?) => {
        mod at_a_node_that_owns_all {
            $(#[test] fn $scenario() { super::$scenario($crate::support::place::Place::OwnsAll); })*
        }
        mod at_a_node_that_owns_nothing {
            $(#[test] fn $scenario() { super::$scenario($crate::support::place::Place::OwnsNothing); })*
        }
    };
}

pub(crate) use at_each_place;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// One node without NATS.
    OwnsAll,
    /// A node that owns no shard, beside two nodes that own half of the shards each. Every request goes
    /// through it, and takes other nodes. A shard has one owner, so a read sees what was applied before it.
    OwnsNothing,
}

/// The node that answers, and what it needs.
pub struct Served {
    /// The one that requests go to.
    node: Node,
    owners: Vec<Node>,
    _nats: Option<Nats>,
}

impl Place {
    pub fn start(self, shards: u16) -> Served {
        self.start_with(shards, &[])
    }

    /// # Arguments
    /// `flags`: of every node.
    pub fn start_with(self, shards: u16, flags: &[&str]) -> Served {
        if self == Self::OwnsAll {
            let node = Node::shards(shards).flags(flags).start();
            return Served { node, owners: Vec::new(), _nats: None };
        }
        let nats = Nats::start();
        let owning = |name: &str, own: &str| {
            let setup = Node::with_nats(&nats).shards(shards).stream_mib(64);
            setup.flags(&["--node", name, "--own", own]).flags(flags).start()
        };
        let (half, last) = (shards / 2, shards - 1);
        let mut owners = vec![owning("high", &format!("{half}-{last}"))];
        if half > 0 {
            owners.push(owning("low", &format!("0-{}", half - 1)));
        }
        let served = Served { node: owning("nothing", "none"), owners, _nats: Some(nats) };
        // Not the scenario's client: the flags may ask for tokens.
        let client = Client::new(served.node.base());
        for shard in 0..usize::from(shards) {
            wait_state(&client, shard, "live");
        }
        // Boards are decided once the node has heard of all shards.
        let board = "/v1/boards/before-the-scenario";
        wait_until("boards can be decided", || client.put(board, &json!({})).0 < 300);
        wait_until("it is gone", || {
            client.send(Method::DELETE, board, None).is_ok_and(|(status, _)| status == 200 || status == 404)
        });
        served
    }
}

impl Served {
    /// A client that waits until its writes are applied, as they are without NATS.
    pub fn client(&self) -> Client {
        self.node.client().waiting_for_writes()
    }

    /// Ends all nodes, and verifies what they have.
    pub fn end(mut self) {
        for node in std::iter::once(&mut self.node).chain(&mut self.owners) {
            assert!(node.terminate().success(), "{}", node.log());
        }
        let with_shards =
            if self.owners.is_empty() { std::slice::from_ref(&self.node) } else { &self.owners };
        with_shards.iter().for_each(Node::verify);
    }
}

impl Deref for Served {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl DerefMut for Served {
    fn deref_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}
