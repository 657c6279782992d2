//! Plan: computes what a batch of messages changes, against the state before it. Changes nothing on the
//! shard; it may create boards in the registry.
//!
//! Knows: jobs, the current entries, and the batch's own earlier changes. Must not know: disks; it gets a
//! shard to read and returns a [`Plan`].
//!
//! **The lock is yielded while planning.** A batch takes a millisecond and more to plan. Meanwhile a thread
//! that waits for the write lock blocks all later readers. So the read lock is released and taken again every
//! few jobs, and it is not held while the disk is read. That is sound because nothing that a plan depends on
//! changes meanwhile. Members, boards and entries are changed by applying steps, and by releasing the members
//! of dropped boards; both are done by the thread that plans. Other threads change only
//! - which boards have joined a checkpoint, and the checkpoint's copies of pages, neither of which a plan
//!   reads; and
//! - which drops are remembered, without NATS: a drop is forgotten once it is complete on every shard. A plan
//!   looks at drops only to skip a definition that was decided before its board's drop. The result is the
//!   same whether a drop is forgotten between two jobs of a batch or between two batches.
//!
//! So no reference into the shard is kept from one job to the next, but values read earlier stay valid.
//!
//! A plan holds every change in two forms. The **commit** needs each (tree, member) once, with its entry
//! before and after the batch. The **apply** needs steps: whole messages in their order, each step short
//! enough to apply under one hold of the lock, so that a reader always sees the state at the end of a
//! message.
//!
//! - [`planned`]: what a plan consists of
//! - [`messages`], [`look_ahead`]: how messages become steps
//! - [`jobs`], [`parked`]: what a job does, now or once its board is defined
//! - [`awaited`]: jobs whose outcomes clients wait for
//! - [`plain`]: the commonest jobs, by a shorter way
//! - [`work`]: how much the jobs of a message may do
//! - [`trim`]: which entries a trim removes; [`store`]: by which ones a result replaces all of a board
//! - [`expiry`]: the entries that expire
//! - [`windows`]: the instances that a job changes, and those whose time is over
//! - [`early`]: the instances that jobs have entered and that have not begun
//! - [`movement`]: what is kept of entries that change for the first time since an instance began
//! - [`top_k`]: which member a new one replaces where memory is fixed
//! - [`profiles`]: what becomes of a member's profile
//! - [`bans`]: who is hidden; [`everywhere`]: who leaves every board
//! - [`boards`], [`changes`]: boards and entries as the batch sees them
//! - [`member_records`]: bans and versions of members as the batch sees them; [`last_jobs`]: when boards
//!   that end after a quiet time had their last job; [`job_ids`]: ids of jobs that were applied
//! - [`packed`]: how the batch keeps the entries
//! - [`hashed`]: what of all that is mixed into the hash of the log

mod planned;

mod look_ahead;
mod messages;

mod awaited;
mod bans;
mod early;
mod everywhere;
mod expiry;
mod jobs;
mod movement;
mod parked;
mod plain;
mod profiles;
mod read_only;
mod store;
mod top_k;
mod trim;
mod windows;
mod work;

mod boards;
mod changes;
mod member_records;
mod packed;

mod hashed;
mod job_ids;
mod last_jobs;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::fast::{FixedState, RandomState};
use hashbrown::HashMap;

pub use messages::STEP_JOBS;
pub use parked::UNPARKED_PER_MESSAGE;
pub use planned::{
    BesideEntries, Plan, PlannedBoard, PlannedBoards, PlannedJob, PlannedStep, PlannedUnparked, ToldMessage,
};

use crate::job::JobPlace;
use crate::state::{
    Applied, BoardEvent, Dropped, EarlyInstances, IdBytes, LastJobChange, LogHash, ShardTime, Step,
    StepPlace, TreeId,
};
use crate::state_lock::{Purpose, StateLock, YieldingReadGuard};
use crate::storage::codec::{DeltaEncoder, MetadataRecord, ParkedRecord, ProfileRecord, RejectRecord};
use crate::tree::Handle;
use crate::types::{BoardName, MemberId, Sequence, ShardId, Timestamp};
use crate::writer::outcome::{FoundBoard, LeftBehind};
use crate::writer::parking::{ParkedJob, Parking};
use crate::writer::plan::boards::ChangedBoards;
use crate::writer::plan::changes::NetChange;
use crate::writer::plan::expiry::DueEntries;
use crate::writer::plan::hashed::BatchHash;
use crate::writer::plan::job_ids::BatchJobIds;
use crate::writer::plan::last_jobs::ChangedLastJobs;
use crate::writer::plan::look_ahead::{LOOK_AHEAD, only_job};
use crate::writer::plan::member_records::MemberRecords;
use crate::writer::plan::movement::KeptMovement;
use crate::writer::plan::packed::PackedEntries;
use crate::writer::plan::plain::PlainBoard;
use crate::writer::plan::profiles::BatchProfile;
use crate::writer::plan::top_k::CountedTrees;
use crate::writer::plan::windows::{ByWindow, DueDrops, EnteredInstance};
use crate::writer::registry::Registry;
use crate::writer::source::Message;

/// Reads jobs of a line from a place on: at most as many as given, and up to and including the first for
/// which [`ReadOn`] returns false. An error says why they cannot be read.
pub type ReadParked<'a> =
    dyn Fn(u32, JobPlace, usize, ReadOn<'_>) -> Result<Vec<(JobPlace, ParkedJob)>, String> + 'a;
/// Reads the profile of a member. An error says why it cannot be read.
pub type ReadProfile<'a> = dyn Fn(&MemberId) -> Result<Option<ProfileRecord>, String> + 'a;
/// Reads the metadata of an entry. An error says why they cannot be read.
pub type ReadMetadata<'a> = dyn Fn(TreeId, &[u8]) -> Result<Option<MetadataRecord>, String> + 'a;
/// Decides whether to read further jobs after this one.
pub type ReadOn<'a> = &'a mut dyn FnMut(&ParkedJob) -> bool;

/// Changes encoded into the delta before the lock is yielded: some ten microseconds.
const CHANGES_ENCODED_PER_YIELD: usize = 64;

/// Upper bound of the changes that memory is reserved for in advance: more than the largest batches have
/// jobs.
const CHANGES_RESERVED: usize = 1 << 14;

/// What a planner needs to know about its shard.
pub struct Planner<'a> {
    pub shard: &'a StateLock,
    pub id: ShardId,
    pub shards: u16,
    pub registry: &'a Registry,
    /// What is known of the time after the last message.
    pub time: ShardTime,
    /// The instances that had not begun by that time. The plan takes them, and gives them back.
    pub early: Cell<EarlyInstances>,
    /// The hash of the log up to the last message; `None` where no other replica could compare it.
    pub hash: Option<LogHash>,
    /// Reads a line of parked jobs, as of the last commit.
    pub read_parked: &'a ReadParked<'a>,
    /// Reads a profile, as of the last commit.
    pub read_profile: &'a ReadProfile<'a>,
    /// Reads metadata of an entry, as of the last commit.
    pub read_metadata: &'a ReadMetadata<'a>,
}

struct Batch<'a> {
    planner: &'a Planner<'a>,
    /// The state before the batch.
    shard: YieldingReadGuard<'a>,
    net_changes: Vec<NetChange>,
    /// The entries of `net_changes`.
    packed: PackedEntries,
    net_change_index: HashMap<(TreeId, Handle), usize, FixedState>,
    /// The keys of `net_change_index`, by member. Built by the first job that needs to know a member's
    /// boards.
    changed_by_member: Option<BTreeSet<(Handle, TreeId)>>,
    /// Members that the shard does not know yet.
    new_members: HashMap<IdBytes, Handle, RandomState>,
    added: usize,
    boards: ChangedBoards,
    /// The board of the last plain job, as the batch sees it.
    plain_board: Option<PlainBoard>,
    /// Instances that jobs entered last.
    entered: ByWindow<EnteredInstance>,
    /// Where entries that change are kept for the movement since the current instances began.
    movements: ByWindow<KeptMovement>,
    /// The trees of `top_k` boards that jobs have changed.
    counted: CountedTrees,
    /// When instances are dropped that this batch has created.
    drops: DueDrops,
    /// Which entries expire next.
    expiring: DueEntries,
    /// The boards of the trees that this batch creates.
    new_trees: BTreeMap<TreeId, BoardName>,
    /// How many boards there are.
    board_count: usize,
    /// The remembered drops after the batch, if it has any.
    dropped: Option<Dropped>,
    /// The boards on which the job being planned takes effect, if a client waits for its outcome. `None` for
    /// most jobs of a stream.
    outcome_boards: Option<PlannedBoards>,
    /// Whether that client is told of ranks, so that the job is a part of its step.
    outcome_has_ranks: bool,
    /// Of the job being planned, if it is about a profile: whether it changes that.
    outcome_profile: Option<bool>,
    /// Of the job being planned, if it removes a member from every board: what it leaves.
    outcome_left: Option<Arc<LeftBehind>>,
    /// The effective time of the message being planned: by it, instances close and entries expire.
    time: Timestamp,
    /// The leap that is not believed at that message; see [`ShardTime`].
    leap: Option<Timestamp>,
    /// The time of that message's jobs: the effective one, unless the message is of a leap.
    message_time: Timestamp,
    /// The instances that have not begun by the effective time.
    early: EarlyInstances,
    /// The message before it.
    last_message: Applied,
    next_tree: u32,
    events: Vec<BoardEvent>,
    metadata: BTreeMap<(TreeId, Handle), (Vec<u8>, Option<MetadataRecord>)>,
    /// Profiles that the batch's jobs named, by member, as they have left them, and whether that is written.
    profiles: BTreeMap<MemberId, BatchProfile>,
    /// Bans and versions of members that the batch's jobs changed.
    member_records: MemberRecords,
    /// The last jobs of boards that end after a quiet time.
    last_jobs: ChangedLastJobs,
    job_ids: BatchJobIds,
    /// Members that left every board, and by what job: what earlier rejects have of them is to be erased.
    erased: Vec<(MemberId, JobPlace)>,
    dropped_trees: Vec<TreeId>,
    steps: Vec<PlannedStep>,
    /// The board that the last such job named.
    found_board: Option<Arc<FoundBoard>>,
    /// The step being filled.
    step: Step,
    /// Where the last part of it ends, if it is planned in parts.
    parts_end: StepPlace,
    /// Its messages that are answered.
    told: Vec<ToldMessage>,
    step_jobs: usize,
    /// The trees that the jobs of the message have been decided on so far.
    trees_counted: usize,
    /// And those of the jobs before this one.
    trees_counted_before: usize,
    /// As how many jobs what was due at the message counts.
    due_cost: usize,
    /// Number of the current step, or part of one. Every change belongs to exactly one.
    step_number: usize,
    rejects: Vec<RejectRecord>,
    hash: Option<BatchHash>,
    parking: Option<Parking>,
    parked: Vec<(u32, ParkedRecord)>,
    unparked: Vec<(u32, Sequence, u32)>,
    unreadable: Option<String>,
    /// Whether any board of the shard, or the service, is read-only, or has been within this batch.
    may_be_read_only: bool,
    /// Whether parked jobs are being replayed, in their order. They must not park behind the rest of their
    /// own line.
    replaying_parked: bool,
    jobs: usize,
    expired: usize,
    instances_dropped: usize,
    /// Instances that had begun, and begin later or never by a definition that the batch brought.
    taken_back: Vec<BoardName>,
}

impl Planner<'_> {
    /// Plans a batch: at least one message, in sequence.
    ///
    /// # Arguments
    /// `parking`: the parked jobs, if definitions come through the queue. `None`: the registry creates
    /// unknown boards at once.
    pub fn plan(&self, messages: Vec<Message>, parking: Option<Parking>) -> Plan {
        // Memory is reserved before the lock is taken, for one board per job: growing a vector of ten
        // thousand changes copies it into fresh memory, which takes milliseconds.
        let jobs: usize = messages.iter().map(|message| message.payload.cost().min(CHANGES_RESERVED)).sum();
        let jobs = CHANGES_RESERVED.min(jobs);
        let (net_changes, net_change_index) =
            (Vec::with_capacity(jobs), HashMap::with_capacity_and_hasher(jobs, FixedState::default()));
        let new_members = HashMap::with_capacity_and_hasher(jobs, RandomState::default());
        let shard = YieldingReadGuard::new(self.shard, Purpose::Plan);
        // Not the first message's own sequence: the delta covers a gap in the queue that an operator has
        // accepted.
        let mut applied = shard.applied;
        let first = applied.sequence.next();
        let (board_count, next_tree) = (shard.board_count(), shard.next_tree().0);
        let may_be_read_only = shard.read_only_count() > 0;
        let mut batch = Batch {
            planner: self,
            shard,
            net_changes,
            packed: PackedEntries::with_capacity(2 * jobs),
            net_change_index,
            changed_by_member: None,
            new_members,
            added: 0,
            boards: BTreeMap::new(),
            plain_board: None,
            entered: ByWindow::default(),
            movements: ByWindow::default(),
            counted: CountedTrees::default(),
            drops: DueDrops::default(),
            expiring: DueEntries::default(),
            new_trees: BTreeMap::new(),
            board_count,
            dropped: None,
            outcome_boards: None,
            outcome_has_ranks: false,
            outcome_profile: None,
            outcome_left: None,
            time: self.time.effective,
            leap: self.time.leap,
            message_time: self.time.effective,
            early: self.early.take(),
            last_message: applied,
            next_tree,
            events: Vec::new(),
            metadata: BTreeMap::new(),
            profiles: BTreeMap::new(),
            member_records: MemberRecords::default(),
            last_jobs: ChangedLastJobs::default(),
            job_ids: BatchJobIds::default(),
            erased: Vec::new(),
            dropped_trees: Vec::new(),
            steps: Vec::new(),
            found_board: None,
            step: Step::default(),
            parts_end: StepPlace::default(),
            told: Vec::new(),
            step_jobs: 0,
            trees_counted: 0,
            trees_counted_before: 0,
            due_cost: 0,
            step_number: 0,
            rejects: Vec::new(),
            hash: self.hash.map(|running| BatchHash { running, kept: Vec::new() }),
            parking,
            parked: Vec::new(),
            unparked: Vec::new(),
            unreadable: None,
            may_be_read_only,
            replaying_parked: false,
            jobs: 0,
            expired: 0,
            instances_dropped: 0,
            taken_back: Vec::new(),
        };
        let mut messages = messages;
        for group in messages.chunks_mut(LOOK_AHEAD) {
            batch.shard.yield_if_due();
            // Messages of one job each are prefetched in groups, as the jobs of one message are.
            batch.look_ahead(group.iter().filter_map(only_job));
            for message in group {
                applied =
                    Applied { sequence: message.sequence, timestamp: message.timestamp, hash: message.hash };
                batch.note_time(message.timestamp);
                batch.begin_work();
                batch.forget_old_job_ids();
                batch.begin_hashing(applied);
                batch.plan_message(message, applied);
                batch.end_hashing();
                batch.last_message = applied;
            }
        }
        batch.close_step();
        batch.finish(first, applied)
    }
}

impl Batch<'_> {
    fn note_time(&mut self, message: Timestamp) {
        let known = self.known_time().after(message);
        (self.time, self.leap, self.message_time) = (known.effective, known.leap, known.of_message(message));
    }

    /// What is known of the time after the message being planned.
    fn known_time(&self) -> ShardTime {
        ShardTime { effective: self.time, leap: self.leap }
    }

    fn finish(mut self, first: Sequence, applied: Applied) -> Plan {
        let time = self.known_time();
        let (new_members, net_changes, packed) = (&self.new_members, &self.net_changes, &self.packed);
        let names = self.shard.unlocked(|| {
            let names = new_members.iter().map(|(id, handle)| (*handle, &**id));
            names.collect::<HashMap<Handle, &[u8], FixedState>>()
        });
        // Changes that cancel out are logged too: a checkpoint may have read the entry while the batch was
        // half applied. They stay in the order of their jobs, because those of one job name one member.
        let mut encoder = DeltaEncoder::new(first, applied, &self.events, net_changes.len());
        for changes in net_changes.chunks(CHANGES_ENCODED_PER_YIELD) {
            self.shard.yield_if_due();
            // It was read when its job was planned, which may be a thousand jobs ago.
            for change in changes {
                self.shard.members.prefetch_id_of(change.handle);
            }
            for change in changes {
                let known = names.get(&change.handle).copied();
                let id = known.unwrap_or_else(|| self.shard.members.id(change.handle));
                encoder.push(change.tree, id, packed.get(change.before), packed.get(change.after));
            }
        }
        // Release the lock: nothing more is read from the shard.
        drop(self.shard);
        let hash = self.hash.map(|BatchHash { running, kept }| (running, kept));
        let metadata = self.metadata.into_iter().map(|((tree, _), (member, record))| (tree, member, record));
        let profiles = self.profiles.into_iter().filter(|(_, profile)| profile.is_changed);
        let profiles = profiles.map(|(member, profile)| (member.as_bytes().to_vec(), profile.record));
        Plan {
            applied,
            time,
            early: self.early,
            jobs: self.jobs,
            changes: net_changes.len(),
            job_ids: self.job_ids.into_changes(),
            expired: self.expired,
            instances_dropped: self.instances_dropped,
            taken_back: self.taken_back,
            delta: encoder.finish(),
            steps: self.steps,
            rejects: self.rejects,
            hash,
            metadata: metadata.collect(),
            profiles: profiles.collect(),
            bans: self.member_records.ban_changes,
            versions: self.member_records.version_changes,
            last_jobs: self
                .last_jobs
                .into_iter()
                .map(|(board, after)| LastJobChange { board, after })
                .collect(),
            erased: self.erased,
            dropped_trees: self.dropped_trees,
            parked: self.parked,
            unparked: self.unparked,
            parking: self.parking,
            unreadable: self.unreadable,
        }
    }
}
