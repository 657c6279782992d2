//! Apply: applies committed steps to the state in memory, and collects the answers for waiting clients.
//!
//! Knows: the lock, which it holds for one step at a time. Must not know: what a step means.

use std::iter::Peekable;

use smallvec::{SmallVec, smallvec};

use crate::state::{Change, Shard, ShardRanking, Step, StepPart};
use crate::state_lock::{Purpose, StateLock, YieldingReadGuard};
use crate::tree::PreImagePieces;
use crate::types::Sequence;
use crate::writer::outcome::{BoardOutcome, BoardOutcomes, JobOutcome, MessageOutcome, UnparkedOutcome};
use crate::writer::parking::OutcomeWaiter;
use crate::writer::plan::{
    PlannedBoard, PlannedBoards, PlannedJob, PlannedStep, PlannedUnparked, STEP_JOBS, ToldMessage,
};
use crate::writer::source::OutcomeSender;

/// Changes prefetched before the lock is yielded: some ten microseconds.
const CHANGES_WARMED_PER_YIELD: usize = 64;

/// Applies a step, and returns the answers to the clients that wait for it. The caller sends them after it
/// has published the sequence, so that a client with an answer can read what it wrote.
pub fn apply(shard: &StateLock, step: PlannedStep) -> (Sequence, Answers) {
    shard.count_step();
    match step {
        PlannedStep::Bulk { mut step, told } => {
            step.group_by_tree();
            // It only makes the hold shorter, and takes a fifth of what a job takes altogether.
            if shard.is_read() {
                warm(shard, &step.changes);
            }
            let mut guard = shard.write(Purpose::Apply);
            guard.begin_changes(step.applied);
            guard.apply_part(&step, step.whole());
            guard.end_step(&step);
            let is_unfinished = guard.has_unfinished();
            // Unlock fairly: otherwise the next step would always take the lock before who queues for it.
            guard.unlock_fair();
            finish_in_slices(shard, is_unfinished);
            (step.applied.sequence, Answers::of_told(told))
        }
        PlannedStep::Unparked { step, jobs, told } => {
            let (_, unparked) = apply_jobs(shard, &step, StepPart::default(), Vec::new(), jobs);
            (step.applied.sequence, Answers { unparked, ..Answers::of_told(told) })
        }
        PlannedStep::Answered { step, due, jobs, unparked, entries, answer } => {
            let (jobs, unparked) = apply_jobs(shard, &step, due, jobs, unparked);
            let sequence = step.applied.sequence;
            let outcome = MessageOutcome { sequence, jobs, entries };
            (sequence, Answers { messages: smallvec![Answer { outcome, to: answer }], unparked })
        }
    }
}

/// Applies the next step, and with a message that a client waits for the messages behind it for which clients
/// wait as well, up to [`STEP_JOBS`] jobs: all of them under one hold of the lock, after one wait for memory.
/// Returns the sequence that readers may be shown now, and the answers, as [`apply`] does. `None`: there is
/// no step left.
pub fn apply_next(
    shard: &StateLock,
    steps: &mut Peekable<impl Iterator<Item = PlannedStep>>,
) -> Option<(Sequence, Answers)> {
    let first = steps.next()?;
    let mut room = STEP_JOBS;
    let mut is_together = |step: &PlannedStep| {
        let rest = step.answered_jobs().and_then(|jobs| room.checked_sub(jobs));
        room = rest.unwrap_or(0);
        rest.is_some()
    };
    if !is_together(&first) {
        return Some(apply(shard, first));
    }
    let mut messages = vec![first];
    while let Some(next) = steps.next_if(&mut is_together) {
        messages.push(next);
    }
    shard.count_step();
    match messages.as_slice() {
        [message] => warm(shard, &message.step().changes),
        several => {
            let changes: Vec<Change> =
                several.iter().flat_map(|message| &message.step().changes).copied().collect();
            warm(shard, &changes);
        }
    }
    let mut answers = Answers::default();
    let mut guard = shard.write(Purpose::Apply);
    for message in messages {
        let PlannedStep::Answered { step, due, jobs, unparked, entries, answer } = message else { continue };
        let (jobs, unparked) = apply_message(&mut guard, &step, due, jobs, unparked);
        let outcome = MessageOutcome { sequence: step.applied.sequence, jobs, entries };
        answers.messages.push(Answer { outcome, to: answer });
        answers.unparked.extend(unparked);
    }
    let sequence = guard.applied.sequence;
    let is_unfinished = guard.has_unfinished();
    guard.unlock_fair();
    finish_in_slices(shard, is_unfinished);
    Some((sequence, answers))
}

/// Prefetches what a step will touch. Cache misses are half of the work, and this part needs only the read
/// lock, which it yields to writers. Memory that a checkpoint will make it take is taken without any lock.
fn warm(shard: &StateLock, changes: &[Change]) {
    let mut pieces = PreImagePieces::default();
    let mut shard = YieldingReadGuard::new(shard, Purpose::Warm);
    for changes in changes.chunks(CHANGES_WARMED_PER_YIELD) {
        shard.yield_if_due();
        shard.warm(changes, &mut pieces);
    }
    drop(shard);
    pieces.take_and_free();
}

/// Applies a message job by job, under one hold of the lock.
fn apply_jobs(
    shard: &StateLock,
    step: &Step,
    due: StepPart,
    jobs: Vec<PlannedJob>,
    unparked: Vec<PlannedUnparked>,
) -> (Vec<JobOutcome>, Vec<UnparkedAnswer>) {
    warm(shard, &step.changes);
    let mut guard = shard.write(Purpose::Apply);
    let applied = apply_message(&mut guard, step, due, jobs, unparked);
    let is_unfinished = guard.has_unfinished();
    guard.unlock_fair();
    finish_in_slices(shard, is_unfinished);
    applied
}

/// Goes on with the instances of boards that were defined otherwise or have ended. Readers have their turn
/// between two slices: they see such a board as it is now, and none of its instances that are over.
fn finish_in_slices(shard: &StateLock, is_unfinished: bool) {
    let mut is_unfinished = is_unfinished;
    while is_unfinished {
        let mut guard = shard.write(Purpose::Apply);
        guard.finish_some();
        is_unfinished = guard.has_unfinished();
        guard.unlock_fair();
    }
}

fn apply_message(
    shard: &mut Shard,
    step: &Step,
    due: StepPart,
    jobs: Vec<PlannedJob>,
    unparked: Vec<PlannedUnparked>,
) -> (Vec<JobOutcome>, Vec<UnparkedAnswer>) {
    let (mut outcomes, mut answers) = (Vec::with_capacity(jobs.len()), Vec::new());
    shard.begin_changes(step.applied);
    if !due.is_empty() {
        shard.apply_part(step, due);
    }
    for job in jobs {
        outcomes.push(apply_planned(shard, step, job));
    }
    for PlannedUnparked { job, to } in unparked {
        let outcome = apply_planned(shard, step, job);
        let sequence = step.applied.sequence;
        answers.extend(to.map(|to| UnparkedAnswer { outcome: Ok((sequence, outcome)), to }));
    }
    shard.end_step(step);
    (outcomes, answers)
}

fn apply_planned(shard: &mut Shard, step: &Step, job: PlannedJob) -> JobOutcome {
    match job {
        PlannedJob::Rejected(reject) => JobOutcome::Rejected(reject),
        PlannedJob::Parked(outcome) => JobOutcome::Parked(outcome),
        PlannedJob::Applied { part, boards, profile, first } => {
            let boards = apply_job(shard, step, part, boards);
            match (profile, first) {
                (_, Some(first)) => JobOutcome::Repeated(boards, first),
                (None, None) => JobOutcome::Applied(boards),
                (Some((changed, left)), None) => JobOutcome::WithProfile { boards, changed, left },
            }
        }
    }
}

/// The answers to send once a step is applied.
#[derive(Default)]
pub struct Answers {
    /// To the clients that wait for the messages. Most such steps have one.
    pub messages: SmallVec<[Answer; 1]>,
    /// To the clients that wait for parked jobs of earlier messages.
    pub unparked: Vec<UnparkedAnswer>,
}

impl Answers {
    fn of_told(told: Vec<ToldMessage>) -> Self {
        let answers = told.into_iter().map(|ToldMessage { sequence, jobs, answer }| Answer {
            outcome: MessageOutcome::of_jobs(sequence, jobs),
            to: answer,
        });
        Self { messages: answers.collect(), unparked: Vec::new() }
    }

    /// Whether no client waits.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.unparked.is_empty()
    }

    pub fn send(self) {
        // The clients may have disconnected.
        for Answer { outcome, to } in self.messages {
            let _ = to.send(Ok(outcome));
        }
        for UnparkedAnswer { outcome, to } in self.unparked {
            let _ = to.sender.send(outcome);
        }
    }
}

/// The outcome of an unparked job, and the client that waits for it.
pub struct UnparkedAnswer {
    pub outcome: UnparkedOutcome,
    pub to: OutcomeWaiter,
}

/// An answer, and the client that waits for it.
pub struct Answer {
    pub outcome: MessageOutcome,
    pub to: OutcomeSender,
}

fn apply_job(shard: &mut Shard, step: &Step, part: StepPart, boards: PlannedBoards) -> BoardOutcomes {
    let boards = match boards.into_inner() {
        Ok([only]) => {
            let ranked = only.handle.and_then(|handle| shard.apply_ranked(step, part, (only.tree, handle)));
            if let Some((before, after)) = ranked {
                let PlannedBoard { board, changed, takes_metadata, .. } = only;
                return smallvec![BoardOutcome { board, changed, takes_metadata, before, after }];
            }
            smallvec![only]
        }
        Err(several) => several,
    };
    let rankings = |shard: &Shard| -> Vec<Option<ShardRanking>> {
        let ranking = |board: &PlannedBoard| shard.tree(board.tree)?.ranking(board.handle?);
        boards.iter().map(ranking).collect()
    };
    let before = rankings(shard);
    shard.apply_part(step, part);
    let after = rankings(shard);
    let outcomes = boards.into_iter().zip(before.into_iter().zip(after)).map(|(board, (before, after))| {
        let PlannedBoard { board, changed, takes_metadata, .. } = board;
        BoardOutcome { board, changed, takes_metadata, before, after }
    });
    outcomes.collect()
}
