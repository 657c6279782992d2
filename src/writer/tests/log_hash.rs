//! The hash of the log: the same on every replica, however each of them cuts the log into batches, restarts,
//! crashes and checkpoints; and another one where a replica is wrong.

use proptest::prelude::*;

use crate::state::{EntryState, LogHash, POINT_MESSAGES, SEGMENT_MESSAGES};
use crate::state_lock::Purpose;
use crate::storage::codec::{self, Divergence};
use crate::storage::{Commit, HashCommit};
use crate::types::{NodeName, Sequence};
use crate::writer::tests::build::{job, leave_all, profile};
use crate::writer::tests::fed::Fed;
use crate::writer::tests::harness::{open, time};
use crate::writer::tests::parked::{Event, FEW_LINES, events, play};
use crate::writer::tests::random::BOARDS;
use crate::writer::tests::source::copy_of;

fn fed() -> Fed {
    let mut fed = Fed::new(&BOARDS);
    fed.lines = FEW_LINES;
    fed.load_parking();
    fed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Both ends have the same points, those that a restart has read from the disk included.
    #[test]
    fn a_log_has_one_hash_however_it_is_cut(
        events in events(true),
        cuts in prop::collection::vec(1_usize..20, 1..40),
    ) {
        let mut one = fed();
        play(&mut one, events);
        one.batch(false);
        let mut other = fed();
        let mut cuts = cuts.into_iter().cycle();
        let mut left = cuts.next().unwrap_or(1);
        for (number, payload) in (0..).zip(&one.history) {
            other.next.push((copy_of(payload), number % 3 == 0));
            left -= 1;
            if left == 0 {
                other.batch(number % 5 == 0);
                if number % 7 == 0 {
                    other.checkpoint();
                }
                left = cuts.next().unwrap_or(1);
            }
        }
        other.batch(false);
        prop_assert_eq!(&one.hashes, &other.hashes);
        one.restart();
        prop_assert_eq!(&one.hashes, &other.hashes);
        prop_assert_eq!(one.hashes.running.point().is_some(), one.last > 0);
        if one.last > POINT_MESSAGES && one.last < SEGMENT_MESSAGES {
            prop_assert!(one.hashes.hash_at(Sequence(POINT_MESSAGES)).is_some());
        }
    }
}

/// The batch is planned and not committed, or committed and not applied, or applied.
#[test]
fn a_crash_at_any_verb_changes_no_hash() {
    let events: Vec<Event> = (0..2 * SEGMENT_MESSAGES)
        .map(|number| {
            let number = i64::try_from(number).expect("small");
            Event::Jobs(vec![job(&format!("m{}", number % 5), &[("auto", &[number % 7])])], false)
        })
        .collect();
    let mut straight = fed();
    straight.define("auto");
    play(&mut straight, events.clone());
    straight.batch(false);
    let mut crashing = fed();
    crashing.define("auto");
    for (number, event) in (0..).zip(events) {
        play(&mut crashing, vec![event]);
        match number % 4 {
            0 => {}
            1 => crashing.batch(true),
            2 => crashing.batch(false),
            _ => {
                crashing.batch(false);
                crashing.restart();
            }
        }
    }
    crashing.batch(false);
    assert_eq!(crashing.hashes, straight.hashes);
}

/// The entry is wrong in memory, as it would be after it was read from a wrong page. The next job that names
/// it shows that, also one that replaces its score.
#[test]
fn a_replica_with_a_wrong_entry_has_another_hash_once_the_entry_is_named() {
    for (op, score) in [(crate::job::Op::Set, 9), (crate::job::Op::Incr, 1), (crate::job::Op::Best, -5)] {
        let mut replicas = [fed(), fed()];
        for replica in &mut replicas {
            replica.has_replica = false;
            replica.define("auto");
            replica.say(vec![job("m", &[("auto", &[4])]), job("n", &[("auto", &[5])])], false);
            replica.batch(false);
        }
        let [right, wrong] = &mut replicas;
        assert_eq!(right.hashes, wrong.hashes);
        change_score(wrong, "m");
        for replica in [&mut *right, &mut *wrong] {
            replica.say(vec![job("n", &[("auto", &[6])])], false);
            replica.batch(false);
        }
        assert_eq!(right.hashes, wrong.hashes, "nobody has named it");
        for replica in [&mut *right, &mut *wrong] {
            replica.say_unseen(vec![job("m", &[("auto", &[score])]).op(op)]);
            replica.batch(false);
        }
        assert_ne!(right.hashes, wrong.hashes, "{op:?}");
    }
}

/// A profile that is another one than the jobs say shows with the next job that names it, and not before.
#[test]
fn another_profile_gives_another_hash_once_a_job_names_it() {
    for named in [profile("m", r#"{"a":3}"#), profile("m", "{}"), leave_all("m")] {
        let mut replicas = [fed(), fed(), fed()];
        for replica in &mut replicas {
            replica.has_replica = false;
            replica.define("auto");
            replica.say(vec![profile("m", r#"{"a":1}"#), job("n", &[("auto", &[5])])], false);
            replica.batch(false);
        }
        let [right, wrong, lacking] = &mut replicas;
        let key = [0x0b, b'm'];
        let record = codec::ProfileRecord { sequence: 2, version: None, json: Some(r#"{"a":2}"#.to_owned()) };
        wrong.store().damage(&key, Some(&codec::encode_profile(&record))).expect("the disk takes it");
        lacking.store().damage(&key, None).expect("the disk takes it");
        for replica in [&mut *right, &mut *wrong, &mut *lacking] {
            replica.say_unseen(vec![profile("n", r#"{"a":1}"#)]);
            replica.batch(false);
        }
        assert_eq!(right.hashes, wrong.hashes, "nobody has named it");
        assert_eq!(right.hashes, lacking.hashes, "nobody has named it");
        for replica in [&mut *right, &mut *wrong, &mut *lacking] {
            replica.say_unseen(vec![named.clone()]);
            replica.batch(false);
        }
        assert_ne!(right.hashes, wrong.hashes, "{named:?}");
        assert_ne!(right.hashes, lacking.hashes, "{named:?}");
    }
}

/// Applies a change that no message has made.
fn change_score(fed: &Fed, member: &str) {
    let mut shard = fed.shard.write(Purpose::Apply);
    let handle = shard.members.get(member.as_bytes()).expect("it is known");
    let tree = shard.board("auto").expect("it is defined").all;
    let mut entry = shard.entry(tree, handle).expect("it is listed");
    let mut words = entry.words().expect("it has some").as_slice().to_vec();
    words[0] ^= 1;
    entry.state = EntryState::Listed(crate::tree::Words::from_slice(&words));
    let applied = shard.applied;
    let changes = vec![crate::state::Change { tree, handle, after: Some(entry) }];
    shard.apply(&crate::state::Step { changes, applied, ..crate::state::Step::default() });
}

/// What no other replica could compare is not hashed: such a directory knows its hash from the next segment
/// on.
#[test]
fn a_directory_without_a_hash_of_its_end_knows_that_of_the_next_segment() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = open(folder.path()).expect("a new directory opens");
    let applied = |sequence| crate::state::Applied {
        sequence: Sequence(sequence),
        timestamp: time(sequence),
        hash: sequence,
    };
    let commit = |sequence, hashes| Commit {
        applied: applied(sequence),
        delta: codec::DeltaEncoder::new(Sequence(1), applied(sequence), &[], 0).finish(),
        hashes,
        ..Commit::default()
    };
    let load = |sequence| store.log_hashes(Sequence(sequence)).expect("readable");
    store.commit(&commit(3, None), false).expect("the disk takes it");
    assert_eq!(load(3).running, LogHash::unknown_at(Sequence(3)));
    let mut running = load(3).running;
    let mut kept = Vec::new();
    for sequence in 4..=SEGMENT_MESSAGES + POINT_MESSAGES {
        running.begin_message(applied(sequence));
        kept.extend(running.point_to_keep());
    }
    assert_eq!(kept.len(), 1, "only of the segment that is known");
    let last = SEGMENT_MESSAGES + POINT_MESSAGES;
    let hashes = HashCommit { running, kept: kept.clone(), dropped: Vec::new() };
    store.commit(&commit(last, Some(hashes)), false).expect("the disk takes it");
    let loaded = load(last);
    assert_eq!((loaded.running, loaded.hash_at(Sequence(last))), (running, Some(kept[0].hash)));
    // A batch without a hash follows.
    store.commit(&commit(last + 1, None), false).expect("the disk takes it");
    let loaded = load(last + 1);
    assert_eq!(loaded.running, LogHash::unknown_at(Sequence(last + 1)));
    assert_eq!(loaded.hash_at(Sequence(last)), Some(kept[0].hash));
    store.forget_hash_points().expect("the disk takes it");
    assert_eq!(load(last + 1).hash_at(Sequence(last)), None);
}

#[test]
fn a_difference_that_was_found_survives_a_restart_until_it_is_mended() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = open(folder.path()).expect("a new directory opens");
    assert_eq!(store.divergence().expect("readable"), None);
    let [by, node] = ["a", "b"].map(|name| NodeName::new(name).expect("a good name"));
    let found =
        Divergence { stream: "S@1".to_owned(), sequence: Sequence(7), by, own: 1, node, theirs: u64::MAX };
    store.note_divergence(Some(&found)).expect("the disk takes it");
    drop(store);
    let store = open(folder.path()).expect("it opens again");
    assert_eq!(store.divergence().expect("readable"), Some(found));
    store.note_divergence(None).expect("the disk takes it");
    assert_eq!(store.divergence().expect("readable"), None);
}
