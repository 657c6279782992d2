//! The file of an export: it gets its name when it is complete, and takes the place of another one only if
//! that was asked for. A pipe or a device is written to as it is.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::Failure;
use crate::cli::as_owner::{FilePlace, as_owner_of_folder_of};
use crate::cli::export::pipe::open_for_a_reader;
use crate::cli::outside_data::check_outside_data;

/// A file that gets its name when it is complete. Dropped before, it leaves nothing.
pub struct Unfinished {
    file: File,
    /// What it is called until then. `None`: it has its name, or is to stay.
    partial: Option<PathBuf>,
    path: PathBuf,
    /// What has its name by then may be replaced.
    replaces: bool,
}

/// Refuses a place that an export must not write to, before anything is read.
///
/// # Errors
/// When it is in a data directory, or has a file with something in it that is not to be replaced.
pub fn check(path: &Path, replaces: bool) -> Result<(), Failure> {
    check_outside_data(path, "--output")?;
    if replaces {
        return Ok(());
    }
    as_owner_of_folder_of(path, |place| {
        if is_no_file(path, &place.path) || !has_content(&place.path) {
            return Ok(());
        }
        Err(format!(
            "{} is there, and is left as it is; give another name with --output, or replace it with --replace",
            path.display()
        )
        .into())
    })
}

/// # Errors
/// When the file cannot be created.
pub fn create(path: &Path, replaces: bool) -> Result<(File, Option<Unfinished>), Failure> {
    check(path, replaces)?;
    as_owner_of_folder_of(path, |place| open(path, place, replaces))
}

/// Opens what `path` names, by the rights of this thread.
fn open(path: &Path, place: &FilePlace, replaces: bool) -> Result<(File, Option<Unfinished>), Failure> {
    if is_no_file(path, &place.path) {
        let opened = open_for_a_reader(place);
        let opened = opened.map_err(|error| format!("cannot write to {}: {error}", path.display()))?;
        return Ok((opened, None));
    }
    // The target of a link is replaced, and not the link. What may not be a link has none to resolve.
    let is_resolved = place.flags != 0;
    let real = if is_resolved { None } else { place.path.canonicalize().ok() };
    let path = real.unwrap_or_else(|| place.path.clone());
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let file =
        create_anew(&partial).map_err(|error| format!("cannot create {}: {error}", partial.display()))?;
    Ok((file.try_clone()?, Some(Unfinished { file, partial: Some(partial), path, replaces })))
}

impl Unfinished {
    /// Gives it its name.
    ///
    /// # Errors
    /// When that cannot be done, or another file has the name by now.
    pub fn complete(mut self) -> Result<(), Failure> {
        // Synced before it is renamed: after a crash the name must not belong to half of the bytes.
        self.file.sync_all()?;
        let Some(partial) = &self.partial else { return Ok(()) };
        let (from, to) = (partial.display(), self.path.display());
        if !self.replaces && has_content(&self.path) {
            let told =
                format!("{to} was made meanwhile, and is left as it is; the export is complete, as {from}");
            self.partial = None;
            return Err(told.into());
        }
        // Both are in one folder. If that is somebody else's, it is held open, and only names in it
        // changes.
        std::fs::rename(partial, &self.path)
            .map_err(|error| format!("cannot rename {from} to {to}: {error}"))?;
        self.partial = None;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(partial) = self.partial.take() {
            let _ = std::fs::remove_file(partial);
        }
    }
}

/// Creates a file in the place of one that an interrupted export left. A link is removed, and not followed.
fn create_anew(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// Whether a file must not replace what has this name: a device, a pipe, a directory.
///
/// # Arguments
/// `reached`: the path by which it is reached.
fn is_no_file(path: &Path, reached: &Path) -> bool {
    // A descriptor that is open already may be a file with more in it than this export.
    ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder))
        || std::fs::metadata(reached).is_ok_and(|found| !found.is_file())
}

/// An empty file, such as mktemp makes, has nothing that could be lost.
fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_made_meanwhile_stays_and_so_does_the_export() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("out");
        let read = |path: &Path| std::fs::read_to_string(path).expect("it is there");
        for (replaces, expect) in [(false, "theirs"), (true, "")] {
            let (_, unfinished) = create(&path, replaces).expect("it can be made");
            std::fs::write(&path, "theirs").expect("it can be written");
            let completed = unfinished.expect("a file").complete();
            assert_eq!(read(&path), expect);
            let partial = folder.path().join("out.partial");
            assert_eq!(partial.exists(), !replaces);
            let told = completed.map_err(|error| error.to_string()).err();
            assert_eq!(
                told.is_some_and(|told| told.ends_with(&format!("as {}", partial.display()))),
                !replaces
            );
            std::fs::remove_file(&path).expect("it is there");
        }
        let (_, unfinished) = create(&path, false).expect("it can be made");
        drop(unfinished);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
    }

    /// Standard output may be a file, with more in it.
    #[test]
    fn what_is_open_already_is_no_file_to_replace() {
        let is_no_file = |path: &Path| is_no_file(path, path);
        assert!(is_no_file(Path::new("/dev/stdout")) && is_no_file(Path::new("/proc/self/fd/1")));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("file");
        assert!(!is_no_file(&file) && is_no_file(folder.path()));
        std::fs::write(&file, "").expect("it can be written");
        assert!(!is_no_file(&file));
    }
}
