//! What a node's entry says of the hashes of a shard's log, for other replicas to compare.
//!
//! Knows: a few points are enough. Each replica keeps many more, so of two that are not level, the one that
//! is ahead knows the points that the other one publishes. Must not know: what follows from a difference.

use serde::{Deserialize, Serialize};

use crate::state::{HASH_VERSION, HashPoint, LogHashes};
use crate::storage::codec::Divergence;
use crate::types::{NodeName, Sequence};

/// Ends of segments that an entry has.
const SEGMENTS_PUBLISHED: usize = 2;
/// Points within segments that an entry has.
const POINTS_PUBLISHED: usize = 4;
/// Points that others have asked for are published up to this many, so that an entry stays small.
const ANSWERS_MAX: usize = 8;

/// The hashes of a shard's log on one node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HashesEntry {
    /// The node's [`HASH_VERSION`].
    pub version: u32,
    /// The identity of the stream that the sequences are of.
    pub stream: String,
    /// `sequence:hash`, the hash as 16 hexadecimal digits.
    pub at: Vec<String>,
    /// The shard is halted there, because another replica differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diverged: Option<DivergedEntry>,
    /// The node whose data these are a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied_from: Option<String>,
}

/// From which node a replica differs, and where that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivergedEntry {
    pub node: String,
    pub sequence: u64,
    /// The node that has found it: another one than the entry's if that one has a copy of its data.
    pub by: String,
}

/// What another owner says of its hashes, as far as it can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherHashes {
    pub node: NodeName,
    /// In their order.
    pub points: Vec<HashPoint>,
    pub diverged: Option<DivergedEntry>,
    pub copied_from: Option<String>,
}

impl OtherHashes {
    /// The node whose data these are, as far as that is known: its own, or what was copied from another one.
    pub fn origin(&self) -> &str {
        let halted = self.diverged.as_ref().map(|diverged| diverged.by.as_str());
        origin(self.node.as_str(), halted, self.copied_from.as_deref())
    }
}

/// Whose data a replica has.
///
/// # Arguments
/// - `halted`: who has found the difference that the replica is halted for, if it is; empty if it is not said
/// - `copied`: whose data its own are a copy of, if they are one
fn origin<'a>(node: &'a str, halted: Option<&'a str>, copied: Option<&'a str>) -> &'a str {
    // What it has found by itself, it has found in what it was given.
    halted.filter(|by| !by.is_empty() && *by != node).or(copied).unwrap_or(node)
}

/// This node's hashes of a shard's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnHashes {
    pub node: NodeName,
    pub stream: String,
    pub hashes: LogHashes,
    /// Where a replica was found to differ, with the hash of this node's data. A replica that was mended
    /// with a copy of this one's data has it too.
    pub found: Option<Divergence>,
    /// The node whose data these are a copy of.
    pub copied_from: Option<NodeName>,
    /// Up to here nothing is compared, because the operator has judged already.
    pub accepted_through: Sequence,
}

impl OwnHashes {
    /// The node whose data these are, as for [`OtherHashes::origin`].
    ///
    /// # Arguments
    /// `halted`: why this replica is halted, if it is.
    pub fn origin<'a>(&'a self, halted: Option<&'a Divergence>) -> &'a str {
        let (halted, copied) = (halted.map(|found| found.by.as_str()), self.copied_from.as_ref());
        origin(self.node.as_str(), halted, copied.map(NodeName::as_str))
    }

    /// The hash at a sequence, if it is known and to be compared.
    pub fn hash_at(&self, sequence: Sequence) -> Option<u64> {
        if sequence <= self.accepted_through {
            return None;
        }
        let found = self.found.iter().find(|found| found.sequence == sequence).map(|found| found.own);
        found.or_else(|| self.hashes.hash_at(sequence))
    }

    /// What this node's entry says.
    ///
    /// # Arguments
    /// `is_halted`: because of what was found. `asked`: where other replicas have found this one to differ.
    pub fn entry(&self, is_halted: bool, asked: &[Sequence]) -> HashesEntry {
        let mut points: Vec<HashPoint> = self.hashes.latest(SEGMENTS_PUBLISHED, POINTS_PUBLISHED).collect();
        let found = self.found.iter().map(|found| found.sequence);
        for sequence in found.chain(asked.iter().take(ANSWERS_MAX).copied()) {
            points.extend(self.hash_at(sequence).map(|hash| HashPoint { sequence, hash }));
        }
        points.sort();
        points.dedup();
        let diverged = self.found.as_ref().filter(|_| is_halted).map(|found| DivergedEntry {
            node: found.node.to_string(),
            sequence: found.sequence.0,
            by: found.by.to_string(),
        });
        let at = points.iter().map(ToString::to_string).collect();
        let copied_from = self.copied_from.as_ref().map(ToString::to_string);
        HashesEntry { version: HASH_VERSION, stream: self.stream.clone(), at, diverged, copied_from }
    }
}

impl HashesEntry {
    /// What it says, if it is of this stream and of a version whose hashes can be compared.
    pub fn of(&self, node: &NodeName, stream: &str) -> Option<OtherHashes> {
        if self.version != HASH_VERSION || self.stream != stream {
            return None;
        }
        // A point that cannot be read says nothing, and so it is passed over.
        let mut points: Vec<HashPoint> = self.at.iter().filter_map(|text| read_point(text)).collect();
        points.sort();
        let (diverged, copied_from) = (self.diverged.clone(), self.copied_from.clone());
        Some(OtherHashes { node: node.clone(), points, diverged, copied_from })
    }

    /// The last point, for people.
    pub fn last(&self) -> Option<&String> {
        self.at.last()
    }
}

/// Reads what [`HashPoint`]'s `Display` wrote.
fn read_point(text: &str) -> Option<HashPoint> {
    let (sequence, hash) = text.split_once(':')?;
    let sequence = Sequence(sequence.parse().ok()?);
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = is_hash.then(|| u64::from_str_radix(hash, 16).ok()).flatten()?;
    Some(HashPoint { sequence, hash })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::LogHash;

    fn point(sequence: u64, hash: u64) -> HashPoint {
        HashPoint { sequence: Sequence(sequence), hash }
    }

    fn node(name: &str) -> NodeName {
        NodeName::new(name).expect("a good name")
    }

    #[test]
    fn an_entry_has_the_latest_points_and_those_that_were_asked_for() {
        let kept = (1..=20).map(|at| point(at * 4, at));
        let found = Divergence {
            stream: "S@1".to_owned(),
            sequence: Sequence(70),
            by: node("a"),
            own: 7,
            node: node("b"),
            theirs: 8,
        };
        let mut own = OwnHashes {
            node: node("a"),
            stream: "S@1".to_owned(),
            hashes: LogHashes::new(LogHash::at(point(81, 99)), kept),
            found: Some(found),
            copied_from: None,
            accepted_through: Sequence(0),
        };
        let entry = own.entry(true, &[Sequence(8), Sequence(9)]);
        let said = entry.of(&node("a"), "S@1").expect("it can be compared");
        let expected = [(8, 2), (32, 8), (64, 16), (68, 17), (70, 7), (72, 18), (76, 19), (80, 20), (81, 99)];
        assert_eq!(said.points, expected.map(|(sequence, hash)| point(sequence, hash)));
        let diverged = DivergedEntry { node: "b".to_owned(), sequence: 70, by: "a".to_owned() };
        assert_eq!((said.origin(), &said.diverged), ("a", &Some(diverged)));
        assert_eq!(entry.last().map(String::as_str), Some("81:0000000000000063"));
        assert_eq!(entry.of(&node("a"), "S@2"), None);
        assert_eq!(own.entry(false, &[]).diverged, None);
        own.copied_from = Some(node("c"));
        let said = own.entry(true, &[]).of(&node("a"), "S@1").expect("it can be compared");
        assert_eq!((said.origin(), own.origin(None)), ("c", "c"), "it has found that in what it was given");
        own.accepted_through = Sequence(76);
        let hashes = [70, 76, 80].map(|sequence| own.hash_at(Sequence(sequence)));
        assert_eq!(hashes, [None, None, Some(20)]);
        own.hashes = LogHashes::new(LogHash::unknown_at(Sequence(5)), []);
        own.found = None;
        assert_eq!(own.entry(false, &[]).at, [""; 0]);
    }

    #[test]
    fn points_that_cannot_be_read_are_passed_over() {
        let read = |at: &[&str]| {
            let at = at.iter().map(|text| (*text).to_owned()).collect();
            let entry = HashesEntry { version: HASH_VERSION, at, ..HashesEntry::default() };
            entry.of(&node("a"), "").expect("it can be compared").points
        };
        for text in
            ["", "5", "5:", ":00", "5:1", "x:0000000000000001", "5:000000000000000g", "5:+000000000000001"]
        {
            assert_eq!(read(&[text, "7:00000000000000ff"]), [point(7, 255)], "{text}");
        }
        let later = HashesEntry { version: HASH_VERSION + 1, ..HashesEntry::default() };
        assert_eq!(later.of(&node("a"), ""), None);
    }
}
