//! A clock that is wrong for one write destroys nothing, and after a long stop a write counts where it
//! belongs at once. Clocks cannot be set here, so what an earlier node wrote by such a clock is written into
//! its data by the program's own planner.

use std::cell::Cell;
use std::path::Path;

use ranktree::board::Definition;
use ranktree::job::{Job, Op, Targets};
use ranktree::state_lock::StateLock;
use ranktree::storage::{Commit, StorageError, StorageResources, Store, TreesFrom, recover, shard_directory};
use ranktree::types::{BoardName, MemberId, Score, ShardId, Timestamp};
use ranktree::window::{Seasons, Window};
use ranktree::writer::{BoardChange, Defined, Message, Payload, Planner, Registry};
use serde_json::{Value, json};

use crate::support::client::{Client, count_of, entry_path};
use crate::support::nats::wait_until;
use crate::support::node::Node;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 24 * 60 * 60 * SECOND;

fn from_now(micros: i64) -> Timestamp {
    Timestamp::from_micros(jiff::Timestamp::now().as_microsecond() + micros).expect("in range")
}

/// What a node whose clock says this would have written before it stopped.
fn write_at(data_dir: &Path, timestamp: Timestamp, payload: impl FnOnce(&Registry) -> Payload) {
    let path = shard_directory(data_dir, ShardId(0));
    let resources = StorageResources::new(8 << 20, 1);
    let mut store = None;
    // A process that another test is starting holds the lock for as long as it is still this one.
    wait_until("it opens", || match Store::open(&path, ShardId(0), 1, &resources) {
        Ok(opened) => store.insert(opened).shard() == ShardId(0),
        Err(StorageError::InUse(_)) => false,
        Err(error) => panic!("it opens: {error}"),
    });
    let store = store.expect("it is open");
    let shard = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("it is whole").shard;
    let registry = Registry::new(true);
    registry.register_boards_of(&shard);
    let (sequence, time) = (shard.applied.sequence.next(), shard.known_time());
    let state = StateLock::new(shard);
    let planner = Planner {
        shard: &state,
        id: ShardId(0),
        shards: 1,
        registry: &registry,
        time,
        early: Cell::default(),
        hash: None,
        read_parked: &|_, _, _, _| Ok(Vec::new()),
        read_profile: &|_| Ok(None),
        read_metadata: &|_, _| Ok(None),
    };
    let payload = payload(&registry);
    let message = Message { sequence, timestamp, hash: 0, payload, bytes: 0, answer: None, traced: None };
    let plan = planner.plan(vec![message], None);
    let commit = Commit {
        applied: plan.applied,
        time: plan.time,
        delta: plan.delta,
        metadata: plan.metadata,
        dropped_trees: plan.dropped_trees,
        last_jobs: plan.last_jobs,
        job_ids: plan.job_ids,
        ..Commit::default()
    };
    store.commit(&commit, true).expect("the disk takes it");
}

fn one(member: &str, score: i64) -> Payload {
    let board = BoardName::new("b").expect("a good name");
    let score = Score::new(&[score]).expect("one key");
    let targets = Targets::Boards([(board, Some(score))].into_iter().collect());
    let member = MemberId::new(member).expect("a good id");
    let job = Job { member, targets, op: Some(Op::Set), version: None, at: None, meta: None, id: None };
    Payload::Jobs([Ok(job)].into_iter().collect())
}

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

/// The score of a member in the current season.
fn in_season(client: &Client, member: &str) -> i64 {
    let path = format!("{}?window=season", entry_path("b", member));
    ok(client.get(&path))["score"].as_i64().expect("an integer")
}

#[test]
fn one_write_by_a_clock_that_is_40_days_ahead_destroys_nothing_once_it_is_right_again() {
    let mut node = Node::shards(1).start();
    let client = node.client();
    // Of seasons of 20 days none is kept, and 40 days from now two are over.
    let season = json!({"starts": from_now(-10 * DAY).to_string(), "every": "20d"});
    let definition = json!({"windows": ["all", "season"], "season": season, "keep": 0, "entry_ttl": "30d"});
    ok(client.put("/v1/boards/b", &definition));
    ok(client.put(&entry_path("b", "old"), &json!({"score": 5})));
    for (board, end) in [
        ("ends", json!({"expires_at": from_now(20 * DAY).to_string()})),
        ("quiet", json!({"expires_after": "20d"})),
    ] {
        ok(client.put(&format!("/v1/boards/{board}"), &end));
        ok(client.put(&entry_path(board, "old"), &json!({"score": 5})));
    }
    assert!(node.terminate().success());
    write_at(node.data_dir(), from_now(40 * DAY), |_| one("ahead", 9));
    node.restart();
    assert!(node.log().contains("far behind the shard's last message"), "{}", node.log());
    let client = node.client();
    assert_eq!(in_season(&client, "old"), 5);
    // A truthful job counts, and where it belongs.
    let written = ok(client.put(&entry_path("b", "new"), &json!({"score": 7})));
    assert_eq!((&written["changed"], &written["entry"]["score"]), (&json!(true), &json!(7)), "{written}");
    assert_eq!(in_season(&client, "new"), 7);
    assert_eq!(in_season(&client, "old"), 5);
    let all = ok(client.get("/v1/boards/b/top"));
    assert_eq!(count_of(&all["total"]), 3, "what the job did in `all` stays: {all}");
    wait_until("what it did in a season that has not begun is dropped", || {
        node.metric("ranktree_instances{shard=\"0\"}") == Some(1.0)
    });
    assert_eq!(node.metric("ranktree_time_ahead_seconds{shard=\"0\"}"), Some(0.0));
    for board in ["ends", "quiet"] {
        assert_eq!(ok(client.get(&format!("/v1/boards/{board}")))["totals"]["all"], json!(1), "{board}");
    }
    assert!(node.terminate().success());
    node.verify();
}

#[test]
fn a_write_after_a_long_stop_counts_where_it_belongs_at_once() {
    let mut node = Node::shards(1).start();
    assert!(node.terminate().success());
    let stopped = -45 * DAY;
    write_at(node.data_dir(), from_now(stopped), |registry| {
        let seasons = Some(Seasons::regular(from_now(stopped - DAY), 20 * DAY));
        let windows = vec![Window::All, Window::Season];
        let definition = Definition { windows, seasons, ..Definition::default() };
        let board = BoardName::new("b").expect("a good name");
        let change = BoardChange::Define(definition.into());
        let defined = registry.change(&board, &change, Timestamp::default());
        let Ok(Defined::Created(known)) = defined else { panic!("it is new") };
        let (incarnation, definition) = (known.incarnation, known.definition);
        Payload::Define { board, incarnation, number: None, definition }
    });
    write_at(node.data_dir(), from_now(stopped + SECOND), |_| one("old", 5));
    node.restart();
    assert!(node.log().contains("far ahead of the shard's last message"), "{}", node.log());
    let client = node.client();
    ok(client.put(&entry_path("b", "new"), &json!({"score": 7})));
    assert_eq!(in_season(&client, "new"), 7);
    let (status, _) = client.get(&format!("{}?window=season", entry_path("b", "old")));
    assert_eq!(status, 404, "its season is over");
    let old = ok(client.get(&format!("{}?window=s1", entry_path("b", "old"))));
    assert_eq!(old["score"], json!(5));
    assert!(node.terminate().success());
    node.verify();
}
