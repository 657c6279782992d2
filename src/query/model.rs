//! The model that tests compare all reads with: one sorted vector of entries, without shards. It must be too
//! simple to be wrong.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a test's numbers are small, and a bad index fails the test"
)]

use std::cmp::Ordering;
use std::sync::Arc;

use crate::board::{Definition, Order, Ties};

/// A member's entry as a person would write it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    pub member: String,
    pub score: Vec<i64>,
    pub reached: i64,
}

/// Entries that are listed, best first; no more than the board's capacity.
pub struct Model {
    pub definition: Arc<Definition>,
    pub entries: Vec<ModelEntry>,
}

impl Model {
    pub fn new(definition: Arc<Definition>, mut entries: Vec<ModelEntry>) -> Self {
        entries.sort_by(|a, b| {
            let ties = match definition.ties {
                Ties::First => a.reached.cmp(&b.reached),
                Ties::Last => b.reached.cmp(&a.reached),
                Ties::Member | Ties::MemberDesc => Ordering::Equal,
            };
            compare(&definition, &a.score, &b.score).then(ties).then(match definition.ties {
                Ties::MemberDesc => b.member.as_bytes().cmp(a.member.as_bytes()),
                _ => a.member.as_bytes().cmp(b.member.as_bytes()),
            })
        });
        if let Some(capacity) = definition.capacity {
            entries.truncate(capacity as usize);
        }
        Self { definition, entries }
    }

    pub fn better(&self, score: &[i64]) -> u64 {
        self.count(|entry| compare(&self.definition, &entry.score, score) == Ordering::Less)
    }

    pub fn tied(&self, score: &[i64]) -> u64 {
        self.count(|entry| entry.score == score)
    }

    pub fn count(&self, which: impl Fn(&ModelEntry) -> bool) -> u64 {
        self.entries.iter().filter(|entry| which(entry)).count() as u64
    }

    pub fn index_of(&self, member: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.member == member)
    }
}

/// `Less` is better.
pub fn compare(definition: &Definition, a: &[i64], b: &[i64]) -> Ordering {
    for ((key, a), b) in definition.keys.iter().zip(a).zip(b) {
        let order = match key.order {
            Order::Ascending => a.cmp(b),
            Order::Descending => b.cmp(a),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}
