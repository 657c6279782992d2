//! A shard whose messages are planned, committed and applied as a test hands them over, without a queue.

use std::cell::Cell;
use std::sync::Arc;

use tempfile::TempDir;

use crate::board::Definition;
use crate::job::RejectCode;
use crate::state::{EarlyInstances, LogHash, Shard, ShardTime, TreeId};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::{Checkpoint, Commit, Store, TreesFrom, recover, verify};
use crate::types::{Sequence, ShardId, Timestamp, count};
use crate::writer::apply::{Answers, apply};
use crate::writer::plan::{PlannedStep, Planner};
use crate::writer::tests::build::board;
use crate::writer::tests::harness::open;
use crate::writer::{Defined, Message, Payload, RegisteredBoard, Registry};

pub struct PlannedShard {
    folder: TempDir,
    store: Option<Store>,
    pub shard: Arc<StateLock>,
    registry: Registry,
    /// What is known of the time after the last message.
    pub time: ShardTime,
    early: EarlyInstances,
    last: u64,
    /// Of all jobs that were rejected.
    pub rejects: Vec<RejectCode>,
    /// Trees whose metadata were deleted as a range.
    pub dropped_trees: Vec<TreeId>,
    pub hash: LogHash,
    /// Entries that the last batch changed.
    pub changes: usize,
}

impl PlannedShard {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = open(folder.path()).expect("a new directory opens");
        Self {
            folder,
            store: Some(store),
            shard: Arc::new(StateLock::new(Shard::new(ShardId(0)))),
            registry: Registry::new(true),
            time: ShardTime::default(),
            early: EarlyInstances::default(),
            last: 0,
            rejects: Vec::new(),
            dropped_trees: Vec::new(),
            hash: LogHash::default(),
            changes: 0,
        }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    /// The command that gives a board this definition.
    pub fn define(&self, name: &str, definition: &Definition) -> Payload {
        let defined = self.registry.define(&board(name), definition.clone());
        let (Defined::Created(known) | Defined::Changed(known) | Defined::Same(known)) =
            defined.expect("it may be defined");
        let (incarnation, definition) = (known.incarnation, known.definition);
        Payload::Define { board: board(name), incarnation, number: None, definition }
    }

    /// The command that drops a board.
    pub fn drop_board(&self, name: &str) -> Payload {
        let incarnation = self.registry.begin_drop(name).expect("it is there");
        self.registry.finish_drop(name, incarnation);
        Payload::Drop { board: board(name), incarnation, number: None }
    }

    /// What the registry knows of a board.
    pub fn known(&self, name: &str) -> RegisteredBoard {
        self.registry.get(name).expect("it is there")
    }

    /// A message that follows the last one.
    pub fn message(&mut self, timestamp: Timestamp, payload: Payload) -> Message {
        self.last += 1;
        Message {
            sequence: Sequence(self.last),
            timestamp,
            hash: self.last,
            payload,
            bytes: 0,
            answer: None,
            traced: None,
        }
    }

    /// Plans, commits and applies a batch.
    pub fn run(&mut self, messages: Vec<Message>) {
        let steps = self.plan(messages);
        let answers: Vec<_> = steps.into_iter().map(|step| apply(&self.shard, step).1).collect();
        answers.into_iter().for_each(Answers::send);
    }

    /// Plans and commits a batch, and leaves its steps to be applied.
    pub fn plan(&mut self, messages: Vec<Message>) -> Vec<PlannedStep> {
        let planner = Planner {
            shard: &self.shard,
            id: ShardId(0),
            shards: 1,
            registry: &self.registry,
            time: self.time,
            early: Cell::new(std::mem::take(&mut self.early)),
            hash: Some(self.hash),
            read_parked: &|_, _, _, _| Ok(Vec::new()),
            read_profile: &|_| Ok(None),
            read_metadata: &|tree, member| {
                self.store().metadata(tree, member).map_err(|error| error.to_string())
            },
        };
        let plan = planner.plan(messages, None);
        self.rejects.extend(plan.rejects.iter().map(|reject| reject.code));
        self.dropped_trees.extend(&plan.dropped_trees);
        let commit = Commit {
            applied: plan.applied,
            time: plan.time,
            delta: plan.delta,
            rejects: plan.rejects,
            metadata: plan.metadata,
            bans: plan.bans,
            versions: plan.versions,
            last_jobs: plan.last_jobs,
            job_ids: plan.job_ids,
            dropped_trees: plan.dropped_trees,
            jobs_rejected: count(self.rejects.len()),
            ..Commit::default()
        };
        self.store().commit(&commit, false).expect("the disk takes it");
        self.time = plan.time;
        self.early = plan.early;
        self.changes = plan.changes;
        self.hash = plan.hash.expect("it was asked for").0;
        plan.steps
    }

    pub fn checkpoint(&self) {
        let checkpoint = Checkpoint::begin(&mut self.shard.write(Purpose::Apply));
        checkpoint.write(self.store(), &self.shard).expect("it is written");
        checkpoint.complete(&mut self.shard.write(Purpose::CheckpointEnd));
    }

    /// Opens the directory again, as after a crash. No page may be damaged.
    pub fn restart(&mut self, from: TreesFrom) {
        self.store = None;
        let store = open(self.folder.path()).expect("the directory opens");
        let recovered = recover(&store, from, &|_, _, _| {}).expect("the shard loads");
        assert!(
            matches!(from, TreesFrom::Members) || recovered.rebuilt.is_empty(),
            "{:?}",
            recovered.rebuilt
        );
        self.registry = Registry::new(true);
        self.registry.register_boards_of(&recovered.shard);
        // As a writer resumes.
        assert_eq!(recovered.shard.known_time(), self.time, "the time survives");
        self.early = recovered.shard.early_instances();
        self.shard = Arc::new(StateLock::new(recovered.shard));
        self.store = Some(store);
    }

    /// What `verify` finds.
    pub fn findings(&self) -> Vec<String> {
        verify(self.store(), &|_, _, _| {}).expect("readable").1
    }
}
