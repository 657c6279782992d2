//! A service or a board that is read-only refuses writes by every front end, until that is taken back: on all
//! nodes, after restarts and kills, and in the order of the log.

use std::fs;
use std::path::Path;

use ranktree::types::{MemberId, ShardId, shard_of};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, shard_status, wait_applied, wait_until};
use crate::support::node::Node;
use crate::support::redis::{ask, connect, listening_in, socket_in};
use crate::support::snapshots::{restore, snapshot};
use crate::support::tokens::new_token;
use crate::support::write_service::{Answer, GameService};

const READ_ONLY: &str = "/v1/readonly";
const BOARD: &str = "/v1/boards/arena";
const SHARDS: u16 = 3;
const WHY: &str = "moving to new machines";

fn set(client: &Client, body: &Value) -> Value {
    let (status, answer) = client.post(READ_ONLY, body);
    assert_eq!(status, 200, "{answer}");
    answer
}

fn freeze(client: &Client) -> Value {
    set(client, &json!({ "readonly": true, "reason": WHY }))
}

fn free(client: &Client) -> Value {
    set(client, &json!({ "readonly": false }))
}

fn score(client: &Client, board: &str, member: &str) -> (u16, Value) {
    client.put(&entry_path(board, member), &json!({ "score": 7 }))
}

/// A request is refused, with the reason.
fn assert_refused((status, answer): (u16, Value), why: &str, what: &str) {
    assert_eq!((status, &answer["code"]), (403, &json!("read_only")), "{what}: {answer}");
    let detail = answer["detail"].as_str().unwrap_or_default();
    assert!(detail.ends_with(why), "{what}: {answer}");
}

fn send(client: &Client, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    client.send(method, path, body).expect("an answer")
}

/// Each kind of write there is over HTTP.
fn writes() -> Vec<(Method, &'static str, Option<Value>)> {
    let definition = json!({ "keep": 3 });
    vec![
        (Method::PUT, "/v1/boards/arena/members/m0", Some(json!({ "score": 9 }))),
        (Method::DELETE, "/v1/boards/arena/members/m0", None),
        (Method::POST, "/v1/jobs", Some(json!([{ "board": "arena", "member": "m1", "score": 9 }]))),
        (Method::POST, "/v1/boards/arena:clear", None),
        (Method::POST, "/v1/boards/arena:trim", Some(json!({ "positions_beyond": 1 }))),
        (Method::POST, "/v1/boards/arena/seasons", Some(json!({ "name": "s1" }))),
        (Method::PUT, BOARD, Some(definition)),
        (Method::DELETE, BOARD, None),
    ]
}

/// What a board that is read-only takes, and the service does not.
fn moderation() -> Vec<(Method, &'static str, Option<Value>)> {
    let job = |op: &str| Some(json!({ "board": "arena", "member": "m2", "op": op }));
    let profile = json!({ "member": "m3", "op": "profile", "profile": { "name": "x" } });
    vec![
        (Method::POST, "/v1/jobs", job("hide")),
        (Method::POST, "/v1/jobs", job("show")),
        (Method::POST, "/v1/jobs", Some(profile)),
        (Method::POST, "/v1/jobs", Some(json!({ "member": "m4", "op": "hide" }))),
        (Method::DELETE, "/v1/members/m5", None),
    ]
}

fn define(client: &Client) {
    let definition = json!({ "windows": ["all", "season"], "season": "manual" });
    let (status, answer) = client.put(BOARD, &definition);
    assert!(status < 300, "{answer}");
    let (status, answer) = client.post(
        "/v1/jobs",
        &json!(
            (0..30).map(|n| json!({"board":"arena","member":format!("m{n}"),"score":n})).collect::<Vec<_>>()
        ),
    );
    assert!(status < 300, "{answer}");
}

fn total(client: &Client) -> u64 {
    client.get("/v1/boards/arena/top?limit=1").1["total"].as_u64().unwrap_or_default()
}

#[test]
fn a_service_that_is_read_only_takes_nothing_by_any_way_until_it_is_taken_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut node = listening_in(folder.path(), Node::shards(SHARDS)).start();
    let client = node.client();
    define(&client);
    assert_eq!(client.get("/v1/status").1["read_only"], Value::Null);
    assert_eq!(free(&client)["readonly"], false, "nothing was ever decided");
    let answer = freeze(&client);
    assert_eq!((&answer["readonly"], &answer["reason"]), (&json!(true), &json!(WHY)), "{answer}");
    assert_eq!(freeze(&client)["since"], answer["since"], "once more changes nothing");

    let check = |node: &Node| {
        let client = node.client();
        for (method, path, body) in writes().into_iter().chain(moderation()) {
            assert_refused(
                send(&client, method.clone(), path, body.as_ref()),
                WHY,
                &format!("{method} {path}"),
            );
        }
        assert_refused(client.put("/v1/boards/new", &json!({})), WHY, "a new board");
        assert_refused(score(&client, "unheard-of", "m0"), WHY, "a board that a job would make");
        // Programs define their boards whenever they start.
        let same = json!({ "windows": ["all", "season"], "season": "manual" });
        assert_eq!(client.put(BOARD, &same).0, 200, "a definition that changes nothing");
        for path in [BOARD, "/v1/status"] {
            let shown = client.get(path).1["read_only"].clone();
            assert_eq!((&shown["reason"], &shown["since"]), (&json!(WHY), &answer["since"]), "{path}");
        }
        assert_eq!(client.get("/v1/boards").1["boards"].as_array().map(Vec::len), Some(1));
        assert_eq!(total(&client), 30, "reads go on");
        let mut redis = connect(&socket_in(folder.path()));
        for words in [&["ZADD", "arena", "5", "m0"][..], &["ZADD", "new", "5", "m0"], &["DEL", "arena"]] {
            let said = ask(&mut redis, words);
            assert!(said.contains("ReadOnly") && said.contains(WHY), "{words:?}: {said}");
        }
        assert_eq!(ask(&mut redis, &["KEYS", "*"]), r#"["arena"]"#);
        assert_eq!(ask(&mut redis, &["DBSIZE"]), "1");
        for shard in 0..SHARDS {
            let series = format!("ranktree_read_only{{shard=\"{shard}\"}}");
            wait_until("the metric says so", || node.metric(&series) == Some(1.0));
            let boards = format!("ranktree_boards{{shard=\"{shard}\"}}");
            assert_eq!(node.metric(&boards), Some(1.0), "the service is no board");
        }
    };
    check(&node);
    // By the log alone, then from a checkpoint.
    node.kill9();
    node.restart();
    check(&node);
    assert!(node.terminate().success());
    node.verify();
    node.restart();
    check(&node);

    // A snapshot has it, and what is restored from it.
    let (taken, data) = (folder.path().join("snapshot"), folder.path().join("restored"));
    snapshot(&node, &taken);
    let (code, said) = restore(&taken, &data, &[]);
    assert_eq!(code, Some(0), "{said}");
    let restored = Node::shards(SHARDS).at(&data).start();
    assert_refused(score(&restored.client(), "arena", "m0"), WHY, "the restored service");

    assert_eq!(free(&node.client())["readonly"], false);
    let client = node.client();
    for (method, path, body) in moderation().into_iter().chain(writes()) {
        let (status, answer) = send(&client, method.clone(), path, body.as_ref());
        assert!(status < 300, "{method} {path}: {answer}");
    }
    assert_eq!(client.get("/v1/status").1["read_only"], Value::Null);
    node.kill9();
    node.restart();
    assert_eq!(score(&node.client(), "arena", "m0").0, 200);
}

#[test]
fn a_board_that_is_read_only_takes_no_scores_and_moderation_goes_on() {
    let node = Node::shards(SHARDS).start();
    let client = node.client();
    define(&client);
    let why = "the season has ended";
    let body = json!({ "board": "arena", "readonly": true, "reason": why });
    assert_eq!(set(&client, &body)["board"], "arena");
    for (method, path, body) in writes() {
        assert_refused(send(&client, method.clone(), path, body.as_ref()), why, &format!("{method} {path}"));
    }
    for (method, path, body) in moderation() {
        let (status, answer) = send(&client, method.clone(), path, body.as_ref());
        assert_eq!(status, 200, "{method} {path}: {answer}");
    }
    let jobs = json!([{ "board": "other", "member": "a", "score": 1 }, { "board": "arena", "member": "a", "score": 1 }]);
    assert_refused(client.post("/v1/jobs", &jobs), why, "a request of which one job is for it");
    assert_eq!(client.get("/v1/boards/other").0, 404, "nothing of it was done");
    assert_eq!(score(&client, "other", "a").0, 200);
    assert_eq!(client.get("/v1/boards/other").1["read_only"], Value::Null);
    assert_eq!(client.get(BOARD).1["read_only"]["reason"], why);
    assert_eq!(client.get("/v1/status").1["read_only"], Value::Null);
    wait_until("the metric says so", || node.metric("ranktree_boards_read_only{shard=\"0\"}") == Some(1.0));
    // What answers show can be sent back.
    let (_, shown) = client.get(BOARD);
    assert_eq!(client.put(BOARD, &shown).0, 200);
    let (status, answer) =
        client.post(READ_ONLY, &json!({ "board": "gone", "readonly": true, "reason": "x" }));
    assert_eq!((status, &answer["code"]), (404, &json!("unknown_board")), "{answer}");
    for wrong in [
        json!({ "readonly": true }),
        json!({ "readonly": true, "reason": " " }),
        json!({ "readonly": true, "reason": "a\nb" }),
        json!({ "reason": "x" }),
        json!({ "readonly": true, "reason": "x", "until": "tomorrow" }),
        json!([true]),
    ] {
        let (status, answer) = client.post(READ_ONLY, &wrong);
        assert_eq!((status, &answer["code"]), (422, &json!("bad_parameter")), "{wrong}: {answer}");
    }
    // Of both, each is taken back by itself.
    freeze(&client);
    assert_eq!(set(&client, &json!({ "board": "arena", "readonly": false }))["readonly"], false);
    assert_refused(score(&client, "arena", "m0"), WHY, "the service");
    free(&client);
    assert_eq!(score(&client, "arena", "m0").0, 200);
}

fn tokens_in(folder: &Path) -> ([String; 3], std::path::PathBuf) {
    let token = |scope: &str, name: &str, more: &[&str]| {
        new_token(&[&["--scope", scope, "--name", name], more].concat())
    };
    let (admin, first) = token("admin", "operator", &[]);
    let (confined, second) = token("admin", "eu-operator", &["--board-prefix", "eu-"]);
    let (write, third) = token("write", "game", &[]);
    let file = folder.join("tokens.toml");
    fs::write(&file, [first, second, third].concat()).expect("it can be written");
    ([admin, confined, write], file)
}

#[test]
fn a_token_of_some_boards_may_not_make_the_service_read_only_and_the_log_says_who_did() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ([admin, confined, write], file) = tokens_in(folder.path());
    let node = Node::flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    let with = |token: &str| node.client().with_token(token);
    for board in ["eu-arena", "arena"] {
        assert_eq!(with(&admin).put(&format!("/v1/boards/{board}"), &json!({})).0, 201);
    }
    let all = json!({ "readonly": true, "reason": WHY });
    let of = |board: &str| json!({ "board": board, "readonly": true, "reason": WHY });
    for (token, body, code) in [
        (&confined, all.clone(), "forbidden_board"),
        (&confined, json!({ "board": null, "readonly": false }), "forbidden_board"),
        (&confined, of("arena"), "forbidden_board"),
        (&write, all.clone(), "insufficient_scope"),
    ] {
        let (status, answer) = with(token).post(READ_ONLY, &body);
        assert_eq!((status, &answer["code"]), (403, &json!(code)), "{body}: {answer}");
    }
    assert_eq!(score(&with(&write), "arena", "a").0, 200, "nothing is read-only");
    assert_eq!(set(&with(&confined), &of("eu-arena"))["readonly"], true);
    assert_refused(score(&with(&write), "eu-arena", "a"), WHY, "the board");
    set(&with(&admin), &all);
    assert_refused(score(&with(&write), "arena", "a"), WHY, "the service");
    assert_eq!(with(&confined).get("/v1/status").1["read_only"]["reason"], WHY);
    let log = node.log();
    for (what, parts) in [
        ("a board was made read-only", ["eu-operator", "eu-arena", WHY]),
        ("the service was made read-only", ["operator", "/v1/readonly", WHY]),
    ] {
        let line = log.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {log}"));
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
}

/// Jobs that come over the stream are judged where they stand in it: on all nodes, and after kills.
#[test]
fn nodes_on_the_same_streams_agree_which_jobs_came_while_the_service_was_read_only() {
    let nats = Nats::start();
    let mut nodes = [(); 2].map(|()| Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start());
    define(&nodes[0].client());
    let job = |n: usize, score: usize| json!({ "board": "arena", "member": format!("m{n}"), "score": score });
    let jobs = |score: usize| (0..30).map(|n| job(n, score)).collect::<Vec<_>>();
    let mut sequences = nats.publish_jobs(SHARDS, &jobs(100), 5);
    freeze(&nodes[1].client());
    wait_until("the other node knows", || nodes[0].client().get("/v1/status").1["read_only"].is_object());
    for node in &nodes {
        assert_refused(score(&node.client(), "arena", "m0"), WHY, "a job");
        assert_refused(node.client().put("/v1/boards/new", &json!({})), WHY, "a definition");
        assert_refused(score(&node.client(), "unheard-of", "m0"), WHY, "a new board");
    }
    let of_first =
        |n: &usize| shard_of(&MemberId::new(format!("m{n}")).expect("a good id"), SHARDS) == ShardId(0);
    let member = (0..30).find(of_first).expect("there is one");
    let game = GameService::connect(&nats.url());
    let Answer::Said(status, answer) = game.write(&job(member, 9)) else { panic!("it is answered") };
    assert_refused((status, answer), WHY, "the write service");
    let late: Vec<Value> = jobs(200)
        .into_iter()
        .chain([json!({ "member": "m7", "op": "remove" }), json!({ "member": "m8", "op": "hide" })])
        .chain([json!({ "board": "unheard-of", "member": "m9", "score": 1 })])
        .collect();
    sequences = [sequences, nats.publish_jobs(SHARDS, &late, 1)].concat();
    let last: Vec<u64> = (0..usize::from(SHARDS))
        .map(|shard| shard_status(&nodes[0].client(), shard)["last_sequence"].as_u64().unwrap_or_default())
        .collect();
    drop(sequences);
    for node in &nodes {
        wait_applied(&node.client(), &last);
    }
    let check = |node: &Node| {
        let client = node.client();
        let (_, top) = client.get("/v1/boards/arena/top?limit=100");
        let entries = top["entries"].as_array().expect("a list");
        assert_eq!(entries.len(), 30, "{top}");
        assert!(entries.iter().all(|entry| entry["score"] == 100), "{top}");
        let (_, rejects) = client.get("/v1/rejects?reason=read_only&limit=100");
        assert_eq!(rejects["rejects"].as_array().map(Vec::len), Some(late.len()), "{rejects}");
        assert_eq!(client.get("/v1/boards/unheard-of").0, 404);
    };
    wait_until("the rejects are there", || {
        let (_, rejects) = nodes[1].client().get("/v1/rejects?reason=read_only&limit=100");
        rejects["rejects"].as_array().map(Vec::len) == Some(late.len())
    });
    nodes.iter().for_each(check);
    for node in &mut nodes {
        node.kill9();
        node.restart();
        wait_until("it is ready", || node.client().get("/readyz").0 == 200);
        check(node);
        assert_refused(score(&node.client(), "arena", "m0"), WHY, "after a kill");
    }
    // An owner that begins with nothing has it from the log or a copy.
    let new = Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start();
    wait_until("the new node is ready", || new.client().get("/readyz").0 == 200);
    check(&new);
    assert_refused(score(&new.client(), "arena", "m0"), WHY, "on a new node");

    free(&new.client());
    for node in nodes.iter().chain([&new]) {
        wait_until("it takes writes", || score(&node.client(), "arena", "m0").0 < 300);
        assert_eq!(node.client().get("/v1/status").1["read_only"], Value::Null);
    }
    for node in &nodes {
        for shard in 0..usize::from(SHARDS) {
            assert_ne!(shard_status(&node.client(), shard)["state"], "halted", "replicas agree");
        }
    }
}

/// The boards' stream is lost: what was decided of the service and of boards is on the shards.
#[test]
fn being_read_only_outlasts_the_boards_stream() {
    let nats = Nats::start();
    let mut node = Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start();
    define(&node.client());
    set(&node.client(), &json!({ "board": "arena", "readonly": true, "reason": "of the board" }));
    freeze(&node.client());
    assert!(node.terminate().success());
    nats.delete("RANKTREE_BOARDS");
    node.restart();
    wait_until("it is ready", || node.client().get("/readyz").0 == 200);
    assert_refused(score(&node.client(), "arena", "m0"), WHY, "the service");
    wait_until("it is recorded again", || {
        nats.last_of("RANKTREE_BOARDS", "ranktree.boards.%2Eservice").is_some()
    });
    free(&node.client());
    assert_refused(score(&node.client(), "arena", "m0"), "of the board", "the board");
    set(&node.client(), &json!({ "board": "arena", "readonly": false }));
    assert!(score(&node.client(), "arena", "m0").0 < 300);
}
