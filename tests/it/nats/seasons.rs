//! Windows and seasons of boards that several nodes share.

use std::thread;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;

const SHARDS: u16 = 3;
const BOARD: &str = "/v1/boards/league";
/// Opens one after another, however soon.
const SEASONS: &str = "/v1/boards/league/seasons?force=true";

fn manual() -> Value {
    json!({ "windows": ["all", "season"], "season": "manual" })
}

fn at(seconds: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).to_string()
}

fn recorded(nats: &Nats) -> Value {
    let last = nats.last_of("RANKTREE_BOARDS", "ranktree.boards.league").expect("it is recorded");
    last["definition"]["season"]["manual"].clone()
}

/// Requests on two nodes at the same moment, again and again. Every season is opened by one of them, and all
/// nodes know the same ones, also after they were killed.
#[test]
fn a_season_is_opened_by_one_of_two_requests_on_two_nodes() {
    let nats = Nats::start();
    let mut nodes = [(); 2].map(|()| Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start());
    let (status, answer) = nodes[0].client().put(BOARD, &manual());
    assert_eq!(status, 201, "{answer}");
    wait_until("the other node knows the board", || nodes[1].client().get(BOARD).0 == 200);
    let mut opened = 0;
    for round in 0..10 {
        let begin = json!({ "at": at(3_600 + round) });
        let answers = thread::scope(|scope| {
            let open = |node: &Node| {
                let (client, begin) = (node.client(), begin.clone());
                scope.spawn(move || client.post(SEASONS, &begin))
            };
            let opening = [open(&nodes[0]), open(&nodes[1])];
            opening.map(|opening| opening.join().expect("no panic"))
        });
        let mut won = 0;
        for (status, answer) in answers {
            if status == 201 {
                won += 1;
                opened += 1;
                assert_eq!(answer["season"], format!("s{opened}"), "{answer}");
            } else {
                // It was refused because of the other one: either it had seen the same number, or it came
                // after it with the same time.
                assert_eq!((status, &answer["code"]), (409, &json!("season_conflict")), "{answer}");
            }
        }
        assert_eq!(won, 1, "round {round}");
    }
    let begins = recorded(&nats);
    assert_eq!(begins.as_array().map(Vec::len), Some(10), "{begins}");
    for node in &mut nodes {
        // The same definition is the same board, and its seasons stay.
        let (status, answer) = node.client().put(BOARD, &manual());
        assert_eq!((status, &answer["season"]), (200, &json!("manual")), "{answer}");
        assert_eq!(recorded(&nats), begins);
        let (status, answer) = node.client().post(SEASONS, &json!({}));
        assert_eq!((status, &answer["code"]), (409, &json!("season_conflict")), "{answer}");
        node.kill9();
        node.restart();
    }
    let (status, answer) = nodes[0].client().post(SEASONS, &json!({ "at": at(7_200) }));
    assert_eq!((status, &answer["season"]), (201, &json!("s11")), "{answer}");
    for node in &mut nodes {
        assert!(node.terminate().success());
        node.verify();
    }
}

/// Requests on another node than the one that planned the season, at the moment at which it begins: jobs that
/// came meanwhile stay where they are, and nodes agree after one of them was killed.
#[test]
fn a_season_that_begins_in_a_moment_is_not_taken_back_through_any_node() {
    let nats = Nats::start();
    let mut nodes = [(); 2].map(|()| Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start());
    let clients: [Client; 2] = nodes.each_ref().map(Node::client);
    assert_eq!(clients[0].put(BOARD, &manual()).0, 201);
    wait_until("the other node knows the board", || clients[1].get(BOARD).0 == 200);
    let (status, opened) = clients[0].post(SEASONS, &json!({}));
    assert_eq!(status, 201, "{opened}");
    let begin: jiff::Timestamp = opened["begin"].as_str().expect("a time").parse().expect("a time");
    let season = "/v1/boards/league/seasons/s1";
    let mut tried = 0;
    // Until a moment after it has begun.
    while jiff::Timestamp::now() < begin + jiff::SignedDuration::from_millis(300) {
        let client = &clients[tried % 2];
        let job = json!([{ "board": "league", "member": format!("m{tried}"), "score": 1 }]);
        assert!(client.post("/v1/jobs?wait=applied", &job).0 < 300);
        for (status, answer) in [
            clients[1].put(season, &json!({ "at": at(86_400) })),
            clients[1].send(ureq::http::Method::DELETE, season, None).expect("an answer"),
        ] {
            assert_eq!((status, &answer["code"]), (409, &json!("season_conflict")), "{answer}");
        }
        tried += 1;
    }
    let job = json!([{ "board": "league", "member": "last", "score": 1 }]);
    assert!(clients[0].post("/v1/jobs?wait=applied", &job).0 < 300);
    let totals = |client: &Client| {
        ["all", "s1"].map(|window| client.get(&format!("{BOARD}/top?window={window}")).1["total"].clone())
    };
    let [all, of_season] = totals(&clients[0]);
    assert_eq!(all, json!(tried + 1));
    assert!(of_season.as_u64().is_some_and(|total| total > 0), "{of_season}");
    nodes[1].kill9();
    nodes[1].restart();
    wait_until("it has all of it", || totals(&nodes[1].client()) == [all.clone(), of_season.clone()]);
    for node in &mut nodes {
        assert!(node.terminate().success());
        node.verify();
    }
}

/// Every node decides the change from what was decided last, and the same request again changes nothing.
#[test]
fn lengths_change_through_any_node_and_plain_boards_stay_as_older_nodes_read_them() {
    let nats = Nats::start();
    let mut nodes = [(); 2].map(|()| Node::with_nats(&nats).shards(SHARDS).stream_mib(16).start());
    let clients: [Client; 2] = nodes.each_ref().map(Node::client);
    let definition = |every: &str, grace: &str| {
        json!({
            "windows": ["all", "season"], "grace": grace, "entry_ttl": "30d",
            "season": { "starts": "2020-01-01T00:00:00Z", "every": every }
        })
    };
    let series = || {
        let last = nats.last_of("RANKTREE_BOARDS", "ranktree.boards.league").expect("it is recorded");
        assert_eq!(last["format"], 2, "{last}");
        last["definition"]["season"]["regular"].as_array().map(Vec::len)
    };
    for (number, (every, grace, shown, expected)) in [
        ("14d", "5m", "2w", Some(1)),
        ("14d", "0s", "2w", Some(1)),
        ("7d", "0s", "1w", Some(2)),
        ("7d", "0s", "1w", Some(2)),
        ("14d", "1h", "2w", Some(1)),
    ]
    .into_iter()
    .enumerate()
    {
        for turn in 0..2 {
            let client = &clients[(number + turn) % 2];
            let (status, answer) = client.put(BOARD, &definition(every, grace));
            assert_eq!(status, if number + turn == 0 { 201 } else { 200 }, "{answer}");
            assert_eq!((&answer["season"]["every"], &answer["grace"]), (&json!(shown), &json!(grace)));
            assert_eq!(answer["entry_ttl"], "30d");
            assert_eq!(series(), expected);
        }
    }
    let (status, answer) = clients[0].post("/v1/boards/none/seasons", &json!({}));
    assert_eq!((status, &answer["code"]), (404, &json!("unknown_board")), "{answer}");
    let (status, answer) = clients[1].put("/v1/boards/plain", &json!({ "keep": 3 }));
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = clients[1].post("/v1/boards/plain/seasons", &json!({}));
    assert_eq!((status, &answer["code"]), (409, &json!("no_manual_seasons")), "{answer}");
    let plain = nats.last_of("RANKTREE_BOARDS", "ranktree.boards.plain").expect("it is recorded");
    let fields: Vec<&String> = plain["definition"].as_object().expect("an object").keys().collect();
    assert_eq!((fields.len(), &plain["format"]), (5, &Value::Null), "{plain}");
    for node in &mut nodes {
        assert!(node.terminate().success());
        node.verify();
    }
}
