//! Checkpoints: what changed since the last one, written sorted and in one step, while the writer continues.
//!
//! A checkpoint at sequence S has four parts and a manifest, staged as sorted files that RocksDB then ingests
//! in one step: a crash leaves the old checkpoint or the new one, and at most files in the staging folder,
//! which the next start removes. The deltas up to S are dropped only afterwards.
//!
//! - **tree pages** are exactly as of S: the tree sets a leaf aside when the writer changes it before it was
//!   captured.
//! - **dictionary pages, member pages and pages of extras** are as of S or of the later moment at which they
//!   were copied. Start-up replays every delta after S. Their values are absolute, so the replay corrects
//!   these pages. This works because of three things. A handle keeps its member while the checkpoint is
//!   written, which `state::Members` ensures. A delta names every entry that a batch touched, even one that
//!   has its old value again. And the log reaches at least as far as the latest copy, which the manifest
//!   records.
//! - **a tree that vanishes** while the checkpoint is written belongs to a board that was dropped after S.
//!   The manifest still lists the board, because deltas between S and the drop may name it and because trees
//!   are numbered in the order of definitions; but it lists the board without entries, and all of the tree's
//!   records are deleted. The replay reaches the drop before any reader can see the board, because a log that
//!   ends before the drop is refused.
//!
//! The writer waits for one slice at a time, some 20 µs, and for less of one that is only read: see
//! [`copies`](super::copies). The time to begin a checkpoint does not depend on the number of boards: they
//! join afterwards, one by one, each with its state at S (`state::Joined`).

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder};
use std::time::Instant;

use parking_lot::Mutex;
use rocksdb::WriteBatch;

use crate::state::{Applied, DirtyEntries, Dropped, DroppedName, Joined, RecordNumber, Shard, TreeId};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::codec::{self, Manifest, ManifestBoard};
use crate::storage::copies::AllCopied;
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::staging_options;
use crate::storage::staged::{CheckpointFigures, Staged};
use crate::storage::store::Store;
use crate::tree::PageSet;
use crate::types::Sequence;

/// Slices that may be copied ahead of the file writer: enough that neither thread waits for every slice, with
/// little memory.
const COPIES_AHEAD: usize = 8;
/// Boards asked to join per hold of the lock: some 50 µs.
const BOARDS_PER_SLICE: usize = if cfg!(test) { 1 } else { 128 };
/// After a failed checkpoint: boards that are marked dirty again per hold of the lock, and leaves of each.
/// 256 leaves at most.
const BOARDS_ABANDONED_PER_SLICE: usize = if cfg!(test) { 1 } else { 16 };
const LEAVES_ABANDONED_AT_ONCE: usize = if cfg!(test) { 1 } else { 16 };
/// Where one staged file ends and the next begins.
pub const STAGED_FILE_BYTES: u64 = 128 << 20;

/// A checkpoint that has begun: everything that it must write.
pub struct Checkpoint {
    applied: Applied,
    next_tree: u32,
    pub(super) dictionary_pages: PageSet,
    /// Trees whose records are deleted.
    dropped_trees: Vec<TreeId>,
    /// One past the highest handle that existed at the beginning.
    pub(super) handles: u32,
    /// Locked by the thread that writes the checkpoint or, afterwards, abandons it.
    contents: Mutex<CheckpointContents>,
    /// Memory that `contents` holds.
    contents_bytes: AtomicUsize,
}

/// What joined boards contributed, as of the beginning.
#[derive(Default)]
struct CheckpointContents {
    /// Shared until it is copied: a drop that comes meanwhile copies it on write.
    dropped: Option<Arc<Dropped>>,
    drops: Vec<DroppedName>,
    forgotten: RecordNumber,
    latest: RecordNumber,
    /// Every board, by name except for those that were about to change.
    boards: Vec<Joined>,
}

impl CheckpointContents {
    /// Trees with dirty pages, in key order.
    fn due(&self) -> Vec<(TreeId, &DirtyEntries)> {
        let mut due: Vec<_> =
            self.boards.iter().filter_map(|board| Some((board.tree, board.due.as_deref()?))).collect();
        due.sort_unstable_by_key(|(tree, _)| *tree);
        due
    }
}

/// The phases of writing a checkpoint, for tests that fail or crash it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointPhase {
    /// Some boards have yet to join.
    Joining,
    /// Before the first slice, or between two.
    Slice,
    /// Everything is in staged files, which have no effect yet.
    Staged,
    /// The files are ingested; the deltas that they supersede are not deleted yet.
    Ingested,
}

impl Checkpoint {
    /// Begins a checkpoint of the shard as it is now. O(1) in the number of boards and members.
    pub fn begin(shard: &mut Shard) -> Self {
        shard.begin_joining();
        let dictionary_pages = shard.members.begin_checkpoint();
        let contents =
            CheckpointContents { dropped: Some(shard.dropped_as_of_now()), ..CheckpointContents::default() };
        Self {
            applied: shard.applied,
            next_tree: shard.next_tree().0,
            dictionary_pages,
            dropped_trees: shard.take_dropped_trees(),
            handles: shard.members.checkpoint_handle_end(),
            contents: Mutex::new(contents),
            contents_bytes: AtomicUsize::new(0),
        }
    }

    pub fn applied(&self) -> Applied {
        self.applied
    }

    /// Memory held, in bytes, for the list of boards and the pages to write; the trees' copied leaves are not
    /// included.
    pub fn bytes(&self) -> usize {
        self.dictionary_pages.bytes()
            + self.dropped_trees.capacity() * size_of::<TreeId>()
            + self.contents_bytes.load(Ordering::Relaxed)
    }

    /// Writes the checkpoint while the writer continues. The calling thread copies; a thread of its own with
    /// a low priority writes the files. Only the copying thread takes the shard's lock: a low-priority thread
    /// may wait long for a core, and every thread that waits for its lock would wait as long. For the same
    /// reason, the calling thread makes those calls during which RocksDB holds locks of its own.
    ///
    /// # Errors
    /// When the disk refuses. Nothing has changed then, and [`Checkpoint::abandon`] marks everything dirty
    /// again.
    pub fn write(&self, store: &Store, state: &StateLock) -> Result<CheckpointFigures, StorageError> {
        let started = Instant::now();
        let mut contents = self.contents.lock();
        self.join_boards(&mut contents, state, &mut |_| Ok(()))?;
        let options = staging_options();
        let mut staged = Staged::new(store, &options, STAGED_FILE_BYTES)?;
        let (staged, copied) = thread::scope(|scope| {
            let (sender, copies) = sync_channel(COPIES_AHEAD);
            let files = move || {
                lower_thread_priority();
                copies.into_iter().try_for_each(|copied| staged.take(copied))?;
                Ok::<_, StorageError>(staged)
            };
            let name = format!("checkpoint-files-{}", store.shard());
            let files = Builder::new().name(name).spawn_scoped(scope, files);
            let files = files.map_err(|error| StorageError::Io { path: store.staging(), error })?;
            // If the receiver of the copies is gone, the file writer's error is the cause.
            let copied = self.copy(&contents.due(), state, &mut |copied| {
                state.give_way();
                sender.send(copied).map_err(|_| StorageError::Closed)
            });
            drop(sender);
            let staged = files.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Ok::<_, StorageError>((staged, copied?))
        })?;
        self.finish(store, staged, &mut contents, copied, started, &mut |_| Ok(()))
    }

    /// As [`Checkpoint::write`], on one thread. Calls `between` wherever the writer may act, while no lock is
    /// held. An error of `between` ends the writing like an error of the disk, so that tests can fail or
    /// crash a checkpoint at any moment.
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
        between: &mut dyn FnMut(CheckpointPhase) -> Result<(), StorageError>,
    ) -> Result<CheckpointFigures, StorageError> {
        let started = Instant::now();
        let mut contents = self.contents.lock();
        self.join_boards(&mut contents, state, between)?;
        let options = staging_options();
        let mut staged = Staged::new(store, &options, file_bytes)?;
        between(CheckpointPhase::Slice)?;
        let copied = self.copy(&contents.due(), state, &mut |copied| {
            staged.take(copied)?;
            between(CheckpointPhase::Slice)
        })?;
        self.finish(store, staged, &mut contents, copied, started, between)
    }

    /// Once everything is copied and staged: ingests the files.
    fn finish(
        &self,
        store: &Store,
        mut staged: Staged<'_>,
        contents: &mut CheckpointContents,
        copied: AllCopied,
        started: Instant,
        between: &mut dyn FnMut(CheckpointPhase) -> Result<(), StorageError>,
    ) -> Result<CheckpointFigures, StorageError> {
        let AllCopied { dropped_meanwhile, copied_through } = copied;
        self.delete_trees(&mut staged, &dropped_meanwhile)?;
        let manifest = self.manifest(contents, &dropped_meanwhile, copied_through);
        staged.put(&keys::manifest(), &codec::encode_manifest(&manifest))?;
        // Metadata and rejects up to here are only in the log, so the log is synced before the files take
        // effect. Otherwise a power failure could keep the checkpoint and lose them.
        store.sync()?;
        between(CheckpointPhase::Staged)?;
        let figures = {
            let _not_copied = store.hold_checkpoints();
            let figures = staged.ingest()?;
            between(CheckpointPhase::Ingested)?;
            drop_deltas(store, self.applied.sequence)?;
            figures
        };
        store.sync_marker();
        // Nothing can be abandoned any more. Free the memory here, and not on the writer's thread.
        *contents = CheckpointContents::default();
        self.contents_bytes.store(0, Ordering::Relaxed);
        Ok(CheckpointFigures { took: started.elapsed(), ..figures })
    }

    /// Completes a checkpoint that is on disk: handles that were released before it began can be freed.
    pub fn complete(&self, shard: &mut Shard) {
        shard.members.complete_checkpoint();
    }

    /// Abandons a failed checkpoint: everything that it should have written is dirty again. The lock is held
    /// for a slice at a time; no other checkpoint may begin meanwhile.
    pub fn abandon(&self, state: &StateLock) {
        let pages = self.dictionary_pages.clone();
        let mut shard = state.write(Purpose::CheckpointEnd);
        shard.members.abandon_checkpoint(pages);
        shard.put_back_dropped_trees(self.dropped_trees.iter().copied());
        let early = shard.stop_joining();
        shard.unlock_fair();
        let contents = std::mem::take(&mut *self.contents.lock());
        self.contents_bytes.store(0, Ordering::Relaxed);
        let mut boards =
            contents.boards.into_iter().chain(early).filter_map(|board| Some((board.tree, board.due?)));
        let mut next = boards.next();
        while next.is_some() {
            let mut shard = state.write(Purpose::CheckpointEnd);
            for _ in 0..BOARDS_ABANDONED_PER_SLICE {
                let Some((id, due)) = next.take() else { break };
                let more = shard.with_tree(id, |tree| {
                    let more = tree.tree.abandon_capture(LEAVES_ABANDONED_AT_ONCE);
                    if more {
                        Some(due)
                    } else {
                        tree.put_back(due);
                        None
                    }
                });
                next = match more.flatten() {
                    // A large board takes several slices of its own.
                    Some(due) => {
                        next = Some((id, due));
                        break;
                    }
                    None => boards.next(),
                };
            }
            // Unlock fairly, to waiting readers and not to the next slice.
            shard.unlock_fair();
        }
    }

    /// Joins every board.
    fn join_boards(
        &self,
        contents: &mut CheckpointContents,
        state: &StateLock,
        between: &mut dyn FnMut(CheckpointPhase) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        if let Some(dropped) = contents.dropped.take() {
            contents.drops = dropped.names().collect();
            (contents.forgotten, contents.latest) = (dropped.forgotten(), dropped.latest());
        }
        loop {
            between(CheckpointPhase::Joining)?;
            let mut shard = state.write(Purpose::CheckpointBegin);
            let (joined, more) = shard.join_some(BOARDS_PER_SLICE);
            shard.unlock_fair();
            state.give_way();
            let bytes: usize = joined.iter().map(Joined::bytes).sum();
            self.contents_bytes.fetch_add(bytes, Ordering::Relaxed);
            contents.boards.extend(joined);
            if !more {
                return Ok(());
            }
        }
    }

    /// Stages the deletion of dropped boards' records on disk, and of staged records of boards that were
    /// dropped meanwhile.
    fn delete_trees(
        &self,
        staged: &mut Staged<'_>,
        dropped_meanwhile: &BTreeSet<TreeId>,
    ) -> Result<(), StorageError> {
        if !dropped_meanwhile.is_empty() {
            // A range deletion does not cover records in the same file.
            staged.finish_file()?;
        }
        for kind in [keys::MEMBER_PAGE, keys::TREE_PAGE, keys::EXTRAS_PAGE] {
            for tree in self.dropped_trees.iter().chain(dropped_meanwhile) {
                staged.delete_tree(kind, *tree)?;
            }
        }
        Ok(())
    }

    fn manifest(
        &self,
        contents: &CheckpointContents,
        dropped_meanwhile: &BTreeSet<TreeId>,
        copied_through: Sequence,
    ) -> Manifest {
        let board = |board: &Joined| ManifestBoard {
            name: board.name.clone(),
            incarnation: board.incarnation,
            definition: Arc::clone(&board.definition),
            all: board.tree,
            entries: if dropped_meanwhile.contains(&board.tree) { 0 } else { board.entries },
        };
        let mut boards: Vec<ManifestBoard> = contents.boards.iter().map(board).collect();
        boards.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Manifest {
            applied: self.applied,
            copied_through,
            next_tree: self.next_tree,
            boards,
            dropped: contents.drops.clone(),
            forgotten: contents.forgotten,
            latest: contents.latest,
        }
    }
}

/// Deletes a tree's pages from the disk, before all of them are rewritten.
pub fn forget_tree_pages(store: &Store, tree: TreeId) -> Result<(), StorageError> {
    let prefix = keys::of_tree(keys::TREE_PAGE, tree);
    let mut batch = WriteBatch::default();
    batch.delete_range_cf(store.checkpoint(), prefix.to_vec(), keys::after(&prefix));
    store.write(batch, true)
}

fn drop_deltas(store: &Store, through: Sequence) -> Result<(), StorageError> {
    let mut batch = WriteBatch::default();
    batch.delete_range_cf(store.log(), keys::delta(Sequence(0)), keys::delta(through.next()));
    // Synced, because without a stream every write must be: only then does a log with records behind a break
    // prove damage.
    store.write(batch, true)
}

/// A lower priority than readers and writers have. On Linux each thread has its own.
const NICENESS: i32 = 10;

/// Lowers the calling thread's priority, so that readers get a core first. It cannot be raised again, so the
/// thread must take no lock that others wait for.
fn lower_thread_priority() {
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS) {
        tracing::debug!(%error, "the thread that writes a checkpoint's files keeps its priority");
    }
}
