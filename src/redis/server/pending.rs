//! Writes of requests that have come together: they are sent as one, and replied to in order.

use std::sync::Arc;
use std::time::Instant;

use crate::access::Grant;
use crate::board::Definition;
use crate::job::{Job, MAX_JOBS_PER_MESSAGE};
use crate::operations::{Admission, InProgress, Operations};
use crate::redis::boards::{WriteReply, write_jobs};
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::redis::server::figures::Figures;
use crate::types::AsOf;

/// What a job takes in memory until it is sent and replied to, about.
const JOB_BYTES: usize = 384;
/// So many jobs of a connection are not counted.
const JOBS_UNCOUNTED: usize = 256;

/// Requests that are not replied to yet, in order.
#[derive(Default)]
pub struct PendingWrites {
    /// The memory of the jobs, if they are many.
    counted: Option<InProgress>,
    jobs: Vec<Job>,
    commands: Vec<PendingCommand>,
}

struct PendingCommand {
    name: &'static str,
    began: Instant,
    kind: Kind,
}

enum Kind {
    /// It has so many of the jobs.
    Jobs { count: usize, reply: WriteReply, definition: Arc<Definition> },
    /// It was refused behind writes that are not replied to yet.
    Refused(Refused),
}

impl PendingWrites {
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Whether no more should be gathered.
    pub fn is_full(&self) -> bool {
        self.jobs.len() >= MAX_JOBS_PER_MESSAGE
    }

    /// Counts the jobs of a command before they are made.
    ///
    /// # Errors
    /// When all requests take too much memory together.
    pub fn admit(&mut self, admission: &Arc<Admission>, members: usize) -> Result<(), Refused> {
        let jobs = self.jobs.len() + members;
        if jobs <= JOBS_UNCOUNTED {
            return Ok(());
        }
        let counted = self.counted.get_or_insert_with(|| InProgress::new(admission));
        counted.count_answer(jobs * JOB_BYTES).inspect_err(|_| {
            // Fewer bytes are never too many.
            let _ = counted.count_answer(self.jobs.len() * JOB_BYTES);
        })?;
        Ok(())
    }

    pub fn push(
        &mut self,
        (name, began): (&'static str, Instant),
        jobs: Vec<Job>,
        reply: WriteReply,
        definition: Arc<Definition>,
    ) {
        let kind = Kind::Jobs { count: jobs.len(), reply, definition };
        self.jobs.extend(jobs);
        self.commands.push(PendingCommand { name, began, kind });
    }

    pub fn push_refused(&mut self, (name, began): (&'static str, Instant), refused: Refused) {
        self.commands.push(PendingCommand { name, began, kind: Kind::Refused(refused) });
    }

    /// Writes everything, and replies to it. Returns what the writes came to.
    ///
    /// # Arguments
    /// `grant`: the client's token, if there is a limit to its boards.
    pub async fn send(
        self,
        operations: &Arc<Operations>,
        grant: Option<&Arc<Grant>>,
        figures: &Figures,
        replies: &mut Replies,
    ) -> AsOf {
        let Self { counted: _counted, jobs, commands } = self;
        let (outcomes, token) = write_jobs(operations, jobs, grant).await;
        let mut outcomes = &outcomes[..];
        for PendingCommand { name, began, kind } in commands {
            let written = match kind {
                Kind::Jobs { count, reply, definition } => {
                    let (own, rest) = outcomes.split_at_checked(count).unwrap_or((outcomes, &[]));
                    outcomes = rest;
                    reply.write(own, &definition, replies)
                }
                Kind::Refused(refused) => Err(refused),
            };
            if let Err(refused) = &written {
                replies.error(refused.text());
            }
            figures.note(name, began.elapsed(), written.is_err());
        }
        token
    }
}
