//! Which of the other owners of a shard is asked for a copy.
//!
//! Knows: what is known of other nodes. Must not know: how a copy is fetched.

use std::cmp::Reverse;

use crate::queue::nats::{KnownNode, OwnedShard};
use crate::types::{NodeName, ShardId};

/// Who can be asked for a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owners {
    /// The best one first.
    Givers(Vec<NodeName>),
    /// None that could give one at present; who they are and why not, in words.
    NotNow(String),
    /// No other node owns the shard.
    None,
}

/// Which other nodes own the shard, and which of them can be asked for a copy: a node that is alive and on
/// which the shard is live, or has at least applied what the stream no longer has. Live ones come first, and
/// of these the one whose checkpoint is the latest: its copy has the least to replay.
///
/// # Arguments
/// `first`: the first message that the stream has.
pub fn owners_of(shard: ShardId, nodes: &[KnownNode], first: u64) -> Owners {
    let owned = |node: &KnownNode| node.shards.iter().find(|owned| owned.shard == shard).cloned();
    let owners: Vec<(&KnownNode, OwnedShard)> =
        nodes.iter().filter_map(|node| Some((node, owned(node)?))).collect();
    if owners.is_empty() {
        return Owners::None;
    }
    let mut givers: Vec<_> = owners.iter().filter(|(node, owned)| can_give(node, owned, first)).collect();
    givers.sort_by_key(|(node, owned)| {
        (!is_in(owned, "live"), Reverse(owned.checkpoint.unwrap_or(0)), node.name.clone())
    });
    if !givers.is_empty() {
        return Owners::Givers(givers.into_iter().map(|(node, _)| node.name.clone()).collect());
    }
    let words = owners.iter().map(|(node, owned)| match (&owned.state, node.is_alive) {
        (_, false) => format!("{} is silent", node.name),
        (Some(state), true) => format!("on {} it is {state}", node.name),
        (None, true) => format!("{} does not say how it is", node.name),
    });
    Owners::NotNow(words.collect::<Vec<_>>().join(", "))
}

fn is_in(owned: &OwnedShard, state: &str) -> bool {
    owned.state.as_deref() == Some(state)
}

fn can_give(node: &KnownNode, owned: &OwnedShard, first: u64) -> bool {
    let applied = owned.applied.unwrap_or(0);
    let has_enough = applied > 0 && applied.saturating_add(1) >= first;
    node.is_alive && (is_in(owned, "live") || is_in(owned, "catching_up") && has_enough)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn node(name: &str, state: &str, applied: u64, checkpoint: u64) -> KnownNode {
        KnownNode {
            name: NodeName::new(name).expect("a good name"),
            address: None,
            version: None,
            silent: Duration::ZERO,
            is_alive: state != "silent",
            problem: None,
            shards: vec![OwnedShard {
                hash: None,
                shard: ShardId(1),
                state: Some(state.to_owned()),
                applied: Some(applied),
                lag: None,
                checkpoint: Some(checkpoint),
            }],
        }
    }

    fn givers(nodes: &[KnownNode]) -> Vec<String> {
        match owners_of(ShardId(1), nodes, 50) {
            Owners::Givers(names) => names.iter().map(ToString::to_string).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_live_owner_with_the_latest_checkpoint_is_asked_first() {
        let nodes = [
            node("a", "live", 90, 60),
            node("b", "live", 80, 70),
            node("c", "catching_up", 85, 85),
            node("d", "halted", 99, 99),
            node("e", "silent", 99, 99),
            node("f", "catching_up", 48, 48),
            node("g", "catching_up", 49, 10),
        ];
        assert_eq!(givers(&nodes), ["b", "a", "c", "g"]);
    }

    #[test]
    fn without_a_giver_it_says_who_owns_the_shard() {
        let nodes =
            [node("d", "halted", 99, 99), node("e", "silent", 99, 99), node("f", "catching_up", 0, 0)];
        let words = "on d it is halted, e is silent, on f it is catching_up".to_owned();
        assert_eq!(owners_of(ShardId(1), &nodes, 0), Owners::NotNow(words));
        assert_eq!(owners_of(ShardId(0), &nodes, 0), Owners::None);
        assert_eq!(owners_of(ShardId(1), &[], 0), Owners::None);
    }
}
