//! Movement: each entry's position when a season began, less its position now, as two lists say. At a node
//! that owns all shards, through one that owns none, and through one that owns some; after a kill, and when
//! nobody writes.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::Client;
use crate::support::nats::{Nats, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};

const SHARDS: u16 = 3;
const BOARD: &str = "/v1/boards/league";

at_each_place![movement_is_what_the_lists_of_then_and_now_say];

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn define(client: &Client) {
    let definition = json!({ "windows": ["all", "season", "day"], "season": "manual", "movement": true });
    assert_eq!(ok(client.put(BOARD, &definition))["movement"], true);
}

/// Opens a season, and waits until it has begun. The next one begins when the test says so, and not at
/// midnight.
fn begin_season(clients: &[Client], season: &str) {
    let opened = ok(clients[0].post(&format!("{BOARD}/seasons?force=true"), &json!({})));
    assert_eq!(opened["season"], season);
    for client in clients {
        wait_until("the season has begun", || {
            let (status, answer) = client.get(&format!("{BOARD}/top?window=season&limit=1"));
            status == 200 && answer["window"] == season
        });
    }
}

/// All members in their order.
fn listed(client: &Client) -> Vec<String> {
    let answer = ok(client.get(&format!("{BOARD}/top?limit=1000")));
    let entries = answer["entries"].as_array().expect("a list");
    entries.iter().map(|entry| entry["member"].as_str().expect("an id").to_owned()).collect()
}

/// Some members get other scores, of few values so that many are tied; others are removed, hidden or shown.
fn change(client: &Client, random: &mut StdRng, members: usize) {
    let job = |random: &mut StdRng| {
        let mut job = json!({ "board": "league", "member": format!("m{}", random.random_range(0..members)) });
        match random.random_range(0..10) {
            0 => job["op"] = json!("remove"),
            1 => job["op"] = json!("hide"),
            2 => job["op"] = json!("show"),
            _ => job["score"] = json!(random.random_range(0..6)),
        }
        job
    };
    let jobs: Vec<Value> = (0..members).map(|_| job(random)).collect();
    ok(client.post("/v1/jobs", &json!(jobs)));
    let gone = format!("/v1/members/m{}", random.random_range(0..members));
    ok(client.send(Method::DELETE, &gone, None).expect("the service answers"));
}

fn check(client: &Client, then: &[String]) {
    let now = listed(client);
    let signed = |place: usize| i64::try_from(place).expect("a few");
    let expected = |member: &str| -> Value {
        let place = |list: &[String]| list.iter().position(|other| other == member);
        let now = place(&now).expect("it is listed");
        place(then).map_or(Value::Null, |then| json!(signed(then) - signed(now)))
    };
    let check = |entries: &Value| {
        let entries = entries.as_array().expect("a list");
        for entry in entries {
            let member = entry["member"].as_str().expect("an id");
            assert_eq!(entry["movement"], expected(member), "{entry}");
        }
        entries.len()
    };
    let of_board = |read: &str| ok(client.get(&format!("{BOARD}/{read}")));
    assert_eq!(check(&of_board("top?limit=1000&movement=season")["entries"]), now.len());
    assert_eq!(check(&of_board("top?limit=5&from=bottom&movement=season")["entries"]), now.len().min(5));
    let page = of_board("top?limit=3&movement=season&window=all");
    if let Some(cursor) = page["next_cursor"].as_str() {
        check(&of_board(&format!("top?limit=3&movement=season&cursor={cursor}"))["entries"]);
    }
    for member in now.iter().take(3) {
        check(&json!([of_board(&format!("members/{member}?movement=season&profile=true"))]));
        let around = of_board(&format!("members/{member}/around?above=3&below=3&fill=true&movement=season"));
        assert_eq!(check(&around["entries"]), now.len().min(7));
    }
    let members = json!({ "members": now.iter().rev().take(20).collect::<Vec<_>>() });
    let group = ok(client.post(&format!("{BOARD}/members:lookup?movement=season"), &members));
    assert_eq!(check(&group["entries"]), now.len().min(20));
    for entry in of_board("top?limit=3")["entries"].as_array().expect("a list") {
        assert_eq!(entry.get("movement"), None, "it was not asked for");
    }
}

/// Entries that a trim takes away were where they were when they come back.
fn trim_and_come_back(client: &Client, random: &mut StdRng, then: &[String]) {
    let trims = [json!({ "positions_beyond": random.random_range(8..20) }), json!({ "worse_than": 2 })];
    for trim in trims {
        let before = listed(client);
        let answer = ok(client.post(&format!("{BOARD}:trim"), &trim));
        let left = listed(client);
        assert!(left.len() < before.len() && before.starts_with(&left), "{trim}: {answer}");
        check(client, then);
        let again = before.iter().filter(|member| !left.contains(member));
        let jobs: Vec<Value> = again
            .map(|member| json!({ "board": "league", "member": member, "score": random.random_range(0..6) }))
            .collect();
        ok(client.post("/v1/jobs", &json!(jobs)));
        assert_eq!(listed(client).len(), before.len());
        check(client, then);
    }
}

fn movement_is_what_the_lists_of_then_and_now_say(place: Place) {
    let mut service = place.start(SHARDS);
    let mut client = service.client();
    let random = &mut StdRng::seed_from_u64(11);
    define(&client);
    change(&client, random, 60);
    let (status, problem) = client.get(&format!("{BOARD}/top?movement=season"));
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_window")), "no season has begun: {problem}");
    for season in 1..4 {
        let then = listed(&client);
        begin_season(std::slice::from_ref(&client), &format!("s{season}"));
        check(&client, &then);
        for members in [3, 60, 80] {
            change(&client, random, members);
            check(&client, &then);
        }
        trim_and_come_back(&client, random, &then);
        if place == Place::OwnsAll {
            service.kill9();
            service.restart();
            client = service.client();
            check(&client, &then);
        }
    }
    // A clear ends what is kept: nobody was listed when the season began, as far as is known.
    ok(client.post(&format!("{BOARD}:clear"), &json!({})));
    change(&client, random, 20);
    check(&client, &[]);
    service.end();
}

#[test]
fn nodes_that_own_all_and_some_of_the_shards_answer_the_same() {
    let nats = Nats::start();
    let owning = |name: &str, own: &str| {
        let setup =
            Node::with_nats(&nats).shards(SHARDS).stream_mib(16).flags(&["--node", name, "--own", own]);
        setup.start()
    };
    let mut nodes = [owning("all", "0-2"), owning("some", "1")];
    let clients = nodes.each_ref().map(|node| node.client().waiting_for_writes());
    for client in &clients {
        (0..usize::from(SHARDS)).for_each(|shard| drop(wait_state(client, shard, "live")));
    }
    wait_until("boards can be decided", || clients[0].put("/v1/boards/before", &json!({})).0 < 300);
    define(&clients[0]);
    wait_until("the other node knows the board", || clients[1].get(BOARD).0 == 200);
    let random = &mut StdRng::seed_from_u64(12);
    for season in ["s1", "s2"] {
        change(&clients[0], random, 40);
        let token =
            ok(clients[0].get(&format!("{BOARD}/top")))["as_of"].as_str().expect("a token").to_owned();
        let then = listed(&clients[0]);
        begin_season(&clients, season);
        // Nobody writes: what was kept of the season before counts no more.
        check(&clients[0], &then);
        ok(clients[1].get(&format!("{BOARD}/top?after={token}")));
        check(&clients[1], &then);
        change(&clients[1], random, 40);
        let token =
            ok(clients[1].get(&format!("{BOARD}/top")))["as_of"].as_str().expect("a token").to_owned();
        for client in &clients {
            ok(client.get(&format!("{BOARD}/top?after={token}")));
            check(client, &then);
        }
    }
    for node in &mut nodes {
        assert!(node.terminate().success(), "{}", node.log());
        node.verify();
    }
}

/// What a request for movement cannot have is refused in words.
#[test]
fn movement_that_there_is_none_of_is_refused() {
    let service = Node::shards(2).start();
    let client = service.client();
    define(&client);
    ok(client.put("/v1/boards/plain", &json!({ "windows": ["all", "day"] })));
    ok(client.put(&format!("{BOARD}/members/m"), &json!({ "score": 1 })));
    for (read, status, code, words) in [
        ("league/top?movement=week", 404, "unknown_window", "its windows are all, season, day"),
        (
            "league/top?movement=all",
            422,
            "bad_parameter",
            "movement must be hour, day, week, month or season",
        ),
        ("league/top?movement=2026-11-20", 422, "bad_parameter", "movement must be"),
        ("league/top?movement=day&window=day", 422, "bad_parameter", "send window=all"),
        ("league/members/m?movement=day&window=day", 422, "bad_parameter", "only entries of the window all"),
        ("league/members/m/around?movement=season", 404, "unknown_window", "first season has not begun"),
        ("plain/top?movement=day", 422, "bad_parameter", "the board keeps no movement"),
        ("league/range?movement=day", 422, "bad_parameter", "there is no parameter"),
        ("none/top?movement=day", 404, "unknown_board", ""),
    ] {
        let (found, problem) = client.get(&format!("/v1/boards/{read}"));
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{read}: {problem}");
        assert!(problem["detail"].as_str().expect("words").contains(words), "{read}: {problem}");
    }
    let answer = ok(client.get(&format!("{BOARD}/members/m?movement=day")));
    // It came today, unless midnight has passed since.
    assert!(answer["movement"].is_null() || answer["movement"] == 0, "{answer}");
    let other = json!({ "windows": ["all", "season", "day"], "season": "manual", "movement": false });
    let (status, problem) = client.put(BOARD, &other);
    assert_eq!((status, &problem["code"]), (409, &json!("board_differs")), "{problem}");
    assert!(problem["detail"].as_str().expect("words").contains("movement is true, not false"), "{problem}");
}
