//! Which of the other owners of a shard is asked for a copy.
//!
//! Knows: what is known of other nodes, and when that is enough to say that none can give one. Must not know:
//! how a copy is fetched.

use std::cmp::Reverse;
use std::time::Duration;

use crate::queue::nats::{CopyOutlook, Hearing, KnownNode, OwnedShard};
use crate::types::{NodeName, ShardId};

/// What other nodes say of themselves is read within seconds. After so long without, it is not going to be
/// known soon who owns a shard.
const UNREAD_FOR: Duration = Duration::from_secs(15);

/// Who can be asked for a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owners {
    /// The best one first.
    Givers(Vec<NodeName>),
    /// None that could give one at present.
    NotNow {
        /// Who they are and why not.
        words: String,
        /// Whether each of them was heard of and says itself that it waits for an operator.
        all_halted: bool,
    },
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
    let words = words.collect::<Vec<_>>().join(", ");
    let all_halted = owners.iter().all(|(node, owned)| node.is_alive && is_in(owned, "halted"));
    Owners::NotNow { words, all_halted }
}

impl Owners {
    /// What is to be said while no owner can be asked. A shard halts once nobody can give a copy, so that is
    /// said only when every owner had time to be heard of: after a start, floors may be known before the
    /// entries that say how nodes are.
    ///
    /// # Arguments
    /// - `unread`: for how long the buckets have not been read
    /// - `advice`: what an operator can do
    pub fn outlook(&self, hearing: Hearing, unread: Duration, advice: &str) -> CopyOutlook {
        match (hearing, self) {
            (Hearing::Unread, _) if unread < UNREAD_FOR => CopyOutlook::Looking,
            (Hearing::Unread, _) => CopyOutlook::Nobody(format!(
                "it cannot be read which other nodes own the shard and could give a copy; {advice}"
            )),
            (Hearing::Heard, Self::NotNow { words, .. })
            | (Hearing::Listening, Self::NotNow { words, all_halted: true }) => CopyOutlook::Nobody(format!(
                "it waits for another owner that can give a copy ({words}); or {advice}"
            )),
            (Hearing::Heard, _) => {
                CopyOutlook::Nobody(format!("no other node owns the shard and could give a copy; {advice}"))
            }
            (Hearing::Listening, _) => CopyOutlook::Looking,
        }
    }
}

fn is_in(owned: &OwnedShard, state: &str) -> bool {
    owned.state.as_deref() == Some(state)
}

fn can_give(node: &KnownNode, owned: &OwnedShard, first: u64) -> bool {
    let applied = owned.applied.unwrap_or(0);
    let has_enough = applied > 0 && applied.saturating_add(1) >= first;
    node.is_alive
        && (is_in(owned, "live") || is_in(owned, "catching_up") && has_enough)
        && !owned.is_of_another_stream
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
                is_of_another_stream: false,
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
        assert_eq!(owners_of(ShardId(1), &nodes, 0), Owners::NotNow { words, all_halted: false });
        assert_eq!(owners_of(ShardId(0), &nodes, 0), Owners::None);
        assert_eq!(owners_of(ShardId(1), &[], 0), Owners::None);
    }

    /// What is said when no owner can be asked.
    fn said(nodes: &[KnownNode], hearing: Hearing, unread_s: u64) -> String {
        let owners = owners_of(ShardId(1), nodes, 50);
        match owners.outlook(hearing, Duration::from_secs(unread_s), "restore it") {
            CopyOutlook::Nobody(words) => words,
            other => format!("{other:?}"),
        }
    }

    /// Only their floors are known: one was stored just now, the other long ago.
    fn of_floors() -> [KnownNode; 2] {
        [("a", "live"), ("c", "silent")].map(|(name, state)| {
            let mut node = node(name, state, 90, 90);
            node.shards.iter_mut().for_each(|owned| (owned.state, owned.applied) = (None, None));
            node
        })
    }

    #[test]
    fn owners_have_time_to_be_heard_of_before_it_is_said_that_none_can_give_a_copy() {
        let looking = "Looking";
        let waits = |owners: &str| {
            format!("it waits for another owner that can give a copy ({owners}); or restore it")
        };
        let unknown = waits("a does not say how it is, c is silent");
        assert_eq!(said(&of_floors(), Hearing::Unread, 14), looking);
        assert!(said(&of_floors(), Hearing::Unread, 15).starts_with("it cannot be read which"));
        assert_eq!(said(&of_floors(), Hearing::Listening, 0), looking);
        assert_eq!(said(&of_floors(), Hearing::Heard, 0), unknown);
        // The entry of one has come.
        let [_, silent] = of_floors();
        let nodes = [node("a", "live", 90, 60), silent];
        assert_eq!(givers(&nodes), ["a"]);
        // A node that starts itself is about to say otherwise. One that is halted waits for somebody.
        for state in ["catching_up", "silent"] {
            let nodes = [node("a", state, 20, 20), node("c", "halted", 20, 20)];
            assert_eq!(said(&nodes, Hearing::Listening, 0), looking, "{state}");
        }
        let halted = ["a", "c"].map(|name| node(name, "halted", 90, 90));
        let words = waits("on a it is halted, on c it is halted");
        assert_eq!(
            [Hearing::Listening, Hearing::Heard].map(|hearing| said(&halted, hearing, 0)),
            [words.clone(), words]
        );
        assert_eq!(said(&[], Hearing::Listening, 0), looking);
        assert!(said(&[], Hearing::Heard, 0).starts_with("no other node owns the shard"));
    }
}
