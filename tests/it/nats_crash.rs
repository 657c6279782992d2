//! kill -9 of the service and of NATS at random moments, in the middle of publishing by a game service that retries.
//!
//! Each writer counts up members of its own by versioned `incr` jobs, and sends a job again until it is stored: a retry
//! whose first try was stored after all is a duplicate, which the version makes harmless. In the end every member has
//! been counted up exactly as often as its writer says: nothing lost, nothing twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};

use crate::support::binary::Binary;
use crate::support::client::{count_of, entry_path};
use crate::support::nats::{Nats, Publisher, wait_applied, wait_until};
use crate::support::random::Random;

const ROUNDS: u64 = 50;
/// Every so many rounds NATS is killed, and not the service.
const NATS_EVERY: u64 = 4;
const RUN_TIME_MS: (u64, u64) = (30, 250);
const SHARDS: u16 = 3;
const WRITERS: u64 = 4;
const MEMBERS_PER_WRITER: u64 = 8;

#[test]
fn what_was_stored_is_counted_once_whatever_is_killed() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let seed = match std::env::var("RANKTREE_CRASH_SEED") {
        Ok(seed) => seed.parse().expect("a seed is an unsigned integer"),
        Err(_) => u64::try_from(now.as_micros()).expect("it is before the year 500,000"),
    };
    // Shown if the test fails.
    println!("RANKTREE_CRASH_SEED={seed}");
    let mut random = Random::new(seed);
    let (mut nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let url = nats.url();
    let arguments =
        ["--nats", &url, "--nats-stream-mib", "64", "--nats-keep", "0", "--checkpoint-changes", "100"];
    let mut service = Binary::start(&folder.path().join("data"), SHARDS, &arguments);
    let (status, answer) = service.client().put("/v1/boards/adds", &json!({ "policy": "incr" }));
    assert_eq!(status, 201, "{answer}");

    let ending = AtomicBool::new(false);
    let mut counts = BTreeMap::new();
    let (mut messages, mut tries) = (0, 0);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let (publisher, random, ending) = (nats.publisher(), Random::new(random.next()), &ending);
                scope.spawn(move || write(number, &publisher, random, ending))
            })
            .collect();
        for round in 1..=ROUNDS {
            thread::sleep(Duration::from_millis(RUN_TIME_MS.0 + random.below(RUN_TIME_MS.1 - RUN_TIME_MS.0)));
            if round % NATS_EVERY == 0 {
                nats.kill9();
                nats.restart();
            } else {
                service.kill9();
                service.restart();
            }
        }
        ending.store(true, Ordering::SeqCst);
        for writer in writers {
            let (written, stored, tried) = writer.join().expect("no panic");
            counts.extend(written);
            messages += stored;
            tries += tried;
        }
    });
    let ends: Vec<u64> =
        (0..SHARDS).map(|shard| nats.info(&format!("RANKTREE_JOBS_{shard}")).state.last_sequence).collect();
    let client = service.client();
    wait_until("the service has taken NATS up again", || client.get("/readyz").0 == 200);
    wait_applied(&client, &ends);
    assert!(
        messages > ROUNDS && tries > messages,
        "{messages} messages in {tries} tries: no try was ever cut off"
    );
    for (member, count) in &counts {
        let (status, entry) = client.get(&entry_path("adds", member));
        let found = if status == 404 { 0 } else { count_of(&entry["score"]) };
        assert_eq!(u64::try_from(found).expect("small"), *count, "{member}: {entry}");
    }
    assert!(service.terminate().success());
    service.verify();
}

/// Counts members up until told to end; how often each was, how many messages there were, and how many tries they took.
fn write(
    number: u64,
    publisher: &Publisher,
    mut random: Random,
    ending: &AtomicBool,
) -> (BTreeMap<String, u64>, u64, u64) {
    let members: Vec<_> = (0..MEMBERS_PER_WRITER).map(|member| format!("w{number}/{member}")).collect();
    let mut counts: BTreeMap<String, u64> = members.iter().map(|member| (member.clone(), 0)).collect();
    let (mut version, mut tries) = (0, 0);
    while !ending.load(Ordering::SeqCst) {
        // All of one shard, in one message.
        let first = random.pick(&members).clone();
        let home = |member: &str| shard_of(&MemberId::new(member).expect("a good id"), SHARDS);
        let together: Vec<_> = members.iter().filter(|member| home(member) == home(&first)).take(3).collect();
        version += 1;
        let jobs: Vec<Value> = together
            .iter()
            .map(|member| json!({ "board": "adds", "member": member, "score": 1, "version": version }))
            .collect();
        let (subject, body) = (format!("ranktree.jobs.{}", home(&first)), Value::from(jobs).to_string());
        loop {
            tries += 1;
            let stored = publisher.publish(&subject, &body, Duration::from_millis(500)).is_some();
            if stored && random.below(10) > 0 {
                break;
            }
            // Not stored, as far as this end knows; or a duplicate for its own sake.
        }
        for member in together {
            *counts.entry(member.clone()).or_default() += 1;
        }
    }
    (counts, version, tries)
}
