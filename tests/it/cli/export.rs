//! An export that is imported into another number of shards gives the same export again, including the order
//! of ties.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, entry_path};
use crate::support::command::command;
use crate::support::node::Node;

const BOARD: &str = "arena";
/// Enough entries for several pages, and few enough scores that most entries are tied.
const MEMBERS: i64 = 2_500;

/// A board with two keys and ties ordered by `last`; with negative scores and some beyond 2^53, ids that need
/// escaping, metadata, and hidden entries.
fn definition() -> Value {
    json!({"keys": [{"name": "points"}, {"name": "time", "order": "asc"}], "ties": "last"})
}

fn fill(client: &Client) {
    assert_eq!(client.put(&format!("/v1/boards/{BOARD}"), &definition()).0, 201);
    let huge = [i64::MAX, i64::MIN, (1 << 53) + 1, -(1 << 53) - 1, 0];
    let jobs: Vec<_> = (0..MEMBERS)
        .map(|number| {
            let member = format!("m \"{number}\", / 日本");
            let points = huge.get(usize::try_from(number).expect("small")).copied().unwrap_or(number % 7 - 3);
            let at = format!("2026-11-20T09:{:02}:{:02}.{:06}Z", number % 13, number % 60, number % 3);
            json!({"board": BOARD, "member": member, "score": [points, number % 2], "at": at})
        })
        .collect();
    for jobs in jobs.chunks(1_000) {
        let (status, answer) = client.post("/v1/jobs?wait=applied", &Value::from(jobs));
        assert_eq!(status, 200, "{answer}");
    }
    // Later changes of other parts of an entry change updated_at, but not its place among ties.
    for number in (0..MEMBERS).step_by(5) {
        let member = format!("m \"{number}\", / 日本");
        let (_, entry) = client.get(&entry_path(BOARD, &member));
        let job =
            json!({"score": entry["score"], "op": "set", "meta": {"car": format!("\"{number}\", mx5")}});
        let (status, answer) = client.put(&format!("{}?wait=applied", entry_path(BOARD, &member)), &job);
        assert_eq!((status, &answer["entry"]["position"]), (200, &entry["position"]), "{answer}");
    }
    for number in [10, 20] {
        let member = format!("m \"{number}\", / 日本");
        let job = json!([{"board": BOARD, "member": member, "op": "hide"}]);
        assert_eq!(client.post("/v1/jobs?wait=applied", &job).0, 200);
    }
}

fn export(arguments: &[&str], to: &Path) -> String {
    let mut command = command();
    command.args(["export", "--board", BOARD]).args(arguments).arg("--output").arg(to);
    let output = command.output().expect("the binary can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let folder = to.parent().expect("it is in a folder");
    let names = fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("readable").file_name());
    assert!(
        !names.into_iter().any(|name| name.to_string_lossy().ends_with(".partial")),
        "nothing is left over"
    );
    assert!(said.contains(": all rows"), "nothing changed meanwhile: {said}");
    said
}

fn import(binary: &Node, from: &Path, extra: &[&str]) {
    let mut command = command();
    command.arg("import").arg(from).args(["--url", &format!("http://{}", binary.address())]).args(extra);
    let output = command.output().expect("the binary can be started");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
}

/// The rows of listed entries, and profiles, without the line of the board's definition before them.
fn lines(path: &Path) -> Vec<Value> {
    let is_hidden = |line: &Value| line["hidden"] == true || line["op"] == "hide";
    all_lines(path).into_iter().filter(|line| !is_hidden(line)).collect()
}

/// The same with hidden entries, and the jobs that hide members.
fn all_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("it was written");
    let all = text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line"));
    let mut all: Vec<Value> = all.collect();
    let first = all.remove(0);
    assert_eq!((&first["board"], &first["definition"]["ties"]), (&json!(BOARD), &json!("last")), "{first}");
    all
}

#[test]
fn an_export_imported_elsewhere_has_equal_ranks_and_ties() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    let mut source = Node::at(path("source")).shards(3).start();
    fill(&source.client());
    let url = format!("http://{}", source.address());
    let said = export(&["--url", &url], &path("live.ndjson"));
    assert!(said.contains("2,498"), "{said}");
    export(&["--url", &url, "--format", "csv"], &path("live.csv"));
    source.terminate();
    let data_dir = path("source");
    let data_dir = data_dir.to_str().expect("it is UTF-8");
    export(&["--data-dir", data_dir], &path("stopped.ndjson"));
    export(&["--data-dir", data_dir, "--format", "csv"], &path("stopped.csv"));
    assert!(lines(&path("live.ndjson")) == lines(&path("stopped.ndjson")), "the same entries");
    // Behind the entries is who is hidden. A service tells that to moderators only.
    let listed = |name: &str| {
        let text = fs::read_to_string(path(name)).expect("it was written");
        text.lines().filter(|line| !line.ends_with(",true")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(listed("live.csv") == listed("stopped.csv"), "the same entries");
    let hides = all_lines(&path("stopped.ndjson")).iter().filter(|line| line["op"] == "hide").count();
    assert_eq!(hides, 2);

    let rows = lines(&path("live.ndjson"));
    assert_eq!(rows.len(), usize::try_from(MEMBERS).expect("small") - 2, "hidden entries are not listed");
    let positions: Vec<_> = rows.iter().map(|row| row["position"].as_u64()).collect();
    assert_eq!(positions, (1..).map(Some).take(rows.len()).collect::<Vec<_>>(), "best first, without a gap");
    assert!(rows.iter().any(|row| row["score"][0] == json!(i64::MAX.to_string())), "beyond 2^53 as text");
    assert!(rows.iter().any(|row| row["at"] != row["updated_at"]), "both times are there");
    assert!(rows.iter().any(|row| row["meta"]["car"].is_string()));

    for (shards, file) in [(1, "live.ndjson"), (5, "stopped.csv")] {
        let name = format!("target of {shards}");
        let target = Node::at(path(&name)).shards(shards).flags(&["--no-auto-create"]).start();
        for _ in 0..2 {
            import(&target, &path(file), &[]);
        }
        let again = path(&format!("again {shards}.ndjson"));
        export(&["--url", &format!("http://{}", target.address())], &again);
        let found = lines(&again);
        for (found, expect) in found.iter().zip(&rows) {
            assert_eq!(found, expect, "{file} in {shards} shards");
        }
        assert_eq!(found.len(), rows.len());
    }
}

/// Versions refuse late jobs, and a cheater who is hidden stays so: a copy of the board must do the same.
#[test]
fn an_export_keeps_versions_and_who_is_hidden() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    let mut source = Node::at(path("source")).shards(3).start();
    let (at, later) = ("2026-11-20T09:00:00Z", "2026-11-20T10:00:00Z");
    let (huge, hidden) = (u64::MAX - 1, ["m4", "m5"]);
    let jobs = json!([
        {"board": BOARD, "member": "m1", "score": 30, "at": at, "version": 17},
        {"board": BOARD, "member": "m2", "score": 20, "at": at, "version": 1},
        {"board": BOARD, "member": "m2", "score": 20, "op": "set", "at": later, "version": huge, "meta": {"n": 1}},
        {"board": BOARD, "member": "m3", "score": 10, "at": at},
        {"board": BOARD, "member": "m4", "score": 99, "at": at, "version": 4, "meta": {"n": 2}},
        {"board": BOARD, "member": "m5", "score": 98, "at": at},
        {"board": BOARD, "member": "m4", "op": "hide"},
        {"member": "m5", "op": "hide"},
        {"board": BOARD, "member": "m5", "op": "hide"},
        // Before the first score.
        {"board": BOARD, "member": "soon", "op": "hide"},
        {"member": "nowhere", "op": "hide"}
    ]);
    assert_eq!(source.client().put(&format!("/v1/boards/{BOARD}"), &json!({"ties": "last"})).0, 201);
    let (status, answer) = source.client().post("/v1/jobs?wait=applied", &jobs);
    assert_eq!(status, 200, "{answer}");
    let versions = |node: &Node| -> Vec<(String, Value, Value)> {
        let (status, page) =
            node.client().get(&format!("/v1/boards/{BOARD}/top?version=true&reached_at=true"));
        assert_eq!(status, 200, "{page}");
        let entries = page["entries"].as_array().expect("a page").iter();
        let told = |entry: &Value| {
            let member = entry["member"].as_str().expect("a member").to_owned();
            let mut rest = entry.clone();
            rest["version"].take();
            (member, entry["version"].clone(), rest)
        };
        entries.map(told).collect()
    };
    let expect = versions(&source);
    let of = |member: &str| expect.iter().find(|(found, ..)| found == member).map(|(_, version, _)| version);
    assert_eq!(of("m1"), Some(&json!(17)));
    assert_eq!(of("m2"), Some(&json!(huge.to_string())), "beyond 2^53 in quotation marks");
    assert_eq!(of("m3"), Some(&Value::Null), "it has none");
    let (_, bare) = source.client().get(&format!("/v1/boards/{BOARD}/top"));
    assert!(bare["entries"][0].get("version").is_none(), "only if it is asked for: {bare}");
    let url = source.base().to_owned();
    export(&["--url", &url], &path("live.ndjson"));
    source.terminate();
    let data_dir = path("source");
    let data_dir = data_dir.to_str().expect("it is UTF-8");
    export(&["--data-dir", data_dir], &path("stopped.ndjson"));
    let said = export(&["--data-dir", data_dir], &path("stopped.csv"));
    assert!(said.contains("of these, 2 are hidden on all boards"), "{said}");
    assert_eq!(all_lines(&path("live.ndjson")), all_lines(&path("stopped.ndjson")));
    for file in ["live.ndjson", "stopped.ndjson", "stopped.csv"] {
        let target = Node::shards(2).start();
        import(&target, &path(file), &[]);
        assert_eq!(versions(&target), expect, "{file}");
        // A late job is refused as it would be by the source.
        let late = json!([
            {"board": BOARD, "member": "m1", "score": 1, "op": "set", "version": 17},
            {"board": BOARD, "member": "m2", "score": 1, "op": "set", "version": huge}
        ]);
        let (_, answer) = target.client().post("/v1/jobs?wait=applied", &late);
        for result in answer["results"].as_array().expect("one a job") {
            assert_eq!(result["rejected"], "stale_version", "{file}: {answer}");
        }
        assert_eq!(versions(&target), expect, "{file}");
        // Who was hidden is hidden, with an entry or without one, and stands as before once that ends.
        let (_, listed) = target.client().get(&format!("/v1/hidden?board={BOARD}"));
        let listed = listed["hidden"].as_array().expect("a list").iter();
        let listed: BTreeSet<_> = listed.map(|ban| ban["member"].as_str().expect("a member")).collect();
        assert_eq!(listed, BTreeSet::from(["m4", "m5", "nowhere", "soon"]), "{file}");
        let show = hidden.map(|member| json!({"board": BOARD, "member": member, "op": "show"}));
        assert_eq!(target.client().post("/v1/jobs?wait=applied", &json!(show)).0, 200);
        let all = versions(&target);
        let shown: Vec<_> = all
            .iter()
            .take(2)
            .map(|(member, version, rest)| (member.as_str(), version, &rest["meta"], &rest["score"]))
            .collect();
        let (four, none) = (json!(4), Value::Null);
        assert_eq!(
            shown,
            [("m4", &four, &json!({"n": 2}), &json!(99)), ("m5", &none, &json!({}), &json!(98))],
            "{file}"
        );
    }
}

#[test]
fn an_export_with_profiles_brings_them_along() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    let mut source = Node::at(path("source")).shards(3).start();
    let jobs = json!([
        {"board": BOARD, "member": "m\"1", "score": 1},
        {"member": "m\"1", "op": "profile", "profile": {"name": "日本", "n": 1}},
        {"board": BOARD, "member": "m2", "score": 2},
        {"member": "nobody", "op": "profile", "profile": {"name": "on no board"}},
    ]);
    assert_eq!(source.client().put(&format!("/v1/boards/{BOARD}"), &json!({"ties": "last"})).0, 201);
    assert_eq!(source.client().post("/v1/jobs", &jobs).0, 200);
    let url = format!("http://{}", source.address());
    export(&["--url", &url], &path("without.ndjson"));
    export(&["--url", &url, "--profiles"], &path("live.ndjson"));
    source.terminate();
    let data_dir = path("source");
    export(&["--data-dir", data_dir.to_str().expect("it is UTF-8"), "--profiles"], &path("stopped.ndjson"));
    let text = |name: &str| fs::read_to_string(path(name)).expect("it was written");
    assert_eq!(text("live.ndjson"), text("stopped.ndjson"));
    let of_profiles = |name: &str| -> Vec<Value> {
        lines(&path(name)).into_iter().filter(|line| line["op"] == "profile").collect()
    };
    assert_eq!(of_profiles("live.ndjson"), [jobs[1].clone()]);
    assert!(of_profiles("without.ndjson").is_empty());
    let target = Node::at(path("target")).shards(2).start();
    // Under another name of the board, too.
    for (extra, board) in [(&[][..], BOARD), (&["--board", "other"], "other")] {
        import(&target, &path("live.ndjson"), extra);
        let (status, top) = target.client().get(&format!("/v1/boards/{board}/top?profile=true"));
        assert_eq!(status, 200, "{top}");
        let profiles: Vec<_> =
            top["entries"].as_array().expect("a list").iter().map(|entry| &entry["profile"]).collect();
        assert_eq!(profiles, [&Value::Null, &json!({"name": "日本", "n": 1})]);
    }
    let mut csv = command();
    csv.args(["export", "--board", BOARD, "--profiles", "--format", "csv"]);
    let refused = csv.output().expect("the binary can be started");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--format ndjson"));
}

#[test]
fn a_failed_export_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data_dir = folder.path().join("data");
    let mut binary = Node::at(&data_dir).shards(2).start();
    assert_eq!(binary.client().put("/v1/boards/arena/members/p42", &json!({"score": 7})).0, 200);
    let url = format!("http://{}", binary.address());
    let to = folder.path().join("out.ndjson");
    let run = |arguments: &[&str]| {
        let output = command().arg("export").args(arguments).arg("--output").arg(&to).output();
        let output = output.expect("the binary can be started");
        assert!(!to.exists(), "{arguments:?}");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&["--board", "arena", "--url", "http://127.0.0.1:1"]);
    assert!(code == Some(2) && said.contains("cannot be read"), "{said}");
    // An address that never answered is not tried again.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = format!("http://{}", silent.local_addr().expect("it is bound"));
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&accepted);
    thread::spawn(move || {
        for asking in silent.incoming() {
            // The client sends a TLS greeting to find out whether the URL's scheme is wrong. It does not
            // count as a request.
            let mut first = [0];
            let is_request = asking.and_then(|mut asking| asking.read(&mut first)).is_ok() && first == *b"G";
            counted.fetch_add(usize::from(is_request), Ordering::SeqCst);
        }
    });
    let (code, said) = run(&["--board", "arena", "--url", &nobody]);
    assert!(code == Some(2) && said.contains("cannot be read"), "{said}");
    assert_eq!(accepted.load(Ordering::SeqCst), 1, "{said}");
    let (code, said) = run(&["--board", "none", "--url", &url]);
    assert!(code == Some(2) && said.contains("unknown_board"), "{said}");
    let (code, said) = run(&["--board", "arena", "--url", &url, "--dry-run"]);
    assert!(code == Some(0) && said.lines().any(|line| line.split_whitespace().eq(["rows", "1"])), "{said}");
    assert_eq!(run(&["--board", "arena", "--url", "https://localhost"]).0, Some(2));
    let (code, said) = run(&["--board", "arena", "--data-dir", data_dir.to_str().expect("it is UTF-8")]);
    assert!(code == Some(2) && said.contains("in use"), "a running service's directory is its own: {said}");
    // The time that orders ties is in an answer only if the request asked for it.
    let (_, page) = binary.client().get("/v1/boards/arena/top?reached_at=true");
    assert_eq!(page["entries"][0]["reached_at"], page["entries"][0]["updated_at"]);
    let (_, page) = binary.client().get("/v1/boards/arena/top");
    assert!(page["entries"][0].get("reached_at").is_none(), "{page}");
    let gone = binary.client().send(Method::DELETE, "/v1/boards/arena", None).expect("it answers");
    assert!(gone.0 < 300, "{}", gone.1);
    binary.terminate();
    let (code, said) = run(&["--board", "arena", "--data-dir", data_dir.to_str().expect("it is UTF-8")]);
    assert!(code == Some(2) && said.contains("there is no board arena"), "{said}");
}

/// Players choose the names of members, and a spreadsheet takes a cell that begins with these characters for
/// a formula. The cell is written unchanged, so that it can be imported. The export prints a warning.
#[test]
fn a_member_that_looks_like_a_formula_is_kept_and_warned_of() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let service = Node::start();
    let (client, member) = (service.client(), "=HYPERLINK(\"x\")");
    assert_eq!(client.put(&entry_path(BOARD, member), &json!({"score": 1})).0, 200);
    let csv = folder.path().join("out.csv");
    let arguments = ["--url", service.base(), "--format", "csv"];
    let mut export = command();
    export.args(["export", "--board", BOARD]).args(arguments).arg("--output").arg(&csv);
    assert!(export.output().expect("the binary can be started").status.success());
    let text = fs::read_to_string(&csv).expect("it is there");
    assert!(text.contains("\"=HYPERLINK(\"\"x\"\")\""), "{text}");
    // With an apostrophe no spreadsheet computes it, and an import takes that away again.
    let safe = folder.path().join("safe.csv");
    let mut export = command();
    export
        .args(["export", "--board", BOARD, "--spreadsheet-safe"])
        .args(arguments)
        .arg("--output")
        .arg(&safe);
    assert!(export.output().expect("the binary can be started").status.success());
    let text = fs::read_to_string(&safe).expect("it is there");
    assert!(text.contains("\"'=HYPERLINK(\"\"x\"\")\""), "{text}");
    let other = Node::start();
    let rows: String = text.lines().skip(1).fold(String::new(), |rows, line| rows + line + "\n");
    let bare = folder.path().join("bare.csv");
    fs::write(&bare, rows).expect("it can be written");
    for (file, more, board) in [(&safe, &[][..], "again"), (&bare, &["--spreadsheet-safe"], "bare")] {
        let mut import = command();
        import.arg("import").arg(file).args(["--url", other.base(), "--board", board]).args(more);
        let output = import.output().expect("the binary can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(other.client().get(&entry_path(board, member)).0, 200, "{board}");
    }
    let refused = command()
        .args([
            "export",
            "--board",
            BOARD,
            "--url",
            service.base(),
            "--format",
            "ndjson",
            "--spreadsheet-safe",
        ])
        .output()
        .expect("the binary can be started");
    assert_eq!(refused.status.code(), Some(2), "NDJSON has no cells");
    let help = command().args(["export", "--help"]).output().expect("the binary can be started");
    let help = String::from_utf8(help.stdout).expect("it is text");
    let words: Vec<_> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("A spreadsheet takes a cell that begins with ="), "{help}");
}

/// The output may be a pipe or a device, which must not be replaced, or a link, whose file is replaced.
#[test]
fn an_export_replaces_regular_files_only() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut service = Node::start();
    fill(&service.client());
    let run = |url: &str, to: &Path, more: &[&str]| {
        let mut command = command();
        command.args(["export", "--board", BOARD, "--url", url]).args(more).arg("--output").arg(to);
        command.output().expect("the binary can be started")
    };
    let exported = |to: &Path| run(service.base(), to, &[]);
    let place = |name: &str| folder.path().join(name);
    let made = std::process::Command::new("mkfifo").arg(place("pipe")).status().expect("there is a mkfifo");
    assert!(made.success());
    let pipe = place("pipe");
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).expect("text comes"));
    assert!(exported(&place("pipe")).status.success());
    let written = reader.join().expect("it was read");
    // The board, the listed entries, and of each of the two hidden ones its score and its ban.
    assert_eq!(written.lines().count(), 1 + usize::try_from(MEMBERS).expect("small") - 2 + 2 * 2);
    assert!(!fs::metadata(place("pipe")).expect("it is there").is_file());

    fs::write(place("file"), "before").expect("it can be written");
    std::os::unix::fs::symlink(place("file"), place("link")).expect("it can be made");
    // Without a word it stays, and nobody is asked for anything.
    for to in [place("file"), place("link")] {
        for url in [service.base(), "http://127.0.0.1:1"] {
            let output = run(url, &to, &["--dry-run"][..usize::from(url.ends_with(":1"))]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2) && said.contains("replace it with --replace"), "{said}");
            assert_eq!(fs::read_to_string(place("file")).expect("readable"), "before");
        }
    }
    fs::write(place("empty"), "").expect("it can be written");
    assert!(exported(&place("empty")).status.success(), "nothing can be lost of it");
    assert!(run(service.base(), &place("link"), &["--replace"]).status.success());
    assert!(fs::symlink_metadata(place("link")).expect("it is there").is_symlink());
    assert_eq!(fs::read_to_string(place("file")).expect("readable"), written);

    let output = exported(folder.path());
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write to"), "{said}");
    assert!(service.terminate().success());
}
