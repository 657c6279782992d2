//! Checks the copy of a shard before it is put in place: that it holds what it should, and all that
//! `ranktree verify` checks.

use std::path::Path;

use crate::storage::{Progress, StorageError, StorageResources, Store, verify, verify_parked};
use crate::types::ShardId;
use crate::writer::lines_of;

/// Enough to read ahead with; nothing is read twice.
const CACHE_BYTES: usize = 64 << 20;

/// Opens a copy of a shard without writing, and describes all that is wrong with it.
///
/// # Arguments
/// - `states`: the applied sequence and the stream that it must hold
pub fn findings_in(
    directory: &Path,
    (id, shards): (ShardId, u16),
    states: (u64, &str),
    progress: Progress<'_>,
) -> Result<Vec<String>, StorageError> {
    let resources = StorageResources::new(CACHE_BYTES, 1);
    let store = Store::open_for_reading(directory, id, shards, &resources)?;
    let mut findings = Vec::new();
    match store.meta()? {
        Some(meta) if (meta.applied_sequence, meta.stream.as_str()) == states => {
            findings.append(&mut verify(&store, progress)?.1);
            findings.append(&mut verify_parked(&store, &lines_of, progress)?.1);
        }
        found => findings.push(format!(
            "its manifest states the applied sequence {} of the stream {:?}, but its files hold {:?}",
            states.0,
            states.1,
            found.map(|meta| (meta.applied_sequence, meta.stream))
        )),
    }
    Ok(findings)
}
