//! Windows and seasons in definitions, and manual seasons that are opened.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::tests::{SHARDS, start};
use crate::state_lock::Purpose;
use crate::types::Timestamp;
use crate::window::Seasons;

fn ahead(seconds: i64) -> String {
    let now = jiff::Timestamp::now().as_microsecond();
    Timestamp::from_micros(now + seconds * 1_000_000).expect("in range").to_string()
}

fn micros(time: &Value) -> i64 {
    Timestamp::parse(time.as_str().expect("a time")).expect("a time").as_micros()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lengths_of_a_board_change_and_its_windows_do_not() {
    for shards in SHARDS {
        let service = start(shards);
        let path = "/v1/boards/arena";
        let body = |every: &str, more: &str| {
            format!(
                r#"{{"windows":["all","week","season"],"utc_offset":"-03:30",
                    "season":{{"starts":"2020-01-01T00:00:00Z","every":"{every}"}}{more}}}"#
            )
        };
        for expected in [StatusCode::CREATED, StatusCode::OK, StatusCode::OK] {
            let (status, board) = service.send("PUT", path, &body("14d", "")).await;
            assert_eq!(status, expected, "{board}");
            assert_eq!(board["windows"], json!(["all", "week", "season"]));
            assert_eq!(board["season"], json!({"starts": "2020-01-01T00:00:00Z", "every": "2w"}));
            assert_eq!((&board["grace"], &board["entry_ttl"]), (&json!("5m"), &Value::Null));
        }
        let more = r#","grace":"1h","entry_ttl":"30d","keep":3"#;
        // A change, and then the same again, which must not change the seasons once more.
        for _ in 0..2 {
            let (status, board) = service.send("PUT", path, &body("7d", more)).await;
            assert_eq!(status, StatusCode::OK, "{board}");
            assert_eq!(board["season"], json!({"starts": "2020-01-01T00:00:00Z", "every": "1w"}));
            let told = (&board["grace"], &board["entry_ttl"], &board["keep"]);
            assert_eq!(told, (&json!("1h"), &json!("30d"), &json!(3)));
            for shard in &service.api.operations.node.shards {
                let state = shard.state.read(Purpose::Read);
                let definition = &state.board("arena").expect("it is there").definition;
                let Some(Seasons::Regular(series)) = &definition.seasons else { panic!("{definition:?}") };
                let [first, next] = &series[..] else { panic!("{series:?}") };
                assert_eq!((first.every, next.every), (14 * 86_400_000_000, 7 * 86_400_000_000));
                // From the next season on.
                assert!(next.begin.to_string() > ahead(0) && next.begin.to_string() < ahead(14 * 86_400));
            }
        }
        service
            .check_refusals(&[
                ("PUT", path, r#"{"windows":["all","week"],"utc_offset":"-03:30"}"#, 409, "board_differs"),
                ("PUT", path, &body("14d", r#","season":"manual""#), 422, "invalid_definition"),
                ("PUT", path, &body("30s", ""), 422, "invalid_definition"),
                ("PUT", path, &body("1m", r#","grace":"8d""#), 422, "invalid_definition"),
            ])
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manual_seasons_are_opened_one_after_the_other() {
    for shards in SHARDS {
        let service = start(shards);
        let (board, path) = ("/v1/boards/league", "/v1/boards/league/seasons");
        let definition = r#"{"windows":["all","season"],"season":"manual"}"#;
        service.check_refusals(&[("POST", path, "", 404, "unknown_board")]).await;
        service.put(board, definition).await;
        let (too_early, later) = (format!(r#"{{"at":"{}"}}"#, ahead(0)), ahead(3_600));
        let opening = format!(r#"{{"at":"{later}"}}"#);
        service
            .check_refusals(&[
                ("POST", path, &too_early, 422, "bad_parameter"),
                ("POST", path, r#"{"at":"1969-12-31T00:00:00Z"}"#, 422, "bad_parameter"),
                ("POST", path, r#"{"at":"tomorrow"}"#, 422, "bad_parameter"),
                ("POST", path, r#"{"at":5}"#, 422, "bad_parameter"),
                ("POST", path, r#"{"begin":"2100-01-01T00:00:00Z"}"#, 422, "bad_parameter"),
                ("POST", path, r#"["2100-01-01T00:00:00Z"]"#, 422, "bad_parameter"),
                ("POST", path, "{", 400, "malformed"),
                ("POST", "/v1/boards/a%20b/seasons", "", 422, "malformed"),
                ("GET", path, "", 405, "method_not_allowed"),
            ])
            .await;
        let before = micros(&json!(ahead(0)));
        let (status, first) = service.send("POST", path, "").await;
        assert_eq!(
            (status, &first["season"], &first["board"]),
            (StatusCode::CREATED, &json!("s1"), &json!("league"))
        );
        assert!(micros(&first["begin"]) >= before + 1_000_000, "{first}");
        // The first has not begun yet, so this looks like the same request once more.
        let refusals =
            [("POST", path, "", 409, "season_conflict"), ("POST", path, &opening, 409, "season_conflict")];
        service.check_refusals(&refusals).await;
        for named in [r#"{"name":"s1"}"#.to_owned(), format!(r#"{{"name":"s1","at":{}}}"#, first["begin"])] {
            let (status, again) = service.send("POST", path, &named).await;
            assert_eq!((status, &again["begin"]), (StatusCode::OK, &first["begin"]), "{again}");
        }
        let (status, second) = service.send("POST", &format!("{path}?force=true"), &opening).await;
        assert_eq!((status, &second["season"]), (StatusCode::CREATED, &json!("s2")));
        assert_eq!(micros(&second["begin"]), micros(&json!(later)));
        // The third would begin before the second, or with it.
        let forced = format!("{path}?force=true");
        let other_time = format!(r#"{{"name":"s2","at":"{}"}}"#, ahead(7_200));
        let refusals = [
            ("POST", forced.as_str(), "{}", 409, "season_conflict"),
            ("POST", forced.as_str(), &opening, 409, "season_conflict"),
            ("POST", path, &other_time, 409, "season_conflict"),
            ("POST", path, r#"{"name":"s4"}"#, 409, "season_conflict"),
            ("POST", path, r#"{"name":"third"}"#, 422, "bad_parameter"),
            ("POST", path, r#"{"name":"2026-11"}"#, 422, "bad_parameter"),
        ];
        service.check_refusals(&refusals).await;
        // The same definition again is the same board, with its seasons; it is changed with them, too.
        for keep in [12, 3] {
            let same = format!(r#"{{"windows":["all","season"],"season":"manual","keep":{keep}}}"#);
            let (status, answer) = service.send("PUT", board, &same).await;
            assert_eq!((status, &answer["season"]), (StatusCode::OK, &json!("manual")));
            for shard in &service.api.operations.node.shards {
                let state = shard.state.read(Purpose::Read);
                let definition = &state.board("league").expect("it is there").definition;
                let Some(Seasons::Manual(begins)) = &definition.seasons else { panic!("{definition:?}") };
                let begins: Vec<i64> = begins.iter().map(|begin| begin.as_micros()).collect();
                assert_eq!(begins, [micros(&first["begin"]), micros(&second["begin"])]);
            }
        }
        // A board without them, made by a job.
        service.put("/v1/boards/plain/members/m", r#"{"score":1}"#).await;
        service.check_refusals(&[("POST", "/v1/boards/plain/seasons", "", 409, "no_manual_seasons")]).await;
    }
}

/// Requests that have looked at the same season: each number is given once, in the order of the times.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_season_is_opened_by_one_request() {
    let service = start(3);
    service.put("/v1/boards/league", r#"{"windows":["season"],"season":"manual"}"#).await;
    let bodies: Vec<String> = (0..20).map(|n| format!(r#"{{"at":"{}"}}"#, ahead(3_600 + n))).collect();
    let requests = bodies.iter().map(|body| service.send("POST", "/v1/boards/league/seasons", body));
    let answers = futures_util::future::join_all(requests).await;
    let mut opened = Vec::new();
    for (status, answer) in answers {
        match status.as_u16() {
            201 => opened.push((answer["season"].clone(), micros(&answer["begin"]))),
            _ => assert_eq!((status.as_u16(), &answer["code"]), (409, &json!("season_conflict")), "{answer}"),
        }
    }
    opened.sort_by_key(|(_, begin)| *begin);
    let names: Vec<Value> = opened.iter().map(|(name, _)| name.clone()).collect();
    let expected: Vec<Value> = (1..=names.len()).map(|number| json!(format!("s{number}"))).collect();
    assert_eq!((names.len(), &names), (1, &expected), "the others look like the same request");
}

/// A mistyped year is seen, and taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planned_seasons_are_listed_moved_and_cancelled() {
    for shards in SHARDS {
        let service = start(shards);
        let (board, path) = ("/v1/boards/league", "/v1/boards/league/seasons");
        service.put(board, r#"{"windows":["all","season"],"season":"manual"}"#).await;
        let planned = || async { service.get(board).await["planned_seasons"].clone() };
        assert_eq!(planned().await, json!([]));
        let (status, first) = service.send("POST", path, r#"{"at":"2036-12-01T00:00:00Z"}"#).await;
        assert_eq!(status, StatusCode::CREATED, "{first}");
        assert_eq!(planned().await, json!([{"name": "s1", "begin": "2036-12-01T00:00:00Z"}]));
        let season = format!("{path}/s1");
        let (later, too_early) = (ahead(3_600), format!(r#"{{"at":"{}"}}"#, ahead(0)));
        let moving = format!(r#"{{"at":"{later}"}}"#);
        let (status, moved) = service.send("PUT", &season, &moving).await;
        assert_eq!((status, micros(&moved["begin"])), (StatusCode::OK, micros(&json!(later))), "{moved}");
        assert_eq!(planned().await, json!([{"name": "s1", "begin": moved["begin"]}]));
        let unknown = format!("{path}/s2");
        for body in [r#"{"season":null}"#, r#"{"season":null,"windows":["all","season"]}"#] {
            let (status, differs) = service.send("PUT", board, body).await;
            assert_eq!(status, StatusCode::CONFLICT, "{differs}");
            let detail = differs["detail"].as_str().unwrap_or_default();
            assert!(detail.contains("season is manual, not none"), "{detail}");
        }
        // The words fit what was asked: a move takes a time.
        let (_, soon) = service.send("PUT", &season, &too_early).await;
        let detail = soon["detail"].as_str().unwrap_or_default();
        assert!(!detail.contains("Leave it out") && detail.contains("to move"), "{detail}");
        service
            .check_refusals(&[
                ("PUT", &season, &too_early, 422, "bad_parameter"),
                ("PUT", &season, "{}", 422, "bad_parameter"),
                ("PUT", &season, r#"{"at":null}"#, 422, "bad_parameter"),
                ("PUT", &unknown, &moving, 404, "unknown_window"),
                ("DELETE", &unknown, "", 404, "unknown_window"),
                ("DELETE", &format!("{path}/first"), "", 404, "unknown_window"),
                ("DELETE", "/v1/boards/none/seasons/s1", "", 404, "unknown_board"),
            ])
            .await;
        let (status, cancelled) = service.send("DELETE", &season, "").await;
        assert_eq!((status, &cancelled["cancelled"]), (StatusCode::OK, &json!(true)), "{cancelled}");
        assert_eq!(planned().await, json!([]));
        service.check_refusals(&[("DELETE", &season, "", 404, "unknown_window")]).await;
    }
}

/// By the time that every shard knew, jobs would be in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_season_that_begins_in_a_moment_is_neither_moved_nor_cancelled() {
    for shards in SHARDS {
        let service = start(shards);
        let (board, path) = ("/v1/boards/league", "/v1/boards/league/seasons");
        service.put(board, r#"{"windows":["all","season"],"season":"manual"}"#).await;
        let (status, first) = service.send("POST", path, "").await;
        assert_eq!(status, StatusCode::CREATED, "{first}");
        let (season, moving) = (format!("{path}/s1"), format!(r#"{{"at":"{}"}}"#, ahead(3_600)));
        // Now, and when it has begun.
        service
            .check_refusals(&[
                ("PUT", &season, &moving, 409, "season_conflict"),
                ("DELETE", &season, "", 409, "season_conflict"),
            ])
            .await;
        let shown = service.get(board).await;
        let planned = json!([{"name": "s1", "begin": first["begin"]}]);
        assert!(shown["planned_seasons"] == planned || shown["planned_seasons"] == json!([]), "{shown}");
        for shard in &service.api.operations.node.shards {
            let state = shard.state.read(Purpose::Read);
            let definition = &state.board("league").expect("it is there").definition;
            let Some(Seasons::Manual(begins)) = &definition.seasons else { panic!("{definition:?}") };
            assert_eq!(
                begins.iter().map(|begin| begin.as_micros()).collect::<Vec<_>>(),
                [micros(&first["begin"])]
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_regular_season_is_ended_early() {
    for shards in SHARDS {
        let service = start(shards);
        let (board, path) = ("/v1/boards/cup", "/v1/boards/cup/seasons");
        let starts = ahead(-86_400);
        let definition =
            format!(r#"{{"windows":["season"],"season":{{"starts":"{starts}","every":"14d"}}}}"#);
        service.put(board, &definition).await;
        // What is the default is none of a board that has seasons.
        let no_seasons = [r#"{"season":null}"#, r#"{"season":null,"keep":3}"#];
        for body in no_seasons {
            service.check_refusals(&[("PUT", board, body, 409, "board_differs")]).await;
        }
        assert_eq!(service.get(board).await["keep"], 12);
        let end = ahead(3_600);
        let (status, second) = service.send("POST", path, &format!(r#"{{"at":"{end}"}}"#)).await;
        assert_eq!((status, &second["season"]), (StatusCode::CREATED, &json!("s2")), "{second}");
        let shown = service.get(board).await;
        assert_eq!(shown["planned_seasons"], json!([{"name": "s2", "begin": second["begin"]}]));
        assert_eq!(micros(&shown["instances"]["season"][0]["end"]), micros(&json!(end)), "{shown}");
        service.check_refusals(&[("POST", path, "{}", 409, "season_conflict")]).await;
        // The words of the refusal lead on: with consent, another end takes the place of the planned one.
        let (_, refused) = service.send("POST", path, "{}").await;
        assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("?force=true")), "{refused}");
        let (other, forced) = (ahead(7_200), format!("{path}?force=true"));
        let (status, moved) = service.send("POST", &forced, &format!(r#"{{"at":"{other}"}}"#)).await;
        assert_eq!((status, &moved["season"]), (StatusCode::CREATED, &json!("s2")), "{moved}");
        let shown = service.get(board).await;
        assert_eq!(shown["planned_seasons"], json!([{"name": "s2", "begin": moved["begin"]}]));
        assert_eq!(micros(&shown["instances"]["season"][0]["end"]), micros(&json!(other)), "{shown}");
        let (status, _) = service.send("DELETE", &format!("{path}/s2"), "").await;
        assert_eq!(status, StatusCode::OK);
        let shown = service.get(board).await;
        let natural = micros(&json!(starts)) + 14 * 86_400_000_000;
        assert_eq!(micros(&shown["instances"]["season"][0]["end"]), natural, "{shown}");
        let (status, second) = service.send("POST", path, r#"{"name":"s2"}"#).await;
        assert_eq!((status, &second["season"]), (StatusCode::CREATED, &json!("s2")), "{second}");
    }
}
