//! A batch whose commit failed, and what the store that is opened again holds: nothing of it, or all of it.
//! Who waits for the batch, or for jobs that it unparks, is told what can be told, and checkpoints go on.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures_util::FutureExt as _;

use crate::job::JobPlace;
use crate::state::ShardTime;
use crate::state_lock::StateLock;
use crate::storage::{Commit, StorageError, StorageResources, Store};
use crate::types::{Sequence, ShardId};
use crate::writer::plan::{Planner, ReadOn};
use crate::writer::stored_parked::{self, read_line};
use crate::writer::tests::build::job;
use crate::writer::tests::harness::open;
use crate::writer::tests::replayed::{Stream, message};
use crate::writer::tests::source::{Running, copy_of, jobs};
use crate::writer::tests::waiting::{define, parking};
use crate::writer::{
    JobOutcome, Outcome, ParkedOutcome, Parking, Payload, Registry, ShardState, UnparkedOutcome, Writer,
};

fn set(score: i64) -> Payload {
    jobs(vec![job("m", &[("b", &[score])])])
}

fn still_full() -> StorageError {
    StorageError::Io { path: "disk".into(), error: std::io::Error::other("still full") }
}

/// Writes a message's batch as a writer would have whose commit reached the disk and failed all the same.
fn commit_aside(
    store: &Store,
    shard: &StateLock,
    parking: Option<Parking>,
    (number, payload): (u64, Payload),
) {
    let parking = parking.map(|mut parking| {
        let lines = stored_parked::lines(store).expect("readable");
        let names = stored_parked::names(store).expect("readable");
        parking.load(lines, names, |_| false);
        parking
    });
    let parked = |line: u32, from: JobPlace, limit: usize, read_on: ReadOn<'_>| {
        read_line(store, line, from, limit, read_on)
    };
    let planner = Planner {
        shard,
        id: ShardId(0),
        shards: 1,
        registry: &Registry::new(true),
        time: ShardTime::default(),
        early: Cell::default(),
        hash: None,
        read_parked: &parked,
        read_profile: &|_| Ok(None),
        read_metadata: &|_, _| Ok(None),
    };
    let plan = planner.plan(vec![message(number, payload, None)], parking);
    let commit = Commit {
        applied: plan.applied,
        time: plan.time,
        delta: plan.delta,
        parked: plan.parked,
        unparked: plan.unparked,
        ..Commit::default()
    };
    store.commit(&commit, true).expect("the disk takes it");
}

/// Runs a writer over a stream, of which message 2 meets no store the first time; what was told of each
/// message.
fn run(
    running: &Running,
    payloads: Vec<Payload>,
    parking: Option<Parking>,
    reopen: impl Fn(&Store) -> Result<(), StorageError> + Send + 'static,
) -> Vec<Outcome> {
    let (mut source, answers) = Stream::new(payloads);
    let (slot, folder, reads) =
        (Arc::clone(&running.store), running.folder.path().to_owned(), parking.is_some());
    source.before_message(2, move || {
        drop(slot.take());
        // What waits is read before it is unparked, so there must be something to read from.
        if reads {
            let resources = StorageResources::new(8 << 20, 1);
            let store = Store::open_for_reading(&folder, ShardId(0), 1, &resources).expect("it opens");
            slot.put(Arc::new(store));
        }
    });
    let path = running.folder.path().to_owned();
    let reopen = move || {
        let store = open(&path)?;
        reopen(&store).map(|()| store)
    };
    Writer { parking, ..running.writer_reopening(source, reopen) }.run();
    running.load();
    answers.into_iter().map(|mut answered| answered.try_recv().expect("all are told")).collect()
}

fn unknown(outcome: &Outcome) -> String {
    outcome.as_ref().expect_err("what came of it cannot be told").to_string()
}

#[test]
fn a_batch_that_is_on_disk_after_all_is_applied_once_and_its_outcome_is_said_to_be_unknown() {
    let running = Running::new(true);
    let shard = Arc::clone(&running.shard);
    let incr = |by| jobs(vec![job("m", &[("b", &[by])]).op(crate::job::Op::Incr)]);
    let payloads = vec![incr(1), incr(10), incr(100)];
    let second = copy_of(&payloads[1]);
    let told = run(&running, payloads, None, move |store| {
        commit_aside(store, &shard, None, (2, copy_of(&second)));
        Ok(())
    });
    assert!(unknown(&told[1]).contains("found on disk"), "{}", unknown(&told[1]));
    let sequence = |told: &Outcome| told.as_ref().expect("committed").sequence;
    assert_eq!((sequence(&told[0]), sequence(&told[2])), (Sequence(1), Sequence(3)));
    assert_eq!(running.board("b"), [("m".to_owned(), 111)]);
}

/// What came of the job that waits in message 1, whose board message 2 defines.
fn unparked(told: &[Outcome]) -> UnparkedOutcome {
    let first = told[0].as_ref().expect("committed");
    let Some(JobOutcome::Parked(outcome)) = first.jobs.first() else { panic!("{first:?}") };
    ParkedOutcome::clone(outcome).outcome().now_or_never().flatten().expect("it was told")
}

#[test]
fn waiter_is_answered_when_the_unparking_batch_is_redelivered() {
    let running = Running::new(true);
    let told = run(&running, vec![set(5), define("b")], Some(parking()), |_| Ok(()));
    let (sequence, outcome) = unparked(&told).expect("committed in the end");
    let JobOutcome::Applied(boards) = outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (sequence, boards[0].changed, boards[0].after.map(|place| place.total)),
        (Sequence(2), true, Some(1))
    );
    assert_eq!(running.board("b"), [("m".to_owned(), 5)]);
}

#[test]
fn waiter_of_a_job_unparked_before_reopening_gets_unknown_outcome() {
    let running = Running::new(true);
    let shard = Arc::clone(&running.shard);
    let told = run(&running, vec![set(5), define("b")], Some(parking()), move |store| {
        commit_aside(store, &shard, Some(parking()), (2, define("b")));
        Ok(())
    });
    let said = unparked(&told).expect_err("it cannot be told").to_string();
    assert!(said.contains("found on disk"), "{said}");
    assert!(unknown(&told[1]).contains("found on disk"));
    assert_eq!(running.board("b"), [("m".to_owned(), 5)]);
}

#[test]
fn waiter_of_a_parked_job_gets_an_error_when_reopening_fails() {
    let running = Running::new(true);
    let attempts = AtomicUsize::new(0);
    let told = run(&running, vec![set(5), define("b")], Some(parking()), move |_| {
        if attempts.fetch_add(1, Ordering::SeqCst) == 0 { Err(still_full()) } else { Ok(()) }
    });
    let said = unparked(&told).expect_err("nobody waits for a disk to be emptied").to_string();
    assert!(said.contains("still full"), "{said}");
    assert_eq!(running.board("b"), [("m".to_owned(), 5)], "it is applied all the same");
}

/// Three changes and more want a checkpoint here.
fn four_members() -> Payload {
    jobs(["a", "b", "c", "d"].map(|id| job(id, &[("b", &[1])])).into())
}

/// A checkpoint that was being written when a commit failed is noted: the queue may let go of what it holds.
#[test]
fn a_checkpoint_that_completes_beside_a_failed_commit_is_noted() {
    let running = Running::new(true);
    let health = Arc::clone(&running.health);
    let noted = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&noted);
    run(&running, vec![four_members(), set(2)], None, move |_| {
        seen.store(health.get(|health| health.checkpoint_sequence), Ordering::SeqCst);
        Ok(())
    });
    // It began after message 1, and the writer waited for its end before it closed the store.
    assert_eq!(noted.load(Ordering::SeqCst), 1);
}

/// What is found applied after a failed commit is in no checkpoint yet: one that the queue wants begins.
#[test]
fn replayed_changes_count_towards_the_next_checkpoint() {
    let running = Running::new(true);
    let (shard, found) = (Arc::clone(&running.shard), AtomicBool::new(false));
    // Of no changes at all: a job that is rejected.
    let nothing = || jobs(vec![job("m", &[("b", &[1, 2])])]);
    run(&running, vec![four_members(), nothing()], None, move |store| {
        if !found.swap(true, Ordering::SeqCst) {
            commit_aside(store, &shard, None, (2, nothing()));
        }
        Ok(())
    });
    // The writer ends with a checkpoint, if there is anything to put into it.
    assert_eq!(running.health.get(|health| health.checkpoint_sequence), 2);
}

/// Has the store meet a damaged record, which is whole again afterwards.
fn meet_damage(store: &Store) {
    let key = store.keys_from(&[0x01]).expect("readable").remove(0);
    let whole = store.record(&key).expect("readable").expect("it is there");
    store.damage(&key, Some(b"\xff")).expect("the disk takes it");
    store.meta().expect_err("it is damaged");
    store.damage(&key, Some(&whole)).expect("the disk takes it");
}

/// The store that is opened next has not met the damage.
#[test]
fn damage_that_was_met_before_a_commit_failed_is_told_when_the_store_is_reopened() {
    let running = Running::new(true);
    let (mut source, answers) = Stream::new((1..=3).map(set).collect());
    let (slot, folder) = (Arc::clone(&running.store), running.folder.path().to_owned());
    let moved = folder.with_extension("moved");
    let away = moved.clone();
    source.before_message(2, move || {
        meet_damage(&slot.get().expect("it is open"));
        // The commit fails, as the path leads nowhere.
        std::fs::rename(&folder, &away).expect("it can be renamed");
    });
    let (path, health) = (running.folder.path().to_owned(), Arc::clone(&running.health));
    let reopen = move || {
        assert!(health.get(|health| health.damage.is_some()), "told while the shard is reopened");
        std::fs::rename(&moved, &path).expect("it can be renamed");
        open(&path)
    };
    running.writer_reopening(source, reopen).run();
    for mut told in answers {
        // The second one was found on disk, or was delivered again.
        drop(told.try_recv().expect("all are told"));
    }
    let damage = running.health.get(|health| health.damage.clone()).expect("until a restart");
    assert!(damage.contains("is damaged: "), "{damage}");
    running.load();
    assert_eq!(running.board("b"), [("m".to_owned(), 3)]);
}

/// A shard that cannot go on answers reads of what it has, and says how far that is.
#[test]
fn a_shard_that_is_halted_at_its_start_says_how_far_it_is_and_what_is_damaged() {
    let running = Running::new(true);
    running.drain(vec![set(1), set(2)]);
    let store = running.store.get().expect("it is open");
    let key = store.keys_from(&[0x01]).expect("readable").remove(0);
    store.damage(&key, Some(b"\xff")).expect("the disk takes it");
    drop(store);
    running.writer(Stream::new(vec![set(3)]).0).run();
    assert!(matches!(running.health.state(), ShardState::Halted(_)), "{:?}", running.health.state());
    assert_eq!(
        (running.applied.get(), running.health.get(|health| health.applied_sequence)),
        (Sequence(2), 2)
    );
    let damage = running.health.get(|health| health.damage.clone()).expect("it was found");
    assert!(damage.contains("is damaged: "), "{damage}");
}
