//! Boards that end by themselves: at their time, with all that they have, and neither before nor by a wrong
//! definition; at a node that owns every shard and at one that owns none.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};

at_each_place![
    a_board_leaves_at_its_time_and_its_name_is_free,
    a_board_leaves_once_it_is_quiet_and_each_job_postpones_that,
    an_end_that_is_over_takes_consent,
];

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn in_seconds(seconds: i64) -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second()).expect("a time");
    now.checked_add(SignedDuration::from_secs(seconds)).expect("a time").to_string()
}

/// Twenty members, which are on all shards.
fn fill(client: &Client, board: &str) {
    let job = |n: u32| json!({"board": board, "member": format!("m{n}"), "score": n});
    ok(client.post("/v1/jobs", &(0..20).map(job).collect::<Vec<_>>().into()));
}

fn is_there(client: &Client, board: &str) -> bool {
    match client.get(&format!("/v1/boards/{board}")).0 {
        200 => true,
        404 => false,
        other => panic!("{other}"),
    }
}

fn a_board_leaves_at_its_time_and_its_name_is_free(place: Place) {
    let served = place.start(3);
    let client = served.client();
    let at = in_seconds(4);
    let made = ok(client.put("/v1/boards/match", &json!({"expires_at": at, "windows": ["all", "day"]})));
    assert_eq!((&made["expires_at"], &made["expires_after"]), (&json!(at), &Value::Null));
    for board in ["match", "stays", "later"] {
        fill(&client, board);
    }
    ok(client.put("/v1/boards/later", &json!({"expires_at": in_seconds(3600)})));
    let told = ok(client.get("/v1/boards/match"));
    assert_eq!(
        (&told["expires_at"], &told["ends_at"], &told["totals"]["all"]),
        (&json!(at), &json!(at), &json!(20))
    );
    assert_eq!(ok(client.get("/v1/boards/stays"))["ends_at"], Value::Null);
    wait_until("it is over", || !is_there(&client, "match"));
    assert!(at.parse::<Timestamp>().expect("a time") <= Timestamp::now(), "not before its time");
    assert!(is_there(&client, "stays") && is_there(&client, "later"));
    // The next life of the name has no end, and nothing of the one before.
    wait_until("a job makes the board anew", || {
        client.put(&entry_path("match", "new"), &json!({"score": 1})).0 == 200
    });
    let told = ok(client.get("/v1/boards/match"));
    assert_eq!((&told["expires_at"], &told["totals"]["all"]), (&Value::Null, &json!(1)));
    // An end that is taken back does not come.
    ok(client.put("/v1/boards/stays", &json!({"expires_at": in_seconds(2)})));
    ok(client.put("/v1/boards/stays", &json!({"expires_at": null})));
    ok(client.put("/v1/boards/later", &json!({"expires_at": in_seconds(2)})));
    wait_until("the later one is over", || !is_there(&client, "later"));
    assert!(is_there(&client, "stays"));
    served.end();
}

fn a_board_leaves_once_it_is_quiet_and_each_job_postpones_that(place: Place) {
    let served = place.start(3);
    let client = served.client();
    ok(client.put("/v1/boards/quiet", &json!({"expires_after": "3s"})));
    ok(client.put("/v1/boards/lively", &json!({"expires_after": "3s"})));
    let begun = Timestamp::now();
    fill(&client, "quiet");
    let told = ok(client.get("/v1/boards/quiet"));
    assert_eq!(told["expires_after"], json!("3s"));
    let ends: Timestamp = told["ends_at"].as_str().expect("a time").parse().expect("a time");
    let left = ends.duration_since(begun).as_millis();
    assert!((2_500..8_000).contains(&left), "{told}");
    // A member of one shard is enough for all.
    wait_until("the quiet one is over", || {
        ok(client.put(&entry_path("lively", "m1"), &json!({"score": 1, "op": "incr"})));
        !is_there(&client, "quiet")
    });
    assert!(Timestamp::now() >= ends, "not before its time");
    assert!(is_there(&client, "lively"));
    // Another length counts from when it is set.
    ok(client.put("/v1/boards/lively", &json!({"expires_after": "1h"})));
    ok(client.put("/v1/boards/lively", &json!({"expires_after": "2s"})));
    assert!(is_there(&client, "lively"));
    wait_until("the lively one is over", || !is_there(&client, "lively"));
    served.end();
}

fn an_end_that_is_over_takes_consent(place: Place) {
    let served = place.start(2);
    let client = served.client();
    let past = json!({"expires_at": "2020-01-01T00:00:00Z"});
    let (status, problem) = client.put("/v1/boards/b", &past);
    assert_eq!((status, &problem["code"]), (422, &json!("invalid_definition")), "{problem}");
    assert!(!is_there(&client, "b"), "a board that would end at once is not made");
    fill(&client, "b");
    let (status, problem) = client.put("/v1/boards/b", &past);
    assert_eq!((status, &problem["code"]), (409, &json!("would_drop")), "{problem}");
    assert_eq!((&problem["instances"], &problem["entries"]), (&json!(1), &json!(20)), "{problem}");
    assert!(is_there(&client, "b"));
    ok(client.put("/v1/boards/b?force=true", &past));
    wait_until("it is over", || !is_there(&client, "b"));
    for wrong in ["1999", "tomorrow"] {
        assert_eq!(client.put("/v1/boards/c", &json!({"expires_at": wrong})).0, 422, "{wrong}");
    }
    for wrong in ["0s", "36501d", "1"] {
        assert_eq!(client.put("/v1/boards/c", &json!({"expires_after": wrong})).0, 422, "{wrong}");
    }
    served.end();
}

/// A board that ends while nobody is there ends after the start, and the last jobs of others are remembered.
#[test]
fn ends_and_last_jobs_survive_a_kill() {
    let mut node = Node::shards(3).start();
    let client = node.client();
    ok(client.put("/v1/boards/match", &json!({"expires_at": in_seconds(3)})));
    ok(client.put("/v1/boards/quiet", &json!({"expires_after": "1h"})));
    for board in ["match", "quiet"] {
        fill(&client, board);
    }
    let before = ok(client.get("/v1/boards/quiet"))["ends_at"].clone();
    node.kill9();
    std::thread::sleep(std::time::Duration::from_secs(3));
    node.restart();
    let client = node.client();
    wait_until("it is over", || !is_there(&client, "match"));
    assert_eq!(ok(client.get("/v1/boards/quiet"))["ends_at"], before);
    assert!(node.terminate().success());
    node.verify();
}

/// Hundreds of matches that end at one moment, on two nodes that both look after them.
#[test]
fn many_boards_end_at_one_moment_on_two_nodes() {
    let nats = Nats::start();
    let setup = |name: &str| Node::with_nats(&nats).shards(2).stream_mib(64).flags(&["--node", name]).start();
    let (mut one, mut other) = (setup("one"), setup("other"));
    let client = one.client().waiting_for_writes();
    let at = in_seconds(8);
    for number in 0..200 {
        ok(client.put(&format!("/v1/boards/match-{number}"), &json!({"expires_at": at})));
    }
    ok(client.put("/v1/boards/stays", &json!({})));
    for node in [&one, &other] {
        wait_until("all are over", || {
            let boards = ok(node.client().get("/v1/boards"));
            boards["boards"].as_array().expect("a list").len() == 1
        });
    }
    assert!(at.parse::<Timestamp>().expect("a time") <= Timestamp::now(), "not before their time");
    for node in [&mut one, &mut other] {
        assert!(node.terminate().success(), "{}", node.log());
        node.verify();
    }
}
