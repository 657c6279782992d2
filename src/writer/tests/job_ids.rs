//! Ids of jobs: one that comes again counts once, within a batch, over batches and starts, for as long as ids
//! are kept, and whatever the batches are.

use crate::board::{Definition, Policy};
use crate::job::{Job, JobId, Op};
use crate::state::JOB_IDS_MAX;
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::types::Timestamp;
use crate::writer::Payload;
use crate::writer::tests::build::job;
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::tests::source::copy_of;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros((100 * 24 * HOUR + seconds) * SECOND).expect("in range")
}

fn adds(member: &str, points: i64, id: &str) -> Job {
    Job { op: Some(Op::Incr), id: JobId::new(id), ..job(member, &[("b", &[points])]) }
}

fn one(job: Job) -> Payload {
    Payload::Jobs([Ok(job)].into_iter().collect())
}

fn run(planned: &mut PlannedShard, seconds: i64, payload: Payload) {
    let message = planned.message(at(seconds), payload);
    planned.run(vec![message]);
}

fn score(planned: &PlannedShard, member: &str) -> Option<i64> {
    let shard = planned.shard.read(Purpose::Read);
    let board = shard.board("b")?;
    let entry = shard.entry(board.all, shard.members.get(member.as_bytes())?)?;
    board.definition.score_of(entry.words()?.as_slice()).keys().first().copied()
}

fn kept(planned: &PlannedShard) -> usize {
    planned.shard.read(Purpose::Read).job_ids().len()
}

#[test]
fn a_job_counts_once_from_whomever_and_another_hour_later() {
    let mut planned = PlannedShard::new();
    // Twice in a message, and again in another one, with another score.
    run(&mut planned, 0, Payload::Jobs([Ok(adds("m", 5, "i")), Ok(adds("m", 5, "i"))].into_iter().collect()));
    run(&mut planned, 1, one(adds("m", 7, "i")));
    assert_eq!(score(&planned, "m"), Some(5));
    planned.restart(TreesFrom::Pages);
    run(&mut planned, HOUR - 1, one(adds("m", 7, "i")));
    assert_eq!((score(&planned, "m"), kept(&planned)), (Some(5), 1));
    run(&mut planned, HOUR, one(adds("m", 7, "i")));
    assert_eq!((score(&planned, "m"), kept(&planned)), (Some(12), 1), "it is a new one by now");
    run(&mut planned, HOUR + 1, one(adds("m", 1, "j")));
    run(&mut planned, HOUR + 2, one(Job { id: None, ..adds("m", 1, "j") }));
    assert_eq!((score(&planned, "m"), kept(&planned)), (Some(14), 2));
    // Whatever a message brings, what is over is forgotten.
    run(&mut planned, 2 * HOUR, Payload::Tick);
    assert_eq!(kept(&planned), 1);
    planned.restart(TreesFrom::Pages);
    assert_eq!(kept(&planned), 1);
}

#[test]
fn what_is_rejected_may_come_again() {
    let mut planned = PlannedShard::new();
    let policy = Definition { policy: Policy::Incr, ..Definition::default() };
    let define = planned.define("b", &policy);
    run(&mut planned, 0, define);
    let two_keys = |id| Job { id: JobId::new(id), ..job("m", &[("b", &[1, 2])]) };
    run(&mut planned, 1, one(two_keys("i")));
    assert_eq!((planned.rejects.len(), kept(&planned)), (1, 0));
    run(&mut planned, 2, one(adds("m", 3, "i")));
    assert_eq!(score(&planned, "m"), Some(3));
    // A job that changes nothing is applied all the same.
    run(&mut planned, 3, one(Job { op: Some(Op::Best), ..adds("m", 1, "k") }));
    run(&mut planned, 4, one(adds("m", 9, "k")));
    assert_eq!((score(&planned, "m"), kept(&planned)), (Some(3), 2));
    let first = planned.shard.read(Purpose::Read).job_ids().get("k").expect("it is kept");
    assert!(!first.changed);
}

#[test]
fn the_oldest_are_forgotten_where_there_would_be_too_many_whatever_the_batches_are() {
    let said = || {
        let number = |n: i64| one(adds("m", 1, &format!("i{}", n * 7 % 23)));
        (0..60).map(number).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for at_once in [1, 7, 60] {
        let mut planned = PlannedShard::new();
        let mut seconds = 0;
        for (batch, some) in said().chunks(at_once).enumerate() {
            let messages = some.iter().map(|payload| {
                seconds += 400;
                planned.message(at(seconds), copy_of(payload))
            });
            let messages = messages.collect();
            planned.run(messages);
            if batch % 3 == 1 {
                planned.restart(TreesFrom::Pages);
            }
            assert!(kept(&planned) <= JOB_IDS_MAX);
        }
        let ids = planned.shard.read(Purpose::Read).job_ids().clone();
        planned.restart(TreesFrom::Pages);
        assert_eq!(planned.shard.read(Purpose::Read).job_ids(), &ids);
        found.push((score(&planned, "m"), ids));
    }
    assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
    assert_eq!(found[0].1.len(), JOB_IDS_MAX);
}
