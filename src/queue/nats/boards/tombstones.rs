//! Tombstones: records of dropped boards, of which the boards' stream keeps only the latest.
//!
//! Knows: which tombstones this node has read, and which of them are too many. Must not know: how they are
//! deleted.

use std::collections::{BTreeMap, HashMap};

use crate::queue::nats::boards::decision::Record;
use crate::types::BoardName;

/// Tombstones that the stream keeps: about a megabyte. A node misses a drop only if it is behind by so many.
const KEPT: usize = 10_000;
/// Tombstones that are examined together.
const AT_ONCE: usize = 256;
/// The tombstones in the stream, as far as this node has read.
#[derive(Default)]
pub struct Tombstones {
    by_sequence: BTreeMap<u64, (BoardName, Record)>,
    by_name: HashMap<BoardName, u64>,
}

impl Tombstones {
    pub fn note(&mut self, name: &BoardName, recorded: &Record) {
        if let Some(before) = self.by_name.remove(name) {
            self.by_sequence.remove(&before);
        }
        if !recorded.is_alive() {
            self.by_name.insert(name.clone(), recorded.sequence);
            self.by_sequence.insert(recorded.sequence, (name.clone(), recorded.clone()));
        }
    }

    /// Removes a tombstone that is not in the stream any more.
    pub fn forget(&mut self, sequence: u64) {
        if let Some((name, _)) = self.by_sequence.remove(&sequence) {
            self.by_name.remove(&name);
        }
    }

    /// The oldest tombstones, if there are too many.
    pub fn too_many(&self) -> Vec<(BoardName, Record)> {
        let too_many = self.by_sequence.len().saturating_sub(KEPT);
        self.by_sequence.values().take(too_many.min(AT_ONCE)).cloned().collect()
    }
}
