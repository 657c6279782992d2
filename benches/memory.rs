//! What members and boards cost in memory, and what it costs to reach them.
//! `cargo bench --bench memory [-- members]`.
//!
//! Bytes are those asked for of the allocator. Times are of one thread with nothing beside it.
//! Prints `RATIO memory_…` (bytes a member on one board after random updates / those of a Redis sorted set of
//! as many members with the same ids and distinct scores; the same for Valkey), if redis-server and redis-cli
//! are here.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a bench divides counts into microseconds, over numbers it chose itself"
)]

#[path = "../src/allocated.rs"]
mod allocated;

/// What this bench needs of that folder, which has an allocator of its own.
#[allow(dead_code, reason = "this bench uses a part of it")]
mod support {
    pub mod arguments;
    pub mod measured;
    pub mod redis;
    pub mod resp;
}

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ranktree::board::{Definition, Ties};
use ranktree::state::{
    BoardEvent, Change, Entry, EntryState, Incarnation, Members, Shard, Step, TreeId, WindowTree,
};
use ranktree::tree::Handle;
use ranktree::types::{BoardName, Score, ShardId, Timestamp};

use support::redis::{Redis, is_here, ratio_name};

/// Look-ups whose waits for memory overlap, as the planner has them.
const GROUP: usize = 16;
/// Jobs applied under one hold of the lock.
const STEP: u32 = 64;

fn main() {
    let members = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    for (kind, id) in [("12_byte", short as fn(u32) -> String), ("uuid", uuid), ("64_byte", long)] {
        ids(kind, id, members);
    }
    let ours = [("12_byte", short as fn(u32) -> String), ("uuid", uuid)]
        .map(|(kind, id)| (kind, id, one_board(kind, id, Ties::First, false, members)));
    compare(&ours, members);
    for (kind, id, ties, versions) in [
        ("versions", short as fn(u32) -> String, Ties::First, true),
        ("ties_member", short, Ties::Member, false),
        ("ties_member_versions", short, Ties::Member, true),
    ] {
        one_board(kind, id, ties, versions, members);
    }
    for per_board in [0, 1, 10, 64, 65, 100] {
        boards(per_board, members / 10);
    }
}

fn short(number: u32) -> String {
    format!("{:012}", number.wrapping_mul(2_654_435_761))
}

fn uuid(number: u32) -> String {
    let mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:08x}-{:04x}-4e1b-9d2a-{number:012x}", mixed >> 32, mixed >> 16 & 0xffff)
}

fn long(number: u32) -> String {
    format!("{:>64}", uuid(number))
}

/// The next of a row of random bits; the same row in each run.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state
}

/// A number below `bound`.
fn draw_below(state: &mut u64, bound: u32) -> u32 {
    (((draw(state) >> 32) * u64::from(bound)) >> 32) as u32
}

/// One of 2^40 scores, by the upper bits of a number: hardly any two are equal.
fn score(random: u64) -> Score {
    Score::new(&[(random >> 24) as i64]).expect("a score")
}

/// The name of a kind of id, how such an id is made, and what a member takes with it.
type Held = (&'static str, fn(u32) -> String, f64);

/// What sorted sets of as many members take.
fn compare(ours: &[Held], members: u32) {
    if !is_here() {
        println!("redis-server and redis-cli are not here: nothing to compare with");
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    for server in Redis::start_all(folder.path(), 1) {
        for (kind, id, held) in ours {
            let theirs = server.bytes_per_member(u64::from(members), |member| id(member as u32));
            println!("{} {kind}: {theirs:.1} B per member of a sorted set", server.name);
            let name = ratio_name(&format!("memory_{kind}_vs_redis"), server.name);
            println!("RATIO {}_{members} {:.3}", name.replace("valkey_redis", "valkey"), held / theirs);
        }
    }
}

fn ids(kind: &str, id: fn(u32) -> String, members: u32) {
    let mut all = Members::new();
    let mut longest = Duration::ZERO;
    let ((), cost) = allocated::count(|| {
        for number in 0..members {
            let id = id(number);
            let started = Instant::now();
            let handle = all.add(id.as_bytes());
            all.add_tree(handle, TreeId(0));
            longest = longest.max(started.elapsed());
        }
    });
    println!("member_{kind} {members} {:.1} B", cost.held as f64 / f64::from(members));
    println!(
        "member_{kind}_allocations {members} {:.3} a member",
        cost.allocations as f64 / f64::from(members)
    );
    println!("member_{kind}_longest_add {members} {:.0} us", longest.as_secs_f64() * 1e6);
    let mut state = 7;
    let mut spent = Duration::ZERO;
    let groups = 60_000;
    for _ in 0..groups {
        let sought: [String; GROUP] = std::array::from_fn(|_| id(draw_below(&mut state, members)));
        let started = Instant::now();
        let hashes = sought.each_ref().map(|id| all.hash(id.as_bytes()));
        for hash in &hashes {
            all.prefetch_index(*hash);
        }
        let candidates = hashes.map(|hash| all.prefetch_id(hash));
        candidates.iter().flatten().for_each(|handle| all.prefetch_long_id(*handle));
        for (id, hash) in sought.iter().zip(hashes) {
            black_box(all.find(hash, id.as_bytes()));
        }
        spent += started.elapsed();
    }
    println!(
        "member_{kind}_find {members} {:.0} ns",
        spent.as_secs_f64() * 1e9 / (f64::from(groups) * GROUP as f64)
    );
    let mut spent = Duration::ZERO;
    for _ in 0..groups {
        let sought = id(draw_below(&mut state, members));
        let started = Instant::now();
        black_box(all.get(sought.as_bytes()));
        spent += started.elapsed();
    }
    println!("member_{kind}_find_one {members} {:.0} ns", spent.as_secs_f64() * 1e9 / f64::from(groups));
}

fn define(shard: &mut Shard, number: u32, ties: Ties) {
    let board = BoardName::new(&format!("match-{number:010}")).expect("a board's name");
    let definition = Arc::new(Definition { ties, ..Definition::default() });
    let incarnation = Incarnation(u64::from(number) + 1);
    let events = vec![BoardEvent::Define { board, incarnation, number: None, definition }];
    shard.apply(&Step { events, ..Step::default() });
}

/// A time for each score: a second apart, so that those of a million members are of eleven days.
fn time(number: u32) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + i64::from(number) * 1_000_000).expect("a time")
}

/// A step that gives each of these new members an entry.
fn arrivals(
    shard: &Shard,
    tree: TreeId,
    id: fn(u32) -> String,
    (first, count): (u32, u32),
    versions: bool,
) -> Step {
    let definition = Arc::clone(&shard.tree(tree).expect("it was defined").definition);
    let mut step = Step::default();
    for number in 0..count {
        let id = id(first + number);
        let at = time(first + number);
        let score = score(u64::from(first + number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let words = definition.entry_words(&score, at, id.as_bytes());
        let handle: Handle = shard.members.nth_next_handle(number as usize);
        let version = versions.then_some(u64::from(number));
        let after = Entry { state: EntryState::Listed(words), updated_at: at, version, has_metadata: false };
        step.changes.push(Change { tree, handle, after: Some(after) });
        step.added.push(id.as_bytes().into());
    }
    step
}

/// A step that gives some members other scores. Each has a turn before one has two, in no order.
fn updates(shard: &Shard, tree: TreeId, members: u32, (first, count): (u32, u32), state: &mut u64) -> Step {
    let definition = Arc::clone(&shard.tree(tree).expect("it was defined").definition);
    let change = |nth: u32| {
        let handle = Handle((u64::from(nth) * 2_654_435_761 % u64::from(members)) as u32);
        let (at, score) = (time(members + nth), score(draw(state)));
        let words = definition.entry_words(&score, at, shard.members.id(handle));
        let state = EntryState::Listed(words);
        Change {
            tree,
            handle,
            after: Some(Entry { state, updated_at: at, version: None, has_metadata: false }),
        }
    };
    Step { changes: (first..first + count).map(change).collect(), ..Step::default() }
}

fn print_parts(when: &str, shard: &Shard, members: u32) {
    let tree = &shard.tree(TreeId(0)).expect("it was defined").tree;
    let each = |bytes: usize| bytes as f64 / f64::from(members);
    let fill = tree.len() as f64 / (64 * tree.leaf_count()) as f64;
    println!("{when} {members} {:.1} B an entry, leaves are {fill:.2} full", {
        each(shard.tree_bytes() + shard.members.bytes())
    });
    for (part, bytes) in tree.bytes_by_part().into_iter().chain(shard.members.bytes_by_part()) {
        println!("  {part}: {:.2} B", each(bytes));
    }
}

/// One board of all the members. Returns what it takes for each after random updates, or as loaded if they
/// have versions.
fn one_board(kind: &str, id: fn(u32) -> String, ties: Ties, versions: bool, members: u32) -> f64 {
    let mut shard = Shard::new(ShardId(0));
    define(&mut shard, 0, ties);
    let mut holds = Vec::new();
    let ((), cost) = allocated::count(|| {
        for first in (0..members).step_by(STEP as usize) {
            let step = arrivals(&shard, TreeId(0), id, (first, STEP.min(members - first)), versions);
            let started = Instant::now();
            shard.apply(&step);
            holds.push(started.elapsed());
        }
    });
    let holds_bytes = holds.capacity() * size_of::<Duration>();
    let ((), freed) = allocated::count(|| drop(shard.with_tree(TreeId(0), WindowTree::begin_checkpoint)));
    let held = cost.held + freed.held - holds_bytes as i64;
    println!(
        "board_{kind} {members} {:.1} B an entry, {:.1} as it says",
        held as f64 / f64::from(members),
        (shard.tree_bytes() + shard.members.bytes()) as f64 / f64::from(members)
    );
    println!("board_{kind}_largest_allocation {members} {} B", cost.largest);
    holds.sort_unstable();
    let longest = holds.last().expect("there were steps");
    println!("board_{kind}_longest_step {members} {:.0} us", longest.as_secs_f64() * 1e6);
    let total: Duration = holds.iter().sum();
    println!("board_{kind}_apply {members} {:.3} us", total.as_secs_f64() * 1e6 / f64::from(members));
    if versions {
        return held as f64 / f64::from(members);
    }
    print_parts(&format!("board_{kind}_loaded"), &shard, members);
    let (mut state, mut spent, rounds) = (7, Duration::ZERO, 3);
    let ((), more) = allocated::count(|| {
        for first in (0..rounds * members).step_by(1_024) {
            let count = 1_024.min(rounds * members - first);
            let step = updates(&shard, TreeId(0), members, (first, count), &mut state);
            let started = Instant::now();
            shard.apply(&step);
            spent += started.elapsed();
        }
        drop(shard.with_tree(TreeId(0), WindowTree::begin_checkpoint));
        while shard.with_tree(TreeId(0), |tree| tree.tree.capture_next(1_000, &mut |_| {})) == Some(true) {}
        drop(shard.members.begin_checkpoint());
    });
    let each = spent.as_secs_f64() * 1e6 / f64::from(rounds * members);
    println!("board_{kind}_update {members} {each:.3} us");
    print_parts(&format!("board_{kind}_updated"), &shard, members);
    (held + more.held) as f64 / f64::from(members)
}

/// Many boards of so many members, who are on no other one.
fn boards(per_board: u32, boards: u32) {
    let boards = boards / per_board.clamp(1, 10);
    let mut shard = Shard::new(ShardId(0));
    let ((), cost) = allocated::count(|| {
        for number in 0..boards {
            define(&mut shard, number, Ties::First);
            let step = arrivals(&shard, TreeId(number), short, (number * per_board, per_board), false);
            shard.apply(&step);
        }
    });
    let ((), freed) = allocated::count(|| {
        shard.begin_joining();
        while shard.join_some(1_000).1 {}
    });
    let bytes = (cost.held + freed.held) as f64 / f64::from(boards);
    print!("boards_of_{per_board} {boards} {bytes:.0} B a board");
    println!(
        ", {:.0} B an entry, {:.0} B a board more before a checkpoint",
        bytes / f64::from(per_board.max(1)),
        -freed.held as f64 / f64::from(boards)
    );
}
