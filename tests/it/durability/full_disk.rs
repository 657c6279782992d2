//! A full disk: writes are refused, reads are answered and marked stale, nothing answered is lost, and the
//! shards recover by themselves once there is room. A limit on file sizes simulates the full disk.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{Client, entry_path, score_of};
use crate::support::nats::wait_until;
use crate::support::node::{Node, limit_files};

const SHARDS: u16 = 2;
const MEMBERS: usize = 40;
/// Reopening is tried again after 10 s at the latest.
const HEALED_WITHIN: Duration = Duration::from_secs(120);

/// What was answered, by member.
type Scores = BTreeMap<String, i64>;

#[test]
fn on_a_full_disk_writes_are_refused_reads_are_answered_and_nothing_answered_is_lost() {
    // Checkpoints are due all the time, so that the disk fills up during checkpoints, too.
    let mut service =
        Node::shards(SHARDS).flags(&["--checkpoint-seconds", "1", "--checkpoint-changes", "1"]).start();
    let client = service.client();
    let mut answered = Scores::new();
    write_all(&client, 1, &mut answered);
    let entry = entry_path("noted", "m");
    let noted = json!({ "score": 1, "meta": { "car": "mx5" } });
    assert_eq!(client.put(&entry, &noted).0, 200);

    for round in 2..=3 {
        limit_files(&service, "0");
        refuse_all(&client, round * 100);
        // Every shard answers reads, marked stale.
        assert_eq!(read_all(&client, true), answered);
        let (status, rank) = client.get("/v1/boards/b/rank?score=-1");
        assert_eq!((status, &rank["stale"], &rank["total"]), (200, &json!(true), &json!(MEMBERS)), "{rank}");
        assert_eq!(client.get("/readyz").0, 503);
        assert_eq!(client.get("/healthz").0, 200);
        assert_eq!(client.get("/metrics").0, 200);
        let (status, answer) = client.get("/v1/status");
        assert_eq!(status, 200, "{answer}");
        let states = answer["shards"].as_array().expect("a list").iter();
        for shard in states {
            assert_eq!(shard["state"], "catching_up", "{shard}");
            assert!(shard["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{shard}");
        }

        // Metadata are on the disk, whose store is closed between two attempts to open it.
        wait_until("metadata are not answered", || client.get(&entry).1["meta"].is_null());

        limit_files(&service, "unlimited");
        wait_until_ready(&client);
        wait_until("it is logged", || service.log().contains("the store was reopened after a failed commit"));
        assert_eq!(client.get(&entry).1["meta"], noted["meta"]);
        assert_eq!(read_all(&client, false), answered, "what was refused was not applied");
        write_all(&client, round, &mut answered);
        assert_eq!(read_all(&client, false), answered);
    }

    service.kill9();
    service.verify();
    service.restart();
    assert_eq!(read_all(&service.client(), false), answered);

    // The service ends on a signal while the disk is full, and no answered write is lost.
    limit_files(&service, "0");
    refuse_all(&service.client(), 900);
    assert!(service.terminate().success());
    service.verify();
    service.restart();
    assert_eq!(read_all(&service.client(), false), answered);
}

fn members() -> impl Iterator<Item = String> {
    (0..MEMBERS).map(|number| format!("m{number}"))
}

fn write_all(client: &Client, round: i64, answered: &mut Scores) {
    for (member, extra) in members().zip(0..) {
        let score = round * 1_000 + extra;
        let (status, answer) = client.put(&entry_path("b", &member), &json!({ "score": score }));
        assert_eq!(status, 200, "{answer}");
        answered.insert(member, score);
    }
}

/// Every write is refused, even if its shard has not noticed the full disk yet.
fn refuse_all(client: &Client, score: i64) {
    for member in members() {
        let (status, answer) = client.put(&entry_path("b", &member), &json!({ "score": score }));
        assert_eq!(status, 503, "{answer}");
        assert!(answer["code"].is_string(), "{answer}");
    }
    let jobs: Vec<Value> =
        members().map(|member| json!({ "board": "b", "member": member, "score": score })).collect();
    let (status, answer) = client.post("/v1/jobs", &Value::from(jobs));
    assert_eq!(status, 503, "{answer}");
}

fn read_all(client: &Client, stale: bool) -> Scores {
    let mut scores = Scores::new();
    for member in members() {
        let (status, entry) = client.get(&entry_path("b", &member));
        assert_eq!(status, 200, "{entry}");
        assert_eq!(entry["stale"] == json!(true), stale, "{entry}");
        scores.insert(member, score_of(&entry["score"])[0]);
    }
    let (status, page) = client.get("/v1/boards/b/top?limit=1000");
    assert_eq!(status, 200, "{page}");
    let listed: Vec<i64> = page["entries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| score_of(&entry["score"])[0])
        .collect();
    let mut sorted: Vec<i64> = scores.values().copied().collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(listed, sorted, "the page ranks what the entries say");
    scores
}

fn wait_until_ready(client: &Client) {
    let until = Instant::now() + HEALED_WITHIN;
    while client.get("/readyz").0 != 200 {
        assert!(
            Instant::now() < until,
            "not ready {HEALED_WITHIN:?} after there was room: {:?}",
            client.get("/v1/status")
        );
        std::thread::yield_now();
    }
}
