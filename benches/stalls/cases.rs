//! What is played: each case prepares what it needs, which is not measured, and then does what used to stall.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use ranktree::board::{Definition, Ties};
use ranktree::job::{Job, Op, Targets};
use ranktree::query::{
    BoardSelection, FindTrimPoint, InstanceAsked, MemberOnBoards, OfBoard, TotalOnly, TrimFrom, TrimScan,
    read_in_memory,
};
use ranktree::types::{BoardName, MemberId, Score};
use ranktree::window::Window;

use crate::shard::{Running, wanted};

/// The board of all members.
pub const ARENA: &str = "arena";
const HALF: &str = "half";
const NAMES: &str = "names";
const JOBS_PER_MESSAGE: usize = 100;
/// What a message may hold.
const JOBS_MAX: usize = 1_000;
/// Boards on a page of a member's.
const BOARDS_MAX: usize = 1_000;
/// What the service makes of requests over HTTP.
const JOBS_PER_ASKING: usize = 64;
const MEMBERS_PER_BOARD: u64 = 10;
const VISITS: &str = "visits";
const HOUR_MICROS: i64 = 3_600_000_000;
/// Messages that are sent between two looks at what is left.
const MESSAGES_AT_ONCE: usize = 64;
/// What the service makes of a trim: members that a message names, and messages that it sends at a time.
const TRIM_MEMBERS: usize = 256;
const TRIM_MESSAGES: usize = 8;
/// Members looked up, and members deleted.
const LOOKED_UP: u64 = 1_000;
const DELETED: u64 = 1_000;

pub struct Sizes {
    pub members: u64,
    pub half: u64,
    pub boards: u64,
    pub new_boards: u64,
    pub parked: u64,
    /// Boards of a day each.
    pub daily: u64,
    pub seconds: Duration,
}

pub struct Case {
    pub name: &'static str,
    pub what: &'static str,
    pub prepare: fn(&mut Running, &Sizes),
    /// What it measured itself, if anything.
    pub play: fn(&mut Running, &Sizes) -> Option<String>,
}

/// In this order: each finds what those before it left.
pub const CASES: [Case; 17] = [
    Case {
        name: "versions",
        what: "members with versions arrive on one board",
        prepare: nothing,
        play: versions,
    },
    Case {
        name: "ties",
        what: "a tenth as many arrive on a board with ties: member",
        prepare: arena,
        play: ties,
    },
    Case {
        name: "plan",
        what: "batches of 10,000 jobs, a hundred a message, beside checkpoints",
        prepare: arena,
        play: plan,
    },
    Case { name: "large", what: "messages of 1,000 jobs beside checkpoints", prepare: arena, play: large },
    Case {
        name: "asking",
        what: "messages of 64 jobs that somebody waits for, beside checkpoints",
        prepare: arena,
        play: asking,
    },
    Case { name: "boards", what: "boards of ten members arrive", prepare: arena, play: boards },
    Case {
        name: "begin",
        what: "a checkpoint of these boards, and one of a change to each",
        prepare: boards_of_ten,
        play: begin,
    },
    Case {
        name: "gauges",
        what: "gauges, beside these boards, for five seconds",
        prepare: boards_of_ten,
        play: gauges,
    },
    Case {
        name: "lookup",
        what: "1,000 members' boards are looked up",
        prepare: boards_of_ten,
        play: look_up,
    },
    Case {
        name: "delete",
        what: "1,000 members are removed from every board",
        prepare: boards_of_ten,
        play: delete,
    },
    Case {
        name: "expiry",
        what: "all entries of a board expire together, beside jobs",
        prepare: visits,
        play: expiry,
    },
    Case {
        name: "rollover",
        what: "the day of many boards ends at one moment, beside jobs",
        prepare: daily_boards,
        play: rollover,
    },
    Case { name: "park", what: "jobs park for unknown boards", prepare: arena, play: park },
    Case {
        name: "parked",
        what: "these boards are defined, their jobs freed, others go on meanwhile",
        prepare: parked,
        play: define_wanted,
    },
    Case {
        name: "trim",
        what: "everybody beyond nine tenths of the board of all members is removed",
        prepare: arena,
        play: trim,
    },
    Case {
        name: "drop",
        what: "the board of all members and the one of removals are dropped",
        prepare: half,
        play: drop_boards,
    },
    Case {
        name: "after_drop",
        what: "the checkpoint after that",
        prepare: nothing,
        play: |running, _| {
            running.checkpoint();
            running.wait_for_release();
            None
        },
    },
];

fn nothing(_: &mut Running, _: &Sizes) {}

fn board(name: &str) -> BoardName {
    BoardName::new(name).expect("well-formed")
}

fn small_board(number: u64) -> BoardName {
    board(&format!("match-{number:08}"))
}

fn job(board: &BoardName, member: String, score: i64, version: Option<u64>) -> Job {
    Job {
        member: MemberId::new(member).expect("well-formed"),
        targets: Targets::Boards(smallvec::smallvec![(
            board.clone(),
            Some(Score::new(&[score]).expect("one key"))
        )]),
        op: Some(Op::Set),
        version,
        at: None,
        meta: None,
        id: None,
    }
}

/// Of the board of all; `n` for others.
fn member(number: u64) -> String {
    format!("m{number:011}")
}

fn publish_all(running: &mut Running, mut jobs: impl Iterator<Item = Job>) {
    loop {
        let message: Vec<Job> = jobs.by_ref().take(JOBS_PER_MESSAGE).collect();
        if message.is_empty() {
            break;
        }
        running.publish(message);
    }
    running.wait_for_all();
}

fn has(running: &Running, name: &str) -> bool {
    running
        .node
        .view(|_| false)
        .expect("no board is asked")
        .shards
        .iter()
        .all(|shard| shard.board(name).is_some())
}

fn arena(running: &mut Running, sizes: &Sizes) {
    if !has(running, ARENA) {
        versions(running, sizes);
        running.checkpoint();
    }
}

fn versions(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let arena = board(ARENA);
    running.define(&arena, &Arc::default());
    let mut random = SmallRng::seed_from_u64(1);
    let jobs = (0..sizes.members)
        .map(|number| job(&arena, member(number), random.random_range(0..1 << 40), Some(number + 1)));
    publish_all(running, jobs);
    assert_eq!(running.members() as u64, sizes.members);
    None
}

fn ties(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let names = board(NAMES);
    running.define(&names, &Arc::new(Definition { ties: Ties::Member, ..Definition::default() }));
    let mut random = SmallRng::seed_from_u64(2);
    let jobs = (0..sizes.members / 10)
        .map(|number| job(&names, member(number * 10), random.random_range(0..1_000), None));
    publish_all(running, jobs);
    None
}

/// Updates of members all over the board, a checkpoint being written all the while.
fn beside_checkpoints(
    running: &mut Running,
    sizes: &Sizes,
    mut send: impl FnMut(&mut Running, Vec<Job>),
    jobs: usize,
) {
    let arena = board(ARENA);
    let mut random = SmallRng::seed_from_u64(3);
    let started = Instant::now();
    let (mut checkpoints, mut updates) = (0, 0);
    while started.elapsed() < sizes.seconds || running.is_checkpointing() {
        if !running.is_checkpointing() {
            running.want_checkpoint();
            checkpoints += 1;
        }
        let message = (0..jobs).map(|_| {
            running.version += 1;
            let member = member(random.random_range(0..sizes.members));
            job(&arena, member, random.random_range(0..1 << 40), Some(running.version))
        });
        let message = message.collect();
        send(running, message);
        updates += jobs;
    }
    running.wait_for_all();
    let rate = updates as f64 / started.elapsed().as_secs_f64();
    eprintln!("  {checkpoints} checkpoints beside {rate:.0} updates/s");
}

fn plan(running: &mut Running, sizes: &Sizes) -> Option<String> {
    running.set_batch(10_000);
    beside_checkpoints(running, sizes, Running::publish, JOBS_PER_MESSAGE);
    running.set_batch(1_000);
    None
}

fn large(running: &mut Running, sizes: &Sizes) -> Option<String> {
    beside_checkpoints(running, sizes, Running::publish, JOBS_MAX);
    None
}

fn asking(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let send = |running: &mut Running, jobs| drop(running.publish_asking(jobs));
    beside_checkpoints(running, sizes, send, JOBS_PER_ASKING);
    None
}

fn boards_of_ten(running: &mut Running, sizes: &Sizes) {
    arena(running, sizes);
    if !has(running, small_board(0).as_str()) {
        boards(running, sizes);
    }
}

fn boards(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let definition = Arc::default();
    for number in 0..sizes.boards {
        running.define(&small_board(number), &definition);
    }
    set_all_boards(running, sizes, 4);
    None
}

/// Ten members of each board score, who are from all over the big one.
fn set_all_boards(running: &mut Running, sizes: &Sizes, seed: u64) {
    // Who is on which board is the same each time.
    let mut who = SmallRng::seed_from_u64(4);
    let mut scores = SmallRng::seed_from_u64(seed);
    let jobs = (0..sizes.boards * MEMBERS_PER_BOARD).map(|number| {
        let board = small_board(number / MEMBERS_PER_BOARD);
        job(&board, member(who.random_range(0..sizes.members)), scores.random_range(0..1 << 20), None)
    });
    publish_all(running, jobs);
}

fn begin(running: &mut Running, sizes: &Sizes) -> Option<String> {
    running.checkpoint();
    set_all_boards(running, sizes, 5);
    running.checkpoint();
    None
}

fn gauges(_: &mut Running, _: &Sizes) -> Option<String> {
    // The writer takes them twice a second, whether or not there is anything to do.
    std::thread::sleep(Duration::from_secs(5));
    None
}

fn look_up(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let mut longest = Duration::ZERO;
    let mut found = 0;
    for number in 0..LOOKED_UP {
        let id = MemberId::new(member(number * sizes.members / LOOKED_UP)).expect("well-formed");
        let boards = BoardSelection::All { after: None, limit: BOARDS_MAX, prefixes: None };
        let all = MemberOnBoards {
            member: id,
            boards,
            instance: InstanceAsked::default(),
            windows: None,
            hidden: false,
        };
        let asked = Instant::now();
        let answer = read_in_memory(&running.node, &running.registry, &all).expect("shards in memory answer");
        longest = longest.max(asked.elapsed());
        found += answer.entries.len();
    }
    assert!(found as u64 >= LOOKED_UP, "everybody is on the board of all");
    Some(format!("the longest look-up {:.2}", longest.as_secs_f64() * 1e3))
}

fn delete(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let removal = |number: u64| Job {
        member: MemberId::new(member(number * sizes.members / DELETED + 1)).expect("well-formed"),
        targets: Targets::EveryBoard,
        op: Some(Op::Remove),
        version: None,
        at: None,
        meta: None,
        id: None,
    };
    running.publish((0..DELETED).map(removal).collect());
    running.wait_for_all();
    None
}

fn new_board(number: u64) -> BoardName {
    board(&format!("new-{number:06}"))
}

fn park(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let jobs = (0..sizes.parked).map(|number| {
        job(&new_board(number % sizes.new_boards), format!("p{number:011}"), number as i64, None)
    });
    publish_all(running, jobs);
    assert_eq!(running.jobs_parked(), sizes.parked);
    None
}

fn parked(running: &mut Running, sizes: &Sizes) {
    arena(running, sizes);
    if running.jobs_parked() == 0 {
        park(running, sizes);
    }
}

fn define_wanted(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let arena = board(ARENA);
    let mut random = SmallRng::seed_from_u64(6);
    let mut turn = |running: &mut Running| {
        let jobs = (0..JOBS_PER_MESSAGE).map(|_| {
            job(&arena, member(random.random_range(0..sizes.members)), random.random_range(0..1 << 40), None)
        });
        running.publish(jobs.collect());
    };
    // Turns while they wait.
    for _ in 0..1_000 {
        turn(running);
    }
    let definition = Arc::default();
    for board in wanted(running, sizes.new_boards as usize) {
        running.define(&board, &definition);
    }
    running.wait_for_all();
    while running.jobs_parked() > 0 {
        turn(running);
        running.free();
        running.wait_for_all();
    }
    None
}

fn trim(running: &mut Running, _: &Sizes) -> Option<String> {
    let arena = board(ARENA);
    let left = read_total(running, &arena) / 10 * 9;
    let read = FindTrimPoint(TrimFrom::Position(left));
    let read = OfBoard { board: arena.clone(), instance: InstanceAsked::default(), read };
    let found = read_in_memory(&running.node, &running.registry, &read).expect("shards in memory answer");
    let (incarnation, point) = found.expect("the board is there").body;
    let point = point.expect("a position").expect("somebody is there");
    let mut scan = TrimScan::new(arena.clone(), incarnation, point.clone());
    while !scan.is_finished() {
        // As a request does: some messages, and then it waits until they are applied.
        let mut found = Vec::new();
        while found.len() < TRIM_MEMBERS * TRIM_MESSAGES && !scan.is_finished() {
            let view = running.node.view(|_| false).expect("no board is asked");
            let shard = view.shards.first().expect("the only one");
            found.extend(scan.next_slice(shard));
        }
        for members in found.chunks(TRIM_MEMBERS) {
            running.trim(&arena, incarnation, &point, members.to_vec());
        }
        running.wait_for_all();
    }
    assert_eq!(read_total(running, &arena), left);
    None
}

fn read_total(running: &Running, board: &BoardName) -> u64 {
    let read = OfBoard { board: board.clone(), instance: InstanceAsked::default(), read: TotalOnly };
    let answer = read_in_memory(&running.node, &running.registry, &read);
    answer.expect("shards in memory answer").expect("the board is there").total
}

/// Entries that expire after an hour.
fn visits(running: &mut Running, sizes: &Sizes) {
    arena(running, sizes);
    let visits = board(VISITS);
    let definition = Definition { entry_ttl_micros: Some(HOUR_MICROS), ..Definition::default() };
    running.define(&visits, &Arc::new(definition));
    let jobs = (0..sizes.half).map(|number| job(&visits, format!("v{number:011}"), number as i64, None));
    publish_all(running, jobs);
    running.checkpoint();
}

fn expiry(running: &mut Running, sizes: &Sizes) -> Option<String> {
    let visits = board(VISITS);
    assert_eq!(read_total(running, &visits), sizes.half);
    running.let_pass(Duration::from_secs(2 * 3_600));
    let arena = board(ARENA);
    let mut random = SmallRng::seed_from_u64(7);
    let (started, mut messages) = (Instant::now(), 0);
    while read_total(running, &visits) > 0 {
        for _ in 0..MESSAGES_AT_ONCE {
            let jobs = (0..JOBS_PER_MESSAGE).map(|_| {
                job(
                    &arena,
                    member(random.random_range(0..sizes.members)),
                    random.random_range(0..1 << 40),
                    None,
                )
            });
            running.publish(jobs.collect());
            messages += 1;
        }
        running.wait_for_all();
    }
    let rate = (messages * JOBS_PER_MESSAGE) as f64 / started.elapsed().as_secs_f64();
    Some(format!("{} expired within {messages} messages, {rate:.0} jobs/s meanwhile", sizes.half))
}

fn daily_board(number: u64) -> BoardName {
    board(&format!("daily-{number:06}"))
}

/// Boards of a day each, which is dropped at its end.
fn daily_boards(running: &mut Running, sizes: &Sizes) {
    arena(running, sizes);
    let windows = vec![Window::All, Window::Day];
    let definition = Arc::new(Definition { windows, keep: 0, grace_micros: 0, ..Definition::default() });
    for number in 0..sizes.daily {
        running.define(&daily_board(number), &definition);
    }
    enter_daily_boards(running, sizes);
    running.checkpoint();
}

fn enter_daily_boards(running: &mut Running, sizes: &Sizes) {
    let mut who = SmallRng::seed_from_u64(8);
    let jobs = (0..sizes.daily * MEMBERS_PER_BOARD).map(|number| {
        job(
            &daily_board(number % sizes.daily),
            member(who.random_range(0..sizes.members)),
            number as i64,
            None,
        )
    });
    publish_all(running, jobs);
}

fn rollover(running: &mut Running, sizes: &Sizes) -> Option<String> {
    running.let_pass(Duration::from_secs(24 * 3_600));
    let started = Instant::now();
    enter_daily_boards(running, sizes);
    let rate = (sizes.daily * MEMBERS_PER_BOARD) as f64 / started.elapsed().as_secs_f64();
    let mut ticks = 0;
    let trees = |running: &Running| {
        let view = running.node.view(|_| false).expect("no board is asked");
        let shard = view.shards.first().expect("the only one");
        (0..sizes.daily).map(|number| shard.instances_of(&daily_board(number)).count()).sum::<usize>()
    };
    let boards = sizes.daily as usize;
    while trees(running) > boards {
        for _ in 0..MESSAGES_AT_ONCE {
            running.tick();
            ticks += 1;
        }
        running.wait_for_all();
    }
    Some(format!(
        "{boards} instances begin and as many are dropped; {rate:.0} jobs/s meanwhile, {ticks} ticks after"
    ))
}

/// A board half of whose entries are removed, and remembered for their versions.
fn half(running: &mut Running, sizes: &Sizes) {
    arena(running, sizes);
    let half = board(HALF);
    running.define(&half, &Arc::default());
    let jobs = (0..sizes.half).map(|number| job(&half, format!("h{number:011}"), number as i64, Some(1)));
    publish_all(running, jobs);
    let removals = (0..sizes.half / 2).map(|number| Job {
        op: Some(Op::Remove),
        targets: Targets::Boards(smallvec::smallvec![(half.clone(), None)]),
        ..job(&half, format!("h{:011}", number * 2), 0, Some(2))
    });
    publish_all(running, removals);
    running.checkpoint();
}

fn drop_boards(running: &mut Running, _: &Sizes) -> Option<String> {
    let before = running.members();
    running.drop_board(&board(HALF));
    running.drop_board(&board(ARENA));
    running.wait_for_all();
    running.wait_for_release();
    assert!(running.members() < before, "members of these boards alone are gone");
    None
}
