//! Opens files for reading, and only regular ones: a pipe, or another file that lets its reader wait, would
//! stop the thread that reads it.
//!
//! Files that an operator names may be links. Files in a directory that may be somebody else's may not: its
//! owner could have root read, and copy, what nobody else may read.
//!
//! Must not know: what is in the files.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, open, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The most bytes of a file of settings, tokens or keys: a wrong file in its place must not fill the memory.
const SETTINGS_MAX_BYTES: u64 = 16 << 20;

/// Whether something has this name, also a link that leads nowhere, or where this process may not look.
///
/// # Errors
/// When that cannot be found out.
pub fn is_there(path: &Path) -> std::io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The text in a file that an operator names.
///
/// # Errors
/// As [`read_regular`], and when it is not UTF-8.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    let text = String::from_utf8(read_regular(path)?);
    text.map_err(|_| Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// The content of a file that an operator names.
///
/// # Errors
/// When it cannot be read, is no regular file, or has more than 16 MiB; for root also when another user's
/// link leads to it.
pub fn read_regular(path: &Path) -> std::io::Result<Vec<u8>> {
    if geteuid().is_root() {
        refuse_links_of_others(path)?;
    }
    read_at_most(open_at(CWD, path, OFlags::empty())?, SETTINGS_MAX_BYTES)
}

/// The content of a file of at most so many bytes, which may be replaced by anything: by a link, by a pipe
/// that lets its reader wait, or by a file that has no end. The directory may be a link, the file may not.
///
/// # Errors
/// When it is no regular file, has more, or cannot be read.
pub fn read_small_in(directory: &Path, name: &str, most: u64) -> std::io::Result<Vec<u8>> {
    // Behind a link's name and `.` is the directory itself.
    read_at_most(open_in(&directory.join("."), name)?, most)
}

/// Another user's link could have root read, and send to a service, what nobody else may read.
fn refuse_links_of_others(path: &Path) -> std::io::Result<()> {
    let of_other = |part: &&Path| {
        let found = std::fs::symlink_metadata(part).ok().filter(Metadata::is_symlink);
        found.is_some_and(|link| link.uid() != 0)
    };
    path.ancestors().find(of_other).map_or(Ok(()), |link| {
        let told = format!("{} is a link that another user has made; give the file itself", link.display());
        Err(Error::other(told))
    })
}

fn read_at_most(file: File, most: u64) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // A file of any length takes no room on the disk if nothing is in it.
    if file.metadata()?.len() <= most {
        file.take(most.saturating_add(1)).read_to_end(&mut content)?;
        if u64::try_from(content.len()).is_ok_and(|length| length <= most) {
            return Ok(content);
        }
    }
    Err(Error::other(format!(
        "it has more than {most} bytes, and no such file of ranktree's has so many: it is damaged, or another \
         program's; put back the right one, from a snapshot or a copy"
    )))
}

/// The same by the file's path.
pub fn read_small(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(directory), Some(name)) = (path.parent(), name) else {
        return Err(Error::from(ErrorKind::NotFound));
    };
    read_small_in(directory, name, most)
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

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, write};
    use std::os::unix::fs::symlink;

    use rustix::fs::{FileType, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        write(&file, "content").expect("it can be written");
        assert_eq!(read_regular(&file).expect("it is there"), b"content");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("it can be made");
        let refused = read_regular(&pipe).expect_err("it is a pipe").to_string();
        assert!(refused.contains("not a regular file"), "{refused}");
        assert!(read_regular(folder.path()).is_err());
        File::create(&file).and_then(|file| file.set_len(1 << 40)).expect("it takes no room");
        let refused = read_regular(&file).expect_err("it is too large").to_string();
        assert!(refused.contains("more than 16777216 bytes"), "{refused}");
        let missing = read_regular(&folder.path().join("none")).expect_err("it is not there");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn links_in_a_directory_and_links_to_one_are_not_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        create_dir(path("real")).expect("it can be made");
        write(path("real/file"), "content").expect("it can be written");
        symlink(path("real/file"), path("real/link")).expect("it can be made");
        symlink(path("real"), path("linked")).expect("it can be made");
        let mut read = String::new();
        open_in(&path("real"), "file").and_then(|mut file| file.read_to_string(&mut read)).expect("a file");
        assert_eq!(read, "content");
        assert!(open_in(&path("linked"), "file").is_err(), "the directory is a link");
        let said = open_in(&path("real"), "link").expect_err("it is a link").to_string();
        assert!(said.contains("it is a link"), "{said}");
        assert_eq!(read_regular(&path("real/link")).expect("an operator may name one"), b"content");
    }

    #[test]
    fn small_files_of_a_directory_are_regular_and_of_their_size() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        create_dir(path("real")).expect("it can be made");
        symlink("real", path("linked")).expect("it can be made");
        write(path("real/file"), "content").expect("it can be written");
        symlink("file", path("real/link")).expect("it can be made");
        symlink("/dev/zero", path("real/endless")).expect("it can be made");
        mknodat(CWD, path("real/pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("it can be made");
        let large = File::create(path("real/large")).expect("it can be made");
        large.set_len(1 << 40).expect("it takes no room");
        for directory in ["real", "linked"] {
            assert_eq!(read_small_in(&path(directory), "file", 7).expect("a file"), b"content");
            for (name, expect) in [
                ("file", "more than 6 bytes"),
                ("large", "more than 6 bytes"),
                ("link", "it is a link"),
                ("endless", "it is a link"),
                ("pipe", "not a regular file"),
            ] {
                let said = read_small(&path(directory).join(name), 6).expect_err(name).to_string();
                assert!(said.contains(expect), "{name}: {said}");
            }
            let missing = read_small_in(&path(directory), "none", 6).expect_err("it is not there");
            assert_eq!(missing.kind(), ErrorKind::NotFound);
        }
    }
}
