//! Rows of CSV files, good and bad, and what they become.

use super::*;
use crate::cli::import::read::MAX_COLUMNS;
use crate::cli::import::read::column_names::ColumnNames;
use crate::cli::import::read::numbers::Numbers;
use crate::types::BoardName;

fn open(text: &str, columns: &[&str], rules: Rules) -> Result<Vec<Parsed>, ImportError> {
    let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
    let rules = Rules { columns: ColumnNames::from_arguments(&columns)?, ..rules };
    CsvRows::open(text.as_bytes(), &rules, Shared::default(), 0)?.collect()
}

fn defaults(board: Option<&str>, op: Option<Op>) -> Rules {
    Rules { board: board.map(|name| BoardName::new(name).expect("a good name")), op, ..Rules::default() }
}

/// Jobs and rejects, each with its line.
fn told(parsed: Vec<Parsed>) -> Vec<(u64, String)> {
    let tell = |parsed| match parsed {
        Parsed::Row(row) => (row.place.line, row.job),
        Parsed::Rejected(line) => (line.place.line, line.code),
        Parsed::Board(board) => (0, board.json()),
        Parsed::Blank(text) => (0, format!("blank {text}")),
    };
    parsed.into_iter().map(tell).collect()
}

fn check(text: &str, expect: &[(u64, &str)]) {
    let told = told(open(text, &[], Rules::default()).expect("the header is good"));
    let told: Vec<_> = told.iter().map(|(line, said)| (*line, said.as_str())).collect();
    assert_eq!(told, expect, "{text:?}");
}

#[test]
fn scores_are_multiplied_key_by_key() {
    let numbers = Numbers { scale: 100, ..Numbers::default() };
    let rules = Rules { numbers, ..Rules::default() };
    let rows = "board,member,a,b\na,p,3,0.25\na,p,1,1.255\na,p,fast,1\n";
    let rows = open(rows, &["score=a", "score=b"], rules).expect("the header is good");
    let job = "{\"board\":\"a\",\"member\":\"p\",\"score\":[300,25]}".to_owned();
    assert_eq!(told(rows), [(2, job), (3, "bad_score".to_owned()), (4, "bad_score".to_owned())]);
}

#[test]
fn good_rows_become_jobs() {
    let arena = "{\"board\":\"arena\",\"member\":\"p42\",\"score\":1200}";
    check("board,member,score\narena,p42,1200\n", &[(2, arena)]);
    check("board,member,score\r\narena,p42,1200", &[(2, arena)]);
    check("\"Score\", Member ,BOARD,rank\n 1200 ,p42,arena,1\n", &[(2, arena)]);
    check("board,member,score,at,version\narena,p42,1200,,\n", &[(2, arena)]);
    check("board,member,score\n", &[]);
    // What is not seen around a name is no part of it, and may be of its last letter.
    check("board,member,score\narena,\u{200b}\u{a0}p42\u{200e}\u{2060},1200", &[(2, arena)]);
    let joined = arena.replace("p42", "p\u{200d}42\u{fe0f}");
    check("board,member,score\narena,p\u{200d}42\u{fe0f},1200", &[(2, &joined)]);
    check(
        "board,member,score,at\narena, a/b.c d ,-9223372036854775808,2026-07-24\n",
        &[(
            2,
            "{\"board\":\"arena\",\"member\":\"a/b.c d\",\
             \"score\":-9223372036854775808,\"at\":\"2026-07-24T00:00:00Z\"}",
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
    let error = open("#ranktree {}\nboard,member,score\n", &[], Rules::default());
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
        let told =
            told(open(&format!("{head}\n{row}\n"), &[], Rules::default()).expect("the header is good"));
        assert_eq!(told, expect.into_iter().map(|job| (2, job)).collect::<Vec<_>>(), "{row}");
    }
    // Of what was cut out of an export, too.
    check("board,member,score,hidden\nb,m,1,true\n", &[(2, &job(",\"score\":1")), (2, &hide)]);
    check("board,member,score,hidden\nb,m,1,0\n", &[(2, &job(",\"score\":1"))]);
}

#[test]
fn apostrophes_of_a_file_for_spreadsheets_are_taken_away() {
    let job = |member: &str| format!("{{\"board\":\"b\",\"member\":\"{member}\",\"score\":1}}");
    let rows = "board,member,score\nb,'=1+1,1\nb,''x,1\nb,'m,1\nb,-1,1\n";
    let read = |is_safe| {
        let rules = Rules { spreadsheet_safe: is_safe, ..Rules::default() };
        told(open(rows, &[], rules).expect("the header is good"))
    };
    let members = |members: [&str; 4]| (2..).zip(members.map(job)).collect::<Vec<_>>();
    assert_eq!(read(true), members(["=1+1", "'x", "'m", "-1"]));
    assert_eq!(read(false), members(["'=1+1", "''x", "'m", "-1"]));
    let text = format!("#ranktree {{\"board\":\"b\",\"spreadsheet_safe\":true,\"definition\":{{}}}}\n{rows}");
    let told = told(open(&text, &[], Rules::default()).expect("the header is good"));
    let job = job("=1+1").replace('}', ",\"op\":\"set\"}");
    assert_eq!(told.get(1), Some(&(3, job)), "the first line says so");
}

#[test]
fn bad_rows_are_rejected_one_by_one_under_their_line() {
    let job = |member: &str| format!("{{\"board\":\"b\",\"member\":\"{member}\",\"score\":1}}");
    let (first, last) = (job("first"), job("last"));
    for (row, code) in [
        ("b,m,", "bad_score"),
        ("b,m,1e400", "bad_score"),
        ("b,m,\"1,2,3,4,5,6,7,8,9\"", "bad_score"),
        ("b,m,NaN", "bad_score"),
        ("b,m,\"1,234\"", "bad_score"),
        ("b,m,\"1,+2\"", "bad_score"),
        ("b,,1", "bad_member"),
        ("b,\"a\tb\",1", "bad_member"),
        ("no spaces,m,1", "malformed"),
        (",m,1", "malformed"),
        ("b,m", "malformed"),
        ("b,m,1,2", "malformed"),
        ("b,m,1:23", "bad_score"),
    ] {
        check(
            &format!("board,member,score\nb,first,1\n{row}\nb,last,1\n"),
            &[(2, &first), (3, code), (4, &last)],
        );
    }
    for (at, version) in [("yesterday", "1"), ("2026-13-01", "1"), ("", "-1"), ("", "+1"), ("", "1.0")] {
        let text = format!("board,member,score,at,version\nb,m,1,{at},{version}\n");
        let rows = open(&text, &["at=at", "version=version"], Rules::default()).expect("the header is good");
        assert_eq!(told(rows), [(2, "malformed".to_owned())], "{text}");
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
        let error = open(text, &[], Rules::default()).expect_err(text).to_string();
        let expect = format!("line {line}: the quotation mark that opens a cell here is not closed");
        assert!(error.starts_with(&expect), "{text:?}: {error}");
    }
}

#[test]
fn the_rows_before_a_bad_quotation_mark_are_read() {
    let text = "board,member,score\nb,m,1\nb,n,\"2\nb,o,3\n";
    let mut rows =
        CsvRows::open(text.as_bytes(), &Rules::default(), Shared::default(), 0).expect("the header is good");
    let first = rows.next().expect("a row").expect("it is whole");
    assert!(matches!(first, Parsed::Row(row) if row.place.line == 2));
    assert!(matches!(rows.next(), Some(Err(ImportError::Quotes(_)))));
}

#[test]
fn a_rejected_row_says_which_lines_it_has() {
    let parsed = open("board,member,score\nb,\"m\nn\no\",1\n", &[], Rules::default());
    let parsed = parsed.expect("it is closed");
    let [Parsed::Rejected(row)] = parsed.as_slice() else { panic!("rejected, and not {parsed:?}") };
    assert_eq!(row.place.line, 2);
    assert!(row.detail.ends_with("one row of the lines up to 4"), "{}", row.detail);
}

#[test]
fn a_row_that_is_not_utf_8_is_rejected() {
    let text = b"board,member,score\nb,\xff,1\nb,m,1\n".as_slice();
    let rows = CsvRows::open(text, &Rules::default(), Shared::default(), 0).expect("the header is good");
    let parsed: Vec<Parsed> = rows.collect::<Result<_, _>>().expect("readable");
    let [Parsed::Rejected(first), Parsed::Row(_)] = parsed.as_slice() else { panic!("{parsed:?}") };
    let expect = "column \"member\": \"\u{fffd}\" is not UTF-8; --encoding says what the file is in";
    assert!(first.place.line == 2 && first.detail.starts_with(expect), "{first:?}");
    let header =
        CsvRows::open(b"board,Gr\xf6\xdfe\n".as_slice(), &Rules::default(), Shared::default(), 0).err();
    assert!(header.expect("not UTF-8").to_string().contains("--encoding"));
}

#[test]
fn columns_may_have_other_names_and_the_command_line_fills_in() {
    let text = "date,who,points,score\n2026-07-24,p42,3,x\n";
    let parsed =
        open(text, &["at=date", "member=Who", "score=points"], defaults(Some("kills"), Some(Op::Incr)))
            .expect("well-formed");
    let [Parsed::Row(row)] = parsed.as_slice() else { panic!("one row, and not {parsed:?}") };
    assert_eq!(
        row.job,
        "{\"board\":\"kills\",\"member\":\"p42\",\"score\":3,\"op\":\"incr\",\"at\":\"2026-07-24T00:00:00Z\"}"
    );
    assert!(row.adds, "an increment without a version counts twice when sent twice");
}

#[test]
fn operations_without_a_score_need_no_column_for_it() {
    let parsed =
        open("board,member\narena,p42\n", &[], defaults(None, Some(Op::Remove))).expect("well-formed");
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
        ("board,Member,score,MEMBER\n", vec![], "the file's header names the column \"member\" twice"),
        ("board,member,score,member\n", vec![], "the file's header names the column \"member\" twice"),
        ("board,member,score\n", vec!["when=date"], "--column must be FIELD=NAME"),
        ("board,member,score\n", vec!["at=a", "at=b"], "--column names at twice"),
    ] {
        let error = open(text, &columns, Rules::default()).expect_err(text).to_string();
        assert!(error.starts_with(expect), "{text:?}: {error}");
    }
}

#[test]
fn a_file_of_too_many_columns_is_refused() {
    let more = |columns: usize| format!("board,member,score{}\n", ",".repeat(columns - 3));
    let header = |columns| open(&more(columns), &[], Rules::default()).map(|rows| rows.len());
    assert!(header(MAX_COLUMNS).is_ok_and(|rows| rows == 0));
    let refused = header(MAX_COLUMNS + 1).expect_err("one too many").to_string();
    assert!(refused.starts_with("the file's header has 4097 columns, and an import reads 4096"), "{refused}");
    let refused = header(15_000_000).expect_err("far too many").to_string();
    assert!(refused.starts_with("line 1: the row that begins here has more than 65536 cells"), "{refused}");
    // A row of more columns than the header is rejected alone, and one of far more ends the import.
    let wide = |columns: usize| format!("board,member,score\nb,m,1\nb,m,1{}\nb,n,1\n", ",".repeat(columns));
    let rows = open(&wide(10_000), &[], Rules::default()).expect("it is read to its end");
    assert_eq!(told(rows).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4]);
    let refused = open(&wide(500_000), &[], Rules::default()).expect_err("far too many").to_string();
    assert!(refused.starts_with("line 3: the row that begins here has more than"), "{refused}");
}

#[test]
fn what_is_read_is_told_with_why_and_columns_that_do_not_fit_are_not_read() {
    let note = |text: &str, columns: &[&str]| {
        let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
        let columns = ColumnNames::from_arguments(&columns).expect("well-formed");
        let rules = Rules { columns, ..Rules::default() };
        CsvRows::open(text.as_bytes(), &rules, Shared::default(), 0)
            .expect("the header is good")
            .note()
            .to_owned()
    };
    let plain = "reads member from \"member\" (its name), board from \"board\" (its name), score from \"score\" (its name)";
    assert_eq!(note("board,member,score\n", &[]), plain);
    assert_eq!(
        note("date,board,member,score,rank\n", &[]),
        format!("{plain}; columns that are not read: date, rank")
    );
    // A version of a game, a meta of another program, a time as people say it.
    for (column, cell) in [("version", "1.2b"), ("meta", "dagger"), ("at", "last week")] {
        let told = note(&format!("board,member,score,{column}\nb,m,1,{cell}\n"), &[]);
        let expect =
            format!("The column \"{column}\" is not read as {column}, because line 2 has \"{cell}\"");
        assert!(told.contains(&expect) && told.contains(&format!("--column {column}={column}")), "{told}");
    }
    // A mistyped time among others, or a word among words.
    let times = |cells: [&str; 3]| {
        let rows = cells.map(|cell| format!("b,m,1,{cell}\n"));
        note(&format!("board,member,score,at\n{}", rows.concat()), &[])
    };
    for mistyped in ["0206-11-07", "soon"] {
        for cells in [
            [mistyped, "2026-11-06", "2026-11-08"],
            ["2026-11-06", "", ""],
            ["2026-11-06", "2026-11-07", mistyped],
        ] {
            assert!(times(cells).ends_with("at from \"at\" (its name)"), "{cells:?}");
        }
        assert!(times([mistyped, "", "2026-11-06"]).contains("is not read as at, because line 2 has"));
    }
    let text = "board,member,score,version\nb,m,1,7\n";
    assert!(note(text, &[]).contains("version from \"version\" (its name)"));
    assert!(note(text, &["version="]).ends_with("columns that are not read: version"));
    let rows = open(text, &["version="], Rules::default()).expect("well-formed");
    assert_eq!(told(rows), [(2, "{\"board\":\"b\",\"member\":\"m\",\"score\":1}".to_owned())]);
    // A position of its own does not make an export of a file.
    let rows = "board,member,score,position,updated_at,hidden\nb,m,1,3,2026-11-20T10:00:00Z,false\n";
    check(rows, &[(2, "{\"board\":\"b\",\"member\":\"m\",\"score\":1}")]);
}

#[test]
fn columns_have_other_forms_and_files_other_beginnings() {
    let job = "{\"board\":\"b\",\"member\":\"m\",\"score\":1}";
    let plain = || defaults(Some("b"), None);
    for (text, columns, rules) in [
        ("member;score\nm;1\n", vec![], Rules { delimiter: Some(b';'), ..plain() }),
        ("member\tscore\nm\t1\n", vec![], Rules { delimiter: Some(b'\t'), ..plain() }),
        ("sep=;\nmember;score\nm;1\n", vec![], plain()),
        ("SEP=\t\r\nmember\tscore\r\nm\t1\r\n", vec![], plain()),
        ("x,m,1\n", vec!["member=2", "score=3"], Rules { no_header: true, ..plain() }),
        ("Title\n\nmember,score\nm,1\n", vec![], Rules { skip_lines: 2, ..plain() }),
        ("Name,name,score\nx,m,1\n", vec!["member=name"], plain()),
        ("member,\"Points, total\"\nm,1\n", vec!["score=Points, total"], plain()),
        ("member,score\nm,1,\n", vec![], plain()),
        ("member,score\n m ,1\n", vec![], plain()),
    ] {
        let rows = open(text, &columns, rules).expect(text);
        let jobs: Vec<_> = told(rows).into_iter().map(|(_, job)| job).collect();
        assert_eq!(jobs, [job], "{text:?}");
    }
    for (text, columns, rules, expect) in [
        (
            "sep=;\nmember;score\n",
            vec![],
            Rules { delimiter: Some(b','), ..plain() },
            "leave --delimiter away",
        ),
        ("m,1\n", vec![], Rules { no_header: true, ..plain() }, "of the first row, 1 is \"m\", 2 is \"1\""),
        ("m,1\n", vec!["member=1", "score=3"], Rules { no_header: true, ..plain() }, "--column score=NUMBER"),
        (
            "a\nb\n",
            vec![],
            Rules { skip_lines: 3, ..plain() },
            "--skip-lines 3 leaves nothing: the file has 2 lines",
        ),
        ("Player,Points\nm,1\n", vec![], plain(), "perhaps --column member=Player"),
        ("member,Total Points\nm,1\n", vec![], plain(), "perhaps --column 'score=Total Points'"),
    ] {
        let told = open(text, &columns, rules).expect_err(text).to_string();
        assert!(told.contains(expect), "{text:?}: {told}");
    }
}

#[test]
fn metadata_and_profiles_are_made_of_columns() {
    let text = "member,score,Team,Name,Note\nm,1,\"Red \"\"A\"\"\",Ann,\n";
    let columns = ["meta.team=Team", "meta.note=Note", "profile.name=Name"];
    let rows = open(text, &columns, defaults(Some("b"), None)).expect("well-formed");
    let jobs: Vec<_> = told(rows).into_iter().map(|(_, job)| job).collect();
    assert_eq!(
        jobs,
        [
            r#"{"board":"b","member":"m","score":1,"meta":{"team":"Red \"A\""}}"#,
            r#"{"op":"profile","member":"m","profile":{"name":"Ann"}}"#
        ]
    );
}

#[test]
fn blank_scores_and_empty_rows_are_left_out_and_others_are_refused() {
    let text = "member,score\na,DNF\nb,\nc,-\n,\nd,1\ne,dnf\n";
    let blanks = ["DNF", "", "-"].map(str::to_owned).to_vec();
    let rows = open(text, &[], Rules { blanks, ..defaults(Some("b"), None) }).expect("well-formed");
    let rows = told(rows);
    let codes: Vec<_> = rows.iter().map(|(_, told)| told.as_str()).collect();
    let job = "{\"board\":\"b\",\"member\":\"d\",\"score\":1}";
    assert_eq!(codes, ["blank DNF", "blank ", "blank -", "blank ", job, "bad_score"]);
}

#[test]
fn names_of_boards_are_made_and_never_become_one() {
    let text = "board,member,score\nSummer Cup,m,1\nsummer-cup,m,1\nSummer Cup,n,2\n";
    let rows = told(open(text, &[], Rules { slug: true, ..Rules::default() }).expect("well-formed"));
    let codes: Vec<_> = rows.iter().map(|(_, told)| told.as_str()).collect();
    let job = |member: &str, score: u8| {
        format!("{{\"board\":\"summer-cup\",\"member\":\"{member}\",\"score\":{score}}}")
    };
    assert_eq!(codes, [job("m", 1).as_str(), "malformed", job("n", 2).as_str()]);
    let parsed = open(text, &[], Rules::default()).expect("well-formed");
    let [Parsed::Rejected(line), ..] = parsed.as_slice() else { panic!("{parsed:?}") };
    assert!(line.detail.contains("--slug makes summer-cup of it"), "{}", line.detail);
}

#[test]
fn an_export_is_not_multiplied_again() {
    let head = "board,member,score,rank,position,at,updated_at,meta,version,hidden\n";
    let line = "#ranktree {\"board\":\"b\",\"definition\":{}}\n";
    let numbers = Numbers { scale: 100, ..Numbers::default() };
    for text in [format!("{line}{head}"), head.to_owned()] {
        let rules = Rules { numbers: numbers.clone(), ..Rules::default() };
        let told = open(&text, &[], rules).expect_err("twice").to_string();
        assert!(
            told.starts_with("the file is an export of ranktree, whose scores are what they are"),
            "{told}"
        );
    }
    // Its own scores have commas between their keys.
    let text = format!("{head}b, m ,\"3,-4\",1,1,2026-11-20T10:00:00Z,2026-11-20T10:00:00Z,,,\n");
    let job = "{\"board\":\"b\",\"member\":\" m \",\"score\":[3,-4],\"op\":\"set\",\"at\":\"2026-11-20T10:00:00Z\"}";
    check(&text, &[(2, job)]);
}

#[test]
fn rows_before_the_line_to_go_on_from_are_passed_over() {
    let text = "board,member,score\nb,a,1\nb,b,2\nb,c,3\n";
    let rows =
        CsvRows::open(text.as_bytes(), &Rules::default(), Shared::default(), 4).expect("the header is good");
    let lines: Vec<_> =
        told(rows.collect::<Result<_, _>>().expect("readable")).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [4]);
}
