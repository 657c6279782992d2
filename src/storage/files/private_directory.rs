//! Makes the directories of shards and of copies.

use std::fs::DirBuilder;
use std::io::Error;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::storage::error::StorageError;

/// Creates a directory, and those above it, which other users must not read. One that is there stays as it
/// is.
///
/// # Errors
/// When it cannot be created, also because a link on its way leads nowhere.
pub fn make_private_directory(path: &Path) -> Result<(), StorageError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| {
        let broken = path.ancestors().find(|part| part.is_symlink() && !part.exists());
        // The system's words are "file exists".
        let error = broken.map_or(error, |link| {
            let told =
                format!("{} is a link that leads nowhere; mount or make what it names", link.display());
            Error::other(told)
        });
        StorageError::NoDirectory { path: path.to_owned(), error }
    })
}
