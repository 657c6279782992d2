//! Test helpers that damage a directory.

use rocksdb::{ColumnFamily, WriteBatch};

use crate::state::TreeId;
use crate::storage::error::StorageError;
use crate::storage::options::prefix_options;
use crate::storage::store::Store;
use crate::storage::{codec, keys};
use crate::types::Sequence;

impl Store {
    /// Records that the checkpoint has of a tree.
    pub(crate) fn checkpoint_records_of(&self, tree: TreeId) -> Result<usize, StorageError> {
        let mut records = 0;
        for kind in [keys::MEMBER_PAGE, keys::TREE_PAGE, keys::EXTRAS_PAGE] {
            self.scan_checkpoint(&keys::of_tree(kind, tree), |_, _| {
                records += 1;
                Ok(())
            })?;
        }
        Ok(records)
    }

    fn family_of(&self, key: &[u8]) -> &ColumnFamily {
        let in_log = key.first().is_some_and(|kind| *kind < keys::DICTIONARY_PAGE);
        if in_log { self.log() } else { self.checkpoint() }
    }

    /// Replaces a record, or removes it. The first byte of the key decides the column family.
    pub(crate) fn damage(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), StorageError> {
        let family = self.family_of(key);
        let mut batch = WriteBatch::default();
        match value {
            Some(value) => batch.put_cf(family, key, value),
            None => batch.delete_cf(family, key),
        }
        self.write(batch, true)
    }

    pub(crate) fn record(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let family = self.family_of(key);
        Ok(self.db.get_cf(family, key)?)
    }

    /// Keys that begin with a prefix.
    pub(crate) fn keys_from(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StorageError> {
        let mut found = Vec::new();
        let family = self.family_of(prefix);
        self.scan(family, prefix_options(prefix), prefix, |key, _| {
            found.push(key.to_vec());
            Ok(())
        })?;
        Ok(found)
    }

    /// Has RocksDB write what it holds of the log in memory to a file.
    pub(crate) fn flush_log_for_test(&self) -> Result<(), StorageError> {
        Ok(self.db.flush_cf(self.log())?)
    }

    /// Removes the end of the log, from this sequence on, as if it had been lost. A batch must end right
    /// before the sequence.
    pub(crate) fn cut_log_for_test(&self, from: Sequence) -> Result<(), StorageError> {
        let mut meta = self.meta()?.expect("opening writes the meta record");
        meta.applied_sequence = from.0 - 1;
        let mut batch = WriteBatch::default();
        batch.delete_cf(self.log(), keys::delta(from));
        batch.put_cf(self.log(), keys::meta(), codec::encode_meta(&meta));
        self.write(batch, true)
    }
}
