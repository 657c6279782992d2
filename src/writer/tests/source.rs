//! A queue that is a vector, and a writer over it on a real directory.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::applied_sequence::{AppliedSequence, AppliedSequenceReader, applied_sequence};
use crate::job::Job;
use crate::state::{Applied, EarlyInstances, LogHashes, Shard, ShardTime};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::{StorageError, StoreSlot, TreesFrom, recover};
use crate::types::{Sequence, ShardId, Timestamp, count};
use crate::writer::tests::harness::{open, time};
use crate::writer::{
    BadJob, BatchLimits, CheckpointGate, CheckpointPolicy, Checkpointer, CommitFailed, Fetched, Gauges,
    Health, JobSource, Message, MessageOutcome, Payload, Registry, RejectErasure, RejectRetention,
    ShardState, Writer,
};

/// Members and their scores, best first.
type Entries = Vec<(String, Vec<i64>)>;
type Answer = Result<MessageOutcome, CommitFailed>;

/// A message and who waits for it.
pub struct Sent {
    pub payload: Payload,
    pub bytes: usize,
    pub answer: Option<oneshot::Sender<Answer>>,
}

/// Hands out its messages in order, as many at once as the limits allow.
pub struct VecSource {
    pub sent: Vec<Option<Sent>>,
    pub next: usize,
    pub limits: BatchLimits,
    /// The time of each message, by its sequence.
    pub time: fn(u64) -> Timestamp,
    /// How many messages each fetch brought.
    pub batches: Arc<Mutex<Vec<usize>>>,
    /// Called before every fetch; says whether there is anything now.
    pub before_fetch: Box<dyn FnMut() -> bool + Send>,
}

impl VecSource {
    pub fn new(payloads: Vec<Payload>) -> (Self, Vec<oneshot::Receiver<Answer>>) {
        let (mut sent, mut answers) = (Vec::new(), Vec::new());
        for payload in payloads {
            let (answer, answered) = oneshot::channel();
            sent.push(Some(Sent { payload, bytes: 100, answer: Some(answer) }));
            answers.push(answered);
        }
        let limits = BatchLimits { jobs: 1_000, bytes: 1 << 20 };
        let (batches, before_fetch) = (Arc::default(), Box::new(|| true));
        (Self { sent, next: 0, limits, time, batches, before_fetch }, answers)
    }

    fn jobs_and_bytes(&self, index: usize) -> Option<(usize, usize)> {
        let sent = self.sent.get(index)?.as_ref().expect("handed out once");
        let jobs = if let Payload::Jobs(jobs) = &sent.payload { jobs.len() } else { 1 };
        Some((jobs, sent.bytes))
    }
}

impl JobSource for VecSource {
    fn resume(&mut self, applied: Applied, _: &str) -> Result<(), String> {
        self.next = usize::try_from(applied.sequence.0).expect("small");
        // What was handed out and not committed has been answered; nobody sends it again.
        while let Some(None) = self.sent.get(self.next) {
            self.sent.remove(self.next);
        }
        Ok(())
    }

    fn fetch(&mut self, limits: BatchLimits, _: Duration) -> Fetched {
        if !(self.before_fetch)() {
            return Fetched::Nothing;
        }
        let (mut messages, mut jobs, mut bytes) = (Vec::new(), 0, 0);
        while let Some((its_jobs, its_bytes)) = self.jobs_and_bytes(self.next) {
            (jobs, bytes) = (jobs + its_jobs, bytes + its_bytes);
            if !messages.is_empty() && (jobs > limits.jobs || bytes > limits.bytes) {
                break;
            }
            let sent = self.sent.get_mut(self.next).and_then(Option::take).expect("handed out once");
            self.next += 1;
            let sequence = Sequence(count(self.next));
            let Sent { payload, bytes, answer } = sent;
            let timestamp = (self.time)(sequence.0);
            let answer = answer.map(Into::into);
            messages.push(Message { sequence, timestamp, hash: 0, payload, bytes, answer, traced: None });
        }
        if messages.is_empty() {
            return Fetched::Ended;
        }
        self.batches.lock().push(messages.len());
        Fetched::Batch(messages)
    }

    fn limits(&self) -> BatchLimits {
        self.limits
    }

    fn needs_sync(&self) -> bool {
        true
    }
}

pub fn copy_of(payload: &Payload) -> Payload {
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
        Payload::Trim { board, incarnation, point, members } => Payload::Trim {
            board: board.clone(),
            incarnation: *incarnation,
            point: point.clone(),
            members: members.clone(),
        },
        Payload::Store(order) => Payload::Store(order.clone()),
        Payload::Erase { members } => Payload::Erase { members: members.clone() },
        Payload::Unpark { jobs } => Payload::Unpark { jobs: *jobs },
        Payload::Tick => Payload::Tick,
    }
}

pub fn jobs(jobs: Vec<Job>) -> Payload {
    Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect())
}

/// A shard's directory and what its writer and readers share.
pub struct Running {
    pub folder: tempfile::TempDir,
    pub shard: Arc<StateLock>,
    pub store: Arc<StoreSlot>,
    pub health: Arc<Health>,
    pub registry: Arc<Registry>,
    pub applied: AppliedSequenceReader,
    applied_sender: AppliedSequence,
    pub shards: u16,
}

impl Running {
    pub fn new(auto_create: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (applied_sender, applied) = applied_sequence(Sequence(0));
        let running = Self {
            folder,
            shard: Arc::new(StateLock::new(Shard::new(ShardId(0)))),
            store: Arc::default(),
            health: Arc::default(),
            registry: Arc::new(Registry::new(auto_create)),
            applied,
            applied_sender,
            shards: 1,
        };
        running.load();
        running
    }

    /// Reads the directory, as a start does.
    pub fn load(&self) {
        let store = open(self.folder.path()).expect("the directory opens");
        let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the shard loads");
        assert!(recovered.rebuilt.is_empty(), "{:?}", recovered.rebuilt);
        self.registry.register_boards_of(&recovered.shard);
        *self.shard.write(Purpose::Apply) = recovered.shard;
        self.store.put(Arc::new(store));
    }

    pub fn writer<S: JobSource>(&self, source: S) -> Writer<S> {
        let path = self.folder.path().to_owned();
        self.writer_reopening(source, move || open(&path))
    }

    pub fn writer_reopening<S: JobSource>(
        &self,
        source: S,
        reopen: impl Fn() -> Result<crate::storage::Store, StorageError> + Send + 'static,
    ) -> Writer<S> {
        let policy =
            CheckpointPolicy { changes_min: 3, changes_percent: 0, pause_factor: 0, interval: Duration::MAX };
        Writer {
            id: ShardId(0),
            shards: self.shards,
            source,
            shard: Arc::clone(&self.shard),
            store: Arc::clone(&self.store),
            registry: Arc::clone(&self.registry),
            health: Arc::clone(&self.health),
            applied: self.applied_sender.clone(),
            started: watch::channel(false).0,
            checkpointer: Checkpointer::new(policy, CheckpointGate::default(), 0),
            reopen: Box::new(move |_| reopen()),
            gauges: Gauges::new(ShardId(0)),
            rejects_kept: RejectRetention::default(),
            erasing: RejectErasure::default(),
            reject_log: Arc::default(),
            parking: None,
            time: ShardTime::default(),
            early: EarlyInstances::default(),
            hashes: LogHashes::default(),
        }
    }

    /// Lets a writer drain these messages; what came of each.
    pub fn drain(&self, payloads: Vec<Payload>) -> Vec<Answer> {
        let (source, answers) = VecSource::new(payloads);
        self.run(source, answers)
    }

    /// Lets a writer drain a source, checkpoints and all, and reads the directory again: both states are the
    /// same.
    pub fn run(&self, mut source: VecSource, answers: Vec<oneshot::Receiver<Answer>>) -> Vec<Answer> {
        // The vector begins where the shard is.
        let done = usize::try_from(self.shard.read(Purpose::Read).applied.sequence.0).expect("small");
        for _ in 0..done {
            source.sent.insert(0, Some(Sent { payload: jobs(Vec::new()), bytes: 0, answer: None }));
        }
        self.writer(source).run();
        assert_eq!(self.health.state(), ShardState::CatchingUp("shut down".to_owned()));
        let before = self.positions();
        self.load();
        assert_eq!(self.positions(), before, "a restart changes nothing");
        answers.into_iter().map(|mut answered| answered.try_recv().expect("everyone is answered")).collect()
    }

    /// Every board with its members and their scores, best first.
    pub fn positions(&self) -> Vec<(String, Entries)> {
        let shard = self.shard.read(Purpose::Read);
        let of = |board: &crate::state::Board| {
            let tree = shard.tree(board.all).expect("a board has a tree");
            tree.tree.check(&shard.members).expect("the tree is sound");
            let entry = |(handle, words): (crate::tree::Handle, crate::tree::Words)| {
                let id = String::from_utf8(shard.members.id(handle).to_vec()).expect("ids are UTF-8");
                (id, tree.definition.score_of(words.as_slice()).keys().to_vec())
            };
            tree.tree.cursor_at(0).map(entry).collect()
        };
        shard.boards().map(|(name, board)| (name.to_string(), of(board))).collect()
    }

    /// One board's members and their only key, best first.
    pub fn board(&self, name: &str) -> Vec<(String, i64)> {
        let all = self.positions();
        let (_, entries) = all.into_iter().find(|(board, _)| board == name).expect("the board is there");
        entries.into_iter().map(|(id, keys)| (id, keys[0])).collect()
    }
}
