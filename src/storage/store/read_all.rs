//! Reads every record of a store, in slices, so that RocksDB checks every checksum.
//!
//! Records that were deleted in a range are read as well. Nobody needs them any more, but a compaction that
//! comes upon a damaged one fails.
//!
//! Knows: where a slice ends. Must not know: what records are.

use crate::storage::error::StorageError;
use crate::storage::options::prefix_options;
use crate::storage::store::Store;

/// Bytes between two reports of progress.
const REPORTED_BYTES: usize = 1 << 20;

/// How far the records of a store were read.
#[derive(Debug, Clone, Default)]
pub struct ReadPlace {
    /// The column family that comes next, in their order.
    family: usize,
    /// The key that comes next, or one before it.
    next: Vec<u8>,
    /// Records so far.
    pub records: u64,
}

impl ReadPlace {
    /// Whether every record was read.
    pub fn is_at_end(&self) -> bool {
        self.family == FAMILIES
    }
}

const FAMILIES: usize = 2;

impl Store {
    /// Reads on from a place: `bytes`, or up to the end of a column family, if that comes first. Each slice
    /// reads the store as it is then, so that no file is kept for a reading that takes hours.
    ///
    /// # Errors
    /// When something cannot be read.
    pub fn read_slice(&self, place: &mut ReadPlace, bytes: usize) -> Result<(), StorageError> {
        let Some(family) = [self.log(), self.checkpoint()].get(place.family).copied() else { return Ok(()) };
        let mut options = prefix_options(&[]);
        #[expect(deprecated, reason = "nothing took its place; only its use for speed ended")]
        options.set_ignore_range_deletions(true);
        let mut iterator = self.db.raw_iterator_cf_opt(family, options);
        iterator.seek(&place.next);
        let mut read = 0;
        while let Some((key, value)) = iterator.item() {
            if self.resources.stop.is_set() {
                return Err(StorageError::Stopped);
            }
            place.records += 1;
            read += key.len() + value.len();
            if read >= bytes {
                // The least key after it.
                place.next = [key, &[0]].concat();
                return Ok(());
            }
            iterator.next();
        }
        // An iterator over a damaged file just ends; only its status shows the error.
        iterator.status().map_err(|error| self.failed(error))?;
        *place = ReadPlace { family: place.family + 1, next: Vec::new(), records: place.records };
        Ok(())
    }

    /// Reads every record.
    pub(in crate::storage) fn read_all(&self, progress: Progress<'_>) -> Result<(), StorageError> {
        let mut place = ReadPlace::default();
        while !place.is_at_end() {
            self.read_slice(&mut place, REPORTED_BYTES)?;
            progress("reading every record", place.records, 0);
        }
        Ok(())
    }
}

/// Called as work proceeds, with the kind of work, how much is done, and the total, which is 0 if it is
/// unknown.
pub type Progress<'a> = &'a (dyn Fn(&'static str, u64, u64) + Sync);
