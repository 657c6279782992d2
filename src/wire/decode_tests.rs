//! What a job's JSON may be, and what each thing that it may not be is refused with.

use smallvec::smallvec;

use super::*;
use crate::job::{
    JobId, MAX_BOARDS_PER_JOB, MAX_JOBS_PER_MESSAGE, MAX_METADATA_BYTES, MAX_PROFILE_BYTES, Metadata, Op,
    Profile, RejectCode, Targets,
};
use crate::types::{BoardName, MemberId, Score, Timestamp};

fn decoded(text: &str) -> Decoded {
    decode(text.as_bytes())?.remove(0)
}

/// The code that a job is refused with; `ok` if it is not.
fn code(text: &str) -> &'static str {
    decoded(text).map_or_else(|reject| reject.code.name(), |_| "ok")
}

fn board(name: &str) -> BoardName {
    BoardName::new(name).expect("a good name")
}

fn score(keys: &[i64]) -> Score {
    Score::new(keys).expect("one to eight keys")
}

#[test]
fn good_jobs_say_what_they_mean() {
    let member = MemberId::new("p42").expect("a good id");
    let plain = Job {
        member,
        targets: Targets::Boards(smallvec![(board("arena"), Some(score(&[1200])))]),
        op: None,
        version: None,
        at: None,
        meta: None,
        id: None,
    };
    let at = Timestamp::parse("2026-11-20T09:59:58Z").expect("a good time");
    let boards = |boards: &[(&str, &[i64])]| {
        Targets::Boards(boards.iter().map(|(name, keys)| (board(name), Some(score(keys)))).collect())
    };
    let without_score = |op| Job {
        targets: Targets::Boards(smallvec![(board("arena"), None)]),
        op: Some(op),
        ..plain.clone()
    };
    for (text, job) in [
        (r#"{"board":"arena","member":"p42","score":1200}"#, plain.clone()),
        (r#"{"board":"arena","member":"p42","score":"1200"}"#, plain.clone()),
        (r#"{"board":"arena","member":"p42","score":[1200]}"#, plain.clone()),
        (r#"{"\u0062oard":"arena","member":"p\u00342","score":["1200"]}"#, plain.clone()),
        (
            r#"{"board":"arena","member":"p42","score":1200,"op":null,"version":null,"at":null,"meta":null}"#,
            plain.clone(),
        ),
        (
            r#"{"member":"p42","scores":{"arena":[1200,90000],"kills":3},"op":"best","version":17,
                "at":"2026-11-20T09:59:58Z","meta":{"car":"mx5"}}"#,
            Job {
                targets: boards(&[("arena", &[1200, 90000]), ("kills", &[3])]),
                op: Some(Op::Best),
                version: Some(17),
                at: Some(at),
                meta: Some(Metadata(r#"{"car":"mx5"}"#.into())),
                ..plain.clone()
            },
        ),
        (
            r#"{"board":"arena","member":"p42","score":["-9223372036854775808",9223372036854775807],
                "version":"18446744073709551615","meta":{ }}"#,
            Job {
                targets: boards(&[("arena", &[i64::MIN, i64::MAX])]),
                version: Some(u64::MAX),
                meta: Some(Metadata("{}".into())),
                ..plain.clone()
            },
        ),
        (
            r#"{"board":"arena","member":"p42","score":-0,"op":"incr","version":18446744073709551615}"#,
            Job {
                targets: boards(&[("arena", &[0])]),
                op: Some(Op::Incr),
                version: Some(u64::MAX),
                ..plain.clone()
            },
        ),
        (
            r#"{"board":"arena","member":"p42","score":1200,"id":"a-1"}"#,
            Job { id: JobId::new("a-1"), ..plain.clone() },
        ),
        (
            r#"{"board":"arena","member":"p42","score":1200,"id":"\u0061-1"}"#,
            Job { id: JobId::new("a-1"), ..plain.clone() },
        ),
        (r#"{"board":"arena","member":"p42","score":1200,"id":null}"#, plain.clone()),
        (r#"{"board":"arena","member":"p42","op":"remove"}"#, without_score(Op::Remove)),
        (r#"{"board":"arena","member":"p42","op":"hide","score":null}"#, without_score(Op::Hide)),
        (r#"{"board":"arena","member":"p42","op":"show"}"#, without_score(Op::Show)),
        (
            r#"{"member":"p42","op":"remove","version":0}"#,
            Job { targets: Targets::EveryBoard, op: Some(Op::Remove), version: Some(0), ..plain.clone() },
        ),
        (
            r#"{"op":"profile","member":"p42","board":null,"meta":null,"profile": {"name": "Alice", "n": 1.10}}"#,
            Job {
                targets: Targets::Profile(Profile(r#"{"name":"Alice","n":1.10}"#.into())),
                op: Some(Op::Profile),
                ..plain.clone()
            },
        ),
        (
            r#"{"op":"profile","member":"p42","version":"7","at":"1970-01-01T00:00:00Z","profile":{ }}"#,
            Job {
                targets: Targets::Profile(Profile("{}".into())),
                op: Some(Op::Profile),
                version: Some(7),
                at: Some(Timestamp::default()),
                ..plain.clone()
            },
        ),
    ] {
        assert_eq!(decoded(text), Ok(job), "{text}");
    }
}

#[test]
fn what_is_no_job_is_refused_with_its_code() {
    for (text, expected) in [
        ("", "malformed"),
        ("nonsense", "malformed"),
        ("{\"board\":\"a\"", "malformed"),
        (r#"{"board":"a","member":"m","score":1} x"#, "malformed"),
        ("null", "malformed"),
        ("17", "malformed"),
        ("1.5", "malformed"),
        ("\"text\"", "malformed"),
        ("[]", "malformed"),
        ("[17]", "malformed"),
        ("[[]]", "malformed"),
        ("[null]", "malformed"),
        ("{}", "bad_member"),
        (r#"{"board":"a","score":1}"#, "bad_member"),
        (r#"{"board":"a","member":null,"score":1}"#, "bad_member"),
        (r#"{"board":"a","member":17,"score":1}"#, "bad_member"),
        (r#"{"board":"a","member":"","score":1}"#, "bad_member"),
        (r#"{"board":"a","member":"a\u0000","score":1}"#, "bad_member"),
        (r#"{"board":"a","member":["m"],"score":1}"#, "bad_member"),
        (r#"{"member":"m","score":1}"#, "malformed"),
        (r#"{"board":null,"member":"m","score":1}"#, "malformed"),
        (r#"{"board":7,"member":"m","score":1}"#, "malformed"),
        (r#"{"board":"a b","member":"m","score":1}"#, "malformed"),
        (r#"{"board":"","member":"m","score":1}"#, "malformed"),
        (r#"{"board":"a","member":"m"}"#, "malformed"),
        (r#"{"board":"a","member":"m","op":"set"}"#, "malformed"),
        (r#"{"board":"a","member":"m","op":"best"}"#, "malformed"),
        (r#"{"board":"a","member":"m","op":"incr"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":null}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":1e400}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":NaN}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":"NaN"}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":"Infinity"}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":""}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":"-"}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":"+5"}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":" 5"}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":"٣"}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":true}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":{}}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":[]}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":[1,null]}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":[1,[2]]}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":[1,2,3,4,5,6,7,8,9]}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":[1,2,3,4,5,6,7,8,9,10,11,12]}"#, "bad_score"),
        (r#"{"board":"a","member":"m","score":1,"op":"remove"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"op":"hide"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"op":"show"}"#, "malformed"),
        (r#"{"board":"a","member":"m","op":"hide","meta":{}}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"op":"SET"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"op":"add"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"op":1}"#, "malformed"),
        (r#"{"op":"profile","member":"","profile":{"name":"Alice"}}"#, "bad_member"),
        (r#"{"op":"profile","member":"p42","profile":["Alice"]}"#, "malformed"),
        (r#"{"member":"m","scores":{}}"#, "malformed"),
        (r#"{"member":"m","scores":[]}"#, "malformed"),
        (r#"{"member":"m","scores":5}"#, "malformed"),
        (r#"{"member":"m","scores":{"a":1,"b c":2}}"#, "malformed"),
        (r#"{"member":"m","scores":{"a":1,"a":2}}"#, "malformed"),
        (r#"{"member":"m","scores":{"a":1,"b":"x"}}"#, "bad_score"),
        (r#"{"member":"m","scores":{"a":1},"score":1}"#, "malformed"),
        (r#"{"member":"m","scores":{"a":1},"board":"a"}"#, "malformed"),
        (r#"{"member":"m","scores":{"a":1},"op":"remove"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"version":-1}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"version":1.5}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"version":"x"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"version":""}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"version":18446744073709551616}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"version":"18446744073709551616"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"at":"yesterday"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"at":1763632798}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"at":"1950-01-01T00:00:00Z"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"meta":[]}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"meta":"{}"}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"points":2}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"score":1}"#, "malformed"),
        (r#"{"board":"a","member":"m","score":1,"meta":{},"meta":{}}"#, "malformed"),
    ] {
        assert_eq!(code(text), expected, "{text}");
    }
    assert_eq!(decode(b"\xff\xfe").map_err(|reject| reject.code), Err(RejectCode::Malformed));
    assert_eq!(
        decode(b"{\"board\":\"a\",\"member\":\"\xff\",\"score\":1}").map_err(|r| r.code),
        Err(RejectCode::Malformed)
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(code(&deep), "malformed");
}

/// What was sent, and what would be taken, in words that are not the parser's.
#[test]
fn a_refusal_shows_the_value_that_was_refused() {
    for (text, expect) in [
        ("[17]", "such as {\"board\":\"arena\",\"member\":\"p42\",\"score\":1200}; got 17"),
        ("\"text\"", "is expected; got \"text\""),
        ("{\"board\":\"a\"", "the job is not JSON: it ends too early"),
        (
            "{\"member\":\"m\",\"score\":x}",
            "a value is missing, or is not a JSON value, at line 1, column 23: \"x}\"",
        ),
        (r#"{"board":"a b","member":"m","score":1}"#, "and not begin with a dot; got \"a b\""),
        (r#"{"board":7,"member":"m","score":1}"#, "board must be a string; got 7"),
        (
            r#"{"board":"a","member":12345678901234567890123,"score":1}"#,
            "a string; got 12345678901234567890123",
        ),
        (r#"{"board":"a","member":"a\u0007","score":1}"#, "without control characters; got \"a\\u{7}\""),
        (r#"{"board":"a","member":"m","score":-1e400}"#, "-1e400 is outside"),
        (r#"{"board":"a","member":"m","score":"12 points"}"#, "\"12 points\" is not a decimal integer"),
        (r#"{"member":"m","scores":{"a":1,"b":1e-999}}"#, "b: not a score: 1e-999 has a fraction"),
        (r#"{"member":"m","scores":5}"#, "scores must be an object such as {\"arena\": 1200}; got 5"),
        (r#"{"board":"a","member":"m","score":1,"op":"add"}"#, "hide, show or profile; got \"add\""),
        (r#"{"member":"m","op":"profile"}"#, "profile is missing"),
        (r#"{"member":"m","op":"profile","profile":null}"#, "profile is missing"),
        (
            r#"{"member":"m","op":"profile","profile":7}"#,
            "a JSON object such as {\"name\": \"Alice\"}; got 7",
        ),
        (r#"{"member":"m","op":"profile","profile":{"a":1e999}}"#, "profile: "),
        (r#"{"member":"m","op":"profile","profile":{},"board":"b"}"#, "profile takes no board; got \"b\""),
        (r#"{"member":"m","op":"profile","profile":{},"score":1}"#, "profile takes no score; got 1"),
        (r#"{"member":"m","op":"profile","profile":{},"scores":{}}"#, "profile takes no scores; got {}"),
        (r#"{"member":"m","op":"profile","profile":{},"meta":{}}"#, "profile takes no meta; got {}"),
        (
            r#"{"board":"a","member":"m","score":1,"profile":{}}"#,
            "only the operation profile takes a profile; got {}",
        ),
        (
            r#"{"member":"m","op":"remove","profile":{}}"#,
            "only the operation profile takes a profile; got {}",
        ),
        (r#"{"board":"a","member":"m","score":1,"op":"hide"}"#, "hide takes no score; got 1"),
        (
            r#"{"board":"a","member":"m","score":1,"version":18446744073709551616}"#,
            "; got 18446744073709551616",
        ),
        (r#"{"board":"a","member":"m","score":1,"at":1763632798}"#, "in quotation marks; got 1763632798"),
        (r#"{"board":"a","member":"m","score":1,"at":"yesterday"}"#, "got \"yesterday\""),
        (r#"{"board":"a","member":"m","score":1,"meta":[1]}"#, "such as {\"car\": \"mx5\"}; got [1]"),
        (r#"{"board":"a","member":"m","score":1,"meta":{"a":1e999}}"#, "meta: a number is too large"),
        (r#"{"board":"a","member":"m","score":1,"points":2}"#, "a job has no field named \"points\""),
    ] {
        let said = decoded(text).expect_err(text).detail;
        assert!(said.contains(expect), "{text}: {said}");
        for phrase in ["EOF", "expected value", "invalid type", "line 0", "serde", "i64", "f64", "u64"] {
            assert!(!said.contains(phrase), "{text}: {said}");
        }
    }
}

#[test]
fn sizes_are_bounded() {
    let with_meta = |bytes: usize| {
        // {"k":"..."} has eight bytes beside the text.
        format!(r#"{{"board":"a","member":"m","score":1,"meta":{{"k" : "{}"}}}}"#, "x".repeat(bytes - 8))
    };
    assert_eq!(code(&with_meta(MAX_METADATA_BYTES)), "ok");
    assert_eq!(code(&with_meta(MAX_METADATA_BYTES + 1)), "too_large");
    // How a client's library writes a value makes no difference: 'é' has two bytes, and six as an escape.
    for text in ["é", r"\u00e9"] {
        let with_meta = |times: usize| {
            let text = text.repeat(times);
            format!(r#"{{"board":"a","member":"m","score":1,"meta":{{"k":"{text}"}}}}"#)
        };
        assert_eq!(code(&with_meta(MAX_METADATA_BYTES / 2 - 4)), "ok", "{text}");
        assert_eq!(code(&with_meta(MAX_METADATA_BYTES / 2 - 3)), "too_large", "{text}");
        let stored = decoded(&with_meta(2)).expect("a job").meta;
        assert_eq!(stored, Some(Metadata(r#"{"k":"éé"}"#.into())), "{text}");
    }
    let with_profile = |bytes: usize| {
        let text = "x".repeat(bytes - r#"{"x":""}"#.len());
        format!(r#"{{"member":"m","op":"profile","profile":{{ "x" : "{text}" }}}}"#)
    };
    assert_eq!(code(&with_profile(MAX_PROFILE_BYTES)), "ok");
    assert_eq!(code(&with_profile(MAX_PROFILE_BYTES + 1)), "too_large");
    let with_boards = |count: usize| {
        let scores: Vec<String> = (0..count).map(|index| format!(r#""b{index}":{index}"#)).collect();
        format!(r#"{{"member":"m","scores":{{{}}}}}"#, scores.join(","))
    };
    assert_eq!(code(&with_boards(MAX_BOARDS_PER_JOB)), "ok");
    assert_eq!(code(&with_boards(MAX_BOARDS_PER_JOB + 1)), "too_large");
    assert_eq!(code(&with_boards(5 * MAX_BOARDS_PER_JOB)), "too_large");
    let array = |count: usize| {
        let jobs: Vec<String> = (0..count)
            .map(|index| format!(r#"{{"board":"b{}","member":"m{index}","score":{index}}}"#, index % 3))
            .collect();
        decode(format!("[{}]", jobs.join(",")).as_bytes())
    };
    assert_eq!(
        array(MAX_JOBS_PER_MESSAGE).map(|jobs| jobs.iter().filter(|job| job.is_ok()).count()),
        Ok(1_000)
    );
    assert_eq!(array(MAX_JOBS_PER_MESSAGE + 1).map_err(|reject| reject.code), Err(RejectCode::TooLarge));
}

#[test]
fn bad_jobs_leave_the_others_of_their_array_alone() {
    let text = br#"[{"board":"a","member":"m","score":1}, {"board":"a","member":"m","score":[[],{"x":[1]}]}, 5,
        {"zzz":{"y":[1,2,{"a":null}]},"board":"a","member":"m","score":2}, {"board":"b","member":"n","score":3}]"#;
    let codes: Vec<_> =
        decode(text).expect("an array").into_iter().map(|job| job.map_err(|r| r.code).map(|_| ())).collect();
    let (bad_score, malformed) = (Err(RejectCode::BadScore), Err(RejectCode::Malformed));
    assert_eq!(codes, [Ok(()), bad_score, malformed, malformed, Ok(())]);
}

#[test]
fn a_plain_job_of_a_path_is_what_the_strict_decoder_reads() {
    let job_of = || (board("a"), MemberId::new("m").expect("a good id"));
    for (text, is_plain) in [
        (r#"{"score":1}"#, true),
        (" { \"score\" : -5 , \"version\" : 3 , \"op\" : \"best\" } ", true),
        (r#"{"score":1,"op":null,"version":null}"#, true),
        (r#"{"score":1,"member":"m"}"#, false),
        (r#"{"score":1,"board":"a"}"#, false),
        (r#"{"score":[1,2]}"#, true),
        (r#"{"score":1,"at":"2026-01-02T03:04:05Z"}"#, true),
        (r#"{"score":1,"op":"remove"}"#, false),
        (r#"{"op":"remove"}"#, false),
        (r#"{"score":1}{"#, false),
        (r#"{"score":1,"meta":{}}"#, false),
        ("", false),
    ] {
        let (board, member) = job_of();
        assert_eq!(fast_path::decode_for(text.as_bytes(), board, member).is_ok(), is_plain, "{text}");
        let ((board, member), (same_board, same_member)) = (job_of(), job_of());
        let strictly = strict::decode_for(text.as_bytes(), same_board, same_member);
        assert_eq!(decode_for(text.as_bytes(), board, member), strictly, "{text}");
    }
}

#[test]
fn a_path_may_be_repeated_but_not_contradicted() {
    let decode = |text: &str| {
        let member = MemberId::new("m").expect("a good id");
        decode_for(text.as_bytes(), board("a"), member).map_or_else(|reject| reject.code.name(), |_| "ok")
    };
    for (text, expected) in [
        (r#"{"score":1}"#, "ok"),
        (r#"{"score":1,"board":"a","member":"m"}"#, "ok"),
        (r#"{"op":"remove"}"#, "ok"),
        (r#"{"op":"hide"}"#, "ok"),
        (r#"{"score":1,"board":"b"}"#, "malformed"),
        (r#"{"score":1,"member":"n"}"#, "malformed"),
        (r#"{"score":1,"member":1}"#, "bad_member"),
        (r#"{"scores":{"a":1}}"#, "malformed"),
        (r#"[{"score":1}]"#, "malformed"),
        ("", "malformed"),
        ("7", "malformed"),
        ("{}", "malformed"),
    ] {
        assert_eq!(decode(text), expected, "{text}");
    }
}

#[test]
fn metadata_is_kept_as_it_was_written_less_white_space_and_needless_escapes() {
    for (meta, kept) in [
        (r#"{ "b" : 1.10 , "a" : 12345678901234567890123 }"#, r#"{"b":1.10,"a":12345678901234567890123}"#),
        (r#"{"\u0041" : "\u00e9\/" }"#, r#"{"A":"é/"}"#),
        (r#"{"t":"a \" b\\" , "u":" \u0001 "}"#, r#"{"t":"a \" b\\","u":" \u0001 "}"#),
    ] {
        let text = format!(r#"{{"board":"a","member":"m","score":1,"meta":{meta}}}"#);
        let jobs = decode(text.as_bytes()).expect("jobs");
        let job = jobs.first().and_then(|job| job.as_ref().ok()).expect("a job");
        assert_eq!(job.meta, Some(Metadata(kept.into())), "{meta}");
    }
}

#[test]
fn a_value_that_cannot_be_read_is_told_by_its_place() {
    let job = |rest: &str| format!(r#"{{"board":"a","member":"m",{rest}}}"#);
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    let codes = |jobs: &[String]| -> Vec<String> {
        let text = format!("[{}]", jobs.join(","));
        let told = |job: &Decoded| job.as_ref().map_or_else(|reject| reject.code.name(), |_| "ok").to_owned();
        decode(text.as_bytes()).expect("jobs").iter().map(told).collect()
    };
    let jobs = [
        job(r#""score":1"#),
        job(r#""score":1e999"#),
        job(r#""scores":{"a":-1e999}"#),
        r#"{"member":"m","scores":{"a":-1e999}}"#.to_owned(),
        job(r#""score":1,"meta":{"a":1e999}"#),
        job(r#""score":1,"meta":{"a":"\ud800"}"#),
        job(r#""score":1,"op":"\ud800""#),
        job(&format!(r#""score":1,"meta":{}"#, nested(64))),
        job(&format!(r#""score":1,"meta":{}"#, nested(65))),
    ];
    let expect = [
        "ok",
        "bad_score",
        "malformed",
        "bad_score",
        "malformed",
        "malformed",
        "malformed",
        "ok",
        "malformed",
    ];
    assert_eq!(codes(&jobs), expect);
    let board = BoardName::new("a").expect("well-formed");
    let member = MemberId::new("m").expect("well-formed");
    let alone = decode_for(br#"{"score":1e999}"#, board, member).expect_err("no score");
    assert_eq!(alone.code, RejectCode::BadScore);
    assert!(decode(b"[1e999,").is_err());
}
