//! A shard with its store and its checkpoints, driven verb by verb.

use std::ops::AddAssign;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ranktree::allocator::keep_huge_pages;
use ranktree::applied_sequence::applied_sequence;
use ranktree::board::Definition;
use ranktree::job::Job;
use ranktree::query::{Node, ShardHandle};
use ranktree::state::{Incarnation, LogHash, RecordNumber};
use ranktree::state_lock::{Purpose, StateLock};
use ranktree::storage::{Commit, HashCommit, StorageResources, Store, StoreSlot, TreesFrom, recover};
use ranktree::types::{BoardName, Sequence, ShardId, Timestamp};
use ranktree::writer::{
    CheckpointGate, CheckpointPolicy, Checkpointer, Message, Payload, Planner, RegisteredBoard, Registry,
    apply,
};
use tokio::sync::watch;

use super::workload::Workload;

/// Jobs per message: the fast path of publishers that batch.
pub const JOBS_PER_MESSAGE: usize = 100;
/// Batches made up at a time, so that making them up does not push the engine's memory out of the cache each
/// time.
pub const MADE_UP: usize = 32;
const DEFINED_AT_ONCE: usize = 1_000;

pub struct Engine {
    pub store: Arc<Store>,
    pub shard: Arc<StateLock>,
    pub registry: Registry,
    pub checkpointer: Checkpointer,
    next: Sequence,
    clock: i64,
    pub checkpoints: u64,
    /// The hash of the log, which is computed if there is one.
    pub hash: Option<LogHash>,
}

/// Where a batch's time went.
#[derive(Default, Clone, Copy)]
pub struct Verbs {
    pub plan: Duration,
    pub commit: Duration,
    pub apply: Duration,
}

impl Verbs {
    pub fn total(&self) -> Duration {
        self.plan + self.commit + self.apply
    }
}

impl AddAssign for Verbs {
    fn add_assign(&mut self, turn: Self) {
        self.plan += turn.plan;
        self.commit += turn.commit;
        self.apply += turn.apply;
    }
}

/// What was updated in a time, and the time of it that the engine took.
#[derive(Default)]
pub struct Updates {
    pub jobs: u64,
    pub verbs: Verbs,
    /// Checkpoints that ended meanwhile.
    pub checkpoints: u64,
}

impl Engine {
    pub fn open(folder: &Path) -> Self {
        keep_huge_pages();
        let resources = StorageResources::new(64 << 20, 1);
        let store =
            Store::open(&folder.join("shard-000"), ShardId(0), 1, &resources).expect("the store opens");
        let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the store is whole");
        let registry = Registry::new(true);
        registry.register_boards_of(&recovered.shard);
        let next = recovered.shard.applied.sequence.next();
        Self {
            store: Arc::new(store),
            shard: Arc::new(StateLock::new(recovered.shard)),
            registry,
            checkpointer: Checkpointer::new(CheckpointPolicy::default(), CheckpointGate::default(), 0),
            next,
            clock: 1_700_000_000_000_000,
            checkpoints: 0,
            hash: None,
        }
    }

    /// Every member once, in batches, and a checkpoint.
    pub fn load(&mut self, members: u64, workload: &mut Workload) {
        let started = Instant::now();
        for first in (0..members).step_by(10_000) {
            let jobs = (first..(first + 10_000).min(members)).map(|member| workload.job_of(member)).collect();
            let messages = self.messages(jobs);
            self.turn(messages);
        }
        self.checkpoint();
        eprintln!("  loaded {members} members in {:.1} s", started.elapsed().as_secs_f64());
    }

    /// Defines boards, in the batches that a stream of definitions would make.
    pub fn define(&mut self, boards: impl IntoIterator<Item = BoardName>, definition: &Arc<Definition>) {
        let mut messages = Vec::new();
        for board in boards {
            let (life, definition) = (self.next.0, Arc::clone(definition));
            let (incarnation, number) = (Incarnation(life), Some(RecordNumber(life)));
            self.registry
                .apply_remote(&board, &RegisteredBoard { incarnation, definition: Arc::clone(&definition) });
            let message = self.message(Payload::Define { board, incarnation, number, definition });
            messages.push(message);
            if messages.len() == DEFINED_AT_ONCE {
                self.turn_without_checkpoint(std::mem::take(&mut messages));
            }
        }
        self.turn_without_checkpoint(messages);
    }

    /// Lets so much time pass before the next message.
    pub fn let_pass(&mut self, time: Duration) {
        self.clock += i64::try_from(time.as_micros()).expect("within the range of times");
    }

    /// The time of the last message.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock).expect("in range")
    }

    /// The shard for reads, which see what is applied.
    pub fn node(&self) -> Node {
        let (_, applied) = applied_sequence(self.shard.read(Purpose::Gauges).applied.sequence);
        let (_, started) = watch::channel(true);
        let store = Arc::new(StoreSlot::default());
        store.put(Arc::clone(&self.store));
        Node::in_memory(vec![ShardHandle {
            id: ShardId(0),
            state: Arc::clone(&self.shard),
            applied,
            started,
            health: Arc::default(),
            store,
            summaries: Arc::default(),
        }])
    }

    /// A message that follows the last one.
    fn message(&mut self, payload: Payload) -> Message {
        self.clock += 100;
        let sequence = self.next;
        self.next = self.next.next();
        let timestamp = Timestamp::from_micros(self.clock).expect("in range");
        Message { sequence, timestamp, hash: 0, payload, bytes: 0, answer: None, traced: None }
    }

    /// Jobs as one message that follows the last one.
    pub fn message_of(&mut self, jobs: Vec<Job>) -> Message {
        self.message(Payload::Jobs(jobs.into_iter().map(Ok).collect()))
    }

    /// Jobs as messages that follow the last one.
    pub fn messages(&mut self, jobs: Vec<Job>) -> Vec<Message> {
        let mut jobs = jobs.into_iter().map(Ok).peekable();
        let mut messages = Vec::new();
        while jobs.peek().is_some() {
            let jobs = jobs.by_ref().take(JOBS_PER_MESSAGE).collect();
            messages.push(self.message(Payload::Jobs(jobs)));
        }
        messages
    }

    /// Jobs of the workload in batches of the given number, for the given time.
    pub fn update(&mut self, workload: &mut Workload, batch: u64, time: Duration) -> Updates {
        let before = self.checkpoints;
        let mut updates = Updates::default();
        let started = Instant::now();
        while started.elapsed() < time {
            let made_up: Vec<_> = (0..MADE_UP)
                .map(|_| {
                    let jobs = (0..batch).map(|_| workload.job()).collect();
                    self.messages(jobs)
                })
                .collect();
            for messages in made_up {
                updates.verbs += self.turn(messages);
                updates.jobs += batch;
            }
        }
        Updates { checkpoints: self.checkpoints - before, ..updates }
    }

    /// Plan, commit and apply one batch, and start a checkpoint when one is due.
    pub fn turn(&mut self, messages: Vec<Message>) -> Verbs {
        let verbs = self.turn_without_checkpoint(messages);
        if self.checkpointer.poll(&self.shard).is_some() {
            self.checkpoints += 1;
        }
        // No reader: whether there are any, the shard notices.
        let members = self.shard.read(Purpose::Gauges).members.len() as u64;
        if self.checkpointer.is_due(members) {
            self.checkpointer.start_if_admitted(Arc::clone(&self.store), &self.shard);
        }
        verbs
    }

    /// Plan, commit and apply one batch.
    pub fn turn_without_checkpoint(&mut self, messages: Vec<Message>) -> Verbs {
        let started = Instant::now();
        let plan = {
            let planner = Planner {
                shard: &self.shard,
                id: ShardId(0),
                shards: 1,
                registry: &self.registry,
                time: self.shard.read(Purpose::Plan).applied.timestamp.into(),
                early: std::cell::Cell::default(),
                hash: self.hash,
                read_parked: &|_, _, _, _| Ok(Vec::new()),
                read_profile: &|_| Ok(None),
                read_metadata: &|_, _| Ok(None),
            };
            planner.plan(messages, None)
        };
        let planned = Instant::now();
        let hashes = plan.hash.map(|(running, kept)| HashCommit { running, kept, dropped: Vec::new() });
        self.hash = hashes.as_ref().map(|hashes| hashes.running);
        let commit = Commit { applied: plan.applied, delta: plan.delta, hashes, ..Commit::default() };
        self.store.commit(&commit, false).expect("the disk takes it");
        let committed = Instant::now();
        for step in plan.steps {
            apply(&self.shard, step).1.send();
            self.shard.give_way();
        }
        let applied = Instant::now();
        self.checkpointer.add_changes(plan.changes as u64);
        Verbs { plan: planned - started, commit: committed - planned, apply: applied - committed }
    }

    /// Until no checkpoint is running. Whether one was.
    pub fn wait_for_checkpoint(&mut self) -> bool {
        let ended = self.checkpointer.wait(&self.shard).is_some();
        self.checkpoints += u64::from(ended);
        ended
    }

    /// A whole checkpoint, waited for.
    pub fn checkpoint(&mut self) {
        self.wait_for_checkpoint();
        if self.checkpointer.has_changes() {
            let beginning = Instant::now();
            self.checkpointer.start_when_admitted(Arc::clone(&self.store), &self.shard);
            let began = beginning.elapsed().as_secs_f64() * 1e3;
            let (_, figures) = self.checkpointer.wait(&self.shard).expect("the checkpoint succeeds");
            self.checkpoints += 1;
            eprintln!(
                "  checkpoint: begun in {began:.1} ms, {} records, {} MB, {:.2} s",
                figures.pages,
                figures.bytes >> 20,
                figures.took.as_secs_f64()
            );
        }
    }

    pub fn close(mut self) {
        self.checkpointer.wait(&self.shard);
    }
}
