//! A directory belongs to one process at a time.
//!
//! RocksDB has a lock of its own, but takes it only to write. This lock is taken before any file is read. It
//! needs no file of its own, so it works on file systems that are read-only.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::storage::error::StorageError;

/// The lock on a directory, held until this is dropped. The system releases it when the process ends, however
/// it ends.
pub struct DirectoryLock {
    _directory: File,
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
    ///
    /// # Errors
    /// As [`DirectoryLock::exclusive`].
    pub fn shared(path: &Path) -> Result<Self, StorageError> {
        Self::take(path, FlockOperation::NonBlockingLockShared)
    }

    fn take(path: &Path, operation: FlockOperation) -> Result<Self, StorageError> {
        let directory =
            File::open(path).map_err(|error| StorageError::Io { path: path.to_owned(), error })?;
        match flock(&directory, operation) {
            Err(Errno::WOULDBLOCK) => return Err(StorageError::InUse(path.to_owned())),
            // Some file systems do not support this lock. RocksDB's own lock remains; it fails later if the
            // directory is in use.
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "the file system does not support locking the directory");
            }
            Ok(()) => {}
        }
        Ok(Self { _directory: directory })
    }
}
