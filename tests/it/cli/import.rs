//! `ranktree import` against the real service: files that are not what they should be, and services that
//! refuse.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::json;

use crate::support::client::{Client, entry_path};
use crate::support::command::command;
use crate::support::node::Node;

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
fn a_quotation_mark_that_is_not_closed_ends_an_import_after_the_rows_before_it() {
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
    assert_eq!(client.get("/v1/boards/arena").0, 404, "nothing was sent");
    let said = import(&path, &arguments);
    assert!(said.code == Some(2) && said.err.contains(&expect), "{}", said.err);
    let applied = |line: &str| line.split_whitespace().eq(["applied", "100"]);
    assert!(said.out.lines().any(applied), "{}", said.out);
    let total = client.get("/v1/boards/arena").1["totals"]["all"].clone();
    assert_eq!(total, json!(BAD), "all rows before it, and none behind");
    assert!(has(&client, "m99") && !has(&client, "m101"));
}

/// A file whose lines do not end where its rows do would be held in memory as one row.
#[test]
fn a_row_that_does_not_end_ends_an_import_after_the_rows_before_it() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("scores.csv");
    let endless = format!("{},", "m".repeat(1_000)).repeat(24_000);
    fs::write(&path, format!("member,score\nm1,1\nm2,2\n{endless}")).expect("it can be written");
    let said = import(&path, &["--board", "arena", "--url", service.base()]);
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
        ("[{\"member\":\"m\",\"score\":1}]", "is a JSON array; send one object per line"),
        ("name,score\nm,1\n", "--column member=NAME"),
    ] {
        let path = folder.path().join("scores");
        fs::write(&path, text).expect("it can be written");
        let said = import(&path, &["--board", "arena", "--dry-run"]);
        assert!(said.code == Some(2) && said.err.contains(expect), "{text:?}: {}", said.err);
        assert_eq!(said.out, "", "{text:?}: there is nothing to sum up");
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
