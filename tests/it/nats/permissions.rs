//! The permissions in `deploy/nats/ranktree.conf`, on a real server: nodes can do their work with them, each
//! of them is needed for it, and game services can publish jobs and nothing else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::support::arena::SUBJECT;
use crate::support::client::entry_path;
use crate::support::command::command;
use crate::support::nats::{applied, wait_applied, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::secured::{Secured, shipped};

/// The server does not answer requests that it denies.
const NO_ANSWER: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(120);

/// What a node may publish to, line by line.
fn allowed_to_nodes(config: &str) -> Vec<String> {
    let node = config.split("user: node").nth(1).expect("there is a node");
    let list = node.split("allow: [").nth(1).and_then(|rest| rest.split("\n            ]").next());
    let lines = list.expect("there is a list").lines();
    let subjects = lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect::<Vec<_>>();
    assert!(subjects.len() > 8, "{subjects:?}");
    subjects
}

fn matches(pattern: &str, subject: &str) -> bool {
    let (pattern, subject): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), subject.split('.').collect());
    pattern.len() == subject.len() && pattern.iter().zip(&subject).all(|(p, s)| *p == "*" || p == s)
}

async fn publish(context: &Context, subject: &str, body: &Value) -> u64 {
    let sent = context.publish(subject.to_owned(), body.to_string().into()).await.expect("it is sent");
    sent.await.expect("it is stored").sequence
}

/// Starts a node that checkpoints and purges soon.
fn start_node(server: &Secured) -> Node {
    let password = server.file("node-password", "node-secret");
    let node = Node::with_nats(&server.url())
        .shards(2)
        .flags(&["--nats-user", "node", "--nats-password-file", &password])
        .flags(&["--nats-keep", "0", "--checkpoint-seconds", "1"])
        .start();
    for shard in 0..2 {
        wait_state(&node.client(), shard, "live");
    }
    node
}

/// Starts a node that owns no shard, and has the inbox of nodes that log in without a name.
fn start_reader(server: &Secured) -> Node {
    let password = server.file("reader-password", "node-secret");
    Node::with_nats(&server.url())
        .shards(2)
        .flags(&["--nats-user", "node", "--nats-password-file", &password])
        .flags(&["--node", "reader", "--own", "none", "--nats-inbox-prefix", "_INBOX.ranktree"])
        .start()
}

/// A listener that may receive all messages records what nodes publish.
#[expect(
    clippy::too_many_lines,
    reason = "one node does all that nodes do, in an order that each step needs"
)]
#[test]
fn nodes_can_do_their_work_and_need_every_permission_for_it() {
    let config = shipped();
    let allowed = allowed_to_nodes(&config);
    let listening = config.replacen("users: [", "users: [ { user: all, password: all-secret }", 1);
    let server = Secured::start(&listening);
    let runtime = Runtime::new().expect("a runtime");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut listener = runtime.block_on(async {
        let client = server.connect("all").await;
        let listener = client.subscribe(">").await.expect("it may listen");
        client.flush().await.expect("the server answers");
        listener
    });
    let hearing = Arc::clone(&heard);
    runtime.spawn(async move {
        while let Some(message) = listener.next().await {
            hearing.lock().expect("nobody panicked").push(message.subject.to_string());
        }
    });
    let mut node = start_node(&server);
    let client = node.client();
    let reader = start_reader(&server);
    // Messages within this duplicate window are not purged.
    runtime.block_on(async {
        let context = jetstream::new(server.connect("all").await);
        for shard in 0..2 {
            let stream = context.get_stream(format!("RANKTREE_JOBS_{shard}")).await.expect("it is there");
            let config = Config { duplicate_window: NO_ANSWER, ..stream.cached_info().config.clone() };
            context.update_stream(config).await.expect("it is updated");
        }
    });
    assert_eq!(client.put("/v1/boards/arena", &json!({ "policy": "best" })).0, 201);
    let path = format!("{}?wait=applied", entry_path("arena", "alice"));
    assert_eq!(client.put(&path, &json!({ "score": 5 })).1["entry"]["rank"], 1);
    wait_until("a node without shards has a job applied by the node", || {
        reader.client().put(&path, &json!({ "score": 5 })).0 == 200
    });
    assert_eq!(client.put(&path, &json!({ "score": [1, 2] })).1["code"], "bad_score");
    // A board that jobs create, and one that is dropped.
    assert_eq!(client.put(&entry_path("new", "bob"), &json!({ "score": 5 })).0, 202);
    wait_until("jobs have created a board", || client.get("/v1/boards/new").0 == 200);
    assert_eq!(client.put("/v1/boards/gone", &json!({})).0, 201);
    assert_eq!(client.send(ureq::http::Method::DELETE, "/v1/boards/gone", None).expect("an answer").0, 200);
    assert_eq!(client.get("/v1/boards/gone").0, 404);
    // More boards are created and dropped than the stream keeps records of.
    runtime.block_on(async {
        let context = jetstream::new(server.connect("all").await);
        let mut stored = Vec::new();
        for number in 0..10_050 {
            let (subject, body) = (format!("ranktree.boards.gone-{number}"), json!({ "incarnation": 1 }));
            let sent = context.publish(subject, body.to_string().into()).await.expect("it is sent");
            stored.push(sent.into_future());
            if stored.len() == 1_000 {
                for stored in stored.drain(..) {
                    stored.await.expect("it is stored");
                }
            }
        }
    });
    let missing = || {
        let heard = heard.lock().expect("nobody panicked");
        let used = |pattern: &&String| heard.iter().any(|subject| matches(pattern, subject));
        allowed.iter().filter(|pattern| !used(pattern)).cloned().collect::<Vec<_>>()
    };
    let mut score = 5;
    // Some owner is asked only if none is known, or those that are known do not answer. Nodes ask each other
    // for copies, and no other node owns shards so far.
    let later = ["ranktree.ask.*", "ranktree.write.*", "ranktree.copy.*.*"];
    let missing_of_one =
        || missing().into_iter().filter(|pattern| !later.contains(&&**pattern)).collect::<Vec<_>>();
    let mut lacking = missing_of_one();
    let deadline = std::time::Instant::now() + PATIENCE;
    while !lacking.is_empty() {
        assert!(std::time::Instant::now() < deadline, "nodes do not need {lacking:?}");
        score += 1;
        // A change is needed for a checkpoint, after which the stream is purged.
        assert_eq!(client.put(&path, &json!({ "score": score })).0, 200);
        let (status, answer) = reader.client().get("/v1/boards/arena/top");
        assert_eq!(status, 200, "{answer}");
        // The owner has thousands of boards to decide, and may be late for a write that it takes.
        wait_until("it is written", || {
            let (status, answer) = reader.client().put(&path, &json!({ "score": score }));
            assert!(status == 200 || answer["code"] == "commit_unknown", "{status} {answer}");
            status == 200
        });
        lacking = missing_of_one();
    }
    // A stream was purged, so a new node needs a copy.
    let mut second = start_node(&server);
    assert!(!missing().contains(&"ranktree.copy.*.*".to_owned()), "it was asked for");
    assert!(second.terminate().success());
    assert!(!second.log().contains("ermissions"), "{}", second.log());
    second.verify();
    assert!(node.terminate().success());
    wait_until("the reader asks whoever is there", || {
        let (status, answer) = reader.client().put(&path, &json!({ "score": 1 }));
        assert_eq!(status, 503, "{answer}");
        let (status, answer) = reader.client().get("/v1/boards/arena/top");
        status == 503 && answer["code"] == "shard_unavailable" && missing().is_empty()
    });
    assert!(!reader.log().contains("ermissions"), "{}", reader.log());
    // These permissions are also enough to rebase onto a stream that was created again.
    runtime.block_on(async {
        let context = jetstream::new(server.connect("all").await);
        let stream = context.get_stream("RANKTREE_JOBS_0").await.expect("it is there");
        let config = stream.cached_info().config.clone();
        context.delete_stream(&config.name).await.expect("it is deleted");
        context.create_stream(config).await.expect("it is created");
        publish(&context, SUBJECT, &json!("no job")).await;
    });
    node.restart_with(&["--accept-gap", "0"]);
    for shard in 0..2 {
        wait_state(&node.client(), shard, "live");
    }
    // The server denied nothing that the node tried.
    assert!(node.terminate().success());
    let log = node.log();
    assert!(!log.contains("ermissions"), "{log}");
    node.verify();
}

/// A reply to another node that takes more than one message arrives as a whole.
#[test]
fn a_page_that_is_larger_than_a_message_arrives_from_the_owner() {
    let server = Secured::start(&shipped());
    let mut node = start_node(&server);
    let client = node.client();
    let mut reader = start_reader(&server);
    assert_eq!(client.put("/v1/boards/arena", &json!({})).0, 201);
    let is_home = |member: &String| {
        let member = ranktree::types::MemberId::new(member.as_str()).expect("a good id");
        ranktree::types::shard_of(&member, 2).index() == 0
    };
    let members: Vec<String> =
        (0..).map(|number| format!("{number:0>100}")).filter(is_home).take(1_001).collect();
    let job = |(score, member): (usize, &String)| json!({ "board": "arena", "member": member, "score": score, "meta": { "m": "x".repeat(1_000) } });
    let jobs: Vec<Value> = members.iter().enumerate().map(job).collect();
    for jobs in jobs.chunks(200) {
        let (status, answer) = client.post("/v1/jobs?wait=applied&results=changed", &json!(jobs));
        assert_eq!(status, 200, "{answer}");
    }
    let path = format!("{}/around?above=500&below=500", entry_path("arena", &members[500]));
    let whole = client.get(&path).1;
    let entries = whole["entries"].as_array().expect("a list");
    assert_eq!((entries.len(), entries[0]["meta"]["m"].as_str().map(str::len)), (1_001, Some(1_000)));
    let mut said = (0, Value::Null);
    wait_until("the owner is known", || {
        said = reader.client().get("/v1/boards/arena/top?limit=1");
        said.0 == 200
    });
    let (status, answer) = reader.client().get(&path);
    assert_eq!((status, &answer["entries"]), (200, &whole["entries"]), "{:.300}", answer.to_string());
    for node in [&mut reader, &mut node] {
        assert!(node.terminate().success());
        assert!(!node.log().contains("ermissions"), "{}", node.log());
    }
}

/// Permissions from before there were the two buckets.
#[test]
fn a_node_that_may_not_tell_others_of_itself_goes_on_and_says_so() {
    let config: Vec<String> =
        shipped().lines().filter(|line| !line.contains("$KV.")).map(str::to_owned).collect();
    let server = Secured::start(&config.join("\n"));
    let mut node = start_node(&server);
    let client = node.client();
    assert_eq!(client.put("/v1/boards/arena", &json!({})).0, 201);
    let path = format!("{}?wait=applied", entry_path("arena", "alice"));
    assert_eq!(client.put(&path, &json!({ "score": 5 })).0, 200);
    wait_until("the log says so", || {
        let log = node.log();
        log.contains("what this node says of itself to the others cannot be stored")
            && log.contains("Permissions Violation for Publish to")
            && log.contains("$KV.RANKTREE_NODES")
    });
    assert!(node.terminate().success());
    node.verify();
}

/// A node, and other users of the server.
struct Scene {
    node: Node,
    runtime: Runtime,
    game: Client,
    rejects: Client,
    /// A client with a node's permissions, for inspection.
    looking: Context,
    /// A member of shard 0.
    member: String,
    _server: Secured,
}

impl Scene {
    fn new() -> Self {
        let server = Secured::start(&shipped());
        let node = start_node(&server);
        assert_eq!(node.client().put("/v1/boards/arena", &json!({})).0, 201);
        let runtime = Runtime::new().expect("a runtime");
        let (game, rejects, looking) = runtime.block_on(async {
            (server.connect("game").await, server.connect("rejects").await, server.connect("node").await)
        });
        let home = |member: &str| {
            let member = ranktree::types::MemberId::new(member).expect("a good id");
            ranktree::types::shard_of(&member, 2).index()
        };
        let member = (0..99).map(|n| format!("m{n}")).find(|member| home(member) == 0).expect("one of many");
        let looking = runtime.block_on(async { jetstream::new(looking) });
        Self { node, runtime, game, rejects, looking, member, _server: server }
    }

    /// The last sequence of each stream.
    fn ends(&self) -> [u64; 4] {
        ["JOBS_0", "JOBS_1", "BOARDS", "REJECTS"].map(|stream| {
            self.runtime.block_on(async {
                let stream = self.looking.get_stream(format!("RANKTREE_{stream}")).await;
                stream.expect("it is there").cached_info().state.last_sequence
            })
        })
    }

    fn end(mut self) {
        assert_eq!(self.node.client().get("/readyz").0, 200);
        assert!(self.node.terminate().success());
        self.node.verify();
    }
}

#[test]
fn game_services_publish_jobs_and_their_rejections_can_be_subscribed_to() {
    let scene = Scene::new();
    let Scene { runtime, game, rejects, member, .. } = &scene;
    let mut told = runtime.block_on(async {
        let told = rejects.subscribe("ranktree.rejects.*").await.expect("it is sent");
        rejects.flush().await.expect("the server answers");
        told
    });
    let context = runtime.block_on(async { jetstream::new(game.clone()) });
    let job = json!({ "board": "arena", "member": member, "score": 7 });
    let sequence = runtime.block_on(publish(&context, SUBJECT, &job));
    let http = scene.node.client();
    wait_applied(&http, &[sequence, applied(&http, 1)]);
    assert_eq!(http.get(&entry_path("arena", member)).1["score"], 7);
    let sequence = runtime.block_on(publish(&context, SUBJECT, &json!("no job")));
    let reject = runtime.block_on(async { timeout(PATIENCE, told.next()).await });
    let reject: Value =
        serde_json::from_slice(&reject.expect("in time").expect("one").payload).expect("JSON");
    assert_eq!((&reject["reason"], &reject["sequence"]), (&json!("malformed"), &json!(sequence)));
    scene.end();
}

#[test]
fn game_services_have_jobs_written_and_their_answers_go_nowhere_else() {
    let scene = Scene::new();
    let Scene { runtime, game, rejects, member, .. } = &scene;
    let job = json!({ "board": "arena", "member": member, "score": 7 }).to_string();
    let ask = |client: &Client, patience: Duration| {
        let asked = client.request("ranktree.write.0", job.clone().into());
        let answer = runtime.block_on(async { timeout(patience, asked).await });
        let body = answer.ok().and_then(Result::ok).map(|answer| answer.payload);
        body.map(|body| serde_json::from_slice::<Value>(&body).expect("it is JSON"))
    };
    let mut answer = None;
    wait_until("a node answers", || {
        answer = ask(game, PATIENCE);
        answer.is_some()
    });
    let results = answer.unwrap_or_default()["results"].clone();
    assert_eq!(results[0]["entry"]["score"], 7, "{results}");
    let before = scene.ends();
    assert_eq!(ask(rejects, NO_ANSWER), None, "who listens to rejects writes nothing");
    runtime.block_on(async {
        for reply in ["ranktree.control.0", "ranktree.boards.arena", "$JS.API.STREAM.PURGE.RANKTREE_JOBS_0"] {
            let sent = game.publish_with_reply("ranktree.write.0", reply, job.clone().into());
            sent.await.expect("it is sent");
        }
    });
    // Answered behind them.
    assert!(ask(game, PATIENCE).is_some());
    let after = scene.ends();
    assert!(after[0] > before[0] && after[0] <= before[0] + 4, "{after:?}");
    assert_eq!(after[1..], before[1..]);
    let first = runtime.block_on(async {
        let stream = scene.looking.get_stream("RANKTREE_JOBS_0").await.expect("it is there");
        stream.cached_info().state.first_sequence
    });
    assert!(first <= before[0] + 1, "nothing was purged on the game service's word: {first}");
    assert!(!scene.node.log().contains("ermissions"), "{}", scene.node.log());
    scene.end();
}

#[test]
fn game_services_can_publish_nothing_but_jobs() {
    let scene = Scene::new();
    let Scene { runtime, game, rejects, .. } = &scene;
    let before = scene.ends();
    runtime.block_on(async {
        for (subject, body) in [
            ("ranktree.control.0", "{}"),
            ("ranktree.boards.arena", "{}"),
            ("ranktree.rejects.0", "{}"),
            ("ranktree.copy.a.0", "{}"),
            ("$KV.RANKTREE_NODES.a", "{}"),
            ("$KV.RANKTREE_FLOORS.a.0", "{}"),
            ("ranktree.jobs", "{}"),
            ("ranktree.jobs.0.more", "{}"),
            ("$JS.API.INFO", ""),
            ("$JS.API.STREAM.NAMES", ""),
            ("$JS.API.STREAM.INFO.RANKTREE_JOBS_0", ""),
            ("$JS.API.STREAM.PURGE.RANKTREE_JOBS_0", ""),
            ("$JS.API.STREAM.DELETE.RANKTREE_JOBS_0", ""),
            ("$JS.API.STREAM.MSG.GET.RANKTREE_JOBS_0", "{\"seq\":1}"),
            ("$JS.API.STREAM.MSG.DELETE.RANKTREE_JOBS_0", "{\"seq\":1}"),
            ("$JS.API.DIRECT.GET.RANKTREE_JOBS_0", "{\"seq\":1}"),
            ("$JS.API.STREAM.CREATE.MINE", "{\"name\":\"MINE\",\"subjects\":[\"mine\"]}"),
            (
                "$JS.API.CONSUMER.CREATE.RANKTREE_JOBS_0",
                "{\"stream_name\":\"RANKTREE_JOBS_0\",\"config\":{}}",
            ),
        ] {
            for client in [game, rejects] {
                let answer = timeout(NO_ANSWER, client.request(subject, body.into())).await;
                assert!(!matches!(answer, Ok(Ok(_))), "{subject} is answered: {answer:?}");
            }
        }
        let answer = timeout(NO_ANSWER, rejects.request(SUBJECT, "{}".into())).await;
        assert!(!matches!(answer, Ok(Ok(_))), "who listens to rejects publishes nothing: {answer:?}");
    });
    assert_eq!(scene.ends(), before);
    // A reply cannot reach that subject, either: it stays in the account of the client that asked.
    runtime.block_on(async {
        for reply in [
            "ranktree.control.0",
            "ranktree.boards.arena",
            "ranktree.rejects.0",
            "$JS.API.STREAM.PURGE.RANKTREE_JOBS_0",
        ] {
            game.publish_with_reply(SUBJECT, reply, "no job".into()).await.expect("it is sent");
        }
        game.flush().await.expect("the server answers");
    });
    // Those four messages were normal jobs. Each is rejected once.
    wait_until("they are rejected", || scene.ends()[3] >= before[3] + 4);
    assert_eq!(scene.ends(), [before[0] + 4, before[1], before[2], before[3] + 4]);
    assert_eq!(scene.node.client().get("/v1/boards/arena").0, 200);
    scene.end();
}

/// A node's user can read the number of shards from the stream. A game service may only publish, so it has to
/// be given the number.
#[test]
fn a_load_needs_no_more_permissions_than_a_node_or_a_game_service_has() {
    let server = Secured::start(&shipped());
    let mut node = start_node(&server);
    let url = server.url();
    for (user, more) in [("node", &[][..]), ("game", &["--shards", "2"])] {
        let password = server.file(&format!("{user}-password"), &format!("{user}-secret"));
        let who = ["--nats", &url, "--nats-user", user, "--nats-password-file", &password];
        let mut load = command();
        load.args(["load", "--json", "--jobs", "200", "--jobs-per-message", "10"]).args(who).args(more);
        let output = load.output().expect("the binary can be started");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{user}: {words}");
        let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!((&summary["writes"]["jobs"], &summary["workload"]["shards"]), (&json!(200), &json!(2)));
        assert_eq!(summary["errors"], json!([]), "{user}");
    }
    assert!(node.terminate().success());
    node.verify();
}

#[test]
fn nobody_receives_messages_beyond_their_permissions() {
    let scene = Scene::new();
    let Scene { runtime, game, rejects, member, .. } = &scene;
    let heard = runtime.block_on(async {
        let mut heard = Vec::new();
        for client in [game, rejects] {
            for subject in [
                ">",
                "_INBOX.>",
                "_INBOX.node.>",
                "_INBOX.ranktree.>",
                "ranktree.jobs.*",
                "ranktree.control.*",
                "ranktree.copy.*.*",
                "$JS.>",
            ] {
                heard.push(client.subscribe(subject).await.expect("it is sent"));
            }
            client.flush().await.expect("the server answers");
        }
        heard
    });
    let http = scene.node.client();
    let path = format!("{}?wait=applied", entry_path("arena", member));
    assert_eq!(http.put(&path, &json!({ "score": 9 })).0, 200);
    assert_eq!(http.put("/v1/boards/another", &json!({})).0, 201);
    runtime.block_on(async {
        for client in [game, rejects] {
            client.flush().await.expect("the server answers");
        }
        for mut heard in heard {
            let message = timeout(NO_ANSWER, heard.next()).await;
            assert!(!matches!(message, Ok(Some(_))), "{message:?}");
        }
    });
    scene.end();
}
