//! Checks RocksDB's logs before RocksDB reads them: whether and where they are broken, and what follows the
//! break.
//!
//! RocksDB takes every break for the torn end that a power failure leaves, and drops everything after it
//! without an error.

use std::fs::{File, OpenOptions};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::regular_file::read_small;
use crate::storage::error::StorageError;
use crate::storage::files::batch;
use crate::storage::files::frames::{Break, read_records};

/// Many times what RocksDB lets a log grow to: it begins another when its 64 MiB of memory are full.
const LOG_MAX_BYTES: u64 = 512 << 20;

/// The result of checking a directory's logs.
#[derive(Debug, Default)]
pub struct Logs {
    /// RocksDB's number of the last operation before the end or the break; `None` if there is no record
    /// before it.
    pub last_rocksdb_sequence: Option<u64>,
    pub torn: Option<TornEnd>,
}

/// A broken log.
#[derive(Debug)]
pub struct TornEnd {
    log: PathBuf,
    /// Where the last whole record ends.
    pub at: u64,
    pub length: u64,
    /// Whether records follow the break: then it is not a torn end.
    pub records_follow: bool,
    /// Whether RocksDB handles the break itself: it stops there, and returns.
    pub rocksdb_stops: bool,
    /// The last value before the break for the requested key.
    pub last_value: Option<Vec<u8>>,
    later: Vec<PathBuf>,
}

/// Reads every log of a directory.
///
/// # Errors
/// When one cannot be read.
pub fn check_logs(directory: &Path, key: &[u8]) -> Result<Logs, StorageError> {
    let mut logs = Logs::default();
    let files = logs_in(directory)?;
    for (at, path) in files.iter().enumerate() {
        let bytes = read(path)?;
        let broken = read_records(&bytes, |record| {
            logs.last_rocksdb_sequence = batch::last_rocksdb_sequence(record).or(logs.last_rocksdb_sequence);
            ControlFlow::Continue(())
        });
        if let Some(broken) = broken {
            let (before, later) = (files.get(..=at), files.get(at + 1..));
            let torn = torn_end(path, &bytes, broken, later.unwrap_or_default())?;
            let last_value = last_value(before.unwrap_or_default(), key)?;
            logs.torn = Some(TornEnd { last_value, ..torn });
            break;
        }
    }
    Ok(logs)
}

fn torn_end(path: &Path, bytes: &[u8], broken: Break, later: &[PathBuf]) -> Result<TornEnd, StorageError> {
    let mut records_follow = broken.records_follow;
    for path in later {
        records_follow |= holds_an_operation(&read(path)?);
    }
    Ok(TornEnd {
        log: path.to_owned(),
        at: u64::try_from(broken.at).unwrap_or(u64::MAX),
        length: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        records_follow,
        rocksdb_stops: broken.rocksdb_returns && !records_follow,
        last_value: None,
        later: later.to_vec(),
    })
}

/// Whether a log has a record that is not empty, or any record after a break.
fn holds_an_operation(log: &[u8]) -> bool {
    let mut holds = false;
    let broken = read_records(log, |record| {
        holds |= !batch::is_empty(record);
        ControlFlow::Continue(())
    });
    holds || broken.is_some_and(|broken| broken.records_follow)
}

/// The last value that these logs have for a key, up to the break of the last log.
fn last_value(logs: &[PathBuf], key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
    let mut last = None;
    for path in logs {
        read_records(&read(path)?, |record| {
            last = batch::put_of(record, key).map(<[u8]>::to_vec).or(last.take());
            ControlFlow::Continue(())
        });
    }
    Ok(last)
}

impl TornEnd {
    /// The log's name within its directory.
    pub fn name(&self) -> String {
        self.log.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Truncates the logs at the break. RocksDB would do so too, but it skips some breaks, never returns from
    /// others, and begins a new log behind a torn one, which is one more state in which it can crash.
    pub fn truncate(&self) -> Result<(), StorageError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| StorageError::Io { path, error }
        };
        for path in self.later.iter().rev() {
            std::fs::remove_file(path).map_err(failed(path))?;
        }
        let log = OpenOptions::new().write(true).open(&self.log).map_err(failed(&self.log))?;
        log.set_len(self.at).and_then(|()| log.sync_all()).map_err(failed(&self.log))?;
        let directory = self.log.parent().unwrap_or(Path::new("."));
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed(directory))
    }
}

/// The directory's logs, the oldest first.
fn logs_in(directory: &Path) -> Result<Vec<PathBuf>, StorageError> {
    let failed = |error| StorageError::Io { path: directory.to_owned(), error };
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".log"));
        if let Some(number) = name.and_then(|number| number.parse::<u64>().ok()) {
            logs.push((number, path));
        }
    }
    logs.sort_unstable();
    Ok(logs.into_iter().map(|(_, path)| path).collect())
}

fn read(path: &Path) -> Result<Vec<u8>, StorageError> {
    read_small(path, LOG_MAX_BYTES).map_err(|error| StorageError::Io { path: path.to_owned(), error })
}
