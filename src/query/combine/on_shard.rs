//! Several boards combined on one shard, in memory.
//!
//! Knows: that entries can be copied quickly, and that all else needs no lock: what is copied is of one
//! sequence, and so is what is made of it. A member's id is looked up afterwards, by its handle, which stays
//! its own while [`Members::era`](crate::state::Members::era) is the same. Must not know: the other shards.

use std::collections::HashMap;
use std::ops::Range;

use crate::board::{
    Combination, CombinedColumn, CombinedScore, CombinedScores, KeyType, Order, combine_scores, decode,
    encode,
};
use crate::query::question::{
    BoardLife, COMBINED_BYTES_MAX, CombineQuestion, CombineReply, Combined, CombinedCounts, CombinedKey,
    InvalidQuestion, LifeOnShard, NotCombined, check_widths_of_combined, life_of,
};
use crate::query::shard_board::ShardBoard;
use crate::state::{Era, Shard};
use crate::state_lock::{Purpose, StateLock};
use crate::tree::Handle;
use crate::types::{Number, Sequence, count};

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
        let boards = asked.boards.iter().zip(self.floats).zip(self.columns?);
        let columns = boards.map(|(((_, weight), is_float), entries)| {
            let weight = *weight;
            CombinedColumn { entries, is_float, weight }
        });
        let how = (asked.combination, asked.aggregate);
        let sums: CombinedScores = combine_scores(columns.collect(), how, asked.numbers);
        let order = asked.ranking.order;
        let word = |sum: CombinedScore| Ok(encode(sum.ordered().ok_or(NotCombined::Overflow)?, order));
        let mut entries = Vec::with_capacity(sums.len());
        for (handle, sum) in &sums {
            entries.push((word(*sum)?, *handle));
        }
        entries.sort_unstable();
        let member = self.member.and_then(|handle| Some((handle, *sums.get(&handle)?)));
        let member = member.map(|(handle, sum)| Ok((handle, word(sum)?))).transpose()?;
        Ok(ByScore { entries, member })
    }
}

/// Copies what a combination needs of the boards: all entries, or those of a small one and what the others
/// have of its members.
fn copy(
    boards: &[ShardBoard<'_>],
    totals: &[u64],
    combination: Combination,
) -> Result<Vec<Vec<(Handle, i64)>>, NotCombined> {
    let Some(base) = combination.base(totals).map_err(NotCombined::TooMany)? else {
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
