//! The last step of a restore: the shards of before are moved aside, and those of the snapshot take their
//! place.
//!
//! It is several renames, so a crash may come between any two of them. A plan is written first, as the file
//! `RESTORING` of the data directory, and removed last. While it is there, no start and no other command uses
//! the data directory, and the next restore completes what the plan says. Each step can be done again:
//!
//! 1. the data marker and the shards of before are moved into a folder of their own
//! 2. the staged shards are moved to their places
//! 3. the data marker is written
//! 4. the plan is removed
//!
//! A shard in its place is one of before as long as a staged one of the same number waits for the place.
//!
//! The plan is read from a directory that may be somebody else's than the reader's: it names folders by our
//! own pattern only, and a link in the place of a folder is refused. So nothing outside of the data directory
//! is moved, and nothing is moved out of it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::regular_file::read_small_in;
use crate::snapshot::one_shard::sync;
use crate::storage::{
    DataLayout, RESTORING, StorageError, make_private_directory, mark_layout, replace_file, shard_directory,
    shards_in,
};
use crate::types::{MAX_SHARDS, ShardId, ShardSet, quoted};

/// The folder of the data directory that shards are staged in.
pub(super) const STAGED: &str = "restore.staged";
/// How the names of folders begin that take what was there before.
pub(super) const BEFORE: &str = "before-restore-";
/// Longer than any that is made.
const NAME_BYTES_MAX: usize = 100;
/// Longer than any plan that is made.
const PLAN_MAX_BYTES: u64 = 64 << 10;
/// The plan while it is written.
pub(super) const NEW: &str = "RESTORING.new";
/// The data marker.
const MARKER: &str = "RANKTREE";
/// Raised with every change that an older ranktree could not read.
const FORMAT: u32 = 1;

/// What is to be done. All staged shards are checked and synced when this is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    format: u32,
    /// The snapshot that the staged shards are of.
    pub(super) snapshot: String,
    /// The number of all shards.
    pub(super) shards: u16,
    /// The shards of the snapshot, if these are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own: Option<String>,
    /// The folder of the data directory that takes what was there before; `None` if nothing was.
    pub(super) moved_to: Option<String>,
}

/// Why the shards are not in place. The next restore goes on.
#[derive(Debug, Error)]
pub enum SwapError {
    #[error("the file {} cannot be read: {what}; complete the restore with the ranktree that began it, or move the whole data directory away and restore again", path.display())]
    UnknownPlan { path: PathBuf, what: String },
    #[error("the file {} is none that ranktree has written: {what}. Nothing was changed. Somebody has edited it: look at the data directory, move that file away, and restore again", path.display())]
    NotOurs { path: PathBuf, what: String },
    #[error("{} is in the place of a directory, and is a link or a file; a restore follows no links inside of a data directory. Remove it, and run the same ranktree restore again", .0.display())]
    NoDirectory(PathBuf),
    #[error("{} is in the way; move it elsewhere, and run the same ranktree restore again", .0.display())]
    InTheWay(PathBuf),
    #[error("{} cannot be moved to {}: {error}; run the same ranktree restore again once that is mended", from.display(), to.display())]
    NotMoved { from: PathBuf, to: PathBuf, error: std::io::Error },
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Only tests interrupt.
    #[cfg(test)]
    #[error("interrupted")]
    Interrupted,
}

impl Plan {
    pub(super) fn new(snapshot: String, layout: &DataLayout, moved_to: Option<String>) -> Self {
        let DataLayout { shards, own } = layout;
        let own = (!own.is_first(*shards)).then(|| own.to_string());
        Self { format: FORMAT, snapshot, shards: *shards, own, moved_to }
    }

    fn layout(&self) -> Result<DataLayout, String> {
        let own =
            self.own.as_ref().map_or_else(|| Ok(ShardSet::first(self.shards)), |own| ShardSet::parse(own))?;
        Ok(DataLayout { shards: self.shards, own })
    }

    /// The plan of an interrupted restore, if there is one.
    pub(super) fn read(data_dir: &Path) -> Result<Option<Self>, SwapError> {
        let path = data_dir.join(RESTORING);
        let bytes = match read_small_in(data_dir, RESTORING, PLAN_MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SwapError::Io { path, error }),
        };
        let plan: Self = match serde_json::from_slice(&bytes) {
            Ok(plan) => plan,
            // Names of fields that are none of ours come with the error.
            Err(error) => return Err(SwapError::UnknownPlan { path, what: quoted(&error.to_string()) }),
        };
        if plan.format != FORMAT || plan.shards == 0 || plan.shards > MAX_SHARDS {
            return Err(SwapError::UnknownPlan { path, what: format!("it has format {}", plan.format) });
        }
        if let Err(what) = plan.layout() {
            return Err(SwapError::UnknownPlan { path, what });
        }
        if let Some(name) = plan.moved_to.as_ref().filter(|name| !is_of_before(name)) {
            let what = format!("it names the folder {name:?}, and such folders begin with {BEFORE}");
            return Err(SwapError::NotOurs { path, what });
        }
        Ok(Some(plan))
    }

    /// Writes the plan. From now on nothing but a restore uses the data directory.
    pub(super) fn write(&self, data_dir: &Path) -> Result<(), SwapError> {
        let path = data_dir.join(RESTORING);
        let put = || replace_file(&path, &data_dir.join(NEW), &serde_json::to_vec(self)?);
        put().map(drop).map_err(|error| SwapError::Io { path: path.clone(), error })
    }

    /// Does what is left to do.
    ///
    /// # Arguments
    /// `between`: called before each step, so that tests can interrupt it.
    ///
    /// # Errors
    /// When the disk refuses, or something is in the way; and those of `between`.
    pub(super) fn carry_out(
        &self,
        data_dir: &Path,
        between: &mut dyn FnMut() -> Result<(), SwapError>,
    ) -> Result<(), SwapError> {
        let unknown = |what| SwapError::UnknownPlan { path: data_dir.join(RESTORING), what };
        let layout = self.layout().map_err(unknown)?;
        let staged = data_dir.join(STAGED);
        let aside = self.moved_to.as_ref().map(|name| data_dir.join(name));
        // All of them before anything is moved.
        let shards = (0..self.shards).map(|shard| shard_directory(&staged, ShardId(shard)));
        for directory in aside.iter().cloned().chain([staged.clone()]).chain(shards) {
            is_directory(&directory)?;
        }
        if let Some(aside) = &aside {
            between()?;
            make_private_directory(aside)?;
        }
        let waits = |shard| is_directory(&shard_directory(&staged, shard));
        // The marker of before, unless all shards are in place already: then it may be the new one.
        if let Some(aside) = &aside
            && (0..self.shards)
                .map(ShardId)
                .try_fold(false, |any, shard| Ok::<_, SwapError>(any | waits(shard)?))?
        {
            let (from, to) = (data_dir.join(MARKER), aside.join(MARKER));
            if exists(&from)? && !exists(&to)? {
                between()?;
                rename(&from, &to)?;
            }
        }
        for shard in (0..shards_in(data_dir)?.max(self.shards)).map(ShardId) {
            let place = shard_directory(data_dir, shard);
            let is_of_before = !layout.own.contains(shard) || waits(shard)?;
            if is_of_before && exists(&place)? {
                let Some(aside) = &aside else { return Err(SwapError::InTheWay(place)) };
                between()?;
                rename(&place, &shard_directory(aside, shard))?;
            }
            let from = shard_directory(&staged, shard);
            if is_directory(&from)? {
                between()?;
                rename(&from, &place)?;
            }
        }
        between()?;
        for directory in aside.iter().map(PathBuf::as_path).chain([staged.as_path(), data_dir]) {
            if exists(directory)? {
                sync(directory)?;
            }
        }
        mark_layout(data_dir, &layout)?;
        between()?;
        let path = data_dir.join(RESTORING);
        std::fs::remove_file(&path).map_err(|error| SwapError::Io { path, error })?;
        sync(data_dir)?;
        // It is empty. The next restore removes it too.
        let _ = std::fs::remove_dir_all(&staged);
        Ok(())
    }
}

/// Whether something has this name, which may be a link that leads nowhere.
fn exists(path: &Path) -> Result<bool, SwapError> {
    Ok(found(path)?.is_some())
}

/// Whether there is a directory of this name.
///
/// # Errors
/// When it is something else: a link leads to what is not the data directory's.
fn is_directory(path: &Path) -> Result<bool, SwapError> {
    match found(path)? {
        None => Ok(false),
        Some(found) if found.is_dir() => Ok(true),
        Some(_) => Err(SwapError::NoDirectory(path.to_owned())),
    }
}

fn found(path: &Path) -> Result<Option<std::fs::Metadata>, SwapError> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SwapError::Io { path: path.to_owned(), error }),
    }
}

/// Whether a restore would have given this name to a folder for what was there before.
fn is_of_before(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    name.len() <= NAME_BYTES_MAX
        && name.strip_prefix(BEFORE).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_plain))
}

fn rename(from: &Path, to: &Path) -> Result<(), SwapError> {
    std::fs::rename(from, to).map_err(|error| SwapError::NotMoved {
        from: from.to_owned(),
        to: to.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::known_shards;

    /// A data directory with shards of before, and staged ones. A file in each says which it is.
    fn put(before: u16, staged: u16) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (place, shards, text) in
            [(folder.path().to_owned(), before, "before"), (folder.path().join(STAGED), staged, "new")]
        {
            for shard in (0..shards).map(ShardId) {
                let path = shard_directory(&place, shard);
                std::fs::create_dir_all(&path).expect("it can be made");
                std::fs::write(path.join("which"), text).expect("it can be written");
            }
        }
        if before > 0 {
            mark_layout(folder.path(), &DataLayout::all(before)).expect("the disk takes it");
        }
        folder
    }

    fn which(place: &Path, shards: u16) -> Vec<String> {
        let read = |shard| std::fs::read_to_string(shard_directory(place, ShardId(shard)).join("which"));
        (0..shards).map(|shard| read(shard).unwrap_or_default()).collect()
    }

    #[test]
    fn every_interruption_is_refused_by_a_start_and_completed_by_the_next_restore() {
        for (before, staged) in [(3, 3), (1, 4), (4, 1), (0, 2)] {
            let moved_to = (before > 0).then(|| "before-restore-x".to_owned());
            let plan = Plan::new("6a".to_owned(), &DataLayout::all(staged), moved_to.clone());
            for steps in 0.. {
                let folder = put(before, staged);
                let data_dir = folder.path();
                plan.write(data_dir).expect("the disk takes it");
                let mut interrupted = false;
                // Interrupted twice, the second time a step later than the first.
                for steps in [steps, 1] {
                    let mut left = steps;
                    let done = plan.carry_out(data_dir, &mut || {
                        if left == 0 {
                            return Err(SwapError::Interrupted);
                        }
                        left -= 1;
                        Ok(())
                    });
                    let Err(error) = done else { break };
                    interrupted = true;
                    assert!(matches!(error, SwapError::Interrupted), "{error}");
                    let refused = known_shards(data_dir).expect_err("it is half restored").to_string();
                    assert!(refused.contains("run the same ranktree restore again"), "{refused}");
                }
                if let Some(read) = Plan::read(data_dir).expect("readable") {
                    assert_eq!(read, plan);
                    read.carry_out(data_dir, &mut || Ok(())).expect("it is completed");
                }
                assert_eq!(known_shards(data_dir).expect("a start takes it"), Some(staged));
                assert_eq!(shards_in(data_dir).expect("readable"), staged);
                assert_eq!(which(data_dir, staged), vec!["new"; usize::from(staged)]);
                assert!(!data_dir.join(STAGED).exists());
                if let Some(name) = &moved_to {
                    let aside = data_dir.join(name);
                    assert_eq!(which(&aside, before), vec!["before"; usize::from(before)]);
                    assert_eq!(known_shards(&aside).expect("readable"), Some(before), "{steps} steps");
                }
                if !interrupted {
                    assert!(steps > 3, "{steps}");
                    break;
                }
            }
        }
    }

    #[test]
    fn shards_of_before_are_never_replaced_without_a_place_to_move_them_to() {
        let folder = put(1, 2);
        let plan = Plan::new("6a".to_owned(), &DataLayout::all(2), None);
        plan.write(folder.path()).expect("the disk takes it");
        let refused =
            plan.carry_out(folder.path(), &mut || Ok(())).expect_err("a shard is there").to_string();
        assert!(refused.contains("shard-000 is in the way"), "{refused}");
        assert_eq!(which(folder.path(), 1), ["before"]);
    }

    #[test]
    fn a_snapshot_of_some_shards_moves_the_others_aside() {
        let folder = put(3, 0);
        let staged = shard_directory(&folder.path().join(STAGED), ShardId(1));
        std::fs::create_dir_all(&staged).expect("it can be made");
        std::fs::write(staged.join("which"), "new").expect("it can be written");
        let layout = DataLayout { shards: 3, own: ShardSet::parse("1").expect("a good list") };
        let plan = Plan::new("6a".to_owned(), &layout, Some("before-restore-x".to_owned()));
        plan.write(folder.path()).expect("the disk takes it");
        assert_eq!(Plan::read(folder.path()).expect("readable"), Some(plan.clone()));
        plan.carry_out(folder.path(), &mut || Ok(())).expect("nothing is in the way");
        assert_eq!(which(folder.path(), 3), ["", "new", ""]);
        assert_eq!(which(&folder.path().join("before-restore-x"), 3), vec!["before"; 3]);
        let known = crate::storage::known_layout(folder.path()).expect("a start takes it");
        assert_eq!(known, Some(layout));
    }

    /// Every file below a folder.
    fn files(folder: &Path) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it can be listed") {
                let path = entry.expect("it can be listed").path();
                if path.is_symlink() {
                    found.push((path, "a link".to_owned()));
                } else if path.is_dir() {
                    folders.push(path);
                } else {
                    let text = std::fs::read_to_string(&path).expect("it is text");
                    found.push((path, text));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_plan_that_names_any_other_folder_is_refused_and_nothing_is_moved() {
        let folder = put(1, 1);
        let outside = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(outside.path().join("mine"), "mine").expect("it can be written");
        let absolute = outside.path().to_str().expect("it is UTF-8");
        let beside = format!("../{}", outside.path().file_name().expect("it has one").to_string_lossy());
        let of_before = format!("before-restore-/../{beside}");
        let more = ["", ".", "..", "before-restore-", "before-restore-a/b", "shard-000", "restore.staged"];
        for name in [absolute, beside.as_str(), of_before.as_str()].into_iter().chain(more) {
            let plan = Plan::new("6a".to_owned(), &DataLayout::all(1), Some(name.to_owned()));
            plan.write(folder.path()).expect("the disk takes it");
            let (before, others) = (files(folder.path()), files(outside.path()));
            let refused = Plan::read(folder.path()).expect_err(name).to_string();
            assert!(refused.contains("is none that ranktree has written"), "{refused}");
            assert_eq!((files(folder.path()), files(outside.path())), (before, others), "{name}");
        }
    }

    #[test]
    fn links_in_the_place_of_folders_are_refused_and_nothing_is_moved() {
        for link in ["before-restore-x", STAGED, "restore.staged/shard-000"] {
            let folder = put(1, 1);
            let outside = put(2, 0);
            let path = folder.path().join(link);
            let _ = std::fs::remove_dir_all(&path);
            std::os::unix::fs::symlink(outside.path(), &path).expect("it can be made");
            let plan = Plan::new("6a".to_owned(), &DataLayout::all(1), Some("before-restore-x".to_owned()));
            plan.write(folder.path()).expect("the disk takes it");
            let (before, others) = (files(folder.path()), files(outside.path()));
            let refused = plan.carry_out(folder.path(), &mut || Ok(())).expect_err(link).to_string();
            assert!(refused.contains(link) && refused.contains("is a link or a file"), "{refused}");
            assert_eq!(files(outside.path()), others, "{link}");
            assert_eq!(files(folder.path()), before, "{link}");
        }
    }

    #[test]
    fn a_plan_that_is_a_link_is_not_read_and_links_at_the_names_of_our_files_are_not_written_through() {
        let folder = put(1, 1);
        let outside = tempfile::tempdir().expect("a temporary folder");
        let mine = outside.path().join("mine");
        let plan = Plan::new("6a".to_owned(), &DataLayout::all(1), Some("before-restore-x".to_owned()));
        std::fs::write(&mine, serde_json::to_vec(&plan).expect("it can be JSON")).expect("it can be written");
        let others = files(outside.path());
        std::os::unix::fs::symlink(&mine, folder.path().join(RESTORING)).expect("it can be made");
        let refused = Plan::read(folder.path()).expect_err("it is a link").to_string();
        assert!(refused.contains("it is a link"), "{refused}");
        for name in [NEW, "RANKTREE.new"] {
            std::os::unix::fs::symlink(&mine, folder.path().join(name)).expect("it can be made");
        }
        plan.write(folder.path()).expect("links are replaced");
        plan.carry_out(folder.path(), &mut || Ok(())).expect("nothing is in the way");
        assert_eq!(files(outside.path()), others);
        assert_eq!(known_shards(folder.path()).expect("a start takes it"), Some(1));
        assert_eq!(which(folder.path(), 1), ["new"]);
    }

    #[test]
    fn a_plan_of_another_version_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(Plan::read(folder.path()).expect("there is none"), None);
        for text in ["", "{}", r#"{"format":2,"snapshot":"a","shards":1,"moved_to":null}"#] {
            std::fs::write(folder.path().join(RESTORING), text).expect("it can be written");
            let refused = Plan::read(folder.path()).expect_err(text).to_string();
            assert!(refused.contains("RESTORING cannot be read"), "{refused}");
        }
    }
}
