//! Checkpoints: what changed since the last one, written sorted and in one piece, while the writer goes on.
//!
//! A checkpoint at sequence S has four parts and a manifest, staged as sorted files that RocksDB then ingests in one
//! step: a crash leaves the old checkpoint or the new one, and at most files in the staging folder, which the next
//! start removes. The deltas up to S are dropped only afterwards.
//!
//! - **tree pages** are exactly as of S: the tree sets a leaf aside when the writer changes it before it was captured.
//! - **dictionary pages, member pages and extras** are as of S or later, whenever they were looked at. Start-up replays
//!   every delta after S, whose values are absolute, and that makes them right. It relies on handles not changing
//!   hands meanwhile, which `state::Members` sees to; on deltas that name every entry that was touched, even if it came
//!   back to what it was; and on the log going as far as anything was looked at, which the manifest records.
//!
//! The writer is held for one slice at a time: [`PAGES_PER_SLICE`] leaves are copied under the lock in some 20 µs.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use rocksdb::{IngestExternalFileOptions, SstFileWriter, WriteBatch};

use crate::state::{Applied, DirtyEntries, ENTRIES_PER_PAGE, Shard, TreeId};
use crate::storage::codec::{self, Manifest, ManifestBoard};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::staging_options;
use crate::storage::store::Store;
use crate::tree::Handle;
use crate::types::{Sequence, count};

/// Leaves copied per hold of the lock: 32 of them are 40 KiB, about 10 µs.
const PAGES_PER_SLICE: usize = if cfg!(test) { 1 } else { 32 };
/// Member pages looked up per hold of the read lock: 256 look-ups of some 50 ns each.
const MEMBER_PAGES_PER_SLICE: usize = 1;
/// Where one staged file ends and the next begins.
const STAGED_FILE_BYTES: u64 = 128 << 20;

/// A checkpoint begun: what it owes the disk.
pub struct Checkpoint {
    manifest: Manifest,
    dictionary_pages: Vec<u32>,
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
            dropped: shard.dropped().map(|(name, incarnation)| (name.clone(), incarnation)).collect(),
        };
        let dictionary_pages = shard.members.begin_checkpoint();
        let trees = shard.trees_mut().map(|(id, tree)| (id, tree.begin_checkpoint())).collect();
        let (gone, handles) = (shard.take_gone(), shard.members.checkpointed());
        Self { manifest, dictionary_pages, trees, gone, handles }
    }

    #[must_use]
    pub fn applied(&self) -> Applied {
        self.manifest.applied
    }

    /// Writes the checkpoint. Runs beside the writer, on another thread.
    ///
    /// # Errors
    /// When the disk refuses, or a board was dropped meanwhile; then nothing has changed, and
    /// [`Checkpoint::abandon`] makes all of it due again.
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
        let options = staging_options();
        let mut staged = Staged::new(store, &options)?;
        between(Moment::Slice)?;
        for page in &self.dictionary_pages {
            let value = {
                let shard = shard.read();
                codec::encode_dictionary(shard.members.page(*page))
            };
            staged.put(&keys::dictionary_page(*page), &value)?;
            between(Moment::Slice)?;
        }
        for (tree, dirty) in &self.trees {
            for pages in dirty.pages.chunks(MEMBER_PAGES_PER_SLICE) {
                let captured = self.capture_members(shard, *tree, pages)?;
                for (page, value) in captured {
                    staged.put_or_delete(&keys::member_page(*tree, page), value.as_deref())?;
                }
                between(Moment::Slice)?;
            }
        }
        for (tree, dirty) in &self.trees {
            for handle in &dirty.extras {
                let value = {
                    let shard = shard.read();
                    let tree = shard.tree(*tree).ok_or_else(dropped_meanwhile)?;
                    tree.extra(*handle).map(codec::encode_extra)
                };
                staged.put_or_delete(&keys::extra(*tree, *handle), value.as_deref())?;
                between(Moment::Slice)?;
            }
        }
        for (tree, _) in &self.trees {
            write_tree_pages(&mut staged, shard, *tree, between)?;
        }
        for kind in [keys::MEMBER_PAGE, keys::EXTRA, keys::TREE_PAGE] {
            for tree in &self.gone {
                staged.delete_tree(kind, *tree)?;
            }
        }
        let manifest = Manifest { seen: shard.read().applied.sequence, ..self.manifest.clone() };
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

    /// Members that came after the checkpoint began are left out: see `state::Members`.
    fn capture_members(
        &self,
        shard: &RwLock<Shard>,
        tree: TreeId,
        pages: &[u32],
    ) -> Result<Vec<CapturedMemberPage>, StorageError> {
        let mut captured = Vec::with_capacity(pages.len());
        for page in pages {
            let mut handles = Vec::with_capacity(256);
            let mut columns: Vec<Vec<u64>> = Vec::new();
            {
                let shard = shard.read();
                let tree = &shard.tree(tree).ok_or_else(dropped_meanwhile)?.tree;
                columns.resize(tree.columns(), Vec::with_capacity(256));
                let first = page * ENTRIES_PER_PAGE;
                let all = || (first..(first + ENTRIES_PER_PAGE).min(self.handles)).map(Handle);
                // Look-ups miss the cache twice each: asking for all of them first overlaps the waits.
                all().for_each(|handle| tree.prefetch_locator(handle));
                all().for_each(|handle| tree.prefetch_entry(handle));
                for handle in all() {
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
        Ok(captured)
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

fn write_tree_pages(
    staged: &mut Staged<'_>,
    shard: &RwLock<Shard>,
    id: TreeId,
    between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    // Files want their keys in order; sorting is done without keeping anyone waiting.
    let mut order = shard.read().tree(id).ok_or_else(dropped_meanwhile)?.tree.pending_order();
    order.sort_unstable();
    shard.write().tree_mut(id).ok_or_else(dropped_meanwhile)?.tree.set_pending_order(order);
    loop {
        let mut copied: Vec<(u32, Vec<u32>, Vec<Vec<u64>>)> = Vec::with_capacity(PAGES_PER_SLICE);
        let more = {
            let mut shard = shard.write();
            let tree = &mut shard.tree_mut(id).ok_or_else(dropped_meanwhile)?.tree;
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
            return Ok(());
        }
    }
}

fn drop_deltas(store: &Store, through: Sequence) -> Result<(), StorageError> {
    let mut batch = WriteBatch::default();
    batch.delete_range_cf(store.log(), keys::delta(Sequence(0)), keys::delta(through.next()));
    // Synced: where every write is, a log that breaks and goes on is known to be damaged.
    store.write(batch, true)
}

fn dropped_meanwhile() -> StorageError {
    let error = std::io::Error::other("a board was dropped while its checkpoint was written");
    StorageError::Io { path: PathBuf::from("checkpoint"), error }
}

/// Sorted files on their way into RocksDB.
struct Staged<'a> {
    store: &'a Store,
    options: &'a rocksdb::Options,
    folder: PathBuf,
    writer: Option<SstFileWriter<'a>>,
    writer_bytes: u64,
    files: Vec<PathBuf>,
    figures: CheckpointFigures,
}

impl<'a> Staged<'a> {
    fn new(store: &'a Store, options: &'a rocksdb::Options) -> Result<Self, StorageError> {
        let folder = store.staging();
        // An attempt that failed may have left files behind; a folder that was never there is as good as empty.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| StorageError::Io { path: folder.clone(), error })?;
        let (writer, files, figures) = (None, Vec::new(), CheckpointFigures::default());
        Ok(Self { store, options, folder, writer, writer_bytes: 0, files, figures })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.put_or_delete(key, Some(value))
    }

    /// Records come in ascending order of their keys.
    fn put_or_delete(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StorageError> {
        let bytes = count(key.len() + value.map_or(0, <[u8]>::len));
        self.figures.pages += 1;
        self.figures.bytes += bytes;
        self.writer_bytes += bytes;
        let writer = self.writer()?;
        match value {
            Some(value) => writer.put(key, value)?,
            None => writer.delete(key)?,
        }
        if self.writer_bytes >= STAGED_FILE_BYTES { self.finish_file() } else { Ok(()) }
    }

    /// Removes all of a tree's records of a kind. No record of it may be staged.
    fn delete_tree(&mut self, kind: u8, tree: TreeId) -> Result<(), StorageError> {
        let prefix = keys::of_tree(kind, tree);
        Ok(self.writer()?.delete_range(prefix.to_vec(), keys::after(&prefix))?)
    }

    fn writer(&mut self) -> Result<&mut SstFileWriter<'a>, StorageError> {
        if self.writer.is_none() {
            let path = self.folder.join(format!("{:06}.sst", self.files.len()));
            let writer = SstFileWriter::create(self.options);
            writer.open(&path)?;
            self.files.push(path);
            self.writer = Some(writer);
        }
        Ok(self.writer.as_mut().expect("it was just opened"))
    }

    fn finish_file(&mut self) -> Result<(), StorageError> {
        self.writer_bytes = 0;
        match self.writer.take() {
            Some(mut writer) => Ok(writer.finish()?),
            None => Ok(()),
        }
    }

    fn ingest(mut self) -> Result<CheckpointFigures, StorageError> {
        self.finish_file()?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        let files = std::mem::take(&mut self.files);
        self.store.db().ingest_external_file_cf_opts(self.store.checkpoint(), &options, files)?;
        // Only the emptied folder is left, and the next checkpoint or start removes it if this does not.
        let _ = std::fs::remove_dir_all(&self.folder);
        Ok(self.figures)
    }
}
