//! A directory belongs to one process at a time.
//!
//! RocksDB has a lock of its own, but takes it only to write. This lock is taken before any file is read. It
//! needs no file of its own, so it works on file systems that are read-only.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::storage::error::StorageError;
use crate::storage::real_paths::OPEN_FILES;

/// The lock on a directory, held until this is dropped. The system releases it when the process ends, however
/// it ends.
pub struct DirectoryLock {
    held: HeldDirectory,
}

impl DirectoryLock {
    /// An exclusive lock, for a process that may write.
    ///
    /// # Errors
    /// [`StorageError::InUse`], or when the directory cannot be opened.
    pub fn exclusive(path: &Path) -> Result<Self, StorageError> {
        Self::take(path, FlockOperation::NonBlockingLockExclusive)
    }

    /// A shared lock, for a process that only reads: others may read too, and none may write.
    pub fn shared(path: &Path) -> Result<Self, StorageError> {
        Self::take(path, FlockOperation::NonBlockingLockShared)
    }

    fn take(path: &Path, operation: FlockOperation) -> Result<Self, StorageError> {
        let held = HeldDirectory::open(path, path)?;
        match flock(&held.directory, operation) {
            Err(Errno::WOULDBLOCK) => return Err(StorageError::InUse(path.to_owned())),
            // Some file systems do not support this lock. RocksDB's own lock remains; it fails later if the
            // directory is in use.
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "the file system does not support locking the directory");
            }
            Ok(()) => {}
        }
        Ok(Self { held })
    }

    pub fn held(&self) -> &HeldDirectory {
        &self.held
    }
}

/// An open directory. The system gives its inode to no other directory meanwhile, so it can be told whether
/// the path still leads here: someone may move the directory, or delete it, and put another one in its place.
pub struct HeldDirectory {
    path: PathBuf,
    directory: File,
    /// Its device and its inode, which stay while it is open. It is compared after each commit, so the system
    /// is not asked for it again.
    identity: (u64, u64),
}

impl HeldDirectory {
    fn open(by: &Path, path: &Path) -> Result<Self, StorageError> {
        let failed = |error| StorageError::Io { path: path.to_owned(), error };
        // Opening a pipe would wait.
        let directory = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(by);
        let directory = directory.map_err(failed)?;
        let facts = directory.metadata().map_err(failed)?;
        Ok(Self { path: path.to_owned(), directory, identity: (facts.dev(), facts.ino()) })
    }

    /// The same directory, held once more and without a lock.
    pub fn hold_again(&self) -> Result<Self, StorageError> {
        Self::open(&self.anchor(), &self.path)
    }

    /// The path by which the directory was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path that leads to this directory while it is held, wherever it is moved. RocksDB deletes and
    /// creates files by path, at times of its own. By this path it never reaches another directory. Where
    /// there is no such path, it is the one that the directory was opened by.
    pub fn anchor(&self) -> PathBuf {
        let anchor = PathBuf::from(format!("{OPEN_FILES}{}", self.directory.as_raw_fd()));
        if self.is_at(&anchor).unwrap_or(false) { anchor } else { self.path.clone() }
    }

    /// # Errors
    /// [`StorageError::Replaced`] if the path no longer leads here.
    pub fn check(&self) -> Result<(), StorageError> {
        match self.is_at(&self.path) {
            Ok(true) => Ok(()),
            Ok(false) => Err(StorageError::Replaced(self.path.clone())),
            Err(error) => Err(StorageError::Io { path: self.path.clone(), error }),
        }
    }

    fn is_at(&self, path: &Path) -> std::io::Result<bool> {
        let there = match std::fs::metadata(path) {
            Ok(there) => there,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        Ok(self.identity == (there.dev(), there.ino()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_moved_or_replaced_is_noticed_and_its_anchor_follows_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (path, elsewhere) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::create_dir(&path).expect("it can be made");
        let lock = DirectoryLock::exclusive(&path).expect("nobody has it");
        let held = lock.held();
        held.check().expect("it is there");
        std::fs::rename(&path, &elsewhere).expect("it can be moved");
        let refused = held.check().expect_err("nothing is there").to_string();
        assert!(refused.contains("no longer leads to"), "{refused}");
        std::fs::create_dir(&path).expect("it can be made");
        assert!(matches!(held.check(), Err(StorageError::Replaced(_))), "another directory is there");
        std::fs::write(held.anchor().join("x"), "x").expect("it can be written");
        assert!(elsewhere.join("x").exists(), "the anchor follows the directory");
        std::fs::remove_dir(&path).expect("it is empty");
        std::fs::rename(&elsewhere, &path).expect("it can be moved");
        held.hold_again().expect("it can be opened").check().expect("it is back");
    }
}
