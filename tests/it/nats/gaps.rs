//! Messages that only a consumer's server lacks are no gap. Messages that the stream's leader lacks are a
//! gap. A halt ends once the stream has them again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use crate::support::arena::{STREAM, define, end_unhalted, is_there, publish};
use crate::support::client::entry_path;
use crate::support::delivery_link::{Delivery, DeliveryLink};
use crate::support::nats::{Nats, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::Node;

const STREAM_MIB: u64 = 16;
/// For a test that waits for a halt.
const AT_ONCE: [&str; 2] = ["--nats-halt-seconds", "1"];

/// A service behind a link, with a board and one applied job; and the link's view of its consumers.
fn linked(nats: &Nats) -> (Node, DeliveryLink, Arc<Mutex<Vec<Delivery>>>) {
    let link = DeliveryLink::start(nats.url().strip_prefix("nats://").expect("a URL"));
    let seen: Arc<Mutex<Vec<Delivery>>> = Arc::default();
    let noting = Arc::clone(&seen);
    link.pass_if(move |delivery| {
        noting.lock().push(delivery.clone());
        true
    });
    let service = Node::with_nats(&link.url()).stream_mib(STREAM_MIB).start();
    define(&service.client(), &json!({}));
    wait_applied(&service.client(), &[publish(nats, "first")]);
    (service, link, seen)
}

#[test]
fn a_consumer_that_delivers_nothing_is_replaced() {
    let nats = Nats::start();
    let (service, link, seen) = linked(&nats);
    let client = service.client();
    let behind =
        seen.lock().iter().rfind(|delivery| delivery.stream == STREAM).expect("one").consumer.clone();
    // The consumer's server continues to send heartbeats, but no messages.
    link.pass_if(move |delivery| delivery.consumer != behind);
    wait_applied(&client, &[publish(&nats, "second")]);
    assert!(is_there(&client, "second"));
    wait_state(&client, 0, "live");
    end_unhalted(service);
}

#[test]
fn messages_that_consumers_skip_but_the_leader_has_are_not_a_gap() {
    let nats = Nats::start();
    let (service, link, _) = linked(&nats);
    let client = service.client();
    let (skipped, consumers) =
        (nats.info(STREAM).state.last_sequence + 1, Arc::new(Mutex::new(BTreeSet::new())));
    let withheld = Arc::clone(&consumers);
    // Four consumers in a row skip this message and deliver the next one.
    link.pass_if(move |delivery| {
        let mut consumers = withheld.lock();
        if delivery.stream != STREAM || delivery.stream_sequence != skipped {
            return true;
        }
        consumers.len() == 4 && !consumers.contains(&delivery.consumer) || {
            consumers.insert(delivery.consumer.clone());
            false
        }
    });
    assert_eq!(publish(&nats, "skipped"), skipped);
    wait_applied(&client, &[publish(&nats, "next")]);
    assert!(is_there(&client, "skipped") && is_there(&client, "next"));
    assert_eq!(consumers.lock().len(), 4);
    wait_state(&client, 0, "live");
    end_unhalted(service);
}

#[test]
fn messages_that_the_leader_lacks_halt_the_shard_until_the_operator_accepts_the_gap() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(STREAM_MIB).start();
    define(&service.client(), &json!({}));
    wait_applied(&service.client(), &[publish(&nats, "first")]);
    assert!(service.terminate().success());
    publish(&nats, "second");
    let missing = nats.publish("ranktree.control.0", "no command");
    let last = publish(&nats, "third");
    nats.purge_subject(STREAM, "ranktree.control.0");

    service.restart_with(&AT_ONCE);
    let client = service.client();
    let reason = wait_state(&client, 0, "halted");
    assert!(reason.contains(&format!("the message {missing} is missing")), "{reason}");
    assert!(reason.contains("--accept-gap 0"), "{reason}");
    assert!(is_there(&client, "second") && !is_there(&client, "third"));
    assert!(service.terminate().success());
    service.restart_with(&[&AT_ONCE[..], &["--accept-gap", "0"]].concat());
    wait_applied(&service.client(), &[last]);
    assert!(is_there(&service.client(), "third"));
    assert!(service.terminate().success());
    service.verify();
}

/// Moves a server's storage folder away, or back.
fn swap_store(nats: &mut Nats, aside: &Path) {
    nats.kill9();
    let (store, other) = (nats.store(), aside.with_extension("other"));
    let _ = fs::rename(&store, &other);
    if aside.exists() {
        fs::rename(aside, &store).expect("it can be moved back");
    }
    fs::rename(&other, aside).expect("it can be moved aside");
    nats.restart();
}

#[test]
fn a_missing_stream_is_waited_for_and_a_halt_ends_when_it_is_back() {
    let (mut nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let aside = folder.path().join("aside");
    // Longer than any test takes.
    let mut service =
        Node::with_nats(&nats).stream_mib(STREAM_MIB).flags(&["--nats-halt-seconds", "3600"]).start();
    let client = service.client();
    define(&client, &json!({}));
    wait_applied(&client, &[publish(&nats, "first")]);

    // Servers recover slowly, so a suspected gap does not halt the shard at once.
    swap_store(&mut nats, &aside);
    let mut reason = String::new();
    wait_until("the stream is missed", || {
        let status = shard_status(&client, 0);
        assert_ne!(status["state"], "halted", "{status}");
        reason = status["reason"].as_str().unwrap_or_default().to_owned();
        reason.contains("does not exist any more")
    });
    assert_eq!(client.put(&entry_path("arena", "x"), &json!({ "score": 1 })).0, 503);
    swap_store(&mut nats, &aside);
    wait_state(&client, 0, "live");
    wait_applied(&client, &[publish(&nats, "second")]);
    assert!(service.terminate().success());
    assert!(!service.log().contains("is halted"), "{}", service.log());

    let mut service =
        Node::with_nats(&nats).stream_mib(STREAM_MIB).flags(&AT_ONCE).at(service.data_dir()).start();
    let client = service.client();
    wait_state(&client, 0, "live");
    swap_store(&mut nats, &aside);
    let reason = wait_state(&client, 0, "halted");
    assert!(reason.contains("does not exist any more"), "{reason}");
    // The shard stays halted while the server is away, and continues by itself once the stream is back.
    swap_store(&mut nats, &aside);
    wait_state(&client, 0, "live");
    wait_applied(&client, &[publish(&nats, "third")]);
    assert!(["first", "second", "third"].iter().all(|member| is_there(&client, member)));
    let path = format!("{}?wait=applied", entry_path("arena", "fourth"));
    assert_eq!(client.put(&path, &json!({ "score": 1 })).0, 200);
    assert!(service.terminate().success());
    assert!(service.log().contains("the shard is no longer halted"), "{}", service.log());
    service.verify();
}
