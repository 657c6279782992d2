//! The fast path agrees with the strict decoder on plain jobs, and leaves all others to it.

use super::decode;
use crate::wire::board_names::BoardNames;
use crate::wire::decoded::Decoded;
use crate::wire::strict::decode_strictly;

fn plain(text: &str) -> Option<Vec<Decoded>> {
    decode(&mut BoardNames::default(), text.as_bytes())
}

#[test]
fn the_fast_path_decodes_plain_jobs_as_the_strict_decoder_does() {
    for text in [
        r#"{"board":"arena","member":"p42","score":1200}"#,
        r#" [ {"score" : -9223372036854775808 , "member":"é", "board":"a.b:c-d_E"} ] "#,
        r#"{"board":"arena","member":"p42","score":0,"op":"incr","version":18446744073709551615}"#,
        r#"{"board":"arena","member":"p42","score":0,"op":null,"version":null}"#,
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
        r#"{"board":"arena","member":"p42","score":1,"at":null}"#,
        r#"{"board":"arena","member":"p42","score":"1"}"#,
        r#"{"board":"arena","member":"p42","score":1.0}"#,
        r#"{"board":"arena","member":"p42","score":-0}"#,
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
        r#"{"board":"-","member":"a","score":1}"#,
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
