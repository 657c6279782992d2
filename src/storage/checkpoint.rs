//! Checkpoints: what changed since the last one, written sorted and in one piece, while the writer goes on.
//!
//! A checkpoint at sequence S has four parts and a manifest, staged as sorted files that RocksDB then ingests in one
//! step: a crash leaves the old checkpoint or the new one, and at most files in the staging folder, which the next
//! start removes. The deltas up to S are dropped only afterwards.
//!
//! - **tree pages** are exactly as of S: the tree sets a leaf aside when the writer changes it before it was captured.
//! - **dictionary pages, member pages and pages of extras** are as of S or later, whenever they were looked at. Start-up replays
//!   every delta after S, whose values are absolute, and that makes them right. It relies on handles not changing
//!   hands meanwhile, which `state::Members` sees to; on deltas that name every entry that was touched, even if it came
//!   back to what it was; and on the log going as far as anything was looked at, which the manifest records.
//! - **a tree that vanishes** while the checkpoint is written belongs to a board that was dropped after S. The manifest
//!   still lists the board, because deltas between S and the drop may name it and because trees are numbered in the order
//!   of definitions; but it lists the board without entries, and all of the tree's records are deleted. The replay meets the
//!   drop before anybody reads the board: a log that does not go as far is refused.
//!
//! The writer is held for one slice at a time: [`PAGES_PER_SLICE`] leaves are copied under the lock in some 20 µs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use rocksdb::WriteBatch;

use crate::state::{Applied, DirtyEntries, ENTRIES_PER_PAGE, Extra, Shard, TreeId};
use crate::storage::codec::{self, Manifest, ManifestBoard};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::staging_options;
use crate::storage::staged::Staged;
use crate::storage::store::Store;
use crate::tree::Handle;
use crate::types::Sequence;

/// Leaves copied per hold of the lock: 32 of them are 40 KiB, about 10 µs.
const PAGES_PER_SLICE: usize = if cfg!(test) { 1 } else { 32 };
/// Where one staged file ends and the next begins.
pub const STAGED_FILE_BYTES: u64 = 128 << 20;
/// Member pages looked up per hold of the read lock: 256 look-ups of some 50 ns each.
const MEMBER_PAGES_PER_SLICE: usize = 1;

/// A checkpoint begun: what it owes the disk.
pub struct Checkpoint {
    manifest: Manifest,
    dictionary_pages: Vec<u32>,
    /// Trees with something to write.
    trees: Vec<(TreeId, DirtyEntries)>,
    /// Trees whose records go away.
    gone: Vec<TreeId>,
    /// One past the highest handle that existed at the beginning.
    handles: u32,
}

/// Where the writing of a checkpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the first slice, or between two.
    Slice,
    /// All of it is in staged files, which have no effect yet.
    Staged,
    /// The files are in effect; the deltas that they make superfluous are still there.
    Ingested,
}

/// What a checkpoint wrote.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckpointFigures {
    pub pages: u64,
    pub bytes: u64,
    pub took: Duration,
}

impl Checkpoint {
    /// Begins a checkpoint of the shard as it is now. Takes time proportional to the number of boards, not of members.
    #[must_use]
    pub fn begin(shard: &mut Shard) -> Self {
        let boards = shard.boards().map(|(name, board)| ManifestBoard {
            name: name.clone(),
            incarnation: board.incarnation,
            definition: std::sync::Arc::clone(&board.definition),
            all: board.all,
            entries: shard.tree(board.all).map_or(0, crate::state::WindowTree::total),
        });
        let manifest = Manifest {
            applied: shard.applied,
            seen: shard.applied.sequence,
            next_tree: shard.next_tree().0,
            boards: boards.collect(),
            dropped: shard.dropped().names().collect(),
            forgotten: shard.dropped().forgotten(),
            latest: shard.dropped().latest(),
        };
        let dictionary_pages = shard.members.begin_checkpoint();
        let trees = shard.trees_mut().filter_map(|(id, tree)| Some((id, tree.begin_checkpoint()?))).collect();
        let (gone, handles) = (shard.take_gone(), shard.members.checkpointed());
        Self { manifest, dictionary_pages, trees, gone, handles }
    }

    #[must_use]
    pub fn applied(&self) -> Applied {
        self.manifest.applied
    }

    /// Memory held, in bytes, beside what trees set aside: which pages are to be written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pages = |dirty: &DirtyEntries| dirty.pages.capacity() + dirty.extras.capacity();
        let pages = self.dictionary_pages.capacity()
            + self.trees.iter().map(|(_, dirty)| pages(dirty)).sum::<usize>();
        let (trees, boards) = (size_of::<(TreeId, DirtyEntries)>(), size_of::<ManifestBoard>());
        pages * size_of::<u32>() + self.trees.capacity() * trees + self.manifest.boards.capacity() * boards
    }

    /// Writes the checkpoint. Runs beside the writer, on another thread.
    ///
    /// # Errors
    /// When the disk refuses; then nothing has changed, and [`Checkpoint::abandon`] makes all of it due again.
    pub fn write(&self, store: &Store, shard: &RwLock<Shard>) -> Result<CheckpointFigures, StorageError> {
        self.write_in_slices(store, shard, STAGED_FILE_BYTES, &mut |_| Ok(()))
    }

    /// As [`Checkpoint::write`], calling `between` whenever the writer may come in between, no lock being held. An
    /// error of it ends the writing as one of the disk would: tests fail and crash a checkpoint at any moment.
    ///
    /// # Arguments
    /// `file_bytes`: where one staged file ends and the next begins.
    ///
    /// # Errors
    /// As [`Checkpoint::write`], and those of `between`.
    pub fn write_in_slices(
        &self,
        store: &Store,
        shard: &RwLock<Shard>,
        file_bytes: u64,
        between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
    ) -> Result<CheckpointFigures, StorageError> {
        let started = Instant::now();
        let options = staging_options();
        let mut staged = Staged::new(store, &options, file_bytes)?;
        between(Moment::Slice)?;
        for page in &self.dictionary_pages {
            let value = {
                let shard = shard.read();
                codec::encode_dictionary(shard.members.page(*page))
            };
            staged.put(&keys::dictionary_page(*page), &value)?;
            between(Moment::Slice)?;
        }
        let mut vanished = BTreeSet::new();
        for (tree, dirty) in &self.trees {
            for pages in dirty.pages.chunks(MEMBER_PAGES_PER_SLICE) {
                let Some(captured) = self.capture_members(shard, *tree, pages) else {
                    vanished.insert(*tree);
                    break;
                };
                for (page, value) in captured {
                    staged.put_or_delete(&keys::member_page(*tree, page), value.as_deref())?;
                }
                between(Moment::Slice)?;
            }
        }
        for (tree, _) in &self.trees {
            if !write_tree_pages(&mut staged, shard, *tree, between)? {
                vanished.insert(*tree);
            }
        }
        for (tree, dirty) in &self.trees {
            for page in &dirty.extras {
                let Some(value) = self.capture_extras(shard, *tree, *page) else {
                    vanished.insert(*tree);
                    break;
                };
                let value = (!value.is_empty()).then_some(value.as_slice());
                staged.put_or_delete(&keys::extras_page(*tree, *page), value)?;
                between(Moment::Slice)?;
            }
        }
        // A tree that vanishes from here on is whole, as it was at S.
        self.delete_trees(&mut staged, &vanished)?;
        let seen = shard.read().applied.sequence;
        let manifest = self.manifest_without(&vanished, seen);
        staged.put(&keys::manifest(), &codec::encode_manifest(&manifest))?;
        // What the checkpoint replaces must not outlive it in a power failure by less than it does: metadata and
        // rejects up to here are in the log, which is synced before the files take effect.
        store.sync()?;
        between(Moment::Staged)?;
        let figures = staged.ingest()?;
        between(Moment::Ingested)?;
        drop_deltas(store, self.manifest.applied.sequence)?;
        store.sync_marker();
        Ok(CheckpointFigures { took: started.elapsed(), ..figures })
    }

    /// The checkpoint is on disk: handles that were given up before it began are free now.
    pub fn complete(&self, shard: &mut Shard) {
        shard.members.complete_checkpoint();
    }

    /// The checkpoint failed: all that it owed the disk is due again.
    pub fn abandon(&self, shard: &mut Shard) {
        shard.members.abandon_checkpoint(&self.dictionary_pages);
        shard.put_back_gone(self.gone.iter().copied());
        for (id, dirty) in &self.trees {
            if let Some(tree) = shard.tree_mut(*id) {
                tree.abandon_checkpoint(dirty);
            }
        }
    }

    /// Stages the deletion of what dropped boards have on disk, and of what was staged of those that vanished meanwhile.
    fn delete_trees(&self, staged: &mut Staged<'_>, vanished: &BTreeSet<TreeId>) -> Result<(), StorageError> {
        if !vanished.is_empty() {
            // Records that are in the same file as a deletion outlive it.
            staged.finish_file()?;
        }
        for kind in [keys::MEMBER_PAGE, keys::EXTRA, keys::TREE_PAGE, keys::EXTRAS_PAGE] {
            for tree in self.gone.iter().chain(vanished) {
                staged.delete_tree(kind, *tree)?;
            }
        }
        for (tree, _) in self.trees.iter().filter(|(_, dirty)| dirty.single_extras) {
            staged.delete_tree(keys::EXTRA, *tree)?;
        }
        Ok(())
    }

    fn manifest_without(&self, vanished: &BTreeSet<TreeId>, seen: Sequence) -> Manifest {
        let mut manifest = Manifest { seen, ..self.manifest.clone() };
        for board in manifest.boards.iter_mut().filter(|board| vanished.contains(&board.all)) {
            board.entries = 0;
        }
        manifest
    }

    /// The handles of a page. Members that came after the checkpoint began are left out: see `state::Members`.
    fn handles_of(&self, page: u32) -> impl Iterator<Item = Handle> + use<> {
        let first = page * ENTRIES_PER_PAGE;
        (first..(first + ENTRIES_PER_PAGE).min(self.handles)).map(Handle)
    }

    /// A page of extras; empty without any. `None`: the tree has vanished.
    fn capture_extras(&self, shard: &RwLock<Shard>, tree: TreeId, page: u32) -> Option<Vec<u8>> {
        let shard = shard.read();
        let tree = shard.tree(tree)?;
        let extras = self.handles_of(page).filter_map(|handle| Some((handle, tree.extra(handle)?)));
        let extras: Vec<(Handle, Extra)> = extras.collect();
        let extras: Vec<(Handle, &Extra)> = extras.iter().map(|(handle, extra)| (*handle, extra)).collect();
        Some(if extras.is_empty() { Vec::new() } else { codec::encode_extras(&extras) })
    }

    /// `None`: the tree has vanished.
    fn capture_members(
        &self,
        shard: &RwLock<Shard>,
        tree: TreeId,
        pages: &[u32],
    ) -> Option<Vec<CapturedMemberPage>> {
        let mut captured = Vec::with_capacity(pages.len());
        for page in pages {
            let mut handles = Vec::with_capacity(256);
            let mut columns: Vec<Vec<u64>> = Vec::new();
            {
                let shard = shard.read();
                let tree = &shard.tree(tree)?.tree;
                columns.resize(tree.columns(), Vec::with_capacity(256));
                // Look-ups miss the cache twice each: asking for all of them first overlaps the waits.
                self.handles_of(*page).for_each(|handle| tree.prefetch_locator(handle));
                self.handles_of(*page).for_each(|handle| tree.prefetch_entry(handle));
                for handle in self.handles_of(*page) {
                    let Some(words) = tree.get(handle) else { continue };
                    handles.push(handle.0);
                    for (column, word) in columns.iter_mut().zip(words.as_slice()) {
                        column.push(*word);
                    }
                }
            }
            let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            let value = (!handles.is_empty()).then(|| codec::encode_entries(&handles, &columns));
            captured.push((*page, value));
        }
        Some(captured)
    }
}

/// Removes a tree's pages from the disk, before all of them are written anew.
///
/// # Errors
/// When the disk refuses.
pub fn forget_tree_pages(store: &Store, tree: TreeId) -> Result<(), StorageError> {
    let prefix = keys::of_tree(keys::TREE_PAGE, tree);
    let mut batch = WriteBatch::default();
    batch.delete_range_cf(store.checkpoint(), prefix.to_vec(), keys::after(&prefix));
    store.write(batch, true)
}

type CapturedMemberPage = (u32, Option<Vec<u8>>);

/// Stages a tree's pages. `false`: the tree has vanished, and what is staged of it may be a part.
fn write_tree_pages(
    staged: &mut Staged<'_>,
    shard: &RwLock<Shard>,
    id: TreeId,
    between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
) -> Result<bool, StorageError> {
    // Files want their keys in order; sorting is done without keeping anyone waiting.
    let order = shard.read().tree(id).map(|tree| tree.tree.pending_order());
    let Some(mut order) = order else { return Ok(false) };
    order.sort_unstable();
    match shard.write().tree_mut(id) {
        Some(tree) => tree.tree.set_pending_order(order),
        None => return Ok(false),
    }
    loop {
        let mut copied: Vec<(u32, Vec<u32>, Vec<Vec<u64>>)> = Vec::with_capacity(PAGES_PER_SLICE);
        let more = {
            let mut shard = shard.write();
            let Some(tree) = shard.tree_mut(id) else { return Ok(false) };
            let tree = &mut tree.tree;
            let width = tree.columns();
            tree.capture_next(PAGES_PER_SLICE, &mut |captured| {
                let (handles, columns) = captured.entries.map_or_else(Default::default, |entries| {
                    let columns = (0..width).map(|column| entries.column(column).to_vec()).collect();
                    (entries.handles().to_vec(), columns)
                });
                copied.push((captured.page, handles, columns));
            })
        };
        for (page, handles, columns) in &copied {
            let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            let value = (!handles.is_empty()).then(|| codec::encode_entries(handles, &columns));
            staged.put_or_delete(&keys::tree_page(id, *page), value.as_deref())?;
        }
        between(Moment::Slice)?;
        if !more {
            return Ok(true);
        }
    }
}

fn drop_deltas(store: &Store, through: Sequence) -> Result<(), StorageError> {
    let mut batch = WriteBatch::default();
    batch.delete_range_cf(store.log(), keys::delta(Sequence(0)), keys::delta(through.next()));
    // Synced: where every write is, a log that breaks and goes on is known to be damaged.
    store.write(batch, true)
}
