//! A writer whose definitions come through its queue: where jobs wait between its turns, and who is told of
//! them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;

use crate::job::Op;
use crate::state::Incarnation;
use crate::storage::codec::{ParkedRecord, encode_parked};
use crate::writer::parking::Parking;
use crate::writer::tests::build::{board, job};
use crate::writer::tests::source::{Running, VecSource, jobs};
use crate::writer::{JobOutcome, Payload, ShardState, Writer};

pub fn define(name: &str) -> Payload {
    Payload::Define {
        board: board(name),
        incarnation: Incarnation(1),
        number: None,
        definition: Arc::default(),
    }
}

pub fn parking() -> Parking {
    Parking::new(true, Arc::default())
}

/// Who waits for the first job of a board is told what came of it once the board is there: its place, and the
/// sequence of the message that unparked it. Who waits for another job of the same message need not wait for
/// the board.
#[test]
fn a_job_that_waited_is_told_of_with_its_place_when_its_board_comes() {
    let running = Running::new(true);
    let own = jobs(vec![job("m", &[("b", &[5])]), job("n", &[("c", &[1])])]);
    let more = jobs(vec![job("o", &[("b", &[9])]), job("m", &[("b", &[2])]).op(Op::Incr)]);
    let (mut source, mut answers) = VecSource::new(vec![define("c"), own, more, define("b")]);
    source.limits.jobs = 1;
    Writer { parking: Some(parking()), ..running.writer(source) }.run();
    let mut outcomes = Vec::new();
    for answered in &mut answers[1..3] {
        let outcome = answered.try_recv().expect("answered").expect("committed");
        outcomes.extend(outcome.jobs);
    }
    let unparked = |outcome: &JobOutcome| {
        let JobOutcome::Parked(unparked) = outcome else { panic!("{outcome:?}") };
        let told = unparked.outcome().now_or_never().flatten().expect("it was told");
        let (sequence, outcome) = told.expect("committed");
        let JobOutcome::Applied(boards) = outcome else { panic!("{outcome:?}") };
        let ranking = |ranking: Option<crate::state::ShardRanking>| {
            ranking.map(|ranking| (ranking.better, ranking.total))
        };
        (sequence.0, ranking(boards[0].before), ranking(boards[0].after))
    };
    assert_eq!(unparked(&outcomes[0]), (4, None, Some((0, 1))));
    assert!(matches!(&outcomes[1], JobOutcome::Applied(_)), "{:?}", outcomes[1]);
    let (first, second) = (unparked(&outcomes[2]), unparked(&outcomes[3]));
    // Lines are unparked by their oldest jobs: both of m, then that of o.
    assert_eq!(second, (4, Some((0, 1)), Some((0, 1))));
    assert_eq!(first, (4, None, Some((0, 2))));
    running.load();
    assert_eq!(running.board("b"), [("o".to_owned(), 9), ("m".to_owned(), 7)]);
}

/// A job that waits and cannot be read must not be passed over.
#[test]
fn a_parked_job_that_cannot_be_read_halts_the_shard_and_says_which() {
    let running = Running::new(true);
    let (source, _) = VecSource::new(vec![jobs(vec![job("m", &[("b", &[5])])])]);
    Writer { parking: Some(parking()), ..running.writer(source) }.run();
    running.load();
    let store = running.store.get().expect("it is open");
    let line = store.parked_lines().expect("readable").remove(0);
    let no_job = ParkedRecord { job: b"nothing".to_vec(), ..line.first };
    let key = store.keys_from(&[0x06]).expect("readable").remove(0);
    store.damage(&key, Some(&encode_parked(&no_job))).expect("the disk takes it");
    drop(store);
    let (source, _) = VecSource::new(vec![jobs(Vec::new()), define("b")]);
    Writer { parking: Some(parking()), ..running.writer(source) }.run();
    let ShardState::Halted(reason) = running.health.state() else { panic!("{:?}", running.health.state()) };
    assert_eq!(reason, "job 0 of message 1, which waits for its board, cannot be read");
}

/// Where no more boards can come, what waits for one is rejected, by commands that the node publishes where
/// the queue is quiet. A restart must not forget to ask for them: on a quiet queue no message would say again
/// that there are as many boards as there can be.
#[test]
fn a_restart_goes_on_rejecting_what_waits_for_boards_that_cannot_come() {
    let full = || {
        let mut parking = parking();
        parking.boards_max = 1;
        parking
    };
    let running = Running::new(true);
    let waiting: Vec<_> = (0..8).map(|number| job(&format!("m{number}"), &[("never", &[1])])).collect();
    let (source, _) = VecSource::new(vec![jobs(waiting), define("b")]);
    Writer { parking: Some(full()), ..running.writer(source) }.run();
    assert_eq!(running.health.get(|health| health.jobs_parked), 5, "a definition unparks three");
    running.load();
    let has_ready_jobs = running.health.has_ready_jobs.subscribe();
    running.health.has_ready_jobs.send_replace(false);
    let (mut source, _) =
        VecSource::new(vec![jobs(Vec::new()), jobs(Vec::new()), Payload::Unpark { jobs: 100 }]);
    let (mut fetches, asked) = (0, Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&asked);
    // The first fetch brings nothing, and the second is made when the writer has looked around.
    source.before_fetch = Box::new(move || {
        fetches += 1;
        if fetches == 2 {
            seen.store(*has_ready_jobs.borrow(), Ordering::SeqCst);
        }
        fetches > 1
    });
    Writer { parking: Some(full()), ..running.writer(source) }.run();
    assert!(asked.load(Ordering::SeqCst), "commands are asked for");
    assert_eq!(
        (running.health.get(|health| health.jobs_parked), running.health.get(|health| health.jobs_rejected)),
        (0, 8)
    );
}
