//! What a job costs apart from time: instructions, and references and misses of simulated caches.
//!
//! Time depends on the machine and on its hour, these hardly do. Valgrind's cachegrind counts them. It makes
//! a program some fifty times slower, so that trees are small here, and so is the simulated cache.
//!
//! A program that counts runs itself twice under Valgrind: once all jobs are made up and applied, once they
//! are made up only. The difference is what the jobs took.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use ranktree::state_lock::Purpose;

use super::engine::Engine;
use super::raw_scores::RawScores;
use super::workload::{Access, Scores, Workload};

pub const MEMBERS: u64 = 50_000;
const JOBS: u64 = 20_000;
const BATCH: u64 = 1_000;

/// The first-level caches are those of today's cores. The last one holds a third of these members' memory,
/// as a server's holds a part of its members'.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"];

/// Who takes the jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Engine,
    /// The engine, which is read for an answer before each batch.
    ReadEngine,
    Raw,
}

/// Of one job, on average.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub instructions: f64,
    /// Of memory, by reading and writing instructions.
    pub references: f64,
    /// References that the last cache did not hold.
    pub misses: f64,
}

/// What is run and counted: loads members, makes up jobs, and applies them unless told not to.
pub fn counted(side: Side, access: Access, scores: Scores, folder: &Path, applied: bool) {
    let mut workload = Workload::new(MEMBERS, access, scores);
    match side {
        Side::Engine | Side::ReadEngine => {
            let mut engine = Engine::open(folder);
            engine.load(MEMBERS, &mut workload);
            let batches: Vec<_> = (0..JOBS / BATCH)
                .map(|_| {
                    let jobs = (0..BATCH).map(|_| workload.job()).collect();
                    engine.messages(jobs)
                })
                .collect();
            for messages in batches.into_iter().filter(|_| applied) {
                if side == Side::ReadEngine {
                    drop(engine.shard.read(Purpose::Read));
                }
                engine.turn_without_checkpoint(messages);
            }
            engine.close();
        }
        Side::Raw => {
            let raw = RawScores::open(folder);
            raw.load(MEMBERS, &mut workload);
            let batches: Vec<_> =
                (0..JOBS / BATCH).map(|_| RawScores::make_up(BATCH, &mut workload)).collect();
            for scores in batches.iter().filter(|_| applied) {
                raw.write(scores);
            }
        }
    }
}

/// Runs this program under Valgrind, with and without applying, and returns what a job took. `prepare` has
/// it call [`counted`]. `None` if there is no Valgrind.
pub fn count(valgrind: &Path, prepare: impl Fn(&mut Command, bool)) -> Option<Counts> {
    match Command::new(valgrind).arg("--version").stdout(Stdio::null()).status() {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        // One that is there and does not work must not pass for none.
        found => assert!(
            found.as_ref().is_ok_and(ExitStatus::success),
            "{} --version does not work: {found:?}; `make valgrind` sets it up",
            valgrind.display()
        ),
    }
    let [with, without] = [true, false].map(|applied| {
        let mut command = Command::new(valgrind);
        command.args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]);
        command.args(CACHES).arg(std::env::current_exe().expect("it was started from a file"));
        prepare(&mut command, applied);
        totals(&mut command)
    });
    let each = |total: fn(&Totals) -> u64| total(&with).saturating_sub(total(&without)) as f64 / JOBS as f64;
    Some(Counts {
        instructions: each(|totals| totals.instructions),
        references: each(|totals| totals.references),
        misses: each(|totals| totals.misses),
    })
}

/// Of a whole run.
struct Totals {
    instructions: u64,
    references: u64,
    misses: u64,
}

fn totals(command: &mut Command) -> Totals {
    let output = command.output().expect("Valgrind can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the counted program failed:\n{said}");
    // `==123== D   refs:  1,234,567  (1,000,000 rd + 234,567 wr)`
    let total = |name: &str| {
        let words = |line: &str| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        let line = said.lines().map(words).find(|line| line.starts_with(name));
        let number = line.as_deref().and_then(|line| line[name.len()..].split_whitespace().next());
        let number = number.unwrap_or_else(|| panic!("Valgrind says nothing of {name:?}:\n{said}"));
        number.replace(',', "").parse().expect("a number")
    };
    Totals { instructions: total("I refs:"), references: total("D refs:"), misses: total("LLd misses:") }
}

/// Valgrind as `make valgrind` unpacked it, or the one in `PATH`.
pub fn valgrind() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools/bin/valgrind");
    if here.exists() { here } else { PathBuf::from("valgrind") }
}
