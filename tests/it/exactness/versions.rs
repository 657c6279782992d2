//! A version has a repetition count once, and no more: of jobs that overtake each other the older one is
//! refused, and what it would have added is not added. Holds the table of docs/wire.md, "Sending again, and
//! order".

use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::place::{Place, at_each_place};

at_each_place![
    an_increment_that_was_overtaken_is_refused_and_not_added,
    totals_with_versions_and_increments_without_bear_any_order,
    the_table_of_repetitions_holds,
];

fn define(client: &Client) {
    let (status, answer) = client.put("/v1/boards/arena", &json!({}));
    assert!(status == 200 || status == 201, "{answer}");
}

/// What came of a job: `null`, or why it was rejected.
fn outcome(client: &Client, member: &str, job: &Value) -> Value {
    let mut job = job.clone();
    job["board"] = json!("arena");
    job["member"] = json!(member);
    let (status, answer) = client.post("/v1/jobs?wait=applied", &job);
    assert_eq!(status, 200, "{answer}");
    answer["results"][0]["rejected"].clone()
}

fn score(client: &Client, member: &str) -> Value {
    let (status, answer) = client.get(&entry_path("arena", member));
    assert_eq!(status, 200, "{answer}");
    answer["score"].clone()
}

fn an_increment_that_was_overtaken_is_refused_and_not_added(place: Place) {
    let service = place.start(3);
    let client = service.client();
    define(&client);
    let incr = |score, version| json!({ "op": "incr", "score": score, "version": version });
    assert_eq!(outcome(&client, "p42", &incr(60, 2)), Value::Null);
    assert_eq!(outcome(&client, "p42", &incr(30, 1)), "stale_version");
    assert_eq!(score(&client, "p42"), 60, "the older one is not added");
    // Of two senders with numbers of their own, the second one to come is taken for a repetition.
    assert_eq!(outcome(&client, "p42", &incr(7, 2)), "stale_version");
    assert_eq!(score(&client, "p42"), 60);
    let (status, answer) = client.get("/v1/rejects?reason=stale_version");
    assert_eq!((status, answer["rejects"].as_array().map(Vec::len)), (200, Some(2)), "{answer}");
}

fn totals_with_versions_and_increments_without_bear_any_order(place: Place) {
    let service = place.start(3);
    let client = service.client();
    define(&client);
    // The total after each of two matches: the newest one stands, whichever comes first.
    for (member, order) in [("in order", [(30, 1), (90, 2)]), ("overtaken", [(90, 2), (30, 1)])] {
        for (total, version) in order {
            outcome(&client, member, &json!({ "op": "set", "score": total, "version": version }));
        }
        assert_eq!(score(&client, member), 90, "{member}");
    }
    for (member, order) in [("30 first", [30, 60]), ("60 first", [60, 30])] {
        for points in order {
            outcome(&client, member, &json!({ "op": "incr", "score": points }));
        }
        assert_eq!(score(&client, member), 90, "{member}");
    }
}

fn the_table_of_repetitions_holds(place: Place) {
    let service = place.start(3);
    let client = service.client();
    define(&client);
    // An operation, whether it has versions, the score after a job of 60 and its repetition, and the score
    // after a later job of 50 and then an older one of 60.
    let table = [
        ("set", true, 60, 50),
        ("incr", true, 60, 50),
        ("best", true, 60, 50),
        ("set", false, 60, 60),
        ("incr", false, 120, 110),
        ("best", false, 60, 60),
    ];
    for (number, (op, has_version, repeated, overtaken)) in table.into_iter().enumerate() {
        let job = |score: i64, version: u64| {
            let version = has_version.then_some(version);
            json!({ "op": op, "score": score, "version": version })
        };
        let (again, late) = (format!("again {number}"), format!("late {number}"));
        for _ in 0..2 {
            outcome(&client, &again, &job(60, 1));
        }
        assert_eq!(score(&client, &again), repeated, "{op}, {has_version}");
        outcome(&client, &late, &job(50, 2));
        outcome(&client, &late, &job(60, 1));
        assert_eq!(score(&client, &late), overtaken, "{op}, {has_version}");
    }
}
