//! Which messages of a stream are kept and which are purged: bounded by messages and by bytes, and never
//! beyond the stream's end.

use std::time::Duration;

use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};

use crate::support::arena::{self, STREAM, SUBJECT};
use crate::support::client::{Client, entry_path};
use crate::support::files::cut_last_block;
use crate::support::nats::{Nats, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::Node;

const STREAM_MIB: u64 = 8;
const STREAM_BYTES: u64 = STREAM_MIB << 20;

fn start(nats: &Nats, extra: &[&str]) -> Node {
    let service = Node::with_nats(nats).stream_mib(STREAM_MIB).flags(extra).start();
    arena::define(&service.client(), &json!({ "policy": "incr" }));
    service
}

/// Adds one to 20 members, with so much metadata that the message has 21 KB.
fn large_message() -> String {
    let filler = "x".repeat(950);
    let job = |member: u32| {
        let member = format!("m{member}");
        json!({ "board": "arena", "member": member, "score": 1, "meta": { "m": filler } })
    };
    let body = Value::from((0..20).map(job).collect::<Vec<_>>()).to_string();
    assert!((20_000..22_000).contains(&body.len()), "{}", body.len());
    body
}

fn counted(client: &Client) -> u64 {
    let (status, answer) = client.get(&entry_path("arena", "m7"));
    assert_eq!(status, 200, "{answer}");
    answer["score"].as_u64().expect("a count")
}

/// A counter of the only shard.
fn purged(service: &Node, name: &str) -> f64 {
    service.metric(&format!("{name}{{shard=\"0\"}}")).unwrap_or_else(|| panic!("there is no {name}"))
}

/// With default settings, neither a checkpoint nor the duplicate window would allow a purge in time.
#[test]
fn room_for_large_messages_is_made_before_the_stream_is_full() {
    const MESSAGES: u64 = 1_600;
    let nats = Nats::start();
    let mut service = start(&nats, &[]);
    let (body, mut last) = (large_message(), 0);
    for _ in 0..MESSAGES {
        // Publishes no faster than checkpoints make room, so that no message is refused.
        wait_until("there is room", || nats.info(STREAM).state.bytes < STREAM_BYTES / 16 * 15);
        last = nats.publish(SUBJECT, &body);
    }
    let client = service.client();
    wait_applied(&client, &[last]);
    assert_eq!(counted(&client), MESSAGES);
    let info = nats.info(STREAM);
    // The oldest messages were purged, and the room that has to be free is free.
    assert!(info.state.bytes > STREAM_BYTES / 4, "{} bytes are left", info.state.bytes);
    assert_eq!(info.state.last_sequence - info.state.first_sequence + 1, info.state.messages);
    let early = purged(&service, "ranktree_stream_purged_early_messages_total");
    assert!(early > 0.0 && early <= purged(&service, "ranktree_stream_purged_messages_total"), "{early}");
    assert!(service.log().contains("the stream is filling up"), "{}", service.log());
    service.kill9();
    service.restart();
    wait_state(&service.client(), 0, "live");
    assert_eq!(counted(&service.client()), MESSAGES);
    assert!(service.terminate().success());
    service.verify();
}

/// A publisher that is far faster than the checkpoints is refused for moments on a small stream, and loses
/// nothing.
#[test]
fn a_stream_that_is_filled_at_full_speed_takes_every_message() {
    const MESSAGES: usize = 60_000;
    let nats = Nats::start();
    let mut service = start(&nats, &[]);
    let client = service.client();
    let filler = "x".repeat(200);
    let job = json!({ "board": "arena", "member": "m7", "score": 1, "meta": { "m": filler } }).to_string();
    let refused = nats.publish_until_stored(SUBJECT, &job, MESSAGES);
    println!("{refused} of {MESSAGES} messages were refused at first");
    let state = nats.info(STREAM).state;
    wait_applied(&client, &[state.last_sequence]);
    assert_eq!(counted(&client), u64::try_from(MESSAGES).expect("small"));
    let bytes = u64::try_from(job.len() * MESSAGES).expect("small");
    assert!(bytes > STREAM_BYTES, "{bytes} would fit");
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn messages_kept_for_other_nodes_take_at_most_half_of_a_stream() {
    let nats = Nats::start();
    let mut service = start(&nats, &["--checkpoint-seconds", "1"]);
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    let body = large_message();
    // Below three quarters of the limit nothing has to be purged.
    let messages = STREAM_BYTES * 5 / 8 / u64::try_from(body.len()).expect("small");
    let mut last = 0;
    for _ in 0..messages {
        last = nats.publish(SUBJECT, &body);
    }
    wait_applied(&service.client(), &[last]);
    wait_until("what is too much is purged", || nats.info(STREAM).state.bytes <= STREAM_BYTES / 2);
    let left = nats.info(STREAM).state.bytes;
    assert!(left > STREAM_BYTES / 2 - (64 << 10), "{left} bytes are left");
    assert!(purged(&service, "ranktree_stream_purged_early_messages_total") < 1.0);
    assert!(service.terminate().success());
}

#[test]
fn streams_are_created_as_large_as_the_server_has_room_for() {
    let settings = "jetstream { max_file_store: 3GB }\n";
    let nats = Nats::start_with(settings);
    let mut service = Node::with_nats(&nats).shards(2).start();
    let limit = |stream: &str| nats.info(stream).config.max_bytes;
    // In addition to the streams of boards and rejects, two of 1 GiB fit and two of 2 GiB do not, because
    // half is left to others.
    assert_eq!((limit("RANKTREE_JOBS_0"), limit("RANKTREE_JOBS_1")), (512 << 20, 512 << 20));
    assert!(service.log().contains("most_mib=512"), "{}", service.log());
    assert!(service.terminate().success());
    // Existing streams are used as they are.
    nats.update(&Config { max_bytes: 100 << 20, ..nats.info("RANKTREE_JOBS_1").config });
    service.restart();
    assert_eq!((limit("RANKTREE_JOBS_0"), limit("RANKTREE_JOBS_1")), (512 << 20, 100 << 20));
    assert!(service.log().contains("least_mib=100"), "{}", service.log());
    assert!(service.terminate().success());
}

#[test]
fn a_second_prefix_finds_room_and_a_third_one_is_refused_with_advice() {
    let settings = "jetstream { max_file_store: 3GB }\n";
    let nats = Nats::start_with(settings);
    let start = |prefix: &str| Node::with_nats(&nats).flags(&["--prefix", prefix]).start();
    let (mut first, mut second) = (start("first"), start("second"));
    for service in [&first, &second] {
        wait_state(&service.client(), 0, "live");
    }
    let limit = |stream: &str| nats.info(stream).config.max_bytes;
    assert_eq!((limit("FIRST_JOBS_0"), limit("SECOND_JOBS_0")), (1 << 30, 256 << 20));
    for service in [&mut first, &mut second] {
        assert!(service.terminate().success());
    }
    let refusal = |nats: &Nats, prefix: &str, mib: &str| {
        let node = Node::with_nats(nats).flags(&["--prefix", prefix, "--nats-stream-mib", mib]);
        let refused = node.start_or_refusal();
        refused.err().expect("there is no room")
    };
    let said = refusal(&nats, "third", "64");
    for part in ["THIRD_BOARDS", "FIRST_JOBS_0 keeps 1024 MiB and holds 0", "max_file_store"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // What it proposes is the way out: for the stream of jobs that is still missing then, too.
    let mut proposed = Vec::new();
    let mut third = loop {
        match Node::with_nats(&nats).flags(&["--prefix", "third"]).start_or_refusal() {
            Ok(third) => break third,
            Err(said) => {
                let command = said.split_once("nats stream edit ").expect("a command").1;
                let (stream, limit) = command.split_once(" --max-bytes ").expect("a limit");
                let limit = limit.split_once('`').expect("its end").0.parse().expect("bytes");
                nats.update(&Config { max_bytes: limit, ..nats.info(stream).config });
                proposed.push((stream.to_owned(), limit));
            }
        }
    };
    assert_eq!(proposed.first(), Some(&("FIRST_JOBS_0".to_owned(), 512 << 20)), "{proposed:?}");
    assert!(proposed.len() <= 2, "{proposed:?}");
    first.restart();
    for service in [&mut first, &mut third] {
        wait_state(&service.client(), 0, "live");
        assert!(service.terminate().success());
    }
    let nats = Nats::start_with(settings);
    let said = refusal(&nats, "large", "4096");
    assert!(said.contains("LARGE_JOBS_0") && said.contains("start without --nats-stream-mib"), "{said}");
    let mut large = Node::with_nats(&nats).flags(&["--prefix", "large"]).start();
    wait_state(&large.client(), 0, "live");
    assert!(large.terminate().success());
}

/// The checkpoint is beyond the end of a stream that lost its last messages: purging up to it would empty the
/// stream.
#[test]
fn a_stream_that_lost_its_end_is_not_purged() {
    let mut nats = Nats::start();
    let arguments = ["--nats-keep", "0", "--checkpoint-seconds", "1", "--nats-halt-seconds", "1"];
    let mut service = start(&nats, &arguments);
    let client = service.client();
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    let publish = |nats: &Nats, count: u32| (0..count).map(|_| arena::publish(nats, "m7")).last();
    let last = publish(&nats, 50).expect("there are some");
    wait_until("the stream is purged", || nats.info(STREAM).state.first_sequence == last);
    let last = publish(&nats, 50).expect("there are some");
    wait_applied(&client, &[last]);
    nats.kill9();
    wait_until("there is a checkpoint", || {
        shard_status(&client, 0)["checkpoint_sequence"].as_u64() == Some(last)
    });
    cut_last_block(&nats.blocks_of(STREAM), 6);
    nats.restart();
    let reason = wait_state(&client, 0, "halted");
    let state = nats.info(STREAM).state;
    // Either the stream was purged before it lost its end, and is empty, or it still has the messages that it
    // kept.
    assert!(reason.contains("lost the end"), "{reason}");
    assert!(state.messages > 0 && state.last_sequence < last, "{state:?}");
    assert_eq!(state.last_sequence - state.first_sequence + 1, state.messages);
    assert!(service.terminate().success());
}
