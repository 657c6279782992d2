//! The files of a copy as they arrive.
//!
//! Knows: names, sizes and pieces, in order. Must not know: where pieces come from.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::storage::is_of_a_database;

/// Pieces that wait for the disk.
const WAITING: usize = 2;

/// What is wrong with a list of files, if it cannot be that of a shard.
pub fn fault_of(files: &[(String, u64)]) -> Option<String> {
    let mut names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() != files.len() || !names.contains(&"CURRENT") || !names.contains(&"RANKTREE") {
        return Some("the files that it lists are not those of a shard".to_owned());
    }
    let foreign = names.into_iter().find(|name| !is_of_a_database(name))?;
    Some(format!("it lists a file {foreign:?}, which no shard has"))
}

/// Writes files on a thread that may wait for the disk.
pub struct Files {
    pieces: mpsc::Sender<(usize, Bytes)>,
    writing: JoinHandle<Result<(), String>>,
}

impl Files {
    /// Begins to write files into an empty directory.
    pub fn create(directory: PathBuf, names: Vec<String>) -> Self {
        let (pieces, received) = mpsc::channel(WAITING);
        let writing = tokio::task::spawn_blocking(move || write_all(&directory, &names, received));
        Self { pieces, writing }
    }

    /// Writes the next piece of a file. Files come one after the other, in the order of their names.
    ///
    /// # Errors
    /// When the disk refused an earlier one.
    pub async fn write(&mut self, file: usize, piece: Bytes) -> Result<(), String> {
        if self.pieces.send((file, piece)).await.is_ok() {
            return Ok(());
        }
        match (&mut self.writing).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) | Err(_) => Err("the thread that writes files has ended".to_owned()),
        }
    }

    /// Syncs all files and the directory.
    pub async fn finish(self) -> Result<(), String> {
        drop(self.pieces);
        self.writing.await.map_err(|error| error.to_string())?
    }
}

fn write_all(
    directory: &Path,
    names: &[String],
    mut pieces: mpsc::Receiver<(usize, Bytes)>,
) -> Result<(), String> {
    let create = |name: &String| {
        let path = directory.join(name);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.map(|file| (path.clone(), file)).map_err(|error| format!("{}: {error}", path.display()))
    };
    let finish = |(path, file): (PathBuf, File)| {
        file.sync_all().map_err(|error| format!("{}: {error}", path.display()))
    };
    let (mut names, mut at) = (names.iter().enumerate(), None::<(usize, (PathBuf, File))>);
    // Files that are empty have no pieces.
    let mut advance_to = |at: &mut Option<(usize, (PathBuf, File))>, file: Option<usize>| {
        while file.is_none() || at.as_ref().is_none_or(|(current, _)| Some(*current) != file) {
            if let Some((_, done)) = at.take() {
                finish(done)?;
            }
            let Some((next, name)) = names.next() else {
                return if file.is_none() { Ok(()) } else { Err("a piece is of no file".to_owned()) };
            };
            *at = Some((next, create(name)?));
        }
        Ok(())
    };
    while let Some((file, piece)) = pieces.blocking_recv() {
        advance_to(&mut at, Some(file))?;
        if let Some((_, (path, file))) = &mut at {
            file.write_all(&piece).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    advance_to(&mut at, None)?;
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| format!("{}: {error}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_not_a_shards_is_refused() {
        let fault =
            |names: &[&str]| fault_of(&names.iter().map(|name| ((*name).to_owned(), 1)).collect::<Vec<_>>());
        assert_eq!(fault(&["CURRENT", "RANKTREE", "000008.sst", "000009.log", "MANIFEST-000005"]), None);
        for names in [
            &["CURRENT"][..],
            &[],
            &["CURRENT", "RANKTREE", "CURRENT"],
            &["CURRENT", "RANKTREE", "../x.sst"],
            &["CURRENT", "RANKTREE", "a/000008.sst"],
            &["CURRENT", "RANKTREE", ""],
        ] {
            assert!(fault(names).is_some(), "{names:?}");
        }
    }

    #[tokio::test]
    async fn files_are_written_piece_by_piece_also_empty_ones() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let mut files = Files::create(folder.path().to_owned(), names);
        for (file, piece) in [(1, "one "), (1, "two"), (2, "three")] {
            files.write(file, Bytes::from_static(piece.as_bytes())).await.expect("the disk takes it");
        }
        files.finish().await.expect("the disk takes it");
        let content = ["a", "b", "c", "d"]
            .map(|name| std::fs::read_to_string(folder.path().join(name)).expect("it was made"));
        assert_eq!(content, ["", "one two", "three", ""]);
    }

    #[tokio::test]
    async fn a_disk_that_refuses_is_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut files = Files::create(folder.path().join("none"), vec!["a".to_owned()]);
        let mut refused = None;
        while refused.is_none() {
            refused = files.write(0, Bytes::from_static(b"x")).await.err();
        }
        assert!(refused.expect("the folder is not there").contains("none"));
    }
}
