//! Golden bytes of every value kind, round trips of all that varies, and what damage does: an error, and
//! nothing else.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::board::{Definition, Key, Kind, Order, Policy, Ties};
use crate::job::RejectCode;
use crate::state::{
    Applied, BoardEvent, DroppedName, Entry, EntryState, Extra, HashPoint, Incarnation, LogHash,
    RecordNumber, TreeId, Unlisted,
};
use crate::tree::{Handle, Words};
use crate::types::{BoardName, MAX_KEYS, NodeName, Score, Sequence, Timestamp};
use crate::window::{Seasons, Series, Window};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

fn name(text: &str) -> BoardName {
    BoardName::of_shard(text).expect("well-formed")
}

fn words(keys: &[u64]) -> Words {
    Words::from_slice(keys)
}

fn applied() -> Applied {
    Applied { sequence: Sequence(1_842), timestamp: time(1_000_000), hash: 0x0102_0304_0506_0708 }
}

fn definition() -> Arc<Definition> {
    let time = Key { name: "time_ms".to_owned(), order: Order::Ascending, min: 0, max: i64::MAX };
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
fn windowed() -> Arc<Definition> {
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

fn with_manual_seasons() -> Arc<Definition> {
    Arc::new(Definition {
        windows: vec![Window::Season],
        seasons: Some(Seasons::Manual(vec![time(1_000_000), time(2_000_000)])),
        ..Definition::default()
    })
}

/// A batch that defines a board and an instance of it, and drops one.
fn windowed_delta() -> Delta {
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

fn windowed_manifest() -> Manifest {
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

fn meta() -> Meta {
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
    }
}

fn reject() -> RejectRecord {
    RejectRecord {
        sequence: Sequence(5),
        index: 3,
        code: RejectCode::StaleVersion,
        detail: "old".to_owned(),
        job: b"{}".to_vec(),
        time: Some(time(1_000_000)),
    }
}

fn parked() -> ParkedRecord {
    ParkedRecord {
        sequence: Sequence(5),
        index: 3,
        timestamp: time(1_000_000),
        job: b"{}".to_vec(),
        board: 0,
    }
}

fn log_hash() -> LogHash {
    LogHash::at(HashPoint { sequence: Sequence(300), hash: 0x0102_0304_0506_0708 })
}

fn divergence() -> Divergence {
    Divergence {
        stream: "S@1".to_owned(),
        sequence: Sequence(1),
        by: NodeName::new("a").expect("a good name"),
        own: 0x0102_0304_0506_0708,
        node: NodeName::new("n-b").expect("a good name"),
        theirs: 2,
    }
}

fn delta() -> Delta {
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

fn manifest() -> Manifest {
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

fn extra() -> Extra {
    Extra {
        updated_at: time(1_000_000),
        version: Some(17),
        has_metadata: true,
        unlisted: Some(Unlisted::Hidden(Box::new(words(&[1 << 63, 0])))),
    }
}

/// These bytes are on people's disks. A change here needs a new format version and code that reads the old
/// one.
#[test]
fn golden_bytes_of_every_value() {
    let check = |bytes: Vec<u8>, golden: &str| assert_eq!(hex(&bytes), golden);
    check(encode_meta(&meta()), "03020afb3207fc80841e0007fb2c010153fc00093d00");
    check(encode_meta(&Meta { format_version: 2, ..meta() }), "02020afb3207fc80841e0007fb2c010153fc00093d00");
    check(encode_meta(&Meta { format_version: 1, ..meta() }), "01020afb3207fc80841e0007fb2c010153");
    check(encode_reject(&reject()), "86036f6c64027b7dfc80841e00");
    check(encode_reject(&RejectRecord { time: None, ..reject() }), "06036f6c64027b7d");
    let metadata = MetadataRecord { sequence: 300, json: r#"{"a":1}"#.to_owned() };
    check(encode_metadata(&metadata), "fb2c01077b2261223a317d");
    let json = Some(r#"{"a":1}"#.to_owned());
    let profile = ProfileRecord { sequence: 300, version: Some(7), json };
    check(encode_profile(&profile), "fb2c01010701077b2261223a317d");
    check(encode_profile(&ProfileRecord { version: None, json: None, ..profile }), "fb2c010000");
    check(encode_profile_removed(Sequence(300)), "fb2c01");
    check(
        encode_dictionary([(Handle(3), &b"p42"[..]), (Handle(300), b"x")].into_iter()),
        "020303703432fb2c010178",
    );
    check(encode_extra(&extra()), "fc80841e0001110101020200fdffffffffffffffff");
    check(
        encode_extra(&Extra { unlisted: Some(Unlisted::Removed), version: None, ..extra() }),
        "fc80841e0000010100",
    );
    check(encode_extra(&Extra { unlisted: None, has_metadata: false, ..extra() }), "fc80841e0001110000");
    let removed =
        Extra { unlisted: Some(Unlisted::Removed), version: None, updated_at: time(1_000_300), ..extra() };
    check(
        encode_extras(&[(Handle(3), &extra()), (Handle(300), &removed)]),
        "02fc80841e00030001110101020200fdfffffffffffffffffb2c01fb2c0100010100",
    );
    // A member page and a tree page are the same record under other keys.
    let columns: [&[u64]; 2] = [&[1_000, 1_001, 1_300], &[u64::MAX, 0, 1 << 63]];
    check(
        encode_entries(&[4, 5, 70_000], &columns),
        "030405fc7011010002fbe8030001fb2c0100fdffffffffffffffff00fd0000000000000080",
    );
    check(encode_place(Sequence(300), 4), "fb2c0104");
    check(encode_parked(&parked()), "fc80841e00027b7d");
    check(encode_parked(&ParkedRecord { board: 3, ..parked() }), "fc80841e00027b7d03");
    check(encode_log_hash(&log_hash(), Sequence(300)), "02fb2c0101fd0807060504030201");
    check(encode_log_hash(&LogHash::unknown_at(Sequence(300)), Sequence(300)), "02fb2c0100");
    check(encode_hash_point(log_hash().point().expect("it is known")), "01fd0807060504030201");
    check(encode_divergence(&divergence()), "03534031010161fd0807060504030201036e2d6202");
    check(encode_copied_from(&divergence().node), "036e2d62");
    check(encode_delta(&delta()), GOLDEN_DELTA);
    check(encode_manifest(&manifest()), GOLDEN_MANIFEST);
    check(encode_delta(&windowed_delta()), GOLDEN_WINDOWED_DELTA);
    check(encode_manifest(&windowed_manifest()), GOLDEN_WINDOWED_MANIFEST);
}

const GOLDEN_DELTA: &str = "\
    fb3007fb3207fc80841e00fd08070605040302010200056172656e6103020573636f726501fdfffffffffffffffffdfe\
    ffffffffffffff0774696d655f6d730000fdfeffffffffffffff0101b30c01036f6c640204000370343200010102fb61\
    090a0100000003703433010102fb61090a010000010202fdfffffffffffffffffdfeffffffffffffff0101fdffffffff\
    ffffffff00010703703432010202fdfffffffffffffffffdfeffffffffffffff0101fdffffffffffffffff0001000101\
    fdffffffffffffffff010006e697a5e69cac01000101fdffffffffffffffff0100";
const GOLDEN_MANIFEST: &str = "\
    04fb3207fc80841e00fd0807060504030201fb3a070401056172656e6103020573636f726501fdfffffffffffffffffd\
    feffffffffffffff0774696d655f6d730000fdfeffffffffffffff0101b30c01fca086010001036f6c640207fb2d0101\
    01fb2c01";

const GOLDEN_WINDOWED_DELTA: &str = "\
    fb3007fb3207fc80841e00fd08070605040302010403056172656e610304010573636f726501fdfffffffffffffffffd\
    feffffffffffffff0080000c040003050001010201fc80841e00fc001c4e0e04fc80d8082bfc000e2707030004fd00c0\
    ae3b2800000003136172656e6123323032362d31312d32305430390304010573636f726501fdfffffffffffffffffdfe\
    ffffffffffffff0080000c040003050001010201fc80841e00fc001c4e0e04fc80d8082bfc000e2707030004fd00c0ae\
    3b280000000301620304010573636f726501fdfffffffffffffffffdfeffffffffffffff0080000c020001050202fc80\
    841e00fc00093d0001086172656e612373370200";
const GOLDEN_WINDOWED_MANIFEST: &str = "\
    04fb3207fc80841e00fd0807060504030201fb3a070403056172656e6103010573636f726501fdfffffffffffffffffd\
    feffffffffffffff0080000c040003050001010201fc80841e00fc001c4e0e04fc80d8082bfc000e2707030004fd00c0\
    ae3b2800000001fca08601000e6172656e6123323032362d57343703010573636f726501fdfffffffffffffffffdfeff\
    ffffffffffff0080000c040003050001010201fc80841e00fc001c4e0e04fc80d8082bfc000e2707030004fd00c0ae3b\
    2800000001fca0860100016203010573636f726501fdfffffffffffffffffdfeffffffffffffff0080000c0200010502\
    02fc80841e00fc00093d0001fca086010001036f6c640207fb2d010101fb2c01";

#[test]
fn every_value_is_read_back() {
    assert_eq!(decode_meta(&encode_meta(&meta())), Ok(meta()));
    assert_eq!(format_version(&encode_meta(&meta())), Some(FORMAT_VERSION));
    // What an older ranktree wrote knows no time but the message's.
    let older = Meta { format_version: 1, time_micros: meta().message_timestamp_micros, ..meta() };
    assert_eq!(decode_meta(&encode_meta(&older)), Ok(older));
    assert_eq!(decode_reject(Sequence(5), 3, &encode_reject(&reject())), Ok(reject()));
    let timeless = RejectRecord { time: None, ..reject() };
    assert_eq!(decode_reject(Sequence(5), 3, &encode_reject(&timeless)), Ok(timeless));
    for code in RejectCode::ALL {
        let record = RejectRecord { code, ..reject() };
        assert_eq!(decode_reject(Sequence(5), 3, &encode_reject(&record)), Ok(record));
    }
    for board in [0, 1, 63, u32::MAX] {
        let record = ParkedRecord { board, ..parked() };
        assert_eq!(decode_parked(Sequence(5), 3, &encode_parked(&record)), Ok(record));
    }
    assert_eq!(decode_place(&encode_place(Sequence(u64::MAX), 999)), Ok((Sequence(u64::MAX), 999)));
    let metadata = MetadataRecord { sequence: u64::MAX, json: "{}".to_owned() };
    assert_eq!(decode_metadata(&encode_metadata(&metadata)), Ok(metadata));
    for (version, json) in [(None, Some("{}".to_owned())), (Some(u64::MAX), None)] {
        let profile = ProfileRecord { sequence: u64::MAX, version, json };
        assert_eq!(decode_profile(&encode_profile(&profile)), Ok(profile));
    }
    let removed = Sequence(u64::MAX);
    assert_eq!(decode_profile_removed(&encode_profile_removed(removed)), Ok(removed));
    assert_eq!(decode_extra(&encode_extra(&extra())), Ok(extra()));
    let at = Sequence(300);
    assert_eq!(decode_log_hash(&encode_log_hash(&log_hash(), at), at), Ok(log_hash()));
    let unknown = LogHash::unknown_at(Sequence(301));
    assert_eq!(decode_log_hash(&encode_log_hash(&log_hash(), at), Sequence(301)), Ok(unknown));
    assert_eq!(decode_log_hash(&encode_log_hash(&unknown, Sequence(301)), Sequence(301)), Ok(unknown));
    let of_another_version = [2, 0xfb, 0x2c, 1, 1, 5];
    assert_eq!(decode_log_hash(&of_another_version, at), Ok(LogHash::unknown_at(at)));
    let point = log_hash().point().expect("it is known");
    assert_eq!(decode_hash_point(at, &encode_hash_point(point)), Ok(Some(point)));
    assert_eq!(decode_hash_point(at, &[2, 5]), Ok(None));
    assert_eq!(decode_divergence(&encode_divergence(&divergence())), Ok(divergence()));
    let node = divergence().node;
    assert_eq!(decode_copied_from(&encode_copied_from(&node)), Ok(node));
    assert_eq!(decode_delta(&encode_delta(&delta())), Ok(delta()));
    assert_eq!(decode_manifest(&encode_manifest(&manifest())), Ok(manifest()));
    assert_eq!(decode_delta(&encode_delta(&windowed_delta())), Ok(windowed_delta()));
    assert_eq!(decode_manifest(&encode_manifest(&windowed_manifest())), Ok(windowed_manifest()));
    assert_eq!(
        dictionary(&encode_dictionary([(Handle(3), &b"p42"[..])].into_iter())),
        Ok(vec![(3, b"p42".to_vec())])
    );
}

fn dictionary(bytes: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, Undecodable> {
    let mut members = Vec::new();
    decode_dictionary(bytes, |handle, id| members.push((handle.0, id.to_vec())))?;
    Ok(members)
}

/// A service may create as many boards in one batch as its jobs name, with names of one letter: what was
/// committed must be readable, whatever the bound on damaged lengths.
#[test]
fn the_greediest_records_are_within_the_bound() {
    for count in [1, 10, 1_000, 70_000] {
        let (incarnation, number) = (Incarnation(1), None);
        let drop = |_| BoardEvent::Drop { board: name("b"), incarnation, number };
        let events: Vec<BoardEvent> = (0..count).map(drop).collect();
        let delta = Delta { first: Sequence(1), applied: applied(), events, changes: Vec::new() };
        assert_eq!(decode_delta(&encode_delta(&delta)), Ok(delta), "{count}");
        let one = manifest().boards.remove(0);
        let small =
            || ManifestBoard { name: name("b"), definition: Arc::default(), entries: 0, ..one.clone() };
        let boards = (0..count).map(|_| small()).collect();
        let dropped =
            (0..count).map(|_| DroppedName { name: name("b"), life: incarnation, number }).collect();
        let manifest = Manifest { boards, dropped, ..manifest() };
        assert_eq!(decode_manifest(&encode_manifest(&manifest)), Ok(manifest), "{count}");
    }
}

type Reader = fn(&[u8]) -> bool;

/// Every kind: bytes of one, and whether bytes can be read as one.
fn kinds() -> Vec<(&'static str, Vec<u8>, Reader)> {
    let metadata = MetadataRecord { sequence: 300, json: r#"{"a":1}"#.to_owned() };
    let profile = ProfileRecord { sequence: 300, version: Some(7), json: Some("{}".to_owned()) };
    vec![
        ("meta", encode_meta(&meta()), |bytes| decode_meta(bytes).is_ok()),
        ("reject", encode_reject(&reject()), |bytes| decode_reject(Sequence(5), 3, bytes).is_ok()),
        ("reject of before times", encode_reject(&RejectRecord { time: None, ..reject() }), |bytes| {
            decode_reject(Sequence(5), 3, bytes).is_ok()
        }),
        ("parked job", encode_parked(&parked()), |bytes| decode_parked(Sequence(5), 3, bytes).is_ok()),
        ("metadata", encode_metadata(&metadata), |bytes| decode_metadata(bytes).is_ok()),
        ("profile", encode_profile(&profile), |bytes| decode_profile(bytes).is_ok()),
        ("dictionary", encode_dictionary([(Handle(3), &b"p42"[..])].into_iter()), |bytes| {
            dictionary(bytes).is_ok()
        }),
        ("extra", encode_extra(&extra()), |bytes| decode_extra(bytes).is_ok()),
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

/// What a stream decides has numbers, which follow what was there before them.
#[test]
fn numbers_of_records_are_kept_and_what_was_written_without_them_is_read() {
    let of_format_1 = GOLDEN_MANIFEST.strip_suffix("07fb2d010101fb2c01").expect("they come last");
    let of_format_1 = bytes(&format!("01{}", of_format_1.strip_prefix("04").expect("its format")));
    let dropped = vec![DroppedName { name: name("old"), life: Incarnation(2), number: None }];
    let (forgotten, latest) = (RecordNumber(0), RecordNumber(0));
    let unnumbered = Manifest { dropped, forgotten, latest, ..manifest() };
    assert_eq!(decode_manifest(&of_format_1), Ok(unnumbered.clone()));
    assert_eq!(decode_manifest(&encode_manifest(&unnumbered)), Ok(unnumbered));
    // Formats 3 and 4 have the layout of format 2.
    let of_format_2 = bytes(&format!("02{}", GOLDEN_MANIFEST.strip_prefix("04").expect("its format")));
    assert_eq!(decode_manifest(&of_format_2), Ok(manifest()));
    let (incarnation, number) = (Incarnation(2), Some(RecordNumber(300)));
    let drop = BoardEvent::Drop { board: name("old"), incarnation, number };
    let define = BoardEvent::Define { board: name("b"), incarnation, number, definition: Arc::default() };
    let delta = Delta { events: vec![drop, define], changes: Vec::new(), ..delta() };
    assert_eq!(hex(&encode_delta(&delta)), GOLDEN_NUMBERED);
    assert_eq!(decode_delta(&encode_delta(&delta)), Ok(delta));
}

/// Formats before 4 named it again; they are read.
#[test]
fn the_member_of_changes_in_a_row_is_named_once() {
    let change = |tree, member: &[u8]| DeltaChange {
        tree: TreeId(tree),
        member: member.to_vec(),
        before: None,
        after: None,
    };
    let changes = vec![change(0, b"p42"), change(1, b"p42"), change(1, b"p42"), change(1, b"p43")];
    let delta = Delta { events: Vec::new(), changes, ..delta() };
    let golden = "fb3007fb3207fc80841e00fd08070605040302010004";
    let encoded = format!("{golden} 00 03703432 0000 0101 00 0000 00 00 0000 00 03703433 0000");
    assert_eq!(encode_delta(&delta), bytes(&encoded));
    assert_eq!(decode_delta(&encode_delta(&delta)), Ok(delta.clone()));
    let of_format_3 =
        format!("{golden} 00 03703432 0000 0101 03703432 0000 00 03703432 0000 00 03703433 0000");
    assert_eq!(decode_delta(&bytes(&of_format_3)), Ok(delta));
    let without_a_member = format!("{} 01 00 00 0000", golden.strip_suffix("04").expect("the count"));
    assert!(decode_delta(&bytes(&without_a_member)).is_err());
}

const GOLDEN_NUMBERED: &str = "\
    fb3007fb3207fc80841e00fd08070605040302010202036f6c6402fb2c0103016202fb2c01010573636f726501fdffff\
    fffffffffffffdfeffffffffffffff0000000c00";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("two digits")).collect()
}

#[test]
fn what_was_cut_short_or_added_to_is_refused() {
    for (kind, bytes, reads) in kinds() {
        assert!(reads(&bytes), "{kind}");
        for length in 0..bytes.len() {
            assert!(!reads(&bytes[..length]), "{kind} of {length} bytes");
        }
        let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
        assert!(!reads(&longer), "{kind} and a byte");
    }
}

/// A length that says 2^63 or 2^31 is the cheapest way to end a process, by its allocator or by a panic.
#[test]
fn a_damaged_length_reserves_no_memory() {
    for (kind, bytes, reads) in kinds() {
        for at in 0..bytes.len() {
            for length in
                [&[0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[0xfc, 0xff, 0xff, 0xff, 0x7f]]
            {
                let mut damaged = bytes.clone();
                damaged.splice(at..=at, length.iter().copied());
                // Where there was a number and no length, it may even be readable: it only must not end the
                // process.
                let readable = reads(&damaged);
                assert!(!readable || kind != "dictionary" || at > 0, "{kind} with a length at {at}");
            }
        }
    }
}

fn any_word() -> impl Strategy<Value = u64> {
    let extremes = [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1];
    prop_oneof![
        any::<u64>(),
        prop::sample::select(extremes.to_vec()),
        (-300_i64..300).prop_map(i64::cast_unsigned)
    ]
}

fn any_words() -> impl Strategy<Value = Words> {
    prop::collection::vec(any_word(), 1..=MAX_KEYS + 1).prop_map(|words| Words::from_slice(&words))
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![0..=Timestamp::MAX.as_micros(), Just(0), Just(Timestamp::MAX.as_micros())].prop_map(time)
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let state = prop_oneof![
        any_words().prop_map(EntryState::Listed),
        any_words().prop_map(EntryState::Hidden),
        Just(EntryState::Removed)
    ];
    (state, any_time(), any::<Option<u64>>(), any::<bool>()).prop_map(
        |(state, updated_at, version, has_metadata)| Entry { state, updated_at, version, has_metadata },
    )
}

fn any_member() -> impl Strategy<Value = Vec<u8>> {
    let id = prop::collection::vec(prop::sample::select(vec!['a', 'é', '日', ' ', '/']), 1..40);
    id.prop_map(|id| id.into_iter().collect::<String>().into_bytes())
}

fn any_change() -> impl Strategy<Value = DeltaChange> {
    let entry = || prop::option::of(any_entry());
    // Members repeat, as those of one job do.
    let member = prop_oneof![Just(b"p42".to_vec()), any_member()];
    (0_u32..4, member, entry(), entry()).prop_map(|(tree, member, before, after)| DeltaChange {
        tree: TreeId(if tree == 3 { u32::MAX } else { tree }),
        member,
        before,
        after,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_delta_is_read_back(
        changes in prop::collection::vec(any_change(), 0..20),
        (first, sequence, timestamp, hash) in (any::<u64>(), any::<u64>(), any_time(), any::<u64>()),
    ) {
        let applied = Applied { sequence: Sequence(sequence), timestamp, hash };
        let delta = Delta { first: Sequence(first), applied, events: Vec::new(), changes };
        prop_assert_eq!(decode_delta(&encode_delta(&delta)), Ok(delta));
    }

    #[test]
    fn any_extra_is_read_back(entry in any_entry(), listed in any::<bool>()) {
        let unlisted = match entry.state {
            EntryState::Removed => Some(Unlisted::Removed),
            EntryState::Hidden(words) | EntryState::Listed(words) => {
                (!listed).then(|| Unlisted::Hidden(Box::new(words)))
            }
        };
        let Entry { updated_at, version, has_metadata, .. } = entry;
        let extra = Extra { updated_at, version, has_metadata, unlisted };
        prop_assert_eq!(decode_extra(&encode_extra(&extra)), Ok(extra.clone()));
        let (updated_at, has_metadata) = (Timestamp::MAX, !has_metadata);
        let other = Extra { updated_at, version: None, has_metadata, unlisted: None };
        let mut read = Vec::new();
        let page = encode_extras(&[(Handle(1), &extra), (Handle(u32::MAX), &other)]);
        prop_assert_eq!(decode_extras(&page, |handle, extra| { read.push((handle, extra)); Ok(()) }), Ok(()));
        prop_assert_eq!(read, [(Handle(1), extra), (Handle(u32::MAX), other)]);
    }

    #[test]
    fn any_page_is_read_back(
        rows in prop::collection::vec((any::<u32>(), any_words()), 0..70),
        width in 1..=9_usize,
    ) {
        let handles: Vec<u32> = rows.iter().map(|(handle, _)| *handle).collect();
        let word = |words: &Words, column: usize| words.as_slice().get(column).copied().unwrap_or(u64::MAX);
        let columns: Vec<Vec<u64>> =
            (0..width).map(|column| rows.iter().map(|(_, words)| word(words, column)).collect()).collect();
        let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        let bytes = encode_entries(&handles, &slices);
        prop_assert_eq!(decode_entries(&bytes), Ok(EntriesPage { handles, columns }));
    }

    #[test]
    fn any_definition_is_read_back(
        keys in prop::collection::vec((any::<bool>(), any::<i64>(), any::<i64>()), 1..=MAX_KEYS),
        (policy, ties, offset, keep) in (0_usize..3, 0_usize..3, -1_080_i16..=1_080, 0_u32..=1_000),
        windows in prop::sample::subsequence(Window::ALL.to_vec(), 1..=6).prop_shuffle(),
        (begin, every) in (0_i64..=1 << 52, 60_000_000_i64..=1 << 40),
        manual in prop::option::of(prop::collection::btree_set(0_i64..=1 << 52, 0..9)),
        (grace, ttl, movement) in
            (0_i64..=600_000_000_000, prop::option::of(1_000_000_i64..=1 << 50), any::<bool>()),
        capacity in prop::option::of(1_u64..=1 << 39),
    ) {
        let seasons = windows.contains(&Window::Season).then(|| match manual {
            Some(begins) => Seasons::Manual(begins.into_iter().map(time).collect()),
            None => Seasons::regular(time(begin), every),
        });
        let movement = movement && windows.contains(&Window::All) && windows.len() > 1;
        let keys = keys.into_iter().enumerate().map(|(index, (ascending, a, b))| Key {
            name: format!("k{index}"),
            order: if ascending { Order::Ascending } else { Order::Descending },
            min: a.min(b),
            max: a.max(b),
        });
        let definition = Definition {
            keys: keys.collect(),
            kind: Kind::Ranking,
            policy: [Policy::Set, Policy::Best, Policy::Incr][policy],
            ties: [Ties::First, Ties::Last, Ties::Member][ties],
            utc_offset_minutes: offset,
            keep,
            windows,
            seasons,
            grace_micros: grace,
            entry_ttl_micros: ttl,
            capacity,
            movement,
        };
        let board = ManifestBoard { definition: Arc::new(definition), ..manifest().boards.remove(0) };
        let manifest = Manifest { boards: vec![board], ..manifest() };
        prop_assert_eq!(decode_manifest(&encode_manifest(&manifest)), Ok(manifest));
    }

    /// Bytes that nobody wrote: whatever they are read as, it ends, in little memory, without a panic.
    #[test]
    fn garbage_is_an_error_or_a_value(
        garbage in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0_usize..80,
    ) {
        for (_, bytes, reads) in kinds() {
            let _ = reads(&garbage);
            let mut spliced = bytes.clone();
            spliced.truncate(cut);
            spliced.extend(&garbage);
            let _ = reads(&spliced);
        }
    }
}

/// Scores of either direction and either extreme survive the way through words, delta and back.
#[test]
fn extreme_scores_survive_a_delta() {
    for value in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
        let definition = definition();
        let score = Score::new(&[value, value]).expect("two keys");
        let state = EntryState::Listed(definition.entry_words(&score, time(0), b"p42"));
        let entry = Entry { state, updated_at: Timestamp::MAX, version: None, has_metadata: false };
        let change =
            DeltaChange { tree: TreeId(0), member: b"p42".to_vec(), before: None, after: Some(entry) };
        let delta = Delta {
            first: Sequence(0),
            applied: Applied::default(),
            events: Vec::new(),
            changes: vec![change],
        };
        let read = decode_delta(&encode_delta(&delta)).expect("readable");
        let words = read.changes[0].after.expect("there").words().expect("listed");
        assert_eq!(definition.score_of(words.as_slice()), score);
    }
}
