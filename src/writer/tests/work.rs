//! What the jobs of one message may do together: counted in trees, and not timed.

use std::cell::Cell;

use crate::board::{Definition, Policy};
use crate::job::{
    BOARDS_PER_MESSAGE, Job, MAX_BOARDS_PER_JOB, MAX_JOBS_PER_MESSAGE, MAX_TREES_PER_BOARD,
    MAX_TREES_PER_MESSAGE, Op, RejectCode,
};
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::types::Timestamp;
use crate::window::{Seasons, Window};
use crate::writer::one_batch::length_of_batch;
use crate::writer::tests::build::{bare, job};
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, Message, Payload};

const WINDOWS: [Window; 5] = [Window::All, Window::Hour, Window::Day, Window::Week, Window::Month];

thread_local! {
    /// The time of the next message, in microseconds.
    static NOW: Cell<i64> = const { Cell::new(0) };
}

fn next_time() -> Timestamp {
    NOW.set(NOW.get().max(1_790_000_000_000_000) + 1_000_000);
    Timestamp::from_micros(NOW.get()).expect("in range")
}

fn moving() -> Definition {
    Definition { windows: WINDOWS.to_vec(), movement: true, policy: Policy::Incr, ..Definition::default() }
}

/// A shard with boards `b0`, `b1` and so on of this definition.
fn with_boards(boards: usize, definition: &Definition) -> PlannedShard {
    let mut planned = PlannedShard::new();
    for board in 0..boards {
        let define = planned.define(&format!("b{board}"), definition);
        say(&mut planned, define);
    }
    planned
}

fn say(planned: &mut PlannedShard, payload: Payload) {
    let message = planned.message(next_time(), payload);
    planned.run(vec![message]);
}

fn payload(jobs: impl IntoIterator<Item = Job>) -> Payload {
    Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect())
}

/// A point for a member on so many boards.
fn on(boards: usize, id: &str) -> Job {
    let names: Vec<String> = (0..boards).map(|board| format!("b{board}")).collect();
    let named: Vec<(&str, &[i64])> = names.iter().map(|name| (name.as_str(), &[1_i64][..])).collect();
    job(id, &named)
}

/// On how many boards and instances a member has an entry, what movement needs not included.
fn entries(planned: &PlannedShard, id: &str) -> usize {
    let shard = planned.shard.read(Purpose::Read);
    let Some(handle) = shard.members.get(id.as_bytes()) else { return 0 };
    let all = shard.boards_and_instances();
    let all = all.filter(|(name, _)| name.split().1.is_none_or(|instance| !instance.contains('.')));
    all.filter(|(_, known)| shard.entry(known.all, handle).is_some()).count()
}

/// As a message of 780 KB may: it took the writer five seconds, and a read waited for a second and a half.
#[test]
fn a_message_changes_no_more_trees_than_the_limit_and_what_is_over_it_is_rejected_job_by_job() {
    let mut planned = with_boards(MAX_BOARDS_PER_JOB, &moving());
    let of_job = MAX_BOARDS_PER_JOB * moving().trees_of_job();
    let fits = MAX_TREES_PER_MESSAGE / of_job;
    let many = || (0..960).map(|number| on(MAX_BOARDS_PER_JOB, &format!("m{number}")));
    say(&mut planned, payload(many()));
    assert!(planned.changes <= MAX_TREES_PER_MESSAGE, "{} changes", planned.changes);
    assert_eq!(planned.rejects, vec![RejectCode::TooLarge; 960 - fits]);
    for number in 0..960 {
        // As a whole, or not at all.
        let expected = if number < fits { MAX_BOARDS_PER_JOB * WINDOWS.len() } else { 0 };
        assert_eq!(entries(&planned, &format!("m{number}")), expected, "m{number}");
    }
    // The next message is another one.
    say(&mut planned, payload([on(MAX_BOARDS_PER_JOB, "next")]));
    assert_eq!(entries(&planned, "next"), MAX_BOARDS_PER_JOB * WINDOWS.len());
}

#[test]
fn as_many_jobs_as_a_message_may_have_are_never_too_much_for_one_board() {
    let seasons = Some(Seasons::regular(Timestamp::default(), 24 * 60 * 60 * 1_000_000));
    let widest = Definition { windows: Window::ALL.to_vec(), seasons, ..moving() };
    assert_eq!(widest.trees_of_job(), MAX_TREES_PER_BOARD);
    let mut planned = with_boards(1, &widest);
    for _ in 0..2 {
        say(&mut planned, payload((0..MAX_JOBS_PER_MESSAGE).map(|number| on(1, &format!("m{number}")))));
    }
    assert!(planned.rejects.is_empty(), "{:?}", planned.rejects);
    // Nor are as many boards as nodes send in a message.
    let mut planned = with_boards(50, &widest);
    say(&mut planned, payload((0..BOARDS_PER_MESSAGE / 50).map(|number| on(50, &format!("m{number}")))));
    assert!(planned.rejects.is_empty(), "{:?}", planned.rejects);
}

/// Whatever comes of a job, and whatever its operation, it is counted; and what is behind the first that is
/// too much is rejected, too, however small.
#[test]
fn jobs_are_counted_in_their_order_whatever_comes_of_them() {
    let kinds: [fn(usize) -> Job; 4] = [
        |number| on(MAX_BOARDS_PER_JOB, &format!("m{number}")),
        // But for the first, they change nothing.
        |_| on(MAX_BOARDS_PER_JOB, "m0").op(Op::Best),
        |_| {
            let names: Vec<String> = (0..MAX_BOARDS_PER_JOB).map(|board| format!("b{board}")).collect();
            bare(Op::Remove, "m0", &names.iter().map(String::as_str).collect::<Vec<_>>())
        },
        // The last board refuses it, after all others were looked at.
        |number| {
            let mut overflows = on(MAX_BOARDS_PER_JOB, &format!("m{number}"));
            if let crate::job::Targets::Boards(boards) = &mut overflows.targets
                && let Some((_, score)) = boards.last_mut()
            {
                *score = Some(crate::writer::tests::build::score(&[1, 2]));
            }
            overflows
        },
    ];
    let fits = MAX_TREES_PER_MESSAGE / (MAX_BOARDS_PER_JOB * moving().trees_of_job());
    for kind in kinds {
        let mut planned = with_boards(MAX_BOARDS_PER_JOB, &moving());
        let said = (0..fits + 10).map(kind).chain([on(1, "small")]);
        say(&mut planned, payload(said));
        let too_large = planned.rejects.iter().filter(|code| **code == RejectCode::TooLarge).count();
        assert_eq!(too_large, 11, "{:?}", planned.rejects);
        assert_eq!(entries(&planned, "small"), 0);
    }
}

#[test]
fn replicas_reject_the_same_jobs_however_they_cut_the_log() {
    let mut one = with_boards(20, &moving());
    NOW.set(0);
    let mut other = with_boards(20, &moving());
    assert_eq!(one.hash, other.hash, "they were told at the same times");
    let jobs = |message: usize| -> Vec<Job> {
        (0..200).map(|number| on(1 + number % 20, &format!("m{message}-{}", number % 7))).collect()
    };
    let said: Vec<Vec<Job>> = (0..6).map(jobs).collect();
    let times: Vec<Timestamp> = said.iter().map(|_| next_time()).collect();
    let messages = |planned: &mut PlannedShard, from: usize, to: usize| -> Vec<Message> {
        let some = said.iter().zip(&times).skip(from).take(to - from);
        some.map(|(jobs, time)| planned.message(*time, payload(jobs.clone()))).collect()
    };
    let all = messages(&mut one, 0, 6);
    one.run(all);
    for at in 0..6 {
        let single = messages(&mut other, at, at + 1);
        other.run(single);
        other.restart(TreesFrom::Pages);
    }
    assert!(!one.rejects.is_empty());
    assert_eq!(one.rejects, other.rejects);
    assert_eq!(one.hash, other.hash);
}

/// Of a message with few jobs, which change many trees, a batch has fewer.
#[test]
fn a_batch_ends_by_what_its_jobs_do() {
    let length = |definition: &Definition, boards: usize| {
        let mut planned = with_boards(boards, definition);
        let messages: Vec<Message> = (0..40)
            .map(|number| planned.message(next_time(), payload([on(boards, &format!("m{number}"))])))
            .collect();
        length_of_batch(&planned.shard, &messages)
    };
    assert_eq!(length(&Definition::default(), 1), 40);
    // 256 trees in tests.
    assert_eq!(length(&Definition::default(), 16), 16);
    assert_eq!(length(&moving(), 1), 256 / moving().trees_of_job());
    assert_eq!(length(&moving(), 40), 1, "one is always taken");
}
