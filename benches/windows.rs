//! What a board's windows cost.
//!
//! - `jobs`: decode + plan + commit + apply of a job on a board with `all` alone, on one with four windows,
//!   and of a job that names four boards; and four jobs, one for each of four boards. A message has the jobs
//!   of 100 scores. The same members score in the same order in each, in turn, several rounds. Prints
//!   `RATIO windows_four_jobs/four_windows`: above 1.00, one job into four windows costs less than four jobs.
//!   `RATIO windows_one/four`: what is left of the rate.
//! - `movement`: what a job costs on a board with `movement`, and a read that tells it, against a read that
//!   does not: a member's entry and the top 100, after a tenth of the members have changed since the day
//!   began. Prints `RATIO windows_movement_…`: the rate that is left.
//! - `memory`: bytes of memory for each entry of a further window.
//! - `start`: how long a node takes to open so many boards, each with four windows that somebody has entered.
//!
//! `cargo bench --bench windows -- --cases jobs,movement,memory,start --members 1000000 --batch 1000
//! --seconds 10 --rounds 3 --boards 100000`

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ranktree::board::{Definition, Ties};
use ranktree::job::{Job, Op, Targets};
use ranktree::query::{
    BoardRead, End, InstanceAsked, MemberOf, MovementAsked, Node, OfBoard, Start, Top, WindowChoice,
    WithMovement, read_in_memory,
};
use ranktree::storage::{StorageResources, Store, TreesFrom, recover};
use ranktree::types::{BoardName, MemberId, Score, ShardId};
use ranktree::window::Window;
use ranktree::wire::{self, BoardNames};

use support::engine::Engine;
use support::workload::{Access, Scores, Workload, id};
use support::{argument, list, micros, number, resident_bytes, scratch, short};

/// Batches made up at a time, so that making them up does not push the engine's memory out of the cache each
/// time.
const MADE_UP: usize = 32;
const SCORES_PER_MESSAGE: usize = 100;

const FOUR: [Window; 4] = [Window::All, Window::Day, Window::Week, Window::Month];
const FOUR_BOARDS: [&str; 4] = ["b1", "b2", "b3", "b4"];

fn main() {
    if let Some(folder) = argument("write") {
        return write(Path::new(&folder));
    }
    if let Some(folder) = argument("open") {
        return open(Path::new(&folder));
    }
    for case in list("cases", "jobs,movement,memory,start") {
        match case.as_str() {
            "jobs" => jobs(),
            "movement" => movement(),
            "memory" => memory(),
            "start" => start(),
            other => panic!("--cases are jobs, movement, memory and start, not {other}"),
        }
    }
}

fn board(name: &str) -> BoardName {
    BoardName::new(name).expect("well-formed")
}

fn with_windows(windows: &[Window], ties: Ties) -> Arc<Definition> {
    Arc::new(Definition { windows: windows.to_vec(), ties, ..Definition::default() })
}

fn job(member: u64, boards: &[&str], score: i64) -> Job {
    let score = Score::new(&[score]).expect("one key");
    Job {
        member: MemberId::new(id(member)).expect("well-formed"),
        targets: Targets::Boards(boards.iter().map(|name| (board(name), Some(score.clone()))).collect()),
        op: Some(Op::Set),
        version: None,
        at: None,
        meta: None,
        id: None,
    }
}

/// How the same scores are sent.
#[derive(Clone, Copy)]
struct Sending {
    name: &'static str,
    windows: &'static [Window],
    boards: &'static [&'static str],
    /// Whether each board gets a job of its own.
    apart: bool,
}

const SENDINGS: [Sending; 4] = [
    Sending { name: "one window", windows: &[Window::All], boards: &["arena"], apart: false },
    Sending { name: "four windows", windows: &FOUR, boards: &["arena"], apart: false },
    Sending { name: "four boards, one job", windows: &[Window::All], boards: &FOUR_BOARDS, apart: false },
    Sending { name: "four boards, four jobs", windows: &[Window::All], boards: &FOUR_BOARDS, apart: true },
];

impl Sending {
    fn jobs(self, member: u64, score: i64) -> Vec<Job> {
        if self.apart {
            self.boards.iter().map(|name| job(member, &[name], score)).collect()
        } else {
            vec![job(member, self.boards, score)]
        }
    }

    fn open(self, folder: &Path, members: u64, ties: Ties, workload: &mut Workload) -> Engine {
        let mut engine = Engine::open(folder);
        engine.define(self.boards.iter().map(|name| board(name)), &with_windows(self.windows, ties));
        for first in (0..members).step_by(10_000) {
            let members = first..(first + 10_000).min(members);
            let jobs = members.flat_map(|member| self.jobs(member, workload.score())).collect();
            let messages = engine.messages(jobs);
            engine.turn(messages);
        }
        engine.checkpoint();
        engine
    }

    /// Microseconds for each score.
    fn run(self, engine: &mut Engine, workload: &mut Workload, batch: u64, time: Duration) -> f64 {
        let (mut decoding, mut verbs, mut scores) = (Duration::ZERO, [Duration::ZERO; 3], 0);
        let mut names = BoardNames::default();
        let started = Instant::now();
        while started.elapsed() < time {
            let made_up: Vec<Vec<Vec<u8>>> = (0..MADE_UP).map(|_| self.bodies(workload, batch)).collect();
            for bodies in made_up {
                let begun = Instant::now();
                let jobs: Vec<Vec<Job>> = bodies.iter().map(|body| decoded(&mut names, body)).collect();
                decoding += begun.elapsed();
                let messages = jobs.into_iter().map(|jobs| engine.message_of(jobs)).collect();
                let turn = engine.turn(messages);
                for (spent, took) in verbs.iter_mut().zip([turn.plan, turn.commit, turn.apply]) {
                    *spent += took;
                }
                scores += batch;
            }
        }
        let each = |spent: Duration| micros(spent) / scores as f64;
        let [plan, commit, apply] = verbs.map(each);
        let decode = each(decoding);
        println!("  decode {decode:.2}, plan {plan:.2}, commit {commit:.2}, apply {apply:.2} us a score");
        decode + plan + commit + apply
    }

    /// The bodies of a batch's messages, as a game would publish them.
    fn bodies(self, workload: &mut Workload, batch: u64) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        for first in (0..batch).step_by(SCORES_PER_MESSAGE) {
            let scores = (batch - first).min(SCORES_PER_MESSAGE as u64);
            let jobs = (0..scores).flat_map(|_| self.jobs(workload.member(), workload.score()));
            let jobs: Vec<Vec<u8>> = jobs.map(|job| wire::encode(&job)).collect();
            bodies.push([b"[".as_slice(), &jobs.join(&b','), b"]"].concat());
        }
        bodies
    }
}

fn decoded(names: &mut BoardNames, body: &[u8]) -> Vec<Job> {
    let decoded = wire::decode_with(names, body).expect("it was encoded");
    decoded.into_iter().map(|job| job.expect("it was encoded")).collect()
}

fn jobs() {
    let (members, batch) = (number("members", 1_000_000), number("batch", 1_000));
    let time = Duration::from_secs(number("seconds", 10));
    let mut running: Vec<_> = SENDINGS
        .iter()
        .map(|sending| {
            let folder = scratch();
            let mut workload = Workload::new(members, Access::Uniform, Scores::Distinct);
            let engine = sending.open(folder.path(), members, Ties::First, &mut workload);
            (sending, engine, workload, folder)
        })
        .collect();
    for round in 1..=number("rounds", 3) {
        let each: Vec<f64> = running
            .iter_mut()
            .map(|(sending, engine, workload, _)| {
                let each = sending.run(engine, workload, batch, time);
                println!("windows_{} {}: {each:.3} us a score (round {round})", short(members), sending.name);
                each
            })
            .collect();
        let [one, four, together, apart] = each.try_into().expect("as many as there are");
        println!("RATIO windows_{}_four_jobs/four_windows {:.3}", short(members), apart / four);
        println!("RATIO windows_{}_four_boards/four_windows {:.3}", short(members), together / four);
        println!("RATIO windows_{}_one/four {:.3}", short(members), one / four);
    }
    for (_, engine, ..) in running {
        engine.close();
    }
}

/// A read of a member, with movement or without: how long it took.
type TimedRead<'r> = dyn Fn(Option<&MovementAsked>, u64) -> Duration + 'r;

/// Members and jobs are the same with and without.
fn movement() {
    let (members, batch) = (number("members", 1_000_000), number("batch", 1_000));
    let time = Duration::from_secs(number("seconds", 10));
    let running: Vec<_> = [false, true]
        .into_iter()
        .map(|movement| {
            let folder = scratch();
            let mut workload = Workload::new(members, Access::Uniform, Scores::Distinct);
            let mut engine = Engine::open(folder.path());
            let windows = vec![Window::All, Window::Day];
            let definition = Definition { windows, movement, ..Definition::default() };
            engine.define([board("arena")], &Arc::new(definition));
            engine.load(members, &mut workload);
            engine.let_pass(Duration::from_secs(24 * 3_600));
            let (mut spent, mut jobs) = (Duration::ZERO, 0);
            while jobs < members / 10 {
                let made_up = (0..batch).map(|_| workload.job()).collect();
                let messages = engine.messages(made_up);
                spent += engine.turn(messages).total();
                jobs += batch;
            }
            let each = micros(spent) / jobs as f64;
            let with = if movement { "with" } else { "without" };
            println!("windows_{} {each:.3} us a job {with} movement, windows all and day", short(members));
            (engine, folder, each)
        })
        .collect();
    let [(plain, _, without), (engine, _, with)] = &running[..] else { panic!("two of them") };
    println!("RATIO windows_{}_movement_job {:.3}", short(members), without / with);
    drop(plain.node());
    let node = engine.node();
    let asked = MovementAsked { board: board("arena"), window: Window::Day, now: engine.now(), entries: 1 };
    let read = |movement: Option<&MovementAsked>, member: u64| {
        let member = MemberOf { member: MemberId::new(id(member)).expect("well-formed") };
        timed(&node, engine, WithMovement { read: member, movement: movement.cloned() })
    };
    let page = |movement: Option<&MovementAsked>, _: u64| {
        let top = Top { start: Start::End(End::Top), limit: 100 };
        timed(&node, engine, WithMovement { read: top, movement: movement.cloned() })
    };
    let reads: [(&str, &TimedRead); 2] = [("member", &read), ("top_100", &page)];
    for (name, read) in reads {
        let mut workload = Workload::new(members, Access::Uniform, Scores::Distinct);
        let (mut spent, mut count) = ([Duration::ZERO; 2], 0_u64);
        let started = Instant::now();
        while started.elapsed() < time {
            let member = workload.member();
            spent[0] += read(None, member);
            spent[1] += read(Some(&asked), member);
            count += 1;
        }
        let [plain, moved] = spent.map(|spent| micros(spent) / count as f64);
        println!("windows_{} {name}: {plain:.2} us, {moved:.2} us with movement", short(members));
        println!("RATIO windows_{}_movement_{name} {:.3}", short(members), plain / moved);
    }
    for (engine, ..) in running {
        engine.close();
    }
}

fn timed<R: BoardRead>(node: &Node, engine: &Engine, read: R) -> Duration {
    let instance = InstanceAsked { choice: WindowChoice::Current(Window::All), now: engine.now() };
    let read = OfBoard { board: board("arena"), instance, read };
    let started = Instant::now();
    let answer = read_in_memory(node, &engine.registry, &read).expect("shards in memory answer");
    let took = started.elapsed();
    drop(black_box(answer));
    took
}

fn memory() {
    let members = number("members", 1_000_000);
    // The place of a tie is a word more for each entry; without it, the time is beside the tree.
    for ties in [Ties::First, Ties::Member] {
        let bytes: Vec<u64> = SENDINGS[..2]
            .iter()
            .map(|sending| {
                let folder = scratch();
                let mut workload = Workload::new(members, Access::Uniform, Scores::Distinct);
                sending.open(folder.path(), members, ties, &mut workload).close();
                told_by_child(folder.path()).1
            })
            .collect();
        let further = bytes[1].saturating_sub(bytes[0]) as f64 / members as f64 / 3.0;
        println!(
            "windows_{}_memory {} MB with one window, {} MB with four: {further:.1} B for each entry of a further \
             one, ties: {}",
            short(members),
            bytes[0] >> 20,
            bytes[1] >> 20,
            ties.name()
        );
    }
}

fn start() {
    let folder = scratch();
    child(folder.path(), "write");
    let (seconds, bytes) = told_by_child(folder.path());
    let boards = number("boards", 100_000);
    println!("windows_start_{}_boards {seconds:.2} s, {} MB", short(boards), bytes >> 20);
}

/// Each board has one member.
fn write(folder: &Path) {
    let boards = number("boards", 100_000);
    let name = |number: u64| format!("match{number}");
    let mut engine = Engine::open(folder);
    engine.define((0..boards).map(|number| board(&name(number))), &with_windows(&FOUR, Ties::First));
    for first in (0..boards).step_by(1_000) {
        let numbers = first..(first + 1_000).min(boards);
        let jobs = numbers.map(|number| job(number, &[&name(number)], 1)).collect();
        let messages = engine.messages(jobs);
        engine.turn_without_checkpoint(messages);
    }
    engine.checkpoint();
    engine.close();
}

/// Seconds and bytes of memory that opening took, in a process of its own.
fn told_by_child(folder: &Path) -> (f64, u64) {
    let told = child(folder, "open");
    let (seconds, bytes) = told.trim().split_once(' ').expect("two figures");
    (seconds.parse().expect("seconds"), bytes.parse().expect("bytes"))
}

fn child(folder: &Path, part: &str) -> String {
    let mut command = Command::new(std::env::current_exe().expect("it was started from a file"));
    command.args([&format!("--{part}"), folder.to_str().expect("a temporary folder has a plain name")]);
    command.args(argument("boards").map(|value| ["--boards".to_owned(), value]).into_iter().flatten());
    let output = command.stderr(std::process::Stdio::inherit()).output().expect("it can be run again");
    assert!(output.status.success(), "the part {part} failed");
    String::from_utf8(output.stdout).expect("it says words")
}

fn open(folder: &Path) {
    let before = resident_bytes();
    let started = Instant::now();
    let resources = StorageResources::new(64 << 20, 1);
    let path = folder.join("shard-000");
    let store = Store::open(&path, ShardId(0), 1, &resources).expect("the store opens");
    let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the store is whole");
    println!("{} {}", started.elapsed().as_secs_f64(), resident_bytes() - before);
    drop(recovered);
}
