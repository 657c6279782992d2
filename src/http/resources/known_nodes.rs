//! What status says of the nodes on the same streams, and of the nodes that own a shard. All of it is in
//! memory: NATS is not asked.

use crate::http::api::Api;
use crate::http::render::json::Object;
use crate::operations::{KnownNode, OwnedShard, ThisNode};
use crate::query::ShardHandle;
use crate::types::ShardId;

/// The state of a shard on a node that is silent.
const SILENT: &str = "silent";
/// The state of a shard that no node is known to own.
const NO_OWNER: &str = "no_owner";
/// The state of a shard on a node that has not said it.
const UNKNOWN: &str = "unknown";

/// All nodes that are known, by name.
pub fn write_nodes(object: &mut Object<'_>, api: &Api, others: &[KnownNode]) {
    let this = &api.operations.this_node;
    let problem = api.operations.own_problem();
    let mut nodes: Vec<Option<&KnownNode>> = others.iter().map(Some).chain([None]).collect();
    nodes.sort_by_key(|node| node.map_or(&this.name, |node| &node.name));
    object.array("nodes", &nodes, |out, node| {
        let mut object = Object::begin(out);
        if let Some(node) = node {
            object.text("node", node.name.as_str());
            object.or_null("address", node.address.as_deref(), Object::text);
            object.or_null("version", node.version.as_deref(), Object::text);
            object.bool("alive", node.is_alive);
            object.count("silent_seconds", node.silent.as_secs());
            object.or_null("problem", node.problem.as_deref(), Object::text);
        } else {
            object.text("node", this.name.as_str());
            object.text("address", &this.address);
            object.text("version", ThisNode::VERSION);
            object.bool("alive", true);
            object.count("silent_seconds", 0);
            object.or_null("problem", problem.as_deref(), Object::text);
        }
        object.end();
    });
}

/// The nodes that own a shard, this one first.
///
/// # Arguments
/// `own`: the shard and its lag, if this node owns it.
pub fn write_owners(
    object: &mut Object<'_>,
    this: &ThisNode,
    shard: ShardId,
    own: Option<(&ShardHandle, u64)>,
    others: &[KnownNode],
) {
    let others = owners(shard, others).map(Some);
    let owners: Vec<_> = own.iter().map(|_| None).chain(others).collect();
    object.array("owners", &owners, |out, owner| {
        let mut object = Object::begin(out);
        if let Some((node, owned)) = owner {
            write_owned(&mut object, node, owned);
        } else if let Some((shard, lag)) = own {
            object.text("node", this.name.as_str());
            object.text("state", shard.health.state().name());
            object.count("applied_sequence", shard.applied.get().0);
            object.count("lag", lag);
            object.count("checkpoint_sequence", shard.health.get(|health| health.checkpoint_sequence));
            let hash = shard
                .health
                .get(|health| health.hashes.clone())
                .running
                .point()
                .map(|point| point.to_string());
            object.or_null("hash", hash.as_deref(), Object::text);
        }
        object.end();
    });
}

/// The state of a shard on the other nodes: the best of its owners'.
pub fn best_state(shard: ShardId, others: &[KnownNode]) -> &str {
    const BEST_FIRST: [&str; 4] = ["live", "catching_up", "halted", SILENT];
    let states: Vec<&str> = owners(shard, others).map(|(node, owned)| state_on(node, owned)).collect();
    let best = BEST_FIRST.into_iter().find(|state| states.contains(state));
    best.or(states.first().copied()).unwrap_or(NO_OWNER)
}

fn owners(shard: ShardId, others: &[KnownNode]) -> impl Iterator<Item = (&KnownNode, &OwnedShard)> {
    others.iter().filter_map(move |node| Some((node, node.shards.iter().find(|owned| owned.shard == shard)?)))
}

fn state_on<'a>(node: &KnownNode, owned: &'a OwnedShard) -> &'a str {
    if node.is_alive { owned.state.as_deref().unwrap_or(UNKNOWN) } else { SILENT }
}

fn write_owned(object: &mut Object<'_>, node: &KnownNode, owned: &OwnedShard) {
    object.text("node", node.name.as_str());
    object.text("state", state_on(node, owned));
    object.or_null("applied_sequence", owned.applied, Object::count);
    object.or_null("lag", owned.lag, Object::count);
    object.or_null("checkpoint_sequence", owned.checkpoint, Object::count);
    object.or_null("hash", owned.hash.as_deref(), Object::text);
}
