//! When boards that end after a quiet time had their last job: by the time of messages, the same for every
//! cut into batches and after a start.

use crate::board::Definition;
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::types::Timestamp;
use crate::window::Window;
use crate::writer::Payload;
use crate::writer::tests::build::job;
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::tests::source::copy_of;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(100 * DAY + seconds * SECOND).expect("in range")
}

fn last(planned: &PlannedShard, board: &str) -> Option<i64> {
    let last = planned.shard.read(Purpose::Read).last_jobs().get(board);
    last.map(|last| (last.as_micros() - 100 * DAY) / SECOND)
}

fn one(board: &str, score: i64) -> Payload {
    Payload::Jobs([Ok(job("m", &[(board, &[score])]))].into_iter().collect())
}

fn quiet(seconds: i64) -> Definition {
    Definition {
        expires_after_micros: Some(seconds * SECOND),
        windows: vec![Window::All, Window::Day],
        ..Definition::default()
    }
}

/// Runs messages, and gives the last job of the board after each.
fn after_each(said: Vec<(i64, Payload)>, planned: &mut PlannedShard) -> Vec<Option<i64>> {
    let run = |(seconds, payload)| {
        let message = planned.message(at(seconds), payload);
        planned.run(vec![message]);
        last(planned, "b")
    };
    said.into_iter().map(run).collect()
}

#[test]
fn a_job_counts_and_nothing_else_does() {
    let mut planned = PlannedShard::new();
    let define = planned.define("b", &quiet(100));
    let other = planned.define("other", &Definition::default());
    let said = vec![
        (0, define),
        (1, other),
        (2, one("other", 1)),
        (3, one("b", 1)),
        (4, one("b", 1)),
        (5, Payload::Tick),
        // It is rejected.
        (6, Payload::Jobs([Ok(job("m", &[("b", &[1, 2])]))].into_iter().collect())),
    ];
    let expect = [Some(0), Some(0), Some(0), Some(3), Some(4), Some(4), Some(4)];
    assert_eq!(after_each(said, &mut planned), expect);
    assert_eq!(last(&planned, "other"), None);
    // A leap of two days is not believed: its jobs count by the time that is.
    assert_eq!(
        after_each(vec![(2 * 86_400, one("b", 2)), (7, one("b", 3))], &mut planned),
        [Some(6), Some(7)]
    );
}

#[test]
fn another_length_counts_as_a_job_and_the_end_of_a_life_forgets() {
    let mut planned = PlannedShard::new();
    let said = vec![(0, planned.define("b", &quiet(100))), (1, one("b", 1))];
    assert_eq!(after_each(said, &mut planned), [Some(0), Some(1)]);
    let same = planned.define("b", &Definition { keep: 3, ..quiet(100) });
    let longer = planned.define("b", &Definition { keep: 3, ..quiet(200) });
    assert_eq!(after_each(vec![(2, same), (3, longer)], &mut planned), [Some(1), Some(3)]);
    planned.checkpoint();
    planned.restart(TreesFrom::Pages);
    assert_eq!(last(&planned, "b"), Some(3));
    let plain = Definition { keep: 3, expires_after_micros: None, ..quiet(1) };
    let never = planned.define("b", &plain);
    assert_eq!(after_each(vec![(4, never), (5, one("b", 9))], &mut planned), [None, None]);
    let again = planned.define("b", &Definition { keep: 3, ..quiet(50) });
    let dropped = planned.drop_board("b");
    assert_eq!(after_each(vec![(6, again), (7, dropped)], &mut planned), [Some(6), None]);
    planned.restart(TreesFrom::Pages);
    assert_eq!(last(&planned, "b"), None);
}

#[test]
fn batches_of_any_length_come_to_the_same_before_and_after_a_start() {
    let said = |planned: &PlannedShard| {
        let mut said = vec![planned.define("b", &quiet(100))];
        said.extend((0..40).map(|n| one(if n % 3 == 0 { "b" } else { "c" }, n)));
        said
    };
    let mut found = Vec::new();
    for at_once in [1, 7, 64] {
        let mut planned = PlannedShard::new();
        let said = said(&planned);
        let mut seconds = 0;
        for some in said.chunks(at_once) {
            let messages = some.iter().map(|payload| {
                seconds += 1;
                planned.message(at(seconds), copy_of(payload))
            });
            let messages = messages.collect();
            planned.run(messages);
        }
        let running = last(&planned, "b");
        planned.restart(TreesFrom::Pages);
        assert_eq!(last(&planned, "b"), running);
        found.push(running);
    }
    assert_eq!(found, [Some(41); 3]);
}
