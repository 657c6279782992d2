//! A server that does not answer, although its connections are open: clients change to another server.
//!
//! The test prints how long that takes, but does not assert it: a cluster elects new leaders in four to nine
//! seconds, and the machine may be busy.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::arena::{STREAM, SUBJECT, define, end_unhalted, is_there, job_of};
use crate::support::client::{Client, entry_path};
use crate::support::command::signal;
use crate::support::nats::{Nats, Publisher, shard_status, wait_applied, wait_until};
use crate::support::nats_cluster::{Cluster, SERVERS};
use crate::support::node::Node;
use crate::support::slow_link::SlowLink;

const PURPOSES: [&str; 3] = ["ranktree consume", "ranktree publish", "ranktree manage"];
/// A publisher that waits longer tries again, and waits so much longer then.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// Publishes a score until it is stored, and waits until it is visible.
fn publish(publisher: &Publisher, client: &Client, member: &str) {
    let body = job_of(member);
    let (mut stored, mut patience) = (None, Duration::ZERO);
    wait_until("it is stored", || {
        patience += ANSWER_WITHIN;
        stored = publisher.publish_as(member, SUBJECT, &body, patience);
        stored.is_some()
    });
    wait_applied(client, &[stored.expect("it was just seen")]);
    assert!(is_there(client, member));
}

/// Writes a score over HTTP until the write succeeds.
fn write(client: &Client, member: &str) {
    let path = format!("{}?wait=applied", entry_path("arena", member));
    wait_until("a write is taken", || client.put(&path, &json!({ "score": 1 })).0 == 200);
}

#[test]
fn connections_leave_a_frozen_server_and_jobs_continue_through_the_others() {
    let cluster = Cluster::start();
    let service = Node::with_nats(&cluster.urls()).stream_mib(64).flags(&["--nats-replicas", "3"]).start();
    let client = service.client();
    define(&client, &json!({}));
    // Each of the three leads the stream, or feeds the service, or neither.
    for frozen in 0..SERVERS {
        write(&client, &format!("before-{frozen}"));
        let leads = cluster.leader(STREAM) == frozen;
        let held: Vec<_> =
            PURPOSES.into_iter().filter(|name| cluster.connected(name).contains(&frozen)).collect();
        let publisher = Publisher::connect(&cluster.urls_without(frozen));
        cluster.freeze(frozen);
        let started = Instant::now();
        publish(&publisher, &client, &format!("published-{frozen}"));
        let visible = started.elapsed();
        write(&client, &format!("written-{frozen}"));
        let writable = started.elapsed();
        for name in PURPOSES {
            wait_until("it is connected elsewhere", || {
                !cluster.connected_without(name, Some(frozen)).is_empty()
            });
        }
        println!(
            "frozen: server {frozen}, leader {leads}, of {held:?}: visible after {visible:?}, writable {writable:?}"
        );
        cluster.thaw(frozen, &[STREAM.to_owned()]);
    }
    let status = shard_status(&client, 0);
    assert_eq!(status["state"], "live", "{status}");
    end_unhalted(service);
}

#[test]
fn connections_leave_a_server_whose_packets_are_dropped() {
    let nats = Nats::start();
    let url = nats.url();
    let links = [(); 2].map(|()| SlowLink::start(url.strip_prefix("nats://").expect("a URL"), 0));
    let urls = links.each_ref().map(|link| format!("nats://{}", link.address())).join(",");
    let service = Node::with_nats(&urls).start();
    let client = service.client();
    define(&client, &json!({}));
    let publisher = nats.publisher();
    // After the first round all connections use the second server, so all of them have to leave it.
    for (number, link) in links.iter().enumerate() {
        link.drop_all(true);
        let started = Instant::now();
        publish(&publisher, &client, &format!("published-{number}"));
        let visible = started.elapsed();
        write(&client, &format!("written-{number}"));
        println!("packets dropped: visible after {visible:?}, writable {:?}", started.elapsed());
        wait_until("boards can be defined", || {
            client.put(&format!("/v1/boards/b{number}"), &json!({})).0 / 100 == 2
        });
        link.drop_all(false);
    }
    end_unhalted(service);
}

/// A node that owns all shards is stopped, and what it could not see is published meanwhile. Requests that
/// came while it was stopped, and those right after, are answered whole, or marked stale: a node that was
/// away is live by all that it knows.
#[test]
fn an_answer_after_a_freeze_is_whole_or_marked_stale() {
    const SHARDS: u16 = 3;
    let nats = Nats::start();
    let service = Node::with_nats(&nats).shards(SHARDS).stream_mib(64).start();
    let client = service.client();
    define(&client, &json!({ "policy": "incr" }));
    let jobs = |count: usize| -> Vec<_> {
        (0..count)
            .map(|n| json!({ "board": "arena", "member": format!("m{}", n % 100), "score": 1 }))
            .collect()
    };
    let mut published: i64 = 100;
    wait_applied(&client, &nats.publish_jobs(SHARDS, &jobs(100), 1));
    let (mut whole, mut marked) = (0, 0);
    for _ in 0..3 {
        signal("STOP", service.pid());
        published += 9_000;
        let last = nats.publish_jobs(SHARDS, &jobs(9_000), 1);
        // Longer than a process that is only slow takes.
        let stopped = Instant::now();
        wait_until("it was stopped for long", || stopped.elapsed() > Duration::from_secs(2));
        let base = service.base().to_owned();
        let asking: Vec<_> = (0..12)
            .map(|reader| {
                let base = base.clone();
                std::thread::spawn(move || {
                    let client = Client::new(&base);
                    let path =
                        ["/v1/boards/arena/top?limit=100", "/v1/boards/arena/top?limit=1000"][reader % 2];
                    (0..20).map(|_| client.get(path)).collect::<Vec<_>>()
                })
            })
            .collect();
        signal("CONT", service.pid());
        for asking in asking {
            for (status, answer) in asking.join().expect("it does not panic") {
                assert_eq!(status, 200, "{answer}");
                let entries = answer["entries"].as_array().expect("entries");
                let sum: i64 = entries.iter().map(|entry| entry["score"].as_i64().expect("a score")).sum();
                if answer["stale"] == true {
                    marked += 1;
                } else {
                    assert_eq!(sum, published, "unmarked, and from before it was stopped");
                    whole += 1;
                }
            }
        }
        wait_applied(&client, &last);
        wait_until("it is level again", || client.get("/v1/boards/arena/top").1["stale"].is_null());
    }
    println!("{whole} answers were whole, and {marked} were marked stale");
    end_unhalted(service);
}
