//! How much is planned and applied under one hold of the lock, counted: in tests the planner lets others in
//! at every chance that it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::board::Definition;
use crate::job::{Job, Op};
use crate::state::Shard;
use crate::state_lock::{HoldObserver, Purpose, StateLock};
use crate::types::{ShardId, Timestamp};
use crate::window::Window;
use crate::writer::tests::build::{board, job, leave_all};
use crate::writer::tests::harness::{Harness, Say};
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, Payload};

/// Boards of one member, and what of them may be looked at under one hold.
const BOARDS: usize = 160;
const AT_ONCE: usize = 16;

#[derive(Default)]
struct PlanHolds(AtomicUsize);

impl HoldObserver for PlanHolds {
    fn acquired(&self) {}

    fn released(&self, purpose: Purpose, _: Duration) {
        self.0.fetch_add(usize::from(purpose == Purpose::Plan), Ordering::Relaxed);
    }
}

/// A shard that knows a member on many boards, and who counts its holds.
fn on_many_boards() -> (Harness, Arc<PlanHolds>) {
    let mut harness = Harness::new(true);
    let holds = Arc::<PlanHolds>::default();
    let counted = Arc::clone(&holds);
    let observer: Arc<dyn HoldObserver> = counted;
    harness.shard = Arc::new(StateLock::observed(Shard::new(ShardId(0)), &observer));
    for number in 0..BOARDS {
        let name = format!("b{number}");
        harness.batch(&[
            Say::Define(board(&name), Arc::new(Definition::default())),
            Say::Jobs(vec![job("m", &[(name.as_str(), &[1])])]),
        ]);
    }
    (harness, holds)
}

/// Plans a removal of the member from every board.
fn holds_of_removal(harness: &mut Harness, holds: &PlanHolds) -> usize {
    holds.0.store(0, Ordering::Relaxed);
    harness.batch(&[Say::Jobs(vec![leave_all("m")])]);
    holds.0.load(Ordering::Relaxed)
}

#[test]
fn a_removal_from_every_board_lets_others_in_whenever_it_has_looked_at_some_of_them() {
    let (mut harness, holds) = on_many_boards();
    let planned = holds_of_removal(&mut harness, &holds);
    // They are found, decided on, changed, and put into the delta.
    assert!(planned >= 3 * BOARDS / AT_ONCE, "{planned} holds");
    harness.check_all();
}

#[test]
fn a_job_of_many_boards_lets_others_in_between_them() {
    let (mut harness, holds) = on_many_boards();
    let names: Vec<String> = (0..64).map(|number| format!("b{number}")).collect();
    let scores: Vec<(&str, &[i64])> = names.iter().map(|name| (name.as_str(), &[5_i64][..])).collect();
    holds.0.store(0, Ordering::Relaxed);
    harness.batch(&[Say::Jobs(vec![job("m", &scores)])]);
    let planned = holds.0.load(Ordering::Relaxed);
    assert!(planned >= 64, "{planned} holds");
    harness.check_all();
}

/// Counts the holds of steps, and of what follows them.
#[derive(Default)]
struct ApplyHolds(AtomicUsize);

impl HoldObserver for ApplyHolds {
    fn acquired(&self) {}

    fn released(&self, purpose: Purpose, _: Duration) {
        self.0.fetch_add(usize::from(purpose == Purpose::Apply), Ordering::Relaxed);
    }
}

#[test]
fn a_definition_and_the_end_of_a_board_with_many_instances_let_others_in_between_them() {
    const HOUR: i64 = 60 * 60 * 1_000_000;
    let (hours, now) = (30, 1_790_000_000_000_000);
    let at = |micros: i64| Timestamp::from_micros(micros).expect("in range");
    let holds = Arc::<ApplyHolds>::default();
    let counted = Arc::clone(&holds);
    let observer: Arc<dyn HoldObserver> = counted;
    let mut planned = PlannedShard::new();
    planned.shard = Arc::new(StateLock::observed(Shard::new(ShardId(0)), &observer));
    let definition = |keep| Definition {
        windows: vec![Window::All, Window::Hour],
        grace_micros: 100 * HOUR,
        keep,
        ..Definition::default()
    };
    let say = |planned: &mut PlannedShard, payload: Payload| {
        let message = planned.message(at(now), payload);
        holds.0.store(0, Ordering::Relaxed);
        planned.run(vec![message]);
        holds.0.load(Ordering::Relaxed)
    };
    let define = planned.define("b", &definition(12));
    assert_eq!(say(&mut planned, define), 1);
    let jobs = (0..hours).map(|hour| Job { at: Some(at(now - hour * HOUR)), ..job("m", &[("b", &[1])]) });
    let jobs = Payload::Jobs(jobs.map(Ok::<_, BadJob>).collect());
    assert_eq!(say(&mut planned, jobs), 1, "a message is applied at once");
    assert_eq!(planned.shard.read(Purpose::Read).instance_count(), 30);
    for keep in [5, 6] {
        let define = planned.define("b", &definition(keep));
        let applied = say(&mut planned, define);
        // Three at a time in tests, and some more after the last.
        assert!((10..=12).contains(&applied), "{applied} holds");
        let shard = planned.shard.read(Purpose::Read);
        assert!(shard.instances_of(&board("b")).all(|(_, known)| known.definition.keep == keep));
    }
    let end = planned.drop_board("b");
    let applied = say(&mut planned, end);
    assert!((10..=13).contains(&applied), "{applied} holds");
    assert_eq!(planned.shard.read(Purpose::Read).instance_count(), 0);
    assert_eq!(planned.findings(), Vec::<String>::new());
}

/// Until the members of dropped boards are let go of, they are known to trees that are nobody's.
#[test]
fn a_removal_from_every_board_lets_others_in_while_it_passes_over_dropped_ones() {
    let (mut harness, holds) = on_many_boards();
    for number in 0..BOARDS {
        harness.batch(&[Say::Drop(board(&format!("b{number}")))]);
    }
    assert!(harness.shard.read(Purpose::Read).has_retired(), "nobody let go of its member yet");
    let planned = holds_of_removal(&mut harness, &holds);
    assert!(planned >= BOARDS / AT_ONCE, "{planned} holds");
}

/// Applies messages of one job each, which changes nothing on so many boards, and counts the holds.
fn holds_of_messages(messages: usize, boards: usize) -> usize {
    let (mut harness, _) = on_many_boards();
    let names: Vec<String> = (0..boards).map(|number| format!("b{number}")).collect();
    let worse: Vec<(&str, &[i64])> = names.iter().map(|name| (name.as_str(), &[0_i64][..])).collect();
    let ask = Say::Ask(vec![Job { op: Some(Op::Best), ..job("m", &worse) }]);
    harness.commit(&vec![ask; messages]);
    let mut holds = 0;
    while harness.apply_one() {
        holds += 1;
    }
    harness.check_all();
    holds
}

#[test]
fn messages_that_clients_wait_for_are_applied_together_as_far_as_their_look_ups_go() {
    assert_eq!(holds_of_messages(16, 1), 1);
    // A job of 32 boards counts as 16: of 64 look-ups, four each count as one job, and a hold takes 64 jobs.
    assert_eq!(holds_of_messages(16, 32), 4);
}
