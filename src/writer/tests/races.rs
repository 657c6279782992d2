//! Shards and clients that decide on the same board at the same moment: each event comes between two
//! questions of a shard's planner, so that every race is certain.

use crate::board::{Definition, Policy};
use crate::job::{Job, RejectCode};
use crate::writer::registry::Event;
use crate::writer::tests::build::{board, job};
use crate::writer::tests::harness::{Harness, Say};
use crate::writer::{Defined, RegisteredBoard};

/// Plans one job on a new shard, one event after each of the planner's questions. The reason if the job is
/// rejected, and the boards that the plan defines.
fn race(job: Job, events: Vec<Event>) -> (Harness, Option<RejectCode>, Vec<Policy>) {
    let mut harness = Harness::new(true);
    harness.registry.after_lookup.lock().extend(events);
    let plan = harness.plan(&[Say::Jobs(vec![job])]).expect("there is a message");
    assert!(harness.registry.after_lookup.lock().is_empty(), "every event happened");
    let delta = crate::storage::codec::decode_delta(&plan.delta).expect("readable");
    let policies = delta.events.iter().filter_map(|event| match event {
        crate::state::BoardEvent::Define { definition, .. } => Some(definition.policy),
        crate::state::BoardEvent::Drop { .. } => None,
    });
    let policies = policies.collect();
    (harness, plan.rejects.first().map(|reject| reject.code), policies)
}

fn creates(name: &'static str) -> Event {
    Box::new(move |registry| {
        registry.create_default(&board(name)).expect("there is room");
    })
}

fn defines(name: &'static str, policy: Policy) -> Event {
    Box::new(move |registry| {
        registry.define(&board(name), Definition { policy, ..Definition::default() }).expect("it is new");
    })
}

/// The job of another shard creates the board after this shard's planner was told that nobody has it.
#[test]
fn job_applies_to_board_created_concurrently_by_another_shard() {
    let (_, rejected, policies) = race(job("m", &[("b", &[1])]), vec![creates("b")]);
    assert_eq!((rejected, policies), (None, vec![Policy::Set]));
}

#[test]
fn a_board_that_a_client_defines_meanwhile_takes_the_job_by_its_own_rules() {
    let (harness, rejected, policies) = race(job("m", &[("b", &[1])]), vec![defines("b", Policy::Best)]);
    assert_eq!((rejected, policies), (None, vec![Policy::Best]));
    assert_eq!(harness.registry.count_named(None), 1);
}

/// All or nothing holds for the boards that a job creates, too.
#[test]
fn job_refused_by_a_concurrently_defined_board_creates_no_boards() {
    let bounded: Event = Box::new(|registry| {
        let key = crate::board::Key { min: 0, max: 1, ..crate::board::Key::score() };
        let definition = Definition { keys: vec![key], ..Definition::default() };
        registry.define(&board("b"), definition).expect("it is new");
    });
    let (harness, rejected, policies) =
        race(job("m", &[("a", &[5]), ("b", &[5])]), vec![Box::new(|_| {}), bounded]);
    assert_eq!((rejected, policies), (Some(RejectCode::OutOfRange), vec![]));
    assert!(harness.registry.get("a").is_none(), "no shard would ever have it");
}

fn begin_drop(harness: &Harness, name: &str) -> RegisteredBoard {
    let known = harness.registry.create_default(&board(name)).expect("there is room");
    assert_eq!(harness.registry.begin_drop(name), Some(known.incarnation));
    known
}

/// This shard has dropped the board, and another one has not: the client does not know of either.
#[test]
fn a_job_that_comes_while_its_board_is_being_dropped_begins_the_boards_next_life() {
    let mut harness = Harness::new(true);
    let dropped = begin_drop(&harness, "b");
    let plan = harness.plan(&[Say::Jobs(vec![job("m", &[("b", &[1])])])]).expect("there is a message");
    assert_eq!(plan.rejects.first().map(|reject| reject.code), None);
    let next = harness.registry.get("b").expect("readers see the next life");
    assert!(next.incarnation > dropped.incarnation);
    // Of a shard that still holds the life before, jobs go into the next one, until that shard has dropped it
    // too.
    assert_eq!(harness.registry.next_incarnation("b", dropped.incarnation), Some(next.clone()));
    harness.registry.finish_drop("b", dropped.incarnation);
    assert_eq!(harness.registry.get("b"), Some(next));
    assert!(!harness.registry.has_next_incarnation());
}

#[test]
fn a_definition_that_comes_while_its_board_is_being_dropped_begins_the_boards_next_life() {
    let harness = Harness::new(true);
    let dropped = begin_drop(&harness, "b");
    let definition = Definition { policy: Policy::Best, ..Definition::default() };
    let defined = harness.registry.define(&board("b"), definition);
    let Ok(Defined::Created(next)) = &defined else { panic!("{defined:?}") };
    assert!(next.incarnation > dropped.incarnation);
    assert_eq!(harness.registry.next_incarnation("b", dropped.incarnation).as_ref(), Some(next));
}

#[test]
fn a_job_that_may_create_no_board_is_rejected_while_its_board_is_being_dropped() {
    let mut harness = Harness::new(false);
    begin_drop(&harness, "b");
    let plan = harness.plan(&[Say::Jobs(vec![job("m", &[("b", &[1])])])]).expect("there is a message");
    assert_eq!(plan.rejects.first().map(|reject| reject.code), Some(RejectCode::UnknownBoard));
}
