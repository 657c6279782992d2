//! Records of the log's hash: the running one, those that are kept, and that another replica's differs.

use bincode::{Decode, Encode};

use crate::state::{HASH_VERSION, HashPoint, LogHash};
use crate::storage::codec::bytes::{Undecodable, from_slice, to_vec, undecodable};
use crate::types::{NodeName, Sequence};

/// Another node that owns the shard has another hash of the same log: one of the two replicas is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The stream that the sequence is of.
    pub stream: String,
    /// The message up to which the log was hashed.
    pub sequence: Sequence,
    /// The node that has found it. A copy of its data has this record, too.
    pub by: NodeName,
    /// Its hash.
    pub own: u64,
    /// The other node.
    pub node: NodeName,
    pub theirs: u64,
}

#[derive(Encode, Decode)]
struct LogHashWire {
    version: u32,
    sequence: u64,
    /// `None`: the segment was not hashed from its beginning.
    hash: Option<u64>,
}

#[derive(Encode, Decode)]
struct PointWire {
    version: u32,
    hash: u64,
}

#[derive(Encode, Decode)]
struct DivergenceWire {
    stream: String,
    sequence: u64,
    by: String,
    own: u64,
    node: String,
    theirs: u64,
}

/// # Arguments
/// `applied`: the applied sequence of the same write batch.
pub fn encode_log_hash(hash: &LogHash, applied: Sequence) -> Vec<u8> {
    let hash = hash.point().map(|point| point.hash);
    to_vec(&LogHashWire { version: HASH_VERSION, sequence: applied.0, hash })
}

/// The running hash at the applied sequence. It is unknown if another version has computed it, or if messages
/// were applied since that no other replica could compare.
pub fn decode_log_hash(bytes: &[u8], applied: Sequence) -> Result<LogHash, Undecodable> {
    let LogHashWire { version, sequence, hash } = from_slice("hash of the log", bytes)?;
    let hash = hash.filter(|_| version == HASH_VERSION && sequence == applied.0);
    let at = |hash| LogHash::at(HashPoint { sequence: applied, hash });
    Ok(hash.map_or(LogHash::unknown_at(applied), at))
}

pub fn encode_hash_point(point: HashPoint) -> Vec<u8> {
    to_vec(&PointWire { version: HASH_VERSION, hash: point.hash })
}

/// `None`: another version has computed the hash.
pub fn decode_hash_point(sequence: Sequence, bytes: &[u8]) -> Result<Option<HashPoint>, Undecodable> {
    let PointWire { version, hash } = from_slice("hash point", bytes)?;
    Ok((version == HASH_VERSION).then_some(HashPoint { sequence, hash }))
}

pub fn encode_copied_from(node: &NodeName) -> Vec<u8> {
    to_vec(&node.to_string())
}

pub fn decode_copied_from(bytes: &[u8]) -> Result<NodeName, Undecodable> {
    let name: String = from_slice("name of a node", bytes)?;
    NodeName::new(&name).map_err(|error| undecodable("name of a node", error))
}

pub fn encode_divergence(divergence: &Divergence) -> Vec<u8> {
    let Divergence { stream, sequence, by, own, node, theirs } = divergence;
    to_vec(&DivergenceWire {
        stream: stream.clone(),
        sequence: sequence.0,
        by: by.to_string(),
        own: *own,
        node: node.to_string(),
        theirs: *theirs,
    })
}

pub fn decode_divergence(bytes: &[u8]) -> Result<Divergence, Undecodable> {
    let DivergenceWire { stream, sequence, by, own, node, theirs } = from_slice("divergence", bytes)?;
    let name = |name: &str| NodeName::new(name).map_err(|error| undecodable("divergence", error));
    let (by, node) = (name(&by)?, name(&node)?);
    Ok(Divergence { stream, sequence: Sequence(sequence), by, own, node, theirs })
}
