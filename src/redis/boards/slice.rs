//! A range of a board, in the order of Redis: which positions it has, and its first entries.
//!
//! A position is counted from the best entry, and so is a range; which way it is walked depends on the board.

use crate::board::{Definition, Ties, encode};
use crate::query::question::{Mark, RunQuestion, RunStart, SortKey};
use crate::query::{BoardRead, BoardView, End, Listed, ReadError, Start, from_position, top};
use crate::redis::boards::bounds::between;
use crate::redis::boards::key::Shape;
use crate::redis::commands::{LexBound, RangeOf, Selection};
use crate::redis::refused::Refused;
use crate::tree::Words;
use crate::types::{BoardName, Score, Timestamp, count};

/// Entries that are read at once, under one hold of the shards.
pub const PAGE: usize = 1_000;

/// Reads the first entries of a range.
pub struct SliceOf<'a> {
    pub board: &'a BoardName,
    pub range: &'a RangeOf<'a>,
    /// Entries that are wanted at once, at most; 0: only how many there are.
    pub page: usize,
}

/// A range, and its first entries in the order that was asked for.
pub struct Slice {
    /// Entries before it, from the best one.
    pub from: u64,
    /// Those before its end.
    pub to: u64,
    /// It is walked from the best entry down.
    pub is_forward: bool,
    pub entries: Vec<Listed>,
}

impl BoardRead for SliceOf<'_> {
    type Answer = Result<Slice, Refused>;

    fn shows_total(_: &Self::Answer) -> bool {
        false
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        let shape = match Shape::of(self.board, &board.definition) {
            Ok(shape) => shape,
            Err(refused) => return Ok(Err(refused)),
        };
        let RangeOf { selection, descending, limit, .. } = self.range;
        let is_forward = *descending == shape.best_is_greatest;
        let (from, to) = match selection {
            Selection::Index(start, stop) => {
                let total = board.total().await?;
                let (first, end) = indexes(*start, *stop, total);
                if is_forward { (first, end) } else { (total - end, total - first) }
            }
            Selection::Score(min, max) => {
                let Some(key) = board.definition.keys.first() else { return Ok(Ok(Slice::EMPTY)) };
                let Some((least, greatest)) = between(key, *min, *max) else { return Ok(Ok(Slice::EMPTY)) };
                let (best, worst) =
                    if shape.best_is_greatest { (greatest, least) } else { (least, greatest) };
                let marks =
                    [best, worst].map(|score| Mark::Score(Words::from_slice(&[encode(score, key.order)])));
                let (mut before, mut through) = (0, 0);
                for (_, counts) in board.counts(&marks).await? {
                    if let [best, worst] = &counts.marks[..] {
                        before += best.before;
                        through += worst.through;
                    }
                }
                shown(&board.definition, before, through)
            }
            Selection::Lex(min, max) => match between_members(board, *min, *max).await? {
                Ok((before, through)) => shown(&board.definition, before, through),
                Err(refused) => return Ok(Err(refused)),
            },
        };
        let (from, to) = limited(from, to, is_forward, *limit);
        let length = usize::try_from(to - from).unwrap_or(usize::MAX).min(self.page);
        let entries = page(board, (from, to), is_forward, length).await?;
        Ok(Ok(Slice { from, to, is_forward, entries }))
    }
}

impl Slice {
    const EMPTY: Self = Self { from: 0, to: 0, is_forward: true, entries: Vec::new() };
}

fn shown(definition: &Definition, before: u64, through: u64) -> (u64, u64) {
    let (from, to) = (definition.within_capacity(before), definition.within_capacity(through));
    (from, to.max(from))
}

/// The range of indexes from one to another, both inclusive; negative ones count from the end.
fn indexes(start: i64, stop: i64, total: u64) -> (u64, u64) {
    let place = |index: i64| match u64::try_from(index) {
        Ok(index) => index.min(total),
        Err(_) => total.saturating_sub(index.unsigned_abs()),
    };
    let end =
        if stop < 0 && stop.unsigned_abs() > total { 0 } else { place(stop).saturating_add(1).min(total) };
    let first = place(start);
    (first.min(end), end)
}

/// What is left of a range of positions, walked one way or the other.
fn limited(from: u64, to: u64, is_forward: bool, limit: Option<(i64, i64)>) -> (u64, u64) {
    let Some((offset, most)) = limit else { return (from, to) };
    let length = to - from;
    let Ok(skipped) = u64::try_from(offset) else { return (from, from) };
    let skipped = skipped.min(length);
    let taken = u64::try_from(most).map_or(length - skipped, |most| most.min(length - skipped));
    if is_forward { (from + skipped, from + skipped + taken) } else { (to - skipped - taken, to - skipped) }
}

/// The first entries of a range of positions, walked one way or the other.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
async fn page(
    board: &BoardView<'_>,
    (from, to): (u64, u64),
    is_forward: bool,
    length: usize,
) -> Result<Vec<Listed>, ReadError> {
    if length == 0 {
        return Ok(Vec::new());
    }
    if is_forward && from == 0 {
        return Ok(top(board, &Start::End(End::Top), length).await?.entries);
    }
    let first = if is_forward { from } else { to - count(length) };
    let mut entries = from_position(board, first + 1, length).await?.entries;
    if !is_forward {
        entries.reverse();
    }
    Ok(entries)
}

/// Entries before the members between two bounds, and those before their end.
async fn between_members(
    board: &BoardView<'_>,
    min: LexBound<'_>,
    max: LexBound<'_>,
) -> Result<Result<(u64, u64), Refused>, ReadError> {
    let total = board.total().await?;
    let is_all = matches!((min, max), (LexBound::Least, LexBound::Greatest));
    let is_nothing = matches!((min, max), (LexBound::Greatest, _) | (_, LexBound::Least));
    if is_nothing || total == 0 {
        return Ok(Ok((0, 0)));
    }
    if is_all {
        return Ok(Ok((0, total)));
    }
    let Some(ascends) = ids_ascend(board.definition.ties) else {
        return Ok(Err(Refused::new(
            "ERR ranges of members need a board whose ties are member or member_desc, as ZADD makes it",
        )));
    };
    let best = top(board, &Start::End(End::Top), 1).await?.entries;
    let worst = from_position(board, total, 1).await?.entries;
    let (Some(best), Some(worst)) = (best.first(), worst.first()) else { return Ok(Ok((0, 0))) };
    if best.score != worst.score {
        return Ok(Err(Refused::new("ERR ranges of members need a board on which all scores are equal")));
    }
    let place = |bound: LexBound<'_>, is_min: bool| {
        let (id, exclusive) = match bound {
            LexBound::Inclusive(id) => (id.to_vec(), false),
            LexBound::Exclusive(id) => (id.to_vec(), true),
            LexBound::Least | LexBound::Greatest => return None,
        };
        // On the side from which the board is walked, what is excluded is passed over.
        Some((id, exclusive == (is_min == ascends)))
    };
    let (first, last) =
        if ascends { (place(min, true), place(max, false)) } else { (place(max, false), place(min, true)) };
    let before = match first {
        None => 0,
        Some((id, through)) => entries_to(board, &best.score, &id, through).await?,
    };
    let through = match last {
        None => total,
        Some((id, through)) => entries_to(board, &best.score, &id, through).await?,
    };
    Ok(Ok((before, through.max(before))))
}

/// Whether ids of equal scores ascend from the best entry down; `None`: they are in no order.
fn ids_ascend(ties: Ties) -> Option<bool> {
    match ties {
        Ties::Member => Some(true),
        Ties::MemberDesc => Some(false),
        Ties::First | Ties::Last => None,
    }
}

/// Entries before an id among those of one score, and the id's own if `through`.
async fn entries_to(
    board: &BoardView<'_>,
    score: &Score,
    id: &[u8],
    through: bool,
) -> Result<u64, ReadError> {
    let words = board.definition.entry_words(score, Timestamp::default(), id);
    let mark = Mark::Entry(SortKey { words, member: id });
    let start = if through { RunStart::Through(mark) } else { RunStart::Before(mark) };
    let run = RunQuestion { start, worst: None, above: 0, below: 0, metadata: false };
    let mut before = 0;
    for run in board.runs(&run, None).await? {
        before += run.start();
    }
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_count_from_either_end() {
        for (start, stop, total, expect) in [
            (0, -1, 5, (0, 5)),
            (0, 0, 5, (0, 1)),
            (1, 3, 5, (1, 4)),
            (-2, -1, 5, (3, 5)),
            (-100, 1, 5, (0, 2)),
            (3, 100, 5, (3, 5)),
            (5, 9, 5, (5, 5)),
            (3, 1, 5, (2, 2)),
            (0, -6, 5, (0, 0)),
            (0, -5, 5, (0, 1)),
            (i64::MIN, i64::MAX, 5, (0, 5)),
            (0, -1, 0, (0, 0)),
        ] {
            assert_eq!(indexes(start, stop, total), expect, "{start} {stop}");
        }
    }

    #[test]
    fn a_limit_passes_over_entries_in_the_direction_of_the_walk() {
        for (is_forward, limit, expect) in [
            (true, None, (10, 20)),
            (true, Some((2, 3)), (12, 15)),
            (false, Some((2, 3)), (15, 18)),
            (true, Some((0, -1)), (10, 20)),
            (false, Some((9, 5)), (10, 11)),
            (true, Some((10, 5)), (20, 20)),
            (true, Some((-1, 5)), (10, 10)),
            (true, Some((0, 0)), (10, 10)),
        ] {
            assert_eq!(limited(10, 20, is_forward, limit), expect, "{is_forward} {limit:?}");
        }
    }
}
