//! Profiles as the writer leaves them on disk, for readers who may be behind it.

use crate::types::Sequence;
use crate::writer::tests::build::{job, leave_all, profile};
use crate::writer::tests::harness::{Harness, Say};

const A: &str = r#"{"name":"a"}"#;
const B: &str = r#"{"name":"b"}"#;

/// What the disk says of the profile of `m` at a sequence; an error is how far ahead it is.
fn at(harness: &Harness, sequence: u64) -> Result<Option<String>, u64> {
    let store = harness.store();
    let now = store.profile_at(b"m", Sequence(sequence)).expect("readable");
    let snapshot = store.snapshot().profile_at(b"m", Sequence(sequence)).expect("readable");
    assert_eq!(now, snapshot);
    now.map(|json| json.map(Into::into)).map_err(|newer| newer.0)
}

#[test]
fn the_disk_says_of_which_moment_a_profile_is_and_when_one_was_removed() {
    let mut harness = Harness::new(true);
    assert_eq!(at(&harness, 0), Ok(None));
    let (a, b) = (Ok(Some(A.to_owned())), Ok(Some(B.to_owned())));
    let mut say = |jobs: Vec<crate::job::Job>, before: Result<Option<String>, u64>, after| {
        harness.batch(&[Say::Ask(jobs)]);
        let last = harness.last;
        assert_eq!(at(&harness, last - 1), before, "before message {last}");
        assert_eq!(at(&harness, last), after, "after message {last}");
        harness.check_all();
    };
    say(vec![profile("m", A)], Err(1), a.clone());
    say(vec![profile("m", A)], a.clone(), a.clone());
    say(vec![profile("m", B)], Err(3), b.clone());
    say(vec![profile("n", A), job("m", &[("auto", &[5])])], b.clone(), b.clone());
    // A version alone changes nothing for readers.
    say(vec![profile("m", B).version(7)], b.clone(), b.clone());
    say(vec![leave_all("m")], Err(6), Ok(None));
    say(vec![profile("m", A).version(7)], Ok(None), Ok(None));
    say(vec![profile("m", A).version(8)], Err(8), a.clone());
    say(vec![profile("m", "{}")], Err(9), Ok(None));
    say(vec![leave_all("m")], Ok(None), Ok(None));
    // Within one message, and one batch.
    say(vec![profile("m", A), leave_all("m"), profile("m", B)], Err(11), b.clone());
    say(vec![leave_all("m"), profile("m", B)], Err(12), b);
}

/// The record is gone, so another one says that it was there.
#[test]
fn a_profile_without_a_version_leaves_nothing_behind_but_when_it_went() {
    let mut harness = Harness::new(true);
    harness.batch(&[Say::Jobs(vec![profile("m", A)])]);
    harness.batch(&[Say::Jobs(vec![leave_all("m")]), Say::Jobs(vec![job("n", &[("auto", &[1])])])]);
    assert_eq!(harness.store().profile(b"m").expect("readable"), None);
    assert_eq!(at(&harness, 1), Err(3), "the end of its batch");
    assert_eq!(at(&harness, 3), Ok(None));
    assert_eq!(harness.store().keys_from(&[0x0c]).expect("readable").len(), 1);
    harness.restart();
    assert_eq!(at(&harness, 3), Ok(None));
    harness.check_all();
}
