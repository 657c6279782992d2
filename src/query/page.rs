//! Adds rank and position to a run of entries in order.

use crate::query::answer::Listed;
use crate::query::board_view::BoardView;
use crate::query::merge::MergedEntry;

/// Numbers a run of neighbours, best first, of which the first is at `first` (1-based).
///
/// Only the first entry's rank needs a count. A later entry either has the score of the one before it, and
/// shares its rank, or is the first of its score, and then all entries ahead of it are better.
pub fn with_ranks(board: &BoardView<'_>, run: &[MergedEntry<'_>], first: u64) -> Vec<Listed> {
    let mut better = run.first().map_or(0, |found| board.better(board.score_words(&found.key.words)));
    let mut previous: Option<&MergedEntry<'_>> = None;
    let mut entries = Vec::with_capacity(run.len());
    for (found, position) in run.iter().zip(first..) {
        let same_score = |other: &MergedEntry<'_>| {
            board.score_words(&other.key.words) == board.score_words(&found.key.words)
        };
        if previous.is_some_and(|previous| !same_score(previous)) {
            better = position - 1;
        }
        previous = Some(found);
        let part = board.parts().get(found.part);
        entries.extend(part.and_then(|part| Listed::new(part, found, better, position)));
    }
    entries
}
