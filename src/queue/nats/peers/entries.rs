//! What the entries of the two buckets say, as JSON.
//!
//! An entry states its format, and from which format on a reader understands it. Fields that a reader does
//! not know are passed over, so a later version may add fields and stay readable. If it changes what a field
//! means, it states a higher `readable_from`, and earlier versions say that they cannot read the entry.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::queue::nats::peers::hashes::HashesEntry;
use crate::queue::this_node::ThisNode;

/// The format of the entries that this version writes, and the highest that it reads.
pub const FORMAT: u32 = 1;

/// The header of a message that deletes an entry.
pub const OPERATION: &str = "KV-Operation";

/// Why an entry cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnreadableEntry {
    #[error("it has format {found}, and this version reads format {FORMAT}; upgrade this node")]
    Newer { found: u32 },
    #[error("it is not what a node writes")]
    Foreign,
}

/// What every entry begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    format: u32,
    /// The lowest format whose readers understand this entry.
    readable_from: u32,
}

const HEADER: Header = Header { format: FORMAT, readable_from: 1 };

/// An entry of the bucket of nodes: a node that is alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// One process: another one after each start.
    pub run: String,
    /// The machine and path of its data directory.
    pub directory: String,
    pub address: String,
    pub version: String,
    pub shards: Vec<ShardEntry>,
}

/// How a shard is doing on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardEntry {
    pub shard: u16,
    pub state: String,
    /// The identity of the stream that its data are of; empty if they are of none, or if that was not read
    /// yet. Its sequences mean nothing to the owners whose data are of another one.
    pub stream: String,
    pub applied: u64,
    pub checkpoint: u64,
    /// What no crash takes back: the checkpoint, or what the last start has opened.
    pub safe: u64,
    pub lag: u64,
    /// Absent while it is not known which stream they are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hashes: Option<HashesEntry>,
}

impl ShardEntry {
    /// The state of a shard that applies nothing until an operator acts.
    pub const HALTED: &str = "halted";
}

/// An entry of the bucket of floors: what a node still needs of a shard's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorEntry {
    pub directory: String,
    /// The identity of the stream that the sequence is of.
    pub stream: String,
    /// The last sequence of the stream that the node's last checkpoint holds. The node needs this message,
    /// for the comparison at its next start, and those after it.
    pub sequence: u64,
}

impl FloorEntry {
    pub fn new(this: &ThisNode, stream: String, sequence: u64) -> Self {
        Self { directory: this.directory.clone(), stream, sequence }
    }
}

/// What an entry is stored as.
pub fn encode(entry: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct WithHeader<'a, E> {
        #[serde(flatten)]
        header: Header,
        #[serde(flatten)]
        entry: &'a E,
    }
    serde_json::to_vec(&WithHeader { header: HEADER, entry }).expect("the keys of an entry are strings")
}

/// Reads an entry.
///
/// # Errors
/// When a later version wrote it for later versions only, or no node wrote it.
pub fn read<E: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<E, UnreadableEntry> {
    let header: Header = serde_json::from_slice(body).map_err(|_| UnreadableEntry::Foreign)?;
    if header.readable_from > FORMAT {
        return Err(UnreadableEntry::Newer { found: header.format });
    }
    serde_json::from_slice(body).map_err(|_| UnreadableEntry::Foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back_as_they_were_written() {
        let floor = FloorEntry { directory: "h:/d".to_owned(), stream: "S@1".to_owned(), sequence: 7 };
        assert_eq!(read(&encode(&floor)), Ok(floor));
        let hashes = Some(HashesEntry { version: 1, at: vec!["9:ff".to_owned()], ..HashesEntry::default() });
        let shard = ShardEntry {
            shard: 3,
            state: "live".to_owned(),
            stream: "S@1".to_owned(),
            applied: 9,
            checkpoint: 7,
            safe: 8,
            lag: 1,
            hashes,
        };
        let node = NodeEntry {
            run: "r".to_owned(),
            directory: "h:/d".to_owned(),
            address: "http://h:1".to_owned(),
            version: "0.1.0".to_owned(),
            shards: vec![shard],
        };
        assert_eq!(read(&encode(&node)), Ok(node));
    }

    #[test]
    fn a_later_entry_is_read_if_it_says_so_and_refused_in_words_otherwise() {
        let floor = |header: &str| {
            let text = format!(r#"{{{header},"directory":"d","stream":"S","sequence":7,"more":[1]}}"#);
            read::<FloorEntry>(text.as_bytes())
        };
        assert_eq!(floor(r#""format":9,"readable_from":1"#).map(|floor| floor.sequence), Ok(7));
        let refused = floor(r#""format":9,"readable_from":2"#).expect_err("it is for later versions");
        assert_eq!(refused, UnreadableEntry::Newer { found: 9 });
        assert!(refused.to_string().contains("format 9") && refused.to_string().contains("upgrade"));
        // An acknowledgement that a publisher had sent here.
        for foreign in [r#"{"stream":"S","seq":3}"#, "x", "", r#"{"format":1,"readable_from":1}"#] {
            assert_eq!(read::<FloorEntry>(foreign.as_bytes()), Err(UnreadableEntry::Foreign), "{foreign}");
        }
    }
}
