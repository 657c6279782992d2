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

/// Whoever may write to some boards only pushes out nothing of others, nor what names no board; and after a
/// start neither.
#[test]
fn rejects_of_one_board_push_out_none_of_another() {
    let running = Running::new(true);
    let good = |name: &str| jobs(vec![job("m", &[(name, &[1])])]);
    let refused = |name: &str, many: usize| jobs((0..many).map(|_| job("m", &[(name, &[1, 2])])).collect());
    let stored = |code: RejectCode, name: &str| {
        let stored = newest_rejects(&running.store.get().expect("it is open"), usize::MAX);
        let of_board = |text: &[u8]| String::from_utf8_lossy(text).contains(&format!("\"{name}\""));
        stored
            .iter()
            .filter(|reject| reject.code == code && (name.is_empty() || of_board(&reject.job)))
            .count()
    };
    let before = vec![good("quiet"), good("eu-1"), good("eu-2"), refused("quiet", 300), bad(200)];
    assert!(running.drain(before).iter().all(Result::is_ok));
    for round in 0..2 {
        let floods = (0..104).map(|number| refused(if number % 2 == 0 { "eu-1" } else { "eu-2" }, 1_000));
        // A writer of its own each time, which learns from the disk whose they are.
        assert!(running.drain(floods.collect()).iter().all(Result::is_ok));
        let kept = (stored(RejectCode::BadScore, "quiet"), stored(RejectCode::Malformed, ""));
        assert_eq!(kept, (300, 200), "{round}");
        let flood = stored(RejectCode::BadScore, "eu-1") + stored(RejectCode::BadScore, "eu-2");
        assert!((99_500..=100_524).contains(&flood), "{flood}");
    }
}
