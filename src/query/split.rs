//! Finds where the first `n` entries of a board end on each shard. A page at a deep position begins there.
//!
//! The method is multi-way selection in sorted sequences, by splitters. Each round takes a few entries, the
//! splitters, from every shard's undecided range. The splitters of all shards bound how many entries of the
//! board come before each one. For the two splitters nearest to the split, one on each side, the entries
//! before them are counted exactly on every shard. Entries before the first and after the second are decided
//! then. A round takes two exchanges with each shard, whatever the number of entries. Entries before the
//! position are not read.

use crate::query::board_view::{BoardView, SortKey};
use crate::query::merge::forward;

/// Evenly spaced splitters per shard and round. For any data, a round divides the number of undecided entries
/// at least by half of this.
const EVEN: u64 = 8;
/// Undecided entries per shard below which merging them is cheaper than another round.
const FEW: u64 = 16;

/// The undecided part of a shard: its split is at or between `low` and `high`.
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
    /// How many entries of its own shard come before it.
    index: u64,
}

/// For each shard, how many of its entries are among the first `n` of the board. The board must have at least
/// `n`.
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
        // If only one shard is undecided, all entries that are still missing are on it.
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

/// Merges the `missing` entries that follow the ranges' lower ends.
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

/// One round. Every range contains its split before and after the round, and at least one range becomes
/// smaller.
fn narrow(board: &BoardView<'_>, ranges: &mut [Range], n: u64) {
    let splitters = splitters(board, ranges, n);
    let bounds = bounds(&splitters, ranges);
    // The last splitter that is certainly among the first n entries, and the first that certainly is not.
    let inside = bounds.iter().rposition(|(_, most)| *most < n).and_then(|at| splitters.get(at));
    let outside = bounds.iter().position(|(least, _)| *least >= n).and_then(|at| splitters.get(at));
    if let Some(splitter) = inside {
        raise(board, ranges, &splitter.key);
    }
    if let Some(splitter) = outside {
        lower(board, ranges, &splitter.key);
    }
    if inside.is_none() && outside.is_none() {
        // The bounds decide no splitter. Count exactly for the one in the middle: that decides the entries on
        // one side of it.
        let Some(splitter) = splitters.get(splitters.len() / 2) else { return };
        let before: u64 = board.parts().iter().map(|part| part.before(&splitter.key)).sum();
        if before < n {
            raise(board, ranges, &splitter.key);
        } else {
            lower(board, ranges, &splitter.key);
        }
    }
}

/// Notes that all entries up to the key are among the first n.
fn raise(board: &BoardView<'_>, ranges: &mut [Range], key: &SortKey<'_>) {
    for (range, part) in ranges.iter_mut().zip(board.parts()) {
        range.low = part.through(key).clamp(range.low, range.high);
    }
}

/// Notes that no entry from the key on is among the first n.
fn lower(board: &BoardView<'_>, ranges: &mut [Range], key: &SortKey<'_>) {
    for (range, part) in ranges.iter_mut().zip(board.parts()) {
        range.high = part.before(key).clamp(range.low, range.high);
    }
}

/// Splitters of all undecided ranges, in order. Some are evenly spaced, which works for any data. Others are
/// near the place where the split is expected if members are spread by their hash: there, and one and four
/// standard deviations from it.
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

/// `value * numerator / denominator`, computed in 128 bits.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// For each splitter, the least and the greatest number of entries of all shards that can come before it.
fn bounds(splitters: &[Splitter<'_>], ranges: &[Range]) -> Vec<(u64, u64)> {
    // The least number: entries of a shard up to its last splitter before this one certainly come before it.
    let mut known: Vec<u64> = ranges.iter().map(|range| range.low).collect();
    let mut sum: u64 = known.iter().sum();
    let mut bounds = Vec::with_capacity(splitters.len());
    for splitter in splitters {
        let Some(own) = known.get_mut(splitter.part) else { continue };
        bounds.push((sum - *own + splitter.index, 0));
        sum += splitter.index + 1 - *own;
        *own = splitter.index + 1;
    }
    // The greatest number: entries of a shard from its next splitter on certainly come after this one.
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
