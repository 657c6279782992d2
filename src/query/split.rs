//! Where the first `n` entries of a board end on each shard: what a deep page begins with.
//!
//! Multi-way selection in sorted sequences, by splitters. Each round takes a few entries of every shard's
//! undecided range, bounds how many entries of all shards are before each of them by what is known of the
//! other shards' splitters, and counts exactly for the nearest two; what is before the one and behind the
//! other is decided. Two exchanges with each shard per round, whatever the number of entries; nothing before
//! the position is read.

use crate::query::board_view::{BoardView, SortKey};
use crate::query::merge::forward;

/// Evenly spaced splitters per shard and round: whatever the data, a round divides the undecided by half of
/// it.
const EVEN: u64 = 8;
/// Undecided entries per shard below which merging them is cheaper than another round.
const FEW: u64 = 16;

/// The undecided part of a shard: the split is at `low` at least and `high` at most.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: u64,
    high: u64,
}

impl Range {
    fn open(self) -> u64 {
        self.high - self.low
    }
}

struct Splitter<'v> {
    key: SortKey<'v>,
    part: usize,
    /// Entries of its own shard before it.
    index: u64,
}

/// Per shard, how many of its entries are among the first `n` of the board, which has at least `n`.
pub fn split(board: &BoardView<'_>, n: u64) -> Vec<u64> {
    split_counting_rounds(board, n).0
}

pub(super) fn split_counting_rounds(board: &BoardView<'_>, n: u64) -> (Vec<u64>, u32) {
    let mut ranges: Vec<Range> =
        board.parts().iter().map(|part| Range { low: 0, high: part.total() }).collect();
    let shards = u64::try_from(ranges.len()).unwrap_or(1);
    let mut rounds = 0;
    loop {
        let decided: u64 = ranges.iter().map(|range| range.low).sum();
        let open: u64 = ranges.iter().map(|range| range.open()).sum();
        // With one shard undecided, what is missing is all on it.
        if let [one] = ranges.iter_mut().filter(|range| range.open() > 0).collect::<Vec<_>>().as_mut_slice() {
            one.low += n - decided;
            break;
        }
        if open <= FEW * shards {
            return (finish(board, &ranges, n - decided), rounds);
        }
        narrow(board, &mut ranges, n);
        rounds += 1;
    }
    (ranges.iter().map(|range| range.low).collect(), rounds)
}

/// Walks the `missing` entries behind the ranges' lower ends.
fn finish(board: &BoardView<'_>, ranges: &[Range], missing: u64) -> Vec<u64> {
    let mut starts: Vec<u64> = ranges.iter().map(|range| range.low).collect();
    let missing = usize::try_from(missing).unwrap_or(usize::MAX);
    let walked: Vec<usize> = forward(board, &starts).take(missing).map(|found| found.part).collect();
    for part in walked {
        if let Some(start) = starts.get_mut(part) {
            *start += 1;
        }
    }
    starts
}

/// One round. Every range contains its split before and after, and at least one of them gets smaller.
fn narrow(board: &BoardView<'_>, ranges: &mut [Range], n: u64) {
    let splitters = splitters(board, ranges, n);
    let bounds = bounds(&splitters, ranges);
    // The last splitter that is surely among the first n, and the first that surely is not.
    let inside = bounds.iter().rposition(|(_, most)| *most < n).and_then(|at| splitters.get(at));
    let outside = bounds.iter().position(|(least, _)| *least >= n).and_then(|at| splitters.get(at));
    if let Some(splitter) = inside {
        raise(board, ranges, &splitter.key);
    }
    if let Some(splitter) = outside {
        lower(board, ranges, &splitter.key);
    }
    if inside.is_none() && outside.is_none() {
        // Nothing is sure yet: count exactly for the one in the middle, which decides on one side or the
        // other.
        let Some(splitter) = splitters.get(splitters.len() / 2) else { return };
        let before: u64 = board.parts().iter().map(|part| part.before(&splitter.key)).sum();
        if before < n {
            raise(board, ranges, &splitter.key);
        } else {
            lower(board, ranges, &splitter.key);
        }
    }
}

/// Everything up to the key is among the first n.
fn raise(board: &BoardView<'_>, ranges: &mut [Range], key: &SortKey<'_>) {
    for (range, part) in ranges.iter_mut().zip(board.parts()) {
        range.low = part.through(key).clamp(range.low, range.high);
    }
}

/// Nothing from the key on is among the first n.
fn lower(board: &BoardView<'_>, ranges: &mut [Range], key: &SortKey<'_>) {
    for (range, part) in ranges.iter_mut().zip(board.parts()) {
        range.high = part.before(key).clamp(range.low, range.high);
    }
}

/// Splitters of all undecided ranges, in order: evenly spaced ones, which serve any data, and some about
/// where the split is if members are spread by their hash, within a deviation and four of them.
fn splitters<'v>(board: &BoardView<'v>, ranges: &[Range], n: u64) -> Vec<Splitter<'v>> {
    let decided: u64 = ranges.iter().map(|range| range.low).sum();
    let open: u64 = ranges.iter().map(|range| range.open()).sum();
    let mut splitters = Vec::new();
    for (index, (range, part)) in ranges.iter().zip(board.parts()).enumerate() {
        let Some((_, window)) = part.window else { continue };
        let span = range.open();
        if span == 0 {
            continue;
        }
        let expected = scale(span, n - decided, open);
        let deviation = span.isqrt() / 2 + 1;
        let mut offsets: Vec<u64> = (1..=EVEN).map(|step| scale(span, step, EVEN + 1)).collect();
        offsets.extend([4 * deviation, deviation, 0].map(|below| expected.saturating_sub(below)));
        offsets.extend([deviation, 4 * deviation].map(|above| expected + above));
        offsets.sort_unstable();
        offsets.dedup();
        for offset in offsets.into_iter().filter(|offset| *offset < span) {
            let at = range.low + offset;
            if let Some((handle, words)) = window.tree.select(at) {
                let key = SortKey { words, member: part.shard.members.id(handle) };
                splitters.push(Splitter { key, part: index, index: at });
            }
        }
    }
    splitters.sort_unstable_by_key(|splitter| splitter.key);
    splitters
}

/// `value * numerator / denominator`, in 128 bits.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// For each splitter, the least and the most entries of all shards that can be before it.
fn bounds(splitters: &[Splitter<'_>], ranges: &[Range]) -> Vec<(u64, u64)> {
    // A shard's entries up to its last splitter before this one are before it for sure, ...
    let mut known: Vec<u64> = ranges.iter().map(|range| range.low).collect();
    let mut sum: u64 = known.iter().sum();
    let mut bounds = Vec::with_capacity(splitters.len());
    for splitter in splitters {
        let Some(own) = known.get_mut(splitter.part) else { continue };
        bounds.push((sum - *own + splitter.index, 0));
        sum += splitter.index + 1 - *own;
        *own = splitter.index + 1;
    }
    // ... and those from its next splitter on are behind it for sure.
    let mut known: Vec<u64> = ranges.iter().map(|range| range.high).collect();
    let mut sum: u64 = known.iter().sum();
    for (splitter, bound) in splitters.iter().zip(&mut bounds).rev() {
        let Some(own) = known.get_mut(splitter.part) else { continue };
        sum = sum - *own + splitter.index;
        *own = splitter.index;
        bound.1 = sum;
    }
    bounds
}
