//! One scan over the checkpoint's records of a kind, tree by tree.
//!
//! Knows: that keys of a kind are sorted by their trees' numbers. Must not know: the content of the records.
//!
//! One iterator serves all trees: with 100,000 small boards, opening and positioning an iterator for each
//! would take long.

use rocksdb::DBRawIterator;

use crate::state::TreeId;
use crate::storage::codec::Undecodable;
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::prefix_options;
use crate::storage::store::Store;

pub(super) struct TreeWalk<'a> {
    store: &'a Store,
    kind: u8,
    iterator: DBRawIterator<'a>,
    /// The iterator has seen the last record of the kind.
    ended: bool,
}

impl<'a> TreeWalk<'a> {
    pub(super) fn new(store: &'a Store, kind: u8) -> Self {
        let iterator = store.db().raw_iterator_cf_opt(store.checkpoint(), prefix_options(&[kind]));
        Self { store, kind, iterator, ended: false }
    }

    /// Hands every record of a tree to `each`, in key order. The caller asks for trees in ascending order,
    /// for each once. After an error it may ask for the next tree.
    ///
    /// # Errors
    /// When the disk cannot be read, or as `each`.
    pub(super) fn records_of(
        &mut self,
        tree: TreeId,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Undecodable>,
    ) -> Result<(), StorageError> {
        let prefix = keys::of_tree(self.kind, tree);
        let is_before = |key: Option<&[u8]>| key.is_none_or(|key| key < prefix.as_slice());
        // True at the beginning, after an error, and after records of a tree that the caller did not ask for.
        if !self.ended && is_before(self.iterator.key()) {
            self.iterator.seek(prefix);
        }
        while let Some((key, value)) = self.iterator.item() {
            if !key.starts_with(&prefix) {
                return Ok(());
            }
            each(key, value).map_err(|error| self.store.damaged(error))?;
            self.iterator.next();
        }
        // An iterator over a damaged file just ends; only its status shows the error.
        self.iterator.status().map_err(|error| self.store.damaged(error))?;
        self.ended = true;
        Ok(())
    }

    /// Whether the walk has stopped at a place that could not be read, after all records that it handed out.
    pub(super) fn is_cut_off(&self) -> bool {
        !self.ended && !self.iterator.valid()
    }
}
