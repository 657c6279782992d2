//! Reads files that the directory's owner could have replaced by anything: by a link, by a pipe that lets its
//! reader wait, or by one that has no end.

use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

use crate::regular_file::open_in;

/// The content of a regular file of at most so many bytes. The directory may be a link, the file may not.
///
/// # Errors
/// When it is none, there are more, or it cannot be read.
pub fn read_in(directory: &Path, name: &str, most: u64) -> std::io::Result<Vec<u8>> {
    // Behind a link's name and `.` is the directory itself.
    let file = open_in(&directory.join("."), name)?;
    let mut content = Vec::new();
    // A file of any length takes no room on the disk if nothing is in it.
    if file.metadata()?.len() <= most {
        file.take(most.saturating_add(1)).read_to_end(&mut content)?;
        if u64::try_from(content.len()).is_ok_and(|length| length <= most) {
            return Ok(content);
        }
    }
    Err(Error::other(format!("it has more than {most} bytes, and no such file of ranktree's has so many")))
}

/// The same by the file's path.
///
/// # Errors
/// As [`read_in`].
pub fn read_path(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(directory), Some(name)) = (path.parent(), name) else {
        return Err(Error::from(ErrorKind::NotFound));
    };
    read_in(directory, name, most)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir, write};
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_of_their_size_are_read() {
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
            assert_eq!(read_in(&path(directory), "file", 7).expect("a file"), b"content");
            for (name, expect) in [
                ("file", "more than 6 bytes"),
                ("large", "more than 6 bytes"),
                ("link", "it is a link"),
                ("endless", "it is a link"),
                ("pipe", "not a regular file"),
            ] {
                let said = read_path(&path(directory).join(name), 6).expect_err(name).to_string();
                assert!(said.contains(expect), "{name}: {said}");
            }
            let missing = read_in(&path(directory), "none", 6).expect_err("it is not there");
            assert_eq!(missing.kind(), ErrorKind::NotFound);
        }
    }
}
