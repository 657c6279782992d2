//! Puts a snapshot into the data directory of a stopped node.
//!
//! All files are copied into a folder of the data directory first, and checked there: sizes, checksums, that
//! each shard opens at the sequence that the manifest states, and all that `ranktree verify` checks. Until
//! then nothing that was there is touched. Then they are put in place (`swap`).
//!
//! The caller has the rights of the data directory's owner and no others, also where root restores: what is
//! in the directory is its owner's word. The snapshot is read by a thread of its own, which may have more
//! rights (`source`).

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::snapshot::manifest::{Manifest, ManifestError, ManifestShard};
use crate::snapshot::one_shard::{STAGED as COPIES, findings_in, remove, sync};
use crate::snapshot::source::{Piece, Pieces, SnapshotSource};
use crate::snapshot::swap::{BEFORE, NEW, Plan, STAGED, SwapError};
use crate::storage::{
    DirectoryLock, Progress, ServiceId, StorageError, begin_lineage, known_data, make_private_directory,
    service_in, shard_directory, shards_in, unbind,
};
use crate::types::{ShardId, count};

/// What a data directory may hold and still be called empty: what a file system or a restore leaves.
const NOTHING: [&str; 4] = ["lost+found", STAGED, COPIES, NEW];

/// What a restore did.
#[derive(Debug)]
pub struct Restored {
    /// The name of the snapshot, its shards and their sizes.
    pub manifest: Manifest,
    /// The folder with what was there before.
    pub moved_to: Option<PathBuf>,
    /// The other service that some of it is of.
    pub another: Option<ServiceId>,
    /// Whether the files were in place already, up to a step that an earlier restore did not come to.
    pub was_interrupted: bool,
}

/// Why a snapshot is not in place.
#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(transparent)]
    Snapshot(#[from] ManifestError),
    #[error("{} is not empty: it has {found}; give an empty directory with --data-dir, or pass --replace, which moves the shards that are there aside", path.display())]
    NotEmpty { path: PathBuf, found: String },
    #[error("{} holds data of the service {theirs}, and the snapshot is of the service {own}. Nothing was changed. If they are to make room for it, pass --replace-another-service in place of --replace, which moves them aside, too", path.display())]
    AnotherService { path: PathBuf, theirs: ServiceId, own: String },
    #[error("shard {shard} of the snapshot cannot be used: {error}")]
    Unusable { shard: ShardId, error: StorageError },
    #[error("shard {shard} of the snapshot is damaged: {}; nothing was put in place. Take another snapshot, or use another copy", findings.join("; "))]
    Damaged { shard: ShardId, findings: Vec<String> },
    #[error(transparent)]
    Swap(#[from] SwapError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
}

/// Which shards that are there may be moved aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    None,
    /// Those of the snapshot's service.
    OfService,
    /// Those of other services, too.
    All,
}

/// Puts a snapshot into a data directory.
///
/// # Arguments
/// - `replace`: which shards that are there may be moved aside.
/// - `binds`: whether the next start binds the shards to new streams.
///
/// # Errors
/// When the snapshot is not whole, or the data directory is in use or not empty. What was there is untouched
/// then, and nothing is there that was not; unless the error is [`RestoreError::Swap`], after which no start
/// uses the directory until a restore has completed.
pub fn restore(
    from: SnapshotSource,
    data_dir: &Path,
    replace: Replace,
    binds: bool,
    progress: Progress<'_>,
) -> Result<Restored, RestoreError> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let made: Vec<&Path> = data_dir.ancestors().take_while(is_missing).collect();
    let restored = put_in_place(from, data_dir, replace, binds, progress);
    if restored.is_err() {
        // Empty ones alone: what a later restore completes stays.
        let _ = made.into_iter().try_for_each(std::fs::remove_dir);
    }
    restored
}

fn put_in_place(
    from: SnapshotSource,
    data_dir: &Path,
    replace: Replace,
    binds: bool,
    progress: Progress<'_>,
) -> Result<Restored, RestoreError> {
    let SnapshotSource { manifest, sizes, pieces } = from;
    let manifest = match manifest {
        // Nothing is made for a snapshot that is none.
        Err(error) if !data_dir.exists() => return Err(error.into()),
        manifest => manifest,
    };
    make_private_directory(data_dir)?;
    // Two restores do not work on the same directory.
    let _lock = DirectoryLock::exclusive(data_dir)?;
    let completed = match Plan::read(data_dir)? {
        Some(plan) => {
            progress("completing an earlier restore", 0, 0);
            plan.carry_out(data_dir, &mut || Ok(()))?;
            Some(plan)
        }
        None => None,
    };
    let manifest = manifest?;
    if let Some(plan) = completed.filter(|plan| plan.snapshot == manifest.snapshot) {
        let moved_to = plan.moved_to.map(|name| data_dir.join(name));
        return Ok(Restored { manifest, moved_to, another: None, was_interrupted: true });
    }
    sizes?;
    let locks = lock_shards(data_dir)?;
    let occupied = found_in(data_dir)?;
    if let Some(found) = occupied.as_ref().filter(|_| replace == Replace::None) {
        return Err(RestoreError::NotEmpty { path: data_dir.to_owned(), found: found.clone() });
    }
    let another = manifest.service.as_ref().and_then(|own| another_service(data_dir, own));
    if let Some((theirs, own)) = another.zip(manifest.service.clone()).filter(|_| replace != Replace::All) {
        return Err(RestoreError::AnotherService { path: data_dir.to_owned(), theirs, own });
    }
    let staged = data_dir.join(STAGED);
    remove(&staged)?;
    // A start must not put a copy in place that was of the shards of before.
    remove(&data_dir.join(COPIES))?;
    let checked = stage(&manifest, pieces, &staged, progress).and_then(|()| {
        manifest.shards.iter().try_for_each(|shard| check(&manifest, shard, &staged, progress))?;
        begin_lineages(&manifest, &staged)?;
        if binds { unbind_shards(&manifest, &staged) } else { Ok(()) }
    });
    if let Err(error) = checked {
        // What cannot be removed is removed by the next restore.
        let _ = remove(&staged);
        return Err(error);
    }
    let moved_to = occupied.map(|_| free_name(data_dir));
    // A service may have made shards meanwhile, where there were none that could be locked.
    if let Some(found) = found_in(data_dir)?.filter(|_| moved_to.is_none()) {
        remove(&staged)?;
        return Err(RestoreError::NotEmpty { path: data_dir.to_owned(), found });
    }
    let plan = Plan::new(manifest.snapshot.clone(), &manifest.layout(), moved_to.clone());
    progress("putting the shards in place", 0, 0);
    plan.write(data_dir)?;
    plan.carry_out(data_dir, &mut || Ok(()))?;
    drop(locks);
    let moved_to = moved_to.map(|name| data_dir.join(name));
    Ok(Restored { manifest, moved_to, another, was_interrupted: false })
}

/// Another service that a data directory, or a shard in it, is of. What cannot be read says nothing: it is
/// moved aside like the rest.
fn another_service(data_dir: &Path, own: &str) -> Option<ServiceId> {
    let recorded = known_data(data_dir).ok().flatten().and_then(|known| known.service);
    let shards = (0..shards_in(data_dir).unwrap_or_default()).map(ShardId);
    let of_shards = shards.filter_map(|shard| service_in(&shard_directory(data_dir, shard)).ok().flatten());
    recorded.into_iter().chain(of_shards).find(|service| service.to_string() != own)
}

/// What is put in place is not the next state of what was there.
fn begin_lineages(manifest: &Manifest, staged: &Path) -> Result<(), RestoreError> {
    for shard in manifest.shards.iter().map(|shard| ShardId(shard.shard)) {
        let path = shard_directory(staged, shard);
        let found = service_in(&path)?.map(|service| service.to_string());
        if found != manifest.service {
            let said = |service: &Option<String>| service.clone().unwrap_or_else(|| "none".to_owned());
            let (stated, found) = (said(&manifest.service), said(&found));
            let finding = format!("its manifest states the service {stated}, but its files are of {found}");
            return Err(RestoreError::Damaged { shard, findings: vec![finding] });
        }
        begin_lineage(&path, shard, manifest.shard_count, None)?;
    }
    Ok(())
}

/// Has the next start bind the shards to the streams that it finds or makes.
fn unbind_shards(manifest: &Manifest, staged: &Path) -> Result<(), RestoreError> {
    let shards = manifest.shards.iter().map(|shard| ShardId(shard.shard));
    shards
        .into_iter()
        .try_for_each(|shard| Ok(unbind(&shard_directory(staged, shard), shard, manifest.shard_count)?))
}

/// Locks the shards that are there, so that no process uses them.
fn lock_shards(data_dir: &Path) -> Result<Vec<DirectoryLock>, RestoreError> {
    let mut locks = Vec::new();
    for shard in (0..shards_in(data_dir)?).map(ShardId) {
        let path = shard_directory(data_dir, shard);
        if path.exists() {
            locks.push(DirectoryLock::exclusive(&path)?);
        }
    }
    Ok(locks)
}

/// What a data directory holds, if anything.
fn found_in(data_dir: &Path) -> Result<Option<String>, RestoreError> {
    let failed = |error| RestoreError::Io { path: data_dir.to_owned(), error };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(data_dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if !NOTHING.contains(&name.as_str()) && !name.starts_with(BEFORE) {
            names.push(name);
        }
    }
    names.sort();
    names.truncate(4);
    Ok((!names.is_empty()).then(|| names.join(", ")))
}

/// A name that nothing in the data directory has yet.
fn free_name(data_dir: &Path) -> String {
    let now = jiff::Timestamp::now().as_second();
    let time = jiff::Timestamp::from_second(now).unwrap_or_default().to_string().replace(':', "-");
    let mut name = format!("{BEFORE}{time}");
    while data_dir.join(&name).exists() {
        name.push_str("-more");
    }
    name
}

/// Copies all files, checks their checksums, and syncs them.
fn stage(
    manifest: &Manifest,
    pieces: Pieces,
    staged: &Path,
    progress: Progress<'_>,
) -> Result<(), RestoreError> {
    for shard in &manifest.shards {
        make_private_directory(&shard_directory(staged, ShardId(shard.shard)))?;
    }
    let (mut open, mut done): (Option<(PathBuf, File)>, _) = (None, 0);
    let bytes = manifest.bytes();
    for piece in pieces.read(manifest) {
        let Piece { shard, file, bytes: piece } = piece?;
        let path = shard_directory(staged, shard).join(&file.name);
        if open.as_ref().is_none_or(|(current, _)| *current != path) {
            finish(open.take())?;
            let to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let to = to.map_err(|error| RestoreError::Io { path: path.clone(), error })?;
            open = Some((path.clone(), to));
        }
        if let Some((path, to)) = &mut open {
            to.write_all(&piece).map_err(|error| RestoreError::Io { path: path.clone(), error })?;
        }
        done += count(piece.len());
        progress("copying", done, bytes);
    }
    finish(open)?;
    let directories = manifest.shards.iter().map(|shard| shard_directory(staged, ShardId(shard.shard)));
    directories.chain([staged.to_owned()]).try_for_each(|path| Ok(sync(&path)?))
}

fn finish(written: Option<(PathBuf, File)>) -> Result<(), RestoreError> {
    let Some((path, file)) = written else { return Ok(()) };
    file.sync_all().map_err(|error| RestoreError::Io { path, error })
}

/// Opens a staged shard without writing, and checks everything in it.
fn check(
    manifest: &Manifest,
    shard: &ManifestShard,
    staged: &Path,
    progress: Progress<'_>,
) -> Result<(), RestoreError> {
    let id = ShardId(shard.shard);
    let states = (shard.applied_sequence, shard.stream.as_str());
    let findings = findings_in(&shard_directory(staged, id), (id, manifest.shard_count), states, progress)
        .map_err(|error| RestoreError::Unusable { shard: id, error })?;
    if findings.is_empty() { Ok(()) } else { Err(RestoreError::Damaged { shard: id, findings }) }
}
