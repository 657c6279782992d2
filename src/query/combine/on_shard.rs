//! Several boards combined on one shard, in memory.
//!
//! Knows: that entries can be copied quickly, and that all else needs no lock: what is copied is of one
//! sequence, and so is what is made of it. A member's id is looked up afterwards, by its handle, which stays
//! its own while [`Members::era`](crate::state::Members::era) is the same. Must not know: the other shards.

use std::collections::HashMap;
use std::ops::Range;

use crate::board::{KeyType, Order, decode, encode};
use crate::query::question::{
    Aggregate, BoardLife, COMBINED_BYTES_MAX, COMBINED_ENTRIES_MAX, COMBINED_LOOKUPS_MAX, Combination,
    CombineQuestion, CombineReply, Combined, CombinedCounts, CombinedKey, InvalidQuestion, LifeOnShard,
    NotCombined, check_widths_of_combined, life_of,
};
use crate::query::shard_board::ShardBoard;
use crate::state::{Era, Shard};
use crate::state_lock::{Purpose, StateLock};
use crate::tree::Handle;
use crate::types::{Double, Number, Sequence, count};

/// Ids that are looked up under one hold of the lock.
const IDS_PER_HOLD: usize = 1_024;
/// How often boards are copied again because handles may have gone to other members meanwhile: that takes a
/// checkpoint. The last time, all is done under one hold.
const ATTEMPTS: u32 = 3;

type Ids = HashMap<Handle, Box<[u8]>, foldhash::fast::RandomState>;

/// What one shard replies, under one hold of its lock.
pub fn combine(shard: &Shard, asked: &CombineQuestion) -> CombineReply {
    let copied = Copied::of(shard, asked);
    let boards = copied.boards.clone();
    let combined = copied.combined(asked).map(|result| {
        let ids = result.handles(asked).map(|handle| (handle, shard.members.id(handle).into())).collect();
        result.reply(asked, &ids)
    });
    CombineReply { boards, combined }
}

/// The same, and of which sequence it is, in slices: the lock is held to copy the boards' entries, and then
/// to look up some ids at a time.
///
/// # Errors
/// When a board is not such as is combined. `Ok(Err(shown))`: one of them is ahead of this sequence.
pub fn combine_in_slices(
    state: &StateLock,
    asked: &CombineQuestion,
) -> Result<Result<(Sequence, CombineReply), Sequence>, InvalidQuestion> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let shard = state.read(Purpose::Read);
        let sequence = shard.applied.sequence;
        if shard.is_ahead(|board| asked.boards.iter().any(|(life, _)| life.board.board() == *board)) {
            return Ok(Err(sequence));
        }
        check_widths_of_combined(&shard, asked)?;
        if attempt == ATTEMPTS {
            return Ok(Ok((sequence, combine(&shard, asked))));
        }
        let copied = Copied::of(&shard, asked);
        drop(shard);
        let (boards, era) = (copied.boards.clone(), copied.era.clone());
        let combined = match copied.combined(asked) {
            Err(why) => Err(why),
            Ok(result) => {
                let handles: Vec<Handle> = result.handles(asked).collect();
                let Some(ids) = ids_of(state, &era, &handles) else { continue };
                Ok(result.reply(asked, &ids))
            }
        };
        return Ok(Ok((sequence, CombineReply { boards, combined })));
    }
}

/// The ids of members; `None`: handles may have gone to others meanwhile.
fn ids_of(state: &StateLock, era: &Era, handles: &[Handle]) -> Option<Ids> {
    let mut ids = Ids::with_capacity_and_hasher(handles.len(), foldhash::fast::RandomState::default());
    for slice in handles.chunks(IDS_PER_HOLD) {
        let shard = state.read(Purpose::Read);
        if shard.members.era() != *era {
            return None;
        }
        for handle in slice {
            shard.members.prefetch_id_of(*handle);
        }
        ids.extend(slice.iter().map(|handle| (*handle, shard.members.id(*handle).into())));
    }
    Some(ids)
}

/// What the lock is held for: the entries of the boards, or those that matter.
struct Copied {
    boards: Vec<(LifeOnShard, u64)>,
    /// Of each board: members, and their scores as integers of the same order.
    columns: Result<Vec<Vec<(Handle, i64)>>, NotCombined>,
    floats: Vec<bool>,
    member: Option<Handle>,
    era: Era,
}

impl Copied {
    fn of(shard: &Shard, asked: &CombineQuestion) -> Self {
        let boards: Vec<ShardBoard<'_>> =
            asked.boards.iter().map(|(life, _)| ShardBoard::of_life(shard, life)).collect();
        let totals: Vec<u64> = boards.iter().map(ShardBoard::total).collect();
        let life = |(life, _): &(BoardLife, Number)| life_of(shard, life);
        let is_float = |board: &ShardBoard<'_>| {
            let key = board.window.and_then(|(_, window)| window.definition.keys.first());
            key.is_some_and(|key| key.key_type == KeyType::Float)
        };
        Self {
            boards: asked.boards.iter().map(life).zip(totals.iter().copied()).collect(),
            columns: copy(&boards, &totals, asked.combination),
            floats: boards.iter().map(is_float).collect(),
            member: asked.member.as_ref().and_then(|member| shard.members.get(member.as_bytes())),
            era: shard.members.era(),
        }
    }

    /// Combines the scores.
    fn combined(self, asked: &CombineQuestion) -> Result<ByScore, NotCombined> {
        let columns = self.columns?;
        let most = columns.iter().map(Vec::len).max().unwrap_or_default();
        let mut sums: HashMap<Handle, (Value, usize), foldhash::fast::RandomState> =
            HashMap::with_capacity_and_hasher(most, foldhash::fast::RandomState::default());
        let boards = asked.boards.iter().zip(&self.floats).zip(columns);
        for (nth, (((_, weight), is_float), column)) in boards.enumerate() {
            for (handle, ordered) in column {
                if asked.combination == Combination::Diff && nth > 0 {
                    sums.remove(&handle);
                    continue;
                }
                let value = Value::of(asked.numbers, *weight, ordered, *is_float);
                match sums.get_mut(&handle) {
                    // One that an intersection lacks already is not counted further.
                    Some((_, seen)) if asked.combination == Combination::Inter && *seen < nth => {}
                    Some((sum, seen)) => {
                        *sum = sum.with(value, asked.aggregate);
                        *seen = nth + 1;
                    }
                    None if nth == 0 || asked.combination == Combination::Union => {
                        sums.insert(handle, (value, nth + 1));
                    }
                    None => {}
                }
            }
        }
        if asked.combination == Combination::Inter {
            sums.retain(|_, (_, seen)| *seen == asked.boards.len());
        }
        let order = asked.ranking.order;
        let word = |sum: Value| Ok(encode(sum.ordered().ok_or(NotCombined::Overflow)?, order));
        let mut entries = Vec::with_capacity(sums.len());
        for (handle, (sum, _)) in &sums {
            entries.push((word(*sum)?, *handle));
        }
        entries.sort_unstable();
        let member = self.member.and_then(|handle| Some((handle, sums.get(&handle)?.0)));
        let member = member.map(|(handle, sum)| Ok((handle, word(sum)?))).transpose()?;
        Ok(ByScore { entries, member })
    }
}

/// [`COMBINED_ENTRIES_MAX`]; so few in tests that they reach it.
const ENTRIES_MAX: u64 = if cfg!(test) { 600 } else { COMBINED_ENTRIES_MAX };
/// [`COMBINED_LOOKUPS_MAX`], likewise.
const LOOKUPS_MAX: u64 = if cfg!(test) { 40 } else { COMBINED_LOOKUPS_MAX };

/// Copies what a combination needs of the boards: all entries, or those of a small one and what the others
/// have of its members.
fn copy(
    boards: &[ShardBoard<'_>],
    totals: &[u64],
    combination: Combination,
) -> Result<Vec<Vec<(Handle, i64)>>, NotCombined> {
    let base = match combination {
        Combination::Union => None,
        Combination::Inter => (0..totals.len()).min_by_key(|nth| totals.get(*nth)),
        Combination::Diff => Some(0),
    };
    let all: u64 = totals.iter().sum();
    let others = count(totals.len().saturating_sub(1));
    let looked_up = base.and_then(|base| totals.get(base)).map(|total| total.saturating_mul(others));
    let Some(base) = base.filter(|_| looked_up.is_some_and(|lookups| lookups <= LOOKUPS_MAX)) else {
        if all > ENTRIES_MAX {
            return Err(NotCombined::TooMany(all));
        }
        return Ok(boards.iter().map(all_of).collect());
    };
    let of_base = boards.get(base).map(all_of).unwrap_or_default();
    let found = |(nth, board): (usize, &ShardBoard<'_>)| {
        if nth == base {
            return of_base.clone();
        }
        let Some((_, window)) = board.window else { return Vec::new() };
        let found = of_base.iter().filter_map(|(handle, _)| {
            let words = window.tree.get(*handle)?;
            Some((*handle, score_of(board, words.as_slice())))
        });
        found.collect()
    };
    Ok(boards.iter().enumerate().map(found).collect())
}

fn all_of(board: &ShardBoard<'_>) -> Vec<(Handle, i64)> {
    let Some((_, window)) = board.window else { return Vec::new() };
    let mut entries = Vec::with_capacity(usize::try_from(window.total()).unwrap_or_default());
    let cursor = window.tree.cursor_at(0);
    entries.extend(cursor.map(|(handle, words)| (handle, score_of(board, words.as_slice()))));
    entries
}

fn score_of(board: &ShardBoard<'_>, words: &[u64]) -> i64 {
    let key = board.window.and_then(|(_, window)| window.definition.keys.first());
    let order = key.map_or(Order::Descending, |key| key.order);
    decode(words.first().copied().unwrap_or_default(), order)
}

/// A score that is being combined.
#[derive(Debug, Clone, Copy)]
enum Value {
    Integer(i128),
    Float(f64),
}

impl Value {
    fn of(numbers: KeyType, weight: Number, ordered: i64, is_float: bool) -> Self {
        if let (KeyType::Integer, Number::Integer(weight)) = (numbers, weight) {
            return Self::Integer(i128::from(ordered) * i128::from(weight));
        }
        let score = if is_float { Double::of_ordered(ordered) } else { Number::Integer(ordered).double() };
        Self::Float(number_or_zero(score.value() * weight.double().value()))
    }

    fn with(self, other: Self, aggregate: Aggregate) -> Self {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => Self::Integer(match aggregate {
                Aggregate::Sum => one + other,
                Aggregate::Min => one.min(other),
                Aggregate::Max => one.max(other),
            }),
            (Self::Float(one), Self::Float(other)) => Self::Float(match aggregate {
                Aggregate::Sum => number_or_zero(one + other),
                Aggregate::Min => one.min(other),
                Aggregate::Max => one.max(other),
            }),
            // All are of one kind.
            (one, _) => one,
        }
    }

    /// As an integer of the same order; `None`: it is beyond 64 bits.
    fn ordered(self) -> Option<i64> {
        match self {
            Self::Integer(sum) => i64::try_from(sum).ok(),
            Self::Float(sum) => Double::new(sum).map(Double::ordered),
        }
    }
}

/// As in Redis: infinity less infinity, and infinity times nothing, are nothing.
fn number_or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// The result of a shard, whose ids are not known yet.
struct ByScore {
    /// By word; those of equal words in no order.
    entries: Vec<(u64, Handle)>,
    member: Option<(Handle, u64)>,
}

impl ByScore {
    /// The entries with a word.
    fn tied(&self, word: u64) -> Range<usize> {
        self.entries.partition_point(|(other, _)| *other < word)
            ..self.entries.partition_point(|(other, _)| *other <= word)
    }

    /// Entries among which are those that are to be listed: all of equal words together.
    fn listed(&self, asked: &CombineQuestion) -> Range<usize> {
        let after = asked.after.as_ref().map_or(0..0, |after| self.tied(after.word));
        let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
        let last = after.end.saturating_add(limit).min(self.entries.len());
        let end = match last.checked_sub(1).and_then(|last| self.entries.get(last)) {
            Some((word, _)) if limit > 0 => self.tied(*word).end,
            _ => after.end,
        };
        after.start..end
    }

    /// The members whose ids are needed: of those with the same score as a place, ids tell which are before
    /// it.
    fn handles(&self, asked: &CombineQuestion) -> impl Iterator<Item = Handle> {
        let listed = self.listed(asked);
        let at = asked.at.as_ref().map_or(0..0, |at| self.tied(at.word));
        let member = self.member.map_or(0..0, |(_, word)| self.tied(word));
        let entries = |range: Range<usize>| self.entries.get(range).unwrap_or_default();
        let ranges = [listed, at, member].map(entries);
        ranges.into_iter().flatten().map(|(_, handle)| *handle)
    }

    fn reply(&self, asked: &CombineQuestion, ids: &Ids) -> Combined {
        let id = |handle: &Handle| ids.get(handle).map(|id| &**id).unwrap_or_default();
        let counts = |word: u64, member: &[u8]| {
            let tied = self.tied(word);
            let entries = self.entries.get(tied.clone()).unwrap_or_default();
            let before =
                entries.iter().filter(|(_, handle)| asked.ranking.compare_ids(id(handle), member).is_lt());
            let better = count(tied.start);
            CombinedCounts { better, tied: count(tied.len()), before: better + count(before.count()) }
        };
        let at_key = |key: &Option<CombinedKey>| {
            key.as_ref().map_or_else(CombinedCounts::default, |key| counts(key.word, &key.member))
        };
        let listed = self.entries.get(self.listed(asked)).unwrap_or_default();
        let mut listed: Vec<(u64, &[u8])> = listed.iter().map(|(word, handle)| (*word, id(handle))).collect();
        if let Some(after) = &asked.after {
            listed.retain(|entry| asked.ranking.compare(after.parts(), *entry).is_lt());
        }
        listed.sort_unstable_by(|a, b| asked.ranking.compare(*a, *b));
        // Those of the range, and all behind it.
        let left = count(listed.len() + self.entries.len() - self.listed(asked).end);
        listed.truncate(usize::try_from(asked.limit).unwrap_or(usize::MAX));
        let mut bytes = 0;
        let fits = |(_, id): &&(u64, &[u8])| {
            bytes += id.len();
            bytes <= COMBINED_BYTES_MAX
        };
        let key = |(word, id): &(u64, &[u8])| CombinedKey { word: *word, member: (*id).into() };
        let member = self.member.map(|(handle, word)| (word, counts(word, id(&handle))));
        Combined {
            total: count(self.entries.len()),
            left,
            after: at_key(&asked.after),
            at: at_key(&asked.at),
            entries: listed.iter().take_while(fits).map(key).collect(),
            member,
        }
    }
}
