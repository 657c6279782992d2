//! Framing against a writer of its own, and the marker's bytes.

#![allow(clippy::indexing_slicing, reason = "a bad index fails the test")]

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use crate::storage::files::frames::{Break, read_records};
use crate::storage::files::logs::check_logs;
use crate::storage::files::manifest::check_manifest;
use crate::storage::files::marker::{Damage, Floor, MARKER, Marker, Stage, encode_floor, encode_head};
use crate::storage::identity::{Lineage, ServiceId, ShardIdentity};

const BLOCK: usize = 32 << 10;

/// As RocksDB writes records.
fn framed(records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        let (mut rest, mut begun) = (record.as_slice(), false);
        loop {
            let left = BLOCK - bytes.len() % BLOCK;
            if left < 7 {
                bytes.resize(bytes.len() + left, 0);
                continue;
            }
            let (now, later) = rest.split_at(rest.len().min(left - 7));
            let kind = match (begun, later.is_empty()) {
                (false, true) => 1,
                (false, false) => 2,
                (true, false) => 3,
                (true, true) => 4,
            };
            let crc = crc32c::crc32c(&[&[kind], now].concat());
            bytes.extend(crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes());
            bytes.extend(u16::try_from(now.len()).expect("a block is small").to_le_bytes());
            bytes.push(kind);
            bytes.extend(now);
            (rest, begun) = (later, true);
            if later.is_empty() {
                break;
            }
        }
    }
    bytes
}

fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Option<Break>) {
    let mut records = Vec::new();
    let broken = read_records(bytes, |record| {
        records.push(record.to_vec());
        ControlFlow::Continue(())
    });
    (records, broken)
}

fn records(lengths: &[usize]) -> Vec<Vec<u8>> {
    lengths.iter().enumerate().map(|(at, length)| vec![u8::try_from(at).expect("few") + 1; *length]).collect()
}

#[test]
fn records_come_back_as_they_were_written_whatever_blocks_they_cross() {
    for lengths in
        [&[0, 1, 20][..], &[BLOCK - 7, 5], &[BLOCK - 14, 9], &[BLOCK - 10, 9], &[100_000, 3, 70_000]]
    {
        let written = records(lengths);
        let bytes = framed(&written);
        assert_eq!(read(&bytes), (written, None), "{lengths:?}");
    }
}

#[test]
fn a_cut_is_a_break_behind_which_nothing_goes_on() {
    let written = records(&[10, 40_000, 20]);
    let bytes = framed(&written);
    for cut in (1..bytes.len()).step_by(13) {
        let (found, broken) = read(&bytes[..cut]);
        assert_eq!(found, written[..found.len()]);
        if let Some(broken) = broken {
            assert!(!broken.records_follow && broken.rocksdb_returns, "{cut}: {broken:?}");
            assert_eq!(broken.at, framed(&written[..found.len()]).len(), "{cut}");
        }
    }
}

#[test]
fn a_changed_byte_is_a_break_and_what_follows_it_is_seen() {
    let written = records(&[10, 300, 33_000, 20, 5]);
    let bytes = framed(&written);
    let last = framed(&written[..4]).len();
    for at in (0..bytes.len()).filter(|at| at % 311 == 0 || *at < 400 || *at + 40 > bytes.len()) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        let (found, broken) = read(&changed);
        assert_eq!(found, written[..found.len()], "{at}");
        let broken = broken.unwrap_or_else(|| panic!("the byte at {at} is not missed"));
        assert_eq!(broken.records_follow, at < last, "{at}: {broken:?}");
    }
}

/// `ReadPhysicalRecord` of RocksDB 11.8.1 neither takes such a fragment nor passes over it.
#[test]
fn a_type_that_rocksdb_never_gets_past_is_known() {
    let written = records(&[10, 300, 20]);
    let last = framed(&written[..2]).len();
    for kind in [5, 6, 7, 8, 11, 131] {
        let mut bytes = framed(&written);
        bytes[last + 6] = kind;
        let (_, broken) = read(&bytes);
        assert_eq!(broken, Some(Break { at: last, records_follow: false, rocksdb_returns: false }), "{kind}");
    }
}

#[test]
fn zeros_where_a_record_was_are_a_break() {
    let written = records(&[10, 300, 20]);
    let bytes = framed(&written);
    let second = framed(&written[..1]).len();
    let mut zeroed = bytes.clone();
    zeroed[second..second + 307].fill(0);
    let broken = Break { at: second, records_follow: true, rocksdb_returns: true };
    assert_eq!(read(&zeroed), (written[..1].to_vec(), Some(broken)));
}

#[test]
fn a_manifest_is_refused_by_its_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = || check_manifest(folder.path()).expect_err("it is refused").to_string();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("written");
    assert!(refused().contains("the file CURRENT is missing"));
    for current in ["", "MANIFEST-000001", "MANIFEST-\n", "MANIFEST-../x\n", "MANIFESU-000001\n"] {
        put("CURRENT", current.as_bytes());
        assert!(refused().contains("the file CURRENT does not name"), "{current}");
    }
    put("CURRENT", b"MANIFEST-000001\n");
    assert!(refused().contains("the file MANIFEST-000001, which CURRENT names, is missing"));
    put("MANIFEST-000001", b"");
    assert!(refused().contains("the file MANIFEST-000001 holds no records"));
    let mut bytes = framed(&records(&[10, 300]));
    put("MANIFEST-000001", &bytes);
    check_manifest(folder.path()).expect("it is whole");
    bytes[9] ^= 1;
    put("MANIFEST-000001", &bytes);
    assert!(refused().contains("the file MANIFEST-000001 is broken after 0 of 324 bytes"), "{}", refused());
}

#[test]
fn a_manifest_or_a_log_of_holes_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("CURRENT"), "MANIFEST-000001\n").expect("written");
    let holes = |name: &str, gibibytes: u64| {
        let file = File::create(folder.path().join(name)).expect("it can be made");
        file.set_len(gibibytes << 30).expect("it takes no room");
    };
    for gibibytes in [1, 2, 1 << 10] {
        holes("MANIFEST-000001", gibibytes);
        holes("000002.log", gibibytes);
        let refused = [
            check_manifest(folder.path()).expect_err("it has no end").to_string(),
            check_logs(folder.path(), b"key").expect_err("it has no end").to_string(),
        ];
        for (refused, name) in refused.iter().zip(["MANIFEST-000001", "000002.log"]) {
            assert!(refused.contains(name) && refused.contains("from a snapshot or a copy"), "{refused}");
        }
    }
}

fn read_marker(folder: &Path) -> Marker {
    Marker::read(folder).expect("it can be read").expect("it is there")
}

/// These bytes are on people's disks.
#[test]
fn golden_bytes_of_a_marker() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let floor = Floor { applied: 0x0102, rocksdb_sequence: 0x0304 };
    Marker::put(folder.path(), Stage::InService, (2, 3), floor).expect("the disk takes it");
    let bytes = std::fs::read(folder.path().join(MARKER)).expect("it is there");
    assert_eq!(bytes.len(), 1536);
    assert_eq!(bytes[..20], *b"ranktree\x01\0\0\0\x02\0\0\0\x02\0\x03\0");
    assert_eq!(bytes[20..24], crc32c::crc32c(&bytes[..20]).to_le_bytes());
    assert_eq!(bytes[..24], *encode_head(Stage::InService, 2, 3));
    for at in [512, 1024] {
        assert_eq!(bytes[at..at + 16], *b"\x02\x01\0\0\0\0\0\0\x04\x03\0\0\0\0\0\0");
        assert_eq!(bytes[at..at + 20], *encode_floor(floor));
    }
}

#[test]
fn golden_bytes_of_a_shards_identity() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let marker = Marker::put(folder.path(), Stage::InService, (2, 3), Floor::default());
    let marker = marker.expect("the disk takes it");
    assert_eq!(marker.identity(), None);
    let identity = ShardIdentity {
        service: Some(ServiceId(1)),
        lineage: Some(Lineage(2)),
        epoch: 3,
        opening: 4,
        opened_before: 5,
    };
    marker.set_identity(identity).expect("the disk takes it");
    let bytes = std::fs::read(folder.path().join(MARKER)).expect("it is there");
    let mut expect = vec![0; 56];
    for (at, number) in [(0, 1), (16, 2), (32, 3), (40, 4), (48, 5)] {
        expect[at] = number;
    }
    assert_eq!(bytes[128..184], expect);
    assert_eq!(bytes[184..188], crc32c::crc32c(&expect).to_le_bytes());
    assert_eq!(read_marker(folder.path()).identity(), Some(identity));
}

/// Their tags and order are RocksDB's.
#[test]
fn a_manifest_says_what_is_in_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("CURRENT"), "MANIFEST-000005\n").expect("written");
    let last_rocksdb_sequence = |edits: &[&[u8]]| {
        let edits: Vec<_> = edits.iter().map(|edit| edit.to_vec()).collect();
        std::fs::write(folder.path().join("MANIFEST-000005"), framed(&edits)).expect("written");
        check_manifest(folder.path()).expect("it is whole").last_rocksdb_sequence
    };
    // The database's id, its comparator, logs, the next file, and where the files end.
    let edit = b"\x81\x40\x02id\x01\x03cmp\x02\x07\x09\x00\x03\x08\xcb\x01\x02\x0a\x06\x04\xac\x02";
    assert_eq!(last_rocksdb_sequence(&[edit]), 300);
    assert_eq!(last_rocksdb_sequence(&[edit, b"\x04\x05"]), 300);
    assert_eq!(last_rocksdb_sequence(&[b"\x04\x05\x67 what it says of files", edit]), 300);
    assert_eq!(last_rocksdb_sequence(&[b"\x67\x04\x05", b"\x04", b""]), 0);
}

#[test]
fn a_marker_says_that_its_shard_is_filled_from_a_stream() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let put = Marker::put(folder.path(), Stage::Created, (0, 1), Floor::default());
    let mut marker = put.expect("the disk takes it");
    assert!(!read_marker(folder.path()).is_filled_from_stream());
    marker.note_filled_from_stream().expect("the disk takes it");
    marker.set_stage(Stage::InService).expect("the disk takes it");
    assert!(marker.is_filled_from_stream() && read_marker(folder.path()).is_filled_from_stream());
    let mut bytes = std::fs::read(folder.path().join(MARKER)).expect("it is there");
    assert_eq!(bytes[256..264], *b"a stream");
    assert_eq!(bytes[264..268], crc32c::crc32c(b"a stream").to_le_bytes());
    bytes[260] ^= 1;
    std::fs::write(folder.path().join(MARKER), &bytes).expect("the disk takes it");
    assert!(!read_marker(folder.path()).is_filled_from_stream());
}

#[test]
fn a_floor_only_rises_and_one_of_two_is_enough() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let marker =
        Marker::put(folder.path(), Stage::Created, (0, 1), Floor::default()).expect("the disk takes it");
    for rocksdb_sequence in [5, 9, 7] {
        marker.raise_floor(Floor { applied: rocksdb_sequence * 10, rocksdb_sequence });
    }
    let highest = Floor { applied: 90, rocksdb_sequence: 9 };
    assert_eq!((marker.floor(), read_marker(folder.path()).floor()), (highest, highest));
    // The one written last is torn: the other is what is known.
    let path = folder.path().join(MARKER);
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes[1024] ^= 1;
    std::fs::write(&path, &bytes).expect("the disk takes it");
    let marker = read_marker(folder.path());
    assert_eq!(
        (marker.floor(), marker.damage),
        (Floor { applied: 50, rocksdb_sequence: 5 }, Some(Damage::OneFloor))
    );
    bytes[0] ^= 1;
    std::fs::write(&path, &bytes).expect("the disk takes it");
    assert_eq!(read_marker(folder.path()).damage, Some(Damage::All));
}
