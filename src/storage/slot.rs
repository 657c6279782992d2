//! Where a shard's store is found by whoever reads while the writer may have to open it again.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::state::TreeId;
use crate::storage::codec::MetadataRecord;
use crate::storage::error::StorageError;
use crate::storage::store::Store;

/// Where a shard's store is, while there is one: a failed commit closes it until it is opened again.
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

    /// Takes the store away from new users. It closes when the last of those who use it now is done.
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
