//! One definition per board, the first one, on all shards and nodes, even while jobs create the same board.

use std::thread;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, count_of, entry_path};
use crate::support::command::command;
use crate::support::nats::{Nats, shard_status, wait_applied, wait_freed, wait_until};
use crate::support::node::Node;
use crate::support::tokens::new_token;

const SHARDS: u16 = 3;
const ROUNDS: usize = 12;
const MEMBERS: usize = 60;

fn parked(client: &Client) -> usize {
    let (_, answer) = client.get("/v1/status");
    answer["shards"].as_array().expect("a list").iter().map(|shard| count_of(&shard["parked"])).sum()
}

/// Two nodes, each with all shards, as replicas. Clients define the same board differently through either,
/// while jobs name it on every shard.
#[test]
fn concurrent_definitions_and_jobs_agree_on_one_definition_everywhere() {
    let nats = Nats::start();
    let mut nodes = [(); 2].map(|()| Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start());
    let mut last = Vec::new();
    for round in 0..ROUNDS {
        let board = format!("b{round}");
        let path = format!("/v1/boards/{board}");
        let jobs: Vec<Value> = (0..MEMBERS)
            .flat_map(|n| {
                [5, 3].map(|score| json!({ "board": board, "member": format!("m{n}"), "score": score }))
            })
            .collect();
        let mut statuses = Vec::new();
        thread::scope(|scope| {
            let define = |node: &Node, policy: &'static str| {
                let (client, path) = (node.client(), path.clone());
                // Two policies of a board may follow each other, and two rules for ties may not. Neither is
                // the one of a board that a job makes.
                let ties = if policy == "best" { "member" } else { "last" };
                let definition = json!({ "policy": policy, "ties": ties });
                scope.spawn(move || (policy, client.put(&path, &definition)))
            };
            let [one, two] = &nodes;
            let defining =
                [define(one, "best"), define(two, "incr"), define(one, "incr"), define(two, "best")];
            last = nats.publish_jobs(SHARDS, &jobs, 1);
            statuses = defining.map(|defining| defining.join().expect("no panic")).to_vec();
        });
        for node in &nodes {
            wait_applied(&node.client(), &last);
            wait_freed(&nats, &node.client(), SHARDS);
        }
        let [one, two] = &nodes;
        let policy = one.client().get(&path).1["policy"].as_str().expect("a policy").to_owned();
        assert_eq!(two.client().get(&path).1["policy"], policy.as_str());
        for (wanted, (status, answer)) in &statuses {
            let agreed = matches!(status, 200 | 201);
            assert_eq!(agreed, *wanted == policy, "{wanted}, and it is {policy}: {status} {answer}");
            assert!(agreed || *status == 409, "{status} {answer}");
        }
        let expected = match policy.as_str() {
            "best" => 5,
            "incr" => 8,
            _ => 3,
        };
        for node in &nodes {
            let (_, top) = node.client().get(&format!("{path}/top?limit=1000"));
            assert_eq!(count_of(&top["total"]), MEMBERS);
            let entries = top["entries"].as_array().expect("a list");
            assert!(entries.iter().all(|entry| entry["score"] == expected), "{policy}: {top}");
        }
    }
    for node in &mut nodes {
        node.kill9();
        node.restart();
    }
    let boards = nodes.each_ref().map(|node| {
        wait_applied(&node.client(), &last);
        node.client().get("/v1/boards?limit=1000").1["boards"].clone()
    });
    assert_eq!(boards[0], boards[1]);
    assert_eq!(boards[0].as_array().map(Vec::len), Some(ROUNDS));
    for mut node in nodes {
        assert!(node.terminate().success());
        node.verify();
    }
}

#[test]
fn a_dropped_board_is_removed_everywhere_and_its_name_is_free_again() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(SHARDS).start();
    for policy in ["best", "incr", "set"] {
        let client = service.client();
        let (status, answer) = client.put("/v1/boards/a.b", &json!({ "policy": policy }));
        assert_eq!(status, 201, "{answer}");
        let jobs: Vec<_> =
            (0..20).map(|n| json!({ "board": "a.b", "member": format!("m{n}"), "score": n })).collect();
        wait_applied(&client, &nats.publish_jobs(SHARDS, &jobs, 3));
        assert_eq!(count_of(&client.get("/v1/boards/a.b/top").1["total"]), 20);
        let (status, answer) =
            client.send(ureq::http::Method::DELETE, "/v1/boards/a.b", None).expect("it answers");
        assert_eq!(status, 200, "{answer}");
        assert_eq!(client.get("/v1/boards/a.b").0, 404);
        service.kill9();
        service.restart();
        assert_eq!(service.client().get("/v1/boards/a.b").0, 404);
        let (status, _) =
            service.client().send(ureq::http::Method::DELETE, "/v1/boards/a.b", None).expect("it answers");
        assert_eq!(status, 404);
        service.kill9();
        service.restart();
    }
    assert!(service.terminate().success());
    service.verify();
}

/// On every shard the first job that names a board arrives before the board's definition. A client that waits
/// for the job waits for the board.
#[test]
fn a_write_that_waits_for_a_new_board_gets_its_result() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).start();
    let client = service.client();
    let path = entry_path("first", "a");
    let (status, answer) = client.put(&format!("{path}?wait=applied"), &json!({ "score": 1 }));
    assert_eq!(
        (status, &answer["changed"], &answer["previous"]),
        (200, &json!(true), &Value::Null),
        "{answer}"
    );
    assert_eq!((&answer["entry"]["score"], &answer["entry"]["rank"]), (&json!(1), &json!(1)), "{answer}");
    // A client that has the answer can read its write, with its token and without.
    let token = answer["token"].as_str().expect("a token").to_owned();
    for path in [path.clone(), format!("{path}?after={token}")] {
        assert_eq!(client.get(&path).1["score"], 1, "{path}");
    }
    let jobs = json!([
        { "board": "first", "member": "b", "score": 1 },
        { "board": "second", "member": "a", "score": 1 },
        { "board": "first", "member": "a", "score": 3, "meta": { "n": 1 } }
    ]);
    let (status, answer) = client.post("/v1/jobs?wait=applied", &jobs);
    assert_eq!(status, 200, "{answer}");
    // The last job waited behind the other job of its member.
    let ranks: Vec<_> =
        answer["results"].as_array().expect("a list").iter().map(|result| &result["entry"]["rank"]).collect();
    assert_eq!(ranks, [&json!(1), &json!(1), &json!(1)], "{answer}");
    let last = &answer["results"][2];
    assert_eq!(
        (&last["previous"]["score"], &last["entry"]["meta"]),
        (&json!(1), &json!({ "n": 1 })),
        "{answer}"
    );
    assert!(service.terminate().success());
    service.verify();
}

/// A shard that is far behind its stream reads very many jobs before the definitions of their boards. All are
/// applied, even if a crash comes while they are unparked, and none is rejected.
#[test]
fn all_of_many_parked_jobs_are_applied() {
    const WAITING: usize = 103_000;
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(64).start();
    assert!(service.terminate().success());
    let jobs: Vec<Value> = (0..WAITING)
        .map(|n| json!({ "board": format!("b{}", n % 5), "member": format!("m{n}"), "score": n }))
        .collect();
    let last = nats.publish_jobs(1, &jobs, 1_000);
    service.restart();
    wait_until("some wait no longer", || {
        let status = shard_status(&service.client(), 0);
        count_of(&status["applied_sequence"]) >= usize::try_from(last[0]).expect("small")
            && count_of(&status["parked"]) < WAITING
    });
    service.kill9();
    service.restart();
    wait_applied(&service.client(), &last);
    let client = service.client();
    wait_freed(&nats, &client, 1);
    assert_eq!(count_of(&shard_status(&client, 0)["rejects"]), 0);
    for board in 0..5 {
        let (_, top) = client.get(&format!("/v1/boards/b{board}/top?limit=1"));
        assert_eq!(count_of(&top["total"]), WAITING / 5);
        assert_eq!(count_of(&top["entries"][0]["score"]), WAITING - 5 + board);
    }
    // A later write of a member whose jobs waited is applied at once.
    let (status, answer) =
        client.put(&format!("{}?wait=applied", entry_path("b0", "m0")), &json!({ "score": 1 }));
    assert_eq!((status, &answer["previous"]["score"]), (200, &json!(0)), "{answer}");
    assert!(service.terminate().success());
    service.verify();
}

/// The count of changes that an import prints is right, even if its rows create their boards.
#[test]
fn an_import_into_new_boards_counts_its_changes() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut service = Node::with_nats(&nats).shards(2).start();
    let rows: Vec<String> = (0..300)
        .map(|n| json!({ "board": format!("b{}", n % 30), "member": format!("m{}", n % 100), "score": n }))
        .map(|row| row.to_string())
        .collect();
    let file = folder.path().join("rows.ndjson");
    std::fs::write(&file, rows.join("\n")).expect("it can be written");
    let mut import = command();
    import.arg("import").arg(&file).args(["--url", service.base()]);
    let done = import.output().expect("the binary can be started");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}");
    for line in ["applied                300", "  changed              300", "rejected                 0"] {
        assert!(said.lines().any(|found| found == line), "{line:?} in {said}");
    }
    assert!(service.terminate().success());
}

#[test]
fn without_auto_create_a_job_for_an_unknown_board_is_rejected() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).flags(&["--no-auto-create"]).start();
    let client = service.client();
    let last = nats.publish("ranktree.jobs.0", r#"{"board":"arena","member":"a","score":1}"#);
    wait_applied(&client, &[last]);
    let (_, status) = client.get("/v1/status");
    assert_eq!((count_of(&status["shards"][0]["rejects"]), parked(&client)), (1, 0));
    assert_eq!(client.get("/v1/boards/arena").0, 404);
    assert!(service.terminate().success());
}

/// The node that creates a board for a job later does not know the token. So the limit is checked before the
/// job is published.
#[test]
fn a_tokens_limit_of_boards_holds_with_nats() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let limits = ["--board-prefix", "eu-", "--max-boards", "2"];
    let (secret, lines) = new_token(&[&["--scope", "write", "--name", "game"][..], &limits].concat());
    let tokens = folder.path().join("tokens.toml");
    std::fs::write(&tokens, lines).expect("it can be written");
    let (url, tokens) = (nats.url(), tokens.to_str().expect("UTF-8").to_owned());
    let mut service = Node::with_nats(&url).shards(2).stream_mib(16).flags(&["--tokens", &tokens]).start();
    let client = service.client().with_token(&secret);
    let score = |board: &str| client.put(&entry_path(board, "m"), &json!({"score": 1}));
    assert_eq!(score("eu-1").0, 202);
    let job = |board: &str| json!({"board": board, "member": "m", "score": 1});
    let two = client.post("/v1/jobs", &json!([job("eu-2"), job("eu-3")]));
    assert_eq!((two.0, &two.1["code"]), (422, &json!("too_many_boards")), "{}", two.1);
    assert_eq!(score("eu-2").0, 202);
    assert_eq!(score("eu-3").1["code"], "too_many_boards");
    assert_eq!(score("eu-1").0, 202, "it is there");
    let boards = client.get("/v1/boards").1;
    let names: Vec<_> =
        boards["boards"].as_array().expect("a list").iter().map(|board| &board["board"]).collect();
    assert_eq!(names, [&json!("eu-1"), &json!("eu-2")]);
    wait_until("the entry is there", || client.get(&entry_path("eu-2", "m")).0 == 200);
    assert!(service.terminate().success());
}

/// Someone who may publish into the boards' stream stores records with numbers that leave none for later
/// ones.
#[test]
fn record_with_a_forged_number_does_not_spoil_its_board() {
    let nats = Nats::start();
    let mut node = Node::with_nats(&nats).start();
    let client = node.client();
    let (status, answer) = client.put("/v1/boards/held", &json!({}));
    assert_eq!(status, 201, "{answer}");
    let definition = nats.message("RANKTREE_BOARDS", 1)["definition"].clone();
    assert!(definition.is_object(), "{definition}");
    let forged = [
        json!({ "number": u64::MAX, "definition": definition }),
        json!({ "number": -1, "definition": definition }),
        json!({ "incarnation": u64::MAX, "number": u64::MAX }),
    ];
    for record in &forged {
        for board in ["held", "big"] {
            nats.publish(&format!("ranktree.boards.{board}"), record.to_string());
        }
    }
    for round in 0..2 {
        for board in ["held", "big"] {
            let path = format!("/v1/boards/{board}");
            let member = format!("{}?wait=applied", entry_path(board, "m"));
            let (status, answer) = client.put(&path, &json!({}));
            assert!(matches!(status, 200 | 201), "{board}, {round}: {answer}");
            let (status, answer) = client.put(&member, &json!({ "score": 1 }));
            assert_eq!(status, 200, "{board}, {round}: {answer}");
            let (status, answer) = client.send(Method::DELETE, &path, None).expect("the service is there");
            assert_eq!(status, 200, "{board}, {round}: {answer}");
        }
    }
    assert_eq!(parked(&client), 0);
    assert!(node.terminate().success());
    node.verify();
}
