//! When boards that end after a quiet time had their last job: records of the log, each as it is now.

use rocksdb::WriteBatch;

use crate::state::{LastJobChange, LastJobs};
use crate::storage::codec::{self, undecodable};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::Store;
use crate::types::BoardName;

impl Store {
    /// Reads the times of last jobs, as of the last commit.
    pub fn last_jobs(&self) -> Result<LastJobs, StorageError> {
        let mut jobs = LastJobs::default();
        self.scan_log(&[keys::LAST_JOB], &[keys::LAST_JOB], |key, value| {
            let name = keys::board_of_last_job(key).unwrap_or_default();
            let board = BoardName::new(name).map_err(|error| undecodable("last job", error))?;
            jobs.apply(&LastJobChange { board, after: Some(codec::decode_last_job(value)?) });
            Ok(())
        })?;
        Ok(jobs)
    }

    pub(in crate::storage) fn put_last_jobs(&self, batch: &mut WriteBatch, changes: &[LastJobChange]) {
        for LastJobChange { board, after } in changes {
            let key = keys::last_job(board.as_str());
            match after {
                Some(time) => batch.put_cf(self.log(), key, codec::encode_last_job(*time)),
                None => batch.delete_cf(self.log(), key),
            }
        }
    }
}
