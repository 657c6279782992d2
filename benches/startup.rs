//! How long a start takes, and what memory it leaves: after a clean stop, and after a kill at the worst
//! moment, when all that may come before the next checkpoint begins has come and is to be replayed.
//!
//! A shard is written by a process of its own and opened by another one, so that memory is that of the start
//! alone. Each case is opened twice: the second opening after a kill finds what the first did, because
//! opening writes no checkpoint. Prints `startup_… s, … MB, … changes replayed`.
//!
//! `cargo bench --bench startup -- --members 10000000 --boards 0 --versions true --end stop,kill`
//!
//! - `--members`: on one board, with distinct scores; 0 for none.
//! - `--boards`: that many further boards, each of ten members that are on no other.
//! - `--versions true`: every entry has a version.
//! - `--end`: what came before the start.
//! - `--changes`: changes after the last checkpoint at a kill, instead of as many as there can be.

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ranktree::job::{Job, Op, Targets};
use ranktree::storage::{StorageResources, Store, TreesFrom, recover};
use ranktree::types::{BoardName, MemberId, Score, ShardId};
use ranktree::writer::CheckpointPolicy;

use support::engine::Engine;
use support::workload::{Access, Scores, Workload, id};
use support::{argument, list, number, resident_bytes, scratch, short};

const BATCH: usize = 1_000;
const MEMBERS_PER_BOARD: u64 = 10;

fn main() {
    if let Some(folder) = argument("write") {
        return write(Path::new(&folder), &argument("end").expect("what the writer does at its end"));
    }
    if let Some(folder) = argument("open") {
        return open(Path::new(&folder));
    }
    let (members, boards) = (number("members", 1_000_000), number("boards", 0));
    let versions = if versions() { "_versions" } else { "" };
    for end in list("end", "stop,kill") {
        let folder = scratch();
        child(folder.path(), "write", &end);
        for opening in ["first", "second"] {
            let boards = if boards == 0 { String::new() } else { format!("_{}_boards", short(boards)) };
            let told = child(folder.path(), "open", &end);
            println!(
                "startup_{}{boards}{versions}_{end} {} ({opening} opening)",
                short(members),
                told.trim()
            );
        }
    }
}

fn versions() -> bool {
    argument("versions").is_some_and(|given| given == "true")
}

/// Runs this bench again for a part of it; what it said.
fn child(folder: &Path, part: &str, end: &str) -> String {
    let mut command = Command::new(std::env::current_exe().expect("it was started from a file"));
    let folder = folder.to_str().expect("a temporary folder has a plain name");
    command.args([&format!("--{part}"), folder, "--end", end]);
    for name in ["members", "boards", "versions", "changes"] {
        command.args(argument(name).map(|value| [format!("--{name}"), value]).into_iter().flatten());
    }
    let output = command.stderr(std::process::Stdio::inherit()).output().expect("it can be run again");
    assert!(output.status.success(), "the part {part} failed");
    String::from_utf8(output.stdout).expect("it says words")
}

fn write(folder: &Path, end: &str) {
    let (members, boards) = (number("members", 1_000_000), number("boards", 0));
    let everyone = members + boards * MEMBERS_PER_BOARD;
    let mut engine = Engine::open(folder);
    let mut workload = Workload::new(everyone.max(1), Access::Uniform, Scores::Distinct);
    for first in (0..everyone).step_by(10_000) {
        let jobs =
            (first..(first + 10_000).min(everyone)).map(|member| job(&mut workload, member, members, 1));
        let jobs = jobs.collect();
        turn(&mut engine, jobs);
    }
    engine.checkpoint();
    match end {
        "stop" => engine.close(),
        "kill" => {
            let most = number("changes", CheckpointPolicy::default().changes_max(everyone) - BATCH as u64);
            for done in (0..most).step_by(BATCH) {
                let version = done + 2;
                let some: Vec<u64> = (0..BATCH).map(|_| workload.member()).collect();
                let jobs = some.iter().map(|member| job(&mut workload, *member, members, version));
                let jobs = jobs.collect();
                turn(&mut engine, jobs);
            }
            assert_eq!(engine.checkpoints, 1, "the last checkpoint is the one before the changes");
            // No destructor runs, and nothing is flushed.
            std::process::exit(0);
        }
        other => panic!("--end is stop or kill, not {other}"),
    }
}

/// A batch that begins no checkpoint.
fn turn(engine: &mut Engine, jobs: Vec<Job>) {
    let messages = engine.messages(jobs);
    engine.turn_without_checkpoint(messages);
}

/// The first members are on the large board, the others on boards of ten.
fn job(workload: &mut Workload, member: u64, on_large: u64, version: u64) -> Job {
    let board = match member.checked_sub(on_large) {
        None => "arena".to_owned(),
        Some(beyond) => format!("match{}", beyond / MEMBERS_PER_BOARD),
    };
    let score = Score::new(&[workload.score()]).expect("one key");
    Job {
        member: MemberId::new(id(member)).expect("well-formed"),
        targets: Targets::Boards(smallvec::smallvec![(
            BoardName::new(&board).expect("well-formed"),
            Some(score)
        )]),
        op: Some(Op::Set),
        version: versions().then_some(version),
        at: None,
        meta: None,
        id: None,
    }
}

fn open(folder: &Path) {
    let before = resident_bytes();
    let started = Instant::now();
    let resources = StorageResources::new(64 << 20, 1);
    let path = folder.join("shard-000");
    let store = Store::open(&path, ShardId(0), 1, &resources).expect("the store opens");
    let opened = started.elapsed().as_secs_f64();
    let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the store is whole");
    let took = started.elapsed().as_secs_f64();
    let memory = resident_bytes() - before;
    let entries: u64 = recovered.shard.trees().map(|(_, tree)| tree.total()).sum();
    assert_eq!(recovered.rebuilt, Vec::new(), "no page is damaged");
    println!(
        "{took:.2} s, of it {opened:.2} to open the store; {} MB, {:.0} B an entry; {} changes replayed",
        memory >> 20,
        memory as f64 / entries as f64,
        recovered.changes
    );
}
