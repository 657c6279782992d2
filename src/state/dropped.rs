//! Lives of boards that are over.
//!
//! Knows: which life of a name was dropped last, and up to which life everything is settled: below that, a life is over
//! if the shard does not hold it, and needs no record of its own. Nodes with NATS settle nothing yet, so there the names of
//! dropped boards are all remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::state::shard::Incarnation;
use crate::types::BoardName;

/// What a shard remembers of boards that it does not hold any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The latest dropped life of a name. Only lives after `settled`.
    by_name: BTreeMap<BoardName, Incarnation>,
    /// The same by life, so that the oldest are found without a look at the others.
    by_life: BTreeSet<(Incarnation, BoardName)>,
    /// Every life up to this one is here, or is over.
    settled: Incarnation,
}

impl Dropped {
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = (BoardName, Incarnation)>, settled: Incarnation) -> Self {
        let mut dropped = Self { settled, ..Self::default() };
        for (name, life) in names {
            dropped.note(name, life);
        }
        dropped
    }

    pub fn note(&mut self, name: BoardName, life: Incarnation) {
        if life <= self.settled || self.get(name.as_str()).is_some_and(|known| known >= life) {
            return;
        }
        self.forget(&name);
        self.by_life.insert((life, name.clone()));
        self.by_name.insert(name, life);
    }

    pub fn forget(&mut self, name: &BoardName) {
        if let Some(life) = self.by_name.remove(name) {
            self.by_life.remove(&(life, name.clone()));
        }
    }

    /// Every life up to this one is settled from now on: what is remembered of them can be forgotten.
    pub fn settle(&mut self, through: Incarnation) {
        self.settled = self.settled.max(through);
        while self.by_life.first().is_some_and(|(life, _)| *life <= self.settled)
            && let Some((_, name)) = self.by_life.pop_first()
        {
            self.by_name.remove(&name);
        }
    }

    #[must_use]
    pub fn settled(&self) -> Incarnation {
        self.settled
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<Incarnation> {
        self.by_name.get(name).copied()
    }

    /// Whether a life of a name that the shard does not hold is over.
    #[must_use]
    pub fn is_over(&self, name: &str, life: Incarnation) -> bool {
        life <= self.settled || self.get(name).is_some_and(|dropped| life <= dropped)
    }

    /// The latest life that is known to be over.
    #[must_use]
    pub fn latest(&self) -> Incarnation {
        self.by_life.last().map_or(self.settled, |(life, _)| (*life).max(self.settled))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&BoardName, Incarnation)> {
        self.behind(None)
    }

    /// Those whose names come after this one, or all.
    pub fn behind(&self, name: Option<&BoardName>) -> impl Iterator<Item = (&BoardName, Incarnation)> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
        self.by_name.range::<str, _>((from, Bound::Unbounded)).map(|(name, life)| (name, *life))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> BoardName {
        BoardName::new(text).expect("a good name")
    }

    #[test]
    fn what_is_settled_is_over_and_takes_no_room() {
        let mut dropped = Dropped::default();
        for life in 1..=1_000 {
            dropped.note(name(&format!("b{life}")), Incarnation(life));
            dropped.settle(Incarnation(life.saturating_sub(3)));
        }
        assert_eq!((dropped.len(), dropped.iter().count()), (3, 3));
        for (board, life, over) in
            [("b1", 1, true), ("other", 997, true), ("other", 998, false), ("b998", 998, true)]
        {
            assert_eq!(dropped.is_over(board, Incarnation(life)), over, "{board} {life}");
        }
        assert_eq!((dropped.settled(), dropped.latest()), (Incarnation(997), Incarnation(1_000)));
        // It never goes back, and what comes late takes no room either.
        dropped.settle(Incarnation(5));
        dropped.note(name("late"), Incarnation(997));
        assert_eq!((dropped.settled(), dropped.len()), (Incarnation(997), 3));
    }

    #[test]
    fn the_latest_life_of_a_name_counts() {
        let mut dropped =
            Dropped::new([(name("b"), Incarnation(5)), (name("c"), Incarnation(6))], Incarnation(0));
        dropped.note(name("b"), Incarnation(3));
        assert_eq!(dropped.get("b"), Some(Incarnation(5)));
        dropped.note(name("b"), Incarnation(7));
        assert_eq!((dropped.get("b"), dropped.len()), (Some(Incarnation(7)), 2));
        dropped.settle(Incarnation(6));
        assert_eq!((dropped.get("b"), dropped.get("c")), (Some(Incarnation(7)), None));
        dropped.forget(&name("b"));
        assert!(dropped.is_empty());
        assert_eq!(dropped.latest(), Incarnation(6));
    }
}
