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
use crate::query::page::{before, is_short_above, is_short_below, share};
use crate::query::question::{
    ENTRIES_MAX, Mark, RunQuestion, RunStart, Splitter, SplittersQuestion, SplittersReply,
};
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;

/// Evenly spaced splitters per shard and round. For any data, a round divides the number of undecided entries
/// by at least half of this number.
const SPLITTERS_PER_SHARD: u16 = 8;
/// Undecided entries per shard below which reading them is cheaper than another round, and of many searches
/// at once.
const READ_WHEN_UNDECIDED_BELOW: u64 = 16;
const READ_WHEN_UNDECIDED_BELOW_OF_MANY: u64 = 1;
/// More searches at once are many.
const FEW_SEARCHES: usize = 32;
/// Entries that are returned on both sides beyond those that a place needs, because shards may have applied
/// messages since the round before. Fewer if many places are asked for at once.
const MARGIN_ENTRIES: u64 = 64;
/// Rounds of a search. Each divides what is undecided by four at least, unless shards move.
const ROUNDS_MAX: u32 = 64;
/// Searches that are begun for one place. Another one is needed only if shards moved by more than
/// [`MARGIN_ENTRIES`] entries within a round trip.
const ATTEMPTS: u32 = 16;

/// How many entries are before a place, by the total of the board; `None` if there is no such place.
pub type IndexOf<'w> = &'w (dyn Fn(u64) -> Option<u64> + Sync);

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
    pub fn entries(&self, limit: usize) -> Vec<MergedEntry<'_>> {
        shown(&self.runs, self.index, limit).unwrap_or_default()
    }
}

/// Up to `limit` entries from the one on that `index` others are before; `None` if the runs do not show all
/// of them.
pub(super) fn shown<'r>(runs: &'r [ShardRun<'_>], index: u64, limit: usize) -> Option<Vec<MergedEntry<'r>>> {
    let start = before(runs);
    let behind = usize::try_from(start.saturating_sub(index)).unwrap_or(usize::MAX);
    let skipped = usize::try_from(index.saturating_sub(start)).unwrap_or(usize::MAX);
    let mut entries: Vec<MergedEntry<'r>> = backward(runs).take(behind).collect();
    if is_short_above(runs, &entries, behind) {
        return None;
    }
    entries.reverse();
    entries.truncate(limit);
    let missing = limit - entries.len();
    if missing > 0 {
        let reach = skipped.saturating_add(missing);
        let further: Vec<MergedEntry<'r>> = forward(runs).take(reach).collect();
        if is_short_below(runs, &further, reach) {
            return None;
        }
        entries.extend(further.into_iter().skip(skipped));
    }
    Some(entries)
}

/// Finds the place that a board of a given size is asked for, with `limit` entries from it on. `None` if
/// `index_of` says that there is none.
///
/// # Arguments
/// `metadata`: whether the entries' metadata is wanted.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn find_place<'v>(
    board: &BoardView<'v>,
    index_of: impl Fn(u64) -> Option<u64> + Sync,
    limit: usize,
    metadata: bool,
) -> Result<Option<Place<'v>>, ReadError> {
    find_counting_rounds(board, index_of, limit, metadata).await.map(|(place, _)| place)
}

/// Also returns how many round trips it took.
pub(super) async fn find_counting_rounds<'v>(
    board: &BoardView<'v>,
    index_of: impl Fn(u64) -> Option<u64> + Sync,
    limit: usize,
    metadata: bool,
) -> Result<(Option<Place<'v>>, u32), ReadError> {
    let mut rounds = 0;
    for _ in 0..ATTEMPTS {
        let found = search(board, &[&index_of], &mut rounds).await?.pop();
        let Some(Some(found)) = found else { return Ok((None, rounds)) };
        // Mostly a share of the page is enough of each shard.
        for part in [Part::Share, Part::All] {
            let run = RunQuestion { metadata, ..found.run(board, limit, margin(board, &[&found]), part) };
            let runs = board.runs(&run, None).await?;
            rounds += 1;
            let total = runs.iter().map(ShardRun::total).sum();
            let Some(index) = index_of(total).filter(|index| *index < total) else {
                return Ok((None, rounds));
            };
            if shown(&runs, index, limit).is_some() {
                return Ok((Some(Place { runs, index, total }), rounds));
            }
        }
    }
    Err(ReadError::KeptChanging(ATTEMPTS))
}

/// How much of what a place needs each shard is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Share,
    All,
}

/// Where the last round trip begins.
pub(super) struct SearchResult {
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

impl SearchResult {
    /// The run from the start to `limit` entries from the place on, and `margin` more on both sides.
    pub(super) fn run(
        &self,
        board: &BoardView<'_>,
        limit: usize,
        margin: u32,
        part: Part,
    ) -> RunQuestion<'_> {
        let start = match &self.start {
            FoundStart::Top => RunStart::Top,
            FoundStart::After(low) => RunStart::Through(Mark::Entry(low.key())),
            FoundStart::Index(index) => RunStart::Index(*index),
        };
        let reach = self.offset + crate::types::count(limit) + 1;
        let reach = u32::try_from(reach).unwrap_or(u32::MAX);
        let below = match part {
            Part::Share => share(reach, board.shard_count()),
            Part::All => reach,
        };
        let below = below.saturating_add(margin);
        RunQuestion { start, worst: None, above: margin, below, metadata: false }
    }
}

/// Entries that are asked for on both sides beyond those that places need.
pub(super) fn margin(board: &BoardView<'_>, places: &[&SearchResult]) -> u32 {
    // Over shards that stay as they are, a place is where the last round found it.
    if board.is_snapshot() {
        return 0;
    }
    let needed = places.iter().map(|place| {
        let reach = u32::try_from(place.offset.saturating_add(2)).unwrap_or(u32::MAX);
        u64::from(share(reach, board.shard_count()))
    });
    let left = ENTRIES_MAX.saturating_sub(needed.sum());
    // Each place may also be asked for around two scores, from both their ends.
    let each = left / (10 * crate::types::count(places.len()).max(1));
    u32::try_from(each.clamp(1, MARGIN_ENTRIES)).unwrap_or(1)
}

/// The entries between two keys, as the rounds know them.
#[derive(Default)]
struct Search {
    low: Option<Splitter>,
    high: Option<Splitter>,
    /// Where the place is expected between them, in millionths.
    near: Option<u32>,
    /// What is before it is counted in the next round.
    counted: Option<Splitter>,
    found: Found,
}

#[derive(Default)]
enum Found {
    #[default]
    NotYet,
    Start(SearchResult),
    /// There is no such place.
    Nothing,
}

/// Searches for places together: each round of all of them is one round trip. For each, `None`: there is no
/// such place.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub(super) async fn search(
    board: &BoardView<'_>,
    targets: &[IndexOf<'_>],
    rounds: &mut u32,
) -> Result<Vec<Option<SearchResult>>, ReadError> {
    let is_many = targets.len() > FEW_SEARCHES;
    let read_below = if is_many { READ_WHEN_UNDECIDED_BELOW_OF_MANY } else { READ_WHEN_UNDECIDED_BELOW };
    let read_below = read_below * u64::from(board.shard_count());
    // A single shard tells its total; what is before the place on it is no question.
    let even = if board.shard_count() == 1 { 0 } else { SPLITTERS_PER_SHARD };
    let mut searches: Vec<Search> = targets.iter().map(|_| Search::default()).collect();
    for _ in 0..ROUNDS_MAX {
        let questions: Vec<SplittersQuestion<'_>> =
            searches.iter().filter(|search| search.is_open()).map(|search| search.question(even)).collect();
        if questions.is_empty() {
            let found = searches.into_iter().map(|search| match search.found {
                Found::Start(start) => Some(start),
                Found::Nothing | Found::NotYet => None,
            });
            return Ok(found.collect());
        }
        let replies = board.splitters(&questions).await?;
        *rounds += 1;
        let open = searches.iter_mut().zip(targets).filter(|(search, _)| search.is_open());
        for ((search, index_of), replies) in open.zip(&replies) {
            search.take(replies, index_of, read_below);
        }
    }
    Err(ReadError::KeptChanging(ROUNDS_MAX))
}

impl Search {
    fn is_open(&self) -> bool {
        matches!(self.found, Found::NotYet)
    }

    fn question(&self, even: u16) -> SplittersQuestion<'_> {
        if let Some(counted) = &self.counted {
            // Each shard tells how many entries it has through the lower key.
            return SplittersQuestion { low: Some(counted.key()), ..SplittersQuestion::default() };
        }
        SplittersQuestion {
            low: self.low.as_ref().map(Splitter::key),
            high: self.high.as_ref().map(Splitter::key),
            even,
            near: self.near,
            ends: false,
        }
    }

    /// Takes the shards' replies to the question.
    ///
    /// # Arguments
    /// `read_below`: the number of undecided entries that are read instead of being divided further.
    fn take(&mut self, replies: &[SplittersReply], index_of: &IndexOf<'_>, read_below: u64) {
        let total = replies.iter().map(|reply| reply.total).sum();
        let Some(n) = index_of(total).filter(|index| *index < total) else {
            self.found = Found::Nothing;
            return;
        };
        let decided: u64 = replies.iter().map(|reply| reply.low).sum();
        if let Some(counted) = self.counted.take() {
            if decided <= n {
                self.low = Some(counted);
            } else {
                self.high = Some(counted);
            }
            return;
        }
        if let [_] = replies {
            self.found = Found::Start(SearchResult { start: FoundStart::Index(n), offset: 0 });
            return;
        }
        let open: u64 = replies.iter().map(|reply| reply.high - reply.low).sum();
        if n < decided || n > decided + open {
            if self.low.is_none() && self.high.is_none() {
                self.found = Found::Start(SearchResult { start: FoundStart::Top, offset: n });
            }
            // Entries came or went: what was decided is not so any more.
            if n < decided {
                self.low = None;
            } else {
                self.high = None;
            }
            self.near = None;
        } else if open <= read_below {
            let start = self.low.take().map_or(FoundStart::Top, FoundStart::After);
            self.found = Found::Start(SearchResult { start, offset: n - decided });
        } else if !self.narrow(replies, n) {
            // Nothing is sure yet: count exactly for the splitter in the middle, which decides on one side or
            // the other.
            let splitters = in_order(replies);
            self.counted = splitters.get(splitters.len() / 2).map(|(_, middle)| (*middle).clone());
            self.near = None;
        }
    }

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
