//! How many entries have a first key within bounds, and how they spread.

use crate::board::{Order, decode, encode};
use crate::query::board_view::BoardView;
use crate::types::{self, MAX_KEYS};

/// Entries with a first key of `min..=max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub min: i64,
    pub max: i64,
    pub count: u64,
}

/// Counts over neighbouring buckets, and what is outside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    pub buckets: Vec<Bucket>,
    pub below: u64,
    pub above: u64,
}

/// All entries, hidden ones included.
#[must_use]
pub fn count_all(board: &BoardView<'_>) -> u64 {
    board.windows().map(|window| window.total() + types::count(window.hidden_count())).sum()
}

/// Entries whose first key is within `min..=max`. Two descents per shard.
#[must_use]
pub fn count(board: &BoardView<'_>, min: i64, max: i64) -> u64 {
    if min > max {
        return 0;
    }
    let (first, last) = best_and_worst(board, min, max);
    board.through(&[last]) - board.better(&[first])
}

/// The words of the best and of the worst first key within `min..=max`.
pub(super) fn best_and_worst(board: &BoardView<'_>, min: i64, max: i64) -> (u64, u64) {
    let order = board.definition.keys.first().map_or(Order::Descending, |key| key.order);
    let (best, worst) = match order {
        Order::Ascending => (min, max),
        Order::Descending => (max, min),
    };
    (encode(best, order), encode(worst, order))
}

/// Counts between ascending edges, at least two: each bucket from its edge to just below the next, the last
/// one up to its upper edge, inclusive.
#[must_use]
pub fn histogram(board: &BoardView<'_>, edges: &[i64]) -> Histogram {
    let mut buckets = Vec::with_capacity(edges.len());
    let last = edges.len().saturating_sub(2);
    for (index, pair) in edges.windows(2).enumerate() {
        let [from, to] = *pair else { continue };
        let max = if index == last { to } else { to.saturating_sub(1) };
        buckets.push(Bucket { min: from, max, count: count(board, from, max) });
    }
    let below = match edges.first().and_then(|first| first.checked_sub(1)) {
        Some(max) => count(board, i64::MIN, max),
        None => 0,
    };
    let inside: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    Histogram { buckets, below, above: board.total() - below - inside }
}

/// Edges of up to `buckets` equally wide buckets from the least to the greatest first key; none on an empty
/// board.
#[must_use]
pub fn edges_over(board: &BoardView<'_>, buckets: u32) -> Vec<i64> {
    let Some((least, greatest)) = extremes(board) else { return Vec::new() };
    // As 128 bits, because the span of 64-bit scores does not fit 64.
    let (least, greatest) = (i128::from(least), i128::from(greatest));
    let buckets = i128::from(buckets.max(1));
    let width = (greatest - least + buckets) / buckets;
    let mut edges = Vec::new();
    let mut edge = least;
    while edge <= greatest {
        edges.extend(i64::try_from(edge));
        edge += width;
    }
    edges.extend(i64::try_from(greatest));
    edges
}

/// The least and the greatest first key.
fn extremes(board: &BoardView<'_>) -> Option<(i64, i64)> {
    debug_assert!(board.definition.keys.len() <= MAX_KEYS, "a validated definition");
    let order = board.definition.keys.first()?.order;
    let mut extremes: Option<(i64, i64)> = None;
    for window in board.windows() {
        let last = window.total().checked_sub(1);
        for index in [Some(0), last].into_iter().flatten() {
            let Some((_, words)) = window.tree.select(index) else { continue };
            let value = decode(*words.as_slice().first()?, order);
            let (low, high) = extremes.unwrap_or((value, value));
            extremes = Some((low.min(value), high.max(value)));
        }
    }
    extremes
}
