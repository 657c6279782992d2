//! Parked jobs: lines, each in its order.
//!
//! Knows: how to read a line from a place on, and which lines exist. Must not know: which members use which
//! line.

use crate::storage::codec::{self, ParkedRecord};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::prefix_options;
use crate::storage::store::Store;
use crate::types::Sequence;

/// A line of parked jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedLine {
    pub line: u32,
    pub jobs: usize,
    /// The job of the line that is unparked first.
    pub first: ParkedRecord,
}

impl Store {
    /// Every line with parked jobs. Reads the keys of all jobs, and the first job of each line.
    ///
    /// # Errors
    /// When the disk cannot be read, or a record is not valid.
    pub fn parked_lines(&self) -> Result<Vec<ParkedLine>, StorageError> {
        let mut lines: Vec<ParkedLine> = Vec::new();
        self.scan_log(&[keys::PARKED_IN_LINE], &[keys::PARKED_IN_LINE], |key, value| {
            let (Some(line), Some((sequence, index))) = (keys::line_of(key), keys::place_in_stream(key))
            else {
                return Ok(());
            };
            if let Some(last) = lines.last_mut().filter(|last| last.line == line) {
                last.jobs += 1;
            } else {
                let first = codec::decode_parked(sequence, index, value)?;
                lines.push(ParkedLine { line, jobs: 1, first });
            }
            Ok(())
        })?;
        Ok(lines)
    }

    /// Calls `each` for every parked job, line by line.
    ///
    /// # Errors
    /// When the disk cannot be read, or a record is not valid.
    pub fn each_parked(&self, mut each: impl FnMut(ParkedRecord)) -> Result<(), StorageError> {
        self.scan_log(&[keys::PARKED_IN_LINE], &[keys::PARKED_IN_LINE], |key, value| {
            if let Some((sequence, index)) = keys::place_in_stream(key) {
                each(codec::decode_parked(sequence, index, value)?);
            }
            Ok(())
        })
    }

    /// Calls `each` for the jobs of a line from this place on, in their order, until it returns false.
    ///
    /// # Errors
    /// When the disk cannot be read, or a record is not valid.
    pub fn each_parked_in(
        &self,
        line: u32,
        (sequence, index): (Sequence, u32),
        mut each: impl FnMut(ParkedRecord) -> bool,
    ) -> Result<(), StorageError> {
        let mut options = prefix_options(&keys::of_line(line));
        // Few records are read: readahead would read the lines that follow.
        options.set_readahead_size(0);
        options.fill_cache(true);
        let mut iterator = self.db().raw_iterator_cf_opt(self.log(), options);
        iterator.seek(keys::parked_in_line(line, sequence, index));
        while let Some((key, value)) = iterator.item() {
            if let Some((sequence, index)) = keys::place_in_stream(key) {
                let record = codec::decode_parked(sequence, index, value);
                if !each(record.map_err(|error| self.damaged(error))?) {
                    return Ok(());
                }
            }
            iterator.next();
        }
        Ok(iterator.status()?)
    }

    /// Whether a job waits in a line.
    pub fn is_parked(&self, line: u32, (sequence, index): (Sequence, u32)) -> Result<bool, StorageError> {
        let key = keys::parked_in_line(line, sequence, index);
        Ok(self.db().get_pinned_cf(self.log(), key)?.is_some())
    }

    /// All jobs of a line.
    #[cfg(test)]
    pub fn parked_in(&self, line: u32) -> Result<Vec<ParkedRecord>, StorageError> {
        let mut parked = Vec::new();
        self.each_parked_in(line, (Sequence(0), 0), |record| {
            parked.push(record);
            true
        })?;
        Ok(parked)
    }
}
