//! Every file of a shard's directory, damaged in every way at many places: flipped bits, cut short, zeroed
//! blocks, gone.
//!
//! Whatever it is, a start shows everything that was written, or refuses in words and changes no byte; so
//! does the next one; and `verify` says no to what a start refuses. Nothing hangs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use parking_lot::Mutex;

use crate::storage::{StorageError, StorageResources, Store, TreesFrom, mark_rebuilt, recover, verify};
use crate::types::ShardId;
use crate::writer::tests::build::{bare, job};
use crate::writer::tests::harness::{Harness, Say, check_shard};
use crate::writer::tests::model::Model;

/// How long one damaged directory may take. Only a hang takes this long.
const HANGS_AFTER: Duration = Duration::from_secs(300);
/// Places per file and kind of damage; small files are flipped at every byte.
const PLACES: usize = 24;
const SMALL: usize = 48;

#[derive(Debug, Clone)]
enum Damage {
    Gone,
    CutTo(usize),
    Flip(usize, u8),
    Zero(usize, usize),
}

/// A directory as a crash leaves it, and what was written when its log ended at a message.
struct Crashed {
    folder: tempfile::TempDir,
    models: BTreeMap<u64, Model>,
    last: u64,
    /// The last message that was synced: nothing may be lost up to it.
    synced: u64,
}

/// Two checkpoints with a restart between them, so that there are files of every kind, and a log that is
/// written to.
fn crashed(stream: &str) -> Crashed {
    let mut harness = Harness::new(true);
    harness.synced = stream.is_empty();
    stream.clone_into(&mut harness.stream);
    let mut models = BTreeMap::new();
    let mut round = |harness: &mut Harness, number: i64| {
        let many = (0..40).map(|member| job(&format!("m{member}"), &[("auto", &[member * number % 7])]));
        let with_metadata = job(&format!("n{number}"), &[("more", &[number])]);
        harness.batch(&[
            Say::Jobs(many.collect()),
            Say::Jobs(vec![with_metadata.version(9).meta(&format!(r#"{{"round":{number}}}"#))]),
            Say::Jobs(vec![bare(crate::job::Op::Hide, "m2", &["auto"])]),
        ]);
        models.insert(harness.last, harness.model.clone());
    };
    for part in 0..3 {
        for number in 1..6 {
            round(&mut harness, part * 10 + number);
        }
        if part < 2 {
            harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
        }
        if part == 0 {
            harness.restart();
        }
    }
    // Enough in the log for it to have several blocks.
    for number in 100..120 {
        round(&mut harness, number);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path(), &files_of(harness.folder.path()));
    let last = harness.last;
    let checkpoints = models.keys().nth(9).copied().expect("there are more rounds");
    let synced = if stream.is_empty() { last } else { checkpoints };
    Crashed { folder, models, last, synced }
}

fn files_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    let files = entries.filter(|path| path.is_file());
    let named = files.map(|path| (PathBuf::from(path.file_name().expect("it has a name")), path));
    named.map(|(name, path)| (name, fs::read(path).expect("readable"))).collect()
}

fn write_files(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).expect("the disk takes it");
    }
}

/// Where fragments begin, in files that are framed.
fn fragments(bytes: &[u8]) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some([_, _, _, _, l0, l1, _]) = bytes.get(at..at + 7) {
        found.push(at);
        at += 7 + usize::from(u16::from_le_bytes([*l0, *l1]));
        let left = (32 << 10) - at % (32 << 10);
        at += if left < 7 { left } else { 0 };
    }
    found
}

fn damages(name: &str, bytes: &[u8]) -> Vec<Damage> {
    let length = bytes.len();
    let mut all = vec![Damage::Gone];
    let places = |count: usize| (0..count).map(move |at| at * length / count).collect::<Vec<_>>();
    let flipped = if length <= SMALL { (0..length).collect() } else { places(PLACES) };
    all.extend(flipped.into_iter().enumerate().map(|(turn, at)| Damage::Flip(at, 1 << (turn % 8))));
    all.extend(places(PLACES.min(length)).into_iter().map(Damage::CutTo));
    all.extend(places(PLACES.min(length) / 3).into_iter().map(|at| Damage::Zero(at, 512)));
    if name.starts_with("MANIFEST") || Path::new(name).extension().is_some_and(|end| end == "log") {
        let fragments = fragments(bytes);
        let some = fragments.iter().step_by(fragments.len().div_ceil(PLACES).max(1));
        for at in some {
            // A record is gone, the beginning of another follows; the header says something else.
            all.extend([Damage::CutTo(*at), Damage::CutTo(at + 3), Damage::Zero(*at, 7)]);
            // The type of a log that is used again: RocksDB's reader never returns from it.
            all.extend([Damage::Flip(at + 4, 1), Damage::Flip(at + 6, 4), Damage::Flip(at + 6, 8)]);
        }
    }
    all
}

fn damaged(bytes: &[u8], damage: &Damage) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    match damage {
        Damage::Gone => return None,
        Damage::CutTo(length) => bytes.truncate(*length),
        Damage::Flip(at, bit) => bytes.get_mut(*at).into_iter().for_each(|byte| *byte ^= bit),
        Damage::Zero(at, length) => bytes.iter_mut().skip(*at).take(*length).for_each(|byte| *byte = 0),
    }
    Some(bytes)
}

fn resources() -> StorageResources {
    StorageResources::new(8 << 20, 16)
}

/// A start as the service makes it. What it shows, if it does.
fn start(folder: &Path, crashed: &Crashed) -> Result<u64, StorageError> {
    let store = Store::open_to_load(folder, ShardId(0), 1, &resources())?;
    let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {})?;
    let store = store.into_writable()?;
    let mut shard = recovered.shard;
    let names: Vec<_> = recovered.rebuilt.into_iter().map(|(name, _)| name).collect();
    mark_rebuilt(&store, &mut shard, &names)?;
    let applied = shard.applied.sequence.0;
    let model = crashed.models.get(&applied).unwrap_or_else(|| panic!("no batch ended at {applied}"));
    assert!(applied >= crashed.synced, "it ends at {applied}, and {} was synced", crashed.synced);
    check_shard(&mut shard, model, applied);
    for (name, board) in &model.boards {
        let id = shard.board(name.as_str()).expect("it was just seen").all;
        for (member, entry) in &board.entries {
            // It cannot be read, or it is what was written: never another, and never none.
            match store.metadata(id, member.as_bytes()) {
                Ok(record) => assert_eq!(record.map(|record| record.json), entry.meta, "{member} on {name}"),
                Err(error) => assert_says_damaged(&error, folder),
            }
        }
    }
    Ok(applied)
}

fn assert_says_damaged(error: &StorageError, folder: &Path) {
    let words = error.to_string();
    let named = words.contains(&folder.display().to_string());
    assert!(named && words.contains("is damaged") && words.contains("restore"), "{words}");
}

/// Whether a start takes the directory.
fn case(name: &Path, damage: &Damage, crashed: &Crashed) -> bool {
    let mut files = files_of(crashed.folder.path());
    match damaged(files.get(name).expect("it is there"), damage) {
        Some(bytes) => drop(files.insert(name.to_owned(), bytes)),
        None => drop(files.remove(name)),
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write_files(folder, &files);
    let verified = Store::open_for_reading(folder, ShardId(0), 1, &resources())
        .and_then(|store| verify(&store, &|_, _, _| {}));
    assert!(files_of(folder) == files, "verify changed a file");
    match start(folder, crashed) {
        Ok(applied) => {
            assert_eq!(start(folder, crashed).expect("it was taken once"), applied, "the second start");
            if crashed.synced == crashed.last
                && let Ok((verified, _)) = &verified
            {
                assert_eq!(verified.applied, applied);
            }
            true
        }
        Err(error) => {
            assert_says_damaged(&error, folder);
            assert!(files_of(folder) == files, "a refused start changed a file");
            let again = start(folder, crashed).expect_err("it was refused once");
            assert_says_damaged(&again, folder);
            assert!(files_of(folder) == files, "a second refused start changed a file");
            let refused = verified.map(|(_, findings)| findings).is_ok_and(|findings| findings.is_empty());
            assert!(!refused, "verify finds no errors, but a start says: {error}");
            false
        }
    }
}

fn every_damage(stream: &str) -> BTreeMap<String, (usize, usize)> {
    let crashed = crashed(stream);
    assert_eq!(start_of_a_copy(&crashed), crashed.last);
    let mut cases = Vec::new();
    for (name, bytes) in files_of(crashed.folder.path()) {
        let text = name.to_string_lossy().into_owned();
        // What RocksDB writes for people.
        if text.starts_with("LOG") {
            continue;
        }
        cases.extend(damages(&text, &bytes).into_iter().map(|damage| (name.clone(), damage)));
    }
    let (turn, outcomes) = (Mutex::new(cases.into_iter()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        let crashed = &crashed;
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((name, damage)) = turn.lock().next() else { break };
                    let (done, ended) = channel::<()>();
                    let what = format!("{} {damage:?}", name.display());
                    let watch = scope.spawn(move || {
                        if ended.recv_timeout(HANGS_AFTER) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                        {
                            eprintln!("{what}: it hangs");
                            std::process::abort();
                        }
                    });
                    let run = || case(&name, &damage, crashed);
                    let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
                    drop(done);
                    watch.join().expect("it does not panic");
                    let taken = taken.unwrap_or_else(|_| panic!("{} {damage:?}", name.display()));
                    let kind = name.extension().map_or_else(
                        || name.to_string_lossy().chars().filter(|c| c.is_alphabetic()).collect::<String>(),
                        |extension| extension.to_string_lossy().into_owned(),
                    );
                    let mut outcomes = outcomes.lock();
                    let (takings, refusals): &mut (usize, usize) = outcomes.entry(kind).or_default();
                    if taken { *takings += 1 } else { *refusals += 1 }
                }
            });
        }
    });
    outcomes.into_inner()
}

fn start_of_a_copy(crashed: &Crashed) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path(), &files_of(crashed.folder.path()));
    start(folder.path(), crashed).expect("an undamaged directory is taken")
}

/// Nothing else holds what the directory holds.
#[test]
fn every_damage_of_a_shard_without_a_stream_is_refused_or_harmless() {
    let outcomes = every_damage("");
    for kind in ["CURRENT", "MANIFEST", "log", "sst"] {
        let (_, refusals) = outcomes.get(kind).copied().unwrap_or_default();
        assert!(refusals > 10, "{kind}: {outcomes:?}");
    }
    let all: usize = outcomes.values().map(|(taken, refused)| taken + refused).sum();
    assert!(all > 300, "{outcomes:?}");
}

/// The stream holds everything since the last checkpoint, so that an earlier end of the log is no loss.
#[test]
fn every_damage_of_a_shard_with_a_stream_is_refused_or_harmless() {
    let outcomes = every_damage("STREAM@1");
    let (takings, _) = outcomes.get("log").copied().unwrap_or_default();
    assert!(takings > 10, "a log is taken up to its break: {outcomes:?}");
}

/// A directory whose log began at a restart, and was not synced since if there is a stream.
fn with_a_new_log(stream: &str) -> Crashed {
    let mut harness = Harness::new(true);
    harness.synced = stream.is_empty();
    stream.clone_into(&mut harness.stream);
    let mut models = BTreeMap::new();
    for number in 0..40 {
        if number == 10 {
            harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
            harness.restart();
        }
        let many = (0..40).map(|member| job(&format!("m{member}"), &[("auto", &[member * number % 7])]));
        harness.batch(&[Say::Jobs(many.collect())]);
        models.insert(harness.last, harness.model.clone());
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path(), &files_of(harness.folder.path()));
    let synced = if stream.is_empty() { 40 } else { 10 };
    Crashed { folder, models, last: harness.last, synced }
}

/// Nothing before the break says then that there is a stream, but the marker does.
#[test]
fn a_new_log_that_is_broken_at_its_beginning_is_no_loss_where_a_stream_holds_what_it_held() {
    for (stream, is_taken) in [("STREAM@1", true), ("", false)] {
        let crashed = with_a_new_log(stream);
        let files = files_of(crashed.folder.path());
        let is_log = |name: &&PathBuf| name.extension().is_some_and(|end| end == "log");
        let log = files.keys().rfind(is_log).expect("there is one");
        assert!(files[log].len() > 8 << 10, "it has several pages");
        for damage in [
            Damage::Zero(0, 4 << 10),
            Damage::Zero(0, 7),
            Damage::Flip(0, 1),
            Damage::Flip(4, 1),
            // RocksDB's reader never returns from this.
            Damage::Flip(6, 4),
            Damage::Flip(100, 1),
        ] {
            assert_eq!(case(log, &damage, &crashed), is_taken, "{damage:?} of a log of {stream:?}");
        }
        // Without the marker nobody knows.
        fs::remove_file(crashed.folder.path().join("RANKTREE")).expect("it is there");
        assert!(!case(log, &Damage::Zero(0, 4 << 10), &crashed), "of {stream:?}");
    }
}

/// RocksDB begins a new log behind a torn one, with a batch of nothing in it, before the torn one goes. A
/// start that is cut short between the two leaves both.
#[test]
fn a_start_that_was_cut_short_behind_a_torn_log_is_made_again() {
    let crashed = crashed("");
    let folder = crashed.folder.path();
    let is_log = |name: &&PathBuf| name.extension().is_some_and(|end| end == "log");
    let log = files_of(folder).into_keys().filter(|name| is_log(&name)).max().expect("there is a log");
    let number: u64 = log.file_stem().and_then(|name| name.to_str()?.parse().ok()).expect("it has a number");
    let mut bytes = fs::read(folder.join(&log)).expect("readable");
    // The beginning of a record that nobody was told of.
    bytes.extend_from_within(..20);
    fs::write(folder.join(&log), &bytes).expect("the disk takes it");
    let mut record = vec![1_u8];
    record.extend((1_u64 << 40).to_le_bytes());
    record.extend([0; 4]);
    let crc = crc32c::crc32c(&record);
    let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
    let frame = [&masked.to_le_bytes()[..], &12_u16.to_le_bytes(), &record].concat();
    fs::write(folder.join(format!("{:06}.log", number + 3)), frame).expect("the disk takes it");
    for _ in 0..2 {
        assert_eq!(start(folder, &crashed).expect("nothing is lost"), crashed.last);
    }
}
