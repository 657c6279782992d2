//! What the service does with messages that are not jobs, and with a stream that was replaced or lost
//! messages.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use serde_json::{Value, json};

use crate::support::arena::{STREAM, SUBJECT, define};
use crate::support::client::{Client, count_of, entry_path};
use crate::support::files::cut_last_block;
use crate::support::nats::{Nats, applied, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::Node;

fn job(member: &str, score: i64) -> String {
    json!({ "board": "arena", "member": member, "score": score }).to_string()
}

fn score(client: &Client, member: &str) -> Option<i64> {
    let (status, answer) = client.get(&entry_path("arena", member));
    (status == 200).then(|| answer["score"].as_i64().expect("an integer"))
}

/// Publishes a score and waits for it.
fn publish(nats: &Nats, client: &Client, member: &str, points: i64) -> u64 {
    let sequence = nats.publish(SUBJECT, job(member, points));
    wait_applied(client, &[sequence]);
    sequence
}

#[test]
fn undecodable_messages_are_rejected_once_and_the_good_ones_applied() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(2).stream_mib(16).start();
    let client = service.client();
    define(&client, &json!({}));
    // `alice` belongs to shard 1 of 2, `p42` too; `b` to shard 1 or 0 as the hash says.
    let home = |member: &str| {
        let member = ranktree::types::MemberId::new(member).expect("a good id");
        ranktree::types::shard_of(&member, 2).index()
    };
    let members: Vec<String> = (0..20).map(|n| format!("m{n}")).filter(|m| home(m) == 0).collect();
    let stranger = (0..20).map(|n| format!("m{n}")).find(|m| home(m) == 1).expect("one of twenty");
    let poison: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "malformed"),
        (b"\xff\xfe\x00".to_vec(), "malformed"),
        (b"{\"board\":\"arena\"".to_vec(), "malformed"),
        (vec![b'['; 100_000], "malformed"),
        (b"[]".to_vec(), "malformed"),
        (job(&stranger, 5).into_bytes(), "wrong_shard"),
        (format!(r#"{{"board":"arena","member":"{}","score":1.5}}"#, members[0]).into_bytes(), "bad_score"),
        (format!(r#"{{"board":"arena","member":"{}","score":[1,2]}}"#, members[0]).into_bytes(), "bad_score"),
        (Value::from(vec![json!({}); 1_001]).to_string().into_bytes(), "too_large"),
    ];
    for (good, (bytes, _)) in poison.iter().enumerate() {
        nats.publish(SUBJECT, bytes);
        nats.publish(SUBJECT, job(&members[good % members.len()], i64::try_from(good).expect("small")));
    }
    let mut headers = HeaderMap::new();
    headers.insert("Ranktree-Command", "define");
    nats.try_publish_with(SUBJECT, b"{}", headers).expect("it is stored");
    // One bad job of three does not affect the others.
    let mixed =
        format!("[{},{{\"member\":\"{}\"}},{}]", job(&members[0], 100), members[0], job(&members[1], 200));
    let last = nats.publish(SUBJECT, &mixed);
    wait_applied(&client, &[last]);
    assert_eq!((score(&client, &members[0]), score(&client, &members[1])), (Some(100), Some(200)));
    let rejects = poison.len() + 2;
    assert_eq!(count_of(&shard_status(&client, 0)["rejects"]), rejects);
    assert_eq!(shard_status(&client, 0)["state"], "live");
    let told = || nats.info("RANKTREE_REJECTS").state.messages;
    let rejects = u64::try_from(rejects).expect("small");
    wait_until("the rejects are published", || told() == rejects);
    for (number, (_, reason)) in (1..).zip(&poison) {
        let reject = nats.message("RANKTREE_REJECTS", number);
        assert_eq!(reject["reason"], *reason, "{reject}");
    }
    let mixed = nats.message("RANKTREE_REJECTS", rejects);
    assert_eq!((mixed["index"].clone(), mixed["sequence"].clone()), (json!(1), json!(last)));
    assert_eq!(mixed["job"], json!({ "member": members[0] }));
    // After a crash and a replay they are not published again.
    service.kill9();
    service.restart();
    let client = service.client();
    let sequence = nats.publish(SUBJECT, "nonsense");
    wait_applied(&client, &[sequence]);
    wait_until("the new reject is published", || told() > rejects);
    assert_eq!(told(), rejects + 1);
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn streams_are_created_as_designed_and_mismatched_ones_are_refused_with_an_explanation() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(2).stream_mib(16).start();
    let config = nats.info("RANKTREE_JOBS_1").config;
    assert_eq!(config.subjects, ["ranktree.jobs.1", "ranktree.control.1"]);
    assert_eq!((config.discard, config.max_bytes, config.deny_delete), (DiscardPolicy::New, 16 << 20, true));
    assert_eq!(config.metadata["ranktree-shards"], "2");
    assert!(service.terminate().success());
    // Another number of shards is another layout, for a new data directory and for one that is there.
    let (status, words) = Node::with_nats(&nats).shards(3).refusal();
    assert!(!status.success() && words.contains("2 shards, and not 3: start with --shards 2"), "{words}");
    let mut other = Node::shards(3).start();
    assert!(other.terminate().success());
    let (status, words) = Node::with_nats(&nats).shards(3).at(other.data_dir()).refusal();
    assert!(!status.success() && words.contains("it is of 3 shards, and the streams"), "{words}");
    assert!(words.contains("are of 2") && words.contains("Start with the data directory of this"), "{words}");
    nats.create(Config {
        name: "GAME_JOBS_0".to_owned(),
        subjects: vec!["game.jobs.*".to_owned()],
        ..Config::default()
    });
    let (status, words) = Node::with_nats(&nats).flags(&["--prefix", "game"]).refusal();
    assert!(!status.success() && words.contains("GAME_JOBS_0") && words.contains("subjects"), "{words}");
}

#[test]
fn mismatched_boards_and_rejection_streams_are_refused_with_an_explanation() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).start();
    assert!(service.terminate().success());
    for (stream, alter, said) in [
        ("RANKTREE_BOARDS", Config { max_age: Duration::from_secs(600), ..Config::default() }, "max_age"),
        (
            "RANKTREE_REJECTS",
            Config { discard: DiscardPolicy::New, ..Config::default() },
            "instead of discarding old",
        ),
    ] {
        let good = nats.info(stream).config;
        let Config { max_age, discard, .. } = alter;
        let discard = if stream == "RANKTREE_BOARDS" { good.discard } else { discard };
        nats.update(&Config { max_age, discard, ..good.clone() });
        let (status, words) = Node::with_nats(&nats).at(service.data_dir()).refusal();
        assert!(!status.success() && words.contains(stream) && words.contains(said), "{words}");
        nats.update(&good);
    }
    let good = nats.info(STREAM).config;
    nats.update(&Config { max_message_size: 10_000, ..good.clone() });
    let (status, words) = Node::with_nats(&nats).at(service.data_dir()).refusal();
    assert!(!status.success() && words.contains(STREAM) && words.contains("max_msg_size"), "{words}");
    nats.update(&good);
    // After they are corrected, they are accepted.
    service.restart();
    assert!(service.terminate().success());
}

#[test]
fn a_recreated_stream_halts_its_shard_until_the_operator_accepts_it() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).start();
    let client = service.client();
    define(&client, &json!({}));
    publish(&nats, &client, "a", 1);
    let before = publish(&nats, &client, "b", 2);
    let config = nats.info(STREAM).config;
    nats.delete(STREAM);
    nats.create(config);
    let reason = wait_state(&client, 0, "halted");
    assert!(reason.contains("--accept-gap 0"), "{reason}");
    // Reads are answered, marked stale; writes are refused.
    let (status, answer) = client.get(&entry_path("arena", "b"));
    assert_eq!((status, answer["stale"].clone()), (200, json!(true)), "{answer}");
    assert_eq!(client.get("/readyz").0, 503);
    assert_eq!(client.put(&entry_path("arena", "c"), &json!({ "score": 3 })).0, 503);
    // The same holds after a restart, and if other messages were stored under the same sequences meanwhile.
    for number in 0..10 {
        nats.publish(SUBJECT, job("b", 100 + number));
    }
    service.kill9();
    service.restart();
    let reason = wait_state(&service.client(), 0, "halted");
    assert!(reason.contains("deleted and created again"), "{reason}");
    assert_eq!(score(&service.client(), "b"), Some(2));
    assert!(service.terminate().success());

    service.restart_with(&["--accept-gap", "0"]);
    let client = service.client();
    wait_state(&client, 0, "live");
    let sequence = publish(&nats, &client, "c", 3);
    assert!(sequence > before);
    assert_eq!((score(&client, "b"), score(&client, "c")), (Some(109), Some(3)));
    assert!(service.terminate().success());
    service.verify();
    // After it was accepted once, it need not be accepted again.
    service.restart();
    wait_state(&service.client(), 0, "live");
    assert_eq!(score(&service.client(), "c"), Some(3));
    assert!(service.terminate().success());
}

#[test]
fn a_stream_that_lost_its_end_halts_its_shard() {
    let mut nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).flags(&["--nats-halt-seconds", "1"]).start();
    let client = service.client();
    define(&client, &json!({}));
    for number in 0..20 {
        publish(&nats, &client, &format!("m{number}"), number);
    }
    let before = applied(&client, 0);
    nats.kill9();
    let reason = wait_state(&client, 0, "catching_up");
    assert!(!reason.is_empty(), "it says why");
    cut_last_block(&nats.blocks_of(STREAM), 3);
    nats.restart();
    let reason = wait_state(&client, 0, "halted");
    assert!(reason.contains("lost the end"), "{reason}");
    let last = nats.info(STREAM).state.last_sequence;
    assert!(last < before, "the server noticed: {last} of {before}");
    // The stream is filled with other messages under the same sequences.
    for number in 0..50 {
        nats.publish(SUBJECT, job(&format!("n{number}"), number));
    }
    service.kill9();
    service.restart();
    let client = service.client();
    let reason = wait_state(&client, 0, "halted");
    assert!(reason.contains("not the one that was applied"), "{reason}");
    assert_eq!(applied(&client, 0), before);
    assert_eq!((score(&client, "m19"), score(&client, "n0")), (Some(19), None));
    assert!(service.terminate().success());
    service.restart_with(&["--accept-gap", "0"]);
    let client = service.client();
    wait_state(&client, 0, "live");
    // The lost messages were applied before. Those that replaced them are applied now.
    for number in [0, 1, 49] {
        assert_eq!(score(&client, &format!("n{number}")), Some(number));
    }
    assert_eq!((score(&client, "m19"), applied(&client, 0)), (Some(19), before + 50));
    publish(&nats, &client, "later", 7);
    assert_eq!(score(&client, "later"), Some(7));
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn a_purge_of_applied_messages_is_harmless_and_a_purge_of_others_halts_the_shard() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).flags(&["--nats-no-purge"]).start();
    let client = service.client();
    define(&client, &json!({}));
    let mut last = 0;
    for number in 0..10 {
        last = publish(&nats, &client, "a", number);
    }
    nats.purge(STREAM, last + 1);
    service.kill9();
    service.restart();
    wait_state(&service.client(), 0, "live");
    let last = publish(&nats, &service.client(), "a", 10);
    service.kill9();
    for number in 0..5 {
        nats.publish(SUBJECT, job("a", 100 + number));
    }
    nats.purge(STREAM, last + 4);
    service.restart();
    let client = service.client();
    let reason = wait_state(&client, 0, "halted");
    assert!(reason.contains(&format!("{} to {}", last + 1, last + 3)), "{reason}");
    assert_eq!(score(&client, "a"), Some(10));
    assert!(service.terminate().success());
    service.restart_with(&["--accept-gap", "0"]);
    let client = service.client();
    wait_applied(&client, &[last + 5]);
    assert_eq!(score(&client, "a"), Some(104));
    assert!(service.terminate().success());
    service.verify();
    // The gap has been passed, also in the state on disk.
    service.restart();
    wait_state(&service.client(), 0, "live");
    assert_eq!(score(&service.client(), "a"), Some(104));
    assert!(service.terminate().success());
}

#[test]
fn checkpointed_messages_are_purged_except_the_one_that_a_start_compares() {
    let nats = Nats::start();
    let arguments = ["--nats-keep", "0", "--checkpoint-seconds", "1"];
    let mut service = Node::with_nats(&nats).stream_mib(16).flags(&arguments).start();
    let client = service.client();
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(STREAM).config });
    define(&client, &json!({}));
    let mut last = 0;
    for number in 0..100 {
        last = nats.publish(SUBJECT, job("a", number));
    }
    wait_applied(&client, &[last]);
    wait_until("the stream is purged", || nats.info(STREAM).state.first_sequence == last);
    assert_eq!(nats.info(STREAM).state.messages, 1);
    service.kill9();
    service.restart();
    wait_state(&service.client(), 0, "live");
    publish(&nats, &service.client(), "a", 500);
    assert_eq!(score(&service.client(), "a"), Some(500));
    assert!(service.terminate().success());
    service.verify();
}

/// After a restart the server knows only the ids of stored messages. It would store a purged message again.
#[test]
fn messages_within_the_duplicate_window_are_not_purged() {
    let mut nats = Nats::start();
    let arguments = ["--nats-keep", "0", "--checkpoint-seconds", "1"];
    let mut service = Node::with_nats(&nats).shards(2).stream_mib(16).flags(&arguments).start();
    let client = service.client();
    define(&client, &json!({}));
    // The stream of shard 1 is purged as soon as possible, which shows that enough time has passed for shard
    // 0.
    let other = "RANKTREE_JOBS_1";
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..nats.info(other).config });
    // Longer than this test takes on any machine.
    nats.update(&Config { duplicate_window: Duration::from_secs(3_600), ..nats.info(STREAM).config });
    let publisher = nats.publisher();
    let publish = |shard: usize, id: &str| {
        let home = |member: &str| {
            ranktree::types::shard_of(&ranktree::types::MemberId::new(member).expect("a good id"), 2).index()
        };
        let member = ["a", "b"].into_iter().find(|member| home(member) == shard).expect("one of each");
        let body = json!({ "board": "arena", "member": member, "op": "incr", "score": 1 }).to_string();
        let (subject, mut stored) = (format!("ranktree.jobs.{shard}"), None);
        wait_until("it is stored", || {
            stored = publisher.publish_as(id, &subject, &body, Duration::from_secs(60));
            stored.is_some()
        });
        (member, stored.expect("it was just seen"))
    };
    let ((member, first), (_, last)) = (publish(0, "1"), publish(0, "2"));
    let has_checkpoint = |shard: usize, sequence: u64| {
        wait_until("there is a checkpoint", || {
            shard_status(&client, shard)["checkpoint_sequence"].as_u64() >= Some(sequence)
        });
    };
    has_checkpoint(0, last);
    publish(1, "1");
    let (_, other_last) = publish(1, "2");
    has_checkpoint(1, other_last);
    wait_until("one is purged", || nats.info(other).state.first_sequence == other_last);
    assert_eq!(nats.info(STREAM).state.first_sequence, 1);
    nats.kill9();
    nats.restart();
    wait_state(&client, 0, "live");
    assert_eq!((publish(0, "1").1, publish(0, "2").1), (first, last));
    assert_eq!(publish(0, "3").1, last + 1);
    wait_applied(&client, &[last + 1, 0]);
    assert_eq!(score(&client, member), Some(3));
    assert!(service.terminate().success());
}

#[test]
fn an_older_copy_of_the_data_catches_up() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).start();
    define(&service.client(), &json!({}));
    publish(&nats, &service.client(), "a", 1);
    assert!(service.terminate().success());
    let copy = Node::with_nats(&nats).stream_mib(16).copy_of(&service);
    service.restart();
    for number in 0..50 {
        publish(&nats, &service.client(), &format!("m{number}"), number);
    }
    let (_, top) = service.client().get("/v1/boards/arena/top?limit=100");
    service.kill9();
    let mut service = copy.start();
    wait_state(&service.client(), 0, "live");
    let (_, replayed) = service.client().get("/v1/boards/arena/top?limit=100");
    assert_eq!(replayed["entries"], top["entries"]);
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn a_full_stream_refuses_publishers_and_loses_nothing() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).flags(&["--nats-no-purge"]).start();
    let client = service.client();
    define(&client, &json!({}));
    let config = nats.info(STREAM).config;
    nats.update(&Config { max_bytes: 20_000, ..config.clone() });
    let (mut stored, mut refused) = (0, None);
    for number in 0..1_000 {
        match nats.try_publish(SUBJECT, job("a", number).as_bytes()) {
            Ok(sequence) => stored = sequence,
            Err(error) => {
                refused = Some(error.to_string());
                break;
            }
        }
    }
    let refused = refused.expect("a thousand jobs do not fit");
    assert!(refused.contains("maximum bytes"), "{refused}");
    let (status, answer) = client.put(&entry_path("arena", "b"), &json!({ "score": 1 }));
    assert_eq!((status, answer["code"].clone()), (503, json!("queue_full")), "{answer}");
    wait_applied(&client, &[stored]);
    assert_eq!(score(&client, "b"), None);
    nats.update(&config);
    let (status, answer) =
        client.put(&format!("{}?wait=applied", entry_path("arena", "b")), &json!({ "score": 1 }));
    assert_eq!((status, answer["entry"]["score"].clone()), (200, json!(1)), "{answer}");
    assert!(service.terminate().success());
}
