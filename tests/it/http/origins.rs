//! Requests that a browser says are of a page: other sites' pages, also those on another port of the machine,
//! change nothing, and sites that `--allow-origin` names are answered as browsers need it.

use std::fs;

use serde_json::json;

use crate::support::node::Node;
use crate::support::raw::ask;
use crate::support::tokens::new_token;

/// What a page of another origin makes a browser send, beside `Host: localhost:8080`.
const FOREIGN: [&str; 10] = [
    "origin: http://evil.example\r\n",
    "origin: http://localhost:3000\r\n",
    "origin: http://localhost\r\n",
    "origin: http://127.0.0.1:8080\r\n",
    "origin: null\r\n",
    "sec-fetch-site: cross-site\r\n",
    "sec-fetch-site: same-site\r\n",
    "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n",
    "sec-fetch-site: cross-site\r\norigin: http://localhost:8080\r\n",
    "origin: http://localhost:8080\r\norigin: http://localhost:8080\r\n",
];

/// What the service's own pages make it send, and programs.
const OWN: [&str; 6] = [
    "",
    "origin: http://localhost:8080\r\n",
    "sec-fetch-site: same-origin\r\norigin: http://localhost:8080\r\n",
    "sec-fetch-site: none\r\n",
    // Behind a proxy that does TLS: one tells which host was asked, and the other one does not.
    "origin: https://ranks.example\r\nx-forwarded-host: ranks.example\r\n",
    "sec-fetch-site: same-origin\r\norigin: https://ranks.example\r\n",
];

/// Requests that change something. A browser asks first about PUT and DELETE alone.
const CHANGES: [(&str, &str); 5] = [
    ("POST /v1/jobs", r#"{"board":"a","member":"m","score":7}"#),
    ("POST /v1/boards/a:clear", ""),
    ("POST /v1/boards/a:trim", r#"{"positions_beyond":1}"#),
    ("PUT /v1/boards/a/members/m", r#"{"score":7}"#),
    ("DELETE /v1/boards/a", ""),
];

fn send(node: &Node, line: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    ask(
        node.address(),
        &format!(
            "{line} HTTP/1.1\r\nhost: localhost:8080\r\ncontent-type: text/plain\r\n{fields}connection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        ),
    )
}

fn is_refused(said: &str) -> bool {
    said.starts_with("HTTP/1.1 403") && said.contains("\"code\":\"foreign_origin\"")
}

/// The value of a header in an answer.
fn field<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    said.lines()
        .take_while(|line| !line.is_empty())
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn pages_of_other_origins_change_nothing_with_tokens_or_without() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (token, lines) = new_token(&["--scope", "admin", "--name", "operator"]);
    let file = folder.path().join("tokens.toml");
    fs::write(&file, lines).expect("it can be written");
    let tokens = ["--tokens", file.to_str().expect("UTF-8")];
    for flags in [&[][..], &["--insecure"], &tokens] {
        let node = Node::flags(flags).start();
        let client = node.client().with_token(&token);
        assert_eq!(client.put("/v1/boards/a/members/first", &json!({"score": 1})).0, 200);
        assert_eq!(client.put("/v1/boards/a/members/second", &json!({"score": 2})).0, 200);
        let authorization = format!("authorization: Bearer {token}\r\n");
        for fields in FOREIGN {
            for (line, body) in CHANGES {
                let said = send(&node, line, &format!("{authorization}{fields}"), body);
                assert!(is_refused(&said), "{flags:?} {line} {fields}: {said}");
                assert!(said.contains("--allow-origin"), "it says what to do: {said}");
                assert_eq!(field(&said, "access-control-allow-origin"), None, "{said}");
            }
        }
        let (status, board) = client.get("/v1/boards/a/top");
        assert_eq!((status, &board["total"]), (200, &json!(2)), "nothing was changed: {board}");
        for fields in OWN {
            let said = send(&node, CHANGES[3].0, &format!("{authorization}{fields}"), CHANGES[3].1);
            assert!(said.starts_with("HTTP/1.1 200"), "{flags:?} {fields}: {said}");
        }
    }
}

#[test]
fn without_tokens_pages_of_other_origins_are_not_told_whether_there_is_an_answer() {
    let node = Node::start();
    assert_eq!(node.client().put("/v1/boards/a/members/m", &json!({"score": 1})).0, 200);
    for fields in FOREIGN {
        let is_link = fields.contains("navigate");
        for line in
            ["GET /v1/boards/a/members/m", "HEAD /v1/boards/a", "GET /v1/boards/a/top", "GET /metrics"]
        {
            let said = send(&node, line, fields, "");
            // A person who follows a link sees the answer, and the page with the link does not.
            assert_eq!(said.starts_with("HTTP/1.1 403"), !is_link, "{line} {fields}: {said}");
        }
        for line in ["GET /healthz", "GET /readyz", "GET /openapi.json"] {
            let said = send(&node, line, fields, "");
            assert!(said.starts_with("HTTP/1.1 200"), "{line} {fields}: {said}");
        }
    }
    for fields in OWN {
        for line in ["GET /", "GET /page/app.js", "GET /v1/boards/a/members/m", "GET /v1/status"] {
            let said = send(&node, line, fields, "");
            assert!(said.starts_with("HTTP/1.1 200"), "{line} {fields}: {said}");
        }
        let said = send(&node, "POST /v1/boards/a/members:lookup", fields, r#"{"members":["m"]}"#);
        assert!(said.starts_with("HTTP/1.1 200"), "{fields}: {said}");
    }
}

#[test]
fn pages_of_an_allowed_origin_are_answered_as_browsers_need_it() {
    let allow = ["--allow-origin", "https://game.example", "--allow-origin", "http://localhost:3000"];
    let node = Node::flags(&allow).start();
    let job = r#"{"board":"a","member":"m","score":1}"#;
    for origin in ["https://game.example", "http://localhost:3000"] {
        let fields = format!("origin: {origin}\r\nsec-fetch-site: cross-site\r\n");
        let asks = format!(
            "{fields}access-control-request-method: PUT\r\naccess-control-request-headers: authorization,content-type\r\n"
        );
        let said = send(&node, "OPTIONS /v1/boards/a/members/m", &asks, "");
        assert!(said.starts_with("HTTP/1.1 204"), "{said}");
        assert_eq!(field(&said, "access-control-allow-origin"), Some(origin), "{said}");
        let allowed = field(&said, "access-control-allow-methods").expect("methods");
        assert!(["GET", "PUT", "POST", "DELETE"].iter().all(|method| allowed.contains(method)), "{said}");
        assert_eq!(
            field(&said, "access-control-allow-headers"),
            Some("authorization,content-type"),
            "{said}"
        );
        assert_eq!(field(&said, "access-control-allow-credentials"), None, "{said}");
        // The request itself, a read, and a refusal, which a page can read as well.
        for (line, body, status) in [
            ("POST /v1/jobs", job, 200),
            ("GET /v1/boards/a/members/m", "", 200),
            ("GET /v1/boards/a/members/nobody", "", 404),
        ] {
            let said = send(&node, line, &fields, body);
            assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {said}");
            assert_eq!(field(&said, "access-control-allow-origin"), Some(origin), "{line}: {said}");
            assert_eq!(field(&said, "vary"), Some("origin"), "{line}: {said}");
        }
    }
    for origin in
        ["http://game.example", "https://game.example:8443", "https://game.example.evil.example", "null"]
    {
        let asks = format!("origin: {origin}\r\naccess-control-request-method: PUT\r\n");
        let said = send(&node, "OPTIONS /v1/boards/a/members/m", &asks, "");
        assert!(is_refused(&said), "{origin}: {said}");
        assert_eq!(field(&said, "access-control-allow-origin"), None, "{origin}: {said}");
    }
}

#[test]
fn a_preflight_is_answered_without_a_token_and_the_request_needs_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (token, lines) = new_token(&["--scope", "write", "--name", "game"]);
    let file = folder.path().join("tokens.toml");
    fs::write(&file, lines).expect("it can be written");
    let node = Node::flags(&["--tokens", file.to_str().expect("UTF-8")])
        .environment(&[("RANKTREE_ALLOW_ORIGIN", "https://game.example")])
        .start();
    let fields = "origin: https://game.example\r\nsec-fetch-site: cross-site\r\n";
    let asks = format!("{fields}access-control-request-method: POST\r\n");
    assert!(send(&node, "OPTIONS /v1/jobs", &asks, "").starts_with("HTTP/1.1 204"));
    let job = r#"{"board":"a","member":"m","score":1}"#;
    let said = send(&node, "POST /v1/jobs", fields, job);
    assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    assert_eq!(field(&said, "access-control-allow-origin"), Some("https://game.example"), "{said}");
    let with_token = format!("{fields}authorization: Bearer {token}\r\n");
    let said = send(&node, "POST /v1/jobs", &with_token, job);
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[test]
fn names_of_allowed_sites_are_names_of_the_node_and_no_others_are() {
    let node = Node::flags(&["--allow-origin", "https://ranks.example"]).start();
    let get = |host: &str| {
        ask(node.address(), &format!("GET /v1/boards HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"))
    };
    assert!(get("ranks.example").starts_with("HTTP/1.1 200"));
    assert!(get("127.0.0.1:1").starts_with("HTTP/1.1 200"));
    assert!(is_refused(&get("evil.example")));
    assert!(is_refused(&get("evil.ranks.example")));
}
