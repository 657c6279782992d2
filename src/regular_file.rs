//! Reads small files that an operator names. Only regular files: a pipe, or another file that lets its reader
//! wait, would stop the thread that reads it.
//!
//! Must not know: what is in the files.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// The content of a file.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub fn read_regular(path: &Path) -> std::io::Result<Vec<u8>> {
    // Without `NONBLOCK`, opening a pipe waits until somebody writes into it.
    let opened = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let mut file = File::from(opened);
    let facts = file.metadata()?;
    if facts.is_dir() {
        return Err(Error::from(ErrorKind::IsADirectory));
    }
    if !facts.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        std::fs::write(&file, "content").expect("it can be written");
        assert_eq!(read_regular(&file).expect("it is there"), b"content");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("it can be made");
        let refused = read_regular(&pipe).expect_err("it is a pipe").to_string();
        assert!(refused.contains("not a regular file"), "{refused}");
        assert!(read_regular(folder.path()).is_err());
        let missing = read_regular(&folder.path().join("none")).expect_err("it is not there");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
