//! The ids of a shard as a start-up reads them, before it knows which trees hold each.

use std::cmp::Ordering;
use std::hash::BuildHasher;

use crate::state::ids::Ids;
use crate::state::index::Index;
use crate::state::members::Members;
use crate::tree::{Handle, MemberOrder, compare_ids};

/// Ids by handle, as read from a checkpoint's dictionary pages. A start-up turns it into [`Members`].
#[derive(Default)]
pub struct Dictionary {
    ids: Ids,
    present: usize,
    handles: u32,
}

/// The index over a [`Dictionary`], built while other threads already read the dictionary.
pub struct DictionaryIndex {
    index: Index,
    hasher: foldhash::fast::RandomState,
}

impl Dictionary {
    /// Adds an id, which is not empty; each handle once.
    pub fn add(&mut self, handle: Handle, id: &[u8]) {
        self.ids.set(handle, id);
        self.present += 1;
        self.handles = self.handles.max(handle.0 + 1);
    }

    pub fn has_id(&self, handle: Handle) -> bool {
        !self.ids.get(handle).is_empty()
    }

    /// One past the highest handle.
    pub fn handle_space(&self) -> u32 {
        self.handles
    }

    pub fn index(&self) -> DictionaryIndex {
        let hasher = foldhash::fast::RandomState::default();
        let mut index = Index::with_capacity(self.present);
        let present: Vec<Handle> =
            (0..self.handles).map(Handle).filter(|handle| self.has_id(*handle)).collect();
        // The table is far larger than the cache: hashing and fetching in groups hides most of the wait.
        for group in present.chunks(32) {
            let mut hashes = [0; 32];
            for (hash, handle) in hashes.iter_mut().zip(group) {
                *hash = hasher.hash_one(self.ids.get(*handle));
                index.prefetch(*hash);
            }
            for (hash, handle) in hashes.iter().zip(group) {
                let hash_of = |other| hasher.hash_one(self.ids.get(other));
                index.insert(*hash, *handle, hash_of, |other| self.ids.prefetch(other));
            }
        }
        DictionaryIndex { index, hasher }
    }

    /// The members of this dictionary, not yet on any tree. Handles without an id are free.
    pub fn into_members(self, index: DictionaryIndex) -> Members {
        let free = (0..self.handles).rev().map(Handle).filter(|handle| !self.has_id(*handle)).collect();
        let DictionaryIndex { index, hasher } = index;
        Members { hasher, free, ..Members::over(self.ids, index, self.handles) }
    }
}

impl MemberOrder for Dictionary {
    fn compare(&self, words: &[u64], a: Handle, b: Handle) -> Ordering {
        compare_ids(words, self.ids.get(a), self.ids.get(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionarys_gaps_are_free() {
        let mut dictionary = Dictionary::default();
        dictionary.add(Handle(3), b"three");
        dictionary.add(Handle(1), b"one");
        let index = dictionary.index();
        let members = dictionary.into_members(index);
        assert_eq!(members.get(b"three"), Some(Handle(3)));
        assert_eq!(members.get(b"two"), None);
        assert_eq!(
            [members.nth_next_handle(0), members.nth_next_handle(1), members.nth_next_handle(2)],
            [0, 2, 4].map(Handle)
        );
    }
}
