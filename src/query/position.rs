//! The page that starts at a position, however deep.

use crate::query::answer::Page;
use crate::query::board_view::BoardView;
use crate::query::cursor::End;
use crate::query::find_place::find_place;
use crate::query::page;
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::query::top::next_cursor;

/// Up to `limit` entries from `position` on (1-based); none past the end, and none beyond the capacity. A
/// handful of round trips with each shard, the last of which decides.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn from_position(board: &BoardView<'_>, position: u64, limit: usize) -> Result<Page, ReadError> {
    let index = position.saturating_sub(1);
    let limit = limit.min(usize::try_from(board.definition.capacity_after(index)).unwrap_or(usize::MAX));
    let shown = |total| board.definition.within_capacity(total);
    let index_of = |total| Some(index).filter(|index| *index < shown(total));
    let place = find_place(board, index_of, limit, true).await?;
    let Some(place) = place else { return Ok(Page { entries: Vec::new(), next: None }) };
    let run = place.entries(limit);
    let more = shown(place.total) > index + crate::types::count(run.len());
    let next = next_cursor(run.last(), more, End::Top);
    Ok(Page { entries: page::with_ranks(board, &place.runs, &run, index + 1), next })
}

/// Reads [`from_position`].
pub struct FromPosition {
    pub position: u64,
    pub limit: usize,
}

impl BoardRead for FromPosition {
    type Answer = Page;

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        from_position(board, self.position, self.limit).await
    }
}
