//! A directory belongs to one process at a time.
//!
//! RocksDB has a lock of its own, which it takes only to write. This one is taken before anything is looked
//! at, and it needs no file, so that it works where nothing may be written.

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
            // Some file systems know no such lock. RocksDB's own is left, and says so later.
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "the file system does not support locking the directory")
            }
            Ok(()) => {}
        }
        Ok(Self { _directory: directory })
    }
}
