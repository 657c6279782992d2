//! The real binary starts twice on each damaged data directory, with NATS and without. Either every rank is
//! correct, or the start is refused with an explanation and changes nothing. No start hangs.
//!
//! The unit tests of the writer damage many more places of each file. The tests here need a process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ranktree::state::Applied;
use ranktree::storage::codec::{DeltaEncoder, ParkedRecord};
use ranktree::storage::{Commit, StorageResources, Store, shard_directory};
use ranktree::types::{MemberId, Sequence, ShardId, Timestamp};
use ranktree::writer::lines_of;
use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::command::run;
use crate::support::nats::{Nats, wait_applied};
use crate::support::node::Node;
use crate::support::snapshots::files_of as everything_in;

const SHARDS: u16 = 2;
const MEMBERS: usize = 60;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Every file below a folder, by its path from there.
fn files_of(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it is below").to_owned();
                files.insert(name, fs::read(&path).expect("readable"));
            }
        }
    }
    files
}

fn write_files(folder: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("it is below the folder")).expect("the disk takes it");
        fs::write(path, bytes).expect("the disk takes it");
    }
}

/// Writes until both shards have a checkpoint, were restarted, and have a log after that.
fn write_scores(service: &mut Node) {
    for round in 0..3 {
        for first in (0..MEMBERS).step_by(20) {
            let jobs = (first..first + 20).map(|member| {
                json!({ "board": "b", "member": format!("m{member}"), "score": (member * 7 + round) % 11 })
            });
            let (status, answer) =
                service.client().post("/v1/jobs?wait=applied", &jobs.collect::<Vec<_>>().into());
            assert_eq!(status, 200, "{answer}");
        }
        if round == 0 {
            assert!(service.terminate().success());
            service.restart();
        }
    }
}

fn ranks(client: &Client) -> Value {
    let (status, mut page) = client.get("/v1/boards/b/top?limit=1000");
    assert_eq!(status, 200, "{page}");
    page["entries"].take()
}

/// A file of a shard, by how its name begins and ends; of several the newest.
fn file_of(files: &Files, shard: u16, start: &str, end: &str) -> PathBuf {
    let folder = format!("shard-{shard:03}");
    let is_it = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.starts_with(&folder) && name.starts_with(start) && name.ends_with(end)
    };
    files.keys().rfind(is_it).unwrap_or_else(|| panic!("there is no {start}*{end} in {files:?}")).clone()
}

/// The same files with one of them changed; `None` removes it.
fn with(files: &Files, name: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Files {
    let mut files = files.clone();
    change(files.get_mut(name).expect("it is there"));
    files
}

fn without(files: &Files, name: &Path) -> Files {
    let mut files = files.clone();
    files.remove(name).expect("it is there");
    files
}

fn flip(bytes: &mut [u8], at: usize, bit: u8) {
    *bytes.get_mut(at).expect("the file is as long as that") ^= bit;
}

/// Where the second record of a log or manifest has its type.
fn second_type(bytes: &[u8]) -> usize {
    let length = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    7 + length(4) + 6
}

/// Damages of every kind, and whether a start may take the directory all the same.
fn damages(files: &Files) -> Vec<(String, Files)> {
    let mut all = Vec::new();
    let kinds = [("CURRENT", ""), ("MANIFEST-", ""), ("", ".log"), ("", ".sst"), ("RANKTREE", "")];
    for (start, end) in kinds {
        let name = file_of(files, 1, start, end);
        let length = files[&name].len();
        let mut add = |what: &str, files: Files| all.push((format!("{} {what}", name.display()), files));
        add("is gone", without(files, &name));
        add("is empty", with(files, &name, Vec::clear));
        add("is cut by half", with(files, &name, |bytes| bytes.truncate(length / 2)));
        add("has a flipped bit", with(files, &name, |bytes| flip(bytes, length / 3, 16)));
        if start == "MANIFEST-" || end == ".log" {
            // This damage makes RocksDB's reader loop forever.
            add(
                "has a type of another kind of log",
                with(files, &name, |bytes| {
                    let at = second_type(bytes);
                    flip(bytes, at, 4);
                }),
            );
        }
    }
    let emptied = files.iter().filter(|(name, _)| !name.starts_with("shard-001"));
    all.push(("shard-001 is emptied".to_owned(), emptied.map(|(n, b)| (n.clone(), b.clone())).collect()));
    all
}

/// Starts each damaged directory twice. Returns how many were accepted, and how many refused.
fn start_all(files: &Files, extra: &[&str], expected: &Value, applied: &[u64]) -> (usize, usize) {
    let (mut taken, mut refused) = (0, 0);
    for (what, damaged) in damages(files) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let data_dir = folder.path().join("data");
        write_files(&data_dir, &damaged);
        fs::create_dir_all(data_dir.join("shard-001")).expect("the disk takes it");
        let Output { status: verified, stdout, stderr } = run("verify", &data_dir);
        assert!(verified.code().is_some_and(|code| code < 3), "{what}: verify ended with {verified}");
        assert!(files_of(&data_dir) == damaged, "{what}: verify changed a file");
        for turn in ["first", "second"] {
            match Node::at(&data_dir).shards(SHARDS).flags(extra).start_or_refusal() {
                Ok(mut service) => {
                    if !applied.is_empty() {
                        wait_applied(&service.client(), applied);
                    }
                    assert_eq!(ranks(&service.client()), *expected, "{what}: the {turn} start");
                    service.kill9();
                    taken += 1;
                }
                Err(words) => {
                    let names_it = words.contains(&data_dir.display().to_string());
                    // One of them, by what the shard is filled from.
                    let remedies =
                        ["ranktree restore --from SNAPSHOT", "away and start: the shard gets a copy"];
                    let no_owner = "no other node that owns the shard runs; start one";
                    let remedy = remedies.iter().chain([&no_owner]).any(|remedy| words.contains(remedy));
                    assert!(names_it && remedy, "{what}: the {turn} start says: {words}");
                    // The other shard is not damaged. None of its files may change, either.
                    let unchanged = files_of(&data_dir) == damaged;
                    assert!(unchanged, "{what}: the {turn} start was refused, and changed a file");
                    let said = [stdout.as_slice(), stderr.as_slice()].concat();
                    let said = String::from_utf8_lossy(&said).into_owned();
                    assert!(!verified.success(), "{what}: a start refuses it, and verify says: {said}");
                    refused += 1;
                }
            }
        }
    }
    (taken, refused)
}

#[test]
fn a_damaged_directory_gives_correct_ranks_or_is_refused_unchanged() {
    let mut service = Node::shards(SHARDS).start();
    write_scores(&mut service);
    let expected = ranks(&service.client());
    service.kill9();
    let (taken, refused) = start_all(&files_of(service.data_dir()), &[], &expected, &[]);
    assert!(taken >= 2 && refused >= 24, "{taken} starts were taken, {refused} refused");
}

#[test]
fn a_damaged_directory_with_nats_gives_correct_ranks_or_is_refused_unchanged() {
    let nats = Nats::start();
    let url = nats.url();
    let extra = ["--nats", url.as_str()];
    let mut service = Node::shards(SHARDS).flags(&extra).start();
    write_scores(&mut service);
    let expected = ranks(&service.client());
    service.kill9();
    let ends: Vec<u64> =
        (0..SHARDS).map(|shard| nats.info(&format!("RANKTREE_JOBS_{shard}")).state.last_sequence).collect();
    let (taken, refused) = start_all(&files_of(service.data_dir()), &extra, &expected, &ends);
    assert!(taken >= 4 && refused >= 20, "{taken} starts were taken, {refused} refused");
}

/// Nothing may be written, as on a file system that is mounted read-only.
#[test]
fn verify_needs_no_permission_to_write() {
    let mut service = Node::shards(SHARDS).start();
    write_scores(&mut service);
    service.kill9();
    let before = files_of(service.data_dir());
    let read_only = |mode: &str| {
        let chmod = Command::new("chmod").args(["-R", mode]).arg(service.data_dir()).status();
        assert!(chmod.expect("there is a chmod").success());
    };
    read_only("a-w");
    let Output { status, stdout, stderr } = run("verify", service.data_dir());
    read_only("u+w");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{stdout}\n{stderr}");
    assert!(files_of(service.data_dir()) == before, "verify changed a file");
}

#[test]
fn verify_reports_a_damaged_marker_and_the_next_start_writes_it_again() {
    let mut service = Node::shards(SHARDS).start();
    write_scores(&mut service);
    assert!(service.terminate().success());
    let marker = shard_directory(service.data_dir(), ShardId(1)).join("RANKTREE");
    let whole = fs::read(&marker).expect("it is there");
    let mut damaged = whole.clone();
    damaged[9] ^= 1;
    fs::write(&marker, &damaged).expect("the disk takes it");
    let Output { status, stdout, .. } = run("verify", service.data_dir());
    let said = String::from_utf8_lossy(&stdout);
    assert_eq!(status.code(), Some(1), "{said}");
    let (zero, one) = said.split_once("shard 1: ").expect("both are told");
    assert!(zero.contains("no errors found") && !zero.contains("RANKTREE"), "{said}");
    let words = "  the file RANKTREE is damaged: the next start writes it again from the other files\n";
    assert!(one.contains(&format!("errors were found\n{words}")) && !said.contains("rebuild"), "{said}");
    assert!(fs::read(&marker).expect("it is there") == damaged, "verify changes nothing");
    service.restart();
    assert_eq!(ranks(&service.client()).as_array().map(Vec::len), Some(MEMBERS));
    assert!(service.terminate().success());
    service.verify();
}

/// Verifies parked jobs, and reports one that is in a wrong line.
#[test]
fn verify_reads_parked_jobs_and_reports_one_in_a_wrong_line() {
    let mut service = Node::start();
    let path = entry_path("b", "m");
    assert_eq!(service.client().put(&path, &json!({ "score": 1 })).0, 200);
    assert!(service.terminate().success());
    let verified = || {
        let Output { status, stdout, .. } = run("verify", service.data_dir());
        (status.code(), String::from_utf8_lossy(&stdout).into_owned())
    };
    let park = |line: u32, index: u32| {
        let path = shard_directory(service.data_dir(), ShardId(0));
        let store = Store::open(&path, ShardId(0), 1, &StorageResources::new(8 << 20, 1)).expect("it opens");
        let job = br#"{"member":"m","board":"never","score":1}"#.to_vec();
        let (sequence, timestamp) = (Sequence(1), Timestamp::default());
        let record = ParkedRecord { sequence, index, timestamp, job, board: 0 };
        let before = store.meta().expect("readable").expect("it is there").applied_sequence;
        let applied = Applied { sequence: Sequence(before + 1), ..Applied::default() };
        let delta = DeltaEncoder::new(applied.sequence, applied, &[], 0).finish();
        let parked = vec![(line, record)];
        store
            .commit(&Commit { applied, delta, parked, ..Commit::default() }, true)
            .expect("the disk takes it");
    };
    let (code, said) = verified();
    assert!(
        code == Some(0) && said.contains("1 entry, 0 parked jobs, ") && said.contains("no errors found"),
        "{said}"
    );
    let [own, shared] = lines_of(&MemberId::new("m").expect("a good id"));
    park(own, 5);
    let (code, said) = verified();
    assert!(code == Some(0) && said.contains("1 parked job, ") && said.contains("no errors found"), "{said}");
    park(own + 1, 6);
    let (code, said) = verified();
    let wrong = format!(
        "job 6 of message 1, which waits for its board, is in line {}, but jobs of m belong in line {own} or {shared}\n",
        own + 1
    );
    assert!(code == Some(1) && said.contains("errors were found") && said.contains(&wrong), "{said}");
    assert!(said.contains("1 finding in parked jobs") && !said.contains("rebuild"), "{said}");
}

#[test]
fn a_rebuild_changes_no_shard_where_another_one_cannot_be_rebuilt() {
    for damaged in 0..SHARDS {
        let mut service = Node::shards(SHARDS).start();
        write_scores(&mut service);
        assert!(service.terminate().success());
        let path = shard_directory(service.data_dir(), ShardId(damaged));
        let tables = fs::read_dir(&path).expect("readable").map(|entry| entry.expect("readable").path());
        let tables: Vec<_> = tables.filter(|path| path.extension().is_some_and(|end| end == "sst")).collect();
        assert!(!tables.is_empty());
        for table in tables {
            let mut bytes = fs::read(&table).expect("readable");
            bytes.iter_mut().take(200).for_each(|byte| *byte ^= 0x55);
            fs::write(&table, bytes).expect("the disk takes it");
        }
        let before = everything_in(service.data_dir());
        let Output { status, stdout, stderr } = run("rebuild", service.data_dir());
        let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        assert!(status.code() == Some(2) && said.contains("is damaged"), "{said}");
        assert!(said.contains(&format!("shard-00{damaged}")) && !said.contains("rebuilt"), "{said}");
        assert!(everything_in(service.data_dir()) == before, "a shard was changed: {said}");
    }
}

#[test]
fn verify_counts_boards_instances_and_what_movement_needs_each_for_itself() {
    let mut service = Node::start();
    let client = service.client();
    // The season is the same one on every day of the test.
    let season = json!({ "starts": "2020-01-01T00:00:00Z", "every": "36500d" });
    let league = json!({ "windows": ["all", "season"], "season": season, "movement": true });
    assert_eq!(client.put("/v1/boards/league", &league).0, 201);
    for score in [1, 2] {
        assert_eq!(client.put(&entry_path("league", "m"), &json!({ "score": score })).0, 200);
    }
    assert_eq!(client.put(&entry_path("plain", "m"), &json!({ "score": 1 })).0, 200);
    assert!(service.terminate().success());
    let Output { status, stdout, .. } = run("verify", service.data_dir());
    let said = String::from_utf8_lossy(&stdout);
    let counts = "2 boards, 1 instance of a window, 1 tree for movement, 1 member, 3 entries, ";
    assert!(status.success() && said.contains(counts), "{said}");
}

#[test]
fn verify_is_refused_while_a_service_runs() {
    let mut service = Node::shards(SHARDS).start();
    write_scores(&mut service);
    let Output { status, stdout, .. } = run("verify", service.data_dir());
    let stdout = String::from_utf8_lossy(&stdout);
    assert_eq!(status.code(), Some(2), "{stdout}");
    assert!(stdout.contains("in use by another process"), "{stdout}");
    assert_eq!(ranks(&service.client()).as_array().map(Vec::len), Some(MEMBERS));
}
