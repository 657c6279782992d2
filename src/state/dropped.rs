//! Lives of boards that are over.
//!
//! Knows: which incarnation of a name was dropped last, for the latest [`REMEMBERED_MAX`] drops; and the
//! number up to which drops were forgotten. A definition with such a number may be a delayed one of a board
//! that was dropped since, so it creates no board. Nothing else follows from that number: an existing board
//! of the shard may have a lower one.
//!
//! What is forgotten follows from the drops alone, so that replicas and replays agree. Without NATS, drops
//! have no number, and the node itself forgets them once they are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::types::BoardName;

/// How many of the latest drops a shard remembers. Replicas of a shard must agree on it. Only a definition
/// that is delayed past this many drops is held up; 4,096 names take half a megabyte.
pub const REMEMBERED_MAX: usize = 4_096;

/// The number of the record that decided a definition or a drop. Numbers rise along the records of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RecordNumber(pub u64);

/// A name that the shard remembers as dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedName {
    pub name: BoardName,
    pub life: Incarnation,
    pub number: Option<RecordNumber>,
}

/// The dropped boards that a shard remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The latest dropped incarnation of each name.
    by_name: BTreeMap<BoardName, (Incarnation, Option<RecordNumber>)>,
    /// Those with a number, which are all above `forgotten`.
    by_number: BTreeSet<(RecordNumber, BoardName)>,
    /// The highest number of a drop that was forgotten to make room for later ones.
    forgotten: RecordNumber,
    /// The highest number of a record or an incarnation that the shard has seen.
    latest: u64,
}

impl Dropped {
    /// # Arguments
    /// `latest`: the highest number that the shard has seen, apart from those in `names`.
    pub fn new(
        names: impl IntoIterator<Item = DroppedName>,
        forgotten: RecordNumber,
        latest: RecordNumber,
    ) -> Self {
        let mut dropped = Self { forgotten, latest: latest.0.max(forgotten.0), ..Self::default() };
        for DroppedName { name, life, number } in names {
            dropped.note(name, life, number);
        }
        dropped
    }

    /// Remembers a drop, and forgets those with the lowest numbers if there are too many.
    pub fn note(&mut self, name: BoardName, life: Incarnation, number: Option<RecordNumber>) {
        self.observe_numbers(life, number);
        let (life, number) = match self.by_name.get(&name) {
            Some((known, known_number)) => (life.max(*known), number.max(*known_number)),
            None => (life, number),
        };
        if self.is_forgotten(number) {
            return;
        }
        self.forget(&name);
        if let Some(number) = number {
            self.by_number.insert((number, name.clone()));
        }
        self.by_name.insert(name, (life, number));
        while self.by_number.len() > REMEMBERED_MAX
            && let Some((number, name)) = self.by_number.pop_first()
        {
            self.by_name.remove(&name);
            self.forgotten = number;
        }
        // Drops of the same number are forgotten together: all remembered ones have a higher number.
        while self.by_number.first().is_some_and(|(number, _)| *number <= self.forgotten)
            && let Some((_, name)) = self.by_number.pop_first()
        {
            self.by_name.remove(&name);
        }
    }

    /// Notes the numbers of a definition.
    pub fn observe_numbers(&mut self, life: Incarnation, number: Option<RecordNumber>) {
        self.latest = self.latest.max(life.0).max(number.map_or(0, |number| number.0));
    }

    /// Gives drops without a number that of their incarnation, so that only the latest are remembered. For a
    /// shard whose boards are now decided in a stream, but were not before, or by a version without numbers.
    pub fn number_all(&mut self) {
        let unnumbered = self.by_name.iter().filter(|(_, (_, number))| number.is_none());
        let unnumbered: Vec<_> = unnumbered.map(|(name, (life, _))| (name.clone(), *life)).collect();
        for (name, life) in unnumbered {
            self.by_name.remove(&name);
            self.note(name, life, Some(RecordNumber(life.0)));
        }
    }

    pub fn forget(&mut self, name: &BoardName) {
        if let Some((_, Some(number))) = self.by_name.remove(name) {
            self.by_number.remove(&(number, name.clone()));
        }
    }

    /// The latest dropped incarnation of a name, if it is remembered.
    pub fn get(&self, name: &str) -> Option<Incarnation> {
        self.by_name.get(name).map(|(life, _)| *life)
    }

    /// Whether an incarnation of a name is remembered as dropped. Call it for names that the shard does not
    /// hold.
    pub fn has_ended(&self, name: &str, life: Incarnation) -> bool {
        self.get(name).is_some_and(|dropped| life <= dropped)
    }

    /// Whether drops up to this number were forgotten.
    pub fn is_forgotten(&self, number: Option<RecordNumber>) -> bool {
        number.is_some_and(|number| number <= self.forgotten)
    }

    pub fn forgotten(&self) -> RecordNumber {
        self.forgotten
    }

    /// The highest number of a record or an incarnation that the shard has seen.
    pub fn latest(&self) -> RecordNumber {
        RecordNumber(self.latest)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&BoardName, Incarnation)> {
        self.after(None)
    }

    /// Remembered drops of names after this one, or all.
    pub fn after(&self, name: Option<&BoardName>) -> impl Iterator<Item = (&BoardName, Incarnation)> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
        self.by_name.range::<str, _>((from, Bound::Unbounded)).map(|(name, (life, _))| (name, *life))
    }

    /// All that is remembered, by name.
    pub fn names(&self) -> impl Iterator<Item = DroppedName> {
        self.by_name.iter().map(|(name, (life, number))| DroppedName {
            name: name.clone(),
            life: *life,
            number: *number,
        })
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// Distinguishes successive boards of the same name. Greater is later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Incarnation(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> BoardName {
        BoardName::new(text).expect("a good name")
    }

    fn number(number: u64) -> RecordNumber {
        RecordNumber(number)
    }

    /// So many names, each dropped with the number after that of the one before.
    fn dropped(count: u64) -> Dropped {
        let mut dropped = Dropped::default();
        for life in 1..=count {
            dropped.note(name(&format!("b{life}")), Incarnation(life), Some(number(life)));
        }
        dropped
    }

    const MOST: u64 = 4_096;

    #[test]
    fn only_the_latest_drops_are_remembered() {
        let dropped = dropped(MOST + 3);
        assert_eq!(dropped.len(), REMEMBERED_MAX);
        assert_eq!((dropped.forgotten(), dropped.latest()), (RecordNumber(3), RecordNumber(MOST + 3)));
        for (board, life, over) in [("b3", 3, false), ("b4", 4, true), ("b4", 5, false), ("other", 4, false)]
        {
            assert_eq!(dropped.has_ended(board, Incarnation(life)), over, "{board} {life}");
        }
        for (at, forgotten) in [(None, false), (Some(number(3)), true), (Some(number(4)), false)] {
            assert_eq!(dropped.is_forgotten(at), forgotten, "{at:?}");
        }
    }

    #[test]
    fn a_drop_below_what_was_forgotten_takes_no_room() {
        let mut dropped = dropped(MOST + 3);
        dropped.note(name("late"), Incarnation(2), Some(number(3)));
        assert_eq!((dropped.get("late"), dropped.len()), (None, REMEMBERED_MAX));
        // One that comes late and is not below that is the first to go again.
        dropped.note(name("later"), Incarnation(2), Some(number(4)));
        assert_eq!(
            (dropped.get("later"), dropped.get("b4"), dropped.len()),
            (None, None, REMEMBERED_MAX - 1)
        );
        assert_eq!(dropped.forgotten(), RecordNumber(4));
    }

    #[test]
    fn drops_that_share_a_number_are_forgotten_together() {
        let mut dropped = Dropped::default();
        for board in ["a", "b", "c"] {
            dropped.note(name(board), Incarnation(1), Some(number(7)));
        }
        for life in 8..8 + MOST - 2 {
            dropped.note(name(&format!("b{life}")), Incarnation(life), Some(number(life)));
        }
        assert_eq!((dropped.forgotten(), dropped.len()), (RecordNumber(7), REMEMBERED_MAX - 2));
        assert_eq!(["a", "b", "c"].map(|board| dropped.get(board)), [None; 3]);
    }

    #[test]
    fn the_latest_life_of_a_name_counts() {
        let known = [("b", 5), ("c", 6)];
        let known = known.map(|(board, life)| DroppedName {
            name: name(board),
            life: Incarnation(life),
            number: Some(number(life + 10)),
        });
        let mut dropped = Dropped::new(known, RecordNumber(0), RecordNumber(0));
        dropped.note(name("b"), Incarnation(3), Some(number(13)));
        assert_eq!(dropped.get("b"), Some(Incarnation(5)));
        dropped.note(name("b"), Incarnation(7), Some(number(20)));
        assert_eq!((dropped.get("b"), dropped.len()), (Some(Incarnation(7)), 2));
        assert_eq!(dropped.by_number.len(), 2);
        dropped.forget(&name("b"));
        dropped.forget(&name("c"));
        assert!(dropped.is_empty() && dropped.by_number.is_empty());
        assert_eq!(dropped.latest(), RecordNumber(20));
    }

    #[test]
    fn drops_without_a_number_are_remembered_until_they_are_numbered() {
        let mut dropped = Dropped::default();
        for life in 1..=MOST + 3 {
            dropped.note(name(&format!("b{life}")), Incarnation(life), None);
        }
        assert_eq!((dropped.len(), dropped.forgotten()), (REMEMBERED_MAX + 3, RecordNumber(0)));
        dropped.number_all();
        assert_eq!((dropped.len(), dropped.forgotten()), (REMEMBERED_MAX, RecordNumber(3)));
        assert_eq!((dropped.get("b3"), dropped.get("b4")), (None, Some(Incarnation(4))));
    }

    #[test]
    fn what_is_remembered_is_restored_as_it_was() {
        let dropped = dropped(MOST + 3);
        let restored = Dropped::new(dropped.names(), dropped.forgotten(), dropped.latest());
        assert_eq!(restored, dropped);
    }
}
