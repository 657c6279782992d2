//! From outcomes of messages to the result of each job of a request. `query::outcome` adds what the writer of
//! one shard cannot know: the counts of the others; and the metadata that the request sent is echoed.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::job::{Job, Metadata, Reject, Targets};
use crate::operations::publish::{SettledJob, SettledMessage};
use crate::operations::score_change::ScoreChange;
use crate::operations::shared::Operations;
use crate::query::{
    AddOtherShards, EntryChange, FoundOutcome, ListedMetadata, ReadError, ReadOptions, ShardHandle,
    of_only_shard, read,
};
use crate::queue::NotPublished;
use crate::types::{AsOf, BoardName, MemberId, Sequence, ShardId};
use crate::writer::{BoardOutcome, BoardOutcomes, JobOutcome, LeftBehind, OutcomeDetail};

/// Shards that are looked at under one hold of all of them. That takes half a millisecond or so, for which
/// writers wait.
const LOOKS_PER_VIEW: usize = 256;

/// The result of one job.
pub enum JobResult {
    Rejected(Reject),
    Applied {
        /// One per board that the job changed, or could have.
        changes: Vec<EntryChange>,
        /// The job named several boards: the answer has each under its name.
        by_board: bool,
    },
    /// The same, with [`OutcomeDetail::Changed`].
    Changed {
        /// Whether the job changed its board, or the first of several.
        changed: bool,
        /// Whether it changed each, if the job named several boards.
        by_board: Option<Vec<(BoardName, bool)>>,
        /// The request asked for entries, but their ranks are not known: these shards did not answer. Empty
        /// if they did, and the entries kept changing meanwhile.
        unranked: Option<Vec<ShardId>>,
    },
    /// What the job did to the score of its member, with [`OutcomeDetail::Scores`].
    Scores(ScoreChange),
    /// A job about every board: how many boards the member was on, and how many of them it changed.
    Everywhere {
        boards: usize,
        changed: usize,
        /// Whether it has changed what is kept of the member beside its entries.
        profile: bool,
        /// What a removal with a version has left.
        left: Option<Arc<LeftBehind>>,
    },
    /// A job about a profile, or a ban: whether that is another one than before.
    Profile {
        changed: bool,
    },
    /// It was applied before, under its id, and has changed nothing now.
    Repeated {
        /// The member as it is, as if another job had left it so.
        now: Box<JobResult>,
        first: FirstResult,
    },
    /// It is stored, and waits for its board to be defined.
    Parked,
    /// It is applied, and this is what its owner, another node, said of it: an object, as JSON.
    Remote {
        changed: bool,
        json: Box<RawValue>,
    },
    /// It is stored, and the request does not wait until it is applied.
    Stored,
    /// Its message was refused, or a commit failed: that of its message, or of the batch that unparked it.
    Failed(NotPublished),
}

/// What came of the first job of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstResult {
    pub changed: bool,
    /// Where it took effect.
    pub token: AsOf,
}

/// What is kept of a job to report its result.
pub struct ReportedJob {
    pub member: MemberId,
    kind: ReportKind,
    meta: Option<Metadata>,
}

/// How a job's result is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportKind {
    Entries { by_board: bool },
    Scores,
    Changed { by_board: bool },
    Everywhere,
    Profile,
}

impl ReportedJob {
    pub fn of(job: &Job, detail: OutcomeDetail) -> Self {
        let kind = match (&job.targets, detail) {
            (Targets::EveryBoard, _) => ReportKind::Everywhere,
            (Targets::Profile(_), _) => ReportKind::Profile,
            (Targets::Boards(boards), OutcomeDetail::Scores) if boards.len() == 1 => ReportKind::Scores,
            (Targets::Boards(boards), OutcomeDetail::Rankings | OutcomeDetail::Scores) => {
                ReportKind::Entries { by_board: boards.len() > 1 }
            }
            (Targets::Boards(boards), OutcomeDetail::Changed) => {
                ReportKind::Changed { by_board: boards.len() > 1 }
            }
        };
        Self { member: job.member.clone(), kind, meta: job.meta.clone() }
    }

    /// The result, where no other shard has to be asked; `None` where entries are reported.
    ///
    /// # Arguments
    /// - `profile`: whether the job has changed the profile.
    /// - `unranked`: set if other shards were asked in vain.
    fn without_entries(
        &self,
        boards: &[BoardOutcome],
        profile: bool,
        unranked: Option<&[ShardId]>,
    ) -> Option<JobResult> {
        let each = || boards.iter().map(|board| (board.board.name.clone(), board.changed)).collect();
        let changed = |by_board: bool, unranked: Option<&[ShardId]>| JobResult::Changed {
            changed: boards.first().is_some_and(|board| board.changed),
            by_board: by_board.then(each),
            unranked: unranked.map(<[ShardId]>::to_vec),
        };
        // A board and its instances count once.
        let changed_boards = || -> BTreeSet<_> {
            boards.iter().filter(|board| board.changed).map(|board| board.board.name.board()).collect()
        };
        match self.kind {
            ReportKind::Entries { by_board } => unranked.map(|shards| changed(by_board, Some(shards))),
            ReportKind::Scores => boards.first().map(|board| JobResult::Scores(ScoreChange::of(board))),
            ReportKind::Changed { by_board } => Some(changed(by_board, None)),
            ReportKind::Everywhere => Some(JobResult::Everywhere {
                boards: boards.iter().map(|board| board.board.name.board()).collect::<BTreeSet<_>>().len(),
                changed: changed_boards().len(),
                profile,
                left: None,
            }),
            ReportKind::Profile => Some(JobResult::Profile { changed: profile }),
        }
    }
}

/// Appends the results of a message's jobs. Where the other shards' counts cannot be had, those of applied
/// jobs are without their entries: what is applied must not be answered with an error.
///
/// # Arguments
/// `reported`: the jobs of the message.
pub async fn message_results<R: Borrow<ReportedJob>>(
    operations: &Operations,
    home: &ShardHandle,
    reported: &[R],
    outcome: SettledMessage,
    results: &mut Vec<JobResult>,
) {
    if operations.node.shard_count() == 1 && !outcome.jobs().any(has_metadata) {
        let as_of = |sequence| Arc::new(AsOf(vec![(home.id, sequence)]));
        let mut last = (outcome.sequence, as_of(outcome.sequence));
        append_results(
            reported,
            outcome.into_jobs(),
            (home.id, None),
            results,
            |reported, sequence, outcome| {
                // It is another one only for jobs that were parked.
                if sequence != last.0 {
                    last = (sequence, as_of(sequence));
                }
                Some(of_only_shard(&reported.member, &last.1, outcome))
            },
        );
        return;
    }
    let jobs: Vec<SettledJob> = outcome.into_jobs().collect();
    let (changes, unranked) = match Box::pin(changes_of(operations, home, reported, &jobs)).await {
        Ok(changes) => (changes, None),
        Err(ReadError::Unavailable(shards)) => {
            (Vec::new(), Some(shards.iter().map(|shard| shard.shard).collect::<Vec<_>>()))
        }
        Err(ReadError::KeptChanging(_) | ReadError::NotYetApplied(_) | ReadError::OtherHistory(_)) => {
            (Vec::new(), Some(Vec::new()))
        }
    };
    let (mut changes, mut sent) = (changes.into_iter(), SentMetadata::default());
    append_results(reported, jobs, (home.id, unranked.as_deref()), results, |reported, _, _| {
        let mut change = changes.next()?;
        sent.fill_in(&reported.member, reported.meta.as_ref(), &mut change);
        Some(change)
    });
}

/// Whether an entry had metadata before a job or after it.
fn has_metadata(outcome: &JobOutcome) -> bool {
    let (JobOutcome::Applied(boards) | JobOutcome::Repeated(boards, _)) = outcome else { return false };
    let mut rankings = boards.iter().flat_map(|board| board.before.iter().chain(&board.after));
    rankings.any(|ranking| ranking.has_metadata)
}

/// # Arguments
/// - `home`: the shard that has applied them.
/// - `unranked`: set if other shards were asked in vain.
/// - `change`: what a job did on a board, if entries are reported. It is called for each board of each such
///   job, in their order.
fn append_results<'r, R: Borrow<ReportedJob>>(
    reported: &'r [R],
    jobs: impl IntoIterator<Item = SettledJob>,
    (home, unranked): (ShardId, Option<&[ShardId]>),
    results: &mut Vec<JobResult>,
    mut change: impl FnMut(&'r ReportedJob, Sequence, BoardOutcome) -> Option<EntryChange>,
) {
    for (reported, job) in reported.iter().map(Borrow::borrow).zip(jobs) {
        let reported: &ReportedJob = reported;
        results.push(match job {
            Err(why) => JobResult::Failed(why),
            Ok((_, JobOutcome::Rejected(reject))) => JobResult::Rejected(reject),
            Ok((_, JobOutcome::Parked(_))) => JobResult::Parked,
            Ok((_, JobOutcome::Changed(changed))) => {
                JobResult::Changed { changed, by_board: None, unranked: None }
            }
            Ok((_, JobOutcome::WithProfile { boards, changed, left })) => {
                // Of a ban whose board is gone there is nothing else to tell.
                match reported.without_entries(&boards, changed, None) {
                    Some(JobResult::Everywhere { boards, changed, profile, .. }) => {
                        JobResult::Everywhere { boards, changed, profile, left }
                    }
                    told => told.unwrap_or(JobResult::Profile { changed }),
                }
            }
            Ok((sequence, JobOutcome::Repeated(boards, first))) => JobResult::Repeated {
                now: Box::new(applied_result(reported, sequence, boards, unranked, &mut change)),
                first: FirstResult { changed: first.changed, token: AsOf(vec![(home, first.sequence)]) },
            },
            Ok((sequence, JobOutcome::Applied(boards))) => {
                applied_result(reported, sequence, boards, unranked, &mut change)
            }
        });
    }
}

fn applied_result<'r>(
    reported: &'r ReportedJob,
    sequence: Sequence,
    boards: BoardOutcomes,
    unranked: Option<&[ShardId]>,
    change: &mut impl FnMut(&'r ReportedJob, Sequence, BoardOutcome) -> Option<EntryChange>,
) -> JobResult {
    if let Some(result) = reported.without_entries(&boards, false, unranked) {
        return result;
    }
    // They are large: each is made where it stays.
    let mut changes = Vec::with_capacity(boards.len());
    for board in boards {
        changes.extend(change(reported, sequence, board));
    }
    JobResult::Applied { changes, by_board: reported.kind == ReportKind::Entries { by_board: true } }
}

impl JobResult {
    /// The same without entries.
    pub fn without_entries(self) -> Self {
        match self {
            Self::Applied { changes, by_board } => Self::Changed {
                changed: changes.first().is_some_and(|change| change.changed),
                by_board: by_board.then(|| {
                    changes.into_iter().map(|change| (change.board.name.clone(), change.changed)).collect()
                }),
                unranked: None,
            },
            Self::Repeated { now, first } => Self::Repeated { now: Box::new(now.without_entries()), first },
            other => other,
        }
    }
}

/// The changes of all jobs that report entries, in their order. Holds all shards for a part of them at a
/// time.
async fn changes_of<R: Borrow<ReportedJob>>(
    operations: &Operations,
    home: &ShardHandle,
    reported: &[R],
    jobs: &[SettledJob],
) -> Result<Vec<EntryChange>, ReadError> {
    let mut found = Vec::new();
    for (reported, job) in reported.iter().map(Borrow::borrow).zip(jobs) {
        let reported: &ReportedJob = reported;
        if let Ok((sequence, JobOutcome::Applied(boards) | JobOutcome::Repeated(boards, _))) = job
            && matches!(reported.kind, ReportKind::Entries { .. })
        {
            let of_board = |outcome| FoundOutcome { member: &reported.member, sequence: *sequence, outcome };
            found.extend(boards.iter().map(of_board));
        }
    }
    let mut changes = Vec::with_capacity(found.len());
    let at_once = (LOOKS_PER_VIEW / usize::from(operations.node.shard_count())).max(1);
    for found in found.chunks(at_once) {
        let asked = AddOtherShards { home, found };
        let counted = read(&operations.node, &operations.registry, &asked, &ReadOptions::default()).await?;
        changes.extend(counted.answer);
    }
    Ok(changes)
}

/// The changes that jobs made on boards.
pub fn each_change(results: &mut [JobResult]) -> impl Iterator<Item = &mut EntryChange> {
    let changes = results.iter_mut().filter_map(|result| match result {
        JobResult::Applied { changes, .. } => Some(changes.iter_mut()),
        JobResult::Repeated { now, .. } => match &mut **now {
            JobResult::Applied { changes, .. } => Some(changes.iter_mut()),
            _ => None,
        },
        _ => None,
    });
    changes.flatten()
}

/// The metadata that a message's jobs have sent so far. The disk only has what the last of them left.
#[derive(Default)]
struct SentMetadata<'a>(Vec<(&'a MemberId, BoardName, &'a Metadata)>);

impl<'a> SentMetadata<'a> {
    /// Fills in the metadata of the entry as the job left it, if the message says it.
    ///
    /// # Arguments
    /// `sent`: what this job sent.
    fn fill_in(&mut self, member: &'a MemberId, sent: Option<&'a Metadata>, change: &mut EntryChange) {
        let is_same = |other: &MemberId, board: &BoardName| *other == *member && *board == change.board.name;
        let known = self.0.iter().position(|(other, board, _)| is_same(other, board));
        // A job that leaves the entry as it is, such as a `best` that is not better, leaves its metadata as
        // well.
        if let (Some(meta), true) = (sent, change.takes_metadata) {
            match known.and_then(|known| self.0.get_mut(known)) {
                Some((_, _, known)) => *known = meta,
                None => self.0.push((member, change.board.name.clone(), meta)),
            }
        }
        let known = self.0.iter().find(|(other, board, _)| is_same(other, board));
        if let (Some((_, _, meta)), Some(entry)) = (known, &mut change.entry)
            && matches!(entry.listed.metadata, ListedMetadata::OnDisk(..))
        {
            entry.listed.metadata = ListedMetadata::Json(meta.0.clone());
        }
    }
}
