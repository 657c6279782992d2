//! How far a node has got with following the boards' stream, as far as writes have to know.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use crate::queue::nats::boards::decision::Record;
use crate::queue::nats::boards::last_records::LastRecords;
use crate::types::{BoardName, ShardId};

/// How far this node has got with the boards' stream.
pub enum Following {
    /// The stream is not read, or not to its end, since this moment.
    NotSince(Instant),
    /// It was read, and the owners of other shards have not confirmed yet what they hold.
    Unconfirmed(Unconfirmed),
    Confirmed,
}

/// What the stream says.
pub struct Unconfirmed {
    /// From when it was read from the beginning.
    records: Arc<LastRecords>,
    /// The records that were read since.
    later: HashMap<BoardName, Record>,
    /// What this node has published since then.
    published: HashMap<BoardName, HashSet<ShardId>>,
}

impl Unconfirmed {
    pub fn new(records: Arc<LastRecords>) -> Self {
        Self { records, later: HashMap::new(), published: HashMap::new() }
    }

    /// The last record of a board.
    pub fn last(&self, name: &BoardName) -> Option<&Record> {
        self.later.get(name).or_else(|| self.records.records.get(name))
    }

    pub fn is_published(&self, shard: ShardId, name: &BoardName) -> bool {
        self.published.get(name).is_some_and(|shards| shards.contains(&shard))
    }
}

impl Following {
    /// The stream is not followed any more. Writes wait from the first time on that this is said.
    pub fn end(&mut self) {
        if !matches!(self, Self::NotSince(_)) {
            *self = Self::NotSince(Instant::now());
        }
    }

    /// This node has published what was decided about a board to a shard.
    pub fn note_published(&mut self, shard: ShardId, name: &BoardName) {
        if let Self::Unconfirmed(Unconfirmed { published, .. }) = self {
            published.entry(name.clone()).or_default().insert(shard);
        }
    }

    /// A record was read that came after the beginning.
    pub fn note(&mut self, name: &BoardName, recorded: &Record) {
        if let Self::Unconfirmed(unconfirmed) = self {
            unconfirmed.later.insert(name.clone(), recorded.clone());
            unconfirmed.published.remove(name);
        }
    }
}
