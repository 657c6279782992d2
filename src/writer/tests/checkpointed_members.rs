//! Members, their handles and their entries around a checkpoint, on real directories.

use crate::job::{Job, Op};
use crate::state_lock::Purpose;
use crate::storage::CheckpointPhase;
use crate::writer::tests::build::{bare, board, job, leave_all};
use crate::writer::tests::checkpoints::{
    disturbed, goes_on_after_a_restart, refused, undisturbed, with_members,
};
use crate::writer::tests::harness::{Harness, Say, time};

/// Member pages are looked at while a batch is half applied. Had the batch's delta left out what came to
/// nothing in the end, the half would be what start-up finds.
#[test]
fn a_change_that_a_batch_takes_back_is_redone_too() {
    let mut harness = with_members(1);
    // The same score at the same time is the same entry.
    let set = |points| Job { at: Some(time(3)), ..job("m0", &[("auto", &[points])]) };
    harness.batch(&[Say::Jobs(vec![set(5)])]);
    let mut slice = 0;
    let written = harness.checkpoint(&mut |harness, moment| {
        if moment == CheckpointPhase::Joining {
            return Ok(());
        }
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

/// A newcomer may get another handle when its arrival is replayed. If a checkpoint had put it down under the
/// first one, the next holder of that handle would find itself on boards that it never entered.
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

/// Hidden when the checkpoint began, shown before it was looked at: neither the tree's page nor an extra
/// names the member then, and start-up must not give its handle away before the replay has named it.
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

/// More boards than lists of boards are shared of: who leaves all of them is on none, whatever the batch
/// itself did before.
#[test]
fn a_member_of_many_boards_leaves_all_of_them_and_those_that_the_batch_brought() {
    let mut harness = with_members(3);
    let names: Vec<String> = (0..20).map(|number| format!("b{number}")).collect();
    let on = |member: &str, names: &[String]| {
        let boards: Vec<(&str, &[i64])> = names.iter().map(|name| (name.as_str(), &[1_i64][..])).collect();
        job(member, &boards)
    };
    let (old, new) = names.split_at(12);
    harness.batch(&[Say::Jobs(vec![on("m1", old), on("m2", old)])]);
    undisturbed(&mut harness);
    harness.batch(&[
        Say::Drop(board("b3")),
        Say::Jobs(vec![on("m1", new), bare(Op::Remove, "m1", &["b5"]), leave_all("m1"), leave_all("n")]),
        Say::Ask(vec![on("m1", &new[..2]), leave_all("m1"), on("m1", &old[..1])]),
        Say::Ask(vec![on("n", new), leave_all("n")]),
    ]);
    harness.check_all();
    harness.restart();
    harness.check_all();
    harness.batch(&[Say::Ask(vec![leave_all("m1"), leave_all("m2")])]);
    harness.check_all();
    undisturbed(&mut harness);
    harness.restart();
    harness.check_all();
}

/// Handles of members that left are given out again, but only once no checkpoint on disk names them.
#[test]
fn handles_come_back_after_a_checkpoint_and_not_before() {
    let mut harness = with_members(3);
    let space = |harness: &Harness| harness.shard.read(Purpose::Read).members.handle_space();
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

/// The page of extras has m1 as hidden, and the tree's pages, which are older, as listed: nothing of the
/// record is kept when they are loaded. Were the page not due again, the record would outlive its member, and
/// no start would take it.
#[test]
fn an_extra_of_which_nothing_is_kept_does_not_outlive_its_member() {
    let mut harness = with_members(2);
    harness.batch(&[Say::Jobs(vec![job("m2", &[("auto", &[1])]).version(1)])]);
    let written = harness.checkpoint(&mut |harness, moment| match moment {
        CheckpointPhase::Slice
            if harness.shard.read(Purpose::Read).board_tree("auto").is_some_and(|tree| tree.total() == 3) =>
        {
            harness.commit(&[Say::Jobs(vec![bare(Op::Hide, "m1", &["auto"])])]);
            harness.apply_all();
            harness.commit(&[Say::Jobs(vec![leave_all("m1")])]);
            Ok(())
        }
        CheckpointPhase::Joining | CheckpointPhase::Slice | CheckpointPhase::Staged => Ok(()),
        CheckpointPhase::Ingested => Err(refused()),
    });
    assert!(written.is_err());
    goes_on_after_a_restart(&mut harness);
}
