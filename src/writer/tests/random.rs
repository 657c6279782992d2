//! Random jobs in random batches, with checkpoints, failures, crashes and restarts in between: the state, the
//! disk by pages, the disk by members and the model always agree.

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::board::Definition;
use crate::job::{Compare, Job, Op, Presence, When};
use crate::state_lock::Purpose;
use crate::storage::{CheckpointPhase, STAGED_FILE_BYTES, StorageError};
use crate::types::Timestamp;
use crate::writer::tests::build::{bare, board, job, leave_all, profile, race, strokes};
use crate::writer::tests::harness::{Harness, Say};
use crate::writer::tests::model::Place;

/// Conditions that only Redis' protocol has.
const LOWER: When = When { presence: Presence::Any, compare: Compare::Less, adds: false };
const ADD_IF_GREATER: When = When { presence: Presence::Existing, compare: Compare::Greater, adds: true };

pub const BOARDS: [&str; 4] = ["auto", "more", "race", "strokes"];

#[derive(Debug, Clone)]
enum Action {
    Batch(Vec<Say>),
    Checkpoint {
        during: Vec<During>,
        end: End,
    },
    Restart,
    /// Members of dropped boards let go of.
    Release(usize),
    /// A batch is committed and so many of its steps are applied; then the process dies.
    CrashInBatch(Vec<Say>, usize),
}

#[derive(Debug, Clone)]
enum During {
    Nothing,
    Step,
    Batch(Vec<Say>),
    Release(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    /// The disk refuses at this slice.
    FailAt(usize),
    /// The process dies there.
    CrashAt(CheckpointPhase),
    /// The files take effect, but the disk refuses to drop the deltas.
    FailAfterIngestion,
}

pub fn jobs(members: u32) -> impl Strategy<Value = Job> {
    let id = (0..members).prop_map(|number| format!("m{number}"));
    let names = prop::sample::subsequence(BOARDS.to_vec(), 1..=3);
    let names =
        prop_oneof![4 => prop::sample::select(BOARDS.to_vec()).prop_map(|name| vec![name]), 1 => names];
    let value = prop_oneof![8 => -3_i64..=3, 1 => prop::sample::select(vec![i64::MIN, i64::MAX, 4])];
    let op = prop_oneof![
        6 => Just(None),
        2 => Just(Some(Op::Set)),
        1 => Just(Some(Op::Best)),
        1 => Just(Some(Op::Incr)),
        1 => Just(Some(Op::CREATE)),
        1 => Just(Some(Op::UPDATE)),
        1 => Just(Some(Op::when(LOWER))),
        1 => Just(Some(Op::when(ADD_IF_GREATER))),
        2 => Just(Some(Op::Take)),
        4 => Just(Some(Op::Remove)),
        2 => Just(Some(Op::Hide)),
        2 => Just(Some(Op::Show)),
    ];
    let version = prop_oneof![5 => Just(None), 1 => (1_u64..8).prop_map(Some)];
    let at = prop_oneof![6 => Just(None), 1 => (0_i64..1_100).prop_map(Some)];
    let meta = prop_oneof![5 => Just(None), 1 => Just(Some(r#"{"a":1}"#)), 1 => Just(Some("{}"))];
    (id, names, value, op, version, at, meta, 0..10_u32).prop_map(
        |(id, names, value, op, version, at, meta, everywhere)| {
            let mut made = if everywhere == 0 {
                match op.filter(|op| op.is_ban()) {
                    Some(op) => leave_all(&id).op(op),
                    None => leave_all(&id),
                }
            } else if everywhere < 3 {
                // The same texts come again, so that some change nothing.
                profile(
                    &id,
                    ["{}", r#"{"name":"a"}"#, r#"{"name":"b"}"#]
                        [usize::try_from(value.rem_euclid(3)).expect("small")],
                )
            } else if let Some(op) = op.filter(|op| !op.takes_score()) {
                // A job on the wire names one board if it has no score.
                bare(op, &id, &names[..1])
            } else {
                let two = [value, value.wrapping_mul(-1)];
                let scores: Vec<(&str, &[i64])> = names
                    .iter()
                    .map(|name| (*name, if *name == "race" { &two[..] } else { &two[..1] }))
                    .collect();
                Job { op, ..job(&id, &scores) }
            };
            made.version = version;
            made.at = at.map(|micros| Timestamp::from_micros(micros).expect("in range"));
            match meta {
                Some(json) if made.op.is_none_or(Op::takes_score) => made.meta(json),
                _ => made,
            }
        },
    )
}

/// A trim names members as somebody found them a while ago: some of them, and some who are not behind the
/// place.
fn trims(members: u32) -> impl Strategy<Value = Say> {
    let name = prop::sample::select(BOARDS.to_vec());
    let value = prop_oneof![8 => -3_i64..=3, 1 => prop::sample::select(vec![i64::MIN, i64::MAX, 4])];
    let place = prop_oneof![3 => Just(None), 2 => (900_i64..1_100, 0..members).prop_map(Some)];
    let named = prop::collection::vec(0..members, 1..12);
    (name, value, any::<bool>(), place, named).prop_map(|(name, value, first, place, named)| {
        let is_race = name == "race";
        let score = if is_race && (!first || place.is_some()) {
            vec![value, value.wrapping_neg()]
        } else {
            vec![value]
        };
        let member = place.map(|(reached, number)| (reached, format!("m{number}")));
        let named = named.into_iter().map(|number| format!("m{number}"));
        Say::Trim(board(name), Place { score, member }, named.collect())
    })
}

fn says(members: u32, most: usize) -> impl Strategy<Value = Vec<Say>> {
    let name = prop::sample::select(BOARDS.to_vec());
    let say = prop_oneof![
        10 => prop::collection::vec(jobs(members), 1..4).prop_map(Say::Jobs),
        5 => prop::collection::vec(jobs(members), 1..4).prop_map(Say::Ask),
        5 => prop::collection::vec(jobs(members), 1..4).prop_map(Say::AskWhetherChanged),
        1 => (name.clone(), 11_u32..13).prop_map(|(name, keep)| {
            let definition = match name {
                "race" => race(),
                "strokes" => strokes(),
                _ => std::sync::Arc::default(),
            };
            // The one thing that may change of a board.
            let definition = Definition { keep, ..Definition::clone(&definition) };
            Say::Define(board(name), definition.into())
        }),
        1 => name.clone().prop_map(|name| Say::Drop(board(name))),
        1 => name.clone().prop_map(|name| Say::Clear(board(name))),
        2 => trims(members),
    ];
    prop::collection::vec(say, 1..most)
}

fn actions(members: u32, most: usize) -> impl Strategy<Value = Vec<Action>> {
    let during = prop_oneof![
        3 => Just(During::Nothing),
        3 => Just(During::Step),
        3 => says(members, most).prop_map(During::Batch),
        1 => (1_usize..4).prop_map(During::Release),
    ];
    let end = prop_oneof![
        6 => Just(End::Complete),
        2 => (0_usize..16).prop_map(End::FailAt),
        1 => Just(End::CrashAt(CheckpointPhase::Staged)),
        2 => Just(End::CrashAt(CheckpointPhase::Ingested)),
        1 => Just(End::FailAfterIngestion),
    ];
    let action = prop_oneof![
        6 => says(members, most).prop_map(Action::Batch),
        4 => (prop::collection::vec(during, 0..16), end)
            .prop_map(|(during, end)| Action::Checkpoint { during, end }),
        2 => Just(Action::Restart),
        1 => (1_usize..6).prop_map(Action::Release),
        1 => (says(members, most), 0_usize..4).prop_map(|(says, steps)| Action::CrashInBatch(says, steps)),
    ];
    prop::collection::vec(action, 1..14)
}

fn refused() -> StorageError {
    StorageError::Io { path: "the disk".into(), error: std::io::Error::other("refused by the test") }
}

fn run(harness: &mut Harness, action: Action) {
    match action {
        Action::Batch(says) => harness.batch(&says),
        Action::Restart => harness.restart(),
        Action::Release(limit) => {
            harness.shard.write(Purpose::Apply).release_retired(limit);
        }
        Action::CrashInBatch(says, steps) => {
            harness.commit(&says);
            for _ in 0..steps {
                harness.apply_one();
            }
            harness.restart();
        }
        Action::Checkpoint { during, end } => {
            let mut during: VecDeque<During> = during.into();
            let mut slices = 0;
            let mut failed = false;
            let written = harness.checkpoint(&mut |harness, moment| {
                slices += 1;
                match during.pop_front() {
                    Some(During::Batch(says)) => harness.commit(&says),
                    Some(During::Step) => {
                        harness.apply_one();
                    }
                    Some(During::Release(limit)) => {
                        harness.shard.write(Purpose::Apply).release_retired(limit);
                    }
                    Some(During::Nothing) | None => {}
                }
                let fails = match end {
                    End::Complete => false,
                    End::FailAt(slice) => {
                        matches!(moment, CheckpointPhase::Joining | CheckpointPhase::Slice) && slices > slice
                    }
                    End::CrashAt(at) => moment == at,
                    End::FailAfterIngestion => moment == CheckpointPhase::Ingested,
                };
                failed |= fails;
                if fails { Err(refused()) } else { Ok(()) }
            });
            // Nothing but the disk and a crash ends a checkpoint early, whatever is dropped meanwhile.
            assert_eq!(written.is_err(), failed, "{written:?}");
            if matches!(end, End::CrashAt(_)) {
                harness.restart();
            }
        }
    }
}

/// Checkpoints in one file, in a file for each record, and in something between.
fn file_bytes() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![STAGED_FILE_BYTES, 1, 200])
}

/// Runs all of it, and checks every state on the way, in memory and on disk.
fn check(members: u32, actions: Vec<Action>, file_bytes: u64) {
    let mut harness = Harness::new(true);
    harness.staged_file_bytes = file_bytes;
    let many = (0..members).map(|number| job(&format!("m{number}"), &[("auto", &[i64::from(number % 5)])]));
    harness.batch(&[Say::Jobs(many.collect())]);
    for action in actions {
        run(&mut harness, action);
        harness.check_all();
    }
    harness.restart();
    harness.check_all();
    // A checkpoint that nothing disturbs leaves nothing to replay, and nothing of what came before.
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
    harness.check_all();
    harness.restart();
    harness.check_all();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_the_models_state(actions in actions(9, 5), file_bytes in file_bytes()) {
        check(1, actions, file_bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// With trees of several pages, and jobs that move many entries between them.
    #[test]
    fn any_history_of_many_members_gives_the_models_state(
        actions in actions(220, 60),
        file_bytes in file_bytes(),
    ) {
        check(220, actions, file_bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Such jobs share steps with others, and go the short way if they are plain.
    #[test]
    fn jobs_change_the_same_whatever_their_client_wants_to_be_told(
        batches in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(jobs(5), 1..4), 1..4), 1..6,
        ),
    ) {
        let told = |say: fn(Vec<Job>) -> Say| {
            let mut harness = Harness::new(true);
            harness.batch(&[Say::Define(board("race"), race()), Say::Define(board("strokes"), strokes())]);
            for messages in &batches {
                harness.batch(&messages.iter().cloned().map(say).collect::<Vec<_>>());
            }
            harness.check_all();
            harness.told_changes
        };
        prop_assert_eq!(told(Say::AskWhetherChanged), told(Say::Ask));
    }
}
