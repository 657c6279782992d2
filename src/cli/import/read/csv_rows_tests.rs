//! Rows of CSV files, good and bad, and what they become.

use super::*;

fn open(text: &str, columns: &[&str], defaults: Defaults) -> Result<Vec<Parsed>, ImportError> {
    let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
    CsvRows::open(text.as_bytes(), &ColumnNames::from_arguments(&columns)?, defaults)?.collect()
}

/// Jobs and rejects, each with its line.
fn told(parsed: Vec<Parsed>) -> Vec<(u64, String)> {
    let tell = |parsed| match parsed {
        Parsed::Row(row) => (row.line, row.job),
        Parsed::Rejected(line) => (line.line, line.code),
        Parsed::Board(board) => (0, board.json()),
    };
    parsed.into_iter().map(tell).collect()
}

fn check(text: &str, expect: &[(u64, &str)]) {
    let told = told(open(text, &[], Defaults::default()).expect("the header is good"));
    let told: Vec<_> = told.iter().map(|(line, said)| (*line, said.as_str())).collect();
    assert_eq!(told, expect, "{text:?}");
}

#[test]
fn scores_are_multiplied_key_by_key() {
    let rows = "board,member,score\na,p,12.5\na,p,\"3,0.25\"\na,p,1.255\na,p,fast\n";
    let rows = CsvRows::open(rows.as_bytes(), &ColumnNames::default(), Defaults::default());
    let rows = rows.expect("the header is good").scaled_by(100).collect::<Result<_, _>>();
    let job = |score: &str| format!("{{\"board\":\"a\",\"member\":\"p\",\"score\":{score}}}");
    let expect =
        [(2, job("1250")), (3, job("[300,25]")), (4, "bad_score".to_owned()), (5, "bad_score".to_owned())];
    assert_eq!(told(rows.expect("it can be read")), expect);
}

#[test]
fn good_rows_become_jobs() {
    let arena = "{\"board\":\"arena\",\"member\":\"p42\",\"score\":1200}";
    check("board,member,score\narena,p42,1200\n", &[(2, arena)]);
    check("board,member,score\r\narena,p42,1200", &[(2, arena)]);
    check("\"Score\", Member ,BOARD,rank\n 1200 ,p42,arena,1\n", &[(2, arena)]);
    check("board,member,score,at,version\narena,p42,1200,,\n", &[(2, arena)]);
    check("board,member,score\n", &[]);
    check(
        "board,member,score,at\narena,a/b.c d,\"-9223372036854775808, 9223372036854775807\",2026-07-24\n",
        &[(
            2,
            "{\"board\":\"arena\",\"member\":\"a/b.c d\",\
             \"score\":[-9223372036854775808,9223372036854775807],\"at\":\"2026-07-24T00:00:00Z\"}",
        )],
    );
    check(
        "at,version,board,member,score\n2026-11-20T18:59:58+09:00,18446744073709551615,arena,\"a \"\"b\"\"\",0\n",
        &[(
            2,
            "{\"board\":\"arena\",\"member\":\"a \\\"b\\\"\",\"score\":0,\
             \"version\":18446744073709551615,\"at\":\"2026-11-20T09:59:58Z\"}",
        )],
    );
}

#[test]
fn an_export_says_first_what_the_board_is_and_its_rows_set() {
    let board = "{\"board\":\"arena\",\"definition\":{\"policy\":\"incr\"}}";
    let job = "{\"board\":\"arena\",\"member\":\"m\",\"score\":5,\"op\":\"set\"}";
    for end in ["\n", "\r\n"] {
        let text = format!("#ranktree {board}{end}board,member,score{end}arena,m,5{end}arena,m,x");
        check(&text, &[(0, board), (3, job), (4, "bad_score")]);
    }
    // A header may begin with the same character.
    let row = "{\"board\":\"arena\",\"member\":\"m\",\"score\":5}";
    check("#,board,member,score\n1,arena,m,5", &[(2, row)]);
    let error = open("#ranktree {}\nboard,member,score\n", &[], Defaults::default());
    let error = error.expect_err("it says nothing").to_string();
    assert!(error.starts_with("the first line does not describe a board: "), "{error}");
}

#[test]
fn rows_of_an_export_keep_versions_times_and_who_is_hidden() {
    let head = "board,member,score,rank,position,at,updated_at,meta,version,hidden";
    let (at, later) = ("2026-11-20T09:59:58Z", "2026-11-20T10:00:00Z");
    let job = |rest: &str| format!("{{\"board\":\"b\",\"member\":\"m\"{rest}}}");
    let set = |version: &str, at: &str| job(&format!(",\"score\":1,\"op\":\"set\"{version},\"at\":\"{at}\""));
    let (hide, versioned) = (job(",\"op\":\"hide\""), |version: u64| format!(",\"version\":{version}"));
    for (row, expect) in [
        (format!("b,m,1,1,1,{at},{at},,,"), vec![set("", at)]),
        (format!("b,m,1,1,1,{at},{at},,7,"), vec![set(&versioned(7), at)]),
        (format!("b,m,1,1,1,{at},{later},,,"), vec![set("", at), set("", later)]),
        (format!("b,m,1,1,1,{at},{later},,7,"), vec![set(&versioned(6), at), set(&versioned(7), later)]),
        (format!("b,m,1,1,1,{at},{later},,0,"), vec![set(&versioned(0), at)]),
        (
            format!("b,m,1,,,{at},{later},,7,true"),
            vec![set(&versioned(6), at), set(&versioned(7), later), hide.clone()],
        ),
        ("b,m,,,,,,,,true".to_owned(), vec![hide.clone()]),
    ] {
        let defaults = Defaults { op: Some(Op::Set), ..Defaults::default() };
        let told = told(open(&format!("{head}\n{row}\n"), &[], defaults).expect("the header is good"));
        assert_eq!(told, expect.into_iter().map(|job| (2, job)).collect::<Vec<_>>(), "{row}");
    }
    // Elsewhere the name has no meaning.
    check("board,member,score,hidden\nb,m,1,true\n", &[(2, &job(",\"score\":1"))]);
}

#[test]
fn apostrophes_of_a_file_for_spreadsheets_are_taken_away() {
    let job = |member: &str| format!("{{\"board\":\"b\",\"member\":\"{member}\",\"score\":1}}");
    let rows = "board,member,score\nb,'=1+1,1\nb,''x,1\nb,'m,1\nb,-1,1\n";
    let read = |is_safe| {
        let rows = CsvRows::open(rows.as_bytes(), &ColumnNames::default(), Defaults::default());
        let rows = rows.expect("the header is good").spreadsheet_safe(is_safe);
        told(rows.collect::<Result<_, _>>().expect("readable"))
    };
    let members = |members: [&str; 4]| (2..).zip(members.map(job)).collect::<Vec<_>>();
    assert_eq!(read(true), members(["=1+1", "'x", "'m", "-1"]));
    assert_eq!(read(false), members(["'=1+1", "''x", "'m", "-1"]));
    let text = format!("#ranktree {{\"board\":\"b\",\"spreadsheet_safe\":true,\"definition\":{{}}}}\n{rows}");
    let told = told(open(&text, &[], Defaults::default()).expect("the header is good"));
    let job = job("=1+1").replace('}', ",\"op\":\"set\"}");
    assert_eq!(told.get(1), Some(&(3, job)), "the first line says so");
}

#[test]
fn bad_rows_are_rejected_one_by_one_under_their_line() {
    let job = |member: &str| format!("{{\"board\":\"b\",\"member\":\"{member}\",\"score\":1}}");
    let (first, last) = (job("first"), job("last"));
    for (row, code) in [
        ("b,m,1.5", "bad_score"),
        ("b,m,", "bad_score"),
        ("b,m,9223372036854775808", "bad_score"),
        ("b,m,\"1,2,3,4,5,6,7,8,9\"", "bad_score"),
        ("b,m,NaN", "bad_score"),
        ("b,m,+1", "bad_score"),
        ("b,m,\"1,+2\"", "bad_score"),
        ("b,,1", "bad_member"),
        ("b,\"a\tb\",1", "bad_member"),
        ("no spaces,m,1", "malformed"),
        (",m,1", "malformed"),
        ("b,m", "malformed"),
        ("b,m,1,2", "malformed"),
    ] {
        check(
            &format!("board,member,score\nb,first,1\n{row}\nb,last,1\n"),
            &[(2, &first), (3, code), (4, &last)],
        );
    }
    for (at, version) in [("yesterday", "1"), ("2026-13-01", "1"), ("", "-1"), ("", "+1"), ("", "1.0")] {
        check(&format!("board,member,score,at,version\nb,m,1,{at},{version}\n"), &[(2, "malformed")]);
    }
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    check(
        "\n\nboard,member,score\n\n\nb,m,x\n\r\nb,m,x\n\"b\",\"a\nb\",1\nb,m,x",
        &[(6, "bad_score"), (8, "bad_score"), (9, "bad_member"), (11, "bad_score")],
    );
}

#[test]
fn a_quotation_mark_that_is_not_closed_ends_the_import() {
    for (text, line) in [
        ("board,member,score,note\nb,m,1,x\nb,n,2,\"x\nb,o,3,x\n", 3),
        ("board,member,score\nb,m,\"2", 2),
        ("board,\"member,score\nb,m,2", 1),
        ("#ranktree {\"board\":\"b\",\"definition\":{}}\nboard,member,score\nb,m,\"2", 3),
    ] {
        let error = open(text, &[], Defaults::default()).expect_err(text).to_string();
        let expect = format!("line {line}: the quotation mark that opens a cell here is not closed");
        assert!(error.starts_with(&expect), "{text:?}: {error}");
    }
}

#[test]
fn the_rows_before_a_bad_quotation_mark_are_read() {
    let text = "board,member,score\nb,m,1\nb,n,\"2\nb,o,3\n";
    let rows = CsvRows::open(text.as_bytes(), &ColumnNames::default(), Defaults::default());
    let mut rows = rows.expect("the header is good");
    let first = rows.next().expect("a row").expect("it is whole");
    assert!(matches!(first, Parsed::Row(row) if row.line == 2));
    assert!(matches!(rows.next(), Some(Err(ImportError::Quotes(_)))));
}

#[test]
fn a_rejected_row_says_which_lines_it_has() {
    let parsed = open("board,member,score\nb,\"m\nn\no\",1\n", &[], Defaults::default());
    let parsed = parsed.expect("it is closed");
    let [Parsed::Rejected(row)] = parsed.as_slice() else { panic!("rejected, and not {parsed:?}") };
    assert_eq!(row.line, 2);
    assert!(row.detail.ends_with("one row of the lines up to 4"), "{}", row.detail);
}

#[test]
fn a_row_that_is_not_utf_8_is_rejected() {
    let text = b"board,member,score\nb,\xff,1\nb,m,1\n".as_slice();
    let rows = CsvRows::open(text, &ColumnNames::default(), Defaults::default()).expect("the header is good");
    let codes = told(rows.collect::<Result<_, _>>().expect("readable"));
    assert_eq!(codes.first().map(|(line, code)| (*line, code.as_str())), Some((2, "malformed")));
    assert_eq!(codes.len(), 2);
}

#[test]
fn columns_may_have_other_names_and_the_command_line_fills_in() {
    let defaults = Defaults { board: BoardName::new("kills").ok(), op: Some(Op::Incr) };
    let text = "date,who,points,score\n2026-07-24,p42,3,x\n";
    let parsed = open(text, &["at=date", "member=Who", "score=points"], defaults).expect("well-formed");
    let [Parsed::Row(row)] = parsed.as_slice() else { panic!("one row, and not {parsed:?}") };
    assert_eq!(
        row.job,
        "{\"board\":\"kills\",\"member\":\"p42\",\"score\":3,\"op\":\"incr\",\"at\":\"2026-07-24T00:00:00Z\"}"
    );
    assert!(row.adds, "an increment without a version counts twice when sent twice");
}

#[test]
fn operations_without_a_score_need_no_column_for_it() {
    let defaults = Defaults { board: None, op: Some(Op::Remove) };
    let parsed = open("board,member\narena,p42\n", &[], defaults).expect("well-formed");
    assert_eq!(told(parsed), [(2, "{\"board\":\"arena\",\"member\":\"p42\",\"op\":\"remove\"}".to_owned())]);
}

#[test]
fn an_unfit_header_is_refused_before_any_row() {
    for (text, columns, expect) in [
        ("", vec![], "the file is empty"),
        ("\n\r\n", vec![], "the file is empty"),
        ("a,b\n", vec![], "the file's header has no column \"member\"; it has: a, b."),
        ("member,score\n", vec![], "the file's header has no column \"board\""),
        ("member;score\nm;1\n", vec![], "the file's header has one column, member;score: columns must be"),
        ("board\tmember\tscore\n", vec![], "the file's header has one column, "),
        ("board,member\n", vec![], "the file's header has no column \"score\""),
        ("board,member,score\n", vec!["at=date"], "the file's header has no column \"date\""),
        ("board,member,score,Member\n", vec![], "the file's header names the column \"member\" twice"),
        ("board,member,score\n", vec!["when=date"], "--column must be FIELD=NAME"),
        ("board,member,score\n", vec!["at="], "--column must be FIELD=NAME"),
    ] {
        let error = open(text, &columns, Defaults::default()).expect_err(text).to_string();
        assert!(error.starts_with(expect), "{text:?}: {error}");
    }
}

#[test]
fn a_file_of_too_many_columns_is_refused() {
    let more = |columns: usize| format!("board,member,score{}\n", ",".repeat(columns - 3));
    let header = |columns| open(&more(columns), &[], Defaults::default()).map(|rows| rows.len());
    assert!(header(MAX_COLUMNS).is_ok_and(|rows| rows == 0));
    let refused = header(MAX_COLUMNS + 1).expect_err("one too many").to_string();
    assert!(refused.starts_with("the file's header has 4097 columns, and an import reads 4096"), "{refused}");
    let refused = header(15_000_000).expect_err("far too many").to_string();
    assert!(refused.starts_with("line 1: the row that begins here has more than 65536 cells"), "{refused}");
    // A row of more columns than the header is rejected alone, and one of far more ends the import.
    let wide = |columns: usize| format!("board,member,score\nb,m,1\nb,m,1{}\nb,n,1\n", ",".repeat(columns));
    let rows = open(&wide(10_000), &[], Defaults::default()).expect("it is read to its end");
    assert_eq!(told(rows).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4]);
    let refused = open(&wide(500_000), &[], Defaults::default()).expect_err("far too many").to_string();
    assert!(refused.starts_with("line 3: the row that begins here has more than"), "{refused}");
}

#[test]
fn columns_without_a_use_are_named() {
    let note = |text: &str| {
        CsvRows::open(text.as_bytes(), &ColumnNames::default(), Defaults::default())
            .expect("the header is good")
            .ignored_note()
    };
    assert_eq!(note("board,member,score,at,version\n"), None);
    assert_eq!(
        note("date,board,member,score,rank\n").as_deref(),
        Some("columns that are not used: date, rank")
    );
}
