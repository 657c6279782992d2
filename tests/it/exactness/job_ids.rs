//! A job that has an id counts once, however often it comes, from whomever, and its repetition says so: at a
//! node that owns every shard and at one that owns none.

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::entry_path;
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};

at_each_place![a_job_that_comes_again_counts_once, a_whole_request_that_comes_again_counts_once];

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn a_job_that_comes_again_counts_once(place: Place) {
    let served = place.start(3);
    let (one, other) = (served.client(), served.client());
    let adds = json!({"score": 60, "op": "incr", "id": "match-1:p42"});
    let first = ok(one.put(&entry_path("b", "p42"), &adds));
    assert_eq!((&first["changed"], &first.get("repeated")), (&json!(true), &None), "{first}");
    for client in [&one, &other] {
        let again = ok(client.put(&entry_path("b", "p42"), &adds));
        assert_eq!((&again["changed"], &again["repeated"]), (&json!(false), &json!(true)), "{again}");
        assert_eq!(again["first"]["changed"], json!(true), "{again}");
        assert_eq!(again["entry"]["score"], json!(60), "{again}");
        let token = again["first"]["token"].as_str().expect("a token");
        ok(client.get(&format!("{}?after={token}", entry_path("b", "p42"))));
    }
    // Among others of a request, which count.
    let jobs = json!([
        {"board": "b", "member": "p42", "score": 30, "op": "incr", "id": "match-2:p42"},
        {"board": "b", "member": "p42", "score": 30, "op": "incr", "id": "match-2:p42"},
        {"board": "b", "member": "p42", "score": 60, "op": "incr", "id": "match-1:p42"},
        {"board": "b", "member": "p42", "score": 1, "op": "incr"},
        {"member": "p42", "op": "profile", "profile": {"name": "A"}, "id": "profile-1"},
        {"member": "p42", "op": "profile", "profile": {"name": "B"}, "id": "profile-1"},
    ]);
    for (path, repeated) in [
        ("/v1/jobs", [false, true, true, false, false, true]),
        ("/v1/jobs?results=changed", [true, true, true, false, true, true]),
    ] {
        let answer = ok(one.post(path, &jobs));
        let results = answer["results"].as_array().expect("a list");
        let told: Vec<bool> = results.iter().map(|result| result["repeated"] == json!(true)).collect();
        assert_eq!(told, repeated, "{answer}");
    }
    assert_eq!(ok(one.get(&entry_path("b", "p42")))["score"], json!(92));
    // What was rejected was not applied, and may come again.
    let late = json!([{"board": "b", "member": "p7", "score": [1, 2], "id": "i"}]);
    assert!(ok(one.post("/v1/jobs", &late))["results"][0]["rejected"].is_string());
    let answer = ok(one.post("/v1/jobs", &json!([{"board": "b", "member": "p7", "score": 1, "id": "i"}])));
    assert_eq!(answer["results"][0]["changed"], json!(true), "{answer}");
    for wrong in [json!(""), json!("x".repeat(65)), json!(7), json!("a\nb")] {
        let (status, problem) = one.put(&entry_path("b", "p42"), &json!({"score": 1, "id": wrong}));
        assert_eq!((status, &problem["code"]), (422, &json!("malformed")), "{problem}");
    }
    served.end();
}

fn a_whole_request_that_comes_again_counts_once(place: Place) {
    let served = place.start(3);
    let send = |method: Method, path: &str, key: &str, body: Option<&Value>| {
        let url = format!("{}{path}", served.base());
        let request = ureq::http::Request::builder().method(method).uri(url).header("Idempotency-Key", key);
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let bytes = body.map(ToString::to_string).unwrap_or_default();
        let mut response = agent.run(request.body(bytes).expect("a request")).expect("it answers");
        let text = response.body_mut().read_to_string().expect("text");
        (response.status().as_u16(), serde_json::from_str::<Value>(&text).expect("JSON"))
    };
    let jobs: Vec<Value> = (0..40)
        .map(|n| json!({"board": "b", "member": format!("m{}", n % 20), "score": 1, "op": "incr"}))
        .collect();
    let body = json!(jobs);
    for round in 0..3 {
        let answer = ok(send(Method::POST, "/v1/jobs?wait=applied", "a-key", Some(&body)));
        let results = answer["results"].as_array().expect("a list");
        assert!(results.iter().all(|result| (result["repeated"] == json!(true)) == (round > 0)), "{answer}");
    }
    let client = served.client();
    assert_eq!(ok(client.get(&entry_path("b", "m3")))["score"], json!(2));
    let path = format!("{}?wait=applied", entry_path("b", "m3"));
    let adds = json!({"score": 5, "op": "incr"});
    for repeated in [false, true] {
        let answer = ok(send(Method::PUT, &path, "another", Some(&adds)));
        assert_eq!(
            (answer["repeated"] == json!(true), &answer["entry"]["score"]),
            (repeated, &json!(7)),
            "{answer}"
        );
    }
    for repeated in [false, true] {
        let answer = ok(send(Method::DELETE, &path, "removal", None));
        assert_eq!(answer["repeated"] == json!(true), repeated, "{answer}");
    }
    let (status, problem) = send(Method::POST, "/v1/boards/b:clear", "a-key", None);
    assert_eq!((status, &problem["code"]), (422, &json!("unsupported")));
    let (status, problem) = send(Method::PUT, &path, &"k".repeat(61), Some(&adds));
    assert_eq!((status, &problem["code"]), (422, &json!("bad_parameter")));
    served.end();
}

/// Many writers send the same increments again and again, over kills; each counts once.
#[test]
fn increments_of_many_writers_count_once_over_kills() {
    let mut node = Node::shards(2).start();
    for round in 0..3 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let client = node.client();
                scope.spawn(move || {
                    for number in 0..30 + 10 * round {
                        let id = format!("add-{number}");
                        let adds = json!({"score": 1, "op": "incr", "id": id});
                        ok(client.put(&entry_path("b", &format!("m{}", number % 3)), &adds));
                    }
                });
            }
        });
        node.kill9();
        node.restart();
    }
    let sum: i64 = (0..3)
        .map(|n| {
            ok(node.client().get(&entry_path("b", &format!("m{n}"))))["score"].as_i64().expect("a number")
        })
        .sum();
    assert_eq!(sum, 50);
    assert!(node.terminate().success());
    node.verify();
}

/// Jobs that publishers put into the stream themselves, on two nodes that both apply it, with ids that are
/// kept for a short time.
#[test]
fn jobs_of_a_stream_count_once_on_every_replica() {
    let nats = Nats::start();
    let start = |name: &str| {
        let flags = ["--node", name, "--job-ids-keep", "4s"];
        Node::with_nats(&nats).shards(1).stream_mib(64).flags(&flags).start()
    };
    let (mut one, mut other) = (start("one"), start("other"));
    let body = r#"{"board":"b","member":"m","score":5,"op":"incr","id":"i"}"#;
    // Before the board is there: both wait for it.
    for _ in 0..3 {
        nats.publish("ranktree.jobs.0", body);
    }
    let score = |node: &Node| node.client().get(&entry_path("b", "m")).1["score"].clone();
    for node in [&one, &other] {
        wait_until("it counts", || score(node) == json!(5));
    }
    wait_until("ids are kept no longer", || {
        nats.publish("ranktree.jobs.0", body);
        std::thread::sleep(std::time::Duration::from_millis(200));
        score(&one) == json!(10)
    });
    let last = nats.publish("ranktree.jobs.0", r#"{"board":"b","member":"end","score":1}"#);
    for node in [&one, &other] {
        wait_until("the last one is applied", || {
            node.client().get(&format!("{}?after=0:{last}", entry_path("b", "end"))).0 == 200
        });
        assert_eq!(score(node), json!(10));
    }
    for node in [&mut one, &mut other] {
        assert!(node.terminate().success(), "{}", node.log());
        node.verify();
    }
}
