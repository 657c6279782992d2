//! Shards and clients that decide on the same board at the same moment: each event comes between two questions of a
//! shard's planner, so that every race is certain.

use crate::board::{Definition, Policy};
use crate::job::{Job, RejectCode};
use crate::writer::registry::Event;
use crate::writer::tests::build::{board, job};
use crate::writer::tests::harness::{Harness, Say};

/// Plans one job on a new shard, one event after each of the planner's questions. The reason if the job is rejected, and
/// the boards that the plan defines.
fn race(job: Job, events: Vec<Event>) -> (Harness, Option<RejectCode>, Vec<Policy>) {
    let mut harness = Harness::new(true);
    harness.registry.after_question.lock().extend(events);
    let plan = harness.plan(&[Say::Jobs(vec![job])]).expect("there is a message");
    assert!(harness.registry.after_question.lock().is_empty(), "every event happened");
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
fn a_board_that_another_shard_creates_meanwhile_takes_the_job() {
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
fn a_job_that_is_refused_by_a_board_of_that_moment_creates_none_of_its_others() {
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
