//! Replaces a small file as a whole.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file under another name and gives it its own; the file and its name are synced once this returns.
/// Whatever has one of the names is replaced. A link is, too, and never what it leads to: a process of root
/// would write wherever the directory's owner points.
///
/// # Errors
/// When the disk refuses, or a directory has one of the names.
pub fn replace_file(path: &Path, new: &Path, content: &[u8]) -> std::io::Result<File> {
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        // What a crash left.
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(new, path)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_the_place_of_either_name_are_replaced_and_not_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("others"), "others").expect("it can be written");
        for name in ["file", "file.new"] {
            std::os::unix::fs::symlink(path("others"), path(name)).expect("it can be made");
        }
        for content in ["one", "two"] {
            replace_file(&path("file"), &path("file.new"), content.as_bytes()).expect("the disk takes it");
            assert_eq!(std::fs::read_to_string(path("file")).expect("it is there"), content);
            assert!(!path("file").is_symlink() && !path("file.new").exists());
        }
        assert_eq!(std::fs::read_to_string(path("others")).expect("it is there"), "others");
    }
}
