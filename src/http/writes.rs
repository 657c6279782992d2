//! Jobs on their way to their shards' queues. What came of them is told by `results`.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::http::api::Api;
use crate::http::call::Call;
use crate::http::error::Problem;
use crate::http::params::{Params, not_so};
use crate::http::results::{Asked, JobResult, Results, answer_bytes_max, message_results, with_metadata};
use crate::job::Job;
use crate::queue::publisher::Publisher;
use crate::queue::{MessageOrder, NotPublished};
use crate::types::{AsOf, Sequence, ShardId};
use crate::writer::{CommitFailed, JobOutcome, MessageOutcome, ShardState};

/// Jobs per message. A message is applied under one lock, so this is how many edits a reader may have to wait for:
/// 64 of them are about 50 microseconds.
const JOBS_PER_MESSAGE: usize = 64;
/// How long a request waits for its commit. Commits take milliseconds; a shard that lost its disk says so earlier.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request waits for the definition of a new board. It takes milliseconds, unless boards cannot be decided on;
/// then the client is told that its job waits.
const BOARD_TIMEOUT: Duration = Duration::from_secs(10);

/// A message on its way: published at the first poll unless it waits for earlier ones; ready once it is safe, or applied.
pub type Publishing<'a, T> = Pin<Box<dyn Future<Output = Result<T, NotPublished>> + Send + 'a>>;

/// How long a write waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until it is safe in the queue.
    UntilStored,
    /// Until this node has applied it, to tell what came of it.
    UntilApplied,
}

/// What a write asks of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking {
    pub wait: Wait,
    pub results: Results,
}

impl Asking {
    /// The parameters that say so.
    pub const PARAMS: [&'static str; 2] = ["wait", "results"];

    /// # Errors
    /// When one of them is not what it should be.
    pub fn read(api: &Api, params: &Params<'_>) -> Result<Self, Problem> {
        let results = match params.get("results") {
            None => Results::Entries,
            Some("changed") => Results::Changed,
            Some(other) => return Err(not_so("results is changed", other)),
        };
        Ok(Self { wait: read_wait(api, params)?, results })
    }
}

/// How long a write waits: without a queue in between, for its commit, whether asked to or not.
///
/// # Errors
/// When the parameter says something else.
pub fn read_wait(api: &Api, params: &Params<'_>) -> Result<Wait, Problem> {
    match params.get("wait") {
        None if api.boards_stream.is_some() => Ok(Wait::UntilStored),
        None | Some("applied") => Ok(Wait::UntilApplied),
        Some(other) => Err(not_so("wait is applied", other)),
    }
}

/// Stores a message without waiting for what comes of it.
async fn store(
    publisher: &Publisher,
    jobs: Vec<Job>,
    order: MessageOrder,
) -> Result<MessageOutcome, NotPublished> {
    publisher.store_jobs(jobs, order).await.map(|sequence| MessageOutcome::of_jobs(sequence, Vec::new()))
}

/// What came of a request's jobs.
pub struct Written {
    /// Waiting for this reads these writes.
    pub token: AsOf,
    /// One per job, in order.
    pub results: Vec<JobResult>,
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
            ShardState::CatchingUp(_) => api.publishers.of(id).stores(),
            ShardState::Halted(_) => false,
        };
        if !takes {
            let reason = state.reason().unwrap_or("it is about to take writes again").to_owned();
            return Err(Problem::shard_unavailable(format!("shard {id} takes no writes now: {reason}")));
        }
    }
    Ok(())
}

/// Publishes the jobs to their members' shards and waits for their synced commits. Jobs of one member apply in order: once
/// one of them is refused, none behind it is sent.
///
/// # Errors
/// When their answer may be larger than there is room for. When a shard takes no writes, or nothing was heard in time. What
/// fails for a part of the jobs is told by job.
pub async fn write(call: &Call, jobs: Vec<Job>, asking: Asking) -> Result<Written, Problem> {
    let api = &call.api;
    // Before anything is published: what is done cannot be refused any more.
    call.in_work.count_answer(answer_bytes_max(api, &jobs, asking))?;
    let wait = asking.wait;
    let asked: Vec<Asked> = jobs.iter().map(|job| Asked::of(job, asking.results)).collect();
    let homes: Vec<ShardId> = asked.iter().map(|job| api.node.home_of(&job.member)).collect();
    check_live(api, homes.iter().copied())?;
    if let Some(boards) = &api.boards_stream {
        let named = jobs.iter().zip(&homes).flat_map(|(job, home)| job.boards().map(|board| (*home, board)));
        let due = boards.drops_before(named);
        boards.let_drops_arrive(due).await?;
    }
    let mut by_shard: Vec<Vec<(usize, Job)>> = api.node.shards.iter().map(|_| Vec::new()).collect();
    for ((index, job), home) in jobs.into_iter().enumerate().zip(&homes) {
        if let Some(shard) = by_shard.get_mut(home.index()) {
            shard.push((index, job));
        }
    }
    let mut messages: Vec<(ShardId, Vec<usize>)> = Vec::new();
    let mut publishings: Vec<(ShardId, Publishing<'_, MessageOutcome>)> = Vec::new();
    for (shard, jobs) in api.node.shards.iter().zip(by_shard) {
        let (orders, publisher) = (orders_of(&jobs), api.publishers.of(shard.id));
        let mut jobs = jobs.into_iter();
        for order in orders {
            let (indexes, jobs): (Vec<usize>, Vec<Job>) = jobs.by_ref().take(JOBS_PER_MESSAGE).unzip();
            publishings.push((
                shard.id,
                match wait {
                    Wait::UntilApplied => Box::pin(publisher.publish_jobs(jobs, order)),
                    Wait::UntilStored => Box::pin(store(publisher, jobs, order)),
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
pub struct Settled {
    /// A read that waits for this one finds all that the jobs did.
    sequence: Sequence,
    pub jobs: Vec<Result<(Sequence, JobOutcome), NotPublished>>,
}

/// Waits for jobs whose boards are still to be defined, as long as there is time.
async fn settle(outcome: MessageOutcome, deadline: tokio::time::Instant) -> Settled {
    let mut settled = Settled { sequence: outcome.sequence, jobs: Vec::with_capacity(outcome.jobs.len()) };
    for job in outcome.jobs {
        let mut known = (outcome.sequence, job);
        if let JobOutcome::Parked(later) = &known.1
            && let Ok(Some(freed)) = tokio::time::timeout_at(deadline, later.outcome()).await
        {
            known = match freed {
                Ok(freed) => freed,
                Err(failed) => {
                    settled.jobs.push(Err(freed_unknown(&failed)));
                    continue;
                }
            };
        }
        settled.sequence = settled.sequence.max(known.0);
        settled.jobs.push(Ok(known));
    }
    settled
}

/// The job is stored, and its board is there.
fn freed_unknown(failed: &CommitFailed) -> NotPublished {
    NotPublished::Unknown(format!(
        "the job waited for its board, and is applied once this node can commit again; {failed}"
    ))
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
