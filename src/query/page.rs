//! A page of entries: how much of it each shard is asked for, whether that was enough, and the rank and
//! position of its entries.

use crate::query::answer::Listed;
use crate::query::board_view::BoardView;
use crate::query::merge::MergedEntry;
use crate::query::shard_run::ShardRun;

/// Numbers a run of neighbours, best first, of which the first is at `first` (1-based).
///
/// Only the first entry's rank needs a count. A later entry either has the score of the one before it, and
/// shares its rank, or is the first of its score, and then all entries ahead of it are better.
///
/// # Arguments
/// `runs`: of every shard, from which the entries were merged.
pub fn with_ranks(
    board: &BoardView<'_>,
    runs: &[ShardRun<'_>],
    page: &[MergedEntry<'_>],
    first: u64,
) -> Vec<Listed> {
    let score_of =
        |found: &MergedEntry<'_>| crate::tree::Words::from_slice(board.score_words(&found.key.words));
    let mut better = page.first().map_or(0, |found| better_than(runs, score_of(found).as_slice()));
    let mut previous: Option<&MergedEntry<'_>> = None;
    let mut entries = Vec::with_capacity(page.len());
    for (found, position) in page.iter().zip(first..) {
        let same_score = |other: &MergedEntry<'_>| {
            board.score_words(&other.key.words) == board.score_words(&found.key.words)
        };
        if previous.is_some_and(|previous| !same_score(previous)) {
            better = position - 1;
        }
        previous = Some(found);
        entries.extend(Listed::new(&board.definition, found, better, position));
    }
    entries
}

/// Entries before the runs' starts.
pub fn before(runs: &[ShardRun<'_>]) -> u64 {
    runs.iter().map(ShardRun::start).sum()
}

/// Entries of all shards that are better than a score.
pub fn better_than(runs: &[ShardRun<'_>], score: &[u64]) -> u64 {
    runs.iter().map(|run| run.better(score)).sum()
}

/// How many entries each shard is asked for, so that a page can be merged from them. Members are spread over
/// shards by their hash, so a shard has some share of the page. If it has more, it is asked again, for the
/// whole page.
pub fn share(limit: u32, shards: u16) -> u32 {
    if shards <= 1 {
        return limit;
    }
    let mean = limit.div_ceil(u32::from(shards));
    // Four standard deviations, and some for small pages.
    let slack = 4 * mean.isqrt() + 8;
    limit.min(mean.saturating_add(slack))
}

/// Whether some shard has entries that would belong before the last of those merged, and did not return them.
///
/// # Arguments
/// `merged`: from the runs' starts down. `wanted`: how many were to be merged, if there are so many.
pub fn is_short_below(runs: &[ShardRun<'_>], merged: &[MergedEntry<'_>], wanted: usize) -> bool {
    let last = merged.last().map(|last| last.key);
    runs.iter().any(|run| match run.unshown_below() {
        None => false,
        Some(shown) => merged.len() < wanted || shown < last,
    })
}

/// The same from the runs' starts up.
pub fn is_short_above(runs: &[ShardRun<'_>], merged: &[MergedEntry<'_>], wanted: usize) -> bool {
    let last = merged.last().map(|last| last.key);
    runs.iter().any(|run| match run.unshown_above() {
        None => false,
        Some(_) if merged.len() < wanted => true,
        // Without a shown entry, the first that is not shown may belong anywhere.
        Some(shown) => last.is_some_and(|last| shown.is_none_or(|shown| shown > last)),
    })
}
