//! The write service: jobs by NATS request, and answers as `POST /v1/jobs?wait=applied` gives them.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use async_nats::HeaderMap;
use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};

use crate::support::arena::{STREAM, define, end_unhalted, is_there};
use crate::support::client::{count_of, entry_path};
use crate::support::command::signal;
use crate::support::late_link::LateLink;
use crate::support::nats::{Nats, shard_status, wait_until};
use crate::support::node::Node;
use crate::support::write_service::{Answer, GameService};

fn job(member: &str, score: i64) -> Value {
    json!({ "board": "arena", "member": member, "score": score })
}

/// A node of one shard with a board, and a game service that it answers.
fn start(nats: &Nats, definition: &Value) -> (Node, GameService) {
    let node = Node::with_nats(nats).stream_mib(64).start();
    define(&node.client(), definition);
    let game = GameService::connect(&nats.url());
    game.write(&job("first", 1));
    (node, game)
}

/// The server hears late of the node's subscriptions.
#[test]
fn a_node_that_says_it_is_ready_takes_requests() {
    let nats = Nats::start();
    let address = nats.url();
    let link = LateLink::start(address.strip_prefix("nats://").expect("a URL"), LATE);
    let game = GameService::connect(&address);
    let mut node = Node::with_nats(&format!("nats://{}", link.address())).stream_mib(64).start();
    assert_eq!(game.write(&job("alice", 1)).results()[0]["entry"]["score"], 1);
    // It is live again as soon as it has found its stream.
    assert!(node.terminate().success());
    let is_known =
        || game.write_impatiently(&job("alice", 2), Duration::from_millis(500)) == Answer::NoResponders;
    wait_until("the server knows that the node is gone", is_known);
    node.restart();
    assert_eq!(game.write(&job("alice", 3)).results()[0]["entry"]["score"], 3);
    assert_eq!(node.client().get("/readyz").0, 200);
    end_unhalted(node);
}

/// The answers of both ways, without what differs from job to job.
fn without_places(mut answer: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for name in ["token", "as_of", "updated_at"] {
                    if members.contains_key(name) {
                        members.insert(name.to_owned(), Value::Null);
                    }
                }
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut answer);
    answer
}

#[test]
fn requests_are_answered_as_http_answers_them() {
    let nats = Nats::start();
    let (node, game) = start(&nats, &json!({ "keys": [{ "name": "points", "max": 1_000 }] }));
    let client = node.client();
    let Answer::Said(200, answer) = game.write(&job("alice", 7)) else { panic!("it is taken") };
    let entry = &answer["results"][0]["entry"];
    assert_eq!(
        (&entry["score"], &entry["rank"], &entry["total"]),
        (&json!(7), &json!(1), &json!(2)),
        "{answer}"
    );
    // The token is good at the node for a read.
    let token = answer["token"].as_str().expect("a token");
    let (status, read) = client.get(&format!("{}?after={token}", entry_path("arena", "alice")));
    assert_eq!((status, &read["score"]), (200, &json!(7)), "{read}");

    let requests = [
        job("alice", 7),
        json!([job("alice", 8), job("bob", 1_001), job("carol", 3)]),
        json!({ "member": "alice", "scores": { "arena": 9, "kills": 1 } }),
        json!({ "board": "arena", "member": "alice", "score": 5, "meta": { "car": "mx5" } }),
        json!({ "board": "arena", "member": "alice", "op": "remove" }),
        json!({ "member": "alice", "op": "remove" }),
        // Refused as a whole.
        json!([job("alice", 1), { "board": "arena" }, { "board": "arena", "member": "x", "score": 1.5 }]),
        json!([]),
        json!({}),
        json!(vec![job("alice", 1); 1_001]),
    ];
    // Each time from the same state, which the first time may have to lead to.
    let setup = json!([job("alice", 2), json!({ "board": "kills", "member": "alice", "score": 1 })]);
    for request in &requests {
        client.post("/v1/jobs?wait=applied", request);
        assert_eq!(client.post("/v1/jobs?wait=applied", &setup).0, 200);
        let (status, expected) = client.post("/v1/jobs?wait=applied", request);
        assert_eq!(client.post("/v1/jobs?wait=applied", &setup).0, 200);
        let Answer::Said(said, answer) = game.write(request) else { panic!("it is answered: {request}") };
        assert_eq!((said, without_places(answer)), (status, without_places(expected)), "{request}");
    }
    assert_eq!(client.post("/v1/jobs?wait=applied", &setup).0, 200);
    assert_eq!(client.get(&entry_path("arena", "alice")).1["score"], 2, "what is refused changes nothing");
    end_unhalted(node);
}

#[test]
fn requests_that_cannot_be_taken_are_told_why_and_change_nothing() {
    let nats = Nats::start_with("max_payload: 4MB\n");
    let node = Node::with_nats(&nats).shards(3).stream_mib(64).start();
    define(&node.client(), &json!({}));
    let game = GameService::connect(&nats.url());
    let home = |member: &str| shard_of(&MemberId::new(member).expect("a good id"), 3).0;
    let (here, there) = ("p42", "alice");
    assert_eq!((home(here), home(there)), (1, 2));
    let ask = |body: &str, headers: HeaderMap| {
        let mut answer = Answer::NoResponders;
        wait_until("the shard is served", || {
            answer = game.ask("ranktree.write.1", body, headers.clone());
            answer != Answer::NoResponders
        });
        answer
    };
    let mixed = json!([job(here, 1), job(there, 2), job(here, 3), job(there, 4)]).to_string();
    let answer = ask(&mixed, HeaderMap::new());
    assert_eq!(answer.problem(), (422, "wrong_shard"));
    let Answer::Said(_, body) = &answer else { panic!("it was answered") };
    let errors: Vec<_> = body["errors"].as_array().expect("a list").iter().collect();
    let errors: Vec<_> = errors.iter().map(|error| (&error["index"], &error["code"])).collect();
    let wrong = json!("wrong_shard");
    assert_eq!(errors, [(&json!(1), &wrong), (&json!(3), &wrong)]);
    for (garbage, code) in
        [("", "malformed"), ("no job", "malformed"), ("\u{0}", "malformed"), ("[[", "malformed")]
    {
        assert_eq!(ask(garbage, HeaderMap::new()).problem(), (422, code), "{garbage}");
    }
    let large = json!(vec![job(here, 1); 900]).to_string() + &" ".repeat(1 << 20);
    assert_eq!(ask(&large, HeaderMap::new()).problem(), (413, "too_large"));
    let header = |name: &str, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, value);
        headers
    };
    let one = job(here, 1).to_string();
    assert_eq!(ask(&one, header("Nats-Msg-Id", &"1".repeat(61))).problem(), (422, "bad_parameter"));
    assert_eq!(ask(&one, header("Ranktree-Results", "all")).problem(), (422, "bad_parameter"));
    assert!(!is_there(&node.client(), here) && !is_there(&node.client(), there));
    let changed = ask(&one, header("Ranktree-Results", "changed")).results();
    assert_eq!(changed, [json!({ "changed": true })]);
    let more = json!({"board": "arena", "member": here, "score": 5, "op": "incr"}).to_string();
    for repeated in [false, true] {
        let results = ask(&more, header("Nats-Msg-Id", "match-1")).results();
        assert_eq!(results[0]["repeated"] == json!(true), repeated, "{results:?}");
    }
    end_unhalted(node);
}

#[test]
fn an_answer_that_is_too_large_for_a_message_has_no_entries() {
    let nats = Nats::start();
    let (node, game) = start(&nats, &json!({}));
    let text = "x".repeat(1_000);
    let with_metadata =
        |n: i64| json!({ "board": "arena", "member": format!("m{n}"), "score": n, "meta": { "text": text } });
    let jobs: Vec<_> = (0..900).map(with_metadata).collect();
    let results = game.write(&json!(jobs)).results();
    assert_eq!(results, vec![json!({ "changed": true }); 900]);
    let results = game.write(&json!(jobs[..500])).results();
    assert!(results.iter().all(|result| result["entry"]["meta"]["text"] == *text), "{:?}", results.first());
    end_unhalted(node);
}

#[test]
fn an_unknown_board_is_created_first_or_rejected() {
    let nats = Nats::start();
    let (node, game) = start(&nats, &json!({}));
    let new = json!({ "board": "new", "member": "alice", "score": 5 });
    let results = game.write(&json!([new, job("alice", 5)])).results();
    assert_eq!(
        (&results[0]["entry"]["rank"], &results[1]["entry"]["rank"]),
        (&json!(1), &json!(1)),
        "{results:?}"
    );
    assert_eq!(node.client().get(&entry_path("new", "alice")).0, 200);
    end_unhalted(node);
    let nats = Nats::start();
    let node = Node::with_nats(&nats).stream_mib(64).flags(&["--no-auto-create"]).start();
    define(&node.client(), &json!({}));
    let game = GameService::connect(&nats.url());
    let other = json!({ "board": "other", "member": "alice", "score": 5 });
    let results = game.write(&json!([other, job("alice", 6)])).results();
    assert_eq!((&results[0]["rejected"], &results[1]["changed"]), (&json!("unknown_board"), &json!(true)));
    assert_eq!(node.client().get("/v1/boards/other").0, 404);
    end_unhalted(node);
}

const CLIENTS: i64 = 64;
const ROUNDS: i64 = 20;

/// Jobs that the node has published, all of them by the write service.
fn messages(nats: &Nats) -> u64 {
    nats.info(STREAM).state.last_sequence
}

#[test]
fn concurrent_increments_are_neither_lost_nor_doubled() {
    let nats = Nats::start();
    let (node, game) = start(&nats, &json!({ "policy": "incr" }));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let game = game.clone();
            scope.spawn(move || {
                let own = format!("m{number}");
                for round in 1..=ROUNDS {
                    let results = game.write(&json!([job("all", 1), job(&own, number)])).results();
                    assert_eq!(results[1]["entry"]["score"], number * round, "{results:?}");
                    let before = if round == 1 { Value::Null } else { json!(number * (round - 1)) };
                    assert_eq!(results[1]["previous"]["score"], before, "{round}: {results:?}");
                }
            });
        }
    });
    let client = node.client();
    assert_eq!(client.get(&entry_path("arena", "all")).1["score"], CLIENTS * ROUNDS);
    for number in 0..CLIENTS {
        let (_, entry) = client.get(&entry_path("arena", &format!("m{number}")));
        assert_eq!(entry["score"], number * ROUNDS, "{entry}");
    }
    end_unhalted(node);
}

/// The server acknowledges the node's messages late, so that requests wait for one another.
const LATE: Duration = Duration::from_millis(150);

#[test]
fn requests_of_the_same_moment_share_a_message() {
    let nats = Nats::start();
    let address = nats.url();
    let link = LateLink::start(address.strip_prefix("nats://").expect("a URL"), LATE);
    let node = Node::with_nats(&format!("nats://{}", link.address())).stream_mib(64).start();
    define(&node.client(), &json!({}));
    let game = GameService::connect(&nats.url());
    game.write(&job("first", 1));
    let before = messages(&nats);
    let requests: Vec<_> = (0..CLIENTS).map(|n| job(&format!("m{n}"), n)).collect();
    let answers = game.write_all(&requests);
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.results()[0]["entry"]["score"], number, "{answer:?}");
    }
    let sent = messages(&nats) - before;
    assert!(
        sent < u64::try_from(answers.len()).expect("few"),
        "{sent} messages for {} requests",
        answers.len()
    );
    end_unhalted(node);
}

/// Requests that a node has answered.
fn answered(node: &Node, shard: &str, class: &str) -> f64 {
    let series = format!("ranktree_write_requests_total{{shard=\"{shard}\",class=\"{class}\"}}");
    node.metric(&series).unwrap_or_default()
}

#[test]
fn owners_share_the_requests_and_one_that_is_killed_is_not_missed() {
    let nats = Nats::start();
    let start = |name| Node::with_nats(&nats).stream_mib(64).flags(&["--node", name]).start();
    let (a, mut b) = (start("a"), start("b"));
    define(&a.client(), &json!({ "policy": "incr" }));
    let game = GameService::connect(&nats.url());
    let mut version = 0;
    let mut incr = |game: &GameService| {
        version += 1;
        let job = json!({ "board": "arena", "member": "all", "score": 1, "version": version });
        // An owner may die with a request. Its version makes it safe to send it again.
        let patience = Duration::from_secs(2);
        wait_until("it is answered", || match game.write_impatiently(&job, patience) {
            Answer::Said(200, body) => {
                let result = &body["results"][0];
                assert!(result["changed"] == true || result["rejected"] == "stale_version", "{body}");
                true
            }
            Answer::Said(status, body) => {
                assert_eq!(status, 503, "{body}");
                false
            }
            Answer::NoResponders | Answer::Nothing => false,
        });
        version
    };
    wait_until("both have answered", || {
        incr(&game);
        answered(&a, "0", "2xx") > 0.0 && answered(&b, "0", "2xx") > 0.0
    });
    let infos = game.discover("$SRV.INFO.ranktree", 2);
    let nodes: BTreeSet<_> =
        infos.iter().map(|info| info["metadata"]["node"].as_str().expect("a name")).collect();
    assert_eq!(nodes, BTreeSet::from(["a", "b"]), "{infos:?}");
    // It dies while requests are on their way to it.
    let (pid, other) = (b.pid(), game.clone());
    let killing = thread::spawn(move || signal("KILL", pid));
    for _ in 0..50 {
        incr(&other);
    }
    killing.join().expect("it is killed");
    let last = incr(&game);
    assert_eq!(a.client().get(&entry_path("arena", "all")).1["score"], last);
    b.kill9();
    b.restart();
    wait_until("it answers again", || {
        incr(&game);
        answered(&b, "0", "2xx") > 0.0
    });
    let last = incr(&game);
    for node in [&a, &b] {
        let path = format!("{}?after=0:{}", entry_path("arena", "all"), messages(&nats));
        assert_eq!(node.client().get(&path).1["score"], last);
    }
    end_unhalted(a);
    assert!(b.terminate().success());
    b.verify();
}

#[test]
fn tools_find_the_nodes_and_their_endpoints() {
    let nats = Nats::start();
    let node = Node::with_nats(&nats).shards(3).stream_mib(16).flags(&["--node", "eu-1"]).start();
    define(&node.client(), &json!({}));
    let game = GameService::connect(&nats.url());
    let mut info = Value::Null;
    wait_until("each shard has its endpoint", || {
        info = game.discover("$SRV.INFO.ranktree", 1).remove(0);
        info["endpoints"].as_array().is_some_and(|endpoints| endpoints.len() == 3)
    });
    assert_eq!(info["type"], "io.nats.micro.v1.info_response");
    assert_eq!((&info["name"], &info["version"]), (&json!("ranktree"), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(info["metadata"], json!({ "node": "eu-1", "address": node.base() }));
    assert!(info["description"].as_str().is_some_and(|text| !text.is_empty()), "{info}");
    for (shard, endpoint) in info["endpoints"].as_array().expect("a list").iter().enumerate() {
        let subject = format!("ranktree.write.{shard}");
        let name = format!("write-{shard}");
        let expected = json!({ "name": name, "subject": subject, "queue_group": "q", "metadata": {} });
        assert_eq!(*endpoint, expected);
    }
    let id = info["id"].as_str().expect("an id");
    for subject in ["$SRV.PING", "$SRV.PING.ranktree", &format!("$SRV.PING.ranktree.{id}")] {
        let ping = game.discover(subject, 1).remove(0);
        assert_eq!(
            (&ping["type"], &ping["id"]),
            (&json!("io.nats.micro.v1.ping_response"), &json!(id)),
            "{ping}"
        );
        assert!(ping.get("endpoints").is_none(), "{ping}");
    }
    let member = (0..).map(|n| format!("m{n}"));
    let member =
        member.into_iter().find(|id| shard_of(&MemberId::new(id.as_str()).expect("a good id"), 3).0 == 1);
    let job = job(&member.expect("one of many"), 1).to_string();
    assert_eq!(game.ask("ranktree.write.1", &job, HeaderMap::new()).results().len(), 1);
    assert_eq!(game.ask("ranktree.write.1", "{}", HeaderMap::new()).problem().0, 422);
    let stats = game.discover(&format!("$SRV.STATS.ranktree.{id}"), 1).remove(0);
    assert_eq!(stats["type"], "io.nats.micro.v1.stats_response");
    let endpoint = &stats["endpoints"][1];
    assert_eq!((&endpoint["num_requests"], &endpoint["num_errors"]), (&json!(2), &json!(1)), "{stats}");
    assert!(endpoint["last_error"].as_str().is_some_and(|error| error.starts_with("422:")), "{stats}");
    assert!(endpoint["processing_time"].as_u64() > endpoint["average_processing_time"].as_u64(), "{stats}");
    end_unhalted(node);
}

#[test]
fn a_node_that_ends_answers_what_it_has_taken() {
    let nats = Nats::start();
    let address = nats.url();
    let link = LateLink::start(address.strip_prefix("nats://").expect("a URL"), LATE);
    let mut node = Node::with_nats(&format!("nats://{}", link.address())).stream_mib(64).start();
    define(&node.client(), &json!({}));
    let game = GameService::connect(&nats.url());
    game.write(&job("first", 1));
    let before = messages(&nats);
    let requests = (0..CLIENTS).map(|n| job(&format!("m{n}"), n)).collect();
    let answers = game.begin_writes(requests);
    wait_until("the node has published some", || messages(&nats) > before);
    assert!(node.terminate().success());
    for (number, answer) in answers.join().expect("nobody panicked").iter().enumerate() {
        assert_eq!(answer.results()[0]["entry"]["score"], number, "{answer:?}");
    }
    assert_eq!(game.write(&job("late", 1)), Answer::NoResponders);
    node.restart();
    assert_eq!(node.client().get("/v1/boards/arena").1["totals"]["all"], CLIENTS + 1);
    end_unhalted(node);
}

#[test]
fn a_node_whose_shard_is_not_live_takes_no_requests() {
    let nats = Nats::start();
    let (node, game) = start(&nats, &json!({}));
    nats.delete(STREAM);
    wait_until("the shard is not live", || shard_status(&node.client(), 0)["state"] != "live");
    wait_until("nobody listens", || game.write(&job("alice", 1)) == Answer::NoResponders);
    assert_eq!(game.discover("$SRV.INFO.ranktree", 1)[0]["endpoints"], json!([]));
}

/// Members of shard 0 and of shard 1, of two.
fn members() -> [Vec<String>; 2] {
    let of = |shard: u16| {
        let all = (0..).map(|n| format!("m{n}"));
        let home = |id: &String| shard_of(&MemberId::new(id.as_str()).expect("a good id"), 2).0;
        all.filter(move |id| home(id) == shard).take(100).collect()
    };
    [of(0), of(1)]
}

#[test]
fn a_node_has_jobs_applied_by_the_owners_of_their_shards() {
    let nats = Nats::start();
    let start = |name, own| {
        let flags = ["--node", name, "--own", own];
        Node::with_nats(&nats).shards(2).stream_mib(16).flags(&flags).start()
    };
    let (a, mut b) = (start("a", "0"), start("b", "1"));
    define(&a.client(), &json!({ "policy": "incr" }));
    let [here, there] = members();
    let (client, path) = (a.client(), entry_path("arena", &there[0]));
    let mut answer = Value::Null;
    wait_until("the other node takes writes", || {
        let (status, said) = client.put(&format!("{path}?wait=applied"), &json!({ "score": 1 }));
        answer = said;
        assert!(status == 200 || answer["code"] == "shard_unavailable", "{answer}");
        status == 200
    });
    assert!(answer["token"].as_str().is_some_and(|token| token.starts_with("1:")), "{answer}");
    // Ranks need the other shard.
    let is_told = |result: &Value, score: i64| {
        result["entry"]["score"] == score
            || result["missing"].as_array().is_some_and(|shards| !shards.is_empty())
    };
    assert!(answer["changed"] == true && is_told(&answer, 1), "{answer}");
    let (status, answer) = client.put(&format!("{path}?wait=applied"), &json!({ "score": [1, 2] }));
    assert_eq!((status, &answer["code"]), (409, &json!("bad_score")), "{answer}");
    let (status, answer) =
        client.put(&format!("{path}?wait=applied&results=changed"), &json!({ "score": 1 }));
    assert_eq!((status, &answer["changed"], answer.get("entry")), (200, &json!(true), None), "{answer}");
    // Members of both shards in turn, some of them new to a board that is new itself.
    let text = "x".repeat(900);
    let jobs: Vec<_> = (0..1_000)
        .map(|n| {
            let (member, board) =
                (if n % 2 == 0 { &here } else { &there }, if n % 3 == 0 { "new" } else { "arena" });
            let meta = if n < 300 { json!({ "text": text }) } else { json!({}) };
            json!({ "board": board, "member": member[n % 100], "score": 1, "meta": meta })
        })
        .collect();
    let (status, answer) = client.post("/v1/jobs?wait=applied", &json!(jobs));
    assert_eq!(status, 200, "{answer}");
    let results = answer["results"].as_array().expect("one per job");
    assert_eq!(results.len(), jobs.len());
    for (result, job) in results.iter().zip(&jobs) {
        let member = &result["entry"]["member"];
        assert!(
            result["changed"] == true && (member.is_null() || *member == job["member"]),
            "{result} {job}"
        );
    }
    let token = answer["token"].as_str().expect("a token");
    assert!(token.starts_with("0:") && token.contains(",1:"), "{token}");
    assert!(answered(&b, "1", "4xx") + answered(&b, "1", "5xx") < 0.5, "each part was taken");
    assert!(answered(&a, "0", "2xx") < 0.5, "a node asks nobody for its own shards");
    b.kill9();
    wait_until("nobody takes writes for the shard", || {
        let (status, answer) = client.put(&format!("{path}?wait=applied"), &json!({ "score": 1 }));
        assert!(status == 200 || status == 503, "{answer}");
        status == 503 && answer["code"] == "shard_unavailable"
    });
    // The other half is applied all the same, and the answer says which.
    let (status, answer) =
        client.post("/v1/jobs?wait=applied", &json!([job(&here[0], 1), job(&there[0], 1)]));
    assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{answer}");
    let results = &answer["results"];
    assert_eq!(
        (&results[0]["changed"], &results[1]["failed"]),
        (&json!(true), &json!("shard_unavailable")),
        "{answer}"
    );
    b.restart();
    for mut node in [a, b] {
        assert!(node.terminate().success());
        node.verify();
    }
}

/// A node may publish where a game service may not.
#[test]
fn answers_do_not_go_where_only_nodes_may_publish() {
    let nats = Nats::start();
    let (node, game) = start(&nats, &json!({}));
    let ends = || ["JOBS_0", "BOARDS", "REJECTS"].map(|name| nats.info(&format!("RANKTREE_{name}")).state);
    let before = ends();
    let replies = [
        "ranktree.control.0",
        "ranktree.jobs.0",
        "ranktree.boards.arena",
        "$JS.API.STREAM.PURGE.RANKTREE_JOBS_0",
        "$KV.RANKTREE_NODES.x",
    ];
    for (number, reply) in replies.iter().enumerate() {
        game.write_with_reply(&job(&format!("m{number}"), 1), reply);
    }
    let client = node.client();
    wait_until("their jobs are applied", || (0..replies.len()).all(|n| is_there(&client, &format!("m{n}"))));
    // What comes behind them is answered behind them.
    assert_eq!(game.write(&job("last", 1)).results().len(), 1);
    let after = ends();
    assert_eq!(after[0].first_sequence, before[0].first_sequence, "nothing was purged");
    let jobs = u64::try_from(replies.len()).expect("few") + 1;
    assert!(after[0].last_sequence <= before[0].last_sequence + jobs, "{after:?}");
    assert_eq!(
        [&after[1], &after[2]].map(|state| state.last_sequence),
        [1, 2].map(|n: usize| before[n].last_sequence)
    );
    assert_eq!(count_of(&client.get("/v1/boards/arena").1["totals"]["all"]), replies.len() + 2);
    end_unhalted(node);
}
