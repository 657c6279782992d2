//! Jobs that change as many rankings as a member has are not refused for what they share a request, a message
//! or a moment with. With and without NATS.

use std::thread;

use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, count_of, entry_path};
use crate::support::nats::Nats;
use crate::support::node::Node;

const MEMBERS: usize = 64;
/// Together on more than the 16,000 that a message may change.
const HOURS: i64 = 260;

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn total(client: &Client, window: &str) -> usize {
    count_of(&ok(client.get(&format!("/v1/boards/wide/top?limit=1&window={window}")))["total"])
}

/// Every member is on the board in every hour.
fn fill(client: &Client) {
    let now = Timestamp::now();
    for hour in 0..HOURS {
        let at = now.checked_sub(hour.hours()).expect("in range").to_string();
        let jobs: Vec<Value> = (0..MEMBERS)
            .map(|member| json!({ "board": "wide", "member": format!("m{member}"), "score": 1, "at": at }))
            .collect();
        let answer = ok(client.post("/v1/jobs", &json!(jobs)));
        assert_eq!(answer["rejected"].as_u64().unwrap_or_default(), 0, "{answer}");
    }
    assert_eq!(total(client, "all"), MEMBERS);
}

fn all_apply(client: &Client, op: &str) {
    let jobs: Vec<Value> = (0..MEMBERS)
        .map(|member| json!({ "board": "wide", "member": format!("m{member}"), "op": op }))
        .collect();
    let answer = ok(client.post("/v1/jobs", &json!(jobs)));
    let results = answer["results"].as_array().expect("one a job");
    let rejected: Vec<&Value> = results.iter().filter(|result| !result["rejected"].is_null()).collect();
    assert!(rejected.is_empty(), "{op}: {} are rejected, as {}", rejected.len(), rejected[0]);
}

fn check(service: &Node) {
    let client = service.client().waiting_for_writes();
    let definition = json!({ "windows": ["all", "hour"], "keep": 500, "grace": "500h" });
    ok(client.put("/v1/boards/wide", &definition));
    fill(&client);
    for (op, left) in [("hide", 0), ("show", MEMBERS), ("remove", 0)] {
        all_apply(&client, op);
        assert_eq!((total(&client, "all"), total(&client, "hour")), (left, left), "{op}");
    }
    fill(&client);
    // Each in a request of its own, at the same moment.
    thread::scope(|scope| {
        for member in 0..MEMBERS {
            let client = service.client();
            let path = if member % 2 == 0 {
                entry_path("wide", &format!("m{member}"))
            } else {
                format!("/v1/members/m{member}")
            };
            scope.spawn(move || ok(client.send(Method::DELETE, &path, None).expect("an answer")));
        }
    });
    let status = ok(client.post("/v1/jobs", &json!({ "board": "wide", "member": "last", "score": 1 })));
    ok(client.get(&format!("/v1/boards?after={}", status["token"].as_str().expect("a token"))));
    assert_eq!((total(&client, "all"), total(&client, "hour")), (1, 1));
    assert_eq!(ok(client.get("/v1/rejects"))["rejects"], json!([]));
}

#[test]
fn wide_jobs_of_a_request_and_of_a_moment_all_apply_without_nats() {
    let mut service = Node::start();
    check(&service);
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn wide_jobs_of_a_request_and_of_a_moment_all_apply_with_nats() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(64).start();
    check(&service);
    assert!(service.terminate().success());
    service.verify();
}
