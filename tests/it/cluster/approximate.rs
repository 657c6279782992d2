//! Approximate ranks: within the bound that they tell, from summaries alone, and following the writes.

use serde_json::{Value, json};

use crate::support::arena::define;
use crate::support::client::Client;
use crate::support::nats::{Nats, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};

const SHARDS: u16 = 2;
/// So many that no shard tells its tree whole.
const MEMBERS: usize = 9_000;

fn owning(nats: &Nats, name: &str, own: &str) -> Node {
    let setup = Node::with_nats(nats).shards(SHARDS).flags(&["--node", name, "--own", own]);
    setup.stream_mib(64).start()
}

fn score(number: usize) -> usize {
    number * 7_919 % 5_003
}

/// Gives the token of the last writes.
fn fill(client: &Client) -> String {
    let mut token = String::new();
    for chunk in (0..MEMBERS).collect::<Vec<_>>().chunks(1_000) {
        let job = |number: &usize| json!({ "board": "arena", "member": format!("m{number}"), "score": score(*number) });
        let jobs: Vec<Value> = chunk.iter().map(job).collect();
        let (status, answer) = client.post("/v1/jobs", &Value::from(jobs));
        assert_eq!(status, 202, "{answer}");
        answer["token"].as_str().expect("a token").clone_into(&mut token);
    }
    token
}

fn number(answer: &Value, field: &str) -> u64 {
    answer[field].as_u64().unwrap_or_else(|| panic!("{field} of {answer}"))
}

fn ok(client: &Client, path: &str) -> Value {
    let (status, answer) = client.get(path);
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

/// Checks an approximate answer against the exact one of the same sequences; gives the error that it tells.
fn check(approximate: &Value, exact: &Value) -> u64 {
    let error = number(approximate, "rank_error");
    for field in ["rank", "position"].into_iter().filter(|field| exact.get(field).is_some()) {
        let (guess, truth) = (number(approximate, field), number(exact, field));
        assert!(guess.abs_diff(truth) <= error, "{field}: {approximate} for {exact}");
        assert!(truth > 1_000 || (guess == truth && error == 0), "{field}: {approximate} for {exact}");
    }
    let counts = ["better", "tied", "worse"].map(|field| number(approximate, field));
    assert_eq!(counts.iter().sum::<u64>(), number(exact, "total"), "{approximate}");
    assert_eq!(number(approximate, "rank"), counts[0] + 1);
    assert_eq!(exact.get("rank_error"), None);
    error
}

#[test]
fn a_node_that_owns_nothing_answers_within_the_bound_and_alone_once_the_owner_is_gone() {
    let nats = Nats::start();
    let mut owner = owning(&nats, "owner", "0-1");
    (0..2).for_each(|shard| drop(wait_state(&owner.client(), shard, "live")));
    define(&owner.client(), &json!({}));
    let nothing = owning(&nats, "nothing", "none");
    let reader = nothing.client();
    wait_until("the board is known", || reader.get("/v1/boards/arena").0 == 200);
    let token = fill(&owner.client());
    let board = "/v1/boards/arena";
    // The node asks for summaries from the first approximate read on. All is applied by then, so that no
    // summary is of an earlier sequence. That read asks the shards, because its token names them.
    ok(&reader, &format!("{board}/rank?score=5&after={token}&timeout_ms=60000"));
    let first = ok(&reader, &format!("{board}/rank?score=5&accuracy=approx&after={token}&timeout_ms=60000"));
    assert_eq!(
        (number(&first, "rank_error"), number(&first, "total")),
        (0, u64::try_from(MEMBERS).expect("a few")),
        "{first}"
    );
    let middle = format!("{board}/rank?score=2007&accuracy=approx");
    wait_until("summaries of all entries are used", || {
        let answer = ok(&reader, &middle);
        let is_guessed = |score| {
            let answer = ok(&reader, &format!("{board}/rank?score={score}&accuracy=approx"));
            number(&answer, "rank_error") > 0
        };
        answer["as_of"] == first["as_of"] && [2_007, 2_345, 2_777, 3_111].into_iter().any(is_guessed)
    });
    let mut errors = Vec::new();
    for score in (0..5_100).step_by(93) {
        let exact = ok(&reader, &format!("{board}/rank?score={score}"));
        errors.push(check(&ok(&reader, &format!("{board}/rank?score={score}&accuracy=approx")), &exact));
    }
    for member in (0..MEMBERS).step_by(311) {
        let path = format!("{board}/members/m{member}");
        let (exact, approximate) = (ok(&reader, &path), ok(&reader, &format!("{path}?accuracy=approx")));
        assert_eq!(approximate["score"], exact["score"]);
        errors.push(check(&approximate, &exact));
    }
    assert!(errors.iter().max() < Some(&40), "a shard is off by ten or so: {errors:?}");
    let scores: Vec<usize> = (0..5_000).step_by(61).collect();
    let body = json!({ "scores": scores });
    let (status, approximate) = reader.post(&format!("{board}/ranks:of?accuracy=approx"), &body);
    let exact = reader.post(&format!("{board}/ranks:of"), &body).1;
    assert_eq!(status, 200, "{approximate}");
    let ranks = |answer: &Value| answer["ranks"].as_array().expect("a list").clone();
    for (approximate, exact) in ranks(&approximate).iter().zip(&ranks(&exact)) {
        check(approximate, exact);
    }
    let mut metrics = ureq::get(format!("{}/metrics", nothing.base())).call().expect("metrics are served");
    let metrics = metrics.body_mut().read_to_string().expect("it is text");
    for metric in [
        "ranktree_summary_age_seconds{shard=\"1\"}",
        "ranktree_summary_bytes",
        "ranktree_approximate_parts_total",
    ] {
        assert!(metrics.contains(metric), "{metric} in {metrics}");
    }
    let before = ok(&reader, &middle);
    owner.kill9();
    wait_until("nobody is left to ask", || reader.get(&format!("{board}/rank?score=2007")).0 == 503);
    let mut alone = Value::Null;
    wait_until("the summaries are old", || {
        alone = ok(&reader, &middle);
        alone["stale"] == true
    });
    for field in ["rank", "rank_error", "total", "shards", "as_of"] {
        assert_eq!(alone[field], before[field], "{field}");
    }
    assert_eq!(reader.get(&format!("{board}/members/m7?accuracy=approx")).0, 503, "its score is not known");
    owner.restart();
    let mut again = Value::Null;
    wait_until("it is there again", || {
        again = ok(&reader, &middle);
        again.get("stale").is_none()
    });
    // The tree is filled anew and may tell other entries. So a guess can be another one, within its bound.
    check(&again, &ok(&reader, &format!("{board}/rank?score=2007")));
}

at_each_place!(approximate_ranks_follow_the_writes_of_every_window, reads_that_are_always_exact_say_so);

fn approximate_ranks_follow_the_writes_of_every_window(place: Place) {
    let served = place.start(3);
    let client = served.client();
    define(&client, &json!({ "windows": ["all", "day", "week"] }));
    let write = |member: &str, score: i64| {
        let path = format!("/v1/boards/arena/members/{member}?wait=applied");
        let (status, answer) = client.put(&path, &json!({ "score": score }));
        assert_eq!(status, 200, "{answer}");
        answer["token"].as_str().expect("a token").to_owned()
    };
    for number in 0..30_i64 {
        write(&format!("m{number}"), number);
    }
    for window in ["all", "day", "week"] {
        let path = format!("/v1/boards/arena/members/m20?accuracy=approx&window={window}");
        wait_until("all are counted", || number(&ok(&client, &path), "total") == 30);
        let entry = ok(&client, &path);
        assert_eq!((number(&entry, "rank"), number(&entry, "rank_error")), (10, 0), "{entry}");
    }
    // Whoever waits for a write sees it.
    let token = write("new", 1_000);
    let path = "/v1/boards/arena/rank?score=19&accuracy=approx";
    let answer = ok(&client, &format!("{path}&after={token}"));
    assert_eq!(number(&answer, "rank"), 12, "{answer}");
    for window in ["all", "day", "week"] {
        let path = format!("{path}&window={window}");
        wait_until("it is counted in the summaries", || number(&ok(&client, &path), "rank") == 12);
    }
    served.end();
}

fn reads_that_are_always_exact_say_so(place: Place) {
    let served = place.start(2);
    let client = served.client();
    define(&client, &json!({}));
    assert_eq!(client.put("/v1/boards/arena/members/m1?wait=applied", &json!({ "score": 7 })).0, 200);
    for read in [
        "/v1/boards/arena/top?",
        "/v1/boards/arena/positions/1?",
        "/v1/boards/arena/score?rank=1&",
        "/v1/boards/arena/count?",
        "/v1/boards/arena/histogram?",
        "/v1/boards/arena/percentiles?p=1&",
        "/v1/boards/arena/range?",
        "/v1/boards/arena/members/m1/around?",
        "/v1/members/m1?",
        "/v1/boards?",
    ] {
        assert_eq!(client.get(&format!("{read}accuracy=exact")).0, 200, "{read}");
        let (status, refused) = client.get(&format!("{read}accuracy=approx"));
        assert_eq!((status, &refused["code"]), (422, &json!("bad_parameter")), "{read}: {refused}");
        assert!(
            refused["detail"].as_str().is_some_and(|detail| detail.contains("always exact")),
            "{refused}"
        );
    }
    let (status, refused) = client.get("/v1/boards/arena/rank?score=1&accuracy=rough");
    assert_eq!((status, &refused["code"]), (422, &json!("bad_parameter")), "{refused}");
    assert_eq!(client.get("/v1/boards/none/rank?score=1&accuracy=approx").0, 404);
    assert_eq!(client.get("/v1/boards/arena/members/nobody?accuracy=approx").0, 404);
    assert_eq!(client.get("/v1/boards/arena/rank?score=1,2&accuracy=approx").1["code"], "bad_score");
    served.end();
}
