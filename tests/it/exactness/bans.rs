//! A ban lasts: whoever is hidden is in no list, count or rank of the board, in no instance of any window,
//! before a first score, after removals, clears and drops, until it ends. At a node that owns all shards, and
//! through one that owns none; and after a kill.

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, count_of, entry_path};
use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};
use crate::support::tokens::new_token;
use crate::support::watch::{Board, Watch};

const SHARDS: u16 = 3;

at_each_place![
    whoever_is_hidden_is_in_no_read_of_any_window_and_every_count_is_of_the_others,
    a_ban_is_there_before_a_first_score_and_outlasts_removals_clears_and_drops,
    a_ban_of_all_boards_holds_on_those_to_come_and_each_ban_ends_by_itself,
    a_ban_creates_no_board_and_follows_the_rules_of_versions,
    bans_are_listed_page_by_page,
    a_hidden_entry_is_answered_with_the_rank_that_it_would_have,
    whoever_is_hidden_takes_nobodys_place_where_memory_is_fixed,
];

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn post(client: &Client, job: &Value) -> Value {
    ok(client.post("/v1/jobs", job))["results"][0].clone()
}

fn hide(client: &Client, board: Option<&str>, member: &str) -> Value {
    post(client, &json!({ "op": "hide", "board": board, "member": member }))
}

fn show(client: &Client, board: Option<&str>, member: &str) -> Value {
    post(client, &json!({ "op": "show", "board": board, "member": member }))
}

fn score(client: &Client, board: &str, member: &str, score: i64) -> Value {
    ok(client.put(&entry_path(board, member), &json!({ "score": score })))
}

fn members(list: &Value) -> Vec<String> {
    let entries = list["entries"].as_array().unwrap_or_else(|| panic!("no list: {list}"));
    entries.iter().map(|entry| entry["member"].as_str().expect("an id").to_owned()).collect()
}

fn is_listed(client: &Client, board: &str, member: &str, window: &str) -> bool {
    let top = ok(client.get(&format!("/v1/boards/{board}/top?limit=1000&window={window}")));
    let listed = members(&top).iter().any(|listed| listed == member);
    let (status, answer) = client.get(&format!("{}?window={window}", entry_path(board, member)));
    assert_eq!(status == 200, listed, "{answer}");
    if !listed {
        assert_eq!(answer["code"], "unknown_member", "{answer}");
    }
    listed
}

/// What every read of a board says, without times, tokens and cursors.
fn reads(client: &Client, board: &str, window: &str) -> Vec<Value> {
    let get = |read: &str| {
        let (with, and) = (read.contains('?'), format!("window={window}"));
        let path = format!("/v1/boards/{board}/{read}{}{and}", if with { "&" } else { "?" });
        let mut answer = ok(client.get(&path));
        for name in ["as_of", "next_cursor"] {
            answer.as_object_mut().expect("an object").remove(name);
        }
        answer
    };
    let lookup = json!({ "members": ["m0", "m7", "cheat", "m1"] });
    let scores = json!({ "scores": [3, 900, 5] });
    let posted = [("members:lookup", lookup), ("ranks:of", scores)].map(|(read, body)| {
        let mut answer = ok(client.post(&format!("/v1/boards/{board}/{read}?window={window}"), &body));
        answer.as_object_mut().expect("an object").remove("as_of");
        answer
    });
    let got = [
        "top?limit=50",
        "top?limit=50&from=bottom",
        "positions/2?limit=4",
        "range?min=2&max=1000",
        "rank?score=5",
        "score?rank=1",
        "score?position=1",
        "score?percentile=50",
        "count?min=0&max=1000",
        "histogram?buckets=4",
        "percentiles?p=10,50,90,99",
        "members/m3",
        "members/m3/around?above=3&below=3&fill=true",
    ];
    got.into_iter().map(get).chain(posted).collect()
}

/// Two boards of the same jobs, of which one has a cheat who is hidden and the other has none, answer alike.
fn whoever_is_hidden_is_in_no_read_of_any_window_and_every_count_is_of_the_others(place: Place) {
    let mut service = place.start(SHARDS);
    let client = service.client();
    let definition =
        json!({ "windows": ["all", "day", "month"], "policy": "incr", "capacity": 8, "movement": true });
    for board in ["with", "without"] {
        ok(client.put(&format!("/v1/boards/{board}"), &definition));
    }
    let at = "2026-01-02T03:04:05Z";
    let play = |board: &str, cheats: bool| {
        for (round, number) in (0..3).flat_map(|round| (0..10).map(move |number| (round, number))) {
            if cheats && number == 4 {
                let job = json!({ "board": board, "member": "cheat", "score": 300 });
                let told = post(&client, &job);
                // The answer tells what a reader sees.
                let is_hidden = round > 0;
                assert_eq!(told["entry"].is_null(), is_hidden, "{told}");
                assert_eq!((&told["changed"], told["previous"].is_null()), (&json!(true), true), "{told}");
                if round == 0 {
                    let told = hide(&client, Some(board), "cheat");
                    assert_eq!((&told["changed"], &told["entry"]), (&json!(true), &Value::Null), "{told}");
                    assert_eq!(told["previous"]["score"], 300, "{told}");
                    assert_eq!(hide(&client, Some(board), "cheat")["changed"], false);
                }
            }
            let member = format!("m{number}");
            post(&client, &json!({ "board": board, "member": member, "score": number % 4 + 1 }));
        }
    };
    play("with", true);
    play("without", false);
    let without_names = |answers: Vec<Value>| -> Vec<String> {
        let text = |answer: Value| {
            let mut answer = answer;
            strip_times(&mut answer);
            answer.to_string().replace("\"without\"", "\"with\"")
        };
        answers.into_iter().map(text).collect()
    };
    let month = ok(client.get("/v1/boards/with/top?window=month"))["window"].clone();
    let alike = |service: &Node| {
        let client = service.client();
        for window in ["all", "day", "month", month.as_str().expect("a name")] {
            let (with, without) = (reads(&client, "with", window), reads(&client, "without", window));
            assert_eq!(without_names(with), without_names(without), "{window}");
            assert!(!is_listed(&client, "with", "cheat", window));
        }
        let moved = |board: &str| {
            let top = ok(client.get(&format!("/v1/boards/{board}/top?limit=50&movement=day")));
            let entries = top["entries"].as_array().expect("a list").clone();
            entries.into_iter().map(|entry| entry["movement"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(moved("with"), moved("without"));
        let of_member = ok(client.get("/v1/members/cheat?boards=with,without"));
        assert_eq!(of_member["not_found"], json!(["with", "without"]), "{of_member}");
        assert_eq!(ok(client.get("/v1/members/cheat"))["entries"], json!([]));
    };
    alike(&service);
    // A summary is made about once a second: the next one is without the cheat.
    wait_until("summaries have no cheat", || {
        let approx = ok(client.get("/v1/boards/with/rank?score=5&accuracy=approx"));
        count_of(&approx["total"]) == 8 || count_of(&approx["total"]) == 10
    });
    if matches!(place, Place::OwnsAll) {
        service.kill9();
        service.restart();
        alike(&service);
    }
    let client = service.client();
    let late = json!({ "board": "with", "member": "cheat", "score": 1, "at": at });
    assert_eq!(post(&client, &late)["entry"], Value::Null, "an earlier month is closed, and all is hidden");
    assert_eq!(show(&client, Some("with"), "cheat")["entry"]["score"], 901);
    for window in ["all", "day", "month"] {
        assert!(is_listed(&client, "with", "cheat", window), "{window}");
    }
    service.end();
}

fn strip_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "updated_at" && name != "since");
            fields.values_mut().for_each(strip_times);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_times),
        _ => {}
    }
}

fn a_ban_is_there_before_a_first_score_and_outlasts_removals_clears_and_drops(place: Place) {
    let mut service = place.start(SHARDS);
    let client = service.client();
    let definition = json!({ "windows": ["season", "all", "day"], "season": "manual" });
    ok(client.put("/v1/boards/arena", &definition));
    ok(client.post("/v1/boards/arena/seasons?force=true", &json!({})));
    wait_until("the season has begun", || client.get("/v1/boards/arena/top?window=season").0 == 200);
    let told = hide(&client, Some("arena"), "p");
    assert_eq!(
        (&told["changed"], &told["entry"], &told["previous"]),
        (&json!(true), &Value::Null, &Value::Null)
    );
    let stays_hidden = |service: &Node, context: &str| {
        let client = service.client().waiting_for_writes();
        let told = score(&client, "arena", "p", 1_000);
        assert_eq!((&told["entry"], &told["previous"]), (&Value::Null, &Value::Null), "{context}: {told}");
        score(&client, "arena", "q", 5);
        for window in ["all", "day", "season"] {
            assert!(!is_listed(&client, "arena", "p", window), "{context}: {window}");
            assert!(is_listed(&client, "arena", "q", window), "{context}: {window}");
        }
    };
    stays_hidden(&service, "before a first score");
    ok(client.send(Method::DELETE, &entry_path("arena", "p"), None).expect("an answer"));
    stays_hidden(&service, "after a removal");
    ok(client.send(Method::DELETE, "/v1/members/p", None).expect("an answer"));
    stays_hidden(&service, "after a removal from every board");
    ok(client.post("/v1/boards/arena/seasons?force=true", &json!({})));
    wait_until("the next season has begun", || {
        ok(client.get("/v1/boards/arena/top?window=season"))["window"] == "s2"
    });
    stays_hidden(&service, "in the next season");
    assert!(!is_listed(&client, "arena", "p", "s1"));
    ok(client.post("/v1/boards/arena:trim", &json!({ "worse_than": 10_000 })));
    stays_hidden(&service, "after a trim");
    ok(client.post("/v1/boards/arena:clear", &json!({})));
    stays_hidden(&service, "after a clear");
    ok(client.send(Method::DELETE, "/v1/boards/arena", None).expect("an answer"));
    assert_eq!(show(&client, Some("arena"), "other")["rejected"], "unknown_board");
    ok(client.put("/v1/boards/arena", &json!({ "windows": ["season", "all", "day"], "season": "manual" })));
    ok(client.post("/v1/boards/arena/seasons?force=true", &json!({})));
    wait_until("the season has begun", || client.get("/v1/boards/arena/top?window=season").0 == 200);
    stays_hidden(&service, "on another board of the same name");
    if matches!(place, Place::OwnsAll) {
        service.kill9();
        service.restart();
        stays_hidden(&service, "after a kill");
    }
    let client = service.client();
    let told = show(&client, Some("arena"), "p");
    assert_eq!((&told["changed"], &told["entry"]["rank"]), (&json!(true), &json!(1)), "{told}");
    assert!(is_listed(&client, "arena", "p", "season"));
    service.end();
}

fn a_ban_of_all_boards_holds_on_those_to_come_and_each_ban_ends_by_itself(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    score(&client, "one", "p", 10);
    score(&client, "one", "q", 5);
    let told = hide(&client, None, "p");
    assert_eq!((&told["changed"], &told["counts"]), (&json!(true), &json!({ "boards": 1, "changed": 1 })));
    assert_eq!(hide(&client, None, "p")["changed"], false);
    // Boards that come later: one that is defined, and one that a job makes.
    ok(client.put("/v1/boards/two", &json!({ "windows": ["day", "all"] })));
    for board in ["two", "three"] {
        assert_eq!(score(&client, board, "p", 10)["entry"], Value::Null);
        score(&client, board, "q", 5);
    }
    for board in ["one", "two", "three"] {
        assert!(!is_listed(&client, board, "p", "all") && is_listed(&client, board, "q", "all"), "{board}");
    }
    // The ban of a board and that of all boards are two.
    assert_eq!(show(&client, Some("two"), "p")["changed"], false, "it has no ban of its own");
    assert_eq!(hide(&client, Some("two"), "p")["changed"], true);
    assert!(!is_listed(&client, "two", "p", "all"));
    let told = show(&client, None, "p");
    assert_eq!((&told["changed"], &told["counts"]["changed"]), (&json!(true), &json!(2)), "{told}");
    for (board, is_there) in [("one", true), ("two", false), ("three", true)] {
        assert_eq!(is_listed(&client, board, "p", "all"), is_there, "{board}");
    }
    assert_eq!(show(&client, Some("two"), "p")["entry"]["rank"], 1);
    assert!(is_listed(&client, "two", "p", "day"));
    service.end();
}

fn a_ban_creates_no_board_and_follows_the_rules_of_versions(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    for op in ["hide", "show"] {
        let told = post(&client, &json!({ "op": op, "board": "nowhere", "member": "p" }));
        assert_eq!(told["rejected"], "unknown_board", "{told}");
        assert!(told["detail"].as_str().is_some_and(|text| text.contains("no board nowhere")), "{told}");
        let (status, problem) = client.put(&entry_path("nowhere", "p"), &json!({ "op": op }));
        assert_eq!((status, &problem["code"]), (409, &json!("unknown_board")), "{problem}");
    }
    assert_eq!(client.get("/v1/boards/nowhere").0, 404);
    ok(client.put("/v1/boards/arena", &json!({})));
    let versioned = |op: &str, board: Option<&str>, member: &str, version: u64| {
        post(&client, &json!({ "op": op, "board": board, "member": member, "version": version }))
    };
    assert_eq!(versioned("hide", Some("arena"), "p", 5)["changed"], true, "before a first score");
    assert_eq!(versioned("show", Some("arena"), "p", 5)["rejected"], "stale_version");
    let set = |member: &str, version: u64| {
        let job = json!({ "board": "arena", "member": member, "score": 7, "version": version });
        post(&client, &job)
    };
    assert_eq!(set("p", 4)["rejected"], "stale_version", "an older write that comes late");
    assert_eq!(set("p", 6)["entry"], Value::Null);
    assert_eq!(versioned("show", Some("arena"), "p", 6)["rejected"], "stale_version");
    assert_eq!(versioned("show", Some("arena"), "p", 7)["entry"]["score"], 7);
    // What a board knows, a write token of that board has written: it protects from no ban of all boards.
    assert_eq!(versioned("hide", None, "p", 3)["changed"], true);
    assert!(!is_listed(&client, "arena", "p", "all"));
    assert_eq!(versioned("show", None, "p", 3)["rejected"], "stale_version");
    assert_eq!(versioned("show", None, "p", 4)["changed"], true);
    assert!(is_listed(&client, "arena", "p", "all"));
    // Of all boards: it holds where the member has nothing.
    assert_eq!(versioned("hide", None, "q", 9)["changed"], true);
    assert_eq!(set("q", 9)["rejected"], "stale_version");
    assert_eq!(versioned("show", None, "q", 9)["rejected"], "stale_version");
    assert_eq!(set("q", 10)["entry"], Value::Null);
    assert_eq!(versioned("show", None, "q", 11)["changed"], true);
    assert!(is_listed(&client, "arena", "q", "all"));
    // The ban outlasts the board's entries and the board, and so does its version.
    let forgotten = [
        ("cleared", Method::POST, "/v1/boards/arena:clear"),
        ("dropped", Method::DELETE, "/v1/boards/arena"),
    ];
    for (member, method, path) in forgotten {
        assert_eq!(versioned("hide", Some("arena"), member, 5)["changed"], true);
        assert_eq!(versioned("hide", Some("arena"), member, 6)["changed"], false);
        ok(client.send(method, path, None).expect("an answer"));
        for version in [4, 6] {
            for op in ["show", "hide"] {
                let told = versioned(op, Some("arena"), member, version);
                assert_eq!(told["rejected"], "stale_version", "{member}, {op} {version}: {told}");
            }
        }
        assert!(
            listed(&client, "&board=arena", 100).contains(&(member.to_owned(), Some("arena".to_owned())))
        );
        assert_eq!(versioned("show", Some("arena"), member, 7)["changed"], true);
        assert_eq!(listed(&client, "&board=arena", 100), Vec::new());
    }
    service.end();
}

fn listed(client: &Client, filter: &str, limit: usize) -> Vec<(String, Option<String>)> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ok(client.get(&format!("/v1/hidden?limit={limit}&cursor={cursor}{filter}")));
        let bans = page["hidden"].as_array().expect("a list");
        assert!(bans.len() <= limit, "{page}");
        for ban in bans {
            assert!(ban["since"].as_str().is_some_and(|since| since.ends_with('Z')), "{ban}");
            let member = ban["member"].as_str().expect("an id").to_owned();
            all.push((member, ban["board"].as_str().map(str::to_owned)));
        }
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return all,
        }
    }
}

fn bans_are_listed_page_by_page(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    for board in ["a", "b"] {
        ok(client.put(&format!("/v1/boards/{board}"), &json!({})));
    }
    assert_eq!(ok(client.get("/v1/hidden"))["hidden"], json!([]));
    let mut expected: Vec<(Option<String>, String)> = Vec::new();
    for number in 0..20 {
        let member = format!("m{number:02} \"日本\"");
        let board = [None, Some("a"), Some("b")][number % 3];
        assert_eq!(hide(&client, board, &member)["changed"], true);
        expected.push((board.map(str::to_owned), member));
    }
    hide(&client, Some("a"), "ended");
    show(&client, Some("a"), "ended");
    expected.sort();
    let expected: Vec<_> = expected.into_iter().map(|(board, member)| (member, board)).collect();
    let of = |board: &str| -> Vec<_> {
        let holds = |ban: &&(String, Option<String>)| ban.1.as_deref().is_none_or(|on| on == board);
        expected.iter().filter(holds).cloned().collect()
    };
    for limit in [1, 3, 20, 1_000] {
        assert_eq!(listed(&client, "", limit), expected, "{limit}");
        assert_eq!(listed(&client, "&board=a", limit), of("a"), "{limit}");
    }
    assert_eq!(listed(&client, "&board=none", 10), of("none"));
    // One of them is asked for: of all boards, of one board, and of none.
    hide(&client, Some("a"), "m03 \"日本\"");
    let both = [None, Some("a".to_owned())].map(|board| ("m03 \"日本\"".to_owned(), board));
    let member = "&member=m03%20%22%E6%97%A5%E6%9C%AC%22";
    for limit in [1, 2, 30] {
        assert_eq!(listed(&client, member, limit), both, "{limit}");
        assert_eq!(listed(&client, &format!("{member}&board=a"), limit), both, "{limit}");
        assert_eq!(listed(&client, &format!("{member}&board=b"), limit), both[..1], "{limit}");
        assert_eq!(listed(&client, "&member=nobody", limit), []);
    }
    let (status, problem) = client.get("/v1/hidden?cursor=zz");
    assert_eq!((status, &problem["code"]), (422, &json!("bad_parameter")));
    service.end();
}

fn a_hidden_entry_is_answered_with_the_rank_that_it_would_have(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    ok(client.put("/v1/boards/arena", &json!({ "windows": ["all", "day"] })));
    for number in 0..30 {
        score(&client, "arena", &format!("m{number}"), number / 3);
    }
    let meta = json!({ "score": 5, "meta": { "car": "mx5" } });
    ok(client.put(&entry_path("arena", "p"), &meta));
    let without = |mut entry: Value| {
        for name in ["as_of", "hidden"] {
            entry.as_object_mut().expect("an object").remove(name);
        }
        entry
    };
    let path = entry_path("arena", "p");
    let before = ["all", "day"].map(|window| without(ok(client.get(&format!("{path}?window={window}")))));
    hide(&client, Some("arena"), "p");
    for (window, before) in ["all", "day"].into_iter().zip(before) {
        assert_eq!(client.get(&format!("{path}?window={window}")).0, 404);
        let entry = ok(client.get(&format!("{path}?window={window}&hidden=true")));
        assert_eq!(entry["hidden"], true, "{entry}");
        assert_eq!(without(entry), before, "it would stand where it stood");
        let all = ok(client.get(&format!("/v1/members/p?window={window}&hidden=true")));
        assert_eq!(without(all["entries"][0].clone()), before, "{all}");
        assert_eq!(all["entries"][0]["hidden"], true);
        let named = ok(client.get(&format!("/v1/members/p?boards=arena&window={window}&hidden=true")));
        assert_eq!(without(named["entries"][0].clone()), before, "{named}");
    }
    assert_eq!(ok(client.get("/v1/members/p"))["entries"], json!([]));
    let listed = ok(client.get(&format!("{}?hidden=true", entry_path("arena", "m3"))));
    assert_eq!(listed.get("hidden"), None, "{listed}");
    let (status, problem) = client.get(&format!("{}?hidden=true", entry_path("arena", "nobody")));
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_member")));
    service.end();
}

fn whoever_is_hidden_takes_nobodys_place_where_memory_is_fixed(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    ok(client
        .put("/v1/boards/counted", &json!({ "kind": "top_k", "capacity": 3, "windows": ["all", "day"] })));
    assert_eq!(hide(&client, Some("counted"), "spam")["changed"], true);
    for (member, count) in [("a", 10), ("b", 8), ("spam", 500), ("c", 6), ("spam", 500)] {
        let told = post(&client, &json!({ "board": "counted", "member": member, "score": count }));
        assert_eq!(told["entry"].is_null(), member == "spam", "{told}");
    }
    for window in ["all", "day"] {
        let top = ok(client.get(&format!("/v1/boards/counted/top?window={window}")));
        assert_eq!((members(&top), &top["total"]), (vec!["a".into(), "b".into(), "c".into()], &json!(3)));
    }
    assert_eq!(show(&client, Some("counted"), "spam")["entry"]["score"], 1_000);
    assert_eq!(members(&ok(client.get("/v1/boards/counted/top"))), ["spam", "a", "b"]);
    assert_eq!(hide(&client, None, "spam")["changed"], true);
    let left = members(&ok(client.get("/v1/boards/counted/top")));
    assert!(left.starts_with(&["a".to_owned(), "b".to_owned()]) && !left.contains(&"spam".to_owned()));
    service.end();
}

#[test]
fn a_watcher_of_the_board_is_told_that_a_member_is_hidden_and_nothing_of_what_it_does_then() {
    let node = Node::shards(SHARDS).start();
    let client = node.client();
    for (member, points) in [("a", 50), ("cheat", 40), ("c", 30)] {
        score(&client, "arena", member, points);
    }
    let mut watch = Watch::open(node.address(), "/v1/boards/arena/live?top=5&members=cheat&max_rate=20", &[]);
    let mut board = Board::default();
    let first = watch.event();
    board.take(&first);
    assert_eq!(board.total, 3, "{first:?}");
    hide(&client, Some("arena"), "cheat");
    score(&client, "arena", "cheat", 90);
    score(&client, "arena", "d", 10);
    watch.until(|event| {
        board.take(event);
        json!(board.entries).to_string().contains("\"d\"")
    });
    assert_eq!(board.total, 3);
    assert!(!json!(board.entries).to_string().contains("cheat"), "{:?}", board.entries);
}

#[test]
fn bans_and_hidden_entries_are_for_who_may_write_and_for_its_boards() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let (reader, reader_lines) = new_token(&["--scope", "read", "--name", "reader"]);
    let (mine, mine_lines) = new_token(&["--scope", "write", "--board-prefix", "eu-", "--name", "mine"]);
    let (all, all_lines) = new_token(&["--scope", "admin", "--name", "all"]);
    std::fs::write(&file, [reader_lines, mine_lines, all_lines].join("\n")).expect("it can be written");
    let node = Node::shards(2).flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    let with = |token: &str| node.client().with_token(token);
    let (reader, mine, all) = (with(&reader), with(&mine), with(&all));
    for board in ["eu-a", "us-a"] {
        ok(all.put(&format!("/v1/boards/{board}"), &json!({})));
        hide(&all, Some(board), "p");
    }
    hide(&all, None, "q");
    let code =
        |(status, answer): (u16, Value)| (status, answer["code"].as_str().unwrap_or_default().to_owned());
    let scope = || (403, "insufficient_scope".to_owned());
    assert_eq!(code(reader.get("/v1/hidden")), scope());
    assert_eq!(code(reader.get("/v1/boards/eu-a/members/p?hidden=true")), scope());
    assert_eq!(code(reader.get("/v1/members/p?hidden=true")), scope());
    let of = |bans: &[(&str, Option<&str>)]| -> Vec<_> {
        bans.iter().map(|(member, board)| ((*member).to_owned(), board.map(str::to_owned))).collect()
    };
    assert_eq!(listed(&all, "", 10), of(&[("q", None), ("p", Some("eu-a")), ("p", Some("us-a"))]));
    assert_eq!(listed(&mine, "", 10), of(&[("p", Some("eu-a"))]));
    assert_eq!(listed(&mine, "&board=eu-a", 10), of(&[("p", Some("eu-a"))]));
    for filter in ["&member=p", "&member=p&board=eu-a"] {
        assert_eq!(listed(&mine, filter, 10), of(&[("p", Some("eu-a"))]));
    }
    assert_eq!(listed(&mine, "&member=q", 10), []);
    let forbidden = || (403, "forbidden_board".to_owned());
    assert_eq!(code(mine.get("/v1/hidden?board=us-a")), forbidden());
    let everywhere = json!({ "op": "hide", "member": "r" });
    assert_eq!(code(mine.post("/v1/jobs", &everywhere)), forbidden());
    let here = json!({ "op": "hide", "board": "eu-a", "member": "r" });
    assert_eq!(mine.post("/v1/jobs", &here).0, 200);
}
