//! Boards together, as they travel: what a shard is asked, and what it replies.

use bincode::{BorrowDecode, Decode, Encode};

use crate::board::{Aggregate, Combination, KeyType, Order};
use crate::cluster::questions::wire::counterparts::{LifeOnShardWire, LifeWire};
use crate::cluster::questions::wire::{Undecodable, undecodable};
use crate::query::question::{
    CombineQuestion, CombineReply, Combined, CombinedCounts, CombinedKey, NotCombined, Ranking,
};
use crate::types::{Double, MemberId, Number};

#[derive(Encode, BorrowDecode)]
pub struct CombineWire<'a> {
    boards: Vec<(LifeWire<'a>, NumberWire)>,
    combination: CombinationWire,
    aggregate: AggregateWire,
    are_floats: bool,
    descends: bool,
    ids_descend: bool,
    after: Option<PlaceWire<'a>>,
    limit: u32,
    member: Option<&'a str>,
    at: Option<PlaceWire<'a>>,
}

/// The word of a score, and a member.
type PlaceWire<'a> = (u64, &'a [u8]);

/// Better, tied, and those before.
type CountsWire = (u64, u64, u64);

#[derive(Clone, Copy, Encode, Decode)]
enum NumberWire {
    Integer(i64),
    /// As an integer of the same order.
    Float(i64),
}

#[derive(Clone, Copy, Encode, Decode)]
enum CombinationWire {
    Union,
    Inter,
    Diff,
}

#[derive(Clone, Copy, Encode, Decode)]
enum AggregateWire {
    Sum,
    Min,
    Max,
}

#[derive(Encode, BorrowDecode)]
pub struct CombinedWire<'a> {
    boards: Vec<(LifeOnShardWire, u64)>,
    outcome: OutcomeWire<'a>,
}

#[derive(Encode, BorrowDecode)]
enum OutcomeWire<'a> {
    Combined {
        total: u64,
        left: u64,
        after: CountsWire,
        at: CountsWire,
        entries: Vec<PlaceWire<'a>>,
        member: Option<(u64, CountsWire)>,
    },
    TooMany(u64),
    Overflow,
}

fn place(key: &CombinedKey) -> PlaceWire<'_> {
    key.parts()
}

fn read_place((word, member): PlaceWire<'_>) -> Result<CombinedKey, Undecodable> {
    let member = str::from_utf8(member).map_err(undecodable)?;
    MemberId::new(member).map_err(undecodable)?;
    Ok(CombinedKey { word, member: member.as_bytes().into() })
}

fn counts(counts: CombinedCounts) -> CountsWire {
    (counts.better, counts.tied, counts.before)
}

fn read_counts((better, tied, before): CountsWire) -> CombinedCounts {
    CombinedCounts { better, tied, before }
}

impl<'a> CombineWire<'a> {
    pub fn of(asked: &'a CombineQuestion) -> Self {
        let weight = |weight: &Number| match weight {
            Number::Integer(integer) => NumberWire::Integer(*integer),
            Number::Float(double) => NumberWire::Float(double.ordered()),
        };
        Self {
            boards: asked.boards.iter().map(|(life, of)| (LifeWire::of(life), weight(of))).collect(),
            combination: match asked.combination {
                Combination::Union => CombinationWire::Union,
                Combination::Inter => CombinationWire::Inter,
                Combination::Diff => CombinationWire::Diff,
            },
            aggregate: match asked.aggregate {
                Aggregate::Sum => AggregateWire::Sum,
                Aggregate::Min => AggregateWire::Min,
                Aggregate::Max => AggregateWire::Max,
            },
            are_floats: asked.numbers == KeyType::Float,
            descends: asked.ranking.order == Order::Descending,
            ids_descend: asked.ranking.ids_descend,
            after: asked.after.as_ref().map(place),
            limit: asked.limit,
            member: asked.member.as_deref(),
            at: asked.at.as_ref().map(place),
        }
    }

    pub fn read(self) -> Result<CombineQuestion, Undecodable> {
        let weight = |weight| match weight {
            NumberWire::Integer(integer) => Number::Integer(integer),
            NumberWire::Float(ordered) => Number::Float(Double::of_ordered(ordered)),
        };
        let board = |(life, of): (LifeWire<'_>, _)| Ok((life.read()?, weight(of)));
        let order = if self.descends { Order::Descending } else { Order::Ascending };
        Ok(CombineQuestion {
            boards: self.boards.into_iter().map(board).collect::<Result<_, Undecodable>>()?,
            combination: match self.combination {
                CombinationWire::Union => Combination::Union,
                CombinationWire::Inter => Combination::Inter,
                CombinationWire::Diff => Combination::Diff,
            },
            aggregate: match self.aggregate {
                AggregateWire::Sum => Aggregate::Sum,
                AggregateWire::Min => Aggregate::Min,
                AggregateWire::Max => Aggregate::Max,
            },
            numbers: if self.are_floats { KeyType::Float } else { KeyType::Integer },
            ranking: Ranking { order, ids_descend: self.ids_descend },
            after: self.after.map(read_place).transpose()?,
            limit: self.limit,
            member: self.member.map(Into::into),
            at: self.at.map(read_place).transpose()?,
        })
    }
}

impl<'a> CombinedWire<'a> {
    pub fn of(reply: &'a CombineReply) -> Self {
        let outcome = match &reply.combined {
            Ok(combined) => OutcomeWire::Combined {
                total: combined.total,
                left: combined.left,
                after: counts(combined.after),
                at: counts(combined.at),
                entries: combined.entries.iter().map(place).collect(),
                member: combined.member.map(|(word, of)| (word, counts(of))),
            },
            Err(NotCombined::TooMany(entries)) => OutcomeWire::TooMany(*entries),
            Err(NotCombined::Overflow) => OutcomeWire::Overflow,
        };
        let boards = reply.boards.iter().map(|(life, total)| (LifeOnShardWire::of(*life), *total));
        Self { boards: boards.collect(), outcome }
    }

    pub fn read(self) -> Result<CombineReply, Undecodable> {
        let combined = match self.outcome {
            OutcomeWire::Combined { total, left, after, at, entries, member } => Ok(Combined {
                total,
                left,
                after: read_counts(after),
                at: read_counts(at),
                entries: entries.into_iter().map(read_place).collect::<Result<_, _>>()?,
                member: member.map(|(word, of)| (word, read_counts(of))),
            }),
            OutcomeWire::TooMany(entries) => Err(NotCombined::TooMany(entries)),
            OutcomeWire::Overflow => Err(NotCombined::Overflow),
        };
        let boards = self.boards.into_iter().map(|(life, total)| (life.read(), total)).collect();
        Ok(CombineReply { boards, combined })
    }
}
