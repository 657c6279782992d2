//! Refused requests and their problems, and what probes say about the shards.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};

use crate::http::guard::authorize::Needs;
use crate::http::routing::routes::operations;
use crate::http::tests::{start, start_with};
use crate::operations::RequestLimits;
use crate::queue::MessageOrder;
use crate::types::{MemberId, ShardId};
use crate::writer::{OutcomeDetail, ShardState};

#[expect(clippy::too_many_lines, reason = "a list of requests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_request_is_answered_with_a_problem_and_its_code() {
    let service = start(2);
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let long = format!("/v1/boards/a/members/{}", "x".repeat(257));
    let lookup = format!(r#"{{"members":[{}]}}"#, vec!["\"m\""; 1_001].join(","));
    let scores = format!(r#"{{"scores":[{}]}}"#, vec!["1"; 1_001].join(","));
    service
        .check_refusals(&[
            ("POST", "/", "", 404, "unknown_route"),
            ("GET", "/v2/boards", "", 404, "unknown_route"),
            ("GET", "/v1/boards/a/members/", "", 404, "unknown_route"),
            ("GET", "/v1/boards/a/members/x/y", "", 404, "unknown_route"),
            ("PATCH", "/v1/boards/a", "", 405, "method_not_allowed"),
            ("GET", "/v1/jobs", "", 405, "method_not_allowed"),
            ("POST", "/v1/boards/a/top", "", 405, "method_not_allowed"),
            ("GET", "/v1/boards/b/members/m", "", 404, "unknown_board"),
            ("GET", "/v1/boards/a%20b/top", "", 422, "malformed"),
            ("GET", "/v1/boards/a/members/n", "", 404, "unknown_member"),
            ("GET", "/v1/boards/a/members/n/around", "", 404, "unknown_member"),
            ("GET", "/v1/boards/a/members/%FF", "", 400, "malformed"),
            ("GET", "/v1/boards/a/members/a%0Ab", "", 422, "bad_member"),
            ("PUT", "/v1/boards/a/members/a%00b", r#"{"score":1}"#, 422, "bad_member"),
            ("GET", &long, "", 422, "bad_member"),
            ("PUT", "/v1/boards/a%20b/members/m", r#"{"score":1}"#, 422, "malformed"),
            ("PUT", "/v1/boards/.a", "", 422, "malformed"),
            ("PUT", "/v1/boards/c", "{", 400, "malformed"),
            ("PUT", "/v1/boards/c", r#"{"windows":["year"]}"#, 422, "invalid_definition"),
            ("PUT", "/v1/boards/c", r#"{"kind":"top_k"}"#, 422, "invalid_definition"),
            ("PUT", "/v1/boards/c?wait=none", "", 422, "bad_parameter"),
            ("PUT", "/v1/boards/a/members/m", "", 422, "malformed"),
            ("PUT", "/v1/boards/a/members/m", "[]", 422, "malformed"),
            ("PUT", "/v1/boards/a/members/m", r#"{"score":1.5}"#, 422, "bad_score"),
            ("PUT", "/v1/boards/a/members/m", r#"{"score":13}"#, 409, "out_of_range"),
            ("PUT", "/v1/boards/a/members/m?wait=x", r#"{"score":1}"#, 422, "bad_parameter"),
            ("DELETE", "/v1/boards/a/members/m?version=x", "", 422, "bad_parameter"),
            ("POST", "/v1/jobs", "", 422, "malformed"),
            ("POST", "/v1/jobs", "[", 422, "malformed"),
            ("POST", "/v1/jobs?dry=true", "[]", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?window=day", "", 404, "unknown_window"),
            ("GET", "/v1/boards/a/top?window=2026-W47", "", 404, "unknown_window"),
            ("GET", "/v1/boards/a/top?window=", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?window=a%23s1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a%23s1/top", "", 422, "malformed"),
            ("PUT", "/v1/boards/a%232026-W47/members/m", r#"{"score":1}"#, 422, "malformed"),
            ("GET", "/v1/boards/a/top?profile=yes", "", 422, "bad_parameter"),
            ("POST", "/v1/jobs", r#"{"member":"m","op":"profile"}"#, 422, "malformed"),
            ("PUT", "/v1/boards/a/members/m", r#"{"op":"profile","profile":{}}"#, 422, "malformed"),
            ("GET", "/v1/boards/a/top?partial=yes", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?limt=5", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?limit=5&limit=6", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?limit=%FF", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?limit=0", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?limit=-1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?limit=1.5", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?limit=1001", "", 422, "too_large"),
            ("GET", "/v1/boards/a/top?from=middle", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/top?cursor=zz", "", 422, "bad_cursor"),
            ("GET", "/v1/boards/a/top?after=x", "", 422, "malformed"),
            ("GET", "/v1/boards/a/top?after=2:1", "", 422, "unknown_shard"),
            ("GET", "/v1/boards/a/top?after=0:99&timeout_ms=1", "", 504, "not_yet_applied"),
            ("GET", "/v1/boards/a/top?after=0:1&timeout_ms=60001", "", 422, "too_large"),
            ("GET", "/v1/boards/a/members/m/around?above=501", "", 422, "too_large"),
            ("GET", "/v1/boards/a/members/m/around?below=501", "", 422, "too_large"),
            ("GET", "/v1/boards/a/members/m/around?fill=1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/positions/0", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/positions/-1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/positions/x", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/positions/99999999999999999999999", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/rank", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/rank?score=", "", 422, "bad_score"),
            ("GET", "/v1/boards/a/rank?score=1.5", "", 422, "bad_score"),
            ("GET", "/v1/boards/a/rank?score=1,2", "", 422, "bad_score"),
            ("GET", "/v1/boards/a/rank?score=9223372036854775808", "", 422, "bad_score"),
            ("GET", "/v1/boards/b/rank?score=1", "", 404, "unknown_board"),
            ("POST", "/v1/boards/a/ranks:of", r#"{"scores":[1,1.5]}"#, 422, "bad_score"),
            ("POST", "/v1/boards/a/ranks:of", r#"{"scores":[[1,2]]}"#, 422, "bad_score"),
            ("POST", "/v1/boards/a/ranks:of", r#"{"scores":5}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards/a/ranks:of", "{}", 422, "bad_parameter"),
            ("POST", "/v1/boards/a/ranks:of", "{", 400, "malformed"),
            ("POST", "/v1/boards/a/ranks:of", &scores, 422, "too_large"),
            ("POST", "/v1/boards/a/members:lookup", &lookup, 422, "too_large"),
            ("POST", "/v1/boards/a/members:lookup", r#"{"members":[1]}"#, 422, "bad_member"),
            ("POST", "/v1/boards/a/members:lookup", r#"{"members":["m"],"x":1}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", "{}", 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"[{"a":1}]"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":{}}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":["a"]}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":"x"}}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":[1,2]}}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":1,"a":2}}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a b":1}}"#, 422, "malformed"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"b":1}}"#, 404, "unknown_board"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":1},"x":1}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":1},"combine":"xor"}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":1},"first":"b"}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":1},"limit":1001}"#, 422, "too_large"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":1},"cursor":"zz"}"#, 422, "bad_cursor"),
            ("POST", "/v1/boards:combine", r#"{"boards":{"a":1},"member":""}"#, 422, "bad_member"),
            ("POST", "/v1/boards:combine?window=day", r#"{"boards":{"a":1}}"#, 404, "unknown_window"),
            ("POST", "/v1/boards:combine?profile=true", r#"{"boards":{"a":1}}"#, 422, "bad_parameter"),
            ("GET", "/v1/boards/a/score", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/score?rank=1&position=1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/score?rank=0", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/score?rank=2", "", 404, "unknown_position"),
            ("GET", "/v1/boards/a/score?percentile=101", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/score?percentile=NaN", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/count?min=2&max=1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/count?min=x", "", 422, "bad_score"),
            ("GET", "/v1/boards/a/histogram?buckets=0", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/histogram?buckets=1001", "", 422, "too_large"),
            ("GET", "/v1/boards/a/histogram?edges=1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/histogram?edges=2,1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/percentiles?p=50,x", "", 422, "bad_parameter"),
            ("GET", "/v1/members/m?boards=a,b%20c", "", 422, "malformed"),
            ("GET", "/v1/status?x=1", "", 422, "bad_parameter"),
        ])
        .await;
    for size in [(1 << 20) + 1, 10 << 20] {
        let (status, problem) = service.send_bytes("POST", "/v1/jobs", vec![b' '; size]).await;
        assert_eq!((status.as_u16(), &problem["code"]), (413, &json!("too_large")));
    }
}

/// The value, and the form that would be taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_problem_shows_the_refused_value_and_the_expected_form() {
    let service = start(2);
    let definition = r#"{"keys":[{"name":"points","min":0,"max":5000},{"name":"time_ms","order":"asc"}]}"#;
    service.put("/v1/boards/race", definition).await;
    let keys = "a score of this board has 2 keys (points, time_ms): send";
    for (method, path, body, expect) in [
        // In a query as queries have scores, in a body as JSON has them.
        ("GET", "/v1/boards/race/rank?score=7", "", format!("{keys} score=1200,90000, not score=7")),
        (
            "GET",
            "/v1/boards/race/rank?score=[7,8]",
            "",
            "separate the keys of a score with commas, for example score=1200,90000".to_owned(),
        ),
        (
            "GET",
            "/v1/boards/race/count?min=7,8",
            "",
            "it is a bound of the first key only, for example min=1200".to_owned(),
        ),
        (
            "POST",
            "/v1/boards/race/ranks:of",
            r#"{"scores":[[1,2,3]]}"#,
            format!("{keys} [1200, 90000], not [1, 2, 3]"),
        ),
        (
            "PUT",
            "/v1/boards/race",
            r#"{"keys":[{"name":"points","min":0,"max":9000,"order":"asc"},{"name":"time_ms","order":"asc"}]}"#,
            "definition: the order of key points is desc, not asc. Only policy, keep, grace, entry_ttl, expires_at, expires_after, capacity, the every of season and the bounds of keys with below_min and above_max can change".to_owned(),
        ),
        ("PUT", "/v1/boards/a%20b", "{}", "got \"a b\"".to_owned()),
        ("GET", "/v1/boards/race/top?limit=ten", "", "limit must be a whole number; got \"ten\"".to_owned()),
        ("GET", "/v1/boards/race/top?limit=5000", "", "limit must be at most 1000; got 5000".to_owned()),
        ("GET", "/v1/boards/race?window=day", "", "the board has no window day; its windows are all".to_owned()),
        ("GET", "/v1/boards/race?after=now", "", "for example 0:1842,1:1777; got \"now\"".to_owned()),
        (
            "POST",
            "/v1/boards/race/members:lookup",
            r#"{"member":["m"]}"#,
            r#"such as {"members": ["p42", "p43"]}; got {"member":["m"]}"#.to_owned(),
        ),
        ("POST", "/v1/boards/race/members:lookup", "{", "the body is not JSON: it ends too early".to_owned()),
        ("POST", "/v1/jobs", "[{}, 5]", "; got 5".to_owned()),
    ] {
        let (_, problem) = service.send(method, path, body).await;
        let told = problem.to_string();
        let expect = serde_json::Value::from(expect).to_string();
        assert!(told.contains(expect.trim_matches('"')), "{method} {path} {body}: {told}");
        for phrase in ["EOF", "expected ", "invalid type", "missing field", "unknown field"] {
            assert!(!told.contains(phrase), "{method} {path} {body}: {told}");
        }
    }
}

/// What a newcomer most likely meant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_problem_says_what_was_probably_meant() {
    let service = start(2);
    service.put("/v1/boards/tie", "{}").await;
    for (method, path, body, expect) in [
        ("GET", "/v1/boards/tie/members/tokio-rs/tokio", "", "tokio-rs%2Ftokio"),
        ("PUT", "/v1/boards/tie/members/tokio-rs/tokio", r#"{"score":1}"#, "write it as %2F"),
        ("GET", "/v1/members/tokio-rs/tokio", "", "write it as %2F"),
        ("GET", "/v1/boards/tie:clear", "", "send POST to this path"),
        ("GET", "/v1/boards/tie/members/m", "", "or a hidden one"),
        ("POST", "/v1/boards/tie:trim", "", "{\"positions_beyond\":1000}"),
        ("PUT", "/v1/boards/tie/members/m", r#"{"score":1,"at":"now"}"#, "with an offset or Z"),
    ] {
        let (_, problem) = service.send(method, path, body).await;
        let told = problem["detail"].as_str().unwrap_or_default();
        assert!(told.contains(expect), "{method} {path} {body}: {problem}");
    }
    for path in ["/v2/boards", "/v1/boards/tie/members/", "/v1/boards/tie/nothing"] {
        let (_, problem) = service.send("GET", path, "").await;
        let told = problem["detail"].as_str().unwrap_or_default();
        assert!(told.contains("/docs lists the paths"), "{path}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_with_plus_signs_and_tokens_in_another_form_are_refused() {
    let service = start(2);
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    service
        .check_refusals(&[
            ("GET", "/v1/boards/a/score?percentile=.5", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/score?percentile=%2B5", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/score?rank=%2B1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/rank?score=%2B5", "", 422, "bad_score"),
            ("GET", "/v1/boards/a/top?limit=%2B5", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a/positions/+1", "", 422, "bad_parameter"),
            ("DELETE", "/v1/boards/a/members/m?version=%2B1", "", 422, "bad_parameter"),
            ("GET", "/v1/boards/a?after=%2B0:%2B1", "", 422, "malformed"),
            ("GET", "/v1/boards/a?after=0:01", "", 422, "malformed"),
            ("GET", "/v1/boards/a?after=0:0&timeout_ms=%2B5", "", 422, "bad_parameter"),
        ])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_too_large_for_any_type_is_a_bad_score() {
    let service = start(1);
    service
        .check_refusals(&[
            ("POST", "/v1/jobs", r#"{"board":"a","member":"m","score":1e400}"#, 422, "bad_score"),
            ("POST", "/v1/jobs", r#"{"member":"m","scores":{"a":[1,-1e400]}}"#, 422, "bad_score"),
            ("POST", "/v1/jobs", r#"{"board":"a","member":"m","score":1e400"#, 422, "malformed"),
            ("POST", "/v1/boards/a/ranks:of", r#"{"scores":[1,[1e400]]}"#, 422, "bad_score"),
            ("POST", "/v1/boards/a/ranks:of", r#"{"scores":[1e400}"#, 400, "malformed"),
        ])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_and_the_status_report_the_shards_states() {
    let service = start(2);
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    assert_eq!(service.get("/healthz").await, json!("ok\n"));
    assert_eq!(service.get("/readyz").await, json!("ready\n"));
    assert_eq!(service.get("/metrics").await, json!("ranktree_build_info 1\n"));
    let status = service.get("/v1/status").await;
    assert_eq!(status["shards"].as_array().map(Vec::len), Some(2));
    let home = service.api.operations.node.home_of(&MemberId::new("m").expect("a good id"));
    let shard = &status["shards"][home.index()];
    for (name, value) in [
        ("owner", json!("local")),
        ("state", json!("live")),
        ("reason", Value::Null),
        ("applied_sequence", json!(1)),
        ("lag", json!(0)),
        ("members", json!(1)),
    ] {
        assert_eq!(shard[name], value, "{name}");
    }
    let health = &service.api.operations.node.shards[home.index()].health;
    health.set_state(ShardState::Halted("its disk is gone".to_owned()));
    assert_eq!(service.get("/healthz").await, json!("ok\n"));
    assert_eq!(service.get("/v1/boards/a/top").await["stale"], json!(true));
    assert_eq!(service.get("/v1/boards/a/members/m").await["stale"], json!(true));
    service
        .check_refusals(&[
            ("GET", "/readyz", "", 503, "not_ready"),
            ("PUT", "/v1/boards/a/members/m", r#"{"score":2}"#, 503, "shard_unavailable"),
            ("PUT", "/v1/boards/c", "", 503, "shard_unavailable"),
        ])
        .await;
    assert_eq!(service.get("/v1/status").await["shards"][home.index()]["reason"], json!("its disk is gone"));
    let (_, problem) = service.send("GET", "/readyz", "").await;
    assert_eq!(problem["shards"][home.index()]["reason"], json!("its disk is gone"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_requests_are_shed_but_probes_answer() {
    let service = start_with(1, RequestLimits { requests_in_flight: 1, ..RequestLimits::default() });
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let waiting = service.send("PUT", "/v1/boards/a/members/n", r#"{"score":667}"#);
    let mut waiting = Box::pin(waiting);
    let other = async {
        service.check_refusals(&[("GET", "/v1/boards/a", "", 503, "overloaded")]).await;
        assert_eq!(service.get("/healthz").await, json!("ok\n"));
        assert_eq!(service.get("/readyz").await, json!("ready\n"));
    };
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("nobody answers it"),
        () = other => {}
    }
    drop(waiting);
    assert_eq!(service.get("/v1/boards/a").await["totals"]["all"], json!(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_waits_for_a_write_holds_no_permit_and_may_be_shed_afterwards() {
    let service = start_with(1, RequestLimits { requests_in_flight: 1, ..RequestLimits::default() });
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let mut waiting = Box::pin(service.send("GET", "/v1/boards/a?after=0:3&timeout_ms=60000", ""));
    let others = async {
        assert_eq!(service.get("/v1/boards/a").await["totals"]["all"], json!(1));
        service.put("/v1/boards/a/members/n", r#"{"score":2}"#).await;
    };
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("one write is missing"),
        () = others => {}
    }
    // It needs a permit again once it has waited.
    let mut unheard = Box::pin(service.send("PUT", "/v1/boards/a/members/o", r#"{"score":667}"#));
    let applied = async {
        let publisher = service.api.operations.publishers.of(ShardId(0));
        let order = MessageOrder::default();
        publisher.publish_jobs(Vec::new(), order, OutcomeDetail::Changed).await.expect("it is applied");
    };
    tokio::select! {
        biased;
        _ = &mut unheard => panic!("nobody answers it"),
        () = applied => {}
    }
    let (status, problem) = waiting.await;
    assert_eq!((status.as_u16(), &problem["code"]), (503, &json!("overloaded")), "{problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_have_a_budget_together() {
    let service = start_with(1, RequestLimits { body_bytes_in_flight: 100, ..RequestLimits::default() });
    for _ in 0..3 {
        // What a request took is there again for the next one.
        service.put("/v1/boards/a/members/m", &format!("{{\"score\":1{}}}", " ".repeat(80))).await;
        let body = format!("{{\"score\":1{}}}", " ".repeat(100));
        service.check_refusals(&[("PUT", "/v1/boards/a/members/m", &body, 503, "overloaded")]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_have_a_budget_together_and_a_write_that_may_exceed_it_is_not_published() {
    let limits = RequestLimits { answer_bytes_in_flight: 40_000, ..RequestLimits::default() };
    let service = start_with(1, limits);
    let jobs = |first: usize, count: usize| {
        let job = |number| format!(r#"{{"board":"a","member":"m{number}","score":1}}"#);
        format!("[{}]", (first..first + count).map(job).collect::<Vec<_>>().join(","))
    };
    for _ in 0..3 {
        // What a request took is there again for the next one.
        service.check_refusals(&[("POST", "/v1/jobs", &jobs(1_000, 100), 503, "overloaded")]).await;
    }
    service.check_refusals(&[("GET", "/v1/boards/a", "", 404, "unknown_board")]).await;
    for first in 0..40 {
        let (status, answer) = service.send("POST", "/v1/jobs", &jobs(10 * first, 10)).await;
        assert_eq!(status, 200, "{answer}");
    }
    let (status, answer) = service.send("POST", "/v1/jobs?results=changed", &jobs(400, 20)).await;
    assert_eq!(status, 200, "{answer}");
    // A read is known to be too large when it is made.
    service.check_refusals(&[("GET", "/v1/boards/a/top?limit=1000", "", 503, "overloaded")]).await;
    assert_eq!(service.get("/v1/boards/a/top?limit=20").await["total"], json!(420));

    // An answer counts until the connection has written it and drops it.
    let held = service.answered("GET", "/v1/boards/a/top?limit=100").await;
    let held = [held, service.answered("GET", "/v1/boards/a/top?limit=100").await];
    service.check_refusals(&[("GET", "/v1/boards/a/top?limit=100", "", 503, "overloaded")]).await;
    service.check_refusals(&[("POST", "/v1/jobs", &jobs(1_000, 10), 503, "overloaded")]).await;
    drop(held);
    assert_eq!(service.get("/v1/boards/a/top?limit=100").await["total"], json!(420));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_keeps_its_permit_until_its_answer_is_written() {
    let service = start_with(1, RequestLimits { requests_in_flight: 1, ..RequestLimits::default() });
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let held = service.answered("GET", "/v1/boards/a/top").await;
    service.check_refusals(&[("GET", "/v1/boards/a", "", 503, "overloaded")]).await;
    drop(held);
    assert_eq!(service.get("/v1/boards/a").await["totals"]["all"], json!(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_jobs_wait_long_for_a_board_says_so() {
    let service = start(2);
    assert_eq!(service.get("/readyz").await, json!("ready\n"));
    service.api.operations.node.shards[1].health.set(|health| health.jobs_wait_long = true);
    let ready = service.get("/readyz").await;
    let ready = ready.as_str().expect("text");
    assert!(ready.starts_with("ready, degraded\nshard 1: jobs wait long for a board"), "{ready}");
    assert_eq!(service.get("/v1/status").await["degraded"], json!(true));
}

/// Nobody can create such a board, so it is not called unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_no_board_can_have_is_malformed_in_reads_too() {
    let service = start(2);
    service
        .check_refusals(&[
            ("GET", "/v1/boards/a%00", "", 422, "malformed"),
            ("GET", "/v1/boards/%25zz/members/m", "", 422, "malformed"),
            ("GET", "/v1/boards/a%20b/top", "", 422, "malformed"),
            ("DELETE", "/v1/boards/a%20b", "", 422, "malformed"),
        ])
        .await;
}

/// A path of the API with something in its braces.
fn filled(path: &str) -> String {
    [("{board}", "a"), ("{member}", "m"), ("{position}", "1"), ("{season}", "s1"), ("{snapshot}", "6a-1")]
        .into_iter()
        .chain([("{shard}", "0"), ("{file}", "CURRENT")])
        .fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_where_none_is_taken_is_refused_and_nothing_is_changed() {
    let service = start(2);
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let mut refused = 0;
    for operation in operations() {
        // Probes are answered without a look at the request.
        let is_probe = operation.needs == Needs::Nothing || operation.path == "/metrics";
        if is_probe || operation.doc.takes_body() {
            continue;
        }
        let (method, path) = (operation.method.name().to_uppercase(), filled(operation.path));
        for body in [r#"{"version":9}"#, r#"{"windows":"*"}"#, "[]", "null", "version=9"] {
            let (status, problem) = service.send(&method, &path, body).await;
            let told = (status.as_u16(), problem["code"].as_str());
            assert_eq!(told, (422, Some("bad_parameter")), "{method} {path} {body}: {problem}");
            let detail = problem["detail"].as_str().unwrap_or_default();
            assert!(detail.contains("takes no body") && detail.contains("?version="), "{detail}");
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");
    assert_eq!(service.get("/v1/boards/a/members/m").await["score"], 1);
    // Nothing is said by these.
    for body in ["", " ", "{}\n"] {
        let (status, answer) = service.send("DELETE", "/v1/boards/a/members/m", body).await;
        assert!(status.is_success(), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_writes_no_jobs_is_refused_with_an_idempotency_key() {
    let service = start(2);
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let (mut refused, mut answered) = (0, 0);
    for operation in operations().into_iter().filter(|operation| !operation.doc.has_key()) {
        let (method, path) = (operation.method.name().to_uppercase(), filled(operation.path));
        let body = if operation.doc.takes_body() { r#"{"score":7}"# } else { "" };
        let request = Request::builder().method(method.as_str()).uri(&path).header("Idempotency-Key", "a-1");
        let request = request.body(Body::from(body)).expect("a good request");
        let response = service.router.answer(request, None).await.response;
        let status = response.status().as_u16();
        if method == "GET" || operation.needs.only_reads() {
            answered += 1;
            if path.ends_with("/live") {
                continue;
            }
        }
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("the body is in memory");
        let text = String::from_utf8_lossy(&bytes);
        if method == "GET" || operation.needs.only_reads() {
            assert!(!text.contains("Idempotency-Key") || operation.needs == Needs::Nothing, "{path}: {text}");
            continue;
        }
        assert_eq!(status, 422, "{method} {path}: {text}");
        assert!(
            text.contains("\"unsupported\"") && text.contains("leave the header out"),
            "{method} {path}: {text}"
        );
        refused += 1;
    }
    assert!(refused > 5 && answered > 10, "{refused} and {answered}");
    assert_eq!(service.get("/v1/boards/a/members/m").await["score"], 1);
}
