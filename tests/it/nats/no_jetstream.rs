//! A server without JetStream is reported once, and the report says what to do.

use std::thread;
use std::time::{Duration, Instant};

use crate::support::nats::wait_until;
use crate::support::nats_server::NatsServer;
use crate::support::node::Node;

#[test]
fn a_server_without_jetstream_is_reported_once() {
    let server = NatsServer::start(&[]);
    let started = Instant::now();
    let service = Node::with_nats(&server.url()).shards(2).start();
    let is_told = || {
        service.client().get("/v1/status").1["shards"][1]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("nats-server with -js"))
    };
    wait_until("status says what to do", is_told);
    // Several of each loop's attempts.
    thread::sleep(Duration::from_secs(3));
    let log = service.log();
    // Each shard's state changes once, which is told as such.
    let warns = |line: &&str| line.contains(" WARN ") && line.contains("nats-server with -js");
    let told = log.lines().filter(warns).count();
    // Twice a second by each of four loops, were it not for that.
    let most = 1 + usize::try_from(started.elapsed().as_secs() / 30).expect("small");
    assert!((1..=most).contains(&told), "{told} times: {log}");
    assert!(!log.contains("resource does not exist"), "{log}");
}
