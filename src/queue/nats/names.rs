//! What streams and subjects are called.

use std::fmt::Write as _;

use percent_encoding::percent_decode_str;

use crate::types::{BoardName, NodeName, ShardId, decimal};

/// Names under one prefix.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: String,
}

impl Names {
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    fn stream(&self, of: &str) -> String {
        format!("{}_{of}", self.prefix.to_uppercase())
    }

    pub fn jobs_stream(&self, shard: ShardId) -> String {
        self.stream(&format!("JOBS_{shard}"))
    }

    /// The stream of an origin, as a shard's meta record has it; empty if there is none.
    pub fn stream_of(origin: &str) -> &str {
        origin.split('@').next().unwrap_or_default()
    }

    /// Whether an origin is a stream of this name, whenever it was made.
    pub fn is_jobs_stream(&self, origin: &str, shard: ShardId) -> bool {
        Self::stream_of(origin) == self.jobs_stream(shard)
    }

    /// What the names under which an origin stands begin with, in lower case: the stream does not tell the
    /// case.
    pub fn prefix_of(origin: &str, shard: ShardId) -> Option<String> {
        Some(Self::stream_of(origin).strip_suffix(&format!("_JOBS_{shard}"))?.to_lowercase())
    }

    pub fn jobs_subject(&self, shard: ShardId) -> String {
        format!("{}.jobs.{shard}", self.prefix)
    }

    /// The subject of commands, to which only nodes publish.
    pub fn control_subject(&self, shard: ShardId) -> String {
        format!("{}.control.{shard}", self.prefix)
    }

    /// The subject of the write service, on which the shard's owners listen.
    pub fn write_subject(&self, shard: ShardId) -> String {
        format!("{}.write.{shard}", self.prefix)
    }

    /// The subject on which other nodes have one owner of a shard write.
    pub fn write_node_subject(&self, shard: ShardId, node: &NodeName) -> String {
        format!("{}.write.{shard}.{}", self.prefix, key_of(node))
    }

    /// Whether an answer may be sent to this subject. A client may name any for its answer, and a node may
    /// publish to subjects that the client may not: those of streams, and of JetStream's API.
    pub fn may_be_inbox(&self, subject: &str) -> bool {
        let ours = subject.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with('.'));
        !ours && !subject.starts_with('$')
    }

    /// Where some owner of a shard answers questions.
    pub fn ask_subject(&self, shard: ShardId) -> String {
        format!("{}.ask.{shard}", self.prefix)
    }

    /// Where one owner of a shard answers questions.
    pub fn ask_node_subject(&self, shard: ShardId, node: &NodeName) -> String {
        format!("{}.ask.{shard}.{}", self.prefix, key_of(node))
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

    /// A board's name is one token: what would separate tokens is escaped, as in a URL, and so is what would
    /// stand for any, or begin the token of a message that is about no board.
    pub fn board_subject(&self, board: &BoardName) -> String {
        let mut subject = format!("{}.boards.", self.prefix);
        for (at, c) in board.as_str().char_indices() {
            if matches!(c, '.' | '*' | '>') || (at == 0 && c == '_') {
                write!(subject, "%{:02X}", u32::from(c)).expect("a string takes everything");
            } else {
                subject.push(c);
            }
        }
        subject
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

    /// The subject of a message that is about no board.
    pub fn boards_message_subject(&self, message: BoardsMessage) -> String {
        let token = match message {
            BoardsMessage::Inquiry => INQUIRY.to_owned(),
            BoardsMessage::Fence => FENCE.to_owned(),
            BoardsMessage::Confirmation(shard) => format!("{CONFIRMED}{shard}"),
        };
        format!("{}.boards.{token}", self.prefix)
    }

    /// Which message that is about no board has this subject.
    pub fn boards_message_of(&self, subject: &str) -> Option<BoardsMessage> {
        match subject.strip_prefix(&self.prefix)?.strip_prefix(".boards.")? {
            INQUIRY => Some(BoardsMessage::Inquiry),
            FENCE => Some(BoardsMessage::Fence),
            other => Some(BoardsMessage::Confirmation(ShardId(decimal(other.strip_prefix(CONFIRMED)?)?))),
        }
    }

    /// The board whose subject this is, or the service.
    pub fn board_of(&self, subject: &str) -> Option<BoardName> {
        let token = subject.strip_prefix(&self.prefix)?.strip_prefix(".boards.")?;
        if token.starts_with('_') {
            return None;
        }
        BoardName::of_decision(&percent_decode_str(token).decode_utf8().ok()?).ok()
    }
}

/// Tokens of the boards' subjects that no board's name has.
const INQUIRY: &str = "_inquiry";
const FENCE: &str = "_fence";
const CONFIRMED: &str = "_confirmed-";

/// A message of the boards' stream that is about no board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardsMessage {
    /// A node asks which decisions are in force on shards that it does not own.
    Inquiry,
    /// An owner's answer about a shard.
    Confirmation(ShardId),
    /// Says nothing: all messages before it were read when it is read.
    Fence,
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

    /// The subjects of all nodes' entries about a shard.
    pub fn floors_of_shard(&self, shard: ShardId) -> String {
        format!("$KV.{}.*.{shard}", self.name)
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
    fn answers_are_not_sent_where_only_nodes_may_publish() {
        let names = Names::new("ranktree");
        for inbox in ["_INBOX.abc", "_INBOX.ranktree.a.b", "_R_.x", "game.inbox.7", "ranktrees.a"] {
            assert!(names.may_be_inbox(inbox), "{inbox}");
        }
        for ours in ["$JS.API.STREAM.PURGE.RANKTREE_JOBS_0", "$KV.RANKTREE_NODES.a", "ranktree.control.0"] {
            assert!(!names.may_be_inbox(ours), "{ours}");
        }
    }

    #[test]
    fn names_of_streams_and_subjects_are_those_of_the_contract() {
        let names = Names::new("ranktree");
        assert_eq!(names.jobs_stream(ShardId(3)), "RANKTREE_JOBS_3");
        assert_eq!(names.jobs_subject(ShardId(3)), "ranktree.jobs.3");
        assert_eq!(names.control_subject(ShardId(3)), "ranktree.control.3");
        assert_eq!(names.ask_subject(ShardId(3)), "ranktree.ask.3");
        let node = NodeName::new("eu.1:8080").expect("a good name");
        assert_eq!(names.ask_node_subject(ShardId(3), &node), "ranktree.ask.3.eu=2E1=3A8080");
        assert_eq!(names.rejects_subject(ShardId(0)), "ranktree.rejects.0");
        assert_eq!(names.write_subject(ShardId(7)), "ranktree.write.7");
        for board in
            ["arena", "a.b", "a..", "A:b-c_d", "_inquiry", "_fence", "__", "*", ">", "a.*.>", "{a}/\"<'"]
        {
            let name = BoardName::new(board).expect("a good name");
            let subject = names.board_subject(&name);
            assert_eq!(subject.split('.').count(), 3, "{subject}");
            assert_eq!((names.board_of(&subject), names.boards_message_of(&subject)), (Some(name), None));
        }
        let service = BoardName::service();
        assert_eq!(names.board_of(&names.board_subject(&service)), Some(service));
        for message in
            [BoardsMessage::Inquiry, BoardsMessage::Fence, BoardsMessage::Confirmation(ShardId(63))]
        {
            let subject = names.boards_message_subject(message);
            assert_eq!(subject.split('.').count(), 3, "{subject}");
            assert_eq!((names.board_of(&subject), names.boards_message_of(&subject)), (None, Some(message)));
        }
    }
}
