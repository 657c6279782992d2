//! Data that are not what the data directory had there: a shard of another service, an older copy of one
//! shard or of all, a shard of another copy of the directory. Each is refused before a byte is written, in
//! words, by every command that opens the data, and the service goes on once the right directory is back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Client, entry_path};
use crate::support::command::{command, signal};
use crate::support::files::copy_folder;
use crate::support::node::{Node, NodeSetup};
use crate::support::snapshots::{files_of, restore, run, snapshot};

const SHARDS: u16 = 2;
const MEMBERS: i64 = 20;

fn at(data: &Path) -> NodeSetup {
    Node::shards(SHARDS).at(data)
}

fn shard(data: &Path, number: u16) -> PathBuf {
    data.join(format!("shard-00{number}"))
}

/// Defines the board `arena`, unless it is there, and gives each member a score.
fn score(client: &Client, definition: &Value, score: i64) {
    assert!(matches!(client.put("/v1/boards/arena", definition).0, 200 | 201));
    for member in 0..MEMBERS {
        let (status, answer) =
            client.put(&entry_path("arena", &format!("m{member}")), &json!({ "score": score + member }));
        assert_eq!(status, 200, "{answer}");
    }
}

fn scores(client: &Client) -> Vec<i64> {
    let of = |member| client.get(&entry_path("arena", &format!("m{member}"))).1["score"].as_i64();
    (0..MEMBERS).map(|member| of(member).expect("it has a score")).collect()
}

fn scores_from(from: i64) -> Vec<i64> {
    (from..from + MEMBERS).collect()
}

/// A start takes the data, has these scores, and leaves nothing that `verify` finds.
fn opens_with(data: &Path, expected: &[i64]) {
    let mut node = at(data).start();
    assert_eq!(scores(&node.client()), expected);
    assert!(node.terminate().success());
    node.verify();
}

/// A stopped service with its scores from this one on.
fn filled(folder: &Path, name: &str, definition: &Value, from: i64) -> PathBuf {
    let data = folder.join(name);
    let mut node = at(&data).start();
    score(&node.client(), definition, from);
    assert!(node.terminate().success());
    data
}

fn put_in_place_of(place: &Path, other: &Path) -> PathBuf {
    let aside = place.with_extension("aside");
    fs::rename(place, &aside).expect("it can be moved");
    copy_folder(other, place);
    aside
}

fn put_back(place: &Path, aside: &Path) {
    fs::remove_dir_all(place).expect("it is there");
    fs::rename(aside, place).expect("it can be moved");
}

/// Every command refuses the data with these words, and changes nothing.
fn is_refused_everywhere(data: &Path, words: &[&str]) {
    let before = files_of(data);
    let dir = data.to_str().expect("it is UTF-8");
    let (status, refusal) = at(data).refusal();
    assert_eq!(status.code(), Some(2), "{refusal}");
    let mut all = vec![("serve", refusal)];
    for (name, arguments) in [
        ("config check", vec!["config", "check", "--shards", "2", "--data-dir", dir]),
        ("verify", vec!["verify", "--data-dir", dir]),
        ("rebuild", vec!["rebuild", "--data-dir", dir]),
        ("export", vec!["export", "--board", "arena", "--data-dir", dir]),
        ("rejects", vec!["rejects", "--data-dir", dir]),
    ] {
        let (code, text) = run(&arguments);
        assert_ne!(code, Some(0), "{name} is content: {text}");
        all.push((name, text));
    }
    for (name, text) in all {
        for word in words {
            assert!(text.contains(word), "{name} does not say {word:?}: {text}");
        }
    }
    let after = files_of(data);
    let changed = after.iter().filter(|(path, bytes)| before.get(*path) != Some(*bytes));
    let changed: Vec<_> = changed.map(|(path, _)| path).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{changed:?} were changed");
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn a_shard_of_another_service_is_refused_whatever_it_holds() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    for (name, definition) in [
        ("same", json!({})),
        ("lowest", json!({ "keys": [{ "name": "time", "order": "asc" }] })),
        ("two-keys", json!({ "keys": [{ "name": "a" }, { "name": "b" }] })),
        ("incr", json!({ "policy": "incr" })),
    ] {
        let other = folder.path().join(name);
        let mut node = at(&other).start();
        assert_eq!(node.client().put("/v1/boards/arena", &definition).0, 201);
        assert_eq!(node.client().put("/v1/boards/more", &json!({})).0, 201);
        assert!(node.terminate().success());
        for number in 0..SHARDS {
            let place = shard(&data, number);
            let aside = put_in_place_of(&place, &shard(&other, number));
            let name = format!("shard-00{number}");
            is_refused_everywhere(&data, &[&name, "belongs to the service", "ranktree restore"]);
            put_back(&place, &aside);
        }
    }
    opens_with(&data, &scores_from(5));
}

/// An edited file says nothing of what was there; that would switch off the comparison.
#[test]
fn a_damaged_file_of_the_data_directory_is_refused_and_none_is_written_anew() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    let marker = data.join("RANKTREE");
    let whole = fs::read_to_string(&marker).expect("it is there");
    for damaged in [
        whole.replacen("format 2", "format 2 ", 1),
        whole.replacen("epoch", "epoch 9", 1),
        whole[..whole.len() / 2].to_owned(),
        String::new(),
        "garbage".to_owned(),
    ] {
        fs::write(&marker, damaged).expect("it can be written");
        is_refused_everywhere(&data, &["RANKTREE", "was damaged or edited", "remove this file"]);
    }
    fs::remove_file(&marker).expect("it is there");
    opens_with(&data, &scores_from(5));
    assert!(fs::read_to_string(&marker).is_ok_and(|text| text.contains("format 2")));
}

/// Both directories lost the file that says whose they are.
#[test]
fn shards_of_two_services_are_not_mixed_without_the_data_directorys_file_either() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    let other = filled(folder.path(), "other", &json!({}), 7);
    let aside = put_in_place_of(&shard(&data, 1), &shard(&other, 1));
    fs::remove_file(data.join("RANKTREE")).expect("it is there");
    is_refused_everywhere(
        &data,
        &["shard-001", "belongs to the service", "shard 0 beside it", "ranktree restore"],
    );
    assert!(!data.join("RANKTREE").exists());
    put_back(&shard(&data, 1), &aside);
    assert!(at(&data).start().terminate().success());
}

#[test]
fn an_older_copy_of_one_shard_is_refused_until_it_is_adopted() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    let older = folder.path().join("older");
    copy_folder(&data, &older);
    let mut node = at(&data).start();
    score(&node.client(), &json!({}), 50);
    let (status, answer) = node.client().put(&entry_path("arena", "late"), &json!({ "score": 1 }));
    assert_eq!(status, 200, "{answer}");
    assert!(node.terminate().success());
    for number in 0..SHARDS {
        let place = shard(&data, number);
        let aside = put_in_place_of(&place, &shard(&older, number));
        let (name, adopt) = (format!("shard-00{number}"), format!("--adopt {number}"));
        is_refused_everywhere(&data, &[&name, "older copy", &adopt]);
        put_back(&place, &aside);
    }
    // The operator says that it is to be taken, and from then on it is what belongs there.
    let aside = put_in_place_of(&shard(&data, 1), &shard(&older, 1));
    let mut node = at(&data).flags(&["--adopt", "1"]).start();
    let mixed = scores(&node.client());
    assert!(mixed.iter().any(|score| *score < 50) && mixed.iter().any(|score| *score >= 50), "{mixed:?}");
    assert!(node.terminate().success());
    for _ in 0..2 {
        opens_with(&data, &mixed);
    }
    // What it took the place of is another line of history now.
    let before = folder.path().join("before");
    fs::rename(&aside, &before).expect("it can be moved");
    put_in_place_of(&shard(&data, 1), &before);
    is_refused_everywhere(&data, &["shard-001", "another line of history", "--adopt 1"]);
}

/// The file of the data directory stays, or is as old as the shards: a whole older directory is what an
/// operator puts back on purpose.
#[test]
fn an_older_copy_of_all_shards_is_refused_unless_it_is_the_whole_directory() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    let older = folder.path().join("older");
    copy_folder(&data, &older);
    let mut node = at(&data).start();
    score(&node.client(), &json!({}), 50);
    assert!(node.terminate().success());
    for number in 0..SHARDS {
        put_in_place_of(&shard(&data, number), &shard(&older, number));
    }
    is_refused_everywhere(&data, &["older copy", "--adopt"]);
    fs::copy(older.join("RANKTREE"), data.join("RANKTREE")).expect("it can be copied");
    opens_with(&data, &scores_from(5));
}

/// Two directories of one service that went on apart: copied whole, or restored from one snapshot.
#[test]
fn a_shard_of_another_copy_of_the_directory_is_refused() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    let copied = folder.path().join("copied");
    copy_folder(&data, &copied);
    let mut node = at(&data).start();
    let taken = folder.path().join("snapshot");
    snapshot(&node, &taken);
    assert!(node.terminate().success());
    let restored = folder.path().join("restored");
    let (code, said) = restore(&taken, &restored, &[]);
    assert_eq!(code, Some(0), "{said}");
    for other in [&copied, &restored] {
        let mut node = at(other).start();
        score(&node.client(), &json!({}), 500);
        assert!(node.terminate().success());
        for number in 0..SHARDS {
            let place = shard(&data, number);
            let aside = put_in_place_of(&place, &shard(other, number));
            is_refused_everywhere(&data, &[&format!("shard-00{number}"), &format!("--adopt {number}")]);
            put_back(&place, &aside);
        }
    }
}

/// Copies that were made while the service ran, of the opening that was the last one: what was written since
/// shows that they are older.
#[test]
fn a_copy_made_while_the_service_ran_is_refused_once_it_went_on() {
    let folder = folder();
    let data = folder.path().join("data");
    let mut node = at(&data).start();
    score(&node.client(), &json!({}), 5);
    let older = folder.path().join("older");
    // No file changes under the copy.
    signal("STOP", node.pid());
    let copied = Command::new("cp").arg("-a").arg(&data).arg(&older).status();
    signal("CONT", node.pid());
    assert!(copied.expect("there is a cp").success());
    score(&node.client(), &json!({}), 50);
    assert!(node.terminate().success());
    let aside = put_in_place_of(&shard(&data, 1), &shard(&older, 1));
    is_refused_everywhere(&data, &["shard-001", "older copy", "--adopt 1"]);
    put_back(&shard(&data, 1), &aside);
    assert!(at(&data).start().terminate().success());
}

/// Shards are opened before the data directory's file says so. Kills in between, however many, and starts
/// that are refused, leave what the next start takes by itself.
#[test]
fn starts_that_are_killed_anywhere_are_followed_by_one_that_works() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    let marker = data.join("RANKTREE");
    // As after a kill between the two writes, several times: the file is still that of the start before.
    let before = fs::read(&marker).expect("it is there");
    for _ in 0..4 {
        let mut node = at(&data).start();
        node.kill9();
        fs::write(&marker, &before).expect("it can be written");
    }
    // And as after kills at any moment of a start.
    for delay in 0..40 {
        let mut starting = command();
        starting.args(["serve", "--listen", "127.0.0.1:0", "--shards", "2", "--data-dir"]).arg(&data);
        starting.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = starting.spawn().expect("the binary can be started");
        // No moment is waited for: each of them is tried.
        std::thread::sleep(std::time::Duration::from_millis(delay * 2));
        child.kill().expect("a child that was not waited for can be signalled");
        child.wait().expect("a child can be waited for");
    }
    opens_with(&data, &scores_from(5));
}

/// Somebody has linked a file that records what was there. No byte is read or written where it leads.
#[test]
fn a_link_in_the_place_of_a_marker_is_told_as_a_link_wherever_it_leads() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    let elsewhere = folder.path().join("elsewhere");
    for marker in ["RANKTREE", "shard-000/RANKTREE", "shard-001/RANKTREE"] {
        let place = data.join(marker);
        let kept = fs::read(&place).expect("it is there");
        fs::write(&elsewhere, &kept).expect("it can be written");
        // To the file itself, to nothing, to what others may not read, and round and round.
        for target in [elsewhere.as_path(), Path::new("none"), Path::new("/proc/1/mem"), place.as_path()] {
            fs::remove_file(&place).expect("it is there");
            std::os::unix::fs::symlink(target, &place).expect("it can be made");
            is_refused_everywhere(&data, &[marker, "it is a link; put the file itself there"]);
            assert_eq!(fs::read(&elsewhere).expect("it is there"), kept);
        }
        fs::remove_file(&place).expect("it is there");
        fs::write(&place, kept).expect("it can be written");
    }
    opens_with(&data, &scores_from(5));
}

/// What was there before a restore is not taken for what is there now.
#[test]
fn a_shard_of_before_a_restore_is_refused() {
    let folder = folder();
    let data = filled(folder.path(), "data", &json!({}), 5);
    let mut node = at(&data).start();
    let taken = folder.path().join("snapshot");
    snapshot(&node, &taken);
    score(&node.client(), &json!({}), 50);
    assert!(node.terminate().success());
    let (code, said) = restore(&taken, &data, &["--replace"]);
    assert_eq!(code, Some(0), "{said}");
    let mut entries = fs::read_dir(&data).expect("readable").flatten().map(|entry| entry.path());
    let before = entries.find(|path| path.to_string_lossy().contains("before-restore"));
    let before = before.expect("what was there is kept");
    let aside = put_in_place_of(&shard(&data, 0), &shard(&before, 0));
    is_refused_everywhere(&data, &["shard-000", "another line of history", "--adopt 0"]);
    put_back(&shard(&data, 0), &aside);
    opens_with(&data, &scores_from(5));
}
