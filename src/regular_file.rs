//! Opens files for reading, and only regular ones: a pipe, or another file that lets its reader wait, would
//! stop the thread that reads it.
//!
//! Files that an operator names may be links. Files in a directory that may be somebody else's may not: its
//! owner could have root read, and copy, what nobody else may read.
//!
//! Must not know: what is in the files.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, open, openat};
use rustix::io::Errno;

/// The content of a file.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub fn read_regular(path: &Path) -> std::io::Result<Vec<u8>> {
    read_all(open_at(CWD, path, OFlags::empty())?)
}

/// The content of a file that is no link.
///
/// # Errors
/// As [`read_regular`], and when it is a link.
pub fn read_no_link(path: &Path) -> std::io::Result<Vec<u8>> {
    read_all(open_at(CWD, path, OFlags::NOFOLLOW)?)
}

/// Opens a file of a directory. Neither may be a link, also not by the time that it is opened.
///
/// # Errors
/// When one of them is, the file is no regular file, or it cannot be read.
pub fn open_in(directory: &Path, name: &str) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(directory, flags, Mode::empty())?;
    open_at(&directory, Path::new(name), OFlags::NOFOLLOW)
}

fn open_at(directory: impl AsFd, path: &Path, flags: OFlags) -> std::io::Result<File> {
    // Without `NONBLOCK`, opening a pipe waits until somebody writes into it.
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match openat(directory, path, flags, Mode::empty()) {
        // The system's words are "too many levels of symbolic links".
        Err(Errno::LOOP) if flags.contains(OFlags::NOFOLLOW) => {
            return Err(Error::other("it is a link; put the file itself there"));
        }
        opened => opened?,
    };
    let file = File::from(opened);
    let facts = file.metadata()?;
    if facts.is_dir() {
        return Err(Error::from(ErrorKind::IsADirectory));
    }
    if !facts.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    Ok(file)
}

fn read_all(mut file: File) -> std::io::Result<Vec<u8>> {
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

    #[test]
    fn links_in_a_directory_and_links_to_one_are_not_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("real")).expect("it can be made");
        std::fs::write(path("real/file"), "content").expect("it can be written");
        std::os::unix::fs::symlink(path("real/file"), path("real/link")).expect("it can be made");
        std::os::unix::fs::symlink(path("real"), path("linked")).expect("it can be made");
        let mut read = String::new();
        open_in(&path("real"), "file").and_then(|mut file| file.read_to_string(&mut read)).expect("a file");
        assert_eq!(
            (read.as_str(), read_no_link(&path("real/file")).expect("a file")),
            ("content", b"content".to_vec())
        );
        assert!(open_in(&path("linked"), "file").is_err(), "the directory is a link");
        for refused in [open_in(&path("real"), "link").map(drop), read_no_link(&path("real/link")).map(drop)]
        {
            let said = refused.expect_err("it is a link").to_string();
            assert!(said.contains("it is a link"), "{said}");
        }
        assert_eq!(read_regular(&path("real/link")).expect("an operator may name one"), b"content");
    }
}
