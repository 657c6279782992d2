//! What a shard is asked about several boards together, and what it replies.
//!
//! Knows: that a member's entries of all boards are on the same shard, so that a shard combines them alone.
//! Must not know: how.

use std::cmp::Ordering;

use crate::board::{Aggregate, Combination, KeyType, Order};
use crate::query::question::{BoardLife, LifeOnShard};
use crate::types::Number;

/// The most boards that are combined.
pub const COMBINED_BOARDS_MAX: usize = 64;
/// The most entries of a reply.
pub const COMBINED_LISTED_MAX: u32 = 65_536;
/// The most bytes of their ids.
pub const COMBINED_BYTES_MAX: usize = 8 << 20;
/// Boards to be combined, and what is wanted of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombineQuestion {
    /// Each with what its scores are multiplied by.
    pub boards: Vec<(BoardLife, Number)>,
    pub combination: Combination,
    pub aggregate: Aggregate,
    /// Integers if all scores and weights are.
    pub numbers: KeyType,
    pub ranking: Ranking,
    /// Only entries behind this place are listed.
    pub after: Option<CombinedKey>,
    pub limit: u32,
    /// A member of this shard whose entry is wanted.
    pub member: Option<Box<str>>,
    /// A place to be counted at.
    pub at: Option<CombinedKey>,
}

/// How the entries of a result are ordered: by score, then by the bytes of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranking {
    pub order: Order,
    pub ids_descend: bool,
}

impl Ranking {
    /// Orders ids of equal scores.
    pub fn compare_ids(self, a: &[u8], b: &[u8]) -> Ordering {
        if self.ids_descend { b.cmp(a) } else { a.cmp(b) }
    }

    /// Orders entries: words, then ids.
    pub fn compare(self, a: (u64, &[u8]), b: (u64, &[u8])) -> Ordering {
        a.0.cmp(&b.0).then_with(|| self.compare_ids(a.1, b.1))
    }
}

/// An entry of the result: the word of its score, whose ascending order is best first, and its member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinedKey {
    pub word: u64,
    pub member: Box<[u8]>,
}

impl CombinedKey {
    pub fn parts(&self) -> (u64, &[u8]) {
        (self.word, &self.member)
    }
}

/// Entries of the result on a shard in relation to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CombinedCounts {
    /// Those with a better score.
    pub better: u64,
    /// Those with the same score.
    pub tied: u64,
    /// Those before it.
    pub before: u64,
}

impl CombinedCounts {
    /// Adds those of another shard.
    pub fn add(&mut self, other: Self) {
        self.better += other.better;
        self.tied += other.tied;
        self.before += other.before;
    }
}

/// A shard's part of the result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Combined {
    pub total: u64,
    /// Entries behind the place from which they are listed; all if there is none.
    pub left: u64,
    /// At the place behind which entries are listed.
    pub after: CombinedCounts,
    /// At the place that was asked for.
    pub at: CombinedCounts,
    /// In order. Fewer than were asked for if their ids take too much.
    pub entries: Vec<CombinedKey>,
    /// The word of the member's score, and what is there; `None`: it is not in the result.
    pub member: Option<(u64, CombinedCounts)>,
}

/// Why a shard does not combine boards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCombined {
    /// It would have to look at so many entries.
    TooMany(u64),
    /// A score is beyond 64 bits.
    Overflow,
}

/// What a shard replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombineReply {
    /// Of each board: whether it is on the shard, and its entries there.
    pub boards: Vec<(LifeOnShard, u64)>,
    pub combined: Result<Combined, NotCombined>,
}

/// Whether a reply can be one to its question.
pub(super) fn combined_fits(question: &CombineQuestion, reply: &CombineReply) -> bool {
    let Ok(Combined { total, left, after, at, entries, member }) = &reply.combined else {
        return reply.boards.len() == question.boards.len();
    };
    let within = |counts: &CombinedCounts| {
        counts.better <= counts.before
            && counts.before <= counts.better + counts.tied
            && counts.better.saturating_add(counts.tied) <= *total
    };
    let ranking = question.ranking;
    let mut places = question.after.iter().chain(entries);
    let mut last = places.next();
    let ascends = places.all(|next| {
        let is_next = last.is_none_or(|last| ranking.compare(last.parts(), next.parts()).is_lt());
        last = Some(next);
        is_next
    });
    reply.boards.len() == question.boards.len()
        && [after, at].into_iter().all(within)
        && member.as_ref().is_none_or(|(_, counts)| within(counts) && counts.tied > 0)
        && (member.is_none() || question.member.is_some())
        && left.checked_add(after.before).is_some_and(|entries| entries <= *total)
        && crate::types::count(entries.len()) <= u64::from(question.limit).min(*left)
        && ascends
}
