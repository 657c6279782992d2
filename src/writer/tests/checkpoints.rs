//! Checkpoints beside a writer that goes on: what each of them once got wrong, or could.
//!
//! Pages hold four handles here, so a handful of members fills several.

use std::sync::Arc;
use std::time::Duration;

use crate::job::Op;
use crate::state_lock::Purpose;
use crate::storage::{CheckpointPhase, StorageError};
use crate::writer::tests::build::{bare, job, leave_all};
use crate::writer::tests::harness::{Harness, Say};
use crate::writer::{CheckpointGate, CheckpointPolicy, Checkpointer};

pub(super) fn refused() -> StorageError {
    StorageError::Io { path: "the disk".into(), error: std::io::Error::other("refused by the test") }
}

/// A harness whose members m0.. are on `auto`, with handles 0.. in this order, checkpointed.
pub(super) fn with_members(count: usize) -> Harness {
    let mut harness = Harness::new(true);
    for number in 0..count {
        harness.batch(&[Say::Jobs(vec![job(&format!("m{number}"), &[("auto", &[1])])])]);
    }
    undisturbed(&mut harness);
    harness
}

pub(super) fn undisturbed(harness: &mut Harness) {
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
}

/// A checkpoint, with `act` called once, at the given slice.
pub(super) fn disturbed(harness: &mut Harness, at: usize, act: impl Fn(&mut Harness)) {
    let mut slice = 0;
    let written = harness.checkpoint(&mut |harness, moment| {
        if moment == CheckpointPhase::Slice && slice == at {
            act(harness);
        }
        slice += usize::from(moment == CheckpointPhase::Slice);
        Ok(())
    });
    written.expect("the disk takes it");
}

#[test]
fn next_checkpoint_repairs_a_failed_one() {
    // The late batch comes while boards have yet to join, and while their pages are looked at.
    for (fails_at, late_at) in (0..18).flat_map(|fails_at| [(fails_at, 1), (fails_at, 5)]) {
        let mut harness = with_members(6);
        harness.batch(&[
            Say::Jobs(vec![job("m0", &[("auto", &[5]), ("more", &[5])]).version(3).meta(r#"{"a":1}"#)]),
            Say::Jobs(vec![bare(Op::Hide, "m1", &["auto"]), leave_all("m2")]),
        ]);
        let mut moments = 0;
        let written = harness.checkpoint(&mut |harness, _| {
            if moments == late_at {
                let late = vec![job("n", &[("auto", &[8])]), leave_all("m3"), job("m4", &[("auto", &[7])])];
                harness.batch(&[Say::Jobs(late)]);
            }
            moments += 1;
            if moments > fails_at { Err(refused()) } else { Ok(()) }
        });
        assert_eq!(written.is_err(), moments > fails_at);
        harness.check_all();
        harness.batch(&[Say::Jobs(vec![job("m2", &[("more", &[2])]), leave_all("m5")])]);
        undisturbed(&mut harness);
        harness.check_all();
        harness.restart();
        harness.check_all();
    }
}

/// A crash between every two verbs: the batch is there whole or not at all, whatever was applied of it.
#[test]
fn a_crash_between_any_two_verbs_keeps_the_batch_or_loses_it_whole() {
    let says = [
        Say::Ask(vec![job("m0", &[("auto", &[9])]), job("n", &[("auto", &[9]), ("more", &[1])])]),
        Say::Jobs(vec![leave_all("m1")]),
        Say::Ask(vec![bare(Op::Hide, "m2", &["auto"])]),
    ];
    // Planned and not committed: nothing has happened.
    let mut harness = with_members(3);
    let (before, last) = (harness.model.clone(), harness.last);
    assert!(harness.plan(&says).is_some());
    (harness.model, harness.last, harness.rejected) = (before, last, 0);
    harness.restart();
    harness.check_all();
    // Committed, and applied up to any step.
    for applied in 0..=3 {
        let mut harness = with_members(3);
        harness.commit(&says);
        for _ in 0..applied {
            assert!(harness.apply_one());
        }
        harness.restart();
        harness.check_all();
    }
}

/// Staged and not in effect, in effect with the old deltas still there: either checkpoint is whole.
#[test]
fn a_crash_around_the_ingestion_leaves_the_old_checkpoint_or_the_new_one() {
    for crash_at in
        [CheckpointPhase::Joining, CheckpointPhase::Slice, CheckpointPhase::Staged, CheckpointPhase::Ingested]
    {
        let mut harness = with_members(6);
        harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[5])]), leave_all("m1")])]);
        let written = harness.checkpoint(&mut |harness, moment| {
            if moment == CheckpointPhase::Slice {
                harness.batch(&[Say::Jobs(vec![job("m2", &[("auto", &[6])])])]);
            }
            if moment == crash_at { Err(refused()) } else { Ok(()) }
        });
        assert!(written.is_err());
        harness.restart();
        harness.check_all();
        let staging = harness.folder.path().join("staging");
        assert!(!staging.exists(), "what was staged is gone after a start");
        undisturbed(&mut harness);
        harness.check_all();
    }
}

/// From the moment a checkpoint begins, the writer sets aside each leaf that it changes. So one that waits
/// for another shard's begins when that one has ended, and holds what came meanwhile.
#[test]
fn checkpoint_waits_for_the_gate() {
    let mut harness = with_members(3);
    harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[5])])])]);
    let gate = CheckpointGate::default();
    let others = gate.enqueue();
    let policy =
        CheckpointPolicy { changes_min: 3, changes_percent: 0, pause_factor: 0, interval: Duration::MAX };
    let mut checkpointer = Checkpointer::new(policy, gate, 3);
    assert!(checkpointer.is_due(3));
    checkpointer.start_if_admitted(harness.store(), &harness.shard);
    harness.batch(&[Say::Jobs(vec![job("m1", &[("auto", &[6])])])]);
    checkpointer.add_changes(1);
    let set_aside = |harness: &Harness| {
        let shard = harness.shard.read(Purpose::Read);
        shard.trees().map(|(_, tree)| tree.tree.pending_pages()).sum::<usize>()
    };
    assert_eq!(set_aside(&harness), 0, "nothing has begun");
    assert_eq!(checkpointer.changes(), 4);
    assert!(checkpointer.poll(&harness.shard).is_none());
    assert!(checkpointer.is_due(1_000_000), "whoever has a place in the line stays due");
    drop(others);
    checkpointer.start_if_admitted(harness.store(), &harness.shard);
    let (sequence, _) = checkpointer.wait(&harness.shard).expect("it completes");
    assert_eq!(sequence.0, harness.last, "it holds what came while it waited");
    harness.check_all();
}

/// Where there is time for it, checkpoints come as soon as there is enough to write, so that little is to be
/// replayed after a kill. They rest in proportion to what the last one took, so that they never take more
/// than a share of a core.
#[test]
fn a_checkpoint_is_due_after_few_changes_unless_the_last_one_was_long_in_proportion() {
    let mut harness = with_members(3);
    harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[5])])])]);
    let policy = |pause_factor| CheckpointPolicy {
        changes_min: 10,
        pause_factor,
        changes_percent: 50,
        interval: Duration::MAX,
    };
    for (pause_factor, changes, due) in
        [(0, 9, false), (0, 10, true), (u32::MAX, 10, false), (u32::MAX, 499, false), (u32::MAX, 500, true)]
    {
        let mut checkpointer = Checkpointer::new(policy(pause_factor), CheckpointGate::default(), 1);
        checkpointer.start_if_admitted(harness.store(), &harness.shard);
        checkpointer.wait(&harness.shard).expect("it completes, and takes longer than nothing");
        checkpointer.add_changes(changes);
        assert_eq!(checkpointer.is_due(1_000), due, "{changes} changes, a pause factor of {pause_factor}");
    }
    harness.check_all();
}

/// Start-up compares what the disk has with what was there when the checkpoint was taken: a log that lost
/// what the checkpoint was taken beside cannot make it right any more.
#[test]
fn a_log_that_ends_before_what_its_checkpoint_saw_is_refused() {
    let mut harness = with_members(2);
    harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[5])])])]);
    disturbed(&mut harness, 0, |harness| {
        harness.batch(&[Say::Jobs(vec![job("m1", &[("auto", &[6])])])]);
    });
    let shard = Arc::clone(&harness.shard);
    let seen = shard.read(Purpose::Read).applied.sequence;
    harness.store().cut_log_for_test(seen).expect("the disk takes it");
    let store = harness.store();
    let error = crate::storage::recover(&store, crate::storage::TreesFrom::Pages, &|_, _, _| {})
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("checkpoint"), "{error}");
}

/// A start finds what the model holds, and so do those behind two more checkpoints.
pub(super) fn goes_on_after_a_restart(harness: &mut Harness) {
    harness.restart();
    harness.check_all();
    for _ in 0..2 {
        undisturbed(harness);
        harness.restart();
        harness.check_all();
    }
}
