//! An export includes the board's definition. `export | import` into an empty node with another number of
//! shards gives the same ranks, for all kinds of keys, directions and rules for ties. An import does not
//! write to a board that is defined differently.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::command;
use crate::support::node::Node;
use crate::support::tokens::new_token;

/// More than a page, and few enough scores that most entries are tied.
const MEMBERS: i64 = 1_300;

/// Boards that differ in everything that affects ranks.
fn boards() -> Vec<(String, Value)> {
    let keys = [
        json!([{"name": "time", "order": "asc", "min": -5, "max": 1_000_000}]),
        json!([{"name": "points"}, {"name": "time", "order": "asc", "type": "float", "min": -0.5}]),
        json!([{"name": "a", "order": "asc"}, {"name": "b", "order": "asc"}, {"name": "c", "order": "desc"}]),
    ];
    let policies = ["best", "incr", "set"];
    let mut boards = Vec::new();
    for (keys, policy) in keys.into_iter().zip(policies) {
        for ties in ["first", "last", "member", "member_desc"] {
            let count = keys.as_array().map_or(0, Vec::len);
            let definition =
                json!({"keys": keys, "policy": policy, "ties": ties, "utc_offset": "+09:00", "keep": 3});
            boards.push((format!("{count}-keys.{ties}:x"), definition));
        }
    }
    boards
}

fn fill(client: &Client) {
    for (board, definition) in boards() {
        assert_eq!(client.put(&format!("/v1/boards/{board}"), &definition).0, 201);
        let keys = definition["keys"].as_array().map_or(0, Vec::len);
        let jobs: Vec<_> = (0..MEMBERS)
            .map(|number| {
                // Ids whose order is neither numeric nor the order of arrival.
                let member = format!("{}, \"{number}\" 日本", (number * 7_919) % 1_000);
                let is_float = |key: usize| definition["keys"][key]["type"] == "float";
                let key = |(key, step)| match number % step {
                    1 if is_float(key) => json!("inf"),
                    left if is_float(key) => json!(f64::from(i32::try_from(left).expect("small")) / 10.0),
                    left => json!(left),
                };
                let score: Vec<_> = (2..).enumerate().map(key).take(keys).collect();
                let mut job = json!({"board": board, "member": member, "score": score});
                // Some jobs have an `at` of their own, in reverse order or shared by several; others take the
                // time of their arrival.
                if number % 3 > 0 {
                    job["at"] = json!(format!("2026-11-20T09:{:02}:00.{:06}Z", 59 - number % 60, number % 2));
                }
                if number % 11 == 0 {
                    job["meta"] = json!({"car": format!("\"{number}\", mx5")});
                }
                job
            })
            .collect();
        for jobs in jobs.chunks(500) {
            let (status, answer) = client.post("/v1/jobs?wait=applied", &Value::from(jobs));
            assert_eq!(status, 200, "{answer}");
        }
        // Scores with an `at` later than their arrival, and a hidden entry.
        for number in (0..MEMBERS).step_by(17) {
            let member = format!("{}, \"{number}\" 日本", (number * 7_919) % 1_000);
            let op = if number == 17 { "hide" } else { "incr" };
            let mut job = json!({"board": board, "member": member, "op": op});
            if op == "incr" {
                job["score"] = Value::from(vec![1; keys]);
            }
            assert_eq!(client.post("/v1/jobs?wait=applied", &Value::from(vec![job])).0, 200);
        }
    }
}

/// All entries in their order.
fn ranking(client: &Client, board: &str) -> Vec<Value> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, mut page) =
            client.get(&format!("/v1/boards/{board}/top?limit=1000&reached_at=true&cursor={cursor}"));
        assert_eq!(status, 200, "{page}");
        entries.append(page["entries"].as_array_mut().expect("a page"));
        match &page["next_cursor"] {
            Value::String(next) => cursor.clone_from(next),
            _ => return entries,
        }
    }
}

fn definition(client: &Client, board: &str) -> Value {
    let (status, mut answer) = client.get(&format!("/v1/boards/{board}"));
    assert_eq!(status, 200, "{answer}");
    for other in ["as_of", "totals"] {
        answer.as_object_mut().expect("an object").remove(other).expect("it is told");
    }
    answer
}

/// `ranktree export ... | ranktree import -`.
fn pipe(from: &Node, to: &Node, board: &str, format: &str) {
    let mut export = command();
    export.args(["export", "--board", board, "--url", from.base(), "--format", format]);
    let mut export = export.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut import = command();
    import.args(["import", "-", "--url", to.base()]);
    let rows = export.stdout.take().expect("it is piped");
    let Output { status, stdout, stderr } = import.stdin(rows).output().expect("it starts");
    let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    assert!(status.success(), "{said}");
    assert!(!said.contains("count them twice"), "rows of an export can be imported again: {said}");
    assert!(export.wait().expect("it ends").success());
}

#[test]
fn export_piped_into_import_keeps_the_ranks_of_every_kind_of_board() {
    let source = Node::shards(3).start();
    fill(&source.client());
    let targets = [("ndjson", 5), ("csv", 1)].map(|(format, shards)| {
        let target = Node::shards(shards).flags(&["--no-auto-create"]).start();
        (format, target)
    });
    for (board, _) in boards() {
        let (expect, is) = (ranking(&source.client(), &board), definition(&source.client(), &board));
        assert_eq!(expect.len(), usize::try_from(MEMBERS).expect("small") - 1, "one is hidden");
        let tied = expect.windows(2).filter(|pair| pair[0]["rank"] == pair[1]["rank"]).count();
        assert!(tied > 500, "ties are always there, {tied} on {board}");
        for (format, target) in &targets {
            // A second import has the same result.
            for _ in 0..2 {
                pipe(&source, target, &board, format);
                assert_eq!(definition(&target.client(), &board), is, "{board} as {format}");
                let found = ranking(&target.client(), &board);
                assert_eq!(found.len(), expect.len(), "{board} as {format}");
                for (found, expect) in found.iter().zip(&expect) {
                    assert_eq!(found, expect, "{board} as {format}");
                }
            }
        }
    }
}

#[test]
fn all_boards_go_through_one_pipe_from_a_service_or_its_data() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut source = Node::at(folder.path().join("source")).shards(3).start();
    fill(&source.client());
    let expect: Vec<_> =
        boards().into_iter().map(|(board, _)| (ranking(&source.client(), &board), board)).collect();
    let url = source.base().to_owned();
    let data_dir = folder.path().join("source");
    let data_dir = data_dir.to_str().expect("it is UTF-8").to_owned();
    for (name, from) in [("live", ["--url", &url]), ("stopped", ["--data-dir", &data_dir])] {
        if name == "stopped" {
            source.terminate();
        }
        let file = folder.path().join(name);
        let file = file.to_str().expect("it is UTF-8");
        let (code, said) = run(&[&["export", "--all", "--output", file], &from[..]].concat(), "");
        assert!(code == Some(0) && said.contains("boards"), "{said}");
        let hidden = said.lines().find_map(|line| line.strip_prefix("hidden")).map(str::trim);
        let hidden_members = expect.len().to_string();
        assert!(name == "live" || hidden == Some(hidden_members.as_str()), "{said}");
        let target = Node::shards(2).flags(&["--no-auto-create"]).start();
        let (code, said) = run(&["import", file, "--url", target.base()], "");
        assert_eq!(code, Some(0), "{said}");
        for (expect, board) in &expect {
            assert!(ranking(&target.client(), board) == *expect, "{board}, {name}");
        }
    }
    let (code, said) = run(&["export", "--all", "--format", "csv", "--data-dir", &data_dir], "");
    assert!(code == Some(2) && said.contains("a CSV file can hold one board only"), "{said}");
    let (code, said) = run(&["export", "--board", "none", "--data-dir", &data_dir], "");
    assert!(code == Some(2) && said.contains("there is no board none; the boards are "), "{said}");
}

fn run(arguments: &[&str], token: &str) -> (Option<i32>, String) {
    let mut command = command();
    let output = command.args(arguments).env("RANKTREE_TOKEN", token).stdin(Stdio::null()).output();
    let Output { status, stdout, stderr } = output.expect("the binary can be started");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// Makes a token with this scope, and adds its lines to the file.
fn token(scope: &str, tokens: &Path) -> String {
    let (secret, lines) = new_token(&["--scope", scope, "--name", scope]);
    let before = fs::read_to_string(tokens).unwrap_or_default();
    fs::write(tokens, before + &lines).expect("it can be written");
    secret
}

#[test]
fn an_import_refuses_a_board_that_is_defined_differently_or_that_its_token_may_not_define() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let source = Node::shards(2).start();
    let ours = json!({"keys": [{"name": "time", "order": "asc"}], "ties": "last", "keep": 3});
    assert_eq!(source.client().put("/v1/boards/arena", &ours).0, 201);
    for (member, score) in [("slow", 90), ("quick", 10)] {
        let path = format!("/v1/boards/arena/members/{member}");
        assert_eq!(source.client().put(&path, &json!({"score": score})).0, 200);
    }
    for (format, extra) in
        [("ndjson", None), ("csv", None), ("ndjson", Some("--rows-only")), ("csv", Some("--rows-only"))]
    {
        let to = path(&format!("{}{format}", extra.map_or("", |_| "rows.")));
        let mut command = command();
        command.args([
            "export",
            "--board",
            "arena",
            "--url",
            source.base(),
            "--format",
            format,
            "--output",
            &to,
        ]);
        assert!(command.args(extra).output().expect("it starts").status.success());
    }
    let csv = fs::read_to_string(path("csv")).expect("it was written");
    let (first, rest) = csv.split_once('\n').expect("it has lines");
    assert!(first.starts_with("#ranktree {\"board\":\"arena\",\"definition\":{"), "{first}");
    assert_eq!(rest, fs::read_to_string(path("rows.csv")).expect("it was written"));
    assert!(rest.starts_with("board,member,score,"), "a spreadsheet's first line is the header: {rest}");

    let tokens = folder.path().join("tokens.toml");
    let (admin, writer) = (token("admin", &tokens), token("write", &tokens));
    let target = Node::flags(&["--tokens", tokens.to_str().expect("UTF-8")]).start();
    let client = target.client().with_token(&admin);
    let import = |file: &str, extra: &[&str], token: &str| {
        run(&[&["import", &path(file), "--url", target.base()], extra].concat(), token)
    };
    for file in ["ndjson", "csv"] {
        // A dry run reports what it would do, and changes nothing.
        let (code, said) = import(file, &["--dry-run"], &writer);
        assert!(code == Some(0) && said.contains("the file has the definition of the board arena"), "{said}");
        // A token with the scope write cannot define the board, and the rows do not create it with the
        // defaults.
        let (code, said) = import(file, &[], &writer);
        assert!(code == Some(2) && said.contains("with the scope admin") && said.contains("403"), "{said}");
        assert_eq!(client.get("/v1/boards/arena").0, 404);
    }
    // A board that is defined differently is reported and left unchanged, unless --rows-only is given.
    assert_eq!(client.put("/v1/boards/arena", &json!({"ties": "first"})).0, 201);
    for file in ["ndjson", "csv"] {
        let (code, said) = import(file, &[], &admin);
        assert!(code == Some(2) && said.contains("board_differs") && said.contains("--rows-only"), "{said}");
        assert_eq!(client.get("/v1/boards/arena").1["totals"]["all"], 0);
    }
    assert_eq!(import("csv", &["--rows-only"], &writer).0, Some(0));
    assert_eq!(client.get("/v1/boards/arena/members/slow").1["rank"], 1, "more is better there");
    // A board whose fixed settings are equal is used as it is, and the scope admin is not needed. Its
    // changeable settings stay.
    let gone = client.send(ureq::http::Method::DELETE, "/v1/boards/arena", None).expect("it answers");
    assert_eq!(gone.0, 200, "{}", gone.1);
    let mut theirs = ours;
    theirs["keep"] = json!(7);
    assert_eq!(client.put("/v1/boards/arena", &theirs).0, 201);
    for file in ["ndjson", "csv", "rows.ndjson", "rows.csv"] {
        let (code, said) = import(file, &[], &writer);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(client.get("/v1/boards/arena/members/quick").1["rank"], 1);
    }
    assert_eq!(client.get("/v1/boards/arena").1["keep"], 7);
}

#[test]
fn what_members_have_in_a_running_window_is_not_replaced_by_scores_of_all_times() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let service = Node::shards(2).start();
    let client = service.client();
    let send = |jobs: Value| assert_eq!(client.post("/v1/jobs?wait=applied", &jobs).0, 200);
    // The first season, which is of a year, began long before the score of all times was enough.
    let begin = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 30);
    let season = json!({"starts": begin.to_string(), "every": "365d"});
    let definition = json!({"policy": "incr", "windows": ["all", "season"], "season": season, "grace": "1d"});
    assert_eq!(client.put("/v1/boards/pts", &definition).0, 201);
    let before = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 60);
    send(json!([{"board": "pts", "member": "ann", "score": 60, "at": before.to_string()},
        {"board": "pts", "member": "ann", "score": 30}, {"board": "pts", "member": "bob", "score": 20},
        {"board": "pts", "member": "cid", "score": 5}]));
    let tops = || ["all", "season"].map(|window| scores(&client, "pts", window));
    let expect = tops();
    assert_eq!(expect[1], [("ann".to_owned(), 30), ("bob".to_owned(), 20), ("cid".to_owned(), 5)]);
    for file in ["pts.ndjson", "pts.csv"] {
        let file = folder.path().join(file).to_str().expect("UTF-8").to_owned();
        let (code, said) = run(&["export", "--board", "pts", "--url", service.base(), "--output", &file], "");
        assert_eq!(code, Some(0), "{said}");
        let import = |extra: &[&str]| run(&[&["import", &file, "--url", service.base()], extra].concat(), "");
        for extra in [&[][..], &["--dry-run"], &["--op", "best"]] {
            let (code, said) = import(extra);
            let is_told = said.contains("s1 of board pts") && said.contains("ann has 30");
            assert!(code == Some(2) && is_told && said.contains("--into-all-windows"), "{said}");
            assert_eq!(tops(), expect, "{extra:?}");
        }
        // Into a new board, and twice: a second import changes nothing.
        for _ in 0..2 {
            let (code, said) = import(&["--board", &format!("copy-of-{}", &file[file.len() - 3..])]);
            assert_eq!(code, Some(0), "{said}");
        }
    }
    let file = folder.path().join("pts.csv").to_str().expect("UTF-8").to_owned();
    let (code, said) = run(&["import", &file, "--url", service.base(), "--into-all-windows"], "");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(tops(), [expect[0].clone(), expect[0].clone()]);
    // Who is not in the season has nothing there to lose.
    send(json!([{"board": "pts", "member": "ann", "op": "remove"}]));
    let (code, said) = run(&["import", &file, "--url", service.base()], "");
    assert_eq!(code, Some(0), "{said}");
}

fn scores(client: &Client, board: &str, window: &str) -> Vec<(String, i64)> {
    let (status, page) = client.get(&format!("/v1/boards/{board}/top?window={window}"));
    assert_eq!(status, 200, "{page}");
    let entries = page["entries"].as_array().expect("a page").iter();
    let score = |entry: &Value| entry["score"].as_i64().expect("an integer");
    entries.map(|entry| (entry["member"].as_str().expect("an id").to_owned(), score(entry))).collect()
}
