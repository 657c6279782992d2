//! kill -9 of the client, of the service and of restore leaves no half snapshot and no half data directory
//! that anything would use.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::operations::snapshots::fill;
use crate::support::client::entry_path;
use crate::support::command::spawn;
use crate::support::files::copy_folder;
use crate::support::nats::wait_until;
use crate::support::node::{Node, NodeSetup};
use crate::support::random::Random;
use crate::support::slow_link::SlowLink;
use crate::support::snapshots::{content, restore, run, served, snapshot, text, verify};

const BOARD: &str = "arena";
/// Restores that are killed, each at a random moment.
const ROUNDS: u64 = 25;

#[test]
fn a_killed_client_leaves_nothing_that_is_taken_for_a_snapshot() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut node = Node::shards(2).start();
    fill(&node.client(), 4_000);
    let (to, partial) = (folder.path().join("copy"), folder.path().join("copy.partial"));
    let link = SlowLink::start(node.address(), 50_000);
    let url = format!("http://{}", link.address());
    let held = node.data_dir().join("snapshots");
    for attempt in 1..=2 {
        let mut client = spawn(&["snapshot", "--url", &url, "--to", text(&to)]);
        // By then it has removed what the attempt before has left.
        wait_until("the service copies", || held.read_dir().is_ok_and(|found| found.count() == attempt));
        wait_until("the first file is there", || partial.join("shard-000").exists());
        client.kill().expect("it is running");
        client.wait().expect("a child can be waited for");
        assert!(!to.exists() && partial.exists());
        for half in [&to, &partial] {
            let (code, said) = restore(half, &folder.path().join("data"), &[]);
            assert!(code == Some(2) && said.contains("holds no snapshot"), "{said}");
        }
    }
    // The service holds the copies of the two until they are abandoned for long enough.
    assert_eq!(held.read_dir().expect("it is there").count(), 2);
    let take = |node: &Node| run(&["snapshot", "--url", node.base(), "--to", text(&to)]);
    let (code, said) = take(&node);
    assert!(code == Some(2) && said.contains("2 snapshots of this node are being fetched already"), "{said}");
    assert!(!to.exists() && !partial.exists());
    // A service that ends removes its copies, and serves on all the same.
    assert!(node.terminate().success());
    assert!(!held.exists());
    node.restart();
    let (code, said) = take(&node);
    assert!(code == Some(0) && to.exists() && !partial.exists(), "{said}");
    let (code, said) = take(&node);
    assert!(code == Some(2) && said.contains("is not empty; give a new directory with --to"), "{said}");
    let (code, said) = restore(&to, &folder.path().join("data"), &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(content(&folder.path().join("data"), BOARD), served(&node, BOARD));
}

#[test]
fn a_service_that_is_killed_during_a_snapshot_starts_and_removes_the_copy() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut node = Node::shards(2).start();
    fill(&node.client(), 4_000);
    let link = SlowLink::start(node.address(), 50_000);
    let url = format!("http://{}", link.address());
    let to = folder.path().join("copy");
    let mut client = spawn(&["snapshot", "--url", &url, "--to", text(&to)]);
    wait_until("the first file is there", || folder.path().join("copy.partial/shard-000").exists());
    let before = served(&node, BOARD);
    node.kill9();
    let held = node.data_dir().join("snapshots");
    assert!(held.exists(), "nobody has removed it");
    // Another copy, as a crash within the copying leaves it.
    std::fs::create_dir_all(held.join("6a-1/shard-000.tmp")).expect("it can be made");
    node.restart();
    assert!(!held.exists(), "{}", node.log());
    // The client's copy is gone with the process. It has asked the link, whose server is at another port now.
    client.kill().expect("it was not waited for");
    client.wait().expect("a child can be waited for");
    assert!(!to.exists());
    assert_eq!(served(&node, BOARD), before);
    snapshot(&node, &to);
    assert!(node.terminate().success());
    node.verify();
}

#[test]
fn a_restore_that_is_killed_leaves_what_was_there_or_the_snapshot_or_a_refusal() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    let mut node = Node::at(path("source")).shards(4).start();
    fill(&node.client(), 2_000);
    snapshot(&node, &path("copy"));
    let new = served(&node, BOARD);
    assert_eq!(node.client().put(&entry_path(BOARD, "later"), &json!({"score": 5})).0, 200);
    let old = served(&node, BOARD);
    assert!(node.terminate().success());

    let once = |data_dir: &Path| {
        copy_folder(&path("source"), data_dir);
        let started = Instant::now();
        let (code, said) = restore(&path("copy"), data_dir, &["--replace"]);
        assert_eq!(code, Some(0), "{said}");
        started.elapsed()
    };
    let whole = once(&path("first"));
    let mut random = Random::seeded();
    let mut seen = [0; 3];
    for round in 0..ROUNDS {
        let data_dir = path(&format!("data-{round}"));
        copy_folder(&path("source"), &data_dir);
        let mut child =
            spawn(&["restore", "--from", text(&path("copy")), "--data-dir", text(&data_dir), "--replace"]);
        if round % 2 == 0 {
            let micros = u64::try_from(whole.as_micros()).expect("small");
            thread::sleep(Duration::from_micros(random.below(micros.max(1))));
        } else {
            // While shards are put in place, which takes a small part of the time.
            let started = Instant::now();
            while !data_dir.join("RESTORING").exists() && started.elapsed() < whole * 20 {
                if child.try_wait().expect("it is ours").is_some() {
                    break;
                }
            }
        }
        let _ = child.kill();
        child.wait().expect("a child can be waited for");
        match start(&data_dir) {
            Ok(mut node) => {
                let found = served(&node, BOARD);
                seen[usize::from(found == new)] += 1;
                assert!(found == old || found == new, "round {round}");
                assert!(node.terminate().success());
                node.verify();
            }
            Err(said) => {
                seen[2] += 1;
                assert!(said.contains("run the same ranktree restore again, which completes it"), "{said}");
                let (code, said) = run(&["verify", "--data-dir", text(&data_dir)]);
                assert!(code == Some(2) && said.contains("run the same ranktree restore again"), "{said}");
                // The same command completes it, without --replace too.
                let (code, said) = restore(&path("copy"), &data_dir, &[]);
                assert!(
                    code == Some(0) && said.contains("completed the restore that was interrupted"),
                    "{said}"
                );
                assert_eq!(content(&data_dir, BOARD), new);
                verify(&data_dir);
            }
        }
        // Whatever came of it, nothing of before was deleted.
        if content(&data_dir, BOARD) == new {
            let aside =
                data_dir.read_dir().expect("it is there").map(|entry| entry.expect("readable").path());
            let aside =
                aside.filter(|path| path.to_string_lossy().contains("before-restore-")).collect::<Vec<_>>();
            assert_eq!(aside.len(), 1, "{aside:?}");
            assert_eq!(content(&aside[0], BOARD), old);
        }
        std::fs::remove_dir_all(&data_dir).expect("it is ours");
    }
    println!("old, new, refused: {seen:?}");
}

fn start(data_dir: &Path) -> Result<Node, String> {
    NodeSetup::default().at(data_dir).shards(4).start_or_refusal()
}
