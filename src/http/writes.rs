//! Jobs on their way to their shards' queues, and what came of them on the way back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::http::api::Api;
use crate::http::call::INLINE_DISK_READS;
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::http::views;
use crate::job::{Job, Metadata, Reject, Targets};
use crate::query::{EntryChange, ListedMetadata, complete, missing_metadata, recall_metadata};
use crate::queue::MessageOrder;
use crate::queue::publisher::{NotPublished, Publisher};
use crate::types::{AsOf, BoardName, MemberId, Sequence, ShardId};
use crate::writer::{JobOutcome, MessageOutcome, ShardState};

/// Jobs per message. A message is applied under one lock, so this is how many edits a reader may have to wait for:
/// 64 of them are about 50 microseconds.
const JOBS_PER_MESSAGE: usize = 64;
/// Shards looked at while all are held still to tell what jobs did: half a millisecond or so, for which writers wait.
const LOOKS_PER_VIEW: usize = 256;
/// How long a request waits for its commit. Commits take milliseconds; a shard that lost its disk says so earlier.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request waits for the definition of a new board. It takes milliseconds, unless boards cannot be decided on;
/// then the client is told that its job waits.
const BOARD_TIMEOUT: Duration = Duration::from_secs(10);

/// A message on its way: published at the first poll, ready once it is safe, or applied.
pub type Publishing<'a, T> = Pin<Box<dyn Future<Output = Result<T, NotPublished>> + Send + 'a>>;

/// How long a write waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until it is safe in the queue.
    UntilStored,
    /// Until this node has applied it, to tell what came of it.
    UntilApplied,
}

/// Stores a message without waiting for what comes of it.
async fn store(
    publisher: &Publisher,
    jobs: Vec<Job>,
    order: MessageOrder,
) -> Result<MessageOutcome, NotPublished> {
    publisher.store_jobs(jobs, order).await.map(|sequence| MessageOutcome { sequence, jobs: Vec::new() })
}

/// What came of one job.
pub enum JobResult {
    Rejected(Reject),
    Applied {
        /// One per board that the job changed, or could have.
        changes: Vec<EntryChange>,
        /// The job named several boards, or none for all of them: the answer tells each by its name.
        by_board: bool,
    },
    /// It is stored, and waits for its board to be defined.
    Parked,
    /// It is stored, and nobody waits for what comes of it.
    Stored,
    /// Its message was refused, or its commit failed.
    Failed(NotPublished),
}

/// What came of a request's jobs.
pub struct Written {
    /// Waiting for this reads these writes.
    pub token: AsOf,
    /// One per job, in order.
    pub results: Vec<JobResult>,
}

/// What must be known of a job to tell what came of it.
struct Asked {
    member: MemberId,
    by_board: bool,
    meta: Option<Metadata>,
}

impl Asked {
    fn of(job: &Job) -> Self {
        let by_board = match &job.targets {
            Targets::Boards(boards) => boards.len() > 1,
            Targets::EveryBoard => true,
        };
        Self { member: job.member.clone(), by_board, meta: job.meta.clone() }
    }
}

/// Refuses writes while a shard cannot take them, before any of a request is under way.
///
/// # Errors
/// When one of the shards is not live.
pub fn check_live(api: &Api, shards: impl IntoIterator<Item = ShardId>) -> Result<(), Problem> {
    for id in shards {
        let Some(shard) = api.node.shards.get(id.index()) else { continue };
        let state = shard.health.state();
        // A stream takes what its shard will apply later, unless that is not to be expected.
        let takes = match &state {
            ShardState::Live => true,
            ShardState::CatchingUp(_) => shard.publisher.stores(),
            ShardState::Halted(_) => false,
        };
        if !takes {
            let reason = state.reason().unwrap_or("it is about to take writes again").to_owned();
            return Err(Problem::shard_unavailable(format!("shard {id} takes no writes now: {reason}")));
        }
    }
    Ok(())
}

/// Publishes the jobs to their members' shards and waits for their synced commits. Jobs of one member apply in order.
///
/// # Errors
/// When a shard takes no writes, or nothing was heard in time. What fails for a part of the jobs is told by job.
pub async fn write(api: &Arc<Api>, jobs: Vec<Job>, wait: Wait) -> Result<Written, Problem> {
    let asked: Vec<Asked> = jobs.iter().map(Asked::of).collect();
    let homes: Vec<ShardId> = asked.iter().map(|job| api.node.home_of(&job.member)).collect();
    check_live(api, homes.iter().copied())?;
    let mut by_shard: Vec<Vec<(usize, Job)>> = api.node.shards.iter().map(|_| Vec::new()).collect();
    for ((index, job), home) in jobs.into_iter().enumerate().zip(&homes) {
        if let Some(shard) = by_shard.get_mut(home.index()) {
            shard.push((index, job));
        }
    }
    let mut messages: Vec<(ShardId, Vec<usize>)> = Vec::new();
    let mut publishings: Vec<(ShardId, Publishing<'_, MessageOutcome>)> = Vec::new();
    for (shard, jobs) in api.node.shards.iter().zip(by_shard) {
        let orders = orders_of(&jobs);
        let mut jobs = jobs.into_iter();
        for order in orders {
            let (indexes, jobs): (Vec<usize>, Vec<Job>) = jobs.by_ref().take(JOBS_PER_MESSAGE).unzip();
            publishings.push((
                shard.id,
                match wait {
                    Wait::UntilApplied => Box::pin(shard.publisher.publish_jobs(jobs, order)),
                    Wait::UntilStored => Box::pin(store(&shard.publisher, jobs, order)),
                },
            ));
            messages.push((shard.id, indexes));
        }
    }
    let published = publish_all(publishings).await?;
    let deadline = tokio::time::Instant::now() + BOARD_TIMEOUT;
    let mut outcomes = Vec::with_capacity(published.len());
    for outcome in published {
        outcomes.push(match outcome {
            Ok(outcome) => Ok(settle(outcome, deadline).await),
            Err(why) => Err(why),
        });
    }
    let mut results: Vec<Option<JobResult>> = asked.iter().map(|_| None).collect();
    let mut token: Vec<(ShardId, Sequence)> = Vec::new();
    for ((shard, indexes), outcome) in messages.into_iter().zip(outcomes) {
        if let Ok(outcome) = &outcome {
            match token.iter_mut().find(|(known, _)| *known == shard) {
                Some((_, sequence)) => *sequence = outcome.sequence.max(*sequence),
                None => token.push((shard, outcome.sequence)),
            }
        }
        let told = match (wait, outcome) {
            (Wait::UntilStored, Ok(_)) => indexes.iter().map(|_| JobResult::Stored).collect(),
            (_, outcome) => message_results(api, shard, &indexes, &asked, outcome),
        };
        for (index, result) in indexes.iter().zip(told) {
            if let Some(slot) = results.get_mut(*index) {
                *slot = Some(result);
            }
        }
    }
    let unheard = || NotPublished::Unavailable("it did not say what came of the job".to_owned());
    let results: Vec<JobResult> =
        results.into_iter().map(|result| result.unwrap_or_else(|| JobResult::Failed(unheard()))).collect();
    Ok(Written { token: AsOf(token), results: with_metadata(api, results).await? })
}

/// How a shard's messages depend on one another, one for each.
fn orders_of(jobs: &[(usize, Job)]) -> Vec<MessageOrder> {
    match jobs.len() {
        0 => Vec::new(),
        1..=JOBS_PER_MESSAGE => vec![MessageOrder::default()],
        _ => MessageOrder::of(
            jobs.chunks(JOBS_PER_MESSAGE).map(|jobs| jobs.iter().map(|(_, job)| &job.member)),
        ),
    }
}

/// What came of a message's jobs, each with the sequence at which that is so.
struct Settled {
    /// A read that waits for this one finds all that the jobs did.
    sequence: Sequence,
    jobs: Vec<(Sequence, JobOutcome)>,
}

/// Waits for jobs whose boards are still to be defined, as long as there is time.
async fn settle(outcome: MessageOutcome, deadline: tokio::time::Instant) -> Settled {
    let mut settled = Settled { sequence: outcome.sequence, jobs: Vec::with_capacity(outcome.jobs.len()) };
    for job in outcome.jobs {
        let mut known = (outcome.sequence, job);
        if let JobOutcome::Parked(later) = &known.1
            && let Ok(Some(freed)) = tokio::time::timeout_at(deadline, later.outcome()).await
        {
            known = freed;
        }
        settled.sequence = settled.sequence.max(known.0);
        settled.jobs.push(known);
    }
    settled
}

/// Publishes messages, each shard's in order and before any is waited for that does not have to be; tells what came of each.
///
/// # Errors
/// When nothing was heard in time.
pub async fn publish_all<T>(
    publishings: Vec<(ShardId, Publishing<'_, T>)>,
) -> Result<Vec<Result<T, NotPublished>>, Problem> {
    let mut outcomes: Vec<Option<Result<T, NotPublished>>> = publishings.iter().map(|_| None).collect();
    let mut publishings = publishings;
    // A shard that refused a message gets none of the later ones: they would overtake it.
    let mut refused: Vec<(ShardId, NotPublished)> = Vec::new();
    let mut first_round = true;
    let all = std::future::poll_fn(|context| {
        let mut pending = false;
        for ((shard, publishing), outcome) in publishings.iter_mut().zip(&mut outcomes) {
            if outcome.is_some() {
                continue;
            }
            let earlier = refused.iter().find(|(known, _)| first_round && known == shard);
            if let Some((_, why)) = earlier {
                *outcome = Some(Err(why.clone()));
                continue;
            }
            match publishing.as_mut().poll(context) {
                Poll::Ready(ready) => {
                    if let Err(why) = &ready {
                        refused.push((*shard, why.clone()));
                    }
                    *outcome = Some(ready);
                }
                Poll::Pending => pending = true,
            }
        }
        first_round = false;
        if pending { Poll::Pending } else { Poll::Ready(()) }
    });
    tokio::time::timeout(COMMIT_TIMEOUT, all).await.map_err(|_| Problem::unanswered())?;
    let unheard = || Err(NotPublished::Unavailable("it closed before the write was committed".to_owned()));
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unheard)).collect())
}

/// What came of a message's jobs, told for the whole board. Holds the shards still for a part of them at a time.
fn message_results(
    api: &Api,
    shard: ShardId,
    indexes: &[usize],
    asked: &[Asked],
    outcome: Result<Settled, NotPublished>,
) -> Vec<JobResult> {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(why) => return indexes.iter().map(|_| JobResult::Failed(why.clone())).collect(),
    };
    let jobs_per_view = (LOOKS_PER_VIEW / api.node.shards.len().max(1)).max(1);
    let mut results = Vec::with_capacity(indexes.len());
    let mut brought = Brought::default();
    let mut jobs = indexes.iter().zip(outcome.jobs).peekable();
    while jobs.peek().is_some() {
        let view = api.node.view();
        for (index, (sequence, job)) in jobs.by_ref().take(jobs_per_view) {
            results.push(match (job, asked.get(*index)) {
                (JobOutcome::Rejected(reject), _) => JobResult::Rejected(reject),
                (JobOutcome::Parked(_), _) => JobResult::Parked,
                (JobOutcome::Applied(boards), Some(asked)) => {
                    let told = boards.iter().map(|board| {
                        let mut change =
                            complete(&view, &api.registry, shard, sequence, &asked.member, board);
                        brought.tell(asked, &mut change);
                        change
                    });
                    JobResult::Applied { changes: told.collect(), by_board: asked.by_board }
                }
                (JobOutcome::Applied(_), None) => continue,
            });
        }
    }
    results
}

/// The metadata that a message's jobs brought so far. The disk has only what the last of them left.
#[derive(Default)]
struct Brought<'a>(Vec<(&'a MemberId, BoardName, &'a Metadata)>);

impl<'a> Brought<'a> {
    /// Puts in the metadata of the entry as this job left it, if its message says it.
    fn tell(&mut self, asked: &'a Asked, change: &mut EntryChange) {
        let here = |member: &MemberId, board: &BoardName| *member == asked.member && *board == change.board;
        let known = self.0.iter().position(|(member, board, _)| here(member, board));
        // A job that changes nothing, a best that was not better, leaves the metadata as it was too.
        if let (Some(meta), true) = (&asked.meta, change.changed) {
            match known.and_then(|known| self.0.get_mut(known)) {
                Some((_, _, known)) => *known = meta,
                None => self.0.push((&asked.member, change.board.clone(), meta)),
            }
        }
        let known = self.0.iter().find(|(member, board, _)| here(member, board));
        if let (Some((_, _, meta)), Some(entry)) = (known, &mut change.entry)
            && matches!(entry.listed.metadata, ListedMetadata::OnDisk(..))
        {
            entry.listed.metadata = ListedMetadata::Json(meta.0.clone());
        }
    }
}

async fn with_metadata(api: &Arc<Api>, mut results: Vec<JobResult>) -> Result<Vec<JobResult>, Problem> {
    let changes = |results: &mut Vec<JobResult>, visit: &mut dyn FnMut(&mut EntryChange)| {
        for result in results {
            if let JobResult::Applied { changes, .. } = result {
                changes.iter_mut().for_each(&mut *visit);
            }
        }
    };
    let mut missing = 0;
    changes(&mut results, &mut |change| missing += missing_metadata(change));
    if missing == 0 {
        return Ok(results);
    }
    let api = Arc::clone(api);
    let settle = move || {
        changes(&mut results, &mut |change| recall_metadata(&api.node, change));
        results
    };
    if missing <= INLINE_DISK_READS {
        return Ok(settle());
    }
    tokio::task::spawn_blocking(settle).await.map_err(|_| Problem::internal())
}

/// Writes a job's result: what it changed, why it was rejected, or why its message failed.
pub fn write_result(object: &mut Object<'_>, result: &JobResult) {
    match result {
        JobResult::Rejected(reject) => {
            object.text("rejected", reject.code.name());
            object.text("detail", &reject.detail);
        }
        JobResult::Parked => {
            object.bool("changed", false);
            object.bool("waits_for_board", true);
        }
        JobResult::Stored => object.bool("stored", true),
        JobResult::Failed(why) => {
            let problem = Problem::from(why.clone());
            object.text("failed", problem.code());
            object.text("detail", problem.detail());
        }
        JobResult::Applied { changes, by_board } => {
            if let Some(first) = changes.first() {
                views::change(object, first);
            } else {
                object.bool("changed", false);
                object.null("entry");
                object.null("previous");
            }
            if *by_board {
                views::changes_by_board(object, changes);
            }
        }
    }
}
