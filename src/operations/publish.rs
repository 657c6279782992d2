//! Messages to the shards' queues: whether a shard takes writes now, in which order messages are sent, and
//! for how long a request waits: for its messages, and then for jobs whose boards are still to be defined.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::operations::failure::Failure;
use crate::operations::shared::Operations;
use crate::queue::NotPublished;
use crate::types::{AsOf, Sequence, ShardId};
use crate::writer::{CommitFailed, JobOutcome, MessageOutcome, Payload, ShardState};

/// How long a request waits until its messages are stored, or applied. Both take milliseconds. A shard that
/// lost its disk says so earlier.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);
/// The size of a definition, a clear or a drop as a batch counts it: about what its record takes.
const COMMAND_BYTES: usize = 512;

/// A message that is being published. It is sent at the first poll unless it waits for earlier ones, and
/// ready once the message is safe, or applied.
pub type Publishing<'a, T> = Pin<Box<dyn Future<Output = Result<T, NotPublished>> + Send + 'a>>;

impl Operations {
    /// Refuses writes while a shard of this node cannot take them, before any of a request's messages is
    /// sent. Shards of other nodes are not looked at: their streams take what is applied later.
    ///
    /// # Errors
    /// When one of the shards is not live.
    pub(super) fn check_live(&self, shards: impl IntoIterator<Item = ShardId>) -> Result<(), Failure> {
        for id in shards {
            let Some(shard) = self.node.owned(id) else { continue };
            let state = shard.health.state();
            // A stream takes what its shard applies later, unless the shard has halted.
            let takes = match &state {
                ShardState::Live => true,
                ShardState::CatchingUp(_) => self.has_streams(),
                ShardState::Halted(_) => false,
            };
            if !takes {
                let reason =
                    state.reason().unwrap_or("it is becoming live; try again in a moment").to_owned();
                return Err(Failure::NotLive(id, reason));
            }
        }
        Ok(())
    }

    /// Refuses a change of boards while some shard cannot take it, on this node or on others: it takes effect
    /// on every shard, or is not made.
    ///
    /// # Errors
    /// When a shard of this node is not live, or one of the others has no owner that is.
    pub(super) fn check_every_shard(&self) -> Result<(), Failure> {
        self.check_live(self.node.shards.iter().map(|shard| shard.id))?;
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let missing: Vec<ShardId> =
            self.node.not_owned().filter(|shard| !cluster.peers.have_applying(*shard)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Failure::NoOwner(missing)) }
    }

    /// Publishes a command to each of the shards, and waits for all of them. Returns where each has it.
    ///
    /// # Errors
    /// When a shard does not take it, or does not answer in time.
    pub(super) async fn publish_to(
        &self,
        shards: &[ShardId],
        payload: impl Fn() -> Payload,
    ) -> Result<AsOf, Failure> {
        let handles = shards.iter().filter_map(|id| self.node.owned(*id));
        let publishings = handles.map(|shard| {
            let publishing = self.publishers.of(shard.id).store_command(payload(), COMMAND_BYTES);
            let publishing: Publishing<'_, Sequence> = Box::pin(publishing);
            (shard.id, publishing)
        });
        let outcomes = publish_all(publishings.collect()).await?;
        let mut token: Vec<(ShardId, Sequence)> = Vec::with_capacity(shards.len());
        for (id, outcome) in shards.iter().zip(outcomes) {
            token.push((*id, outcome?));
        }
        Ok(AsOf(token))
    }
}

/// Publishes messages, each shard's in their order, and waits for all of them. A message is sent before the
/// ones ahead of it are answered, unless it has to wait for them. Returns the outcome of each.
///
/// # Errors
/// When some were not answered in time.
pub async fn publish_all<T>(
    publishings: Vec<(ShardId, Publishing<'_, T>)>,
) -> Result<Vec<Result<T, NotPublished>>, Failure> {
    let mut outcomes: Vec<Option<Result<T, NotPublished>>> = publishings.iter().map(|_| None).collect();
    let mut publishings = publishings;
    // A shard that refused a message gets none of the later ones, which would overtake it.
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
    tokio::time::timeout(PUBLISH_TIMEOUT, all).await.map_err(|_| Failure::Unanswered)?;
    let no_outcome = || {
        Err(NotPublished::Unknown("the shard's queue was closed before the write was committed".to_owned()))
    };
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(no_outcome)).collect())
}

/// Publishes a single message. Returns its outcome.
///
/// # Errors
/// When it was not answered in time.
pub async fn publish_one<T>(
    publishing: impl Future<Output = Result<T, NotPublished>>,
) -> Result<Result<T, NotPublished>, Failure> {
    tokio::time::timeout(PUBLISH_TIMEOUT, publishing).await.map_err(|_| Failure::Unanswered)
}

/// The outcome of a job, with the sequence at which it holds.
pub type SettledJob = Result<(Sequence, JobOutcome), NotPublished>;

/// The outcome of a message's jobs.
pub struct SettledMessage {
    /// A read that waits for this sequence finds all that the jobs did.
    pub sequence: Sequence,
    of_message: MessageOutcome,
    /// Of jobs that were parked, by index, once they were unparked.
    unparked: BTreeMap<usize, SettledJob>,
}

impl SettledMessage {
    /// All outcomes, in no order.
    pub fn jobs(&self) -> impl Iterator<Item = &JobOutcome> {
        let unparked = self.unparked.values().filter_map(|unparked| unparked.as_ref().ok());
        self.of_message.jobs.iter().chain(unparked.map(|(_, outcome)| outcome))
    }

    /// The outcome of each job, in their order.
    pub fn into_jobs(self) -> impl Iterator<Item = SettledJob> {
        let Self { of_message: MessageOutcome { sequence, jobs, .. }, mut unparked, .. } = self;
        let settled = move |(index, job)| unparked.remove(&index).unwrap_or(Ok((sequence, job)));
        jobs.into_iter().enumerate().map(settled)
    }
}

/// Waits for parked jobs until their boards are defined, or until the deadline.
pub async fn settle(of_message: MessageOutcome, deadline: tokio::time::Instant) -> SettledMessage {
    let (mut sequence, mut unparked) = (of_message.sequence, BTreeMap::new());
    for (index, job) in of_message.jobs.iter().enumerate() {
        let JobOutcome::Parked(parked) = job else { continue };
        // In a box: few jobs are parked, and the future of every write would have room for this.
        let unparking = Box::pin(tokio::time::timeout_at(deadline, parked.outcome()));
        let Ok(Some(outcome)) = unparking.await else { continue };
        if let Ok((unparked_at, _)) = &outcome {
            sequence = sequence.max(*unparked_at);
        }
        unparked.insert(index, outcome.map_err(|failed| unparking_failed(&failed)));
    }
    SettledMessage { sequence, of_message, unparked }
}

/// The job is stored and its board exists, but the batch that unparked the job could not be committed.
fn unparking_failed(failed: &CommitFailed) -> NotPublished {
    NotPublished::Unknown(format!(
        "the job was waiting for its board, and is applied as soon as this node can commit again; {failed}"
    ))
}
