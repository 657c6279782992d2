//! Checkpoints in several files: where one ends and the next begins makes no difference to what is on disk
//! afterwards, whatever of it is deleted by the range.

use crate::job::Op;
use crate::state_lock::Purpose;
use crate::storage::{CheckpointPhase, STAGED_FILE_BYTES, StorageError};
use crate::writer::tests::build::{bare, board, job, leave_all};
use crate::writer::tests::harness::{Harness, Say};

const BOARDS: [&str; 3] = ["auto", "match", "more"];
const MEMBERS: u32 = 13;
/// A record a file, some, and what there is elsewhere.
const FILE_BYTES: [u64; 3] = [1, 150, STAGED_FILE_BYTES];

fn all_members(boards: &[&str], score: i64) -> Say {
    let keys = [score];
    let boards: Vec<(&str, &[i64])> = boards.iter().map(|name| (*name, &keys[..])).collect();
    Say::Jobs(
        (0..MEMBERS)
            .map(|number| job(&format!("m{number}"), &boards).version(score.unsigned_abs()))
            .collect(),
    )
}

/// All records of the checkpoint.
fn records(harness: &Harness) -> Vec<(Vec<u8>, Vec<u8>)> {
    let store = harness.store();
    let keys = store.keys_from(&[]).expect("readable").into_iter();
    keys.map(|key| {
        let value = store.record(&key).expect("readable").expect("it was just seen");
        (key, value)
    })
    .collect()
}

/// What a checkpoint left, in files of so many bytes.
struct Left {
    records: Vec<(Vec<u8>, Vec<u8>)>,
    /// How many files it was staged in.
    files: usize,
    /// Whether it still had the slice in which something was to happen.
    was_disturbed: bool,
}

/// A checkpoint that rewrites pages, deletes some, and removes one board by the range that was dropped before
/// it, and one that is dropped in its slice `dropped_at`, of which pages may be staged already. New boards
/// have their names.
fn checkpoint_beside_drops(file_bytes: u64, dropped_at: usize) -> Left {
    let mut harness = Harness::new(true);
    harness.staged_file_bytes = file_bytes;
    harness.batch(&[all_members(&BOARDS, 1), Say::Jobs(vec![bare(Op::Hide, "m3", &BOARDS)])]);
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
    let tree_of =
        |harness: &Harness, name| harness.shard.read(Purpose::Read).board(name).expect("it is there").all;
    let gone = [tree_of(&harness, "match"), tree_of(&harness, "more")];
    harness.batch(&[Say::Drop(board("match"))]);
    // A page of members that is empty now, and so deleted.
    let leaving = (4..8).map(|number| leave_all(&format!("m{number}"))).collect();
    harness.batch(&[all_members(&BOARDS, 2), Say::Jobs(leaving)]);
    let (mut slice, mut files, mut was_disturbed) = (0, 0, false);
    let staging = harness.folder.path().join("staging");
    let written = harness.checkpoint(&mut |harness, moment| {
        match moment {
            CheckpointPhase::Slice if slice == dropped_at => {
                harness.batch(&[Say::Drop(board("more"))]);
                harness.batch(&[all_members(&["more"], 3)]);
                was_disturbed = true;
            }
            // All boards join before anything is copied.
            CheckpointPhase::Joining => return Ok(()),
            CheckpointPhase::Slice | CheckpointPhase::Ingested => {}
            CheckpointPhase::Staged => files = std::fs::read_dir(&staging).expect("it is there").count(),
        }
        slice += 1;
        Ok(())
    });
    written.expect("the disk takes it");
    let left = Left { records: records(&harness), files, was_disturbed };
    harness.check_all();
    harness.restart();
    harness.check_all();
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
    for tree in if was_disturbed { &gone[..] } else { &gone[..1] } {
        assert_eq!(harness.store().checkpoint_records_of(*tree).expect("readable"), 0);
    }
    harness.check_all();
    left
}

#[test]
fn a_checkpoint_leaves_the_same_on_disk_in_however_many_files_it_is_staged() {
    let mut slices = 0;
    for dropped_at in (0..).step_by(3) {
        let [each, some, one] = FILE_BYTES.map(|bytes| checkpoint_beside_drops(bytes, dropped_at));
        assert!(each.records == one.records && some.records == one.records, "dropped at slice {dropped_at}");
        assert!(
            one.files <= 2 && some.files > one.files && each.files > some.files,
            "{}, {}",
            some.files,
            each.files
        );
        if !one.was_disturbed {
            break;
        }
        slices += 1;
    }
    assert!(slices > 6, "{slices}");
}

/// Files that are staged have no effect before all are: one that cannot be staged, and a crash behind any of
/// them.
#[test]
fn a_checkpoint_that_ends_between_two_of_its_files_has_no_effect() {
    let refused =
        || StorageError::Io { path: "the disk".into(), error: std::io::Error::other("refused by the test") };
    for crashes in [false, true] {
        let mut harness = Harness::new(true);
        harness.staged_file_bytes = 1;
        harness.batch(&[all_members(&BOARDS, 1)]);
        harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
        let before = records(&harness);
        harness.batch(&[Say::Drop(board("match"))]);
        harness.batch(&[all_members(&BOARDS, 2)]);
        let mut ends_at = 0;
        loop {
            let mut moments = Vec::new();
            let written = harness.checkpoint(&mut |_, moment| {
                moments.push(moment);
                if moments.len() > ends_at { Err(refused()) } else { Ok(()) }
            });
            if moments.last() == Some(&CheckpointPhase::Ingested) {
                // In effect, whatever comes after it.
                break;
            }
            assert!(written.is_err(), "{moments:?}");
            if crashes {
                harness.restart();
            }
            assert!(records(&harness) == before, "{moments:?}");
            harness.check_all();
            ends_at += 4;
        }
        assert!(ends_at > 16, "{ends_at}");
        harness.check_all();
    }
}
