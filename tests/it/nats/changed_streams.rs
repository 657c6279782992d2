//! Someone changes or deletes a stream while a node runs: the node says so, publishes nothing into a stream
//! that loses messages, and creates the stream of rejects again.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use serde_json::{Value, json};

use crate::support::arena::{STREAM, define, publish};
use crate::support::client::Client;
use crate::support::nats::{Nats, shard_status, wait_applied, wait_until};
use crate::support::node::Node;
use crate::support::raw::get;

const REJECTS: &str = "RANKTREE_REJECTS";
const PATH: &str = "/v1/boards/arena/members/m?wait=applied";

fn reason(client: &Client) -> String {
    shard_status(client, 0)["stream"]["reason"].as_str().unwrap_or_default().to_owned()
}

fn is_degraded(node: &Node) -> bool {
    let said = get(node.address(), "/readyz");
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    said.contains("ready, degraded")
}

#[test]
fn settings_that_are_changed_under_a_node_are_reported_and_those_that_lose_messages_stop_writes() {
    let nats = Nats::start();
    let node = Node::with_nats(&nats).start();
    let client = node.client();
    define(&client, &json!({}));
    let good = nats.info(STREAM).config;
    let changed: [(Config, &str, bool); 6] = [
        (Config { discard: DiscardPolicy::Old, ..good.clone() }, "it discards old messages", true),
        (Config { max_age: Duration::from_secs(86_400), ..good.clone() }, "(max_age)", true),
        (Config { max_messages_per_subject: 1_000, ..good.clone() }, "(max_msgs_per_subject)", true),
        (Config { max_message_size: 100_000, ..good.clone() }, "(max_msg_size)", false),
        (Config { allow_rollup: true, ..good.clone() }, "(allow_rollup_hdrs is on)", false),
        (
            Config { metadata: [("ranktree-shards".to_owned(), "7".to_owned())].into(), ..good.clone() },
            "ranktree-shards",
            false,
        ),
    ];
    for (config, words, refuses) in changed {
        nats.update(&config);
        wait_until("the node says what is wrong", || reason(&client).contains(words));
        assert!(is_degraded(&node), "{words}");
        assert_eq!(client.get("/v1/status").1["degraded"], true, "{words}");
        let said = reason(&client);
        assert!(said.contains(STREAM) && said.contains("change it back"), "{said}");
        assert!(node.log().contains(words), "{}", node.log());
        let (status, answer) = client.put(PATH, &json!({ "score": 1 }));
        if refuses {
            assert_eq!(status, 503, "{answer}");
            assert!(answer["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{answer}");
        } else {
            assert_eq!(status, 200, "{answer}");
        }
        // What others publish is applied.
        wait_applied(&client, &[publish(&nats, "other")]);
        nats.update(&good);
        wait_until("nothing is wrong any more", || !is_degraded(&node));
        let (status, answer) = client.put(PATH, &json!({ "score": 2 }));
        assert_eq!(status, 200, "{words}: {answer}");
    }
    let errors =
        node.log().lines().filter(|line| line.contains("the stream of jobs cannot be relied on")).count();
    assert_eq!(errors, 6, "one line for each: {}", node.log());
}

#[test]
fn deleted_stream_of_rejects_is_reported_created_again_and_used() {
    let nats = Nats::start();
    let node = Node::with_nats(&nats).start();
    let client = node.client();
    define(&client, &json!({}));
    let reject = || publish_bad(&client);
    reject();
    wait_until("it is published", || nats.try_info(REJECTS).is_some_and(|info| info.state.messages == 1));
    nats.delete(REJECTS);
    reject();
    wait_until("the node says so", || reason(&client).contains(REJECTS) && is_degraded(&node));
    wait_until("it is there again", || nats.try_info(REJECTS).is_some());
    wait_until("what was not published yet is published", || nats.info(REJECTS).state.messages == 1);
    wait_until("nothing is wrong any more", || !is_degraded(&node));
    let log = node.log();
    let lines = log.lines().filter(|line| line.contains("WARN") && line.contains("reject")).count();
    assert!((1..=6).contains(&lines), "{lines} lines: {log}");
    assert!(log.contains("was created again"), "{log}");
}

fn publish_bad(client: &Client) {
    let (_, answer) =
        client.post("/v1/jobs?wait=applied", &json!([{ "board": "arena", "member": "m", "score": [1, 2] }]));
    assert_ne!(answer, Value::Null);
}
