//! The boards' stream is lost, and with it what every board is. The shards know it, and nothing that they hold is lost too.

use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::binary::Binary;
use crate::support::client::{Client, Reply, count_of};
use crate::support::nats::{Nats, wait_applied, wait_until};

const SHARDS: u16 = 3;
const STREAM: &str = "RANKTREE_BOARDS";
const MEMBERS: usize = 30;

/// An operator deletes the stream and makes it anew, as it was made, but numbering from 1.
fn lose(nats: &Nats) {
    let config = nats.info(STREAM).config;
    nats.delete(STREAM);
    nats.create(Config { first_sequence: None, ..config });
}

fn start(nats: &Nats, folder: &tempfile::TempDir) -> Binary {
    Binary::start(&folder.path().join("data"), SHARDS, &["--nats", &nats.url(), "--nats-stream-mib", "16"])
}

/// The answer to a definition or a drop, once boards can be decided.
fn decide(client: &Client, method: &Method, board: &str, definition: Option<&Value>) -> Reply {
    let path = format!("/v1/boards/{board}");
    let mut answer = (0, Value::Null);
    wait_until("boards can be decided", || {
        answer = client.send(method.clone(), &path, definition).expect("it answers");
        answer.0 != 503
    });
    answer
}

fn score_all(nats: &Nats, client: &Client, board: &str, score: i64) {
    let jobs: Vec<_> =
        (0..MEMBERS).map(|n| json!({ "board": board, "member": format!("m{n}"), "score": score })).collect();
    wait_applied(client, &nats.publish_jobs(SHARDS, &jobs, 5));
}

fn total(client: &Client, board: &str) -> usize {
    count_of(&client.get(&format!("/v1/boards/{board}/top?limit=1")).1["total"])
}

fn names_every_shard(answer: &Value) {
    let token = answer["token"].as_str().unwrap_or_else(|| panic!("a token: {answer}"));
    let named: Vec<_> = token.split(',').filter_map(|part| Some(part.split_once(':')?.0)).collect();
    assert_eq!(named, ["0", "1", "2"], "{answer}");
}

#[test]
fn a_board_that_is_defined_again_after_the_stream_was_lost_keeps_its_entries() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut service = start(&nats, &folder);
    let best = json!({ "policy": "best" });
    let (status, answer) = service.client().put("/v1/boards/arena", &best);
    assert_eq!(status, 201, "{answer}");
    names_every_shard(&answer);
    score_all(&nats, &service.client(), "arena", 5);
    // While the service runs, and while it is away.
    for stops in [false, true, false] {
        if stops {
            service.kill9();
        }
        lose(&nats);
        if stops {
            service.restart();
        }
        let client = service.client();
        let (status, answer) = decide(&client, &Method::PUT, "arena", Some(&best));
        assert_eq!((status, &answer["policy"]), (200, &json!("best")), "stops: {stops}: {answer}");
        names_every_shard(&answer);
        assert_eq!(total(&client, "arena"), MEMBERS, "stops: {stops}");
        let other = decide(&client, &Method::PUT, "arena", Some(&json!({ "policy": "incr" })));
        assert_eq!(other.0, 409, "{}", other.1);
        wait_until("the stream knows it again", || nats.info(STREAM).state.messages == 1);
    }
    score_all(&nats, &service.client(), "arena", 3);
    let (_, top) = service.client().get("/v1/boards/arena/top?limit=1");
    assert_eq!(top["entries"][0]["score"], 5, "the policy is what it was: {top}");
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn a_board_that_is_dropped_after_the_stream_was_lost_is_gone_and_begins_anew() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut service = start(&nats, &folder);
    // Lives are numbered by the stream: those of the new one begin far below.
    for number in 0..20 {
        let (status, answer) = service.client().put(&format!("/v1/boards/b{number}"), &json!({}));
        assert_eq!(status, 201, "{answer}");
    }
    for defined_again in [true, false] {
        let client = service.client();
        score_all(&nats, &client, "b19", 7);
        assert_eq!(total(&client, "b19"), MEMBERS);
        lose(&nats);
        if defined_again {
            let (status, answer) = decide(&client, &Method::PUT, "b19", Some(&json!({})));
            assert_eq!(status, 200, "{answer}");
        }
        let (status, answer) = decide(&client, &Method::DELETE, "b19", None);
        assert_eq!(status, 200, "{answer}");
        names_every_shard(&answer);
        assert_eq!(client.get("/v1/boards/b19/top").0, 404);
        service.kill9();
        service.restart();
        let client = service.client();
        assert_eq!(client.get("/v1/boards/b19/top").0, 404);
        // The next life is a later one for every shard, or its entries would never come.
        let (status, answer) = decide(&client, &Method::PUT, "b19", Some(&json!({})));
        assert_eq!((status, &answer["totals"]["all"]), (201, &json!(0)), "{answer}");
    }
    score_all(&nats, &service.client(), "b19", 1);
    assert_eq!(total(&service.client(), "b19"), MEMBERS);
    assert!(service.terminate().success());
    service.verify();
}

/// What jobs want is decided by the service itself, which must not begin a life either that a shard has.
#[test]
fn many_boards_are_told_to_a_stream_that_lost_them_before_jobs_create_any() {
    const BOARDS: usize = 500;
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut service = start(&nats, &folder);
    let job = |board: String, score: i64| json!({ "board": board, "member": "m", "score": score });
    let known = |score| (0..BOARDS).map(move |n| job(format!("b{n}"), score)).collect::<Vec<_>>();
    let listed =
        |client: &Client| client.get("/v1/boards?limit=1000").1["boards"].as_array().map_or(0, Vec::len);
    let score_of = |client: &Client, board: usize| {
        client.get(&format!("/v1/boards/b{board}/members/m")).1["score"].clone()
    };
    nats.publish_jobs(SHARDS, &known(1), 100);
    let client = service.client();
    wait_until("all boards are there", || {
        listed(&client) == BOARDS && (0..BOARDS).all(|board| score_of(&client, board) == 1)
    });
    service.kill9();
    nats.delete(STREAM);
    let jobs: Vec<_> = known(2).into_iter().chain([job("new".to_owned(), 2)]).collect();
    let last = nats.publish_jobs(SHARDS, &jobs, 100);
    service.restart();
    let client = service.client();
    wait_applied(&client, &last);
    wait_until("the stream knows all", || {
        nats.info(STREAM).state.messages == 1 + u64::try_from(BOARDS).expect("few")
    });
    wait_until("the new board is there", || client.get("/v1/boards/new/members/m").1["score"] == 2);
    for board in 0..BOARDS {
        assert_eq!(score_of(&client, board), 2, "b{board}");
    }
    assert!(service.terminate().success());
    service.verify();
}
