//! The free space of the disk.

use std::io;
use std::path::Path;

/// The space of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Free for this process. Space that is reserved for root counts only if the process runs as root.
    pub free_bytes: u64,
    pub size_bytes: u64,
}

impl DiskSpace {
    /// The space of the file system that holds a path.
    ///
    /// # Errors
    /// When the path does not exist, or the system returns an error.
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Self { free_bytes: bytes(found.f_bavail), size_bytes: bytes(found.f_blocks) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_a_size_and_no_more_free_than_that() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let space = DiskSpace::of(folder.path()).expect("the system says");
        assert!(0 < space.size_bytes && space.free_bytes <= space.size_bytes, "{space:?}");
        let missing = DiskSpace::of(&folder.path().join("missing")).expect_err("no such path");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
