//! A real shard: its RocksDB directory, its writer on a thread, and a queue that the bench fills.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ranktree::applied_sequence::{AppliedSequenceReader, applied_sequence};
use ranktree::board::Definition;
use ranktree::job::Job;
use ranktree::query::{Node, ShardHandle};
use ranktree::state::{Applied, EarlyInstances, Incarnation, LogHashes, RecordNumber, ShardTime, TrimPoint};
use ranktree::state_lock::{HoldObserver, Purpose, StateLock};
use ranktree::storage::{Reopened, StorageResources, Store, StoreSlot, TreesFrom, recover};
use ranktree::types::{BoardName, MemberId, Sequence, ShardId, Timestamp};
use ranktree::writer::{
    BatchLimits, CheckpointGate, CheckpointPolicy, Checkpointer, Fetched, Gauges, Health, JobSource, Message,
    Outcome, Parking, Payload, RegisteredBoard, Registry, RejectErasure, RejectRetention, WantedBoards,
    Writer,
};
use tokio::sync::{oneshot, watch};

use crate::holds::HoldTimes;

/// How long anything may take that the bench waits for.
const HANG: Duration = Duration::from_secs(1_800);
/// Messages on their way to the writer.
const AHEAD: usize = 1_024;
/// Jobs made up at a time, while the writer has nothing to do: who makes them up would take the cores that
/// the writer and its checkpoints need, and a writer without a core holds its lock for as long.
const JOBS_READY: usize = 200_000;

/// What travels to the writer, and who waits for it.
type Sent = (Payload, Option<oneshot::Sender<Outcome>>);

pub struct Running {
    pub node: Arc<Node>,
    pub registry: Arc<Registry>,
    pub wanted: Arc<WantedBoards>,
    state: Arc<StateLock>,
    health: Arc<Health>,
    applied: AppliedSequenceReader,
    queue: Option<SyncSender<Sent>>,
    /// Not sent yet.
    ready: Vec<Sent>,
    jobs_ready: usize,
    sent: u64,
    /// Greater than any version before.
    pub version: u64,
    boards: u64,
    jobs_at_once: Arc<AtomicUsize>,
    /// Added to the times of messages, in microseconds.
    ahead: Arc<AtomicI64>,
    writer: Option<JoinHandle<()>>,
}

impl Running {
    pub fn open(folder: &Path, holds: &Arc<HoldTimes>) -> Self {
        let (id, directory) = (ShardId(0), folder.join("shard-000"));
        let resources = StorageResources::new(64 << 20, 1);
        let open = move |_| Store::open(&directory, id, 1, &resources);
        let store = open(Reopened::Same).expect("the store opens");
        let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("the store is whole");
        let registry = Arc::new(Registry::new(true));
        registry.register_boards_of(&recovered.shard);
        let observer: Arc<dyn HoldObserver> = Arc::clone(holds) as _;
        let state = Arc::new(StateLock::observed(recovered.shard, &observer));
        let (slot, health, wanted) =
            (Arc::new(StoreSlot::default()), Arc::<Health>::default(), Arc::default());
        slot.put(Arc::new(store));
        let (queue, receiver) = sync_channel(AHEAD);
        let jobs_at_once = Arc::new(AtomicUsize::new(1_000));
        let ahead = Arc::new(AtomicI64::new(0));
        let source = Queue {
            receiver,
            held_back: None,
            last: Sequence(0),
            jobs_at_once: Arc::clone(&jobs_at_once),
            ahead: Arc::clone(&ahead),
        };
        let (applied_sender, applied) = applied_sequence(Sequence(0));
        let (starting, started) = watch::channel(false);
        // Only when the bench wants one.
        let policy =
            CheckpointPolicy { changes_min: u64::MAX, interval: Duration::MAX, ..Default::default() };
        let writer = Writer {
            id,
            shards: 1,
            source,
            shard: Arc::clone(&state),
            store: Arc::clone(&slot),
            registry: Arc::clone(&registry),
            health: Arc::clone(&health),
            applied: applied_sender,
            started: starting,
            checkpointer: Checkpointer::new(policy, CheckpointGate::default(), 0),
            reopen: Box::new(open),
            gauges: Gauges::new(id),
            reject_log: Arc::default(),
            parking: Some(Parking::new(true, Arc::clone(&wanted))),
            time: ShardTime::default(),
            early: EarlyInstances::default(),
            hashes: LogHashes::default(),
            rejects_kept: RejectRetention::default(),
            erasing: RejectErasure::default(),
        };
        let writer = std::thread::Builder::new().name("writer-0".to_owned()).spawn(|| writer.run());
        let handle = ShardHandle {
            id,
            state: Arc::clone(&state),
            applied: applied.clone(),
            started,
            health: Arc::clone(&health),
            store: slot,
            summaries: Arc::default(),
        };
        Self {
            node: Arc::new(Node::in_memory(vec![handle])),
            registry,
            wanted,
            state,
            health,
            applied,
            queue: Some(queue),
            ready: Vec::new(),
            jobs_ready: 0,
            sent: 0,
            version: 1 << 40,
            boards: 0,
            jobs_at_once,
            ahead,
            writer: Some(writer.expect("a thread")),
        }
    }

    /// How many jobs the writer takes at once.
    pub fn set_batch(&self, jobs: usize) {
        self.jobs_at_once.store(jobs, Ordering::Relaxed);
    }

    /// Lets so much time pass before the next message.
    pub fn let_pass(&mut self, time: Duration) {
        self.wait_for_all();
        self.ahead.fetch_add(time.as_micros() as i64, Ordering::Relaxed);
    }

    /// A message that brings nothing but its time.
    pub fn tick(&mut self) {
        self.send(Payload::Tick, None);
    }

    /// Sends it along with others.
    fn send(&mut self, payload: Payload, answer: Option<oneshot::Sender<Outcome>>) {
        self.jobs_ready += payload.cost();
        self.ready.push((payload, answer));
        if self.jobs_ready >= JOBS_READY {
            self.wait_for_all();
        }
    }

    /// A message of jobs that nobody waits for.
    pub fn publish(&mut self, jobs: Vec<Job>) {
        self.send(Payload::Jobs(jobs.into_iter().map(Ok).collect()), None);
    }

    /// A message of jobs whose outcome somebody waits for, as all that come over HTTP.
    pub fn publish_asking(&mut self, jobs: Vec<Job>) -> oneshot::Receiver<Outcome> {
        let (answer, answered) = oneshot::channel();
        self.send(Payload::Jobs(jobs.into_iter().map(Ok).collect()), Some(answer));
        answered
    }

    pub fn define(&mut self, board: &BoardName, definition: &Arc<Definition>) {
        self.boards += 1;
        let (incarnation, number) = (Incarnation(self.boards), Some(RecordNumber(self.boards)));
        self.registry
            .apply_remote(board, &RegisteredBoard { incarnation, definition: Arc::clone(definition) });
        let definition = Arc::clone(definition);
        self.send(Payload::Define { board: board.clone(), incarnation, number, definition }, None);
    }

    pub fn drop_board(&mut self, board: &BoardName) {
        self.boards += 1;
        let life = self.state.read(Purpose::Start).board(board.as_str()).expect("it is there").incarnation;
        let number = Some(RecordNumber(self.boards));
        self.send(Payload::Drop { board: board.clone(), incarnation: life, number }, None);
    }

    /// A message of a trim. Its client would wait for it before it looks on, and the bench only now and then.
    pub fn trim(
        &mut self,
        board: &BoardName,
        incarnation: Incarnation,
        point: &TrimPoint,
        members: Vec<MemberId>,
    ) {
        let (board, point) = (board.clone(), point.clone());
        self.send(Payload::Trim { board, incarnation, point, members }, None);
    }

    /// Frees what waits, as far as a message may.
    pub fn free(&mut self) {
        self.send(Payload::Unpark { jobs: ranktree::writer::UNPARKED_PER_MESSAGE }, None);
    }

    pub fn jobs_parked(&self) -> u64 {
        self.health.get(|health| health.jobs_parked)
    }

    /// Sends what is ready, and waits until readers see all of it.
    pub fn wait_for_all(&mut self) {
        let queue = self.queue.as_ref().expect("it is open until the end");
        self.jobs_ready = 0;
        for sent in self.ready.drain(..) {
            queue.send(sent).expect("the writer runs");
            self.sent += 1;
        }
        wait("all is applied", || self.applied.get().0 >= self.sent);
    }

    /// Waits until nothing is left of dropped boards and of members that are gone but what a checkpoint has
    /// to free.
    pub fn wait_for_release(&self) {
        wait("dropped boards are let go of", || {
            let shard = self.state.read(Purpose::Start);
            !shard.has_retired() && !shard.members.has_handles_to_free()
        });
    }

    /// Has a checkpoint begun of all that is applied, unless one is being written.
    pub fn want_checkpoint(&self) {
        self.health.want_checkpoint_after(self.applied.get().0.saturating_sub(1));
    }

    pub fn is_checkpointing(&self) -> bool {
        self.health.is_checkpoint_wanted()
    }

    /// A whole checkpoint of all that was sent.
    pub fn checkpoint(&mut self) {
        self.wait_for_all();
        self.want_checkpoint();
        wait("the checkpoint is complete", || !self.is_checkpointing());
    }

    pub fn members(&self) -> usize {
        self.state.read(Purpose::Start).members.len()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !is_so() {
        assert!(started.elapsed() < HANG, "waited for half an hour until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A queue in memory that, like a stream, decides what boards there are, and needs no syncs.
struct Queue {
    receiver: Receiver<Sent>,
    held_back: Option<Sent>,
    last: Sequence,
    jobs_at_once: Arc<AtomicUsize>,
    ahead: Arc<AtomicI64>,
}

impl Queue {
    fn message(&mut self, (payload, answer): Sent) -> Message {
        self.last = self.last.next();
        Message {
            sequence: self.last,
            timestamp: Timestamp::from_micros(
                1_700_000_000_000_000 + 100 * self.last.0 as i64 + self.ahead.load(Ordering::Relaxed),
            )
            .expect("in range"),
            hash: 0,
            payload,
            bytes: 0,
            answer: answer.map(Into::into),
            traced: None,
        }
    }
}

impl JobSource for Queue {
    fn resume(&mut self, applied: Applied, _: &str) -> Result<(), String> {
        self.last = applied.sequence;
        Ok(())
    }

    fn fetch(&mut self, limits: BatchLimits, wait: Duration) -> Fetched {
        let first = match self.held_back.take() {
            Some(sent) => sent,
            None => match self.receiver.recv_timeout(wait) {
                Ok(sent) => sent,
                Err(RecvTimeoutError::Timeout) => return Fetched::Nothing,
                Err(RecvTimeoutError::Disconnected) => return Fetched::Ended,
            },
        };
        let mut jobs = first.0.cost();
        let mut batch = vec![self.message(first)];
        while let Ok(sent) = self.receiver.try_recv() {
            jobs += sent.0.cost();
            if jobs > limits.jobs {
                self.held_back = Some(sent);
                break;
            }
            batch.push(self.message(sent));
        }
        Fetched::Batch(batch)
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits { jobs: self.jobs_at_once.load(Ordering::Relaxed), bytes: 16 << 20 }
    }

    fn needs_sync(&self) -> bool {
        false
    }
}

/// The boards that jobs wait for, as far as they were told.
pub fn wanted(running: &Running, boards: usize) -> BTreeSet<BoardName> {
    let found = std::cell::RefCell::new(BTreeSet::new());
    wait("all boards are wanted", || {
        let mut found = found.borrow_mut();
        found.extend(running.wanted.take());
        found.len() >= boards
    });
    found.into_inner()
}
