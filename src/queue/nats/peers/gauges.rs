//! Metrics of the nodes that are known.
//!
//! The labels are versions, shards and names of nodes. Names are bounded: a node that is started under a new
//! name each time would add one at every start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metrics::gauge;

use crate::metrics::{self as names, figure};
use crate::queue::nats::peers::known::{Hearing, Peers};
use crate::queue::nats::peers::roster::KnownNode;
use crate::queue::nats::shard::NatsShard;
use crate::queue::this_node::ThisNode;
use crate::types::ShardId;

/// How many names of nodes and how many versions have a metric of their own.
const LABELS_MAX: usize = 64;

/// The labels that metrics were given, which must go back to zero when there is nothing to say any more.
#[derive(Default)]
pub struct PeerGauges {
    versions: BTreeSet<String>,
    nodes: BTreeSet<String>,
}

impl PeerGauges {
    /// Says what is known now.
    ///
    /// # Arguments
    /// - `shards`: those that this node owns
    /// - `shard_count`: the number of all shards
    pub fn set(&mut self, shards: &[NatsShard], shard_count: u16, peers: &Peers) {
        let others = peers.all();
        let mut by_version = BTreeMap::from([(ThisNode::VERSION.to_owned(), 1_u64)]);
        for version in others.iter().filter(|node| node.is_alive).filter_map(|node| node.version.as_ref()) {
            *by_version.entry(version.clone()).or_default() += 1;
        }
        note(&mut self.versions, by_version.keys());
        for version in &self.versions {
            let count = by_version.get(version).copied().unwrap_or(0);
            gauge!(names::NODES, &[("version", version.clone())]).set(figure(count));
        }
        gauge!(names::CLOCK_SKEW_SECONDS).set(peers.clock.skew_seconds());
        let own = (peers.this.name.to_string(), Duration::ZERO);
        let silent = others.iter().map(|node| (node.name.to_string(), node.silent));
        let silent: BTreeMap<_, _> = std::iter::once(own).chain(silent).collect();
        note(&mut self.nodes, silent.keys());
        for node in &self.nodes {
            let silent = silent.get(node).copied().unwrap_or_default();
            gauge!(names::NODE_SILENT_SECONDS, &[("node", node.clone())]).set(silent.as_secs_f64());
        }
        let has_heard = peers.hearing() == Hearing::Heard;
        for id in (0..shard_count).map(ShardId) {
            let own = shards.iter().find(|shard| shard.id == id);
            // Of a shard of others nothing is known before all of them would have been heard of.
            if own.is_none() && !has_heard {
                continue;
            }
            let label = || [("shard", id.to_string())];
            let owners = others.iter().filter(|node| owned_by(node, id)).count();
            let live = others.iter().filter(|node| node.is_alive && is_live_on(node, id)).count();
            let is_live_here = own.is_some_and(|shard| shard.health.is_live());
            gauge!(names::SHARD_OWNERS, &label()).set(count(owners + usize::from(own.is_some())));
            gauge!(names::SHARD_OWNERS_LIVE, &label()).set(count(live + usize::from(is_live_here)));
            if let Some(shard) = own {
                gauge!(names::SHARD_REPLICAS_DIFFERING, &label())
                    .set(figure(shard.health.get(|health| health.replicas_differing)));
            }
        }
    }
}

fn owned_by(node: &KnownNode, shard: ShardId) -> bool {
    node.shards.iter().any(|owned| owned.shard == shard)
}

fn is_live_on(node: &KnownNode, shard: ShardId) -> bool {
    let live = |state: &Option<String>| state.as_deref() == Some("live");
    node.shards.iter().any(|owned| owned.shard == shard && live(&owned.state))
}

fn count(number: usize) -> f64 {
    figure(u64::try_from(number).unwrap_or(u64::MAX))
}

/// Adds labels, as long as there are few.
fn note<'a>(labels: &mut BTreeSet<String>, new: impl Iterator<Item = &'a String>) {
    for label in new {
        if labels.len() < LABELS_MAX {
            labels.insert(label.clone());
        }
    }
}
