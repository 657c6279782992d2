//! Looks at a data directory before anything is made in it: whether a start with these settings takes it.
//!
//! A start and `config check` both ask here, so that they refuse the same, in the same words. A start refuses
//! more once it has read the shards (`opening`), and once it has asked the streams. Changes nothing. Must not
//! know: how shards are loaded.

use std::path::Path;

use crate::config::ServeConfig;
use crate::service::fits::{Fits, or_new_directory};
use crate::service::{ServiceError, layout};
use crate::storage::{
    DataLayout, DataMarker, StorageError, StorageResources, Store, check_marked, check_no_snapshot, has_lost,
    holds_a_database, known_data, shard_directory, shards_in,
};
use crate::types::{ShardId, ShardSet};

/// Only meta records are read.
const CACHE_BYTES: usize = 1 << 20;

/// What was found in a data directory.
pub struct Looked {
    /// What it has recorded of itself; `None` if it is new.
    pub marker: Option<DataMarker>,
    /// The shards that have lost their data, and may get a copy of another node's.
    pub lost: Vec<ShardId>,
}

/// Looks at the data directory of a start.
///
/// # Errors
/// When it is not one of these settings; without NATS also when a shard has lost its data.
pub fn look_at(config: &ServeConfig, layout: &DataLayout) -> Result<Looked, ServiceError> {
    check_no_snapshot(&config.data_dir).map_err(ServiceError::DataDirectory)?;
    let marker = known_data(&config.data_dir).map_err(ServiceError::DataDirectory)?;
    let lost = check_layout(config, layout, marker.as_ref())?;
    let fits = Fits { config, marker: marker.as_ref(), lost: &lost, streams: None };
    let fit = fits.check_prefix(&layout.own).and_then(|()| fits.service(&layout.own).map(drop));
    fit.map_err(ServiceError::DataDirectory)?;
    Ok(Looked { marker, lost })
}

/// All that a start would refuse about the data directory of these settings, as far as it can be told without
/// NATS, and while a service may have it open. Otherwise what an operator may not have meant: [`changes`].
///
/// # Errors
/// The first reason.
pub fn check_data(config: &ServeConfig) -> Result<Vec<String>, ServiceError> {
    check_no_snapshot(&config.data_dir).map_err(ServiceError::DataDirectory)?;
    let marker = known_data(&config.data_dir).map_err(ServiceError::DataDirectory)?;
    let recorded = marker.map(|marker| marker.layout.shards);
    let found = match recorded {
        Some(recorded) => recorded,
        None => shards_in(&config.data_dir).map_err(ServiceError::DataDirectory)?,
    };
    if found == 0 {
        return Ok(Vec::new());
    }
    let layout = layout::of(config, layout::told(config, recorded).unwrap_or(found))?;
    let Looked { marker, lost } = match look_at(config, &layout) {
        // A service that runs has taken what is there.
        Err(ServiceError::Shard { error: StorageError::InUse(_), .. }) => return Ok(Vec::new()),
        looked => looked?,
    };
    let fits = Fits { config, marker: marker.as_ref(), lost: &lost, streams: None };
    layout.own.iter().try_for_each(|shard| {
        fits.check_on_disk(shard).map_err(|error| ServiceError::Shard { shard, error })
    })?;
    Ok(changes(&config.data_dir, &layout, marker.as_ref().map(|marker| &marker.layout)))
}

/// Refuses a data directory of another number of shards, or one that lost a shard: an empty shard beside full
/// ones would look like a shard that was never written to. With NATS, another node may have a copy of a lost
/// shard; the shards that are lost are returned then.
///
/// # Arguments
/// `marker`: what the data directory says that it has, if it does.
fn check_layout(
    config: &ServeConfig,
    layout: &DataLayout,
    marker: Option<&DataMarker>,
) -> Result<Vec<ShardId>, ServiceError> {
    let known = marker.map(|marker| &marker.layout);
    // Without a record, as of a copy that is half done, more shards than there are to be say as much.
    let beyond = || shards_in(&config.data_dir).map(|found| found.max(layout.shards));
    let found = known.map_or_else(beyond, |known| Ok(known.shards)).map_err(ServiceError::DataDirectory)?;
    if found != layout.shards {
        let (path, wanted) = (config.data_dir.clone(), layout.shards);
        let or_new = or_new_directory(&path, marker);
        let step = format!("start with --shards {found}{or_new}");
        let error = StorageError::OtherShards { path, found, wanted, step: step.into() };
        return Err(ServiceError::DataDirectory(error));
    }
    // A shard that is new here begins empty, and is filled from its stream. Without NATS nothing would fill
    // it.
    let is_new = |shard| config.nats.is_some() && known.is_some_and(|known| !known.own.contains(shard));
    let (mut empty, mut held) = (Vec::new(), Vec::new());
    for shard in layout.own.iter() {
        let path = shard_directory(&config.data_dir, shard);
        let failed = |error| ServiceError::Shard { shard, error };
        if has_lost(&config.data_dir, shard).map_err(failed)? {
            empty.push((shard, path));
        } else if holds_a_database(&path).map_err(failed)? {
            check_marked(&config.data_dir, shard).map_err(failed)?;
            let in_service = Store::was_in_service(&path, shard, layout.shards).map_err(failed)?;
            held.push((shard, path, in_service));
        } else if !is_new(shard) {
            empty.push((shard, path));
        }
    }
    let Some((_, first)) = empty.first() else { return Ok(Vec::new()) };
    let missing = || match &config.nats {
        Some(_) => Ok(empty.iter().map(|(shard, _)| *shard).collect()),
        // The shards that are not here may be other nodes'.
        None => Err(match marker.and_then(|marker| marker.prefix.clone()) {
            Some(prefix) => ServiceError::WithoutNats {
                path: config.data_dir.clone(),
                prefix,
                own: known.map_or_else(String::new, |known| known.own.to_string()),
            },
            None => ServiceError::MissingShard(first.clone()),
        }),
    };
    if known.is_some() {
        return missing();
    }
    for (shard, path, in_service) in held {
        let holds_data = match in_service {
            Some(in_service) => in_service,
            // A crash may have interrupted the first start between two directories. Nothing is written before
            // all of them exist.
            None => {
                Store::open_for_reading(&path, shard, layout.shards, &StorageResources::new(CACHE_BYTES, 1))
                    .and_then(|store| store.meta())
                    .map_err(|error| ServiceError::Shard { shard, error })?
                    .is_some_and(|meta| meta.applied_sequence > 0)
            }
        };
        if holds_data {
            return missing();
        }
    }
    Ok(Vec::new())
}

/// In which shards these settings differ from the last start's: those that are owned now and were not, and
/// those of which the directory has data that are not owned. A sentence each.
pub fn changes(data_dir: &Path, layout: &DataLayout, known: Option<&DataLayout>) -> Vec<String> {
    let Some(known) = known else { return Vec::new() };
    let more: ShardSet = layout.own.iter().filter(|shard| !known.own.contains(*shard)).collect();
    let left = (0..layout.shards).map(ShardId).filter(|shard| !layout.own.contains(*shard));
    let holds = |shard: &ShardId| holds_a_database(&shard_directory(data_dir, *shard)).unwrap_or(false);
    let left: ShardSet = left.filter(holds).collect();
    let more = (!more.is_empty()).then(|| {
        format!("this node owns shards that it did not own at its last start: {more}; without data here they begin empty")
    });
    let left = (!left.is_empty()).then(|| {
        format!(
            "the data directory has shards that this node does not own: {left}; they stay as they are, and are \
             taken up again if the node owns them again. Remove their directories if it will not"
        )
    });
    more.into_iter().chain(left).collect()
}
