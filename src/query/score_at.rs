//! The score at a rank, a position or a percentile.

use crate::query::answer::{Standing, percentile};
use crate::query::board_view::BoardView;
use crate::query::merge::forward;
use crate::query::split::split;
use crate::types::Score;

/// A place on a board.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScoreTarget {
    /// 1-based. For a rank that no entry has because of ties, the entry at that position counts.
    Position(u64),
    /// The lowest score whose percentile is at least this, 0 to 100; the best one if none is.
    Percentile(f64),
}

/// The score there, and how it stands; `None` past the end, and on an empty board.
#[must_use]
pub fn score_at(board: &BoardView<'_>, mark: ScoreTarget) -> Option<(Score, Standing)> {
    match mark {
        ScoreTarget::Position(position) => at_index(board, position.checked_sub(1)?),
        ScoreTarget::Percentile(wanted) => {
            let total = board.total();
            let worse = least_worse(wanted, total);
            // The entry with that many behind it. Others with its score may be among those, which are not
            // worse: then the next better score is the one.
            let index = total.checked_sub(1)?.saturating_sub(worse);
            let (score, standing) = at_index(board, index)?;
            match standing.better.checked_sub(1) {
                Some(next_better) if standing.worse() < worse => at_index(board, next_better),
                _ => Some((score, standing)),
            }
        }
    }
}

fn at_index(board: &BoardView<'_>, index: u64) -> Option<(Score, Standing)> {
    let total = board.total();
    if index >= total {
        return None;
    }
    let found = forward(board, &split(board, index)).next()?;
    let words = board.score_words(&found.key.words);
    let better = board.better(words);
    let standing = Standing { better, tied: board.through(words) - better, total };
    Some((board.definition.score_of(words), standing))
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
