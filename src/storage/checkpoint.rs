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
//! The writer is held for one slice at a time, some 20 µs: see [`copies`](super::copies).

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use rocksdb::WriteBatch;

use crate::state::{Applied, DirtyEntries, Shard, TreeId};
use crate::state_lock::StateLock;
use crate::storage::codec::{self, Manifest, ManifestBoard};
use crate::storage::copies::AllCopied;
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::staging_options;
use crate::storage::staged::Staged;
use crate::storage::store::Store;
use crate::types::Sequence;

/// Slices copied ahead of the files: enough for the thread that copies to sleep through some of them, little memory.
const COPIES_AHEAD: usize = 8;
/// Where one staged file ends and the next begins.
pub const STAGED_FILE_BYTES: u64 = 128 << 20;

/// A checkpoint begun: what it owes the disk.
pub struct Checkpoint {
    manifest: Manifest,
    pub(super) dictionary_pages: Vec<u32>,
    /// Trees with something to write.
    pub(super) trees: Vec<(TreeId, DirtyEntries)>,
    /// Trees whose records go away.
    gone: Vec<TreeId>,
    /// One past the highest handle that existed at the beginning.
    pub(super) handles: u32,
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

    /// Writes the checkpoint. Runs beside the writer, on another thread, which copies, and on one of its own, which writes files
    /// and gives way to everybody else. Only the one that copies takes the lock: a thread that gives way may have to wait for a
    /// core for long, and who waits for its lock would wait as long. So is all that RocksDB holds its own locks for left to that one.
    ///
    /// # Errors
    /// When the disk refuses; then nothing has changed, and [`Checkpoint::abandon`] makes all of it due again.
    pub fn write(&self, store: &Store, state: &StateLock) -> Result<CheckpointFigures, StorageError> {
        let started = Instant::now();
        let options = staging_options();
        let mut staged = Staged::new(store, &options, STAGED_FILE_BYTES)?;
        let (staged, copied) = thread::scope(|scope| {
            let (sender, copies) = sync_channel(COPIES_AHEAD);
            let files = move || {
                yield_to_others();
                copies.into_iter().try_for_each(|copied| staged.take(copied))?;
                Ok::<_, StorageError>(staged)
            };
            let name = format!("checkpoint-files-{}", store.shard());
            let files = Builder::new().name(name).spawn_scoped(scope, files);
            let files = files.map_err(|error| StorageError::Io { path: store.staging(), error })?;
            // Without anybody who takes the copies, the files' error is why.
            let copied =
                self.copy(state, &mut |copied| sender.send(copied).map_err(|_| StorageError::Closed));
            drop(sender);
            let staged = files.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Ok::<_, StorageError>((staged, copied?))
        })?;
        self.finish(store, staged, copied, started, &mut |_| Ok(()))
    }

    /// As [`Checkpoint::write`], on one thread, calling `between` whenever the writer may come in between, no lock being held.
    /// An error of it ends the writing as one of the disk would: tests fail and crash a checkpoint at any moment.
    ///
    /// # Arguments
    /// `file_bytes`: where one staged file ends and the next begins.
    ///
    /// # Errors
    /// As [`Checkpoint::write`], and those of `between`.
    pub fn write_in_slices(
        &self,
        store: &Store,
        state: &StateLock,
        file_bytes: u64,
        between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
    ) -> Result<CheckpointFigures, StorageError> {
        let started = Instant::now();
        let options = staging_options();
        let mut staged = Staged::new(store, &options, file_bytes)?;
        between(Moment::Slice)?;
        let copied = self.copy(state, &mut |copied| {
            staged.take(copied)?;
            between(Moment::Slice)
        })?;
        self.finish(store, staged, copied, started, between)
    }

    /// Everything is copied and staged: puts it in effect.
    fn finish(
        &self,
        store: &Store,
        mut staged: Staged<'_>,
        copied: AllCopied,
        started: Instant,
        between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
    ) -> Result<CheckpointFigures, StorageError> {
        let AllCopied { vanished, seen } = copied;
        self.delete_trees(&mut staged, &vanished)?;
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

fn drop_deltas(store: &Store, through: Sequence) -> Result<(), StorageError> {
    let mut batch = WriteBatch::default();
    batch.delete_range_cf(store.log(), keys::delta(Sequence(0)), keys::delta(through.next()));
    // Synced: where every write is, a log that breaks and goes on is known to be damaged.
    store.write(batch, true)
}

/// Lower than whoever reads and writes; on Linux a thread has a priority of its own.
const NICENESS: i32 = 10;

/// Makes the calling thread wait for a core rather than let readers wait for it. It can never go back, and so takes no lock
/// that others wait for.
fn yield_to_others() {
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS) {
        tracing::debug!(%error, "the thread that writes a checkpoint's files keeps its priority");
    }
}
