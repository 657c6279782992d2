//! Damage in files that no start needs: the node finds it without being asked for what is damaged, says so,
//! and stays in service.

use std::fs;
use std::path::{Path, PathBuf};

use rand::distr::Alphanumeric;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ranktree::storage::shard_directory;
use ranktree::types::ShardId;
use serde_json::{Value, json};

use crate::support::client::{Client, count_of, entry_path};
use crate::support::command::run;
use crate::support::nats::{shard_status, wait_until};
use crate::support::node::Node;
use crate::support::raw::get;

const RECORDS: usize = 300;

/// Text that compresses badly, so that it is most of the file that it is in.
fn filler(random: &mut StdRng) -> String {
    (0..800).map(|_| char::from(random.sample(Alphanumeric))).collect()
}

fn write_metadata(client: &Client, random: &mut StdRng) {
    for member in 0..RECORDS {
        let job = json!({ "score": member, "meta": { "m": filler(random) } });
        let (status, answer) = client.put(&entry_path("b", &format!("m{member}")), &job);
        assert_eq!(status, 200, "{answer}");
    }
}

fn write_profiles(client: &Client, random: &mut StdRng) {
    for member in 0..RECORDS {
        let job =
            json!({ "op": "profile", "member": format!("m{member}"), "profile": { "m": filler(random) } });
        let (status, answer) = client.post("/v1/jobs?wait=applied", &job);
        assert_eq!(status, 200, "{answer}");
    }
}

/// Each is older than what is there.
fn write_rejects(client: &Client, random: &mut StdRng) {
    let newest = json!({ "score": 1, "version": 9 });
    assert_eq!(client.put(&entry_path("b", "newest"), &newest).0, 200);
    for score in 0..RECORDS {
        let job = json!({ "score": score, "version": 1, "meta": { "m": filler(random) } });
        let (status, answer) = client.put(&entry_path("b", "newest"), &job);
        assert_ne!(status, 200, "{answer}");
    }
}

fn largest_file(shard: &Path) -> PathBuf {
    let files = fs::read_dir(shard).expect("readable").map(|entry| entry.expect("readable").path());
    let tables = files.filter(|path| path.extension().is_some_and(|extension| extension == "sst"));
    tables.max_by_key(|path| fs::metadata(path).expect("readable").len()).expect("there is one")
}

fn flip_in_the_middle(file: &Path) {
    let mut bytes = fs::read(file).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 16;
    fs::write(file, bytes).expect("the disk takes it");
}

#[test]
fn damage_that_no_start_reads_is_found_and_said_without_a_reader() {
    type Write = fn(&Client, &mut StdRng);
    let kinds: [(&str, Write); 3] =
        [("metadata", write_metadata), ("profiles", write_profiles), ("rejects", write_rejects)];
    for (what, write) in kinds {
        let mut service = Node::start();
        let (status, answer) = service.client().put("/v1/boards/b", &json!({}));
        assert_eq!(status, 201, "{answer}");
        assert_eq!(service.client().put(&entry_path("b", "first"), &json!({ "score": -1 })).0, 200);
        write(&service.client(), &mut StdRng::seed_from_u64(1));
        let (_, before) = service.client().get("/v1/boards/b/top?limit=1000");
        // The next start moves what is in the log to a file of sorted records.
        assert!(service.terminate().success());
        service.restart();
        // Once after each of the two starts.
        wait_until("sound files are read to their end", || {
            service.log().matches("every record of the shard was read; no damage was found").count() == 2
        });
        let (status, answer) = service.client().get("/v1/status");
        assert_eq!((status, &answer["degraded"]), (200, &false.into()), "{answer}");
        service.kill9();
        flip_in_the_middle(&largest_file(&shard_directory(service.data_dir(), ShardId(0))));

        service.restart();
        let client = service.client();
        wait_until(what, || !shard_status(&client, 0)["damage"].is_null());
        let said = get(service.address(), "/readyz");
        assert!(said.contains("\r\n\r\nready, degraded\nshard 0: its files are damaged"), "{what}: {said}");
        let (status, after) = client.get("/v1/boards/b/top?limit=1000");
        assert_eq!((status, count_of(&after["total"])), (200, count_of(&before["total"])), "{what}");
        let ranks = |page: &Value| {
            let entries = page["entries"].as_array().expect("a list").iter();
            entries.map(|entry| (entry["member"].clone(), entry["rank"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(ranks(&after), ranks(&before), "{what}");
        // A merge that has come upon it first makes a write fail, and the shard opens its files again.
        wait_until("it takes writes", || {
            client.put(&entry_path("b", "late"), &json!({ "score": 5 })).0 == 200
        });
        service.kill9();
        let verified = run("verify", service.data_dir());
        assert!(!verified.status.success(), "{what}: verify finds it, too");
    }
}
