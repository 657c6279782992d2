//! The file `RANKTREE` of a data directory. It records which service the data are of, which shards it has had
//! in service, how many there are in all, and how far each was known to be.
//!
//! Each shard has a marker of its own, which is lost together with the shard's directory, and which is as old
//! as that directory if an older copy is put in its place. An emptied directory, or an older copy, therefore
//! does not show what was there. This file does.
//!
//! ```text
//! ranktree data directory
//! format 2
//! shards 3
//! own 0,2             absent if it has all of them
//! service 5d0c...     absent if it is not known yet: 32 hexadecimal digits
//! prefix ranktree     of the streams that fill it; absent if none do
//! shard 0 lineage 77ab... epoch 12 opening 4c11... floor 48211
//! shard 2 lineage 0f31... epoch 3 opening 90d2... floor 977
//! crc32c 0123abcd     of the lines above
//! ```
//!
//! The floor of a shard is a sequence that it has applied and synced. It is raised every few seconds and at a
//! stop, and not with each batch.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use parking_lot::Mutex;

use crate::regular_file::{is_there, read_small_in};
use crate::storage::error::StorageError;
use crate::storage::files::marker::{MARKER, Marker, Stage};
use crate::storage::files::replaced::replace_file;
use crate::storage::identity::{Lineage, ServiceId, ShardIdentity};
use crate::storage::shard_directory::shard_directory;
use crate::types::{ShardId, ShardSet, decimal};

/// The new file, which is renamed over the old one once it is written and synced.
const NEW: &str = "RANKTREE.new";
const TITLE: &str = "ranktree data directory";
/// The format of this file, the only one that is read.
const FORMAT: u32 = 2;
/// More than the file has with the most shards that there can be.
const MAX_BYTES: u64 = 64 << 10;
/// Several threads change the file: each reads it, and writes it again.
static CHANGING: Mutex<()> = Mutex::new(());

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
    pub fn all(shards: u16) -> Self {
        Self { shards, own: ShardSet::first(shards) }
    }
}

/// What is recorded of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordedShard {
    pub lineage: Option<Lineage>,
    /// How often it was opened in this lineage.
    pub epoch: u64,
    /// The random number of its last opening.
    pub opening: u64,
    /// A sequence that it has applied and synced.
    pub floor: u64,
}

/// All that this file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataMarker {
    pub layout: DataLayout,
    /// `None`: it is not known yet.
    pub service: Option<ServiceId>,
    /// What the names of the streams begin with that fill it; `None`: it was never set up with any.
    pub prefix: Option<String>,
    pub shards: BTreeMap<ShardId, RecordedShard>,
}

/// What this file says; `None` if the file is missing.
///
/// # Errors
/// When the file cannot be read, is damaged, or has another format.
pub fn read_data_marker(data_dir: &Path) -> Result<Option<DataMarker>, StorageError> {
    let path = data_dir.join(MARKER);
    let text = match read_small_in(data_dir, MARKER, MAX_BYTES) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::Io { path, error }),
    };
    let Some((format, marker)) = read(&text) else {
        // It is replaced as a whole, so that no crash leaves it so.
        return Err(StorageError::DoesNotFit {
            path,
            what: "it was damaged or edited, so that it does not say which shards were here, and how far they were"
                .into(),
            step: "Put it back from a copy of this directory; or, if nobody has replaced a shard's directory since, \
                   remove this file: the next start writes it again from what the shards say"
                .into(),
        });
    };
    match format {
        FORMAT => Ok(marker),
        found => Err(StorageError::OtherFormat { path: data_dir.to_owned(), found, known: FORMAT }),
    }
}

/// Records that these shards exist, with what their own markers say that they are. The file is synced once
/// this returns.
pub fn mark_layout(data_dir: &Path, layout: &DataLayout) -> Result<(), StorageError> {
    let _changing = CHANGING.lock();
    let before = read_data_marker(data_dir).unwrap_or_default();
    let mut shards = BTreeMap::new();
    let mut services = Vec::new();
    for shard in layout.own.iter() {
        let recorded = before.as_ref().and_then(|before| before.shards.get(&shard)).copied();
        let (entry, service) = recorded_of(data_dir, shard, recorded)?;
        shards.extend(entry.map(|entry| (shard, entry)));
        services.extend(service);
    }
    let (service, prefix) = before.map_or((None, None), |before| (before.service, before.prefix));
    let service = services.first().copied().or(service);
    put(data_dir, &DataMarker { layout: layout.clone(), service, prefix, shards })
}

/// Records that the data directory is filled from the streams whose names begin so. Does nothing if it has no
/// marker.
pub fn mark_prefix(data_dir: &Path, prefix: &str) -> Result<(), StorageError> {
    let _changing = CHANGING.lock();
    let Some(marker) = read_data_marker(data_dir)? else { return Ok(()) };
    if marker.prefix.as_deref() == Some(prefix) {
        return Ok(());
    }
    put(data_dir, &DataMarker { prefix: Some(prefix.to_owned()), ..marker })
}

/// Records what lies in a shard's place now, and was put there by this process. Does nothing if the data
/// directory has no marker.
pub fn mark_shard(data_dir: &Path, shard: ShardId) -> Result<(), StorageError> {
    let _changing = CHANGING.lock();
    let Some(mut marker) = read_data_marker(data_dir)? else { return Ok(()) };
    let (entry, _) = recorded_of(data_dir, shard, marker.shards.get(&shard).copied())?;
    marker.shards.extend(entry.map(|entry| (shard, entry)));
    put(data_dir, &marker)
}

/// Raises the floors of shards to what they have applied and synced. A shard that is not recorded as the one
/// that the caller has open is left as it is: another data directory may lie at this path by now.
pub fn raise_floors(data_dir: &Path, reached: &[(ShardId, ShardIdentity, u64)]) -> Result<(), StorageError> {
    let _changing = CHANGING.lock();
    let Some(mut marker) = read_data_marker(data_dir)? else { return Ok(()) };
    let mut has_changed = false;
    for (shard, identity, floor) in reached {
        if let Some(recorded) = marker.shards.get_mut(shard)
            && (recorded.lineage, recorded.opening) == (identity.lineage, identity.opening)
            && recorded.floor < *floor
        {
            recorded.floor = *floor;
            has_changed = true;
        }
    }
    if has_changed { put(data_dir, &marker) } else { Ok(()) }
}

/// What a shard's own marker says, and its service. A shard that was made in the place of a lost one, and
/// holds nothing yet, is recorded as before.
fn recorded_of(
    data_dir: &Path,
    shard: ShardId,
    before: Option<RecordedShard>,
) -> Result<(Option<RecordedShard>, Option<ServiceId>), StorageError> {
    let Some(marker) = Marker::read(&shard_directory(data_dir, shard))? else { return Ok((before, None)) };
    let Some(identity) = marker.identity().filter(|_| marker.stage == Stage::InService) else {
        return Ok((before, marker.identity().and_then(|identity| identity.service)));
    };
    let floor_before =
        before.filter(|before| before.lineage == identity.lineage).map_or(0, |before| before.floor);
    let recorded = RecordedShard {
        lineage: identity.lineage,
        epoch: identity.epoch,
        opening: identity.opening,
        floor: floor_before.max(marker.floor().applied),
    };
    Ok((Some(recorded), identity.service))
}

fn put(data_dir: &Path, marker: &DataMarker) -> Result<(), StorageError> {
    let path = data_dir.join(MARKER);
    match replace_file(&path, &data_dir.join(NEW), text(marker).as_bytes()) {
        Ok(_) => Ok(()),
        Err(error) => Err(StorageError::Io { path, error }),
    }
}

/// Whether a shard's directory has a marker of its own, damaged or not.
pub fn has_marker(shard_directory: &Path) -> Result<bool, StorageError> {
    let path = shard_directory.join(MARKER);
    is_there(&path).map_err(|error| StorageError::Io { path, error })
}

fn text(DataMarker { layout, service, prefix, shards }: &DataMarker) -> String {
    let DataLayout { shards: count, own } = layout;
    let mut lines = vec![format!("{TITLE}\nformat {FORMAT}\nshards {count}\n")];
    if !own.is_first(*count) {
        lines.push(format!("own {own}\n"));
    }
    lines.extend(service.map(|service| format!("service {service}\n")));
    lines.extend(prefix.as_ref().map(|prefix| format!("prefix {prefix}\n")));
    lines.extend(shards.iter().filter_map(|(shard, recorded)| {
        let RecordedShard { lineage, epoch, opening, floor } = recorded;
        let of_lineage = format!("shard {shard} lineage {}", (*lineage)?);
        Some(format!("{of_lineage} epoch {epoch} opening {opening:016x} floor {floor}\n"))
    }));
    let lines = lines.concat();
    let checksum = crc32c::crc32c(lines.as_bytes());
    format!("{lines}crc32c {checksum:08x}\n")
}

/// Format, and what the file says: nothing is read of another format.
fn read(text: &str) -> Option<(u32, Option<DataMarker>)> {
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
    let count = lines.next()?.strip_prefix("shards ")?.parse().ok()?;
    let (mut own, mut shards) = (ShardSet::first(count), BTreeMap::new());
    let (mut service, mut prefix) = (None, None);
    for line in lines {
        if let Some(list) = line.strip_prefix("own ") {
            own = ShardSet::parse(list).ok()?;
        } else if let Some(id) = line.strip_prefix("service ") {
            service = Some(ServiceId::parse(id)?);
        } else if let Some(name) = line.strip_prefix("prefix ") {
            prefix = Some(name.to_owned());
        } else {
            let (shard, recorded) = read_shard(line)?;
            shards.insert(shard, recorded);
        }
    }
    Some((format, Some(DataMarker { layout: DataLayout { shards: count, own }, service, prefix, shards })))
}

fn read_shard(line: &str) -> Option<(ShardId, RecordedShard)> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["shard", shard, "lineage", lineage, "epoch", epoch, "opening", opening, "floor", floor] =
        words.as_slice()
    else {
        return None;
    };
    let recorded = RecordedShard {
        lineage: Some(Lineage::parse(lineage)?),
        epoch: decimal(epoch)?,
        opening: u64::from_str_radix(opening, 16).ok()?,
        floor: decimal(floor)?,
    };
    Some((ShardId(decimal(shard)?), recorded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(list: &str) -> ShardSet {
        ShardSet::parse(list).expect("a good list")
    }

    fn marker(layout: DataLayout) -> DataMarker {
        DataMarker { layout, service: None, prefix: None, shards: BTreeMap::new() }
    }

    /// These bytes are on people's disks.
    #[test]
    fn golden_text_of_a_data_directory() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(read_data_marker(folder.path()).expect("readable"), None);
        let recorded = |lineage, epoch, floor| RecordedShard {
            lineage: Some(Lineage(lineage)),
            epoch,
            opening: 0xab,
            floor,
        };
        let whole = DataMarker {
            layout: DataLayout { shards: 4, own: own("0,2") },
            service: Some(ServiceId(0xabc)),
            prefix: Some("eu_ranks-2".to_owned()),
            shards: [(ShardId(0), recorded(17, 12, 48_211)), (ShardId(2), recorded(18, 3, 0))].into(),
        };
        let lines = "own 0,2\nservice 00000000000000000000000000000abc\nprefix eu_ranks-2\n\
             shard 0 lineage 00000000000000000000000000000011 epoch 12 opening 00000000000000ab floor 48211\n\
             shard 2 lineage 00000000000000000000000000000012 epoch 3 opening 00000000000000ab floor 0\n";
        for (marker, lines) in [
            (marker(DataLayout::all(3)), ""),
            (marker(DataLayout { shards: 4, own: own("none") }), "own none\n"),
            (whole, lines),
        ] {
            put(folder.path(), &marker).expect("the disk takes it");
            let text = std::fs::read_to_string(folder.path().join(MARKER)).expect("it is there");
            let shards = marker.layout.shards;
            let expect = format!("ranktree data directory\nformat 2\nshards {shards}\n{lines}");
            let checksum = crc32c::crc32c(expect.as_bytes());
            assert_eq!(text, format!("{expect}crc32c {checksum:08x}\n"));
            assert_eq!(read_data_marker(folder.path()).expect("readable"), Some(marker));
        }
        let entries = std::fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(entries, 1, "nothing else is left");
    }

    #[test]
    fn a_damaged_one_and_a_newer_one_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |bytes: &[u8]| {
            std::fs::write(folder.path().join(MARKER), bytes).expect("the disk takes it");
            read_data_marker(folder.path())
        };
        let whole = text(&marker(DataLayout::all(3))).into_bytes();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped.get_mut(at).into_iter().for_each(|byte| *byte ^= 1);
            for damaged in [&*flipped, whole.get(..at).expect("it is as long")] {
                let refused = put(damaged).expect_err("it is damaged").to_string();
                assert!(refused.contains("it was damaged or edited"), "{at}: {refused}");
            }
        }
        let newer = format!("{TITLE}\nformat 3\nwhatever\n");
        let newer = format!("{newer}crc32c {:08x}\n", crc32c::crc32c(newer.as_bytes()));
        let refused = put(newer.as_bytes()).expect_err("it is newer").to_string();
        assert!(refused.contains("another version of ranktree"), "{refused}");
    }

    #[test]
    fn the_prefix_is_recorded_in_a_marker_that_is_there_and_outlasts_the_next_start() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        mark_prefix(folder.path(), "eu").expect("there is nothing to record it in");
        assert_eq!(read_data_marker(folder.path()).expect("readable"), None);
        let layout = DataLayout { shards: 3, own: own("none") };
        for prefix in ["eu", "eu", "us"] {
            mark_layout(folder.path(), &layout).expect("the disk takes it");
            mark_prefix(folder.path(), prefix).expect("the disk takes it");
            mark_layout(folder.path(), &layout).expect("the disk takes it");
            let found = read_data_marker(folder.path()).expect("readable").expect("it is there");
            assert_eq!((found.layout, found.prefix.as_deref()), (layout.clone(), Some(prefix)));
        }
    }

    #[test]
    fn a_floor_is_raised_for_the_shard_that_is_recorded_and_for_no_other() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let recorded = RecordedShard { lineage: Some(Lineage(7)), epoch: 2, opening: 2, floor: 5 };
        let shards = BTreeMap::from([(ShardId(0), recorded)]);
        put(folder.path(), &DataMarker { shards, ..marker(DataLayout::all(1)) }).expect("the disk takes it");
        let floor_after = |lineage, opening, floor| {
            let lineage = Some(Lineage(lineage));
            let identity = ShardIdentity { lineage, opening, ..ShardIdentity::default() };
            raise_floors(folder.path(), &[(ShardId(0), identity, floor)]).expect("the disk takes it");
            let marker = read_data_marker(folder.path()).expect("readable").expect("it is there");
            marker.shards[&ShardId(0)].floor
        };
        assert_eq!(floor_after(7, 2, 9), 9);
        assert_eq!(floor_after(7, 2, 8), 9, "it never falls");
        assert_eq!(floor_after(8, 2, 11), 9);
        assert_eq!(floor_after(7, 3, 11), 9);
        std::fs::remove_file(folder.path().join(MARKER)).expect("it is there");
        let identity = ShardIdentity::default();
        raise_floors(folder.path(), &[(ShardId(0), identity, 9)]).expect("there is nothing to raise");
        assert!(!folder.path().join(MARKER).exists());
    }
}
