//! The public contract with the real binary: names, shapes and refusals, and what holds while scores change.
//! All of it holds at a node that owns every shard and at one that owns none.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, entry_path};
use crate::support::node::Node;
use crate::support::place::{Place, Served, at_each_place};
use crate::support::random::Random;

const SHARDS: u16 = 3;

at_each_place![
    the_root_is_the_page,
    answers_have_the_names_and_shapes_of_the_contract,
    a_refused_request_has_its_code_and_changes_nothing,
    a_refused_request_leaves_its_connection_open,
    what_a_board_shows_can_be_sent_back,
    each_result_has_the_metadata_of_its_own_job,
    metadata_belongs_to_its_score_and_cursors_neither_skip_nor_repeat_while_scores_move,
    lists_show_their_members_on_other_boards_of_the_same_moment,
];

fn start(place: Place) -> (Served, Client) {
    let service = place.start(SHARDS);
    let client = service.client();
    (service, client)
}

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn has(object: &Value, names: &str) {
    let found: BTreeSet<&str> = object
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .filter(|name| *name != "as_of")
        .collect();
    assert_eq!(found, names.split_whitespace().collect(), "{object}");
}

/// A browser that is given the address finds the boards.
fn the_root_is_the_page(place: Place) {
    let (service, _) = start(place);
    let answer = raw(&service, &[b"GET / HTTP/1.0\r\n\r\n"]);
    assert!(answer.starts_with("HTTP/1.0 200 ") && answer.contains("<!doctype html>"), "{answer}");
    service.end();
}

const ENTRY: &str =
    "board window member score rank position better tied worse total percentile updated_at meta";
const LISTED: &str = "member score rank position updated_at meta";

fn answers_have_the_names_and_shapes_of_the_contract(place: Place) {
    let (service, client) = start(place);
    let race = json!({"keys": [{"name": "points", "order": "desc", "min": 0, "max": 1_000_000},
        {"name": "time_ms", "order": "asc"}], "policy": "best", "ties": "first", "windows": ["all"],
        "season": null, "utc_offset": "+09:00", "keep": 12, "grace": "5m", "entry_ttl": null, "capacity": null});
    assert_eq!(client.put("/v1/boards/race", &race).0, 201);
    assert_eq!(client.put("/v1/boards/race", &race).0, 200);
    let (status, problem) = client.put("/v1/boards/race", &json!({"ties": "last"}));
    assert_eq!((status, &problem["status"]), (409, &json!(409)), "{problem}");
    let board = ok(client.get("/v1/boards/race"));
    for (name, value) in race.as_object().expect("an object") {
        assert_eq!(&board[name], value, "{board}");
    }
    assert_eq!(board["totals"], json!({"all": 0}));

    // Ids that must be escaped in paths, the least and greatest exact scores, and ties.
    let jobs = json!([
        {"board": "arena", "member": "日本/..", "score": "9223372036854775807", "at": "2026-11-20T09:59:58Z"},
        {"board": "arena", "member": ".", "score": 9_007_199_254_740_991_i64, "meta": {"n": 1.50}},
        {"board": "arena", "member": "a b", "score": 865, "at": "2026-11-20T09:59:59.1234567Z"},
        {"board": "arena", "member": "c%", "score": 865, "at": "2026-11-20T09:59:58Z"},
        {"member": "p42", "scores": {"arena": "-9007199254740992", "race": [1200, 90000]}, "version": 17}
    ]);
    let answer = ok(client.post("/v1/jobs", &jobs));
    let results = answer["results"].as_array().expect("one result per job");
    assert_eq!(results.len(), 5, "{answer}");
    has(&results[0], "changed entry previous");
    has(&results[4], "changed entry previous boards");
    has(&results[0]["entry"], ENTRY);
    let after = answer["token"].as_str().expect("a token");

    let entry = ok(client.get(&format!("{}?after={after}", entry_path("arena", "a b"))));
    has(&entry, ENTRY);
    let counts = ["rank", "position", "better", "tied", "worse", "total"].map(|name| entry[name].as_u64());
    assert_eq!(counts, [3, 4, 2, 2, 1, 5].map(Some), "{entry}");
    assert_eq!((&entry["percentile"], &entry["meta"]), (&json!(20.0), &json!({})), "{entry}");
    assert_eq!(entry["updated_at"], "2026-11-20T09:59:59.123456Z");
    assert!(entry["as_of"].as_str().is_some_and(|as_of| as_of.split(',').count() == 3), "{entry}");
    assert_eq!(ok(client.get(&entry_path("race", "p42")))["score"], json!([1200, 90000]));

    let top = ok(client.get("/v1/boards/arena/top?limit=3"));
    has(&top, "board window total entries next_cursor");
    has(&top["entries"][0], LISTED);
    let scores = |list: &Value| -> Vec<Value> {
        list["entries"].as_array().expect("a list").iter().map(|entry| entry["score"].clone()).collect()
    };
    assert_eq!(scores(&top), [json!("9223372036854775807"), json!(9_007_199_254_740_991_i64), json!(865)]);
    let cursor = top["next_cursor"].as_str().expect("there is more");
    let rest = ok(client.get(&format!("/v1/boards/arena/top?cursor={cursor}")));
    assert_eq!(
        (scores(&rest), &rest["next_cursor"]),
        (vec![json!(865), json!("-9007199254740992")], &Value::Null)
    );
    let bottom = ok(client.get("/v1/boards/arena/top?from=bottom&limit=1"));
    assert_eq!(bottom["entries"][0]["position"], 5);
    assert_eq!(ok(client.get("/v1/boards/arena/positions/4?limit=1"))["entries"][0]["member"], "a b");
    let around = format!("{}/around?above=1&below=2&fill=true", entry_path("arena", "日本/.."));
    let around = ok(client.get(&around));
    has(&around, "board window total entries");
    assert_eq!(around["entries"].as_array().map(Vec::len), Some(4), "{around}");

    let group =
        ok(client.post("/v1/boards/arena/members:lookup", &json!({"members": ["p42", "?", "c%", "a b"]})));
    has(&group, "board window total entries not_found");
    has(&group["entries"][0], &format!("group_rank {LISTED}"));
    let ranks: Vec<_> =
        group["entries"].as_array().expect("a list").iter().map(|e| &e["group_rank"]).collect();
    assert_eq!((ranks, &group["not_found"]), (vec![&json!(1), &json!(1), &json!(3)], &json!(["?"])));

    check_ranks(&client);
    if place == Place::OwnsAll {
        check_probes(&service, &client);
    }
    let gone = ok(client.send(Method::DELETE, "/v1/members/p42", None).expect("an answer"));
    assert_eq!(gone["changed"], true);
    assert_eq!(client.get(&entry_path("race", "p42")).0, 404);
    assert!(client.send(Method::DELETE, "/v1/boards/race", None).is_ok_and(|(status, _)| status == 200));
    assert_eq!(client.get("/v1/boards/race").0, 404);
    service.end();
}

fn check_ranks(client: &Client) {
    let rank = ok(client.get("/v1/boards/race/rank?score=1200,89999"));
    let told = ["rank", "better", "tied", "worse", "total"].map(|name| rank[name].as_u64());
    assert_eq!(told, [1, 0, 0, 1, 1].map(Some), "{rank}");
    has(&rank["shards"][2], "shard better tied total");
    let many = ok(client.post("/v1/boards/arena/ranks:of", &json!({"scores": [866, "865", -1]})));
    let told: Vec<_> = many["ranks"].as_array().expect("a list").iter().map(|rank| &rank["rank"]).collect();
    assert_eq!(told, [&json!(3), &json!(3), &json!(5)]);
    for place in ["rank=4", "position=4", "percentile=20"] {
        let score = ok(client.get(&format!("/v1/boards/arena/score?{place}")));
        assert_eq!((&score["score"], &score["tied"]), (&json!(865), &json!(2)), "{place}");
    }
    assert_eq!(ok(client.get("/v1/boards/arena/count?min=865&max=865"))["count"], 2);
    let both = ok(client.get("/v1/members/p42?boards=arena,race,none"));
    assert_eq!((both["entries"].as_array().map(Vec::len), &both["not_found"]), (Some(2), &json!(["none"])));
    has(&both["entries"][0], ENTRY);
}

fn check_probes(service: &Node, client: &Client) {
    let status = ok(client.get("/v1/status"));
    assert_eq!(status["shards"].as_array().map(Vec::len), Some(3), "{status}");
    has(
        &status["shards"][0],
        "shard owner state reason damage applied_sequence last_sequence lag members rejects \
         checkpoint_sequence owners",
    );
    has(&status["shards"][0]["owners"][0], "node state applied_sequence lag checkpoint_sequence hash");
    has(&status["nodes"][0], "node address version alive silent_seconds problem");
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(client.get(probe).0, 200, "{probe}");
    }
    let metrics = raw(service, &[b"GET /metrics HTTP/1.0\r\n\r\n"]);
    for name in
        ["ranktree_jobs_applied_total{shard=\"2\"}", "ranktree_build_info", "process_cpu_seconds_total"]
    {
        assert!(metrics.contains(name), "{name}");
    }
    assert!(!metrics.contains("p42"), "no label is a member");
}

fn a_refused_request_has_its_code_and_changes_nothing(place: Place) {
    let (service, client) = start(place);
    let capped = json!({"keys": [{"name": "points", "min": 0, "max": 10}], "policy": "incr"});
    ok(client.put("/v1/boards/capped", &capped));
    let alice = entry_path("capped", "alice");
    ok(client.put(&alice, &json!({"score": 7, "version": 5})));

    let long = "x".repeat(257);
    let far = format!("{alice}?after=0:999999&timeout_ms=1");
    let cases = [
        ("PUT", alice.as_str(), json!({"score": 4}), 409, "out_of_range"),
        ("PUT", &alice, json!({"score": i64::MAX}), 409, "overflow"),
        ("PUT", &alice, json!({"score": 1, "version": 5}), 409, "stale_version"),
        ("PUT", &alice, json!({"score": [1, 2]}), 409, "bad_score"),
        ("PUT", &alice, json!({"score": 1.5}), 422, "bad_score"),
        ("PUT", &alice, json!({"score": "1e3"}), 422, "bad_score"),
        ("PUT", &alice, json!({"score": u64::MAX}), 422, "bad_score"),
        ("PUT", &alice, json!({"score": 1, "meta": {"k": "x".repeat(1024)}}), 422, "too_large"),
        ("PUT", &alice, json!({"score": 1, "op": "max"}), 422, "malformed"),
        ("PUT", &entry_path("capped", "a\nb"), json!({"score": 1}), 422, "bad_member"),
        ("PUT", &entry_path("capped", &long), json!({"score": 1}), 422, "bad_member"),
        ("PUT", "/v1/boards/.x", json!({}), 422, "malformed"),
        ("PUT", "/v1/boards/x", json!({"windows": ["all", "year"]}), 422, "invalid_definition"),
        ("GET", "/v1/boards/none/top", Value::Null, 404, "unknown_board"),
        ("GET", &entry_path("capped", "bob"), Value::Null, 404, "unknown_member"),
        ("GET", &format!("{alice}/around?above=501"), Value::Null, 422, "too_large"),
        ("GET", "/v1/boards/capped/top?limit=1001", Value::Null, 422, "too_large"),
        ("GET", "/v1/boards/capped/top?cursor=beef", Value::Null, 422, "bad_cursor"),
        ("GET", "/v1/boards/capped/rank?score=1,2", Value::Null, 422, "bad_score"),
        ("GET", &far, Value::Null, 504, "not_yet_applied"),
        ("GET", "/v1/nothing", Value::Null, 404, "unknown_route"),
        ("POST", "/v1/boards/capped/top", json!({}), 405, "method_not_allowed"),
        ("POST", "/v1/jobs", json!([]), 422, "malformed"),
        ("POST", "/v1/jobs", Value::from("x".repeat(1 << 20)), 413, "too_large"),
    ];
    for (method, path, body, status, code) in cases {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let body = Some(&body).filter(|body| !body.is_null());
        let (found, problem) = client.send(method, path, body).expect("an answer");
        assert_eq!((found, &problem["code"]), (status, &json!(code)), "{path}: {problem}");
        has(
            &problem,
            if path == "/v1/jobs" && status == 422 {
                "type title status code detail errors"
            } else {
                "type title status code detail"
            },
        );
    }

    // An invalid job refuses the whole request. A job that is refused because of the current state has its
    // result in the list.
    let invalid =
        br#"[{"board":"capped","member":"bob","score":1},{"board":"capped","member":"eve","score":1e999}]"#;
    let head = format!("POST /v1/jobs HTTP/1.0\r\nContent-Length: {}\r\n\r\n", invalid.len());
    let refused = raw(&service, &[head.as_bytes(), invalid]);
    assert!(refused.contains(r#""errors":[{"index":1,"code":"bad_score""#), "{refused}");
    assert_eq!(client.get(&entry_path("capped", "bob")).0, 404);
    let all_or_nothing = json!([{"member": "bob", "scores": {"fresh": 1, "capped": 11}}, {"board": "capped", "member": "eve", "score": 2}]);
    let answer = ok(client.post("/v1/jobs", &all_or_nothing));
    assert_eq!(answer["results"][0]["rejected"], "out_of_range", "{answer}");
    assert_eq!(answer["results"][1]["entry"]["rank"], 2, "{answer}");
    // With NATS, a board that a job names is there before the job is looked at. No entry is.
    let (status, fresh) = client.get("/v1/boards/fresh");
    match place {
        Place::OwnsAll => assert_eq!(status, 404, "{fresh}"),
        Place::OwnsNothing => assert_eq!((status, &fresh["totals"]), (200, &json!({"all": 0})), "{fresh}"),
    }
    let entry = ok(client.get(&alice));
    assert_eq!((&entry["score"], &entry["total"]), (&json!(7), &json!(2)), "nothing was half done");
}

/// Sends pieces one by one, like clients that send a body separately from its head, and reads until the end.
fn raw(service: &Node, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(service.address()).expect("the service is there");
    stream.set_nodelay(true).expect("a socket has the option");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a socket has the option");
    for piece in pieces {
        stream.write_all(piece).expect("the connection is kept");
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the service answers and closes");
    text
}

fn a_refused_request_leaves_its_connection_open(place: Place) {
    let (service, _) = start(place);
    // More bytes than a server reads together with a head.
    let body = vec![b' '; 1 << 20];
    for request in ["POST /nowhere", "PATCH /v1/boards", "PUT /v1/boards/a/members/%ff"] {
        let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        let text = raw(&service, &[head.as_bytes(), &body, b"GET /healthz HTTP/1.0\r\n\r\n"]);
        assert!(text.contains("application/problem+json") && text.ends_with("ok\n"), "{request}: {text}");
    }
}

fn what_a_board_shows_can_be_sent_back(place: Place) {
    let (service, client) = start(place);
    let regular = json!({"starts": "2026-01-01T00:00:00Z", "every": "30d"});
    for (number, definition) in [
        json!({}),
        json!({"keys": [{"name": "points", "min": 0, "max": 9}, {"name": "ms", "order": "asc"}], "policy": "best",
               "windows": ["all", "day", "season"], "season": regular, "movement": true, "entry_ttl": "30d",
               "capacity": 5, "utc_offset": "+05:30", "ties": "member"}),
        json!({"windows": ["season"], "season": "manual"}),
        json!({"kind": "top_k", "capacity": 5}),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/v1/boards/b{number}");
        let defined = ok(client.put(&path, &definition));
        let mut shown = ok(client.get(&path));
        for answer in [&defined, &shown] {
            let (status, same) = client.put(&path, answer);
            assert_eq!(status, 200, "{same}");
            assert_eq!((&same["keys"], &same["keep"]), (&shown["keys"], &shown["keep"]));
        }
        shown["keep"] = json!(3);
        assert_eq!(ok(client.put(&path, &shown))["keep"], 3);
        let (status, problem) = client.put("/v1/boards/other", &shown);
        assert_eq!((status, &problem["code"]), (422, &json!("invalid_definition")), "{problem}");
        shown["grac"] = json!("1h");
        assert_eq!(client.put(&path, &shown).0, 422, "a misspelt field is refused");
    }
    service.end();
}

fn each_result_has_the_metadata_of_its_own_job(place: Place) {
    let (_service, client) = start(place);
    let job = |score: i64, rest: Value| {
        let mut job = json!({"board": "arena", "member": "m", "score": score});
        job.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
        job
    };
    let jobs = json!([
        job(1, json!({"meta": {"n": 1}})),
        job(2, json!({"meta": {"n": 2}})),
        job(1, json!({"meta": {"n": 0}, "op": "best"})),
        job(3, json!({})),
        job(4, json!({"meta": {}})),
        job(5, json!({"meta": {"n": 5}})),
    ]);
    let answer = ok(client.post("/v1/jobs", &jobs));
    let told = answer["results"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|result| (result["entry"]["score"].as_i64(), result["entry"]["meta"]["n"].as_i64()));
    let expect = [(1, Some(1)), (2, Some(2)), (2, Some(2)), (3, Some(2)), (4, None), (5, Some(5))];
    assert_eq!(told.collect::<Vec<_>>(), expect.map(|(score, n)| (Some(score), n)), "{answer}");
}

const MOVING: u64 = 120;
const STANDING: u64 = 60;
const STANDING_APART: u64 = 1_000;
const WALKS: usize = 60;

fn metadata_belongs_to_its_score_and_cursors_neither_skip_nor_repeat_while_scores_move(place: Place) {
    let (service, client) = start(place);
    let job = |member: String, score: u64| json!({"board": "arena", "member": member, "score": score, "meta": {"n": score}});
    let standing = (0..STANDING).map(|n| job(format!("s{n:02}"), n * STANDING_APART));
    let moving = (0..MOVING).map(|n| job(format!("m{n}"), n));
    ok(client.post("/v1/jobs", &standing.chain(moving).collect()));

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (client, done) = (service.client(), &done);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                while !done.load(Ordering::Relaxed) {
                    let jobs = (0..40).map(|_| {
                        let member = format!("m{}", random.below(MOVING));
                        job(member, random.below(STANDING * STANDING_APART))
                    });
                    let answer = ok(client.post("/v1/jobs", &jobs.collect()));
                    for result in answer["results"].as_array().expect("a list") {
                        assert_eq!(result["entry"]["score"], result["entry"]["meta"]["n"], "{result}");
                    }
                }
            });
        }
        let (client, done) = (service.client(), &done);
        scope.spawn(move || {
            let mut random = Random::new(7);
            while !done.load(Ordering::Relaxed) {
                check_metadata(&ok(client.get("/v1/boards/arena/top?limit=1000"))["entries"]);
                let member = format!("m{}", random.below(MOVING));
                check_metadata(&json!([ok(client.get(&entry_path("arena", &member)))]));
                let boards = ok(client.get(&format!("/v1/members/{member}")));
                check_metadata(&boards["entries"]);
            }
        });
        let walks = scope.spawn(|| (0..WALKS).for_each(|walk| check_walk(&service.client(), walk)));
        let walked = walks.join();
        done.store(true, Ordering::Relaxed);
        walked.expect("every walk is as it should be");
    });
}

fn check_metadata(entries: &Value) {
    for entry in entries.as_array().expect("a list") {
        assert_eq!(entry["score"], entry["meta"]["n"], "{entry}");
    }
}

/// Reads the whole board. The order holds across pages, and a member whose score does not change is listed
/// once.
fn check_walk(client: &Client, walk: usize) {
    let from = if walk.is_multiple_of(2) { "top" } else { "bottom" };
    let (mut met, mut scores) = (Vec::new(), Vec::new());
    let mut cursor = String::new();
    loop {
        let limit = 3 + walk % 17;
        let page = ok(client.get(&format!("/v1/boards/arena/top?limit={limit}&from={from}&cursor={cursor}")));
        for entry in page["entries"].as_array().expect("a list") {
            scores.push(entry["score"].as_i64().expect("an integer"));
            let member = entry["member"].as_str().expect("a string");
            met.extend(member.strip_prefix('s').map(|number| number.parse::<u64>().expect("a number")));
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        next.clone_into(&mut cursor);
    }
    if from == "top" {
        met.reverse();
        scores.reverse();
    }
    assert!(scores.is_sorted(), "from the {from}: {scores:?}");
    assert!(met.iter().copied().eq(0..STANDING), "from the {from}: {met:?}");
}

/// A hidden entry of another board is not shown, and does not count there.
fn hidden_entries_are_no_columns(client: &Client) {
    let jobs = json!([
        {"member": "x", "scores": {"small": 2, "other": 9}}, {"member": "y", "scores": {"small": 1, "other": 8}},
        {"board": "other", "member": "x", "op": "hide"}
    ]);
    let answer = ok(client.post("/v1/jobs?wait=applied", &jobs));
    let after = answer["token"].as_str().expect("a token");
    let top = ok(client.get(&format!("/v1/boards/small/top?with=other&with_rank=true&after={after}")));
    let columns: Vec<&Value> =
        top["entries"].as_array().expect("a list").iter().map(|entry| &entry["with"]["other"]).collect();
    assert_eq!(columns, [&json!(null), &json!({"score": 8, "rank": 1})], "{top}");
}

/// Each job gives a member the same number on all boards, so that an answer of one moment of the member's
/// shard shows it three times, while writers go on. Ranks are those that the numbers have among all.
fn lists_show_their_members_on_other_boards_of_the_same_moment(place: Place) {
    const MEMBERS: u64 = 40;
    let (service, client) = start(place);
    ok(client.put("/v1/boards/deaths", &json!({"keys": [{"name": "deaths", "order": "asc"}]})));
    let job = |member: u64, number: u64| {
        let scores = json!({"arena": number, "kills": number, "deaths": number});
        json!({"member": format!("m{member}"), "scores": scores})
    };
    let jobs: Vec<Value> = (0..MEMBERS).map(|member| job(member, member)).collect();
    let answer = ok(client.post("/v1/jobs?wait=applied", &json!(jobs)));
    let after = answer["token"].as_str().expect("a token").to_owned();
    let with = "with=kills,deaths&with_rank=true";
    let check = |answer: &Value| {
        assert_eq!(answer["with_windows"], json!({"kills": "all", "deaths": "all"}), "{answer}");
        let entries = answer["entries"].as_array().expect("a list");
        for entry in entries {
            let (score, with) = (&entry["score"], &entry["with"]);
            assert_eq!((&with["kills"]["score"], &with["deaths"]["score"]), (score, score), "{answer}");
            // The boards have the same members with the same scores, one of them in the reverse order.
            assert_eq!(with["kills"]["rank"], entry["rank"], "{answer}");
            let worse = with["deaths"]["rank"].as_u64().expect("a rank") - 1;
            let better = entry["rank"].as_u64().expect("a rank") - 1;
            assert!(better + worse < MEMBERS, "{answer}");
        }
        entries.len()
    };
    let top = ok(client.get(&format!("/v1/boards/arena/top?limit=40&{with}&after={after}")));
    assert_eq!(check(&top), 40);
    hidden_entries_are_no_columns(&client);
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
        let lookup = json!({"members": (0..9).map(|member| format!("m{member}")).collect::<Vec<_>>()});
        for _ in 0..40 {
            for list in ["top?", "top?from=bottom&", "range?min=100&", "positions/7?", "members/m3/around?"] {
                let path = format!("/v1/boards/arena/{list}{with}");
                // There may be nobody yet with a hundred.
                assert!(check(&ok(client.get(&path))) > 0 || list.starts_with("range"), "{path}");
            }
            let found = ok(client.post(&format!("/v1/boards/arena/members:lookup?{with}"), &lookup));
            assert_eq!(check(&found), 9);
        }
        stop.store(true, Ordering::Relaxed);
    });
    service.end();
}
