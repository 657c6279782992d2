//! A run of neighbouring entries on one shard: either in memory, where it goes as far as the shard does, or
//! as a shard replied it, as far as it was asked for.
//!
//! Knows: what can be worked out from a run without asking again. Must not know: how runs are merged.

use crate::query::question::{Counted, Mark, RunQuestion, RunReply, RunStart, ShardEntry, SortKey};
use crate::query::shard_board::ShardBoard;
use crate::tree::{Handle, Standing, Words};
use crate::types::ShardId;

/// A run of one shard.
pub struct ShardRun<'v> {
    pub shard: ShardId,
    entries: RunEntries<'v>,
}

pub(super) enum RunEntries<'v> {
    InMemory {
        shard_board: ShardBoard<'v>,
        start: u64,
        /// Entries before the end of the run.
        end: u64,
        /// The score of the start.
        score: Option<Words>,
        /// The entry at the start, where that is a member's, and the counts at its score.
        first: Option<(Handle, Words)>,
        at_start: Option<Counted>,
    },
    Replied {
        reply: RunReply,
        /// The score of the start.
        score: Option<Words>,
    },
}

impl<'v> ShardRun<'v> {
    /// A run of a shard in memory; `None` if it should begin at a member that is not listed.
    pub fn in_memory(shard_board: ShardBoard<'v>, question: &RunQuestion<'_>) -> Option<Self> {
        let (mut score, mut first, mut at_start) = (None, None, None);
        let mut score_of = |words: &Words| {
            let keys = shard_board.window.map_or(usize::MAX, |(_, window)| window.definition.keys.len());
            score = Some(Words::from_slice(head(words.as_slice(), keys)));
        };
        let start = match question.start {
            RunStart::Top => 0,
            RunStart::Bottom => shard_board.total(),
            RunStart::Index(index) => index.min(shard_board.total()),
            RunStart::Before(Mark::Entry(key)) => {
                score_of(&key.words);
                shard_board.before(&key)
            }
            RunStart::Through(Mark::Entry(key)) => {
                score_of(&key.words);
                shard_board.through(&key)
            }
            RunStart::Before(Mark::Score(words)) => {
                score_of(&words);
                shard_board.better(words.as_slice())
            }
            RunStart::Through(Mark::Score(words)) => {
                score_of(&words);
                shard_board.at_score(words.as_slice()).through
            }
            RunStart::Member(member) => {
                let (_, window) = shard_board.window?;
                let handle = shard_board.shard.members.get(member.as_bytes())?;
                let Standing { words, index, better, through } =
                    window.tree.standing(handle, window.definition.keys.len())?;
                score_of(&words);
                first = Some((handle, words));
                at_start = Some(Counted { before: better, through });
                index
            }
        };
        let end = match (question.worst, shard_board.window) {
            (Some(worst), Some((_, window))) => window.tree.count_through(&[worst]).max(start),
            _ => shard_board.total(),
        };
        Some(Self {
            shard: shard_board.shard.id,
            entries: RunEntries::InMemory { shard_board, start, end, score, first, at_start },
        })
    }

    /// A run as a shard replied it to the question.
    ///
    /// # Arguments
    /// `keys`: how many words of an entry are its score.
    pub fn replied(shard: ShardId, question: &RunQuestion<'_>, reply: RunReply, keys: usize) -> Self {
        let start = match question.start {
            RunStart::Top | RunStart::Bottom | RunStart::Index(_) => None,
            RunStart::Before(Mark::Entry(key)) | RunStart::Through(Mark::Entry(key)) => Some(key.words),
            RunStart::Before(Mark::Score(words)) | RunStart::Through(Mark::Score(words)) => Some(words),
            RunStart::Member(_) => reply.below.first().map(|entry| entry.words),
        };
        let score = start.map(|words| Words::from_slice(head(words.as_slice(), keys)));
        Self { shard, entries: RunEntries::Replied { reply, score } }
    }

    pub(super) fn entries(&self) -> &RunEntries<'v> {
        &self.entries
    }

    /// All listed entries of the shard.
    pub fn total(&self) -> u64 {
        match &self.entries {
            RunEntries::InMemory { shard_board, .. } => shard_board.total(),
            RunEntries::Replied { reply, .. } => reply.total,
        }
    }

    /// Entries before the start.
    pub fn start(&self) -> u64 {
        match &self.entries {
            RunEntries::InMemory { start, .. } => *start,
            RunEntries::Replied { reply, .. } => reply.start,
        }
    }

    /// Entries from the start to the end of the run's bound.
    pub fn remaining(&self) -> u64 {
        match &self.entries {
            RunEntries::InMemory { start, end, .. } => end - start,
            RunEntries::Replied { reply, .. } => reply.remaining,
        }
    }

    /// If the shard has entries down the run that it did not return: the last one that it did, if any.
    #[expect(clippy::option_option, reason = "the inner one is an entry, which there need not be")]
    pub(super) fn unshown_below(&self) -> Option<Option<SortKey<'_>>> {
        match &self.entries {
            RunEntries::InMemory { .. } => None,
            RunEntries::Replied { reply, .. } => {
                let is_cut = crate::types::count(reply.below.len()) < reply.remaining;
                is_cut.then(|| reply.below.last().map(ShardEntry::key))
            }
        }
    }

    /// If the shard has entries up the run that it did not return: the last one that it did, if any.
    #[expect(clippy::option_option, reason = "the inner one is an entry, which there need not be")]
    pub(super) fn unshown_above(&self) -> Option<Option<SortKey<'_>>> {
        match &self.entries {
            RunEntries::InMemory { .. } => None,
            RunEntries::Replied { reply, .. } => {
                let is_cut = crate::types::count(reply.above.len()) < reply.start;
                is_cut.then(|| reply.above.last().map(ShardEntry::key))
            }
        }
    }

    /// The score of the start, if it has one.
    pub(super) fn score(&self) -> Option<Words> {
        match &self.entries {
            RunEntries::InMemory { score, .. } | RunEntries::Replied { score, .. } => *score,
        }
    }

    /// Counts at the score of the start; none if it has no score.
    pub fn at_start(&self) -> Counted {
        match &self.entries {
            RunEntries::InMemory { at_start: Some(at_start), .. } => *at_start,
            RunEntries::InMemory { shard_board, score: Some(score), .. } => {
                shard_board.at_score(score.as_slice())
            }
            RunEntries::InMemory { .. } => Counted::default(),
            RunEntries::Replied { reply, .. } => reply.at_start,
        }
    }

    /// Entries of the shard up to an entry that was merged from runs of this question, and that one if it is
    /// on this shard.
    pub fn through(&self, key: &SortKey<'_>) -> u64 {
        match &self.entries {
            RunEntries::InMemory { shard_board, .. } => shard_board.through(key),
            RunEntries::Replied { reply, .. } => {
                let behind = count_while(reply.above.iter(), |entry| entry.key() > *key);
                let further = count_while(reply.below.iter(), |entry| entry.key() <= *key);
                reply.start - behind.min(reply.start) + further
            }
        }
    }

    /// Entries of the shard that are better than the score of an entry of a page that was merged from runs of
    /// this question.
    ///
    /// A replied run knows it for such scores, because a page takes no more entries than were asked for:
    /// - If the run has a better entry, all before that one are better, too.
    /// - If the run's first entry has the score, the shard has counted.
    /// - Otherwise the score lies between what is before the run and its first entry. If it is the score of
    ///   the start, the shard has counted, too. If not, all that is before the run is better.
    pub fn better(&self, score: &[u64]) -> u64 {
        match &self.entries {
            RunEntries::InMemory { shard_board, .. } => shard_board.better(score),
            RunEntries::Replied { reply, score: start } => {
                let first = reply.first();
                let better = count_while(reply.in_order(), |entry| score_of(entry, score.len()) < score);
                let head = reply.in_order().next();
                if better > 0 {
                    first + better
                } else if head.is_some_and(|head| score_of(head, score.len()) == score) {
                    reply.better_than_first
                } else if start.is_some_and(|start| start.as_slice() == score) {
                    reply.at_start.before
                } else {
                    first
                }
            }
        }
    }

    /// Counts at a score, if the run is long enough to tell: it has to show where the score begins and where
    /// it ends, unless the shard begins or ends there.
    pub fn at_score(&self, score: &[u64]) -> Option<Counted> {
        match &self.entries {
            RunEntries::InMemory { shard_board, .. } => Some(shard_board.at_score(score)),
            RunEntries::Replied { reply, score: Some(start) } if start.as_slice() == score => {
                Some(reply.at_start)
            }
            RunEntries::Replied { reply, .. } => {
                let first = reply.first();
                let count = crate::types::count(reply.above.len() + reply.below.len());
                let better = count_while(reply.in_order(), |entry| score_of(entry, score.len()) < score);
                let through = count_while(reply.in_order(), |entry| score_of(entry, score.len()) <= score);
                let head = reply.in_order().next();
                let before = if better > 0 || first == 0 {
                    first + better
                } else if head.is_some_and(|head| score_of(head, score.len()) == score) {
                    reply.better_than_first
                } else {
                    return None;
                };
                let ends = through < count || first + count == reply.total;
                ends.then_some(Counted { before, through: first + through })
            }
        }
    }
}

impl RunReply {
    /// Entries before the run's first one.
    fn first(&self) -> u64 {
        self.start - crate::types::count(self.above.len()).min(self.start)
    }

    /// The run's entries, best first.
    fn in_order(&self) -> impl Iterator<Item = &ShardEntry> {
        self.above.iter().rev().chain(&self.below)
    }
}

fn count_while<'r>(
    entries: impl Iterator<Item = &'r ShardEntry>,
    is_counted: impl Fn(&ShardEntry) -> bool,
) -> u64 {
    crate::types::count(entries.take_while(|entry| is_counted(entry)).count())
}

fn score_of(entry: &ShardEntry, keys: usize) -> &[u64] {
    head(entry.words.as_slice(), keys)
}

fn head(words: &[u64], keys: usize) -> &[u64] {
    words.get(..keys).unwrap_or(words)
}
