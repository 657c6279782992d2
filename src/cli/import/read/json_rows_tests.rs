//! Rows of JSON files that are jobs, and what becomes of them.

use super::*;
use crate::cli::import::read::column_names::ColumnNames;
use crate::cli::import::read::numbers::Numbers;
use crate::cli::import::read::row::{Boards, Row};
use crate::job::{MAX_BOARDS_PER_JOB, Op};
use crate::types::BoardName;

#[expect(clippy::needless_pass_by_value, reason = "they are made where they are used")]
fn rows(text: &str, defaults: Rules) -> Vec<Parsed> {
    let rows = JsonRows::open(text.as_bytes(), text.as_bytes(), &defaults, Shared::default(), 0);
    rows.and_then(Iterator::collect).expect("readable")
}

fn one(text: &str, defaults: Rules) -> Row {
    let mut parsed = rows(text, defaults);
    match (parsed.pop(), parsed.len()) {
        (Some(Parsed::Row(row)), 0) => row,
        other => panic!("{text:?} is one row, and not {other:?}"),
    }
}

fn names(boards: &Boards) -> Vec<&str> {
    boards.iter().map(|name| &**name).collect()
}

#[test]
fn a_job_is_passed_on_to_the_letter() {
    for job in [
        "{\"board\":\"arena\",\"member\":\"p42\",\"score\":1200}",
        "{ \"member\" : \"日本\", \"scores\":{\"a\":[1,2],\"b\":3}, \"meta\":{\"n\":1e400} }",
        "{\"member\":\"p42\",\"board\":\"arena\",\"score\":123456789012345678901234567890}",
    ] {
        assert_eq!(one(&format!("  {job}\r\n"), Rules::default()).job, job);
    }
}

#[test]
fn a_profile_gets_no_board() {
    let job = "{\"member\":\"p42\",\"op\":\"profile\",\"profile\":{\"name\":\"A\"}}";
    let row = one(job, Rules { board: BoardName::new("arena").ok(), ..Rules::default() });
    assert_eq!((row.job.as_str(), row.boards.len(), row.adds, row.is_undecided), (job, 0, false, false));
}

/// An import of an export with `--op best` overwrote better scores.
#[test]
fn an_operation_of_the_command_line_holds_for_every_row_or_the_row_is_refused() {
    let of = |op| Rules { op: Some(op), ..Rules::default() };
    let row = r#"{"board":"b","member":"m","op":"set","score":1,"at":"2026-11-20T10:00:00Z"#;
    let row = format!("{row}\",\"position\":1,\"updated_at\":\"2026-11-20T11:00:00Z\"}}");
    for op in [Op::Best, Op::Incr] {
        let expect = format!(
            r#"{{"op":"{}","at":"2026-11-20T10:00:00Z","board":"b","member":"m","score":1}}"#,
            op.name()
        );
        let row = one(&row, of(op));
        assert_eq!((row.job, row.adds), (expect, op == Op::Incr));
    }
    let removed = one(&row, of(Op::Remove)).job;
    assert_eq!(removed, r#"{"op":"remove","board":"b","member":"m"}"#);
    for own in ["hide", "profile", "remove"] {
        let job = format!("{{\"board\":\"b\",\"member\":\"m\",\"op\":\"{own}\"}}");
        let parsed = rows(&job, of(Op::Best));
        let [Parsed::Rejected(line)] = parsed.as_slice() else { panic!("refused, and not {parsed:?}") };
        assert!(line.detail.contains(&format!("its op is \"{own}\", and --op best is to hold")), "{line:?}");
        // They are part of an export beside its scores.
        let export = format!("{{\"board\":\"b\",\"definition\":{{}}}}\n{job}");
        let parsed = rows(&export, of(Op::Best));
        assert!(
            matches!(parsed.as_slice(), [Parsed::Board(_), Parsed::Row(row)] if row.job == job),
            "{parsed:?}"
        );
    }
    let versioned = Rules { version: Some(9), ..Rules::default() };
    let job = one(r#"{"member":"m","score":1,"version":3}"#, versioned).job;
    assert_eq!(job, r#"{"version":9,"member":"m","score":1}"#);
    // A time that is null is none, and not there twice.
    let mut row = one(r#"{"member":"m","score":1,"at":null}"#, Rules::default());
    row.set_time(crate::types::Timestamp::parse("2026-11-20T10:00:00Z").expect("a time"));
    assert_eq!(row.job, r#"{"member":"m","score":1,"at":"2026-11-20T10:00:00Z"}"#);
}

fn mapped(text: &str, columns: &[&str], rules: Rules) -> Vec<String> {
    let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
    let columns = ColumnNames::from_arguments(&columns).expect("well-formed");
    let rules = Rules { columns, board: BoardName::new("b").ok(), ..rules };
    let tell = |parsed| match parsed {
        Parsed::Row(row) => row.job,
        Parsed::Rejected(line) => format!("line {}: {}: {}", line.place.line, line.code, line.detail),
        Parsed::Blank(text) => format!("blank {text}"),
        Parsed::Board(_) => "board".to_owned(),
    };
    rows(text, rules).into_iter().map(tell).collect()
}

#[test]
fn rows_of_any_form_are_read_field_by_field() {
    let job =
        |member: &str, score: &str| format!("{{\"board\":\"b\",\"member\":\"{member}\",\"score\":{score}}}");
    let at = |path: &str| Rules { rows_at: path.split('.').map(str::to_owned).collect(), ..Rules::default() };
    let by_key = |rules| Rules { member_from_key: true, ..rules };
    let scaled = Rules { numbers: Numbers { scale: 100, ..Numbers::default() }, ..Rules::default() };
    for (text, columns, rules, expect) in [
        (
            "{\"p\":{\"id\":7},\"pts\":1e3}\n{\"p\":{\"id\":\" x \"},\"pts\":\"5\"}",
            &["member=p.id", "score=pts"][..],
            Rules::default(),
            vec![job("7", "1000"), job("x", "5")],
        ),
        (
            "[\n {\"name\": \"a\",\n \"pts\": 42.0}\n]",
            &["member=name", "score=pts"],
            Rules::default(),
            vec![job("a", "42")],
        ),
        ("{\"standings\":[{\"member\":\"a\",\"score\":1}]}", &[], at("standings"), vec![job("a", "1")]),
        (
            "{\"d\":{\"ann\":{\"s\":1},\"bob\":{\"s\":2}}}",
            &["score=s"],
            by_key(at("d")),
            vec![job("ann", "1"), job("bob", "2")],
        ),
        ("{\"ann\":5,\"bob\":\"7\"}", &[], by_key(Rules::default()), vec![job("ann", "5"), job("bob", "7")]),
        (
            "[[\"a\",1],[\"b\",2]]",
            &["member=0", "score=1"],
            Rules::default(),
            vec![job("a", "1"), job("b", "2")],
        ),
        ("{\"member\":\"a\",\"score\":12.34}", &[], scaled, vec![job("a", "1234")]),
        (
            "{\"member\":\"a\",\"x\":1,\"y\":2}",
            &["score=x", "score=y"],
            Rules::default(),
            vec![job("a", "[1,2]")],
        ),
        (
            "{\"member\":\"a\",\"score\":1,\"version\":\"1.2b\",\"meta\":\"x\"}",
            &["member=member"],
            Rules::default(),
            vec![job("a", "1")],
        ),
    ] {
        assert_eq!(mapped(text, columns, rules), expect, "{text}");
    }
    let parts = mapped(
        "{\"m\":\"a\",\"s\":1,\"n\":{\"x\":[1]}}",
        &["member=m", "score=s", "meta.n=n.x"],
        Rules::default(),
    );
    assert_eq!(parts, ["{\"board\":\"b\",\"member\":\"a\",\"score\":1,\"meta\":{\"n\":[1]}}"]);
    let blanks = Rules { blanks: vec![String::new()], ..Rules::default() };
    assert_eq!(mapped("{\"member\":\"a\",\"score\":null}", &[], blanks), ["blank "]);
}

#[test]
fn rows_of_json_that_cannot_be_read_are_refused_with_the_option_that_helps() {
    for (text, columns, expect) in [
        ("{\"standings\":[{\"name\":\"a\"}]}", &["member=name"][..], "--rows-at standings"),
        ("{\"standings\":[{\"name\":\"a\"}]}", &[], "--rows-at standings"),
        ("{\"ann\":{\"s\":1},\"bob\":{\"s\":2}}", &[], "--member-from-key"),
        ("[{\"name\":\"a\",\"pts\":1}]", &[], "--column member=NAME --column score=NAME"),
        (
            "{\"member\":\"a\",\"pts\":1}",
            &["score=points"],
            "the row has no field \"points\"; it has: member, pts",
        ),
        ("{\"member\":\"a\",\"score\":[1,\"1,5\"]}", &["member=member"], "has a comma: --decimal"),
        ("{\"member\":[\"a\"],\"score\":1}", &["member=member"], "is no text and no number"),
        ("{\"member\":\"a\",\"score\":true}", &["member=member"], "true is no number"),
        ("{\"member\":\"a\",\"score\":null}", &["member=member"], "--blank \"\""),
        ("{\"member\":\"a\",\"op\":\"hide\"}", &["member=member"], "the row's op is hide"),
        (
            "{\"member\":\"a\",\"scores\":{\"b\":1}}",
            &["member=member"],
            "the row has scores, which name boards",
        ),
    ] {
        let told = mapped(text, columns, Rules::default());
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert!(told.starts_with("line 1: ") && told.contains(expect), "{text}: {told}");
    }
}

#[test]
fn an_export_of_json_is_not_multiplied_again() {
    let numbers = Numbers { scale: 100, ..Numbers::default() };
    for text in [
        r#"{"board":"b","definition":{}}"#,
        r#"{"board":"b","member":"m","op":"set","score":1,"rank":1,"position":1,"at":"x","updated_at":"x"}"#,
    ] {
        let rules = Rules { numbers: numbers.clone(), ..Rules::default() };
        let rows = JsonRows::open(text.as_bytes(), text.as_bytes(), &rules, Shared::default(), 0);
        let told = rows.expect("readable").next().expect("a row").expect_err("twice").to_string();
        assert!(told.starts_with("the file is an export of ranktree"), "{told}");
    }
}

#[test]
fn what_a_board_is_may_stand_before_its_rows() {
    let board = "{\"board\":\"arena\",\"definition\":{\"ties\":\"last\"}}";
    let parsed = rows(&format!("{board}\n{{\"member\":\"m\"}}\n{board}"), Rules::default());
    let [Parsed::Board(first), Parsed::Row(row), Parsed::Board(_)] = parsed.as_slice() else {
        panic!("{parsed:?}")
    };
    assert_eq!((first.json().as_str(), row.place.line), (board, 2));
    // A job of that field is a job, and for the service to judge.
    let job = "{\"member\":\"m\",\"definition\":{}}";
    assert_eq!(one(job, Rules::default()).job, job);
    let bad = rows("{\"board\":\"no spaces\",\"definition\":{}}", Rules::default());
    assert!(matches!(bad.as_slice(), [Parsed::Rejected(line)] if line.code == "malformed"), "{bad:?}");
}

#[test]
fn the_command_line_fills_in_what_a_job_does_not_say() {
    let defaults = Rules { board: BoardName::new("arena").ok(), op: Some(Op::Best), ..Rules::default() };
    for (job, expect) in [
        (
            "{\"member\":\"m\",\"score\":1}",
            "{\"board\":\"arena\",\"op\":\"best\",\"member\":\"m\",\"score\":1}",
        ),
        (
            "{\"member\":\"m\",\"board\":\"b\",\"score\":1e2,\"meta\":{\"n\":1.10}}",
            "{\"board\":\"arena\",\"op\":\"best\",\"member\":\"m\",\"meta\":{\"n\":1.10},\"score\":1e2}",
        ),
        ("{\"member\":\"m\",\"op\":\"set\"}", "{\"board\":\"arena\",\"op\":\"best\",\"member\":\"m\"}"),
    ] {
        let row = one(job, defaults.clone());
        assert_eq!((row.job.as_str(), names(&row.boards)), (expect, vec!["arena"]));
    }
    let several = rows("{\"member\":\"m\",\"scores\":{\"b\":1}}", defaults.clone());
    let [Parsed::Rejected(line)] = several.as_slice() else { panic!("refused, and not {several:?}") };
    assert!(
        line.detail.contains("it has scores, which name boards, and --board names arena"),
        "{}",
        line.detail
    );
    let other = rows("{\"board\":\"b\",\"definition\":{}}", defaults);
    assert!(matches!(other.as_slice(), [Parsed::Board(line)] if line.board.as_str() == "arena"), "{other:?}");
}

#[test]
fn rows_of_an_export_keep_versions_times_and_who_is_hidden() {
    let (at, later) = ("2026-11-20T09:59:58Z", "2026-11-20T10:00:00Z");
    let line = |of_export: &str, version: &str, updated_at: &str| {
        format!(
            "{{\"board\":\"b\",\"member\":\"m\",\"op\":\"set\",\"score\":1,\"at\":\"{at}\"{version},\
             {of_export},\"updated_at\":\"{updated_at}\"}}"
        )
    };
    let job = |version: &str, at: &str| {
        format!("{{\"member\":\"m\",\"board\":\"b\",\"op\":\"set\",\"score\":1{version},\"at\":\"{at}\"}}")
    };
    let (six, seven) = (",\"version\":6", ",\"version\":7");
    for of_export in ["\"rank\":1,\"position\":1", "\"hidden\":true"] {
        for (text, expect) in [
            (line(of_export, "", at), vec![job("", at)]),
            (line(of_export, seven, at), vec![job(seven, at)]),
            (line(of_export, "", later), vec![job("", at), job("", later)]),
            (line(of_export, seven, later), vec![job(six, at), job(seven, later)]),
            (line(of_export, ",\"version\":0", later), vec![job(",\"version\":0", at)]),
        ] {
            let jobs = |text: &str| -> Vec<String> {
                let job = |parsed| match parsed {
                    Parsed::Row(row) => row.job,
                    other => panic!("{other:?}"),
                };
                rows(text, Rules::default()).into_iter().map(job).collect()
            };
            // The line that hides a member may be lost, and hides them once if it is not.
            let hide = "{\"board\":\"b\",\"member\":\"m\",\"op\":\"hide\"}";
            let hidden = (of_export == "\"hidden\":true").then(|| hide.to_owned());
            let expect: Vec<String> = expect.into_iter().chain(hidden.clone()).collect();
            assert_eq!(jobs(&text), expect, "{text}");
            assert_eq!(
                jobs(&[Some(text), hidden].into_iter().flatten().collect::<Vec<_>>().join("\n")),
                expect
            );
        }
    }
    // Who is hidden without an entry is a job as it stands.
    for hide in ["{\"board\":\"b\",\"member\":\"m\",\"op\":\"hide\"}", "{\"member\":\"m\",\"op\":\"hide\"}"] {
        assert_eq!(one(hide, Rules::default()).job, hide);
    }
}

#[test]
fn a_job_that_names_too_many_boards_is_rejected_without_keeping_their_names() {
    let job = |boards: usize| {
        let scores: Vec<_> = (0..boards).map(|number| format!("\"b{number}\":1")).collect();
        format!("{{\"member\":\"m\",\"scores\":{{{}}}}}", scores.join(","))
    };
    assert_eq!(one(&job(MAX_BOARDS_PER_JOB), Rules::default()).boards.len(), MAX_BOARDS_PER_JOB);
    let parsed = rows(&job(MAX_BOARDS_PER_JOB + 1), Rules::default());
    let [Parsed::Rejected(line)] = parsed.as_slice() else { panic!("rejected, and not {parsed:?}") };
    assert_eq!(line.code, "too_large");
}

#[test]
fn what_counts_twice_when_sent_twice_is_known() {
    let check = |job: &str, adds: bool, is_undecided: bool, boards: &[&str]| {
        let row = one(job, Rules::default());
        assert_eq!((row.adds, row.is_undecided), (adds, is_undecided), "{job}");
        assert_eq!(names(&row.boards), boards, "{job}");
    };
    for (job, adds, is_undecided) in [
        ("\"score\":1,\"op\":\"set\"", false, false),
        ("\"score\":1,\"op\":\"incr\"", true, false),
        ("\"score\":1,\"op\":\"incr\",\"version\":1", false, false),
        ("\"score\":1,\"op\":\"incr\",\"version\":null", true, false),
        ("\"score\":1,\"version\":1", false, false),
        ("\"score\":1", false, true),
    ] {
        check(&format!("{{\"board\":\"b\",\"member\":\"m\",{job}}}"), adds, is_undecided, &["b"]);
    }
    check("{\"scores\":{\"b\":1,\"c\":2},\"member\":\"m\"}", false, true, &["b", "c"]);
}

#[test]
fn lines_that_are_no_job_are_rejected_and_the_next_is_read() {
    let long = format!("{{\"member\":\"{}\"}}", "x".repeat(MAX_JOB_BYTES));
    for (bad, code) in [
        ("null", "malformed"),
        ("[{\"member\":\"m\"}]", "malformed"),
        ("{\"member\":\"m\"", "malformed"),
        ("{\"member\":\"m\"} {}", "malformed"),
        ("{\"member\":7}", "bad_member"),
        ("{\"score\":7}", "malformed"),
        ("{}", "malformed"),
        (long.as_str(), "too_large"),
    ] {
        let text = format!("\n{{\"member\":\"a\"}}\n\n{bad}\n \t\n{{\"member\":\"z\"}}");
        let told: Vec<_> = rows(&text, Rules::default())
            .into_iter()
            .map(|parsed| match parsed {
                Parsed::Row(row) => (row.place.line, String::new()),
                Parsed::Rejected(line) => (line.place.line, line.code),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, [(2, String::new()), (4, code.to_owned()), (6, String::new())]);
    }
}

/// Otherwise the rows of a past season would go into `all`.
#[test]
fn rows_of_an_export_do_not_come_without_their_board() {
    let row =
        r#"{"board":"b","member":"m","op":"set","score":1,"position":1,"updated_at":"2026-11-20T10:00:00Z"}"#;
    for first in [r#"{"board":"b","window":"s0","definition":{"windows":["season"]}}"#, r#"{"board":"b","#] {
        let text = format!("{first}\n{row}\n");
        let rows = JsonRows::open(text.as_bytes(), text.as_bytes(), &Rules::default(), Shared::default(), 0);
        let mut rows = rows.expect("readable");
        assert!(matches!(rows.next(), Some(Ok(Parsed::Rejected(_)))));
        assert!(matches!(rows.next(), Some(Err(ImportError::BoardLine(_)))));
    }
    // Other jobs, and rows whose first line was left out, are told apart by themselves.
    assert!(matches!(rows(row, Rules::default()).as_slice(), [Parsed::Row(_)]));
}

#[test]
fn a_job_that_only_fits_without_the_defaults_is_too_large() {
    let job = format!("{{\"member\":\"m\",\"x\":\"{}\"}}", "x".repeat(MAX_JOB_BYTES - 21));
    assert_eq!(one(&job, Rules::default()).job.len(), MAX_JOB_BYTES);
    let defaults = Rules { board: None, op: Some(Op::Set), ..Rules::default() };
    let parsed = rows(&job, defaults);
    let [Parsed::Rejected(line)] = parsed.as_slice() else { panic!("too large, and not {parsed:?}") };
    assert_eq!((line.place.line, line.code.as_str()), (1, "too_large"));
}

/// To go on behind a line that has more rows would lose them.
#[test]
fn rows_of_a_document_that_share_a_line_are_gone_on_from_at_that_line() {
    let behind = |text: &str| -> Vec<u64> {
        let line = |parsed: Parsed| match parsed {
            Parsed::Row(row) => row.place.behind().line,
            other => panic!("{other:?}"),
        };
        rows(text, Rules::default()).into_iter().map(line).collect()
    };
    let job = |member: &str| format!("{{\"member\":\"{member}\",\"score\":1}}");
    let (a, b, c) = (job("a"), job("b"), job("c"));
    assert_eq!(behind(&format!("{a}\n{b}\n{c}\n")), [2, 3, 4]);
    assert_eq!(behind(&format!("[{a},{b},{c}]")), [1, 1, 1]);
    // Whether a row is alone on its line is not known before the next one is read.
    assert_eq!(behind(&format!("[\n{a},\n{b},\n{c}]")), [2, 3, 4]);
}
