//! Jobs that wait for the definition of their board. Whenever it comes, in whatever batches, and over whatever crashes,
//! a member's jobs take effect in the order of the stream: in the end all is as if every board had been there first.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use parking_lot::RwLock;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::board::Definition;
use crate::job::{Job, Op, RejectCode};
use crate::state::{Incarnation, Shard};
use crate::storage::codec::ParkedRecord;
use crate::storage::{Commit, Store, TreesFrom, recover};
use crate::types::{Sequence, ShardId, Timestamp, count};
use crate::writer::apply::apply;
use crate::writer::parking::{OWN_LINES, ParkedJob, Parking, Place, SHARED_LINES};
use crate::writer::plan::Planner;
use crate::writer::tests::build::{bare, board, job, leave_all, race, strokes};
use crate::writer::tests::harness::{check, open, time};
use crate::writer::tests::model::Model;
use crate::writer::tests::random::{BOARDS, jobs};
use crate::writer::{BadJob, JobOutcome, Later, Message, Payload, Registry};

/// Lines in random histories: so few that most members come to share theirs.
const FEW_LINES: (usize, u32) = (2, 2);

/// A shard whose definitions come through its queue.
struct Fed {
    folder: TempDir,
    store: Option<Store>,
    shard: Arc<RwLock<Shard>>,
    parking: Option<Parking>,
    /// What was described, so that it can be read again: the wire's form belongs to queues.
    described: RefCell<HashMap<Vec<u8>, Job>>,
    /// Messages of the next batch, and which of them somebody waits for.
    next: Vec<(Payload, bool)>,
    last: u64,
    boards_max: usize,
    /// How many are members' own, and how many are shared.
    lines: (usize, u32),
    rejects: BTreeMap<&'static str, u64>,
    model: Model,
    model_rejects: BTreeMap<&'static str, u64>,
    /// Whether it is to be compared with a replica.
    has_replica: bool,
    /// Every message so far.
    history: Vec<Payload>,
    /// What the shard was at the end of batches.
    states: BTreeMap<u64, String>,
    /// Outcomes of jobs that waited, asked for since the last restart.
    later: Vec<Later>,
}

fn copy_of(payload: &Payload) -> Payload {
    match payload {
        Payload::Jobs(jobs) => Payload::Jobs(jobs.clone()),
        Payload::Define { board, incarnation, number, definition } => Payload::Define {
            board: board.clone(),
            incarnation: *incarnation,
            number: *number,
            definition: Arc::clone(definition),
        },
        Payload::Drop { board, incarnation, number } => {
            Payload::Drop { board: board.clone(), incarnation: *incarnation, number: *number }
        }
        Payload::Free { jobs } => Payload::Free { jobs: *jobs },
    }
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
            lines: (OWN_LINES, SHARED_LINES),
            rejects: BTreeMap::new(),
            model,
            model_rejects: BTreeMap::new(),
            has_replica: true,
            history: Vec::new(),
            states: BTreeMap::new(),
            later: Vec::new(),
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

    fn read(&self, record: ParkedRecord) -> (Place, ParkedJob) {
        let ParkedRecord { sequence, index, timestamp, job } = record;
        let job = self.described.borrow().get(&job).cloned().expect("it was described");
        ((sequence, index), ParkedJob { timestamp, job })
    }

    fn load_parking(&mut self) {
        let mut parking = Parking::new(true, Arc::default());
        parking.boards_max = self.boards_max;
        (parking.own_lines, parking.shared_lines) = self.lines;
        let lines = self.store().parked_lines().expect("readable").into_iter().map(|line| {
            let (place, parked) = self.read(line.first);
            (line.line, line.jobs, place, parked)
        });
        let shard = self.shard.read();
        parking.load(lines, |board| shard.board(board.as_str()).is_some());
        drop(shard);
        self.parking = Some(parking);
    }

    fn say(&mut self, jobs: Vec<Job>, asks: bool) {
        let now = time(self.last + count(self.next.len()) + 1).as_micros();
        for job in &jobs {
            if let Err(code) = self.model.apply(job, now) {
                *self.model_rejects.entry(code.name()).or_default() += 1;
            }
        }
        self.next.push((Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect()), asks));
    }

    /// Says jobs that the model is not told of.
    fn say_unseen(&mut self, jobs: Vec<Job>) {
        self.next.push((Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect()), false));
    }

    fn define(&mut self, name: &str) {
        // Any number of its own for each board, and the same whenever it is brought again.
        let incarnation = Incarnation(name.bytes().map(u64::from).sum());
        let definition = definition(name);
        self.next
            .push((Payload::Define { board: board(name), incarnation, number: None, definition }, false));
    }

    fn free(&mut self, jobs: usize) {
        self.next.push((Payload::Free { jobs }, false));
    }

    /// Plans and commits what was said, and applies it unless the process dies first.
    fn batch(&mut self, dies: bool) {
        let mut messages = Vec::new();
        let mut answers = Vec::new();
        for (payload, asks) in std::mem::take(&mut self.next) {
            self.last += 1;
            if self.has_replica {
                self.history.push(copy_of(&payload));
            }
            let (answer, answered) = asks.then(oneshot::channel).unzip();
            answers.extend(answered);
            messages.push(Message {
                sequence: Sequence(self.last),
                timestamp: time(self.last),
                hash: self.last,
                payload,
                bytes: 0,
                answer: answer.map(Into::into),
            });
        }
        if !messages.is_empty() {
            let parking = self.parking.take();
            let plan = {
                let shard = self.shard.read();
                let describe = |job: &Job| {
                    let bytes = format!("{job:?}").into_bytes();
                    self.described.borrow_mut().insert(bytes.clone(), job.clone());
                    bytes
                };
                let parked = |line, from, limit| {
                    let records = self.store().parked_in(line, from, limit).expect("readable");
                    Ok(records.into_iter().map(|record| self.read(record)).collect())
                };
                let planner = Planner {
                    shard: &shard,
                    id: ShardId(0),
                    shards: 1,
                    registry: &Registry::new(true),
                    time: Timestamp::default(),
                    describe: &describe,
                    parked: &parked,
                };
                planner.plan(messages, parking)
            };
            assert_eq!(plan.unreadable, None);
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
            self.parking.as_mut().expect("it was given back").note_committed();
            if !dies {
                for step in plan.steps {
                    apply(&self.shard, step).1.send();
                }
                for mut answered in answers {
                    let outcome = answered.try_recv().expect("it is answered").expect("it is committed");
                    self.later.extend(outcome.jobs.into_iter().filter_map(|job| match job {
                        JobOutcome::Parked(later) => Some(later),
                        JobOutcome::Applied(_) | JobOutcome::Rejected(_) => None,
                    }));
                }
            }
        }
        if dies {
            self.restart();
        }
        if self.has_replica && self.last > 0 {
            let state = self.state();
            self.states.insert(self.last, state);
        }
    }

    /// All that a replica must agree in: boards, entries, what waits, and rejects.
    fn state(&self) -> String {
        use std::fmt::Write as _;
        let mut state = String::new();
        let shard = self.shard.read();
        for (name, board) in shard.boards() {
            let tree = shard.tree(board.all).expect("a board has a tree");
            let known = tree.known();
            let entries: BTreeMap<Vec<u8>, _> =
                known.map(|handle| (shard.members.id(handle).to_vec(), tree.entry(handle))).collect();
            writeln!(state, "{name} {entries:?}").expect("memory can be written to");
        }
        let rejects = self.store().rejects(usize::MAX).expect("readable");
        let lines = self.store().parked_lines().expect("readable").into_iter().map(|line| line.line);
        let waiting: Vec<_> = lines
            .map(|line| (line, self.store().parked_in(line, (Sequence(0), 0), usize::MAX).expect("readable")))
            .collect();
        writeln!(state, "{} {waiting:?} {rejects:?}", self.waiting()).expect("memory can be written to");
        state
    }

    /// What is in memory is lost; what is on disk is read, and as many jobs wait as before.
    fn restart(&mut self) {
        let waiting = self.waiting();
        self.later.clear();
        self.store = None;
        let store = open(self.folder.path()).expect("the directory opens");
        let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the shard loads");
        self.shard = Arc::new(RwLock::new(recovered.shard));
        self.store = Some(store);
        self.load_parking();
        assert_eq!(self.waiting(), waiting);
    }

    /// Frees what need not wait any longer, a few jobs at a time.
    fn free_all(&mut self) {
        self.batch(false);
        while self.parking.as_ref().expect("it is there between batches").has_ready() {
            self.free(2);
            self.batch(false);
        }
    }

    /// A replica that gets each message in a batch of its own, and never restarts, is the same at every message.
    fn check_replica(&self) {
        let mut replica = Self::new(&[]);
        (replica.boards_max, replica.lines) = (self.boards_max, self.lines);
        replica.load_parking();
        for payload in &self.history {
            replica.next.push((copy_of(payload), false));
            replica.batch(false);
        }
        for (sequence, state) in &self.states {
            assert_eq!(replica.states.get(sequence), Some(state), "after message {sequence}");
        }
    }

    /// All is as if every board had been there first.
    fn check(&mut self) {
        self.free_all();
        assert_eq!(self.waiting(), 0);
        assert!(self.store().parked_lines().expect("readable").is_empty());
        for later in self.later.drain(..) {
            let freed = later.outcome().now_or_never().expect("it was told");
            assert!(freed.is_some(), "who waits for a job is told what came of it");
        }
        check(&mut self.shard.write(), self.store(), &self.model, self.last);
        assert_eq!(self.rejects, self.model_rejects);
        self.restart();
        check(&mut self.shard.write(), self.store(), &self.model, self.last);
    }
}

#[derive(Debug, Clone)]
enum Event {
    /// With somebody who waits for them, or nobody.
    Jobs(Vec<Job>, bool),
    /// Also of a board that is there: whoever brings a definition may bring it twice.
    Define(&'static str),
    Free(usize),
    EndBatch,
    Restart,
    /// The batch is committed, and the process dies before it is applied.
    Die,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => (prop::collection::vec(jobs(5), 1..4), any::<bool>()).prop_map(|(jobs, asks)| Event::Jobs(jobs, asks)),
        2 => prop::sample::select(BOARDS.to_vec()).prop_map(Event::Define),
        2 => (1_usize..5).prop_map(Event::Free),
        3 => Just(Event::EndBatch),
        1 => Just(Event::Restart),
        1 => Just(Event::Die),
    ];
    prop::collection::vec(event, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// With few lines, and a definition that frees three jobs.
    #[test]
    fn whenever_definitions_come_the_end_is_as_if_they_had_come_first(
        events in events(),
        rest in Just(BOARDS.to_vec()).prop_shuffle(),
    ) {
        let mut fed = Fed::new(&BOARDS);
        fed.lines = FEW_LINES;
        fed.load_parking();
        for event in events {
            match event {
                Event::Jobs(jobs, asks) => fed.say(jobs, asks),
                Event::Define(name) => fed.define(name),
                Event::Free(jobs) => fed.free(jobs),
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
        fed.check_replica();
    }
}

/// A member's later jobs wait behind the first, also those that name no board or a known one; other members' do not.
#[test]
fn who_waits_waits_with_all_that_comes_later() {
    let mut fed = Fed::new(&["auto", "more"]);
    fed.define("more");
    fed.say(vec![job("m", &[("more", &[1])]), job("n", &[("more", &[2])])], false);
    fed.say(vec![job("m", &[("auto", &[1])])], true);
    fed.batch(false);
    fed.say(
        vec![leave_all("m"), job("m", &[("more", &[7])]).op(Op::Incr), job("n", &[("more", &[5])])],
        false,
    );
    fed.say(vec![bare(Op::Hide, "m", &["more"])], false);
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
    // The model knows nothing of those, and counts them neither.
    fed.say_unseen(vec![job("m", &[("race", &[1, 1])]), job("n", &[("strokes", &[1])])]);
    fed.batch(false);
    fed.say(vec![job("m", &[("auto", &[3])]), job("m", &[("auto", &[4])]).op(Op::Incr)], false);
    fed.batch(true);
    assert_eq!(fed.waiting(), 4);
    fed.define("more");
    fed.free_all();
    assert_eq!(fed.waiting(), 0);
    fed.say_unseen(vec![job("o", &[("race", &[1, 1])])]);
    fed.batch(false);
    let rejects = fed.store().rejects(10).expect("readable");
    assert!(rejects.iter().all(|reject| reject.code == RejectCode::UnknownBoard), "{rejects:?}");
    assert!(rejects.iter().all(|reject| reject.detail.contains("limit")), "{rejects:?}");
    assert_eq!(fed.rejects, BTreeMap::from([("unknown_board", 3)]));
    fed.rejects.clear();
    fed.check();
    fed.check_replica();
}

/// Room that a drop makes is room for what waits: it waits again.
#[test]
fn a_drop_has_jobs_wait_again_that_were_not_freed_yet() {
    let mut fed = Fed::new(&["auto"]);
    let jobs = |numbers: std::ops::Range<i64>| {
        numbers.map(|number| job(&format!("m{number}"), &[("auto", &[number])])).collect::<Vec<_>>()
    };
    fed.say_unseen(jobs(0..8));
    fed.define("auto");
    fed.batch(false);
    assert_eq!(fed.waiting(), 5, "a definition frees three");
    let incarnation = fed.shard.read().board("auto").expect("it is defined").incarnation;
    fed.next.push((Payload::Drop { board: board("auto"), incarnation, number: None }, false));
    fed.batch(false);
    fed.free(100);
    fed.batch(false);
    assert_eq!(fed.waiting(), 5);
    assert!(fed.shard.read().board("auto").is_none());
    let next = Incarnation(incarnation.0 + 1);
    let (board, incarnation, number) = (board("auto"), next, None);
    let define = Payload::Define { board, incarnation, number, definition: Arc::default() };
    fed.next.push((define, false));
    fed.free_all();
    let total = fed.shard.read().board_tree("auto").expect("it is defined").tree.len();
    assert_eq!((fed.waiting(), total), (0, 5));
    fed.check_replica();
}

/// However many jobs wait, none is rejected, and what a message frees is as much as it may and no more: one short step.
#[test]
fn however_many_jobs_wait_each_is_applied_and_no_step_is_long() {
    const JOBS: usize = 110_000;
    const PER_MESSAGE: usize = 1_000;
    // Too many for the model, which sorts to tell a rank.
    let mut fed = Fed::new(&[]);
    fed.has_replica = false;
    fed.define("more");
    let id = |number: usize| format!("member-{number:06}");
    for first in (0..JOBS).step_by(PER_MESSAGE) {
        let score = i64::try_from(first / 10).expect("small");
        let of_message = first..first + PER_MESSAGE;
        fed.say_unseen(of_message.map(|number| job(&id(number), &[("auto", &[score])])).collect());
        fed.batch(false);
    }
    assert_eq!(fed.waiting(), JOBS);
    // One for an unknown board, and one behind another. Nobody is refused.
    fed.say_unseen(vec![job("other", &[("auto", &[1])]), job(&id(7), &[("more", &[1])])]);
    fed.batch(true);
    assert_eq!((fed.waiting(), fed.rejects.len()), (JOBS + 2, 0));
    let listed = |fed: &Fed, name| fed.shard.read().board_tree(name).expect("it is defined").tree.len();
    fed.define("auto");
    fed.batch(false);
    assert_eq!(listed(&fed, "auto"), 3, "a definition frees three");
    let (mut longest, started) = (Duration::ZERO, Instant::now());
    while fed.waiting() > 0 {
        let waiting = fed.waiting();
        fed.free(PER_MESSAGE);
        let began = Instant::now();
        fed.batch(false);
        longest = longest.max(began.elapsed());
        assert_eq!(fed.waiting(), waiting.saturating_sub(PER_MESSAGE));
        if fed.waiting() == 50_000 {
            fed.restart();
        }
    }
    println!(
        "{JOBS} jobs were freed in {:?}: read, planned, committed and applied; the longest batch took {longest:?}",
        started.elapsed()
    );
    assert_eq!((listed(&fed, "auto"), listed(&fed, "more")), (count(JOBS) + 1, 1));
    fed.restart();
    assert_eq!((fed.waiting(), listed(&fed, "auto"), listed(&fed, "more")), (0, count(JOBS) + 1, 1));
}

/// Messages of jobs free as many as they bring: a shard that is never idle frees what waits, too.
#[test]
fn messages_of_jobs_free_what_waits() {
    let mut fed = Fed::new(&["auto", "more"]);
    fed.define("more");
    fed.say((0..20).map(|number| job(&format!("m{number}"), &[("auto", &[number])])).collect(), false);
    fed.define("auto");
    fed.batch(false);
    assert_eq!(fed.waiting(), 17);
    for more in 0..4 {
        fed.say(vec![job("n", &[("more", &[more])]), job("o", &[("more", &[more])])], more % 2 == 0);
        fed.batch(false);
        assert_eq!(fed.waiting(), 17 - 2 * (usize::try_from(more).expect("small") + 1));
    }
    fed.check();
    fed.check_replica();
}
