//! What is due on a board happens although nobody writes: the node tells its shards the time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::count_of;
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};

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
    ok(client.post("/v1/boards/league/seasons?force=true", &json!({})));
    wait_until("the first season has begun", || client.get("/v1/boards/league/top").0 == 200);
    for member in 0..20 {
        ok(client.put(&format!("/v1/boards/league/members/m{member}?wait=applied"), &json!({"score": 1})));
    }
    assert_eq!(count_of(&ok(client.get("/v1/boards/league/top"))["total"]), 20);
    ok(client.put("/v1/boards/daily", &json!({"entry_ttl": "1s"})));
    for member in 0..20 {
        ok(client.put(&format!("/v1/boards/daily/members/m{member}?wait=applied"), &json!({"score": 1})));
    }
    ok(client.post("/v1/boards/league/seasons?force=true", &json!({})));
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

fn now() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// Thousands of entries that expire at one moment: a write after it is answered, and nobody finds one.
fn what_was_due_is_gone_with_the_write_that_comes_after(node: &Node) {
    const MEMBERS: usize = 5_000;
    const HOUR: i64 = 3_600_000_000;
    let client = node.client().waiting_for_writes();
    let ok = |(status, answer): (u16, serde_json::Value)| {
        assert!((200..300).contains(&status), "{status}: {answer}");
        answer
    };
    ok(client.put("/v1/boards/daily", &json!({"entry_ttl": "1h", "windows": ["all", "day"]})));
    let due = now() + 8_000_000;
    let at = jiff::Timestamp::from_microsecond(due - HOUR).expect("in range").to_string();
    let members: Vec<usize> = (0..MEMBERS).collect();
    for some in members.chunks(1_000) {
        let job = |n: &usize| json!({"board": "daily", "member": format!("m{n}"), "score": n % 9, "at": at});
        ok(client.post("/v1/jobs?results=changed", &some.iter().map(job).collect::<Vec<_>>().into()));
    }
    let total = |window: &str| {
        let top = ok(client.get(&format!("/v1/boards/daily/top?limit=1&window={window}")));
        count_of(&top["total"])
    };
    let before = total("all");
    if now() < due {
        assert_eq!(before, MEMBERS);
    }
    wait_until("they are due", || now() > due);
    let fresh = ok(client.put("/v1/boards/daily/members/fresh", &json!({"score": 4})));
    assert_eq!((&fresh["entry"]["rank"], &fresh["entry"]["total"]), (&json!(1), &json!(1)), "{fresh}");
    assert_eq!(total("all"), 1);
    let rank = ok(client.get("/v1/boards/daily/rank?score=4"));
    assert_eq!((&rank["better"], &rank["tied"], &rank["total"]), (&json!(0), &json!(1), &json!(1)), "{rank}");
    for member in ["m0", "m2500", "m4999"] {
        assert_eq!(client.get(&format!("/v1/boards/daily/members/{member}")).0, 404, "{member}");
    }
}

/// What of an answer must not differ between two of one `as_of`.
type Shown = fn(&Value) -> Value;

/// Reads, in several ways, while thousands of entries expire: of one `as_of` there is one answer.
fn what_expires_at_one_message_leaves_at_once(place: Place) {
    const MEMBERS: usize = 12_000;
    const HOUR: i64 = 3_600_000_000;
    let served = place.start(2);
    let client = served.client().waiting_for_writes();
    let ok = |(status, answer): (u16, Value)| {
        assert!((200..300).contains(&status), "{status}: {answer}");
        answer
    };
    ok(client.put("/v1/boards/daily", &json!({"entry_ttl": "1h"})));
    ok(client.put("/v1/boards/other", &json!({})));
    let due = now() + 12_000_000;
    let at = jiff::Timestamp::from_microsecond(due - HOUR).expect("in range").to_string();
    let members: Vec<usize> = (0..MEMBERS).collect();
    for some in members.chunks(1_000) {
        let job = |n: &usize| json!({"board": "daily", "member": format!("m{n}"), "score": n % 9, "at": at});
        ok(client.post("/v1/jobs?results=changed", &some.iter().map(job).collect::<Vec<_>>().into()));
    }
    ok(client.put("/v1/boards/other/members/m5", &json!({"score": 1})));
    ok(client.put("/v1/boards/daily/members/stays", &json!({"score": 10})));
    let reads: [(&str, Shown); 3] = [
        ("/v1/boards/daily/top?limit=1", |answer| answer["total"].clone()),
        ("/v1/boards/daily/rank?score=3", |answer| {
            json!([answer["better"], answer["tied"], answer["total"]])
        }),
        ("/v1/members/stays?boards=daily,other", |answer| answer["entries"].clone()),
    ];
    let is_over = AtomicBool::new(false);
    let seen: Vec<BTreeMap<String, BTreeSet<String>>> = std::thread::scope(|scope| {
        let reading = reads.map(|(path, shown)| {
            let (client, is_over) = (served.client(), &is_over);
            scope.spawn(move || {
                let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
                while !is_over.load(Ordering::Relaxed) {
                    let answer = ok(client.get(path));
                    let as_of = answer["as_of"].to_string();
                    seen.entry(as_of).or_default().insert(shown(&answer).to_string());
                    if now() < due - 300_000 {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                seen
            })
        });
        wait_until("all but one have left", || {
            count_of(&ok(client.get("/v1/boards/daily/top?limit=1"))["total"]) == 1
        });
        is_over.store(true, Ordering::Relaxed);
        reading.into_iter().map(|thread| thread.join().expect("it reads")).collect()
    });
    for ((path, _), seen) in reads.iter().zip(seen) {
        let several: Vec<_> = seen.iter().filter(|(_, answers)| answers.len() > 1).collect();
        assert!(several.is_empty(), "{path}: several answers of one moment: {several:?}");
        assert!(seen.len() > 1, "{path} was read before and after: {seen:?}");
    }
}

at_each_place![what_expires_at_one_message_leaves_at_once];

#[test]
fn nothing_that_was_due_is_found_after_a_write() {
    what_was_due_is_gone_with_the_write_that_comes_after(&Node::shards(1).start());
}

#[test]
fn nothing_that_was_due_is_found_after_a_write_with_nats() {
    let nats = Nats::start();
    what_was_due_is_gone_with_the_write_that_comes_after(&Node::with_nats(&nats).shards(1).start());
}
