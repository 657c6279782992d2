//! The directory of a snapshot, which gets its name once it is complete.
//!
//! Until then it has another name, and a file that says what it is. So it is not taken for a snapshot, and
//! the next attempt may remove it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::cli::Failure;
use crate::cli::as_owner::{FilePlace, become_owner_of_folder_of, refuse_links_of_others};
use crate::cli::outside_data::check_outside_data;
use crate::cli::progress::Progress;
use crate::snapshot::{Manifest, ManifestError};
use crate::storage::{
    DirectoryLock, ServiceId, StorageError, make_private_directory, service_in, shard_directory,
};
use crate::types::{ShardId, count};

/// Says that the directory is not complete.
const UNFINISHED: &str = "UNFINISHED";
const TEXT: &str = "This is not a whole snapshot. ranktree snapshot writes it, or was interrupted.\n";

/// A directory that is being filled. Removed when it is dropped without being completed.
pub struct PartialDirectory {
    /// What it will be called.
    place: PathBuf,
    path: PathBuf,
    _lock: DirectoryLock,
}

impl PartialDirectory {
    /// The service of a shard that was fetched.
    ///
    /// # Errors
    /// When its marker cannot be read.
    pub fn service_of(&self, shard: u16) -> Result<Option<ServiceId>, Failure> {
        Ok(service_in(&shard_directory(&self.path, ShardId(shard)))?)
    }

    /// Run by root below somebody else's folder, this thread becomes that user, and all of it is done by that
    /// user's rights.
    ///
    /// # Errors
    /// When there is something in the place, or the disk refuses.
    pub fn create(place: &Path) -> Result<Self, Failure> {
        let Some(name) = place.file_name() else {
            return Err(format!(
                "{} has no name of its own; give a new directory with --to",
                place.display()
            )
            .into());
        };
        let mut partial = name.to_owned();
        partial.push(".partial");
        refuse_links_of_others(&place.with_file_name(&partial))?;
        check_outside_data(place, "--to")?;
        let FilePlace { path: place, .. } = become_owner_of_folder_of(place)?;
        check_free(&place)?;
        let path = place.with_file_name(partial);
        if let Some(parent) =
            path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir())
        {
            return Err(format!(
                "there is no directory {} to write the snapshot into; make it first",
                parent.display()
            )
            .into());
        }
        if path.try_exists()? {
            let is_ours = path.join(UNFINISHED).try_exists()? || std::fs::read_dir(&path)?.next().is_none();
            if !is_ours {
                return Err(format!(
                    "{} is in the way, and is not what an interrupted snapshot left; move it elsewhere, or give another directory with --to",
                    path.display()
                )
                .into());
            }
            let _free = lock(&path)?;
            std::fs::remove_dir_all(&path)?;
        }
        // A new one: whatever else has taken the name meanwhile is not written into.
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        let lock = lock(&path)?;
        let directory = Self { place, path, _lock: lock };
        std::fs::write(directory.path.join(UNFINISHED), TEXT)?;
        Ok(directory)
    }

    pub fn create_shard(&self, shard: u16) -> Result<(), Failure> {
        Ok(make_private_directory(&shard_directory(&self.path, ShardId(shard)))?)
    }

    pub fn create_file(&self, shard: u16, name: &str) -> Result<File, Failure> {
        let path = shard_directory(&self.path, ShardId(shard)).join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.map_err(|error| format!("{} cannot be written: {error}", path.display()).into())
    }

    /// Writes the manifest, checks everything once more, and gives the directory its name. The files were
    /// synced.
    ///
    /// # Errors
    /// When the disk refuses, or does not return what was written.
    pub fn complete(self, manifest: &Manifest, progress: &Progress) -> Result<(), Failure> {
        let (mut done, total) = (0, manifest.bytes());
        manifest.read_files(&self.path, |_, _, piece| {
            done += count(piece.len());
            progress.note("checking", done, total);
            Ok::<_, ManifestError>(())
        })?;
        for shard in &manifest.shards {
            sync(&shard_directory(&self.path, ShardId(shard.shard)))?;
        }
        manifest.write(&self.path)?;
        std::fs::remove_file(self.path.join(UNFINISHED))?;
        sync(&self.path)?;
        // An empty directory is replaced.
        if let Err(error) = std::fs::rename(&self.path, &self.place) {
            let (path, place) = (self.path.display(), self.place.display());
            return Err(format!("{path} cannot be renamed to {place}: {error}").into());
        }
        let parent = self.place.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync(parent.unwrap_or(Path::new(".")))
    }
}

impl Drop for PartialDirectory {
    fn drop(&mut self) {
        // After it was renamed, there is none of this name.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn check_free(place: &Path) -> Result<(), Failure> {
    let name = place.display();
    match std::fs::read_dir(place) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(format!("{name} is not empty; give a new directory with --to").into()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(format!("{name} is not a directory; give a new one with --to").into())
        }
        Err(error) => Err(format!("{name} cannot be read: {error}").into()),
    }
}

fn lock(path: &Path) -> Result<DirectoryLock, Failure> {
    DirectoryLock::exclusive(path).map_err(|error| match error {
        StorageError::InUse(path) => {
            format!("another ranktree snapshot is writing to {}; wait until it is complete", path.display())
                .into()
        }
        error => error.into(),
    })
}

fn sync(directory: &Path) -> Result<(), Failure> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| format!("{} cannot be synced: {error}", directory.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_interrupted_snapshot_left_is_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (place, partial) = (folder.path().join("copy"), folder.path().join("copy.partial"));
        let refused =
            || PartialDirectory::create(&place).map(|_| ()).expect_err("it is in the way").to_string();
        // An attempt that is under way.
        let directory = PartialDirectory::create(&place).expect("there is nothing");
        assert!(refused().contains("another ranktree snapshot is writing to"), "{}", refused());
        directory.create_shard(0).expect("the disk takes it");
        directory.create_file(0, "CURRENT").expect("the disk takes it");
        // One that was killed drops nothing.
        let killed = std::mem::ManuallyDrop::new(directory);
        assert!(partial.join("shard-000/CURRENT").exists() && !place.exists());
        // The lock of a killed process is released.
        drop(std::mem::ManuallyDrop::into_inner(killed));
        std::fs::create_dir(&partial).expect("it was removed");
        std::fs::write(partial.join("mine"), "").expect("it can be written");
        assert!(refused().contains("copy.partial is in the way"), "{}", refused());
        std::fs::write(partial.join(UNFINISHED), "").expect("it can be written");
        let directory = PartialDirectory::create(&place).expect("it is what a killed one left");
        assert!(!partial.join("mine").exists());
        drop(directory);
        assert!(!partial.exists());
        std::fs::create_dir(&place).expect("it can be made");
        drop(PartialDirectory::create(&place).expect("it is empty"));
        std::fs::write(place.join("mine"), "").expect("it can be written");
        assert!(refused().contains("is not empty; give a new directory with --to"), "{}", refused());
        let file = PartialDirectory::create(&place.join("mine")).map(|_| ()).expect_err("a file").to_string();
        assert!(file.contains("is not a directory"), "{file}");
        let missing = PartialDirectory::create(&folder.path().join("none/copy")).map(|_| ());
        let missing = missing.expect_err("there is no such folder").to_string();
        assert!(missing.contains("there is no directory") && missing.contains("none"), "{missing}");
    }
}
