//! Snapshots of nodes, and what is in a data directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::command::command;
use crate::support::node::Node;

/// What a subcommand came to: its exit code, and all that it said.
pub type Said = (Option<i32>, String);

/// Runs a subcommand to its end.
pub fn run(arguments: &[&str]) -> Said {
    let output = command().args(arguments).stdin(Stdio::null()).output();
    let Output { status, stdout, stderr } = output.expect("the binary can be started");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("it is UTF-8")
}

/// Takes a snapshot, which must succeed, and gives its manifest.
pub fn snapshot(node: &Node, to: &Path) -> Value {
    let (code, said) = run(&["snapshot", "--url", node.base(), "--to", text(to)]);
    assert_eq!(code, Some(0), "{said}");
    manifest(to)
}

pub fn manifest(snapshot: &Path) -> Value {
    let text = fs::read_to_string(snapshot.join("SNAPSHOT.json")).expect("a snapshot has one");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The applied sequence of each shard, as a manifest states it.
pub fn applied_in(manifest: &Value) -> Vec<u64> {
    let shards = manifest["shards"].as_array().expect("a list");
    shards.iter().map(|shard| shard["applied_sequence"].as_u64().expect("a number")).collect()
}

pub fn restore(from: &Path, data_dir: &Path, more: &[&str]) -> Said {
    run(&[&["restore", "--from", text(from), "--data-dir", text(data_dir)], more].concat())
}

pub fn verify(data_dir: &Path) {
    let (code, said) = run(&["verify", "--data-dir", text(data_dir)]);
    assert_eq!(code, Some(0), "{said}");
}

/// Score and rank of each member of a board of a stopped node.
pub fn content(data_dir: &Path, board: &str) -> BTreeMap<String, (i64, u64)> {
    let export = ["export", "--board", board, "--rows-only", "--data-dir", text(data_dir)];
    let output = command().args(export).stdin(Stdio::null()).output().expect("the binary can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = String::from_utf8(output.stdout).expect("it is UTF-8");
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("each line is an object");
        let numbers = (row["score"].as_i64().expect("a score"), row["rank"].as_u64().expect("a rank"));
        (row["member"].as_str().expect("a member").to_owned(), numbers)
    };
    rows.lines().map(row).collect()
}

/// The same of a running node.
pub fn served(node: &Node, board: &str) -> BTreeMap<String, (i64, u64)> {
    let (mut found, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let (status, page) = node.client().get(&format!("/v1/boards/{board}/top?limit=1000&cursor={cursor}"));
        assert_eq!(status, 200, "{page}");
        for entry in page["entries"].as_array().expect("a page") {
            let numbers =
                (entry["score"].as_i64().expect("a score"), entry["rank"].as_u64().expect("a rank"));
            found.insert(entry["member"].as_str().expect("a member").to_owned(), numbers);
        }
        match &page["next_cursor"] {
            Value::String(next) => cursor.clone_from(next),
            _ => return found,
        }
    }
}

/// Scores with their ranks: one more than there are better ones.
pub fn ranked(scores: &BTreeMap<String, i64>) -> BTreeMap<String, (i64, u64)> {
    let mut sorted: Vec<_> = scores.values().copied().collect();
    sorted.sort_unstable_by(|left, right| right.cmp(left));
    let rank = |score| sorted.partition_point(|other| *other > score) + 1;
    let ranked = scores
        .iter()
        .map(|(member, score)| (member.clone(), (*score, u64::try_from(rank(*score)).expect("it fits"))));
    ranked.collect()
}

/// Every file below a folder with its content, and every link with what it names, but for texts that RocksDB
/// writes about itself.
pub fn files_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name().expect("it has one").to_string_lossy().into_owned();
            if let Ok(target) = fs::read_link(&path) {
                found.insert(path, text(&target).as_bytes().to_vec());
            } else if path.is_dir() {
                found.insert(path.clone(), Vec::new());
                folders.push(path);
            } else if !name.starts_with("LOG") {
                let content = fs::read(&path).expect("it can be read");
                found.insert(path, content);
            }
        }
    }
    found
}
