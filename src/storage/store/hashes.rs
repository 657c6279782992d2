//! The hashes of the log that a shard has stored, and whether another replica's differ.

use rocksdb::WriteBatch;

use crate::state::{HashPoint, LogHash, LogHashes};
use crate::storage::codec::{self, Divergence};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::Store;
use crate::types::{NodeName, Sequence};

/// What a batch adds to the hashes of the log.
#[derive(Debug, Clone, Default)]
pub struct HashCommit {
    /// At the batch's last message.
    pub running: LogHash,
    pub kept: Vec<HashPoint>,
    /// Which are not kept any more.
    pub dropped: Vec<Sequence>,
}

impl Store {
    /// The hashes of the log up to the applied sequence.
    pub fn log_hashes(&self, applied: Sequence) -> Result<LogHashes, StorageError> {
        let found = self.db.get_pinned_cf(self.log(), keys::log_hash());
        let running = match found.map_err(|error| self.failed(error))? {
            Some(bytes) => codec::decode_log_hash(&bytes, applied).map_err(|error| self.damaged(error))?,
            None => LogHash::unknown_at(applied),
        };
        let mut points = Vec::new();
        self.scan_log(&[keys::HASH_POINT], &[keys::HASH_POINT], |key, value| {
            if let Some(sequence) = keys::last_sequence(key) {
                points.extend(codec::decode_hash_point(sequence, value)?);
            }
            Ok(())
        })?;
        Ok(LogHashes::new(running, points))
    }

    /// Adds a batch's hashes to its write batch.
    pub(in crate::storage) fn put_hashes(
        &self,
        batch: &mut WriteBatch,
        applied: Sequence,
        hashes: &HashCommit,
    ) {
        let log = self.log();
        batch.put_cf(log, keys::log_hash(), codec::encode_log_hash(&hashes.running, applied));
        for point in &hashes.kept {
            batch.put_cf(log, keys::hash_point(point.sequence), codec::encode_hash_point(*point));
        }
        // After the puts: a batch of many messages drops points that it has put.
        for sequence in &hashes.dropped {
            batch.delete_cf(log, keys::hash_point(*sequence));
        }
    }

    /// That another replica's hash differs, if that was found and not mended.
    pub fn divergence(&self) -> Result<Option<Divergence>, StorageError> {
        let found = self.db.get_pinned_cf(self.log(), keys::divergence());
        let found = found.map_err(|error| self.failed(error))?;
        found.map(|bytes| codec::decode_divergence(&bytes).map_err(|error| self.damaged(error))).transpose()
    }

    /// Stores that another replica's hash differs, or that none does any more. It survives a power failure
    /// once this returns.
    pub fn note_divergence(&self, divergence: Option<&Divergence>) -> Result<(), StorageError> {
        let mut batch = WriteBatch::default();
        match divergence {
            Some(found) => batch.put_cf(self.log(), keys::divergence(), codec::encode_divergence(found)),
            None => batch.delete_cf(self.log(), keys::divergence()),
        }
        self.write(batch, true)
    }

    /// Whose data these are a copy of, as far as that was noted; `None`: they were applied here.
    pub fn copied_from(&self) -> Result<Option<NodeName>, StorageError> {
        let found = self.db.get_pinned_cf(self.log(), keys::copied_from());
        let found = found.map_err(|error| self.failed(error))?;
        found.map(|bytes| codec::decode_copied_from(&bytes).map_err(|error| self.damaged(error))).transpose()
    }

    /// Notes whose data these are a copy of. If they were a copy there already, the first one's name stays.
    ///
    /// # Errors
    /// When the disk cannot be read, or refuses.
    pub fn note_copied_from(&self, node: &NodeName) -> Result<(), StorageError> {
        if self.copied_from()?.is_some() {
            return Ok(());
        }
        let mut batch = WriteBatch::default();
        batch.put_cf(self.log(), keys::copied_from(), codec::encode_copied_from(node));
        self.write(batch, true)
    }

    /// Forgets the hashes that are kept: what others say of these sequences is not compared any more. The
    /// running hash stays.
    pub fn forget_hash_points(&self) -> Result<(), StorageError> {
        let mut batch = WriteBatch::default();
        let prefix = [keys::HASH_POINT];
        batch.delete_range_cf(self.log(), prefix.to_vec(), keys::after(&prefix));
        self.write(batch, true)
    }
}
