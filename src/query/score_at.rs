//! The score at a rank, a position or a percentile.

use crate::query::answer::{Standing, percentile};
use crate::query::board_view::BoardView;
use crate::query::find_place::{IndexOf, Part, SearchResult, margin, search, shown};
use crate::query::page::{before, better_than};
use crate::query::question::{Counted, Mark, RunQuestion, RunStart};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;
use crate::tree::Words;
use crate::types::Score;

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
    ///
    /// # Arguments
    /// `total`: the entries that are shown.
    fn index(self, total: u64) -> Option<u64> {
        let last = total.checked_sub(1)?;
        match self {
            Self::Position(position) => position.checked_sub(1).filter(|index| *index <= last),
            Self::Percentile(wanted) => Some((total - least_worse(wanted, total)).min(last)),
        }
    }
}

/// The score at each target, and how it stands, all as of one moment; `None` past the end, and on an empty
/// board. The targets are searched together, so that they take as many round trips as the one that takes
/// most: a handful with each shard, the last of which decides.
///
/// The last round trip shows the entries around each target's place, and mostly all who share its score.
/// Where many share it, the runs end before the score does. Then the next round trip also asks for the
/// entries around both ends of that score, and so it goes on until one round trip decides all targets.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn scores_at(
    board: &BoardView<'_>,
    targets: &[ScoreTarget],
) -> Result<Vec<Option<(Score, Standing)>>, ReadError> {
    let mut looks: Vec<Look> = targets.iter().map(|_| Look::default()).collect();
    for _ in 0..ATTEMPTS {
        search_again(board, targets, &mut looks).await?;
        let places: Vec<&SearchResult> = looks.iter().filter_map(|look| look.place.as_ref()).collect();
        let margin = margin(board, &places);
        let questions: Vec<RunQuestion<'_>> =
            looks.iter().flat_map(|look| look.questions(board, margin)).collect();
        if questions.is_empty() {
            return Ok(vec![None; targets.len()]);
        }
        let mut runs = board.several_runs(&questions, None).await?.into_iter();
        drop(questions);
        let runs: Vec<Vec<Vec<ShardRun<'_>>>> =
            looks.iter().map(|look| runs.by_ref().take(look.question_count()).collect()).collect();
        let first = runs.iter().flatten().next();
        let total = first.map_or(0, |runs| runs.iter().map(ShardRun::total).sum());
        let total = board.definition.within_capacity(total);
        let mut found = Vec::with_capacity(targets.len());
        for ((target, look), runs) in targets.iter().zip(&mut looks).zip(&runs) {
            let shown = Shown { board, total, runs };
            match shown.decide(*target) {
                Decision::Is(score, standing) => found.push(Some((score, standing))),
                Decision::Nothing => found.push(None),
                Decision::LooksLike(score) => look.note(score),
                Decision::Lost => *look = Look::default(),
            }
        }
        if found.len() == targets.len() {
            let score = |words: Words| board.definition.score_of(words.as_slice());
            let scores =
                found.into_iter().map(|found| found.map(|(words, standing)| (score(words), standing)));
            return Ok(scores.collect());
        }
    }
    Err(ReadError::KeptChanging(ATTEMPTS))
}

/// Searches the places of targets that have none yet.
async fn search_again(
    board: &BoardView<'_>,
    targets: &[ScoreTarget],
    looks: &mut [Look],
) -> Result<(), ReadError> {
    let lacking = targets.iter().zip(looks.iter()).filter(|(_, look)| look.place.is_none());
    let shown = |total| board.definition.within_capacity(total);
    let index_of: Vec<_> = lacking.map(|(target, _)| move |total| target.index(shown(total))).collect();
    if index_of.is_empty() {
        return Ok(());
    }
    let index_of: Vec<IndexOf<'_>> = index_of
        .iter()
        .map(|index_of| {
            let index_of: IndexOf<'_> = index_of;
            index_of
        })
        .collect();
    let found = search(board, &index_of, &mut 0).await?;
    for (look, place) in looks.iter_mut().filter(|look| look.place.is_none()).zip(found) {
        look.place = place;
    }
    Ok(())
}

/// Entries that are walked from the start of a run to a place. A search ends closer to it.
const WALKED_MAX: u64 = 4_096;
/// Scores of one target that are asked for from both their ends: of its place, and the next better one.
const SCORES_MAX: usize = 2;

/// Where the runs of a target begin.
#[derive(Default)]
struct Look {
    place: Option<SearchResult>,
    scores: Vec<Words>,
}

impl Look {
    fn questions<'r>(&'r self, board: &BoardView<'_>, margin: u32) -> Vec<RunQuestion<'r>> {
        let around =
            |start| RunQuestion { start, worst: None, above: margin, below: margin, metadata: false };
        let place = self.place.iter().map(|place| place.run(board, 1, margin, Part::Share));
        let ends = self.scores.iter().flat_map(|score| {
            let score = Mark::Score(*score);
            [around(RunStart::Before(score)), around(RunStart::Through(score))]
        });
        place.chain(ends).collect()
    }

    fn question_count(&self) -> usize {
        usize::from(self.place.is_some()) + 2 * self.scores.len()
    }

    /// Asks for this score as well. If it was asked for already, the board has moved too far.
    fn note(&mut self, score: Words) {
        if self.scores.contains(&score) || self.scores.len() == SCORES_MAX {
            *self = Self::default();
        } else {
            self.scores.push(score);
        }
    }
}

/// What one round trip showed of a target: for each of its questions, the shards' runs.
struct Shown<'s, 'v> {
    board: &'s BoardView<'v>,
    /// Entries within the capacity.
    total: u64,
    runs: &'s [Vec<ShardRun<'v>>],
}

enum Decision {
    /// The score, and how it stands.
    Is(Words, Standing),
    /// There is no such place.
    Nothing,
    /// Some entry that decides has this score, of which not enough was shown.
    LooksLike(Words),
    /// The place is not among what was shown.
    Lost,
}

impl Shown<'_, '_> {
    /// For a percentile that is the lowest score with at least so many worse entries as make it,
    /// `least_worse` of them: the last score that ends within the first `total - least_worse` entries.
    fn decide(&self, target: ScoreTarget) -> Decision {
        let Some(index) = target.index(self.total) else { return Decision::Nothing };
        let Some((first, better)) = self.entry_at(index) else { return Decision::Lost };
        let last = match target {
            ScoreTarget::Position(_) => None,
            // All entries are within, so the worst score is the answer.
            ScoreTarget::Percentile(wanted) if least_worse(wanted, self.total) == 0 => None,
            // The position is that of the first entry not within. The answer is the next better score, or
            // this one if there is none.
            ScoreTarget::Percentile(_) => better.checked_sub(1),
        };
        let score = match last.map(|last| self.entry_at(last)) {
            None => first,
            Some(Some((score, _))) => score,
            Some(None) => return Decision::LooksLike(first),
        };
        self.standing(score).map_or(Decision::LooksLike(score), |standing| Decision::Is(score, standing))
    }

    /// The score of the entry that `index` others are before, and how many entries are better than it.
    fn entry_at(&self, index: u64) -> Option<(Words, u64)> {
        let among = |runs: &Vec<ShardRun<'_>>| {
            if before(runs).abs_diff(index) > WALKED_MAX {
                return None;
            }
            let entries = shown(runs, index, 1)?;
            let score = Words::from_slice(self.board.score_words(&entries.first()?.key.words));
            Some((score, better_than(runs, score.as_slice())))
        };
        // A run that begins at an end of a score has counted it.
        let counted = |runs: &Vec<ShardRun<'_>>| {
            let score = runs.first()?.score()?;
            let standing = sum(runs.iter().map(|run| (run.at_start(), run.total())));
            let range = standing.better..standing.better + standing.tied;
            range.contains(&index).then_some((score, standing.better))
        };
        self.runs.iter().find_map(among).or_else(|| self.runs.iter().find_map(counted))
    }

    /// Few entries share a score mostly, and then the runs that show one of them show all.
    fn standing(&self, score: Words) -> Option<Standing> {
        self.runs.iter().find_map(|runs| {
            let at_score: Option<Vec<Counted>> =
                runs.iter().map(|run| run.at_score(score.as_slice())).collect();
            let all = sum(at_score?.into_iter().zip(runs.iter().map(ShardRun::total)));
            Some(all.within_capacity(&self.board.definition))
        })
    }
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

/// About how often a search looks into the tree of a shard.
const LOOKUPS_OF_TARGET: usize = 16;

/// Reads [`scores_at`].
pub struct ScoresAt {
    pub targets: Vec<ScoreTarget>,
}

impl BoardRead for ScoresAt {
    type Answer = Vec<Option<(Score, Standing)>>;

    fn lookups(&self) -> usize {
        self.targets.len() * LOOKUPS_OF_TARGET
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        scores_at(board, &self.targets).await
    }
}
