//! The test: writers and readers go on while one thing after the other goes wrong. Afterwards every answer is
//! compared with the model, everything that was acknowledged is looked for in the streams, and the copies
//! are compared with one another.

use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::disturbed_cluster::disturbances::{ALL, Disturbance, disturb};
use crate::disturbed_cluster::oracle::Oracle;
use crate::disturbed_cluster::readers::{Answer, Answers, Question, read};
use crate::disturbed_cluster::recorder::{Recorder, Stored};
use crate::disturbed_cluster::world::{ARENA, World};
use crate::disturbed_cluster::writers::Writes;
use crate::support::nats::{wait_applied, wait_until};
use crate::support::random::Random;
use crate::support::rounds::rounds;

/// Each disturbance once, at least.
const ROUNDS: [u64; 3] = [7, 21, 50];

#[test]
fn every_answer_is_exact_and_nothing_is_lost_while_nodes_and_servers_fail() {
    let most = usize::try_from(rounds(ROUNDS)).expect("few");
    run(|rounds, _| rounds < most);
}

/// `make soak`: goes on for as long as `RANKTREE_SOAK_MINUTES` says.
#[test]
#[ignore = "it runs for as long as it is told"]
fn soak() {
    let minutes = std::env::var("RANKTREE_SOAK_MINUTES").unwrap_or_default();
    let minutes: u64 = minutes.parse().expect("RANKTREE_SOAK_MINUTES is a number");
    run(|_, elapsed| elapsed < Duration::from_secs(60 * minutes));
}

/// Ends writers and readers, also when a round fails: the scope waits for them.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn run(goes_on: impl Fn(usize, Duration) -> bool) {
    let mut random = Random::seeded();
    let mut world = World::start();
    let urls = world.cluster.urls();
    let recorder = Recorder::start(&urls);
    let (writes, answers) = (Writes::default(), Answers::default());
    Writes::begin(&urls);
    for node in &world.nodes {
        wait_applied(&node.client(), &recorder.last());
    }
    let (bases, should_end) = (RwLock::new(world.bases()), AtomicBool::new(false));
    let mut done: BTreeMap<Disturbance, usize> = BTreeMap::new();
    let started = Instant::now();
    thread::scope(|scope| {
        let (writes, answers, bases, should_end, recorder, urls) =
            (&writes, &answers, &bases, &should_end, &recorder, &urls);
        for _ in 0..2 {
            let [one, other] = [(); 2].map(|()| Random::new(random.next()));
            scope.spawn(move || writes.publish_until(urls, should_end, one));
            scope.spawn(move || writes.put_until(bases, should_end, other));
        }
        let its_random = Random::new(random.next());
        scope.spawn(move || writes.define_and_drop_until(urls, bases, should_end, its_random));
        for node in 0..world.nodes.len() {
            let random = Random::new(random.next());
            scope.spawn(move || read(node, bases, recorder, answers, should_end, random));
        }
        let _ends = EndsOnDrop(should_end);
        let mut rounds = 0;
        while goes_on(rounds, started.elapsed()) {
            let (disturbance, victim) = (ALL[rounds % ALL.len()], random.index(3));
            println!("{:6.1} s: {disturbance:?} {victim}", started.elapsed().as_secs_f64());
            disturb(&mut world, disturbance, victim, bases, &mut random);
            world.wait_ready();
            *done.entry(disturbance).or_default() += 1;
            rounds += 1;
        }
    });
    finish(world, recorder, &writes, answers, done.values().sum());
    println!("disturbed: {done:?} in {:.0} s", started.elapsed().as_secs_f64());
}

/// Looks whether all was right.
///
/// # Arguments
/// `rounds`: disturbances, after each of which all nodes were ready.
fn finish(mut world: World, recorder: Recorder, writes: &Writes, answers: Answers, rounds: usize) {
    let streams = World::streams();
    let ends: Vec<u64> = streams
        .iter()
        .map(|stream| world.cluster.info(stream).expect("all servers are up").state.last_sequence)
        .collect();
    wait_until("all messages are recorded", || recorder.last() == ends);
    // Each node answers from its own copies where it has them, so that the lists show both copies of a shard.
    for (node, served) in world.nodes.iter().enumerate() {
        let client = served.client();
        wait_applied(&client, &ends);
        let body = client.get(&format!("/v1/boards/{ARENA}/top?limit=1000")).1;
        let last = Answer { node, board: ARENA, question: Question::All, body };
        answers.given.lock().expect("no panic").push(last);
    }
    let oracle = Oracle::new(recorder.finish());
    let wrong =
        [writes.wrong.lock().expect("no panic").clone(), answers.wrong.into_inner().expect("no panic")];
    assert!(wrong.iter().all(Vec::is_empty), "{}", wrong.concat().join("\n"));
    let answers_given = answers.given.into_inner().expect("no panic");
    for answer in &answers_given {
        if let Err(problem) = oracle.check(answer) {
            panic!(
                "node {}, {} {:?}: {problem}\n{}",
                answer.node, answer.board, answer.question, answer.body
            );
        }
    }
    for node in 0..world.nodes.len() {
        let given = answers_given.iter().filter(|answer| answer.node == node).count();
        assert!(given > rounds, "node {node} has given {given} answers in {rounds} rounds");
    }
    let acknowledged = writes.acknowledged.lock().expect("no panic");
    assert!(acknowledged.len() > rounds, "{} writes in {rounds} rounds", acknowledged.len());
    for write in acknowledged.iter() {
        let stored = oracle.logs()[write.shard].get(write.sequence - 1);
        let holds = |job: &Value| job["meta"]["id"] == write.id && job["member"] == *write.member;
        let Some(Stored::Jobs(jobs)) = stored else { panic!("{write:?} is {stored:?}") };
        assert_eq!(jobs.iter().filter(|job| holds(job)).count(), 1, "{write:?} is not in {jobs:?}");
        // Of several jobs of one member in a message, only the last is easily known.
        let of_member = jobs.iter().filter(|job| job["member"] == *write.member).count();
        if let (Some(score), 1) = (write.score, of_member) {
            let expected = oracle.score(write.shard, write.sequence, ARENA, &write.member);
            assert_eq!(expected, Some(score), "{write:?}");
        }
    }
    println!(
        "{} answers are exact, {} acknowledged writes are there, the season had {} lives; without an answer: {:?}",
        answers_given.len(),
        acknowledged.len(),
        writes.lives.load(Ordering::SeqCst),
        answers.not_given.into_inner().expect("no panic"),
    );
    for node in &mut world.nodes {
        assert!(node.terminate().success());
        assert!(!node.log().contains("is halted"), "{}", node.log());
        node.verify();
    }
}
