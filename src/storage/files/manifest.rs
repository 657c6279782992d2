//! Checks `CURRENT` and the manifest that it names, before RocksDB reads them; and that no file of the
//! directory would let RocksDB wait.

use std::ops::ControlFlow;
use std::path::Path;

use crate::regular_file::read_small;
use crate::storage::error::StorageError;
use crate::storage::files::batch::{slice, varint};
use crate::storage::files::frames::read_records;
use crate::types::quoted;

const CURRENT: &str = "CURRENT";
/// More than the name of a manifest has.
const CURRENT_MAX_BYTES: u64 = 4 << 10;
/// RocksDB begins another manifest at half of it (`storage::options`). A file without end, which takes no
/// room on the disk, is refused before it is read.
const MANIFEST_MAX_BYTES: u64 = 128 << 20;

// RocksDB's tags of the fields of a manifest's edit (`db/version_edit.h`): those that come before its files.
const COMPARATOR: u64 = 1;
const LAST_SEQUENCE: u64 = 4;
/// Tags of logs, of the next file and of column families. Each has one number as its value.
const NUMBERS: [u64; 5] = [2, 3, 9, 10, 203];
/// Tags from here on have one text as their value, so that an older RocksDB can skip them.
const IGNORABLE: u64 = 1 << 13;

/// How much of the log a manifest declares as flushed to files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FlushedSequence {
    /// RocksDB's number of the last operation in files; 0 if it is not known.
    pub last_rocksdb_sequence: u64,
}

/// Checks that RocksDB can read its manifest to the end without looping forever.
///
/// # Errors
/// When a file is missing or incomplete, or one of the directory is none that can be read to its end.
pub fn check_manifest(directory: &Path) -> Result<FlushedSequence, StorageError> {
    check_regular(directory)?;
    let damaged = |what: String| Err(StorageError::damaged(directory, what));
    let Some(current) = read(&directory.join(CURRENT), CURRENT_MAX_BYTES)? else {
        return damaged(format!("the file {CURRENT} is missing"));
    };
    let Some(name) = manifest_named_by(&current) else {
        return damaged(format!("the file {CURRENT} does not name a manifest"));
    };
    let Some(manifest) = read(&directory.join(name), MANIFEST_MAX_BYTES)? else {
        return damaged(format!("the file {name}, which {CURRENT} names, is missing"));
    };
    let (mut records, mut in_files) = (0_u64, FlushedSequence::default());
    let broken = read_records(&manifest, |record| {
        records += 1;
        in_files.last_rocksdb_sequence =
            in_files.last_rocksdb_sequence.max(last_rocksdb_sequence(record).unwrap_or(0));
        ControlFlow::Continue(())
    });
    match broken {
        // A power failure may tear the last change. Nothing depends on that change yet, and RocksDB drops it.
        Some(broken) if broken.records_follow || !broken.rocksdb_returns => {
            damaged(format!("the file {name} is broken after {} of {} bytes", broken.at, manifest.len()))
        }
        _ if records == 0 => damaged(format!("the file {name} holds no records")),
        _ => Ok(in_files),
    }
}

/// The last operation in files, as an edit has it. This field comes before those of files.
fn last_rocksdb_sequence(mut edit: &[u8]) -> Option<u64> {
    loop {
        match varint(&mut edit)? {
            LAST_SEQUENCE => return varint(&mut edit),
            tag if NUMBERS.contains(&tag) => drop(varint(&mut edit)?),
            tag if tag == COMPARATOR || tag >= IGNORABLE => drop(slice(&mut edit)?),
            _ => return None,
        }
    }
}

fn manifest_named_by(current: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(current).ok()?.strip_suffix('\n')?;
    let number = name.strip_prefix("MANIFEST-")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

/// Refuses pipes, devices and the like, whatever their names: RocksDB would open them, and wait.
fn check_regular(directory: &Path) -> Result<(), StorageError> {
    let failed = |error| StorageError::Io { path: directory.to_owned(), error };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let found = entry.file_type().map_err(failed)?;
        if found.is_file() || found.is_dir() {
            continue;
        }
        // A link counts as what it leads to, as it does for RocksDB. One that leads nowhere is missing.
        let leads_to_none = || std::fs::metadata(entry.path()).is_ok_and(|to| !to.is_file() && !to.is_dir());
        if !found.is_symlink() || leads_to_none() {
            let name = entry.file_name();
            let name = quoted(&name.to_string_lossy());
            return Err(StorageError::damaged(
                directory,
                format!("{name} is not a regular file; ranktree makes no others, so remove it"),
            ));
        }
    }
    Ok(())
}

fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, StorageError> {
    match read_small(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::Io { path: path.to_owned(), error }),
    }
}
