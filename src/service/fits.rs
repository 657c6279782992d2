//! Whether what lies in the places of a node's shards is what its data directory had there, and was filled
//! from where this start has its jobs from: the embedded queue, or the streams of one service under one
//! prefix. Also what each shard is from this start on.
//!
//! Knows: the settings that decide how strict that is. Must not know: what a shard's identity must be
//! (`storage`), or how shards are loaded.

use std::path::Path;

use crate::config::ServeConfig;
use crate::queue::nats;
use crate::storage::codec::Meta;
use crate::storage::{
    DataMarker, FilledFrom, Fit, ServiceId, ShardIdentity, StorageError, StorageResources, Store, check_fit,
    check_fit_on_disk, filled_from, is_unbound, next_identity, service_of_shards, shard_directory,
};
use crate::types::{ShardId, ShardSet};

/// Whether what lies in the places of shards is what the data directory had there.
pub struct Fits<'a> {
    pub config: &'a ServeConfig,
    /// What the data directory's marker says.
    pub marker: Option<&'a DataMarker>,
    /// Shards that have lost their data: what lies in their places is new.
    pub lost: &'a [ShardId],
    /// The service of the streams, if they were asked and say it.
    pub streams: Option<ServiceId>,
}

/// Only meta records are read.
const CACHE_BYTES: usize = 1 << 20;

impl Fits<'_> {
    /// Refuses the data directory of streams under another prefix. With `--accept-gap` for each of its
    /// shards the operator moves it.
    ///
    /// # Errors
    /// [`StorageError::DoesNotFit`].
    pub fn check_prefix(&self, own: &ShardSet) -> Result<(), StorageError> {
        let Some(settings) = &self.config.nats else { return Ok(()) };
        let recorded = self.marker.and_then(|marker| marker.prefix.as_ref());
        let Some(recorded) = recorded.filter(|recorded| **recorded != settings.prefix) else { return Ok(()) };
        let is_moved = !own.is_empty() && own.iter().all(|shard| accepts_gap(settings, shard));
        if is_moved {
            return Ok(());
        }
        let path = &self.config.data_dir;
        Err(other_prefix(path, recorded, settings, &or_new_directory(path, self.marker)))
    }

    /// Refuses a shard that was filled from elsewhere. Called when it was read and nothing was written.
    ///
    /// # Errors
    /// [`StorageError::DoesNotFit`].
    pub fn check_source(&self, shard: ShardId, meta: &Meta) -> Result<(), StorageError> {
        let path = shard_directory(&self.config.data_dir, shard);
        let Meta { applied_sequence: applied, stream: origin, identity, .. } = meta;
        let Some(settings) = &self.config.nats else {
            let stream = nats::Names::stream_of(origin);
            return if stream.is_empty() { Ok(()) } else { Err(filled_from_stream(&path, stream)) };
        };
        if *applied == 0 {
            return Ok(());
        }
        if origin.is_empty() {
            return Err(filled_without_nats(&path, &self.config.data_dir));
        }
        let prefix = nats::Names::prefix_of(origin, shard);
        // A directory that was set up with these streams already may be on its way to them.
        let is_ours = self.marker.is_some_and(|marker| marker.prefix.as_ref() == Some(&settings.prefix))
            || nats::Names::new(&settings.prefix).is_jobs_stream(origin, shard);
        if let Some(prefix) = prefix.filter(|_| !is_ours && !accepts_gap(settings, shard)) {
            return Err(other_prefix(&path, &prefix, settings, ""));
        }
        match identity.service.zip(self.streams) {
            Some((own, theirs)) if own != theirs && is_unbound(origin) => Err(StorageError::DoesNotFit {
                path,
                what: format!(
                    "the data were restored to be bound to new streams, and {} were made for another service, \
                     {theirs}: a node with an empty data directory was started before this one",
                    under(&settings.prefix)
                )
                .into(),
                step: "Stop all nodes, delete these streams (nats stream rm), move the data directories of the \
                       other nodes away, and start this node first"
                    .into(),
            }),
            Some((own, theirs)) if own != theirs => Err(StorageError::DoesNotFit {
                path,
                what: nats::of_another_service(own, &under(&settings.prefix), theirs).into(),
                step: nats::STEP_TO_OWN_SERVICE.into(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// All that a start refuses about a shard that may be open in a service: by what its marker says, and
    /// where that is less than is needed by its data, unless they are in use: a service that runs has taken
    /// them.
    ///
    /// # Errors
    /// [`StorageError::DoesNotFit`], and when the shard cannot be read.
    pub fn check_on_disk(&self, shard: ShardId) -> Result<(), StorageError> {
        let data_dir = &self.config.data_dir;
        let path = shard_directory(data_dir, shard);
        if self.lost.contains(&shard) {
            return Ok(());
        }
        let fit = self.of(shard);
        let fits =
            if fit == Fit::Adopted { Ok(()) } else { check_fit_on_disk(data_dir, shard, self.marker, fit) };
        unless_in_use(fits)?;
        match (filled_from(data_dir, shard)?, &self.config.nats) {
            (FilledFrom::EmbeddedQueue, Some(_)) => return Err(filled_without_nats(&path, data_dir)),
            (FilledFrom::Stream, None) => {
                let recorded = self.marker.and_then(|marker| marker.prefix.as_ref());
                let stream = recorded.map(|prefix| nats::Names::new(prefix).jobs_stream(shard));
                return Err(filled_from_stream(&path, &stream.unwrap_or_else(|| "of NATS".to_owned())));
            }
            // The data directory was set up with these very streams.
            (FilledFrom::Stream, Some(_)) if self.marker.is_some_and(|marker| marker.prefix.is_some()) => {}
            (FilledFrom::Stream, Some(_)) => {
                let shards =
                    self.marker.map_or(self.config.shards.unwrap_or(1), |marker| marker.layout.shards);
                let resources = StorageResources::new(CACHE_BYTES, 1);
                let read = Store::open_for_reading(&path, shard, shards, &resources);
                unless_in_use(
                    read.and_then(|store| store.meta())
                        .and_then(|meta| meta.map_or(Ok(()), |meta| self.check_source(shard, &meta))),
                )?;
            }
            (FilledFrom::EmbeddedQueue, None) | (FilledFrom::Unknown, _) => {}
        }
        Ok(())
    }

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
            tracing::warn!(%shard, "the shard's data are taken as they are, because of --adopt: what was written since is lost, and a board that was dropped since is there again on this shard; remove the flag from the next start, and look at /v1/boards");
        }
        let is_recorded = marker.is_some_and(|marker| marker.shards.contains_key(&shard));
        if self.of(shard) == Fit::Streamed && is_recorded && next.lineage != found.lineage {
            tracing::warn!(%shard, "the shard's data are another copy than what the data directory had there; the stream shows whether it continues them");
        }
        ShardIdentity { service: service.or(next.service), ..next }
    }
}

/// The way out of a directory where no job was ever applied, as after a first start whose settings were
/// wrong. Empty if it holds more, or that cannot be found out.
pub fn or_new_directory(data_dir: &Path, marker: Option<&DataMarker>) -> String {
    let holds_nothing = |marker: &DataMarker| {
        let is_empty = |shard| {
            let (path, resources) = (shard_directory(data_dir, shard), StorageResources::new(CACHE_BYTES, 1));
            let read = Store::open_for_reading(&path, shard, marker.layout.shards, &resources);
            let meta = read.and_then(|store| store.meta());
            meta.is_ok_and(|meta| meta.is_none_or(|meta| meta.applied_sequence == 0))
        };
        marker.shards.values().all(|recorded| recorded.floor == 0) && marker.layout.own.iter().all(is_empty)
    };
    if !marker.is_some_and(holds_nothing) {
        return String::new();
    }
    format!("; or, as no job was ever applied in it, remove {} and start again", data_dir.display())
}

fn under(prefix: &str) -> String {
    format!("the streams under the prefix {prefix}")
}

fn accepts_gap(settings: &nats::Settings, shard: ShardId) -> bool {
    settings.accept_gap.contains(&shard.0)
}

fn unless_in_use(checked: Result<(), StorageError>) -> Result<(), StorageError> {
    match checked {
        Err(StorageError::InUse(_)) => Ok(()),
        checked => checked,
    }
}

fn other_prefix(path: &Path, recorded: &str, settings: &nats::Settings, or: &str) -> StorageError {
    let given = &settings.prefix;
    StorageError::DoesNotFit {
        path: path.to_owned(),
        what: format!("it is filled from the streams under the prefix {recorded}, and --prefix is {given}")
            .into(),
        step: format!(
            "Start with --prefix {recorded}; a service under {given} needs a --data-dir of its own{or}"
        )
        .into(),
    }
}

fn filled_without_nats(path: &Path, data_dir: &Path) -> StorageError {
    StorageError::DoesNotFit {
        path: path.to_owned(),
        what: "it was filled without NATS, so no stream can continue it".into(),
        step: format!(
            "Start with a new --data-dir, and copy the boards with ranktree export --data-dir {} and ranktree import",
            data_dir.display()
        )
        .into(),
    }
}

fn filled_from_stream(path: &Path, stream: &str) -> StorageError {
    StorageError::DoesNotFit {
        path: path.to_owned(),
        what: format!(
            "it was filled from the stream {stream}, and --nats is not set: writes without NATS would be in no \
             stream, so that no stream could continue it afterwards"
        )
        .into(),
        step: "Start with --nats".into(),
    }
}
