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
use crate::service::directory::{Looked, look_at, note_changes};
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
    let data = OpenedFrom { data_dir: &config.data_dir, shards: layout.shards, resources, progress };
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
    note_changes(&config.data_dir, layout, known);
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
    resources: &'a StorageResources,
    progress: &'a LoadProgress,
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
    store.put_identity(identify(id, &store))?;
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
mod tests {
    use super::*;
    use crate::state::Applied;
    use crate::storage::Commit;
    use crate::storage::codec::DeltaEncoder;
    use crate::types::{Sequence, ShardSet};
    use crate::writer::{CheckpointGate, CheckpointPolicy, Checkpointer};

    /// As a start with these settings does it.
    fn open(config: &ServeConfig) -> Result<Vec<OpenedShard>, ServiceError> {
        let shards = config.shards.unwrap_or(1);
        let own = config.own.clone().unwrap_or_else(|| ShardSet::first(shards));
        let resources = StorageResources::new(8 << 20, shards);
        open_shards(config, &DataLayout { shards, own }, None, &resources, &LoadProgress::default())
    }

    #[test]
    fn a_start_with_another_number_of_shards_leaves_the_directory_as_it_was() {
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
        // Without the data directory's marker, the shards' own files say how many there are.
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
        let open = || open(&config);
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
                assert!(refused.contains("ranktree restore --from SNAPSHOT"), "{refused}");
            }
            let entries = std::fs::read_dir(folder.path()).expect("readable").count();
            assert_eq!(entries, 1 + usize::from(is_there));
        }
        std::fs::remove_file(folder.path().join("RANKTREE")).expect("it is there");
        open().expect("it begins anew when it is told to");
    }

    #[test]
    fn shards_that_are_owned_come_and_go_and_one_that_is_lost_is_known_to_be() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data_dir = folder.path().to_str().expect("it is UTF-8");
        let open_of = |own: &str, shards: &str| {
            let data = ["--data-dir", data_dir, "--nats", "nats://127.0.0.1:1"];
            let config = ServeConfig::of(&[&data[..], &["--shards", shards, "--own", own]].concat());
            let config = config.expect("good settings");
            let opened = open(&config).map_err(|error| error.to_string())?;
            Ok::<_, String>(opened.iter().map(|shard| shard.id.0).collect::<Vec<_>>())
        };
        let open = |own: &str| open_of(own, "4");
        let known = || crate::storage::known_layout(folder.path()).expect("readable").expect("it is marked");
        let directory = |shard: u16| shard_directory(folder.path(), ShardId(shard));
        assert_eq!(open("none"), Ok(vec![]));
        assert_eq!(known().own.to_string(), "none");
        assert_eq!(open("0,2"), Ok(vec![0, 2]));
        assert_eq!(open("0-2"), Ok(vec![0, 1, 2]), "a shard that is new begins empty");
        std::fs::rename(directory(1), folder.path().join("aside")).expect("it can be moved");
        let data = ["--data-dir", data_dir, "--nats", "nats://127.0.0.1:1", "--shards", "4", "--own", "0-2"];
        let opened = super::tests::open(&ServeConfig::of(&data).expect("good settings"));
        let opened = opened.expect("another node may have a copy of the one that is lost");
        assert_eq!(opened.iter().map(|shard| shard.is_lost).collect::<Vec<_>>(), [false, true, false]);
        drop(opened);
        assert_eq!(open("2"), Ok(vec![2]), "it is not owned any more");
        assert!(directory(0).exists(), "the directory stays");
        assert_eq!((known().shards, known().own.to_string()), (4, "2".to_owned()));
        assert_eq!(open("0-2"), Ok(vec![0, 1, 2]), "one is taken up again, and one begins empty");
        let refused = open_of("0-2", "3").expect_err("there are four");
        assert!(refused.contains("start with --shards 4"), "{refused}");
        // Without NATS nothing would fill the shard that the node did not own.
        let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "4"]).expect("good settings");
        let refused = super::tests::open(&config).map(|_| ()).expect_err("it is alone").to_string();
        assert!(refused.contains("shard-003 is missing or empty"), "{refused}");
    }

    #[test]
    fn a_shard_that_lost_its_marker_is_refused_where_the_data_directory_has_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data_dir = folder.path().to_str().expect("it is UTF-8");
        let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "2"]).expect("good settings");
        let open = || open(&config);
        open().expect("a new directory");
        let marker = folder.path().join("shard-001/RANKTREE");
        std::fs::remove_file(&marker).expect("it is there");
        for _ in 0..2 {
            let refused = open().map(|_| ()).expect_err("nobody knows what is gone").to_string();
            assert!(refused.contains("its file RANKTREE is missing"), "{refused}");
            assert!(!marker.exists());
        }
        // The way out for a copy that is known to be complete.
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
        let open = || open(&config).expect("it opens").remove(0);
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
