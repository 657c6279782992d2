//! Warns of files with secrets and tokens that others than their owner can read or change.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::config::{NamedPath, Settings};

/// Everybody may read. The group may: so a file is given to a service on purpose.
const READABLE: u32 = 0o004;
/// The group or everybody may write.
const WRITABLE: u32 = 0o022;

/// Warns of each such file that the settings name.
pub fn warn(settings: &Settings) {
    for setting in &settings.all {
        let what = match setting.path {
            Some(NamedPath::SecretFile) => "holds a secret",
            Some(NamedPath::TokensFile) => "lists the bearer tokens and their scopes",
            Some(NamedPath::File | NamedPath::Directory) | None => continue,
        };
        for path in &setting.values {
            if let Some(problem) = problem(Path::new(path)) {
                tracing::warn!("{} = {path} {what}, and {problem}; chmod 600 {path}", setting.key);
            }
        }
    }
}

fn problem(path: &Path) -> Option<String> {
    // A missing file is reported where it is read. A device or a pipe holds nothing.
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mode = found.mode() & 0o777;
    let what = match (mode & READABLE != 0, mode & WRITABLE != 0) {
        (false, false) => return None,
        (true, false) => "every user of this machine can read it",
        (_, true) => "users other than its owner can change it",
    };
    Some(format!("{what} (its mode is {mode:03o})"))
}
