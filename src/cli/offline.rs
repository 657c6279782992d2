//! What commands share that work on the data of a stopped service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Failure;
use crate::cli::as_owner::{as_owner_of, become_owner_of};
use crate::cli::progress::Progress;
use crate::config::{DataArgs, FileArgs};
use crate::storage::{
    DataLayout, FilledFrom, Fit, StorageError, StorageResources, Store, check_fit_on_disk, check_marked,
    check_no_snapshot, filled_from, holds_a_database, known_data, known_layout, missing_shard,
    service_of_shards, shard_directory, shards_in,
};
use crate::types::ShardId;

/// Enough to read ahead with; nothing is read twice.
const CACHE_BYTES: usize = 64 << 20;

#[derive(Debug, clap::Args)]
pub struct Offline {
    /// Read where the arguments are.
    #[command(flatten)]
    _file: FileArgs,
    #[command(flatten)]
    data: DataArgs,
}

impl Offline {
    /// For a command whose own flag names the directory.
    pub fn at(data_dir: PathBuf) -> Self {
        Self { _file: FileArgs { config: None }, data: DataArgs { data_dir } }
    }

    /// Opens the shards for reading, one after the other, and calls `work` with each, or with the error of
    /// opening it. Run by root, all of it has the rights of the directory's owner only, and so has what comes
    /// after it.
    ///
    /// # Errors
    /// When there are none, or the work fails.
    pub fn each_shard(
        &self,
        mut work: impl FnMut(ShardId, Result<Store, StorageError>, &Progress) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begun = self.begin()?;
        for id in begun.layout.own.iter() {
            let progress = begun.progress(id);
            work(id, open(&begun.data_dir, id, begun.layout.shards, &begun.resources), &progress)?;
            progress.finish();
        }
        Ok(())
    }

    /// Opens all shards, and checks them, before `work` writes to any of them. They stay locked in between.
    /// The rights are those of [`Offline::each_shard`].
    ///
    /// # Errors
    /// When there are none, one is not as it must be, in which case nothing is changed, or the work fails.
    pub fn rewrite_each_shard(
        &self,
        check: impl Fn(&Store, &Progress) -> Result<(), StorageError>,
        mut work: impl FnMut(ShardId, Store, &Progress) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begun = self.begin()?;
        let Begun { data_dir, layout, resources, .. } = &begun;
        check_no_snapshot(data_dir)?;
        layout.own.iter().try_for_each(|id| check_fit(data_dir, id))?;
        let mut stores = Vec::new();
        for id in layout.own.iter() {
            let progress = begun.progress(id);
            let store = open_to_write(data_dir, id, layout.shards, resources)?;
            check(&store, &progress)?;
            progress.finish();
            stores.push((id, store));
        }
        for (id, store) in stores {
            let progress = begun.progress(id);
            work(id, store, &progress)?;
            progress.finish();
        }
        Ok(())
    }

    fn begin(&self) -> Result<Begun, Failure> {
        let data_dir = become_owner_of(&self.data.data_dir)?;
        let layout = layout(&data_dir)?;
        let place = Arc::new(Mutex::new(Arc::new(Progress::new(String::new()))));
        exit_on_signal(Arc::clone(&place))?;
        Ok(Begun { data_dir, layout, resources: StorageResources::new(CACHE_BYTES, 1), place })
    }

    /// Opens all shards for reading, by number. Run by root, they are opened by the rights of the directory's
    /// owner.
    ///
    /// # Errors
    /// When there are none, or one cannot be opened; when the others are on other nodes.
    pub fn open_all(&self) -> Result<Vec<Store>, Failure> {
        as_owner_of(&self.data.data_dir, |data_dir| self.open_all_in(data_dir))
    }

    fn open_all_in(&self, data_dir: &Path) -> Result<Vec<Store>, Failure> {
        let DataLayout { shards, own } = layout(data_dir)?;
        if !own.is_first(shards) {
            return Err(format!(
                "{} holds the shards {own} of {shards}, and the members of the others are on other nodes; \
                 read from a running node instead, with --url",
                self.data.data_dir.display()
            )
            .into());
        }
        let resources = StorageResources::new(CACHE_BYTES, shards);
        let open = |id| Ok(open(data_dir, ShardId(id), shards, &resources)?);
        (0..shards).map(open).collect()
    }
}

/// A command that works on shards one after the other.
struct Begun {
    data_dir: PathBuf,
    layout: DataLayout,
    resources: StorageResources,
    /// Where it is, for a signal.
    place: Arc<Mutex<Arc<Progress>>>,
}

impl Begun {
    /// Begins with a shard.
    fn progress(&self, id: ShardId) -> Arc<Progress> {
        let progress = Arc::new(Progress::new(format!("shard {id}")));
        *self.place.lock() = Arc::clone(&progress);
        progress.note("reading the log", 0, 0);
        progress
    }
}

/// Nothing is written: the data may be on a file system that takes no writes.
fn open(
    data_dir: &Path,
    id: ShardId,
    shards: u16,
    resources: &StorageResources,
) -> Result<Store, StorageError> {
    check_marked(data_dir, id)?;
    check_fit(data_dir, id)?;
    Store::open_for_reading(&shard_directory(data_dir, id), id, shards, resources)
}

/// It is only read until [`Store::into_writable`] says otherwise.
fn open_to_write(
    data_dir: &Path,
    id: ShardId,
    shards: u16,
    resources: &StorageResources,
) -> Result<Store, StorageError> {
    let path = shard_directory(data_dir, id);
    check_marked(data_dir, id)?;
    // Only `serve` makes new shards.
    if !holds_a_database(&path)? {
        return Err(StorageError::Empty(path));
    }
    Store::open_to_load(&path, id, shards, resources)
}

/// Refuses what a start would not take for the shard that was there.
fn check_fit(data_dir: &Path, id: ShardId) -> Result<(), StorageError> {
    let is_streamed = filled_from(data_dir, id)? == FilledFrom::Stream;
    let fit = if is_streamed { Fit::Streamed } else { Fit::Whole };
    check_fit_on_disk(data_dir, id, known_data(data_dir)?.as_ref(), fit)
}

/// Which shards there are, at least one, and none missing.
fn layout(data_dir: &Path) -> Result<DataLayout, Failure> {
    // A directory that lost its last shards looks complete, so what is recorded counts too.
    let found = shards_in(data_dir)?;
    let layout = match known_layout(data_dir)? {
        Some(known) if !known.own.is_first(known.shards) => known,
        known => DataLayout::all(known.map_or(found, |known| known.shards.max(found))),
    };
    if layout.own.is_empty() {
        let folder = data_dir.display();
        return Err(format!(
            "{folder} holds no shards; give the directory of the service's data with --data-dir"
        )
        .into());
    }
    // Opening the missing shard would create an empty one, and hide that its members were lost.
    if let Some(missing) = missing_shard(data_dir, &layout.own) {
        let folder = shard_directory(data_dir, missing);
        return Err(format!("the shard's directory {} is missing; restore it first", folder.display()).into());
    }
    let known = known_data(data_dir)?;
    if known.is_none_or(|known| known.service.is_none()) {
        service_of_shards(data_dir, &layout.own, Fit::Whole)?;
    }
    Ok(layout)
}

/// Ends the process on SIGTERM and SIGINT, and says where it was. Without this the first process of a
/// container would ignore them.
pub fn exit_on_signal(place: Arc<Mutex<Arc<Progress>>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _runtime = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let wait = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        eprintln!("ranktree: stopped by a signal: {}", place.lock().place());
        std::process::exit(2);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}
