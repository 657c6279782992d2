//! Boards together: what `POST /v1/boards:combine` answers is what a naive model says, and exact while
//! members move.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::place::{Place, at_each_place};
use crate::support::random::Random;

at_each_place![boards_together_are_those_of_a_model, boards_together_are_of_one_moment];

const MEMBERS: u64 = 40;
const COMBINE: &str = "/v1/boards:combine";

/// A node that owns nothing is beside two that have some of the shards each.
fn splits(place: Place) -> &'static [u16] {
    if place == Place::OwnsAll { &[1, 3, 5] } else { &[3, 5] }
}

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn combined(client: &Client, body: &Value) -> Value {
    ok(client.post(COMBINE, body))
}

fn boards_together_are_those_of_a_model(place: Place) {
    for shards in splits(place) {
        let (service, mut random) = (place.start(*shards), Random::new(7));
        let client = service.client();
        let mut rows: BTreeMap<&str, BTreeMap<String, i64>> = BTreeMap::new();
        let mut jobs = Vec::new();
        for board in ["chess", "go", "cards"] {
            for number in 0..MEMBERS {
                if random.below(3) > 0 {
                    let (member, score) =
                        (format!("m{number}"), i64::try_from(random.below(6)).expect("small"));
                    jobs.push(json!({"board": board, "member": member, "score": score}));
                    rows.entry(board).or_default().insert(member, score);
                }
            }
        }
        ok(client.post("/v1/jobs?wait=applied", &json!(jobs)));
        ok(client.post("/v1/jobs?wait=applied", &json!({"board": "go", "member": "m3", "op": "hide"})));
        rows.get_mut("go").expect("it is there").remove("m3");
        for combine in ["union", "inter", "diff"] {
            for aggregate in ["sum", "min", "max"] {
                let expect = model(&rows, combine, aggregate);
                let ask = |more: Value| {
                    let mut body = json!({
                        "boards": {"chess": 1, "go": 2, "cards": -1}, "first": "chess",
                        "combine": combine, "aggregate": aggregate
                    });
                    let more = more.as_object().expect("an object").clone();
                    body.as_object_mut().expect("an object").extend(more);
                    combined(&client, &body)
                };
                check(&ask(json!({"limit": 1000})), &expect, 0);
                let first = ask(json!({"limit": 5}));
                check(&first, &expect, 0);
                if let Some(cursor) = first["next_cursor"].as_str() {
                    check(&ask(json!({"limit": 7, "cursor": cursor})), &expect, 5);
                }
                for (index, (member, score)) in expect.iter().enumerate().step_by(3) {
                    let found = ask(json!({"limit": 0, "member": member}));
                    let better = expect.iter().filter(|(_, other)| other > score).count();
                    let tied = expect.iter().filter(|(_, other)| other == score).count();
                    let found = &found["member"];
                    assert_eq!(
                        json!([
                            found["score"],
                            found["rank"],
                            found["position"],
                            found["tied"],
                            found["total"]
                        ]),
                        json!([score, better + 1, index + 1, tied, expect.len()]),
                        "{found}"
                    );
                }
                assert_eq!(ask(json!({"member": "nobody"}))["member"], Value::Null);
            }
        }
        service.end();
    }
}

/// Members and results, best first.
fn model(rows: &BTreeMap<&str, BTreeMap<String, i64>>, combine: &str, aggregate: &str) -> Vec<(String, i64)> {
    let mut result = Vec::new();
    for number in 0..MEMBERS {
        let member = format!("m{number}");
        let of = |board: &str, weight: i64| rows[board].get(&member).map(|score| score * weight);
        let scores = [of("chess", 1), of("go", 2), of("cards", -1)];
        let is_in = match combine {
            "union" => scores.iter().any(Option::is_some),
            "inter" => scores.iter().all(Option::is_some),
            _ => scores[0].is_some() && scores[1].is_none() && scores[2].is_none(),
        };
        let there = scores.into_iter().flatten();
        let score = match aggregate {
            "sum" => Some(there.sum()),
            "min" => there.min(),
            _ => there.max(),
        };
        result.extend(score.filter(|_| is_in).map(|score| (member, score)));
    }
    result.sort_by(|(one, of_one), (other, of_other)| of_other.cmp(of_one).then_with(|| one.cmp(other)));
    result
}

fn check(answer: &Value, expect: &[(String, i64)], first: usize) {
    assert_eq!(answer["total"], json!(expect.len()), "{answer}");
    for (nth, entry) in answer["entries"].as_array().expect("a list").iter().enumerate() {
        let (member, score) = &expect[first + nth];
        let better = expect.iter().filter(|(_, other)| other > score).count();
        assert_eq!(
            json!([entry["member"], entry["score"], entry["rank"], entry["position"]]),
            json!([member, score, better + 1, first + nth + 1]),
            "{answer}"
        );
    }
}

/// Each job changes two boards so that the sum stays, all or nothing: whatever the moment, all sums are the
/// same, and nobody is missing.
fn boards_together_are_of_one_moment(place: Place) {
    let service = place.start(3);
    let client = service.client();
    let job = |member: u64, score: u64| json!({"member": format!("m{member:02}"), "scores": {"chess": score, "go": 1_000 - score}});
    let jobs: Vec<Value> = (0..MEMBERS).map(|member| job(member, member)).collect();
    let after = ok(client.post("/v1/jobs?wait=applied", &json!(jobs)))["token"].clone();
    let path = format!("{COMBINE}?after={}", after.as_str().expect("a token"));
    let asked = json!({"boards": {"chess": 1, "go": 1}, "limit": 1000, "member": "m07"});
    ok(client.post(&path, &asked));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (client, mut random) = (service.client(), Random::new(7));
            while !stop.load(Ordering::Relaxed) {
                let jobs: Vec<Value> =
                    (0..3).map(|_| job(random.below(MEMBERS), random.below(1_000))).collect();
                ok(client.post("/v1/jobs?wait=applied", &json!(jobs)));
            }
        });
        for _ in 0..60 {
            let answer = combined(&client, &asked);
            let entries = answer["entries"].as_array().expect("a list");
            assert_eq!(entries.len(), usize::try_from(MEMBERS).expect("few"), "{answer}");
            for (nth, entry) in entries.iter().enumerate() {
                assert_eq!(
                    json!([entry["member"], entry["score"], entry["rank"], entry["position"]]),
                    json!([format!("m{nth:02}"), 1_000, 1, nth + 1]),
                    "{answer}"
                );
            }
            let member = &answer["member"];
            let found = json!([member["position"], member["tied"], member["worse"]]);
            assert_eq!(found, json!([8, MEMBERS, 0]), "{answer}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    service.end();
}
