//! One scan over the checkpoint's records of a kind, tree by tree.
//!
//! Knows: that keys of a kind lie in the order of their trees' numbers. Must not know: what the records say.
//!
//! An iterator for each tree would be opened and positioned 100,000 times for as many boards of a few
//! entries.

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

    /// Hands every record of a tree to `each`, in key order. Trees are asked for in ascending order, each
    /// once; after an error the walk goes on with the next one.
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
        // At the beginning, after an error, and after records of a tree that was not asked for.
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
        // An iterator over a damaged file just ends: only the status tells.
        self.iterator.status().map_err(|error| self.store.damaged(error))?;
        self.ended = true;
        Ok(())
    }

    /// Whether the walk stands where the disk could not be read: behind all that was handed out.
    pub(super) fn is_cut_off(&self) -> bool {
        !self.ended && !self.iterator.valid()
    }
}
