//! Several boards together: members ranked by what comes of their scores on all of them.
//!
//! Knows: that a member's entries of all boards are on the same shard, so that each shard combines its own
//! members, and that ranks and positions among the results add up as those of a board do. Must not know: how
//! a shard combines (`on_shard`).
//!
//! Each shard is asked once, so its part is of one sequence. With a member, its home shard is asked first,
//! and the others count at its place.

mod cursor;
mod refused;

pub mod on_shard;

use crate::board::{Aggregate, Combination, KeyType, Order, Ties, decode, is_exact_weight};
use crate::query::answer::Standing;
use crate::query::instance::{InstanceAsked, WindowChoice};
use crate::query::question::{
    BoardLife, COMBINED_LISTED_MAX, CombineQuestion, CombineReply, Combined, CombinedCounts, CombinedKey,
    NotCombined, Ranking,
};
use crate::query::read::{NoBoard, ShardsRead};
use crate::query::read_shards::ReadShards;
use crate::query::remote_shards::ReadError;
use crate::types::{AsOf, BoardName, Double, MemberId, Number, Timestamp, count, fnv1a_32};
use crate::window::Instance;
use crate::writer::Registry;

pub use cursor::CombineCursor;
pub use refused::{CombineRefused, NoCombination};

/// A board, and what its scores are multiplied by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinedBoard {
    pub board: BoardName,
    /// Which of its instances.
    pub choice: WindowChoice,
    pub weight: Number,
}

/// Reads boards together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combine {
    /// The first one is that from which others are taken.
    pub boards: Vec<CombinedBoard>,
    pub combination: Combination,
    pub aggregate: Aggregate,
    /// How the result is ordered; `None`: as all of the boards are.
    pub ranking: Option<Ranking>,
    /// The reading node's time.
    pub now: Timestamp,
    /// Where the page before ended, as text.
    pub cursor: Option<String>,
    pub limit: u32,
    /// A member whose entry is wanted.
    pub member: Option<MemberId>,
    /// Whether a board that there is not counts as an empty one.
    pub is_lenient: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinedAnswer {
    pub as_of: AsOf,
    /// The instance by which each board was read that is there.
    pub windows: Vec<(BoardName, Instance)>,
    pub total: u64,
    /// Best first.
    pub entries: Vec<CombinedEntry>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
    /// The member that was asked for; `None`: it is not in the result.
    pub member: Option<(CombinedEntry, Standing)>,
}

/// A member, and what comes of its scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinedEntry {
    pub member: Box<str>,
    pub score: Number,
    /// Entries with a strictly better score.
    pub better: u64,
    /// 1-based.
    pub position: u64,
}

impl CombinedEntry {
    /// Competition rank: 1, 2, 2, 4.
    pub fn rank(&self) -> u64 {
        self.better + 1
    }
}

/// What is asked, as the registry has the boards.
struct Plan {
    boards: Vec<(BoardLife, Number)>,
    windows: Vec<(BoardName, Instance)>,
    /// Of each board.
    capacities: Vec<Option<u64>>,
    numbers: KeyType,
    ranking: Ranking,
    /// The time by which instances were chosen.
    time: Timestamp,
    after: Option<CombinedKey>,
}

impl ShardsRead for Combine {
    type Answer = Result<CombinedAnswer, NoCombination>;

    fn is_about(&self, board: &BoardName) -> bool {
        self.boards.iter().any(|asked| asked.board == *board)
    }

    /// A shard combines in slices only if it is asked as a remote one is.
    fn lookups(&self) -> usize {
        usize::MAX
    }

    async fn read<'r>(
        &'r self,
        shards: ReadShards<'r>,
        registry: &'r Registry,
    ) -> Result<Self::Answer, ReadError> {
        let plan = match self.plan(registry, shards.time()) {
            Ok(Some(plan)) => plan,
            Ok(None) => return Ok(Ok(CombinedAnswer::empty(shards.as_of()))),
            Err(why) => return Ok(Err(why)),
        };
        let mut question = CombineQuestion {
            boards: plan.boards.clone(),
            combination: self.combination,
            aggregate: self.aggregate,
            numbers: plan.numbers,
            ranking: plan.ranking,
            after: plan.after.clone(),
            limit: self.limit.min(COMBINED_LISTED_MAX),
            member: None,
            at: None,
        };
        let home = self.member.as_ref().map(|member| shards.home_of(member));
        let mut replies = Vec::new();
        if let (Some(member), Some(home)) = (&self.member, home) {
            let asked = CombineQuestion { member: Some(member.as_str().into()), ..question.clone() };
            replies = shards.combined(asked, |shard| shard == home).await?;
            let found = replies.first().and_then(|reply| reply.combined.as_ref().ok()?.member);
            question.at = found.map(|(word, _)| CombinedKey { word, member: member.as_bytes().into() });
        }
        replies.extend(shards.combined(question, |shard| Some(shard) != home).await?);
        let answer = self.merged(&plan, replies).map_err(NoCombination::Refused);
        Ok(answer.map(|answer| CombinedAnswer { as_of: shards.as_of(), ..answer }))
    }
}

impl Combine {
    /// `None`: nothing can come of it.
    fn plan(&self, registry: &Registry, time: Timestamp) -> Result<Option<Plan>, NoCombination> {
        let cursor = match &self.cursor {
            Some(text) => Some(CombineCursor::decode(text, self.hash()).ok_or(CombineRefused::Cursor)?),
            None => None,
        };
        // Pages go on in the instances of the first one.
        let time = cursor.as_ref().map_or(self.now.max(time), |cursor| cursor.time);
        let (mut boards, mut windows, mut capacities) = (Vec::new(), Vec::new(), Vec::new());
        let (mut are_integers, mut orders, mut ids_descend) = (true, Vec::new(), true);
        for (nth, CombinedBoard { board, choice, weight }) in self.boards.iter().enumerate() {
            let Some(known) = registry.get(board.as_str()) else {
                if !self.is_lenient {
                    return Err(NoCombination::NoBoard(NoBoard::UnknownColumn(board.clone())));
                }
                match self.combination {
                    Combination::Diff if nth > 0 => continue,
                    Combination::Union => continue,
                    Combination::Inter | Combination::Diff => return Ok(None),
                }
            };
            let definition = &known.definition;
            let [key] = &definition.keys[..] else {
                let keys = definition.keys.len();
                return Err(CombineRefused::SeveralKeys { board: board.clone(), keys }.into());
            };
            if definition.is_top_k() {
                return Err(CombineRefused::Estimates(board.clone()).into());
            }
            let instance = InstanceAsked { choice: *choice, now: time }.of(definition);
            let instance = instance.map_err(|why| NoCombination::NoBoard(why.into()))?;
            let life = instance.name_on_shards(board);
            boards.push((BoardLife { board: life, incarnation: known.incarnation }, *weight));
            windows.push((board.clone(), instance));
            capacities.push(definition.capacity);
            are_integers &= key.key_type == KeyType::Integer && is_exact_weight(*weight);
            orders.push(key.order);
            ids_descend &= definition.ties == Ties::MemberDesc;
        }
        let Some(order) = orders.first() else { return Ok(None) };
        let ranking = match self.ranking {
            Some(ranking) => ranking,
            None if orders.iter().all(|other| other == order) => Ranking { order: *order, ids_descend },
            None => return Err(CombineRefused::Orders.into()),
        };
        let numbers = if are_integers { KeyType::Integer } else { KeyType::Float };
        if numbers == KeyType::Float {
            for (_, weight) in &mut boards {
                *weight = Number::Float(weight.double());
            }
        }
        let after = cursor.map(|cursor| cursor.key);
        Ok(Some(Plan { boards, windows, capacities, numbers, ranking, time, after }))
    }

    /// What the pages of one question have in common, for their cursors.
    fn hash(&self) -> u32 {
        let boards = self
            .boards
            .iter()
            .map(|CombinedBoard { board, choice, weight }| format!("{board} {choice} {weight}"));
        let boards: Vec<String> = boards.collect();
        let text = format!("{boards:?} {:?} {:?} {:?}", self.combination, self.aggregate, self.ranking);
        fnv1a_32(text.as_bytes())
    }

    /// Adds the shards' parts up.
    fn merged(&self, plan: &Plan, replies: Vec<CombineReply>) -> Result<CombinedAnswer, CombineRefused> {
        for (nth, capacity) in plan.capacities.iter().enumerate() {
            let totals = replies.iter().filter_map(|reply| reply.boards.get(nth).map(|(_, total)| *total));
            if let (Some(capacity), Some((name, _))) = (capacity, plan.windows.get(nth))
                && totals.sum::<u64>() > *capacity
            {
                return Err(CombineRefused::Capacity(name.clone()));
            }
        }
        let (mut total, mut left, mut better, mut found) = (0, 0, 0, None);
        let (mut at, mut entries) = (CombinedCounts::default(), Vec::new());
        for CombineReply { combined, .. } in replies {
            let combined: Combined = combined.map_err(|why| match why {
                NotCombined::TooMany(entries) => CombineRefused::TooMany { entries },
                NotCombined::Overflow => CombineRefused::Overflow,
            })?;
            if count(combined.entries.len()) < combined.left.min(self.limit.into()) {
                return Err(CombineRefused::TooLong);
            }
            total += combined.total;
            left += combined.left;
            better += combined.after.better;
            at.add(combined.at);
            if let Some((word, counts)) = combined.member {
                at.add(counts);
                found = Some(word);
            }
            entries.extend(combined.entries);
        }
        entries.sort_unstable_by(|a, b| plan.ranking.compare(a.parts(), b.parts()));
        entries.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let next = entries.last().filter(|_| left > count(entries.len()));
        let next = next.map(|last| CombineCursor { time: plan.time, key: last.clone() }.encode(self.hash()));
        let member = self.member.as_ref().zip(found).map(|(member, word)| {
            let entry = plan.entry(member.as_bytes(), word, at.better, at.before + 1);
            (entry, Standing { better: at.better, tied: at.tied, total })
        });
        let before = total - left;
        // Of the same score as the last entry of the page before, and otherwise worse than that.
        let is_tied = |word| plan.after.as_ref().is_some_and(|after| after.word == word);
        let mut last = None;
        let listed = entries.iter().zip(before..).map(|(CombinedKey { word, member }, ahead)| {
            let rank_ahead = match last {
                Some((of_last, better)) if of_last == *word => better,
                None if is_tied(*word) => better,
                _ => ahead,
            };
            last = Some((*word, rank_ahead));
            plan.entry(member, *word, rank_ahead, ahead + 1)
        });
        let entries = listed.collect();
        let windows = plan.windows.clone();
        Ok(CombinedAnswer { as_of: AsOf::default(), windows, total, entries, next, member })
    }
}

impl Plan {
    fn entry(&self, member: &[u8], word: u64, better: u64, position: u64) -> CombinedEntry {
        let ordered = decode(word, self.ranking.order);
        let score = match self.numbers {
            KeyType::Integer => Number::Integer(ordered),
            KeyType::Float => Number::Float(Double::of_ordered(ordered)),
        };
        CombinedEntry { member: String::from_utf8_lossy(member).into(), score, better, position }
    }
}

impl CombinedAnswer {
    fn empty(as_of: AsOf) -> Self {
        let (windows, entries) = (Vec::new(), Vec::new());
        Self { as_of, windows, total: 0, entries, next: None, member: None }
    }
}

/// As Redis orders its replies: from the least score up.
pub const FROM_THE_LEAST: Ranking = Ranking { order: Order::Ascending, ids_descend: false };
