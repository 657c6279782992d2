//! The file `RANKTREE` of a data directory. It records which shards it has had in service, and how many
//! there are in all.
//!
//! Each shard has a marker of its own, which is lost together with the shard's directory. An emptied
//! directory therefore does not show that it ever held data. This file does, even if the data directory has
//! only one shard. Data directories that an older version made get this file at their next start.
//!
//! ```text
//! ranktree data directory
//! format 1
//! shards 3
//! own 0,2             absent if it has all of them
//! crc32c 0123abcd     of the lines above
//! ```
//!
//! Versions before `own` read the other lines only, expect every shard, and refuse a directory that has some.

use std::io::ErrorKind;
use std::path::Path;

use crate::storage::error::StorageError;
use crate::storage::files::marker::MARKER;
use crate::storage::files::replaced::replace_file;
use crate::types::ShardSet;

/// The new file, which is renamed over the old one once it is written and synced.
const NEW: &str = "RANKTREE.new";
const TITLE: &str = "ranktree data directory";
/// The format of this file. Raised with every change that an older ranktree could not read.
const FORMAT: u32 = 1;

/// What a data directory is recorded to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataLayout {
    /// The number of all shards, on this node and on others.
    pub shards: u16,
    /// The shards that this directory has had in service, as of the last start.
    pub own: ShardSet,
}

impl DataLayout {
    /// A directory with every shard.
    #[must_use]
    pub fn all(shards: u16) -> Self {
        Self { shards, own: ShardSet::first(shards) }
    }
}

/// What this file says that a data directory holds; `None` if the file is missing or damaged.
///
/// # Errors
/// When the file cannot be read, or is from a newer ranktree.
pub fn marked_layout(data_dir: &Path) -> Result<Option<DataLayout>, StorageError> {
    let path = data_dir.join(MARKER);
    let text = match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::Io { path, error }),
    };
    let Some((format, layout)) = read(&text) else {
        tracing::warn!(path = %path.display(), "the file is damaged; a start writes it again from the shards' own files");
        return Ok(None);
    };
    match format {
        FORMAT => Ok(layout),
        found => Err(StorageError::NewerFormat { path: data_dir.to_owned(), found }),
    }
}

/// Records that these shards exist. The file is synced once this returns.
///
/// # Errors
/// When the disk refuses.
pub fn mark_layout(data_dir: &Path, layout: &DataLayout) -> Result<(), StorageError> {
    let path = data_dir.join(MARKER);
    match replace_file(&path, &data_dir.join(NEW), text(layout).as_bytes()) {
        Ok(_) => Ok(()),
        Err(error) => Err(StorageError::Io { path, error }),
    }
}

/// Whether a shard's directory has a marker of its own, damaged or not.
///
/// # Errors
/// When that cannot be told.
pub fn has_marker(shard_directory: &Path) -> Result<bool, StorageError> {
    let path = shard_directory.join(MARKER);
    path.try_exists().map_err(|error| StorageError::Io { path, error })
}

fn text(DataLayout { shards, own }: &DataLayout) -> String {
    let own = if own.is_first(*shards) { String::new() } else { format!("own {own}\n") };
    let lines = format!("{TITLE}\nformat {FORMAT}\nshards {shards}\n{own}");
    let checksum = crc32c::crc32c(lines.as_bytes());
    format!("{lines}crc32c {checksum:08x}\n")
}

/// Format, and what the directory holds: nothing is read of a newer format.
fn read(text: &str) -> Option<(u32, Option<DataLayout>)> {
    let (lines, checksum) = text.split_at_checked(text.rfind("crc32c ")?)?;
    if checksum != format!("crc32c {:08x}\n", crc32c::crc32c(lines.as_bytes())) {
        return None;
    }
    let mut lines = lines.lines();
    lines.next().filter(|title| *title == TITLE)?;
    let format = lines.next()?.strip_prefix("format ")?.parse().ok()?;
    if format != FORMAT {
        return Some((format, None));
    }
    let shards = lines.next()?.strip_prefix("shards ")?.parse().ok()?;
    let own = match lines.next() {
        Some(line) => ShardSet::parse(line.strip_prefix("own ")?).ok()?,
        None => ShardSet::first(shards),
    };
    Some((format, Some(DataLayout { shards, own })))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These bytes are on people's disks.
    #[test]
    fn golden_text_of_a_data_directory() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(marked_layout(folder.path()).expect("readable"), None);
        let own = |list| ShardSet::parse(list).expect("a good list");
        for (layout, own, checksum) in [
            (DataLayout::all(3), "", "e21152b0"),
            (DataLayout { shards: 4, own: own("0,2-3") }, "own 0,2-3\n", "3134b4b9"),
            (DataLayout { shards: 4, own: own("none") }, "own none\n", "9b41201f"),
        ] {
            mark_layout(folder.path(), &layout).expect("the disk takes it");
            let text = std::fs::read_to_string(folder.path().join(MARKER)).expect("it is there");
            let shards = layout.shards;
            assert_eq!(
                text,
                format!("ranktree data directory\nformat 1\nshards {shards}\n{own}crc32c {checksum}\n")
            );
            assert_eq!(marked_layout(folder.path()).expect("readable"), Some(layout));
        }
        let entries = std::fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(entries, 1, "nothing else is left");
    }

    #[test]
    fn a_damaged_one_says_nothing_and_a_newer_one_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |bytes: &[u8]| {
            std::fs::write(folder.path().join(MARKER), bytes).expect("the disk takes it");
            marked_layout(folder.path())
        };
        let whole = text(&DataLayout::all(3)).into_bytes();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped.get_mut(at).into_iter().for_each(|byte| *byte ^= 1);
            assert_eq!(put(&flipped).expect("readable"), None, "{at}");
            assert_eq!(put(whole.get(..at).expect("it is as long")).expect("readable"), None, "{at}");
        }
        let newer = format!("{TITLE}\nformat 2\nwhatever\n");
        let newer = format!("{newer}crc32c {:08x}\n", crc32c::crc32c(newer.as_bytes()));
        let refused = put(newer.as_bytes()).expect_err("it is newer").to_string();
        assert!(refused.contains("newer ranktree"), "{refused}");
    }
}
