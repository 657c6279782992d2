//! `ranktree import` against the real service: files that are not what they should be, and services that
//! refuse.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::command::{command, signal};
use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::tokens::new_token;

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn import(file: &Path, arguments: &[&str]) -> Said {
    let output = command().arg("import").arg(file).args(arguments).output();
    let Output { status, stdout, stderr } = output.expect("the binary can be started");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    Said { code: status.code(), out: text(stdout), err: text(stderr) }
}

fn has(client: &Client, member: &str) -> bool {
    client.get(&entry_path("arena", member)).0 == 200
}

/// The rows behind the quotation mark would be one cell, and lost without a word.
#[test]
fn a_quotation_mark_that_is_not_closed_is_found_before_anything_is_sent() {
    const BAD: usize = 100;
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("scores.csv");
    let row = |number: usize| format!("m{number},{number},{}note\n", if number == BAD { "\"" } else { "" });
    let rows: String = (0..10_000).map(row).collect();
    fs::write(&path, format!("member,score,note\n{rows}")).expect("it can be written");
    // After the header, and counted from 1.
    let expect = format!("line {}: the quotation mark that opens a cell here is not closed", BAD + 2);
    let arguments = ["--board", "arena", "--url", service.base()];
    let dry = import(&path, &[&arguments[..], &["--dry-run"]].concat());
    assert!(dry.code == Some(2) && dry.err.contains(&expect), "{}", dry.err);
    let client = service.client();
    let said = import(&path, &arguments);
    assert!(said.code == Some(2) && said.err.contains(&expect), "{}", said.err);
    assert!(said.err.contains("Nothing was sent"), "{}", said.err);
    assert_eq!(client.get("/v1/boards/arena").0, 404, "nothing was sent");
    // Unchecked, rows are sent up to it.
    let said = import(&path, &[&arguments[..], &["--unchecked"]].concat());
    assert!(said.code == Some(2) && said.err.contains(&expect), "{}", said.err);
    let applied = |line: &str| line.split_whitespace().eq(["applied", "100"]);
    assert!(said.out.lines().any(applied), "{}", said.out);
    let total = client.get("/v1/boards/arena").1["totals"]["all"].clone();
    assert_eq!(total, json!(BAD), "all rows before it, and none behind");
    assert!(has(&client, "m99") && !has(&client, "m101"));
    assert!(
        said.out.contains(&format!("ranktree import --from-line {} {}", BAD + 2, path.display())),
        "{}",
        said.out
    );
}

/// Rows are kept on disk between their check and their sending.
#[test]
fn where_checked_rows_cannot_be_kept_nothing_is_sent_and_the_ways_out_are_named() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("scores.csv");
    fs::write(&path, "member,score\nann,5\n").expect("it can be written");
    let run = |more: &[&str]| {
        let mut import = command();
        import.arg("import").arg(&path).args(["--board", "arena", "--url", service.base()]).args(more);
        let output = import.env("TMPDIR", folder.path().join("none")).output();
        let Output { status, stderr, .. } = output.expect("the binary can be started");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    };
    let (code, said) = run(&[]);
    assert!(code == Some(2) && said.contains("TMPDIR names another folder, and --unchecked"), "{said}");
    assert_eq!(service.client().get("/v1/boards/arena").0, 404, "nothing was sent");
    assert_eq!(run(&["--dry-run"]).0, Some(0), "a dry run keeps nothing");
    assert_eq!(run(&["--unchecked"]).0, Some(0), "rows are sent as they are read");
    assert!(has(&service.client(), "ann"));
}

/// A file whose lines do not end where its rows do would be held in memory as one row.
#[test]
fn a_row_that_does_not_end_ends_an_import_after_the_rows_before_it() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("scores.csv");
    let endless = format!("{},", "m".repeat(1_000)).repeat(24_000);
    fs::write(&path, format!("member,score\nm1,1\nm2,2\n{endless}")).expect("it can be written");
    let said = import(&path, &["--board", "arena", "--url", service.base(), "--unchecked"]);
    let expect = "line 4: the row that begins here is longer than 16777184 bytes";
    assert!(said.code == Some(2) && said.err.contains(expect), "{}", said.err);
    assert!(has(&service.client(), "m2") && !has(&service.client(), "m3"));
}

#[test]
fn files_of_another_form_are_told_what_form_is_taken() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (text, expect) in [
        ("member;score\nm;1\n", "must be separated by commas, and these seem to be separated by semicolons"),
        ("member\tscore\nm\t1\n", "seem to be separated by tabs"),
        ("member;score\nm;1\n", "--delimiter \";\" reads them"),
        ("[{\"name\":\"m\",\"score\":1}]", "--column member=NAME"),
        ("{\"standings\":[{\"member\":\"m\",\"score\":1}]}", "--rows-at standings"),
        ("member,score\nm,\"1,234\"\n", "has a comma: --thousands"),
        ("name,score\nm,1\n", "--column member=NAME"),
    ] {
        let path = folder.path().join("scores");
        fs::write(&path, text).expect("it can be written");
        let said = import(&path, &["--board", "arena", "--dry-run"]);
        let words = format!("{}{}", said.out, said.err);
        assert!(said.code != Some(0) && words.contains(expect), "{text:?}: {words}");
    }
}

#[test]
fn an_empty_standard_input_is_no_import() {
    for arguments in [&["import", "-"][..], &["import", "-", "--dry-run"]] {
        let output = command().args(arguments).args(["--board", "arena"]).stdin(Stdio::null()).output();
        let Output { status, stdout, stderr } = output.expect("the binary can be started");
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(2) && said.contains("standard input is empty"), "{said}");
        assert!(stdout.is_empty(), "there is nothing to sum up");
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("scores.csv");
    fs::write(&path, "").expect("it can be written");
    let said = import(&path, &["--board", "arena"]);
    assert!(said.code == Some(2) && said.err.contains("the file is empty"), "{}", said.err);
}

#[test]
fn a_refused_import_says_only_what_is_true() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let made = command().args(["token", "new", "--scope", "write", "--name", "game"]).output();
    let tokens = folder.path().join("tokens.toml");
    fs::write(&tokens, made.expect("the binary can be started").stdout).expect("it can be written");
    let tokens = tokens.to_str().expect("it is UTF-8");
    let service = Node::flags(&["--tokens", tokens]).start();
    let path = folder.path().join("scores.csv");
    fs::write(&path, "board,member,score\narena,m,1\n").expect("it can be written");
    let said = import(&path, &["--url", service.base()]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("401 unauthorized") && said.err.contains("--token-file"), "{}", said.err);
    assert!(!said.err.contains("rows add to scores"), "nothing says so: {}", said.err);
    assert_eq!(said.out, "", "there is nothing to sum up");
    // Clients that read say the same.
    for arguments in [&["export", "--board", "arena"][..], &["rejects"], &["snapshot", "--to", "/no/such"]] {
        let said = command().args(arguments).args(["--url", service.base()]).output();
        let said = said.expect("the binary can be started");
        let words = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{arguments:?}: {words}");
        if arguments[0] != "snapshot" {
            assert!(words.contains("401 unauthorized: ") && words.contains("--token-file"), "{words}");
        }
        assert!(!words.contains('{'), "{arguments:?} shows an answer as it came: {words}");
    }
    let said = import(&path, &["--url", &format!("{}/v1", service.base())]);
    assert!(said.code == Some(2) && said.err.contains("leave /v1 away"), "{}", said.err);
}

#[test]
fn a_service_that_is_not_there_is_told_with_what_to_do() {
    for arguments in [&["export", "--board", "arena"][..], &["rejects"]] {
        let said = command().args(arguments).args(["--url", "http://127.0.0.1:1"]).output();
        let said = said.expect("the binary can be started");
        let words = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{words}");
        assert!(words.contains("http://127.0.0.1:1 cannot be read: Connection refused"), "{words}");
        assert!(words.contains("Check that the service runs there"), "{words}");
    }
}

/// The members of a board, best first, each with its score.
fn top(client: &Client, board: &str) -> Vec<(String, Value)> {
    let page = client.get(&format!("/v1/boards/{board}/top?limit=1000")).1;
    let entries = page["entries"].as_array().unwrap_or_else(|| panic!("{page}")).clone();
    let told = |entry: &Value| (entry["member"].as_str().expect("an id").to_owned(), entry["score"].clone());
    entries.iter().map(told).collect()
}

fn written(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("it can be written");
    path
}

#[test]
fn equal_scores_keep_the_order_of_the_file_over_connections_and_shards() {
    let service = Node::shards(3).start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    // In no order of their ids, with many ties.
    let members: Vec<String> =
        (0..3_000_u32).map(|number| format!("m{}", number.wrapping_mul(2_654_435_761))).collect();
    let cells = |member: &String| format!("{member},{}\n", member.len() % 2);
    let csv: String = members.iter().map(cells).collect();
    let object = |member: &String| format!("{{\"member\":\"{member}\",\"score\":{}}}\n", member.len() % 2);
    let json: String = members.iter().map(object).collect();
    for (board, name, text) in [("csv", "a.csv", format!("member,score\n{csv}")), ("json", "a.ndjson", json)]
    {
        let path = written(&folder, name, text);
        let arguments = ["--board", board, "--url", service.base(), "--connections", "7", "--batch", "13"];
        let said = import(&path, &arguments);
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
        let client = service.client();
        let mut found: Vec<String> = Vec::new();
        for first in (1..=3_000).step_by(1_000) {
            let page = client.get(&format!("/v1/boards/{board}/positions/{first}?limit=1000")).1;
            let entries = page["entries"].as_array().expect("a page").clone();
            found.extend(entries.iter().map(|entry| entry["member"].as_str().expect("an id").to_owned()));
        }
        let mut expect = members.clone();
        expect.sort_by_key(|member| std::cmp::Reverse(member.len() % 2));
        assert_eq!(found, expect, "{board}");
    }
}

#[test]
fn an_import_that_makes_a_board_says_which_end_is_best_and_makes_it_so() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = written(&folder, "laps.csv", "member,score,points\nann,1:23.456,5\nbob,1:20,5\n");
    let url = ["--url", service.base()];
    let run = |arguments: &[&str]| import(&path, &[arguments, &url[..]].concat());
    let laps = ["--board", "laps", "--order", "asc", "--duration", "ms"];
    let said = run(&[&laps[..], &["--dry-run"]].concat());
    assert!(said.code == Some(0) && said.err.contains("board laps is new"), "{}", said.err);
    assert_eq!(service.client().get("/v1/boards/laps").0, 404, "a dry run makes nothing");
    let said = run(&laps);
    assert!(said.code == Some(0) && said.err.contains("the lowest score leads"), "{}", said.err);
    let client = service.client();
    let expect = [("bob".to_owned(), json!(80_000)), ("ann".to_owned(), json!(83_456))];
    assert_eq!(top(&client, "laps"), expect);
    // Said of a board that is there, it is compared.
    let said = run(&["--board", "laps", "--order", "desc", "--duration", "ms"]);
    assert!(
        said.code == Some(2) && said.err.contains("its keys are asc, where --order says desc"),
        "{}",
        said.err
    );
    let said = run(&["--board", "points", "--column", "score=points"]);
    assert!(said.err.contains("the highest score leads; --order asc makes it the lowest"), "{}", said.err);
    let said = run(&["--board", "one", "--column", "score=points", "--order", "desc,asc"]);
    assert!(said.code == Some(2) && said.err.contains("--order names 2 ends"), "{}", said.err);
}

#[test]
fn two_columns_are_two_keys_in_their_order() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = written(&folder, "cup.csv", "member,won,lost\nann,3,2\nbob,3,1\neve,4,9\n");
    let columns = ["--column", "score=won", "--column", "score=lost"];
    let url = ["--url", service.base()];
    let said = import(&path, &[&["--board", "cup", "--order", "desc,asc"], &columns[..], &url[..]].concat());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.err.contains("the highest won, then the lowest lost leads"), "{}", said.err);
    let client = service.client();
    let expect = [("eve", json!([4, 9])), ("bob", json!([3, 1])), ("ann", json!([3, 2]))];
    assert_eq!(top(&client, "cup"), expect.map(|(member, score)| (member.to_owned(), score)));
    // One key on a board of two, and the other way round, is found before anything is sent.
    for columns in [
        &["--column", "score=won"][..],
        &["--column", "score=won", "--column", "score=lost", "--column", "score=won"],
    ] {
        let said = import(&path, &[&["--board", "cup"], columns, &url[..]].concat());
        assert!(said.code == Some(2) && said.err.contains("nothing was sent"), "{}", said.err);
        assert!(
            said.out.contains("a score of board cup has 2 keys (won, lost), and this one has"),
            "{}",
            said.out
        );
    }
}

#[test]
fn nothing_is_sent_if_one_row_cannot_be_sent() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let client = service.client();
    let bounded = json!({"keys": [{"name": "points", "max": 100}]});
    assert_eq!(client.put("/v1/boards/bounded", &bounded).0, 201);
    let rows = |bad: &[u8]| {
        let good: Vec<u8> = (0..2_000).flat_map(|number| format!("m{number},1\n").into_bytes()).collect();
        [&b"member,score\n"[..], &good, bad, b"\nlast,1\n"].concat()
    };
    for (bad, board, expect) in [
        (&b"Jos\xe9,1"[..], "arena", "column \"member\": \"Jos\u{fffd}\" is not UTF-8; --encoding"),
        (b"ann,\"1,234\"", "arena", "column \"score\": \"1,234\" has a comma: --thousands"),
        (b"ann,DNF", "arena", "--blank \"DNF\""),
        (b"ann,1.5", "arena", "--scale 10"),
        (b"ann,1:23.4", "arena", "--duration ms"),
        (b"ann,9223372036854775808", "arena", "outside the signed 64-bit range"),
        (b",1", "arena", "a member id must be"),
        (b"ann,101", "bounded", "points of board bounded must be"),
    ] {
        let path = written(&folder, "scores.csv", rows(bad));
        let said = import(&path, &["--board", board, "--url", service.base()]);
        assert!(
            said.code == Some(2) && said.err.contains("1 of the rows would be rejected, so nothing was sent"),
            "{}",
            said.err
        );
        assert!(
            said.out.contains("scores.csv line 2002: ") && said.out.contains(expect),
            "{expect}: {}",
            said.out
        );
        assert!(!has(&client, "m0") && client.get(&entry_path(board, "m0")).0 == 404, "{expect}");
        let dry = import(&path, &["--board", board, "--url", service.base(), "--dry-run"]);
        assert!(dry.code == Some(1) && dry.out.contains(expect), "{expect}: {}", dry.out);
    }
    // The others are sent if that is said.
    let path = written(&folder, "scores.csv", rows(b"ann,DNF"));
    let said = import(&path, &["--board", "arena", "--url", service.base(), "--limit-errors", "1"]);
    assert!(said.code == Some(1) && has(&client, "last") && has(&client, "m0"), "{}{}", said.out, said.err);
    assert!(said.out.contains(&format!("service       {}", service.base())), "{}", said.out);
}

/// A pipe cannot be read twice: it is copied, and checked as a file is.
#[test]
fn a_pipe_is_checked_before_anything_is_sent() {
    let service = Node::start();
    let pipe = |text: &str, arguments: &[&str]| {
        let mut import = command();
        import.args(["import", "-", "--board", "arena", "--url", service.base()]).args(arguments);
        let mut child = import
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(text.as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let bad = "member,score\nann,1\nbob,x\n";
    let (code, said) = pipe(bad, &[]);
    assert!(code == Some(2) && said.contains("standard input line 3: bad_score"), "{said}");
    assert_eq!(service.client().get("/v1/boards/arena").0, 404, "nothing was sent");
    let (code, said) = pipe(bad, &["--unchecked"]);
    assert!(code == Some(1) && has(&service.client(), "ann"), "{said}");
    let (code, said) = pipe("member,score\ncid,1\n", &[]);
    assert!(code == Some(0) && has(&service.client(), "cid"), "{said}");
}

#[test]
fn several_files_are_one_import_and_a_stopped_one_goes_on_from_its_line() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let first = written(&folder, "a.csv", "member,score\nann,1\nbob,1\n");
    let second = written(&folder, "b.csv", "score,member\n1,cid\nx,dan\n1,eve\n");
    let run = |files: &[&Path], arguments: &[&str]| {
        let mut import = command();
        import.arg("import").args(files).args(["--board", "arena", "--op", "incr", "--url", service.base()]);
        let output = import.args(arguments).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = run(&[&first, &second], &[]);
    assert!(code == Some(2) && said.contains("b.csv line 3: bad_score"), "{said}");
    let (code, said) = run(&[&first, &second], &["--unchecked", "--limit-errors", "0"]);
    assert!(code == Some(2) && said.contains("stopped because more than 0 rows were rejected"), "{said}");
    let go_on = said.split("are settled").nth(1).and_then(|rest| rest.split("ranktree import ").nth(1));
    let go_on = go_on.and_then(|rest| rest.lines().next()).unwrap_or_else(|| panic!("a command: {said}"));
    let again = Command::new("sh")
        .args(["-c", &format!("{} import {go_on}", command().get_program().display())])
        .output();
    let again = again.expect("there is a shell");
    assert!(again.status.success(), "{go_on}: {}", String::from_utf8_lossy(&again.stderr));
    let client = service.client();
    let members = ["ann", "bob", "cid", "eve"].map(|member| (member.to_owned(), json!(1)));
    assert_eq!(top(&client, "arena"), members, "each row once, in the order of the files");
}

#[test]
fn an_operation_of_the_command_line_holds_for_the_rows_of_an_export() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let client = service.client();
    let put = |member: &str, score: i64| {
        client.put(&format!("{}?wait=applied", entry_path("arena", member)), &json!({"score": score})).0
    };
    assert_eq!((put("ann", 10), put("bob", 20)), (200, 200));
    let path = folder.path().join("arena.ndjson");
    let export = command()
        .args(["export", "--board", "arena", "--url", service.base(), "--output"])
        .arg(&path)
        .output();
    assert!(export.expect("it starts").status.success());
    assert_eq!((put("ann", 100), put("bob", 5)), (200, 200));
    let said = import(&path, &["--url", service.base(), "--op", "best"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let expect = |scores: [i64; 2]| {
        ["ann", "bob"]
            .into_iter()
            .zip(scores)
            .map(|(member, score)| (member.to_owned(), json!(score)))
            .collect::<Vec<_>>()
    };
    assert_eq!(top(&client, "arena"), expect([100, 20]), "the better one stays");
    let said = import(&path, &["--url", service.base(), "--op", "incr"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(top(&client, "arena"), expect([110, 40]), "each is added");
    let said = import(&path, &["--url", service.base(), "--scale", "100"]);
    assert!(said.code == Some(2) && said.err.contains("the file is an export of ranktree"), "{}", said.err);
}

#[test]
fn an_import_that_is_interrupted_says_where_to_go_on() {
    let service = Node::start();
    // A pipe that does not end, which is read as it comes.
    let mut import = command();
    import.args(["import", "-", "--board", "arena", "--url", service.base(), "--unchecked", "--batch", "50"]);
    let mut child = import
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let rows = |name: &str| {
        let row = |number| format!("{name}{number},1\n");
        (0..20_000).map(row).collect::<String>()
    };
    stdin.write_all(format!("member,score\n{}", rows("m")).as_bytes()).expect("it reads");
    wait_until("rows are applied", || has(&service.client(), "m0"));
    signal("INT", child.id());
    // What it waits for comes only now.
    let _ = stdin.write_all(rows("n").as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("stopped by a signal") && said.contains(service.base()), "{said}");
    let line = said.split("--from-line ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let line: u64 = line.and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("a line: {said}"));
    // Every row before that line is there, and none from there on.
    let total = service.client().get("/v1/boards/arena").1["totals"]["all"].clone();
    assert_eq!(total, json!(line - 2), "{said}");
}

/// An export of all boards, of which one is there and ranks otherwise.
#[test]
fn no_row_of_any_board_is_sent_if_one_board_of_an_export_ranks_otherwise() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let client = service.client();
    assert_eq!(client.put("/v1/boards/b", &json!({"ties": "last"})).0, 201);
    let board = |name: &str| {
        let keys = r#"[{"name":"score","order":"desc"}]"#;
        let definition =
            format!(r#"{{"keys":{keys},"ties":"first","windows":["all"],"utc_offset":"+00:00"}}"#);
        let row = format!(r#"{{"board":"{name}","member":"ann","op":"set","score":1,"position":1}}"#);
        format!("{{\"board\":\"{name}\",\"definition\":{definition}}}\n{row}\n")
    };
    let path = written(&folder, "all.ndjson", format!("{}{}", board("a"), board("b")));
    for arguments in [&["--url", service.base()][..], &["--url", service.base(), "--dry-run"]] {
        let said = import(&path, arguments);
        assert!(said.code == Some(2) && said.err.contains("board_differs"), "{}", said.err);
        assert_eq!(client.get("/v1/boards/a").0, 404, "nothing was sent");
    }
}

#[test]
fn rows_of_a_member_that_an_earlier_row_names_are_counted_and_told() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("laps.csv");
    fs::write(&path, "member,score\nann,5\nbob,7\nann,3\nann,4\n").expect("it can be written");
    let board = |name| ["--board", name, "--url", service.base()];
    let expect = "2 rows are of a member that an earlier row names: --op best keeps";
    for dry in [&["--dry-run"][..], &[]] {
        let said = import(&path, &[&board("laps")[..], dry].concat());
        assert!(said.code == Some(0) && said.err.contains(expect), "{}", said.err);
    }
    assert_eq!(service.client().get(&entry_path("laps", "ann")).1["score"], json!(4), "the last one");
    for (name, score) in [("best", 5), ("incr", 12), ("set", 4)] {
        let said = import(&path, &[&board(name)[..], &["--op", name]].concat());
        assert!(said.code == Some(0) && !said.err.contains("an earlier row"), "{}", said.err);
        assert_eq!(service.client().get(&entry_path(name, "ann")).1["score"], json!(score), "{name}");
    }
}

/// An append-only file, in Redis' protocol.
fn log(commands: &[&[&str]]) -> String {
    let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    let command =
        |words: &&[&str]| format!("*{}\r\n{}", words.len(), words.iter().map(word).collect::<String>());
    commands.iter().map(command).collect()
}

#[test]
fn the_parts_of_an_append_only_file_are_refused_one_by_one() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (first, then) = (log(&[&["ZADD", "k", "5", "ann"]]), log(&[&["ZINCRBY", "k", "2", "ann"]]));
    let base = written(&folder, "appendonly.aof.2.base.aof", &first);
    let incr = written(&folder, "appendonly.aof.2.incr.aof", &then);
    let options = ["--key", "k", "--board", "arena", "--url", service.base()];
    let second = incr.to_str().expect("UTF-8");
    for said in
        [import(&base, &options), import(&incr, &options), import(&base, &[&[second][..], &options].concat())]
    {
        assert!(said.code == Some(2) && said.err.contains("one part of an append-only file"), "{}", said.err);
    }
    let whole = written(&folder, "whole.aof", [first, then].concat());
    let said = import(&whole, &options);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(top(&service.client(), "arena"), [("ann".to_owned(), json!(7))]);
}

#[test]
fn options_about_a_csv_make_one_line_of_quoted_cells_a_csv() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = written(&folder, "one.csv", "\"42\",\"1200\",\"7\",\"99\"\n");
    let columns = ["--no-header", "--column", "member=1", "--column", "score=4"];
    let said = import(&path, &[&columns[..], &["--board", "arena", "--url", service.base()]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(top(&service.client(), "arena"), [("42".to_owned(), json!(99))]);
}

#[test]
fn one_name_of_a_board_is_not_made_of_two_in_two_files() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let first = written(&folder, "a.csv", "board,member,score\nZ++,ann,5\n");
    let second = written(&folder, "b.csv", "board,member,score\nZ#,bob,7\n");
    let second = second.to_str().expect("UTF-8");
    let said = import(&first, &[second, "--slug", "--url", service.base()]);
    assert!(said.code == Some(2) && said.out.contains("two boards would become one"), "{}", said.out);
    assert_eq!(service.client().get("/v1/boards/z").0, 404);
}

#[test]
fn who_is_hidden_in_a_row_of_json_stays_hidden_and_times_are_read_if_their_form_is_said() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let rows = "{\"member\":\"h\",\"score\":9,\"hidden\":true}\n{\"member\":\"i\",\"score\":8}\n";
    let path = written(&folder, "rows.ndjson", rows);
    let options = ["--board", "arena", "--url", service.base()];
    let said = import(&path, &[&options[..], &["--at-zone", "UTC"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(top(&service.client(), "arena"), [("i".to_owned(), json!(8))]);
    let path = written(&folder, "times.csv", "member,score,at\nann,5,03.04.2026 13:30\n");
    let said = import(&path, &[&options[..], &["--at-format", "%d.%m.%Y %H:%M"]].concat());
    assert!(said.code == Some(2) && said.out.contains("line 2"), "{}{}", said.out, said.err);
    let said =
        import(&path, &[&options[..], &["--at-format", "%d.%m.%Y %H:%M", "--at-zone", "UTC"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let entry = service.client().get(&entry_path("arena", "ann")).1;
    assert_eq!(entry["updated_at"], "2026-04-03T13:30:00Z", "{entry}");
}

/// A check may take long: a run that nobody may make is refused before it.
#[test]
fn whoever_may_not_write_is_told_before_any_row_is_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (reader, lines) = new_token(&["--scope", "read", "--name", "a"]);
    let tokens = folder.path().join("tokens.toml");
    fs::write(&tokens, lines).expect("it can be written");
    let service = Node::flags(&["--tokens", tokens.to_str().expect("UTF-8")]).start();
    let scores = folder.path().join("scores.csv");
    fs::write(&scores, "member,score\nann,none\n").expect("it can be written");
    for (token, expect) in [(&*reader, "403"), ("unknown", "401")] {
        for more in [&["--dry-run"][..], &[]] {
            let mut import = command();
            import.arg("import").arg(&scores).args(["--board", "arena", "--url", service.base()]).args(more);
            let output = import.env("RANKTREE_TOKEN", token).output().expect("the binary can be started");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2) && said.contains(expect), "{more:?}: {said}");
            assert!(!said.contains("not a number"), "no row was read: {said}");
        }
    }
}
