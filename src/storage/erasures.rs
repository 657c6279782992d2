//! Erases what stored rejects have of members that were removed from every board.
//!
//! Knows: that the erasure is noted in the same write batch as the removal, that from then on no reader is
//! given what is to be erased, and that the rejects themselves are rewritten a slice at a time: there may be
//! a hundred thousand. Where rejects are published, the erasure stays noted until the stream of rejects has
//! none of them either. Must not know: who removed a member, or how the stream is erased.

use std::collections::BTreeMap;

use rocksdb::WriteBatch;

use crate::job::JobPlace;
use crate::storage::codec::{self, RejectRecord, undecodable};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::Store;
use crate::types::{MemberId, Sequence};
use crate::wire::members_named;

/// What an erased reject has in place of its job.
const ERASED_JOB: &[u8] = br#"{"erased":true}"#;
/// And in place of its detail.
const ERASED_DETAIL: &str = "its member was removed from every board, and what the job had of it was erased";

/// Members whose rejects are to be erased: those that come before the job which removed the
/// member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erasures(BTreeMap<MemberId, JobPlace>);

impl Erasures {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of both.
    pub fn and(mut self, others: Self) -> Self {
        for (member, removal) in others.0 {
            let known = self.0.entry(member).or_insert(removal);
            *known = removal.max(*known);
        }
        self
    }

    /// A reject as readers may see it, and whether that differs from what is stored.
    pub fn erased(&self, reject: RejectRecord) -> (RejectRecord, bool) {
        // Usually there is none.
        let place = (reject.sequence, reject.index);
        if self.is_empty() || reject.job == ERASED_JOB || !self.concern(&reject.job, Some(place)) {
            return (reject, false);
        }
        let (detail, job) = (ERASED_DETAIL.to_owned(), ERASED_JOB.to_vec());
        (RejectRecord { detail, job, ..reject }, true)
    }
}

impl Erasures {
    /// Whether a rejected job is of such a member, or may be.
    ///
    /// # Arguments
    /// `place`: `None` if it came before all of the shard's messages.
    pub fn concern(&self, job: &[u8], place: Option<JobPlace>) -> bool {
        let comes_before = |removal: &JobPlace| place.is_none_or(|place| place < *removal);
        let members = members_named(job);
        members.iter().filter_map(|name| self.0.get(&MemberId::new(name).ok()?)).any(comes_before)
    }
}

/// How far the erasure of stored rejects is.
#[derive(Debug)]
pub struct EraseRejects {
    /// The erasures that there were when it began. Those noted since get a walk of their own.
    erasures: Erasures,
    /// The rejects up to this one are dealt with.
    through: JobPlace,
}

impl Store {
    /// The erasures that are not complete, as of the last commit.
    pub fn erasures(&self) -> Result<Erasures, StorageError> {
        self.noted_erasures(keys::ERASURE)
    }

    /// Those that the stream of rejects still lacks.
    pub fn erasures_in_stream(&self) -> Result<Erasures, StorageError> {
        self.noted_erasures(keys::ERASURE_IN_STREAM)
    }

    /// Notes that the stream of rejects has none of what these are about, unless they were noted anew.
    pub fn note_erased_in_stream(&self, done: &Erasures) -> Result<(), StorageError> {
        let now = self.erasures_in_stream()?;
        let mut batch = WriteBatch::default();
        for (member, _) in done.0.iter().filter(|(member, removal)| now.0.get(*member) == Some(removal)) {
            batch.delete_cf(self.log(), keys::erasure_in_stream(member.as_bytes()));
        }
        self.write(batch, false)
    }

    fn noted_erasures(&self, kind: u8) -> Result<Erasures, StorageError> {
        let mut erasures = Erasures::default();
        self.scan_log(&[kind], &[kind], |key, value| {
            let member = keys::member_of(key).and_then(|member| std::str::from_utf8(member).ok());
            let member = MemberId::new(member.unwrap_or_default());
            let member = member.map_err(|error| undecodable("erasure", error))?;
            erasures.0.insert(member, codec::decode_place(value)?);
            Ok(())
        })?;
        Ok(erasures)
    }

    pub(super) fn put_erasures(&self, batch: &mut WriteBatch, erased: &[(MemberId, JobPlace)]) {
        for (member, (sequence, index)) in erased {
            batch.put_cf(
                self.log(),
                keys::erasure(member.as_bytes()),
                codec::encode_place(*sequence, *index),
            );
        }
    }

    /// Begins to erase what is to be erased. `None`: nothing is.
    pub fn begin_erasing(&self) -> Result<Option<EraseRejects>, StorageError> {
        let erasures = self.erasures()?;
        Ok((!erasures.is_empty()).then_some(EraseRejects { erasures, through: (Sequence(0), 0) }))
    }

    /// Rewrites up to `limit` rejects. `None`: that was the last of them, and nothing is left to be erased of
    /// what was to be when it began.
    ///
    /// # Arguments
    /// `are_published`: whether they are to be erased in the stream of rejects, too.
    ///
    /// # Errors
    /// When the disk cannot be read or written.
    pub fn erase_some(
        &self,
        erasing: EraseRejects,
        limit: usize,
        are_published: bool,
        sync: bool,
    ) -> Result<Option<EraseRejects>, StorageError> {
        let EraseRejects { erasures, through } = erasing;
        let mut batch = WriteBatch::default();
        let stored = self.stored_rejects_after(through, limit)?;
        let last = stored.last().map(|reject| (reject.sequence, reject.index));
        let more = stored.len() == limit;
        for reject in stored {
            let (reject, differs) = erasures.erased(reject);
            if differs {
                let key = keys::reject(reject.sequence, reject.index);
                batch.put_cf(self.log(), key, codec::encode_reject(&reject));
            }
        }
        if more {
            self.write(batch, sync)?;
            return Ok(last.map(|through| EraseRejects { erasures, through }));
        }
        // One that was noted again meanwhile may be of rejects that this walk has passed.
        let now = self.erasures()?;
        for (member, removal) in &erasures.0 {
            if now.0.get(member) == Some(removal) {
                batch.delete_cf(self.log(), keys::erasure(member.as_bytes()));
                if are_published {
                    let (key, (sequence, index)) = (keys::erasure_in_stream(member.as_bytes()), *removal);
                    batch.put_cf(self.log(), key, codec::encode_place(sequence, index));
                }
            }
        }
        self.write(batch, sync)?;
        Ok(None)
    }
}
