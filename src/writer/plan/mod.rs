//! Plan: what a batch of messages changes, worked out against the state before it. Changes nothing itself.
//!
//! Knows: jobs, the current entries, and the batch's own earlier changes. Must not know: disks or locks; it is handed a
//! shard to read and gives back a [`Plan`].
//!
//! A plan says everything twice, for its two readers. The **commit** wants each (tree, member) once, as the batch found
//! it and left it. The **apply** wants steps: whole messages in their order, each step short enough to apply under one
//! lock, so that a reader always sees the state at some message's end.
//!
//! - [`planned`]: what a plan consists of
//! - [`messages`], [`look_ahead`]: the batch's way through its messages
//! - [`jobs`], [`waiting`]: what comes of a job, now or once its board is defined
//! - [`boards`], [`changes`]: boards and entries as the batch sees them

mod planned;

mod look_ahead;
mod messages;

mod jobs;
mod waiting;

mod boards;
mod changes;

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

pub use planned::{Plan, PlannedBoard, PlannedFreed, PlannedJob, PlannedStep};
pub use waiting::FREED_PER_MESSAGE;

use crate::job::Job;
use crate::state::{Applied, BoardEvent, Dropped, Shard, Step, TreeId};
use crate::storage::codec::{DeltaEncoder, MetadataRecord, ParkedRecord, RejectRecord};
use crate::tree::Handle;
use crate::types::{BoardName, Sequence, ShardId, Timestamp};
use crate::writer::parking::{ParkedJob, Parking, Place};
use crate::writer::plan::boards::DefinedBoard;
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

/// What a planner is told about its shard.
pub struct Planner<'a> {
    pub shard: &'a Shard,
    pub id: ShardId,
    pub shards: u16,
    pub registry: &'a Registry,
    /// The effective time of the last message; see [`Plan::time`].
    pub time: Timestamp,
    pub describe: &'a dyn Fn(&Job) -> Vec<u8>,
    /// Reads a line of waiting jobs, as the last commit left it.
    pub parked: &'a ReadParked<'a>,
}

struct Batch<'a> {
    planner: &'a Planner<'a>,
    net: Vec<NetChange>,
    by_entry: HashMap<(TreeId, Handle), usize, foldhash::fast::FixedState>,
    /// The keys of `by_entry`, by member: from the first job on that asks which boards a member is on.
    changed_of: Option<BTreeSet<(Handle, TreeId)>>,
    /// Members that the shard does not know yet.
    newcomers: HashMap<Box<[u8]>, Handle, foldhash::fast::RandomState>,
    added: usize,
    /// Boards that the batch defined (`Some`) or dropped (`None`).
    boards: BTreeMap<BoardName, Option<DefinedBoard>>,
    /// Whose the trees are that come with the batch.
    new_trees: BTreeMap<TreeId, BoardName>,
    /// How many boards there are.
    board_count: usize,
    /// What the shard will remember of drops, if the batch has any.
    dropped: Option<Dropped>,
    /// Where the job being planned takes effect, if somebody waits to be told. Nobody does in a stream's millions.
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
    /// Jobs are planned that waited, in their order: they do not wait for those of their member that still do.
    frees: bool,
    jobs: usize,
}

impl Planner<'_> {
    /// Plans a batch: at least one message, in sequence.
    ///
    /// # Arguments
    /// `parking`: where jobs for unknown boards wait, if definitions come through the queue; else the registry decides
    /// them at once.
    #[must_use]
    pub fn plan(&self, messages: Vec<Message>, parking: Option<Parking>) -> Plan {
        let mut batch = Batch {
            planner: self,
            net: Vec::new(),
            by_entry: HashMap::default(),
            changed_of: None,
            newcomers: HashMap::default(),
            added: 0,
            boards: BTreeMap::new(),
            new_trees: BTreeMap::new(),
            board_count: self.shard.board_count(),
            dropped: None,
            told: None,
            time: self.time,
            next_tree: self.shard.next_tree().0,
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
        // Not the first message's own: where an operator had a gap in the queue passed over, the delta covers it.
        let first = self.shard.applied.sequence.next();
        let mut applied = self.shard.applied;
        let mut messages = messages.into_iter();
        for turn in (0..LOOK_AHEAD).cycle() {
            if turn == 0 {
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
    fn finish(self, first: Sequence, applied: Applied) -> Plan {
        let members = &self.planner.shard.members;
        let names: HashMap<Handle, &[u8], foldhash::fast::FixedState> =
            self.newcomers.iter().map(|(id, handle)| (*handle, &**id)).collect();
        let id = |handle: Handle| names.get(&handle).copied().unwrap_or_else(|| members.id(handle));
        // What netted to nothing is redone too: a checkpoint may have looked while the batch was half applied.
        let mut net: Vec<&NetChange> = self.net.iter().collect();
        net.sort_by_key(|net| net.tree);
        let mut encoder = DeltaEncoder::new(first, applied, &self.events, net.len());
        for change in &net {
            encoder.push(change.tree, id(change.handle), change.before.as_ref(), change.after.as_ref());
        }
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
