//! Commits a drained batch in one RocksDB write batch: delta, rejects, metadata, profiles, parked jobs and
//! the applied sequence.
//!
//! Knows: what belongs to a commit. Must not know: how a batch is planned.

use rocksdb::WriteBatch;

use crate::job::JobPlace;
use crate::state::{Applied, BanChange, JobIdChange, LastJobChange, MemberVersionChange, ShardTime, TreeId};
use crate::storage::codec::{
    self, FORMAT_VERSION, Meta, MetadataRecord, ParkedRecord, ProfileRecord, RejectRecord,
};
use crate::storage::error::StorageError;
use crate::storage::identity::ShardIdentity;
use crate::storage::keys;
use crate::storage::store::{HashCommit, Store};
use crate::types::{MemberId, Sequence, Timestamp};

/// Bytes of a write batch beside its delta, if the batch brings nothing but changes.
const ROOM_BESIDE_DELTA: usize = 512;

/// Everything that a batch writes to disk.
#[derive(Debug, Default)]
pub struct Commit {
    pub applied: Applied,
    /// What is known of the time after the batch.
    pub time: ShardTime,
    /// The encoded delta; see [`codec::DeltaEncoder`].
    pub delta: Vec<u8>,
    pub rejects: Vec<RejectRecord>,
    /// New metadata of entries, by tree and member; `None` if it is removed.
    pub metadata: Vec<(TreeId, Vec<u8>, Option<MetadataRecord>)>,
    /// Trees whose metadata is removed as a whole.
    pub dropped_trees: Vec<TreeId>,
    /// New profiles, by member; `None` if nothing is left of one.
    pub profiles: Vec<(Vec<u8>, Option<ProfileRecord>)>,
    /// Bans that begin or end, in their order.
    pub bans: Vec<BanChange>,
    /// Versions of members that are remembered or forgotten, in their order.
    pub versions: Vec<MemberVersionChange>,
    /// The last jobs of boards that end after a quiet time.
    pub last_jobs: Vec<LastJobChange>,
    /// Ids of jobs that are kept or forgotten.
    pub job_ids: Vec<JobIdChange>,
    /// Members whose rejects before a job are to be erased.
    pub erased: Vec<(MemberId, JobPlace)>,
    /// Parked jobs, and the line of each.
    pub parked: Vec<(u32, ParkedRecord)>,
    /// Unparked jobs: line, sequence and index.
    pub unparked: Vec<(u32, Sequence, u32)>,
    /// Identity of the queue that the sequences belong to; empty for the embedded one.
    pub stream: String,
    /// Jobs rejected since the shard was created, these included.
    pub jobs_rejected: u64,
    /// Rejects that are deleted, as newer ones take their room.
    pub rejects_dropped: Vec<JobPlace>,
    /// The hash of the log at the applied sequence; `None` where no other replica could compare it.
    pub hashes: Option<HashCommit>,
}

impl Store {
    /// Writes a batch, whole or not at all. With `sync`, it survives a power failure once this returns.
    ///
    /// # Errors
    /// When the disk refuses. Whether the batch is on disk is then unknown, and nothing more may be written
    /// until the store is reopened.
    pub fn commit(&self, commit: &Commit, sync: bool) -> Result<(), StorageError> {
        let log = self.log();
        // Room for the delta, its key and the meta record: growing would copy all of it.
        let mut batch = WriteBatch::with_capacity_bytes(commit.delta.len() + ROOM_BESIDE_DELTA);
        batch.put_cf(log, keys::delta(commit.applied.sequence), &commit.delta);
        for reject in &commit.rejects {
            batch.put_cf(log, keys::reject(reject.sequence, reject.index), codec::encode_reject(reject));
        }
        for tree in &commit.dropped_trees {
            let prefix = keys::of_tree(keys::METADATA, *tree);
            batch.delete_range_cf(log, prefix.to_vec(), keys::after(&prefix));
        }
        for (tree, member, record) in &commit.metadata {
            let key = keys::metadata(*tree, member);
            match record {
                Some(record) => batch.put_cf(log, key, codec::encode_metadata(record)),
                None => batch.delete_cf(log, key),
            }
        }
        for (member, record) in &commit.profiles {
            let key = keys::profile(member);
            if let Some(record) = record {
                batch.put_cf(log, key, codec::encode_profile(record));
            } else {
                batch.delete_cf(log, key);
                // A reader that is not so far must not take it that the member never had one.
                let removed = codec::encode_sequence(commit.applied.sequence);
                batch.put_cf(log, keys::profile_removed(member), removed);
            }
        }
        self.put_erasures(&mut batch, &commit.erased);
        self.put_member_records(&mut batch, &commit.bans, &commit.versions);
        self.put_last_jobs(&mut batch, &commit.last_jobs);
        self.put_job_ids(&mut batch, &commit.job_ids);
        for (line, parked) in &commit.parked {
            let key = keys::parked_in_line(*line, parked.sequence, parked.index);
            batch.put_cf(log, key, codec::encode_parked(parked));
        }
        // The deletions come after the puts, because a job may be parked and unparked within one batch.
        for (line, sequence, index) in &commit.unparked {
            batch.delete_cf(log, keys::parked_in_line(*line, *sequence, *index));
        }
        for (sequence, index) in &commit.rejects_dropped {
            batch.delete_cf(log, keys::reject(*sequence, *index));
        }
        if let Some(hashes) = &commit.hashes {
            self.put_hashes(&mut batch, commit.applied.sequence, hashes);
        }
        let ShardTime { effective, leap } = commit.time;
        // Without a leap, no message is later than the effective time.
        let effective = if leap.is_some() { effective } else { effective.max(commit.applied.timestamp) };
        let meta = Meta {
            format_version: FORMAT_VERSION,
            shard: self.shard().0,
            shards: self.shards(),
            applied_sequence: commit.applied.sequence.0,
            message_timestamp_micros: commit.applied.timestamp.as_micros(),
            message_hash: commit.applied.hash,
            time_micros: effective.as_micros(),
            leap_micros: leap.map(Timestamp::as_micros),
            jobs_rejected: commit.jobs_rejected,
            stream: commit.stream.clone(),
            identity: self.identity(),
        };
        // The applied sequence is in the same write batch as its effects: a crash keeps both or neither.
        batch.put_cf(log, keys::meta(), codec::encode_meta(&meta));
        self.write_up_to(batch, sync, commit.applied.sequence)
    }

    /// Stores that messages after the applied sequence come from another queue. Once this returns, that and
    /// everything before it survives a power failure. What was applied from another stream, and is continued
    /// from this one, is another line of history from here on.
    pub fn store_origin(&self, stream: &str) -> Result<(), StorageError> {
        let meta = self.meta()?.ok_or_else(|| self.damaged("its meta record is missing"))?;
        // Behind the identity of a stream is how its sequences are counted.
        let identity_of = |stream: &str| stream.split('+').next().unwrap_or_default().to_owned();
        let is_continued = identity_of(&meta.stream) == identity_of(stream);
        let identity = if meta.applied_sequence == 0 || is_continued {
            self.identity()
        } else {
            ShardIdentity::begin(self.identity().service)
        };
        self.put_meta(Meta { stream: stream.to_owned(), ..meta }, identity)?;
        self.mark_filled_from_stream()
    }

    /// Stores what the shard is, first in the meta record and then in its marker; synced once this returns.
    pub fn put_identity(&self, identity: ShardIdentity) -> Result<(), StorageError> {
        let meta = self.meta()?.ok_or_else(|| self.damaged("its meta record is missing"))?;
        self.put_meta(meta, identity)
    }

    fn put_meta(&self, meta: Meta, identity: ShardIdentity) -> Result<(), StorageError> {
        let mut batch = WriteBatch::default();
        batch.put_cf(self.log(), keys::meta(), codec::encode_meta(&Meta { identity, ..meta }));
        self.write(batch, true)?;
        self.set_identity(identity)
    }
}
