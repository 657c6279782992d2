//! Writes of requests that have come together: they are sent as one, and replied to in order.

use std::sync::Arc;
use std::time::Instant;

use crate::access::Grant;
use crate::board::Definition;
use crate::job::{Job, MAX_JOBS_PER_MESSAGE};
use crate::operations::Operations;
use crate::redis::boards::{WriteReply, write_jobs};
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::redis::server::figures::Figures;
use crate::types::AsOf;

/// Requests that are not replied to yet, in order.
#[derive(Default)]
pub struct PendingWrites {
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
        let Self { jobs, commands } = self;
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
