//! Loads the shards of a data directory into memory, before anything is served.
//!
//! Knows: which shards have been in service, so that one that is lost is noticed, and how loading is stopped
//! early. Must not know: how a shard is loaded (`storage`), or how it is used afterwards.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::ServeConfig;
use crate::service::ServiceError;
use crate::service::directory::{Looked, changes, look_at};
use crate::service::fits::Fits;
use crate::state_lock::StateLock;
use crate::storage::{
    DataLayout, InspectedDirectory, Recovered, Reopened, ServiceId, ShardIdentity, StorageError,
    StorageResources, Store, StoreSlot, TreesFrom, make_private_directory, mark_layout, mark_rebuilt,
    recover, remove_in_place_of_lost, shard_directory,
};
use crate::types::ShardId;
use crate::writer::{Health, HealthFacts};

/// How often a long start logs how far it is.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// How long loading may take to stop after a signal. RocksDB cannot be stopped while it reads its log. Ending
/// the process then is no worse than a crash.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A shard that was loaded and is not running yet.
pub struct OpenedShard {
    pub id: ShardId,
    pub store: Arc<StoreSlot>,
    pub state: Arc<StateLock>,
    pub health: Arc<Health>,
    /// Deltas that were replayed after the last checkpoint, and changes in them.
    pub replayed: u64,
    /// Its directory was missing or empty although it held data. It stays empty until it gets a copy of
    /// another node's data.
    pub is_lost: bool,
    pub reopen: Box<dyn Fn(Reopened) -> Result<Store, StorageError> + Send>,
}

/// Loads the shards of a layout on threads of their own, until that is done or `shutdown` completes; `None`
/// then.
///
/// # Arguments
/// `streams`: the service of the streams, if they were asked and say it.
///
/// # Errors
/// When a shard is refused, or does not stop loading in time after `shutdown`.
pub async fn load_shards(
    config: &ServeConfig,
    layout: &DataLayout,
    streams: Option<ServiceId>,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<Vec<OpenedShard>>, ServiceError> {
    let resources = StorageResources::new(config.cache_bytes, opened_together(layout));
    let stop = resources.stop.clone();
    let progress = Arc::new(LoadProgress::default());
    let (done, mut loaded) = oneshot::channel();
    let (its_config, its_layout, its_progress) = (config.clone(), layout.clone(), Arc::clone(&progress));
    // Loading has a thread of its own. The runtime would wait for one of its own threads when it ends, even
    // for one that hangs.
    let load = move || {
        // The process may be about to end.
        let _ = done.send(open_shards(&its_config, &its_layout, streams, &resources, &its_progress));
    };
    std::thread::Builder::new().name("loading".to_owned()).spawn(load)?;
    let mut looks = tokio::time::interval_at(Instant::now() + LOG_INTERVAL, LOG_INTERVAL);
    loop {
        tokio::select! {
            opened = &mut loaded => return opened.map_err(std::io::Error::other)?.map(Some),
            () = &mut *shutdown => break,
            _ = looks.tick() => tracing::info!("still loading: {progress}"),
        }
    }
    tracing::info!("received a signal to end while loading: {progress}");
    stop.set();
    match tokio::time::timeout(STOP_TIMEOUT, loaded).await {
        Ok(_) => Ok(None),
        Err(_) => Err(ServiceError::StillLoading(progress.to_string())),
    }
}

/// Takes away what was made in the place of shards that have lost their data, because the start is refused.
pub fn close_refused(opened: Vec<OpenedShard>, config: &ServeConfig) {
    let lost: Vec<ShardId> = opened.iter().filter(|shard| shard.is_lost).map(|shard| shard.id).collect();
    drop(opened);
    for shard in lost {
        if let Err(error) = remove_in_place_of_lost(&config.data_dir, shard) {
            tracing::warn!(%shard, %error, "an empty shard that was made in the place of a lost one could not be removed");
        }
    }
}

/// The current work on each shard, for the log.
#[derive(Default)]
struct LoadProgress(Mutex<BTreeMap<ShardId, (&'static str, u64, u64)>>);

impl LoadProgress {
    fn note(&self, shard: ShardId, what: &'static str, done: u64, total: u64) {
        self.0.lock().insert(shard, (what, done, total));
    }

    fn forget(&self, shard: ShardId) {
        self.0.lock().remove(&shard);
    }
}

impl fmt::Display for LoadProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (shard, (what, done, total)) in &*self.0.lock() {
            write!(f, "{separator}shard {shard}: {what}")?;
            match (done, total) {
                (0, 0) => {}
                (done, 0) => write!(f, ", {done}")?,
                (done, total) => write!(f, ", {done} of {total}")?,
            }
            separator = "; ";
        }
        Ok(())
    }
}

/// Shares of the memory for what is read from disk.
fn opened_together(layout: &DataLayout) -> u16 {
    u16::try_from(layout.own.len()).unwrap_or(u16::MAX).max(1)
}

fn open_shards(
    config: &ServeConfig,
    layout: &DataLayout,
    streams: Option<ServiceId>,
    resources: &StorageResources,
    progress: &LoadProgress,
) -> Result<Vec<OpenedShard>, ServiceError> {
    let Looked { marker, lost } = look_at(config, layout)?;
    let known = marker.as_ref().map(|marker| &marker.layout);
    let data_dir = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
    tracing::info!(data_dir = %data_dir.display(), new = known.is_none(), "opening the data directory");
    // A node without shards has a directory too, which tells it from other nodes.
    make_private_directory(&config.data_dir).map_err(ServiceError::DataDirectory)?;
    // Each step is done for all shards before the next step: if a shard is refused, no file of the others has
    // changed. A shard whose files change when it is opened waits until all others are loaded.
    let shards: Vec<_> = layout.own.iter().collect();
    let fits = Fits { config, marker: marker.as_ref(), lost: &lost, streams };
    let data = OpenedFrom {
        data_dir: &config.data_dir,
        shards: layout.shards,
        has_streams: config.nats.is_some(),
        resources,
        progress,
    };
    let inspected = for_each(shards, |id| (id, inspect_shard(id, &data)))?;
    let service = fits.service(&layout.own).map_err(ServiceError::DataDirectory)?;
    for (id, inspected) in &inspected {
        if let Some(found) = inspected.marked_identity() {
            fits.check(*id, found, None).map_err(|error| ServiceError::Shard { shard: *id, error })?;
        }
    }
    let (changing, unchanging): (Vec<_>, Vec<_>) =
        inspected.into_iter().partition(|(_, inspected)| inspected.changes_when_opened());
    let load = |(id, inspected)| (id, load_shard(id, inspected, &fits, progress));
    let mut loaded = for_each(unchanging, load)?;
    loaded.extend(for_each(changing, load)?);
    check_definitions(&loaded)?;
    let identify = |id, store: &Store| fits.next(id, store.identity(), service);
    let stores = for_each(loaded, |(id, loaded)| (id, open_shard(id, loaded, &data, identify)))?;
    let mut opened = Vec::with_capacity(stores.len());
    for (id, (mut shard, mut store)) in stores {
        shard.is_lost = lost.contains(&id);
        // Marked only now that all shards are there: from here on, an empty shard has lost its data. One that
        // has lost it already stays unmarked, so that the next start knows.
        if !shard.is_lost {
            store.mark_in_service().map_err(|error| ServiceError::Shard { shard: id, error })?;
        }
        shard.store.put(Arc::new(store));
        opened.push(shard);
    }
    for change in changes(&config.data_dir, layout, known) {
        tracing::warn!("{change}");
    }
    // After the shards: a crash in between leaves them one opening ahead, which the next start takes.
    if let Err(error) = mark_layout(&config.data_dir, layout) {
        tracing::warn!(%error, "the file that records which shards there are could not be written; without it, the loss of the whole content of the data directory, or an older copy of a shard, would not be noticed");
    }
    Ok(opened)
}

/// Does a step for all shards, some at the same time, and gives the result by shard.
fn for_each<T: Send, R: Send>(
    items: Vec<T>,
    step: impl Fn(T) -> (ShardId, Result<R, StorageError>) + Sync,
) -> Result<Vec<(ShardId, R)>, ServiceError> {
    let (turn, done) = (Mutex::new(items.into_iter()), Mutex::new(Vec::new()));
    // Loading one shard keeps two threads busy; more at once would only take turns.
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(item) = turn.lock().next() else { break };
                    let result = step(item);
                    done.lock().push(result);
                }
            });
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(id, _)| *id);
    let done = done.into_iter().map(|(shard, result)| match result {
        Ok(result) => Ok((shard, result)),
        Err(error) => Err(ServiceError::Shard { shard, error }),
    });
    done.collect()
}

/// What all shards are opened from.
struct OpenedFrom<'a> {
    data_dir: &'a Path,
    /// The number of all shards.
    shards: u16,
    /// Whether streams fill the shards. Sequences are theirs then.
    has_streams: bool,
    resources: &'a StorageResources,
    progress: &'a LoadProgress,
}

impl OpenedFrom<'_> {
    /// Whether a shard goes on in another history. With a stream it goes on in the stream's, which continues
    /// what the data hold, or shows that it does not.
    fn is_set_back(&self, found: &ShardIdentity, next: &ShardIdentity) -> bool {
        !self.has_streams && found.is_set_back(next)
    }
}

/// Refuses shards that disagree about a life of a board: they do not belong together, and whichever
/// definition is taken, the scores on some shards would be read wrongly.
fn check_definitions(loaded: &[(ShardId, LoadedShard)]) -> Result<(), ServiceError> {
    let mut known = BTreeMap::new();
    for (shard, loaded) in loaded {
        for (name, board) in loaded.recovered.shard.boards() {
            let (first, definition) =
                known.entry((name, board.incarnation)).or_insert_with(|| (*shard, &board.definition));
            if !definition.agrees_with(&board.definition) {
                let (board, one, other) = (name.clone(), *first, *shard);
                return Err(ServiceError::BoardsDisagree { board, one, other });
            }
        }
    }
    Ok(())
}

fn inspect_shard(id: ShardId, data: &OpenedFrom<'_>) -> Result<InspectedDirectory, StorageError> {
    data.progress.note(id, "reading the log", 0, 0);
    let inspected = Store::inspect(&shard_directory(data.data_dir, id), id, data.shards, data.resources);
    data.progress.forget(id);
    inspected
}

/// A shard in memory, whose directory is not open for writing yet.
struct LoadedShard {
    store: Store,
    recovered: Recovered,
    took: Duration,
}

fn load_shard(
    id: ShardId,
    inspected: InspectedDirectory,
    fits: &Fits<'_>,
    progress: &LoadProgress,
) -> Result<LoadedShard, StorageError> {
    let started = std::time::Instant::now();
    progress.note(id, "reading the log", 0, 0);
    let loaded = inspected.open().and_then(|store| {
        let meta = store.meta()?;
        fits.check(id, store.identity(), Some(meta.as_ref().map_or(0, |meta| meta.applied_sequence)))?;
        meta.map_or(Ok(()), |meta| fits.check_source(id, &meta))?;
        let recovered =
            recover(&store, TreesFrom::Pages, &|what, done, total| progress.note(id, what, done, total))?;
        Ok(LoadedShard { store, recovered, took: started.elapsed() })
    });
    progress.forget(id);
    loaded
}

/// Called when everything that may be refused was read, for all shards.
fn open_shard(
    id: ShardId,
    loaded: LoadedShard,
    data: &OpenedFrom<'_>,
    identify: impl Fn(ShardId, &Store) -> ShardIdentity,
) -> Result<(OpenedShard, Store), StorageError> {
    let progress = data.progress;
    let LoadedShard { store, mut recovered, took } = loaded;
    let started = std::time::Instant::now();
    progress.note(id, "opening the store for writing", 0, 0);
    let store = store.into_writable()?;
    let next = identify(id, &store);
    if data.is_set_back(&store.identity(), &next) {
        let other = store.begin_history(next, "")?;
        recovered.shard.applied.sequence = other.before;
        recovered.deltas += 1;
        tracing::warn!(shard = %id, after = %other.after, from = %other.before, "the shard was set back: what was written after this sequence is lost, and reads with tokens of it are refused as other_history");
    } else {
        store.put_identity(next)?;
    }
    let mut rebuilt = Vec::new();
    for (board, reason) in recovered.rebuilt {
        tracing::warn!(shard = %id, %board, reason, "a damaged or missing tree was rebuilt from its members");
        rebuilt.push(board);
    }
    mark_rebuilt(&store, &mut recovered.shard, &rebuilt)?;
    progress.forget(id);
    let applied = recovered.shard.applied.sequence.0;
    let health = Health::new(HealthFacts {
        jobs_rejected: store.meta()?.map_or(0, |meta| meta.jobs_rejected),
        last_sequence: applied,
        checkpoint_sequence: recovered.checkpoint.0,
        opened_sequence: applied,
        ..HealthFacts::default()
    });
    tracing::info!(
        shard = %id,
        applied = %recovered.shard.applied.sequence,
        checkpoint = %recovered.checkpoint,
        deltas = recovered.deltas,
        members = recovered.shard.members.len(),
        took_ms = u64::try_from((took + started.elapsed()).as_millis()).unwrap_or(u64::MAX),
        "shard loaded"
    );
    let (shards, resources) = (data.shards, data.resources.clone());
    let held = Mutex::new(store.hold_directory()?);
    let opened = OpenedShard {
        id,
        store: Arc::default(),
        state: Arc::new(StateLock::new(recovered.shard)),
        health: Arc::new(health),
        // Deltas without changes count too: what they parked or rejected holds the stream back until a
        // checkpoint.
        replayed: recovered.changes + recovered.deltas,
        is_lost: false,
        reopen: Box::new(move |which| {
            let mut held = held.lock();
            let store = match which {
                Reopened::Same => Store::reopen(&held, id, shards, &resources)?,
                Reopened::Installed => Store::open(held.path(), id, shards, &resources)?,
            };
            *held = store.hold_directory()?;
            Ok(store)
        }),
    };
    Ok((opened, store))
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
