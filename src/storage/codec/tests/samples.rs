//! A value of each kind, and how it is read.

use std::sync::Arc;

use crate::board::{Definition, Key, Order, Policy, Ties};
use crate::job::RejectCode;
use crate::state::{
    Applied, BoardEvent, DroppedName, Entry, EntryState, Extra, HashPoint, Incarnation, LogHash,
    RecordNumber, TreeId, Unlisted,
};
use crate::storage::codec::{
    Delta, DeltaChange, Divergence, FORMAT_VERSION, Manifest, ManifestBoard, Meta, MetadataRecord,
    ParkedRecord, ProfileRecord, RejectRecord, Undecodable, decode_copied_from, decode_delta,
    decode_dictionary, decode_divergence, decode_entries, decode_extras, decode_hash_point, decode_log_hash,
    decode_manifest, decode_meta, decode_metadata, decode_parked, decode_profile, decode_reject,
    encode_copied_from, encode_delta, encode_dictionary, encode_divergence, encode_entries, encode_extras,
    encode_hash_point, encode_log_hash, encode_manifest, encode_meta, encode_metadata, encode_parked,
    encode_profile, encode_reject,
};
use crate::storage::identity::{Lineage, ServiceId, ShardIdentity};
use crate::tree::{Handle, Words};
use crate::types::{BoardName, NodeName, Sequence, Timestamp};
use crate::window::{Seasons, Series, Window};

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

pub fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

pub fn name(text: &str) -> BoardName {
    BoardName::of_shard(text).expect("well-formed")
}

pub fn words(keys: &[u64]) -> Words {
    Words::from_slice(keys)
}

pub fn applied() -> Applied {
    Applied { sequence: Sequence(1_842), timestamp: time(1_000_000), hash: 0x0102_0304_0506_0708 }
}

pub fn definition() -> Arc<Definition> {
    let time = Key { name: "time_ms".to_owned(), order: Order::Ascending, min: 0, ..Key::score() };
    Arc::new(Definition {
        keys: vec![Key::score(), time],
        policy: Policy::Best,
        ties: Ties::Last,
        utc_offset_minutes: -90,
        keep: 12,
        ..Definition::default()
    })
}

/// With windows and lengths of its own.
pub fn windowed() -> Arc<Definition> {
    let series = |first, begin, every| Series { first, begin: time(begin), every };
    Arc::new(Definition {
        windows: vec![Window::Season, Window::All, Window::Hour],
        seasons: Some(Seasons::Regular(vec![
            series(1, 1_000_000, 120_000_000),
            series(4, 361_000_000, 60_000_000),
        ])),
        grace_micros: 0,
        entry_ttl_micros: Some(86_400_000_000),
        ..Definition::default()
    })
}

pub fn with_manual_seasons() -> Arc<Definition> {
    Arc::new(Definition {
        windows: vec![Window::Season],
        seasons: Some(Seasons::Manual(vec![time(1_000_000), time(2_000_000)])),
        ..Definition::default()
    })
}

/// A batch that defines a board and an instance of it, and drops one.
pub fn windowed_delta() -> Delta {
    let define = |board, definition| BoardEvent::Define {
        board: name(board),
        incarnation: Incarnation(3),
        number: Some(RecordNumber(4)),
        definition,
    };
    Delta {
        events: vec![
            define("arena", windowed()),
            define("arena#2026-11-20T09", windowed()),
            define("b", with_manual_seasons()),
            BoardEvent::Drop { board: name("arena#s7"), incarnation: Incarnation(2), number: None },
        ],
        changes: Vec::new(),
        ..delta()
    }
}

pub fn windowed_manifest() -> Manifest {
    let board =
        |board, definition| ManifestBoard { name: name(board), definition, ..manifest().boards.remove(0) };
    Manifest {
        boards: vec![
            board("arena", windowed()),
            board("arena#2026-W47", windowed()),
            board("b", with_manual_seasons()),
        ],
        ..manifest()
    }
}

pub fn meta() -> Meta {
    Meta {
        format_version: FORMAT_VERSION,
        shard: 2,
        shards: 10,
        applied_sequence: 1_842,
        message_timestamp_micros: 1_000_000,
        message_hash: 7,
        jobs_rejected: 300,
        stream: "S".to_owned(),
        time_micros: 2_000_000,
        leap_micros: None,
        identity: ShardIdentity::default(),
    }
}

pub fn identity() -> ShardIdentity {
    ShardIdentity {
        service: Some(ServiceId(1)),
        lineage: Some(Lineage(300)),
        epoch: 7,
        opening: 8,
        opened_before: 9,
    }
}

pub fn reject() -> RejectRecord {
    RejectRecord {
        sequence: Sequence(5),
        index: 3,
        code: RejectCode::StaleVersion,
        detail: "old".to_owned(),
        job: b"{}".to_vec(),
        time: time(1_000_000),
        board: Some(name("b")),
    }
}

pub fn parked() -> ParkedRecord {
    ParkedRecord {
        sequence: Sequence(5),
        index: 3,
        timestamp: time(1_000_000),
        job: b"{}".to_vec(),
        board: 0,
    }
}

pub fn log_hash() -> LogHash {
    LogHash::at(HashPoint { sequence: Sequence(300), hash: 0x0102_0304_0506_0708 })
}

pub fn divergence() -> Divergence {
    Divergence {
        stream: "S@1".to_owned(),
        sequence: Sequence(1),
        by: NodeName::new("a").expect("a good name"),
        own: 0x0102_0304_0506_0708,
        node: NodeName::new("n-b").expect("a good name"),
        theirs: 2,
    }
}

pub fn delta() -> Delta {
    let entry = Entry {
        state: EntryState::Listed(words(&[!(0x4b0 ^ (1 << 63)), (1 << 63) + 5])),
        updated_at: time(999_999),
        version: None,
        has_metadata: false,
    };
    let hidden = Entry { state: EntryState::Hidden(words(&[0, u64::MAX])), version: Some(u64::MAX), ..entry };
    let removed = Entry { state: EntryState::Removed, has_metadata: true, ..hidden };
    let change = |tree, member: &str, before, after| DeltaChange {
        tree: TreeId(tree),
        member: member.as_bytes().to_vec(),
        before,
        after,
    };
    Delta {
        first: Sequence(1_840),
        applied: applied(),
        events: vec![
            BoardEvent::Define {
                board: name("arena"),
                incarnation: Incarnation(3),
                number: None,
                definition: definition(),
            },
            BoardEvent::Drop { board: name("old"), incarnation: Incarnation(2), number: None },
        ],
        changes: vec![
            change(0, "p42", None, Some(entry)),
            change(0, "p43", Some(entry), Some(hidden)),
            change(7, "p42", Some(hidden), Some(removed)),
            change(7, "日本", Some(removed), None),
        ],
    }
}

pub fn manifest() -> Manifest {
    Manifest {
        applied: applied(),
        copied_through: Sequence(1_850),
        next_tree: 4,
        boards: vec![ManifestBoard {
            name: name("arena"),
            incarnation: Incarnation(3),
            definition: definition(),
            all: TreeId(1),
            entries: 100_000,
        }],
        dropped: vec![DroppedName {
            name: name("old"),
            life: Incarnation(2),
            number: Some(RecordNumber(300)),
        }],
        forgotten: RecordNumber(7),
        latest: RecordNumber(301),
    }
}

pub fn extra() -> Extra {
    Extra {
        updated_at: time(1_000_000),
        version: Some(17),
        has_metadata: true,
        unlisted: Some(Unlisted::Hidden(Box::new(words(&[1 << 63, 0])))),
    }
}

/// These bytes are on people's disks. A change here needs a new format version.
pub fn dictionary(bytes: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, Undecodable> {
    let mut members = Vec::new();
    decode_dictionary(bytes, |handle, id| members.push((handle.0, id.to_vec())))?;
    Ok(members)
}

pub type Reader = fn(&[u8]) -> bool;

/// Every kind: bytes of one, and whether bytes can be read as one.
pub fn kinds() -> Vec<(&'static str, Vec<u8>, Reader)> {
    let metadata = MetadataRecord { sequence: 300, json: r#"{"a":1}"#.to_owned() };
    let profile = ProfileRecord { sequence: 300, version: Some(7), json: Some("{}".to_owned()) };
    vec![
        ("meta", encode_meta(&meta()), |bytes| decode_meta(bytes).is_ok()),
        ("reject", encode_reject(&reject()), |bytes| decode_reject(Sequence(5), 3, bytes).is_ok()),
        ("parked job", encode_parked(&parked()), |bytes| decode_parked(Sequence(5), 3, bytes).is_ok()),
        ("metadata", encode_metadata(&metadata), |bytes| decode_metadata(bytes).is_ok()),
        ("profile", encode_profile(&profile), |bytes| decode_profile(bytes).is_ok()),
        ("dictionary", encode_dictionary([(Handle(3), &b"p42"[..])].into_iter()), |bytes| {
            dictionary(bytes).is_ok()
        }),
        ("extras", encode_extras(&[(Handle(3), &extra()), (Handle(4), &extra())]), |bytes| {
            decode_extras(bytes, |_, _| Ok(())).is_ok()
        }),
        ("page", encode_entries(&[4, 5], &[&[1_000, 9], &[u64::MAX, 0]]), |bytes| {
            decode_entries(bytes).is_ok()
        }),
        ("hash of the log", encode_log_hash(&log_hash(), Sequence(300)), |bytes| {
            decode_log_hash(bytes, Sequence(300)).is_ok()
        }),
        ("hash point", encode_hash_point(log_hash().point().expect("it is known")), |bytes| {
            decode_hash_point(Sequence(300), bytes).is_ok()
        }),
        ("divergence", encode_divergence(&divergence()), |bytes| decode_divergence(bytes).is_ok()),
        ("name of a node", encode_copied_from(&divergence().node), |bytes| decode_copied_from(bytes).is_ok()),
        ("delta", encode_delta(&delta()), |bytes| decode_delta(bytes).is_ok()),
        ("manifest", encode_manifest(&manifest()), |bytes| decode_manifest(bytes).is_ok()),
        ("delta of windows", encode_delta(&windowed_delta()), |bytes| decode_delta(bytes).is_ok()),
        ("manifest of windows", encode_manifest(&windowed_manifest()), |bytes| {
            decode_manifest(bytes).is_ok()
        }),
    ]
}
