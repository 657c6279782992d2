//! What a drained batch comes to: order, netting, rejects, drops, and what happens when the disk refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;

use crate::board::{Definition, Key, Order};
use crate::job::{Job, Op, Reject, RejectCode};
use crate::state::{Incarnation, REMEMBERED_MAX, RecordNumber};
use crate::state_lock::Purpose;
use crate::storage::StorageError;
use crate::types::{Sequence, shard_of};
use crate::writer::tests::build::{bare, board, job, leave_all, member};
use crate::writer::tests::fed::newest_rejects;
use crate::writer::tests::harness::{open, time};
use crate::writer::tests::source::{Running, VecSource, jobs};
use crate::writer::{BadJob, BatchLimits, Defined, JobOutcome, Payload, ShardState};

fn set(id: &str, points: i64) -> Job {
    job(id, &[("b", &[points])])
}

fn list(entries: &[(&str, i64)]) -> Vec<(String, i64)> {
    entries.iter().map(|(id, points)| ((*id).to_owned(), *points)).collect()
}

/// The codes of a message's jobs; `None` where one applied.
fn codes(
    answer: &Result<crate::writer::MessageOutcome, crate::writer::CommitFailed>,
) -> Vec<Option<RejectCode>> {
    let outcome = answer.as_ref().expect("committed");
    let code =
        |job: &JobOutcome| if let JobOutcome::Rejected(reject) = job { Some(reject.code) } else { None };
    outcome.jobs.iter().map(code).collect()
}

#[test]
fn batches_are_bounded_by_jobs_and_bytes_and_the_first_message_is_always_admitted() {
    let many = |count: usize| jobs((0..count).map(|number| set(&format!("m{number}"), 1)).collect());
    for (limits, expected) in [
        (BatchLimits { jobs: 5, bytes: 1 << 20 }, vec![1, 1, 2, 2]),
        (BatchLimits { jobs: 1 << 20, bytes: 250 }, vec![2, 2, 2]),
        (BatchLimits { jobs: 1, bytes: 1 }, vec![1; 6]),
        (BatchLimits { jobs: 1 << 20, bytes: 1 << 20 }, vec![6]),
    ] {
        let running = Running::new(true);
        let (mut source, answers) =
            VecSource::new(vec![many(7), many(4), many(2), many(2), many(2), many(3)]);
        source.limits = limits;
        let batches = Arc::clone(&source.batches);
        let outcomes = running.run(source, answers);
        assert_eq!(*batches.lock(), expected);
        let sequences: Vec<u64> =
            outcomes.into_iter().map(|outcome| outcome.expect("committed").sequence.0).collect();
        assert_eq!(sequences, [1, 2, 3, 4, 5, 6]);
        assert_eq!(running.board("b").len(), 7);
        assert_eq!(running.applied.get(), Sequence(6));
    }
}

#[test]
fn a_members_jobs_apply_in_their_order_and_become_one_change() {
    let running = Running::new(true);
    let incr = |points| set("m", points).op(Op::Incr);
    let (mut source, _) = VecSource::new(vec![
        jobs(vec![set("m", 5), incr(2), bare(Op::Remove, "m", &["b"]), incr(3)]),
        jobs(vec![set("m", 1).op(Op::Best), incr(4), set("n", 7)]),
    ]);
    // Nobody waits: the whole batch is one step.
    source.sent.iter_mut().flatten().for_each(|sent| sent.answer = None);
    running.run(source, Vec::new());
    assert_eq!(running.board("b"), list(&[("m", 7), ("n", 7)]));
}

#[test]
fn several_jobs_for_a_member_are_one_record_of_the_delta() {
    let mut harness = crate::writer::tests::harness::Harness::new(true);
    let says = (1..=20)
        .map(|points| crate::writer::tests::harness::Say::Jobs(vec![set("m", points), set("n", -points)]));
    let plan = harness.plan(&says.collect::<Vec<_>>()).expect("there are messages");
    assert_eq!((plan.jobs, plan.changes), (40, 2));
    let delta = crate::storage::codec::decode_delta(&plan.delta).expect("readable");
    assert_eq!((delta.first, delta.applied.sequence), (Sequence(1), Sequence(20)));
    let members: Vec<&[u8]> = delta.changes.iter().map(|change| change.member.as_slice()).collect();
    assert_eq!(members, [b"m", b"n"]);
    assert!(delta.changes.iter().all(|change| change.before.is_none()));
}

/// The counts do not change, and the entries do.
#[test]
fn a_batch_whose_counts_net_to_zero_is_stored() {
    let running = Running::new(true);
    running.drain(vec![jobs(vec![set("a", 1), set("b", 2), set("c", 3), set("e", 3)])]);
    running.drain(vec![jobs(vec![set("a", 2), set("b", 1)])]);
    assert_eq!(running.board("b"), list(&[("c", 3), ("e", 3), ("a", 2), ("b", 1)]));
    running.drain(vec![jobs(vec![bare(Op::Remove, "c", &["b"]), set("d", 3)])]);
    assert_eq!(running.board("b"), list(&[("e", 3), ("d", 3), ("a", 2), ("b", 1)]));
}

#[test]
fn a_job_of_another_shard_is_rejected() {
    let mut running = Running::new(true);
    running.shards = 4;
    let ids: Vec<String> = (0..40).map(|number| format!("m{number}")).collect();
    let outcome = running.drain(vec![jobs(ids.iter().map(|id| set(id, 1)).collect())]);
    let expected: Vec<Option<RejectCode>> =
        ids.iter().map(|id| (shard_of(&member(id), 4).0 != 0).then_some(RejectCode::WrongShard)).collect();
    assert_eq!(codes(&outcome[0]), expected);
    let ours = expected.iter().filter(|code| code.is_none()).count();
    assert!(ours > 0 && ours < 40);
    assert_eq!(running.board("b").len(), ours);
}

/// At 2^32 members; here at three.
#[test]
fn a_shard_without_handles_rejects_new_members_and_serves_those_it_has() {
    let running = Running::new(true);
    running.shard.write(Purpose::Apply).members.limit_handles(3);
    let two_boards = |id| job(id, &[("b", &[7]), ("new", &[7])]);
    let outcomes = running.drain(vec![
        jobs(vec![set("a", 1), set("b", 2)]),
        // The third place is taken within the message itself.
        jobs(vec![set("c", 3), set("d", 4), bare(Op::Remove, "e", &["b"]), set("a", 5)]),
        jobs(vec![two_boards("f"), set("b", 6)]),
    ]);
    let full = Some(RejectCode::TooLarge);
    assert_eq!(codes(&outcomes[0]), [None, None]);
    assert_eq!(codes(&outcomes[1]), [None, full, None, None]);
    assert_eq!(codes(&outcomes[2]), [full, None]);
    let Some(JobOutcome::Rejected(Reject { detail, .. })) =
        outcomes[2].as_ref().expect("committed").jobs.first()
    else {
        panic!("it was rejected");
    };
    assert!(detail.starts_with("shard 0 holds 3 members"), "{detail}");
    assert_eq!(running.board("b"), list(&[("b", 6), ("a", 5), ("c", 3)]));
    assert_eq!(running.positions().len(), 1, "a job that is refused creates no board");
    // With handles again, those who were refused may come.
    running.drain(vec![jobs(vec![two_boards("f")])]);
    assert_eq!(running.board("b"), list(&[("f", 7), ("b", 6), ("a", 5), ("c", 3)]));
}

#[test]
fn a_job_on_several_boards_applies_to_all_of_them_or_to_none() {
    let running = Running::new(true);
    let two = |id: &str| job(id, &[("b", &[1]), ("c", &[1])]);
    running.drain(vec![jobs(vec![two("m").version(3), bare(Op::Remove, "m", &["c"]).version(9)])]);
    // Stale on c only, of another shape on c only, for the first time and with new boards beside.
    let outcome = running.drain(vec![jobs(vec![
        two("m").version(5),
        job("m", &[("b", &[8]), ("c", &[8, 8])]),
        job("n", &[("b", &[8]), ("new", &[1]), ("c", &[8, 8])]),
        job("m", &[("new", &[1]), ("b", &[i64::MAX])]).op(Op::Incr),
        two("m").version(10),
    ])]);
    let refused =
        [RejectCode::StaleVersion, RejectCode::BadScore, RejectCode::BadScore, RejectCode::Overflow];
    assert_eq!(codes(&outcome[0]), refused.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
    assert_eq!(running.board("b"), list(&[("m", 1)]));
    assert_eq!(running.board("c"), list(&[("m", 1)]));
    assert!(running.shard.read(Purpose::Read).board("new").is_none(), "a refused job creates no board");
    assert!(running.registry.get("new").is_none());
    assert_eq!(running.shard.read(Purpose::Read).members.len(), 1);
}

/// Every reason that can be given without JSON, `closed_window` apart, which only windows have.
#[test]
fn every_reason_is_told_stored_and_listed() {
    let running = Running::new(false);
    let bounded = Definition { keys: vec![Key { min: 0, max: 10, ..Key::score() }], ..Definition::default() };
    for (name, definition) in [("b", bounded), ("wide", Definition::default())] {
        let Ok(Defined::Created(known)) = running.registry.define(&board(name), definition) else {
            panic!("{name} is new")
        };
        let (incarnation, definition) = (known.incarnation, known.definition);
        running.drain(vec![Payload::Define { board: board(name), incarnation, number: None, definition }]);
    }
    let bad = |code| {
        let reject = Reject::new(code, "as the source says");
        Err(BadJob { bytes: vec![b'x'; 10_000], member: None, reject })
    };
    let from_source = [RejectCode::Malformed, RejectCode::BadMember, RejectCode::TooLarge];
    let mut payload = vec![
        Ok(set("m", 5).version(2)),
        Ok(set("m", 11)),
        Ok(set("m", -1)),
        Ok(set("m", 6).op(Op::Incr)),
        Ok(set("m", 5).version(2)),
        Ok(job("m", &[("b", &[1, 2])])),
        Ok(job("m", &[("nowhere", &[1])])),
        Ok(bare(Op::Hide, "m", &["nowhere"])),
        Ok(job("m", &[("wide", &[i64::MAX])])),
        Ok(job("m", &[("wide", &[1])]).op(Op::Incr)),
    ];
    payload.extend(from_source.map(bad));
    let outcome = running.drain(vec![Payload::Jobs(payload.into())]);
    let expected = [
        None,
        Some(RejectCode::OutOfRange),
        Some(RejectCode::OutOfRange),
        Some(RejectCode::OutOfRange),
        Some(RejectCode::StaleVersion),
        Some(RejectCode::BadScore),
        Some(RejectCode::UnknownBoard),
        Some(RejectCode::UnknownBoard),
        None,
        Some(RejectCode::Overflow),
        Some(RejectCode::Malformed),
        Some(RejectCode::BadMember),
        Some(RejectCode::TooLarge),
    ];
    assert_eq!(codes(&outcome[0]), expected);
    assert_eq!(running.board("b"), list(&[("m", 5)]));
    assert_eq!(running.health.get(|health| health.jobs_rejected), 11);
    let store = running.store.get().expect("it is open");
    assert_eq!(store.meta().expect("readable").expect("there").jobs_rejected, 11);
    let stored = newest_rejects(&store, 100);
    let told: Vec<(u64, u32, RejectCode)> =
        stored.iter().rev().map(|reject| (reject.sequence.0, reject.index, reject.code)).collect();
    let indexed = (0..).zip(expected).filter_map(|(index, code)| Some((3, index, code?)));
    assert_eq!(told, indexed.collect::<Vec<_>>());
    let newest = newest_rejects(&store, 2);
    assert_eq!(newest.iter().map(|reject| reject.index).collect::<Vec<_>>(), [12, 11], "newest first");
    assert_eq!(newest[0].job, vec![b'x'; 4_096], "cut to what storage can bear");
    assert!(String::from_utf8_lossy(&stored[10].job).contains("\"m\""), "an operator sees which job it was");
}

#[test]
fn a_removal_from_every_board_leaves_the_others_alone() {
    let running = Running::new(true);
    let three = |id: &str| job(id, &[("b", &[1]), ("c", &[2]), ("d", &[3])]);
    running.drain(vec![jobs(vec![three("m"), three("n"), bare(Op::Hide, "m", &["c"])])]);
    running.drain(vec![jobs(vec![job("m", &[("e", &[4])]), leave_all("m"), leave_all("nobody")])]);
    for name in ["b", "c", "d"] {
        assert_eq!(
            running.board(name).iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
            ["n"],
            "{name}"
        );
    }
    assert_eq!(running.board("e"), []);
    assert_eq!(running.shard.read(Purpose::Read).members.len(), 1);
    running.drain(vec![jobs(vec![set("m", 9), leave_all("m"), set("m", 8)])]);
    assert_eq!(running.board("b"), list(&[("m", 8), ("n", 1)]));
}

#[test]
fn hidden_entries_count_nowhere_go_on_receiving_updates_and_come_back() {
    let running = Running::new(true);
    running.drain(vec![jobs(vec![set("m", 5), set("n", 4), bare(Op::Hide, "m", &["b"])])]);
    assert_eq!(running.board("b"), list(&[("n", 4)]));
    running.drain(vec![jobs(vec![set("m", 2).op(Op::Incr), bare(Op::Hide, "m", &["b"])])]);
    assert_eq!(running.board("b"), list(&[("n", 4)]));
    running.drain(vec![jobs(vec![bare(Op::Show, "m", &["b"])])]);
    assert_eq!(running.board("b"), list(&[("m", 7), ("n", 4)]));
}

/// Jobs before a drop meet the old board, and those after it a new one, also while other shards have yet to
/// make the drop.
#[test]
fn a_drop_in_the_middle_of_a_batch_parts_what_came_before_from_what_comes_after() {
    let running = Running::new(true);
    running.drain(vec![jobs(vec![set("a", 1), set("m", 1)])]);
    let incarnation = running.registry.begin_drop("b").expect("it is known");
    let outcome = running.drain(vec![
        jobs(vec![set("m", 2).meta(r#"{"old":true}"#), set("n", 3)]),
        Payload::Drop { board: board("b"), incarnation, number: None },
        jobs(vec![set("m", 4), job("m", &[("c", &[1])])]),
    ]);
    assert_eq!(codes(&outcome[0]), [None, None]);
    assert_eq!(codes(&outcome[2]), [None, None]);
    assert_eq!(running.board("b"), list(&[("m", 4)]));
    assert_eq!(running.board("c"), list(&[("m", 1)]));
    running.registry.finish_drop("b", incarnation);
    running.drain(vec![jobs(vec![set("m", 5).op(Op::Incr)])]);
    assert_eq!(running.board("b"), list(&[("m", 9)]), "the new board knows nothing of the old one");
    let shard = running.shard.read(Purpose::Read);
    let store = running.store.get().expect("it is open");
    assert_eq!(shard.members.len(), 1, "a and n are forgotten");
    assert!(store.keys_from(&[0x04]).expect("readable").is_empty(), "and so is what the old board held of m");
}

/// A definition may be overtaken by its own drop, should they come from two clients.
#[test]
fn a_definition_that_comes_after_its_own_drop_does_not_bring_the_board_back() {
    let life = |number| Incarnation(number);
    let define = |number| {
        let (board, incarnation, definition) = (board("b"), life(number), Arc::default());
        Payload::Define { board, incarnation, number: None, definition }
    };
    let drop = |number| Payload::Drop { board: board("b"), incarnation: life(number), number: None };
    // In one batch, and in batches of their own.
    for limit in [100, 1] {
        let running = Running::new(true);
        let (mut source, answers) = VecSource::new(vec![define(1), drop(1), define(1), drop(2), define(2)]);
        source.limits.jobs = limit;
        running.run(source, answers);
        assert!(running.shard.read(Purpose::Read).board("b").is_none());
        running.drain(vec![define(3)]);
        assert_eq!(
            running.shard.read(Purpose::Read).board("b").map(|board| board.incarnation),
            Some(life(3))
        );
    }
}

/// Its entries would be read wrongly: scores of three words as two, or in the other direction.
#[test]
fn a_life_of_a_board_does_not_become_another_board() {
    let life = Incarnation(1);
    let define = |definition: Definition| {
        let definition = Arc::new(definition);
        Payload::Define { board: board("b"), incarnation: life, number: None, definition }
    };
    let two_keys = Definition {
        keys: vec![Key::score(), Key { name: "time".to_owned(), ..Key::score() }],
        ..Definition::default()
    };
    let ascending =
        Definition { keys: vec![Key { order: Order::Ascending, ..Key::score() }], ..Definition::default() };
    for other in [two_keys, ascending] {
        // In one batch, and in batches of their own.
        for limit in [100, 1] {
            let running = Running::new(true);
            let scores = jobs(vec![set("m", 5), set("n", 7)]);
            let (mut source, answers) =
                VecSource::new(vec![define(Definition::default()), scores, define(other.clone())]);
            source.limits.jobs = limit;
            running.run(source, answers);
            let defined =
                running.shard.read(Purpose::Read).board("b").map(|board| Arc::clone(&board.definition));
            assert_eq!(defined.as_deref(), Some(&Definition::default()));
            assert_eq!(running.board("b"), list(&[("n", 7), ("m", 5)]));
        }
    }
}

fn numbered_define(name: &str, life: u64, number: u64) -> Payload {
    let (board, incarnation, definition) = (board(name), Incarnation(life), Arc::default());
    Payload::Define { board, incarnation, number: Some(RecordNumber(number)), definition }
}

fn numbered_drop(name: &str, life: u64, number: u64) -> Payload {
    Payload::Drop { board: board(name), incarnation: Incarnation(life), number: Some(RecordNumber(number)) }
}

/// Boards that come and go, and at last definitions that come late. The second one of "slow" is of a record
/// behind the first.
fn boards_that_come_and_go() -> Vec<Payload> {
    let most = u64::try_from(REMEMBERED_MAX).expect("a count");
    let mut messages = vec![numbered_define("stays", 1, 1), numbered_define("a", 2, 2)];
    messages.push(numbered_drop("a", 2, 3));
    for number in 0..most {
        messages.push(numbered_drop(&format!("b{number}"), 10 + number, 10 + number));
    }
    // One drop too many to be remembered: "a" is forgotten.
    messages.extend([
        numbered_define("a", 2, 2),
        numbered_define("slow", 3, 3),
        numbered_define("b0", 10, 10),
        numbered_define("stays", 1, 1),
        numbered_define("fresh", 4, 4),
        numbered_define("slow", 3, most + 20),
        numbered_drop("c", 5, 4),
        numbered_define("c", 5, 2),
        numbered_drop("fresh", 4, most + 21),
        numbered_define("fresh", 4, 10),
        numbered_define("b0", most + 22, most + 22),
    ]);
    messages
}

/// What is forgotten follows from the messages alone, however they share batches, and a start finds it as it
/// was.
#[test]
fn a_definition_that_comes_long_after_its_drop_does_not_bring_the_board_back() {
    let most = u64::try_from(REMEMBERED_MAX).expect("a count");
    let mut seen = Vec::new();
    for limit in [1_000_000, 100, 7] {
        let running = Running::new(true);
        let (mut source, _answers) = VecSource::new(boards_that_come_and_go());
        source.limits.jobs = limit;
        running.writer(source).run();
        for reopened in [false, true] {
            if reopened {
                running.load();
            }
            let shard = running.shard.read(Purpose::Read);
            let boards: Vec<_> =
                shard.boards().map(|(name, board)| (name.as_str(), board.incarnation.0)).collect();
            let expected = [("b0", most + 22), ("slow", 3), ("stays", 1)];
            assert_eq!(boards, expected, "batches of {limit}, reopened: {reopened}");
            assert_eq!(shard.dropped().len(), REMEMBERED_MAX);
            seen.push(shard.dropped().clone());
        }
    }
    assert_eq!(seen[0].forgotten(), RecordNumber(10));
    assert!(seen.iter().all(|dropped| *dropped == seen[0]));
}

/// Nothing of a batch that could not be committed is shown, whoever waits is told, reads go on, and the shard
/// heals.
#[test]
fn a_failed_commit_is_answered_changes_nothing_and_heals() {
    let running = Running::new(true);
    running.drain(vec![jobs(vec![set("m", 1)])]);
    let (mut source, answers) = VecSource::new(vec![
        jobs(Vec::new()),
        jobs(vec![set("m", 2)]),
        jobs(vec![set("m", 3), set("n", 3)]),
        jobs(vec![set("n", 4)]),
    ]);
    source.limits.jobs = 2;
    let attempts = Arc::new(AtomicUsize::new(0));
    let (store, counted) = (Arc::clone(&running.store), Arc::clone(&attempts));
    let mut fetches = 0;
    // The second batch finds no store, as one finds a store that refuses; then nothing comes until it is open
    // again.
    source.before_fetch = Box::new(move || {
        fetches += 1;
        if fetches == 2 {
            drop(store.take());
        }
        fetches <= 2 || counted.load(Ordering::SeqCst) >= 2
    });
    let (path, counted) = (running.folder.path().to_owned(), Arc::clone(&attempts));
    let (health, shard) = (Arc::clone(&running.health), Arc::clone(&running.shard));
    let reopen = move || {
        // Between the failure and the reopening: not live, and the state is what was committed.
        assert!(matches!(health.state(), ShardState::CatchingUp(reason) if reason.contains("failed commit")));
        assert_eq!(shard.read(Purpose::Read).applied.sequence, Sequence(2));
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(StorageError::Io { path: path.clone(), error: std::io::Error::other("still full") });
        }
        open(&path)
    };
    source.sent.first_mut().and_then(Option::as_mut).expect("there").answer = None;
    running.writer_reopening(source, reopen).run();
    running.load();
    let outcomes: Vec<_> =
        answers.into_iter().skip(1).map(|mut answer| answer.try_recv().expect("answered")).collect();
    assert!(outcomes[0].is_ok());
    let refused = outcomes[1].as_ref().expect_err("its batch failed");
    assert!(refused.to_string().contains("could not be committed"), "{refused}");
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
    assert_eq!(outcomes[2].as_ref().expect("it came after").sequence, Sequence(3), "no sequence is skipped");
    assert_eq!(running.board("b"), list(&[("n", 4), ("m", 2)]));
}

/// Told to end while the disk still refuses, a writer ends.
#[test]
fn a_writer_that_cannot_reopen_ends_when_its_queue_does() {
    let running = Running::new(true);
    let (source, mut answers) = VecSource::new(vec![jobs(vec![set("m", 1)])]);
    drop(running.store.take());
    let refuse =
        || Err(StorageError::Io { path: "disk".into(), error: std::io::Error::other("full for ever") });
    running.writer_reopening(source, refuse).run();
    assert!(answers.remove(0).try_recv().expect("answered").is_err());
    running.load();
    assert!(running.shard.read(Purpose::Read).board("b").is_none());
}

#[test]
fn answers_tell_the_place_before_and_after() {
    let running = Running::new(true);
    running.drain(vec![jobs(vec![set("a", 3), set("b", 3), set("c", 1)])]);
    let outcome = running.drain(vec![jobs(vec![set("c", 3), set("c", 3), leave_all("b")])]).remove(0);
    let outcome = outcome.expect("committed");
    let rankings: Vec<_> = outcome
        .jobs
        .iter()
        .map(|job| {
            let JobOutcome::Applied(boards) = job else { panic!("{job:?}") };
            let ranking = |ranking: Option<crate::state::ShardRanking>| {
                ranking.map(|p| (p.better, p.tied, p.ahead, p.total))
            };
            (boards[0].changed, ranking(boards[0].before), ranking(boards[0].after))
        })
        .collect();
    assert_eq!(
        rankings,
        [
            (true, Some((2, 1, 2, 3)), Some((0, 3, 2, 3))),
            (false, Some((0, 3, 2, 3)), Some((0, 3, 2, 3))),
            // It leaves every board: nobody is told a place.
            (true, None, None),
        ]
    );
    let (answered, _) = oneshot::channel::<()>();
    assert!(answered.is_closed(), "who went away is not waited for");
    assert_eq!(running.shard.read(Purpose::Read).applied.timestamp, time(2));
}

/// A plan only reads. What it means to give to newcomers, and to take from those who leave, stays as it is if
/// it is not committed, also beside a checkpoint, while handles are held back.
#[test]
fn a_plan_that_is_never_committed_leaves_every_handle_accounted_for() {
    use crate::writer::tests::harness::{Harness, Say};
    let undo = |harness: &mut Harness, says: &[Say]| {
        let (model, last, rejected) = (harness.model.clone(), harness.last, harness.rejected);
        let before = {
            let shard = harness.shard.read(Purpose::Read);
            (shard.members.handle_space(), shard.members.len(), shard.members.nth_next_handle(0))
        };
        let plan = harness.plan(says).expect("there is a message");
        assert!(plan.changes > 0, "it would change something");
        drop(plan);
        (harness.model, harness.last, harness.rejected) = (model, last, rejected);
        let shard = harness.shard.read(Purpose::Read);
        shard.check_handles().expect("every handle is in one place");
        let after = (shard.members.handle_space(), shard.members.len(), shard.members.nth_next_handle(0));
        assert_eq!(after, before);
    };
    let leave = |ids: std::ops::Range<i64>| {
        Say::Jobs(ids.map(|number| bare(Op::Remove, &format!("m{number}"), &["b"])).collect())
    };
    let mut harness = Harness::new(true);
    harness.batch(&[Say::Jobs((0..12).map(|number| set(&format!("m{number}"), number)).collect())]);
    // Free once the checkpoint is complete; those who leave after it are quarantined.
    harness.batch(&[leave(0..4)]);
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
    harness.batch(&[leave(4..6)]);
    let come_and_go = [Say::Jobs(vec![
        set("new", 1),
        job("newer", &[("b", &[2])]),
        bare(Op::Remove, "m6", &["b"]),
        leave_all("m7"),
        set("m8", 80),
    ])];
    undo(&mut harness, &come_and_go);
    harness.check_all();
    let mut moments = 0;
    let written = harness.checkpoint(&mut |harness, _| {
        undo(harness, &come_and_go);
        moments += 1;
        Ok(())
    });
    written.expect("the disk takes it");
    assert!(moments > 2, "{moments}");
    harness.check_all();
    // The same plan, committed, finds all handles where they were.
    harness.batch(&come_and_go);
    harness.check_all();
    harness.restart();
    harness.check_all();
}
