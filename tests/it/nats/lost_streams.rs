//! A stream of jobs is gone, or was made again, and a node without data of its shard starts: it makes no
//! stream and takes none up that another owner's data contradict, until an operator says so.

use serde_json::{Value, json};

use crate::support::arena::{STREAM, SUBJECT, define, publish};
use crate::support::client::{Client, count_of, entry_path};
use crate::support::nats::{Nats, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::{Node, NodeSetup};

fn named(nats: &Nats, name: &str, own: &str) -> NodeSetup {
    let soon = ["--checkpoint-seconds", "1", "--nats-halt-seconds", "1"];
    Node::with_nats(nats).shards(1).stream_mib(64).flags(&["--node", name, "--own", own]).flags(&soon)
}

fn members(client: &Client) -> (u16, usize, Value) {
    let (status, answer) = client.get("/v1/boards/arena/top?limit=1000");
    let members = answer["entries"].as_array().map_or(0, Vec::len);
    (status, members, answer["stale"].clone())
}

#[test]
fn a_node_without_data_makes_no_stream_and_takes_none_up_that_another_owner_contradicts() {
    let nats = Nats::start();
    // Owners that are equally behind are asked by name, so the empty one would be asked first.
    let mut full = named(&nats, "full", "0").start();
    define(&full.client(), &json!({ "policy": "incr" }));
    let last = (0..50).map(|number| publish(&nats, &format!("m{number}"))).last().expect("some");
    wait_applied(&full.client(), &[last]);
    let floor = || nats.last_of("KV_RANKTREE_FLOORS", "$KV.RANKTREE_FLOORS.full.0");
    wait_until("its checkpoint is said", || floor().is_some_and(|floor| count_of(&floor["sequence"]) > 0));
    let config = nats.info(STREAM).config;
    nats.delete(STREAM);
    let reason = wait_state(&full.client(), 0, "halted");
    assert!(reason.contains("does not exist any more"), "{reason}");

    let mut empty = named(&nats, "empty", "0").start();
    let reader = named(&nats, "reader", "none").start();
    let reason = wait_state(&empty.client(), 0, "halted");
    assert!(reason.contains("does not exist any more"), "{reason}");
    assert!(nats.try_info(STREAM).is_none(), "no node makes it again");
    // Somebody else does.
    nats.create(config);
    wait_until("it says what is wrong", || {
        let reason = wait_state(&empty.client(), 0, "halted");
        reason.contains("the node full") && reason.contains("start full with --accept-gap 0")
    });
    for _ in 0..2 {
        publish(&nats, "new");
        wait_until("the node that has the data is asked", || {
            members(&reader.client()) == (200, 50, json!(true))
        });
        // It is as it was after a restart.
        empty.kill9();
        empty.restart();
        wait_state(&empty.client(), 0, "halted");
    }
    // Nobody who has the shard's data answers, and the empty node does not say that there is no such member.
    let (status, answer) = empty.client().get(&entry_path("arena", "new"));
    assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{answer}");

    assert!(full.terminate().success());
    full.restart_with(&["--accept-gap", "0"]);
    wait_state(&full.client(), 0, "live");
    wait_state(&empty.client(), 0, "live");
    for node in [&full, &empty, &reader] {
        wait_until("it has all members", || members(&node.client()) == (200, 51, Value::Null));
    }
    for node in [&mut empty, &mut full] {
        assert!(node.terminate().success());
        node.verify();
    }
}

/// A token with a sequence that an owner has applied already would be satisfied at once.
#[test]
fn a_write_into_a_stream_that_was_made_again_gets_no_token() {
    let nats = Nats::start();
    let full = named(&nats, "full", "0").start();
    define(&full.client(), &json!({ "policy": "incr" }));
    let last = (0..50).map(|_| publish(&nats, "m1")).last().expect("some");
    wait_applied(&full.client(), &[last]);
    let reader = named(&nats, "reader", "none").start();
    let client = reader.client();
    wait_until("the owner is known", || {
        shard_status(&client, 0)["owners"][0]["applied_sequence"].as_u64() > Some(50)
    });
    let write = |client: &Client| client.put(&entry_path("arena", "m1"), &json!({ "score": 1 }));
    assert_eq!(write(&client).0, 202);
    let config = nats.info(STREAM).config;
    nats.delete(STREAM);
    nats.create(config);
    let (status, answer) = write(&client);
    assert_eq!((status, &answer["code"], answer.get("token")), (503, &json!("commit_unknown"), None));
    let detail = answer["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("the node full") && detail.contains("was created again"), "{detail}");
    // The owner itself may have noticed by now.
    let (status, answer) = write(&full.client());
    assert_eq!((status, answer.get("token")), (503, None), "{answer}");
    wait_state(&full.client(), 0, "halted");
}

#[test]
fn a_node_without_data_begins_anew_if_its_operator_says_so() {
    let nats = Nats::start();
    let mut gone = named(&nats, "gone", "0").start();
    define(&gone.client(), &json!({}));
    for number in 0..20 {
        publish(&nats, &format!("m{number}"));
    }
    let last = nats.publish(SUBJECT, "no job");
    wait_applied(&gone.client(), &[last]);
    let rejects = || nats.info("RANKTREE_REJECTS").state.messages;
    wait_until("the reject is published", || rejects() == 1);
    let floors = || nats.try_info("KV_RANKTREE_FLOORS").map_or(0, |info| info.state.messages);
    wait_until("its floor is stored", || floors() > 0);
    gone.kill9();
    nats.delete(STREAM);
    let mut anew = named(&nats, "anew", "0").flags(&["--accept-gap", "0"]).start();
    wait_state(&anew.client(), 0, "live");
    let bad = nats.publish(SUBJECT, "no job");
    assert!(bad < last, "its sequence stood for another job");
    wait_until("the reject is published although its sequence is lower", || rejects() == 2);
    let last = publish(&nats, "m2");
    wait_applied(&anew.client(), &[last]);
    wait_until("its floor is stored", || floors() > 1);
    assert!(anew.terminate().success());
    anew.verify();
    // The stream is its own from now on, also for others that are new.
    let next = named(&nats, "next", "0").start();
    wait_state(&next.client(), 0, "live");
    wait_applied(&next.client(), &[last]);
    assert_eq!(rejects(), 2, "each once");
}
