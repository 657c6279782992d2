//! One owner of a shard publishes its rejects. When it is gone another one goes on where it ended.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::arena::SUBJECT;
use crate::support::nats::{Nats, wait_applied, wait_state, wait_until};
use crate::support::node::Node;

const REJECTS: &str = "RANKTREE_REJECTS";
const MESSAGES: u64 = 1_000;

fn published(nats: &Nats) -> u64 {
    nats.info(REJECTS).state.messages
}

fn place(reject: &Value) -> (u64, u64) {
    (reject["sequence"].as_u64().expect("a number"), reject["index"].as_u64().expect("a number"))
}

#[test]
fn a_publisher_that_is_killed_has_published_each_reject_once_with_the_one_that_follows_it() {
    let nats = Nats::start();
    let start = |name| Node::with_nats(&nats).stream_mib(64).flags(&["--node", name]).start();
    let (mut a, mut b) = (start("a"), start("b"));
    for node in [&a, &b] {
        wait_state(&node.client(), 0, "live");
    }
    let mut places = BTreeSet::new();
    let mut refuse = |messages| {
        places.extend((0..messages).map(|_| (nats.publish(SUBJECT, "no job"), 0)));
    };
    // Some are published by the first one, and some not: they follow each other faster than they are
    // published, and some come later.
    wait_until("the first ones are published", || {
        refuse(MESSAGES / 20);
        published(&nats) > 0
    });
    a.kill9();
    refuse(MESSAGES / 2);
    let refused = u64::try_from(places.len()).expect("small");
    wait_until("all are published", || published(&nats) >= refused);
    // The first one is back, and publishes what comes now.
    a.restart();
    wait_state(&a.client(), 0, "live");
    let last = nats.publish(SUBJECT, "no job");
    places.insert((last, 0));
    for node in [&a, &b] {
        wait_applied(&node.client(), &[last]);
    }
    wait_until("the last one is published", || {
        let end = nats.info(REJECTS).state.last_sequence;
        nats.message(REJECTS, end)["sequence"] == last
    });
    let count = usize::try_from(published(&nats)).expect("small");
    let told: Vec<_> = nats.messages(REJECTS, 1, count).iter().map(place).collect();
    assert_eq!(told.len(), places.len(), "each is told once");
    assert!(told.iter().copied().eq(places), "and in their order");
    for node in [&mut a, &mut b] {
        assert!(node.terminate().success());
        node.verify();
    }
}
