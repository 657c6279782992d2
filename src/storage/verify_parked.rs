//! Checks the jobs that wait for their boards: each must be stored in the line in which the writer will look
//! for it.
//!
//! Knows: lines and places. Must not know: how a member's lines are chosen; the caller passes a function for
//! that.

use std::collections::HashSet;
use std::fmt::Display;

use crate::job::Job;
use crate::storage::codec::{self, ParkedRecord};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::{Progress, Store};
use crate::types::{MemberId, Sequence};
use crate::wire;

/// The length of a parked job's key.
const KEY_BYTES: usize = 17;
/// Findings that are listed; the others are counted.
const LISTED: usize = 20;

/// The lines in which a member's jobs may wait: its own, and one that it shares.
pub type MemberLines<'a> = &'a dyn Fn(&MemberId) -> [u32; 2];

/// Reads every parked job. Returns how many there are, and descriptions of what is wrong with them.
pub fn verify_parked(
    store: &Store,
    member_lines: MemberLines<'_>,
    progress: Progress<'_>,
) -> Result<(u64, Vec<String>), StorageError> {
    let applied = store.meta()?.map_or(Sequence(0), |meta| Sequence(meta.applied_sequence));
    let mut found =
        Found { member_lines, applied, parked: 0, own_lines: HashSet::new(), wrong: Vec::new(), more: 0 };
    // Members' own lines have lower numbers than shared lines, so they are scanned first.
    store.scan_log(&[keys::PARKED_IN_LINE], &[keys::PARKED_IN_LINE], |key, value| {
        found.look_at(key, value);
        if found.parked.is_multiple_of(1_000) {
            progress("reading parked jobs", found.parked, 0);
        }
        Ok(())
    })?;
    if found.more > 0 {
        found.wrong.push(format!("{} more findings in parked jobs are not listed", found.more));
    }
    Ok((found.parked, found.wrong))
}

struct Found<'a> {
    member_lines: MemberLines<'a>,
    applied: Sequence,
    parked: u64,
    /// Members' own lines in which jobs wait.
    own_lines: HashSet<u32>,
    wrong: Vec<String>,
    more: usize,
}

impl Found<'_> {
    fn look_at(&mut self, key: &[u8], value: &[u8]) {
        self.parked += 1;
        if let Err(wrong) = self.check(key, value) {
            if self.wrong.len() < LISTED {
                self.wrong.push(wrong);
            } else {
                self.more += 1;
            }
        }
    }

    fn check(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let place = keys::line_of(key).zip(keys::place_in_stream(key));
        let Some((line, (sequence, index))) = place.filter(|_| key.len() == KEY_BYTES) else {
            return Err(format!(
                "the key of a parked job is not valid; it has {} bytes: {key:02x?}",
                key.len()
            ));
        };
        let wrong = |what: &dyn Display| {
            format!("job {index} of message {sequence}, which waits for its board, {what}")
        };
        if sequence > self.applied {
            return Err(wrong(&format_args!(
                "belongs to a message after the last applied one, {}",
                self.applied
            )));
        }
        let record = codec::decode_parked(sequence, index, value);
        let ParkedRecord { job, .. } = record.map_err(|error| wrong(&format_args!("is damaged: {error}")))?;
        let Some(Job { member, .. }) = wire::decode_one(&job) else {
            return Err(wrong(&"cannot be read, because it is not a job"));
        };
        let [own, shared] = (self.member_lines)(&member);
        if line == own {
            self.own_lines.insert(line);
            Ok(())
        } else if line != shared {
            Err(wrong(&format_args!(
                "is in line {line}, but jobs of {member} belong in line {own} or {shared}"
            )))
        } else if self.own_lines.contains(&own) {
            // Its next job would overtake those in the shared line.
            Err(wrong(&format_args!(
                "waits in the shared line {line}, but other jobs of {member} wait in its own line"
            )))
        } else {
            Ok(())
        }
    }
}
