//! A shared slot for a shard's store, which the writer may close and reopen while others read.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::state::TreeId;
use crate::storage::codec::MetadataRecord;
use crate::storage::error::StorageError;
use crate::storage::store::Store;

/// A shard's store, or none between a failed commit and the reopening.
#[derive(Default)]
pub struct StoreSlot {
    store: RwLock<Option<Arc<Store>>>,
}

impl StoreSlot {
    /// # Errors
    /// [`StorageError::Closed`] between a failure and the reopening.
    pub fn get(&self) -> Result<Arc<Store>, StorageError> {
        self.store.read().clone().ok_or(StorageError::Closed)
    }

    pub fn put(&self, store: Arc<Store>) {
        *self.store.write() = Some(store);
    }

    /// Empties the slot. The store closes when its last current user drops it.
    pub fn take(&self) -> Option<Arc<Store>> {
        self.store.write().take()
    }

    /// The metadata of an entry, as of the last commit.
    ///
    /// # Errors
    /// When the store is closed, or the disk cannot be read.
    pub fn metadata(&self, tree: TreeId, member: &[u8]) -> Result<Option<MetadataRecord>, StorageError> {
        self.get()?.metadata(tree, member)
    }
}
