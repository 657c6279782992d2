//! How many entries have a first key within bounds, and how they spread.

use thiserror::Error;

use crate::board::{Definition, KeyType, Order, decode, encode};
use crate::query::board_view::BoardView;
use crate::query::find_place::find_place;
use crate::query::instance::InstanceAsked;
use crate::query::question::{BoardLife, Mark, SplittersQuestion};
use crate::query::read::BoardRead;
use crate::query::read::ShardsRead;
use crate::query::read_shards::ReadShards;
use crate::query::remote_shards::ReadError;
use crate::tree::Words;
use crate::types::{AsOf, BoardName, Double, MAX_KEYS, NoInteger, Number};
use crate::window::Instance;
use crate::writer::{RegisteredBoard, Registry};

/// What the first key of entries lies between, inclusive. `None`: there is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub min: Option<Number>,
    pub max: Option<Number>,
}

/// Why bounds are none of a board, in words for a client to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BoundsRefused {
    #[error("{name}: {why}")]
    NoInteger { name: &'static str, why: NoInteger },
    #[error("min ({min}) is above max ({max}); exchange them")]
    Crossed { min: Number, max: Number },
}

impl Bounds {
    /// Both bounds as integers of the order of the board's first key.
    ///
    /// # Errors
    /// When one is no integer and the key has integers, or nothing is between them.
    pub fn of(&self, definition: &Definition) -> Result<(i64, i64), BoundsRefused> {
        let ordered = |name, bound: Option<Number>, otherwise| {
            let found = bound.map(|bound| ordered(definition, bound)).transpose();
            Ok(found.map_err(|why| BoundsRefused::NoInteger { name, why })?.unwrap_or(otherwise))
        };
        let (least, most) = (ordered("min", self.min, i64::MIN)?, ordered("max", self.max, i64::MAX)?);
        match (self.min, self.max) {
            _ if least <= most => Ok((least, most)),
            (Some(min), Some(max)) => Err(BoundsRefused::Crossed { min, max }),
            _ => Ok((least, most)),
        }
    }
}

/// A value of the first key as an integer of its order.
fn ordered(definition: &Definition, value: Number) -> Result<i64, NoInteger> {
    definition.keys.first().map_or_else(|| value.integer(), |key| key.ordered(value))
}

/// Entries with a first key of `min..=max`, as integers of the key's order.
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

/// All entries, hidden ones and those beyond the capacity included.
pub async fn count_all(board: &BoardView<'_>) -> Result<u64, ReadError> {
    let (listed, hidden) = board.totals().await?;
    Ok(listed + hidden)
}

/// Entries whose first key is within `min..=max`. One round trip with each shard.
pub async fn count(board: &BoardView<'_>, min: i64, max: i64) -> Result<u64, ReadError> {
    let (within, _) = count_within(board, &[(min, max)]).await?;
    Ok(within.first().copied().unwrap_or(0))
}

/// For each pair, the entries whose first key is within it; and all entries.
async fn count_within(board: &BoardView<'_>, bounds: &[(i64, i64)]) -> Result<(Vec<u64>, u64), ReadError> {
    let mut marks = Vec::with_capacity(2 * bounds.len());
    for (min, max) in bounds {
        let (best, worst) = best_and_worst(board, *min, *max);
        marks.extend([best, worst].map(|word| Mark::Score(Words::from_slice(&[word]))));
    }
    let counts = board.counts(&marks).await?;
    let shown = |sum| board.definition.within_capacity(sum);
    let total = shown(counts.iter().map(|(_, counts)| counts.total).sum());
    let mut sums = vec![(0, 0); bounds.len()];
    for (_, counts) in &counts {
        for ((before, through), pair) in sums.iter_mut().zip(counts.marks.chunks(2)) {
            if let [best, worst] = pair {
                *before += best.before;
                *through += worst.through;
            }
        }
    }
    // Bounds that cross have nothing between them.
    let within = sums.into_iter().map(|(before, through)| shown(through).saturating_sub(shown(before)));
    Ok((within.collect(), total))
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
/// one up to its upper edge, inclusive. One round trip with each shard.
pub async fn histogram(board: &BoardView<'_>, edges: &[i64]) -> Result<Histogram, ReadError> {
    let last = edges.len().saturating_sub(2);
    let mut bounds: Vec<(i64, i64)> = Vec::with_capacity(edges.len());
    for (index, pair) in edges.windows(2).enumerate() {
        let [from, to] = *pair else { continue };
        bounds.push((from, if index == last { to } else { to.saturating_sub(1) }));
    }
    let below = edges.first().and_then(|first| first.checked_sub(1)).map(|max| (i64::MIN, max));
    bounds.extend(below);
    let (mut counts, total) = count_within(board, &bounds).await?;
    let below = below.and_then(|_| counts.pop()).unwrap_or(0);
    let buckets =
        bounds.iter().zip(&counts).map(|((min, max), count)| Bucket { min: *min, max: *max, count: *count });
    let inside: u64 = counts.iter().sum();
    Ok(Histogram { buckets: buckets.collect(), below, above: total - below - inside })
}

/// Edges of up to `buckets` equally wide buckets from the least to the greatest first key; none on an empty
/// board. One round trip with each shard, and those that find a position if the board has a capacity and more
/// entries.
pub async fn edges_over(board: &BoardView<'_>, buckets: u32) -> Result<Vec<i64>, ReadError> {
    let Some((least, greatest)) = extremes(board).await? else { return Ok(Vec::new()) };
    if board.definition.keys.first().is_some_and(|key| key.key_type == KeyType::Float) {
        return Ok(edges_of_doubles(least, greatest, buckets));
    }
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
    Ok(edges)
}

/// The same between two doubles, as integers of their order. Infinities lie in buckets of their own.
fn edges_of_doubles(least: i64, greatest: i64, buckets: u32) -> Vec<i64> {
    let finite = |ordered: i64| Double::of_ordered(ordered).value().clamp(f64::MIN, f64::MAX);
    let (low, high) = (finite(least), finite(greatest));
    let edge = |nth: u32| {
        let share = f64::from(nth) / f64::from(buckets.max(1));
        // The span of two doubles may be none.
        Double::new(low * (1.0 - share) + high * share).map(Double::ordered)
    };
    let between = (0..=buckets.max(1)).filter_map(edge).map(|edge| edge.clamp(least, greatest));
    let mut edges: Vec<i64> = std::iter::once(least).chain(between).chain([greatest]).collect();
    edges.sort_unstable();
    edges.dedup();
    if let [only] = edges[..] {
        edges.push(only);
    }
    edges
}

/// The least and the greatest first key.
async fn extremes(board: &BoardView<'_>) -> Result<Option<(i64, i64)>, ReadError> {
    debug_assert!(board.definition.keys.len() <= MAX_KEYS, "a validated definition");
    let Some(order) = board.definition.keys.first().map(|key| key.order) else { return Ok(None) };
    let splitters = SplittersQuestion { ends: true, ..SplittersQuestion::default() };
    let first = |words: &Words| words.as_slice().first().map(|word| decode(*word, order));
    let (mut total, mut ends) = (0, Vec::new());
    for reply in board.splitters(&[splitters]).await?.into_iter().flatten() {
        total += reply.total;
        ends.extend(reply.splitters.into_iter().map(|splitter| splitter.words));
    }
    let shown = |total| board.definition.within_capacity(total);
    if shown(total) < total {
        ends.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        ends.truncate(1);
        let last = find_place(board, |total| shown(total).checked_sub(1), 1, false).await?;
        ends.extend(last.iter().flat_map(|place| place.entries(1)).map(|last| last.key.words));
    }
    let values: Vec<i64> = ends.iter().filter_map(first).collect();
    Ok(values.iter().copied().min().zip(values.iter().copied().max()))
}

/// Reads [`count`].
pub struct CountBetween(pub Bounds);

impl BoardRead for CountBetween {
    type Answer = Result<u64, BoundsRefused>;

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        match self.0.of(&board.definition) {
            Ok((min, max)) => count(board, min, max).await.map(Ok),
            Err(refused) => Ok(Err(refused)),
        }
    }
}

/// Reads [`count_all`].
pub struct CountAll;

impl BoardRead for CountAll {
    type Answer = u64;

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        count_all(board).await
    }
}

/// Where the buckets of a histogram lie.
pub enum HistogramEdges {
    /// Ascending, at least two.
    Given(Vec<Number>),
    /// So many equally wide buckets over all scores.
    Over(u32),
}

/// Why edges are none of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgesRefused {
    NoInteger(NoInteger),
    /// They are fewer than two, or do not ascend.
    NotAscending,
}

/// Reads [`histogram`].
pub struct HistogramOver(pub HistogramEdges);

impl BoardRead for HistogramOver {
    type Answer = Result<Histogram, EdgesRefused>;

    fn lookups(&self) -> usize {
        match &self.0 {
            HistogramEdges::Given(edges) => edges.len(),
            HistogramEdges::Over(buckets) => usize::try_from(*buckets).unwrap_or(usize::MAX),
        }
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        let edges = match &self.0 {
            HistogramEdges::Given(edges) => {
                let edges = edges.iter().map(|edge| ordered(&board.definition, *edge));
                match edges.collect::<Result<Vec<_>, _>>() {
                    Ok(edges) if edges.len() > 1 && edges.is_sorted_by(|a, b| a < b) => edges,
                    Ok(_) => return Ok(Err(EdgesRefused::NotAscending)),
                    Err(why) => return Ok(Err(EdgesRefused::NoInteger(why))),
                }
            }
            HistogramEdges::Over(buckets) => edges_over(board, *buckets).await?,
        };
        histogram(board, &edges).await.map(Ok)
    }
}

/// The totals of boards, each of one instance and of the entries that are shown, in the boards' order, and
/// the sequences that they are exact at. `None` where a board has no such instance.
pub struct TotalsOf<'a> {
    pub boards: &'a [(BoardName, RegisteredBoard)],
    pub instance: InstanceAsked,
}

impl ShardsRead for TotalsOf<'_> {
    type Answer = (Vec<Option<(Instance, u64)>>, AsOf);

    /// Of the boards as they were when they were listed: one that is dropped since counts as empty.
    const IS_OF_THE_PAST: bool = true;

    fn is_about(&self, board: &BoardName) -> bool {
        self.boards.iter().any(|(name, _)| name == board)
    }

    fn lookups(&self) -> usize {
        self.boards.len()
    }

    async fn read<'r>(&'r self, shards: ReadShards<'r>, _: &'r Registry) -> Result<Self::Answer, ReadError> {
        let asked = self.instance.not_before(shards.time());
        let instance = |(_, known): &(BoardName, RegisteredBoard)| asked.of(&known.definition).ok();
        let mut totals: Vec<Option<(Instance, u64)>> =
            self.boards.iter().map(|board| Some((instance(board)?, 0))).collect();
        let found = self.boards.iter().zip(&totals).filter_map(|((board, known), total)| {
            let (instance, _) = (*total)?;
            Some((board, instance, known))
        });
        let boards = found.map(|(board, instance, known)| {
            let board = instance.name_on_shards(board);
            (BoardLife { board, incarnation: known.incarnation }, Vec::new())
        });
        for (_, counts) in shards.counts(boards.collect(), None).await? {
            for ((_, total), counts) in totals.iter_mut().flatten().zip(&counts) {
                *total += counts.total;
            }
        }
        for ((_, known), total) in self.boards.iter().zip(&mut totals) {
            if let Some((_, total)) = total {
                *total = known.definition.within_capacity(*total);
            }
        }
        Ok((totals, shards.as_of()))
    }
}
