//! Plan: what a batch of messages changes, worked out against the state before it. Changes nothing itself.
//!
//! Knows: jobs, the current entries, and the batch's own earlier changes. Must not know: disks; it is handed
//! a shard to read and gives back a [`Plan`].
//!
//! **Others come in between.** A batch takes a millisecond and more to plan, and readers wait behind whoever
//! waits to change something: so every few jobs the shard is let go of and taken again, and it is not held
//! while the disk is read. That is sound because nothing that a plan rests on changes meanwhile. Members,
//! boards and entries are changed by applying steps, and by letting go of what dropped boards left: both are
//! done by the thread that plans. Others change only
//! - who has joined a checkpoint, and what it keeps of pages that it has copied, which no plan looks at; and
//! - which drops are remembered, where there is no NATS: one is forgotten that is over on every shard and
//!   whose board nobody is dropping. A plan asks for drops only to pass over a definition that its own drop
//!   overtook, and such a one comes from a decision before that drop. It is the same whether a drop is
//!   forgotten between two jobs of a batch or between two batches.
//!
//! So no reference into the shard is kept from one job to the next, and what was read of it before still
//! holds.
//!
//! A plan says everything twice, for its two readers. The **commit** wants each (tree, member) once, as the
//! batch found it and left it. The **apply** wants steps: whole messages in their order, each step short
//! enough to apply under one lock, so that a reader always sees the state at some message's end.
//!
//! - [`planned`]: what a plan consists of
//! - [`messages`], [`look_ahead`]: the batch's way through its messages
//! - [`jobs`], [`waiting`]: what comes of a job, now or once its board is defined
//! - [`trim`]: what comes of a trim
//! - [`boards`], [`changes`]: boards and entries as the batch sees them

mod planned;

mod look_ahead;
mod messages;

mod jobs;
mod trim;
mod waiting;

mod boards;
mod changes;

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::{FixedState, RandomState};
use hashbrown::HashMap;

pub use planned::{Plan, PlannedBoard, PlannedFreed, PlannedJob, PlannedStep};
pub use waiting::FREED_PER_MESSAGE;

use crate::state::{Applied, BoardEvent, Dropped, Step, TreeId};
use crate::state_lock::{LongReading, Purpose, StateLock};
use crate::storage::codec::{DeltaEncoder, MetadataRecord, ParkedRecord, RejectRecord};
use crate::tree::Handle;
use crate::types::{BoardName, Sequence, ShardId, Timestamp};
use crate::writer::parking::{ParkedJob, Parking, Place};
use crate::writer::plan::boards::ChangedBoards;
use crate::writer::plan::changes::NetChange;
use crate::writer::plan::look_ahead::{LOOK_AHEAD, only_job};
use crate::writer::registry::Registry;
use crate::writer::source::Message;

/// Reads jobs of a line, from a place on: up to so many, and up to the first that must not be gone on behind,
/// that one included. An error says why they cannot be read.
pub type ReadParked<'a> =
    dyn Fn(u32, Place, usize, GoesOn<'_>) -> Result<Vec<(Place, ParkedJob)>, String> + 'a;
/// Whether to read on behind a job.
pub type GoesOn<'a> = &'a mut dyn FnMut(&ParkedJob) -> bool;

/// Changes put into the delta before others are let in again: some ten microseconds.
const ENCODED_AT_ONCE: usize = 64;

/// Changes that there is room for from the beginning, at most: more than the largest batches have jobs.
const CHANGES_RESERVED: usize = 1 << 14;

/// What a planner is told about its shard.
pub struct Planner<'a> {
    pub shard: &'a StateLock,
    pub id: ShardId,
    pub shards: u16,
    pub registry: &'a Registry,
    /// The effective time of the last message; see [`Plan::time`].
    pub time: Timestamp,
    /// Reads a line of waiting jobs, as the last commit left it.
    pub parked: &'a ReadParked<'a>,
}

struct Batch<'a> {
    planner: &'a Planner<'a>,
    /// The state before the batch.
    shard: LongReading<'a>,
    net: Vec<NetChange>,
    by_entry: HashMap<(TreeId, Handle), usize, FixedState>,
    /// The keys of `by_entry`, by member: from the first job on that asks which boards a member is on.
    changed_of: Option<BTreeSet<(Handle, TreeId)>>,
    /// Members that the shard does not know yet.
    newcomers: HashMap<Box<[u8]>, Handle, RandomState>,
    added: usize,
    boards: ChangedBoards,
    /// Whose the trees are that come with the batch.
    new_trees: BTreeMap<TreeId, BoardName>,
    /// How many boards there are.
    board_count: usize,
    /// What the shard will remember of drops, if the batch has any.
    dropped: Option<Dropped>,
    /// Where the job being planned takes effect, if somebody waits to be told. Nobody does in a stream's
    /// millions.
    told: Option<Vec<PlannedBoard>>,
    /// The effective time of the message being planned.
    time: Timestamp,
    next_tree: u32,
    events: Vec<BoardEvent>,
    metadata: BTreeMap<(TreeId, Handle), (Vec<u8>, Option<MetadataRecord>)>,
    dropped_trees: Vec<TreeId>,
    steps: Vec<PlannedStep>,
    /// The step being filled.
    step: Step,
    step_jobs: usize,
    /// Counts every step ever begun, applied on its own or not; a change belongs to exactly one.
    step_number: usize,
    rejects: Vec<RejectRecord>,
    parking: Option<Parking>,
    parked: Vec<(u32, ParkedRecord)>,
    unparked: Vec<(u32, Sequence, u32)>,
    unreadable: Option<String>,
    /// Jobs are planned that waited, in their order: they do not wait for those of their member that still
    /// do.
    frees: bool,
    jobs: usize,
}

impl Planner<'_> {
    /// Plans a batch: at least one message, in sequence.
    ///
    /// # Arguments
    /// `parking`: where jobs for unknown boards wait, if definitions come through the queue; else the
    /// registry decides them at once.
    #[must_use]
    pub fn plan(&self, messages: Vec<Message>, parking: Option<Parking>) -> Plan {
        // Room for what comes of jobs on one board each, before the lock is taken: to move ten thousand
        // changes into other memory, as whoever grows does, takes milliseconds where that memory is new.
        let jobs: usize = messages.iter().map(|message| message.payload.cost().min(CHANGES_RESERVED)).sum();
        let jobs = CHANGES_RESERVED.min(jobs);
        let (net, by_entry) =
            (Vec::with_capacity(jobs), HashMap::with_capacity_and_hasher(jobs, FixedState::default()));
        let newcomers = HashMap::with_capacity_and_hasher(jobs, RandomState::default());
        let shard = LongReading::new(self.shard, Purpose::Plan);
        // Not the first message's own: where an operator had a gap in the queue passed over, the delta covers
        // it.
        let mut applied = shard.applied;
        let first = applied.sequence.next();
        let (board_count, next_tree) = (shard.board_count(), shard.next_tree().0);
        let mut batch = Batch {
            planner: self,
            shard,
            net,
            by_entry,
            changed_of: None,
            newcomers,
            added: 0,
            boards: BTreeMap::new(),
            new_trees: BTreeMap::new(),
            board_count,
            dropped: None,
            told: None,
            time: self.time,
            next_tree,
            events: Vec::new(),
            metadata: BTreeMap::new(),
            dropped_trees: Vec::new(),
            steps: Vec::new(),
            step: Step::default(),
            step_jobs: 0,
            step_number: 0,
            rejects: Vec::new(),
            parking,
            parked: Vec::new(),
            unparked: Vec::new(),
            unreadable: None,
            frees: false,
            jobs: 0,
        };
        let mut messages = messages.into_iter();
        for turn in (0..LOOK_AHEAD).cycle() {
            if turn == 0 {
                batch.shard.let_others_in();
                // Messages of one job each share their waits as the jobs of one message do.
                batch.look_ahead(messages.as_slice().iter().take(LOOK_AHEAD).filter_map(only_job));
            }
            let Some(message) = messages.next() else { break };
            applied =
                Applied { sequence: message.sequence, timestamp: message.timestamp, hash: message.hash };
            // A server's clock may be set back, or a new leader's may be behind: what was later stays so.
            batch.time = batch.time.max(message.timestamp);
            batch.plan_message(message, applied);
        }
        batch.close_step();
        batch.finish(first, applied)
    }
}

impl Batch<'_> {
    fn finish(mut self, first: Sequence, applied: Applied) -> Plan {
        let (newcomers, all) = (&self.newcomers, &self.net);
        let (names, net) = self.shard.aside(|| {
            let names = newcomers.iter().map(|(id, handle)| (*handle, &**id));
            let names: HashMap<Handle, &[u8], FixedState> = names.collect();
            // What netted to nothing is redone too: a checkpoint may have looked while the batch was half
            // applied.
            let mut net: Vec<&NetChange> = all.iter().collect();
            net.sort_by_key(|net| net.tree);
            (names, net)
        });
        let mut encoder = DeltaEncoder::new(first, applied, &self.events, net.len());
        for changes in net.chunks(ENCODED_AT_ONCE) {
            self.shard.let_others_in();
            for change in changes {
                let known = names.get(&change.handle).copied();
                let id = known.unwrap_or_else(|| self.shard.members.id(change.handle));
                encoder.push(change.tree, id, change.before.as_ref(), change.after.as_ref());
            }
        }
        // Nothing more is read.
        drop(self.shard);
        let metadata = self.metadata.into_iter().map(|((tree, _), (member, record))| (tree, member, record));
        Plan {
            first,
            applied,
            time: self.time,
            jobs: self.jobs,
            changes: net.len(),
            delta: encoder.finish(),
            steps: self.steps,
            rejects: self.rejects,
            metadata: metadata.collect(),
            dropped_trees: self.dropped_trees,
            parked: self.parked,
            unparked: self.unparked,
            parking: self.parking,
            unreadable: self.unreadable,
        }
    }
}
