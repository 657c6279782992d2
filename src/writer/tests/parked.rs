//! Jobs that wait for the definition of their board. Whenever it comes, in whatever batches, and over
//! whatever crashes, a member's jobs take effect in the order of the stream: in the end all is as if every
//! board had been there first. A removal from every board alone takes effect at once, and once more in its
//! place.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::job::{Job, Op, RejectCode, Targets};
use crate::state_lock::Purpose;
use crate::types::{Timestamp, count};
use crate::writer::plan::UNPARKED_PER_MESSAGE;
use crate::writer::tests::build::{bare, job, leave_all, profile};
use crate::writer::tests::fed::Fed;
use crate::writer::tests::fed::newest_rejects;
use crate::writer::tests::random::{BOARDS, jobs};

/// Lines in random histories: so few that most members come to share theirs.
pub const FEW_LINES: (usize, u32) = (2, 2);

#[derive(Debug, Clone)]
pub enum Event {
    /// With somebody who waits for them, or nobody.
    Jobs(Vec<Job>, bool),
    /// Also of a board that is there: whoever brings a definition may bring it twice.
    Define(&'static str),
    Drop(&'static str),
    Unpark(usize),
    EndBatch,
    Checkpoint,
    Restart,
    /// The batch is committed, and the process dies before it is applied.
    Die,
}

/// A ban does not wait for its board: where the definition comes after it, it is rejected.
fn without_bans(jobs: Vec<Job>) -> Vec<Job> {
    let other = |job: Job| match job.op {
        Some(op) if op.is_ban() && job.targets != Targets::EveryBoard => job.op(Op::Remove),
        _ => job,
    };
    jobs.into_iter().map(other).collect()
}

pub fn events(drops: bool) -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => (prop::collection::vec(jobs(5), 1..4), any::<bool>())
            .prop_map(move |(jobs, asks)| {
                Event::Jobs(if drops { jobs } else { without_bans(jobs) }, asks)
            }),
        2 => prop::sample::select(BOARDS.to_vec()).prop_map(Event::Define),
        u32::from(drops) => prop::sample::select(BOARDS.to_vec()).prop_map(Event::Drop),
        2 => (1_usize..5).prop_map(Event::Unpark),
        3 => Just(Event::EndBatch),
        1 => Just(Event::Checkpoint),
        1 => Just(Event::Restart),
        1 => Just(Event::Die),
    ];
    prop::collection::vec(event, 1..60)
}

/// Without removals from every board that come while jobs wait: they overtake those.
fn say_in_order(fed: &mut Fed, jobs: Vec<Job>, asks: bool) {
    let overtakes = |job: &Job| job.targets == Targets::EveryBoard && !job.op.is_some_and(Op::is_ban);
    if jobs.iter().any(overtakes) {
        fed.batch(false);
        let (removals, others): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(overtakes);
        let removals = if fed.waiting() == 0 {
            removals
        } else {
            removals
                .into_iter()
                .map(|job| Job { targets: bare(Op::Remove, "m", &["auto"]).targets, ..job })
                .collect()
        };
        fed.say(removals, asks);
        if !others.is_empty() {
            fed.say(others, asks);
        }
        return;
    }
    fed.say(jobs, asks);
}

pub fn play(fed: &mut Fed, events: Vec<Event>) {
    for event in events {
        match event {
            Event::Jobs(jobs, asks) => fed.say(jobs, asks),
            Event::Define(name) => fed.define(name),
            Event::Drop(name) => fed.drop_board(name),
            Event::Unpark(jobs) => fed.unpark(jobs),
            Event::EndBatch => fed.batch(false),
            Event::Checkpoint => fed.checkpoint(),
            Event::Restart => {
                fed.batch(false);
                fed.restart();
            }
            Event::Die => fed.batch(true),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// With few lines, and a definition that unparks three jobs.
    #[test]
    fn whenever_definitions_come_the_end_is_as_if_they_had_come_first(
        events in events(false),
        rest in Just(BOARDS.to_vec()).prop_shuffle(),
    ) {
        let mut fed = Fed::new(&BOARDS);
        fed.lines = FEW_LINES;
        fed.load_parking();
        for event in events {
            match event {
                Event::Jobs(jobs, asks) => say_in_order(&mut fed, jobs, asks),
                event => play(&mut fed, vec![event]),
            }
        }
        for name in rest {
            fed.define(name);
        }
        fed.check();
        fed.check_replica();
    }

    /// What a message unparks follows from the messages, and not from what a process has looked at since it
    /// started.
    #[test]
    fn replicas_agree_whatever_is_defined_dropped_and_restarted(
        events in events(true),
        boards_max in prop::sample::select(vec![1, 2, usize::MAX]),
    ) {
        let mut fed = Fed::new(&BOARDS);
        (fed.lines, fed.boards_max) = (FEW_LINES, boards_max);
        fed.load_parking();
        play(&mut fed, events);
        fed.batch(false);
        fed.check_replica();
    }
}

/// A member's later jobs wait behind the first, also those that name no board or a known one; other members'
/// do not.
#[test]
fn later_jobs_of_a_member_park_behind_earlier_ones() {
    let mut fed = Fed::new(&["auto", "more"]);
    fed.define("more");
    fed.say(vec![job("m", &[("more", &[1])]), job("n", &[("more", &[2])])], false);
    fed.say(vec![job("m", &[("auto", &[1])])], true);
    fed.batch(false);
    fed.say(
        vec![leave_all("m"), job("m", &[("more", &[7])]).op(Op::Incr), job("n", &[("more", &[5])])],
        false,
    );
    fed.say(vec![bare(Op::Hide, "m", &["more"])], false);
    fed.batch(true);
    assert_eq!(fed.waiting(), 4);
    fed.define("auto");
    fed.check();
}

/// What waits is judged by what a removal that overtook it has left, and a version keeps it from the removal
/// in its place.
#[test]
fn a_removal_overtakes_jobs_that_add_to_what_it_takes() {
    let score = |fed: &Fed| {
        let shard = fed.shard.read(Purpose::Read);
        let member = shard.members.get(b"m").expect("it is known");
        let words = shard.board_tree("more").expect("it is defined").tree.get(member);
        words.and_then(|words| words.as_slice().first().copied())
    };
    let mut scores = Vec::new();
    for (base, removal) in [(&[5][..], true), (&[][..], false), (&[5][..], false)] {
        let mut fed = Fed::new(&["auto", "more"]);
        fed.define("more");
        if !base.is_empty() {
            fed.say(vec![job("m", &[("more", base)])], false);
        }
        fed.say(vec![job("m", &[("auto", &[1])])], false);
        fed.say(vec![job("m", &[("more", &[3])]).op(Op::Incr).version(2)], false);
        fed.batch(false);
        if removal {
            fed.say(vec![leave_all("m").version(1)], false);
            fed.batch(false);
        }
        fed.define("auto");
        fed.batch(false);
        fed.free_all();
        assert!(fed.rejects.is_empty(), "{:?}", fed.rejects);
        scores.push(score(&fed));
        fed.check_replica();
    }
    assert!(scores[0].is_some() && scores[0] == scores[1] && scores[0] != scores[2], "{scores:?}");
}

#[test]
fn a_ban_waits_behind_its_members_jobs_and_for_no_board() {
    let mut fed = Fed::new(&["auto"]);
    fed.say_unseen(vec![bare(Op::Hide, "n", &["auto"])]);
    fed.batch(false);
    assert_eq!(fed.waiting(), 0);
    let rejects = newest_rejects(fed.store(), 10);
    assert_eq!(rejects.iter().map(|reject| reject.code).collect::<Vec<_>>(), [RejectCode::UnknownBoard]);
    let mut fed = Fed::new(&["auto"]);
    fed.say(vec![job("m", &[("auto", &[1])])], true);
    fed.say(
        vec![bare(Op::Hide, "m", &["auto"]), job("m", &[("auto", &[2])]), job("n", &[("auto", &[1])])],
        false,
    );
    fed.batch(true);
    assert_eq!(fed.waiting(), 4);
    fed.define("auto");
    fed.check();
    let shard = fed.shard.read(Purpose::Read);
    assert_eq!((shard.bans().len(), shard.board_tree("auto").expect("it is there").total()), (1, 1));
}

fn listed(fed: &Fed, board: &str) -> Vec<String> {
    let shard = fed.shard.read(Purpose::Read);
    let Some(tree) = shard.board_tree(board) else { return Vec::new() };
    let id = |handle| String::from_utf8(shard.members.id(handle).to_vec()).expect("ids are UTF-8");
    tree.tree.cursor_at(0).map(|(handle, _)| id(handle)).collect()
}

/// Somebody may have a member's jobs wait for boards that come late, or never.
#[test]
fn a_removal_and_a_ban_of_all_boards_wait_behind_no_job_and_reach_what_waits() {
    for versioned in [false, true] {
        for restarts in [false, true] {
            let mut fed = Fed::new(&["auto", "more"]);
            fed.define("more");
            let with = |job: Job, version: u64| if versioned { job.version(version) } else { job };
            let scores = |member: &str, version: u64| with(job(member, &[("more", &[1])]), version);
            fed.say(["gone", "banned", "other"].map(|member| scores(member, 1)).to_vec(), false);
            let waiting = ["gone", "banned"].map(|member| {
                let job = job(member, &[("auto", &[1]), ("more", &[2])]);
                with(job, 2)
            });
            fed.say(waiting.to_vec(), false);
            fed.say(vec![profile("gone", r#"{"late":1}"#)], false);
            fed.batch(false);
            assert_eq!((fed.waiting(), listed(&fed, "more").len()), (3, 3));
            fed.say(vec![with(leave_all("gone"), 5)], true);
            fed.say(vec![with(leave_all("banned").op(Op::Hide), 5)], true);
            fed.batch(false);
            assert_eq!(listed(&fed, "more"), ["other"], "at once");
            assert!(fed.parked_outcomes.is_empty(), "clients are told at once");
            // Later jobs keep their order behind those that wait.
            fed.say(vec![with(job("gone", &[("more", &[3])]), 6)], false);
            fed.batch(false);
            assert_eq!(listed(&fed, "more"), ["other"]);
            if restarts {
                fed.load_parking();
            }
            fed.define("auto");
            fed.batch(false);
            fed.free_all();
            assert_eq!((fed.waiting(), listed(&fed, "auto")), (0, Vec::new()));
            assert_eq!(listed(&fed, "more"), ["gone", "other"]);
            let shard = fed.shard.read(Purpose::Read);
            assert_eq!(shard.bans().len(), 1);
            drop(shard);
            assert_eq!(
                fed.store().profile(b"gone").expect("readable").and_then(|profile| profile.json),
                None
            );
            fed.check_replica();
        }
    }
}

#[test]
fn a_line_of_many_jobs_takes_no_other_that_waits_for_a_board() {
    const MOST: usize = 20;
    let mut fed = Fed::new(&["more"]);
    fed.jobs_of_line_max = MOST;
    fed.load_parking();
    fed.define("more");
    let to = |member: &str, number: usize| job(member, &[(&format!("never-{}", number % 6), &[1])]);
    // In one message and in several: by their order alone.
    fed.say_unseen((0..MOST + 5).map(|number| to("m", number)).collect());
    fed.batch(false);
    for number in 0..5 {
        fed.say_unseen(vec![to("m", MOST + number), to("n", number)]);
        fed.batch(number % 2 == 0);
    }
    assert_eq!((fed.waiting(), &fed.rejects), (MOST + 5, &BTreeMap::from([("too_large", 10)])));
    let rejects = newest_rejects(fed.store(), 1);
    assert!(rejects.iter().all(|reject| reject.detail.contains("PUT /v1/boards/never-")), "{rejects:?}");
    // What waits for no board itself is accepted, and what is of all boards takes place.
    fed.say_unseen(vec![job("m", &[("more", &[1])]), leave_all("m").op(Op::Hide), leave_all("m")]);
    fed.batch(false);
    assert_eq!((fed.waiting(), fed.rejects.len()), (MOST + 7, 1));
    for number in 0..6 {
        fed.define(&format!("never-{number}"));
    }
    fed.batch(false);
    fed.free_all();
    assert_eq!(fed.waiting(), 0);
    fed.check_replica();
}

/// Where no more boards can come, jobs that wait for one are rejected, and what waits behind them goes on.
#[test]
fn jobs_beyond_the_board_limit_are_rejected_and_block_no_line() {
    let mut fed = Fed::new(&["auto", "more"]);
    fed.boards_max = 2;
    fed.load_parking();
    fed.define("auto");
    // The model knows nothing of those, and counts them neither.
    fed.say_unseen(vec![job("m", &[("race", &[1, 1])]), job("n", &[("strokes", &[1])])]);
    fed.batch(false);
    fed.say(vec![job("m", &[("auto", &[3])]), job("m", &[("auto", &[4])]).op(Op::Incr)], false);
    fed.batch(true);
    assert_eq!(fed.waiting(), 4);
    fed.define("more");
    fed.free_all();
    assert_eq!(fed.waiting(), 0);
    fed.say_unseen(vec![job("o", &[("race", &[1, 1])])]);
    fed.batch(false);
    let rejects = newest_rejects(fed.store(), 10);
    assert!(rejects.iter().all(|reject| reject.code == RejectCode::UnknownBoard), "{rejects:?}");
    assert!(rejects.iter().all(|reject| reject.detail.contains("limit")), "{rejects:?}");
    assert_eq!(fed.rejects, BTreeMap::from([("unknown_board", 3)]));
    fed.rejects.clear();
    fed.check();
    fed.check_replica();
}

/// Room that a drop makes is room for what waits: it waits again.
#[test]
fn drop_blocks_parked_jobs_again() {
    let mut fed = Fed::new(&["auto"]);
    let jobs = |numbers: std::ops::Range<i64>| {
        numbers.map(|number| job(&format!("m{number}"), &[("auto", &[number])])).collect::<Vec<_>>()
    };
    fed.say_unseen(jobs(0..8));
    fed.define("auto");
    fed.batch(false);
    assert_eq!(fed.waiting(), 5, "a definition unparks three");
    fed.drop_board("auto");
    fed.batch(false);
    fed.unpark(100);
    fed.batch(false);
    assert_eq!(fed.waiting(), 5);
    assert!(fed.shard.read(Purpose::Read).board("auto").is_none());
    fed.define("auto");
    fed.free_all();
    let total = fed.shard.read(Purpose::Read).board_tree("auto").expect("it is defined").tree.len();
    assert_eq!((fed.waiting(), total), (0, 5));
    fed.check_replica();
}

/// However many jobs wait, none is rejected, and what a message unparks is as much as it may and no more: one
/// short step.
#[test]
fn however_many_jobs_wait_each_is_applied_and_no_step_is_long() {
    const JOBS: usize = 110_000;
    const PER_MESSAGE: usize = 1_000;
    // Too many for the model, which sorts to tell a rank.
    let mut fed = Fed::new(&[]);
    fed.has_replica = false;
    fed.define("more");
    let id = |number: usize| format!("member-{number:06}");
    for first in (0..JOBS).step_by(PER_MESSAGE) {
        let score = i64::try_from(first / 10).expect("small");
        let of_message = first..first + PER_MESSAGE;
        fed.say_unseen(of_message.map(|number| job(&id(number), &[("auto", &[score])])).collect());
        fed.batch(false);
    }
    assert_eq!(fed.waiting(), JOBS);
    // One for an unknown board, and one behind another. Nobody is refused.
    fed.say_unseen(vec![job("other", &[("auto", &[1])]), job(&id(7), &[("more", &[1])])]);
    fed.batch(true);
    assert_eq!((fed.waiting(), fed.rejects.len()), (JOBS + 2, 0));
    let listed =
        |fed: &Fed, name| fed.shard.read(Purpose::Read).board_tree(name).expect("it is defined").tree.len();
    fed.define("auto");
    fed.batch(false);
    assert_eq!(listed(&fed, "auto"), 3, "a definition unparks three");
    // As many jobs as a message holds unpark no more than a command does. These are rejected: others would
    // wait in the lines that they share.
    let late = |number: usize| Job { at: Some(Timestamp::MAX), ..job(&id(number), &[("more", &[1])]) };
    let others = (0..PER_MESSAGE).map(late);
    fed.say_unseen(others.collect());
    fed.batch(false);
    assert_eq!(fed.waiting(), JOBS + 2 - 3 - UNPARKED_PER_MESSAGE);
    let (mut longest, started) = (Duration::ZERO, Instant::now());
    while fed.waiting() > 0 {
        let waiting = fed.waiting();
        fed.unpark(PER_MESSAGE);
        let began = Instant::now();
        fed.batch(false);
        longest = longest.max(began.elapsed());
        assert_eq!(fed.waiting(), waiting.saturating_sub(UNPARKED_PER_MESSAGE));
        if (50_000..50_000 + UNPARKED_PER_MESSAGE).contains(&fed.waiting()) {
            fed.restart();
        }
    }
    println!(
        "{JOBS} jobs were unparked in {:?}: read, planned, committed and applied; the longest batch took {longest:?}",
        started.elapsed()
    );
    let all = (count(JOBS) + 1, 1);
    assert_eq!((listed(&fed, "auto"), listed(&fed, "more")), all);
    fed.restart();
    assert_eq!((fed.waiting(), (listed(&fed, "auto"), listed(&fed, "more"))), (0, all));
}

/// Messages of jobs unpark as many as they bring: a shard that is never idle unparks what waits, too.
#[test]
fn messages_of_jobs_unpark_ready_jobs() {
    let mut fed = Fed::new(&["auto", "more"]);
    fed.define("more");
    fed.say((0..20).map(|number| job(&format!("m{number}"), &[("auto", &[number])])).collect(), false);
    fed.define("auto");
    fed.batch(false);
    assert_eq!(fed.waiting(), 17);
    for more in 0..4 {
        fed.say(vec![job("n", &[("more", &[more])]), job("o", &[("more", &[more])])], more % 2 == 0);
        fed.batch(false);
        assert_eq!(fed.waiting(), 17 - 2 * (usize::try_from(more).expect("small") + 1));
    }
    fed.check();
    fed.check_replica();
}

/// A message looks at no more lines than it may unpark jobs, though nothing may come of it: all may wait for
/// another board.
#[test]
fn lines_looked_at_per_message_are_bounded() {
    const JOBS: usize = 40;
    let mut fed = Fed::new(&["auto", "more"]);
    let waits = |number: usize| job(&format!("m{number}"), &[("auto", &[1]), ("more", &[2])]);
    fed.say((0..JOBS).map(waits).collect(), false);
    fed.batch(false);
    fed.define("auto");
    fed.batch(false);
    assert_eq!(
        (fed.waiting(), fed.looks.get(), fed.reads.get()),
        (JOBS, 3, 3),
        "a definition looks at three"
    );
    for looks in [8, 13] {
        fed.unpark(5);
        fed.batch(false);
        assert_eq!((fed.waiting(), fed.looks.get(), fed.reads.get()), (JOBS, looks, looks));
    }
    // Those that were looked at are the oldest, and may go on now.
    fed.restart();
    fed.define("more");
    fed.batch(false);
    assert_eq!((fed.waiting(), fed.looks.get()), (JOBS - 3, 16));
    fed.unpark(1_000);
    fed.batch(false);
    assert_eq!((fed.waiting(), fed.looks.get()), (0, 13 + JOBS));
    fed.check();
    fed.check_replica();
}

#[test]
fn reading_a_line_stops_at_the_first_blocked_job() {
    let mut fed = Fed::new(&["auto", "more"]);
    let first = ["auto", "auto", "more"].map(|name| job("m", &[(name, &[1])]));
    let rest = (0..50).map(|number| job("m", &[("more", &[number])]));
    fed.say(first.into_iter().chain(rest).collect(), false);
    fed.batch(false);
    fed.define("auto");
    fed.batch(false);
    assert_eq!((fed.waiting(), fed.reads.get()), (51, 3));
    fed.restart();
    fed.define("more");
    fed.batch(false);
    // Three that are unparked, and the next one.
    assert_eq!((fed.waiting(), fed.reads.get()), (48, 7));
    fed.check();
    fed.check_replica();
}

/// Of 1,000 boards that 30,000 jobs wait for, each definition moves only what it unparks: nothing is done for
/// other lines.
#[test]
fn a_definition_costs_the_same_however_many_lines_wait() {
    const JOBS: usize = 30_000;
    let mut fed = Fed::new(&[]);
    fed.has_replica = false;
    for first in (0..JOBS).step_by(1_000) {
        let waits = |number: usize| job(&format!("m{number}"), &[(&format!("b{}", number % 1_000), &[1])]);
        fed.say_unseen((first..first + 1_000).map(waits).collect());
        fed.batch(false);
    }
    let started = Instant::now();
    for number in 0..1_000 {
        fed.define(&format!("b{number}"));
        if number % 50 == 49 {
            fed.batch(false);
        }
    }
    println!("1,000 boards were defined in {:?} while {JOBS} jobs waited", started.elapsed());
    assert_eq!((fed.waiting(), fed.looks.get()), (JOBS - 3_000, 3_000));
}
