//! Boards by the thousand: made by their first jobs without a round trip for each. A board that is gone stays gone, whenever a
//! late definition of it arrives.

use std::time::Duration;

use async_nats::HeaderMap;
use ranktree::state::Shard;
use ranktree::storage::{StorageResources, Store, TreesFrom, recover, shard_directory};
use ranktree::types::ShardId;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::binary::Binary;
use crate::support::late_link::LateLink;
use crate::support::nats::{Nats, wait_applied, wait_freed};

const SHARDS: u16 = 2;

/// A round trip takes a quarter of a second: one after the other, so many boards would take far longer than is waited.
#[test]
fn a_thousand_boards_are_made_by_their_first_jobs_without_a_round_trip_for_each() {
    const BOARDS: usize = 1_000;
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let link =
        LateLink::start(nats.url().strip_prefix("nats://").expect("a URL"), Duration::from_millis(125));
    let url = format!("nats://{}", link.address());
    let mut service = Binary::start(&folder.path().join("data"), SHARDS, &["--nats", &url]);
    let client = service.client();
    let jobs: Vec<_> = (0..BOARDS)
        .flat_map(|n| {
            let board = format!("match-{n}");
            ["a", "b"].map(|member| json!({ "board": board, "member": member, "score": n }))
        })
        .collect();
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

fn open(service: &Binary) -> Vec<Shard> {
    let resources = StorageResources::new(8 << 20, SHARDS);
    let shards = (0..SHARDS).map(ShardId).map(|shard| {
        let path = shard_directory(service.data_dir(), shard);
        let store = Store::open(&path, shard, SHARDS, &resources).expect("it opens");
        recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("it can be read").shard
    });
    shards.collect()
}

#[test]
fn late_definitions_do_not_bring_back_boards_that_came_and_went() {
    const BOARDS: usize = 20;
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut service = Binary::start(&folder.path().join("data"), SHARDS, &["--nats", &nats.url()]);
    let client = service.client();
    let delete = |board: &str| {
        let path = format!("/v1/boards/{board}");
        let (status, answer) = client.send(Method::DELETE, &path, None).expect("it answers");
        assert_eq!(status, 200, "{board}: {answer}");
    };
    assert_eq!(client.put("/v1/boards/stays", &json!({})).0, 201);
    for number in 0..BOARDS {
        let board = format!("match-{number}");
        assert_eq!(client.put(&format!("/v1/boards/{board}"), &json!({})).0, 201);
        delete(&board);
    }
    // Somebody published a definition before, and it arrives now: of a board that went long ago.
    let sequences = 1..=nats.info("RANKTREE_JOBS_0").state.last_sequence;
    let define = sequences
        .map(|sequence| nats.message("RANKTREE_JOBS_0", sequence))
        .find(|message| message["board"] == "match-3" && message["definition"] != Value::Null);
    let define = define.expect("it was defined").to_string();
    let mut headers = HeaderMap::new();
    headers.insert("Ranktree-Command", "define");
    let last = nats.try_publish_with("ranktree.control.0", define.as_bytes(), headers);
    wait_applied(&client, &[last.expect("it is stored"), 0]);
    service.kill9();
    service.restart();
    assert!(service.terminate().success());
    for shard in open(&service) {
        assert_eq!(shard.board_count(), 1, "shard {}", shard.id);
        assert!(shard.board("stays").is_some());
    }
    service.verify();
}
