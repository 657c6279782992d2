//! Interned sets of trees: each is stored once, however many members are on exactly these boards.
//!
//! Knows: how many hold each set. Must not know: who they are (`memberships`).

use std::hash::BuildHasher;

use crate::state::entry::TreeId;
use crate::state::handle_map::HandleMap;
use crate::tree::Handle;

/// Sets per chunk. Chunks never move, so that growing copies nothing.
const CHUNK: usize = 1_024;
/// No set.
const NONE: u32 = u32::MAX;
/// Upper bound of the number of sets, so that a number and a mark bit fit into 32 bits.
const SETS_MAX: u32 = (1 << 31) - 1;

struct Set {
    /// Ascending.
    trees: Box<[TreeId]>,
    /// How many members have this set; 0: the slot is free.
    members: u32,
    /// The next set of the same hash; for a free slot, the next free one.
    next: u32,
}

pub(super) struct TreeSets {
    chunks: Vec<Vec<Set>>,
    used: u32,
    free: u32,
    /// The first set of each hash.
    by_hash: HandleMap<u32>,
    hasher: foldhash::fast::RandomState,
    /// Trees in all sets.
    trees: usize,
}

impl Default for TreeSets {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            used: 0,
            free: NONE,
            by_hash: HandleMap::default(),
            hasher: foldhash::fast::RandomState::default(),
            trees: 0,
        }
    }
}

fn place(number: u32) -> (usize, usize) {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    (number / CHUNK, number % CHUNK)
}

impl TreeSets {
    /// The trees of a set, ascending.
    pub(super) fn trees(&self, number: u32) -> &[TreeId] {
        self.set(number).map_or(&[], |set| &set.trees)
    }

    /// Counts one more member with these trees, which ascend. `None`: the maximum number of sets is reached.
    pub(super) fn acquire(&mut self, trees: &[TreeId]) -> Option<u32> {
        let hash = self.hash(trees);
        let number = match self.find(hash, trees) {
            Some(number) => number,
            None => self.add(hash, trees)?,
        };
        self.acquire_again(number);
        Some(number)
    }

    /// Counts one more member of an existing set.
    pub(super) fn acquire_again(&mut self, number: u32) {
        if let Some(set) = self.set_mut(number) {
            set.members += 1;
        }
    }

    /// Counts one member less. Returns whether none is left; the number may then be reused.
    pub(super) fn release(&mut self, number: u32) -> bool {
        let Some(set) = self.set_mut(number) else { return false };
        set.members = set.members.saturating_sub(1);
        if set.members > 0 {
            return false;
        }
        let (trees, next) = (std::mem::take(&mut set.trees), set.next);
        let hash = self.hash(&trees);
        self.trees -= trees.len();
        self.unlink(hash, number, next);
        let free = std::mem::replace(&mut self.free, number);
        if let Some(set) = self.set_mut(number) {
            set.next = free;
        }
        true
    }

    /// Heap memory, in bytes, without the struct itself.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.len() * (CHUNK * size_of::<Set>() + size_of::<Vec<Set>>())
            + self.trees * size_of::<TreeId>()
            + self.by_hash.bytes()
    }

    fn hash(&self, trees: &[TreeId]) -> Handle {
        let hash = self.hasher.hash_one(trees);
        Handle(u32::try_from(hash & 0x7fff_ffff).unwrap_or(0))
    }

    fn find(&self, hash: Handle, trees: &[TreeId]) -> Option<u32> {
        let mut number = self.by_hash.get(hash)?;
        loop {
            let set = self.set(number)?;
            if *set.trees == *trees {
                return Some(number);
            }
            number = set.next;
        }
    }

    fn add(&mut self, hash: Handle, trees: &[TreeId]) -> Option<u32> {
        let number = if self.free == NONE { self.used } else { self.free };
        if number >= SETS_MAX {
            return None;
        }
        let next = self.by_hash.insert(hash, number).unwrap_or(NONE);
        self.trees += trees.len();
        let added = Set { trees: trees.into(), members: 0, next };
        if number == self.used {
            self.used += 1;
            if place(number).1 == 0 {
                self.chunks.push(Vec::with_capacity(CHUNK));
            }
            if let Some(chunk) = self.chunks.last_mut() {
                chunk.push(added);
            }
        } else if let Some(set) = self.set_mut(number) {
            let free = std::mem::replace(set, added).next;
            self.free = free;
        }
        Some(number)
    }

    /// Takes a set out of those of its hash.
    fn unlink(&mut self, hash: Handle, number: u32, next: u32) {
        match self.by_hash.get(hash) {
            Some(first) if first != number => {
                let mut before = first;
                while let Some(set) = self.set_mut(before) {
                    if set.next == number {
                        set.next = next;
                        return;
                    }
                    before = set.next;
                }
            }
            Some(_) if next != NONE => {
                self.by_hash.insert(hash, next);
            }
            Some(_) | None => {
                self.by_hash.remove(hash);
            }
        }
    }

    fn set(&self, number: u32) -> Option<&Set> {
        let (chunk, at) = place(number);
        self.chunks.get(chunk)?.get(at)
    }

    fn set_mut(&mut self, number: u32) -> Option<&mut Set> {
        let (chunk, at) = place(number);
        self.chunks.get_mut(chunk)?.get_mut(at)
    }

    /// How many sets are in use.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.chunks.iter().flatten().filter(|set| set.members > 0).count()
    }
}
