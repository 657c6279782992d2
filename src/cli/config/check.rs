//! Whether what settings name on the disk can be used, and what files hold that a start reads. Changes
//! nothing there.

use std::path::Path;

use rustix::fs::{Access, access};

use crate::cli::Failure;
use crate::cli::as_owner::{as_owner_of, refuse_data_of_others};
use crate::cli::outside_data::check_apart_from_data;
use crate::config::{NamedPath, ServeConfig, Settings};
use crate::credential_files::{CredentialFiles, CredentialFilesError};
use crate::service::check_data;

/// What was found, one line each.
pub struct Found {
    /// What cannot be used.
    pub problems: Vec<String>,
    /// What can be, and may not be meant.
    pub changes: Vec<String>,
}

/// Looks at everything that the settings name.
pub fn look(settings: &Settings, config: &ServeConfig) -> Found {
    let http = &config.http;
    let (mut problems, mut changes) = (unusable_paths(settings), Vec::new());
    // An unreadable file was already reported for its setting.
    let is_new = |problem: &CredentialFilesError| {
        problems.is_empty() || !matches!(problem, CredentialFilesError::Unreadable { .. })
    };
    let held: Vec<_> = CredentialFiles::problems(http).into_iter().filter(is_new).collect();
    problems.extend(held.iter().map(ToString::to_string));
    // A path that is not a directory was already reported for its setting.
    if config.data_dir.is_dir() {
        match check_data(config) {
            Ok(found) => changes = found,
            Err(error) => problems.push(error.to_string()),
        }
    }
    for check in [refuse_data_of_others, check_apart_from_data] {
        // What is no directory was already reported, too.
        let problem = check(&config.data_dir).err().filter(|_| problems.is_empty());
        problems.extend(problem.map(|problem| problem.to_string()));
    }
    Found { problems, changes }
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
