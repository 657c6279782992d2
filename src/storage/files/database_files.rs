//! Whether a directory holds a database, or remains of one.

use std::path::Path;

use crate::storage::error::StorageError;
use crate::storage::files::marker::MARKER;

/// Whether the directory has any file that only a database leaves. Lock files and log texts do not count, nor
/// do files of other programs, such as `lost+found`.
///
/// # Errors
/// When the directory cannot be read.
pub fn holds_a_database(path: &Path) -> Result<bool, StorageError> {
    let failed = |error| StorageError::Io { path: path.to_owned(), error };
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        if name.to_str().is_some_and(is_of_a_database) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether only a database leaves a file of this name.
pub fn is_of_a_database(name: &str) -> bool {
    let numbered = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    matches!(name, "CURRENT" | "IDENTITY" | MARKER)
        || ["MANIFEST-", "OPTIONS-"].iter().any(|start| name.strip_prefix(start).is_some_and(numbered))
        || [".log", ".sst"].iter().any(|end| name.strip_suffix(end).is_some_and(numbered))
}
