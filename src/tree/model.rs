//! The tree's oracle: a sorted vector. Test builds only. It must be too simple to be wrong.

use std::cmp::Ordering;

use super::words::{Handle, MemberOrder, compare_ids};

/// Ids of members. A handle given to another member gets another id.
pub(super) struct Ids(pub(super) Vec<u64>);

/// Of 150 members, 25 have handles below those that take four bytes, and 25 have the first of these.
const LAST_OF_THREE_BYTES: u32 = (1 << 24) - 1;

/// The handle of the nth member.
pub(super) fn handle_of(nth: u32) -> u32 {
    if nth < 100 { nth } else { LAST_OF_THREE_BYTES - 124 + nth }
}

fn nth_of(handle: u32) -> usize {
    let nth = if handle < 1_000 { handle } else { handle + 124 - LAST_OF_THREE_BYTES };
    nth as usize
}

impl Ids {
    pub(super) fn of(&self, handle: u32) -> u64 {
        self.0[nth_of(handle)]
    }

    pub(super) fn set(&mut self, handle: u32, id: u64) {
        self.0[nth_of(handle)] = id;
    }
}

impl MemberOrder for Ids {
    fn compare(&self, words: &[u64], a: Handle, b: Handle) -> Ordering {
        compare_ids(words, &self.of(a.0), &self.of(b.0))
    }
}

/// Entries in order: words, id, handle.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Model(pub(super) Vec<(Vec<u64>, u64, u32)>);

impl Model {
    pub(super) fn insert(&mut self, words: &[u64], id: u64, handle: u32) {
        self.0.push((words.to_vec(), id, handle));
        self.0.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| compare_ids(&a.0, &(a.1, a.2), &(b.1, b.2))));
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
        let is_before = |entry: &&(Vec<u64>, u64, u32)| {
            entry.0[..].cmp(words).then_with(|| compare_ids(words, &entry.1, &id)).is_lt()
        };
        self.0.iter().filter(is_before).count()
    }
}
