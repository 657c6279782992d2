//! Records that are read one by one, or a few at a time: metadata of entries, profiles, and rejects.

use rocksdb::{DBPinnableSlice, WriteBatch};

use crate::job::JobPlace;
use crate::state::TreeId;
use crate::storage::codec::{self, MetadataRecord, ProfileRecord, RejectRecord};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::options::prefix_options;
use crate::storage::store::Store;
use crate::types::{BoardName, Sequence};

/// A compact JSON object, or none. An error: the store is ahead of the sequence that was asked for, and what
/// it has belongs to this one, or to one before it.
pub type ProfileAt = Result<Option<Box<str>>, Sequence>;

impl Store {
    /// The metadata of an entry, as of the last commit.
    pub fn metadata(&self, tree: TreeId, member: &[u8]) -> Result<Option<MetadataRecord>, StorageError> {
        let found = self.db.get_pinned_cf(self.log(), keys::metadata(tree, member));
        let found = found.map_err(|error| self.failed(error))?;
        found.map(|bytes| codec::decode_metadata(&bytes).map_err(|error| self.damaged(error))).transpose()
    }

    /// The profile of a member, as of the last commit.
    pub fn profile(&self, member: &[u8]) -> Result<Option<ProfileRecord>, StorageError> {
        let found = self.db.get_pinned_cf(self.log(), keys::profile(member));
        let found = found.map_err(|error| self.failed(error))?;
        found.map(|bytes| codec::decode_profile(&bytes).map_err(|error| self.damaged(error))).transpose()
    }

    /// The profile of a member as it was at a sequence.
    pub fn profile_at(&self, member: &[u8], at: Sequence) -> Result<ProfileAt, StorageError> {
        profile_at(self, |key| self.db.get_pinned_cf(self.log(), key), member, at)
    }

    /// Hands every profile to `each`, with its member, in the order of members.
    pub fn each_profile(&self, mut each: impl FnMut(&[u8], ProfileRecord)) -> Result<(), StorageError> {
        self.scan_log(&[keys::PROFILE], &[keys::PROFILE], |key, value| {
            each(keys::member_of(key).unwrap_or_default(), codec::decode_profile(value)?);
            Ok(())
        })
    }

    /// A snapshot of the store as it is now. Later commits do not change it.
    pub fn snapshot(&self) -> StoreSnapshot<'_> {
        StoreSnapshot { store: self, moment: self.db.snapshot() }
    }

    /// Rejects after this place, the oldest first.
    pub fn rejects_after(
        &self,
        place: (Sequence, u32),
        limit: usize,
    ) -> Result<Vec<RejectRecord>, StorageError> {
        let erasures = self.erasures()?;
        let stored = self.stored_rejects_after(place, limit)?;
        Ok(stored.into_iter().map(|reject| erasures.erased(reject).0).collect())
    }

    /// As [`Store::rejects_after`], with what is still to be erased of them.
    pub(in crate::storage) fn stored_rejects_after(
        &self,
        (sequence, index): (Sequence, u32),
        limit: usize,
    ) -> Result<Vec<RejectRecord>, StorageError> {
        let mut rejects = Vec::new();
        let mut iterator = self.db.raw_iterator_cf_opt(self.log(), prefix_options(&[keys::REJECT]));
        iterator.seek(keys::reject(sequence, index));
        while let (true, Some((key, value))) = (rejects.len() < limit, iterator.item()) {
            if let Some(place) = keys::place_in_stream(key)
                && place != (sequence, index)
            {
                let reject = codec::decode_reject(place.0, place.1, value);
                rejects.push(reject.map_err(|error| self.damaged(error))?);
            }
            iterator.next();
        }
        iterator.status().map_err(|error| self.failed(error))?;
        Ok(rejects)
    }

    /// The places of all rejects that are kept, the oldest first, and the board of each.
    pub fn reject_places(
        &self,
        mut each: impl FnMut(JobPlace, Option<BoardName>),
    ) -> Result<(), StorageError> {
        self.scan_log(&[keys::REJECT], &[keys::REJECT], |key, value| {
            if let Some(place) = keys::place_in_stream(key) {
                each(place, codec::board_of_reject(value));
            }
            Ok(())
        })
    }

    /// The place of the last reject that was published; zeros if none was.
    pub fn rejects_published(&self) -> Result<(Sequence, u32), StorageError> {
        let found = self.db.get_pinned_cf(self.log(), keys::rejects_published());
        let Some(bytes) = found.map_err(|error| self.failed(error))? else {
            return Ok((Sequence(0), 0));
        };
        codec::decode_place(&bytes).map_err(|error| self.damaged(error))
    }

    /// Stores the place of the last reject that was published. A power failure may undo that.
    pub fn note_rejects_published(&self, (sequence, index): (Sequence, u32)) -> Result<(), StorageError> {
        let mut batch = WriteBatch::default();
        batch.put_cf(self.log(), keys::rejects_published(), codec::encode_place(sequence, index));
        self.write(batch, false)
    }
}

/// A store at one moment: the last commit before it. Keeps old data from being compacted away, so it is
/// short-lived.
pub struct StoreSnapshot<'a> {
    store: &'a Store,
    moment: rocksdb::Snapshot<'a>,
}

impl StoreSnapshot<'_> {
    /// The metadata of an entry.
    pub fn metadata(&self, tree: TreeId, member: &[u8]) -> Result<Option<MetadataRecord>, StorageError> {
        let found = self.moment.get_pinned_cf(self.store.log(), keys::metadata(tree, member));
        found
            .map_err(|error| self.store.failed(error))?
            .map(|bytes| codec::decode_metadata(&bytes).map_err(|error| self.store.damaged(error)))
            .transpose()
    }

    /// As [`Store::profile_at`].
    pub fn profile_at(&self, member: &[u8], at: Sequence) -> Result<ProfileAt, StorageError> {
        let log = self.store.log();
        profile_at(self.store, |key| self.moment.get_pinned_cf(log, key), member, at)
    }
}

fn profile_at<'a>(
    store: &Store,
    get: impl Fn(&[u8]) -> Result<Option<DBPinnableSlice<'a>>, rocksdb::Error>,
    member: &[u8],
    at: Sequence,
) -> Result<ProfileAt, StorageError> {
    let get = |key: &[u8]| get(key).map_err(|error| store.failed(error));
    if let Some(bytes) = get(&keys::profile(member))? {
        let record = codec::decode_profile(&bytes).map_err(|error| store.damaged(error))?;
        let (since, json) = (Sequence(record.sequence), record.json);
        return Ok(if since <= at { Ok(json.map(Into::into)) } else { Err(since) });
    }
    // There is none, and there was none at the sequence, if none has been removed since. Read after the
    // profile, so that a removal in between is seen.
    let Some(bytes) = get(&keys::profile_removed(member))? else { return Ok(Ok(None)) };
    let removed =
        codec::decode_sequence("removal of a profile", &bytes).map_err(|error| store.damaged(error))?;
    Ok(if removed <= at { Ok(None) } else { Err(removed) })
}
