//! `changed` of an answer: whether a reader who may see hidden entries finds another one than before.

use crate::board::Definition;
use crate::job::{Job, Op};
use crate::types::Timestamp;
use crate::writer::tests::build::{bare, board, job, leave_all, profile};
use crate::writer::tests::harness::{Harness, Say};

fn at(job: Job, micros: i64) -> Job {
    Job { at: Some(Timestamp::from_micros(micros).expect("in range")), ..job }
}

/// Says the jobs one after the other, each in a message of its own, and compares what each changed.
fn check(jobs: Vec<(Job, &[bool])>) {
    let mut harness = Harness::new(true);
    let expiring = Definition { entry_ttl_micros: Some(1_000_000_000), ..Definition::default() };
    harness.batch(&[Say::Define(board("expiring"), expiring.into())]);
    for (nth, (job, expected)) in jobs.into_iter().enumerate() {
        harness.batch(&[Say::Ask(vec![job.clone()])]);
        assert_eq!(harness.told_changes.last().map(Vec::as_slice), Some(expected), "{nth}: {job:?}");
    }
}

#[test]
fn an_entry_that_is_as_it_was_for_readers_has_not_changed() {
    let set = |score: i64, micros: i64| at(job("m", &[("b", &[score])]), micros);
    let (car, bike) = (r#"{"car":1}"#, r#"{"bike":1}"#);
    check(vec![
        (set(5, 100), &[true]),
        (set(5, 100), &[false]),
        (set(5, 99), &[false]),
        // Readers see another time.
        (set(5, 101), &[true]),
        (set(5, 101).version(3), &[false]),
        (set(5, 101).meta(car), &[true]),
        (set(5, 101).meta(car), &[false]),
        (set(5, 101).meta(bike), &[true]),
        (set(5, 102).meta(bike), &[true]),
        (set(5, 102).meta("{}"), &[true]),
        (set(5, 102).meta("{}"), &[false]),
        (set(4, 102), &[true]),
        (set(0, 50).op(Op::Incr), &[false]),
        (set(1, 50).op(Op::Incr), &[true]),
        (set(5, 200).op(Op::Best), &[false]),
        (set(4, 200).op(Op::Best).meta(car), &[false]),
        (set(6, 200).op(Op::Best), &[true]),
        (bare(Op::Remove, "m", &["b"]), &[true]),
        (bare(Op::Remove, "m", &["b"]), &[false]),
        (set(6, 200), &[true]),
    ]);
}

#[test]
fn metadata_that_the_same_batch_brought_are_compared_too() {
    let set = |json: &str| at(job("m", &[("b", &[5])]), 100).meta(json);
    let mut harness = Harness::new(true);
    let jobs = [r#"{"a":1}"#, r#"{"a":1}"#, r#"{"a":2}"#, "{}", r#"{"a":1}"#].map(set);
    harness.batch(&[Say::Ask(jobs.to_vec())]);
    assert_eq!(harness.told_changes, [[true], [false], [true], [true], [true]]);
    harness.batch(&[Say::AskWhetherChanged(jobs[..1].to_vec())]);
    assert_eq!(harness.told_changes.last(), Some(&vec![false]));
}

#[test]
fn a_best_that_is_not_better_moves_the_time_where_entries_expire() {
    let best = |score: i64, micros: i64| at(job("m", &[("expiring", &[score])]), micros).op(Op::Best);
    check(vec![
        (best(5, 1_000), &[true]),
        (best(4, 1_000), &[false]),
        (best(4, 900), &[false]),
        (best(4, 1_001), &[true]),
        (best(5, 1_002), &[true]),
    ]);
}

#[test]
fn a_ban_has_changed_if_it_begins_or_ends_whatever_entries_there_are() {
    let hide = || bare(Op::Hide, "m", &["b"]);
    let show = || bare(Op::Show, "m", &["b"]);
    check(vec![
        (job("other", &[("b", &[1])]), &[true]),
        (hide(), &[true]),
        (hide(), &[false]),
        (job("m", &[("b", &[5])]), &[true]),
        (show(), &[true]),
        (show(), &[false]),
        // On the board that the member is on, and the ban itself.
        (leave_all("m").op(Op::Hide), &[true, true]),
        (leave_all("m").op(Op::Hide), &[false, false]),
        (hide(), &[true]),
        (leave_all("m").op(Op::Show), &[false, true]),
        (show(), &[true]),
        (profile("m", r#"{"a":1}"#), &[true]),
        (profile("m", r#"{"a":1}"#), &[false]),
        (leave_all("m"), &[true, true]),
        (leave_all("m"), &[]),
        (leave_all("m").version(9), &[false]),
    ]);
}
