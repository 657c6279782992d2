//! A summary from a shard in memory, under one hold of its lock, so that all of it is of one sequence.
//!
//! Knows: that the counts in the tree's inner nodes give entries at nearly equal distances without a search
//! for each. So the work follows the number of marks and not that of entries.

use crate::query::question::BoardLife;
use crate::query::shard_board::ShardBoard;
use crate::query::summary::tree_summary::{SharedScore, Summary};
use crate::state::Shard;
use crate::tree::{Handle, Words};

/// How many ids ahead memory is prefetched.
const LOOK_AHEAD: usize = 16;

/// How large summaries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummarySizes {
    /// A tree of at most so many entries is told whole.
    pub whole: u64,
    /// So many of the best entries are told of every tree. An answer about the first so many of all shards is
    /// exact.
    pub best: u64,
    /// All entries divided by this are the most between two marks.
    pub parts: u64,
    /// So many scores that more entries share than there are between two marks.
    pub shared: usize,
}

impl SummarySizes {
    /// Of the service. The API promises that the first 1,000 are exact.
    pub const SERVICE: Self = Self { whole: 2_048, best: 1_000, parts: 1_000, shared: 128 };
}

/// Summarises a board, or one of its instances; an empty summary if it is not on the shard.
pub fn summarize(shard: &Shard, life: &BoardLife, sizes: &SummarySizes) -> Summary {
    let shard_board = ShardBoard::of_life(shard, life);
    let Some((_, window)) = shard_board.window else { return Summary::default() };
    let tree = &window.tree;
    let total = window.total();
    let (score_words, columns) = (window.definition.keys.len(), window.definition.columns());
    let mut marks: Vec<(u64, Handle, Words)> = Vec::new();
    let best = if total <= sizes.whole { total } else { sizes.best.max(1) };
    let best_entries = tree.cursor_at(0).take(usize::try_from(best).unwrap_or(usize::MAX));
    marks.extend((0..).zip(best_entries).map(|(index, (handle, words))| (index, handle, words)));
    if total > best {
        let depth = total.div_ceil(sizes.parts.max(1));
        tree.outline(depth, &mut |index, handle, words| {
            if index >= best && index + 1 < total {
                marks.push((index, handle, words));
            }
        });
        let last = total - 1;
        marks.extend(tree.select(last).map(|(handle, words)| (last, handle, words)));
    }
    let mut summary = Summary { total, score_words, columns, ..Summary::default() };
    summary.before.reserve_exact(marks.len());
    summary.words.reserve_exact(marks.len() * columns);
    summary.id_ends.reserve_exact(marks.len());
    for (at, (index, handle, words)) in marks.iter().enumerate() {
        if let Some((_, ahead, _)) = marks.get(at + LOOK_AHEAD) {
            shard.members.prefetch_id_of(*ahead);
        }
        summary.before.push(*index);
        summary.words.extend_from_slice(words.as_slice());
        summary.ids.extend_from_slice(shard.members.id(*handle));
        summary.id_ends.push(u32::try_from(summary.ids.len()).unwrap_or(u32::MAX));
    }
    summary.shared = shared_scores(&shard_board, &summary, sizes);
    summary
}

/// The counts of scores that reach over a gap between marks: those of most entries, if there are many such
/// scores. Each takes a search.
fn shared_scores(shard_board: &ShardBoard<'_>, summary: &Summary, sizes: &SummarySizes) -> Vec<SharedScore> {
    let mut reaching: Vec<(u64, Words)> = Vec::new();
    let mut previous: Option<(u64, &[u64])> = None;
    for (index, words, _) in summary.marks() {
        let score = summary.score_of(words);
        if let Some((before, _)) = previous.filter(|(_, other)| *other == score) {
            let gap = index - before - 1;
            match reaching.last_mut() {
                Some((reach, known)) if known.as_slice() == score => *reach += gap,
                _ => reaching.push((gap, Words::from_slice(score))),
            }
        }
        previous = Some((index, score));
    }
    reaching.retain(|(gap, _)| *gap > 0);
    if reaching.len() > sizes.shared {
        reaching.sort_unstable_by_key(|(gap, _)| std::cmp::Reverse(*gap));
        reaching.truncate(sizes.shared);
    }
    reaching.sort_unstable_by_key(|(_, score)| *score);
    let counted = |(_, score): (u64, Words)| {
        let at = shard_board.at_score(score.as_slice());
        SharedScore { score, better: at.before, through: at.through }
    };
    reaching.into_iter().map(counted).collect()
}
