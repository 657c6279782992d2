//! One shard that NATS feeds, and its board `arena`: what tests of streams begin and end with.

use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;

/// The stream of the only shard, and the subject that its jobs are published to.
pub const STREAM: &str = "RANKTREE_JOBS_0";
pub const SUBJECT: &str = "ranktree.jobs.0";

/// Until then the streams may still be on their way to being created: a service waits only so long for them.
pub fn define(client: &Client, definition: &Value) {
    wait_until("the board is defined", || {
        let (status, answer) = client.put("/v1/boards/arena", definition);
        assert!(matches!(status, 200 | 201 | 503), "{answer}");
        status != 503
    });
}

/// A job that scores 1, as a message.
pub fn job_of(member: &str) -> String {
    json!({ "board": "arena", "member": member, "score": 1 }).to_string()
}

pub fn publish(nats: &Nats, member: &str) -> u64 {
    nats.publish(SUBJECT, job_of(member))
}

pub fn is_there(client: &Client, member: &str) -> bool {
    client.get(&entry_path("arena", member)).0 == 200
}

/// Ends a service that never halted, and has its data looked at.
pub fn end_unhalted(mut service: Node) {
    assert!(service.terminate().success());
    assert!(!service.log().contains("is halted"), "{}", service.log());
    service.verify();
}
