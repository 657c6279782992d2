//! Times: that of a shard never runs backwards, and a job's own is not far ahead of its message's.

use crate::job::{Job, MAX_AHEAD_MICROS, RejectCode};
use crate::state_lock::Purpose;
use crate::storage::codec::Meta;
use crate::types::Timestamp;
use crate::writer::JobOutcome;
use crate::writer::tests::build::job;
use crate::writer::tests::source::{Running, VecSource, jobs};

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

/// The second and the fourth message are stamped by a leader whose clock is behind.
fn unsteady(sequence: u64) -> Timestamp {
    at(match sequence {
        1 => 1_000,
        2 => 400,
        3 => 2_000,
        4 => 1_500,
        _ => 2_100,
    })
}

fn one(id: &str) -> Job {
    job(id, &[("b", &[7])])
}

impl Running {
    fn say(&self, timed: fn(u64) -> Timestamp, said: Vec<Job>) -> Vec<Option<RejectCode>> {
        let (mut source, answers) = VecSource::new(said.into_iter().map(|job| jobs(vec![job])).collect());
        source.time = timed;
        let code = |job: &JobOutcome| match job {
            JobOutcome::Rejected(reject) => Some(reject.code),
            JobOutcome::Applied(_)
            | JobOutcome::Changed(_)
            | JobOutcome::Repeated(..)
            | JobOutcome::WithProfile { .. }
            | JobOutcome::Parked(_) => None,
        };
        let outcomes = self.run(source, answers);
        outcomes
            .iter()
            .flat_map(|outcome| outcome.as_ref().expect("committed").jobs.iter().map(code))
            .collect()
    }

    fn updated_at(&self, id: &str) -> i64 {
        let shard = self.shard.read(Purpose::Read);
        let tree = shard.board("b").expect("the board is there").all;
        let handle = shard.members.get(id.as_bytes()).expect("the member is there");
        shard.entry(tree, handle).expect("it has an entry").updated_at.as_micros()
    }

    fn meta(&self) -> Meta {
        self.store.get().expect("it is open").meta().expect("readable").expect("there is one")
    }
}

#[test]
fn time_does_not_run_backwards_within_a_batch_or_over_a_restart() {
    let running = Running::new(true);
    assert_eq!(running.say(unsteady, vec![one("a"), one("b"), one("c")]), [None; 3]);
    assert_eq!(["a", "b", "c"].map(|id| running.updated_at(id)), [1_000, 1_001, 2_000]);
    // The directory was read again: what was later than the next message is known from there.
    assert_eq!(running.say(unsteady, vec![one("d")]), [None]);
    assert_eq!(running.updated_at("d"), 2_001);
    let meta = running.meta();
    assert_eq!(
        (meta.message_timestamp_micros, meta.time_micros),
        (1_500, 2_001),
        "the message is known by its own"
    );
    assert_eq!(running.shard.read(Purpose::Read).applied.timestamp, at(1_500));
    assert_eq!(running.say(unsteady, vec![one("e")]), [None]);
    assert_eq!(running.updated_at("e"), 2_100);
    // Who came first leads, whatever the clocks said.
    let places: Vec<String> = running.board("b").into_iter().map(|(id, _)| id).collect();
    assert_eq!(places, ["a", "b", "c", "d", "e"]);
}

/// One message that is stamped far ahead does not make ties of all later ones.
#[test]
fn ties_keep_the_order_of_the_log_while_the_clock_is_behind() {
    let running = Running::new(true);
    let glitch = |sequence: u64| at(if sequence == 1 { 2_208_988_800_000_000 } else { 1_000 });
    assert_eq!(running.say(glitch, vec![one("glitch"), one("zoe")]), [None; 2]);
    assert_eq!(running.say(glitch, vec![one("mia")]), [None]);
    assert_eq!(running.say(glitch, vec![one("ann")]), [None]);
    let places: Vec<String> = running.board("b").into_iter().map(|(id, _)| id).collect();
    assert_eq!(places, ["glitch", "zoe", "mia", "ann"]);
    assert_eq!(running.updated_at("ann"), 2_208_988_800_000_003);
}

#[test]
fn a_job_of_more_than_five_minutes_ahead_is_rejected() {
    let running = Running::new(true);
    let ahead = |id: &str, micros: i64| Job { at: Some(at(micros)), ..one(id) };
    let future = Some(RejectCode::FutureTime);
    let said = vec![
        ahead("late", 0),
        // By the shard's time, which is that of the message before.
        ahead("due", 1_000 + MAX_AHEAD_MICROS),
        ahead("ahead", 2_000 + MAX_AHEAD_MICROS + 1),
        ahead("far", i64::from(u32::MAX) * 1_000_000),
    ];
    assert_eq!(running.say(unsteady, said), [None, None, future, future]);
    assert_eq!(running.updated_at("due"), 1_000 + MAX_AHEAD_MICROS);
    assert_eq!(running.board("b").len(), 2);
    // A board is not created for it either.
    let elsewhere = Job { at: Some(Timestamp::MAX), ..job("m", &[("other", &[1])]) };
    assert_eq!(running.say(unsteady, vec![elsewhere]), [future]);
    assert!(running.shard.read(Purpose::Read).board("other").is_none());
}
