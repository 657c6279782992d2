//! What the board prefixes of a token hide, and keep from change: every route of the API's document is asked
//! with tokens that are confined to other boards. A route that is added is asked as well.

use std::fs;
use std::io::{Read as _, Write as _};

use serde_json::{Value, json};
use tempfile::TempDir;
use ureq::http::Method;

use crate::support::client::Client;
use crate::support::node::Node;
use crate::support::raw::connect;
use crate::support::tokens::new_token;

/// A board that the tokens may touch, and one that they may not.
const OWN: &str = "eu-a";
const OTHER: &str = "us-secret";
/// On both boards.
const MEMBER: &str = "shared";
/// What nobody who may not touch [`OTHER`] is told: its name, who is only there, texts of its entries and of
/// profiles.
const SECRETS: [&str; 4] = [OTHER, "only-us", "hush-meta", "hush-profile"];

struct Confined {
    node: Node,
    _folder: TempDir,
    /// Of all boards.
    all: String,
    /// Of the scopes read, write and admin.
    scopes: [String; 3],
    /// The same scopes, of which the first two have profiles.
    reads_profiles: String,
    writes_profiles: String,
}

impl Confined {
    fn start() -> Self {
        let mut file = String::new();
        let mut token = |scope: &str, name: &str, more: &[&str]| {
            let (secret, lines) = new_token(&[&["--scope", scope, "--name", name][..], more].concat());
            file += &lines;
            secret
        };
        let prefix = ["--board-prefix", "eu-"];
        let all = token("admin", "all", &[]);
        let scopes = ["read", "write", "admin"].map(|scope| token(scope, scope, &prefix));
        let reads_profiles =
            token("read", "reads profiles", &[&prefix[..], &["--profiles", "read"]].concat());
        let writes_profiles =
            token("write", "writes profiles", &[&prefix[..], &["--profiles", "write"]].concat());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tokens.toml");
        fs::write(&path, file).expect("it can be written");
        let node = Node::shards(2).flags(&["--tokens", path.to_str().expect("UTF-8")]).start();
        let confined = Self { node, _folder: folder, all, scopes, reads_profiles, writes_profiles };
        confined.fill();
        confined
    }

    fn client(&self, token: &str) -> Client {
        self.node.client().with_token(token)
    }

    fn fill(&self) {
        let all = self.client(&self.all);
        for board in [OWN, OTHER] {
            assert_eq!(all.put(&format!("/v1/boards/{board}"), &json!({})).0, 201);
        }
        let jobs = json!([
            {"board": OWN, "member": MEMBER, "score": 5},
            {"board": OTHER, "member": MEMBER, "score": 7, "meta": {"text": "hush-meta"}},
            {"board": OTHER, "member": "only-us", "score": 9},
            {"member": MEMBER, "op": "profile", "profile": {"name": "hush-profile"}},
            {"board": OTHER, "member": "only-us", "op": "hide"},
            // These are rejected, and kept.
            {"board": OTHER, "member": "only-us", "score": [1, 2]},
            {"member": "only-us", "scores": {OWN: [1, 2], OTHER: [1, 2]}},
            {"board": OWN, "member": MEMBER, "score": [1, 2]},
        ]);
        let (status, answer) = all.post("/v1/jobs", &jobs);
        assert_eq!(status, 200, "{answer}");
        let (_, rejects) = all.get("/v1/rejects");
        assert_eq!(rejects["rejects"].as_array().map(Vec::len), Some(3), "{rejects}");
    }

    /// Every operation of the document: its method, its path, and whether it needs a token.
    fn operations(&self) -> Vec<(Method, String, bool)> {
        let (status, document) = self.node.client().get("/openapi.json");
        assert_eq!(status, 200);
        let paths = document["paths"].as_object().expect("paths");
        let mut operations = Vec::new();
        for (path, methods) in paths {
            for (method, operation) in methods.as_object().expect("methods") {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
                let needs_token = operation["security"] != json!([]);
                operations.push((method, path.clone(), needs_token));
            }
        }
        assert!(operations.len() >= 30, "{}", operations.len());
        operations
    }

    /// All that there is of what the tokens may not touch. It names sequences, which move on.
    fn untouchable(&self) -> Value {
        let all = self.client(&self.all);
        let parts = [
            format!("/v1/boards/{OTHER}"),
            format!("/v1/boards/{OTHER}/top?profile=true"),
            format!("/v1/members/{MEMBER}?boards={OTHER}&profile=true"),
            "/v1/members/only-us?profile=true".to_owned(),
        ]
        .map(|path| {
            let (status, answer) = all.get(&path);
            assert_eq!(status, 200, "{path}: {answer}");
            without_sequences(answer)
        });
        Value::from(parts.to_vec())
    }
}

fn without_sequences(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| name != "as_of");
            Value::Object(kept.map(|(name, value)| (name, without_sequences(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_sequences).collect(),
        other => other,
    }
}

/// A path with names in it.
fn filled(path: &str, board: &str) -> String {
    let mut path = path.replace("{board}", board).replace("{member}", MEMBER);
    while let (Some(begin), Some(end)) = (path.find('{'), path.find('}')) {
        path.replace_range(begin..=end, "1");
    }
    path
}

/// How an answer begins that may go on for long.
fn beginning(node: &Node, path: &str, token: &str) -> String {
    let mut stream = connect(node.address());
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is open");
    let (mut said, mut piece) = (String::new(), [0; 4_096]);
    while !said.contains("\n\n") && !said.contains("\"code\"") {
        let length = stream.read(&mut piece).expect("there is an answer");
        assert!(length > 0, "it ended: {said}");
        said += &String::from_utf8_lossy(&piece[..length]);
    }
    said
}

#[test]
fn no_answer_to_a_confined_token_tells_of_other_boards_or_profiles() {
    let confined = Confined::start();
    let [read, write, admin] = &confined.scopes;
    for (method, path, needs_token) in confined.operations() {
        let reads = method == Method::GET || ["lookup", "ranks:of"].iter().any(|verb| path.ends_with(verb));
        if !reads || !needs_token {
            continue;
        }
        let body =
            if path.ends_with("lookup") { json!({"members": [MEMBER]}) } else { json!({"scores": [1]}) };
        let body = (method != Method::GET).then_some(&body);
        for token in [read, write, admin] {
            for query in ["", "?profile=true", "?limit=1", "?window=day", "?partial=true"] {
                let asked = filled(&path, OWN) + query;
                let said = if path.ends_with("/live") {
                    beginning(&confined.node, &asked, token)
                } else {
                    confined
                        .client(token)
                        .send(method.clone(), &asked, body)
                        .expect("an answer")
                        .1
                        .to_string()
                };
                for secret in SECRETS {
                    assert!(!said.contains(secret), "{method} {asked} tells {secret}: {said}");
                }
            }
            // A board of its path that it may not touch is refused, whether or not there is one.
            for board in [OTHER, "us-nothing"] {
                let (status, problem) = confined
                    .client(token)
                    .send(method.clone(), &filled(&path, board), body)
                    .expect("an answer");
                let is_refused = (status, &problem["code"]) == (403, &json!("forbidden_board"));
                assert!(is_refused || !path.contains("{board}"), "{method} {path}: {status} {problem}");
            }
        }
    }
}

#[test]
fn figures_of_all_boards_are_for_tokens_of_all_boards() {
    let confined = Confined::start();
    for token in &confined.scopes {
        let (status, problem) = confined.client(token).get("/metrics");
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden_board")), "{problem}");
        let (status, told) = confined.client(token).get("/v1/status");
        assert_eq!(status, 200, "{told}");
        for shard in told["shards"].as_array().expect("shards") {
            let names: Vec<&String> = shard.as_object().expect("an object").keys().collect();
            for hidden in ["members", "rejects", "parked", "stream", "copying"] {
                assert!(!names.iter().any(|name| *name == hidden), "{hidden} in {shard}");
            }
            assert_eq!((&shard["state"], &shard["reason"]), (&json!("live"), &Value::Null), "{shard}");
            assert!(shard["applied_sequence"].is_u64() && shard["lag"].is_u64(), "{shard}");
        }
        // Of the rejects it is told of those that name its boards alone.
        let (_, rejects) = confined.client(token).get("/v1/rejects");
        assert_eq!(rejects["rejects"].as_array().map(Vec::len), Some(1), "{rejects}");
        let (_, boards) = confined.client(token).get("/v1/boards");
        assert_eq!(boards["boards"].as_array().map(Vec::len), Some(1), "{boards}");
    }
    let all = confined.client(&confined.all);
    assert_eq!(all.get("/metrics").0, 200);
    let (_, told) = all.get("/v1/status");
    for shard in told["shards"].as_array().expect("shards") {
        assert!(shard["members"].is_u64() && shard["rejects"].is_u64(), "{shard}");
    }
}

#[test]
fn nothing_that_a_confined_token_sends_reaches_other_boards_or_profiles() {
    let confined = Confined::start();
    let before = confined.untouchable();
    let bodies = [
        None,
        Some(json!({})),
        Some(json!({"score": 100})),
        Some(json!({"op": "remove"})),
        Some(json!({"op": "hide"})),
        Some(json!({"board": OTHER, "score": 100})),
        Some(json!({"scores": {OTHER: 100}})),
        Some(json!({"board": OTHER, "member": MEMBER, "score": 100})),
        Some(json!({"member": MEMBER, "scores": {OWN: 100, OTHER: 100}})),
        Some(json!({"board": OTHER, "member": "only-us", "op": "remove"})),
        Some(json!({"board": OTHER, "member": "only-us", "op": "hide"})),
        // Everywhere.
        Some(json!({"member": "only-us", "op": "remove"})),
        Some(json!({"member": MEMBER, "op": "remove", "version": 9})),
        Some(json!({"member": MEMBER, "op": "hide"})),
        Some(json!({"member": MEMBER, "op": "profile", "profile": {"name": "mallory"}})),
        Some(json!({"op": "profile", "profile": {"name": "mallory"}})),
        Some(json!([
            {"board": OWN, "member": MEMBER, "score": 1},
            {"board": OTHER, "member": MEMBER, "score": 100},
        ])),
        Some(json!({"positions_beyond": 0})),
        Some(json!({"boards": {OWN: 1, OTHER: 1}, "combine": "union", "aggregate": "sum"})),
    ];
    for (method, path, needs_token) in confined.operations() {
        if method == Method::GET || !needs_token {
            continue;
        }
        for token in &confined.scopes {
            // An earlier request may have dropped it.
            confined.client(&confined.all).put(&format!("/v1/boards/{OWN}"), &json!({}));
            // A DELETE has no body.
            let bodies = bodies.iter().filter(|body| body.is_none() || method != Method::DELETE);
            for body in bodies {
                for board in [OWN, OTHER] {
                    let asked = filled(&path, board);
                    let (status, answer) = confined
                        .client(token)
                        .send(method.clone(), &asked, body.as_ref())
                        .expect("an answer");
                    let is_forbidden = board == OTHER && path.contains("{board}");
                    assert!(status == 403 || !is_forbidden, "{method} {asked}: {status} {answer}");
                }
            }
        }
        assert_eq!(confined.untouchable(), before, "{method} {path}");
    }
}

#[test]
fn profiles_are_for_tokens_that_have_the_switch() {
    let confined = Confined::start();
    let [read, write, _] = &confined.scopes;
    let entry = format!("/v1/boards/{OWN}/members/{MEMBER}?profile=true");
    let profile = json!({"member": MEMBER, "op": "profile", "profile": {"name": "other"}});
    let code =
        |(status, answer): (u16, Value)| (status, answer["code"].as_str().unwrap_or_default().to_owned());
    let refused = (403, "forbidden_profile".to_owned());
    for token in [read, write] {
        assert_eq!(code(confined.client(token).get(&entry)), refused);
        let (status, answer) = confined.client(token).get(&entry.replace("true", "false"));
        assert_eq!((status, answer.get("profile")), (200, None), "{answer}");
    }
    assert_eq!(code(confined.client(write).post("/v1/jobs", &profile)), refused);
    for token in [&confined.reads_profiles, &confined.writes_profiles] {
        let (status, answer) = confined.client(token).get(&entry);
        assert_eq!((status, &answer["profile"]["name"]), (200, &json!("hush-profile")), "{answer}");
        // It is still confined to its boards.
        let other = format!("/v1/boards/{OTHER}/members/{MEMBER}?profile=true");
        assert_eq!(confined.client(token).get(&other).0, 403);
    }
    assert_eq!(confined.client(&confined.reads_profiles).post("/v1/jobs", &profile).0, 403);
    assert_eq!(confined.client(&confined.writes_profiles).post("/v1/jobs", &profile).0, 200);
    let (_, answer) = confined.client(&confined.all).get(&entry);
    assert_eq!(answer["profile"]["name"], json!("other"), "{answer}");
    // Of a member that is on none of its boards, a confined token is told nothing.
    let (status, answer) = confined.client(&confined.reads_profiles).get("/v1/members/only-us?profile=true");
    assert_eq!((status, &answer["entries"], answer.get("profile")), (200, &json!([]), None), "{answer}");
    let (_, answer) = confined.client(&confined.all).get("/v1/members/only-us?profile=true");
    assert!(answer.get("profile").is_some(), "{answer}");
}
