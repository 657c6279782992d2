//! The bytes of every value kind, which disks hold.

use std::sync::Arc;

use crate::state::{BoardEvent, DroppedName, Extra, Incarnation, LogHash, RecordNumber, TreeId, Unlisted};
use crate::storage::codec::tests::samples::{
    delta, divergence, extra, hex, identity, log_hash, manifest, meta, name, parked, reject, time,
    windowed_delta, windowed_manifest,
};
use crate::storage::codec::{
    Delta, DeltaChange, Manifest, Meta, MetadataRecord, ParkedRecord, ProfileRecord, decode_delta,
    decode_manifest, encode_copied_from, encode_delta, encode_dictionary, encode_divergence, encode_entries,
    encode_extras, encode_hash_point, encode_log_hash, encode_manifest, encode_meta, encode_metadata,
    encode_parked, encode_place, encode_profile, encode_reject, encode_sequence,
};
use crate::tree::Handle;
use crate::types::Sequence;

#[test]
fn golden_bytes_of_every_value() {
    let check = |bytes: Vec<u8>, golden: &str| assert_eq!(hex(&bytes), golden);
    check(encode_meta(&meta()), "05020afb3207fc80841e0007fb2c010153fc00093d00000000000000");
    let leapt = Meta { leap_micros: Some(3_000_000), ..meta() };
    check(encode_meta(&leapt), "05020afb3207fc80841e0007fb2c010153fc00093d0001fc808d5b000000000000");
    check(
        encode_meta(&Meta { identity: identity(), ..meta() }),
        "05020afb3207fc80841e0007fb2c010153fc00093d0000010101fb2c01070809",
    );
    check(encode_reject(&reject()), "01016206036f6c64027b7dfc80841e00");
    let metadata = MetadataRecord { sequence: 300, json: r#"{"a":1}"#.to_owned() };
    check(encode_metadata(&metadata), "fb2c01077b2261223a317d");
    let json = Some(r#"{"a":1}"#.to_owned());
    let profile = ProfileRecord { sequence: 300, version: Some(7), json };
    check(encode_profile(&profile), "fb2c01010701077b2261223a317d");
    check(encode_profile(&ProfileRecord { version: None, json: None, ..profile }), "fb2c010000");
    check(encode_sequence(Sequence(300)), "fb2c01");
    check(
        encode_dictionary([(Handle(3), &b"p42"[..]), (Handle(300), b"x")].into_iter()),
        "020303703432fb2c010178",
    );
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
    check(encode_parked(&parked()), "fc80841e00027b7d00");
    check(encode_parked(&ParkedRecord { board: 3, ..parked() }), "fc80841e00027b7d03");
    check(encode_log_hash(&log_hash(), Sequence(300)), "03fb2c0101fd0807060504030201");
    check(encode_log_hash(&LogHash::unknown_at(Sequence(300)), Sequence(300)), "03fb2c0100");
    check(encode_hash_point(log_hash().point().expect("it is known")), "03fd0807060504030201");
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
    fb3207fc80841e00fd0807060504030201fb3a070401056172656e6103020573636f726501fdfffffffffffffffffd\
    feffffffffffffff0774696d655f6d730000fdfeffffffffffffff0101b30c01fca086010001036f6c640201fb2c01\
    07fb2d01";

const GOLDEN_WINDOWED_DELTA: &str = "\
    fb3007fb3207fc80841e00fd08070605040302010403056172656e610304010573636f726501fdfffffffffffffffffd\
    feffffffffffffff0080000c040003050001010201fc80841e00fc001c4e0e04fc80d8082bfc000e2707030004fd00c0\
    ae3b2800000003136172656e6123323032362d31312d32305430390304010573636f726501fdfffffffffffffffffdfe\
    ffffffffffffff0080000c040003050001010201fc80841e00fc001c4e0e04fc80d8082bfc000e2707030004fd00c0ae\
    3b280000000301620304010573636f726501fdfffffffffffffffffdfeffffffffffffff0080000c020001050202fc80\
    841e00fc00093d0001086172656e612373370200";
const GOLDEN_WINDOWED_MANIFEST: &str = "\
    fb3207fc80841e00fd0807060504030201fb3a070403056172656e6103010573636f726501fdfffffffffffffffffd\
    feffffffffffffff0080000c040003050001010201fc80841e00fc001c4e0e04fc80d8082bfc000e2707030004fd00c0\
    ae3b2800000001fca08601000e6172656e6123323032362d57343703010573636f726501fdfffffffffffffffffdfeff\
    ffffffffffff0080000c040003050001010201fc80841e00fc001c4e0e04fc80d8082bfc000e2707030004fd00c0ae3b\
    2800000001fca0860100016203010573636f726501fdfffffffffffffffffdfeffffffffffffff0080000c0200010502\
    02fc80841e00fc00093d0001fca086010001036f6c640201fb2c0107fb2d01";

#[test]
fn numbers_of_records_are_kept() {
    let dropped = vec![DroppedName { name: name("old"), life: Incarnation(2), number: None }];
    let (forgotten, latest) = (RecordNumber(0), RecordNumber(0));
    let unnumbered = Manifest { dropped, forgotten, latest, ..manifest() };
    assert_eq!(decode_manifest(&encode_manifest(&unnumbered)), Ok(unnumbered));
    let (incarnation, number) = (Incarnation(2), Some(RecordNumber(300)));
    let drop = BoardEvent::Drop { board: name("old"), incarnation, number };
    let define = BoardEvent::Define { board: name("b"), incarnation, number, definition: Arc::default() };
    let delta = Delta { events: vec![drop, define], changes: Vec::new(), ..delta() };
    assert_eq!(hex(&encode_delta(&delta)), GOLDEN_NUMBERED);
    assert_eq!(decode_delta(&encode_delta(&delta)), Ok(delta));
}

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
    assert_eq!(decode_delta(&encode_delta(&delta)), Ok(delta));
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
