//! Has stored rejects of members erased that were removed from every board, a slice between two batches.
//!
//! Knows: whether there is something to erase. Must not know: what is erased (`storage::erasures`), which no
//! reader sees from the removal's commit on.

use crate::storage::{EraseRejects, StorageError, Store};

/// Rejects that are read between two batches: about a millisecond's work.
const REJECTS_PER_ITERATION: usize = if cfg!(test) { 2 } else { 512 };

/// The erasure of rejects, as far as the writer has to see to it.
#[derive(Debug, Default)]
pub struct RejectErasure {
    /// Whether there may be something that the walk which is under way does not erase.
    is_due: bool,
    walk: Option<EraseRejects>,
}

impl RejectErasure {
    /// Notes that a member was removed, or that it is not known what the disk has to be erased.
    pub fn note(&mut self) {
        self.is_due = true;
    }

    pub fn is_idle(&self) -> bool {
        !self.is_due && self.walk.is_none()
    }

    /// Erases a part of what is to be erased. Returns whether a walk has ended.
    ///
    /// # Arguments
    /// `are_published`: whether rejects are to be erased in the stream of rejects, too.
    ///
    /// # Errors
    /// When the disk cannot be read or written. It is tried again after the next removal, or once the store
    /// is opened again.
    pub fn go_on(&mut self, store: &Store, are_published: bool, sync: bool) -> Result<bool, StorageError> {
        let walk = match self.walk.take() {
            Some(walk) => Some(walk),
            None if std::mem::take(&mut self.is_due) => store.begin_erasing()?,
            None => None,
        };
        let Some(walk) = walk else { return Ok(false) };
        self.walk = store.erase_some(walk, REJECTS_PER_ITERATION, are_published, sync)?;
        Ok(self.walk.is_none())
    }
}
