//! Puts a copy of one shard in the place of the shard's directory, in a data directory that is in use.
//!
//! A copy is staged in the folder `copies.staged` of the data directory, and checked there. Putting it in
//! place takes two renames, so a crash may come between them. A plan is written first, as the file
//! `shard-NNN.ready` of that folder, and removed when all is done. Each step can be done again:
//!
//! 1. the plan is written
//! 2. the shard's directory is moved to `shard-NNN.before`
//! 3. the staged one takes its place
//! 4. the plan is removed, and then what was there before
//!
//! The directory in the shard's place is that of before as long as a staged one waits. A start completes what
//! a plan says, and removes what has no plan: a copy that was not complete.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::regular_file::is_there;
use crate::storage::{
    DirectoryLock, Progress, StorageError, StorageResources, Store, begin_lineage, known_data,
    make_private_directory, mark_shard, replace_file, shard_directory, shards_in, verify, verify_parked,
};
use crate::types::ShardId;
use crate::writer::lines_of;

/// The folder of the data directory that copies of single shards are staged in.
pub(super) const STAGED: &str = "copies.staged";

/// What the files of a copy must hold, as the node said that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedCopy {
    pub shards: u16,
    pub applied: u64,
    pub stream: String,
}

/// The copies of single shards that a running node is putting in place.
pub struct StagedCopies {
    data_dir: PathBuf,
    /// No other process completes or removes what this one stages.
    _lock: DirectoryLock,
}

impl StagedCopies {
    /// Completes what an earlier process began, and removes what it left half done. Called before any shard
    /// is opened.
    ///
    /// # Errors
    /// When another process uses the folder, or the disk refuses.
    pub fn open(data_dir: &Path) -> Result<Self, StorageError> {
        let folder = data_dir.join(STAGED);
        let shards = shards_in(data_dir)?;
        make_private_directory(&folder)?;
        let lock = DirectoryLock::exclusive(&folder).map_err(|error| match error {
            // The one who uses it uses them all, and an operator knows the data directory.
            StorageError::InUse(_) => StorageError::InUse(data_dir.to_owned()),
            error => error,
        })?;
        let copies = Self { data_dir: data_dir.to_owned(), _lock: lock };
        for shard in (0..shards.max(shards_in(&folder)?)).map(ShardId) {
            if exists(&copies.plan(shard))? {
                // No process has the shard open.
                let _locks = [&copies.staged(shard), &shard_directory(data_dir, shard)]
                    .into_iter()
                    .filter(|path| path.exists())
                    .map(|path| DirectoryLock::exclusive(path))
                    .collect::<Result<Vec<_>, _>>()?;
                tracing::warn!(%shard, "completing the replacement of a shard by a copy of another node's, which was interrupted");
                copies.carry_out(shard, &mut || Ok(()))?;
            }
            copies.discard(shard)?;
        }
        Ok(copies)
    }

    /// As [`StagedCopies::open`], for a process that fetches no copies.
    pub fn complete(data_dir: &Path) -> Result<(), StorageError> {
        if exists(&data_dir.join(STAGED))? {
            Self::open(data_dir)?;
        }
        Ok(())
    }

    /// An empty folder for the files of a copy.
    ///
    /// # Errors
    /// When the disk refuses, or an earlier copy is half in place.
    pub fn begin(&self, shard: ShardId) -> Result<PathBuf, StorageError> {
        let plan = self.plan(shard);
        if exists(&plan)? {
            let words = "an earlier copy is to take the shard's place first; a start completes that";
            return Err(io(&plan, std::io::Error::other(words)));
        }
        self.discard(shard)?;
        let path = self.staged(shard);
        make_private_directory(&path)?;
        Ok(path)
    }

    /// Removes a copy that is not wanted any more. Does nothing while there is a plan: the shard may be in
    /// neither place but these.
    pub fn discard(&self, shard: ShardId) -> Result<(), StorageError> {
        if exists(&self.plan(shard))? {
            return Ok(());
        }
        remove(&self.staged(shard))?;
        remove(&self.before(shard))
    }

    /// Opens a staged copy without writing, and does all that `ranktree verify` does. Returns what is wrong.
    /// A copy with which nothing is wrong becomes one of this data directory's service, in a lineage of its
    /// own.
    pub fn check(
        &self,
        shard: ShardId,
        expected: &ExpectedCopy,
        progress: Progress<'_>,
    ) -> Result<Vec<String>, StorageError> {
        let ExpectedCopy { shards, applied, stream } = expected;
        let findings = findings_in(&self.staged(shard), (shard, *shards), (*applied, stream), progress)?;
        if findings.is_empty() {
            let service = known_data(&self.data_dir)?.and_then(|known| known.service);
            begin_lineage(&self.staged(shard), shard, *shards, service)?;
        }
        Ok(findings)
    }

    /// Puts the staged copy in the place of the shard, whose store is closed. Does nothing if that is done
    /// already.
    ///
    /// # Errors
    /// When the disk refuses. It can be called again.
    pub fn put_in_place(&self, shard: ShardId) -> Result<(), StorageError> {
        self.put_in_steps(shard, &mut || Ok(()))
    }

    fn put_in_steps(
        &self,
        shard: ShardId,
        between: &mut dyn FnMut() -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let plan = self.plan(shard);
        if !exists(&plan)? {
            if !exists(&self.staged(shard))? {
                return Ok(());
            }
            between()?;
            let new = plan.with_extension("new");
            let words = b"a checked copy of this shard takes its place; format 1\n";
            replace_file(&plan, &new, words).map_err(|error| io(&plan, error))?;
        }
        self.carry_out(shard, between)
    }

    fn carry_out(
        &self,
        shard: ShardId,
        between: &mut dyn FnMut() -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let (place, staged) = (shard_directory(&self.data_dir, shard), self.staged(shard));
        if exists(&staged)? {
            if exists(&place)? {
                between()?;
                remove(&self.before(shard))?;
                rename(&place, &self.before(shard))?;
            }
            between()?;
            rename(&staged, &place)?;
        }
        between()?;
        sync(&self.data_dir)?;
        sync(&self.folder())?;
        mark_shard(&self.data_dir, shard)?;
        let plan = self.plan(shard);
        match std::fs::remove_file(&plan) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(&plan, error)),
            _ => {}
        }
        sync(&self.folder())?;
        between()?;
        remove(&self.before(shard))
    }

    fn folder(&self) -> PathBuf {
        self.data_dir.join(STAGED)
    }

    fn staged(&self, shard: ShardId) -> PathBuf {
        shard_directory(&self.folder(), shard)
    }

    fn before(&self, shard: ShardId) -> PathBuf {
        self.staged(shard).with_extension("before")
    }

    fn plan(&self, shard: ShardId) -> PathBuf {
        self.staged(shard).with_extension("ready")
    }
}

impl Drop for StagedCopies {
    fn drop(&mut self) {
        // It has entries only if one is left for the next start.
        let _ = std::fs::remove_dir(self.folder());
    }
}

fn io(path: &Path, error: std::io::Error) -> StorageError {
    StorageError::Io { path: path.to_owned(), error }
}

fn exists(path: &Path) -> Result<bool, StorageError> {
    is_there(path).map_err(|error| io(path, error))
}

fn rename(from: &Path, to: &Path) -> Result<(), StorageError> {
    std::fs::rename(from, to).map_err(|error| io(from, error))
}

/// Removes a folder, if there is one.
pub(super) fn remove(folder: &Path) -> Result<(), StorageError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io(folder, error)),
        _ => Ok(()),
    }
}

pub(super) fn sync(directory: &Path) -> Result<(), StorageError> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(|error| io(directory, error))
}

/// Enough to read ahead with; nothing is read twice.
const CACHE_BYTES: usize = 64 << 20;

/// Opens a copy of a shard without writing, and describes all that is wrong with it.
///
/// # Arguments
/// - `states`: the applied sequence and the stream that it must hold
pub fn findings_in(
    directory: &Path,
    (id, shards): (ShardId, u16),
    states: (u64, &str),
    progress: Progress<'_>,
) -> Result<Vec<String>, StorageError> {
    let resources = StorageResources::new(CACHE_BYTES, 1);
    let store = Store::open_for_reading(directory, id, shards, &resources)?;
    let mut findings = Vec::new();
    match store.meta()? {
        Some(meta) if (meta.applied_sequence, meta.stream.as_str()) == states => {
            findings.append(&mut verify(&store, progress)?.1);
            findings.append(&mut verify_parked(&store, &lines_of, progress)?.1);
        }
        found => findings.push(format!(
            "its manifest states the applied sequence {} of the stream {:?}, but its files hold {:?}",
            states.0,
            states.1,
            found.map(|meta| (meta.applied_sequence, meta.stream))
        )),
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{StorageResources, Store, copy_shard};

    const SHARD: ShardId = ShardId(1);

    /// A directory of the shard with a file that says what it is.
    fn put(path: &Path, what: &str) {
        std::fs::create_dir_all(path).expect("it can be made");
        std::fs::write(path.join("what"), what).expect("it can be written");
    }

    fn which(data_dir: &Path) -> String {
        std::fs::read_to_string(shard_directory(data_dir, SHARD).join("what")).unwrap_or_default()
    }

    fn is_clean(copies: &StagedCopies) -> bool {
        std::fs::read_dir(copies.folder()).expect("it is there").next().is_none()
    }

    #[test]
    fn a_crash_between_any_two_steps_leaves_the_old_shard_or_the_new_one() {
        for (has_old, discards) in [(true, false), (false, false), (true, true), (false, true)] {
            for steps in 0.. {
                let folder = tempfile::tempdir().expect("a temporary folder");
                let data_dir = folder.path();
                let old = if has_old { "old" } else { "" };
                if has_old {
                    put(&shard_directory(data_dir, SHARD), old);
                }
                let copies = StagedCopies::open(data_dir).expect("it is empty");
                put(&copies.begin(SHARD).expect("it can be made"), "new");
                let mut left = steps;
                let put_in_place = copies.put_in_steps(SHARD, &mut || {
                    left -= 1;
                    if left < 0 { Err(StorageError::Closed) } else { Ok(()) }
                });
                let has_plan = copies.plan(SHARD).exists();
                let now = which(data_dir);
                if discards {
                    // As whoever fetched it does after a failure.
                    copies.discard(SHARD).expect("the disk lets it");
                    assert_eq!(copies.begin(SHARD).is_err(), has_plan, "after {steps} steps");
                }
                drop(copies);
                let copies = StagedCopies::open(data_dir).expect("it is completed or removed");
                assert!(is_clean(&copies), "after {steps} steps");
                let expect = if has_plan || now == "new" { "new" } else { old };
                assert_eq!(which(data_dir), expect, "after {steps} steps");
                if put_in_place.is_ok() {
                    assert!(steps > 2 && now == "new", "{steps}");
                    break;
                }
            }
        }
    }

    #[test]
    fn putting_in_place_is_done_again_after_a_failure() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        put(&shard_directory(folder.path(), SHARD), "old");
        let copies = StagedCopies::open(folder.path()).expect("it is empty");
        put(&copies.begin(SHARD).expect("it can be made"), "new");
        let mut fails = 3;
        while copies
            .put_in_steps(SHARD, &mut || {
                fails -= 1;
                if fails == 0 { Err(StorageError::Closed) } else { Ok(()) }
            })
            .is_err()
        {}
        copies.put_in_place(SHARD).expect("it is done already");
        assert_eq!(which(folder.path()), "new");
        assert!(is_clean(&copies));
    }

    #[test]
    fn a_folder_in_use_is_not_touched_by_another_process() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let copies = StagedCopies::open(folder.path()).expect("it is empty");
        put(&copies.begin(SHARD).expect("it can be made"), "new");
        assert!(matches!(StagedCopies::open(folder.path()), Err(StorageError::InUse(_))));
        assert!(copies.staged(SHARD).exists());
    }

    #[test]
    fn a_copy_of_another_sequence_or_stream_or_with_a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let resources = StorageResources::new(1 << 20, 1);
        let store = Store::open(&folder.path().join("giver"), SHARD, 2, &resources).expect("a new shard");
        let copies = StagedCopies::open(&folder.path().join("data")).expect("it is empty");
        let take = || {
            let path = copies.begin(SHARD).expect("it can be made");
            std::fs::remove_dir(&path).expect("it is empty");
            copy_shard(&store, &path).expect("it is copied");
            path
        };
        let expected = ExpectedCopy { shards: 2, applied: 0, stream: String::new() };
        let check = |expected: &ExpectedCopy| copies.check(SHARD, expected, &|_, _, _| {});
        take();
        assert_eq!(check(&expected).expect("it opens"), Vec::<String>::new());
        let found = check(&ExpectedCopy { applied: 7, ..expected.clone() }).expect("it opens");
        assert!(found[0].contains("sequence 7"), "{found:?}");
        let found = check(&ExpectedCopy { stream: "S@1".to_owned(), ..expected.clone() }).expect("it opens");
        assert!(found[0].contains("S@1"), "{found:?}");
        assert!(check(&ExpectedCopy { shards: 3, ..expected.clone() }).is_err());
        let path = take();
        let current = path.join("CURRENT");
        std::fs::write(&current, "MANIFEST-999999\n").expect("it can be written");
        assert!(check(&expected).is_err());
    }
}
