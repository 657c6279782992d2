//! What writes answer with: jobs and boards.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::tests::{REJECTED, SHARDS, start};
use crate::state_lock::Purpose;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_jobs_are_answered_one_by_one_in_their_order() {
    for shards in SHARDS {
        let service = start(shards);
        let job = |index: usize| format!(r#"{{"board":"arena","member":"m{index}","score":{index}}}"#);
        let jobs: Vec<String> = (0..500).map(job).collect();
        let body = format!("[{}]", jobs.join(","));
        let (status, answer) = service.send("POST", "/v1/jobs?wait=applied", &body).await;
        assert_eq!(status, StatusCode::OK);
        let results = answer["results"].as_array().expect("a list");
        assert_eq!(results.len(), 500);
        for (index, result) in results.iter().enumerate() {
            if index as i64 == REJECTED {
                assert_eq!(result["rejected"], json!("out_of_range"));
            } else {
                assert_eq!(result["entry"]["member"], json!(format!("m{index}")));
            }
        }
        let token = answer["token"].as_str().expect("text");
        let path = format!("/v1/boards/arena?after={token}");
        assert_eq!(service.get(&path).await["totals"]["all"], json!(499));
        // One message holds at most 64 jobs, and all of a request's are published before any is waited for.
        let most = service.api.operations.node.shards.iter().map(|shard| shard.applied.get().0).max();
        assert!(most >= Some(500 / 64 / u64::from(shards)), "{most:?}");
        let (status, one) = service.send("POST", "/v1/jobs", &job(600)).await;
        assert_eq!((status, &one["results"][0]["entry"]["rank"]), (StatusCode::OK, &json!(1)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_an_invalid_job_applies_nothing() {
    let service = start(2);
    let body =
        r#"[{"board":"a","member":"m","score":1},{"board":"a","member":"m","score":1.5},{"member":"m"}]"#;
    let (status, problem) = service.send("POST", "/v1/jobs", body).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("bad_score")));
    let errors: Vec<(u64, &str)> = problem["errors"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|error| (error["index"].as_u64().expect("a number"), error["code"].as_str().expect("text")))
        .collect();
    assert_eq!(errors, [(1, "bad_score"), (2, "malformed")]);
    service.check_refusals(&[("GET", "/v1/boards/a", "", 404, "unknown_board")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_commit_is_reported_for_the_job_whose_message_failed() {
    let service = start(1);
    let one = r#"{"score":666}"#;
    service.check_refusals(&[("PUT", "/v1/boards/a/members/m", one, 503, "commit_failed")]).await;
    let job = |index: usize| format!(r#"{{"board":"a","member":"m{index}","score":{index}}}"#);
    let mut jobs: Vec<String> = (100..164).map(job).collect();
    jobs.push(job(666));
    let (status, problem) = service.send("POST", "/v1/jobs", &format!("[{}]", jobs.join(","))).await;
    assert_eq!((status.as_u16(), &problem["code"]), (503, &json!("commit_failed")));
    let results = problem["results"].as_array().expect("a list");
    assert_eq!((results.len(), &results[0]["changed"]), (65, &json!(true)));
    assert_eq!(results[64]["failed"], json!("commit_failed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_freed_by_a_batch_that_could_not_be_committed_is_of_unknown_outcome() {
    let service = start(1);
    let one = r#"{"score":668}"#;
    service.check_refusals(&[("PUT", "/v1/boards/a/members/m", one, 503, "commit_unknown")]).await;
    let job = |index: usize| format!(r#"{{"board":"a","member":"m{index}","score":{index}}}"#);
    let jobs = format!("[{},{},{}]", job(1), job(668), job(2));
    let (status, problem) = service.send("POST", "/v1/jobs", &jobs).await;
    assert_eq!((status.as_u16(), &problem["code"]), (503, &json!("commit_unknown")));
    let results = problem["results"].as_array().expect("a list");
    let told: Vec<_> = results.iter().map(|result| (&result["changed"], &result["failed"])).collect();
    let (applied, unknown) = ((&json!(true), &json!(null)), (&json!(null), &json!("commit_unknown")));
    assert_eq!(told, [applied, unknown, applied]);
    let detail = results[1]["detail"].as_str().expect("text");
    assert!(detail.starts_with("the job was waiting for its board, and is applied as soon"), "{detail}");
}

/// The jobs of a request, each of so many boards.
fn jobs_of(boards: usize, jobs: usize) -> String {
    let scores: Vec<String> = (0..boards).map(|number| format!("\"b{number}\":1")).collect();
    let job = |number: usize| format!(r#"{{"member":"m{number}","scores":{{{}}}}}"#, scores.join(","));
    format!("[{}]", (0..jobs).map(job).collect::<Vec<_>>().join(","))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_boards_of_a_requests_jobs_have_a_limit_together() {
    let service = start(1);
    for path in ["/v1/jobs", "/v1/jobs?results=changed"] {
        let (status, problem) = service.send("POST", path, &jobs_of(64, 63)).await;
        assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("too_large")), "{problem}");
    }
    service.check_refusals(&[("GET", "/v1/boards/b0", "", 404, "unknown_board")]).await;
    let (status, answer) = service.send("POST", "/v1/jobs", &jobs_of(64, 62)).await;
    assert_eq!((status, answer["results"].as_array().map(Vec::len)), (StatusCode::OK, Some(62)));
    let (status, answer) = service.send("POST", "/v1/jobs", &jobs_of(4, 1_000)).await;
    assert_eq!((status, answer["results"].as_array().map(Vec::len)), (StatusCode::OK, Some(1_000)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_changed_makes_answers_short() {
    let service = start(2);
    let job = r#"[{"board":"a","member":"m","score":1},{"board":"a","member":"n","score":13}]"#;
    let (status, answer) = service.send("POST", "/v1/jobs?results=changed", job).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(answer["results"][0], json!({"changed": true}));
    assert_eq!(answer["results"][1]["rejected"], json!("out_of_range"));
    let (status, answer) = service.send("POST", "/v1/jobs?results=changed", &jobs_of(2, 1)).await;
    // The script writes the first board only.
    let told = json!({"changed": true, "boards": {"b0": {"changed": true}}});
    assert_eq!((status, &answer["results"][0]), (StatusCode::OK, &told));
    let one = service.put("/v1/boards/a/members/m?results=changed", r#"{"score":2}"#).await;
    let names: Vec<&String> = one.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["token", "changed"]);
    let (status, gone) = service.send("DELETE", "/v1/members/m", "").await;
    assert_eq!((status, &gone["counts"]), (StatusCode::OK, &json!({"boards": 0, "changed": 0})));
    service
        .check_refusals(&[
            ("PUT", "/v1/boards/a/members/m?results=all", r#"{"score":1}"#, 422, "bad_parameter"),
            ("PUT", "/v1/boards/a?results=changed", "", 422, "bad_parameter"),
        ])
        .await;
}

/// The token of a definition or a drop names every shard, so that a read that waits for it sees the change
/// everywhere.
fn names_every_shard(token: &Value, shards: u16) {
    let token = token.as_str().expect("a token");
    let named: Vec<_> = token.split(',').filter_map(|part| part.split_once(':')).collect();
    assert_eq!(named.len(), usize::from(shards), "{token}");
    for (shard, (name, sequence)) in named.into_iter().enumerate() {
        assert_eq!(name, shard.to_string(), "{token}");
        assert_ne!(sequence, "0", "{token}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boards_are_defined_listed_and_dropped() {
    for shards in SHARDS {
        let service = start(shards);
        let definition = r#"{"keys":[{"name":"t","order":"asc"}],"policy":"best","ties":"last"}"#;
        for expected in [StatusCode::CREATED, StatusCode::OK] {
            let (status, board) = service.send("PUT", "/v1/boards/race", definition).await;
            assert_eq!(status, expected);
            assert_eq!(board["totals"], json!({"all": 0}));
            assert_eq!(board["windows"], json!(["all"]));
            names_every_shard(&board["token"], shards);
        }
        let (status, board) = service
            .send(
                "PUT",
                "/v1/boards/race",
                r#"{"keys":[{"name":"t","order":"asc"}],"policy":"best","ties":"last","keep":3}"#,
            )
            .await;
        assert_eq!((status, &board["keep"]), (StatusCode::OK, &json!(3)));
        for shard in &service.api.operations.node.shards {
            let state = shard.state.read(Purpose::Read);
            assert_eq!(state.board("race").map(|board| board.definition.keep), Some(3));
        }
        let bounded =
            r#"{"keys":[{"name":"t","order":"asc","max":9}],"policy":"best","ties":"last","keep":3}"#;
        let (status, board) = service.send("PUT", "/v1/boards/race", bounded).await;
        assert_eq!((status, &board["keys"][0]["max"]), (StatusCode::OK, &json!(9)));
        for shard in &service.api.operations.node.shards {
            let state = shard.state.read(Purpose::Read);
            assert_eq!(state.board("race").map(|board| board.definition.keys[0].max), Some(9));
        }
        let fixed = r#"{"ties":"first"}"#;
        service.check_refusals(&[("PUT", "/v1/boards/race", fixed, 409, "board_differs")]).await;
        service.put("/v1/boards/arena/members/m", r#"{"score":1}"#).await;
        let list = service.get("/v1/boards?limit=1").await;
        assert_eq!((&list["boards"][0]["board"], &list["next_cursor"]), (&json!("arena"), &json!("arena")));
        assert_eq!(list["boards"][0]["totals"]["all"], json!(1));
        let list = service.get("/v1/boards?cursor=arena").await;
        assert_eq!((&list["boards"][0]["board"], &list["next_cursor"]), (&json!("race"), &Value::Null));
        let (status, dropped) = service.send("DELETE", "/v1/boards/arena", "").await;
        assert_eq!((status, &dropped["dropped"]), (StatusCode::OK, &json!(true)));
        names_every_shard(&dropped["token"], shards);
        service
            .check_refusals(&[
                ("DELETE", "/v1/boards/arena", "", 404, "unknown_board"),
                ("GET", "/v1/boards/arena", "", 404, "unknown_board"),
                ("GET", "/v1/boards/arena/top", "", 404, "unknown_board"),
                ("DELETE", "/v1/boards/arena/members/m", "", 404, "unknown_board"),
            ])
            .await;
        service.put("/v1/boards/arena", "").await;
        assert_eq!(service.get("/v1/boards/arena").await["totals"]["all"], json!(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boards_are_trimmed_and_cleared() {
    for shards in SHARDS {
        let service = start(shards);
        for name in ["arena", "arena:trim"] {
            for number in 0..700 {
                let body = format!(r#"{{"score":{}}}"#, number % 70 + 1_000);
                service.put(&format!("/v1/boards/{name}/members/m{number}"), &body).await;
            }
        }
        let total = async |name: &str| {
            service.get(&format!("/v1/boards/{name}")).await["totals"]["all"].as_u64().expect("a count")
        };
        let post = async |path: &str, body: &str| {
            let (status, answer) = service.send("POST", path, body).await;
            assert_eq!(status, StatusCode::OK, "{path} {body}: {answer}");
            names_every_shard(&answer["token"], shards);
            (answer["board"].clone(), answer["removed"].clone())
        };
        let top = service.get("/v1/boards/arena/top?limit=1000").await;
        assert_eq!(
            post("/v1/boards/arena:trim", r#"{"positions_beyond":701}"#).await,
            (json!("arena"), json!(0))
        );
        assert_eq!(
            post("/v1/boards/arena:trim", r#"{"positions_beyond":"655"}"#).await,
            (json!("arena"), json!(45))
        );
        assert_eq!(post("/v1/boards/arena:trim", r#"{"worse_than":1000}"#).await, (json!("arena"), json!(0)));
        let left = service.get("/v1/boards/arena/top?limit=1000").await;
        let entries = |answer: &Value| answer["entries"].as_array().expect("a list").clone();
        assert_eq!(entries(&left), entries(&top)[..655]);
        assert_eq!(
            post("/v1/boards/arena:trim", r#"{"worse_than":1050}"#).await,
            (json!("arena"), json!(455))
        );
        assert_eq!(total("arena").await, 200);
        // What follows the last colon is the verb, and of any other method a part of the name.
        assert_eq!(total("arena:trim").await, 700);
        assert_eq!(post("/v1/boards/arena:trim:clear", "{}").await, (json!("arena:trim"), json!(700)));
        assert_eq!((total("arena").await, total("arena:trim").await), (200, 0));
        let before = service.api.operations.node.shards[0]
            .state
            .read(Purpose::Read)
            .board("arena")
            .map(|board| board.incarnation);
        assert_eq!(post("/v1/boards/arena:clear?wait=applied", "").await, (json!("arena"), json!(200)));
        assert_eq!(total("arena").await, 0);
        for shard in &service.api.operations.node.shards {
            assert!(shard.state.read(Purpose::Read).board("arena").map(|board| board.incarnation) > before);
        }
        assert_eq!(
            post("/v1/boards/arena:trim", r#"{"positions_beyond":1}"#).await,
            (json!("arena"), json!(0))
        );
        service.put("/v1/boards/arena/members/m0", r#"{"score":1}"#).await;
        assert_eq!(total("arena").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_clears_and_trims_are_refused_and_remove_nothing() {
    let service = start(2);
    service.put("/v1/boards/race", r#"{"keys":[{"name":"a"},{"name":"b"}]}"#).await;
    let wrong = [
        ("", 422, "bad_parameter"),
        ("{", 400, "malformed"),
        ("[]", 422, "bad_parameter"),
        ("[1]", 422, "bad_parameter"),
        ("{}", 422, "bad_parameter"),
        (r#"{"positions_beyond":null}"#, 422, "bad_parameter"),
        (r#"{"positions_beyond":1,"worse_than":1}"#, 422, "bad_parameter"),
        (r#"{"positions_beyond":1,"worse_than":null}"#, 422, "bad_parameter"),
        (r#"{"better_than":1,"worse_than":1}"#, 422, "bad_parameter"),
        (r#"{"better_than":null}"#, 422, "bad_score"),
        (r#"{"better_than":[1,2,3]}"#, 422, "bad_score"),
        (r#"{"worse_than":null}"#, 422, "bad_score"),
        (r#"{"positions_beyond":0}"#, 422, "bad_parameter"),
        (r#"{"positions_beyond":-1}"#, 422, "bad_parameter"),
        (r#"{"positions_beyond":1.5}"#, 422, "bad_parameter"),
        (r#"{"positions_beyond":1e400}"#, 422, "bad_parameter"),
        (r#"{"beyond":1}"#, 422, "bad_parameter"),
        (r#"{"worse_than":1.5}"#, 422, "bad_score"),
        (r#"{"worse_than":1e400}"#, 422, "bad_score"),
        (r#"{"worse_than":9223372036854775808}"#, 422, "bad_score"),
        (r#"{"worse_than":[1,2,3]}"#, 422, "bad_score"),
        (r#"{"worse_than":[]}"#, 422, "bad_score"),
    ];
    for (body, status, code) in wrong {
        service.check_refusals(&[("POST", "/v1/boards/race:trim", body, status, code)]).await;
    }
    service
        .check_refusals(&[
            ("POST", "/v1/boards/race:clear", r#"{"worse_than":1}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards/race:clear?worse_than=1", "", 422, "bad_parameter"),
            ("POST", "/v1/boards/race:trim?wait=no", r#"{"worse_than":1}"#, 422, "bad_parameter"),
            ("POST", "/v1/boards/nobody:clear", "", 404, "unknown_board"),
            ("POST", "/v1/boards/nobody:trim", r#"{"worse_than":1}"#, 404, "unknown_board"),
            ("POST", "/v1/boards/:clear", "", 422, "malformed"),
            ("POST", "/v1/boards/race", "{}", 405, "method_not_allowed"),
            ("POST", "/v1/boards/race:explode", "{}", 405, "method_not_allowed"),
        ])
        .await;
    for (score, member) in [("[5,1]", "a"), ("[5,2]", "b"), ("[4,9]", "c")] {
        service.put(&format!("/v1/boards/race/members/{member}"), &format!(r#"{{"score":{score}}}"#)).await;
    }
    for (body, left) in [(r#"{"worse_than":5}"#, 2), (r#"{"worse_than":[5,"2"]}"#, 1)] {
        let (status, answer) = service.send("POST", "/v1/boards/race:trim", body).await;
        assert_eq!((status, &answer["removed"]), (StatusCode::OK, &json!(1)), "{body}: {answer}");
        assert_eq!(service.get("/v1/boards/race").await["totals"]["all"], json!(left), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_waits_for_the_write_that_its_token_names() {
    let service = start(1);
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let read = service.get("/v1/boards/a/members/n?after=0:2");
    let write = service.put("/v1/boards/a/members/n", r#"{"score":2}"#);
    let (read, written) = tokio::join!(read, write);
    assert_eq!(read, written["entry"]);
    assert_eq!(read["score"], json!(2));
}

/// On one thread, so that their order is always the same: the drop has waited for the definition, and begins
/// before the definition's request goes on.
#[tokio::test]
async fn a_definition_is_answered_whatever_drops_the_board_next() {
    let service = start(2);
    for _ in 0..3 {
        let put = service.send("PUT", "/v1/boards/a", "{}");
        let delete = service.send("DELETE", "/v1/boards/a", "");
        let (put, delete) = tokio::join!(put, delete);
        assert_eq!((put.0, &put.1["board"]), (StatusCode::CREATED, &json!("a")), "{}", put.1);
        assert_eq!(delete.0, StatusCode::OK, "{}", delete.1);
    }
}

/// A batch that drops a board copies what its shard remembers of drops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drop_that_every_shard_has_made_is_not_remembered() {
    let service = start(2);
    for _ in 0..20 {
        service.put("/v1/boards/a", "{}").await;
        let (status, answer) = service.send("DELETE", "/v1/boards/a", "").await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        for shard in &service.api.operations.node.shards {
            assert_eq!(shard.state.read(Purpose::Read).dropped().iter().count(), 0);
        }
    }
}
