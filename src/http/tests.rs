//! Requests against the router, with a writer that answers from a script instead of planning and committing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::board::Definition;
use crate::http::{Api, Limits, router};
use crate::job::{Reject, RejectCode, Targets};
use crate::query::{Node, ShardHandle};
use crate::queue::local;
use crate::state::{Applied, BoardEvent, Change, Entry, Shard, Standing, Step};
use crate::storage::StoreSlot;
use crate::tree::Words;
use crate::types::{MemberId, Score, Sequence, ShardId, Timestamp};
use crate::writer::{
    BatchLimits, BoardOutcome, CommitFailed, Fetched, Health, JobOutcome, JobSource as _, Message,
    MessageOutcome, Payload, Place, Registry, ShardState,
};

/// The score that the script rejects.
const REJECTED: i64 = 13;
/// The score whose message cannot be committed.
const UNCOMMITTED: i64 = 666;

struct Fixture {
    router: Router,
    api: Arc<Api>,
}

/// A service of so many shards.
fn start(shards: u16) -> Fixture {
    start_with(shards, Limits::default())
}

fn start_with(shards: u16, limits: Limits) -> Fixture {
    let registry = Arc::new(Registry::new(true));
    let handles = (0..shards).map(|number| start_shard(ShardId(number), Arc::clone(&registry))).collect();
    let node = Arc::new(Node { shards: handles });
    let render = Arc::new(|| "ranktree_build_info 1\n".to_owned());
    let api = Arc::new(Api::new(node, registry, render, limits));
    Fixture { router: router(Arc::clone(&api)), api }
}

fn start_shard(id: ShardId, registry: Arc<Registry>) -> ShardHandle {
    let (publisher, mut source) = local::channel(Handle::current());
    let state = Arc::new(RwLock::new(Shard::new(id)));
    let (applied_sender, applied) = watch::channel(Sequence(0));
    let health = Arc::new(Health::default());
    health.set_state(ShardState::Live);
    let shard = Arc::clone(&state);
    std::thread::spawn(move || {
        loop {
            let limits = BatchLimits { jobs: 1_000, bytes: 1 << 20 };
            match source.fetch(limits, Duration::from_secs(5)) {
                Fetched::Ended => return,
                Fetched::Nothing => {}
                Fetched::Batch(messages) => {
                    for message in messages {
                        answer(message, &shard, &registry, &applied_sender);
                    }
                }
            }
        }
    });
    let (_, started) = watch::channel(true);
    ShardHandle { id, state, applied, started, health, store: Arc::new(StoreSlot::default()), publisher }
}

/// A `set` of one score that never was there before, or what the score's value stands for.
fn answer(message: Message, shard: &RwLock<Shard>, registry: &Registry, applied: &watch::Sender<Sequence>) {
    let mut step = Step {
        applied: Applied { sequence: message.sequence, timestamp: message.timestamp, hash: 0 },
        ..Step::default()
    };
    let mut shard = shard.write();
    let mut outcomes = Vec::new();
    match message.payload {
        Payload::Define { board, incarnation, definition } => {
            step.events.push(BoardEvent::Define { board, incarnation, definition });
        }
        Payload::Drop { board, incarnation } => step.events.push(BoardEvent::Drop { board, incarnation }),
        Payload::Jobs(jobs) => {
            for job in jobs {
                let job = job.expect("requests are decoded before they are published");
                let Targets::Boards(boards) = &job.targets else {
                    outcomes.push(JobOutcome::Applied(Vec::new()));
                    continue;
                };
                let (board, score) = boards.first().expect("a job names a board");
                let Some(score) = score else {
                    outcomes.push(JobOutcome::Applied(Vec::new()));
                    continue;
                };
                if score.keys() == [REJECTED] {
                    let reject = Reject::new(RejectCode::OutOfRange, "the script says so");
                    outcomes.push(JobOutcome::Rejected(reject));
                    continue;
                }
                if score.keys() == [UNCOMMITTED] {
                    if let Some(answer) = message.answer {
                        drop(answer.send(Err(CommitFailed { reason: "the script says so".to_owned() })));
                    }
                    return;
                }
                let known = registry.get(board.as_str());
                let known = known.unwrap_or_else(|| registry.create_default(board).expect("few boards"));
                let words = known.definition.entry_words(score, message.timestamp, job.member.as_bytes());
                if shard.board(board.as_str()).is_none() {
                    let (board, definition) = (board.clone(), Arc::clone(&known.definition));
                    let event = BoardEvent::Define { board, incarnation: known.incarnation, definition };
                    shard.apply(&Step { events: vec![event], ..Step::default() });
                }
                let tree = shard.board(board.as_str()).expect("just defined").all;
                let entry = Entry {
                    standing: Standing::Listed(words),
                    updated_at: message.timestamp,
                    version: None,
                    has_metadata: false,
                };
                let known_handle = shard.members.get(job.member.as_bytes());
                let handle = known_handle.unwrap_or_else(|| shard.members.upcoming(0));
                let added =
                    if known_handle.is_none() { vec![job.member.as_bytes().into()] } else { Vec::new() };
                let changes = vec![Change { tree, handle, after: Some(entry) }];
                shard.apply(&Step { added, changes, applied: step.applied, ..Step::default() });
                let after = Some(place(&shard, board.as_str(), &known.definition, words, message.timestamp));
                outcomes.push(JobOutcome::Applied(vec![BoardOutcome {
                    board: board.clone(),
                    definition: known.definition,
                    changed: true,
                    before: None,
                    after,
                }]));
            }
        }
    }
    shard.apply(&step);
    drop(shard);
    applied.send_replace(message.sequence);
    if let Some(answer) = message.answer {
        drop(answer.send(Ok(MessageOutcome { sequence: message.sequence, jobs: outcomes })));
    }
}

fn place(shard: &Shard, board: &str, definition: &Definition, words: Words, at: Timestamp) -> Place {
    let window = shard.board_tree(board).expect("the board is there");
    let score = definition.score_of(words.as_slice());
    let score = definition.score_words(&score);
    let better = window.tree.count_below(score.as_slice());
    Place {
        words,
        updated_at: at,
        has_metadata: false,
        better,
        tied: window.tree.count_through(score.as_slice()) - better,
        ahead: window.tree.count_below(words.as_slice()),
        total: window.total(),
    }
}

impl Fixture {
    async fn send(&self, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
        self.send_bytes(method, path, body.as_bytes().to_vec()).await
    }

    async fn send_bytes(&self, method: &str, path: &str, body: Vec<u8>) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path).body(Body::from(body));
        let response = self.router.clone().oneshot(request.expect("a good request")).await;
        let response = response.expect("the router never fails");
        let status = response.status();
        let kind = response.headers().get(header::CONTENT_TYPE).cloned();
        let kind = kind.as_ref().and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("the body is in memory");
        if !status.is_success() {
            assert_eq!(kind, "application/problem+json", "{method} {path}");
            let problem: Value = serde_json::from_slice(&bytes).expect("a problem is JSON");
            assert_eq!(problem["status"], json!(status.as_u16()), "{problem}");
            for name in ["type", "title", "code", "detail"] {
                assert!(problem[name].is_string(), "{name} in {problem}");
            }
            return (status, problem);
        }
        if kind.starts_with("text/plain") {
            return (status, Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        }
        assert_eq!(kind, "application/json", "{method} {path}");
        (status, serde_json::from_slice(&bytes).expect("answers are JSON"))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send("GET", path, "").await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    async fn put(&self, path: &str, body: &str) -> Value {
        let (status, body) = self.send("PUT", path, body).await;
        assert!(status.is_success(), "{path}: {body}");
        body
    }

    async fn check_refusals(&self, refusals: &[(&str, &str, &str, u16, &str)]) {
        for (method, path, body, status, code) in refusals {
            let (found, problem) = self.send(method, path, body).await;
            let found = (found.as_u16(), problem["code"].as_str().unwrap_or_default());
            assert_eq!(found, (*status, *code), "{method} {path} {body}: {problem}");
        }
    }
}

const SHARDS: [u16; 3] = [1, 2, 5];

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
            "as_of",
            "better",
            "board",
            "member",
            "meta",
            "percentile",
            "position",
            "rank",
            "score",
            "tied",
            "total",
            "updated_at",
            "window",
            "worse",
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

        let boards = service.get("/v1/members/m2?boards=arena,other").await;
        assert_eq!(boards["entries"][0]["rank"], json!(2));
        assert_eq!(boards["not_found"], json!(["other"]));
        assert_eq!(service.get("/v1/members/m2").await["entries"].as_array().map(Vec::len), Some(1));
        assert_eq!(service.get("/v1/members/nobody").await["entries"], json!([]));
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
async fn numbers_beyond_doubles_travel_as_strings() {
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
async fn boards_are_defined_listed_and_dropped() {
    for shards in SHARDS {
        let service = start(shards);
        let definition = r#"{"keys":[{"name":"t","order":"asc"}],"policy":"best","ties":"last"}"#;
        for expected in [StatusCode::CREATED, StatusCode::OK] {
            let (status, board) = service.send("PUT", "/v1/boards/race", definition).await;
            assert_eq!(status, expected);
            assert_eq!(board["totals"], json!({"all": 0}));
            assert_eq!(board["windows"], json!(["all"]));
        }
        let (status, board) = service
            .send(
                "PUT",
                "/v1/boards/race",
                r#"{"keys":[{"name":"t","order":"asc"}],"policy":"best","ties":"last","keep":3}"#,
            )
            .await;
        assert_eq!((status, &board["keep"]), (StatusCode::OK, &json!(3)));
        for shard in &service.api.node.shards {
            let state = shard.state.read();
            assert_eq!(state.board("race").map(|board| board.definition.keep), Some(3));
        }
        service.check_refusals(&[("PUT", "/v1/boards/race", "{}", 409, "board_differs")]).await;
        service.put("/v1/boards/arena/members/m", r#"{"score":1}"#).await;
        let list = service.get("/v1/boards?limit=1").await;
        assert_eq!((&list["boards"][0]["board"], &list["next_cursor"]), (&json!("arena"), &json!("arena")));
        assert_eq!(list["boards"][0]["totals"]["all"], json!(1));
        let list = service.get("/v1/boards?cursor=arena").await;
        assert_eq!((&list["boards"][0]["board"], &list["next_cursor"]), (&json!("race"), &Value::Null));
        let (status, dropped) = service.send("DELETE", "/v1/boards/arena", "").await;
        assert_eq!((status, &dropped["dropped"]), (StatusCode::OK, &json!(true)));
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
        let most = service.api.node.shards.iter().map(|shard| shard.applied.borrow().0).max();
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
async fn a_failed_commit_is_told_and_not_hidden_among_the_others() {
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
async fn whatever_is_wrong_is_a_problem_with_a_code() {
    let service = start(2);
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let long = format!("/v1/boards/a/members/{}", "x".repeat(129));
    let lookup = format!(r#"{{"members":[{}]}}"#, vec!["\"m\""; 1_001].join(","));
    let scores = format!(r#"{{"scores":[{}]}}"#, vec!["1"; 1_001].join(","));
    service
        .check_refusals(&[
            ("GET", "/", "", 404, "unknown_route"),
            ("GET", "/v2/boards", "", 404, "unknown_route"),
            ("GET", "/v1/boards/a/members/", "", 404, "unknown_route"),
            ("GET", "/v1/boards/a/members/x/y", "", 404, "unknown_route"),
            ("PATCH", "/v1/boards/a", "", 405, "method_not_allowed"),
            ("GET", "/v1/jobs", "", 405, "method_not_allowed"),
            ("POST", "/v1/boards/a/top", "", 405, "method_not_allowed"),
            ("GET", "/v1/boards/b/members/m", "", 404, "unknown_board"),
            ("GET", "/v1/boards/a%20b/top", "", 404, "unknown_board"),
            ("GET", "/v1/boards/a/members/n", "", 404, "unknown_member"),
            ("GET", "/v1/boards/a/members/n/around", "", 404, "unknown_member"),
            ("GET", "/v1/boards/a/members/%FF", "", 400, "malformed"),
            ("GET", "/v1/boards/a/members/a%0Ab", "", 422, "bad_member"),
            ("PUT", "/v1/boards/a/members/a%00b", r#"{"score":1}"#, 422, "bad_member"),
            ("GET", &long, "", 422, "bad_member"),
            ("PUT", "/v1/boards/a%20b/members/m", r#"{"score":1}"#, 422, "malformed"),
            ("PUT", "/v1/boards/.a", "", 422, "malformed"),
            ("PUT", "/v1/boards/c", "{", 400, "malformed"),
            ("PUT", "/v1/boards/c", r#"{"windows":["day"]}"#, 422, "unsupported"),
            ("PUT", "/v1/boards/c", r#"{"capacity":10}"#, 422, "unsupported"),
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
            ("GET", "/v1/boards/a/top?window=day", "", 422, "unsupported_window"),
            ("GET", "/v1/boards/a/top?window=2026-W47", "", 422, "unsupported_window"),
            ("GET", "/v1/boards/a/top?window=", "", 422, "unsupported_window"),
            ("GET", "/v1/boards/a/top?profile=true", "", 422, "unsupported"),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_say_how_the_shards_are() {
    let service = start(2);
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    assert_eq!(service.get("/healthz").await, json!("ok\n"));
    assert_eq!(service.get("/readyz").await, json!("ready\n"));
    assert_eq!(service.get("/metrics").await, json!("ranktree_build_info 1\n"));
    let status = service.get("/v1/status").await;
    assert_eq!(status["shards"].as_array().map(Vec::len), Some(2));
    let home = service.api.node.home_of(&MemberId::new("m").expect("a good id"));
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
    let health = &service.api.node.shards[home.index()].health;
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
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_requests_are_shed_but_probes_answer() {
    let service = start_with(1, Limits { requests_in_flight: 1, ..Limits::default() });
    service.put("/v1/boards/a/members/m", r#"{"score":1}"#).await;
    let waiting = service.send("GET", "/v1/boards/a?after=0:9&timeout_ms=60000", "");
    let mut waiting = Box::pin(waiting);
    let other = async {
        service.check_refusals(&[("GET", "/v1/boards/a", "", 503, "overloaded")]).await;
        assert_eq!(service.get("/healthz").await, json!("ok\n"));
        assert_eq!(service.get("/readyz").await, json!("ready\n"));
    };
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("nothing was published"),
        () = other => {}
    }
    drop(waiting);
    assert_eq!(service.get("/v1/boards/a").await["totals"]["all"], json!(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_have_a_budget_together() {
    let service = start_with(1, Limits { body_bytes_in_flight: 100, ..Limits::default() });
    for _ in 0..3 {
        // What a request took is there again for the next one.
        service.put("/v1/boards/a/members/m", &format!("{{\"score\":1{}}}", " ".repeat(80))).await;
        let body = format!("{{\"score\":1{}}}", " ".repeat(100));
        service.check_refusals(&[("PUT", "/v1/boards/a/members/m", &body, 503, "overloaded")]).await;
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
    let score = Score::new(&[2]).expect("one key");
    assert_eq!(read["score"], json!(score.keys()[0]));
}
