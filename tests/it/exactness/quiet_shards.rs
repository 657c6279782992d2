//! What is due on a board happens although nobody writes: the node tells its shards the time.

use serde_json::json;

use crate::support::client::count_of;
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;

/// The sum of a metric over all shards.
fn sum(node: &Node, name: &str) -> f64 {
    let text = node.metrics();
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.split_once("} "));
    values.map(|(_, value)| value.parse::<f64>().expect("a number")).sum()
}

/// A season of no grace, of which none is kept, is dropped once the next has begun; and entries expire.
fn time_passes(node: &Node) {
    let client = node.client();
    let ok = |(status, answer): (u16, serde_json::Value)| {
        assert!((200..300).contains(&status), "{status}: {answer}");
        answer
    };
    let seasons = json!({"windows": ["season"], "season": "manual", "grace": "0s", "keep": 0});
    ok(client.put("/v1/boards/league", &seasons));
    ok(client.post("/v1/boards/league/seasons", &json!({})));
    wait_until("the first season has begun", || client.get("/v1/boards/league/top").0 == 200);
    for member in 0..20 {
        ok(client.put(&format!("/v1/boards/league/members/m{member}?wait=applied"), &json!({"score": 1})));
    }
    assert_eq!(count_of(&ok(client.get("/v1/boards/league/top"))["total"]), 20);
    ok(client.put("/v1/boards/daily", &json!({"entry_ttl": "1s"})));
    for member in 0..20 {
        ok(client.put(&format!("/v1/boards/daily/members/m{member}?wait=applied"), &json!({"score": 1})));
    }
    ok(client.post("/v1/boards/league/seasons", &json!({})));
    // From here on nobody writes.
    wait_until("the entries have expired", || {
        count_of(&ok(client.get("/v1/boards/daily/top"))["total"]) == 0
    });
    wait_until("the first season is dropped", || {
        sum(node, "ranktree_instances_dropped_total") >= 1.0 && sum(node, "ranktree_instances") == 0.0
    });
    let (status, problem) = client.get("/v1/boards/league/top?window=s1");
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_window")));
    assert_eq!(ok(client.get("/v1/boards/league/top"))["window"], json!("s2"));
}

#[test]
fn entries_expire_and_instances_are_dropped_although_nobody_writes() {
    time_passes(&Node::shards(3).start());
}

#[test]
fn the_same_with_nats() {
    let nats = Nats::start();
    time_passes(&Node::with_nats(&nats).shards(3).start());
}
