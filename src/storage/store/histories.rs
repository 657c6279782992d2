//! Which sequences are of other histories of a shard, and how it goes on in another one.
//!
//! Knows: that this, the applied sequence and what the shard is are one write batch, so that no sequence of
//! the history that was is given out again, whatever a crash leaves. Must not know: why the shard was set
//! back.

use std::time::SystemTime;

use rocksdb::WriteBatch;

use crate::state::Applied;
use crate::storage::codec::{self, Delta, Meta};
use crate::storage::error::StorageError;
use crate::storage::identity::ShardIdentity;
use crate::storage::keys;
use crate::storage::store::Store;
use crate::types::{OtherHistories, OtherHistory, Sequence, Timestamp};

impl Store {
    /// Which sequences are of other histories, as of the last commit.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn other_histories(&self) -> Result<OtherHistories, StorageError> {
        let mut found = Vec::new();
        self.scan_log(&[keys::OTHER_HISTORY], &[keys::OTHER_HISTORY], |key, value| {
            if let Some(before) = keys::last_sequence(key) {
                found.push(OtherHistory { after: codec::decode_sequence("other history", value)?, before });
            }
            Ok(())
        })?;
        Ok(OtherHistories::new(found))
    }

    /// Begins another history: what the shard holds is not the next state of what was there, and clients may
    /// know sequences after its last one. It goes on far beyond them, by a delta without changes. Synced once
    /// this returns.
    ///
    /// # Arguments
    /// `stream`: identity of the queue that the sequences belong to from here on.
    ///
    /// Returns the last sequence before, and the one that is applied now.
    ///
    /// # Errors
    /// When the disk cannot be read, or refuses.
    pub fn begin_history(&self, identity: ShardIdentity, stream: &str) -> Result<OtherHistory, StorageError> {
        let meta = self.meta()?.ok_or_else(|| self.damaged("its meta record is missing"))?;
        let after = Sequence(meta.applied_sequence);
        let other = OtherHistory { after, before: first_after(after, micros_since_1970()) };
        let applied = Applied {
            sequence: other.before,
            timestamp: Timestamp::from_micros(meta.message_timestamp_micros).unwrap_or_default(),
            hash: meta.message_hash,
        };
        let delta = Delta { first: after.next(), applied, events: Vec::new(), changes: Vec::new() };
        let mut histories = self.other_histories()?;
        let merged = histories.add(other);
        let mut batch = WriteBatch::default();
        batch.put_cf(self.log(), keys::delta(applied.sequence), codec::encode_delta(&delta));
        for gone in merged {
            batch.delete_cf(self.log(), keys::other_history(gone.before));
        }
        for OtherHistory { after, before } in histories.iter() {
            batch.put_cf(self.log(), keys::other_history(before), codec::encode_sequence(after));
        }
        let stream = stream.to_owned();
        let meta = Meta { applied_sequence: applied.sequence.0, stream, identity, ..meta };
        batch.put_cf(self.log(), keys::meta(), codec::encode_meta(&meta));
        self.write_up_to(batch, true, applied.sequence)?;
        self.set_identity(identity)?;
        Ok(other)
    }
}

/// More messages than are written between two restores: a million a second for twelve days.
const FAR: u64 = 1 << 40;

/// Beyond what any history has given out that began earlier, unless it had a million messages a second all
/// the time: the microseconds since 1970. They stay below 2^53, up to which numbers of JSON are exact, until
/// 2255. Where the clock was ahead once, far beyond the last one.
fn first_after(last: Sequence, micros: u64) -> Sequence {
    Sequence(if micros > last.0 { micros } else { last.0.saturating_add(FAR) })
}

fn micros_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{StorageResources, TreesFrom, recover, verify};
    use crate::types::{OTHER_HISTORIES_MAX, ShardId};

    #[test]
    fn a_clock_that_was_ahead_once_gives_no_sequence_out_again() {
        assert_eq!(first_after(Sequence(7), 1_000), Sequence(1_000));
        for micros in [0, 6, 7] {
            assert_eq!(first_after(Sequence(7), micros), Sequence(7 + FAR));
        }
    }

    #[test]
    fn a_shard_that_was_set_back_goes_on_beyond_all_that_was_given_out_and_knows_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let resources = StorageResources::new(1 << 20, 1);
        let open = || Store::open(folder.path(), ShardId(0), 1, &resources).expect("a good shard");
        assert_eq!(open().other_histories().expect("readable"), OtherHistories::default());
        let mut last = Sequence(0);
        for nth in 1..=OTHER_HISTORIES_MAX + 2 {
            let store = open();
            let identity = ShardIdentity::begin(None);
            let other = store.begin_history(identity, "").expect("it can be written");
            assert_eq!(other.after, last);
            // Also if it is set back twice within a microsecond.
            assert!(other.before > last && other.before.0 >= micros_since_1970() - 60_000_000, "{other:?}");
            last = other.before;
            drop(store);
            let store = open();
            assert_eq!(store.identity(), identity);
            let histories = store.other_histories().expect("readable");
            assert_eq!(histories.iter().count(), nth.min(OTHER_HISTORIES_MAX));
            assert!(histories.have(Sequence(1)) && !histories.have(last) && !histories.have(last.next()));
            let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("it is whole");
            assert_eq!(recovered.shard.applied.sequence, last);
            assert_eq!(verify(&store, &|_, _, _| {}).expect("readable").1, Vec::<String>::new());
        }
    }
}
