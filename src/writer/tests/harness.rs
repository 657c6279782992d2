//! One shard on a real directory, driven a verb at a time, so that a test can stop, fail and crash between
//! any two.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::board::Definition;
use crate::job::{Job, Op, RejectCode};
use crate::state::{Incarnation, Shard, ShardTime, TrimPoint, TrimSide};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::{
    Checkpoint, CheckpointPhase, Commit, Recovered, STAGED_FILE_BYTES, StorageError, StorageResources, Store,
    TreesFrom, mark_rebuilt, recover, verify,
};
use crate::types::{BoardName, MemberId, Score, Sequence, ShardId, Timestamp};
use crate::writer::apply::{Answers, apply_next};
use crate::writer::plan::{Plan, PlannedStep, Planner};
pub use crate::writer::tests::compare::{check, check_shard};
use crate::writer::tests::model::{Model, Place};
pub use crate::writer::tests::say::Say;
use crate::writer::{
    BadJob, BoardOutcome, CommitFailed, JobOutcome, Message, MessageOutcome, OutcomeDetail, OutcomeSender,
    Payload, RegisteredBoard, Registry,
};

type Counts = Option<(u64, u64, u64, u64)>;
/// Of a member on each board that a job named, before it and after it.
type Places = Vec<(Counts, Counts)>;
type Told = Vec<Result<Places, RejectCode>>;
/// What a message is answered with.
#[derive(Default)]
struct Expected {
    jobs: Told,
    removed: u64,
    /// Whether places are not told.
    only_changed: bool,
}
type Answered = oneshot::Receiver<Result<MessageOutcome, CommitFailed>>;

pub struct Harness {
    pub folder: TempDir,
    pub store: Option<Arc<Store>>,
    pub shard: Arc<StateLock>,
    pub registry: Registry,
    pub model: Model,
    pub last: u64,
    pub rejected: u64,
    auto_create: bool,
    /// Whether commits are synced, as they are where no stream holds what they say.
    pub synced: bool,
    /// Where the files of a checkpoint end.
    pub staged_file_bytes: u64,
    /// The stream that messages are said to come from.
    pub stream: String,
    /// Committed, and not applied yet.
    pending: VecDeque<PlannedStep>,
    asked: Vec<(Answered, Expected)>,
    /// Of all jobs that were asked about and applied: whether each changed its boards.
    pub told_changes: Vec<Vec<bool>>,
    /// Boards whose next life is on its way.
    clearing: Vec<BoardName>,
    answers: Vec<Answers>,
    /// Drops on their way.
    dropping: Vec<(BoardName, Incarnation)>,
}

pub fn open(path: &std::path::Path) -> Result<Store, StorageError> {
    Store::open(path, ShardId(0), 1, &StorageResources::new(8 << 20, 16))
}

impl Harness {
    pub fn new(auto_create: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = open(folder.path()).expect("a new directory opens");
        Self {
            folder,
            store: Some(Arc::new(store)),
            shard: Arc::new(StateLock::new(Shard::new(ShardId(0)))),
            registry: Registry::new(auto_create),
            model: Model::default(),
            last: 0,
            rejected: 0,
            auto_create,
            synced: false,
            staged_file_bytes: STAGED_FILE_BYTES,
            stream: String::new(),
            pending: VecDeque::new(),
            asked: Vec::new(),
            told_changes: Vec::new(),
            clearing: Vec::new(),
            answers: Vec::new(),
            dropping: Vec::new(),
        }
    }

    pub fn store(&self) -> Arc<Store> {
        Arc::clone(self.store.as_ref().expect("the store is open"))
    }

    /// Plans, commits and applies a batch.
    pub fn batch(&mut self, says: &[Say]) {
        self.commit(says);
        self.apply_all();
    }

    /// Plans and commits a batch; the model follows. Nothing of it is applied yet.
    pub fn commit(&mut self, says: &[Say]) {
        self.apply_all();
        let Some(plan) = self.plan(says) else { return };
        let commit = Commit {
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
            jobs_rejected: self.rejected,
            rejects_dropped: Vec::new(),
            stream: self.stream.clone(),
            ..Commit::default()
        };
        self.store().commit(&commit, self.synced).expect("the disk takes it");
        self.pending = plan.steps.into();
    }

    /// `None`: the registry refused all of it, so no message came of it.
    pub fn plan(&mut self, says: &[Say]) -> Option<Plan> {
        let mut messages = Vec::new();
        let mut says_made = Vec::new();
        for say in says {
            // Clients define and drop through the registry, before their messages are fetched.
            let (payload, answer) = match say {
                Say::Jobs(jobs) => (jobs_payload(jobs), None),
                Say::Ask(jobs) | Say::AskWhetherChanged(jobs) => {
                    (jobs_payload(jobs), Some(oneshot::channel()))
                }
                Say::Define(name, definition) => {
                    let Ok(defined) = self.registry.define(name, Definition::clone(definition)) else {
                        continue;
                    };
                    let (crate::writer::Defined::Created(known)
                    | crate::writer::Defined::Changed(known)
                    | crate::writer::Defined::Same(known)) = defined;
                    if self.model.being_dropped.contains(name) {
                        self.model.begin_next_life(name);
                    }
                    self.model.defined.insert(name.clone(), Arc::clone(definition));
                    let (incarnation, definition) = (known.incarnation, known.definition);
                    (Payload::Define { board: name.clone(), incarnation, number: None, definition }, None)
                }
                Say::Drop(name) => {
                    let Some(incarnation) = self.registry.begin_drop(name.as_str()) else { continue };
                    self.model.defined.remove(name);
                    self.model.being_dropped.insert(name.clone());
                    self.dropping.push((name.clone(), incarnation));
                    (Payload::Drop { board: name.clone(), incarnation, number: None }, None)
                }
                Say::Clear(name) => {
                    let Some(known) = self.registry.begin_next_incarnation(name) else { continue };
                    *self.model.lives.entry(name.clone()).or_default() += 1;
                    self.clearing.push(name.clone());
                    self.model.defined.insert(name.clone(), Arc::clone(&known.definition));
                    let (incarnation, definition) = (known.incarnation, known.definition);
                    (Payload::Define { board: name.clone(), incarnation, number: None, definition }, None)
                }
                Say::Trim(name, place, members) => {
                    let Some(RegisteredBoard { incarnation, definition }) = self.registry.get(name.as_str())
                    else {
                        continue;
                    };
                    let point = trim_point(&definition, place);
                    let members =
                        members.iter().map(|id| MemberId::new(id.as_str()).expect("an id")).collect();
                    let board = name.clone();
                    (Payload::Trim { board, incarnation, point, members }, Some(oneshot::channel()))
                }
            };
            let life = match say {
                Say::Define(name, _) | Say::Drop(name) | Say::Clear(name) | Say::Trim(name, ..) => {
                    let definition = self.model.defined.get(name).cloned().unwrap_or_default();
                    (self.model.life(name), definition)
                }
                Say::Jobs(_) | Say::Ask(_) | Say::AskWhetherChanged(_) => (0, Arc::default()),
            };
            let detail = match say {
                Say::AskWhetherChanged(_) => OutcomeDetail::Changed,
                _ => OutcomeDetail::Rankings,
            };
            self.last += 1;
            let (answer, answered) = answer.unzip();
            messages.push(Message {
                sequence: Sequence(self.last),
                timestamp: time(self.last),
                hash: self.last,
                payload,
                bytes: 0,
                answer: answer.map(|answer| OutcomeSender::from(answer).telling(detail)),
                traced: None,
            });
            says_made.push((say, life, self.last, answered));
        }
        for (say, life, sequence, answered) in says_made {
            let mut expected = self.tell_model(say, &life, sequence);
            expected.only_changed = matches!(say, Say::AskWhetherChanged(_));
            if let Some(answered) = answered {
                self.asked.push((answered, expected));
            }
        }
        if messages.is_empty() {
            return None;
        }
        let store = self.store();
        let planner = Planner {
            shard: &self.shard,
            id: ShardId(0),
            shards: 1,
            registry: &self.registry,
            time: ShardTime::default(),
            early: Cell::default(),
            hash: None,
            read_parked: &|_, _, _, _| Ok(Vec::new()),
            read_profile: &|member| store.profile(member.as_bytes()).map_err(|error| error.to_string()),
            read_metadata: &|tree, member| store.metadata(tree, member).map_err(|error| error.to_string()),
        };
        Some(planner.plan(messages, None))
    }

    /// # Arguments
    /// `life`: of which the node knew the board when the message was made, and with what definition.
    fn tell_model(&mut self, say: &Say, life: &(u32, Arc<Definition>), sequence: u64) -> Expected {
        let now = time(sequence).as_micros();
        self.model.sequence = sequence;
        match say {
            Say::Jobs(jobs) | Say::Ask(jobs) | Say::AskWhetherChanged(jobs) => {
                let outcomes = jobs.iter().map(|job| {
                    let on: Vec<BoardName> = match &job.targets {
                        // Of a ban whose board is gone there is no board to tell.
                        crate::job::Targets::Boards(boards) => boards
                            .iter()
                            .filter(|(name, _)| !job.op.is_some_and(Op::is_ban) || self.model.has_board(name))
                            .map(|(name, _)| name.clone())
                            .collect(),
                        crate::job::Targets::EveryBoard => {
                            let on = self.model.boards.iter();
                            on.filter(|(_, board)| board.entries.contains_key(job.member.as_str()))
                                .map(|(name, _)| name.clone())
                                .collect()
                        }
                        crate::job::Targets::Profile(_) => Vec::new(),
                    };
                    let (id, model) = (job.member.as_str(), &self.model);
                    let before: Vec<_> = on.iter().map(|name| model.place_before(name, id)).collect();
                    let outcome = self.model.apply(job, now);
                    self.rejected += u64::from(outcome.is_err());
                    let after = on.iter().map(|name| self.model.place(name, id));
                    if job.targets == crate::job::Targets::EveryBoard {
                        // Only how many there are is told.
                        return outcome.map(|()| vec![(None, None); on.len()]);
                    }
                    outcome.map(|()| before.into_iter().zip(after).collect())
                });
                return Expected { jobs: outcomes.collect(), ..Expected::default() };
            }
            Say::Define(name, definition) => self.model.create(name, definition, life.0),
            Say::Clear(name) => self.model.create(name, &life.1, life.0),
            Say::Drop(name) => {
                if self.model.boards.get(name).is_some_and(|board| board.life <= life.0) {
                    self.model.boards.remove(name);
                }
            }
            Say::Trim(name, place, members) => {
                let board = self.model.boards.get_mut(name).filter(|board| board.life == life.0);
                let removed = board.map_or(0, |board| board.trim(place, members, now));
                return Expected { removed, ..Expected::default() };
            }
        }
        Expected::default()
    }

    /// Applies the next step of the committed batch, or several that are applied together; `false` if there
    /// is none.
    pub fn apply_one(&mut self) -> bool {
        let mut steps = std::mem::take(&mut self.pending).into_iter().peekable();
        let Some((_, answers)) = apply_next(&self.shard, &mut steps) else { return false };
        self.pending = steps.collect();
        self.answers.push(answers);
        if self.pending.is_empty() {
            self.end_batch();
        }
        true
    }

    pub fn apply_all(&mut self) {
        while self.apply_one() {}
    }

    fn end_batch(&mut self) {
        self.finish_drops();
        self.answers.drain(..).for_each(Answers::send);
        for (mut answered, expected) in self.asked.drain(..) {
            let outcome = answered.try_recv().expect("it was answered").expect("it was committed");
            assert_eq!(outcome.entries, expected.removed);
            self.told_changes.extend(outcome.jobs.iter().filter_map(changes));
            let told: Told = outcome.jobs.into_iter().map(told).collect();
            if expected.only_changed {
                let without_places = |told: Told| -> Vec<Result<(), RejectCode>> {
                    told.into_iter().map(|told| told.map(|_| ())).collect()
                };
                assert_eq!(without_places(told), without_places(expected.jobs));
            } else {
                assert_eq!(told, expected.jobs);
            }
        }
    }

    fn finish_drops(&mut self) {
        for name in self.clearing.drain(..) {
            if let Some(known) = self.registry.get(name.as_str()) {
                self.registry.finish_next_incarnation(&name, known.incarnation);
            }
        }
        for (name, incarnation) in self.dropping.drain(..) {
            self.model.being_dropped.remove(&name);
            self.registry.finish_drop(name.as_str(), incarnation);
        }
    }

    /// Writes a checkpoint; `between` may apply steps and commit batches, or fail it.
    pub fn checkpoint(
        &mut self,
        between: &mut dyn FnMut(&mut Self, CheckpointPhase) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.apply_all();
        let checkpoint = Checkpoint::begin(&mut self.shard.write(Purpose::Apply));
        let (store, shard) = (self.store(), Arc::clone(&self.shard));
        let written = checkpoint.write_in_slices(&store, &shard, self.staged_file_bytes, &mut |moment| {
            let went_on = between(self, moment);
            let shard = self.shard.read(Purpose::Read);
            if !shard.has_retired() {
                shard.check_handles().expect("every handle is accounted for, also during a checkpoint");
            }
            went_on
        });
        self.apply_all();
        match written {
            Ok(_) => checkpoint.complete(&mut self.shard.write(Purpose::CheckpointEnd)),
            Err(_) => checkpoint.abandon(&self.shard),
        }
        written.map(|_| ())
    }

    /// What is in memory is lost; what is on disk is read.
    pub fn restart(&mut self) {
        self.pending.clear();
        self.asked.clear();
        self.answers.clear();
        self.finish_drops();
        self.store = None;
        let store = open(self.folder.path()).expect("the directory opens");
        let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the shard loads");
        self.take_over(store, recovered);
    }

    pub fn take_over(&mut self, store: Store, recovered: Recovered) {
        let Recovered { mut shard, rebuilt, .. } = recovered;
        let names: Vec<BoardName> = rebuilt.into_iter().map(|(name, _)| name).collect();
        mark_rebuilt(&store, &mut shard, &names).expect("the disk takes it");
        self.registry = Registry::new(self.auto_create);
        self.registry.register_boards_of(&shard);
        self.model.defined =
            self.model.boards.iter().map(|(n, b)| (n.clone(), Arc::clone(&b.definition))).collect();
        self.shard = Arc::new(StateLock::new(shard));
        self.store = Some(Arc::new(store));
    }

    /// The state in memory is the model's, and the disk gives the same by every way there is.
    pub fn check_all(&mut self) {
        self.apply_all();
        self.check_memory();
        let store = self.store();
        for from in [TreesFrom::Pages, TreesFrom::Members] {
            let recovered = recover(&store, from, &|_, _, _| {}).expect("the shard loads");
            if from == TreesFrom::Pages {
                assert!(recovered.rebuilt.is_empty(), "{:?}", recovered.rebuilt);
            }
            assert!(recovered.incomplete_trees.is_empty(), "{:?}", recovered.incomplete_trees);
            let mut shard = recovered.shard;
            check(&mut shard, &store, &self.model, self.last);
        }
        let (_, findings) = verify(&store, &|_, _, _| {}).expect("everything can be read");
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(store.meta().expect("readable").expect("there").jobs_rejected, self.rejected);
    }

    pub fn check_memory(&mut self) {
        self.apply_all();
        let store = self.store();
        check(&mut self.shard.write(Purpose::Apply), &store, &self.model, self.last);
    }
}

pub fn time(sequence: u64) -> Timestamp {
    // Several messages share an instant, so that ties of time occur too.
    Timestamp::from_micros(1_000 + i64::try_from(sequence / 3).expect("small")).expect("in range")
}

/// As a node makes it of what a client asks for.
fn trim_point(definition: &Definition, place: &Place) -> TrimPoint {
    let score = Score::new(&place.score).expect("some keys");
    match &place.member {
        Some((reached, id)) => {
            let reached = Timestamp::from_micros(*reached).expect("in range");
            let words = definition.entry_words(&score, reached, id.as_bytes());
            TrimPoint { side: TrimSide::Worse, words, member: Some(id.as_bytes().into()) }
        }
        None => TrimPoint { side: TrimSide::Worse, words: definition.score_words(&score), member: None },
    }
}

fn jobs_payload(jobs: &[Job]) -> Payload {
    Payload::Jobs(jobs.iter().cloned().map(Ok::<_, BadJob>).collect())
}

/// Whether an applied job changed each of its boards, and the profile.
fn changes(outcome: &JobOutcome) -> Option<Vec<bool>> {
    let of = |boards: &[BoardOutcome]| boards.iter().map(|board| board.changed).collect::<Vec<_>>();
    match outcome {
        JobOutcome::Rejected(_) | JobOutcome::Parked(_) => None,
        JobOutcome::Changed(changed) => Some(vec![*changed]),
        JobOutcome::Applied(boards) | JobOutcome::Repeated(boards, _) => Some(of(boards)),
        JobOutcome::WithProfile { boards, changed, .. } => Some([of(boards), vec![*changed]].concat()),
    }
}

fn told(outcome: JobOutcome) -> Result<Places, RejectCode> {
    match outcome {
        JobOutcome::Changed(_) => Ok(Vec::new()),
        JobOutcome::Rejected(reject) => Err(reject.code),
        JobOutcome::Parked(_) => panic!("nothing waits where the registry decides"),
        JobOutcome::Applied(boards)
        | JobOutcome::Repeated(boards, _)
        | JobOutcome::WithProfile { boards, .. } => {
            let ranking = |ranking: crate::state::ShardRanking| {
                (ranking.better, ranking.tied, ranking.ahead, ranking.total)
            };
            Ok(boards
                .into_iter()
                .map(|board| (board.before.map(ranking), board.after.map(ranking)))
                .collect())
        }
    }
}
