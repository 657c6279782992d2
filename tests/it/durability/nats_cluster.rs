//! Three replicated servers that are killed one after the other: the leader of a stream, the server that the
//! service reads from, any server.
//!
//! Messages that a server had not acknowledged may be lost, or stored in another order. Acknowledged messages
//! are there and counted once: by the service that ran through all kills, and by a replica that reads
//! everything afterwards.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::entry_path;
use crate::support::counting::{BOARD, Retries, check, count_up};
use crate::support::nats::{shard_status, wait_applied, wait_until};
use crate::support::nats_cluster::{Cluster, SERVERS};
use crate::support::node::Node;
use crate::support::random::Random;
use crate::support::rounds::rounds;

const SHARDS: u16 = 2;
const ROUNDS: [u64; 3] = [3, 9, 18];
const RACES: usize = 12;
const RUN_TIME_MS: (u64, u64) = (200, 900);
const DOWN_MS: (u64, u64) = (50, 1_500);
/// The settings of created streams.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

#[test]
fn messages_acknowledged_by_a_cluster_count_once_whichever_server_is_killed() {
    let (mut random, rounds) = (Random::seeded(), rounds(ROUNDS));
    let mut cluster = Cluster::start();
    let urls = cluster.urls();
    let setup = || {
        Node::with_nats(&urls).shards(SHARDS).stream_mib(64).flags(&[
            "--nats-replicas",
            "3",
            "--nats-no-purge",
        ])
    };
    let mut service = setup().start();
    let (status, answer) = service.client().put(&format!("/v1/boards/{BOARD}"), &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");
    let streams: Vec<_> = (0..SHARDS).map(|shard| format!("RANKTREE_JOBS_{shard}")).collect();
    for stream in &streams {
        assert_eq!(cluster.info(stream).map(|info| info.config.num_replicas), Some(3));
    }
    let client = service.client();
    let counted = count_up(
        &urls,
        SHARDS,
        &[Retries::Version, Retries::MessageId],
        DUPLICATE_WINDOW,
        &mut random,
        |random, budget| {
            let between = |random: &mut Random, (from, to): (u64, u64)| {
                thread::sleep(Duration::from_millis(from + random.below(to - from)));
            };
            for round in 0..rounds {
                budget.refill();
                between(random, RUN_TIME_MS);
                let victim = match round % 3 {
                    0 => cluster.leader(random.pick::<String>(&streams)),
                    1 => *random.pick(&cluster.connected("ranktree consume")),
                    _ => *random.pick(&(0..SERVERS).collect::<Vec<_>>()),
                };
                cluster.kill9(victim);
                between(random, DOWN_MS);
                cluster.restart(victim, &streams);
                for shard in 0..usize::from(SHARDS) {
                    let status = shard_status(&client, shard);
                    assert_ne!(status["state"], "halted", "{status}");
                }
            }
        },
    );
    let ends: Vec<u64> = streams
        .iter()
        .map(|stream| cluster.info(stream).expect("all servers are up").state.last_sequence)
        .collect();
    wait_until("the service has taken NATS up again", || client.get("/readyz").0 == 200);
    wait_applied(&client, &ends);
    assert!(counted.messages > rounds, "{} messages in {rounds} rounds", counted.messages);
    check(&client, &counted);

    let mut replica = setup().start();
    wait_applied(&replica.client(), &ends);
    check(&replica.client(), &counted);
    for member in counted.members.keys() {
        let path = entry_path(BOARD, member);
        assert_eq!(replica.client().get(&path), client.get(&path), "the two are replicas");
    }
    for service in [&mut service, &mut replica] {
        assert!(service.terminate().success());
        service.verify();
    }
}

/// A cluster's leader refuses the second of two concurrent records with another code than a single server,
/// and it does so before the first record can be read.
#[test]
fn define_races_on_replicated_streams_have_one_winner() {
    const TIES: [&str; 3] = ["first", "last", "member"];
    let cluster = Cluster::start();
    let mut nodes = TIES
        .map(|_| Node::with_nats(&cluster.urls()).stream_mib(64).flags(&["--nats-replicas", "3"]).start());
    for round in 0..RACES {
        let path = format!("/v1/boards/b{round}");
        let at_once = Barrier::new(nodes.len());
        let send = |node: &Node, method: Method, body: Option<Value>| {
            let client = node.client();
            // The connection exists before the race begins.
            assert_eq!(client.get("/readyz").0, 200);
            at_once.wait();
            client.send(method, &path, body.as_ref()).expect("it answers")
        };
        let defined = thread::scope(|scope| {
            let defining = nodes.each_ref().into_iter().zip(TIES).map(|(node, ties)| {
                scope.spawn(move || send(node, Method::PUT, Some(json!({ "ties": ties }))))
            });
            let defining: Vec<_> = defining.collect();
            defining.into_iter().map(|defining| defining.join().expect("no panic")).collect::<Vec<_>>()
        });
        let won: Vec<_> = defined.iter().zip(TIES).filter(|((status, _), _)| *status == 201).collect();
        let [(_, ties)] = won[..] else { panic!("one is first: {defined:?}") };
        assert!(defined.iter().all(|(status, _)| [201, 409].contains(status)), "{defined:?}");
        let known = nodes.each_ref().map(|node| {
            let mut board = Value::Null;
            wait_until("the node has heard of the board", || {
                board = node.client().get(&path).1;
                board["ties"] != Value::Null
            });
            board["ties"].clone()
        });
        assert!(known.iter().all(|known| known == ties), "{known:?}, and {ties} was first");
        let dropped = thread::scope(|scope| {
            let dropping = nodes.each_ref().map(|node| scope.spawn(move || send(node, Method::DELETE, None)));
            dropping.map(|dropping| dropping.join().expect("no panic").0)
        });
        assert!(dropped.iter().all(|status| [200, 404].contains(status)), "{dropped:?}");
        // A node that finds another node's drop in progress completes it, and answers 200 as well.
        assert!(dropped.contains(&200), "{dropped:?}");
        for node in &nodes {
            wait_until("the board is gone", || node.client().get(&path).0 == 404);
        }
    }
    for node in &mut nodes {
        assert!(node.terminate().success());
        node.verify();
    }
}

#[test]
fn streams_are_created_once_the_cluster_has_the_servers_for_their_replicas() {
    let mut cluster = Cluster::start();
    let absent = SERVERS - 1;
    cluster.kill9(absent);
    let mut service =
        Node::with_nats(&cluster.urls()).stream_mib(64).flags(&["--nats-replicas", "3"]).start();
    let client = service.client();
    // Some servers do not notice for a minute or more that the third one is missing, and place a replica on
    // it nevertheless.
    wait_until("the service says why it is not ready, or is", || {
        let reason = shard_status(&client, 0)["reason"].as_str().unwrap_or_default().to_owned();
        reason.contains("cannot be created") || client.get("/readyz").0 == 200
    });
    cluster.restart(absent, &[]);
    wait_until("the streams are created", || client.get("/readyz").0 == 200);
    assert_eq!(cluster.info("RANKTREE_JOBS_0").map(|info| info.config.num_replicas), Some(3));
    assert!(service.terminate().success());
}
