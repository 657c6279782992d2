//! The real paths of files that messages name by the number of an open file: RocksDB is given such a path of
//! its directory, so that it keeps to that directory wherever it is moved.

use std::fmt::Display;

/// Where Linux lists the open files of a process, by number.
pub const OPEN_FILES: &str = "/proc/self/fd/";

/// A message that names files by number, with their real paths.
pub fn with_real_paths(message: &(impl Display + ?Sized)) -> String {
    let message = message.to_string();
    let mut parts = message.split(OPEN_FILES);
    let mut real = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(part.len());
        let (number, rest) = part.split_at(digits);
        let named = format!("{OPEN_FILES}{number}");
        real += &std::fs::read_link(&named).map_or(named, |path| path.display().to_string());
        real += rest;
    }
    real
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn numbers_of_open_files_in_a_message_become_their_paths() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = std::fs::File::open(folder.path()).expect("it is there");
        let (number, real) = (open.as_raw_fd(), folder.path().canonicalize().expect("it is there"));
        let message = format!("in {OPEN_FILES}{number}/x: no, and {OPEN_FILES}{number}");
        assert_eq!(with_real_paths(&message), format!("in {0}/x: no, and {0}", real.display()));
        assert_eq!(with_real_paths("nothing"), "nothing");
    }
}
