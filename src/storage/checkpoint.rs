//! Checkpoints: what changed since the last one, written sorted and in one piece, while the writer goes on.
//!
//! A checkpoint at sequence S has four parts and a manifest, staged as sorted files that RocksDB then ingests
//! in one step: a crash leaves the old checkpoint or the new one, and at most files in the staging folder,
//! which the next start removes. The deltas up to S are dropped only afterwards.
//!
//! - **tree pages** are exactly as of S: the tree sets a leaf aside when the writer changes it before it was
//!   captured.
//! - **dictionary pages, member pages and pages of extras** are as of S or later, whenever they were looked
//!   at. Start-up replays every delta after S, whose values are absolute, and that makes them right. It
//!   relies on handles not changing hands meanwhile, which `state::Members` sees to; on deltas that name
//!   every entry that was touched, even if it came back to what it was; and on the log going as far as
//!   anything was looked at, which the manifest records.
//! - **a tree that vanishes** while the checkpoint is written belongs to a board that was dropped after S.
//!   The manifest still lists the board, because deltas between S and the drop may name it and because trees
//!   are numbered in the order of definitions; but it lists the board without entries, and all of the tree's
//!   records are deleted. The replay meets the drop before anybody reads the board: a log that does not go as
//!   far is refused.
//!
//! The writer is held for one slice at a time, some 20 µs: see [`copies`](super::copies). Beginning takes no
//! longer for more boards: they join one after the other, each as it was at S (`state::Joined`).

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder};
use std::time::Instant;

use parking_lot::Mutex;
use rocksdb::WriteBatch;

use crate::state::{
    Applied, DirtyEntries, Dropped, DroppedName, Joined, PageSet, RecordNumber, Shard, TreeId,
};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::codec::{self, Manifest, ManifestBoard};
use crate::storage::copies::AllCopied;
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::staging_options;
use crate::storage::staged::{CheckpointFigures, Staged};
use crate::storage::store::Store;
use crate::types::Sequence;

/// Slices copied ahead of the files: enough for the thread that copies to sleep through some of them, little
/// memory.
const COPIES_AHEAD: usize = 8;
/// Boards asked to join per hold of the lock: some 50 µs.
const BOARDS_PER_SLICE: usize = if cfg!(test) { 1 } else { 128 };
/// Boards that are given back per hold of the lock once a checkpoint has failed, and leaves of each: 256
/// leaves at most.
const BOARDS_ABANDONED_PER_SLICE: usize = if cfg!(test) { 1 } else { 16 };
const LEAVES_ABANDONED_AT_ONCE: usize = if cfg!(test) { 1 } else { 16 };
/// Where one staged file ends and the next begins.
pub const STAGED_FILE_BYTES: u64 = 128 << 20;

/// A checkpoint begun: what it owes the disk.
pub struct Checkpoint {
    applied: Applied,
    next_tree: u32,
    pub(super) dictionary_pages: PageSet,
    /// Trees whose records go away.
    gone: Vec<TreeId>,
    /// One past the highest handle that existed at the beginning.
    pub(super) handles: u32,
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

    /// Memory held, in bytes, beside what trees set aside: which boards there are, and which pages are to be
    /// written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.dictionary_pages.bytes()
            + self.gone.capacity() * size_of::<TreeId>()
            + self.told_bytes.load(Ordering::Relaxed)
    }

    /// Writes the checkpoint. Runs beside the writer, on another thread, which copies, and on one of its own,
    /// which writes files and gives way to everybody else. Only the one that copies takes the lock: a thread
    /// that gives way may have to wait for a core for long, and who waits for its lock would wait as long. So
    /// is all that RocksDB holds its own locks for left to that one.
    ///
    /// # Errors
    /// When the disk refuses; then nothing has changed, and [`Checkpoint::abandon`] makes all of it due
    /// again.
    pub fn write(&self, store: &Store, state: &StateLock) -> Result<CheckpointFigures, StorageError> {
        let started = Instant::now();
        let mut told = self.told.lock();
        self.let_join(&mut told, state, &mut |_| Ok(()))?;
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
            let copied = self.copy(&told.due(), state, &mut |copied| {
                sender.send(copied).map_err(|_| StorageError::Closed)
            });
            drop(sender);
            let staged = files.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Ok::<_, StorageError>((staged, copied?))
        })?;
        self.finish(store, staged, &mut told, copied, started, &mut |_| Ok(()))
    }

    /// As [`Checkpoint::write`], on one thread, calling `between` whenever the writer may come in between, no
    /// lock being held. An error of it ends the writing as one of the disk would: tests fail and crash a
    /// checkpoint at any moment.
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
        let mut told = self.told.lock();
        self.let_join(&mut told, state, between)?;
        let options = staging_options();
        let mut staged = Staged::new(store, &options, file_bytes)?;
        between(Moment::Slice)?;
        let copied = self.copy(&told.due(), state, &mut |copied| {
            staged.take(copied)?;
            between(Moment::Slice)
        })?;
        self.finish(store, staged, &mut told, copied, started, between)
    }

    /// Everything is copied and staged: puts it in effect.
    fn finish(
        &self,
        store: &Store,
        mut staged: Staged<'_>,
        told: &mut Told,
        copied: AllCopied,
        started: Instant,
        between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
    ) -> Result<CheckpointFigures, StorageError> {
        let AllCopied { vanished, seen } = copied;
        self.delete_trees(&mut staged, told, &vanished)?;
        let manifest = self.manifest(told, &vanished, seen);
        staged.put(&keys::manifest(), &codec::encode_manifest(&manifest))?;
        // What the checkpoint replaces must not outlive it in a power failure by less than it does: metadata
        // and rejects up to here are in the log, which is synced before the files take effect.
        store.sync()?;
        between(Moment::Staged)?;
        let figures = staged.ingest()?;
        between(Moment::Ingested)?;
        drop_deltas(store, self.applied.sequence)?;
        store.sync_marker();
        // There is nothing left to give back: freed here, and not on the writer's thread.
        *told = Told::default();
        self.told_bytes.store(0, Ordering::Relaxed);
        Ok(CheckpointFigures { took: started.elapsed(), ..figures })
    }

    /// The checkpoint is on disk: handles that were given up before it began are free now.
    pub fn complete(&self, shard: &mut Shard) {
        shard.members.complete_checkpoint();
    }

    /// The checkpoint failed: all that it owed the disk is due again. The lock is held for a slice at a time;
    /// nobody else may begin a checkpoint meanwhile.
    pub fn abandon(&self, state: &StateLock) {
        let pages = self.dictionary_pages.clone();
        let mut shard = state.write(Purpose::CheckpointEnd);
        shard.members.abandon_checkpoint(pages);
        shard.put_back_gone(self.gone.iter().copied());
        let early = shard.stop_joining();
        shard.let_go_fairly();
        let told = std::mem::take(&mut *self.told.lock());
        self.told_bytes.store(0, Ordering::Relaxed);
        let mut boards =
            told.boards.into_iter().chain(early).filter_map(|board| Some((board.tree, board.due?)));
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
                    // A large board has a slice of its own.
                    Some(due) => {
                        next = Some((id, due));
                        break;
                    }
                    None => boards.next(),
                };
            }
            // To readers who wait, and not to the next slice.
            shard.let_go_fairly();
        }
    }

    /// Has every board join.
    fn let_join(
        &self,
        told: &mut Told,
        state: &StateLock,
        between: &mut dyn FnMut(Moment) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        if let Some(dropped) = told.dropped.take() {
            told.drops = dropped.names().collect();
            (told.forgotten, told.latest) = (dropped.forgotten(), dropped.latest());
        }
        loop {
            between(Moment::Joining)?;
            let mut shard = state.write(Purpose::CheckpointBegin);
            let (joined, more) = shard.join_some(BOARDS_PER_SLICE);
            shard.let_go_fairly();
            let bytes: usize = joined.iter().map(Joined::bytes).sum();
            self.told_bytes.fetch_add(bytes, Ordering::Relaxed);
            told.boards.extend(joined);
            if !more {
                return Ok(());
            }
        }
    }

    /// Stages the deletion of what dropped boards have on disk, and of what was staged of those that vanished
    /// meanwhile.
    fn delete_trees(
        &self,
        staged: &mut Staged<'_>,
        told: &Told,
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
        for (tree, _) in told.due().into_iter().filter(|(_, dirty)| dirty.single_extras) {
            staged.delete_tree(keys::EXTRA, tree)?;
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

/// Makes the calling thread wait for a core rather than let readers wait for it. It can never go back, and so
/// takes no lock that others wait for.
fn yield_to_others() {
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS) {
        tracing::debug!(%error, "the thread that writes a checkpoint's files keeps its priority");
    }
}
