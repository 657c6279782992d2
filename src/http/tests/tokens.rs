//! What each route needs of a token, over all routes, and what confined tokens see.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use serde_json::{Value, json};

use crate::access::{ActiveTokens, CONFINED_BOARDS_MAX, Scope, Secret, Tokens};
use crate::http::guard::authorize::{BoardCheck, Needs};
use crate::http::openapi::operation::{Method, Operation};
use crate::http::router;
use crate::http::routing::routes::operations;
use crate::http::tests::{Fixture, start_guarded};
use crate::operations::RequestLimits;
use crate::types::BoardName;
use crate::writer::ShardState;

/// A service that needs tokens, and one for each scope, for all boards and for those that begin with `eu-`.
struct Guarded {
    service: Fixture,
    all: [Secret; 3],
    confined: [Secret; 3],
}

fn guarded() -> Guarded {
    let secrets = || Scope::ALL.map(|_| Secret::random().expect("random numbers"));
    let (all, confined) = (secrets(), secrets());
    let mut list = Vec::new();
    for (secrets, prefixes) in [(&all, ""), (&confined, "board_prefixes = [\"eu-\"]\n")] {
        for (scope, secret) in Scope::ALL.iter().zip(secrets) {
            let confined = !prefixes.is_empty();
            list.push(format!(
                "[[token]]\nname = \"{scope}-{confined}\"\nscope = \"{scope}\"\n{prefixes}sha256 = \"{}\"\n",
                secret.digest()
            ));
        }
    }
    let access = Arc::new(ActiveTokens::new(Tokens::parse(&list.concat()).expect("a good list")));
    Guarded { service: start_guarded(2, RequestLimits::default(), Some(access)), all, confined }
}

impl Guarded {
    async fn send(
        &self,
        method: &str,
        path: &str,
        authorization: &[&str],
        body: &str,
    ) -> (u16, HeaderMap, Value) {
        let mut request = Request::builder().method(method).uri(path);
        for value in authorization {
            request = request.header(header::AUTHORIZATION, *value);
        }
        let request = request.body(Body::from(body.to_owned())).expect("a good request");
        let response = self.service.router.answer(request, None).await.response;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("the body is in memory");
        (parts.status.as_u16(), parts.headers, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn with(&self, secret: &Secret, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, _, answer) =
            self.send(method, path, &[&format!("Bearer {}", secret.reveal())], body).await;
        (status, answer)
    }
}

/// A route's path with names in it.
fn path(route: &str, board: &str) -> String {
    let route = route.replace("{board}", board).replace("{member}", "m").replace("{position}", "1");
    route.replace("{snapshot}", "6a-1").replace("{shard}", "0").replace("{file}", "CURRENT")
}

fn code(answer: &Value) -> &str {
    answer["code"].as_str().unwrap_or_default()
}

#[test]
fn routes_that_name_a_board_in_their_path_check_it_there() {
    for operation in operations() {
        let Needs::Token(_, check) = operation.needs else {
            assert!(!operation.path.contains('{'), "{}: anybody may read it", operation.path);
            continue;
        };
        let names_board = operation.path.contains("{board}");
        assert_eq!(check == BoardCheck::InPath, names_board, "{} {:?}", operation.path, operation.method);
    }
}

#[test]
fn get_routes_and_posted_questions_need_the_scope_read_at_most() {
    const QUESTIONS: [&str; 3] = ["lookup", "ranks_of", "combine"];
    // Files hold more than answers tell: rejected jobs of every board, hidden entries, versions. Who is
    // hidden is for moderators.
    const FOR_FEWER: [&str; 2] = ["snapshot_file", "hidden"];
    for operation in operations() {
        let asks = operation.method == Method::Get && !FOR_FEWER.contains(&operation.name)
            || QUESTIONS.contains(&operation.name);
        assert_eq!(operation.needs.only_reads(), asks, "{}", operation.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_takes_the_scopes_that_it_needs_and_no_others() {
    let guarded = guarded();
    for Operation { method, path: route, needs, .. } in operations() {
        let method = method.name().to_uppercase();
        let asked = path(route, "eu-a");
        let what = format!("{method} {asked}");
        let (status, headers, answer) = guarded.send(&method, &asked, &[], "").await;
        let Needs::Token(needed, check) = needs else {
            assert!(!matches!(status, 401 | 403), "{what}: {answer}");
            continue;
        };
        assert_eq!((status, code(&answer)), (401, "unauthorized"), "{what}");
        assert_eq!(headers[header::WWW_AUTHENTICATE], "Bearer realm=\"ranktree\"", "{what}");
        for (held, (all, confined)) in
            Scope::ALL.into_iter().zip(guarded.all.iter().zip(&guarded.confined)).rev()
        {
            let authorization = format!("Bearer {}", all.reveal());
            let (status, headers, answer) = guarded.send(&method, &asked, &[&authorization], "").await;
            if held >= needed {
                assert!(!matches!(status, 401 | 403), "{what} with {held}: {status} {answer}");
            } else {
                assert_eq!((status, code(&answer)), (403, "insufficient_scope"), "{what} with {held}");
                let challenge = headers[header::WWW_AUTHENTICATE].to_str().expect("it is text");
                assert!(challenge.contains(&format!("error=\"insufficient_scope\", scope=\"{needed}\"")));
            }
            // On another board than it is confined to.
            let (status, answer) = guarded.with(confined, &method, &path(route, "us-a"), "").await;
            let is_refused = held < needed || matches!(check, BoardCheck::InPath | BoardCheck::EveryBoard);
            assert_eq!(status == 403, is_refused, "{what} confined, with {held}: {status} {answer}");
            // On one of its own.
            let (status, answer) = guarded.with(confined, &method, &asked, "").await;
            let is_refused = held < needed || check == BoardCheck::EveryBoard;
            assert_eq!(status == 403, is_refused, "{what} confined, with {held}: {status} {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_without_a_known_token_are_refused() {
    let guarded = guarded();
    let good = guarded.all[0].reveal().to_owned();
    let other = Secret::random().expect("random numbers");
    for (authorization, expect) in [
        (vec![format!("Bearer {good}")], (200, "")),
        (vec![format!("bEARER  {good}")], (200, "")),
        (vec![format!("Bearer {}", other.reveal())], (401, "invalid_token")),
        (vec![format!("Bearer {good} ")], (200, "")),
        (vec![format!("Bearer {good}0")], (401, "invalid_token")),
        (vec!["Bearer ".to_owned()], (401, "invalid_token")),
        (vec!["Bearer".to_owned()], (401, "invalid_token")),
        (vec![good.clone()], (401, "unauthorized")),
        (vec![format!("Basic {good}")], (401, "unauthorized")),
        (vec![format!("Bearer {good}"), format!("Bearer {good}")], (401, "unauthorized")),
    ] {
        let values: Vec<&str> = authorization.iter().map(String::as_str).collect();
        let (status, headers, answer) = guarded.send("GET", "/v1/boards", &values, "").await;
        assert_eq!((status, code(&answer)), expect, "{} values", values.len());
        assert_eq!(headers.contains_key(header::WWW_AUTHENTICATE), status == 401);
    }
    // A method that a path does not take is refused without a token. A path that does not exist is no secret.
    let (status, _, _) = guarded.send("PATCH", "/v1/boards/eu-a", &[], "").await;
    assert_eq!(status, 401);
    let (status, answer) = guarded.with(&guarded.all[2], "PATCH", "/v1/boards/eu-a", "").await;
    assert_eq!((status, code(&answer)), (405, "method_not_allowed"));
    assert_eq!(guarded.send("HEAD", "/v1/boards", &[], "").await.0, 401);
    assert_eq!(guarded.with(&guarded.all[0], "HEAD", "/v1/boards", "").await.0, 200);
    assert_eq!(guarded.send("GET", "/v2", &[], "").await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confined_token_sees_and_changes_its_boards_only() {
    let guarded = guarded();
    let [_, write, _] = &guarded.all;
    let [reads, writes, _] = &guarded.confined;
    let jobs =
        json!([{"board": "eu-a", "member": "m", "score": 1}, {"board": "us-a", "member": "m", "score": 2}]);
    let (status, answer) = guarded.with(write, "POST", "/v1/jobs", &jobs.to_string()).await;
    assert_eq!(status, 200, "{answer}");

    let (_, answer) = guarded.with(reads, "GET", "/v1/boards", "").await;
    let names: Vec<_> = answer["boards"].as_array().expect("a list").iter().map(|b| &b["board"]).collect();
    assert_eq!(names, ["eu-a"]);
    let (_, answer) = guarded.with(reads, "GET", "/v1/members/m", "").await;
    let names: Vec<_> = answer["entries"].as_array().expect("a list").iter().map(|e| &e["board"]).collect();
    assert_eq!(names, ["eu-a"]);
    let (status, answer) = guarded.with(reads, "GET", "/v1/members/m?boards=eu-a,us-a", "").await;
    assert_eq!((status, code(&answer)), (403, "forbidden_board"), "{answer}");
    assert_eq!(guarded.with(reads, "GET", "/v1/members/m?boards=eu-a,eu-b", "").await.0, 200);
    // The same of boards that lists show their members on, whether they are there or not.
    for (with, expect) in
        [("eu-a", 200), ("us-a", 403), ("eu-a,us-a", 403), ("us-none", 403), ("eu-none", 404)]
    {
        let (status, answer) =
            guarded.with(reads, "GET", &format!("/v1/boards/eu-a/top?with={with}"), "").await;
        assert_eq!(status, expect, "{with}: {answer}");
        let lookup = format!("/v1/boards/eu-a/members:lookup?with={with}");
        let (status, answer) = guarded.with(reads, "POST", &lookup, r#"{"members":["m"]}"#).await;
        assert_eq!(status, expect, "{with}: {answer}");
        assert!(status != 403 || code(&answer) == "forbidden_board", "{with}: {answer}");
        let boards: serde_json::Map<_, _> =
            with.split(',').map(|board| (board.to_owned(), json!(1))).collect();
        let combined = json!({ "boards": boards }).to_string();
        let (status, answer) = guarded.with(reads, "POST", "/v1/boards:combine", &combined).await;
        assert_eq!(status, expect, "{with}: {answer}");
    }
    // Percent-encoded, it is the same board.
    let (status, answer) = guarded.with(reads, "GET", "/v1/boards/%75s-a/top", "").await;
    assert_eq!((status, code(&answer)), (403, "forbidden_board"), "{answer}");
    assert_eq!(guarded.with(reads, "GET", "/v1/boards/%65u-a/top", "").await.0, 200);

    // One forbidden job refuses all of them, before anything is applied; also one board of several of a job.
    let jobs = json!([{"board": "eu-a", "member": "m", "score": 10}, {"board": "us-a", "member": "m", "score": 20},
        {"member": "m", "scores": {"eu-a": 5, "us-b": 5}}]);
    let (status, answer) = guarded.with(writes, "POST", "/v1/jobs", &jobs.to_string()).await;
    assert_eq!((status, code(&answer)), (403, "forbidden_board"), "{answer}");
    let errors: Vec<_> =
        answer["errors"].as_array().expect("a list").iter().map(|e| (&e["index"], &e["code"])).collect();
    assert_eq!(errors, [(&json!(1), &json!("forbidden_board")), (&json!(2), &json!("forbidden_board"))]);
    for board in ["eu-a", "us-a"] {
        let (_, entry) = guarded.with(write, "GET", &format!("/v1/boards/{board}/members/m"), "").await;
        assert!(entry["score"].as_u64().is_some_and(|score| score < 10), "{entry}");
    }
    // It creates boards by their first job within its prefix, and not beyond.
    let job = |board: &str| json!({"board": board, "member": "m", "score": 3}).to_string();
    assert_eq!(guarded.with(writes, "POST", "/v1/jobs", &job("eu-new")).await.0, 200);
    assert_eq!(guarded.with(writes, "POST", "/v1/jobs", &job("us-new")).await.0, 403);
    let score = r#"{"score":3}"#;
    assert_eq!(guarded.with(writes, "PUT", "/v1/boards/us-new/members/m", score).await.0, 403);
    assert_eq!(guarded.with(write, "GET", "/v1/boards/us-new", "").await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_shows_states_and_no_reasons_where_tokens_are_configured() {
    let guarded = guarded();
    let halted = ShardState::Halted("/secrets/nats.password cannot be read".to_owned());
    guarded.service.api.operations.node.shards[1].health.set_state(halted);
    let (status, problem) = guarded.service.send("GET", "/readyz", "").await;
    assert_eq!(status, 503);
    let states = json!([{"shard": 0, "state": "live"}, {"shard": 1, "state": "halted"}]);
    assert_eq!(problem["shards"], states);
    assert!(!problem.to_string().contains("secrets"), "{problem}");
    let (_, status) = guarded.with(&guarded.all[0], "GET", "/v1/status", "").await;
    assert_eq!(status["shards"][1]["reason"], json!("/secrets/nats.password cannot be read"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_tokens_everybody_may_do_everything() {
    let guarded = guarded();
    let open = router(Arc::clone(&start_guarded(1, RequestLimits::default(), None).api));
    let request = Request::builder()
        .uri("/v1/boards")
        .header(header::AUTHORIZATION, format!("Bearer {}", guarded.all[0].reveal()));
    let answered = open.answer(request.body(Body::empty()).expect("a good request"), None).await;
    assert_eq!(answered.response.status(), 200);
}

/// A profile shows on every board.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_some_boards_writes_no_profiles() {
    let guarded = guarded();
    let jobs = r#"[{"board":"eu-1","member":"m","score":1},{"member":"m","op":"profile","profile":{"a":1}}]"#;
    for (token, confined) in guarded.all.iter().zip(&guarded.confined).skip(1) {
        let (status, answer) = guarded.with(confined, "POST", "/v1/jobs", jobs).await;
        assert_eq!((status, code(&answer)), (403, "forbidden_profile"), "{answer}");
        assert_eq!(answer["errors"][0]["index"], json!(1), "{answer}");
        let (status, answer) = guarded.with(token, "POST", "/v1/jobs", jobs).await;
        assert_eq!(status, 200, "{answer}");
        let told = json!({"changed": true, "entry": null, "previous": null});
        assert_eq!(answer["results"][1], told);
    }
}

/// Tokens confined to `eu-`: of the scopes write and admin with a limit of three boards, and of write without
/// a line on it.
fn limited() -> (Fixture, [Secret; 3]) {
    let secrets = [(); 3].map(|()| Secret::random().expect("random numbers"));
    let lines = [("write", "max_boards = 3"), ("admin", "max_boards = 3"), ("write", "")];
    let list: Vec<String> = (secrets.iter().zip(lines).enumerate())
        .map(|(number, (secret, (scope, more)))| {
            let hash = secret.digest();
            format!(
                "[[token]]\nname = \"{number}\"\nscope = \"{scope}\"\nboard_prefixes = [\"eu-\"]\n{more}\nsha256 = \"{hash}\"\n"
            )
        })
        .collect();
    let access = Arc::new(ActiveTokens::new(Tokens::parse(&list.concat()).expect("a good list")));
    (start_guarded(2, RequestLimits::default(), Some(access)), secrets)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_makes_no_more_boards_than_its_limit() {
    let (service, [write, admin, other]) = limited();
    let registry = Arc::clone(&service.api.operations.registry);
    let guarded = Guarded {
        service,
        all: [(); 3].map(|()| Secret::random().expect("random")),
        confined: [write, admin, other],
    };
    let [write, admin, other] = &guarded.confined;
    let jobs = |boards: &[&str]| {
        let job = |board: &&str| json!({"board": board, "member": "m", "score": 1});
        Value::from(boards.iter().map(job).collect::<Vec<_>>()).to_string()
    };
    // Boards of others do not count.
    for board in ["us-1", "us-2", "us-3"] {
        registry.create_default(&BoardName::new(board).expect("a name")).expect("there is room");
    }
    let refused = |(status, answer): (u16, Value)| {
        assert_eq!((status, code(&answer)), (422, "too_many_boards"), "{answer}");
        assert!(answer["detail"].as_str().expect("a detail").contains("max_boards"), "{answer}");
    };
    refused(guarded.with(write, "POST", "/v1/jobs", &jobs(&["eu-1", "eu-2", "eu-3", "eu-4"])).await);
    let by_board = json!({"member": "m", "scores": {"eu-1": 1, "eu-2": 1, "eu-3": 1, "eu-4": 1}}).to_string();
    refused(guarded.with(write, "POST", "/v1/jobs", &by_board).await);
    assert_eq!(registry.count_named(None), 3, "nothing was made");
    let two = jobs(&["eu-1", "eu-2", "eu-1"]);
    assert_eq!(guarded.with(write, "POST", "/v1/jobs", &two).await.0, 200);
    assert_eq!(guarded.with(write, "POST", "/v1/jobs", &two).await.0, 200, "they are there");
    // For the last place there are many at once, jobs and definitions.
    let requests = (10..26).map(|number| {
        let guarded = &guarded;
        async move {
            let (status, answer) = if number % 2 == 0 {
                let path = format!("/v1/boards/eu-{number}/members/m");
                guarded.with(write, "PUT", &path, "{\"score\":1}").await
            } else {
                guarded.with(admin, "PUT", &format!("/v1/boards/eu-{number}"), "{}").await
            };
            assert!(matches!(status, 200 | 201) || code(&answer) == "too_many_boards", "{status} {answer}");
            usize::from(status < 300)
        }
    });
    let made: usize = futures_util::future::join_all(requests).await.into_iter().sum();
    assert_eq!((made, registry.count_named(None)), (1, 6));
    let (status, answer) = guarded.with(write, "DELETE", "/v1/boards/eu-9/members/m", "").await;
    assert_eq!((status, code(&answer)), (404, "unknown_board"), "a removal makes no board");
    assert_eq!(guarded.with(admin, "PUT", "/v1/boards/eu-1", "{}").await.0, 200, "it is there");
    // Without a line on it the limit is another one.
    assert_eq!(guarded.with(other, "PUT", "/v1/boards/eu-9/members/m", "{\"score\":1}").await.0, 200);
    for number in 0..CONFINED_BOARDS_MAX {
        let name = BoardName::new(&format!("eu-more-{number}")).expect("a name");
        registry.create_default(&name).expect("there is room");
    }
    refused(guarded.with(other, "PUT", "/v1/boards/eu-99/members/m", "{\"score\":1}").await);
}
