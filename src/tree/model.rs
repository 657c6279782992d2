//! The tree's oracle: a sorted vector. Test builds only. It must be too simple to be wrong.

use std::cmp::Ordering;

use super::words::{Handle, MemberOrder};

/// Ids of members by handle. A handle given to another member gets another id.
pub(super) struct Ids(pub(super) Vec<u64>);

impl MemberOrder for Ids {
    fn compare(&self, a: Handle, b: Handle) -> Ordering {
        self.0[a.0 as usize].cmp(&self.0[b.0 as usize])
    }
}

/// Entries in order: words, id, handle.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Model(pub(super) Vec<(Vec<u64>, u64, u32)>);

impl Model {
    pub(super) fn insert(&mut self, words: &[u64], id: u64, handle: u32) {
        self.0.push((words.to_vec(), id, handle));
        self.0.sort();
    }

    pub(super) fn remove(&mut self, handle: u32) -> Option<Vec<u64>> {
        let at = self.index_of(handle)?;
        Some(self.0.remove(at).0)
    }

    pub(super) fn index_of(&self, handle: u32) -> Option<usize> {
        self.0.iter().position(|entry| entry.2 == handle)
    }

    pub(super) fn count_below(&self, prefix: &[u64]) -> usize {
        self.0.iter().filter(|entry| entry.0[..prefix.len()] < *prefix).count()
    }

    pub(super) fn count_through(&self, prefix: &[u64]) -> usize {
        self.0.iter().filter(|entry| entry.0[..prefix.len()] <= *prefix).count()
    }

    pub(super) fn count_before(&self, words: &[u64], id: u64) -> usize {
        self.0.iter().filter(|entry| (&entry.0[..], entry.1) < (words, id)).count()
    }
}
