//! With the configuration of NATS that the repository ships, nobody reads the answers to others, and nobody
//! is taken for another nats-server, which no permissions bind.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use async_nats::jetstream;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::command::command;
use crate::support::nats::{wait_state, wait_until};
use crate::support::nats_server::free_port;
use crate::support::node::Node;
use crate::support::secured::{Secured, shipped};

const PATIENCE: Duration = Duration::from_secs(60);

/// The shipped configuration with another game service, made as it says: a copy with a name, a password and
/// an inbox of its own.
fn with_another_game(name: &str) -> String {
    let config = shipped();
    let (start, end) = ("      {\n        # Publishes jobs", "\n      }\n");
    let block = &config[config.find(start).expect("there is a game service")..];
    let game = &block[..block.find(end).expect("it ends") + end.len()];
    let other = game
        .replace("user: game", &format!("user: {name}"))
        .replace("$RANKTREE_GAME_PASSWORD", &format!("{name}-secret"))
        .replace("_INBOX.game.>", &format!("_INBOX.{name}.>"));
    config.replacen(game, &format!("{game}{other}"), 1)
}

/// Starts a node, and waits until its write service answers.
fn start_node(server: &Secured, runtime: &Runtime) -> Node {
    let password = server.file("node-password", "node-secret");
    let log_in = ["--nats-user", "node", "--nats-password-file", &password];
    let node = Node::with_nats(&server.url()).flags(&log_in).start();
    wait_state(&node.client(), 0, "live");
    let game = runtime.block_on(server.connect("game"));
    wait_until("the write service answers", || {
        runtime.block_on(async { game.request("ranktree.write.0", "no job".into()).await.is_ok() })
    });
    node
}

#[test]
fn a_game_service_reads_no_answers_to_another() {
    let server = Secured::start(&with_another_game("shop"));
    let runtime = Runtime::new().expect("a runtime");
    let mut node = start_node(&server, &runtime);
    assert_eq!(node.client().put("/v1/boards/arena", &json!({})).0, 201);
    runtime.block_on(async {
        let (game, shop) = (server.connect("game").await, server.connect("shop").await);
        let mut heard = Vec::new();
        for subject in ["_INBOX.>", "_INBOX.*.>", "_INBOX.game.>", "_INBOX.game.*.*", "_INBOX.node.>", ">"] {
            heard.push((subject, shop.subscribe(subject).await.expect("it is sent")));
        }
        let job = json!({ "board": "arena", "member": "p42", "score": 7 }).to_string();
        // Answers of a stream and of a node. The last one is to the listener itself: what the server has sent
        // it before has arrived then.
        for client in [&game, &shop] {
            let context = jetstream::new(client.clone());
            let sent = context.publish("ranktree.jobs.0", job.clone().into()).await.expect("it is sent");
            sent.await.expect("it is stored");
            let answer = client.request("ranktree.write.0", job.clone().into()).await.expect("an answer");
            let answer: Value = serde_json::from_slice(&answer.payload).expect("it is JSON");
            assert_eq!(answer["results"][0]["entry"]["score"], 7, "{answer}");
        }
        for (subject, mut heard) in heard {
            let message = heard.next().now_or_never().flatten();
            assert!(message.is_none(), "{subject} brings {message:?}");
        }
    });
    assert!(node.terminate().success());
    assert!(!node.log().contains("ermissions"), "{}", node.log());
}

#[test]
fn an_inbox_that_the_user_may_not_read_is_reported_with_the_setting() {
    let server = Secured::start(&shipped());
    let runtime = Runtime::new().expect("a runtime");
    let mut node = start_node(&server, &runtime);
    let (url, password) = (server.url(), server.file("game-password", "game-secret"));
    let who = ["--nats", &url, "--nats-user", "game", "--nats-password-file", &password, "--shards", "1"];
    let load = |more: &[&str]| {
        let mut load = command();
        let output = load.args(["load", "--json", "--jobs", "1"]).args(who).args(more).output();
        let output = output.expect("the binary can be started");
        let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        (output.status.code(), summary)
    };
    for via in ["stream", "service"] {
        let (code, summary) = load(&["--via", via, "--nats-inbox-prefix", "_INBOX.node"]);
        let detail = summary["errors"][0]["detail"].as_str().unwrap_or_default();
        assert_eq!(code, Some(1), "{summary}");
        assert!(detail.contains("_INBOX.node.>") && detail.contains("--nats-inbox-prefix"), "{summary}");
        // Its own is the default.
        let (code, summary) = load(&["--via", via]);
        assert_eq!((code, &summary["errors"]), (Some(0), &json!([])), "{summary}");
    }
    assert!(node.terminate().success());
}

#[test]
fn nobody_is_taken_for_a_server_without_the_password() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/nats/cluster.conf");
    let config = fs::read_to_string(path).expect("the configuration is shipped");
    let (start, end) = ("\ncluster {", "\n}\n");
    let block = &config[config.find(start).expect("there is a cluster")..];
    let mut cluster = block[..block.find(end).expect("it ends") + end.len()].to_owned();
    let port = free_port();
    cluster = cluster.replace("0.0.0.0:6222", &format!("\"127.0.0.1:{port}\""));
    cluster = cluster.replace("$RANKTREE_ROUTE_PASSWORD", "route-secret");
    for number in 1..=3 {
        let route = format!("\"nats://route:route-secret@127.0.0.1:{port}\"");
        cluster = cluster.replace(&format!("$RANKTREE_ROUTE_{number}"), &route);
    }
    let _server = Secured::start(&format!("server_name: nats-1\n{cluster}{}", shipped()));
    for (known, expect) in [
        (json!({}), "Authorization Violation"),
        (json!({ "user": "route", "pass": "guess" }), "Authorization Violation"),
        (json!({ "user": "node", "pass": "node-secret" }), "Authorization Violation"),
        (json!({ "user": "route", "pass": "route-secret" }), "PONG"),
    ] {
        let mut stranger = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stranger.set_read_timeout(Some(PATIENCE)).expect("it is a time");
        let mut hello = json!({ "server_id": "STRANGER", "name": "stranger", "cluster": "ranktree" });
        for (name, value) in known.as_object().expect("it is one") {
            hello[name] = value.clone();
        }
        write!(stranger, "CONNECT {hello}\r\nPING\r\n").expect("it is sent");
        let (mut said, mut buffer) = (String::new(), vec![0; 65_536]);
        while !said.contains("-ERR") && !said.contains("PONG") {
            let read = stranger.read(&mut buffer).expect("an answer comes in time");
            if read == 0 {
                break;
            }
            said += &String::from_utf8_lossy(&buffer[..read]);
        }
        assert!(said.contains(expect), "with {known}: {said}");
    }
}
