//! Which rejects are kept.

use crate::job::{Reject, RejectCode};
use crate::writer::tests::build::job;
use crate::writer::tests::fed::newest_rejects;
use crate::writer::tests::source::{Running, jobs};
use crate::writer::{BadJob, Payload};

fn bad(count: usize) -> Payload {
    let reject = || Reject::new(RejectCode::Malformed, "it is none".to_owned());
    Payload::Jobs(
        (0..count).map(|_| Err(BadJob { member: None, reject: reject(), bytes: b"x".to_vec() })).collect(),
    )
}

#[test]
fn rejects_are_kept_by_count_however_many_messages_come_between() {
    const BETWEEN: usize = 101_000;
    let running = Running::new(true);
    let good = (0..BETWEEN).map(|_| jobs(vec![job("m", &[("b", &[1])])]));
    let payloads = [bad(2)].into_iter().chain(good).chain([bad(1_100)]).collect();
    let answers = running.drain(payloads);
    assert!(answers.iter().all(Result::is_ok));
    let stored = newest_rejects(&running.store.get().expect("it is open"), 2_000);
    assert_eq!(stored.len(), 1_102);
    assert_eq!(stored.last().map(|oldest| oldest.sequence.0), Some(1));
}

#[test]
fn the_oldest_rejects_go_away_and_their_count_stays() {
    let running = Running::new(true);
    // A thousand to a message, as on the wire.
    let answers = running.drain((0..103).map(|_| bad(1_000)).collect());
    assert!(answers.iter().all(Result::is_ok));
    let store = running.store.get().expect("it is open");
    let stored = newest_rejects(&store, 200_000);
    // 1,024 go at a time.
    assert_eq!(stored.len(), 103_000 - 2 * 1_024);
    let oldest = stored.last().expect("there are some");
    assert_eq!((oldest.sequence.0, oldest.index), (3, 48));
    assert_eq!(running.health.get(|health| health.jobs_rejected), 103_000);
    assert_eq!(store.meta().expect("readable").expect("there").jobs_rejected, 103_000);
}

#[test]
fn a_reject_of_several_boards_names_the_one_that_refuses() {
    let running = Running::new(true);
    let two = [("arena", &[1][..]), ("race", &[1, 2][..])];
    let answers = running.drain(vec![jobs(vec![job("m", &two)]), jobs(vec![job("m", &two[1..])])]);
    assert!(answers.iter().all(Result::is_ok));
    let stored = newest_rejects(&running.store.get().expect("it is open"), 2);
    let [only, several] = stored.as_slice() else { panic!("two rejects, and not {stored:?}") };
    assert!(several.detail.starts_with("race: a score of this board has 1 key"), "{}", several.detail);
    assert!(only.detail.starts_with("a score of this board has 1 key"), "{}", only.detail);
}
