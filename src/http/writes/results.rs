//! From outcomes of messages to the result of each job of a request. `query::outcome` adds what the writer of
//! one shard cannot know: the counts of the others.

use crate::http::api::Api;
use crate::http::request::ask::HoldsChanges;
use crate::http::writes::options::Detail;
use crate::http::writes::sent_metadata::SentMetadata;
use crate::http::writes::settle::SettledMessage;
use crate::job::{Job, Metadata, Reject, Targets};
use crate::query::{EntryChange, add_other_shards};
use crate::queue::NotPublished;
use crate::types::{BoardName, MemberId, ShardId};
use crate::writer::{BoardOutcome, JobOutcome};

/// Shards that are looked at under one hold of all of them. That takes half a millisecond or so, for which
/// writers wait.
const LOOKS_PER_VIEW: usize = 256;

/// The outcome of one job.
pub enum JobResult {
    Rejected(Reject),
    Applied {
        /// One per board that the job changed, or could have.
        changes: Vec<EntryChange>,
        /// The job named several boards: the answer has each under its name.
        by_board: bool,
    },
    /// The same, with [`Detail::Changed`]: whether the job changed each board.
    Changed {
        boards: Vec<(BoardName, bool)>,
        by_board: bool,
    },
    /// A removal from every board: how many boards the member was on, and how many of them it changed.
    Everywhere {
        boards: usize,
        changed: usize,
    },
    /// It is stored, and waits for its board to be defined.
    Parked,
    /// It is stored, and the request does not wait until it is applied.
    Stored,
    /// Its message was refused, or a commit failed: that of its message, or of the batch that unparked it.
    Failed(NotPublished),
}

/// What is kept of a job to report its outcome.
pub struct ReportedJob {
    pub member: MemberId,
    kind: ReportKind,
    meta: Option<Metadata>,
}

/// How a job's outcome is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportKind {
    Entries { by_board: bool },
    Changed { by_board: bool },
    Everywhere,
}

impl ReportedJob {
    pub fn of(job: &Job, detail: Detail) -> Self {
        let kind = match (&job.targets, detail) {
            (Targets::EveryBoard, _) => ReportKind::Everywhere,
            (Targets::Boards(boards), Detail::Entries) => ReportKind::Entries { by_board: boards.len() > 1 },
            (Targets::Boards(boards), Detail::Changed) => ReportKind::Changed { by_board: boards.len() > 1 },
        };
        Self { member: job.member.clone(), kind, meta: job.meta.clone() }
    }

    /// The outcome, where no other shard has to be asked; `None` where entries are reported.
    fn without_entries(&self, boards: &[BoardOutcome]) -> Option<JobResult> {
        match self.kind {
            ReportKind::Entries { .. } => None,
            ReportKind::Changed { by_board } => Some(JobResult::Changed {
                boards: boards.iter().map(|board| (board.board.clone(), board.changed)).collect(),
                by_board,
            }),
            ReportKind::Everywhere => Some(JobResult::Everywhere {
                boards: boards.len(),
                changed: boards.iter().filter(|board| board.changed).count(),
            }),
        }
    }
}

/// The outcome of a message's jobs. Holds all shards for a part of the jobs at a time.
pub fn message_results(
    api: &Api,
    shard: ShardId,
    indexes: &[usize],
    reported: &[ReportedJob],
    outcome: Result<SettledMessage, NotPublished>,
) -> Vec<JobResult> {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(why) => return indexes.iter().map(|_| JobResult::Failed(why.clone())).collect(),
    };
    let mut results = Vec::with_capacity(indexes.len());
    let mut sent = SentMetadata::default();
    let (mut view, mut looks) = (None, 0);
    for (index, job) in indexes.iter().zip(outcome.jobs) {
        let (sequence, job) = match job {
            Ok(known) => known,
            Err(why) => {
                results.push(JobResult::Failed(why));
                continue;
            }
        };
        results.push(match (job, reported.get(*index)) {
            (JobOutcome::Rejected(reject), _) => JobResult::Rejected(reject),
            (JobOutcome::Parked(_), _) => JobResult::Parked,
            (JobOutcome::Applied(boards), Some(reported)) => {
                if let Some(result) = reported.without_entries(&boards) {
                    results.push(result);
                    continue;
                }
                let changes = boards.iter().map(|board| {
                    if looks >= LOOKS_PER_VIEW {
                        // Released before it is taken again: otherwise a writer that waits would never get
                        // its turn.
                        (view, looks) = (None, 0);
                    }
                    looks += api.node.shards.len();
                    let view = view.get_or_insert_with(|| api.node.view());
                    let mut change =
                        add_other_shards(view, &api.registry, shard, sequence, &reported.member, board);
                    sent.fill_in(&reported.member, reported.meta.as_ref(), &mut change);
                    change
                });
                let by_board = reported.kind == ReportKind::Entries { by_board: true };
                JobResult::Applied { changes: changes.collect(), by_board }
            }
            (JobOutcome::Applied(_), None) => continue,
        });
    }
    results
}

impl HoldsChanges for Vec<JobResult> {
    fn each_change(&mut self, visit: &mut dyn FnMut(&mut EntryChange)) {
        for result in self {
            if let JobResult::Applied { changes, .. } = result {
                changes.iter_mut().for_each(&mut *visit);
            }
        }
    }
}
