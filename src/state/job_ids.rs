//! The ids of jobs that were applied, each for a while: a job that comes again under one of them changes
//! nothing.
//!
//! Knows: in which order they are forgotten, which follows from the log alone. Must not know: how long they
//! are kept, or what a job does.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::types::{Sequence, Timestamp};

/// How many ids a shard keeps, whatever their age: some 200 bytes of memory each. Beyond that the oldest are
/// forgotten. Replicas of a shard must agree on it.
pub const JOB_IDS_MAX: usize = if cfg!(test) { 8 } else { 1 << 20 };

/// What came of the first job of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstApplied {
    /// The shard's time then.
    pub time: Timestamp,
    /// The message that it took effect with.
    pub sequence: Sequence,
    /// Whether it changed anything that readers see.
    pub changed: bool,
}

/// An id is kept, or forgotten: `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobIdChange {
    pub id: Arc<str>,
    pub after: Option<FirstApplied>,
}

/// When an id came. The first one is the next to be forgotten.
pub type JobIdAge = (Timestamp, Arc<str>);

/// The ids that a shard keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobIds {
    by_id: BTreeMap<Arc<str>, FirstApplied>,
    by_age: BTreeSet<JobIdAge>,
}

impl JobIds {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn get(&self, id: &str) -> Option<FirstApplied> {
        self.by_id.get(id).copied()
    }

    /// The oldest, after a place in that order or from the first on.
    pub fn oldest_after(&self, place: Option<&JobIdAge>) -> impl Iterator<Item = &JobIdAge> {
        self.by_age.range((place.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    pub fn apply(&mut self, JobIdChange { id, after }: &JobIdChange) {
        let before = match after {
            Some(after) => {
                self.by_age.insert((after.time, Arc::clone(id)));
                self.by_id.insert(Arc::clone(id), *after)
            }
            None => self.by_id.remove(id),
        };
        if let Some(before) = before
            && after.is_none_or(|after| after.time != before.time)
        {
            self.by_age.remove(&(before.time, Arc::clone(id)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_come_first_and_an_id_counts_once() {
        let mut ids = JobIds::default();
        let first = |micros| FirstApplied {
            time: Timestamp::from_micros(micros).expect("in range"),
            sequence: Sequence(1),
            changed: true,
        };
        let mut set = |id: &str, after: Option<i64>| {
            ids.apply(&JobIdChange { id: id.into(), after: after.map(first) });
            let oldest: Vec<String> = ids.oldest_after(None).map(|(_, id)| id.to_string()).collect();
            (oldest.concat(), ids.len())
        };
        assert_eq!(set("b", Some(1)), ("b".into(), 1));
        assert_eq!(set("a", Some(1)), ("ab".into(), 2));
        assert_eq!(set("a", Some(3)), ("ba".into(), 2));
        assert_eq!(set("c", Some(2)), ("bca".into(), 3));
        assert_eq!(set("b", None), ("ca".into(), 2));
        assert_eq!(set("b", None), ("ca".into(), 2));
        assert_eq!(ids.get("c"), Some(first(2)));
    }
}
