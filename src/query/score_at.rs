//! The score at a rank, a position or a percentile.

use crate::query::answer::{Standing, percentile};
use crate::query::board_view::BoardView;
use crate::query::find_place::{Place, find_place};
use crate::query::merge::MergedEntry;
use crate::query::page::better_than;
use crate::query::question::{BoardCounts, Counted, Mark};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;
use crate::tree::Words;
use crate::types::{Score, ShardId};

/// Round trips that follow a score which shards move while they are asked.
const ATTEMPTS: u32 = 16;

/// A place on a board.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScoreTarget {
    /// 1-based. For a rank that no entry has because of ties, the entry at that position counts.
    Position(u64),
    /// The lowest score whose percentile is at least this, 0 to 100; the best one if none is.
    Percentile(f64),
}

impl ScoreTarget {
    /// How many entries are before the place that is searched first; `None` if there is no such place.
    fn index(self, total: u64) -> Option<u64> {
        let last = total.checked_sub(1)?;
        match self {
            Self::Position(position) => position.checked_sub(1).filter(|index| *index <= last),
            Self::Percentile(wanted) => Some((total - least_worse(wanted, total)).min(last)),
        }
    }
}

/// The score there, and how it stands; `None` past the end, and on an empty board. A handful of round trips
/// with each shard, the last of which decides.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn score_at(
    board: &BoardView<'_>,
    target: ScoreTarget,
) -> Result<Option<(Score, Standing)>, ReadError> {
    scores_at(board, &[target]).await.map(|found| found.into_iter().next().flatten())
}

/// [`score_at`] for several targets, all as of one moment.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn scores_at(
    board: &BoardView<'_>,
    targets: &[ScoreTarget],
) -> Result<Vec<Option<(Score, Standing)>>, ReadError> {
    let score = |words: &Words| board.definition.score_of(words.as_slice());
    for _ in 0..ATTEMPTS {
        let mut candidates = Vec::with_capacity(targets.len());
        for target in targets {
            match candidate(board, *target).await? {
                // The round trip that found it tells all, and is the last one.
                Candidate::Decided(words, standing) if targets.len() == 1 || board.is_snapshot() => {
                    candidates.push(Candidate::Decided(words, standing));
                }
                Candidate::Decided(words, _) => candidates.push(Candidate::Likely(words, None)),
                other => candidates.push(other),
            }
        }
        let is_open = |candidate: &Candidate| matches!(candidate, Candidate::Likely(..));
        let mut found = Vec::with_capacity(targets.len());
        if candidates.iter().any(is_open) || (targets.len() > 1 && !board.is_snapshot()) {
            let marks = candidates.iter().flat_map(Candidate::marks).map(Mark::Score);
            let counts = board.counts(&marks.collect::<Vec<_>>()).await?;
            let mut nth = 0;
            for (target, candidate) in targets.iter().zip(&candidates) {
                let standings: Vec<Standing> =
                    candidate.marks().enumerate().map(|(mark, _)| standing_of(&counts, nth + mark)).collect();
                nth += standings.len();
                let total = counts.iter().map(|(_, counts)| counts.total).sum();
                match candidate.confirm(*target, total, &standings) {
                    Some(answer) => found.push(answer.map(|(words, standing)| (score(&words), standing))),
                    None => break,
                }
            }
        } else {
            found.extend(candidates.into_iter().map(|candidate| match candidate {
                Candidate::Decided(words, standing) => Some((score(&words), standing)),
                Candidate::Likely(..) | Candidate::Nothing => None,
            }));
        }
        if found.len() == targets.len() {
            return Ok(found);
        }
    }
    Err(ReadError::KeptChanging(ATTEMPTS))
}

/// What a search found for a target.
enum Candidate {
    /// The score, and how it stands as of the round trip that found it.
    Decided(Words, Standing),
    /// The score, and for a percentile the next worse one, if there is one: to be counted in one round trip.
    Likely(Words, Option<Words>),
    /// There is no such place.
    Nothing,
}

impl Candidate {
    /// The scores to be counted to confirm the candidate.
    fn marks(&self) -> impl Iterator<Item = Words> {
        let (score, next) = match self {
            Self::Decided(score, _) => (Some(*score), None),
            Self::Likely(score, next) => (Some(*score), *next),
            Self::Nothing => (None, None),
        };
        score.into_iter().chain(next)
    }

    /// Whether counts of one moment agree with it; `None` if they do not.
    #[expect(clippy::option_option, reason = "the inner one is the answer: there may be no such place")]
    fn confirm(
        &self,
        target: ScoreTarget,
        total: u64,
        standings: &[Standing],
    ) -> Option<Option<(Words, Standing)>> {
        let (Some(score), Some(standing)) = (self.marks().next(), standings.first()) else {
            return target.index(total).is_none().then_some(None);
        };
        let ends_at = standing.better + standing.tied;
        let matches_target = standing.tied > 0
            && match target {
                ScoreTarget::Position(_) => {
                    target.index(total).is_some_and(|index| standing.better <= index && index < ends_at)
                }
                ScoreTarget::Percentile(wanted) => {
                    let within = total - least_worse(wanted, total);
                    let is_last_within = match standings.get(1) {
                        // The next worse score begins where this one ends, and reaches beyond what is within.
                        Some(next) => next.better == ends_at && next.better + next.tied > within,
                        None => ends_at == total,
                    };
                    // No score reaches the percentile, so the best score is the answer.
                    let is_best = standing.better == 0 && ends_at > within;
                    is_best || (ends_at <= within && is_last_within)
                }
            };
        matches_target.then_some(Some((score, *standing)))
    }
}

/// Searches for a target. For a percentile that is the lowest score with at least so many worse entries as
/// make it, `least_worse` of them: the last score that ends within the first `total - least_worse` entries.
async fn candidate(board: &BoardView<'_>, target: ScoreTarget) -> Result<Candidate, ReadError> {
    let Some(place) = find_place(board, |total| target.index(total), 1).await? else {
        return Ok(Candidate::Nothing);
    };
    let Some(first) = score_of_place(board, &place) else { return Ok(Candidate::Nothing) };
    let last = match target {
        ScoreTarget::Position(_) => {
            return Ok(decided(&place, first).unwrap_or(Candidate::Likely(first, None)));
        }
        ScoreTarget::Percentile(wanted) => {
            if least_worse(wanted, place.total) == 0 {
                // All entries are within, so the worst score is the answer.
                return Ok(decided(&place, first).unwrap_or(Candidate::Likely(first, None)));
            }
            // The position is that of the first entry not within; the answer is the next better score, if
            // there is one.
            better_than(&place.runs, first.as_slice()).checked_sub(1)
        }
    };
    let Some(last) = last else {
        return Ok(decided(&place, first).unwrap_or(Candidate::Likely(first, None)));
    };
    if let Some(score) = place.shown_above(last).map(|found| score_words(board, &found))
        && let Some(decided) = decided(&place, score)
    {
        return Ok(decided);
    }
    let found = find_place(board, |total| Some(last).filter(|last| *last < total), 1).await?;
    let score = found.and_then(|found| score_of_place(board, &found));
    Ok(Candidate::Likely(score.unwrap_or(first), Some(first)))
}

/// Few entries share a score mostly, and then the runs that show one of them show all.
fn decided(place: &Place<'_>, score: Words) -> Option<Candidate> {
    let shown: Option<Vec<Counted>> = place.runs.iter().map(|run| run.at_score(score.as_slice())).collect();
    let totals = place.runs.iter().map(ShardRun::total);
    Some(Candidate::Decided(score, sum(shown?.into_iter().zip(totals))))
}

/// The score of the entry at the place.
fn score_of_place(board: &BoardView<'_>, place: &Place<'_>) -> Option<Words> {
    place.entries(1).first().map(|found| score_words(board, found))
}

fn score_words(board: &BoardView<'_>, found: &MergedEntry<'_>) -> Words {
    Words::from_slice(board.score_words(&found.key.words))
}

/// How the nth score counted stands.
fn standing_of(counts: &[(ShardId, BoardCounts)], nth: usize) -> Standing {
    sum(counts.iter().map(|(_, counts)| (counts.marks.get(nth).copied().unwrap_or_default(), counts.total)))
}

fn sum(shards: impl Iterator<Item = (Counted, u64)>) -> Standing {
    let mut sum = Standing { better: 0, tied: 0, total: 0 };
    for (at, total) in shards {
        sum.better += at.before;
        sum.tied += at.through - at.before;
        sum.total += total;
    }
    sum
}

/// The least count of worse entries that makes the percentile, compared as the printed numbers are: asking
/// for an entry's own percentile must find its score.
fn least_worse(wanted: f64, total: u64) -> u64 {
    let (mut low, mut high) = (0, total);
    while low < high {
        let middle = low.midpoint(high);
        if percentile(middle, total) >= wanted {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Reads [`score_at`] for each target.
pub struct ScoresAt {
    pub targets: Vec<ScoreTarget>,
}

impl BoardRead for ScoresAt {
    type Answer = Vec<Option<(Score, Standing)>>;

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        scores_at(board, &self.targets).await
    }
}
