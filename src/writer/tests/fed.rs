//! A shard whose definitions come through its queue, driven a batch at a time, and compared with a model and
//! a replica.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::FutureExt as _;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::board::Definition;
use crate::job::{Job, JobPlace};
use crate::state::{Incarnation, LogHashes, Shard, ShardTime};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::codec::RejectRecord;
use crate::storage::{Checkpoint, Commit, HashCommit, Store, TreesFrom, recover, verify};
use crate::types::{Sequence, ShardId, count};
use crate::writer::apply::apply;
use crate::writer::parked_places::ParkedPlaces;
use crate::writer::parking::{JOBS_OF_LINE_MAX, OWN_LINES, ParkedJob, Parking, SHARED_LINES};
use crate::writer::plan::{Planner, ReadOn};
use crate::writer::stored_parked::{self, read_line, read_parked};
use crate::writer::tests::build::{board, race, strokes};
use crate::writer::tests::compare::profiles;
use crate::writer::tests::harness::{check, open, time};
use crate::writer::tests::model::Model;
use crate::writer::tests::source::copy_of;
use crate::writer::{BadJob, JobOutcome, Message, ParkedOutcome, Payload, Registry};

/// So many parked jobs are compared with what readers know of them, after each batch.
const CHECKED_MAX: usize = 200;

/// A shard whose definitions come through its queue.
pub struct Fed {
    pub folder: TempDir,
    pub store: Option<Store>,
    pub shard: Arc<StateLock>,
    pub parking: Option<Parking>,
    /// What readers know of parked jobs.
    places: ParkedPlaces,
    /// Lines that were read, and jobs in them.
    pub looks: Cell<usize>,
    pub reads: Cell<usize>,
    /// Messages of the next batch, and which of them somebody waits for.
    pub next: Vec<(Payload, bool)>,
    pub last: u64,
    pub boards_max: usize,
    /// How many are members' own, and how many are shared.
    pub lines: (usize, u32),
    pub jobs_of_line_max: usize,
    pub rejects: BTreeMap<&'static str, u64>,
    pub model: Model,
    pub model_rejects: BTreeMap<&'static str, u64>,
    /// Whether it is to be compared with a replica.
    pub has_replica: bool,
    /// Every message so far.
    pub history: Vec<Payload>,
    /// How often each board was dropped.
    drops: BTreeMap<String, u64>,
    pub hashes: LogHashes,
    /// What the shard was at the end of batches.
    pub states: BTreeMap<u64, String>,
    /// Outcomes of jobs that waited, asked for since the last restart.
    pub parked_outcomes: Vec<ParkedOutcome>,
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
    pub fn new(boards: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = open(folder.path()).expect("a new directory opens");
        let mut model = Model::default();
        for name in boards {
            model.create(&board(name), &definition(name), 0);
        }
        let shard = Arc::new(StateLock::new(Shard::new(ShardId(0))));
        let mut fed = Self {
            folder,
            store: Some(store),
            shard,
            parking: None,
            places: ParkedPlaces::default(),
            looks: Cell::default(),
            reads: Cell::default(),
            next: Vec::new(),
            last: 0,
            boards_max: usize::MAX,
            lines: (OWN_LINES, SHARED_LINES),
            jobs_of_line_max: JOBS_OF_LINE_MAX,
            rejects: BTreeMap::new(),
            model,
            model_rejects: BTreeMap::new(),
            has_replica: true,
            history: Vec::new(),
            drops: BTreeMap::new(),
            hashes: LogHashes::default(),
            states: BTreeMap::new(),
            parked_outcomes: Vec::new(),
        };
        fed.load_parking();
        fed
    }

    pub fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    pub fn waiting(&self) -> usize {
        self.parking.as_ref().expect("it is there between batches").len()
    }

    pub fn load_parking(&mut self) {
        let mut parking = Parking::new(true, Arc::default());
        parking.boards_max = self.boards_max;
        (parking.own_lines, parking.shared_lines) = self.lines;
        parking.jobs_of_line_max = self.jobs_of_line_max;
        let lines = stored_parked::lines(self.store()).expect("readable");
        let names = stored_parked::names(self.store()).expect("readable");
        let shard = self.shard.read(Purpose::Read);
        parking.load(lines, names, |board| shard.board(board.as_str()).is_some());
        parking.set_at_board_limit(shard.board_count() >= self.boards_max);
        drop(shard);
        self.places.replace(parking.take_changes());
        self.parking = Some(parking);
        self.check_places(false);
    }

    /// Compares what readers know of parked jobs with those on disk.
    ///
    /// # Arguments
    /// `is_within`: while a batch is shown, jobs may count that it has unparked.
    fn check_places(&self, is_within: bool) {
        // With many, most of a test's time would go into this.
        if self.parking.as_ref().is_some_and(|parking| parking.len() > CHECKED_MAX) {
            return;
        }
        let (mut named, mut is_everywhere) = (BTreeSet::new(), false);
        let each = |record| {
            let ((sequence, _), parked) = read_parked(record).expect("it was encoded");
            is_everywhere |= parked.job.boards().next().is_none();
            for board in parked.job.boards() {
                assert!(self.places.holds(board, sequence), "{board} at {sequence:?}");
                assert!(!self.places.holds(board, Sequence(0)), "{board}");
                named.insert(board.clone());
            }
        };
        self.store().each_parked(each).expect("readable");
        if !is_within {
            for board in ["a", "b", "c", "d", "race", "strokes"].map(board) {
                let is_held = self.places.holds(&board, Sequence(u64::MAX));
                assert_eq!(is_held, is_everywhere || named.contains(&board), "{board}");
            }
        }
    }

    pub fn say(&mut self, jobs: Vec<Job>, asks: bool) {
        let now = time(self.last + count(self.next.len()) + 1).as_micros();
        for job in &jobs {
            if let Err(code) = self.model.apply(job, now) {
                *self.model_rejects.entry(code.name()).or_default() += 1;
            }
        }
        self.next.push((Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect()), asks));
    }

    /// Says jobs that the model is not told of.
    pub fn say_unseen(&mut self, jobs: Vec<Job>) {
        self.next.push((Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect()), false));
    }

    /// Any number of its own for each board, and the same whenever its definition is brought again.
    fn incarnation(&self, name: &str) -> Incarnation {
        let drops = self.drops.get(name).copied().unwrap_or_default();
        Incarnation(name.bytes().map(u64::from).sum::<u64>() + drops)
    }

    pub fn define(&mut self, name: &str) {
        let (board, incarnation, definition) = (board(name), self.incarnation(name), definition(name));
        self.next.push((Payload::Define { board, incarnation, number: None, definition }, false));
    }

    /// The next definition is that of another life. The model knows nothing of drops.
    pub fn drop_board(&mut self, name: &str) {
        let (board, incarnation) = (board(name), self.incarnation(name));
        self.next.push((Payload::Drop { board, incarnation, number: None }, false));
        *self.drops.entry(name.to_owned()).or_default() += 1;
    }

    pub fn unpark(&mut self, jobs: usize) {
        self.next.push((Payload::Unpark { jobs }, false));
    }

    /// Plans and commits what was said, and applies it unless the process dies first.
    #[expect(clippy::too_many_lines, reason = "the verbs in their order")]
    pub fn batch(&mut self, dies: bool) {
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
                traced: None,
            });
        }
        if !messages.is_empty() {
            let parking = self.parking.take();
            let plan = {
                let parked = |line: u32, from: JobPlace, limit: usize, read_on: ReadOn<'_>| {
                    self.looks.set(self.looks.get() + 1);
                    // The disk may take its time.
                    assert!(!self.shard.is_held(), "nobody is kept waiting while the disk is read");
                    let mut counted = |parked: &ParkedJob| {
                        self.reads.set(self.reads.get() + 1);
                        read_on(parked)
                    };
                    read_line(self.store(), line, from, limit, &mut counted)
                };
                let planner = Planner {
                    shard: &self.shard,
                    id: ShardId(0),
                    shards: 1,
                    registry: &Registry::new(true),
                    time: ShardTime::default(),
                    early: Cell::default(),
                    hash: Some(self.hashes.running),
                    read_parked: &parked,
                    read_profile: &|member| {
                        assert!(!self.shard.is_held(), "nobody is kept waiting while the disk is read");
                        self.store().profile(member.as_bytes()).map_err(|error| error.to_string())
                    },
                    read_metadata: &|tree, member| {
                        self.store().metadata(tree, member).map_err(|error| error.to_string())
                    },
                };
                planner.plan(messages, parking)
            };
            assert_eq!(plan.unreadable, None);
            self.parking = plan.parking;
            for reject in &plan.rejects {
                *self.rejects.entry(reject.code.name()).or_default() += 1;
            }
            let (running, kept) = plan.hash.expect("it was asked for");
            let dropped = self.hashes.advance(running, &kept);
            let commit = Commit {
                hashes: Some(HashCommit { running, kept, dropped }),
                applied: plan.applied,
                delta: plan.delta,
                rejects: plan.rejects,
                metadata: plan.metadata,
                profiles: plan.profiles,
                bans: plan.bans,
                last_jobs: plan.last_jobs,
                job_ids: plan.job_ids,
                versions: plan.versions,
                erased: plan.erased,
                dropped_trees: plan.dropped_trees,
                parked: plan.parked,
                unparked: plan.unparked,
                ..Commit::default()
            };
            self.store().commit(&commit, false).expect("the disk takes it");
            let parking = self.parking.as_mut().expect("it was given back");
            parking.note_committed();
            let changes = parking.take_changes();
            self.places.begin(&changes);
            self.check_places(true);
            self.places.end(&changes);
            self.check_places(false);
            if !dies {
                for step in plan.steps {
                    apply(&self.shard, step).1.send();
                }
                for mut answered in answers {
                    let outcome = answered.try_recv().expect("it is answered").expect("it is committed");
                    self.parked_outcomes.extend(outcome.jobs.into_iter().filter_map(|job| match job {
                        JobOutcome::Parked(outcome) => Some(outcome),
                        JobOutcome::Applied(_)
                        | JobOutcome::Changed(_)
                        | JobOutcome::Repeated(..)
                        | JobOutcome::WithProfile { .. }
                        | JobOutcome::Rejected(_) => None,
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
    pub fn state(&self) -> String {
        use std::fmt::Write as _;
        let mut state = String::new();
        let shard = self.shard.read(Purpose::Read);
        for (name, board) in shard.boards() {
            let tree = shard.tree(board.all).expect("a board has a tree");
            let known = tree.handles();
            let entries: BTreeMap<Vec<u8>, _> =
                known.map(|handle| (shard.members.id(handle).to_vec(), tree.entry(handle))).collect();
            writeln!(state, "{name} {entries:?}").expect("writing to memory does not fail");
        }
        let rejects = newest_rejects(self.store(), usize::MAX);
        let lines = self.store().parked_lines().expect("readable").into_iter().map(|line| line.line);
        let waiting: Vec<_> =
            lines.map(|line| (line, self.store().parked_in(line).expect("readable"))).collect();
        let has_ready = self.parking.as_ref().is_some_and(Parking::has_ready);
        writeln!(state, "{:?}", profiles(self.store())).expect("writing to memory does not fail");
        writeln!(state, "{} {has_ready} {waiting:?} {rejects:?} {:?}", self.waiting(), self.hashes)
            .expect("writing to memory does not fail");
        state
    }

    /// What is in memory is lost; what is on disk is read, and as many jobs wait as before.
    pub fn restart(&mut self) {
        let waiting = self.waiting();
        self.parked_outcomes.clear();
        self.store = None;
        let store = open(self.folder.path()).expect("the directory opens");
        let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the shard loads");
        self.hashes = store.log_hashes(recovered.shard.applied.sequence).expect("readable");
        self.shard = Arc::new(StateLock::new(recovered.shard));
        self.store = Some(store);
        self.load_parking();
        assert_eq!(self.waiting(), waiting);
    }

    /// Writes a checkpoint.
    pub fn checkpoint(&mut self) {
        self.batch(false);
        let checkpoint = Checkpoint::begin(&mut self.shard.write(Purpose::Apply));
        checkpoint.write(self.store(), &self.shard).expect("the disk takes it");
        checkpoint.complete(&mut self.shard.write(Purpose::CheckpointEnd));
    }

    /// Unparks what need not wait any longer, a few jobs at a time.
    pub fn free_all(&mut self) {
        self.batch(false);
        while self.parking.as_ref().expect("it is there between batches").has_ready() {
            self.unpark(2);
            self.batch(false);
        }
    }

    /// A replica that gets each message in a batch of its own, and never restarts, is the same at every
    /// message.
    pub fn check_replica(&self) {
        let mut replica = Self::new(&[]);
        (replica.boards_max, replica.lines) = (self.boards_max, self.lines);
        replica.jobs_of_line_max = self.jobs_of_line_max;
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
    pub fn check(&mut self) {
        self.free_all();
        assert_eq!(self.waiting(), 0);
        assert!(self.store().parked_lines().expect("readable").is_empty());
        for outcome in self.parked_outcomes.drain(..) {
            let unparked = outcome.outcome().now_or_never().expect("it was told");
            unparked.expect("who waits for a job is told what came of it").expect("it was committed");
        }
        check(&mut self.shard.write(Purpose::Apply), self.store(), &self.model, self.last);
        assert_eq!(self.rejects, self.model_rejects);
        self.restart();
        check(&mut self.shard.write(Purpose::Apply), self.store(), &self.model, self.last);
        let (_, findings) = verify(self.store(), &|_, _, _| {}).expect("everything can be read");
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// The newest rejects, newest first.
pub fn newest_rejects(store: &Store, limit: usize) -> Vec<RejectRecord> {
    let mut all = store.rejects_after((Sequence(0), 0), usize::MAX).expect("readable");
    all.reverse();
    all.truncate(limit);
    all
}
