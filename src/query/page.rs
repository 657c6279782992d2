//! Adds rank and position to a run of entries in order.

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

/// Entries of all shards that are better than a score.
pub fn better_than(runs: &[ShardRun<'_>], score: &[u64]) -> u64 {
    runs.iter().map(|run| run.better(score)).sum()
}
