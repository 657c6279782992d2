//! `ranktree import --if-absent`: whoever has an entry keeps it, and the summary says how many had one.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Client, entry_path};
use crate::support::command::command;
use crate::support::nats::wait_until;
use crate::support::node::Node;

struct Absent {
    service: Node,
    folder: TempDir,
}

impl Absent {
    fn new(service: Node) -> Self {
        Self { service, folder: tempfile::tempdir().expect("a temporary directory") }
    }

    fn client(&self) -> Client {
        self.service.client()
    }

    fn written(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("it can be written");
        path
    }

    /// The exit status, and all that was said with one space between its words.
    fn import(&self, text: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let path = self.written("file", text);
        let mut import = command();
        import.arg("import").arg(path).args(["--url", self.service.base(), "--board", "arena"]);
        said(import.args(arguments).output().expect("the binary can be started"))
    }

    fn put(&self, member: &str, body: &Value) {
        let (status, answer) =
            self.client().put(&format!("{}?wait=applied", entry_path("arena", member)), body);
        assert!((200..300).contains(&status), "{status}: {answer}");
    }

    fn entry(&self, member: &str) -> Value {
        self.client().get(&entry_path("arena", member)).1
    }

    fn scores(&self) -> Vec<(String, Value)> {
        let page = self.client().get("/v1/boards/arena/top?limit=100").1;
        let entries = page["entries"].as_array().unwrap_or_else(|| panic!("{page}"));
        let told =
            |entry: &Value| (entry["member"].as_str().expect("an id").to_owned(), entry["score"].clone());
        entries.iter().map(told).collect()
    }
}

fn said(Output { status, stdout, stderr }: Output) -> (Option<i32>, String) {
    let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    (status.code(), said.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn expect(members: &[(&str, i64)]) -> Vec<(String, Value)> {
    members.iter().map(|(member, score)| ((*member).to_owned(), json!(score))).collect()
}

#[test]
fn whoever_has_an_entry_keeps_it_and_is_counted() {
    let absent = Absent::new(Node::shards(2).start());
    absent.put("ann", &json!({"score": 100, "meta": {"car": "mx5"}}));
    let before = absent.entry("ann");
    for (number, (text, options)) in [
        ("member,score,Team\nann,5,Red\nbob,7,Red\nbob,9,Red\n", &["--column", "meta.team=Team"][..]),
        ("{\"member\":\"ann\",\"score\":5}\n{\"member\":\"cid\",\"op\":\"best\",\"score\":3}\n", &[]),
        (
            "{\"n\":\"ann\",\"s\":5}\n{\"n\":\"dan\",\"s\":2}\n",
            &["--column", "member=n", "--column", "score=s"],
        ),
        ("\"ann\",\"5\",\"eve\",\"1\"\n", &["--format", "redis-csv"]),
    ]
    .into_iter()
    .enumerate()
    {
        let (code, said) = absent.import(text, &[&["--if-absent"], options].concat());
        let rows = if number == 0 { 3 } else { 2 };
        let told = format!("applied {rows} changed 1 there already {}", rows - 1);
        assert!(code == Some(0) && said.contains(&told), "{text}: {said}");
        assert_eq!(said.contains("with --if-absent the first one holds"), number == 0, "{said}");
        // Run again, all are there.
        let (code, said) = absent.import(text, &[&["--if-absent"], options].concat());
        assert!(
            code == Some(0) && said.contains(&format!("changed 0 there already {rows}")),
            "{text}: {said}"
        );
    }
    assert_eq!(absent.scores(), expect(&[("ann", 100), ("bob", 7), ("cid", 3), ("dan", 2), ("eve", 1)]));
    let after = absent.entry("ann");
    assert_eq!((&after["updated_at"], &after["meta"]), (&before["updated_at"], &before["meta"]));
}

#[test]
fn a_row_whose_version_is_not_newer_is_there_already() {
    let absent = Absent::new(Node::start());
    absent.put("ann", &json!({"score": 100, "version": 7}));
    absent.put("gone", &json!({"score": 1, "version": 6}));
    let removed = json!([{"board": "arena", "member": "gone", "op": "remove", "version": 9}]);
    assert_eq!(absent.client().post("/v1/jobs?wait=applied", &removed).0, 200);
    let text = "member,score,version\nann,5,7\ngone,5,8\nbob,5,1\n";
    let (code, said) = absent.import(text, &["--if-absent"]);
    let told = "applied 3 changed 1 there already 2 2 of them by their versions";
    assert!(code == Some(0) && said.contains(told), "{said}");
    assert_eq!(absent.scores(), expect(&[("ann", 100), ("bob", 5)]));
}

/// A backup that is brought in again must not undo what was done since.
#[test]
fn an_export_enters_those_who_are_gone_and_no_others() {
    let absent = Absent::new(Node::shards(2).start());
    for (member, score) in [("ann", 10), ("bob", 20), ("cid", 30)] {
        absent.put(member, &json!({"score": score}));
    }
    let export = |format: &str| {
        let path = absent.folder.path().join(format!("backup.{format}"));
        let mut export = command();
        export.args(["export", "--board", "arena", "--format", format, "--url", absent.service.base()]);
        export.arg("--replace");
        let output = export.arg("--output").arg(&path).output().expect("the binary can be started");
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(path).expect("it was written")
    };
    let before = absent.entry("bob");
    for format in ["ndjson", "csv"] {
        let backup = export(format);
        let removed = json!([{"board": "arena", "member": "bob", "op": "remove"}]);
        assert_eq!(absent.client().post("/v1/jobs?wait=applied", &removed).0, 200);
        absent.put("ann", &json!({"score": 11}));
        let (code, said) = absent.import(&backup, &["--if-absent"]);
        assert!(code == Some(0) && said.contains("changed 1 there already 2"), "{said}");
        assert_eq!(absent.scores(), expect(&[("cid", 30), ("bob", 20), ("ann", 11)]));
        assert_eq!(absent.entry("bob")["updated_at"], before["updated_at"], "as it was");
    }
    // What hides would hide those who are there.
    let hide = json!([{"board": "arena", "member": "cid", "op": "hide"}]);
    assert_eq!(absent.client().post("/v1/jobs?wait=applied", &hide).0, 200);
    for format in ["ndjson", "csv"] {
        let backup = export(format);
        let show = json!([{"board": "arena", "member": "cid", "op": "show"}]);
        assert_eq!(absent.client().post("/v1/jobs?wait=applied", &show).0, 200);
        let (code, said) = absent.import(&backup, &["--if-absent"]);
        assert!(code == Some(2) && said.contains("--if-absent leaves those alone"), "{format}: {said}");
        assert_eq!(absent.entry("cid")["score"], json!(30), "cid is shown");
        assert_eq!(absent.client().post("/v1/jobs?wait=applied", &hide).0, 200);
    }
}

#[test]
fn what_cannot_be_both_is_refused_in_words() {
    let absent = Absent::new(Node::start());
    let rows = "member,score,name\nann,5,Ann\n";
    for (options, words) in [
        (&["--op", "best"][..], "'--if-absent' cannot be used with '--op <OP>'"),
        (&["--column", "profile.name=name"], "import them apart"),
    ] {
        let (code, said) = absent.import(rows, &[&["--if-absent"], options].concat());
        assert!(code == Some(2) && said.contains(words), "{said}");
    }
    let settings = absent.written("settings.toml", "if_absent = true\nop = \"best\"\n");
    let (code, said) = absent.import(rows, &["--config", settings.to_str().expect("UTF-8")]);
    assert!(
        code == Some(2) && said.contains("leave one away") | said.contains("cannot be used with"),
        "{said}"
    );
    assert_eq!(absent.client().get("/v1/boards/arena").0, 404, "nothing was sent");
    // A board with several windows is told of.
    assert_eq!(absent.client().put("/v1/boards/arena", &json!({"windows": ["all", "day"]})).0, 201);
    let (code, said) = absent.import("member,score\nann,5\n", &["--if-absent"]);
    assert!(code == Some(0) && said.contains("has the windows day, too"), "{said}");
}

/// A run that was stopped, and its second one from the line that it tells, come to what one run comes to.
#[test]
fn a_stopped_import_goes_on_and_counts_what_the_first_run_entered() {
    let absent = Absent::new(Node::start());
    absent.put("m3", &json!({"score": 100}));
    let rows: Vec<String> = (0..40).map(|number| format!("m{number},{number}")).collect();
    let text = format!("member,score\n{}\nbad,x\nlast,1\n", rows.join("\n"));
    let stop = ["--if-absent", "--unchecked", "--limit-errors", "0", "--batch", "7"];
    let (code, said) = absent.import(&text, &stop);
    assert!(code == Some(2) && said.contains("there already 1"), "{said}");
    let line = said.split("--from-line ").nth(1).and_then(|rest| rest.split(' ').next());
    let line = line.unwrap_or_else(|| panic!("a line: {said}"));
    for from in [line, "20", "0"] {
        let (code, said) =
            absent.import(&text.replace("bad,x\n", "bad,0\n"), &["--if-absent", "--from-line", from]);
        assert!(code == Some(0) && said.contains("there already"), "{said}");
        assert_eq!(
            (absent.entry("m3")["score"].clone(), absent.entry("last")["score"].clone()),
            (json!(100), json!(1))
        );
    }
    assert_eq!(absent.client().get("/v1/boards/arena").1["totals"]["all"], json!(42));
}

#[test]
fn a_dry_run_finds_boards_that_no_job_makes() {
    let absent = Absent::new(Node::flags(&["--no-auto-create"]).start());
    let rows = "member,score\nann,5\n";
    let words = "unknown_board: there is no board arena, and the service makes none for jobs";
    for options in [&["--dry-run"][..], &[], &["--limit-errors", "1"]] {
        let (code, said) = absent.import(rows, options);
        let expect = if options.is_empty() { Some(2) } else { Some(1) };
        assert!(code == expect && said.contains(words), "{options:?}: {said}");
        assert!(!said.contains("this import makes it"), "{said}");
    }
    // As it advises.
    for options in [&["--order", "desc", "--dry-run"][..], &["--order", "desc"]] {
        let (code, said) = absent.import(rows, options);
        assert!(code == Some(0) && said.contains("this import makes it"), "{said}");
    }
    wait_until("the row is there", || absent.entry("ann")["score"] == json!(5));
    let (code, said) = absent.import(rows, &["--dry-run"]);
    assert_eq!(code, Some(0), "the board is there: {said}");
    assert_eq!(absent.client().get("/v1/status").1["auto_create"], json!(false));
}
