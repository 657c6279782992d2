//! What was written is read back, whatever it is.

use std::sync::Arc;

use proptest::prelude::*;

use crate::board::{Beyond, Definition, Key, KeyType, Kind, Order, Policy, ReadOnly, Ties};
use crate::job::RejectCode;
use crate::state::{
    Applied, BoardEvent, DroppedName, Entry, EntryState, Extra, Incarnation, LogHash, TreeId, Unlisted,
};
use crate::storage::codec::tests::samples::{
    applied, definition, delta, dictionary, divergence, identity, log_hash, manifest, meta, name, parked,
    reject, time, windowed_delta, windowed_manifest,
};
use crate::storage::codec::{
    Delta, DeltaChange, EntriesPage, FORMAT_VERSION, Manifest, ManifestBoard, Meta, MetadataRecord,
    ParkedRecord, ProfileRecord, RejectRecord, board_of_reject, decode_copied_from, decode_delta,
    decode_divergence, decode_entries, decode_extras, decode_hash_point, decode_log_hash, decode_manifest,
    decode_meta, decode_metadata, decode_parked, decode_place, decode_profile, decode_reject,
    decode_sequence, encode_copied_from, encode_delta, encode_dictionary, encode_divergence, encode_entries,
    encode_extras, encode_hash_point, encode_log_hash, encode_manifest, encode_meta, encode_metadata,
    encode_parked, encode_place, encode_profile, encode_reject, encode_sequence, format_version,
};
use crate::tree::{Handle, Words};
use crate::types::{MAX_KEYS, Score, Sequence, Timestamp};
use crate::window::{Seasons, Window};

#[test]
fn every_value_is_read_back() {
    assert_eq!(decode_meta(&encode_meta(&meta())), Ok(meta()));
    let identified = Meta { identity: identity(), ..meta() };
    assert_eq!(decode_meta(&encode_meta(&identified)), Ok(identified));
    assert_eq!(format_version(&encode_meta(&meta())), Some(FORMAT_VERSION));
    let leapt = Meta { leap_micros: Some(i64::MAX), ..meta() };
    assert_eq!(decode_meta(&encode_meta(&leapt)), Ok(leapt));
    assert_eq!(decode_reject(Sequence(5), 3, &encode_reject(&reject())), Ok(reject()));
    assert_eq!(board_of_reject(&encode_reject(&reject())), reject().board);
    for code in RejectCode::ALL {
        let record = RejectRecord { code, board: None, ..reject() };
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
    assert_eq!(decode_sequence("removal", &encode_sequence(removed)), Ok(removed));
    let at = Sequence(300);
    assert_eq!(decode_log_hash(&encode_log_hash(&log_hash(), at), at), Ok(log_hash()));
    let unknown = LogHash::unknown_at(Sequence(301));
    assert_eq!(decode_log_hash(&encode_log_hash(&log_hash(), at), Sequence(301)), Ok(unknown));
    assert_eq!(decode_log_hash(&encode_log_hash(&unknown, Sequence(301)), Sequence(301)), Ok(unknown));
    let of_another_version = [1, 0xfb, 0x2c, 1, 1, 5];
    assert_eq!(decode_log_hash(&of_another_version, at), Ok(LogHash::unknown_at(at)));
    let point = log_hash().point().expect("it is known");
    assert_eq!(decode_hash_point(at, &encode_hash_point(point)), Ok(Some(point)));
    assert_eq!(decode_hash_point(at, &[1, 5]), Ok(None));
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
        keys in prop::collection::vec((any::<[bool; 3]>(), any::<i64>(), any::<i64>()), 1..=MAX_KEYS),
        (policy, ties, offset, keep) in (0_usize..3, 0_usize..3, -1_080_i16..=1_080, 0_u32..=1_000),
        windows in prop::sample::subsequence(Window::ALL.to_vec(), 1..=6).prop_shuffle(),
        (begin, every) in (0_i64..=1 << 52, 60_000_000_i64..=1 << 40),
        manual in prop::option::of(prop::collection::btree_set(0_i64..=1 << 52, 0..9)),
        (grace, ttl, movement) in
            (0_i64..=600_000_000_000, prop::option::of(1_000_000_i64..=1 << 50), any::<bool>()),
        final_until in prop::option::of(0_i64..=1 << 52),
        capacity in prop::option::of(1_u64..=1 << 39),
        read_only in prop::option::of(("[a-zé]{1,128}", 0_i64..=1 << 52)),
    ) {
        let seasons = windows.contains(&Window::Season).then(|| match manual {
            Some(begins) => Seasons::Manual(begins.into_iter().map(time).collect()),
            None => Seasons::regular(time(begin), every),
        });
        let movement = movement && windows.contains(&Window::All) && windows.len() > 1;
        let keys = keys.into_iter().enumerate().map(|(index, ([ascending, below, above], a, b))| Key {
            name: format!("k{index}"),
            order: if ascending { Order::Ascending } else { Order::Descending },
            key_type: if a & 1 == 0 { KeyType::Integer } else { KeyType::Float },
            min: a.min(b),
            max: a.max(b),
            below_min: if below { Beyond::Clamp } else { Beyond::Reject },
            above_max: if above { Beyond::Clamp } else { Beyond::Reject },
        });
        let definition = Definition {
            keys: keys.collect(),
            kind: Kind::Ranking,
            policy: [Policy::Set, Policy::Best, Policy::Incr][policy],
            ties: Ties::ALL[ties],
            utc_offset_minutes: offset,
            keep,
            windows,
            seasons,
            grace_micros: grace,
            entry_ttl_micros: ttl,
            final_until: final_until.map(time),
            capacity,
            movement,
            read_only: read_only.map(|(reason, since)| Arc::new(ReadOnly { reason, since: time(since) })),
        };
        let board = ManifestBoard { definition: Arc::new(definition), ..manifest().boards.remove(0) };
        let manifest = Manifest { boards: vec![board], ..manifest() };
        prop_assert_eq!(decode_manifest(&encode_manifest(&manifest)), Ok(manifest));
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
