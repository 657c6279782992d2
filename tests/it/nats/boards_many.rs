//! Thousands of boards: their first jobs create them without a round trip for each. A dropped board stays
//! dropped, even if a late definition of it arrives, and leaves few records.

use std::time::Duration;

use async_nats::HeaderMap;
use ranktree::state::{Incarnation, REMEMBERED_MAX, RecordNumber, Shard};
use ranktree::storage::{StorageResources, Store, TreesFrom, recover, shard_directory};
use ranktree::types::ShardId;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::Client;
use crate::support::late_link::LateLink;
use crate::support::nats::{Nats, wait_applied, wait_freed, wait_until};
use crate::support::node::Node;

const SHARDS: u16 = 2;

/// A round trip takes a quarter of a second: with one round trip for each board, the test would time out.
#[test]
fn a_thousand_boards_are_created_by_their_first_jobs_without_a_round_trip_for_each() {
    const BOARDS: usize = 1_000;
    let nats = Nats::start();
    let link =
        LateLink::start(nats.url().strip_prefix("nats://").expect("a URL"), Duration::from_millis(125));
    let url = format!("nats://{}", link.address());
    let mut service = Node::with_nats(&url).shards(SHARDS).start();
    let client = service.client();
    let jobs: Vec<_> = (0..BOARDS)
        .flat_map(|n| {
            let board = format!("match-{n}");
            ["a", "b"].map(|member| json!({ "board": board, "member": member, "score": n }))
        })
        .collect();
    wait_until("the streams are there", || client.get("/readyz").0 == 200);
    let last = nats.publish_jobs(SHARDS, &jobs, 1_000);
    wait_applied(&client, &last);
    wait_freed(&nats, &client, SHARDS);
    let boards = client.get("/v1/boards?limit=1000").1;
    let boards = boards["boards"].as_array().expect("a list");
    assert_eq!(boards.len(), BOARDS);
    assert!(boards.iter().all(|board| board["totals"]["all"] == 2), "{boards:?}");
    assert!(service.terminate().success());
    service.verify();
}

fn open(service: &Node) -> Vec<Shard> {
    let resources = StorageResources::new(8 << 20, SHARDS);
    let shards = (0..SHARDS).map(ShardId).map(|shard| {
        let path = shard_directory(service.data_dir(), shard);
        let store = Store::open(&path, shard, SHARDS, &resources).expect("it opens");
        recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("it can be read").shard
    });
    shards.collect()
}

fn command(name: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("Ranktree-Command", name);
    headers
}

/// The definition of a board that a shard's stream holds.
fn definition_in(nats: &Nats, stream: &str, board: &str) -> Value {
    let count = nats.info(stream).state.messages;
    let messages = nats.messages(stream, 1, usize::try_from(count).expect("it fits"));
    let is_it = |message: &Value| message["board"] == board && message["definition"] != Value::Null;
    messages.into_iter().find(is_it).expect("it was defined")
}

/// Boards are created and dropped, most of them by another node, which stores its decisions in the boards'
/// stream.
#[test]
fn dropped_boards_leave_few_records_and_late_definitions_do_not_recreate_them() {
    const BOARDS: usize = 100;
    const OTHERS: usize = 11_000;
    const BOARDS_STREAM: &str = "RANKTREE_BOARDS";
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(SHARDS).start();
    let client = service.client();
    let delete = |board: &str| {
        let path = format!("/v1/boards/{board}");
        let (status, answer) = client.send(Method::DELETE, &path, None).expect("it answers");
        assert_eq!(status, 200, "{board}: {answer}");
    };
    let score = |board: &str, score: u32| {
        let jobs = ["a", "b", "c"].map(|member| json!({ "board": board, "member": member, "score": score }));
        wait_applied(&client, &nats.publish_jobs(SHARDS, &jobs, 1));
        let total = || client.get(&format!("/v1/boards/{board}")).1["totals"]["all"] == 3;
        wait_until("the board has its members", total);
    };
    assert_eq!(client.put("/v1/boards/stays", &json!({})).0, 201);
    score("stays", 1);
    for number in 0..BOARDS {
        assert_eq!(client.put(&format!("/v1/boards/match-{number}"), &json!({})).0, 201);
    }
    let late = ["match-3", "match-4"].map(|board| definition_in(&nats, "RANKTREE_JOBS_0", board));
    (0..BOARDS).for_each(|number| delete(&format!("match-{number}")));
    let tombstones = (0..OTHERS).map(|number| {
        let subject = format!("ranktree.boards.other-{number}");
        (subject, HeaderMap::new(), json!({ "incarnation": 1 }).to_string())
    });
    nats.publish_all(tombstones);
    wait_until("the stream keeps few records of what is gone", || {
        nats.info(BOARDS_STREAM).state.messages <= 10_001
    });
    // Drops with later numbers may be delivered first. The shards then forget drops up to the numbers of the
    // others, which need not be delivered any more.
    let has_heard = |shard: u16| {
        let shard = format!("RANKTREE_JOBS_{shard}");
        let last = nats.info(&shard).state.last_sequence;
        usize::try_from(last).is_ok_and(|last| last > REMEMBERED_MAX + BOARDS)
    };
    wait_until("the shards are told of more than they remember", || (0..SHARDS).all(has_heard));
    // The name of a board whose record was deleted can be used again.
    assert_eq!(client.put("/v1/boards/match-3", &json!({})).0, 201);
    score("match-3", 7);
    // Late definitions arrive: of boards that were dropped long ago, one of which exists again.
    let late = late.map(|define| ("ranktree.control.0".to_owned(), command("define"), define.to_string()));
    let last = nats.publish_all(late);
    wait_applied(&client, &[last, 0]);
    let boards = || {
        let boards = client.get("/v1/boards?limit=1000").1["boards"].clone();
        let boards = boards.as_array().expect("a list").clone();
        boards.into_iter().map(|board| (board["board"].clone(), board["totals"]["all"].clone()))
    };
    let expected = ["match-3", "stays"].map(|board| (json!(board), json!(3)));
    assert!(boards().eq(expected.clone()), "{:?}", boards().collect::<Vec<_>>());
    service.kill9();
    service.restart();
    let client = service.client();
    wait_until("boards can be decided, and it is there", || {
        client.put("/v1/boards/match-3", &json!({})).0 == 200
    });
    assert_eq!(client.get("/v1/boards/match-4").0, 404);
    assert!(service.terminate().success());
    for shard in open(&service) {
        let names: Vec<_> = shard.boards().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["match-3", "stays"], "shard {}", shard.id);
        let dropped = shard.dropped();
        assert!(dropped.len() <= REMEMBERED_MAX, "shard {} remembers {} drops", shard.id, dropped.len());
        assert!(!dropped.is_empty() && dropped.forgotten() > RecordNumber(0), "shard {}", shard.id);
    }
    service.verify();
}

/// A shard misses the definition of a board, and then forgets drops that were decided after it. The board
/// must not be taken for a dropped one: it is delivered to the shard with a later record, and no other shard
/// loses entries.
#[test]
fn a_definition_lost_in_a_gap_is_restored_and_no_board_is_lost() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(SHARDS).start();
    let client = service.client();
    let members: Vec<String> = (0..20).map(|number| format!("m{number}")).collect();
    let jobs = |board: &str| -> Vec<Value> {
        members.iter().map(|member| json!({ "board": board, "member": member, "score": 5 })).collect()
    };
    assert_eq!(client.put("/v1/boards/stays", &json!({})).0, 201);
    wait_applied(&client, &nats.publish_jobs(SHARDS, &jobs("stays"), 1));
    let definition = definition_in(&nats, "RANKTREE_JOBS_0", "stays")["definition"].clone();
    assert!(service.terminate().success());
    // Another node defines a board, and drops many older ones. Shard 0 does not get the definition.
    let record = json!({ "definition": definition }).to_string();
    let number = nats.publish("ranktree.boards.lives", record);
    let define = json!({ "board": "lives", "incarnation": number, "definition": definition }).to_string();
    let gap = nats.publish_all([("ranktree.control.0".to_owned(), command("define"), define.clone())]);
    nats.publish_all([("ranktree.control.1".to_owned(), command("define"), define)]);
    let kept = nats.publish_jobs(SHARDS, &jobs("lives"), 1);
    let drops = |shard: u16| {
        (0..5_000).map(move |n| {
            let drop = json!({ "board": format!("gone-{n}"), "incarnation": number + 1 + n });
            (format!("ranktree.control.{shard}"), command("drop"), drop.to_string())
        })
    };
    let last = [nats.publish_all(drops(0)), nats.publish_all(drops(1))];
    nats.purge("RANKTREE_JOBS_0", gap + 1);
    service.restart_with(&["--accept-gap", "0"]);
    let total =
        |client: &Client, board: &str| client.get(&format!("/v1/boards/{board}")).1["totals"]["all"].clone();
    for restarts in [false, true] {
        if restarts {
            service.kill9();
            service.restart();
        }
        let client = service.client();
        wait_applied(&client, &last);
        for board in ["lives", "stays"] {
            wait_until(board, || total(&client, board) == members.len());
        }
        let boards = client.get("/v1/boards?limit=10").1["boards"].as_array().map(Vec::len);
        assert_eq!(boards, Some(2), "restarts: {restarts}");
    }
    assert!(kept.iter().zip(&last).all(|(kept, last)| kept < last));
    assert!(service.terminate().success());
    for shard in open(&service) {
        assert!(shard.dropped().forgotten() >= RecordNumber(number), "shard {}", shard.id);
        assert!(shard.board("lives").is_some_and(|board| board.incarnation == Incarnation(number)));
    }
    service.verify();
}
