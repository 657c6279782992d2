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
//! The writer is held for one slice at a time: [`PAGES_PER_SLICE`] leaves are copied under the lock in some 20 µs. Beginning
//! takes no longer for more boards: they join one after the other, each as it was at S (`state::Joined`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rocksdb::WriteBatch;

use crate::state::{
    Applied, DirtyEntries, Dropped, DroppedName, ENTRIES_PER_PAGE, Extra, Joined, PageSet, RecordNumber,
    Shard, TreeId,
};
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
/// Boards asked to join per hold of the lock: some 50 µs.
const BOARDS_PER_SLICE: usize = if cfg!(test) { 1 } else { 128 };
/// Boards and leaves that are given back per hold of the lock once a checkpoint has failed.
const ABANDONED_PER_SLICE: usize = if cfg!(test) { 1 } else { 128 };

/// A checkpoint begun: what it owes the disk.
pub struct Checkpoint {
    applied: Applied,
    next_tree: u32,
    dictionary_pages: PageSet,
    /// Trees whose records go away.
    gone: Vec<TreeId>,
    /// One past the highest handle that existed at the beginning.
    handles: u32,
    /// Held by whoever writes it or, after that, gives it up.
    told: Mutex<Told>,
    /// Memory that `told` holds.
    told_bytes: AtomicUsize,
}

/// What the shard has told, as of the beginning.
#[derive(Default)]
struct Told {
    /// Until it is copied: a drop that comes meanwhile takes a copy of its own.
    dropped: Option<Arc<Dropped>>,
    drops: Vec<DroppedName>,
    forgotten: RecordNumber,
    latest: RecordNumber,
    /// Every board, by name except for those that were about to change.
    boards: Vec<Joined>,
}

impl Told {
    /// Trees with something to write, in the order of their records.
    fn due(&self) -> Vec<(TreeId, &DirtyEntries)> {
        let mut due: Vec<_> =
            self.boards.iter().filter_map(|board| Some((board.tree, board.due.as_deref()?))).collect();
        due.sort_unstable_by_key(|(tree, _)| *tree);
        due
    }
}

/// Where the writing of a checkpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Some boards have yet to join.
    Joining,
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
    /// Begins a checkpoint of the shard as it is now. Takes no longer for more boards or members.
    #[must_use]
    pub fn begin(shard: &mut Shard) -> Self {
        shard.begin_joining();
        let dictionary_pages = shard.members.begin_checkpoint();
        let told = Told { dropped: Some(shard.dropped_as_of_now()), ..Told::default() };
        Self {
            applied: shard.applied,
            next_tree: shard.next_tree().0,
            dictionary_pages,
            gone: shard.take_gone(),
            handles: shard.members.checkpointed(),
            told: Mutex::new(told),
            told_bytes: AtomicUsize::new(0),
        }
    }

    #[must_use]
    pub fn applied(&self) -> Applied {
        self.applied
    }

    /// Memory held, in bytes, beside what trees set aside: which boards there are, and which pages are to be written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.dictionary_pages.bytes()
            + self.gone.capacity() * size_of::<TreeId>()
            + self.told_bytes.load(Ordering::Relaxed)
    }

    /// Writes the checkpoint. Runs beside the writer, on another thread.
    ///
    /// # Errors
    /// When the disk refuses; then nothing has changed, and [`Checkpoint::abandon`] makes all of it due again.
    pub fn write(&self, store: &Store, shard: &RwLock<Shard>) -> Result<CheckpointFigures, StorageError> {
        self.write_in_slices(store, shard, &mut |_| Ok(()))
    }

    /// As [`Checkpoint::write`], calling `between` whenever the writer may come in between, no lock being held. An
    /// error of it ends the writing as one of the disk would: tests fail and crash a checkpoint at any moment.
    ///
    /// # Errors
    /// As [`Checkpoint::write`], and those of `between`.
    pub fn write_in_slices(
        &self,
        store: &Store,
        shard: &RwLock<Shard>,
        between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
    ) -> Result<CheckpointFigures, StorageError> {
        let started = Instant::now();
        let mut told = self.told.lock();
        self.let_join(&mut told, shard, between)?;
        let told_now = &*told;
        let trees = told_now.due();
        let options = staging_options();
        let mut staged = Staged::new(store, &options)?;
        between(Moment::Slice)?;
        for page in self.dictionary_pages.iter() {
            let value = {
                let shard = shard.read();
                codec::encode_dictionary(shard.members.page(page))
            };
            staged.put(&keys::dictionary_page(page), &value)?;
            between(Moment::Slice)?;
        }
        let mut vanished = BTreeSet::new();
        for (tree, dirty) in &trees {
            for page in dirty.pages.iter() {
                let Some(value) = self.capture_members(shard, *tree, page) else {
                    vanished.insert(*tree);
                    break;
                };
                let value = (!value.is_empty()).then_some(value.as_slice());
                staged.put_or_delete(&keys::member_page(*tree, page), value)?;
                between(Moment::Slice)?;
            }
        }
        for (tree, _) in &trees {
            if !write_tree_pages(&mut staged, shard, *tree, between)? {
                vanished.insert(*tree);
            }
        }
        for (tree, dirty) in &trees {
            for page in dirty.extras.iter() {
                let Some(value) = self.capture_extras(shard, *tree, page) else {
                    vanished.insert(*tree);
                    break;
                };
                let value = (!value.is_empty()).then_some(value.as_slice());
                staged.put_or_delete(&keys::extras_page(*tree, page), value)?;
                between(Moment::Slice)?;
            }
        }
        // A tree that vanishes from here on is whole, as it was at S.
        self.delete_trees(&mut staged, &trees, &vanished)?;
        let seen = shard.read().applied.sequence;
        let manifest = self.manifest(told_now, &vanished, seen);
        staged.put(&keys::manifest(), &codec::encode_manifest(&manifest))?;
        // What the checkpoint replaces must not outlive it in a power failure by less than it does: metadata and
        // rejects up to here are in the log, which is synced before the files take effect.
        store.sync()?;
        between(Moment::Staged)?;
        let figures = staged.ingest()?;
        between(Moment::Ingested)?;
        drop_deltas(store, self.applied.sequence)?;
        store.sync_marker();
        // There is nothing left to give back: freed here, and not on the writer's thread.
        drop(trees);
        *told = Told::default();
        self.told_bytes.store(0, Ordering::Relaxed);
        Ok(CheckpointFigures { took: started.elapsed(), ..figures })
    }

    /// The checkpoint is on disk: handles that were given up before it began are free now.
    pub fn complete(&self, shard: &mut Shard) {
        shard.members.complete_checkpoint();
    }

    /// The checkpoint failed: all that it owed the disk is due again. The lock is held for a slice at a time; nobody
    /// else may begin a checkpoint meanwhile.
    pub fn abandon(&self, shard: &RwLock<Shard>) {
        let pages = self.dictionary_pages.clone();
        let mut held = shard.write();
        held.members.abandon_checkpoint(pages);
        held.put_back_gone(self.gone.iter().copied());
        let early = held.stop_joining();
        drop(held);
        let told = std::mem::take(&mut *self.told.lock());
        self.told_bytes.store(0, Ordering::Relaxed);
        let mut boards =
            told.boards.into_iter().chain(early).filter_map(|board| Some((board.tree, board.due?)));
        let mut next = boards.next();
        while next.is_some() {
            let mut shard = shard.write();
            for _ in 0..ABANDONED_PER_SLICE {
                let Some((id, due)) = next.take() else { break };
                let more = shard.with_tree(id, |tree| {
                    let more = tree.tree.abandon_capture(ABANDONED_PER_SLICE);
                    if more {
                        Some(due)
                    } else {
                        tree.put_back(due);
                        None
                    }
                });
                next = match more.flatten() {
                    // A large board has a slice of its own.
                    Some(due) => {
                        next = Some((id, due));
                        break;
                    }
                    None => boards.next(),
                };
            }
        }
    }

    /// Has every board join.
    fn let_join(
        &self,
        told: &mut Told,
        shard: &RwLock<Shard>,
        between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        if let Some(dropped) = told.dropped.take() {
            told.drops = dropped.names().collect();
            (told.forgotten, told.latest) = (dropped.forgotten(), dropped.latest());
        }
        loop {
            between(Moment::Joining)?;
            let (joined, more) = shard.write().join_some(BOARDS_PER_SLICE);
            let bytes: usize = joined.iter().map(Joined::bytes).sum();
            self.told_bytes.fetch_add(bytes, Ordering::Relaxed);
            told.boards.extend(joined);
            if !more {
                return Ok(());
            }
        }
    }

    /// Stages the deletion of what dropped boards have on disk, and of what was staged of those that vanished meanwhile.
    fn delete_trees(
        &self,
        staged: &mut Staged<'_>,
        trees: &[(TreeId, &DirtyEntries)],
        vanished: &BTreeSet<TreeId>,
    ) -> Result<(), StorageError> {
        if !vanished.is_empty() {
            // Records that are in the same file as a deletion outlive it.
            staged.finish_file()?;
        }
        for kind in [keys::MEMBER_PAGE, keys::EXTRA, keys::TREE_PAGE, keys::EXTRAS_PAGE] {
            for tree in self.gone.iter().chain(vanished) {
                staged.delete_tree(kind, *tree)?;
            }
        }
        for (tree, _) in trees.iter().filter(|(_, dirty)| dirty.single_extras) {
            staged.delete_tree(keys::EXTRA, *tree)?;
        }
        Ok(())
    }

    fn manifest(&self, told: &Told, vanished: &BTreeSet<TreeId>, seen: Sequence) -> Manifest {
        let board = |board: &Joined| ManifestBoard {
            name: board.name.clone(),
            incarnation: board.incarnation,
            definition: Arc::clone(&board.definition),
            all: board.tree,
            entries: if vanished.contains(&board.tree) { 0 } else { board.entries },
        };
        let mut boards: Vec<ManifestBoard> = told.boards.iter().map(board).collect();
        boards.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Manifest {
            applied: self.applied,
            seen,
            next_tree: self.next_tree,
            boards,
            dropped: told.drops.clone(),
            forgotten: told.forgotten,
            latest: told.latest,
        }
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

    /// A member page; empty without entries. `None`: the tree has vanished.
    fn capture_members(&self, shard: &RwLock<Shard>, tree: TreeId, page: u32) -> Option<Vec<u8>> {
        let mut handles = Vec::with_capacity(256);
        let mut columns: Vec<Vec<u64>> = Vec::new();
        {
            let shard = shard.read();
            let tree = &shard.tree(tree)?.tree;
            columns.resize(tree.columns(), Vec::with_capacity(256));
            // Look-ups miss the cache twice each: asking for all of them first overlaps the waits.
            self.handles_of(page).for_each(|handle| tree.prefetch_locator(handle));
            self.handles_of(page).for_each(|handle| tree.prefetch_entry(handle));
            for handle in self.handles_of(page) {
                let Some(words) = tree.get(handle) else { continue };
                handles.push(handle.0);
                for (column, word) in columns.iter_mut().zip(words.as_slice()) {
                    column.push(*word);
                }
            }
        }
        let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        Some(if handles.is_empty() { Vec::new() } else { codec::encode_entries(&handles, &columns) })
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
    if shard.write().with_tree(id, |tree| tree.tree.set_pending_order(order)).is_none() {
        return Ok(false);
    }
    loop {
        let mut copied: Vec<(u32, Vec<u32>, Vec<Vec<u64>>)> = Vec::with_capacity(PAGES_PER_SLICE);
        let more = shard.write().with_tree(id, |tree| {
            let width = tree.tree.columns();
            tree.tree.capture_next(PAGES_PER_SLICE, &mut |captured| {
                let (handles, columns) = captured.entries.map_or_else(Default::default, |entries| {
                    let columns = (0..width).map(|column| entries.column(column).to_vec()).collect();
                    (entries.handles().to_vec(), columns)
                });
                copied.push((captured.page, handles, columns));
            })
        });
        let Some(more) = more else { return Ok(false) };
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
