//! Directories that an older ranktree wrote.

use crate::job::Op;
use crate::state_lock::Purpose;
use crate::storage::codec::{FORMAT_VERSION, Meta, encode_meta};
use crate::storage::{CheckpointPhase, StorageError};
use crate::writer::tests::build::{bare, job};
use crate::writer::tests::harness::{Harness, Say};

const META: &[u8] = &[0x01];
const SINGLE_EXTRAS: &[u8] = &[0x12];

/// A directory of format 1: its meta record says so, and each extra is a record.
fn of_format_1() -> Harness {
    let mut harness = Harness::new(true);
    let jobs = (0..9).map(|number| job(&format!("m{number}"), &[("auto", &[number])]).version(7));
    harness.batch(&[
        Say::Jobs(jobs.collect()),
        Say::Jobs(vec![
            bare(Op::Hide, "m1", &["auto"]).version(8),
            bare(Op::Remove, "m5", &["auto"]).version(8),
        ]),
    ]);
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
    let store = harness.store();
    let tree = harness.shard.read(Purpose::Read).board("auto").expect("it is there").all;
    assert_eq!(store.make_extras_single(tree).expect("the disk takes it"), 9);
    let meta = store.meta().expect("readable").expect("there");
    let meta = Meta { format_version: 1, ..meta };
    store.damage(META, Some(&encode_meta(&meta))).expect("the disk takes it");
    harness
}

#[test]
fn single_extras_of_format_1_are_read_and_become_pages() {
    let mut harness = of_format_1();
    harness.check_all();
    harness.restart();
    harness.check_all();
    let version =
        |harness: &Harness| harness.store().meta().expect("readable").expect("there").format_version;
    assert_eq!(version(&harness), FORMAT_VERSION, "an older ranktree must not open it any more");
    let single = |harness: &Harness| harness.store().keys_from(SINGLE_EXTRAS).expect("readable").len();
    assert_eq!(single(&harness), 9, "as long as no checkpoint has replaced them");
    harness.batch(&[Say::Jobs(vec![job("m0", &[("auto", &[50])]).version(9)])]);
    let refused =
        || StorageError::Io { path: "the disk".into(), error: std::io::Error::other("refused by the test") };
    let failed =
        harness.checkpoint(&mut |_, at| if at == CheckpointPhase::Staged { Err(refused()) } else { Ok(()) });
    assert!(failed.is_err());
    harness.check_all();
    assert_eq!(single(&harness), 9);
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
    assert_eq!(single(&harness), 0);
    harness.check_all();
    harness.restart();
    harness.check_all();
}
