//! `CURRENT` and the manifest that it names, before RocksDB reads them.

use std::ops::ControlFlow;
use std::path::Path;

use crate::storage::error::StorageError;
use crate::storage::files::frames::read_records;

const CURRENT: &str = "CURRENT";

/// Makes sure that RocksDB can read its manifest to the end, and returns from that.
///
/// # Errors
/// When a file is not there or not whole.
pub fn check_manifest(directory: &Path) -> Result<(), StorageError> {
    let damaged = |what: String| Err(StorageError::damaged(directory, what));
    let Some(current) = read(&directory.join(CURRENT))? else {
        return damaged(format!("the file {CURRENT} is gone"));
    };
    let Some(name) = manifest_named_by(&current) else {
        return damaged(format!("the file {CURRENT} does not name a manifest"));
    };
    let Some(manifest) = read(&directory.join(name))? else {
        return damaged(format!("the file {name}, which {CURRENT} names, is gone"));
    };
    let mut records = 0_u64;
    let broken = read_records(&manifest, |_| {
        records += 1;
        ControlFlow::Continue(())
    });
    match broken {
        // A power failure may tear the end, of a change that nothing was built on: RocksDB knows what to do then.
        Some(broken) if broken.goes_on || !broken.rocksdb_returns => {
            damaged(format!("the file {name} is broken after {} of {} bytes", broken.at, manifest.len()))
        }
        _ if records == 0 => damaged(format!("the file {name} holds nothing")),
        _ => Ok(()),
    }
}

fn manifest_named_by(current: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(current).ok()?.strip_suffix('\n')?;
    let number = name.strip_prefix("MANIFEST-")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::Io { path: path.to_owned(), error }),
    }
}
