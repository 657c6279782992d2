//! Jobs of a stored message whose boards are still to be defined.

use std::collections::BTreeMap;

use crate::queue::NotPublished;
use crate::types::Sequence;
use crate::writer::{CommitFailed, JobOutcome, MessageOutcome};

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
