//! The errors of a shard's directory.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::storage::real_paths::with_real_paths;

/// How RocksDB passes on that a disk is full, and what is to be done about it.
const NO_SPACE: &str = "No space left on device";
const DISK_FULL: &str = "; the disk is full: free space on it. A running service then goes on by itself";

/// What went wrong with a shard's directory. Where it matters, a variant says what the caller does.
#[derive(Debug, Error)]
pub enum StorageError {
    /// Another process holds the directory: end it, or use another directory.
    #[error("{} is in use by another process, possibly the service: stop that process first; a running service is asked with --url", .0.display())]
    InUse(PathBuf),
    /// Nothing was changed; the ranktree that wrote it can open it.
    #[error(
        "{} was written by another version of ranktree: it has format {found}, and this one reads format {known}; start the version that wrote it",
        path.display()
    )]
    OtherFormat { path: PathBuf, found: u32, known: u32 },
    /// Nothing was changed.
    #[error("{} holds shard {found_shard} of {found_shards}, but was opened as shard {shard} of {shards}; {}", path.display(), to_another_layout((*found_shard, *found_shards), (*shard, *shards)))]
    OtherLayout { path: PathBuf, found_shard: u16, found_shards: u16, shard: u16, shards: u16 },
    /// Nothing was changed.
    #[error("{} holds {found} shard{}, and the settings say {wanted}; the number of shards of a data directory cannot change: {step}", path.display(), if *found == 1 { "" } else { "s" })]
    OtherShards { path: PathBuf, found: u16, wanted: u16, step: Box<str> },
    /// The directory cannot be trusted. Nothing was changed.
    #[error(
        "{} is damaged: {what}; {}",
        path.display(), to_undamaged(path)
    )]
    Damaged { path: PathBuf, what: String },
    /// What lies in the shard's place is not what the data directory had there. Nothing was changed.
    #[error("{} does not fit: {what}. Nothing was changed. {step}", path.display())]
    DoesNotFit { path: PathBuf, what: Box<str>, step: Box<str> },
    /// There is no shard, or one whose creation was never completed.
    #[error("{} holds no shard; give the directory of the service's data with --data-dir", .0.display())]
    Empty(PathBuf),
    /// A restore was interrupted while it put shards in place. Nothing was changed.
    #[error("a restore into {} was interrupted while it put shards in place, or is under way; run the same ranktree restore again, which completes it", .0.display())]
    HalfRestored(PathBuf),
    /// The service was told to end.
    #[error("loading was stopped before it was complete")]
    Stopped,
    /// The path leads elsewhere, or nowhere. Nothing is written until it leads to the directory again.
    #[error("{} no longer leads to the directory with this shard's data: it was moved, replaced or deleted while the service ran; nothing more is written; stop the service, put the directory back and start it again", .0.display())]
    Replaced(PathBuf),
    /// The disk or RocksDB refused. After a failed write the store must be closed and opened again.
    #[error("RocksDB: {0}")]
    RocksDb(String),
    #[error("{} is not a directory; give the directory of the service's data with --data-dir", .0.display())]
    NotADirectory(PathBuf),
    #[error(
        "{} is the directory of a single shard; give the one above it, which holds all shards of the service, \
         with --data-dir",
        .0.display()
    )]
    OfOneShard(PathBuf),
    #[error(
        "{} is a snapshot, which a start would change, so that it could not be restored any more; make a data \
         directory of it with ranktree restore --from {} --data-dir NEW, and start with that",
        .0.display(), .0.display()
    )]
    OfASnapshot(PathBuf),
    #[error("the directory {} cannot be created: {error}; give a writable directory with --data-dir", path.display())]
    NoDirectory { path: PathBuf, error: std::io::Error },
    #[error("{}: {error}{}", path.display(), if_denied(path, error))]
    Io { path: PathBuf, error: std::io::Error },
    /// Between a failed commit and the reopening.
    #[error("the shard's storage is closed after a failure and will be reopened")]
    Closed,
}

/// What to do about the data of a shard that lie in another one's place, or among other shards.
fn to_another_layout(found: (u16, u16), wanted: (u16, u16)) -> String {
    let ((found_shard, found_shards), (_, wanted_shards)) = (found, wanted);
    if found_shards == wanted_shards {
        return format!(
            "shards lie in each other's places: put the directory of shard {found_shard} back under its own \
             name, and this shard's own in this place"
        );
    }
    format!("start with --shards {found_shards}")
}

/// What to do about a damaged shard.
fn to_undamaged(path: &Path) -> String {
    format!(
        "without NATS, restore a snapshot with ranktree restore --from SNAPSHOT --data-dir {} --replace; with \
         --nats, move {} away and start: the shard gets a copy from another node that owns it",
        path.parent().unwrap_or(path).display(),
        path.display()
    )
}

impl From<rocksdb::Error> for StorageError {
    /// Paths are looked up at once: the number of an open file means nothing, or another file, once the
    /// store is closed.
    fn from(error: rocksdb::Error) -> Self {
        let said = with_real_paths(&error);
        let advice = advice(&said);
        Self::RocksDb(said + advice)
    }
}

/// What to do about an error of RocksDB.
fn advice(said: &str) -> &'static str {
    if said.contains(NO_SPACE) { DISK_FULL } else { "" }
}

impl StorageError {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass errors with `map_err`, which passes them by value"
    )]
    pub(super) fn damaged(path: &Path, what: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), what: with_real_paths(&what.to_string()) }
    }
}

/// Whose a file is that this process may not use: most likely another user made it, such as root in a
/// restore.
fn if_denied(path: &Path, error: &std::io::Error) -> String {
    use std::os::unix::fs::MetadataExt as _;

    if error.kind() != std::io::ErrorKind::PermissionDenied {
        return String::new();
    }
    let user = rustix::process::geteuid().as_raw();
    // What cannot be reached at all is below something that is not this user's.
    let found = path.ancestors().find_map(|path| Some((path, std::fs::symlink_metadata(path).ok()?)));
    found.map_or_else(String::new, |(found, metadata)| {
        format!(
            "; {} belongs to the user {}, and this process runs as the user {user}: give the data directory \
             and everything in it to the service's user (chown -R), or run this as that user",
            found.display(),
            metadata.uid()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text is RocksDB's own, with the operating system's words at its end.
    #[test]
    fn a_full_disk_is_told_with_what_to_do() {
        let words = std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()).to_string();
        let words = words.split(" (").next().expect("it has words").to_owned();
        let full = format!("IO error: {words}: While appending to file: shard-000/000012.log: {words}");
        assert_eq!(
            advice(&full),
            "; the disk is full: free space on it. A running service then goes on by itself"
        );
        assert_eq!(advice("IO error: While appending to file: shard-000/000012.log: File too large"), "");
    }

    #[test]
    fn a_file_that_may_not_be_used_is_told_with_its_owner() {
        use std::os::unix::fs::MetadataExt as _;

        let folder = tempfile::tempdir().expect("a temporary folder");
        let owner = std::fs::metadata(folder.path()).expect("it is there").uid();
        let told = |kind: std::io::ErrorKind| {
            let path = folder.path().join("shard-000").join("LOCK");
            StorageError::Io { path, error: kind.into() }.to_string()
        };
        let denied = told(std::io::ErrorKind::PermissionDenied);
        let expect = format!("{} belongs to the user {owner}", folder.path().display());
        assert!(denied.contains(&expect) && denied.contains("chown -R"), "{denied}");
        assert!(!told(std::io::ErrorKind::StorageFull).contains("belongs to"));
    }
}
