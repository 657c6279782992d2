//! Files that look like what an import takes and mean something else: exports that another program has
//! changed, rows that were cut out of one, what `redis-cli` writes, and what a dry run must find.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Client, entry_path};
use crate::support::command::command;
use crate::support::node::Node;

struct Trap {
    service: Node,
    folder: TempDir,
}

impl Trap {
    fn new() -> Self {
        Self { service: Node::start(), folder: tempfile::tempdir().expect("a temporary directory") }
    }

    fn client(&self) -> Client {
        self.service.client()
    }

    fn written(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("it can be written");
        path
    }

    /// The exit status and all that was said.
    fn import(&self, text: &str, arguments: &[&str]) -> (Option<i32>, String) {
        self.run("import", &[&[self.written("file", text).to_str().expect("UTF-8")], arguments].concat())
    }

    fn run(&self, name: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let output = command().arg(name).args(["--url", self.service.base()]).args(arguments).output();
        let Output { status, stdout, stderr } = output.expect("the binary can be started");
        (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    fn members(&self, board: &str) -> Vec<(String, Value)> {
        let page = self.client().get(&format!("/v1/boards/{board}/top?limit=100")).1;
        let entries = page["entries"].as_array().unwrap_or_else(|| panic!("{page}"));
        let told =
            |entry: &Value| (entry["member"].as_str().expect("an id").to_owned(), entry["score"].clone());
        entries.iter().map(told).collect()
    }

    fn put(&self, path: &str, body: &Value) {
        let (status, answer) = self.client().put(path, body);
        assert!((200..300).contains(&status), "{status}: {answer}");
    }
}

fn expect(members: &[(&str, i64)]) -> Vec<(String, Value)> {
    members.iter().map(|(member, score)| ((*member).to_owned(), json!(score))).collect()
}

#[test]
fn an_export_that_a_spreadsheet_has_saved_is_loaded_right_or_refused() {
    let trap = Trap::new();
    trap.put("/v1/boards/cup", &json!({"keys": [{"name": "won"}, {"name": "points"}]}));
    for (member, score) in [("007", [5, 700]), ("ann", [12, 345])] {
        trap.put(&format!("{}?wait=applied", entry_path("cup", member)), &json!({"score": score}));
    }
    let path = trap.folder.path().join("cup.csv");
    let output = ["--format", "csv", "--output", path.to_str().expect("UTF-8")];
    let (code, said) = trap.run("export", &[&["--board", "cup"][..], &output].concat());
    assert_eq!(code, Some(0), "{said}");
    let export = fs::read_to_string(&path).expect("it was written");
    let (first, rows) = export.split_once('\n').expect("lines");
    assert!(first.starts_with("#ranktree ") && rows.starts_with("board,member,score"), "{export}");
    let rows: String = rows.lines().filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect();
    let quoted = format!("\"{}\"", first.replace('"', "\"\""));
    let semicolons =
        |text: &str| text.replace("\"5,700\"", "5700").replace("\"12,345\"", "12345").replace(',', ";");
    let other = |from: &str, to: &str| format!("{first}\n{}", rows.replacen(from, to, 1));
    for (text, words) in [
        (format!("{quoted}\n{rows}"), "its first line is in quotation marks"),
        (format!("\u{feff}sep=;\r\n{}", semicolons(&rows).replace('\n', "\r\n")), "such as a spreadsheet"),
        (rows.replace('\n', "\r\n"), "its first line is missing"),
        (format!("{first};;;\n{rows}"), "the first line does not describe a board"),
        // One key of two.
        (other("\"5,700\"", "5700"), "a score of board new has 2 keys"),
        (other("\"5,700\"", "\"5,7E2\""), "is not a score as an export has it"),
        (other("\"5,700\"", "\"5,700.0\""), "is not a score as an export has it"),
        (other("Z,", ","), "is not a time as an export has it"),
    ] {
        for delimiter in [&[][..], &["--delimiter", ";"]] {
            let (code, said) = trap.import(&text, &[&["--board", "new"], delimiter].concat());
            assert_eq!(code, Some(2), "{text}: {said}");
            assert!(!delimiter.is_empty() || said.contains(words), "{words}: {text}: {said}");
        }
        assert_eq!(trap.client().get("/v1/boards/new").0, 404, "nothing was sent: {text}");
    }
    // Columns in another order, and ends of lines, change nothing that is not told.
    let (code, said) = trap.import(&export.replace('\n', "\r\n"), &["--board", "new"]);
    assert_eq!(code, Some(0), "{said}");
    let both = [("ann", json!([12, 345])), ("007", json!([5, 700]))];
    assert_eq!(trap.members("new"), both.map(|(member, score)| (member.to_owned(), score)));
}

#[test]
fn who_is_hidden_in_an_export_stays_hidden_however_that_is_written() {
    let trap = Trap::new();
    let line = r#"#ranktree {"board":"b","definition":{"keys":[{"name":"score","order":"desc"}],"windows":["all"]}}"#;
    let head = "hidden,score,member,board,rank,position,at,updated_at,meta,version";
    let row = |hidden: &str, member: &str| {
        format!("{hidden},5,{member},b,1,1,2026-11-20T10:00:00Z,2026-11-20T10:00:00Z,,\n")
    };
    let rows =
        ["TRUE", "True", "false", "FALSE", ""].map(|hidden| row(hidden, &format!("m{hidden}"))).concat();
    for (board, first) in [("a", format!("{line}\n")), ("c", String::new())] {
        let (code, said) = trap.import(&format!("{first}{head}\n{rows}"), &["--board", board]);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(trap.members(board), expect(&[("m", 5), ("mFALSE", 5), ("mfalse", 5)]), "{said}");
    }
    let (code, said) = trap.import(&format!("{line}\n{head}\n{}", row("WAHR", "m")), &["--board", "d"]);
    assert!(code == Some(2) && said.contains("must be true, false or empty"), "{said}");
}

/// The line that hides who is in a row comes behind it, and may be lost.
#[test]
fn who_is_hidden_in_rows_that_were_cut_out_of_an_export_stays_hidden() {
    let trap = Trap::new();
    let row = |member: &str, hidden: &str| {
        format!(
            r#"{{"board":"b","member":"{member}","op":"set","score":5,"at":"2026-11-20T10:00:00Z",{hidden},"updated_at":"2026-11-20T10:00:00Z"}}"#
        ) + "\n"
    };
    let (hidden, listed) = (row("h", r#""hidden":true"#), row("m", r#""rank":1,"position":1"#));
    let escaped = row("h", "\"\\u0068idden\":true");
    for (number, text) in [
        format!("{hidden}{listed}"),
        format!("{listed}{hidden}"),
        format!("{hidden}{{\"board\":\"other\",\"member\":\"h\",\"op\":\"hide\"}}\n{listed}"),
        format!("{hidden}{{\"board\":\"b\",\"member\":\"m2\",\"op\":\"hide\"}}\n{listed}"),
        format!("{escaped}{listed}"),
        format!("[{},{}]", hidden.trim(), listed.trim()),
    ]
    .into_iter()
    .enumerate()
    {
        let board = format!("b{number}");
        let (_, said) = trap.import(&text.replace("\"b\"", &format!("\"{board}\"")), &["--unchecked"]);
        assert_eq!(trap.members(&board), expect(&[("m", 5)]), "{text}: {said}");
        let hidden = trap.client().get(&format!("/v1/hidden?board={board}")).1;
        assert!(hidden.to_string().contains("\"h\""), "{hidden}");
    }
    // With its line, the member is hidden as that says, and not on the board besides.
    let everywhere = "{\"member\":\"e\",\"op\":\"hide\"}\n";
    let of = |board: &str| row("e", r#""hidden":true"#).replace("\"b\"", &format!("\"{board}\""));
    let text = format!("{}{everywhere}{}{listed}", of("x"), of("y"));
    let (code, said) = trap.import(&text, &[]);
    assert_eq!(code, Some(0), "{said}");
    let show = json!([{"member": "e", "op": "show"}]);
    assert_eq!(trap.client().post("/v1/jobs?wait=applied", &show).0, 200);
    assert_eq!((trap.members("x"), trap.members("y")), (expect(&[("e", 5)]), expect(&[("e", 5)])));
}

#[test]
fn what_redis_writes_of_a_sorted_set_is_read_in_each_of_its_forms() {
    let trap = Trap::new();
    let log = |commands: &[&[&str]]| -> String {
        let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let command =
            |words: &&[&str]| format!("*{}\r\n{}", words.len(), words.iter().map(word).collect::<String>());
        commands.iter().flat_map(|words| ["#TS:1784894400\r\n".to_owned(), command(words)]).collect()
    };
    let log = log(&[&["SELECT", "0"], &["ZADD", "k", "5", "ann"], &["ZADD", "k", "7", "b, \"c\""]]);
    for (number, (text, options)) in [
        (log.as_str(), &["--key", "k"][..]),
        ("\"ann\",\"5\",\"b, \\\"c\\\"\",\"7\"\n", &[]),
        ("\"ann\",5,\"b, \\\"c\\\"\",7\n", &[]),
        ("1) \"ann\"\n2) \"5\"\n3) \"b, \\\"c\\\"\"\n4) \"7\"\n", &[]),
        ("1) 1) \"ann\"\n   2) (double) 5\n2) 1) \"b, \\\"c\\\"\"\n   2) (double) 7\n", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let board = format!("r{number}");
        let (code, said) = trap.import(text, &[&["--board", &board], options].concat());
        assert_eq!(code, Some(0), "{text}: {said}");
        assert_eq!(trap.members(&board), expect(&[("b, \"c\"", 7), ("ann", 5)]), "{text}");
    }
}

#[test]
fn a_dry_run_finds_what_the_boards_of_an_export_would_refuse() {
    let trap = Trap::new();
    let line =
        |definition: &str, window: &str| format!("{{\"board\":\"b\",{window}\"definition\":{definition}}}\n");
    let row = |at: &str| {
        format!(
            "{{\"board\":\"b\",\"member\":\"m\",\"op\":\"set\",\"score\":5,\"position\":1,\"at\":\"{at}\",\"updated_at\":\"{at}\"}}\n"
        )
    };
    let old = "2026-07-20T10:00:00Z";
    let keys =
        r#""keys":[{"name":"score","order":"desc"}],"policy":"set","ties":"first","utc_offset":"+00:00""#;
    let week = r#""window":"2026-W30","begin":"2026-07-20T00:00:00Z","end":"2026-07-27T00:00:00Z","#;
    let of_week = line(&format!("{{{keys},\"windows\":[\"week\"]}}"), week);
    trap.put("/v1/boards/closed", &json!({"windows": ["week"], "keep": 1000}));
    trap.put("/v1/boards/all", &json!({"windows": ["all", "week"], "grace": "3650d"}));
    trap.put("/v1/boards/best", &json!({"policy": "best", "windows": ["week"], "grace": "3650d"}));
    trap.put("/v1/boards/open", &json!({"windows": ["week"], "grace": "3650d"}));
    trap.put("/v1/boards/days", &json!({"windows": ["day", "hour"]}));
    let whole = line(&format!("{{{keys},\"windows\":[\"day\"]}}"), "");
    let plain = "{\"member\":\"m\",\"score\":5,\"at\":\"2026-07-20T10:00:00Z\"}\n".to_owned();
    for (text, board, code, words) in [
        (of_week.clone() + &row(old), "closed", 2, "2026-W30 of the board is closed"),
        (of_week.clone() + &row(old), "all", 2, "they would change all of the board"),
        (of_week.clone() + &row(old), "best", 2, "the board has other policy"),
        (of_week.clone() + &row(old), "open", 0, "well-formed"),
        (of_week + &row(old), "new", 0, "well-formed"),
        (
            whole + &row(old),
            "fresh",
            1,
            "no window of board fresh that 2026-07-20T10:00:00Z falls in is open",
        ),
        (plain.clone(), "days", 1, "closed_window: no window of board days"),
        (plain, "open", 0, "well-formed"),
    ] {
        let (found, said) = trap.import(&text, &["--board", board, "--dry-run"]);
        assert!(found == Some(code) && said.contains(words), "{board}: {found:?}: {said}");
        // A run refuses the same, and takes what a dry run takes.
        let (found, said) = trap.import(&text, &["--board", board]);
        assert_eq!(found, Some(if code == 0 { 0 } else { 2 }), "{board}: {said}");
    }
    assert_eq!(trap.client().get("/v1/boards/days").1["instances"]["day"][0]["total"], json!(0));
}

#[test]
fn what_plain_numbers_are_is_told_where_they_are_taken_as_seconds() {
    let trap = Trap::new();
    for (board, text, options) in [
        ("a", "member,score\nann,1:23.456\nbob,59\n", &[][..]),
        ("b", "{\"member\":\"ann\",\"score\":\"1:23.456\"}\n{\"member\":\"bob\",\"score\":59}\n", &[]),
    ] {
        let options = [&["--board", board, "--duration", "ms", "--order", "asc"], options].concat();
        let (code, said) = trap.import(text, &options);
        assert!(code == Some(0) && said.contains("plain numbers of \"score\" are seconds"), "{said}");
        assert_eq!(trap.members(board), expect(&[("bob", 59_000), ("ann", 83_456)]));
    }
}

/// A board of doubles has not every whole number, and would take the nearest one.
#[test]
fn whole_numbers_that_a_board_of_doubles_lacks_are_refused_there() {
    let trap = Trap::new();
    trap.put("/v1/boards/doubles", &json!({"keys": [{"name": "score", "type": "float"}]}));
    let rows = |score: &str| {
        [
            (format!("member,score\nann,{score}\n"), &[][..]),
            (format!("{{\"member\":\"ann\",\"score\":{score}}}\n"), &[]),
            (format!("{{\"member\":\"ann\",\"score\":\"{score}\"}}\n"), &[]),
            (format!("{{\"member\":\"ann\",\"score\":\"{score}\"}}\n"), &["--column", "score=score"]),
        ]
    };
    for score in ["9007199254740993", "-9007199254740993", "9223372036854775807"] {
        for (text, options) in rows(score) {
            let (code, said) = trap.import(&text, &[&["--board", "doubles"], options].concat());
            assert!(
                code == Some(2) && said.contains("score of board doubles has the type float"),
                "{text}: {said}"
            );
            let (code, said) = trap.import(&text, &[&["--board", "exact"], options].concat());
            assert_eq!(code, Some(0), "{said}");
            assert_eq!(trap.members("exact"), [("ann".to_owned(), json!(score))], "{text}");
        }
    }
    for (text, options) in rows("9007199254740994") {
        let (code, said) = trap.import(&text, &[&["--board", "doubles"], options].concat());
        assert_eq!(code, Some(0), "{text}: {said}");
    }
    let text = "member,score\nann,9007199254740993.5\n";
    let (code, said) = trap.import(text, &["--board", "doubles"]);
    assert!(code == Some(2) && said.contains("is not a whole number"), "{said}");
}

/// Options about fields change nothing of an export but what they name.
#[test]
fn an_export_is_loaded_under_options_about_fields_as_without() {
    let trap = Trap::new();
    let put =
        |member: &str, body: Value| trap.put(&format!("{}?wait=applied", entry_path("b", member)), &body);
    trap.put("/v1/boards/b", &json!({"policy": "best"}));
    put("ann", json!({"score": 5, "at": "2026-07-24T10:00:00Z", "version": 3}));
    put(" zoe ", json!({"score": 7, "at": "2026-07-24T10:00:00Z", "meta": {"car": "mx5"}}));
    put("ann", json!({"score": 5, "op": "set", "at": "2026-07-24T11:00:00Z", "version": 4}));
    put("hid", json!({"score": 9, "at": "2026-07-24T10:00:00Z"}));
    put("eve", json!({"score": 8, "at": "2026-07-24T10:00:00Z"}));
    let jobs = json!([
        {"board": "b", "member": "hid", "op": "hide"},
        {"board": "b", "member": "nobody", "op": "hide"},
        {"member": "eve", "op": "hide"},
        {"member": "ann", "op": "profile", "profile": {"name": "Ann"}}
    ]);
    assert_eq!(trap.client().post("/v1/jobs?wait=applied", &jobs).0, 200);
    let path = trap.folder.path().join("b.ndjson");
    let output = ["--board", "b", "--profiles", "--output", path.to_str().expect("UTF-8")];
    let (code, said) = trap.run("export", &output);
    assert_eq!(code, Some(0), "{said}");
    let export = fs::read_to_string(&path).expect("it was written");
    let told = |board: &str| {
        let client = trap.client();
        let page = client.get(&format!("/v1/boards/{board}/top?limit=100&profile=true")).1;
        let hidden = client.get(&format!("/v1/hidden?board={board}")).1;
        let members = hidden["hidden"].as_array().cloned().unwrap_or_default();
        let members: Vec<Value> = members.iter().map(|hidden| hidden["member"].clone()).collect();
        (page["entries"].clone(), members)
    };
    let (code, said) = trap.import(&export, &["--board", "plain"]);
    assert_eq!(code, Some(0), "{said}");
    let expect = told("plain");
    assert_eq!(expect.1.len(), 4, "{expect:?}");
    for (number, options) in [
        &["--blank", "DNF"][..],
        &["--at-zone", "Europe/Berlin"],
        &["--column", "score=score"],
        &["--column", "meta=meta", "--blank", ""],
    ]
    .into_iter()
    .enumerate()
    {
        let board = format!("c{number}");
        let (code, said) = trap.import(&export, &[&["--board", &board], options].concat());
        assert_eq!(code, Some(0), "{options:?}: {said}");
        let found = told(&board);
        assert_eq!(found, expect, "{options:?}");
    }
    // Of rows that were cut out of it, too.
    let rows: String = export.lines().skip(1).flat_map(|line| [line, "\n"]).collect();
    trap.put("/v1/boards/cut", &json!({}));
    let (code, said) = trap.import(&rows, &["--board", "cut", "--blank", "DNF"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(told("cut"), expect);
    // What an option takes away is not there, and nothing else is.
    let (code, said) = trap.import(&export, &["--board", "unversioned", "--column", "version="]);
    assert_eq!(code, Some(0), "{said}");
    let mut entries = expect.0.clone();
    for entry in entries.as_array_mut().expect("entries") {
        entry["version"] = Value::Null;
    }
    let mut found = told("unversioned").0;
    for entry in found.as_array_mut().expect("entries") {
        assert_eq!(entry.get("version").unwrap_or(&Value::Null), &Value::Null);
        entry["version"] = Value::Null;
    }
    assert_eq!(found, entries);
}

/// With a limit to errors the others are sent, and what was refused is told as without.
#[test]
fn rows_that_are_left_out_are_told_with_the_option_that_helps() {
    let trap = Trap::new();
    trap.put("/v1/boards/bounded", &json!({"keys": [{"name": "points", "max": 100}]}));
    for (text, board, words) in [
        (
            "{\"member\":\"ann\",\"score\":\"1,234\"}\n{\"member\":\"bob\",\"score\":5}\n",
            "a",
            "--thousands \",\"",
        ),
        ("{\"member\":7,\"score\":5}\n{\"member\":\"bob\",\"score\":5}\n", "a", "--column member=member"),
        ("member,score\nann,101\nbob,5\n", "bounded", "points of board bounded must be"),
    ] {
        let (code, said) = trap.import(text, &["--board", board, "--limit-errors", "1"]);
        assert!(code == Some(1) && said.contains(words), "{said}");
        assert_eq!(trap.members(board), expect(&[("bob", 5)]));
    }
}

#[test]
fn a_sum_below_the_rows_is_no_member_unless_rows_follow() {
    let trap = Trap::new();
    let sum = "seems to be a sum or the like below the rows";
    for (text, is_refused) in [
        ("member,score\nann,5\nTotal,5\n", true),
        ("member,score\nann,5\nGesamt:,5\n,\n\n", true),
        ("member,score\nann,5\nTotal,5\nbob,7\n", false),
        ("member,score\nann,5\nTotally,5\n", false),
    ] {
        let (code, said) = trap.import(text, &["--board", "b"]);
        assert_eq!((code == Some(2), said.contains(sum)), (is_refused, is_refused), "{text}: {said}");
    }
}

#[test]
fn an_export_of_all_times_tells_that_its_rows_enter_other_windows() {
    let trap = Trap::new();
    let keys = r#""keys":[{"name":"score","order":"desc"}],"ties":"first","utc_offset":"+00:00""#;
    let row = |board: &str| {
        let at = "2026-11-20T10:00:00Z";
        format!(
            r#"{{"board":"{board}","member":"ann","op":"set","score":5,"position":1,"at":"{at}","updated_at":"{at}"}}"#
        )
    };
    for (board, windows, is_told) in [("a", r#"["day","all"]"#, true), ("b", r#"["all"]"#, false)] {
        let text = format!(
            "{{\"board\":\"{board}\",\"definition\":{{{keys},\"windows\":{windows}}}}}\n{}\n",
            row(board)
        );
        let (code, said) = trap.import(&text, &[]);
        assert_eq!(code, Some(0), "{said}");
        let words = "has the windows day, too: a row of all enters those that are open at its time";
        assert_eq!(said.matches(words).count(), usize::from(is_told), "{said}");
    }
}
