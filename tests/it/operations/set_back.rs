//! A service that is set back to an earlier state refuses tokens and cursors of what it has lost, at once and
//! for good, and takes those of what it still has.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::files::copy_folder;
use crate::support::node::Node;
use crate::support::snapshots::{restore, snapshot, text, verify};

const SHARDS: u16 = 2;
const MEMBERS: i64 = 8;
/// A read that waits is answered much later than one that is refused.
const AT_ONCE: Duration = Duration::from_secs(10);

fn start(data: &Path) -> Node {
    Node::shards(SHARDS).at(data).start()
}

fn ended(mut node: Node) {
    assert!(node.terminate().success());
}

/// Each member gets a score, on both shards.
fn write(client: &Client, score: i64) -> String {
    let jobs: Vec<_> =
        (0..MEMBERS).map(|n| json!({"board": "arena", "member": format!("m{n}"), "score": score})).collect();
    let (status, answer) = client.post("/v1/jobs", &json!(jobs));
    assert_eq!(status, 200, "{answer}");
    answer["token"].as_str().expect("a token").to_owned()
}

fn read(client: &Client, token: &str) -> (u16, Value) {
    client.get(&format!("{}?timeout_ms=30000&after={token}", entry_path("arena", "m0")))
}

fn has(client: &Client, token: &str) {
    let (status, answer) = read(client, token);
    assert_eq!(status, 200, "{token}: {answer}");
}

fn is_other_history((status, answer): &(u16, Value)) {
    assert_eq!((*status, &answer["code"]), (409, &json!("other_history")), "{answer}");
    let detail = answer["detail"].as_str().expect("words");
    assert!(detail.contains("without the token") && detail.contains("first page"), "{detail}");
}

/// The token, and each of its parts, is refused by every kind of read, and does not wait.
fn has_lost(client: &Client, token: &str) {
    let asked = Instant::now();
    for part in token.split(',').chain([token]) {
        is_other_history(&read(client, part));
        let after = format!("timeout_ms=30000&after={part}");
        for path in ["boards/arena/top?", "boards/arena/live?top=1&", "members/m0?", "rejects?"] {
            is_other_history(&client.get(&format!("/v1/{path}{after}")));
        }
        let combine = json!({"boards": {"arena": 1}});
        is_other_history(&client.post(&format!("/v1/boards:combine?{after}"), &combine));
    }
    assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
}

/// The lists that have a second page, with the cursor of it.
fn cursors(client: &Client) -> Vec<String> {
    let (status, _) = client.put("/v1/boards/other", &json!({}));
    assert!(matches!(status, 200 | 201));
    for n in 0..3 {
        let job = json!({"score": 0.5, "meta": {"n": n}});
        assert_eq!(client.put(&entry_path("arena", "m1"), &job).0, 422);
        // A stale version is a reject that is kept.
        let job = json!({"board": "arena", "member": "m1", "score": 1, "version": 1});
        client.post("/v1/jobs", &json!([job]));
    }
    let lists = ["boards/arena/top?limit=2", "boards/arena/range?limit=2", "rejects?limit=1"];
    let page = |path: &&str| {
        let (status, page) = client.get(&format!("/v1/{path}"));
        assert_eq!(status, 200, "{page}");
        let next = page["next_cursor"].as_str().unwrap_or_else(|| panic!("{path} has a second page: {page}"));
        format!("/v1/{path}&cursor={next}")
    };
    lists.iter().map(page).collect()
}

fn go_on(client: &Client, cursors: &[String]) {
    for path in cursors {
        let (status, page) = client.get(path);
        assert_eq!(status, 200, "{path}: {page}");
    }
}

fn are_of_another_history(client: &Client, cursors: &[String]) {
    for path in cursors {
        is_other_history(&client.get(path));
    }
}

fn put_back(from: &Path, data: &Path) {
    let (code, said) = restore(from, data, &["--replace"]);
    assert_eq!(code, Some(0), "{said}");
}

/// Scores that are in the snapshot, and those that are not.
struct Filled {
    folder: tempfile::TempDir,
    data: PathBuf,
    snapshot: PathBuf,
    kept: String,
    lost: String,
}

fn filled() -> Filled {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (data, to) = (folder.path().join("data"), folder.path().join("snapshot"));
    let node = start(&data);
    let kept = write(&node.client(), 1);
    snapshot(&node, &to);
    let lost = write(&node.client(), 2);
    has(&node.client(), &lost);
    ended(node);
    Filled { folder, data, snapshot: to, kept, lost }
}

#[test]
fn a_restored_service_refuses_tokens_of_what_it_lost_whatever_is_written_since() {
    let Filled { folder, data, snapshot: first, kept, lost } = filled();
    put_back(&first, &data);
    let mut node = start(&data);
    has_lost(&node.client(), &lost);
    has(&node.client(), &kept);
    let new: Vec<String> = (3..9).map(|score| write(&node.client(), score)).collect();
    has_lost(&node.client(), &lost);
    for token in &new {
        has(&node.client(), token);
    }
    // An answer before the first write is of the new history, too.
    let (_, entry) = node.client().get(&entry_path("arena", "m0"));
    has(&node.client(), entry["as_of"].as_str().expect("it says"));

    // By the log alone, and by a checkpoint.
    for is_killed in [true, false] {
        if is_killed {
            node.kill9();
        } else {
            assert!(node.terminate().success());
            node.verify();
        }
        node.restart();
        has_lost(&node.client(), &lost);
        has(&node.client(), &kept);
        has(&node.client(), &new[5]);
    }

    // A snapshot of it knows both histories, and a second restore makes a third.
    let second = folder.path().join("second");
    snapshot(&node, &second);
    let lost_again = write(&node.client(), 20);
    ended(node);
    put_back(&second, &data);
    let node = start(&data);
    for token in [&lost, &lost_again] {
        has_lost(&node.client(), token);
    }
    has(&node.client(), &kept);
    has(&node.client(), &new[5]);
    let third = write(&node.client(), 30);
    has(&node.client(), &third);
    ended(node);

    // The first snapshot once more: what the second history wrote is lost as well.
    put_back(&first, &data);
    let node = start(&data);
    for token in new.iter().chain([&lost, &lost_again, &third]) {
        has_lost(&node.client(), token);
    }
    has(&node.client(), &kept);
    ended(node);
    verify(&data);
}

#[test]
fn a_cursor_does_not_go_on_in_another_history() {
    let Filled { folder: _folder, data, snapshot: first, .. } = filled();
    let node = start(&data);
    let before = cursors(&node.client());
    go_on(&node.client(), &before);
    assert!(before.iter().all(|path| !path.contains('~')), "{before:?}");
    ended(node);
    put_back(&first, &data);
    let mut node = start(&data);
    are_of_another_history(&node.client(), &before);
    let after = cursors(&node.client());
    go_on(&node.client(), &after);
    node.kill9();
    node.restart();
    go_on(&node.client(), &after);
    are_of_another_history(&node.client(), &before);
}

#[test]
fn an_adopted_shard_refuses_tokens_of_what_it_lost_and_the_others_go_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (data, older) = (folder.path().join("data"), folder.path().join("older"));
    let node = start(&data);
    let kept = write(&node.client(), 1);
    ended(node);
    copy_folder(&data.join("shard-001"), &older);
    let node = start(&data);
    let lost = write(&node.client(), 2);
    let before = cursors(&node.client());
    ended(node);
    fs::remove_dir_all(data.join("shard-001")).expect("it is there");
    copy_folder(&older, &data.join("shard-001"));

    let mut node = Node::shards(SHARDS).at(&data).flags(&["--adopt", "1"]).start();
    let (of_first, of_second) = lost.split_once(',').expect("both shards");
    for is_last in [false, true] {
        has_lost(&node.client(), of_second);
        has(&node.client(), of_first);
        has(&node.client(), &kept);
        is_other_history(&read(&node.client(), &lost));
        are_of_another_history(&node.client(), &before);
        for score in 3..9 {
            let new = write(&node.client(), score);
            has(&node.client(), &new);
        }
        has_lost(&node.client(), of_second);
        if !is_last {
            node.kill9();
            node.restart_with(&[]);
        }
    }
    assert!(node.terminate().success());
    node.verify();
    assert!(node.log().contains("the shard was set back"), "{}", text(&data));
}
