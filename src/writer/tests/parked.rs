//! Jobs that wait for the definition of their board. Whenever it comes, in whatever batches, and over whatever crashes,
//! a member's jobs take effect in the order of the stream: in the end all is as if every board had been there first.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::board::Definition;
use crate::job::{Job, Op, RejectCode};
use crate::state::{Incarnation, Shard};
use crate::storage::codec::ParkedRecord;
use crate::storage::{Commit, Store, TreesFrom, recover};
use crate::types::{Sequence, ShardId, Timestamp, count};
use crate::writer::apply::apply;
use crate::writer::parking::{ParkedJob, Parking};
use crate::writer::plan::Planner;
use crate::writer::tests::build::{bare, board, job, leave_all, race, strokes};
use crate::writer::tests::harness::{check, open, time};
use crate::writer::tests::model::Model;
use crate::writer::tests::random::{BOARDS, jobs};
use crate::writer::{BadJob, Message, Payload, Registry};

/// A shard whose definitions come through its queue.
struct Fed {
    folder: TempDir,
    store: Option<Store>,
    shard: Arc<RwLock<Shard>>,
    parking: Option<Parking>,
    /// What was described, so that it can be read again: the wire's form belongs to queues.
    described: RefCell<HashMap<Vec<u8>, Job>>,
    /// Messages of the next batch.
    next: Vec<Payload>,
    last: u64,
    boards_max: usize,
    rejects: BTreeMap<&'static str, u64>,
    model: Model,
    model_rejects: BTreeMap<&'static str, u64>,
}

fn definition(name: &str) -> Arc<Definition> {
    match name {
        "race" => race(),
        "strokes" => strokes(),
        _ => Arc::default(),
    }
}

impl Fed {
    /// # Arguments
    /// `boards`: those that will have been defined in the end.
    fn new(boards: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = open(folder.path()).expect("a new directory opens");
        let mut model = Model::default();
        for name in boards {
            model.create(&board(name), &definition(name));
        }
        let shard = Arc::new(RwLock::new(Shard::new(ShardId(0))));
        let mut fed = Self {
            folder,
            store: Some(store),
            shard,
            parking: None,
            described: RefCell::default(),
            next: Vec::new(),
            last: 0,
            boards_max: usize::MAX,
            rejects: BTreeMap::new(),
            model,
            model_rejects: BTreeMap::new(),
        };
        fed.load_parking();
        fed
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    fn waiting(&self) -> usize {
        self.parking.as_ref().expect("it is there between batches").len()
    }

    fn load_parking(&mut self) {
        let mut parking = Parking::new(true, Arc::default());
        parking.boards_max = self.boards_max;
        let read = |ParkedRecord { sequence, index, timestamp, job }: ParkedRecord| {
            let job = self.described.borrow().get(&job).cloned().expect("it was described");
            ((sequence, index), ParkedJob { timestamp, job })
        };
        parking.load(self.store().parked().expect("readable").into_iter().map(read));
        self.parking = Some(parking);
    }

    fn say(&mut self, jobs: Vec<Job>) {
        let now = time(self.last + count(self.next.len()) + 1).as_micros();
        for job in &jobs {
            if let Err(code) = self.model.apply(job, now) {
                *self.model_rejects.entry(code.name()).or_default() += 1;
            }
        }
        self.next.push(Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect()));
    }

    fn define(&mut self, name: &str) {
        // Any number of its own for each board, and the same whenever it is brought again.
        let incarnation = Incarnation(name.bytes().map(u64::from).sum());
        self.next.push(Payload::Define { board: board(name), incarnation, definition: definition(name) });
    }

    /// Plans and commits what was said, and applies it unless the process dies first.
    fn batch(&mut self, dies: bool) {
        let mut messages = Vec::new();
        for payload in self.next.drain(..) {
            self.last += 1;
            messages.push(Message {
                sequence: Sequence(self.last),
                timestamp: time(self.last),
                hash: self.last,
                payload,
                bytes: 0,
                answer: None,
            });
        }
        if !messages.is_empty() {
            let plan = {
                let shard = self.shard.read();
                let describe = |job: &Job| {
                    let bytes = format!("{job:?}").into_bytes();
                    self.described.borrow_mut().insert(bytes.clone(), job.clone());
                    bytes
                };
                let planner = Planner {
                    shard: &shard,
                    id: ShardId(0),
                    shards: 1,
                    registry: &Registry::new(true),
                    time: Timestamp::default(),
                    describe: &describe,
                };
                planner.plan(messages, self.parking.take())
            };
            self.parking = plan.parking;
            for reject in &plan.rejects {
                *self.rejects.entry(reject.code.name()).or_default() += 1;
            }
            let commit = Commit {
                applied: plan.applied,
                delta: plan.delta,
                rejects: plan.rejects,
                metadata: plan.metadata,
                dropped_trees: plan.dropped_trees,
                parked: plan.parked,
                unparked: plan.unparked,
                ..Commit::default()
            };
            self.store().commit(&commit, false).expect("the disk takes it");
            if !dies {
                for step in plan.steps {
                    apply(&self.shard, step);
                }
            }
        }
        if dies {
            self.restart();
        }
    }

    /// What is in memory is lost; what is on disk is read, and as many jobs wait as before.
    fn restart(&mut self) {
        let waiting = self.waiting();
        self.store = None;
        let store = open(self.folder.path()).expect("the directory opens");
        let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the shard loads");
        self.shard = Arc::new(RwLock::new(recovered.shard));
        self.store = Some(store);
        self.load_parking();
        assert_eq!(self.waiting(), waiting);
    }

    /// All is as if every board had been there first.
    fn check(&mut self) {
        self.batch(false);
        assert_eq!(self.waiting(), 0);
        assert!(self.store().parked().expect("readable").is_empty());
        check(&mut self.shard.write(), self.store(), &self.model, self.last);
        assert_eq!(self.rejects, self.model_rejects);
        self.restart();
        check(&mut self.shard.write(), self.store(), &self.model, self.last);
    }
}

#[derive(Debug, Clone)]
enum Event {
    Jobs(Vec<Job>),
    /// Also of a board that is there: whoever brings a definition may bring it twice.
    Define(&'static str),
    EndBatch,
    Restart,
    /// The batch is committed, and the process dies before it is applied.
    Die,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => prop::collection::vec(jobs(5), 1..4).prop_map(Event::Jobs),
        1 => prop::sample::select(BOARDS.to_vec()).prop_map(Event::Define),
        3 => Just(Event::EndBatch),
        1 => Just(Event::Restart),
        1 => Just(Event::Die),
    ];
    prop::collection::vec(event, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whenever_definitions_come_the_end_is_as_if_they_had_come_first(
        events in events(),
        rest in Just(BOARDS.to_vec()).prop_shuffle(),
    ) {
        let mut fed = Fed::new(&BOARDS);
        for event in events {
            match event {
                Event::Jobs(jobs) => fed.say(jobs),
                Event::Define(name) => fed.define(name),
                Event::EndBatch => fed.batch(false),
                Event::Restart => {
                    fed.batch(false);
                    fed.restart();
                }
                Event::Die => fed.batch(true),
            }
        }
        for name in rest {
            fed.define(name);
        }
        fed.check();
    }
}

/// A member's later jobs wait behind the first, also those that name no board or a known one; other members' do not.
#[test]
fn who_waits_waits_with_all_that_comes_later() {
    let mut fed = Fed::new(&["auto", "more"]);
    fed.define("more");
    fed.say(vec![job("m", &[("more", &[1])]), job("n", &[("more", &[2])])]);
    fed.say(vec![job("m", &[("auto", &[1])])]);
    fed.batch(false);
    fed.say(vec![leave_all("m"), job("m", &[("more", &[7])]).op(Op::Incr), job("n", &[("more", &[5])])]);
    fed.say(vec![bare(Op::Hide, "m", &["more"])]);
    fed.batch(true);
    assert_eq!(fed.waiting(), 4);
    let is_listed = |fed: &Fed, member: &str| {
        let shard = fed.shard.read();
        let tree = shard.board_tree("more").expect("it is defined");
        tree.entry(shard.members.get(member.as_bytes()).expect("it is known")).is_some()
    };
    assert!(is_listed(&fed, "m"), "what waits has not taken it away");
    fed.define("auto");
    fed.check();
}

/// Where no more boards can come, jobs that wait for one are rejected, and what waits behind them goes on.
#[test]
fn jobs_for_a_board_too_many_are_rejected_and_hold_nobody_up() {
    let mut fed = Fed::new(&["auto", "more"]);
    fed.boards_max = 2;
    fed.load_parking();
    fed.define("auto");
    fed.next
        .push(Payload::Jobs(vec![Ok(job("m", &[("race", &[1, 1])])), Ok(job("n", &[("strokes", &[1])]))]));
    fed.batch(false);
    // The model knows nothing of those, and counts them neither.
    fed.say(vec![job("m", &[("auto", &[3])]), job("m", &[("auto", &[4])]).op(Op::Incr)]);
    fed.batch(true);
    assert_eq!(fed.waiting(), 4);
    fed.define("more");
    fed.batch(false);
    assert_eq!(fed.waiting(), 0);
    fed.next.push(Payload::Jobs(vec![Ok(job("o", &[("race", &[1, 1])]))]));
    fed.batch(false);
    let rejects = fed.store().rejects(10).expect("readable");
    assert!(rejects.iter().all(|reject| reject.code == RejectCode::UnknownBoard), "{rejects:?}");
    assert!(rejects.iter().all(|reject| reject.detail.contains("limit")), "{rejects:?}");
    assert_eq!(fed.rejects, BTreeMap::from([("unknown_board", 3)]));
    fed.rejects.clear();
    fed.check();
}

/// However long nobody defines a board, what waits for it is bounded, whosever jobs they are; and it is freed in one step
/// that is short enough for readers to wait for.
#[test]
fn what_waits_is_bounded_and_freed_at_once() {
    const FULL: usize = crate::writer::parking::PARKED_JOBS_MAX;
    // Too many for the model, which sorts to tell a rank.
    let jobs = |jobs: Vec<Job>| Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect());
    let mut fed = Fed::new(&[]);
    fed.define("more");
    let id = |number: usize| format!("member-{number:06}");
    for first in (0..FULL).step_by(1_000) {
        let score = i64::try_from(first / 10).expect("small");
        let of_message = first..first + 1_000;
        fed.next.push(jobs(of_message.map(|number| job(&id(number), &[("auto", &[score])])).collect()));
        fed.batch(false);
    }
    assert_eq!(fed.waiting(), FULL);
    // One for an unknown board, and one that would have to wait behind another. Who waits for nobody does not wait.
    fed.next.push(jobs(vec![
        job("other", &[("auto", &[1])]),
        job(&id(7), &[("more", &[1])]),
        job("other", &[("more", &[5])]),
    ]));
    fed.batch(true);
    assert_eq!((fed.waiting(), fed.rejects.remove("unknown_board")), (FULL, Some(2)));
    fed.define("auto");
    let started = std::time::Instant::now();
    fed.batch(false);
    println!("{FULL} jobs were freed in {:?}: planned, committed and applied", started.elapsed());
    let listed = |fed: &Fed, name| fed.shard.read().board_tree(name).expect("it is defined").tree.len();
    assert_eq!((fed.waiting(), listed(&fed, "auto"), listed(&fed, "more")), (0, count(FULL), 1));
    fed.restart();
    assert_eq!((fed.waiting(), listed(&fed, "auto"), listed(&fed, "more")), (0, count(FULL), 1));
    assert!(fed.store().parked().expect("readable").is_empty());
}
