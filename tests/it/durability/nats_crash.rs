//! kill -9 of the service and of NATS at random moments, in the middle of publishing by game services that
//! retry.

use std::thread;
use std::time::Duration;

use async_nats::jetstream::stream::Config;
use serde_json::json;

use crate::support::counting::{BOARD, Retries, check, count_up};
use crate::support::nats::{Nats, wait_applied, wait_until};
use crate::support::node::Node;
use crate::support::random::Random;
use crate::support::rounds::rounds;

const ROUNDS: [u64; 3] = [8, 20, 50];
/// In every n-th round, NATS is killed instead of the service.
const NATS_EVERY: u64 = 4;
/// In every n-th round, both are killed.
const BOTH_EVERY: u64 = 7;
const RUN_TIME_MS: (u64, u64) = (30, 250);
const SHARDS: u16 = 3;
/// The settings of created streams.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// The duplicate window. A repeated message must arrive within it, so it is longer than all rounds take.
const LONG_WINDOW: Duration = Duration::from_secs(3_600);
/// Crashes, each after a purge; purges come about once a second.
const PURGE_ROUNDS: [u64; 3] = [4, 12, 12];
const PURGE_RUN_TIME_MS: (u64, u64) = (0, 1_200);

#[test]
fn stored_messages_count_once_although_service_and_nats_are_killed() {
    let (mut random, rounds) = (Random::seeded(), rounds(ROUNDS));
    let mut nats = Nats::start();
    let url = nats.url();
    let mut service = Node::with_nats(&nats)
        .shards(SHARDS)
        .stream_mib(64)
        .flags(&["--nats-keep", "0", "--checkpoint-changes", "100"])
        .start();
    let (status, answer) = service.client().put(&format!("/v1/boards/{BOARD}"), &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");
    let streams: Vec<_> = (0..SHARDS).map(|shard| format!("RANKTREE_JOBS_{shard}")).collect();
    for stream in &streams {
        let config = nats.info(stream).config;
        assert_eq!(config.duplicate_window, DUPLICATE_WINDOW);
        nats.update(&Config { duplicate_window: LONG_WINDOW, ..config });
    }

    let counted = count_up(
        &url,
        SHARDS,
        &[Retries::Version, Retries::MessageId],
        LONG_WINDOW,
        &mut random,
        |random, budget| {
            for round in 1..=rounds {
                budget.refill();
                thread::sleep(Duration::from_millis(
                    RUN_TIME_MS.0 + random.below(RUN_TIME_MS.1 - RUN_TIME_MS.0),
                ));
                let both = round % BOTH_EVERY == 0;
                if both || round % NATS_EVERY == 0 {
                    nats.kill9();
                    if both {
                        service.kill9();
                    }
                    nats.restart();
                } else {
                    service.kill9();
                }
                if both || round % NATS_EVERY != 0 {
                    service.restart();
                }
            }
        },
    );
    let ends: Vec<u64> = streams.iter().map(|stream| nats.info(stream).state.last_sequence).collect();
    let client = service.client();
    wait_until("the service has taken NATS up again", || client.get("/readyz").0 == 200);
    wait_applied(&client, &ends);
    assert!(counted.messages > rounds, "{} messages in {rounds} rounds", counted.messages);
    check(&client, &counted);
    assert!(service.terminate().success());
    service.verify();
}

/// Purged messages were applied and are in a checkpoint on disk, at every moment at which the service may be
/// killed.
#[test]
fn purged_messages_count_once_although_service_and_nats_are_killed() {
    let mut random = Random::seeded();
    let mut nats = Nats::start();
    let url = nats.url();
    let mut service = Node::with_nats(&nats)
        .stream_mib(64)
        .flags(&["--nats-keep", "0", "--checkpoint-changes", "100"])
        .start();
    let stream = "RANKTREE_JOBS_0";
    let config = nats.info(stream).config;
    nats.update(&Config { duplicate_window: Duration::from_millis(100), ..config });
    let counted = count_up(&url, 1, &[Retries::Version], LONG_WINDOW, &mut random, |random, budget| {
        for round in 1..=rounds(PURGE_ROUNDS) {
            let before = nats.info(stream).state.first_sequence;
            wait_until("the stream is purged", || {
                budget.refill();
                nats.info(stream).state.first_sequence > before
            });
            let run_time = PURGE_RUN_TIME_MS.0 + random.below(PURGE_RUN_TIME_MS.1 - PURGE_RUN_TIME_MS.0);
            thread::sleep(Duration::from_millis(run_time));
            if round % NATS_EVERY == 0 {
                nats.kill9();
                nats.restart();
            }
            service.kill9();
            service.restart();
        }
    });
    let client = service.client();
    wait_until("the service has taken NATS up again", || client.get("/readyz").0 == 200);
    wait_applied(&client, &[nats.info(stream).state.last_sequence]);
    check(&client, &counted);
    assert!(service.terminate().success());
    service.verify();
}
