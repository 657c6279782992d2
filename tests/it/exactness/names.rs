//! A board may have any name of printable ASCII that a path can carry: over HTTP and NATS, in lists, in jobs
//! of several boards, beside boards whose names are nearly the same, and through an export and an import.

use std::process::Stdio;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, count_of};
use crate::support::command::command;
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};

at_each_place![a_board_may_have_any_name_that_a_path_can_carry, names_that_no_path_can_carry_are_refused];

const NAMES: [&str; 14] = [
    "lb:{eu}/1",
    "a",
    "a!x",
    "a\"b'c",
    "a$",
    "*",
    ">",
    "a.*.>",
    "_inquiry",
    "<b>&amp;",
    "=1+1",
    "-a,b;c",
    "~[x]^`|@",
    "boards/a/members:lookup",
];

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn path(board: &str) -> String {
    format!("/v1/boards/{}", utf8_percent_encode(board, NON_ALPHANUMERIC))
}

/// Each board has members of its own score, today and at all times.
fn fill(client: &Client) {
    let longest = "x".repeat(128);
    for board in NAMES.into_iter().chain([longest.as_str()]) {
        ok(client.put(&path(board), &json!({"windows": ["all", "day"]})));
        ok(client.put(&format!("{}/members/p", path(board)), &json!({"score": board.len()})));
    }
}

fn check(client: &Client) {
    let found = ok(client.get("/v1/boards?limit=100"));
    let boards = found["boards"].as_array().expect("a list");
    let mut names: Vec<_> = boards.iter().filter_map(|board| board["board"].as_str()).collect();
    names.retain(|name| name.len() < 128 && !name.starts_with("before"));
    let mut expect = NAMES.to_vec();
    expect.sort_unstable();
    assert_eq!(names, expect);
    for board in NAMES {
        let entry = ok(client.get(&format!("{}/members/p?window=day", path(board))));
        assert_eq!((entry["board"].as_str(), &entry["score"]), (Some(board), &json!(board.len())), "{entry}");
        let top = ok(client.get(&format!("{}/top?window=day", path(board))));
        assert_eq!((top["board"].as_str(), count_of(&top["total"])), (Some(board), 1), "{top}");
        assert_eq!(ok(client.get(&path(board)))["board"].as_str(), Some(board));
    }
}

fn a_board_may_have_any_name_that_a_path_can_carry(place: Place) {
    let service = place.start(2);
    let client = service.client();
    fill(&client);
    check(&client);
    let scores: serde_json::Map<_, _> = NAMES.iter().map(|board| ((*board).to_owned(), json!(1))).collect();
    let answer = ok(client.post("/v1/jobs", &json!([{"member": "p", "scores": scores, "op": "incr"}])));
    let by_board = answer["results"][0]["boards"].as_object().expect("by board");
    for board in NAMES {
        assert_eq!(by_board[board]["entry"]["score"], json!(board.len() + 1), "{board}: {answer}");
    }
    let list: Vec<_> =
        NAMES.iter().map(|name| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()).collect();
    let entries = ok(client.get(&format!("/v1/members/p?boards={}", list.join(","))));
    assert_eq!(entries["entries"].as_array().map(Vec::len), Some(NAMES.len()), "{entries}");
    // A board that is cleared or dropped is that one, and no board or instance beside it.
    ok(client.post(&format!("{}:clear", path("a")), &json!({})));
    assert_eq!(client.get(&format!("{}/members/p?window=day", path("a"))).0, 404);
    let (status, answer) = client.send(Method::DELETE, &path("a"), None).expect("an answer");
    assert_eq!(status, 200, "{answer}");
    for board in NAMES.into_iter().filter(|board| *board != "a") {
        let entry = ok(client.get(&format!("{}/members/p?window=day", path(board))));
        assert_eq!(entry["score"], json!(board.len() + 1), "{board}");
    }
    service.end();
}

fn names_that_no_path_can_carry_are_refused(place: Place) {
    let service = place.start(2);
    let client = service.client();
    let longer = "x".repeat(129);
    for board in ["", ".a", "a b", "a%b", "a?b", "a#b", "a\\b", "a\nb", "日本", &longer] {
        let (status, answer) = client.post("/v1/jobs", &json!({"board": board, "member": "p", "score": 1}));
        assert_eq!((status, answer["code"].as_str()), (422, Some("malformed")), "{board}: {answer}");
        assert!(answer["detail"].as_str().expect("words").contains("printable ASCII"), "{answer}");
        if !board.is_empty() {
            assert_eq!(client.put(&path(board), &json!({})).0, 422, "{board}");
        }
    }
}

#[test]
fn boards_of_any_name_are_exported_imported_and_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut source = Node::shards(2).start();
    fill(&source.client());
    source.kill9();
    source.restart();
    check(&source.client());
    let file = folder.path().join("all.ndjson");
    let run = |arguments: &[&str]| {
        let output = command().args(arguments).stdin(Stdio::null()).output().expect("it starts");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
    };
    let file = file.to_str().expect("it is UTF-8");
    run(&["export", "--all", "--output", file, "--url", source.base()]);
    let target = Node::shards(3).flags(&["--no-auto-create"]).start();
    run(&["import", file, "--url", target.base()]);
    check(&target.client());
    // A spreadsheet would compute such a name.
    let csv = folder.path().join("one.csv");
    let csv = csv.to_str().expect("it is UTF-8");
    let other = Node::start();
    let format = ["--format", "csv", "--spreadsheet-safe"];
    run(&[&["export", "--board", "=1+1", "--output", csv, "--url", source.base()], &format[..]].concat());
    let text = std::fs::read_to_string(csv).expect("it was written");
    assert!(!text.contains("\n\"=1+1") && !text.contains("\n=1+1"), "{text}");
    run(&["import", csv, "--url", other.base()]);
    assert_eq!(ok(other.client().get(&format!("{}/members/p", path("=1+1"))))["score"], 4);
    run(&["load", "--url", other.base(), "--board-prefix", "l/{x}\"", "--jobs", "50", "--members", "10"]);
    assert_eq!(other.client().get(&format!("{}/top", path("l/{x}\"0"))).0, 200);
}
