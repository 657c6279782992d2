//! Scores of several boards combined: which members the result has, and what becomes of their scores. Pure.
//!
//! Knows: that a shard that has all entries of its members combines them alone, and which entries it has to
//! look at for that. Must not know: where they come from, or who wants the result.

use std::collections::HashMap;

use crate::board::definition::{Definition, KeyType, Policy};
use crate::tree::Handle;
use crate::types::{Double, Number};

/// The most entries of all boards together that a shard combines. A reader copies them under one hold of its
/// lock.
pub const COMBINED_ENTRIES_MAX: u64 = 131_072;
/// The most entries of one board that are looked up on the others instead.
pub const COMBINED_LOOKUPS_MAX: u64 = 8_192;
/// The greatest integer that a score may be multiplied by: sums of such products have room in 128 bits.
pub const COMBINED_WEIGHT_MAX: i64 = 1 << 53;

/// [`COMBINED_ENTRIES_MAX`]; so few in tests that they reach it.
pub const ENTRIES_MAX: u64 = if cfg!(test) { 600 } else { COMBINED_ENTRIES_MAX };
/// [`COMBINED_LOOKUPS_MAX`], likewise.
const LOOKUPS_MAX: u64 = if cfg!(test) { 40 } else { COMBINED_LOOKUPS_MAX };

/// Which members the result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    /// Those on any of the boards.
    Union,
    /// Those on all of them.
    Inter,
    /// Those on the first one and on none of the others.
    Diff,
}

impl Combination {
    pub const ALL: [Self; 3] = [Self::Union, Self::Inter, Self::Diff];

    pub fn name(self) -> &'static str {
        match self {
            Self::Union => "union",
            Self::Inter => "inter",
            Self::Diff => "diff",
        }
    }

    /// The most entries that the result may have.
    ///
    /// # Arguments
    /// `totals`: of each board
    pub fn entries_at_most(self, totals: &[u64]) -> u64 {
        match self {
            Self::Union => totals.iter().sum(),
            Self::Inter => totals.iter().copied().min().unwrap_or_default(),
            Self::Diff => totals.first().copied().unwrap_or_default(),
        }
    }

    /// Which entries are to be looked at: `None` for all, or the number of a board whose entries are looked
    /// up on the others.
    ///
    /// # Errors
    /// How many they are, when these are too many.
    pub fn base(self, totals: &[u64]) -> Result<Option<usize>, u64> {
        let base = match self {
            Self::Union => None,
            Self::Inter => (0..totals.len()).min_by_key(|nth| totals.get(*nth)),
            Self::Diff => Some(0),
        };
        let others = u64::try_from(totals.len().saturating_sub(1)).unwrap_or(u64::MAX);
        let looked_up = base.and_then(|base| totals.get(base)).map(|total| total.saturating_mul(others));
        if looked_up.is_some_and(|lookups| lookups <= LOOKUPS_MAX) {
            return Ok(base);
        }
        let all: u64 = totals.iter().sum();
        if all > ENTRIES_MAX { Err(all) } else { Ok(None) }
    }
}

/// What is made of the scores of a member on several boards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    pub const ALL: [Self; 3] = [Self::Sum, Self::Min, Self::Max];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

/// Whether products with a weight are summed up exactly.
pub fn is_exact_weight(weight: Number) -> bool {
    weight.integer().is_ok_and(|weight| weight.unsigned_abs() <= COMBINED_WEIGHT_MAX.unsigned_abs())
}

/// What is looked at of a board.
#[derive(Debug, Clone)]
pub struct CombinedColumn {
    /// Members, and their scores as integers of the same order.
    pub entries: Vec<(Handle, i64)>,
    /// Whether the scores are doubles.
    pub is_float: bool,
    pub weight: Number,
}

/// What comes of the scores of each member.
pub type CombinedScores = HashMap<Handle, CombinedScore, foldhash::fast::RandomState>;

/// Combines boards.
///
/// # Arguments
/// `numbers`: integers if all scores and weights are.
pub fn combine_scores(
    columns: Vec<CombinedColumn>,
    (combination, aggregate): (Combination, Aggregate),
    numbers: KeyType,
) -> CombinedScores {
    let boards = columns.len();
    let most = columns.iter().map(|column| column.entries.len()).max().unwrap_or_default();
    let mut sums: HashMap<Handle, (CombinedScore, usize), foldhash::fast::RandomState> =
        HashMap::with_capacity_and_hasher(most, foldhash::fast::RandomState::default());
    for (nth, CombinedColumn { entries, is_float, weight }) in columns.into_iter().enumerate() {
        for (handle, ordered) in entries {
            if combination == Combination::Diff && nth > 0 {
                sums.remove(&handle);
                continue;
            }
            let value = CombinedScore::of(numbers, weight, ordered, is_float);
            match sums.get_mut(&handle) {
                // One that an intersection lacks already is not counted further.
                Some((_, seen)) if combination == Combination::Inter && *seen < nth => {}
                Some((sum, seen)) => {
                    *sum = sum.with(value, aggregate);
                    *seen = nth + 1;
                }
                None if nth == 0 || combination == Combination::Union => {
                    sums.insert(handle, (value, nth + 1));
                }
                None => {}
            }
        }
    }
    let is_in = |seen: usize| combination != Combination::Inter || seen == boards;
    let sums = sums.into_iter().filter(|(_, (_, seen))| is_in(*seen));
    sums.map(|(handle, (sum, _))| (handle, sum)).collect()
}

/// A score that is being combined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CombinedScore {
    Integer(i128),
    Float(f64),
}

impl CombinedScore {
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
    pub fn ordered(self) -> Option<i64> {
        match self {
            Self::Integer(sum) => i64::try_from(sum).ok(),
            Self::Float(sum) => Double::new(sum).map(Double::ordered),
        }
    }

    /// As a score of a key. `None`: it is none of an integer's.
    #[allow(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "to the nearest double, as a score that is set on a board of doubles"
    )]
    pub fn number(self, of: KeyType) -> Option<Number> {
        match (self, of) {
            (Self::Integer(sum), KeyType::Integer) => i64::try_from(sum).ok().map(Number::Integer),
            (Self::Integer(sum), KeyType::Float) => Double::new(sum as f64).map(Number::Float),
            (Self::Float(sum), KeyType::Float) => Double::new(sum).map(Number::Float),
            (Self::Float(_), KeyType::Integer) => None,
        }
    }
}

/// As in Redis: infinity less infinity, and infinity times nothing, are nothing.
fn number_or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// Why a board's entries cannot be replaced by a result; `None`: they can.
pub fn why_no_result(definition: &Definition) -> Option<&'static str> {
    if definition.keys.len() != 1 {
        return Some("has several keys: what boards make together has one score");
    }
    if definition.is_top_k() {
        return Some("is of the kind top_k, whose scores are estimates");
    }
    if !definition.has_only_all() {
        return Some("has windows, which take scores one by one: name a board without");
    }
    if definition.capacity.is_some() {
        return Some("has a capacity, and shows only its best entries: name a board without");
    }
    match definition.policy {
        Policy::Set => None,
        Policy::Best => Some("keeps the best score (policy best): name a board of the policy set"),
        Policy::Incr => Some("adds scores up (policy incr): name a board of the policy set"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::count;

    fn column(entries: &[(u32, i64)], weight: Number) -> CombinedColumn {
        let entries = entries.iter().map(|(handle, score)| (Handle(*handle), *score)).collect();
        CombinedColumn { entries, is_float: false, weight }
    }

    #[test]
    fn members_and_scores_follow_from_the_combination() {
        let columns = || {
            vec![
                column(&[(1, 10), (2, 20)], Number::Integer(2)),
                column(&[(2, 1), (3, 3)], Number::Integer(-1)),
            ]
        };
        let made = |how| {
            let sums = combine_scores(columns(), how, KeyType::Integer);
            let mut sums: Vec<_> = sums.into_iter().map(|(handle, sum)| (handle.0, sum.ordered())).collect();
            sums.sort_unstable();
            sums
        };
        let of = |entries: &[(u32, i64)]| -> Vec<_> { entries.iter().map(|(h, s)| (*h, Some(*s))).collect() };
        assert_eq!(made((Combination::Union, Aggregate::Sum)), of(&[(1, 20), (2, 39), (3, -3)]));
        assert_eq!(made((Combination::Union, Aggregate::Min)), of(&[(1, 20), (2, -1), (3, -3)]));
        assert_eq!(made((Combination::Inter, Aggregate::Max)), of(&[(2, 40)]));
        assert_eq!(made((Combination::Diff, Aggregate::Sum)), of(&[(1, 20)]));
    }

    #[test]
    fn an_exact_sum_becomes_the_nearest_double_and_no_other_integer() {
        let most = CombinedScore::Integer(i128::from(i64::MAX) + 1);
        assert_eq!(most.number(KeyType::Integer), None);
        assert_eq!(most.number(KeyType::Float), Double::new(9_223_372_036_854_775_808.0).map(Number::Float));
        assert_eq!(CombinedScore::Float(0.5).number(KeyType::Integer), None);
        let infinite = Number::Float(Double::INFINITY);
        assert_eq!(CombinedScore::of(KeyType::Float, infinite, 0, false), CombinedScore::Float(0.0));
    }

    #[test]
    fn a_small_board_is_looked_up_on_large_ones() {
        let many = count(1_000_usize);
        assert_eq!(Combination::Inter.base(&[many, 20, many]), Ok(Some(1)));
        assert_eq!(Combination::Diff.base(&[20, many]), Ok(Some(0)));
        assert_eq!(Combination::Diff.base(&[many, 20]), Err(1_020));
        assert_eq!(Combination::Union.base(&[300, 300]), Ok(None));
        assert_eq!(Combination::Union.base(&[300, 301]), Err(601));
        let most = |combination: Combination| combination.entries_at_most(&[7, 5, 9]);
        assert_eq!(Combination::ALL.map(most), [21, 5, 7]);
    }
}
