//! Jobs of a stored message whose boards are still to be defined.

use crate::queue::NotPublished;
use crate::types::Sequence;
use crate::writer::{CommitFailed, JobOutcome, MessageOutcome};

/// The outcome of a message's jobs, each with the sequence at which it holds.
pub struct SettledMessage {
    /// A read that waits for this sequence finds all that the jobs did.
    pub sequence: Sequence,
    pub jobs: Vec<Result<(Sequence, JobOutcome), NotPublished>>,
}

/// Waits for parked jobs until their boards are defined, or until the deadline.
pub async fn settle(outcome: MessageOutcome, deadline: tokio::time::Instant) -> SettledMessage {
    let mut settled =
        SettledMessage { sequence: outcome.sequence, jobs: Vec::with_capacity(outcome.jobs.len()) };
    for job in outcome.jobs {
        let mut known = (outcome.sequence, job);
        if let JobOutcome::Parked(parked) = &known.1
            && let Ok(Some(unparked)) = tokio::time::timeout_at(deadline, parked.outcome()).await
        {
            known = match unparked {
                Ok(unparked) => unparked,
                Err(failed) => {
                    settled.jobs.push(Err(unparking_failed(&failed)));
                    continue;
                }
            };
        }
        settled.sequence = settled.sequence.max(known.0);
        settled.jobs.push(Ok(known));
    }
    settled
}

/// The job is stored and its board exists, but the batch that unparked the job could not be committed.
fn unparking_failed(failed: &CommitFailed) -> NotPublished {
    NotPublished::Unknown(format!(
        "the job was waiting for its board, and is applied as soon as this node can commit again; {failed}"
    ))
}
