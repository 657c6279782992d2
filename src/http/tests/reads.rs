//! What reads answer with.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::tests::{SHARDS, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_between_two_scores_come_page_by_page() {
    for shards in SHARDS {
        let service = start(shards);
        for (index, score) in [i64::MIN, -5, 10, 10, 10, 25, i64::MAX].into_iter().enumerate() {
            service
                .put(&format!("/v1/boards/arena/members/m{index}"), &format!(r#"{{"score":{score}}}"#))
                .await;
        }
        let members = async |query: &str| {
            let page = service.get(&format!("/v1/boards/arena/range?{query}")).await;
            assert_eq!(page["total"], json!(7));
            let entries = page["entries"].as_array().expect("a list").iter();
            let members: Vec<String> =
                entries.map(|entry| entry["member"].as_str().expect("an id").to_owned()).collect();
            (members.join(" "), page["next_cursor"].as_str().map(str::to_owned))
        };
        for (query, expect) in [
            ("", "m6 m5 m2 m3 m4 m1 m0"),
            ("min=10&max=25", "m5 m2 m3 m4"),
            ("min=11&max=24", ""),
            ("max=-5", "m1 m0"),
            ("min=25", "m6 m5"),
            ("min=&max=-9223372036854775808", "m0"),
            ("min=9223372036854775807", "m6"),
        ] {
            assert_eq!(members(query).await, (expect.to_owned(), None), "{query}");
        }
        let (first, next) = members("min=-5&max=25&limit=2").await;
        let next = next.expect("there is more");
        assert_eq!(first, "m5 m2");
        // A member that moves across the page's end is neither repeated nor hides another.
        service.put("/v1/boards/arena/members/m4", r#"{"score":24}"#).await;
        let rest = members(&format!("min=-5&max=25&limit=1000&cursor={next}")).await;
        assert_eq!(rest, ("m3 m1".to_owned(), None));
        let other = service.get("/v1/boards/arena/top?from=bottom&limit=1").await;
        let other = format!("/v1/boards/arena/range?cursor={}", other["next_cursor"].as_str().expect("more"));
        service
            .check_refusals(&[
                ("GET", "/v1/boards/arena/range?min=2&max=1", "", 422, "bad_parameter"),
                ("GET", "/v1/boards/arena/range?min=1.5", "", 422, "bad_score"),
                ("GET", "/v1/boards/arena/range?limit=1001", "", 422, "too_large"),
                ("GET", "/v1/boards/arena/range?cursor=zz", "", 422, "bad_cursor"),
                ("GET", &other, "", 422, "bad_cursor"),
                ("GET", "/v1/boards/nobody/range", "", 404, "unknown_board"),
            ])
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_are_written_and_read_in_their_shapes() {
    for shards in SHARDS {
        let service = start(shards);
        for (index, score) in [50, 40, 40, 30, 20].into_iter().enumerate() {
            let body = format!(r#"{{"score":{score}}}"#);
            let answer = service.put(&format!("/v1/boards/arena/members/m{index}"), &body).await;
            assert_eq!(answer["changed"], json!(true));
            assert_eq!(answer["previous"], Value::Null);
            assert_eq!(answer["entry"]["position"], json!(index + 1));
            assert_eq!(answer["entry"]["total"], json!(index + 1));
            let read = service
                .get(&format!(
                    "/v1/boards/arena/members/m{index}?after={}",
                    answer["token"].as_str().expect("text")
                ))
                .await;
            assert_eq!(read, answer["entry"]);
        }
        let entry = service.get("/v1/boards/arena/members/m2?window=all&partial=true&profile=false").await;
        let names: Vec<&String> = entry.as_object().expect("an object").keys().collect();
        let expected = [
            "board",
            "window",
            "member",
            "score",
            "rank",
            "position",
            "better",
            "tied",
            "worse",
            "total",
            "percentile",
            "updated_at",
            "meta",
            "as_of",
        ];
        assert_eq!(names, expected);
        for (name, value) in [
            ("board", json!("arena")),
            ("window", json!("all")),
            ("score", json!(40)),
            ("rank", json!(2)),
            ("position", json!(3)),
            ("better", json!(1)),
            ("tied", json!(2)),
            ("worse", json!(2)),
            ("percentile", json!(40.0)),
            ("meta", json!({})),
        ] {
            assert_eq!(entry[name], value, "{name}");
        }
        assert_eq!(entry["as_of"].as_str().map(|text| text.split(',').count()), Some(usize::from(shards)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_ranks_and_counts_have_their_shapes() {
    for shards in SHARDS {
        let service = start(shards);
        for (index, score) in [50, 40, 40, 30, 20].into_iter().enumerate() {
            let body = format!(r#"{{"score":{score}}}"#);
            service.put(&format!("/v1/boards/arena/members/m{index}"), &body).await;
        }
        let members = |list: &Value| -> Vec<String> {
            let entries = list["entries"].as_array().expect("a list").iter();
            entries.map(|entry| entry["member"].as_str().expect("text").to_owned()).collect()
        };
        let top = service.get("/v1/boards/arena/top?limit=2").await;
        assert_eq!(members(&top), ["m0", "m1"]);
        let cursor = top["next_cursor"].as_str().expect("there is more");
        let next = service.get(&format!("/v1/boards/arena/top?cursor={cursor}")).await;
        assert_eq!(members(&next), ["m2", "m3", "m4"]);
        assert_eq!(next["next_cursor"], Value::Null);
        assert_eq!(next["total"], json!(5));
        let bottom = service.get("/v1/boards/arena/top?from=bottom&limit=2").await;
        assert_eq!(members(&bottom), ["m4", "m3"]);
        assert_eq!(bottom["entries"][1]["rank"], json!(4));
        assert_eq!(members(&service.get("/v1/boards/arena/positions/3?limit=2").await), ["m2", "m3"]);
        assert_eq!(members(&service.get("/v1/boards/arena/positions/6").await), [""; 0]);
        let around = service.get("/v1/boards/arena/members/m1/around?above=0&below=1").await;
        assert_eq!(members(&around), ["m1", "m2"]);
        let around = service.get("/v1/boards/arena/members/m4/around?above=1&below=2&fill=true").await;
        assert_eq!(members(&around), ["m1", "m2", "m3", "m4"]);

        let body = r#"{"members":["m4","nobody","m2","m1"]}"#;
        let (status, found) = service.send("POST", "/v1/boards/arena/members:lookup", body).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(members(&found), ["m1", "m2", "m4"]);
        assert_eq!(found["entries"][2]["group_rank"], json!(3));
        assert_eq!(found["not_found"], json!(["nobody"]));

        let body = r#"{"boards":{"arena":2},"limit":2,"member":"m4"}"#;
        let (status, found) = service.send("POST", "/v1/boards:combine", body).await;
        assert_eq!((status, members(&found)), (StatusCode::OK, vec!["m0".to_owned(), "m1".to_owned()]));
        assert_eq!(found["windows"], json!({"arena": "all"}));
        assert_eq!((&found["member"]["position"], &found["member"]["worse"]), (&json!(5), &json!(0)));
        assert_eq!((&found["total"], &found["entries"][0]["score"]), (&json!(5), &json!(100)));
        let cursor = found["next_cursor"].as_str().expect("there is more");
        let body = json!({"boards": {"arena": 2}, "cursor": cursor, "member": "nobody"}).to_string();
        let (_, found) = service.send("POST", "/v1/boards:combine", &body).await;
        assert_eq!(
            (members(&found), &found["member"]),
            (vec!["m2".into(), "m3".into(), "m4".into()], &json!(null))
        );
        let body = json!({"boards": {"arena": 3}, "cursor": cursor}).to_string();
        assert_eq!(service.send("POST", "/v1/boards:combine", &body).await.1["code"], json!("bad_cursor"));

        let rank = service.get("/v1/boards/arena/rank?score=40").await;
        for (name, value) in
            [("rank", 2), ("better", 1), ("tied", 2), ("worse", 2), ("total", 5), ("score", 40)]
        {
            assert_eq!(rank[name], json!(value), "{name}");
        }
        assert_eq!(rank["shards"].as_array().map(Vec::len), Some(usize::from(shards)));
        let body = r#"{"scores":[51,"40",[-1]]}"#;
        let (_, ranks) = service.send("POST", "/v1/boards/arena/ranks:of", body).await;
        let list: Vec<&Value> =
            ranks["ranks"].as_array().expect("a list").iter().map(|rank| &rank["rank"]).collect();
        assert_eq!(list, [1, 2, 6]);

        for (mark, score, tied) in
            [("rank=3", 40, 2), ("position=5", 20, 1), ("percentile=40", 40, 2), ("percentile=41", 50, 1)]
        {
            let found = service.get(&format!("/v1/boards/arena/score?{mark}")).await;
            assert_eq!((&found["score"], &found["tied"]), (&json!(score), &json!(tied)), "{mark}");
        }
        let count = service.get("/v1/boards/arena/count?min=30&max=40").await;
        assert_eq!((&count["count"], &count["total"]), (&json!(3), &json!(5)));
        assert_eq!(service.get("/v1/boards/arena/count").await["count"], json!(5));
        let histogram = service.get("/v1/boards/arena/histogram?edges=20,30,40").await;
        assert_eq!(histogram["buckets"][1], json!({"min": 30, "max": 40, "count": 3}));
        assert_eq!((&histogram["below"], &histogram["above"]), (&json!(0), &json!(1)));
        let percentiles = service.get("/v1/boards/arena/percentiles?p=0,50,100").await;
        assert_eq!(percentiles["percentiles"][2]["score"], json!(50));
        let zero = service.get("/v1/boards/arena/percentiles?p=-0").await;
        assert_eq!(zero["percentiles"][0]["p"].to_string(), "0.0");

        let boards = service.get("/v1/members/m2?boards=arena,other").await;
        assert_eq!(boards["entries"][0]["rank"], json!(2));
        assert_eq!(boards["not_found"], json!(["other"]));
        assert_eq!(service.get("/v1/members/m2").await["entries"].as_array().map(Vec::len), Some(1));
        assert_eq!(service.get("/v1/members/nobody").await["entries"], json!([]));
    }
}

/// More boards than one page looks at, five here: the answer says that there are more, and where they begin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_boards_of_a_member_are_listed_page_by_page() {
    let service = start(2);
    // Created in another order than that of their names.
    let names: Vec<String> = (0..12).map(|number| format!("b{:02}", number * 5 % 12)).collect();
    for name in &names {
        service.put(&format!("/v1/boards/{name}/members/m"), r#"{"score":1}"#).await;
        service.put(&format!("/v1/boards/{name}/members/other"), r#"{"score":2}"#).await;
        service.put(&format!("/v1/boards/elsewhere-{name}/members/other"), r#"{"score":2}"#).await;
    }
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("/v1/members/m?cursor={cursor}")).await;
        let entries = page["entries"].as_array().expect("a list");
        let boards: Vec<String> =
            entries.iter().filter_map(|entry| entry["board"].as_str().map(str::to_owned)).collect();
        assert!(entries.iter().all(|entry| entry["rank"] == json!(2)), "{page}");
        assert!(boards.is_sorted(), "{boards:?}");
        pages.push(boards);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 2]);
    let mut created = names.clone();
    created.chunks_mut(5).for_each(<[String]>::sort);
    assert_eq!(pages.concat(), created);
    assert_eq!(service.get("/v1/members/m?boards=b01").await["next_cursor"], json!(null));
    for (refused, why) in
        [("cursor=x", "no number"), ("cursor=-1", "no number"), ("boards=b01&cursor=1", "both")]
    {
        let (status, problem) = service.send("GET", &format!("/v1/members/m?{refused}"), "").await;
        assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("bad_parameter")), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn member_ids_go_through_paths_whole() {
    let service = start(3);
    for (path, member) in [
        ("owner%2Frepo.name", "owner/repo.name"),
        ("a%20b", "a b"),
        ("%E6%97%A5%E6%9C%AC", "日本"),
        ("..", ".."),
        (".", "."),
        ("a%252Fb", "a%2Fb"),
        ("a+b", "a+b"),
        ("%22quoted%22%5C", "\"quoted\"\\"),
        ("members:lookup", "members:lookup"),
        ("%C2%A0", "\u{a0}"),
    ] {
        let answer = service.put(&format!("/v1/boards/b.c:d_e-f/members/{path}"), r#"{"score":1}"#).await;
        assert_eq!(answer["entry"]["member"], json!(member));
        let around =
            service.get(&format!("/v1/boards/b.c:d_e-f/members/{path}/around?above=0&below=0")).await;
        assert_eq!(around["entries"][0]["member"], json!(member));
        assert_eq!(service.get(&format!("/v1/members/{path}")).await["member"], json!(member));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn integers_that_doubles_cannot_hold_are_strings() {
    let service = start(2);
    let definition = r#"{"keys":[{"name":"a","order":"asc","min":"-9223372036854775807"},{"name":"b"}]}"#;
    let board = service.put("/v1/boards/wide", definition).await;
    assert_eq!(board["keys"][0]["min"], json!("-9223372036854775807"));
    assert_eq!(board["keys"][1], json!({"name": "b", "order": "desc"}));
    let body = r#"{"score":["9223372036854775807",-9007199254740991]}"#;
    let answer = service.put("/v1/boards/wide/members/m", body).await;
    assert_eq!(answer["entry"]["score"], json!(["9223372036854775807", -9_007_199_254_740_991_i64]));
    let rank = service.get("/v1/boards/wide/rank?score=9223372036854775807,-9007199254740990").await;
    assert_eq!((&rank["better"], &rank["worse"]), (&json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_show_their_members_on_other_boards() {
    for shards in SHARDS {
        let service = start(shards);
        let top_k = r#"{"kind":"top_k","capacity":10}"#;
        for (board, definition) in [
            ("laps", r#"{"keys":[{"name":"time","order":"asc","type":"float"}]}"#),
            ("two,keys", r#"{"keys":[{"name":"a"},{"name":"b"}],"windows":["day","all"]}"#),
            ("few", r#"{"capacity":1}"#),
            ("clicks", top_k),
        ] {
            service.put(&format!("/v1/boards/{board}"), definition).await;
        }
        for (board, member, score) in [
            ("arena", "a", "3"),
            ("arena", "b", "2"),
            ("arena", "c", "1"),
            ("laps", "a", "61.5"),
            ("laps", "b", "60.25"),
            ("laps", "d", "1"),
            ("two,keys", "a", "[5,1]"),
            ("two,keys", "b", "[5,1]"),
            ("few", "a", "7"),
            ("few", "b", "9"),
            ("clicks", "a", "4"),
        ] {
            let body = format!(r#"{{"score":{score}}}"#);
            service.put(&format!("/v1/boards/{board}/members/{member}"), &body).await;
        }
        let with = "with=laps,two%2Ckeys,few,clicks";
        let windows = json!({"laps": "all", "two,keys": "all", "few": "all", "clicks": "all"});
        let scores = |member: &str| match member {
            "a" => json!({"laps": {"score": 61.5}, "two,keys": {"score": [5, 1]}, "few": null,
                "clicks": {"score": 4, "error": 0}}),
            "b" => json!({"laps": {"score": 60.25}, "two,keys": {"score": [5, 1]}, "few": {"score": 9},
                "clicks": null}),
            _ => json!({"laps": null, "two,keys": null, "few": null, "clicks": null}),
        };
        let check = |answer: &Value, members: &[&str]| {
            assert_eq!(answer["with_windows"], windows, "{answer}");
            let entries = answer["entries"].as_array().expect("a list");
            let found: Vec<&str> =
                entries.iter().map(|entry| entry["member"].as_str().expect("an id")).collect();
            assert_eq!(found, members);
            for (entry, member) in entries.iter().zip(members) {
                assert_eq!(entry["with"], scores(member), "{answer}");
            }
        };
        for (path, members) in [
            ("top?", &["a", "b", "c"][..]),
            ("top?from=bottom&limit=2&reached_at=true&", &["c", "b"]),
            ("range?min=2&", &["a", "b"]),
            ("positions/2?", &["b", "c"]),
            ("members/b/around?above=1&below=0&", &["a", "b"]),
        ] {
            check(&service.get(&format!("/v1/boards/arena/{path}{with}")).await, members);
        }
        let lookup = "/v1/boards/arena/members:lookup";
        let body = r#"{"members":["c","a","nobody"]}"#;
        check(&service.send("POST", &format!("{lookup}?{with}"), body).await.1, &["a", "c"]);

        let ranked = service.get(&format!("/v1/boards/arena/top?{with}&with_rank=true")).await;
        let ranks = |nth: usize| {
            ["laps", "two,keys", "few", "clicks"]
                .map(|board| ranked["entries"][nth]["with"][board]["rank"].clone())
        };
        // `d` is ahead of them; the two share a rank; `b` is the one that the capacity shows.
        assert_eq!(ranks(0), [json!(3), json!(1), json!(null), json!(1)], "{ranked}");
        assert_eq!(ranks(1), [json!(2), json!(1), json!(1), json!(null)], "{ranked}");
        assert_eq!(ranked["entries"][2]["with"], scores("c"));

        // Named twice, it is shown once; a window that a board has not is that of its own.
        let twice = service.get("/v1/boards/two,keys/top?window=all&with=laps,laps,arena").await;
        assert_eq!(twice["with_windows"], json!({"laps": "all", "arena": "all"}), "{twice}");
        let own = service.get("/v1/boards/two,keys/top?window=day&with=two%2Ckeys,arena").await;
        assert_eq!(own["with_windows"], json!({"two,keys": own["window"], "arena": "all"}), "{own}");
        assert_ne!(own["window"], "all");
        // None are asked for.
        for none in ["", "with=", "with=,", "with=&with_rank=false"] {
            let plain = service.get(&format!("/v1/boards/arena/top?{none}")).await;
            assert!(
                plain.get("with_windows").is_none() && plain["entries"][0].get("with").is_none(),
                "{plain}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_that_cannot_be_shown_are_refused() {
    let service = start(2);
    for board in ["arena", "a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        service.put(&format!("/v1/boards/{board}/members/m"), r#"{"score":1}"#).await;
    }
    service.put("/v1/boards/few", r#"{"capacity":5}"#).await;
    let eight = "with=a,b,c,d,e,f,g,h";
    let members: Vec<String> = (0..501).map(|number| format!("\"m{number}\"")).collect();
    let members = format!("{{\"members\":[{}]}}", members.join(","));
    service.get(&format!("/v1/boards/arena/top?limit=1000&{eight}")).await;
    service.get(&format!("/v1/boards/arena/top?limit=125&{eight}&with_rank=true")).await;
    service.get("/v1/boards/arena/top?limit=1000&with=few,a&with_rank=false").await;
    let top = |query: &str| format!("/v1/boards/arena/top?{query}");
    for (path, status, code, words) in [
        (top("with=a,nobody"), 404, "unknown_board", "the board nobody"),
        ("/v1/boards/nobody/top?with=neither".to_owned(), 404, "unknown_board", "no board of this name"),
        (top("with=a%20b"), 422, "malformed", "board"),
        (top("with_rank=true"), 422, "bad_parameter", "with"),
        (top("with=a&with_rank=1"), 422, "bad_parameter", "with_rank"),
        (top("with=a&with=b"), 422, "bad_parameter", "twice"),
        (top("with=a,b,c,d,e,f,g,h,i"), 422, "too_large", "at most 8 boards; got 9"),
        (
            top(&format!("limit=126&{eight}&with_rank=true")),
            422,
            "too_large",
            "at most 1000; got 126 times 8",
        ),
        (format!("/v1/boards/arena/members/m/around?above=500&below=500&{eight}"), 422, "too_large", "8000"),
        ("/v1/boards/arena/members/m?with=a".to_owned(), 422, "bad_parameter", "no parameter"),
        ("/v1/boards/arena/rank?score=1&with=a".to_owned(), 422, "bad_parameter", "no parameter"),
    ] {
        let (found, problem) = service.send("GET", &path, "").await;
        assert_eq!((found.as_u16(), &problem["code"]), (status, &json!(code)), "{path}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{path}: {problem}");
    }
    let lookup = "/v1/boards/arena/members:lookup?with=a,few&with_rank=true";
    let (status, problem) = service.send("POST", lookup, &members).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("too_large")), "{problem}");
    let lookup = "/v1/boards/arena/members:lookup?with=a,few";
    assert_eq!(service.send("POST", lookup, &members).await.0, StatusCode::OK);
}
