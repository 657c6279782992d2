//! What came of jobs, told for whole boards, as far as the client wants to know.

use std::sync::Arc;

use crate::http::api::Api;
use crate::http::call::INLINE_DISK_READS;
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::http::views;
use crate::http::writes::{Asking, Settled, Wait};
use crate::job::{Job, MAX_METADATA_BYTES, Metadata, Reject, Targets};
use crate::query::{EntryChange, ListedMetadata, complete, missing_metadata, recall_metadata};
use crate::queue::NotPublished;
use crate::types::{BoardName, MemberId, ShardId, count};
use crate::writer::{BoardOutcome, JobOutcome};

/// Shards looked at while all are held still to tell what jobs did: half a millisecond or so, for which writers wait.
const LOOKS_PER_VIEW: usize = 256;
/// The most bytes of a job's result beside what it did on boards: a reject's reason, with a name or two in it.
const RESULT_BYTES_MAX: usize = 512;
/// The most bytes that tell whether a board changed.
const CHANGED_BYTES_MAX: usize = 100;
/// The most bytes that tell of a board's entry, beside metadata and the member's id: names of fields, the board's name twice,
/// two scores of eight keys, a dozen numbers.
const ENTRY_BYTES_MAX: usize = 1_100;
/// And for each shard, its part of `as_of`.
const AS_OF_BYTES_MAX: usize = 24;
/// What most entries take.
const ENTRY_BYTES: usize = 420;

/// What is told of each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// Whether it changed anything, the entry as it left it, and where that stood before.
    Entries,
    /// Whether it changed anything.
    Changed,
}

/// The most bytes that the answer to these jobs can have.
pub fn answer_bytes_max(api: &Api, jobs: &[Job], asking: Asking) -> usize {
    let as_of = AS_OF_BYTES_MAX * api.node.shards.len();
    let of_job = |job: &Job| {
        let boards = match &job.targets {
            _ if asking.wait == Wait::UntilStored => 0,
            Targets::Boards(boards) => boards.len(),
            // Counted, and not listed.
            Targets::EveryBoard => 0,
        };
        let each = match asking.results {
            Results::Changed => CHANGED_BYTES_MAX,
            // An id may be all quotation marks.
            Results::Entries => {
                ENTRY_BYTES_MAX + MAX_METADATA_BYTES + as_of + 2 * job.member.as_bytes().len()
            }
        };
        // Where there are several boards, the first is told twice.
        RESULT_BYTES_MAX + each * (boards + usize::from(boards > 1))
    };
    as_of + jobs.iter().map(of_job).sum::<usize>()
}

/// About how many bytes these results take.
pub fn answer_bytes(results: &[JobResult]) -> usize {
    let of_result = |result: &JobResult| match result {
        JobResult::Applied { changes, .. } => ENTRY_BYTES * (changes.len() + 1),
        JobResult::Changed { boards, .. } => CHANGED_BYTES_MAX * boards.len(),
        _ => 0,
    };
    results.iter().map(|result| 100 + of_result(result)).sum()
}

/// What came of one job.
pub enum JobResult {
    Rejected(Reject),
    Applied {
        /// One per board that the job changed, or could have.
        changes: Vec<EntryChange>,
        /// The job named several boards: the answer tells each by its name.
        by_board: bool,
    },
    /// The same, of which only is told whether anything changed, by board.
    Changed {
        boards: Vec<(BoardName, bool)>,
        by_board: bool,
    },
    /// A removal from every board: how many the member was on, and on how many of them that changed anything.
    Everywhere {
        boards: usize,
        changed: usize,
    },
    /// It is stored, and waits for its board to be defined.
    Parked,
    /// It is stored, and nobody waits for what comes of it.
    Stored,
    /// Its message was refused, or a commit failed: that of its message, or of the one that freed it.
    Failed(NotPublished),
}

/// What must be known of a job to tell what came of it.
pub struct Asked {
    pub member: MemberId,
    kind: Kind,
    meta: Option<Metadata>,
}

/// How it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Entries { by_board: bool },
    Changed { by_board: bool },
    Everywhere,
}

impl Asked {
    pub fn of(job: &Job, results: Results) -> Self {
        let kind = match (&job.targets, results) {
            (Targets::EveryBoard, _) => Kind::Everywhere,
            (Targets::Boards(boards), Results::Entries) => Kind::Entries { by_board: boards.len() > 1 },
            (Targets::Boards(boards), Results::Changed) => Kind::Changed { by_board: boards.len() > 1 },
        };
        Self { member: job.member.clone(), kind, meta: job.meta.clone() }
    }

    /// What came of the job, where no other shard has to be asked; `None` for its entries.
    fn told_at_once(&self, boards: &[BoardOutcome]) -> Option<JobResult> {
        match self.kind {
            Kind::Entries { .. } => None,
            Kind::Changed { by_board } => Some(JobResult::Changed {
                boards: boards.iter().map(|board| (board.board.clone(), board.changed)).collect(),
                by_board,
            }),
            Kind::Everywhere => Some(JobResult::Everywhere {
                boards: boards.len(),
                changed: boards.iter().filter(|board| board.changed).count(),
            }),
        }
    }
}

/// What came of a message's jobs, told for whole boards. Holds the shards still for a part of them at a time.
pub fn message_results(
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
    let mut results = Vec::with_capacity(indexes.len());
    let mut brought = Brought::default();
    let (mut view, mut looks) = (None, 0);
    for (index, job) in indexes.iter().zip(outcome.jobs) {
        let (sequence, job) = match job {
            Ok(known) => known,
            Err(why) => {
                results.push(JobResult::Failed(why));
                continue;
            }
        };
        results.push(match (job, asked.get(*index)) {
            (JobOutcome::Rejected(reject), _) => JobResult::Rejected(reject),
            (JobOutcome::Parked(_), _) => JobResult::Parked,
            (JobOutcome::Applied(boards), Some(asked)) => {
                if let Some(result) = asked.told_at_once(&boards) {
                    results.push(result);
                    continue;
                }
                let told = boards.iter().map(|board| {
                    if looks >= LOOKS_PER_VIEW {
                        // Let go before it is taken again, or a writer between the two would never get its turn.
                        (view, looks) = (None, 0);
                    }
                    looks += api.node.shards.len();
                    let view = view.get_or_insert_with(|| api.node.view());
                    let mut change = complete(view, &api.registry, shard, sequence, &asked.member, board);
                    brought.tell(asked, &mut change);
                    change
                });
                let by_board = asked.kind == Kind::Entries { by_board: true };
                JobResult::Applied { changes: told.collect(), by_board }
            }
            (JobOutcome::Applied(_), None) => continue,
        });
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

/// Puts in the metadata that the jobs did not bring.
///
/// # Errors
/// When the reading fails in an unexpected way.
pub async fn with_metadata(api: &Arc<Api>, mut results: Vec<JobResult>) -> Result<Vec<JobResult>, Problem> {
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
    let node = Arc::clone(&api.node);
    let settle = move || {
        changes(&mut results, &mut |change| recall_metadata(&node, change));
        results
    };
    if missing <= INLINE_DISK_READS {
        return Ok(settle());
    }
    api.read_disk(None, settle).await
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
        JobResult::Changed { boards, by_board } => {
            object.bool("changed", boards.first().is_some_and(|(_, changed)| *changed));
            if *by_board {
                views::changed_by_board(object, boards);
            }
        }
        JobResult::Everywhere { boards, changed } => {
            object.bool("changed", *changed > 0);
            object.null("entry");
            object.null("previous");
            let mut counts = object.object("counts");
            counts.count("boards", count(*boards));
            counts.count("changed", count(*changed));
            counts.end();
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
