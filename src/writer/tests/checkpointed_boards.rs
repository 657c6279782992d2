//! Boards that change, or are dropped, while a checkpoint is being written, on real directories.

use std::sync::Arc;
use std::time::Duration;

use crate::board::Definition;
use crate::job::{Job, Op};
use crate::state_lock::Purpose;
use crate::storage::CheckpointPhase;
use crate::types::Timestamp;
use crate::writer::tests::build::{bare, board, job};
use crate::writer::tests::checkpoints::{
    disturbed, goes_on_after_a_restart, refused, undisturbed, with_members,
};
use crate::writer::tests::harness::Say;
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, CheckpointGate, CheckpointPolicy, Checkpointer, Payload};

/// Boards join a checkpoint one after the other, and each is in it as it was when it began: also one that
/// changes, is defined anew, dropped, or dropped and created again before its turn.
#[test]
fn boards_that_change_before_they_join_are_in_the_checkpoint_as_they_were() {
    let names = ["a", "b", "c", "d", "e"];
    for turn in 0..8 {
        let mut harness = with_members(6);
        let all = |score: i64| {
            let scores = [score];
            let boards: Vec<(&str, &[i64])> = names.iter().map(|name| (*name, &scores[..])).collect();
            Say::Jobs((0..6).map(|number| job(&format!("m{number}"), &boards)).collect())
        };
        harness.batch(&[all(1)]);
        let mut moments = 0;
        let written = harness.checkpoint(&mut |harness, moment| {
            if moment == CheckpointPhase::Joining && moments == turn {
                let definition = Definition { keep: 40, ..Definition::default() };
                harness.batch(&[all(2)]);
                harness.batch(&[Say::Define(board("b"), Arc::new(definition)), Say::Drop(board("c"))]);
                harness.batch(&[Say::Drop(board("d"))]);
                harness.batch(&[Say::Jobs(vec![job("m1", &[("d", &[3]), ("new", &[3])])])]);
            }
            moments += 1;
            // What is replayed over the checkpoint is in the log, all of it.
            if moment == CheckpointPhase::Ingested { Err(refused()) } else { Ok(()) }
        });
        assert!(written.is_err());
        goes_on_after_a_restart(&mut harness);
    }
}

/// A board dropped while it is checkpointed, and created again under its name, before and after a restart.
/// The checkpoint goes on without it.
#[test]
fn a_board_dropped_and_created_again_during_a_checkpoint_starts_empty() {
    for dropped_at in 0..14 {
        let mut harness = with_members(6);
        harness.batch(&[Say::Jobs(vec![job("m0", &[("more", &[1])]), job("m1", &[("auto", &[2])])])]);
        let mut moments = 0;
        let written = harness.checkpoint(&mut |harness, moment| {
            if moments == dropped_at && moment != CheckpointPhase::Ingested {
                harness.batch(&[Say::Drop(board("auto"))]);
                harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[3])]), job("n", &[("auto", &[3])])])]);
            }
            moments += 1;
            Ok(())
        });
        written.expect("a checkpoint completes, whatever is dropped meanwhile");
        harness.check_all();
        harness.restart();
        harness.check_all();
        undisturbed(&mut harness);
        harness.check_all();
    }
}

/// Where matches' boards come and go, something is dropped during every checkpoint. None of the checkpoints
/// may be given up for that, or the log, start-up and the handles that are held back would grow without
/// bound.
#[test]
fn boards_dropped_continuously_let_every_checkpoint_complete() {
    let mut harness = with_members(9);
    let names = ["auto", "more", "match"];
    let mut dropped = names.into_iter().cycle();
    for round in 0..12_i64 {
        let version = u64::try_from(round).expect("small") + 1;
        let jobs = |of: std::ops::Range<i64>, boards: &[&str]| {
            let boards: Vec<(&str, &[i64])> = boards.iter().map(|name| (*name, &[7_i64][..])).collect();
            Say::Jobs(of.map(|number| job(&format!("m{number}"), &boards).version(version)).collect())
        };
        harness.batch(&[jobs(0..9, &names)]);
        let mut slice = 0;
        let written = harness.checkpoint(&mut |harness, moment| {
            // Another board each time, at every third slice, so that the first drop comes at another place
            // each round.
            if matches!(moment, CheckpointPhase::Joining | CheckpointPhase::Slice) && (slice + round) % 3 == 0
            {
                let name = dropped.next().expect("it goes round");
                // The definition changes before the drop: the replay of that must find the board that it is
                // of.
                let changed =
                    Definition { keep: u32::try_from(slice).expect("small"), ..Definition::default() };
                harness.batch(&[Say::Define(board(name), Arc::new(changed))]);
                harness.batch(&[Say::Drop(board(name))]);
                harness.batch(&[jobs(slice % 4..6, &[name])]);
            }
            slice += 1;
            Ok(())
        });
        written.expect("a checkpoint completes, whatever is dropped meanwhile");
        assert!(slice > 3, "boards were dropped in between");
        harness.check_all();
        if round % 2 == 0 {
            harness.restart();
            harness.check_all();
        }
    }
}

/// What was staged of a tree before it vanished does not reach the disk, and what was there before goes.
#[test]
fn nothing_is_left_on_disk_of_a_board_dropped_during_a_checkpoint() {
    let mut left = Vec::new();
    for dropped_at in 0.. {
        let mut harness = with_members(6);
        harness
            .batch(&[Say::Jobs(vec![job("m0", &[("auto", &[2])]).version(1), job("m5", &[("auto", &[2])])])]);
        let tree = harness.shard.read(Purpose::Read).board("auto").expect("it is there").all;
        disturbed(&mut harness, dropped_at, |harness| harness.batch(&[Say::Drop(board("auto"))]));
        if harness.shard.read(Purpose::Read).board("auto").is_some() {
            // The checkpoint has no slice of this number.
            break;
        }
        left.push(harness.store().checkpoint_records_of(tree).expect("readable"));
        harness.check_all();
        undisturbed(&mut harness);
        assert_eq!(harness.store().checkpoint_records_of(tree).expect("readable"), 0);
        harness.restart();
        harness.check_all();
    }
    // Dropped after its last page, it is whole in this checkpoint and goes with the next.
    let (vanished, whole) = left.split_at(left.iter().take_while(|records| **records == 0).count());
    assert!(vanished.len() > 2, "{left:?}");
    assert!(!whole.is_empty() && whole.iter().all(|records| *records > 0), "{left:?}");
}

/// Boards that came and went between two checkpoints were never on disk: there is nothing to remove, however
/// many.
#[test]
fn boards_that_no_checkpoint_saw_leave_nothing_to_remove() {
    let mut harness = with_members(1);
    for _ in 0..20 {
        harness.batch(&[Say::Jobs(vec![job("m0", &[("match", &[1])])])]);
        harness.batch(&[Say::Drop(board("match"))]);
    }
    assert_eq!(harness.shard.write(Purpose::Apply).take_dropped_trees(), []);
    harness.batch(&[Say::Drop(board("auto"))]);
    assert_eq!(harness.shard.write(Purpose::Apply).take_dropped_trees().len(), 1);
}

/// A range that is deleted costs each later look-up of metadata.
#[test]
fn a_dropped_board_leaves_a_range_to_delete_only_if_it_had_metadata() {
    let mut shard = PlannedShard::new();
    let jobs = |board: &str, meta: Option<&str>| {
        let job = job("m1", &[(board, &[1])]);
        Payload::Jobs(std::iter::once(Ok::<_, BadJob>(meta.into_iter().fold(job, Job::meta))).collect())
    };
    let mut ranges_after = |board: &str, meta| {
        let written = shard.message(Timestamp::default(), jobs(board, meta));
        shard.run(vec![written]);
        let tree = shard.shard.read(Purpose::Read).board(board).expect("just made").all;
        let payload = shard.drop_board(board);
        let dropped = shard.message(Timestamp::default(), payload);
        shard.run(vec![dropped]);
        (tree, std::mem::take(&mut shard.dropped_trees))
    };
    assert_eq!(ranges_after("plain", None).1, []);
    let (tree, dropped) = ranges_after("told", Some(r#"{"a":1}"#));
    assert_eq!(dropped, [tree]);
}

/// With the thread that writes checkpoints, and a writer that drops boards as fast as it can.
#[test]
fn checkpoints_complete_beside_a_writer_that_does_nothing_but_drop_boards() {
    let mut harness = with_members(9);
    let policy =
        CheckpointPolicy { changes_min: 1, changes_percent: 0, pause_factor: 0, interval: Duration::MAX };
    let mut checkpointer = Checkpointer::new(policy, CheckpointGate::default(), 0);
    let mut completed = Vec::new();
    while completed.len() < 10 && checkpointer.failures() == 0 {
        for name in ["auto", "more", "match"] {
            harness.batch(&[Say::Drop(board(name))]);
            let jobs = (0..9).map(|number| job(&format!("m{number}"), &[("auto", &[1]), (name, &[number])]));
            harness.batch(&[Say::Jobs(jobs.collect())]);
            checkpointer.add_changes(19);
            completed.extend(checkpointer.poll(&harness.shard).map(|(sequence, _)| sequence));
            if checkpointer.is_due(9) {
                checkpointer.start_if_admitted(harness.store(), &harness.shard);
            }
        }
    }
    completed.extend(checkpointer.wait(&harness.shard).map(|(sequence, _)| sequence));
    assert_eq!(checkpointer.failures(), 0);
    assert!(completed.is_sorted());
    harness.check_all();
    harness.restart();
    harness.check_all();
}

/// What a dropped board had on disk goes with the next checkpoint, and not before: until then the old one
/// needs it.
#[test]
fn a_dropped_boards_pages_leave_the_disk() {
    let mut harness = with_members(6);
    harness.batch(&[Say::Jobs(vec![bare(Op::Hide, "m0", &["auto"]), job("m1", &[("more", &[1])])])]);
    undisturbed(&mut harness);
    let gone = harness.shard.read(Purpose::Read).board("auto").expect("it is there").all;
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
