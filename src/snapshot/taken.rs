//! The copies of its shards that a running node holds while clients fetch them.
//!
//! Each is a folder in `snapshots` of the data directory, with a folder for each shard. It is removed when
//! the client says so, when nobody has asked for it for a while, and at a start. Only the files that were
//! listed when the copy was made can be read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;

use crate::storage::{
    ShardCopy, StorageError, StoreSlot, copy_shard, make_private_directory, shard_directory,
};
use crate::types::ShardId;

/// Copies that a node holds at a time. Each keeps files from being deleted that compaction has replaced.
pub const AT_ONCE: usize = 2;
/// After so long without a request, a copy is removed: longer than clients try again for.
pub const IDLE: Duration = Duration::from_secs(120);
/// The folder in the data directory.
const FOLDER: &str = "snapshots";
const FOLDER_FOR_NODES: &str = "copies.given";

/// Why there is no copy, or no piece of one.
#[derive(Debug, Error)]
pub enum SnapshotError {
    #[error(
        "{AT_ONCE} snapshots of this node are being fetched already; wait until one of them is complete. One that its client has abandoned is removed {} seconds after its last request",
        IDLE.as_secs()
    )]
    TooMany,
    #[error(
        "there is no such snapshot, shard or file; a snapshot that was not asked for within {} seconds is removed, and all of them when the node restarts: begin a new one",
        IDLE.as_secs()
    )]
    Unknown,
    #[error("shard {shard} cannot be copied: {error}")]
    NotCopied { shard: ShardId, error: StorageError },
    #[error("a file of the copy cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
}

/// A copy of all shards.
#[derive(Debug)]
pub struct TakenSnapshot {
    pub id: String,
    /// When the copying began.
    pub taken_at: String,
    /// By number.
    pub shards: Vec<ShardCopy>,
    folder: PathBuf,
}

/// All copies of a node.
pub struct Snapshots {
    folder: PathBuf,
    idle: Duration,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// Copies that are being made.
    beginning: usize,
    /// Made, with the time of the last request for it.
    made: BTreeMap<String, (Arc<TakenSnapshot>, Instant)>,
    begun: u64,
}

/// A copy that is being made. Its place is given back when this is dropped, also by a panic.
struct Beginning<'a>(&'a Mutex<Held>);

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        self.0.lock().beginning -= 1;
    }
}

impl Snapshots {
    pub fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.join(FOLDER), idle: IDLE, held: Mutex::default() }
    }

    /// Copies of single shards that other nodes fetch. They have a folder and a limit of their own.
    pub fn for_nodes(data_dir: &Path) -> Self {
        Self { folder: data_dir.join(FOLDER_FOR_NODES), ..Self::new(data_dir) }
    }

    /// Whether a copy is still held.
    pub fn holds(&self, id: &str) -> bool {
        self.held.lock().made.contains_key(id)
    }

    /// Removes what an earlier process has left. Called before the first copy is made.
    pub fn clear(&self) {
        match std::fs::remove_dir_all(&self.folder) {
            Ok(()) => {
                tracing::info!(path = %self.folder.display(), "removed the copies of snapshots that were not fetched to their end");
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.warn(&self.folder, &error),
        }
    }

    /// Copies all shards, some at the same time.
    ///
    /// # Errors
    /// When there are too many copies, or one cannot be made.
    pub fn take(&self, stores: &[(ShardId, Arc<StoreSlot>)]) -> Result<Arc<TakenSnapshot>, SnapshotError> {
        self.expire();
        let now = jiff::Timestamp::now();
        let id = {
            let mut held = self.held.lock();
            if held.beginning + held.made.len() >= AT_ONCE {
                return Err(SnapshotError::TooMany);
            }
            held.beginning += 1;
            held.begun += 1;
            // Also different from those of earlier processes, which clients may still ask for.
            format!("{:x}-{}", now.as_microsecond(), held.begun)
        };
        let beginning = Beginning(&self.held);
        let folder = self.folder.join(&id);
        match copy_all(stores, &folder) {
            Ok(shards) => {
                let taken_at = now.to_string();
                let taken = Arc::new(TakenSnapshot { id: id.clone(), taken_at, shards, folder });
                self.held.lock().made.insert(id, (Arc::clone(&taken), Instant::now()));
                Ok(taken)
            }
            Err(error) => {
                drop(beginning);
                self.remove(&folder);
                Err(error)
            }
        }
    }

    /// Reads a piece of a file: `length` bytes, or fewer at its end.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    pub fn read(
        &self,
        id: &str,
        shard: u16,
        file: &str,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, SnapshotError> {
        let taken = {
            let mut held = self.held.lock();
            let (taken, used) = held.made.get_mut(id).ok_or(SnapshotError::Unknown)?;
            *used = Instant::now();
            Arc::clone(taken)
        };
        let mut shards = taken.shards.iter();
        let shard = shards.find(|copy| copy.shard.0 == shard).ok_or(SnapshotError::Unknown)?;
        let (name, bytes) =
            shard.files.iter().find(|(name, _)| name == file).ok_or(SnapshotError::Unknown)?;
        let length = length.min(bytes.saturating_sub(offset));
        let mut piece = vec![0; usize::try_from(length).unwrap_or_default()];
        let from = File::open(shard_directory(&taken.folder, shard.shard).join(name))?;
        from.read_exact_at(&mut piece, offset)?;
        Ok(piece)
    }

    /// Removes a copy.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn release(&self, id: &str) -> Result<(), SnapshotError> {
        let removed = self.held.lock().made.remove(id);
        let (taken, _) = removed.ok_or(SnapshotError::Unknown)?;
        self.remove(&taken.folder);
        Ok(())
    }

    /// Removes copies that nobody has asked for within the time that they are kept.
    pub fn expire(&self) {
        let mut abandoned = Vec::new();
        self.held.lock().made.retain(|_, (taken, used)| {
            let is_kept = used.elapsed() < self.idle;
            if !is_kept {
                abandoned.push(Arc::clone(taken));
            }
            is_kept
        });
        for taken in abandoned {
            tracing::warn!(
                snapshot = taken.id,
                "a snapshot was abandoned by its client, and its copy is removed"
            );
            self.remove(&taken.folder);
        }
    }

    fn remove(&self, folder: &Path) {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => self.warn(folder, &error),
            _ => {}
        }
        let held = self.held.lock();
        if held.beginning == 0 && held.made.is_empty() {
            // It has entries only if one could not be removed.
            let _ = std::fs::remove_dir(&self.folder);
        }
    }

    fn warn(&self, folder: &Path, error: &std::io::Error) {
        tracing::warn!(path = %folder.display(), %error, "a copy for a snapshot could not be removed; it takes disk space until a start removes {}", self.folder.display());
    }
}

fn copy_all(stores: &[(ShardId, Arc<StoreSlot>)], folder: &Path) -> Result<Vec<ShardCopy>, SnapshotError> {
    let (turn, done) = (Mutex::new(stores.iter()), Mutex::new(Vec::new()));
    let copy = |shard: ShardId, slot: &StoreSlot| {
        make_private_directory(folder)?;
        copy_shard(&*slot.get()?, &shard_directory(folder, shard))
    };
    // Most of it is waiting for flushes, which share the threads of RocksDB.
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some((shard, slot)) = turn.lock().next() else { break };
                    let copied = copy(*shard, slot);
                    done.lock().push((*shard, copied));
                }
            });
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(shard, _)| *shard);
    let done = done.into_iter();
    done.map(|(shard, copied)| copied.map_err(|error| SnapshotError::NotCopied { shard, error })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{StorageResources, Store};
    use crate::types::count;

    fn stores(data_dir: &Path) -> Vec<(ShardId, Arc<StoreSlot>)> {
        let open = |shard| {
            let path = shard_directory(data_dir, ShardId(shard));
            let store = Store::open(&path, ShardId(shard), 2, &StorageResources::new(1 << 20, 2));
            let slot = StoreSlot::default();
            slot.put(Arc::new(store.expect("a new shard")));
            (ShardId(shard), Arc::new(slot))
        };
        (0..2).map(open).collect()
    }

    fn is_left(data_dir: &Path) -> bool {
        data_dir.join(FOLDER).exists()
    }

    #[test]
    fn files_are_read_in_pieces_until_the_copy_is_released() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stores = stores(folder.path());
        let snapshots = Snapshots::new(folder.path());
        let taken = snapshots.take(&stores).expect("it is copied");
        assert_eq!(taken.shards.len(), 2);
        for shard in &taken.shards {
            for (name, bytes) in &shard.files {
                let read = |offset, length| snapshots.read(&taken.id, shard.shard.0, name, offset, length);
                let whole = read(0, u64::MAX).expect("it is there");
                assert_eq!(count(whole.len()), *bytes, "{name}");
                let (first, rest) = (read(0, 5).expect("a piece"), read(5, 1 << 20).expect("the rest"));
                assert_eq!([first, rest].concat(), whole, "{name}");
                assert_eq!(read(*bytes, 1).expect("the end"), [0; 0]);
                assert_eq!(read(u64::MAX, 1).expect("behind the end"), [0; 0]);
            }
        }
        for (id, shard, file) in [
            ("none", 0, "CURRENT"),
            (taken.id.as_str(), 2, "CURRENT"),
            (&taken.id, 0, "LOCK"),
            (&taken.id, 0, "../shard-001/CURRENT"),
        ] {
            let refused = snapshots.read(id, shard, file, 0, 1).expect_err(file);
            assert!(matches!(refused, SnapshotError::Unknown), "{refused}");
        }
        snapshots.release(&taken.id).expect("it is held");
        assert!(!is_left(folder.path()));
        assert!(
            snapshots.release(&taken.id).is_err() && snapshots.read(&taken.id, 0, "CURRENT", 0, 1).is_err()
        );
    }

    #[test]
    fn a_third_copy_is_refused_until_one_was_released_or_abandoned() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stores = stores(folder.path());
        let mut snapshots = Snapshots::new(folder.path());
        let [first, second] = [(); 2].map(|()| snapshots.take(&stores).expect("it is copied"));
        assert_ne!(first.id, second.id);
        let refused = snapshots.take(&stores).expect_err("there are two").to_string();
        assert!(refused.starts_with("2 snapshots of this node are being fetched already"), "{refused}");
        snapshots.release(&first.id).expect("it is held");
        let third = snapshots.take(&stores).expect("there is room again");
        // Nobody asks for any: the next one finds them abandoned.
        snapshots.idle = Duration::ZERO;
        let fourth = snapshots.take(&stores).expect("the others are gone");
        for gone in [&second, &third] {
            assert!(snapshots.release(&gone.id).is_err() && !gone.folder.exists());
        }
        assert!(fourth.folder.exists());
        snapshots.expire();
        assert!(!is_left(folder.path()));
    }

    #[test]
    fn a_start_removes_what_a_crash_left_and_a_failed_copy_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stores = stores(folder.path());
        let snapshots = Snapshots::new(folder.path());
        snapshots.take(&stores).expect("it is copied");
        drop(snapshots);
        assert!(is_left(folder.path()));
        let snapshots = Snapshots::new(folder.path());
        snapshots.clear();
        assert!(!is_left(folder.path()));
        stores.last().expect("two").1.take();
        for _ in 0..3 {
            let refused = snapshots.take(&stores).expect_err("a store is closed").to_string();
            assert!(refused.starts_with("shard 1 cannot be copied: "), "{refused}");
            assert!(!is_left(folder.path()));
        }
    }
}
