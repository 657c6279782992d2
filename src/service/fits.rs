//! Whether what lies in the places of a node's shards is what its data directory had there: before any is
//! loaded, and what each is from this start on.
//!
//! Knows: the settings that decide how strict that is. Must not know: what fits (`storage`), or how shards
//! are loaded.

use crate::config::ServeConfig;
use crate::storage::{
    DataMarker, Fit, ServiceId, ShardIdentity, StorageError, check_fit, next_identity, service_of_shards,
};
use crate::types::{ShardId, ShardSet};

/// Whether what lies in the places of shards is what the data directory had there.
pub struct Fits<'a> {
    pub config: &'a ServeConfig,
    /// What the data directory's marker says.
    pub marker: Option<&'a DataMarker>,
    /// Shards that have lost their data: what lies in their places is new.
    pub lost: &'a [ShardId],
}

impl Fits<'_> {
    fn of(&self, shard: ShardId) -> Fit {
        if self.config.adopt.contains(&shard.0) {
            Fit::Adopted
        } else if self.config.nats.is_some() {
            Fit::Streamed
        } else {
            Fit::Whole
        }
    }

    /// Refuses what lies in a shard's place and is not what was there.
    ///
    /// # Arguments
    /// `applied`: `None` if it was not read yet
    ///
    /// # Errors
    /// [`StorageError::DoesNotFit`].
    pub fn check(
        &self,
        shard: ShardId,
        found: ShardIdentity,
        applied: Option<u64>,
    ) -> Result<(), StorageError> {
        let marker = self.marker.filter(|_| !self.lost.contains(&shard));
        check_fit(&self.config.data_dir, shard, marker, found, applied, self.of(shard))
    }

    /// The service of the data. Where the data directory does not record it, it is that of all shards. A node
    /// without NATS is a service of its own from its first start on; with NATS, the streams say it.
    ///
    /// # Errors
    /// When the shards are of two services.
    pub fn service(&self, shards: &ShardSet) -> Result<Option<ServiceId>, StorageError> {
        let is_alone = self.config.nats.is_none();
        if let Some(known) = self.marker.and_then(|marker| marker.service) {
            return Ok(Some(known));
        }
        let fit = if is_alone { Fit::Whole } else { Fit::Streamed };
        let of_shards = service_of_shards(&self.config.data_dir, shards, fit)?;
        Ok(of_shards.or_else(|| is_alone.then(ServiceId::random)))
    }

    /// What a shard is from this opening on.
    pub fn next(&self, shard: ShardId, found: ShardIdentity, service: Option<ServiceId>) -> ShardIdentity {
        let marker = self.marker.filter(|_| !self.lost.contains(&shard));
        let next = next_identity(shard, marker, found, self.of(shard));
        if self.of(shard) == Fit::Adopted {
            tracing::warn!(%shard, "the shard's data are taken as they are, because of --adopt; remove it from the next start");
        }
        let is_recorded = marker.is_some_and(|marker| marker.shards.contains_key(&shard));
        if self.of(shard) == Fit::Streamed && is_recorded && next.lineage != found.lineage {
            tracing::warn!(%shard, "the shard's data are another copy than what the data directory had there; the stream shows whether it continues them");
        }
        ShardIdentity { service: service.or(next.service), ..next }
    }
}
