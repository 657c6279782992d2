//! Loads the shards of a data directory into memory, before anything is served.
//!
//! Knows: that either all shards exist or none, and how loading is stopped early. Must not know: how a shard
//! is loaded (`storage`), or how it is used afterwards.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::ServeConfig;
use crate::service::ServiceError;
use crate::state_lock::StateLock;
use crate::storage::{
    InspectedDirectory, Recovered, StorageError, StorageResources, Store, StoreSlot, TreesFrom, check_marked,
    holds_a_database, known_shards, mark_rebuilt, mark_shards, recover, shard_directory,
};
use crate::types::ShardId;
use crate::writer::Health;

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
    pub reopen: Box<dyn Fn() -> Result<Store, StorageError> + Send>,
}

/// Loads all shards on threads of their own, until that is done or `shutdown` completes; `None` then.
///
/// # Errors
/// When a shard is refused, or does not stop loading in time after `shutdown`.
pub async fn load_shards(
    config: &ServeConfig,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<Vec<OpenedShard>>, ServiceError> {
    let resources = StorageResources::new(config.cache_bytes, config.shards);
    let stop = resources.stop.clone();
    let progress = Arc::new(LoadProgress::default());
    let (done, mut loaded) = oneshot::channel();
    let (its_config, its_progress) = (config.clone(), Arc::clone(&progress));
    // Loading has a thread of its own. The runtime would wait for one of its own threads when it ends, even
    // for one that hangs.
    let load = move || {
        // The process may be about to end.
        let _ = done.send(open_shards(&its_config, &resources, &its_progress));
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

fn open_shards(
    config: &ServeConfig,
    resources: &StorageResources,
    progress: &LoadProgress,
) -> Result<Vec<OpenedShard>, ServiceError> {
    let known = known_shards(&config.data_dir).map_err(ServiceError::DataDirectory)?;
    check_layout(config, resources, known)?;
    // Each step is done for all shards before the next step: if a shard is refused, no file of the others has
    // changed. A shard whose files change when it is opened waits until all others are loaded.
    let shards: Vec<_> = (0..config.shards).map(ShardId).collect();
    let inspected = for_each(shards, |id| (id, inspect_shard(id, config, resources, progress)))?;
    let (changing, unchanging): (Vec<_>, Vec<_>) =
        inspected.into_iter().partition(|(_, inspected)| inspected.changes_when_opened());
    let mut loaded = for_each(unchanging, |(id, inspected)| (id, load_shard(id, inspected, progress)))?;
    loaded.extend(for_each(changing, |(id, inspected)| (id, load_shard(id, inspected, progress)))?);
    let stores = for_each(loaded, |(id, loaded)| (id, open_shard(id, loaded, config, resources, progress)))?;
    let mut opened = Vec::with_capacity(stores.len());
    for (id, (shard, mut store)) in stores {
        // Marked only now that all shards are there: from here on, an empty shard has lost its data.
        store.mark_in_service().map_err(|error| ServiceError::Shard { shard: id, error })?;
        shard.store.put(Arc::new(store));
        opened.push(shard);
    }
    if known.is_none()
        && let Err(error) = mark_shards(&config.data_dir, config.shards)
    {
        tracing::warn!(%error, "the file that records the number of shards could not be written; without it, the loss of the whole content of the data directory would not be noticed");
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

/// Refuses a data directory of another number of shards, or one that lost a shard. It does so before anything
/// is created: an empty shard beside full ones would look like a shard that was never written to.
///
/// # Arguments
/// `known`: how many shards the data directory's markers say it has, if they do.
fn check_layout(
    config: &ServeConfig,
    resources: &StorageResources,
    known: Option<u16>,
) -> Result<(), ServiceError> {
    if let Some(found) = known
        && found != config.shards
    {
        let (path, wanted) = (config.data_dir.clone(), config.shards);
        return Err(ServiceError::DataDirectory(StorageError::OtherShards { path, found, wanted }));
    }
    let (mut empty, mut held) = (None, Vec::new());
    for shard in (0..config.shards).map(ShardId) {
        let path = shard_directory(&config.data_dir, shard);
        let failed = |error| ServiceError::Shard { shard, error };
        if holds_a_database(&path).map_err(failed)? {
            check_marked(&config.data_dir, shard).map_err(failed)?;
            let in_service = Store::was_in_service(&path, shard, config.shards).map_err(failed)?;
            held.push((shard, path, in_service));
        } else {
            empty = empty.or(Some(path));
        }
    }
    let Some(empty) = empty else { return Ok(()) };
    if known.is_some() {
        return Err(ServiceError::MissingShard(empty));
    }
    for (shard, path, in_service) in held {
        let holds_data = match in_service {
            Some(in_service) => in_service,
            // A crash may have interrupted the first start between two directories. Nothing is written before
            // all of them exist.
            None => Store::open_for_reading(&path, shard, config.shards, resources)
                .and_then(|store| store.meta())
                .map_err(|error| ServiceError::Shard { shard, error })?
                .is_some_and(|meta| meta.applied_sequence > 0),
        };
        if holds_data {
            return Err(ServiceError::MissingShard(empty));
        }
    }
    Ok(())
}

fn inspect_shard(
    id: ShardId,
    config: &ServeConfig,
    resources: &StorageResources,
    progress: &LoadProgress,
) -> Result<InspectedDirectory, StorageError> {
    progress.note(id, "reading the log", 0, 0);
    let inspected = Store::inspect(&shard_directory(&config.data_dir, id), id, config.shards, resources);
    progress.forget(id);
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
    progress: &LoadProgress,
) -> Result<LoadedShard, StorageError> {
    let started = std::time::Instant::now();
    progress.note(id, "reading the log", 0, 0);
    let loaded = inspected.open().and_then(|store| {
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
    config: &ServeConfig,
    resources: &StorageResources,
    progress: &LoadProgress,
) -> Result<(OpenedShard, Store), StorageError> {
    let LoadedShard { store, mut recovered, took } = loaded;
    let started = std::time::Instant::now();
    progress.note(id, "opening the store for writing", 0, 0);
    let store = store.into_writable()?;
    store.adopt_format()?;
    let mut rebuilt = Vec::new();
    for (board, reason) in recovered.rebuilt {
        tracing::warn!(shard = %id, %board, reason, "a damaged or missing tree was rebuilt from its members");
        rebuilt.push(board);
    }
    mark_rebuilt(&store, &mut recovered.shard, &rebuilt)?;
    progress.forget(id);
    let health = Arc::new(Health::default());
    health.set_jobs_rejected(store.meta()?.map_or(0, |meta| meta.jobs_rejected));
    health.set_last_sequence(recovered.shard.applied.sequence.0);
    health.set_checkpoint_sequence(recovered.checkpoint.0);
    tracing::info!(
        shard = %id,
        applied = %recovered.shard.applied.sequence,
        checkpoint = %recovered.checkpoint,
        deltas = recovered.deltas,
        members = recovered.shard.members.len(),
        took_ms = u64::try_from((took + started.elapsed()).as_millis()).unwrap_or(u64::MAX),
        "shard loaded"
    );
    let (shards, resources, held) = (config.shards, resources.clone(), store.hold_directory()?);
    let opened = OpenedShard {
        id,
        store: Arc::default(),
        state: Arc::new(StateLock::new(recovered.shard)),
        health,
        // Deltas without changes count too: what they parked or rejected holds the stream back until a
        // checkpoint.
        replayed: recovered.changes + recovered.deltas,
        reopen: Box::new(move || Store::reopen(&held, id, shards, &resources)),
    };
    Ok((opened, store))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Applied;
    use crate::storage::Commit;
    use crate::storage::codec::DeltaEncoder;
    use crate::types::Sequence;
    use crate::writer::{CheckpointGate, CheckpointPolicy, Checkpointer};

    #[test]
    fn a_start_with_another_number_of_shards_leaves_the_directory_as_it_was() {
        let open = |config: &ServeConfig| {
            open_shards(config, &StorageResources::new(8 << 20, config.shards), &LoadProgress::default())
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data_dir = folder.path().to_str().expect("it is UTF-8");
        let config = |shards: u16| {
            ServeConfig::of(&["--data-dir", data_dir, "--shards", &shards.to_string()])
                .expect("good settings")
        };
        assert_eq!(open(&config(3)).expect("a new directory").len(), 3);
        for shards in [1, 2, 4, 9] {
            let refused = open(&config(shards)).map(|_| ()).expect_err("another layout").to_string();
            assert!(refused.contains("start with --shards 3"), "{refused}");
            let entries = std::fs::read_dir(folder.path()).expect("the folder is there");
            assert_eq!(entries.count(), 4, "with {shards} shards");
        }
        assert_eq!(open(&config(3)).expect("as it was").len(), 3);
        // The markers of an earlier version do not say how many shards there are; the shards' own files do.
        let marker = folder.path().join("RANKTREE");
        std::fs::remove_file(&marker).expect("it is there");
        for shards in [1, 2, 4, 9] {
            let refused = open(&config(shards)).map(|_| ()).expect_err("another layout").to_string();
            assert!(refused.contains("start with --shards 3"), "{refused}");
        }
        assert_eq!(open(&config(3)).expect("as it was").len(), 3);
        assert!(marker.exists());
    }

    #[test]
    fn an_only_shard_that_was_emptied_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data_dir = folder.path().to_str().expect("it is UTF-8");
        let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "1"]).expect("good settings");
        let open = || open_shards(&config, &StorageResources::new(8 << 20, 1), &LoadProgress::default());
        open().expect("a new directory");
        let shard = folder.path().join("shard-000");
        for is_there in [true, false] {
            std::fs::remove_dir_all(&shard).expect("it is there");
            if is_there {
                std::fs::create_dir(&shard).expect("it can be made");
            }
            for _ in 0..2 {
                let refused = open().map(|_| ()).expect_err("it lost its data").to_string();
                assert!(refused.contains("shard-000 is missing or empty"), "{refused}");
                assert!(refused.contains("restore it"), "{refused}");
            }
            let entries = std::fs::read_dir(folder.path()).expect("readable").count();
            assert_eq!(entries, 1 + usize::from(is_there));
        }
        std::fs::remove_file(folder.path().join("RANKTREE")).expect("it is there");
        open().expect("it begins anew when it is told to");
    }

    #[test]
    fn a_shard_that_lost_its_marker_is_refused_where_the_data_directory_has_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data_dir = folder.path().to_str().expect("it is UTF-8");
        let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "2"]).expect("good settings");
        let open = || open_shards(&config, &StorageResources::new(8 << 20, 2), &LoadProgress::default());
        open().expect("a new directory");
        let marker = folder.path().join("shard-001/RANKTREE");
        std::fs::remove_file(&marker).expect("it is there");
        for _ in 0..2 {
            let refused = open().map(|_| ()).expect_err("nobody knows what is gone").to_string();
            assert!(refused.contains("its file RANKTREE is missing"), "{refused}");
            assert!(!marker.exists());
        }
        // As the words say, and as every directory of before the markers is.
        std::fs::remove_file(folder.path().join("RANKTREE")).expect("it is there");
        assert_eq!(open().expect("it is taken as it is").len(), 2);
        assert!(marker.exists() && folder.path().join("RANKTREE").exists());
    }

    /// Messages that changed nothing, of jobs that were rejected or that wait, hold the stream back until a
    /// checkpoint as others do. After a restart too, one that the queue wants must begin.
    #[test]
    fn a_wanted_checkpoint_begins_after_a_replay_of_messages_that_changed_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data_dir = folder.path().to_str().expect("it is UTF-8");
        let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "1"]).expect("good settings");
        let open = || {
            let resources = StorageResources::new(8 << 20, config.shards);
            open_shards(&config, &resources, &LoadProgress::default()).expect("it opens").remove(0)
        };
        let can_begin = |opened: &OpenedShard| {
            let (policy, gate) = (CheckpointPolicy::default(), CheckpointGate::default());
            Checkpointer::new(policy, gate, opened.replayed).can_begin()
        };
        let opened = open();
        assert!(!can_begin(&opened), "there is nothing to put into one");
        let applied = Applied { sequence: Sequence(1), ..Applied::default() };
        let delta = DeltaEncoder::new(Sequence(1), applied, &[], 0).finish();
        let commit = Commit { applied, delta, ..Commit::default() };
        opened.store.get().expect("it is open").commit(&commit, true).expect("the disk takes it");
        drop(opened);
        assert!(can_begin(&open()));
    }
}
