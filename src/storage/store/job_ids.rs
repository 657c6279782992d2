//! The ids of jobs that were applied: records of the log, each as it is now.

use rocksdb::WriteBatch;

use crate::state::{JobIdChange, JobIds};
use crate::storage::codec::{self, undecodable};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::Store;

impl Store {
    /// Reads the ids of jobs, as of the last commit.
    pub fn job_ids(&self) -> Result<JobIds, StorageError> {
        let mut ids = JobIds::default();
        self.scan_log(&[keys::JOB_ID], &[keys::JOB_ID], |key, value| {
            let id = keys::id_of_job(key).ok_or_else(|| undecodable("job's id", "it is not UTF-8"))?;
            ids.apply(&JobIdChange { id: id.into(), after: Some(codec::decode_job_id(value)?) });
            Ok(())
        })?;
        Ok(ids)
    }

    pub(in crate::storage) fn put_job_ids(&self, batch: &mut WriteBatch, changes: &[JobIdChange]) {
        for JobIdChange { id, after } in changes {
            let key = keys::job_id(id);
            match after {
                Some(first) => batch.put_cf(self.log(), key, codec::encode_job_id(*first)),
                None => batch.delete_cf(self.log(), key),
            }
        }
    }
}
