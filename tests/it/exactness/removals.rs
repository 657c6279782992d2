//! Boards are cleared and trimmed: which entries are removed and which stay, even if the process is killed in
//! the middle. Without NATS, and some of it also through a node that owns no shard.

use std::thread;

use serde_json::{Value, json};

use crate::support::client::{Client, Reply, count_of};
use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};

const SHARDS: u16 = 3;
const MEMBERS: usize = 30_000;

/// Every n-th member is hidden.
const HIDDEN: usize = 100;

at_each_place![
    a_trim_removes_what_is_after_its_place_and_nothing_else,
    a_cleared_board_is_empty_on_every_shard_and_takes_later_writes,
    a_clear_removes_no_later_write,
    changed_bounds_apply_to_later_jobs_and_not_to_entries,
];

fn fill(client: &Client) {
    let members: Vec<usize> = (0..MEMBERS).collect();
    for some in members.chunks(1_000) {
        let job = |n: &usize| json!({ "board": "arena", "member": format!("m{n}"), "score": n / 3 });
        let (status, answer) =
            client.post("/v1/jobs?results=changed", &some.iter().map(job).collect::<Vec<_>>().into());
        assert_eq!(status, 200, "{answer}");
    }
    let hide = |n| json!({ "board": "arena", "member": format!("m{n}"), "op": "hide" });
    let jobs: Vec<Value> = (0..MEMBERS).step_by(HIDDEN).map(hide).collect();
    assert_eq!(client.post("/v1/jobs?results=changed", &jobs.into()).0, 200);
}

/// Members, best first, page by page.
fn listed(client: &Client) -> Vec<String> {
    let (mut members, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, page) = client.get(&format!("/v1/boards/arena/top?limit=1000&cursor={cursor}"));
        assert_eq!(status, 200, "{page}");
        let entries = page["entries"].as_array().expect("a list").iter();
        members.extend(entries.map(|entry| entry["member"].as_str().expect("an id").to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return members,
        }
    }
}

fn total(client: &Client) -> usize {
    count_of(&client.get("/v1/boards/arena").1["totals"]["all"])
}

#[test]
fn a_trim_interrupted_by_a_kill_is_completed_by_the_same_request() {
    let mut service = Node::shards(SHARDS).start();
    let client = service.client();
    fill(&client);
    let before = listed(&client);
    assert_eq!(before.len(), MEMBERS - MEMBERS / HIDDEN);
    let trim = json!({ "positions_beyond": 1_000 });
    thread::scope(|scope| {
        let trimming = {
            let (client, trim) = (service.client(), &trim);
            scope.spawn(move || client.send(ureq::http::Method::POST, "/v1/boards/arena:trim", Some(trim)))
        };
        wait_until("some are gone", || total(&client) < before.len());
        service.kill9();
        // The trim may have been complete before the kill.
        let _ = trimming.join().expect("no panic");
    });
    service.restart();
    let client = service.client();
    let between = listed(&client);
    assert!((1_000..before.len()).contains(&between.len()), "{}", between.len());
    // The first entries stay, and the order of the others does not change.
    assert_eq!(between[..1_000], before[..1_000]);
    let mut order = before.iter();
    assert!(between.iter().all(|member| order.any(|other| other == member)));
    let (status, answer) = client.post("/v1/boards/arena:trim", &trim);
    assert_eq!(status, 200, "{answer}");
    assert!(count_of(&answer["removed"]) >= between.len() - 1_000, "{answer}");
    assert_eq!(answer["token"].as_str().map(|token| token.split(',').count()), Some(usize::from(SHARDS)));
    assert_eq!(listed(&client), before[..1_000]);
    let (_, again) = client.post("/v1/boards/arena:trim", &trim);
    assert_eq!(count_of(&again["removed"]), 0);
    service.kill9();
    service.restart();
    let client = service.client();
    assert_eq!(listed(&client), before[..1_000]);
    // Hidden entries behind the place were removed, too, and those before it were not.
    let place = count_of(&client.get("/v1/boards/arena/positions/1000").1["entries"][0]["score"]);
    for n in [0, HIDDEN, MEMBERS / HIDDEN / 2 * HIDDEN, MEMBERS - HIDDEN] {
        let show = json!({ "op": "show" });
        let (status, answer) = client.put(&format!("/v1/boards/arena/members/m{n}"), &show);
        assert_eq!((status, &answer["changed"]), (200, &json!(true)), "m{n}: {answer}");
        assert_eq!(answer["entry"].is_object(), n / 3 > place, "m{n}: {answer}");
    }
    assert!(service.terminate().success());
    service.verify();
}

/// Entries, hidden ones among them, are removed by position and by score, and the counts are exact.
fn a_trim_removes_what_is_after_its_place_and_nothing_else(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    fill(&client);
    let before = listed(&client);
    let trim = |body: Value| {
        let (status, answer) = client.post("/v1/boards/arena:trim", &body);
        assert_eq!(status, 200, "{answer}");
        let token = answer["token"].as_str().expect("text");
        assert_eq!(token.split(',').count(), usize::from(SHARDS), "{answer}");
        let (status, after) = client.get(&format!("/v1/boards/arena/top?limit=1&after={token}"));
        assert_eq!(status, 200, "{after}");
        (count_of(&answer["removed"]), count_of(&after["total"]))
    };
    // Scores fall by a third of a point a place; a hidden entry is removed if its score is below the last
    // one's.
    let last = count_of(&client.get("/v1/boards/arena/positions/20000").1["entries"][0]["score"]);
    let hidden = |below: usize| (0..MEMBERS).step_by(HIDDEN).filter(|n| n / 3 < below).count();
    let (removed, total) = trim(json!({ "positions_beyond": 20_000 }));
    assert_eq!(total, 20_000);
    let listed_gone = before.len() - 20_000;
    // Hidden ones with the score of the last entry are removed if their ids come later.
    let range = listed_gone + hidden(last)..=listed_gone + hidden(last + 1);
    assert!(range.contains(&removed), "{removed} of {range:?}");
    assert_eq!(listed(&client), before[..20_000]);
    let stay =
        before[..20_000].iter().filter(|member| member[1..].parse::<usize>().unwrap_or(0) / 3 >= 9_000);
    let stay = stay.count();
    let (_, total) = trim(json!({ "worse_than": 9_000 }));
    assert_eq!(total, stay);
    assert_eq!(listed(&client), before[..stay]);
    assert_eq!(trim(json!({ "worse_than": 9_000 })), (0, stay), "nothing is left to remove");
    assert_eq!(trim(json!({ "positions_beyond": 1_000_000 })), (0, stay));
    let (status, refused) = client.post("/v1/boards/arena:trim", &json!({ "worse_than": [1, 2] }));
    assert_eq!((status, &refused["code"]), (422, &json!("bad_score")), "{refused}");
    let (status, refused) = client.post("/v1/boards/none:trim", &json!({ "worse_than": 1 }));
    assert_eq!((status, &refused["code"]), (404, &json!("unknown_board")), "{refused}");
    service.end();
}

fn a_cleared_board_is_empty_on_every_shard_and_takes_later_writes(place: Place) {
    let mut service = place.start(SHARDS);
    let definition = json!({ "ties": "last", "policy": "best", "keep": 3 });
    assert_eq!(service.client().put("/v1/boards/arena", &definition).0, 201);
    for round in 1..=3 {
        let client = service.client();
        let job = |n: usize| {
            json!({ "board": "arena", "member": format!("m{n}"), "score": n, "version": 7,
                    "meta": { "round": round } })
        };
        let jobs: Vec<Value> = (0..300).map(job).collect();
        let (status, answer) = client.post("/v1/jobs", &jobs.into());
        assert_eq!(status, 200, "{answer}");
        // Versions of the incarnation before have no effect.
        assert!(answer["results"].as_array().expect("a list").iter().all(|one| one["changed"] == true));
        assert_eq!(total(&client), 300);
        assert_eq!(client.get("/v1/boards/arena/top?limit=1").1["entries"][0]["meta"]["round"], round);
        let (status, answer) =
            client.send(ureq::http::Method::POST, "/v1/boards/arena:clear", None).expect("it answers");
        assert_eq!((status, count_of(&answer["removed"])), (200, 300), "{answer}");
        let token = answer["token"].as_str().expect("text");
        assert_eq!(token.split(',').count(), usize::from(SHARDS));
        assert_eq!(client.get(&format!("/v1/boards/arena/top?after={token}")).1["entries"], json!([]));
        if round == 2 && place == Place::OwnsAll {
            service.kill9();
            service.restart();
        }
        let (_, board) = service.client().get("/v1/boards/arena");
        for (name, value) in definition.as_object().expect("an object") {
            assert_eq!(&board[name], value, "{board}");
        }
        assert_eq!(board["totals"]["all"], 0);
    }
    service.end();
}

fn a_clear_removes_no_later_write(place: Place) {
    let service = place.start(SHARDS);
    clear_while_others_write(&service);
    service.end();
}

/// Writers go on while the board is cleared again and again. A client that has seen the board empty and then
/// writes finds its write there afterwards. No earlier entry is there.
pub fn clear_while_others_write(service: &Node) {
    let client = service.client();
    assert_eq!(client.put("/v1/boards/arena", &json!({})).0, 201);
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..3 {
            let (client, stop) = (service.client(), &stop);
            scope.spawn(move || {
                for n in 0.. {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    let jobs: Vec<Value> = (0..20)
                        .map(|m| json!({ "board": "arena", "member": format!("w{writer}-{m}"), "score": n }))
                        .collect();
                    assert_eq!(client.post("/v1/jobs?results=changed&wait=applied", &jobs.into()).0, 200);
                }
            });
        }
        for round in 0..40 {
            let member = format!("/v1/boards/arena/members/r{round}");
            let gone = format!("/v1/boards/arena/members/g{round}");
            assert_eq!(client.put(&format!("{gone}?wait=applied"), &json!({ "score": 1 })).0, 200);
            // Another client sees the board empty before the clear has reached all shards, and writes.
            let watching = {
                let (client, gone, member) = (service.client(), gone.clone(), member.clone());
                scope.spawn(move || {
                    wait_until("the entry is gone", || client.get(&gone).0 == 404);
                    assert_eq!(client.put(&format!("{member}?wait=applied"), &json!({ "score": 1 })).0, 200);
                })
            };
            let cleared = client.send(ureq::http::Method::POST, "/v1/boards/arena:clear", None);
            assert_eq!(cleared.expect("it answers").0, 200);
            watching.join().expect("no panic");
            assert_eq!(client.get(&member).0, 200, "round {round}");
            assert_eq!(client.get(&gone).0, 404, "round {round}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

fn drop_arena(client: &Client) -> Reply {
    client.send(ureq::http::Method::DELETE, "/v1/boards/arena", None).expect("the service is there")
}

/// A board is dropped again and again while others write to it and define it. A job or a definition that
/// arrives while only some shards have dropped the board begins its next incarnation.
#[test]
fn writes_and_definitions_during_a_drop_begin_the_next_incarnation() {
    let mut service = Node::shards(SHARDS).start();
    let client = service.client();
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..3 {
            let (client, stop) = (service.client(), &stop);
            scope.spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let jobs: Vec<Value> = (0..20)
                        .map(|m| json!({ "board": "arena", "member": format!("w{writer}-{m}"), "score": 1 }))
                        .collect();
                    let (status, answer) = client.post("/v1/jobs?results=changed", &jobs.into());
                    assert_eq!(status, 200, "{answer}");
                    let rejected = answer["results"].as_array().expect("a list").iter();
                    let rejected: Vec<_> = rejected.filter(|one| one.get("rejected").is_some()).collect();
                    assert!(rejected.is_empty(), "{rejected:?}");
                }
            });
        }
        let (definer, stopped) = (service.client(), &stop);
        scope.spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                let (status, answer) = definer.put("/v1/boards/arena", &json!({}));
                assert!([200, 201].contains(&status), "{status}: {answer}");
            }
        });
        for _ in 0..200 {
            let (status, answer) = drop_arena(&client);
            assert!([200, 404].contains(&status), "{status}: {answer}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    // In the end, all shards have the same incarnation of the board. The last drop may have been the last
    // change.
    assert!([200, 201].contains(&client.put("/v1/boards/arena", &json!({})).0));
    let (_, answer) = drop_arena(&client);
    assert_eq!(answer["dropped"], true, "{answer}");
    assert_eq!(client.get("/v1/boards/arena").0, 404);
    let jobs: Vec<Value> =
        (0..300).map(|m| json!({ "board": "arena", "member": format!("m{m}"), "score": 1 })).collect();
    assert_eq!(client.post("/v1/jobs?results=changed", &jobs.into()).0, 200);
    assert_eq!(total(&client), 300);
    service.kill9();
    service.restart();
    assert_eq!(total(&service.client()), 300);
    assert!(service.terminate().success());
    service.verify();
}

/// If a definition has no bounds for a key, the key has none.
fn changed_bounds_apply_to_later_jobs_and_not_to_entries(place: Place) {
    let mut service = place.start(SHARDS);
    bounds_change(&service.client());
    if place == Place::OwnsAll {
        service.kill9();
        service.restart();
    }
    let client = service.client();
    assert_eq!(client.get("/v1/boards/bounded").1["keys"][0]["max"], 10);
    assert_eq!(client.put("/v1/boards/bounded/members/m8", &json!({ "score": 11 })).0, 409);
    service.end();
}

/// Narrows the bounds of a board below an entry, and leaves them at 0 to 10.
pub fn bounds_change(client: &Client) {
    let define = |key: Value| client.put("/v1/boards/bounded", &json!({ "keys": [key] }));
    let put = |member: &str, job: Value| {
        let (status, answer) = client.put(&format!("/v1/boards/bounded/members/{member}?wait=applied"), &job);
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    };
    let refused = (409, "out_of_range".to_owned());
    assert_eq!(define(json!({ "name": "points", "min": 0, "max": 100 })).0, 201);
    assert_eq!(put("m1", json!({ "score": 100 })).0, 200);
    assert_eq!(put("m2", json!({ "score": 101 })), refused);
    // Jobs of other members, so that every shard is tested.
    for (max, outside, inside) in [(10, 11, 10), (1_000, 1_001, 1_000), (10, 11, 10)] {
        let (status, answer) = define(json!({ "name": "points", "min": 0, "max": max }));
        assert_eq!((status, &answer["keys"][0]["max"]), (200, &json!(max)), "{answer}");
        for member in 2..10 {
            assert_eq!(put(&format!("m{member}"), json!({ "score": outside })), refused);
            assert_eq!(put(&format!("m{member}"), json!({ "score": inside })).0, 200);
        }
    }
    let (status, entry) = client.get("/v1/boards/bounded/members/m1");
    assert_eq!((status, &entry["score"], &entry["rank"]), (200, &json!(100), &json!(1)), "{entry}");
    assert_eq!(put("m1", json!({ "score": 1, "op": "incr" })), refused);
    let (status, answer) = define(json!({ "name": "points", "order": "asc", "min": 0, "max": 10 }));
    assert_eq!((status, &answer["code"]), (409, &json!("board_differs")), "{answer}");
}
