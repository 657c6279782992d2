//! The fast path agrees with the strict decoder on plain jobs, and leaves all others to it.

use proptest::prelude::*;

use super::decode;
use crate::wire::fast_path::BoardNames;
use crate::wire::strict::{Decoded, decode_strictly};

fn plain(text: &str) -> Option<Vec<Decoded>> {
    let mut jobs = Vec::new();
    decode(&mut BoardNames::default(), text.as_bytes(), |job| jobs.push(Ok(job))).map(|()| jobs)
}

#[test]
fn the_fast_path_decodes_plain_jobs_as_the_strict_decoder_does() {
    for text in [
        r#"{"board":"arena","member":"p42","score":1200}"#,
        r#" [ {"score" : -9223372036854775808 , "member":"é", "board":"a.b:c-d_E"} ] "#,
        r#"{"board":"arena","member":"p42","score":0,"op":"incr","version":18446744073709551615}"#,
        r#"{"board":"arena","member":"p42","score":0,"op":null,"version":null,"at":null}"#,
        r#"{"board":"arena","member":"p42","score":1,"op":"set","at":"2026-11-20T09:59:58.25+09:00"}"#,
        r#"{"board":"arena","member":"p42","score":[-9223372036854775808]}"#,
        r#"{"board":"arena","member":"p42","score":[ 1 , -2,3,4,5,6,7,9223372036854775807 ]}"#,
        r#"[{"member":"日本","board":"a","score":1},{"board":"b","member":"é日 本","score":2,"at":"2026-11-20T09:59:58Z"}]"#,
        r#"[{"board":"a","member":"1","score":1},{"board":"b","member":"2","score":2,"op":"best"},{"board":"a","member":"3","score":3}]"#,
    ] {
        let jobs = plain(text).unwrap_or_else(|| panic!("{text} is plain"));
        assert_eq!(Ok(jobs), decode_strictly(text.as_bytes()), "{text}");
    }
}

#[test]
fn the_fast_path_leaves_other_jobs_to_the_strict_decoder() {
    for text in [
        "",
        "[]",
        "7",
        "null",
        r#"{"board":"arena","member":"p42"}"#,
        r#"{"board":"arena","member":"p42","score":1,"score":1}"#,
        r#"{"board":"arena","member":"p42","score":1}x"#,
        r#"{"board":"arena","member":"p42","score":1,"level":1}"#,
        r#"{"board":"arena","member":"p42","score":1,"at":"yesterday"}"#,
        r#"{"board":"arena","member":"p42","score":1,"at":"2026-11-20T09:59:58"}"#,
        r#"{"board":"arena","member":"p42","score":1,"at":7}"#,
        r#"{"board":"arena","member":"p42","score":1,"at":null,"at":null}"#,
        r#"{"board":"arena","member":"p42","score":[]}"#,
        r#"{"board":"arena","member":"p42","score":[1,]}"#,
        r#"{"board":"arena","member":"p42","score":[1,"2"]}"#,
        r#"{"board":"arena","member":"p42","score":[1,2.0]}"#,
        r#"{"board":"arena","member":"p42","score":[1,[2]]}"#,
        r#"{"board":"arena","member":"p42","score":[1,2,3,4,5,6,7,8,9]}"#,
        r#"{"board":"arena","member":"p42","score":[1"#,
        r#"{"board":"arena","member":"p42","score":"1"}"#,
        r#"{"board":"arena","member":"p42","score":1.0}"#,
        r#"{"board":"arena","member":"p42","score":-0}"#,
        r#"{"board":"arena","member":"p42","score":01}"#,
        r#"{"board":"arena","member":"p42","score":-01}"#,
        r#"{"board":"arena","member":"p42","score":-}"#,
        r#"{"board":"arena","member":"p42","score":+1}"#,
        r#"{"board":"arena","member":"p42","score":}"#,
        r#"{"board":"arena","member":"p42","score":-9223372036854775809}"#,
        r#"{"board":"arena","member":"p42","score":1,}"#,
        r#"{"board":"arena","member":"p42","score":1"#,
        r#"{,"board":"arena","member":"p42","score":1}"#,
        r#"{"board":"arena","member":"p42" "score":1}"#,
        r#"{"board":"arena","member":"p\u0034","score":1}"#,
        r#"{"board":null,"member":"p42","score":1}"#,
        r#"{"board":"arena","member":"p42","score":1,"op":nullx}"#,
        r#"{"board":"arena","member":"p42","score":1,"version":nul}"#,
        r#"[{"board":"arena","member":"p42","score":1},]"#,
        r#"[{"board":"arena","member":"p42","score":1}"#,
        r#"[{"board":"arena","member":"p42","score":1}]]"#,
        r#"{"board":"arena","member":"p42","score":1e3}"#,
        r#"{"board":"arena","member":"p42","score":9223372036854775808}"#,
        r#"{"board":"arena","member":"p42","score":null}"#,
        r#"{"board":"arena","member":"p42","score":1,"version":-1}"#,
        r#"{"board":"arena","member":"p42","score":1,"version":"1"}"#,
        r#"{"board":"arena","member":"p42","score":1,"version":18446744073709551616}"#,
        r#"{"board":"arena","member":"p42","score":1,"op":"remove"}"#,
        r#"{"board":"arena","member":"p42","score":1,"op":"Set"}"#,
        r#"{"board":"arena","member":"","score":1}"#,
        r#"{"board":"arena","member":"a\nb","score":1}"#,
        r#"{"board":".a","member":"a","score":1}"#,
        r#"["arena","p42",1]"#,
        r#"[["arena","p42",1,null,null]]"#,
        r#"[{"board":"arena","member":"p42","score":1},{}]"#,
    ] {
        assert_eq!(plain(text), None, "{text}");
    }
}

#[test]
fn as_many_jobs_as_a_message_may_hold_are_plain_and_no_more() {
    let array = |count: usize| {
        let jobs = vec![r#"{"board":"arena","member":"p42","score":1}"#; count];
        format!("[{}]", jobs.join(","))
    };
    assert_eq!(plain(&array(1_000)).map(|jobs| jobs.len()), Some(1_000));
    assert_eq!(plain(&array(1_001)), None);
}

/// Pieces of which messages are made that are plain jobs, or nearly.
const PIECES: [&str; 27] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "-",
    "0",
    "7",
    "12",
    ".5",
    "e3",
    "null",
    "\"",
    "\\u0041",
    "\"op\":\"best\"",
    "\"board\":\"arena\"",
    "\"member\":\"p42\"",
    "\"score\":1200",
    "\"version\":3",
    "\"at\":\"2026-11-20T09:59:58Z\"",
    "[1,2]",
    "1970",
    "\"é\"",
    "{\"board\":\"arena\",\"member\":\"p42\",\"score\":-1}",
];

proptest! {
    /// Whatever a plain message becomes when a few pieces are put into it or bytes are taken out.
    #[test]
    fn what_the_fast_path_decodes_the_strict_decoder_decodes_alike(
        jobs in 1_usize..4,
        in_array in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..PIECES.len(), 0_usize..3), 0..4),
    ) {
        let one = r#"{"board":"arena", "member":"p42","score":[1200,-7],"op":"set","version":7,"at":"2026-11-20T09:59:58Z"}"#;
        let mut text = vec![one; jobs].join(",").into_bytes();
        if in_array || jobs > 1 {
            text = [b"[".as_slice(), &text, b"]"].concat();
        }
        for (place, piece, taken) in edits {
            let from = place.index(text.len() + 1);
            let to = (from + taken).min(text.len());
            text.splice(from..to, PIECES[piece].bytes());
        }
        let mut plain = Vec::new();
        if decode(&mut BoardNames::default(), &text, |job| plain.push(Ok(job))).is_some() {
            prop_assert_eq!(Ok(plain), decode_strictly(&text), "{}", String::from_utf8_lossy(&text));
        }
    }
}
