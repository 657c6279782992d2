//! Whether what settings name on the disk can be used, and what files hold that a start reads. Changes
//! nothing there.

use std::path::Path;

use rustix::fs::{Access, access};

use crate::cli::Failure;
use crate::cli::as_owner::as_owner_of;
use crate::config::{NamedPath, ServeConfig, Settings};
use crate::credential_files::{CredentialFiles, CredentialFilesError};
use crate::service::ServiceError;
use crate::storage::{
    DataMarker, FilledFrom, Fit, StorageError, check_fit_on_disk, check_no_snapshot, filled_from, has_lost,
    known_data, service_of_shards, shard_directory, shards_in,
};
use crate::types::{ShardId, ShardSet};

/// What cannot be used, one line each.
pub fn problems(settings: &Settings, config: &ServeConfig) -> Vec<String> {
    let http = &config.http;
    let mut problems = unusable_paths(settings);
    // An unreadable file was already reported for its setting.
    let is_new = |problem: &CredentialFilesError| {
        problems.is_empty() || !matches!(problem, CredentialFilesError::Unreadable { .. })
    };
    let held: Vec<_> = CredentialFiles::problems(http).into_iter().filter(is_new).collect();
    problems.extend(held.iter().map(ToString::to_string));
    // A path that is not a directory was already reported for its setting.
    if config.data_dir.is_dir() {
        problems.extend(match data(config) {
            Ok(problem) => problem,
            Err(error) => Some(format!("data_dir = {}: {error}", config.data_dir.display())),
        });
    }
    problems
}

/// What the data directory holds that these settings do not fit. Asks its markers, which a service that
/// runs does not lock, and where they do not say enough the data, if no service has them open.
fn data(config: &ServeConfig) -> Result<Option<String>, StorageError> {
    let folder = config.data_dir.display();
    check_no_snapshot(&config.data_dir)?;
    let recorded = known_data(&config.data_dir)?;
    let known = recorded.as_ref().map(|recorded| recorded.layout.clone());
    let found = known.as_ref().map_or(shards_in(&config.data_dir)?, |known| known.shards);
    if found == 0 {
        return Ok(None);
    }
    // With --own, the number may be left to the directory and the streams.
    let wanted = config.shards.or(config.own.is_none().then_some(1)).unwrap_or(found);
    if let Some(beyond) = config.own.as_ref().and_then(ShardSet::highest).filter(|own| own.0 >= found) {
        return Ok(Some(format!(
            "own: {folder} is one of {found} shards, numbered from 0, so there is no shard {beyond}; name \
             shards that there are, or another directory"
        )));
    }
    if found != wanted {
        return Ok(Some(format!(
            "shards = {wanted}: {folder} has {found} shard{}, and the number of shards of a data directory \
             cannot change; set shards = {found}, or name another directory",
            if found == 1 { "" } else { "s" }
        )));
    }
    // With NATS, other nodes that own the shard may give copies of it.
    let own = known.filter(|_| config.nats.is_none()).map(|known| known.own);
    for shard in own.iter().flat_map(ShardSet::iter) {
        if has_lost(&config.data_dir, shard)? {
            let lost = shard_directory(&config.data_dir, shard);
            return Ok(Some(ServiceError::MissingShard(lost).to_string()));
        }
    }
    if recorded.as_ref().is_none_or(|recorded| recorded.service.is_none()) {
        let all = recorded.as_ref().map_or_else(|| ShardSet::first(found), |known| known.layout.own.clone());
        let fit = if config.nats.is_some() { Fit::Streamed } else { Fit::Whole };
        if let Err(error @ StorageError::DoesNotFit { .. }) = service_of_shards(&config.data_dir, &all, fit) {
            return Ok(Some(error.to_string()));
        }
    }
    if let Some(recorded) = &recorded {
        for shard in recorded.layout.own.iter() {
            if let Some(misfit) = misfit(config, recorded, shard)? {
                return Ok(Some(format!("shard {shard}: {misfit}")));
            }
        }
    }
    let mut filled = (0..found).map(ShardId).map(|shard| filled_from(&config.data_dir, shard));
    let with_nats = config.nats.is_some();
    let other = if with_nats { FilledFrom::EmbeddedQueue } else { FilledFrom::Stream };
    let is_other = filled.try_fold(false, |is, from| Ok::<_, StorageError>(is || from? == other))?;
    Ok(is_other.then(|| {
        if with_nats {
            format!(
                "nats: {folder} was filled without NATS, so no stream can continue it; name a new \
                 directory, and copy the boards with ranktree export --data-dir and ranktree import"
            )
        } else {
            format!(
                "nats is not set: {folder} was filled from NATS, and writes without NATS would be in no \
                 stream, so that no stream could continue it afterwards; set nats"
            )
        }
    }))
}

/// Why a start would refuse what lies in a shard's place.
fn misfit(
    config: &ServeConfig,
    recorded: &DataMarker,
    shard: ShardId,
) -> Result<Option<String>, StorageError> {
    let fit = if config.nats.is_some() { Fit::Streamed } else { Fit::Whole };
    let is_lost = has_lost(&config.data_dir, shard)?;
    if is_lost || config.adopt.contains(&shard.0) {
        return Ok(None);
    }
    match check_fit_on_disk(&config.data_dir, shard, Some(recorded), fit) {
        Err(error @ StorageError::DoesNotFit { .. }) => Ok(Some(error.to_string())),
        // A service that runs has taken what is there. What else keeps the data from being read, a start
        // tells.
        Ok(()) | Err(_) => Ok(None),
    }
}

fn unusable_paths(settings: &Settings) -> Vec<String> {
    let mut problems = Vec::new();
    for setting in &settings.all {
        let Some(kind) = setting.path else { continue };
        for value in &setting.values {
            let path = Path::new(value);
            let problem = match kind {
                NamedPath::File | NamedPath::SecretFile | NamedPath::TokensFile => file(path),
                NamedPath::Directory => directory(path),
            };
            problems.extend(problem.map(|problem| format!("{} = {value}: {problem}", setting.key)));
        }
    }
    problems
}

fn file(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Some("it is a directory; a file is expected".to_owned()),
        Ok(_) => access(path, Access::READ_OK).err().map(|error| format!("it cannot be read: {error}")),
        Err(error) => Some(format!("it cannot be read: {error}")),
    }
}

/// A directory that is there must be writable; else the nearest one above it that is there.
fn directory(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => Some("it is a file; a directory is expected".to_owned()),
        Ok(_) => access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| Failure::from(std::io::Error::from(error)))
            .and_then(|()| as_owner_of(path, create_nothing))
            .err()
            .map(|error| format!("it cannot be written to: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            directory(above).map(|problem| format!("it cannot be created in {}: {problem}", above.display()))
        }
        Err(error) => Some(format!("its metadata cannot be read: {error}")),
    }
}

/// Whether files can be made in a directory, of which permissions say only half: for root, and on file
/// systems that are none of a disk. An empty file is made, and removed at once.
fn create_nothing(directory: &Path) -> Result<(), Failure> {
    let name = directory.join(format!(".ranktree-check-{}", std::process::id()));
    std::fs::File::create_new(&name)?;
    Ok(std::fs::remove_file(&name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_or_can_be_made_is_no_problem() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = folder.path().join("file");
        std::fs::write(&here, "").expect("it can be written");
        assert_eq!(directory(folder.path()), None);
        assert_eq!(directory(&folder.path().join("a/b/c")), None);
        assert!(!folder.path().join("a").exists(), "nothing is created");
        assert_eq!(file(&here), None);
        let told = directory(&here.join("below")).expect("a file has nothing below it");
        assert!(told.contains("it is a file") || told.contains("its metadata cannot be read"), "{told}");
        assert_eq!(file(folder.path()).as_deref(), Some("it is a directory; a file is expected"));
        assert!(file(&folder.path().join("none")).is_some());
        // Permissions would let root write here.
        let told = directory(Path::new("/proc/ranktree")).expect("nothing can be made there");
        assert!(told.starts_with("it cannot be created in /proc: it cannot be written to: "), "{told}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1, "nothing is left");
    }
}
