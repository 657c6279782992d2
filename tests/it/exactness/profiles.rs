//! Profiles: a record once per member, joined into every read that lists entries, as it was at the moment of
//! the answer. At a node that owns all shards, and through one that owns none; and after a kill.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::arena::{SUBJECT, define};
use crate::support::client::{Client, Reply, entry_path};
use crate::support::nats::{Nats, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};
use crate::support::snapshots::{restore, snapshot};

const SHARDS: u16 = 3;

at_each_place![
    every_read_that_lists_entries_has_profiles_if_it_asks_for_them,
    a_profile_follows_its_own_versions_and_leaves_with_its_member,
    an_answer_has_the_profiles_of_its_own_moment,
    the_profile_of_a_member_without_an_entry_is_told_with_all_that_is_kept_of_it,
];

fn profile(member: &str, profile: &Value) -> Value {
    json!({ "member": member, "op": "profile", "profile": profile })
}

fn post(client: &Client, jobs: &Value) -> Vec<Value> {
    let (status, answer) = client.post("/v1/jobs", jobs);
    assert_eq!(status, 200, "{answer}");
    answer["results"].as_array().expect("a list").clone()
}

fn of_board(client: &Client, read: &str) -> Value {
    let (status, answer) = client.get(&format!("/v1/boards/arena/{read}"));
    assert_eq!(status, 200, "{answer}");
    answer
}

fn profile_of(client: &Client, member: &str) -> Value {
    of_board(client, &format!("members/{member}?profile=true"))["profile"].clone()
}

fn every_read_that_lists_entries_has_profiles_if_it_asks_for_them(place: Place) {
    let mut service = place.start(SHARDS);
    let client = service.client();
    let expected = |number: usize| match number % 3 {
        0 => Value::Null,
        // Longer than what is read at once, for some.
        1 => json!({ "name": format!("m{number}"), "text": "x".repeat(3_000) }),
        _ => json!({ "name": format!("日本 \"{number}\"") }),
    };
    let jobs = (0..60).flat_map(|number| {
        let member = format!("m{number}");
        let of = expected(number);
        let scores = json!({ "member": member, "scores": { "arena": number / 2, "kills": 1 }, "meta": { "n": number } });
        [(!of.is_null()).then(|| profile(&member, &of)), Some(scores)].into_iter().flatten()
    });
    for result in post(&client, &jobs.collect()) {
        assert_eq!(result["changed"], true, "{result}");
    }
    let check = |entries: &Value, count: usize| {
        let entries = entries.as_array().expect("a list");
        assert_eq!(entries.len(), count);
        for entry in entries {
            let number: usize =
                entry["member"].as_str().expect("an id")[1..].parse().expect("a member's number");
            assert_eq!(entry["profile"], expected(number), "{entry}");
            assert_eq!(entry["meta"], json!({ "n": number }));
        }
    };
    for (read, count) in [
        ("top?limit=50", 50),
        ("top?limit=7&from=bottom", 7),
        ("positions/21?limit=12", 12),
        ("members/m30/around?above=2&below=3", 6),
        ("members/m0/around?above=20&below=0&fill=true", 21),
        ("range?min=5&max=9", 10),
    ] {
        let with = of_board(&client, &format!("{read}&profile=true"));
        check(&with["entries"], count);
        for without in [of_board(&client, read), of_board(&client, &format!("{read}&profile=false"))] {
            for entry in without["entries"].as_array().expect("a list") {
                assert_eq!(entry.get("profile"), None, "{read}");
            }
        }
    }
    let members: Vec<String> = (0..60).step_by(5).map(|number| format!("m{number}")).collect();
    let (status, group) =
        client.post("/v1/boards/arena/members:lookup?profile=true", &json!({ "members": members }));
    assert_eq!(status, 200, "{group}");
    check(&group["entries"], members.len());
    for number in [1, 2, 3] {
        check(&json!([of_board(&client, &format!("members/m{number}?profile=true"))]), 1);
        for path in ["?profile=true", "?boards=arena,kills&profile=true"] {
            let (status, answer) = client.get(&format!("/v1/members/m{number}{path}"));
            assert_eq!(status, 200, "{answer}");
            check(&answer["entries"], 2);
        }
    }
    for read in ["rank?score=5&profile=true", "count?min=0&max=3&profile=true"] {
        of_board(&client, read);
    }
    if place == Place::OwnsAll {
        assert!(service.terminate().success(), "{}", service.log());
        service.restart();
        check(&of_board(&service.client(), "top?limit=60&profile=true")["entries"], 60);
    }
    service.end();
}

fn a_profile_follows_its_own_versions_and_leaves_with_its_member(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    let (a, b) = (json!({ "name": "a" }), json!({ "name": "b" }));
    let result = |job: Value| {
        let mut results = post(&client, &job);
        assert_eq!(results.len(), 1);
        results.remove(0)
    };
    // It needs no entry, and comes back with none.
    let brought = json!({ "changed": true, "entry": null, "previous": null });
    assert_eq!(result(profile("m", &a)), brought);
    assert_eq!(result(profile("m", &a))["changed"], false, "it is the same");
    assert_eq!(client.get("/v1/members/m?profile=true").1["entries"], json!([]));
    assert_eq!(client.put(&entry_path("arena", "m"), &json!({ "score": 5, "version": 9 })).0, 200);
    assert_eq!(profile_of(&client, "m"), a, "it was there before the entry");
    // Its versions are its own.
    let versioned = |of: &Value, version: u64| {
        let mut job = profile("m", of);
        job["version"] = version.into();
        result(job)
    };
    assert_eq!(versioned(&b, 3)["changed"], true);
    assert_eq!(versioned(&a, 3)["rejected"], "stale_version");
    assert_eq!(result(profile("m", &a))["changed"], true, "a job without a version applies in any case");
    assert_eq!(versioned(&b, 3)["rejected"], "stale_version", "and leaves the version as it is");
    assert_eq!(profile_of(&client, "m"), a);
    // An entry that leaves a board leaves the profile as it is.
    let delete =
        |path: &str| -> Reply { client.send(Method::DELETE, path, None).expect("the service answers") };
    assert_eq!(delete(&entry_path("arena", "m")).1["changed"], true);
    assert_eq!(client.put(&entry_path("arena", "m"), &json!({ "score": 6, "version": 10 })).0, 200);
    assert_eq!(profile_of(&client, "m"), a);
    // With the member it goes, and a late retry does not bring it back.
    let (status, gone) = delete("/v1/members/m");
    assert_eq!((status, &gone["changed"]), (200, &json!(true)), "{gone}");
    assert_eq!(client.put(&entry_path("arena", "m"), &json!({ "score": 7, "version": 11 })).0, 200);
    assert_eq!(profile_of(&client, "m"), Value::Null);
    assert_eq!(versioned(&b, 3)["rejected"], "stale_version");
    assert_eq!(versioned(&b, 4)["changed"], true);
    assert_eq!(profile_of(&client, "m"), b);
    // Of a member that is on no board, too.
    assert_eq!(result(profile("nobody", &a))["changed"], true);
    let (status, gone) = delete("/v1/members/nobody");
    assert_eq!(
        (status, &gone["changed"], &gone["counts"]["boards"]),
        (200, &json!(true), &json!(0)),
        "{gone}"
    );
    let (status, gone) = delete("/v1/members/nobody");
    assert_eq!((status, &gone["changed"]), (200, &json!(false)), "{gone}");
    assert_eq!(client.put(&entry_path("arena", "nobody"), &json!({ "score": 1 })).0, 200);
    assert_eq!(profile_of(&client, "nobody"), Value::Null);
    // An empty one is none.
    assert_eq!(result(profile("nobody", &a))["changed"], true);
    assert_eq!(result(profile("nobody", &json!({})))["changed"], true);
    assert_eq!(profile_of(&client, "nobody"), Value::Null);
    // The largest one, and one that is larger.
    let of_bytes = |bytes: usize| json!({ "x": "x".repeat(bytes - r#"{"x":""}"#.len()) });
    assert_eq!(result(profile("nobody", &of_bytes(4_096)))["changed"], true);
    assert_eq!(profile_of(&client, "nobody"), of_bytes(4_096));
    let (status, refused) = client.post("/v1/jobs", &profile("nobody", &of_bytes(4_097)));
    assert_eq!((status, &refused["code"]), (422, &json!("too_large")), "{refused}");
    service.end();
}

/// The score of an entry and what its profile says change together, in one message, and the profile comes and
/// goes. Whoever reads meanwhile finds what belongs together.
fn an_answer_has_the_profiles_of_its_own_moment(place: Place) {
    const ROUNDS: u64 = 150;
    const MEMBERS: u64 = 6;
    let service = place.start(SHARDS);
    let client = service.client();
    assert_eq!(client.put("/v1/boards/arena", &json!({})).0, 201);
    let (done, known, unknown) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let check = |entry: &Value| {
        let score = entry["score"].as_u64().expect("a score");
        match &entry["profile"] {
            // What changes again and again while it is read is unknown in the end.
            Value::Null if !score.is_multiple_of(3) => unknown.fetch_add(1, Ordering::Relaxed),
            Value::Null => known.fetch_add(1, Ordering::Relaxed),
            profile => {
                assert_eq!(profile, &json!({ "n": score }), "{entry}");
                known.fetch_add(1, Ordering::Relaxed)
            }
        };
    };
    thread::scope(|scope| {
        for read in ["top?limit=10&profile=true", "members/m1?profile=true"] {
            let (client, done) = (service.client(), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let (status, answer) = client.get(&format!("/v1/boards/arena/{read}"));
                    match answer["entries"].as_array() {
                        Some(entries) => entries.iter().for_each(check),
                        None if status == 200 => check(&answer),
                        None => assert_eq!((status, &answer["code"]), (404, &json!("unknown_member"))),
                    }
                }
            });
        }
        for round in 0..ROUNDS {
            for member in (0..MEMBERS).map(|number| format!("m{number}")) {
                let before = match round % 3 {
                    0 => json!({ "member": member, "op": "remove" }),
                    _ => profile(&member, &json!({ "n": round })),
                };
                let entry = json!({ "board": "arena", "member": member, "score": round });
                for result in post(&client, &json!([before, entry])) {
                    assert_eq!(result.get("rejected"), None, "{result}");
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let (known, unknown) = (known.into_inner(), unknown.into_inner());
    assert!(known > ROUNDS && unknown <= known / 10, "{known} were known, and {unknown} were not");
    service.end();
}

/// A score and a profile that one message brings are on disk together or not at all, whenever the process is
/// killed.
#[test]
fn a_kill_leaves_profiles_and_entries_of_one_moment() {
    const KILLS: u64 = 8;
    const MEMBERS: u64 = 4;
    let mut service = Node::shards(SHARDS).flags(&["--checkpoint-changes", "20"]).start();
    let (next, answered) = (AtomicU64::new(1), AtomicU64::new(0));
    for kill in 0..KILLS {
        let before = answered.load(Ordering::SeqCst);
        thread::scope(|scope| {
            let mut writers = Vec::new();
            for number in 0..MEMBERS {
                let (client, next, answered) = (service.client(), &next, &answered);
                writers.push(scope.spawn(move || {
                    loop {
                        let n = next.fetch_add(1, Ordering::SeqCst);
                        let member = format!("m{number}");
                        let jobs = json!([
                            profile(&member, &json!({ "n": n })),
                            { "board": "arena", "member": member, "score": n },
                        ]);
                        match client.send(Method::POST, "/v1/jobs", Some(&jobs)) {
                            Ok((200, _)) => {
                                answered.fetch_add(1, Ordering::SeqCst);
                            }
                            // It is killed, or on its way there.
                            Ok(_) | Err(_) => return n,
                        }
                    }
                }));
            }
            wait_until("some writes are answered", || {
                answered.load(Ordering::SeqCst) >= before + 10 + 13 * kill
            });
            service.kill9();
            for writer in writers {
                writer.join().expect("no panic");
            }
        });
        if kill % 3 == 0 {
            service.verify();
        }
        service.restart();
        let top = of_board(&service.client(), "top?limit=10&profile=true");
        let entries = top["entries"].as_array().expect("a list");
        assert!(!entries.is_empty());
        for entry in entries {
            assert_eq!(entry["profile"]["n"], entry["score"], "after kill {kill}");
        }
    }
    let client = service.client();
    for number in 0..MEMBERS {
        let path = format!("/v1/members/m{number}");
        assert_eq!(client.send(Method::DELETE, &path, None).expect("it answers").0, 200);
    }
    service.kill9();
    service.verify();
    service.restart();
    for number in 0..MEMBERS {
        let jobs = json!({ "board": "arena", "member": format!("m{number}"), "score": 1 });
        post(&service.client(), &jobs);
        assert_eq!(profile_of(&service.client(), &format!("m{number}")), Value::Null, "it stays gone");
    }
    assert!(service.terminate().success());
    service.verify();
}

/// Owners that read the same stream have the same profiles and the same hash of the log, also after one of
/// them was killed; a job over the stream is refused as one over HTTP is; and a snapshot has profiles.
#[test]
fn replicas_have_the_same_profiles_and_a_snapshot_has_them() {
    let nats = Nats::start();
    let node = |name: &str| Node::with_nats(&nats).stream_mib(64).flags(&["--node", name]).start();
    let (a, mut b) = (node("a"), node("b"));
    for node in [&a, &b] {
        wait_state(&node.client(), 0, "live");
    }
    define(&a.client(), &json!({}));
    wait_until("both know the board", || b.client().get("/v1/boards/arena").0 == 200);
    let say = |jobs: Value| nats.publish(SUBJECT, jobs.to_string());
    let mut expected = BTreeMap::new();
    for number in 0..40 {
        let member = format!("m{number}");
        let of = json!({ "n": number });
        say(json!([{ "board": "arena", "member": member, "score": number }, profile(&member, &of)]));
        expected.insert(member, of);
    }
    say(json!({ "member": "m3", "op": "remove" }));
    say(json!({ "board": "arena", "member": "m3", "score": 3 }));
    expected.insert("m3".to_owned(), Value::Null);
    let last = say(json!([
        { "board": "arena", "member": "m4", "op": "profile", "profile": {} },
        { "member": "m4", "op": "profile", "profile": [] },
        { "member": "m4", "op": "profile" },
        { "member": "m4", "op": "profile", "profile": { "n": "x".repeat(4_096) } },
    ]));
    let check = |client: &Client| {
        for (member, of) in &expected {
            assert_eq!(&profile_of(client, member), of, "{member}");
        }
    };
    for node in [&a, &b] {
        wait_applied(&node.client(), &[last]);
        check(&node.client());
    }
    let (_, rejects) = a.client().get("/v1/rejects");
    let codes: Vec<_> = rejects["rejects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|reject| reject["reason"].clone())
        .collect();
    assert_eq!(codes, ["too_large", "malformed", "malformed", "malformed"], "{rejects}");
    b.kill9();
    let last = say(profile("m5", &json!({ "n": "five" })));
    expected_of(&a.client(), last, "m5", &json!({ "n": "five" }));
    b.restart();
    expected_of(&b.client(), last, "m5", &json!({ "n": "five" }));
    for node in [&a, &b] {
        wait_until("both have the same hash", || {
            let owners = shard_status(&node.client(), 0)["owners"].as_array().expect("a list").clone();
            let hashes: Vec<_> = owners.iter().map(|owner| owner["hash"].clone()).collect();
            hashes.len() == 2 && hashes[0].is_string() && hashes[0] == hashes[1]
        });
        assert_eq!(wait_state(&node.client(), 0, "live"), "");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (taken, restored) = (folder.path().join("snapshot"), folder.path().join("data"));
    snapshot(&a, &taken);
    let (code, said) = restore(&taken, &restored, &[]);
    assert_eq!(code, Some(0), "{said}");
    let c = Node::with_nats(&nats).at(&restored).stream_mib(64).flags(&["--node", "c"]).start();
    expected_of(&c.client(), last, "m5", &json!({ "n": "five" }));
    assert_eq!(profile_of(&c.client(), "m7"), json!({ "n": 7 }));
    assert_eq!(profile_of(&c.client(), "m3"), Value::Null);
}

fn expected_of(client: &Client, applied: u64, member: &str, expected: &Value) {
    wait_state(client, 0, "live");
    wait_applied(client, &[applied]);
    assert_eq!(&profile_of(client, member), expected);
}

fn the_profile_of_a_member_without_an_entry_is_told_with_all_that_is_kept_of_it(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    let told = json!({ "name": "Alice" });
    let members: Vec<String> = (0..6).map(|number| format!("m{number}")).collect();
    let jobs: Vec<Value> = members.iter().map(|member| profile(member, &told)).collect();
    post(&client, &json!(jobs));
    // One of them is on a board, too.
    post(&client, &json!([{ "member": "m0", "board": "arena", "score": 1 }]));
    let of = |member: &str, query: &str| {
        let (status, answer) = client.get(&format!("/v1/members/{member}?{query}"));
        assert_eq!(status, 200, "{answer}");
        answer
    };
    for (nth, member) in members.iter().enumerate() {
        let all = of(member, "windows=*&profile=true");
        assert_eq!(all["profile"], told, "{all}");
        assert_eq!(all["entries"].as_array().map(Vec::len), Some(usize::from(nth == 0)), "{all}");
        assert_eq!(of(member, "windows=*").get("profile"), None);
    }
    assert_eq!(of("nobody", "profile=true").get("profile"), Some(&Value::Null));
    let (status, _) = client.send(Method::DELETE, "/v1/members/m1", None).expect("an answer");
    assert_eq!(status, 200);
    assert_eq!(of("m1", "profile=true").get("profile"), Some(&Value::Null));
    service.end();
}
