//! Finds the entry at position `n` over all shards, local or remote. A deep page begins there.
//!
//! Multi-way selection in sorted sequences, by splitters. Each round takes a few entries of every shard
//! between two keys, and bounds how many entries of all shards are before each of them by what is known of
//! the other shards' splitters. The last splitter that is surely before the position and the first that is
//! surely not before it become the keys of the next round. Nothing before the position is read.
//!
//! Remote shards may move between two rounds, so that a round's counts are hints for the next one. Only the
//! last round trip counts: each shard returns its entries on both sides of one key and how many are before
//! it, from one applied sequence. If entries came or went meanwhile, the place is some entries further up or
//! down among those returned.

use crate::query::board_view::BoardView;
use crate::query::merge::{MergedEntry, backward, forward};
use crate::query::question::{Mark, RunQuestion, RunStart, Splitter, SplittersQuestion, SplittersReply};
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;
use crate::query::top::before;

/// Evenly spaced splitters per shard and round. For any data, a round divides the number of undecided entries
/// by at least half of this number.
const SPLITTERS_PER_SHARD: u16 = 8;
/// Undecided entries per shard below which reading them is cheaper than another round.
const READ_WHEN_UNDECIDED_BELOW: u64 = 16;
/// Entries that are returned on both sides beyond those that a place needs, because shards may have applied
/// messages since the round before.
const MARGIN_ENTRIES: u32 = 64;
/// Rounds of a search. Each divides what is undecided by four at least, unless shards move.
const ROUNDS_MAX: u32 = 64;
/// Searches that are begun for one place. Another one is needed only if shards moved by more than
/// [`MARGIN_ENTRIES`] entries within a round trip.
const ATTEMPTS: u32 = 16;

/// Runs of all shards, and the place that was looked for among their entries.
pub struct Place<'v> {
    pub runs: Vec<ShardRun<'v>>,
    /// Entries before the place.
    pub index: u64,
    /// All entries.
    pub total: u64,
}

impl Place<'_> {
    /// Up to `limit` entries from the place on.
    ///
    /// # Arguments
    /// `limit`: at most what was asked for.
    #[must_use]
    pub fn entries(&self, limit: usize) -> Vec<MergedEntry<'_>> {
        let start = before(&self.runs);
        let behind = usize::try_from(start.saturating_sub(self.index)).unwrap_or(usize::MAX);
        let skipped = usize::try_from(self.index.saturating_sub(start)).unwrap_or(usize::MAX);
        let mut entries: Vec<MergedEntry<'_>> = backward(&self.runs).take(behind).collect();
        entries.reverse();
        entries.extend(forward(&self.runs).skip(skipped).take(limit.saturating_sub(behind)));
        entries.truncate(limit);
        entries
    }

    /// The entry that `index` others are before, at most [`MARGIN_ENTRIES`] entries above the place and shown
    /// by the runs.
    #[must_use]
    pub fn shown_above(&self, index: u64) -> Option<MergedEntry<'_>> {
        let start = before(&self.runs);
        if index < start {
            let above = start - index;
            let nth = usize::try_from(above - 1).ok()?;
            if above > u64::from(MARGIN_ENTRIES) { None } else { backward(&self.runs).nth(nth) }
        } else {
            // Between the start and the place.
            forward(&self.runs).nth(usize::try_from(index - start).ok()?)
        }
    }

    /// Whether the runs reach from the place to `limit` entries after it.
    fn is_within(&self, above: u32, below: u32, limit: u64) -> bool {
        let start = before(&self.runs);
        if self.index < start {
            start - self.index <= u64::from(above) && limit <= u64::from(below)
        } else {
            self.index - start + limit <= u64::from(below)
        }
    }
}

/// Finds the place that a board of a given size is asked for, with `limit` entries from it on. `None` if
/// `index_of` says that there is none.
///
/// # Arguments
/// `index_of`: how many entries are before the place, by the total.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn find_place<'v>(
    board: &BoardView<'v>,
    index_of: impl Fn(u64) -> Option<u64>,
    limit: usize,
) -> Result<Option<Place<'v>>, ReadError> {
    find_counting_rounds(board, index_of, limit).await.map(|(place, _)| place)
}

/// Also returns how many round trips it took.
pub(super) async fn find_counting_rounds<'v>(
    board: &BoardView<'v>,
    index_of: impl Fn(u64) -> Option<u64>,
    limit: usize,
) -> Result<(Option<Place<'v>>, u32), ReadError> {
    let limit = crate::types::count(limit);
    // Over shards that stay as they are the place is where the last round found it.
    let margin = if board.is_snapshot() { 0 } else { MARGIN_ENTRIES };
    let mut rounds = 0;
    for _ in 0..ATTEMPTS {
        let Some(found) = search(board, &index_of, &mut rounds).await? else { return Ok((None, rounds)) };
        let below = u64::from(margin) + found.offset + limit + 1;
        let below = u32::try_from(below).unwrap_or(u32::MAX);
        let start = match &found.start {
            FoundStart::Top => RunStart::Top,
            FoundStart::After(low) => RunStart::Through(Mark::Entry(low.key())),
            FoundStart::Index(index) => RunStart::Index(*index),
        };
        let runs = board.runs(&RunQuestion { start, worst: None, above: margin, below }, None).await?;
        rounds += 1;
        let total = runs.iter().map(ShardRun::total).sum();
        let Some(index) = index_of(total).filter(|index| *index < total) else { return Ok((None, rounds)) };
        let place = Place { runs, index, total };
        if board.is_snapshot() || place.is_within(margin, below, limit) {
            return Ok((Some(place), rounds));
        }
    }
    Err(ReadError::KeptChanging(ATTEMPTS))
}

/// Where the last round trip begins.
struct SearchResult {
    start: FoundStart,
    /// Entries between the start and the place.
    offset: u64,
}

enum FoundStart {
    Top,
    /// After an entry shortly before the place.
    After(Splitter),
    /// So many entries are before the place on the only shard.
    Index(u64),
}

/// The entries between two keys, as the rounds know them.
struct Search {
    low: Option<Splitter>,
    high: Option<Splitter>,
    /// Where the place is expected between them, in millionths.
    near: Option<u32>,
}

async fn search(
    board: &BoardView<'_>,
    index_of: &impl Fn(u64) -> Option<u64>,
    rounds: &mut u32,
) -> Result<Option<SearchResult>, ReadError> {
    let mut search = Search { low: None, high: None, near: None };
    for _ in 0..ROUNDS_MAX {
        // A single shard tells its total; what is before the place on it is no question.
        let even = if board.shard_count() == 1 { 0 } else { SPLITTERS_PER_SHARD };
        let splitters = SplittersQuestion {
            low: search.low.as_ref().map(Splitter::key),
            high: search.high.as_ref().map(Splitter::key),
            even,
            near: search.near,
            ends: false,
        };
        let replies = board.splitters(&splitters).await?;
        *rounds += 1;
        let total = replies.iter().map(|reply| reply.total).sum();
        let Some(n) = index_of(total).filter(|index| *index < total) else { return Ok(None) };
        if let [_] = replies.as_slice() {
            return Ok(Some(SearchResult { start: FoundStart::Index(n), offset: 0 }));
        }
        let decided: u64 = replies.iter().map(|reply| reply.low).sum();
        let open: u64 = replies.iter().map(|reply| reply.high - reply.low).sum();
        if n < decided || n > decided + open {
            if search.low.is_none() && search.high.is_none() {
                return Ok(Some(SearchResult { start: FoundStart::Top, offset: n }));
            }
            // Entries came or went: what was decided is not so any more.
            if n < decided {
                search.low = None;
            } else {
                search.high = None;
            }
            search.near = None;
            continue;
        }
        if open <= READ_WHEN_UNDECIDED_BELOW * u64::from(board.shard_count()) {
            let start = search.low.map_or(FoundStart::Top, FoundStart::After);
            return Ok(Some(SearchResult { start, offset: n - decided }));
        }
        if search.narrow(&replies, n) {
            continue;
        }
        // Nothing is sure yet: count exactly for the splitter in the middle, which decides on one side or the
        // other.
        let splitters = in_order(&replies);
        let Some((_, middle)) = splitters.get(splitters.len() / 2) else { break };
        let counts = board.counts(&[Mark::Entry(middle.key())]).await?;
        *rounds += 1;
        let before: u64 = counts.iter().flat_map(|(_, counts)| &counts.marks).map(|at| at.before).sum();
        search.near = None;
        if before < n {
            search.low = Some((*middle).clone());
        } else {
            search.high = Some((*middle).clone());
        }
    }
    Err(ReadError::KeptChanging(ROUNDS_MAX))
}

impl Search {
    /// One round. False: nothing could be decided.
    fn narrow(&mut self, replies: &[SplittersReply], n: u64) -> bool {
        let splitters = in_order(replies);
        let bounds = bounds(&splitters, replies);
        // The last splitter that is surely before the place, and the first that surely is not.
        let inside = bounds.iter().rposition(|(_, most)| *most < n);
        let outside = bounds.iter().position(|(least, _)| *least >= n);
        let mut has_narrowed = false;
        let splitter = |at: usize| splitters.get(at).map(|(_, splitter)| (*splitter).clone());
        let expected = |at: usize| bounds.get(at).map(|(least, most)| least.midpoint(*most));
        let total: u64 = replies.iter().map(|reply| reply.high).sum();
        let decided: u64 = replies.iter().map(|reply| reply.low).sum();
        let (mut from, mut to) = (decided, total);
        if let Some(at) = inside {
            (self.low, has_narrowed) = (splitter(at), true);
            from = expected(at).unwrap_or(from);
        }
        if let Some(at) = outside {
            (self.high, has_narrowed) = (splitter(at), true);
            to = expected(at).unwrap_or(to);
        }
        let span = to.saturating_sub(from);
        self.near = (span > 0).then(|| {
            let share = u128::from(n.saturating_sub(from)) * 1_000_000 / u128::from(span);
            u32::try_from(share.min(1_000_000)).unwrap_or(1_000_000)
        });
        has_narrowed
    }
}

/// All splitters in order, each with the number of its shard's reply.
fn in_order(replies: &[SplittersReply]) -> Vec<(usize, &Splitter)> {
    let numbered = replies.iter().enumerate();
    let mut splitters: Vec<(usize, &Splitter)> = numbered
        .flat_map(|(shard, reply)| reply.splitters.iter().map(move |splitter| (shard, splitter)))
        .collect();
    splitters.sort_unstable_by_key(|(_, splitter)| splitter.key());
    splitters
}

/// For each splitter, the least and the most entries of all shards that can be before it.
fn bounds(splitters: &[(usize, &Splitter)], replies: &[SplittersReply]) -> Vec<(u64, u64)> {
    // A shard's entries up to its last splitter before this one are before it for sure, ...
    let mut known: Vec<u64> = replies.iter().map(|reply| reply.low).collect();
    let mut sum: u64 = known.iter().sum();
    let mut bounds = Vec::with_capacity(splitters.len());
    for (shard, splitter) in splitters {
        let Some(own) = known.get_mut(*shard) else { continue };
        bounds.push((sum - *own + splitter.index, 0));
        sum += splitter.index + 1 - *own;
        *own = splitter.index + 1;
    }
    // ... and those from its next splitter on are after it for sure.
    let mut known: Vec<u64> = replies.iter().map(|reply| reply.high).collect();
    let mut sum: u64 = known.iter().sum();
    for ((shard, splitter), bound) in splitters.iter().zip(&mut bounds).rev() {
        let Some(own) = known.get_mut(*shard) else { continue };
        sum = sum - *own + splitter.index;
        *own = splitter.index;
        bound.1 = sum;
    }
    bounds
}
