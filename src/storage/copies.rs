//! Copies a checkpoint's data from the shard's state, a slice under each hold of the lock.
//!
//! Knows: how much is copied at once. Must not know: files; the caller writes the copies.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::state::{DirtyEntries, ENTRIES_PER_PAGE, Extra, TreeId};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::checkpoint::Checkpoint;
use crate::storage::error::StorageError;
use crate::storage::{codec, keys};
use crate::tree::Handle;
use crate::types::Sequence;

/// Leaves copied per hold of the lock: 32 of them are 40 KiB, about 10 µs.
const PAGES_PER_SLICE: usize = if cfg!(test) { 1 } else { 32 };
/// Members looked up before the lock is given to a writer that waits for it: some 5 µs.
const MEMBERS_AT_ONCE: usize = if cfg!(test) { 1 } else { 32 };

/// Handles, and as many words in each column.
pub(super) type CopiedEntries = (Vec<u32>, Vec<Vec<u64>>);

/// A slice of a checkpoint's data. Slices come in key order, as files need it.
pub(super) enum Copied {
    /// A record as it is written; `None` deletes it.
    Record(Vec<u8>, Option<Vec<u8>>),
    /// A member page: 256 look-ups of 50 to 300 ns, under one hold of the lock if no writer waits for it.
    Members(TreeId, u32, CopiedEntries),
    /// Leaves of a tree. One without entries is deleted.
    Leaves(TreeId, Vec<(u32, CopiedEntries)>),
}

/// The result of copying.
pub(super) struct AllCopied {
    /// Trees that may have been copied in part: their boards were dropped meanwhile.
    pub(super) dropped_meanwhile: BTreeSet<TreeId>,
    /// The highest applied sequence whose effects any copy may contain.
    pub(super) copied_through: Sequence,
}

/// Receives copies. An error ends the copying.
pub(super) type Sink<'a> = &'a mut dyn FnMut(Copied) -> Result<(), StorageError>;

impl Checkpoint {
    /// Copies all slices, and calls `sink` with each while no lock is held.
    ///
    /// # Arguments
    /// `trees`: those with something to write, in the order of their records. Every board has joined.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(super) fn copy(
        &self,
        trees: &[(TreeId, &DirtyEntries)],
        state: &StateLock,
        sink: Sink<'_>,
    ) -> Result<AllCopied, StorageError> {
        for page in self.dictionary_pages.iter() {
            let value = {
                let shard = state.read_unhurried(Purpose::CheckpointCopy);
                codec::encode_dictionary(shard.members.page(page))
            };
            sink(Copied::Record(keys::dictionary_page(page).to_vec(), Some(value)))?;
        }
        let mut dropped_meanwhile = BTreeSet::new();
        for (tree, dirty) in trees {
            for page in dirty.pages.iter() {
                let Some(entries) = self.copy_members(state, *tree, page) else {
                    dropped_meanwhile.insert(*tree);
                    break;
                };
                sink(Copied::Members(*tree, page, entries))?;
            }
        }
        for (tree, _) in trees {
            if !copy_leaves(state, *tree, sink)? {
                dropped_meanwhile.insert(*tree);
            }
        }
        for (tree, dirty) in trees {
            for page in dirty.extras.iter() {
                let Some(value) = self.copy_extras(state, *tree, page) else {
                    dropped_meanwhile.insert(*tree);
                    break;
                };
                sink(Copied::Record(keys::extras_page(*tree, page).to_vec(), value))?;
            }
        }
        // A tree that vanishes after this point was copied whole, as of S.
        let copied_through = state.read(Purpose::CheckpointCopy).applied.sequence;
        Ok(AllCopied { dropped_meanwhile, copied_through })
    }

    /// The handles of a page. Members that came after the checkpoint began are left out: see
    /// `state::Members`.
    fn handles_of(&self, page: u32) -> impl Iterator<Item = Handle> + Clone + use<> {
        let first = page * ENTRIES_PER_PAGE;
        (first..(first + ENTRIES_PER_PAGE).min(self.handles)).map(Handle)
    }

    /// A page of extras; empty if there are none. `None`: the board was dropped meanwhile.
    #[expect(
        clippy::option_option,
        reason = "an absent page means that its record is deleted; an absent tree means that it was dropped"
    )]
    fn copy_extras(&self, state: &StateLock, tree: TreeId, page: u32) -> Option<Option<Vec<u8>>> {
        let extras: Vec<(Handle, Extra)> = {
            let shard = state.read_unhurried(Purpose::CheckpointCopy);
            let tree = shard.tree(tree)?;
            self.handles_of(page).filter_map(|handle| Some((handle, tree.extra(handle)?))).collect()
        };
        let extras: Vec<(Handle, &Extra)> = extras.iter().map(|(handle, extra)| (*handle, extra)).collect();
        Some((!extras.is_empty()).then(|| codec::encode_extras(&extras)))
    }

    /// `None`: the board was dropped meanwhile.
    fn copy_members(&self, state: &StateLock, tree: TreeId, page: u32) -> Option<CopiedEntries> {
        let mut handles = Vec::with_capacity(256);
        let mut columns: Vec<Vec<u64>> = Vec::new();
        let mut rest = self.handles_of(page).peekable();
        while rest.peek().is_some() {
            let shard = state.read_unhurried(Purpose::CheckpointCopy);
            let tree = &shard.tree(tree)?.tree;
            columns.resize_with(tree.columns(), || Vec::with_capacity(256));
            // Each look-up misses the cache twice. Prefetching for all of them first lets these waits
            // overlap.
            rest.clone().for_each(|handle| tree.prefetch_locator(handle));
            loop {
                let group = rest.by_ref().take(MEMBERS_AT_ONCE);
                let group: SmallVec<[Handle; MEMBERS_AT_ONCE]> = group.collect();
                group.iter().for_each(|handle| tree.prefetch_entry(*handle));
                for handle in &group {
                    let Some(words) = tree.get(*handle) else { continue };
                    handles.push(handle.0);
                    for (column, word) in columns.iter_mut().zip(words.as_slice()) {
                        column.push(*word);
                    }
                }
                if rest.peek().is_none() || state.is_wanted() {
                    break;
                }
            }
        }
        Some((handles, columns))
    }
}

/// Copies a tree's leaves. `false`: the board was dropped meanwhile, and the copy may be partial.
fn copy_leaves(state: &StateLock, id: TreeId, sink: Sink<'_>) -> Result<bool, StorageError> {
    loop {
        let mut copied = Vec::with_capacity(PAGES_PER_SLICE);
        let mut shard = state.write_unhurried(Purpose::CheckpointCopy);
        let more = shard.with_tree(id, |tree| {
            tree.tree
                .capture_next(PAGES_PER_SLICE, &mut |captured| copied.push((captured.page, captured.copy())))
        });
        // Unlock fairly, to who queues for it and not to the next slice.
        shard.unlock_fair();
        let Some(more) = more else { return Ok(false) };
        let pages = copied.iter().map(|(page, copy)| (*page, copy.entries().to_whole())).collect();
        sink(Copied::Leaves(id, pages))?;
        if !more {
            return Ok(true);
        }
    }
}
