//! The page that starts at a position, however deep.

use crate::query::answer::Page;
use crate::query::board_view::BoardView;
use crate::query::split::split;
use crate::query::top::downward;

/// Up to `limit` entries from `position` on (1-based); none past the end.
#[must_use]
pub fn from_position(board: &BoardView<'_>, position: u64, limit: usize) -> Page {
    let before = position.saturating_sub(1);
    if before >= board.total() {
        return Page { entries: Vec::new(), next: None };
    }
    downward(board, &split(board, before), limit)
}
