//! Stored rejects of several shards in one order, newest first, a page at a time.
//!
//! Knows: the order of rejects, and the place of each shard's next one. So a page continues where the one
//! before ended, even if more jobs were rejected in the meantime. Must not know: who asks, or how a reject is
//! shown.
//!
//! The order: the later time first; of the same time, the lower shard first; within a shard the later place
//! in its queue first. Times never decrease along a shard's queue, so a merge of the shards' newest rejects
//! gives that order.

use std::borrow::Borrow;
use std::cmp::Reverse;

use rocksdb::{DB, DBRawIteratorWithThreadMode, ReadOptions};
use thiserror::Error;

use crate::job::JobPlace;
use crate::storage::codec::{self, RejectRecord};
use crate::storage::erasures::Erasures;
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::Store;
use crate::types::{Sequence, ShardId, Timestamp};

/// Where a page ended: for each of its shards, the place before which the next reject is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectsBefore(pub Vec<(ShardId, JobPlace)>);

/// The limits of a page.
#[derive(Debug, Clone, Copy)]
pub struct RejectsLimits {
    /// Rejects that it holds.
    pub rejects: usize,
    /// Rejects that are read for the page, whether or not the page has them.
    pub read: usize,
    /// Bytes of the page's rejects as they are shown. The last reject may exceed this limit.
    pub bytes: usize,
}

/// A shard whose rejects cannot be read.
#[derive(Debug, Error)]
#[error("the rejects of shard {shard} cannot be read: {error}")]
pub struct UnreadableRejects {
    pub shard: ShardId,
    pub error: StorageError,
}

/// Reads a page of rejects of these stores, one for each shard.
///
/// # Arguments
/// `before`: where the page before ended; `None` for the first one. A shard that it does not name has no more
/// rejects. `visit`: is called with each reject in order. Returns the bytes that it takes, or `None` if the
/// page does not want it.
///
/// Returns where the next page begins; `None` if this is the last one. A page that reached its limit of reads
/// can be short or empty, although another page follows.
///
/// # Errors
/// When a disk cannot be read.
pub fn page_of_rejects<S: Borrow<Store>>(
    stores: &[S],
    before: Option<&RejectsBefore>,
    limits: RejectsLimits,
    mut visit: impl FnMut(ShardId, &RejectRecord) -> Option<usize>,
) -> Result<Option<RejectsBefore>, UnreadableRejects> {
    let mut shards = Vec::with_capacity(stores.len());
    for store in stores {
        let store = store.borrow();
        let bound = match before {
            None => None,
            Some(RejectsBefore(places)) => {
                let known = places.iter().find(|(shard, _)| *shard == store.shard());
                Some(known.map_or((Sequence(0), 0), |(_, place)| *place))
            }
        };
        let shard = NewestFirst::new(store, bound);
        shards.push(shard.map_err(|error| UnreadableRejects { shard: store.shard(), error })?);
    }
    let (mut read, mut taken, mut bytes) = (0, 0, 0_usize);
    loop {
        let newest = shards.iter_mut().filter(|shard| shard.head.is_some()).max_by_key(|shard| shard.order());
        let Some(newest) = newest else { return Ok(None) };
        if taken == limits.rejects || read >= limits.read || bytes >= limits.bytes {
            break;
        }
        let shard = newest.store.shard();
        let Some(reject) = newest.take().map_err(|error| UnreadableRejects { shard, error })? else { break };
        read += 1;
        if let Some(takes) = visit(shard, &reject) {
            taken += 1;
            bytes = bytes.saturating_add(takes);
        }
    }
    Ok(Some(RejectsBefore(shards.iter().map(|shard| (shard.store.shard(), shard.next_before())).collect())))
}

/// A shard's rejects, the newest first. The iterator reads the store as it is when this is created.
struct NewestFirst<'a> {
    store: &'a Store,
    iterator: DBRawIteratorWithThreadMode<'a, DB>,
    /// What is to be erased of them.
    erasures: Erasures,
    /// The next one.
    head: Option<RejectRecord>,
}

impl<'a> NewestFirst<'a> {
    /// # Arguments
    /// `bound`: only those before this place.
    fn new(store: &'a Store, bound: Option<JobPlace>) -> Result<Self, StorageError> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound([keys::REJECT]);
        let end = match bound {
            None => keys::after(&[keys::REJECT]),
            Some((sequence, index)) => keys::reject(sequence, index).to_vec(),
        };
        options.set_iterate_upper_bound(end);
        // Reading rejects must not evict blocks that other readers need from the cache.
        options.fill_cache(false);
        // Before and after the iterator is made: an erasure may begin meanwhile, and another be completed,
        // and forgotten.
        let before = store.erasures()?;
        let mut iterator = store.db().raw_iterator_cf_opt(store.log(), options);
        iterator.seek_to_last();
        let erasures = store.erasures()?.and(before);
        let mut shard = Self { store, iterator, erasures, head: None };
        shard.head = shard.read()?;
        Ok(shard)
    }

    fn read(&self) -> Result<Option<RejectRecord>, StorageError> {
        let Some((key, value)) = self.iterator.item() else {
            // An iterator over a damaged file just ends; only its status shows the error.
            return self.iterator.status().map(|()| None).map_err(|error| self.store.failed(error));
        };
        let place = keys::place_in_stream(key)
            .ok_or_else(|| self.store.damaged("the key of a reject holds no sequence"))?;
        let reject = codec::decode_reject(place.0, place.1, value);
        let reject = reject.map_err(|error| self.store.damaged(error))?;
        Ok(Some(self.erasures.erased(reject).0))
    }

    fn take(&mut self) -> Result<Option<RejectRecord>, StorageError> {
        let taken = self.head.take();
        if taken.is_some() {
            self.iterator.prev();
            self.head = self.read()?;
        }
        Ok(taken)
    }

    /// The greatest comes first.
    fn order(&self) -> (Option<Timestamp>, Reverse<ShardId>) {
        (self.head.as_ref().map(|reject| reject.time), Reverse(self.store.shard()))
    }

    /// The place before which the next page begins.
    fn next_before(&self) -> JobPlace {
        match &self.head {
            Some(RejectRecord { sequence, index, .. }) => (*sequence, index.saturating_add(1)),
            None => (Sequence(0), 0),
        }
    }
}
