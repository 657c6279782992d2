//! Checkpoints beside a writer that goes on: what each of them once got wrong, or could.
//!
//! Pages hold four handles here, so a handful of members fills several.

use std::sync::Arc;
use std::time::Duration;

use crate::board::Definition;
use crate::job::{Job, Op};
use crate::state_lock::Purpose;
use crate::storage::{Moment, StorageError};
use crate::writer::tests::build::{bare, board, job, leave_all};
use crate::writer::tests::harness::{Harness, Say, time};
use crate::writer::{CheckpointGate, CheckpointPolicy, Checkpointer};

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
        if moment == Moment::Joining {
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

#[test]
fn a_checkpoint_that_failed_anywhere_is_made_up_for_by_the_next() {
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
            if moment == Moment::Joining && moments == turn {
                let definition = Definition { keep: 40, ..Definition::default() };
                harness.batch(&[all(2)]);
                harness.batch(&[Say::Define(board("b"), Arc::new(definition)), Say::Drop(board("c"))]);
                harness.batch(&[Say::Drop(board("d"))]);
                harness.batch(&[Say::Jobs(vec![job("m1", &[("d", &[3]), ("new", &[3])])])]);
            }
            moments += 1;
            // What is replayed over the checkpoint is in the log, all of it.
            if moment == Moment::Ingested { Err(refused()) } else { Ok(()) }
        });
        assert!(written.is_err());
        goes_on_after_a_restart(&mut harness);
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
    for crash_at in [Moment::Joining, Moment::Slice, Moment::Staged, Moment::Ingested] {
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
/// The checkpoint goes on without it.
#[test]
fn a_board_dropped_and_created_again_during_a_checkpoint_starts_empty() {
    for dropped_at in 0..14 {
        let mut harness = with_members(6);
        harness.batch(&[Say::Jobs(vec![job("m0", &[("more", &[1])]), job("m1", &[("auto", &[2])])])]);
        let mut moments = 0;
        let written = harness.checkpoint(&mut |harness, moment| {
            if moments == dropped_at && moment != Moment::Ingested {
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
            if matches!(moment, Moment::Joining | Moment::Slice) && (slice + round) % 3 == 0 {
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
    assert_eq!(harness.shard.write(Purpose::Apply).take_gone(), []);
    harness.batch(&[Say::Drop(board("auto"))]);
    assert_eq!(harness.shard.write(Purpose::Apply).take_gone().len(), 1);
}

/// From the moment a checkpoint begins, the writer sets aside each leaf that it changes. So one that waits
/// for another shard's begins when that one has ended, and holds what came meanwhile.
#[test]
fn a_checkpoint_begins_when_it_has_its_turn_and_not_before() {
    let mut harness = with_members(3);
    harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[5])])])]);
    let gate = CheckpointGate::default();
    let others = gate.line_up();
    let policy = CheckpointPolicy { changes_min: 3, changes_percent: 0, rest: 0, interval: Duration::MAX };
    let mut checkpointer = Checkpointer::new(policy, gate, 3);
    assert!(checkpointer.is_due(3));
    checkpointer.start_in_turn(harness.store(), &harness.shard);
    harness.batch(&[Say::Jobs(vec![job("m1", &[("auto", &[6])])])]);
    checkpointer.count(1);
    let set_aside = |harness: &Harness| {
        let shard = harness.shard.read(Purpose::Read);
        shard.trees().map(|(_, tree)| tree.tree.pending_pages()).sum::<usize>()
    };
    assert_eq!(set_aside(&harness), 0, "nothing has begun");
    assert_eq!(checkpointer.changes(), 4);
    assert!(checkpointer.poll(&harness.shard).is_none());
    assert!(checkpointer.is_due(1_000_000), "whoever has a place in the line stays due");
    drop(others);
    checkpointer.start_in_turn(harness.store(), &harness.shard);
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
    let policy =
        |rest| CheckpointPolicy { changes_min: 10, rest, changes_percent: 50, interval: Duration::MAX };
    for (rest, changes, due) in
        [(0, 9, false), (0, 10, true), (u32::MAX, 10, false), (u32::MAX, 499, false), (u32::MAX, 500, true)]
    {
        let mut checkpointer = Checkpointer::new(policy(rest), CheckpointGate::default(), 1);
        checkpointer.start_in_turn(harness.store(), &harness.shard);
        checkpointer.wait(&harness.shard).expect("it completes, and takes longer than nothing");
        checkpointer.count(changes);
        assert_eq!(checkpointer.is_due(1_000), due, "{changes} changes, a rest of {rest}");
    }
    harness.check_all();
}

/// With the thread that writes checkpoints, and a writer that drops boards as fast as it can.
#[test]
fn checkpoints_complete_beside_a_writer_that_does_nothing_but_drop_boards() {
    let mut harness = with_members(9);
    let policy = CheckpointPolicy { changes_min: 1, changes_percent: 0, rest: 0, interval: Duration::MAX };
    let mut checkpointer = Checkpointer::new(policy, CheckpointGate::default(), 0);
    let mut completed = Vec::new();
    while completed.len() < 10 && checkpointer.failures() == 0 {
        for name in ["auto", "more", "match"] {
            harness.batch(&[Say::Drop(board(name))]);
            let jobs = (0..9).map(|number| job(&format!("m{number}"), &[("auto", &[1]), (name, &[number])]));
            harness.batch(&[Say::Jobs(jobs.collect())]);
            checkpointer.count(19);
            completed.extend(checkpointer.poll(&harness.shard).map(|(sequence, _)| sequence));
            if checkpointer.is_due(9) {
                checkpointer.start_in_turn(harness.store(), &harness.shard);
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

/// The page of extras has m1 as hidden, and the tree's pages, which are older, as listed: nothing of the
/// record is kept when they are loaded. Were the page not due again, the record would outlive its member, and
/// no start would take it.
#[test]
fn an_extra_of_which_nothing_is_kept_does_not_outlive_its_member() {
    let mut harness = with_members(2);
    harness.batch(&[Say::Jobs(vec![job("m2", &[("auto", &[1])]).version(1)])]);
    let written = harness.checkpoint(&mut |harness, moment| match moment {
        Moment::Slice
            if harness.shard.read(Purpose::Read).board_tree("auto").is_some_and(|tree| tree.total() == 3) =>
        {
            harness.commit(&[Say::Jobs(vec![bare(Op::Hide, "m1", &["auto"])])]);
            harness.apply_all();
            harness.commit(&[Say::Jobs(vec![leave_all("m1")])]);
            Ok(())
        }
        Moment::Joining | Moment::Slice | Moment::Staged => Ok(()),
        Moment::Ingested => Err(refused()),
    });
    assert!(written.is_err());
    goes_on_after_a_restart(&mut harness);
}

/// A start finds what the model holds, and so do those behind two more checkpoints.
fn goes_on_after_a_restart(harness: &mut Harness) {
    harness.restart();
    harness.check_all();
    for _ in 0..2 {
        undisturbed(harness);
        harness.restart();
        harness.check_all();
    }
}
