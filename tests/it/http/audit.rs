//! The audit log: whose token made a change that others will ask about, by whichever route.

use std::fs;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::node::Node;
use crate::support::tokens::new_token;

/// The lines of the audit log about jobs, with their quotes as they were.
fn lines_about_jobs(node: &Node) -> Vec<String> {
    let log = node.log().replace("\\\"", "\"");
    let about_jobs = log.lines().filter(|line| line.contains("jobs that remove, hide or show"));
    about_jobs.map(str::to_owned).collect()
}

#[test]
fn removals_are_in_the_audit_log_by_whichever_route_they_come() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (token, lines) = new_token(&["--scope", "admin", "--name", "moderator"]);
    let file = folder.path().join("tokens.toml");
    fs::write(&file, lines).expect("it can be written");
    let node = Node::shards(2).flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    let client = node.client().with_token(&token);
    let scores: Vec<Value> =
        (0..200).map(|n| json!({"board": "a", "member": format!("m{n}"), "score": n})).collect();
    assert_eq!(client.post("/v1/jobs", &json!(scores)).0, 200);
    assert_eq!(client.put("/v1/boards/a/members/m0", &json!({"score": 7})).0, 200);
    assert_eq!(lines_about_jobs(&node), Vec::<String>::new(), "scores are not noted");

    let jobs = json!([
        {"board": "a", "member": "m1", "op": "remove"},
        {"board": "a", "member": "m2", "score": 3},
        {"member": "m3", "op": "remove"},
        {"board": "a", "member": "m4", "op": "hide"},
    ]);
    assert_eq!(client.post("/v1/jobs", &jobs).0, 200);
    for op in ["hide", "show", "remove"] {
        assert_eq!(client.put("/v1/boards/a/members/m5", &json!({ "op": op })).0, 200, "{op}");
    }
    let told = lines_about_jobs(&node);
    let expect = [
        r#"remove "m1" on "a", remove "m3" on every board, hide "m4" on "a""#,
        r#"hide "m5" on "a""#,
        r#"show "m5" on "a""#,
        r#"remove "m5" on "a""#,
    ];
    assert_eq!(told.len(), expect.len(), "{told:?}");
    for (line, jobs) in told.iter().zip(expect) {
        for part in [jobs, " INFO ", "token=\"moderator\"", "client=127.0.0.1", "path="] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
    // Of many jobs each is named.
    let many: Vec<Value> =
        (100..200).map(|n| json!({"board": "a", "member": format!("m{n}"), "op": "remove"})).collect();
    assert_eq!(client.post("/v1/jobs", &json!(many)).0, 200);
    let told = lines_about_jobs(&node).concat();
    assert!((100..200).all(|n| told.contains(&format!("remove \"m{n}\" on \"a\""))), "{told}");

    let named = || Some(json!({"name": "s1", "at": "2100-01-01T00:00:00Z"}));
    let later = || Some(json!({"at": "2100-03-01T00:00:00Z"}));
    let next = || Some(json!({"at": "2100-02-01T00:00:00Z"}));
    // Seasons are asked for again as after a lost answer; without consent a second planned one is refused.
    for (method, path, body, what) in [
        (Method::DELETE, "/v1/boards/a/members/m6", None, "an entry was removed"),
        (Method::DELETE, "/v1/members/m7", None, "a member was removed from every board"),
        (Method::PUT, "/v1/boards/b", Some(json!({})), "a board was created"),
        (Method::PUT, "/v1/boards/b", Some(json!({})), "a board's definition was confirmed or changed"),
        (
            Method::POST,
            "/v1/boards/a:trim",
            Some(json!({"positions_beyond": 5})),
            "entries of a board were removed",
        ),
        (Method::POST, "/v1/boards/b:clear", Some(json!({})), "entries of a board were removed"),
        (
            Method::PUT,
            "/v1/boards/b?force=true",
            Some(json!({"windows": ["all", "season"], "season": "manual"})),
            "a board's definition was confirmed or changed",
        ),
        (Method::POST, "/v1/boards/b/seasons", named(), "a season of a board was opened"),
        (Method::POST, "/v1/boards/b/seasons", named(), "a season of a board was confirmed"),
        (Method::POST, "/v1/boards/b/seasons?force=true", next(), "a season of a board was opened"),
        (Method::PUT, "/v1/boards/b/seasons/s2", later(), "a planned season of a board was moved"),
        (Method::DELETE, "/v1/boards/b/seasons/s2", None, "a planned season of a board was cancelled"),
        (Method::DELETE, "/v1/boards/b", None, "a board was dropped"),
    ] {
        let (of, query) = path.split_once('?').unwrap_or((path, ""));
        let count = |log: &str| {
            let of_path = format!("path=\"{of}\"");
            let is_it = |line: &&str| line.contains(what) && line.contains(&of_path);
            let says_so = |line: &&str| line.contains(" force=true") == (query == "force=true");
            log.lines().filter(is_it).filter(says_so).count()
        };
        let before = count(&node.log());
        let (status, answer) = client.send(method.clone(), path, body.as_ref()).expect("an answer");
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        assert_eq!(count(&node.log()), before + 1, "{method} {path}: {what}");
    }
    // What was refused changed nothing, and is not noted.
    assert_eq!(client.send(Method::DELETE, "/v1/boards/b", None).expect("an answer").0, 404);
    let log = node.log();
    assert_eq!(log.lines().filter(|line| line.contains("a board was dropped")).count(), 1);
}
