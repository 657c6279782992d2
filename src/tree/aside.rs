//! Leaves set aside for a checkpoint, found by their ids.
//!
//! Knows: that all of a large tree's leaves may be set aside within a second, while readers wait. One map of them would grow
//! at once, copying a hundred thousand: milliseconds. So where there are many they are in many maps.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::capture::PreImage;

/// As long as there are no more than this, one map holds them: dividing it takes a quarter of a millisecond.
const IN_ONE_MAP: usize = if cfg!(test) { 8 } else { 4_096 };
/// So many maps hold more. Of 200,000 leaves, ten million entries, each holds 800.
const MAPS: u32 = if cfg!(test) { 4 } else { 256 };

#[derive(Default)]
pub(super) struct Aside {
    /// None, one, or [`MAPS`], by the remainder of a leaf's id.
    maps: Vec<HashMap<u32, PreImage, FixedState>>,
    len: usize,
    /// Held by what is set aside.
    kept_bytes: usize,
}

impl Aside {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Memory held.
    pub(super) fn bytes(&self) -> usize {
        let tables: usize = self.maps.iter().map(HashMap::allocation_size).sum();
        self.maps.capacity() * size_of::<HashMap<u32, PreImage, FixedState>>() + tables + self.kept_bytes
    }

    fn map_of(&self, leaf: u32) -> usize {
        if self.maps.len() > 1 { (leaf % MAPS) as usize } else { 0 }
    }

    pub(super) fn contains(&self, leaf: u32) -> bool {
        self.maps.get(self.map_of(leaf)).is_some_and(|map| map.contains_key(&leaf))
    }

    /// Sets a leaf aside that is not.
    pub(super) fn insert(&mut self, leaf: u32, kept: PreImage) {
        if self.maps.is_empty() {
            self.maps.push(HashMap::default());
        } else if self.len == IN_ONE_MAP && self.maps.len() == 1 {
            let all = std::mem::take(&mut self.maps[0]);
            self.maps = (0..MAPS).map(|_| HashMap::default()).collect();
            for (leaf, kept) in all {
                let map = self.map_of(leaf);
                self.maps[map].insert(leaf, kept);
            }
        }
        self.kept_bytes += kept.bytes();
        self.len += 1;
        let map = self.map_of(leaf);
        self.maps[map].insert(leaf, kept);
    }

    pub(super) fn remove(&mut self, leaf: u32) -> Option<PreImage> {
        let map = self.map_of(leaf);
        let kept = self.maps.get_mut(map)?.remove(&leaf)?;
        self.kept_bytes -= kept.bytes();
        self.len -= 1;
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::columns::Columns;

    fn page(leaf: u32) -> PreImage {
        let words: Vec<u64> = (0..u64::from(leaf % 3)).collect();
        let handles: Vec<u32> = (0..leaf % 3).map(|at| leaf * 3 + at).collect();
        PreImage::of(&Columns::new(&words, &handles, handles.len().max(1)))
    }

    #[test]
    fn what_was_set_aside_is_found_again_in_one_map_and_in_many() {
        let mut aside = Aside::default();
        for leaf in 0..50 {
            assert!(!aside.contains(leaf));
            aside.insert(leaf, page(leaf));
            assert!((0..=leaf).all(|leaf| aside.contains(leaf)), "after {leaf}");
        }
        assert_eq!((aside.len(), aside.maps.len()), (50, 4));
        assert_eq!(aside.kept_bytes, (0..50).map(|leaf| page(leaf).bytes()).sum::<usize>());
        for leaf in 0..50 {
            let kept = aside.remove(leaf).expect("it was set aside");
            assert_eq!(kept.entries().handles(), page(leaf).entries().handles());
            assert!(aside.remove(leaf).is_none());
        }
        assert_eq!((aside.len(), aside.kept_bytes), (0, 0));
    }
}
