//! `--accept-gap`: the messages of a stream that does not continue what was applied are applied once, and
//! none is skipped.

use std::fs::{self, File};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};

use crate::support::arena::{STREAM, SUBJECT};
use crate::support::client::{Client, entry_path};
use crate::support::command::command;
use crate::support::counting::{Retries, check, count_up};
use crate::support::nats::{Nats, applied, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::random::Random;

/// The board whose members are incremented.
const BOARD: &str = crate::support::counting::BOARD;

fn incr(member: &str) -> Value {
    json!({ "board": BOARD, "member": member, "op": "incr", "score": 1 })
}

fn times(member: &str, count: usize) -> Vec<Value> {
    vec![incr(member); count]
}

fn score(client: &Client, member: &str) -> Option<i64> {
    let (status, answer) = client.get(&entry_path(BOARD, member));
    (status == 200).then(|| answer["score"].as_i64().expect("an integer"))
}

/// A service with a board, and this many applied jobs of the member `old`.
fn filled(nats: &Nats, jobs: usize) -> (Node, u64) {
    let mut service = Node::with_nats(nats).stream_mib(64).start();
    let client = service.client();
    let (status, answer) = client.put(&format!("/v1/boards/{BOARD}"), &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");
    // A new board may be delivered to its shard twice, the second time at any moment. A restarted service
    // that finds the board does not deliver it again.
    assert!(service.terminate().success());
    service.restart();
    let client = service.client();
    let ends = nats.publish_jobs(1, &times("old", jobs), 1);
    wait_applied(&client, &ends);
    let before = applied(&client, 0);
    (service, before)
}

/// Deletes the stream, and makes it as it was.
fn make_again(nats: &Nats) -> Config {
    let config = nats.info(STREAM).config;
    nats.delete(STREAM);
    nats.create(config.clone());
    config
}

/// Publishers are admitted again, with the limit that the stream had before.
fn assert_open(nats: &Nats, config: &Config) {
    let found = nats.info(STREAM).config;
    assert_eq!((found.max_bytes, &found.metadata), (config.max_bytes, &config.metadata));
}

#[test]
fn a_recreated_stream_is_applied_once_from_its_first_message() {
    let nats = Nats::start();
    // The node runs while the stream is created again.
    let (mut service, before) = filled(&nats, 30);
    let config = make_again(&nats);
    let reason = wait_state(&service.client(), 0, "halted");
    assert!(reason.contains("--accept-gap 0"), "{reason}");
    nats.publish_jobs(1, &times("new", 7), 1);
    nats.publish_jobs(1, &times("old", 2), 1);
    service.kill9();
    service.restart();
    let reason = wait_state(&service.client(), 0, "halted");
    assert!(reason.contains("whose 9 messages are then all applied"), "{reason}");
    assert!(service.terminate().success());

    service.restart_with(&["--accept-gap", "0"]);
    let client = service.client();
    wait_state(&client, 0, "live");
    assert_eq!((score(&client, "old"), score(&client, "new")), (Some(32), Some(7)));
    assert_eq!(applied(&client, 0), before + 9);
    // Earlier tokens are satisfied. Later tokens name sequences that no earlier message had.
    let (status, answer) = client.get(&format!("{}?after=0:{before}&timeout_ms=1", entry_path(BOARD, "old")));
    assert_eq!(status, 200, "{answer}");
    wait_until("publishers are let in", || {
        nats.try_publish(SUBJECT, incr("new").to_string().as_bytes()).is_ok()
    });
    let last = nats.info(STREAM).state.last_sequence;
    assert_eq!(last, before + 10);
    wait_applied(&client, &[last]);
    assert_open(&nats, &config);
    service.kill9();

    service.restart();
    let client = service.client();
    wait_state(&client, 0, "live");
    assert_eq!((score(&client, "old"), score(&client, "new")), (Some(32), Some(8)));
    assert_eq!(applied(&client, 0), last);
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn an_empty_recreated_stream_is_accepted_for_good() {
    let nats = Nats::start();
    let (mut service, before) = filled(&nats, 5);
    service.kill9();
    let config = make_again(&nats);
    service.restart_with(&["--accept-gap", "0"]);
    wait_state(&service.client(), 0, "live");
    service.kill9();
    service.restart();
    let client = service.client();
    wait_state(&client, 0, "live");
    assert_open(&nats, &config);
    let sequence = nats.publish(SUBJECT, incr("old").to_string());
    assert_eq!(sequence, before + 1);
    wait_applied(&client, &[sequence]);
    assert_eq!(score(&client, "old"), Some(6));
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn a_recreated_stream_that_is_longer_than_what_was_applied_is_applied_from_its_beginning() {
    let nats = Nats::start();
    let (mut service, before) = filled(&nats, 10);
    service.kill9();
    let config = make_again(&nats);
    nats.publish_jobs(1, &times("new", 5_000), 1);
    service.restart_with(&["--accept-gap", "0"]);
    let client = service.client();
    wait_state(&client, 0, "live");
    assert_eq!((score(&client, "old"), score(&client, "new")), (Some(10), Some(5_000)));
    assert_eq!(applied(&client, 0), before + 5_000);
    wait_until("the limit is back", || nats.info(STREAM).config.max_bytes == config.max_bytes);
    assert!(service.terminate().success());
    service.verify();
}

/// The node makes such a stream itself, with sequences after the applied one: no message has to be
/// renumbered.
#[test]
fn accepting_the_loss_of_a_whole_stream_is_logged_as_done() {
    let nats = Nats::start();
    let (mut service, before) = filled(&nats, 5);
    service.kill9();
    nats.delete(STREAM);
    service.restart_with(&["--accept-gap", "0"]);
    wait_state(&service.client(), 0, "live");
    wait_until("the log says so", || service.log().contains("the rebase is done"));
    let sequence = nats.publish(SUBJECT, incr("old").to_string());
    assert_eq!(sequence, before + 1);
    wait_applied(&service.client(), &[sequence]);
    assert!(service.terminate().success());
}

#[test]
fn accept_gap_does_not_accept_a_gap_that_comes_later() {
    let nats = Nats::start();
    let (mut service, _) = filled(&nats, 5);
    assert!(service.terminate().success());
    service.restart_with(&["--accept-gap", "0"]);
    let client = service.client();
    wait_state(&client, 0, "live");
    make_again(&nats);
    nats.publish_jobs(1, &times("new", 3), 1);
    let reason = wait_state(&client, 0, "halted");
    assert!(reason.contains("created again"), "{reason}");
    assert_eq!(nats.info(STREAM).state.messages, 3);
    assert!(service.terminate().success());
}

/// A node is killed at any moment of its start, while game services publish to the stream that was created
/// again.
#[test]
fn a_stream_is_rebased_once_although_its_service_is_killed() {
    const OLD: usize = 8_000;
    const NEW: usize = 6_000;
    const ROUNDS: u64 = 12;
    const ROUNDS_MAX: u64 = 60;
    const LONG_WINDOW: Duration = Duration::from_secs(3_600);
    let mut random = Random::seeded();
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let (log, url) = (folder.path().join("killed.log"), nats.url());
    let (mut service, before) = filled(&nats, OLD);
    service.kill9();
    let data = service.data_dir().to_owned();
    make_again(&nats);
    // The duplicate window. A repeated message must arrive within it, so it is longer than all rounds take.
    nats.update(&Config { duplicate_window: LONG_WINDOW, ..nats.info(STREAM).config });
    let config = nats.info(STREAM).config;
    nats.publish_jobs(1, &times("new", NEW), 1);
    let mut accepted = 0;
    let retries = [Retries::Version, Retries::MessageId];
    let counted = count_up(&url, 1, &retries, LONG_WINDOW, &mut random, |random, budget| {
        let (mut accept, mut round) = (true, 0);
        // On a slow machine all of these kills may come before the gap is accepted. Later ones come later.
        while round < ROUNDS || (accepted == 0 && round < ROUNDS_MAX) {
            budget.refill();
            let longest = 2_400 * (1 + round / ROUNDS);
            round += 1;
            let out = File::create(&log).expect("the log can be written");
            let mut serve = command();
            serve.args(["serve", "--listen", "127.0.0.1:0", "--nats", &url, "--data-dir"]).arg(&data);
            if accept {
                serve.args(["--accept-gap", "0"]);
            }
            serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(out);
            let mut child = serve.spawn().expect("the binary can be started");
            thread::sleep(Duration::from_millis(100 + random.below(longest)));
            child.kill().expect("a child that was not waited for can be signalled");
            child.wait().expect("a child can be waited for");
            let said = fs::read_to_string(&log).expect("the log can be read");
            // The acceptance holds once it is stored. The kill may have come before that.
            let went_on = said.contains("continuing with the messages that the stream holds");
            accepted += u32::from(went_on);
            accept = !went_on && (accept || said.contains("is halted"));
        }
        // Messages that are being published are stored only after the rebase is done.
        service.restart();
        let client = service.client();
        wait_until("the shard is live or halted", || shard_status(&client, 0)["state"] != "catching_up");
        let state = shard_status(&client, 0);
        assert_eq!(state["state"], "live", "{state}");
    });
    assert!(accepted >= 1, "every kill came before the gap was accepted");
    let client = service.client();
    wait_applied(&client, &[nats.info(STREAM).state.last_sequence]);
    assert_eq!(
        (score(&client, "old"), score(&client, "new")),
        (i64::try_from(OLD).ok(), i64::try_from(NEW).ok())
    );
    check(&client, &counted);
    assert!(applied(&client, 0) > before + u64::try_from(NEW).expect("small"));
    assert_open(&nats, &config);
    assert!(service.terminate().success());
    service.verify();
}

/// A copy of a data directory that no node was started with holds nothing back. So a node with older data
/// finds that messages are missing.
#[test]
fn a_node_whose_messages_another_node_purged_halts_until_that_one_can_give_a_copy() {
    let nats = Nats::start();
    let (mut service, before) = filled(&nats, 5);
    assert!(service.terminate().success());
    let older = Node::with_nats(&nats).stream_mib(64).copy_of(&service);
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    service.restart_with(&["--nats-keep", "0", "--checkpoint-seconds", "1"]);
    let last = nats.publish_jobs(1, &times("new", 50), 1)[0];
    wait_until("the stream is purged", || nats.info(STREAM).state.first_sequence == last);
    assert!(service.terminate().success());

    let mut behind = older.start();
    let client = behind.client();
    let reason = wait_state(&client, 0, "halted");
    for said in [
        &*format!("no longer has the messages {} to {}", before + 1, last - 1),
        "--nats-forget",
        "a copy from a node that has applied them",
    ] {
        assert!(reason.contains(said), "{said}: {reason}");
    }
    assert_eq!((score(&client, "old"), score(&client, "new")), (Some(5), None));
    service.restart();
    wait_state(&behind.client(), 0, "live");
    let last = nats.publish_jobs(1, &times("new", 1), 1);
    for node in [&service, &behind] {
        wait_applied(&node.client(), &last);
        assert_eq!(score(&node.client(), "new"), Some(51));
    }
    assert!(behind.terminate().success());
    assert!(service.terminate().success());
}
