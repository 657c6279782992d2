//! A result that is to be stored, as the command of a shard's stream has it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::board::{Aggregate, Combination, KeyType, is_exact_weight};
use crate::state::{
    Incarnation, STORE_SOURCES_MAX, StoreOrder, StoreRange, StoreSource, TrimPoint, TrimSide,
};
use crate::tree::{MAX_WORDS, Words};
use crate::types::{BoardName, Double, MemberId, Number};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreJson<'a> {
    #[serde(borrow)]
    board: Cow<'a, str>,
    #[serde(borrow)]
    combine: Cow<'a, str>,
    #[serde(borrow)]
    aggregate: Cow<'a, str>,
    /// Whether scores are combined as doubles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    float: bool,
    #[serde(borrow)]
    sources: Vec<SourceJson<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceJson<'a> {
    #[serde(borrow)]
    board: Cow<'a, str>,
    /// An integer, or the integer of the same order as all doubles.
    weight: i64,
    /// Whether the weight is a double.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    float: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    range: Option<RangeJson<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeJson<'a> {
    incarnation: u64,
    #[serde(borrow)]
    first: PlaceJson<'a>,
    #[serde(borrow)]
    last: PlaceJson<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceJson<'a> {
    words: Cow<'a, [u64]>,
    #[serde(borrow)]
    member: Cow<'a, str>,
}

impl<'a> From<&'a StoreOrder> for StoreJson<'a> {
    fn from(order: &'a StoreOrder) -> Self {
        let source = |source: &'a StoreSource| {
            let (weight, float) = match source.weight {
                Number::Integer(weight) => (weight, false),
                Number::Float(weight) => (weight.ordered(), true),
            };
            let range = source.range.as_ref().map(|range| RangeJson {
                incarnation: range.incarnation.0,
                first: place(&range.first),
                last: place(&range.last),
            });
            SourceJson { board: source.board.as_str().into(), weight, float, range }
        };
        Self {
            board: order.board.as_str().into(),
            combine: order.combination.name().into(),
            aggregate: order.aggregate.name().into(),
            float: order.numbers == KeyType::Float,
            sources: order.sources.iter().map(source).collect(),
        }
    }
}

fn place(point: &TrimPoint) -> PlaceJson<'_> {
    let member = point.member.as_deref().unwrap_or_default();
    PlaceJson { words: point.words.as_slice().into(), member: String::from_utf8_lossy(member) }
}

impl StoreJson<'_> {
    /// `None`: it is none, or more than a shard does for one.
    pub fn read(self) -> Option<StoreOrder> {
        let combination = Combination::ALL.into_iter().find(|known| known.name() == self.combine)?;
        let aggregate = Aggregate::ALL.into_iter().find(|known| known.name() == self.aggregate)?;
        let sources: Vec<StoreSource> =
            self.sources.into_iter().map(SourceJson::read).collect::<Option<_>>()?;
        let numbers = if self.float { KeyType::Float } else { KeyType::Integer };
        let is_exact = sources.iter().all(|source| is_exact_weight(source.weight));
        if sources.len() > STORE_SOURCES_MAX || (!self.float && !is_exact) {
            return None;
        }
        Some(StoreOrder {
            board: BoardName::new(&self.board).ok()?,
            sources,
            combination,
            aggregate,
            numbers,
        })
    }
}

impl SourceJson<'_> {
    fn read(self) -> Option<StoreSource> {
        let weight = if self.float {
            Number::Float(Double::of_ordered(self.weight))
        } else {
            Number::Integer(self.weight)
        };
        let range = match self.range {
            Some(range) => Some(StoreRange {
                incarnation: Incarnation(range.incarnation),
                first: range.first.read(TrimSide::Better)?,
                last: range.last.read(TrimSide::Worse)?,
            }),
            None => None,
        };
        Some(StoreSource { board: BoardName::of_shard(&self.board).ok()?, weight, range })
    }
}

impl PlaceJson<'_> {
    fn read(self, side: TrimSide) -> Option<TrimPoint> {
        if !(1..=MAX_WORDS).contains(&self.words.len()) {
            return None;
        }
        let member = MemberId::new(&*self.member).ok()?;
        Some(TrimPoint {
            side,
            words: Words::from_slice(&self.words),
            member: Some(member.as_bytes().into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> StoreOrder {
        let name = |text: &str| BoardName::of_shard(text).expect("a name");
        let place = |side, member: &str| TrimPoint {
            side,
            words: Words::from_slice(&[u64::MAX, 7]),
            member: Some(member.as_bytes().into()),
        };
        let range = StoreRange {
            incarnation: Incarnation(3),
            first: place(TrimSide::Better, "a\"日"),
            last: place(TrimSide::Worse, "z"),
        };
        let source = |board, weight, range| StoreSource { board: name(board), weight, range };
        StoreOrder {
            board: name("to"),
            sources: vec![
                source("a", Number::Integer(-2), None),
                source("b#2026-W47", Number::Float(Double::NEGATIVE_INFINITY), Some(range)),
            ],
            combination: Combination::Inter,
            aggregate: Aggregate::Max,
            numbers: KeyType::Float,
        }
    }

    #[test]
    fn an_order_reads_back_as_it_was() {
        for order in [order(), StoreOrder { sources: Vec::new(), numbers: KeyType::Integer, ..order() }] {
            let json = serde_json::to_vec(&StoreJson::from(&order)).expect("JSON");
            let read: StoreJson<'_> = serde_json::from_slice(&json).expect("an order");
            assert_eq!(read.read(), Some(order), "{}", String::from_utf8_lossy(&json));
        }
    }

    #[test]
    fn more_than_a_shard_does_is_no_order() {
        let many = vec![order().sources.remove(0); STORE_SOURCES_MAX + 1];
        let inexact = vec![StoreSource { weight: Number::Integer(i64::MAX), ..order().sources.remove(0) }];
        let whole = StoreOrder { numbers: KeyType::Integer, ..order() };
        for order in [
            StoreOrder { sources: many, ..order() },
            StoreOrder { sources: inexact, ..whole.clone() },
            whole,
            StoreOrder { board: BoardName::of_shard("a#2026-W47").expect("a name"), ..order() },
        ] {
            assert_eq!(StoreJson::from(&order).read(), None, "{order:?}");
        }
    }
}
