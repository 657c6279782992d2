//! Plan: what a batch of messages changes, worked out against the state before it. Changes nothing itself.
//!
//! Knows: jobs, the current entries, and the batch's own earlier changes. Must not know: disks or locks; it is handed a
//! shard to read and gives back a [`Plan`].
//!
//! A plan says everything twice, for its two readers. The **commit** wants each (tree, member) once, as the batch found
//! it and left it. The **apply** wants steps: whole messages in their order, each step short enough to apply under one
//! lock, so that a reader always sees the state at some message's end.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use tokio::sync::oneshot;

use crate::board::{Definition, Policy};
use crate::job::{Job, Op, Reject, RejectCode, Targets};
use crate::state::{Applied, BoardEvent, Change, Entry, Incarnation, Shard, Step, TreeId};
use crate::storage::codec::{DeltaEncoder, MetadataRecord, ParkedRecord, RejectRecord};
use crate::tree::Handle;
use crate::types::{BoardName, MemberId, Score, Sequence, ShardId, Timestamp, shard_of};
use crate::writer::decide::{Decision, Request, decide};
use crate::writer::outcome::MessageOutcome;
use crate::writer::parking::{self, ParkedJob, Parking, Place};
use crate::writer::registry::Registry;
use crate::writer::source::{BadJob, CommitFailed, Message, Payload};

/// Jobs per step of messages that nobody waits for: some 50 µs under the lock.
const STEP_JOBS: usize = 64;
/// Jobs looked at ahead, so that the memory they need is on its way: enough to cover a cache miss, few enough to stay
/// in the first-level cache.
const LOOK_AHEAD: usize = 16;
/// A rejected job is stored up to this many bytes.
const REJECTED_JOB_BYTES: usize = 4_096;

/// A change as the batch found the entry and leaves it.
#[derive(Debug, Clone, Copy)]
struct NetChange {
    tree: TreeId,
    handle: Handle,
    before: Option<Entry>,
    after: Option<Entry>,
    /// The last step that changed it, and where in that step's changes.
    step: usize,
    at: usize,
}

/// Where a job was meant to take effect, for the answer.
#[derive(Debug, Clone)]
pub struct PlannedBoard {
    pub board: BoardName,
    pub definition: Arc<Definition>,
    pub tree: TreeId,
    pub handle: Option<Handle>,
    pub changed: bool,
}

/// One job of a message that somebody waits for, applied on its own so that its place before and after can be told.
#[derive(Debug, Clone)]
pub enum PlannedJob {
    Rejected(Reject),
    Applied { step: Step, boards: Vec<PlannedBoard> },
    Parked,
}

/// What is applied under one hold of the lock.
pub enum PlannedStep {
    Bulk(Step),
    Answered {
        jobs: Vec<PlannedJob>,
        applied: Applied,
        answer: oneshot::Sender<Result<MessageOutcome, CommitFailed>>,
    },
}

/// What a batch comes to.
pub struct Plan {
    pub first: Sequence,
    pub applied: Applied,
    pub jobs: usize,
    pub changes: usize,
    pub steps: Vec<PlannedStep>,
    pub rejects: Vec<RejectRecord>,
    pub delta: Vec<u8>,
    pub metadata: Vec<(TreeId, Vec<u8>, Option<MetadataRecord>)>,
    pub dropped_trees: Vec<TreeId>,
    /// Jobs that wait from now on, in the form that is stored.
    pub parked: Vec<ParkedRecord>,
    /// Those that wait no longer.
    pub unparked: Vec<Place>,
    /// What the planner was given, with what this batch changed. Should the batch not be committed, what is on disk
    /// counts.
    pub parking: Option<Parking>,
}

/// What comes of a job.
enum JobPlan {
    Taken,
    Parked,
}

/// What a planner is told about its shard.
pub struct Planner<'a> {
    pub shard: &'a Shard,
    pub id: ShardId,
    pub shards: u16,
    pub registry: &'a Registry,
    pub describe: &'a dyn Fn(&Job) -> Vec<u8>,
}

/// A board as the batch sees it.
#[derive(Clone, Copy)]
struct BatchBoard<'a> {
    definition: &'a Arc<Definition>,
    tree: TreeId,
    incarnation: Incarnation,
}

/// A board that the batch defined.
struct DefinedBoard {
    definition: Arc<Definition>,
    tree: TreeId,
    incarnation: Incarnation,
}

struct Batch<'a> {
    planner: &'a Planner<'a>,
    net: Vec<NetChange>,
    by_entry: HashMap<(TreeId, Handle), usize, foldhash::fast::FixedState>,
    /// Members that the shard does not know yet.
    newcomers: HashMap<Box<[u8]>, Handle, foldhash::fast::RandomState>,
    added: usize,
    /// Boards that the batch defined (`Some`) or dropped (`None`).
    boards: BTreeMap<BoardName, Option<DefinedBoard>>,
    /// What the batch dropped, and which life of it.
    dropped: BTreeMap<BoardName, Incarnation>,
    /// Where the job being planned takes effect, if somebody waits to be told. Nobody does in a stream's millions.
    told: Option<Vec<PlannedBoard>>,
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
    parked: Vec<ParkedRecord>,
    unparked: Vec<Place>,
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
            newcomers: HashMap::default(),
            added: 0,
            boards: BTreeMap::new(),
            dropped: BTreeMap::new(),
            told: None,
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
            batch.plan_message(message, applied);
        }
        batch.close_step();
        batch.finish(first, applied)
    }
}

impl Batch<'_> {
    fn plan_message(&mut self, message: Message, applied: Applied) {
        match (message.payload, message.answer) {
            (Payload::Jobs(jobs), Some(answer)) => {
                self.close_step();
                let mut planned = Vec::with_capacity(jobs.len());
                self.with_look_ahead(&jobs, |batch, index, job| {
                    batch.told = Some(Vec::new());
                    let outcome = batch.plan_job(job, index, applied);
                    let boards = batch.told.take().unwrap_or_default();
                    let mut step = batch.take_step();
                    step.applied = applied;
                    planned.push(match outcome {
                        Ok(JobPlan::Taken) => PlannedJob::Applied { step, boards },
                        Ok(JobPlan::Parked) => PlannedJob::Parked,
                        Err(reject) => PlannedJob::Rejected(reject),
                    });
                });
                self.steps.push(PlannedStep::Answered { jobs: planned, applied, answer });
            }
            (Payload::Jobs(jobs), None) => {
                self.with_look_ahead(&jobs, |batch, index, job| {
                    // The reason is among the rejects already, and nobody waits for it.
                    let _ = batch.plan_job(job, index, applied);
                });
                self.end_message(jobs.len(), applied);
            }
            (Payload::Define { board, incarnation, definition }, answer) => {
                // A definition that its own drop overtook must not bring the board back; nor one that the next life did.
                if self.dropped(&board).is_none_or(|dropped| dropped < incarnation)
                    && self.board(&board).is_none_or(|known| known.incarnation <= incarnation)
                {
                    self.define(&board, incarnation, definition);
                    self.unpark(applied);
                }
                self.end_command(applied, answer);
            }
            (Payload::Drop { board, incarnation }, answer) => {
                self.close_step();
                self.drop_board(board, incarnation);
                self.end_command(applied, answer);
            }
        }
    }

    fn end_command(
        &mut self,
        applied: Applied,
        answer: Option<oneshot::Sender<Result<MessageOutcome, CommitFailed>>>,
    ) {
        self.end_message(1, applied);
        self.close_step();
        if let Some(answer) = answer {
            self.steps.push(PlannedStep::Answered { jobs: Vec::new(), applied, answer });
        }
    }

    fn end_message(&mut self, jobs: usize, applied: Applied) {
        self.step.applied = applied;
        self.step_jobs += jobs;
        if self.step_jobs >= STEP_JOBS {
            self.close_step();
        }
    }

    /// Plans the jobs that waited for no other board than are known now.
    fn unpark(&mut self, applied: Applied) {
        let Some(mut parking) = self.parking.take() else { return };
        let free = if parking.is_empty() {
            Vec::new()
        } else {
            // Where no more boards can come, what waits for one is rejected, and holds up nobody any longer.
            let has_all = self.has_all_boards(&parking);
            parking.take_free(|name| has_all || self.board(name).is_some())
        };
        self.parking = Some(parking);
        self.frees = true;
        for (index, (place, parked)) in free.into_iter().enumerate() {
            self.unparked.push(place);
            // What comes of it is this message's doing; its time is that of the message that brought it.
            let applied = Applied { timestamp: parked.timestamp, ..applied };
            let _ = self.plan_job(&Ok(parked.job), index, applied);
        }
        self.frees = false;
    }

    /// Ends the step being filled, if there is anything in it.
    fn close_step(&mut self) {
        if self.step_jobs > 0 {
            let step = self.take_step();
            self.steps.push(PlannedStep::Bulk(step));
            self.step_jobs = 0;
        }
    }

    fn take_step(&mut self) -> Step {
        self.step_number += 1;
        std::mem::take(&mut self.step)
    }

    /// Calls `each` for every job, and has what the next ones need fetched meanwhile.
    fn with_look_ahead(
        &mut self,
        jobs: &[Result<Job, BadJob>],
        mut each: impl FnMut(&mut Self, usize, &Result<Job, BadJob>),
    ) {
        for (group, start) in jobs.chunks(LOOK_AHEAD).zip((0..).step_by(LOOK_AHEAD)) {
            if jobs.len() > 1 {
                self.look_ahead(group.iter().filter_map(|job| job.as_ref().ok()));
            }
            for (offset, job) in group.iter().enumerate() {
                each(self, start + offset, job);
            }
        }
    }

    /// A look-up waits for memory four times over: index, id, locator, leaf. Each wait is shared by the group.
    fn look_ahead<'a>(&self, mut jobs: impl Iterator<Item = &'a Job> + Clone) {
        let shard = self.planner.shard;
        let members = &shard.members;
        let mut probes = [None; LOOK_AHEAD];
        for (probe, job) in probes.iter_mut().zip(jobs.clone()) {
            let hashed = members.probe(job.member.as_bytes());
            members.prefetch_index(hashed);
            *probe = Some(hashed);
        }
        let mut handles = [None; LOOK_AHEAD];
        for (handle, probe) in handles.iter_mut().zip(probes) {
            *handle = probe.and_then(|probe| members.prefetch_id(probe));
        }
        let tree_of = |job: &Job| match &job.targets {
            Targets::Boards(boards) => shard.board_tree(boards.first()?.0.as_str()),
            Targets::EveryBoard => None,
        };
        // Most batches name one board; looking it up once is enough for a hint.
        let Some(tree) = jobs.find_map(tree_of) else { return };
        handles.iter().flatten().for_each(|handle| tree.tree.prefetch_locator(*handle));
        handles.iter().flatten().for_each(|handle| tree.tree.prefetch_entry(*handle));
    }

    /// Plans one job; a refused one is put down as a reject.
    fn plan_job(
        &mut self,
        job: &Result<Job, BadJob>,
        index: usize,
        applied: Applied,
    ) -> Result<JobPlan, Reject> {
        self.jobs += 1;
        let outcome = match job {
            Ok(job) => self.try_job(job, index, applied),
            Err(bad) => Err(bad.reject.clone()),
        };
        if let Err(reject) = &outcome {
            let mut bytes = match job {
                Ok(job) => (self.planner.describe)(job),
                Err(bad) => bad.bytes.clone(),
            };
            bytes.truncate(REJECTED_JOB_BYTES);
            self.rejects.push(RejectRecord {
                sequence: applied.sequence,
                index: u32::try_from(index).unwrap_or(u32::MAX),
                code: reject.code,
                detail: reject.detail.clone(),
                job: bytes,
            });
        }
        outcome
    }

    fn try_job(&mut self, job: &Job, index: usize, applied: Applied) -> Result<JobPlan, Reject> {
        let home = shard_of(&job.member, self.planner.shards);
        if home != self.planner.id {
            let detail = format!("{} belongs to shard {home} of {}", job.member, self.planner.shards);
            return Err(Reject::new(RejectCode::WrongShard, detail));
        }
        if self.must_wait(job)? {
            self.park(job, index, applied);
            return Ok(JobPlan::Parked);
        }
        let handle = self.find_member(&job.member);
        if let Targets::Boards(boards) = &job.targets
            && let [(board, score)] = boards.as_slice()
        {
            let mut decided = [self.decide_on(job, board, score.as_ref(), handle, applied.timestamp)?];
            self.settle(&mut decided)?;
            let [decided] = decided;
            self.take(job, decided, handle, applied);
            return Ok(JobPlan::Taken);
        }
        // All or nothing: every board is asked before any is changed.
        let mut decided = Vec::new();
        let every;
        match &job.targets {
            Targets::Boards(boards) => {
                for (board, score) in boards {
                    decided.push(self.decide_on(job, board, score.as_ref(), handle, applied.timestamp)?);
                }
            }
            Targets::EveryBoard => {
                every = handle.map(|handle| self.boards_of(handle)).unwrap_or_default();
                for board in &every {
                    decided.push(self.decide_on(job, board, None, handle, applied.timestamp)?);
                }
            }
        }
        self.settle(&mut decided)?;
        let mut handle = handle;
        for decided in decided {
            handle = self.take(job, decided, handle, applied);
        }
        Ok(JobPlan::Taken)
    }

    /// Whether a job has to wait for the queue to bring a board's definition.
    fn must_wait(&self, job: &Job) -> Result<bool, Reject> {
        let Some(parking) = self.parking.as_ref().filter(|_| !self.frees) else { return Ok(false) };
        let unknown = parking::boards(job).find(|name| self.board(name).is_none());
        if unknown.is_none() && !parking.holds(&job.member) {
            return Ok(false);
        }
        let refuse = |detail| Err(Reject::new(RejectCode::UnknownBoard, detail));
        match unknown {
            Some(name) if !parking.auto_create => refuse(format!("there is no board {name}")),
            Some(name) if self.has_all_boards(parking) => refuse(no_more_boards(name, parking)),
            Some(name) if parking.is_full() => {
                refuse(format!("there is no board {name}, and too many jobs wait for boards to be defined"))
            }
            // It is not applied either: a member's jobs keep their order.
            None if parking.is_full() => refuse(
                "an earlier job of this member waits for its board to be defined, and too many jobs wait"
                    .to_owned(),
            ),
            _ => Ok(true),
        }
    }

    /// Whether the shard holds as many boards as there can be: no definition of another one will come. Told by the
    /// shard's own boards, so that every replica rejects the same jobs.
    fn has_all_boards(&self, parking: &Parking) -> bool {
        let shard = self.planner.shard;
        let is_known = |name: &BoardName| shard.board(name.as_str()).is_some();
        let (mut defined, mut dropped) = (0, 0);
        for (name, board) in &self.boards {
            match board {
                Some(_) => defined += usize::from(!is_known(name)),
                None => dropped += usize::from(is_known(name)),
            }
        }
        shard.board_count() + defined - dropped >= parking.boards_max
    }

    fn park(&mut self, job: &Job, index: usize, applied: Applied) {
        let Some(parking) = &mut self.parking else { return };
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let Applied { sequence, timestamp, .. } = applied;
        self.parked.push(ParkedRecord { sequence, index, timestamp, job: (self.planner.describe)(job) });
        parking.park((sequence, index), ParkedJob { timestamp, job: job.clone() });
    }

    /// Creates the boards that an accepted job names and nobody has. Should a client have defined one of them
    /// differently in this very moment, the job is refused rather than decided by rules that it did not meet.
    fn settle(&self, decided: &mut [Decided<'_>]) -> Result<(), Reject> {
        for decided in decided {
            if matches!(decided.board, Board::Nowhere) {
                let refuse = |detail: String| Reject::new(RejectCode::UnknownBoard, detail);
                let created = self.planner.registry.create_default(decided.name);
                let created = created.map_err(|refused| refuse(refused.to_string()))?;
                if *created.definition != Definition::default() {
                    return Err(refuse(
                        "the board was created just now with another definition; try again".to_owned(),
                    ));
                }
                let (definition, incarnation) = (created.definition, created.incarnation);
                decided.board = Board::Elsewhere { definition, incarnation };
            }
        }
        Ok(())
    }

    fn decide_on<'job>(
        &self,
        job: &Job,
        board: &'job BoardName,
        score: Option<&Score>,
        handle: Option<Handle>,
        now: Timestamp,
    ) -> Result<Decided<'job>, Reject> {
        let here = self.board(board);
        let known = match here {
            Some(known) => Board::Here(known.tree),
            None if self.parking.is_some() => {
                let detail = self.parking.as_ref().map(|parking| no_more_boards(board, parking));
                return Err(Reject::new(RejectCode::UnknownBoard, detail.unwrap_or_default()));
            }
            None => match self.planner.registry.get(board.as_str()) {
                Some(known) => {
                    Board::Elsewhere { definition: known.definition, incarnation: known.incarnation }
                }
                None if self.planner.registry.creates(board.as_str()) => Board::Nowhere,
                None => {
                    let detail = format!("there is no board {board}");
                    return Err(Reject::new(RejectCode::UnknownBoard, detail));
                }
            },
        };
        let default;
        let (definition, before) = match (here, &known) {
            (Some(board), _) => {
                (&**board.definition, handle.and_then(|handle| self.entry(board.tree, handle)))
            }
            (None, Board::Elsewhere { definition, .. }) => (&**definition, None),
            (None, Board::Here(_) | Board::Nowhere) => {
                default = Definition::default();
                (&default, None)
            }
        };
        let decision = decide(
            definition,
            before.as_ref(),
            &Request {
                op: job.op.unwrap_or_else(|| op_of(definition.policy)),
                score,
                version: job.version,
                at: job.at.unwrap_or(now),
                member: &job.member,
                metadata: job.meta.as_ref().map(|metadata| &*metadata.0 != "{}"),
            },
        )?;
        Ok(Decided { name: board, board: known, before, decision })
    }

    /// Puts a decision into the plan. Gives back the member's handle, which it may have needed.
    fn take(
        &mut self,
        job: &Job,
        decided: Decided<'_>,
        handle: Option<Handle>,
        applied: Applied,
    ) -> Option<Handle> {
        let Decided { name, board, before, decision } = decided;
        let tree = match board {
            Board::Here(tree) => tree,
            Board::Elsewhere { definition, incarnation } => self.define(name, incarnation, definition),
            Board::Nowhere => unreachable!("settled before anything is taken"),
        };
        let changes = before != decision.after || decision.takes_metadata;
        let handle = match handle {
            None if changes => Some(self.add_member(&job.member)),
            known => known,
        };
        if let Some(handle) = handle.filter(|_| changes) {
            self.change(tree, handle, before, decision.after);
            self.plan_metadata(job, tree, handle, before.as_ref(), &decision, applied.sequence);
        }
        if let Some(mut told) = self.told.take() {
            if let Some(board) = self.board(name) {
                let (board, definition) = (name.clone(), Arc::clone(board.definition));
                told.push(PlannedBoard { board, definition, tree, handle, changed: decision.changed });
            }
            self.told = Some(told);
        }
        handle
    }

    fn change(&mut self, tree: TreeId, handle: Handle, before: Option<Entry>, after: Option<Entry>) {
        let (step, at) = (self.step_number, self.step.changes.len());
        let change = Change { tree, handle, after };
        let index = *self.by_entry.entry((tree, handle)).or_insert(self.net.len());
        match self.net.get_mut(index) {
            Some(net) => {
                net.after = after;
                if net.step == step {
                    // Several jobs of a step for one entry become one change.
                    if let Some(earlier) = self.step.changes.get_mut(net.at) {
                        *earlier = change;
                    }
                    return;
                }
                (net.step, net.at) = (step, at);
            }
            None => self.net.push(NetChange { tree, handle, before, after, step, at }),
        }
        self.step.changes.push(change);
    }

    fn plan_metadata(
        &mut self,
        job: &Job,
        tree: TreeId,
        handle: Handle,
        before: Option<&Entry>,
        decision: &Decision,
        sequence: Sequence,
    ) {
        let had = before.is_some_and(|entry| entry.has_metadata);
        let has = decision.after.as_ref().is_some_and(|entry| entry.has_metadata);
        let record = match (&job.meta, decision.takes_metadata && has) {
            (Some(metadata), true) => {
                Some(MetadataRecord { sequence: sequence.0, json: metadata.0.to_string() })
            }
            _ if had && !has => None,
            _ => return,
        };
        self.metadata.insert((tree, handle), (job.member.as_bytes().to_vec(), record));
    }

    fn entry(&self, tree: TreeId, handle: Handle) -> Option<Entry> {
        // Looked up even in an empty table: the batch's own changes hide the state's.
        match self.by_entry.get(&(tree, handle)).and_then(|index| self.net.get(*index)) {
            Some(net) => net.after,
            None => self.planner.shard.entry(tree, handle),
        }
    }

    fn find_member(&self, member: &MemberId) -> Option<Handle> {
        let members = &self.planner.shard.members;
        members.get(member.as_bytes()).or_else(|| self.newcomers.get(member.as_bytes()).copied())
    }

    fn add_member(&mut self, member: &MemberId) -> Handle {
        let handle = self.planner.shard.members.upcoming(self.added);
        self.added += 1;
        self.step.added.push(member.as_bytes().into());
        self.newcomers.insert(member.as_bytes().into(), handle);
        handle
    }

    fn board(&self, name: &BoardName) -> Option<BatchBoard<'_>> {
        match self.boards.get(name) {
            Some(board) => {
                let DefinedBoard { definition, tree, incarnation } = board.as_ref()?;
                Some(BatchBoard { definition, tree: *tree, incarnation: *incarnation })
            }
            None => self.planner.shard.board(name.as_str()).map(|board| BatchBoard {
                definition: &board.definition,
                tree: board.all,
                incarnation: board.incarnation,
            }),
        }
    }

    /// The boards that know a member, by name.
    fn boards_of(&self, handle: Handle) -> Vec<BoardName> {
        let here = self.planner.shard.boards().map(|(name, _)| name);
        let names = here.chain(self.boards.keys());
        let knows = |name: &&BoardName| {
            self.board(name).is_some_and(|board| self.entry(board.tree, handle).is_some())
        };
        let mut names: Vec<BoardName> = names.filter(knows).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    fn define(&mut self, name: &BoardName, incarnation: Incarnation, definition: Arc<Definition>) -> TreeId {
        let known = self.board(name).map(|board| (board.incarnation, board.tree));
        let tree = match known {
            Some((known, tree)) if known == incarnation => tree,
            other => {
                // Another life of the board, whose drop never came this far.
                if let Some((_, tree)) = other {
                    self.forget_tree(tree);
                }
                self.next_tree += 1;
                TreeId(self.next_tree - 1)
            }
        };
        let board = DefinedBoard { definition: Arc::clone(&definition), tree, incarnation };
        self.put_event(BoardEvent::Define { board: name.clone(), incarnation, definition });
        self.boards.insert(name.clone(), Some(board));
        tree
    }

    /// The latest dropped incarnation of a name.
    fn dropped(&self, name: &BoardName) -> Option<Incarnation> {
        self.dropped.get(name).copied().max(self.planner.shard.dropped_incarnation(name.as_str()))
    }

    fn drop_board(&mut self, name: BoardName, incarnation: Incarnation) {
        if let Some(BatchBoard { tree, incarnation: known, .. }) = self.board(&name)
            && known <= incarnation
        {
            self.forget_tree(tree);
            self.boards.insert(name.clone(), None);
        }
        let latest = self.dropped.entry(name.clone()).or_insert(incarnation);
        *latest = (*latest).max(incarnation);
        self.put_event(BoardEvent::Drop { board: name, incarnation });
    }

    /// The metadata of a tree goes with it, also what this very batch brought.
    fn forget_tree(&mut self, tree: TreeId) {
        self.dropped_trees.push(tree);
        self.metadata.retain(|(other, _), _| *other != tree);
    }

    /// Events come before changes, in a step and in the delta. A definition may: nothing refers to a board before it. A
    /// drop may, because it is a message of its own and ends the step before it.
    fn put_event(&mut self, event: BoardEvent) {
        self.events.push(event.clone());
        self.step.events.push(event);
    }

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
        }
    }
}

fn no_more_boards(name: &BoardName, parking: &Parking) -> String {
    format!("there is no board {name}, and there can be no more than {}, the limit", parking.boards_max)
}

/// The job of a message that holds no other.
fn only_job(message: &Message) -> Option<&Job> {
    match &message.payload {
        Payload::Jobs(jobs) => match jobs.as_slice() {
            [job] => job.as_ref().ok(),
            _ => None,
        },
        Payload::Define { .. } | Payload::Drop { .. } => None,
    }
}

/// What a job does that does not say.
fn op_of(policy: Policy) -> Op {
    match policy {
        Policy::Set => Op::Set,
        Policy::Best => Op::Best,
        Policy::Incr => Op::Incr,
    }
}

/// Where a board that a job names is.
enum Board {
    /// On this shard, with its tree.
    Here(TreeId),
    /// The node knows it, this shard does not yet.
    Elsewhere { definition: Arc<Definition>, incarnation: Incarnation },
    /// Nowhere, and the job creates it.
    Nowhere,
}

struct Decided<'job> {
    name: &'job BoardName,
    board: Board,
    before: Option<Entry>,
    decision: Decision,
}
