//! What is due is gone once a message that brings its time is applied, however much that is; and what keeps
//! an entry from being due.

use crate::board::Definition;
use crate::job::{Job, Op};
use crate::state_lock::Purpose;
use crate::types::Timestamp;
use crate::writer::apply::apply;
use crate::writer::tests::build::{bare, job};
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, Payload};

const HOUR: i64 = 3_600_000_000;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

struct Run(PlannedShard);

impl Run {
    fn say(&mut self, time: i64, payload: Payload) {
        let message = self.0.message(at(time), payload);
        self.0.run(vec![message]);
        while self.0.shard.read(Purpose::Read).has_expiry_to_note() {
            self.0.shard.write(Purpose::Apply).note_expiring(64);
        }
    }

    fn define(&mut self, time: i64, name: &str, entry_ttl_micros: Option<i64>) {
        let payload = self.0.define(name, &Definition { entry_ttl_micros, ..Definition::default() });
        self.say(time, payload);
    }

    fn jobs(&mut self, time: i64, jobs: impl IntoIterator<Item = Job>) {
        self.say(time, Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect()));
    }

    fn total(&self, name: &str) -> u64 {
        self.0.shard.read(Purpose::Read).board_tree(name).expect("it is there").total()
    }
}

fn scores(board: &str, members: std::ops::Range<i64>) -> Vec<Job> {
    members.map(|number| job(&format!("m{number}"), &[(board, &[number % 7])])).collect()
}

/// Many more than a step removes, on two boards.
#[test]
fn everything_due_is_gone_with_the_message_that_brings_its_time() {
    let mut run = Run(PlannedShard::new());
    for board in ["a", "b"] {
        run.define(1, board, Some(HOUR));
    }
    for (time, members) in [(10, 0..100), (20, 100..130)] {
        run.jobs(time, scores("a", members.clone()));
        run.jobs(time, scores("b", members));
    }
    run.say(9 + HOUR, Payload::Tick);
    assert_eq!([run.total("a"), run.total("b")], [130, 130]);
    run.jobs(10 + HOUR, [job("late", &[("a", &[1])])]);
    assert_eq!([run.total("a"), run.total("b")], [31, 30]);
    assert_eq!(run.0.shard.read(Purpose::Read).next_due(), Some(at(20 + HOUR)));
    run.say(20 + HOUR, Payload::Tick);
    assert_eq!([run.total("a"), run.total("b")], [1, 0]);
    assert_eq!(run.0.findings(), Vec::<String>::new());
}

#[test]
fn no_step_before_the_message_has_its_sequence() {
    let mut run = Run(PlannedShard::new());
    run.define(1, "a", Some(HOUR));
    run.jobs(10, scores("a", 0..10));
    // Two messages of one batch: the first one fills a step, which the expired entries must not be part of.
    let messages = vec![
        run.0.message(at(11), Payload::Jobs(vec![Ok(job("m0", &[("a", &[9])]))].into())),
        run.0.message(at(11 + HOUR), Payload::Jobs(vec![Ok(job("new", &[("a", &[1])]))].into())),
    ];
    let steps = run.0.plan(messages);
    let told: Vec<(u64, usize)> =
        steps.iter().map(|step| (step.step().applied.sequence.0, step.step().changes.len())).collect();
    let [before @ .., (4, last)] = told.as_slice() else { panic!("the message comes last: {told:?}") };
    assert_eq!(before.first(), Some(&(3, 1)), "the first message alone: {told:?}");
    assert!(before.iter().all(|(sequence, changes)| *sequence == 3 && *changes <= 3), "{told:?}");
    let expired: usize = before.iter().skip(1).map(|(_, changes)| changes).sum();
    assert_eq!(expired + last, 10 + 1, "{told:?}");
}

/// A reader that comes between two of the steps would find neither of the two messages.
#[test]
fn a_board_is_ahead_from_the_first_step_of_what_expires_to_the_message() {
    let mut run = Run(PlannedShard::new());
    let boards = [("a", Some(HOUR)), ("b", Some(HOUR)), ("forever", None)];
    for (board, ttl) in boards {
        run.define(1, board, ttl);
    }
    for (board, _) in boards {
        run.jobs(10, scores(board, 0..10));
    }
    let message =
        run.0.message(at(10 + HOUR), Payload::Jobs(vec![Ok(job("m1", &[("forever", &[9])]))].into()));
    let mut before = run.0.plan(vec![message]);
    let last = before.pop().expect("it does something");
    let ahead =
        |run: &Run, board: &str| run.0.shard.read(Purpose::Read).is_ahead(|name| name.as_str() == board);
    assert!(before.len() >= 3, "{}", before.len());
    let mut met = [false; 2];
    for step in before {
        let shown = run.0.shard.read(Purpose::Read).applied.sequence;
        apply(&run.0.shard, step);
        assert_eq!(run.0.shard.read(Purpose::Read).applied.sequence, shown);
        for (met, board) in met.iter_mut().zip(["a", "b"]) {
            *met |= run.total(board) < 10;
            assert_eq!(ahead(&run, board), *met, "{board}");
        }
        assert!(!ahead(&run, "forever"));
    }
    assert_eq!(met, [true; 2]);
    apply(&run.0.shard, last);
    assert_eq!(["a", "b"].map(|board| (ahead(&run, board), run.total(board))), [(false, 0); 2]);
}

#[test]
fn a_limit_keeps_a_message_from_taking_all_memory() {
    let mut run = Run(PlannedShard::new());
    run.define(1, "a", Some(HOUR));
    run.jobs(10, scores("a", 0..700));
    run.say(10 + HOUR, Payload::Tick);
    assert!((1..=700 - 300).contains(&run.total("a")), "{}", run.total("a"));
    while run.total("a") > 0 {
        let before = run.total("a");
        run.say(10 + HOUR, Payload::Tick);
        assert!(run.total("a") < before);
    }
}

#[test]
fn a_best_that_is_not_better_keeps_an_entry_that_would_expire_and_nothing_else_does() {
    let mut run = Run(PlannedShard::new());
    let boards = [("a", Some(HOUR)), ("forever", None)];
    for (board, ttl) in boards {
        run.define(1, board, ttl);
    }
    for (board, _) in boards {
        run.jobs(10, ["best", "equal", "hidden", "version", "left"].map(|id| job(id, &[(board, &[5])])));
    }
    for (board, _) in boards {
        run.jobs(20, [bare(Op::Hide, "hidden", &[board])]);
    }
    for (board, _) in boards {
        run.jobs(
            HOUR / 2,
            [
                job("best", &[(board, &[4])]).op(Op::Best),
                job("equal", &[(board, &[5])]).op(Op::Best),
                job("hidden", &[(board, &[1])]).op(Op::Best),
                bare(Op::Show, "version", &[board]).version(7),
            ],
        );
    }
    let updated = |run: &Run, board: &str, id: &str| {
        let shard = run.0.shard.read(Purpose::Read);
        let tree = shard.board_tree(board).expect("it is there");
        let handle = shard.members.get(id.as_bytes())?;
        let entry = tree.entry(handle)?;
        entry.words().map(|_| entry.updated_at.as_micros())
    };
    for (id, expect) in [("best", HOUR / 2), ("equal", HOUR / 2), ("hidden", HOUR / 2), ("left", 10)] {
        assert_eq!(updated(&run, "a", id), Some(expect), "{id}");
        assert_eq!(updated(&run, "forever", id), Some(10), "{id}: it changes nothing where nothing expires");
    }
    run.say(10 + HOUR, Payload::Tick);
    for (id, stays) in
        [("best", true), ("equal", true), ("hidden", true), ("left", false), ("version", false)]
    {
        assert_eq!(updated(&run, "a", id).is_some(), stays, "{id}");
    }
    run.say(HOUR / 2 + HOUR, Payload::Tick);
    assert_eq!(updated(&run, "a", "best"), None);
    run.jobs(HOUR * 2, [job("hidden", &[("a", &[9])])]);
    assert_eq!(run.total("a"), 0, "a ban outlasts the entry");
}
