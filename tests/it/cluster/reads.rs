//! Reads through a node that owns nothing: what a node that owns all answers, and what happens when owners
//! are gone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::arena::define;
use crate::support::client::Client;
use crate::support::command::signal;
use crate::support::nats::{Nats, wait_state, wait_until};
use crate::support::node::Node;

const SHARDS: u16 = 4;

fn owning(nats: &Nats, name: &str, own: &str) -> Node {
    let setup = Node::with_nats(nats).shards(SHARDS).flags(&["--node", name, "--own", own]);
    setup.stream_mib(16).start()
}

fn member(number: usize) -> String {
    format!("m{number}")
}

/// Some hundred entries with many ties, some of them with metadata, on two boards; gives the token.
fn fill(client: &Client) -> String {
    let mut token = String::new();
    for chunk in (0..400).collect::<Vec<_>>().chunks(100) {
        let job = |number: &usize| {
            let mut job = json!({ "member": member(*number), "scores": { "arena": number * 7 % 90 } });
            if number.is_multiple_of(3) {
                job["meta"] = json!({ "car": format!("mx{number}") });
            }
            if number.is_multiple_of(2) {
                job["scores"]["kills"] = json!(number % 5);
            }
            job
        };
        let jobs: Vec<Value> = chunk.iter().map(job).collect();
        let (status, answer) = client.post("/v1/jobs", &Value::from(jobs));
        assert_eq!(status, 202, "{answer}");
        answer["token"].as_str().expect("a token").clone_into(&mut token);
    }
    token
}

fn live(node: &Node, shards: std::ops::Range<usize>) {
    for shard in shards {
        wait_state(&node.client(), shard, "live");
    }
}

/// What both answer to the same request at the same sequences. A node may define a board once more that it
/// has not seen yet, so that the sequences move between two reads.
fn same(nothing: &Client, all: &Client, path: &str) -> Value {
    let (mut expected, mut answer) = ((0, Value::Null), (0, Value::Null));
    wait_until("both answer at the same sequences", || {
        (expected, answer) = (all.get(path), nothing.get(path));
        expected.1["as_of"] == answer.1["as_of"]
    });
    assert_eq!(answer, expected, "{path}");
    answer.1
}

#[test]
fn every_read_through_a_node_that_owns_nothing_is_what_a_node_that_owns_all_answers() {
    let nats = Nats::start();
    let all = owning(&nats, "all", "0-3");
    live(&all, 0..4);
    define(&all.client(), &json!({}));
    let (a, b) = (owning(&nats, "a", "0-1"), owning(&nats, "b", "2-3"));
    let nothing = owning(&nats, "nothing", "none");
    live(&a, 0..2);
    live(&b, 2..4);
    let (owner, nothing) = (all.client(), nothing.client());
    assert!(owner.put("/v1/boards/kills", &json!({})).0 < 300);
    wait_until("both boards are known", || nothing.get("/v1/boards/kills").0 == 200);
    let token = fill(&owner);
    // A read waits for what it names, on shards that its node does not own.
    for client in [&owner, &nothing, &a.client(), &b.client()] {
        let (status, answer) = client.get(&format!("/v1/boards/arena/top?after={token}&timeout_ms=60000"));
        assert_eq!(status, 200, "{answer}");
    }
    let applied = |node: &Node| node.client().get("/v1/boards/arena/top?limit=1").1["as_of"].clone();
    wait_until("all owners have applied the same", || {
        let expected = applied(&all);
        (0..8).all(|_| nothing.get("/v1/boards/arena/rank?score=5").1["as_of"] == expected)
    });
    let board = "/v1/boards/arena";
    for path in [
        "/v1/members/m7",
        "/v1/members/m6?boards=arena,kills,none",
        "/v1/members/nobody",
        "/v1/boards",
        "/v1/boards/arena",
        "/v1/boards/none",
        "/v1/boards/none/top",
    ] {
        same(&nothing, &owner, path);
    }
    for read in [
        "members/m7",
        "members/m399",
        "members/nobody",
        "members/m7/around?above=4&below=4",
        "members/m0/around?above=100&below=3&fill=true",
        "members/m12/around?above=500&below=500",
        "members/nobody/around?above=4&below=4",
        "top?limit=10",
        "top?limit=1000",
        "top?from=bottom&limit=17",
        "positions/1?limit=10",
        "positions/200?limit=25",
        "positions/399?limit=10",
        "positions/401",
        "rank?score=45",
        "rank?score=-1",
        "score?rank=1",
        "score?rank=250",
        "score?position=250",
        "score?percentile=99",
        "score?percentile=0",
        "score?position=5000",
        "count?min=10&max=20",
        "count?min=20&max=10",
        "histogram?buckets=7",
        "histogram?edges=0,10,50,80",
        "percentiles?p=0,1,10,50,90,99,100",
        "range?min=10&max=30&limit=20",
        "range?min=30&max=10",
    ] {
        same(&nothing, &owner, &format!("{board}/{read}"));
    }
    for pages in ["top?limit=37", "top?limit=90&from=bottom", "range?min=5&max=70&limit=33"] {
        let mut path = format!("{board}/{pages}");
        let mut seen = 0;
        loop {
            let page = same(&nothing, &owner, &path);
            seen += page["entries"].as_array().expect("a list").len();
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("{board}/{pages}&cursor={cursor}");
        }
        assert!(seen > 250, "{seen}");
    }
    let members: Vec<String> = (0..420).step_by(3).map(member).collect();
    let scores: Vec<usize> = (0..100).collect();
    for (path, body) in
        [("members:lookup", json!({ "members": members })), ("ranks:of", json!({ "scores": scores }))]
    {
        let path = format!("{board}/{path}");
        assert_eq!(nothing.post(&path, &body), owner.post(&path, &body), "{path}");
    }
}

#[test]
fn reads_go_on_while_an_owner_is_killed_or_stopped_and_say_what_is_missing() {
    let nats = Nats::start();
    let mut a = owning(&nats, "a", "0-3");
    live(&a, 0..4);
    define(&a.client(), &json!({}));
    let mut b = owning(&nats, "b", "0-1");
    live(&b, 0..2);
    let c = owning(&nats, "c", "2-3");
    live(&c, 2..4);
    let nothing = owning(&nats, "nothing", "none");
    let reader = nothing.client();
    let token = fill(&a.client());
    let path = format!("/v1/boards/arena/members/m7/around?above=9&below=9&after={token}&timeout_ms=60000");
    let (status, before) = reader.get(&path);
    assert_eq!(status, 200, "{before}");
    wait_until("all owners are known", || {
        reader.get("/v1/status").1["shards"].as_array().is_some_and(|shards| {
            shards.iter().all(|shard| {
                let owners = shard["owners"].as_array();
                owners
                    .is_some_and(|owners| owners.iter().filter(|owner| owner["state"] == "live").count() == 2)
            })
        })
    });
    // What they own they read themselves.
    for node in [&b, &c] {
        let (status, answer) = node.client().get(&path);
        assert_eq!(status, 200, "{answer}");
    }
    let entries = |answer: &Value| answer["entries"].clone();
    let read_some = |what: &str| {
        let mut longest = Duration::ZERO;
        for _ in 0..100 {
            let started = Instant::now();
            let (status, answer) = reader.get("/v1/boards/arena/members/m7/around?above=9&below=9");
            longest = longest.max(started.elapsed());
            assert_eq!(status, 200, "{what}: {answer}");
            assert_eq!(entries(&answer), entries(&before), "{what}");
        }
        eprintln!("{what}: the longest read took {longest:?}");
    };
    read_some("all are there");
    signal("STOP", b.pid());
    read_some("one is stopped");
    signal("CONT", b.pid());
    read_some("it is back");
    b.kill9();
    read_some("one is killed");
    // Nobody is left for two of the shards.
    a.kill9();
    wait_until("the others are missing", || reader.get("/v1/boards/arena/rank?score=5").0 == 503);
    let (status, refused) = reader.get("/v1/boards/arena/top");
    assert_eq!(
        (status, &refused["code"], &refused["shards"]),
        (503, &json!("shard_unavailable"), &json!([0, 1]))
    );
    let (status, partial) = reader.get("/v1/boards/arena/rank?score=-1&partial=true");
    assert_eq!((status, &partial["missing"]), (200, &json!([0, 1])), "{partial}");
    let as_of = partial["as_of"].as_str().expect("it is text");
    assert!(as_of.starts_with("2:") && as_of.contains(",3:") && as_of.split(',').count() == 2, "{as_of}");
    assert!(partial["total"].as_u64().is_some_and(|total| (100..300).contains(&total)), "{partial}");
    for read in [
        "top?limit=20",
        "positions/20?limit=5",
        "percentiles?p=50",
        "count?min=0&max=50",
        "histogram?buckets=4",
    ] {
        let (status, partial) = reader.get(&format!("/v1/boards/arena/{read}&partial=true"));
        assert_eq!((status, &partial["missing"]), (200, &json!([0, 1])), "{read}: {partial}");
    }
    b.restart();
    a.restart();
    wait_until("they are back", || reader.get("/v1/boards/arena/top").0 == 200);
    let (status, answer) = reader.get(&path);
    assert_eq!((status, entries(&answer)), (200, entries(&before)));
}
