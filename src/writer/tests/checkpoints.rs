//! Checkpoints beside a writer that goes on: what each of them once got wrong, or could.
//!
//! Pages hold four handles here, so a handful of members fills several.

use std::sync::Arc;

use crate::job::{Job, Op};
use crate::storage::{Moment, StorageError};
use crate::writer::tests::build::{bare, board, job, leave_all};
use crate::writer::tests::harness::{Harness, Say, time};

fn refused() -> StorageError {
    StorageError::Io { path: "the disk".into(), error: std::io::Error::other("refused by the test") }
}

/// A harness whose members m0.. are on `auto`, with handles 0.. in this order, checkpointed.
fn with_members(count: usize) -> Harness {
    let mut harness = Harness::new(true);
    for number in 0..count {
        harness.batch(&[Say::Jobs(vec![job(&format!("m{number}"), &[("auto", &[1])])])]);
    }
    undisturbed(&mut harness);
    harness
}

fn undisturbed(harness: &mut Harness) {
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
}

/// A checkpoint, with `act` called once, at the given slice.
fn disturbed(harness: &mut Harness, at: usize, act: impl Fn(&mut Harness)) {
    let mut slice = 0;
    let written = harness.checkpoint(&mut |harness, moment| {
        if moment == Moment::Slice && slice == at {
            act(harness);
        }
        slice += usize::from(moment == Moment::Slice);
        Ok(())
    });
    written.expect("the disk takes it");
}

/// Member pages are looked at while a batch is half applied. Had the batch's delta left out what came to nothing in the
/// end, the half would be what start-up finds.
#[test]
fn a_change_that_a_batch_takes_back_is_redone_too() {
    let mut harness = with_members(1);
    // The same score at the same time is the same entry.
    let set = |points| Job { at: Some(time(3)), ..job("m0", &[("auto", &[points])]) };
    harness.batch(&[Say::Jobs(vec![set(5)])]);
    let mut slice = 0;
    let written = harness.checkpoint(&mut |harness, _| {
        match slice {
            // Before the member page is looked at; m1 arrives and leaves, m0 goes up and comes back.
            0 => {
                harness.commit(&[
                    Say::Ask(vec![set(9), job("m1", &[("auto", &[1])])]),
                    Say::Ask(vec![set(5), leave_all("m1")]),
                ]);
                harness.apply_one();
            }
            1 => harness.apply_all(),
            _ => {}
        }
        slice += 1;
        Ok(())
    });
    written.expect("the disk takes it");
    assert!(slice > 2, "the member page came after the first slice");
    harness.check_all();
}

/// The same for what is not in the tree: hidden and shown again, the extra being looked at in between.
#[test]
fn an_entry_hidden_and_shown_within_a_batch_is_listed_after_a_restart() {
    for looked_at in 0..4 {
        let mut harness = with_members(1);
        harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[5])]).version(1)])]);
        disturbed(&mut harness, looked_at, |harness| {
            harness.commit(&[
                Say::Ask(vec![bare(Op::Hide, "m0", &["auto"])]),
                Say::Ask(vec![bare(Op::Show, "m0", &["auto"])]),
            ]);
            harness.apply_one();
        });
        harness.check_all();
        harness.restart();
        harness.check_all();
    }
}

/// A newcomer may get another handle when its arrival is replayed. If a checkpoint had put it down under the first one,
/// the next holder of that handle would find itself on boards that it never entered.
#[test]
fn a_newcomer_during_a_checkpoint_leaves_nothing_under_the_handle_it_had() {
    for looked_at in 0..6 {
        let mut harness = with_members(12);
        let more = (0..12).map(|number| job(&format!("m{number}"), &[("more", &[1])])).collect();
        harness.batch(&[Say::Jobs(more)]);
        harness.batch(&[Say::Jobs(["m0", "m4", "m8"].map(leave_all).into())]);
        undisturbed(&mut harness);
        // Three handles are free, each on a page of its own; all pages are due.
        let due = ["m1", "m5", "m9"].map(|id| job(id, &[("auto", &[2]), ("more", &[2])]));
        harness.batch(&[Say::Jobs(due.into())]);
        disturbed(&mut harness, looked_at, |harness| {
            harness.batch(&[Say::Jobs(vec![job("n", &[("more", &[7])]).version(1)])]);
        });
        harness.restart();
        harness.check_all();
        // The next holders of all free handles stay away from `more`.
        let others = ["x", "y", "z"].map(|id| job(id, &[("auto", &[3])]));
        harness.batch(&[Say::Jobs(others.into())]);
        undisturbed(&mut harness);
        harness.check_all();
    }
}

/// Hidden when the checkpoint began, shown before it was looked at: neither the tree's page nor an extra names the
/// member then, and start-up must not give its handle away before the replay has named it.
#[test]
fn a_member_that_only_the_replay_names_keeps_its_handle() {
    for looked_at in 0..4 {
        let mut harness = with_members(4);
        harness.batch(&[Say::Jobs(vec![bare(Op::Hide, "m0", &["auto"])])]);
        disturbed(&mut harness, looked_at, |harness| {
            harness.batch(&[Say::Jobs(vec![bare(Op::Show, "m0", &["auto"])])]);
        });
        harness.restart();
        harness.check_all();
        undisturbed(&mut harness);
        harness.restart();
        // Whoever gets the handle next, if it is free, is on another board.
        harness.batch(&[Say::Jobs(["x", "y"].map(|id| job(id, &[("more", &[3])])).into())]);
        undisturbed(&mut harness);
        harness.check_all();
    }
}

#[test]
fn a_checkpoint_that_failed_anywhere_is_made_up_for_by_the_next() {
    for fails_at in 0..14 {
        let mut harness = with_members(6);
        harness.batch(&[
            Say::Jobs(vec![job("m0", &[("auto", &[5]), ("more", &[5])]).version(3).meta(r#"{"a":1}"#)]),
            Say::Jobs(vec![bare(Op::Hide, "m1", &["auto"]), leave_all("m2")]),
        ]);
        let mut moments = 0;
        let written = harness.checkpoint(&mut |harness, _| {
            if moments == 1 {
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
    for crash_at in [Moment::Slice, Moment::Staged, Moment::Ingested] {
        let mut harness = with_members(6);
        harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[5])]), leave_all("m1")])]);
        let written = harness.checkpoint(&mut |harness, moment| {
            if moment == Moment::Slice {
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

/// A board dropped while it is checkpointed, and created again under its name, before and after a restart.
#[test]
fn a_board_dropped_and_created_again_during_a_checkpoint_starts_empty() {
    for dropped_at in 0..8 {
        let mut harness = with_members(6);
        harness.batch(&[Say::Jobs(vec![job("m0", &[("more", &[1])]), job("m1", &[("auto", &[2])])])]);
        let mut moments = 0;
        let _ = harness.checkpoint(&mut |harness, moment| {
            if moments == dropped_at && moment != Moment::Ingested {
                harness.batch(&[Say::Drop(board("auto"))]);
                harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[3])]), job("n", &[("auto", &[3])])])]);
            }
            moments += 1;
            Ok(())
        });
        harness.check_all();
        harness.restart();
        harness.check_all();
        undisturbed(&mut harness);
        harness.check_all();
    }
}

/// What a dropped board had on disk goes with the next checkpoint, and not before: until then the old one needs it.
#[test]
fn a_dropped_boards_pages_leave_the_disk() {
    let mut harness = with_members(6);
    harness.batch(&[Say::Jobs(vec![bare(Op::Hide, "m0", &["auto"]), job("m1", &[("more", &[1])])])]);
    undisturbed(&mut harness);
    let gone = harness.shard.read().board("auto").expect("it is there").all;
    assert_ne!(harness.store().checkpoint_records_of(gone).expect("readable"), 0);
    harness.batch(&[Say::Drop(board("auto"))]);
    harness.restart();
    assert_ne!(harness.store().checkpoint_records_of(gone).expect("readable"), 0);
    undisturbed(&mut harness);
    assert_eq!(harness.store().checkpoint_records_of(gone).expect("readable"), 0);
    harness.check_all();
    harness.restart();
    harness.check_all();
}

/// Handles of members that left are given out again, but only once no checkpoint on disk names them.
#[test]
fn handles_come_back_after_a_checkpoint_and_not_before() {
    let mut harness = with_members(3);
    let space = |harness: &Harness| harness.shard.read().members.handle_space();
    harness.batch(&[Say::Jobs(vec![leave_all("m0")])]);
    harness.batch(&[Say::Jobs(vec![job("n", &[("auto", &[1])])])]);
    assert_eq!(space(&harness), 4, "m0's handle waits for a checkpoint");
    undisturbed(&mut harness);
    harness.batch(&[Say::Jobs(vec![job("o", &[("auto", &[1])])])]);
    assert_eq!(space(&harness), 4, "o has m0's handle");
    harness.check_all();
    // Leaving every board and returning, within a batch and across checkpoints.
    harness.batch(&[Say::Jobs(vec![leave_all("m1"), job("m1", &[("more", &[2])])])]);
    harness.batch(&[
        Say::Ask(vec![leave_all("m1")]),
        Say::Ask(vec![job("m1", &[("auto", &[2])]), leave_all("m1"), job("m1", &[("more", &[3])])]),
    ]);
    assert_eq!(space(&harness), 4, "it never left for long enough to need another handle");
    disturbed(&mut harness, 0, |harness| {
        harness.batch(&[Say::Jobs(vec![leave_all("m1")])]);
        harness.batch(&[Say::Jobs(vec![job("m1", &[("auto", &[4])])])]);
    });
    harness.check_all();
    undisturbed(&mut harness);
    harness.check_all();
    harness.restart();
    harness.check_all();
}

/// Start-up compares what the disk has with what was there when the checkpoint was taken: a log that lost what the
/// checkpoint was taken beside cannot make it right any more.
#[test]
fn a_log_that_ends_before_what_its_checkpoint_saw_is_refused() {
    let mut harness = with_members(2);
    harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[5])])])]);
    disturbed(&mut harness, 0, |harness| {
        harness.batch(&[Say::Jobs(vec![job("m1", &[("auto", &[6])])])]);
    });
    let shard = Arc::clone(&harness.shard);
    let seen = shard.read().applied.sequence;
    harness.store().cut_log_for_test(seen).expect("the disk takes it");
    let store = harness.store();
    let error = crate::storage::recover(&store, crate::storage::TreesFrom::Pages, &|_, _, _| {})
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("checkpoint"), "{error}");
}
