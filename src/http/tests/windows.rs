//! `window=` on every read: the current instance of a window, or an instance by its name.
//!
//! Boards have seasons that an operator has opened long ago, so that no test depends on the day.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::board::Definition;
use crate::http::tests::{Fixture, SHARDS, start};
use crate::state::{Applied, BoardEvent, Change, Entry, EntryState, Step};
use crate::state_lock::Purpose;
use crate::types::{BoardName, MemberId, Score, Sequence, Timestamp};
use crate::window::{Seasons, Window};
use crate::writer::Defined;

fn at(year: i16) -> Timestamp {
    let time =
        jiff::civil::date(year, 1, 1).to_zoned_datetime(jiff::tz::TimeZone::UTC).expect("a time").timestamp();
    Timestamp::from_micros(time.as_microsecond()).expect("in range")
}

/// Seasons began in 2020 and 2021; a third is going to begin in 2090.
fn seasons() -> Seasons {
    Seasons::Manual([2020, 2021, 2090].map(at).to_vec())
}

fn define(service: &Fixture, board: &str, windows: &[Window], seasons: Option<Seasons>) {
    let definition = Definition { windows: windows.to_vec(), seasons, ..Definition::default() };
    definition.validate().expect("a good definition");
    let board = BoardName::new(board).expect("a good name");
    let defined = service.api.operations.registry.define(&board, definition);
    assert!(matches!(defined, Ok(Defined::Created(_))), "{board} is new");
    for shard in 0..service.api.operations.node.shards.len() {
        bring(service, shard, &board);
    }
}

/// Brings a board or an instance to a shard.
fn bring(service: &Fixture, shard: usize, on_shard: &BoardName) {
    let known = service.api.operations.registry.get(on_shard.split().0).expect("it is defined");
    let event = BoardEvent::Define {
        board: on_shard.clone(),
        incarnation: known.incarnation,
        number: None,
        definition: Arc::clone(&known.definition),
    };
    let mut state = service.api.operations.node.shards[shard].state.write(Purpose::Apply);
    let applied = state.applied;
    state.apply(&Step { events: vec![event], applied, ..Step::default() });
}

/// Brings an entry to its shard, as a job that enters the instance does.
fn enter(service: &Fixture, on_shard: &str, member: &str, score: i64) {
    let (board, member) =
        (BoardName::of_shard(on_shard).expect("good"), MemberId::new(member).expect("good"));
    let home = service.api.operations.node.home_of(&member).index();
    if service.api.operations.node.shards[home].state.read(Purpose::Read).board(on_shard).is_none() {
        bring(service, home, &board);
    }
    let mut state = service.api.operations.node.shards[home].state.write(Purpose::Apply);
    let found = state.board(on_shard).expect("just defined");
    let (tree, definition) = (found.all, Arc::clone(&found.definition));
    let score = Score::new(&[score]).expect("one key");
    let words = definition.entry_words(&score, at(2021), member.as_bytes());
    let known = state.members.get(member.as_bytes());
    let handle = known.unwrap_or_else(|| state.members.nth_next_handle(0));
    let added = if known.is_none() { vec![member.as_bytes().into()] } else { Vec::new() };
    let entry = EntryState::Listed(words);
    let after = Some(Entry { state: entry, updated_at: at(2021), version: None, has_metadata: false });
    let applied = Applied { sequence: Sequence(state.applied.sequence.0 + 1), ..state.applied };
    state.apply(&Step { added, changes: vec![Change { tree, handle, after }], applied, ..Step::default() });
}

/// Members of all time, of the season before and of this one, with different scores.
fn arena(shards: u16) -> Fixture {
    let service = start(shards);
    define(&service, "arena", &[Window::All, Window::Season, Window::Day], Some(seasons()));
    for (nth, member) in (1..).zip(["a", "b", "c", "d", "e"]) {
        enter(&service, "arena", member, 100 + nth);
        enter(&service, "arena#s1", member, 10 - nth);
    }
    for (member, score) in [("c", 7), ("a", 5), ("x", 6)] {
        enter(&service, "arena#s2", member, score);
    }
    service
}

fn members(answer: &Value) -> String {
    let entries = answer["entries"].as_array().expect("a list").iter();
    entries.map(|entry| entry["member"].as_str().expect("an id")).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_of_a_board_is_of_the_instance_asked_for() {
    for shards in SHARDS {
        let service = arena(shards);
        for (window, instance, best_first, total) in [
            ("", "all", "e d c b a", 5),
            ("window=all", "all", "e d c b a", 5),
            ("window=season", "s2", "c x a", 3),
            ("window=s2", "s2", "c x a", 3),
            ("window=s1", "s1", "a b c d e", 5),
        ] {
            let get = async |path: &str| {
                let mark = if path.contains('?') { "&" } else { "?" };
                let answer = service.get(&format!("/v1/boards/arena/{path}{mark}{window}")).await;
                assert_eq!(answer["window"], json!(instance), "{path} {window}");
                answer
            };
            assert_eq!(members(&get("top").await), best_first, "{window}");
            assert_eq!(members(&get("range").await), best_first, "{window}");
            assert_eq!(members(&get("positions/1").await), best_first, "{window}");
            assert_eq!(members(&get("members/a/around").await), best_first, "{window}");
            assert_eq!(get("top").await["total"], json!(total));
            let entry = get("members/a").await;
            let position = best_first.split(' ').position(|member| member == "a").expect("it is there") + 1;
            assert_eq!((&entry["position"], &entry["total"]), (&json!(position), &json!(total)), "{window}");
            assert_eq!(get("rank?score=0").await["total"], json!(total));
            assert_eq!(get("count").await["count"], json!(total));
            assert_eq!(get("histogram?buckets=1").await["buckets"][0]["count"], json!(total));
            let best = get("score?rank=1").await["score"].clone();
            assert_eq!(get("percentiles?p=100").await["percentiles"][0]["score"], best);
            let asked = [("members:lookup", r#"{"members":["a","x"]}"#), ("ranks:of", r#"{"scores":[6]}"#)];
            for (verb, body) in asked {
                let path = format!("/v1/boards/arena/{verb}?{window}");
                let (status, answer) = service.send("POST", &path, body).await;
                assert_eq!((status, &answer["window"]), (StatusCode::OK, &json!(instance)), "{answer}");
                assert_eq!(answer["total"], json!(total), "{path}");
            }
        }
        let today = service.get("/v1/boards/arena/top?window=day").await;
        assert_eq!((members(&today).as_str(), &today["total"]), ("", &json!(0)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_is_not_there_is_an_unknown_window_in_words() {
    let service = arena(2);
    define(&service, "seasons", &[Window::Season], Some(Seasons::Manual(Vec::new())));
    define(&service, "short", &[Window::Day], None);
    for (path, words) in [
        ("arena/top?window=week", "the board has no window week; its windows are all, season, day"),
        ("arena/top?window=2026-W07", "the board has no window week"),
        ("arena/members/a?window=s3", "s3 has not begun; it begins at 2090-01-01T00:00:00Z"),
        ("arena/count?window=s4", "s4 has not begun"),
        ("arena/top?window=9999-12-31", "9999-12-31 has not begun"),
        ("arena/top?window=2020-02-03", "2020-02-03 was dropped, because the board keeps 12 closed"),
        ("arena?window=2020-02-03", "2020-02-03 was dropped"),
        ("short/top?window=all", "the board has no window all; its windows are day"),
        ("seasons/top", "the board's first season has not begun; POST /v1/boards/{board}/seasons"),
        ("seasons/top?window=season", "the board's first season has not begun"),
    ] {
        let (status, problem) = service.send("GET", &format!("/v1/boards/{path}"), "").await;
        assert_eq!((status.as_u16(), &problem["code"]), (404, &json!("unknown_window")), "{path}: {problem}");
        let detail = problem["detail"].as_str().expect("words");
        assert!(detail.contains(words), "{path}: {detail}");
    }
    let bad = ["today", "", "Day", "2026-W7", "2026-02-30", "s0", "all,day", "arena%23s1"];
    for window in bad {
        let path = format!("/v1/boards/arena/top?window={window}");
        service.check_refusals(&[("GET", &path, "", 422, "bad_parameter")]).await;
    }
    // The board is there all the same.
    let board = service.get("/v1/boards/seasons").await;
    assert_eq!((&board["totals"], &board["instances"]), (&json!({}), &json!({"season": []})));
    service.check_refusals(&[("GET", "/v1/boards/seasons/top?window=day", "", 404, "unknown_window")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_goes_on_in_its_own_instance() {
    for shards in SHARDS {
        let service = arena(shards);
        for list in ["top", "range"] {
            let first = service.get(&format!("/v1/boards/arena/{list}?window=season&limit=1")).await;
            let cursor = first["next_cursor"].as_str().expect("there is more").to_owned();
            for window in ["season", "s2"] {
                let path = format!("/v1/boards/arena/{list}?window={window}&cursor={cursor}");
                let rest = service.get(&path).await;
                assert_eq!((members(&rest).as_str(), &rest["window"]), ("x a", &json!("s2")));
            }
            // That of a season before goes on there, whichever is current now.
            let first = service.get(&format!("/v1/boards/arena/{list}?window=s1&limit=3")).await;
            let before = first["next_cursor"].as_str().expect("there is more").to_owned();
            let path = format!("/v1/boards/arena/{list}?window=season&cursor={before}");
            let rest = service.get(&path).await;
            assert_eq!((members(&rest).as_str(), &rest["window"]), ("d e", &json!("s1")));
            for window in ["", "window=all&", "window=day&", "window=s1&"] {
                let path = format!("/v1/boards/arena/{list}?{window}cursor={cursor}");
                service.check_refusals(&[("GET", &path, "", 422, "bad_cursor")]).await;
            }
            let all = service.get(&format!("/v1/boards/arena/{list}?limit=1")).await;
            let all = all["next_cursor"].as_str().expect("there is more").to_owned();
            let path = format!("/v1/boards/arena/{list}?window=season&cursor={all}");
            service.check_refusals(&[("GET", &path, "", 422, "bad_cursor")]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_shows_the_instances_of_its_windows() {
    for shards in SHARDS {
        let service = arena(shards);
        let board = service.get("/v1/boards/arena").await;
        assert_eq!(board["totals"], json!({"all": 5}));
        assert_eq!(
            board["instances"]["all"],
            json!([{"name": "all", "begin": null, "end": null, "open": true, "total": 5}])
        );
        let seasons = json!([
            {"name": "s2", "begin": "2021-01-01T00:00:00Z", "end": "2090-01-01T00:00:00Z", "open": true, "total": 3},
            {"name": "s1", "begin": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z", "open": false, "total": 5}
        ]);
        assert_eq!((&board["instances"]["season"], &board["next_cursors"]), (&seasons, &json!({})));
        // No job has entered a day.
        let days = board["instances"]["day"].as_array().expect("a list");
        assert_eq!((days.len(), &days[0]["total"], &days[0]["open"]), (1, &json!(0), &json!(true)));
        let of_window = service.get("/v1/boards/arena?window=season&limit=1").await;
        assert_eq!(of_window["totals"], json!({"season": 3}));
        assert_eq!(of_window["instances"], json!({"season": [seasons[0]]}));
        assert_eq!(of_window["next_cursors"], json!({"season": "s2"}));
        let rest = service.get("/v1/boards/arena?limit=1&cursor=s2").await;
        assert_eq!(
            (&rest["instances"], &rest["next_cursors"]),
            (&json!({"season": [seasons[1]]}), &json!({}))
        );
        let one = service.get("/v1/boards/arena?window=s1").await;
        assert_eq!(
            (&one["instances"], &one["totals"]),
            (&json!({"season": [seasons[1]]}), &json!({"season": 5}))
        );
        service
            .check_refusals(&[
                ("GET", "/v1/boards/arena?cursor=2026-W47", "", 422, "bad_cursor"),
                ("GET", "/v1/boards/arena?cursor=7", "", 422, "bad_cursor"),
                ("GET", "/v1/boards/arena?window=day&cursor=s2", "", 422, "bad_cursor"),
                ("GET", "/v1/boards/arena?limit=1001", "", 422, "too_large"),
                ("GET", "/v1/boards/nobody?cursor=s2", "", 404, "unknown_board"),
            ])
            .await;
        let listed = service.get("/v1/boards").await;
        assert_eq!(listed["boards"].as_array().map(Vec::len), Some(1), "an instance is no board: {listed}");
        assert_eq!(listed["boards"][0]["totals"], json!({"all": 5}));
        let listed = service.get("/v1/boards?window=s1").await;
        assert_eq!(listed["boards"][0]["totals"], json!({"season": 5}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_members_boards_are_read_by_one_instance_each() {
    for shards in SHARDS {
        let service = arena(shards);
        define(&service, "league", &[Window::Season], Some(seasons()));
        enter(&service, "league#s1", "a", 1);
        enter(&service, "league#s2", "a", 2);
        enter(&service, "league#s2", "b", 3);
        let entries = async |query: &str| {
            let answer = service.get(&format!("/v1/members/a?{query}")).await;
            let told = |entry: &Value| {
                let text = |name: &str| entry[name].as_str().expect("text").to_owned();
                format!("{} {} {} {}", text("board"), text("window"), entry["score"], entry["position"])
            };
            let found = answer["entries"].as_array().expect("a list").iter().map(told).collect::<Vec<_>>();
            (answer["window"].clone(), found.join(", "), answer["not_found"].clone())
        };
        for (query, window, expected, missing) in [
            ("", "all", "arena all 101 5, league s2 2 2", json!([])),
            ("window=season", "season", "arena s2 5 3, league s2 2 2", json!([])),
            ("window=s1", "s1", "arena s1 9 1, league s1 1 1", json!([])),
            ("boards=league,arena", "all", "league s2 2 2, arena all 101 5", json!([])),
            ("boards=league,arena&window=all", "all", "arena all 101 5", json!(["league"])),
            ("boards=arena&window=day", "day", "", json!(["arena"])),
        ] {
            assert_eq!(entries(query).await, (json!(window), expected.to_owned(), missing), "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trim_acts_on_one_instance_that_is_open() {
    for shards in SHARDS {
        let service = arena(shards);
        define(&service, "league", &[Window::Season], Some(seasons()));
        for (member, score) in [("a", 3), ("b", 2), ("c", 1)] {
            enter(&service, "league#s2", member, score);
        }
        let trim = async |path: &str, body: &str| {
            let (status, answer) = service.send("POST", path, body).await;
            assert_eq!(status, StatusCode::OK, "{path}: {answer}");
            (answer["window"].clone(), answer["removed"].clone())
        };
        let best = r#"{"positions_beyond":1}"#;
        assert_eq!(trim("/v1/boards/arena:trim?window=season", best).await, (json!("s2"), json!(2)));
        assert_eq!(members(&service.get("/v1/boards/arena/top?window=s2").await), "c");
        assert_eq!(members(&service.get("/v1/boards/arena/top").await), "e d c b a");
        assert_eq!(members(&service.get("/v1/boards/arena/top?window=s1").await), "a b c d e");
        assert_eq!(trim("/v1/boards/arena:trim", r#"{"worse_than":103}"#).await, (json!("all"), json!(2)));
        assert_eq!(trim("/v1/boards/league:trim?window=s2", best).await, (json!("s2"), json!(2)));
        assert_eq!(trim("/v1/boards/league:trim", best).await, (json!("s2"), json!(0)));
        service
            .check_refusals(&[
                ("POST", "/v1/boards/arena:trim?window=s1", best, 409, "closed_window"),
                ("POST", "/v1/boards/arena:trim?window=s3", best, 404, "unknown_window"),
                ("POST", "/v1/boards/arena:trim?window=week", best, 404, "unknown_window"),
                ("POST", "/v1/boards/arena:trim?window=x", best, 422, "bad_parameter"),
                ("POST", "/v1/boards/arena:clear?window=s2", "", 422, "bad_parameter"),
            ])
            .await;
    }
}
