//! How much is planned and applied under one hold of the lock, counted: in tests the planner lets others in
//! at every chance that it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::board::Definition;
use crate::job::{Job, Op};
use crate::state::Shard;
use crate::state_lock::{HoldObserver, Purpose, StateLock};
use crate::types::ShardId;
use crate::writer::tests::build::{board, job, leave_all};
use crate::writer::tests::harness::{Harness, Say};

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
