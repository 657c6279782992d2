//! A member and its neighbours.

use crate::query::answer::Listed;
use crate::query::board_view::BoardView;
use crate::query::merge::{MergedEntry, backward, forward};
use crate::query::{member, page};
use crate::types::MemberId;

/// How many neighbours on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around {
    pub above: u64,
    pub below: u64,
    /// At an end of the board, take from the other side what is missing on this one.
    pub fill: bool,
}

/// Up to `above` entries before the member, itself, and up to `below` after it; `None` if it is not listed.
#[must_use]
pub fn around(board: &BoardView<'_>, id: &MemberId, asked: Around) -> Option<Vec<Listed>> {
    let found = member::find(board, id)?;
    let starts: Vec<u64> = board.parts().iter().map(|part| part.before(&found.key)).collect();
    let ahead: u64 = starts.iter().sum();
    let behind = board.total() - ahead - 1;
    let (mut above, mut below) = (asked.above.min(ahead), asked.below.min(behind));
    if asked.fill {
        let (missing_above, missing_below) = (asked.above - above, asked.below - below);
        above = (above + missing_below).min(ahead);
        below = (below + missing_above).min(behind);
    }
    let mut run: Vec<MergedEntry<'_>> = backward(board, &starts).take(count(above)).collect();
    run.reverse();
    run.extend(forward(board, &starts).take(count(below + 1)));
    Some(page::with_ranks(board, &run, ahead - above + 1))
}

fn count(of: u64) -> usize {
    usize::try_from(of).unwrap_or(usize::MAX)
}
