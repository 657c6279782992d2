//! What streams and subjects are called.

use crate::types::{BoardName, NodeName, ShardId};

/// Names under one prefix.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: String,
}

impl Names {
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    fn stream(&self, of: &str) -> String {
        format!("{}_{of}", self.prefix.to_uppercase())
    }

    pub fn jobs_stream(&self, shard: ShardId) -> String {
        self.stream(&format!("JOBS_{shard}"))
    }

    pub fn jobs_subject(&self, shard: ShardId) -> String {
        format!("{}.jobs.{shard}", self.prefix)
    }

    /// The subject of commands, to which only nodes publish.
    pub fn control_subject(&self, shard: ShardId) -> String {
        format!("{}.control.{shard}", self.prefix)
    }

    /// The prefix of the subjects on which nodes receive replies. It differs from other clients' prefixes, so
    /// that the operator can deny those clients permission to read it.
    pub fn inbox(&self) -> String {
        format!("_INBOX.{}", self.prefix)
    }

    pub fn rejects_stream(&self) -> String {
        self.stream("REJECTS")
    }

    pub fn rejects_subject(&self, shard: impl std::fmt::Display) -> String {
        format!("{}.rejects.{shard}", self.prefix)
    }

    pub fn boards_stream(&self) -> String {
        self.stream("BOARDS")
    }

    pub fn all_boards(&self) -> String {
        format!("{}.boards.*", self.prefix)
    }

    /// A board's name is one token: what would separate tokens is escaped, as in a URL.
    pub fn board_subject(&self, board: &BoardName) -> String {
        format!("{}.boards.{}", self.prefix, board.as_str().replace('.', "%2E"))
    }

    /// The subject on which a node is asked for copies of a shard.
    pub fn copy_subject(&self, node: &NodeName, shard: ShardId) -> String {
        format!("{}.copy.{}.{shard}", self.prefix, key_of(node))
    }

    /// The subjects on which a node is asked for copies of its shards.
    pub fn copy_subjects(&self, node: &NodeName) -> String {
        format!("{}.copy.{}.*", self.prefix, key_of(node))
    }

    /// The key-value bucket with an entry for each node that is alive.
    pub fn nodes_bucket(&self) -> Bucket {
        Bucket { name: self.stream("NODES") }
    }

    /// The key-value bucket with an entry for each node and shard: what the node's last checkpoint holds.
    pub fn floors_bucket(&self) -> Bucket {
        Bucket { name: self.stream("FLOORS") }
    }

    /// The board whose subject this is.
    pub fn board_of(&self, subject: &str) -> Option<BoardName> {
        let token = subject.strip_prefix(&self.prefix)?.strip_prefix(".boards.")?;
        BoardName::new(&token.replace("%2E", ".")).ok()
    }
}

/// A key-value bucket, which is a stream with a message for each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
}

impl Bucket {
    pub fn stream(&self) -> String {
        format!("KV_{}", self.name)
    }

    pub fn all_subjects(&self) -> String {
        format!("$KV.{}.>", self.name)
    }

    /// The subject of a node's entry.
    pub fn node_subject(&self, node: &NodeName) -> String {
        format!("$KV.{}.{}", self.name, key_of(node))
    }

    /// The subject of a node's entry about a shard.
    pub fn shard_subject(&self, node: &NodeName, shard: ShardId) -> String {
        format!("$KV.{}.{}.{shard}", self.name, key_of(node))
    }

    /// The node that an entry is of, and the shard if it is about one.
    pub fn owner_of(&self, subject: &str) -> Option<(NodeName, Option<ShardId>)> {
        let key = subject.strip_prefix("$KV.")?.strip_prefix(&self.name)?.strip_prefix('.')?;
        let (node, shard) = match key.split_once('.') {
            Some((node, shard)) => (node, Some(ShardId(shard.parse().ok()?))),
            None => (key, None),
        };
        let node = NodeName::new(&node.replace("=2E", ".").replace("=3A", ":")).ok()?;
        Some((node, shard))
    }
}

/// A node's name as one token of a key: what keys cannot hold is escaped.
fn key_of(node: &NodeName) -> String {
    node.as_str().replace('.', "=2E").replace(':', "=3A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_a_bucket_names_its_node_and_shard() {
        let names = Names::new("ranktree");
        let (nodes, floors) = (names.nodes_bucket(), names.floors_bucket());
        assert_eq!(
            (nodes.stream(), floors.stream()),
            ("KV_RANKTREE_NODES".into(), "KV_RANKTREE_FLOORS".into())
        );
        for node in ["a", "eu-1.ranks:8080", "a..b::c_"] {
            let node = NodeName::new(node).expect("a good name");
            let subject = nodes.node_subject(&node);
            assert_eq!(subject.split('.').count(), 3, "{subject}");
            assert_eq!(nodes.owner_of(&subject), Some((node.clone(), None)));
            let subject = floors.shard_subject(&node, ShardId(63));
            assert_eq!(subject.split('.').count(), 4, "{subject}");
            assert_eq!(floors.owner_of(&subject), Some((node, Some(ShardId(63)))));
        }
        for other in ["$KV.RANKTREE_NODES.", "$KV.OTHER.a", "$KV.RANKTREE_NODES.a.b", "ranktree.jobs.0"] {
            assert_eq!(nodes.owner_of(other), None, "{other}");
        }
    }

    #[test]
    fn names_of_streams_and_subjects_are_those_of_the_contract() {
        let names = Names::new("ranktree");
        assert_eq!(names.jobs_stream(ShardId(3)), "RANKTREE_JOBS_3");
        assert_eq!(names.jobs_subject(ShardId(3)), "ranktree.jobs.3");
        assert_eq!(names.control_subject(ShardId(3)), "ranktree.control.3");
        assert_eq!(names.rejects_subject(ShardId(0)), "ranktree.rejects.0");
        for board in ["arena", "a.b", "a..", "A:b-c_d"] {
            let name = BoardName::new(board).expect("a good name");
            let subject = names.board_subject(&name);
            assert_eq!(subject.split('.').count(), 3, "{subject}");
            assert_eq!(names.board_of(&subject), Some(name));
        }
    }
}
